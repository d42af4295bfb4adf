package observe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// Object is a custom resource that the walk made and that must survive it.
type Object struct {
	CRD       string
	Resource  schema.GroupResource
	Kind      string
	Version   string // through which it was written
	Namespace string
	Name      string
	Sample    string         // name of the sample that it was made of
	Written   bool           // observers write it all the time; the others stay as they were first stored
	Only      bool           // the API server takes no other of its kind beside it
	Author    map[string]any // the manifest, as written
	Created   map[string]any // what the API server made of the manifest, or would under the release that was judged last
	Restored  bool           // of another cluster: its user has it there
	Compared  bool           // what was restored was compared with what it says on the first release
	UID       types.UID
	Since     time.Time // when the walk created it; zero for what it restored
	Gone      bool      // somebody deleted it, and nobody made it anew
	// Undeletable is why the API server refuses to delete it, nil if it does not.
	Undeletable error

	Views map[string]*unstructured.Unstructured // by served version: what it said before the hop
	First map[string]*unstructured.Unstructured // by served version: what it said when it was asked for the first time
	Acked atomic.Int64                          // number of the last write that the API server acknowledged
	Late  sync.Map                              // numbers of writes that nobody knows the end of: the API server may carry them out after others

	// Uncounted says that writes change nothing of it: its operator hands annotations on to pods, which each counted write would roll out.
	Uncounted atomic.Bool
}

// See notes what o says in a version before a hop.
func (o *Object) See(version string, view *unstructured.Unstructured) {
	o.Views[version] = view
	if o.First == nil {
		o.First = map[string]*unstructured.Unstructured{}
	}
	if o.First[version] == nil {
		o.First[version] = view
	}
}

// Writes is the annotation that counts an observer's writes.
const Writes = "olmkit.dev/writes"

// String names the object as findings do.
func (o *Object) String() string {
	return o.Kind + "/" + strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")
}

// At returns the client for the object's kind in version.
func (o *Object) At(resources dynamic.Interface, version string) dynamic.ResourceInterface {
	r := resources.Resource(o.Resource.WithVersion(version))
	if o.Namespace == "" {
		return r
	}
	return r.Namespace(o.Namespace)
}

// RetryTimeout is how long the walk retries what should work at once on a settled cluster before it takes the answer for
// final: an API server needs a moment to serve a changed CRD, and to dial a new webhook endpoint.
const RetryTimeout = 10 * time.Second

// Retry calls do every 200 ms until it succeeds, fails with an error that final says will not change, or RetryTimeout is
// exhausted, and returns its last error.
func Retry(ctx context.Context, final func(error) bool, do func() error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, RetryTimeout, true, func(context.Context) (bool, error) {
		if last = do(); last != nil && final(last) {
			return false, last
		}
		return last == nil, nil
	})
	if err != nil && last != nil && ctx.Err() == nil {
		return last
	}
	return err
}

// Refused reports whether err is the API server's verdict on a request, which is the same when it is tried again.
func Refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}

// Denied reports whether err says that somebody does not want what was asked for: the API server, or a webhook with whatever code.
func Denied(err error) bool {
	return Refused(err) || err != nil && Denial().MatchString(err.Error())
}

// SimulatedConverter returns the image behind r's conversion webhook of crd whose pods were simulated, or "".
func (c *Cluster) SimulatedConverter(r *lifecycle.Release, crd string) string {
	return c.SimulatedAmong(r.ConversionImages(crd))
}

// SimulatedAmong returns the first of images whose pods were simulated, or "".
func (c *Cluster) SimulatedAmong(images []string) string {
	for _, image := range images {
		if slices.Contains(c.Simulated, image) {
			return image
		}
	}
	return ""
}

// writeTo writes o at target without a change to what it says, as number n, and notes that the API server acknowledged it.
func (o *Object) writeTo(ctx context.Context, target dynamic.ResourceInterface, n int64) (*unstructured.Unstructured, error) {
	uncounted := o.Uncounted.Load()
	patch := []byte(`{}`)
	if !uncounted {
		patch = fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%d"}}}`, Writes, n)
	}
	now, err := target.Patch(ctx, o.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "olmkit"})
	if err == nil && !uncounted {
		o.Acked.Store(n)
	}
	return now, err
}

// Key is how listed objects are found.
func (o *Object) Key() string { return o.Namespace + "/" + o.Name }
