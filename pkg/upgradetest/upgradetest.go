package upgradetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/cli"
	"github.com/olmkit/olmkit/internal/cluster/embedded"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/report"
)

// Main runs m and exits with its code. Call it from TestMain before anything else: the embedded cluster starts the test
// program again as its own processes, and Main is where they begin.
func Main(m *testing.M) {
	embedded.Main()
	os.Exit(m.Run())
}

// Hop is one upgrade, by the names of the bundles in the catalog.
type Hop struct {
	Package, Channel string
	From, To         string
}

// Option changes what Run tests, and how.
type Option func(*run)

// run is what the options of Run say.
type run struct {
	args     []string
	errs     []error
	scheme   *runtime.Scheme
	afterHop []func(context.Context, client.Client, Hop) error
	hops     sync.Mutex // hops that are walked at the same time wait for each other's functions
}

func flag(name string, values ...string) Option {
	return func(r *run) {
		for _, v := range values {
			r.args = append(r.args, "--"+name, v)
		}
	}
}

// Package names the package to test. It is needed where the catalog has several.
func Package(name string) Option { return flag("package", name) }

// Channel names the channel to test; without it, it is the package's default channel.
func Channel(name string) Option { return flag("channel", name) }

// Edges chooses the hops: "chain" (the head's replaces chain), "next" (and the hop that OLM takes from every entry; the
// default) or "all" (every hop that OLM could take).
func Edges(mode string) Option { return flag("edges", mode) }

// From skips hops from below this version or bundle.
func From(version string) Option { return flag("from", version) }

// To skips hops to above this version or bundle.
func To(version string) Option { return flag("to", version) }

// Kubernetes tests on this minor of Kubernetes, such as "1.33", instead of olmkit's own. Its components are built the first time.
func Kubernetes(minor string) Option { return flag("kubernetes", minor) }

// OLM tests under OLM "v0" (the default) or "v1".
func OLM(version string) Option { return flag("olm", version) }

// Image runs the image with this reference from program: a statically linked binary, the directory of a root file system,
// or a single-binary image. Images without a program are simulated.
func Image(reference, program string) Option { return flag("image", reference+"="+program) }

// Samples creates the objects in these files instead of the bundles' alm-examples. Of a directory it takes the files
// *.yaml, *.yml and *.json but for kustomization.yaml.
func Samples(paths ...string) Option {
	return func(r *run) {
		for _, path := range paths {
			files, err := manifests(path)
			if err != nil {
				r.errs = append(r.errs, fmt.Errorf("samples: %w", err))
			}
			flag("sample", files...)(r)
		}
	}
}

// Assert checks that the partial objects in these files, in the syntax of kuttl and chainsaw, match after the installation
// and after each hop.
func Assert(files ...string) Option { return flag("assert", files...) }

// Flags passes further flags of 'olmkit upgrade test' on, for example "--strict" or "--suppress", "suppress.yaml". A flag for the
// format of the output has no effect.
func Flags(flags ...string) Option {
	return func(r *run) { r.args = append(r.args, flags...) }
}

// Scheme is the scheme of the client that AfterHop's functions get; without it, it is client-go's, which has the kinds of
// Kubernetes alone. Unstructured objects need none.
func Scheme(scheme *runtime.Scheme) Option { return func(r *run) { r.scheme = scheme } }

// AfterHop calls f after each hop that OLM completed, while the cluster runs. The client reads and writes without a cache,
// as the cluster's administrator. An error of f fails the hop. Where hops are walked at the same time, on several clusters, f is called
// for one after the other.
func AfterHop(f func(ctx context.Context, c client.Client, hop Hop) error) Option {
	return func(r *run) { r.afterHop = append(r.afterHop, f) }
}

// Run tests the upgrades of a file-based catalog: a directory, a file, or the reference of an image. It fails t when the
// test cannot run, and a subtest for each installation and each hop that has errors among its findings. It ends before the
// deadline of 'go test' and leaves nothing behind.
func Run(t *testing.T, catalog string, options ...Option) {
	t.Helper()
	r := &run{args: []string{"upgrade", "test", catalog}}
	for _, option := range options {
		option(r)
	}
	for _, err := range r.errs {
		t.Error(err)
	}
	if t.Failed() {
		return
	}
	ctx := t.Context()
	if deadline, ok := t.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-cleanupTime))
		defer cancel()
	}
	var out, messages bytes.Buffer
	code := cli.RunWith(ctx, cli.Streams{In: bytes.NewReader(nil), Out: &out, Err: &messages}, cli.Hooks{AfterHop: r.after}, append(r.args, "--output", "json"))
	t.Log(messages.String())
	var outcome report.Report
	if err := json.Unmarshal(out.Bytes(), &outcome); err != nil {
		t.Fatalf("olmkit upgrade test ended with exit code %d and without a report", code)
	}
	show(t, &outcome)
	if code != 0 && !t.Failed() {
		t.Errorf("olmkit upgrade test ended with exit code %d", code)
	}
}

// cleanupTime is what the deletion of a cluster takes at most.
const cleanupTime = 20 * time.Second

// after calls the functions of AfterHop.
func (r *run) after(ctx context.Context, config *rest.Config, hop report.Hop) error {
	if len(r.afterHop) == 0 {
		return nil
	}
	r.hops.Lock()
	defer r.hops.Unlock()
	c, err := client.New(config, client.Options{Scheme: r.scheme})
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	for _, f := range r.afterHop {
		if err := f(ctx, c, Hop{Package: hop.Package, Channel: hop.Channel, From: hop.From, To: hop.To}); err != nil {
			return err
		}
	}
	return nil
}

// show makes a subtest of each installation and each hop of r, and one of the findings about the package, if there are any.
func show(t *testing.T, r *report.Report) {
	for _, h := range r.Steps() {
		t.Run(strings.Replace(h.Title(), " → ", " to ", 1), func(t *testing.T) {
			logFindings(t, h.All())
			if h.Result != report.Passed && !t.Failed() {
				t.Errorf("the result is %s", h.Result)
			}
		})
	}
	if len(r.Findings) > 0 {
		t.Run("package", func(t *testing.T) { logFindings(t, r.Findings) })
	}
}

// logFindings fails t for each error among findings that is not suppressed, and logs the others.
func logFindings(t *testing.T, findings []finding.Finding) {
	for _, f := range findings {
		if f.Severity == finding.Error && f.Suppressed == nil {
			t.Error(sentence(f))
		} else {
			t.Log(sentence(f))
		}
	}
}

// sentence renders a finding, with cause and fix on lines of their own.
func sentence(f finding.Finding) string {
	text := fmt.Sprintf("%s %s %s: %s", f.Severity, f.Code, f.Subject.Object, f.Message)
	if f.Cause != "" {
		text += "\n  cause: " + f.Cause
	}
	if f.Fix != "" {
		text += "\n  fix:   " + f.Fix
	}
	return text
}

// manifests returns path, or the manifests in the directory path.
func manifests(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		known := slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name()))
		if known && !e.IsDir() && e.Name() != "kustomization.yaml" && e.Name() != "kustomization.yml" {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no manifests", path)
	}
	return files, nil
}
