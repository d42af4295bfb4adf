package conversion

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"
)

// Path is where the API server sends its conversion requests.
const Path = "/convert"

type tallyKey struct{}

// tally counts the objects of one conversion request.
type tally struct {
	from, to map[string]bool
	objects  int
	failed   int
}

// counted is a converter that counts what it converts in the tally of the request that asks.
type counted struct{ conversion.Converter }

// Counted makes the conversions of c visible to the log line of the request that asks for them.
func Counted(c conversion.Converter) conversion.Converter { return counted{c} }

// ConvertObject converts and counts.
func (c counted) ConvertObject(ctx context.Context, src, dst runtime.Object) error {
	err := c.Converter.ConvertObject(ctx, src, dst)
	if t, ok := ctx.Value(tallyKey{}).(*tally); ok {
		t.from[src.GetObjectKind().GroupVersionKind().Version] = true
		t.to[dst.GetObjectKind().GroupVersionKind().Version] = true
		t.objects++
		if err != nil {
			t.failed++
		}
	}
	return err
}

// Serve makes a manager answer conversion requests between a hub and its spokes, which must be all the versions that
// the manager's scheme knows of the kind.
func Serve[H client.Object](mgr manager.Manager, hub H, spokes ...conversion.SpokeConverter[H]) error {
	converter, err := conversion.NewHubSpokeConverter(hub, spokes...)(mgr.GetScheme())
	if err != nil {
		return err
	}
	kind, err := apiutil.GVKForObject(hub, mgr.GetScheme())
	if err != nil {
		return err
	}
	if err := mgr.GetConverterRegistry().RegisterConverter(kind.GroupKind(), Counted(converter)); err != nil {
		return err
	}
	mgr.GetWebhookServer().Register(Path, Handler(mgr.GetScheme(), mgr.GetConverterRegistry(), mgr.GetLogger().WithName("conversion")))
	return nil
}

// Handler answers the API server's ConversionReviews with the converters of a registry, and writes a line to the log
// for each: those that failed, and the first between two versions, for all to read, the others to debug. Only converters
// wrapped in Counted are counted.
func Handler(scheme *runtime.Scheme, registry conversion.Registry, log logr.Logger) http.Handler {
	inner := conversion.NewWebhookHandler(scheme, registry)
	var told sync.Map
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t := &tally{from: map[string]bool{}, to: map[string]bool{}}
		began := time.Now()
		inner.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), tallyKey{}, t)))
		from, to, level := versions(t.from), versions(t.to), 0
		if _, again := told.LoadOrStore([2]string{from, to}, true); again && t.failed == 0 {
			level = 1
		}
		log.V(level).Info("answered a conversion request",
			"from", from, "to", to, "objects", t.objects, "failed", t.failed,
			"took", time.Since(began).String())
	})
}

func versions(set map[string]bool) string {
	return strings.Join(slices.Sorted(maps.Keys(set)), ",")
}
