package olmv1

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

var update = flag.Bool("update", false, "write golden files")

// memcached is the package of the memcached operator's catalog.
func memcached(t *testing.T) *catalog.Package {
	t.Helper()
	c, err := catalog.Load(t.Context(), nil, "../../../catalog")
	if err != nil {
		t.Fatal(err)
	}
	p := c.Find("memcached-operator")
	if p == nil {
		t.Fatal("the catalog has no memcached-operator")
	}
	return p
}

// The manifests are upstream's, but for what the cluster does without, and what a walk has no time for.
func TestParts(t *testing.T) {
	objects, err := parts(true)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, o := range objects {
		kinds[o.GetKind()]++
		switch o.GetName() {
		case "catalogd-controller-manager", "operator-controller-controller-manager":
			if o.GetKind() != "Deployment" {
				continue
			}
			var d appsv1.Deployment
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d); err != nil {
				t.Fatal(err)
			}
			c := d.Spec.Template.Spec.Containers[0]
			if !strings.HasSuffix(c.Image, ":"+Version) || slices.Contains(c.Args, "--leader-elect") || c.ReadinessProbe.PeriodSeconds != 1 {
				t.Errorf("%s runs %s %v, probed each %d s", d.Name, c.Image, c.Args, c.ReadinessProbe.PeriodSeconds)
			}
			if d.Spec.Template.Spec.SecurityContext.RunAsNonRoot == nil {
				t.Errorf("%s may run as root", d.Name)
			}
		}
	}
	for kind, want := range map[string]int{"Deployment": 2, "Certificate": 2, "CustomResourceDefinition": 2, "MutatingWebhookConfiguration": 1, "Issuer": 0, "ClusterIssuer": 0, "NetworkPolicy": 0, "PodDisruptionBudget": 0} {
		if kinds[kind] != want {
			t.Errorf("%d of %s, want %d", kinds[kind], kind, want)
		}
	}
}

// Where images are pulled the manifests are upstream's, but for what olmkit does in cert-manager's place and the images' tags.
func TestPartsAsReleased(t *testing.T) {
	objects, err := parts(false)
	if err != nil {
		t.Fatal(err)
	}
	released, err := lifecycle.Decode(bytes.ReplaceAll(manifests, []byte(":devel"), []byte(":"+Version)))
	if err != nil {
		t.Fatal(err)
	}
	var leftOut []string
	for _, r := range released {
		i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool {
			return o.GetKind() == r.GetKind() && o.GetNamespace() == r.GetNamespace() && o.GetName() == r.GetName()
		})
		switch {
		case i < 0:
			leftOut = append(leftOut, r.GetKind()+"/"+r.GetName())
		case r.GetKind() == "Deployment":
			var want, got appsv1.Deployment
			if err := errors.Join(runtime.DefaultUnstructuredConverter.FromUnstructured(r.Object, &want), runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, &got)); err != nil {
				t.Fatal(err)
			}
			if !equality.Semantic.DeepEqual(got, want) {
				t.Errorf("Deployment %s is\n%+v\nreleased as\n%+v", r.GetName(), got, want)
			}
		case !equality.Semantic.DeepEqual(objects[i].Object, r.Object):
			t.Errorf("%s %s is\n%v\nreleased as\n%v", r.GetKind(), r.GetName(), objects[i].Object, r.Object)
		}
	}
	slices.Sort(leftOut)
	if want := []string{"Certificate/olmv1-ca", "ClusterIssuer/olmv1-ca", "Issuer/self-sign-issuer"}; !slices.Equal(leftOut, want) {
		t.Errorf("left out: %v, want %v", leftOut, want)
	}
}

// TestRights holds the rights that install a release, and those of an upgrade, to golden files. That they are enough, the walks show.
func TestRights(t *testing.T) {
	p := memcached(t)
	var sum Rights
	for _, name := range []string{"memcached-operator.v0.4.0", "memcached-operator.v0.5.0"} {
		r, err := RightsOf(p.Name, p.Bundle(name))
		if err != nil {
			t.Fatal(err)
		}
		sum = sum.Add(r)
		var out strings.Builder
		for _, o := range r.Objects(p.Name, "operators") {
			data, err := yaml.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			out.WriteString("---\n" + string(data))
		}
		golden := filepath.Join("testdata", name+".yaml")
		if *update {
			if err := os.WriteFile(golden, []byte(out.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil || string(want) != out.String() {
			t.Errorf("%s differs (%v): run the test with -update, and look at the difference\n%s", golden, err, out.String())
		}
	}
	cluster, _ := sum.rules(p.Name)
	names := 0
	for _, rule := range cluster {
		if slices.Contains(rule.Resources, "clusterroles") && len(rule.ResourceNames) > 0 {
			names = len(rule.ResourceNames)
		}
		if slices.Contains(rule.Verbs, "*") || slices.Contains(rule.Resources, "*") {
			t.Errorf("a wildcard: %v", rule)
		}
	}
	if names < 2 {
		t.Errorf("an upgrade may change %d ClusterRoles: those of both releases are needed", names)
	}
}

func TestNamesAreAsLongAsOLMMakesThem(t *testing.T) {
	if got := joinName(strings.Repeat("a", 60), "service"); len(got) != longestName || !strings.HasSuffix(got, "-service") {
		t.Errorf("%s has %d letters", got, len(got))
	}
	if got := joinName("a", "cert"); got != "a-cert" {
		t.Errorf("got %s", got)
	}
}

// extension is a ClusterExtension of generation 2 that OLM v1 has seen.
func extension(installed, reason, message string, status metav1.ConditionStatus) *ClusterExtension {
	x := &ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: "op", Generation: 2}}
	if installed != "" {
		x.Status.Install = &InstallStatus{Bundle: BundleMetadata{Name: installed}}
	}
	x.Status.Conditions = []metav1.Condition{{Type: conditionProgressing, Status: status, Reason: reason, Message: message, ObservedGeneration: 2}}
	return x
}

func TestState(t *testing.T) {
	stale := extension("op.v2", reasonSucceeded, "", metav1.ConditionTrue)
	stale.Generation = 3
	ready := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "manager"}, Status: appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1}}
	rolling := ready.DeepCopy()
	rolling.Status.UnavailableReplicas = 1
	r := release("op.v2", "manager")
	for name, c := range map[string]struct {
		objects []client.Object
		stage   lifecycle.Stage
		reason  lifecycle.Reason
		grace   time.Duration
	}{
		"nothing":             {nil, lifecycle.Unresolved, "", 0},
		"not seen yet":        {[]client.Object{stale, ready}, lifecycle.Unresolved, "", 0},
		"the one before":      {[]client.Object{extension("op.v1", reasonSucceeded, "", metav1.ConditionTrue), ready}, lifecycle.Unresolved, "", 0},
		"applied":             {[]client.Object{extension("op.v2", reasonSucceeded, "", metav1.ConditionTrue)}, lifecycle.Installing, "", 0},
		"applied and rolling": {[]client.Object{extension("op.v2", reasonSucceeded, "", metav1.ConditionTrue), rolling}, lifecycle.Installing, "", 0},
		"rolled out":          {[]client.Object{extension("op.v2", reasonSucceeded, "", metav1.ConditionTrue), ready}, lifecycle.Installed, "", 0},
		"no way": {[]client.Object{extension("op.v1", "Retrying", `error upgrading from currently installed version "1.0.0": no bundles found for package "op"`, metav1.ConditionTrue)},
			lifecycle.Unresolved, lifecycle.NotChosen, refusalGrace},
		"terminal": {[]client.Object{extension("op.v1", "Blocked", `error for resolved bundle "op.v2" with version "2.0.0": no`, metav1.ConditionFalse)},
			lifecycle.Unresolved, lifecycle.NotApplied, 0},
		"stored version": {[]client.Object{extension("op.v1", "Retrying", `error for resolved bundle "op.v2" with version "2.0.0": validating upgrade for CRD "pots.example.com": storedVersionRemoval: stored version "v1alpha1" removed`, metav1.ConditionTrue)},
			lifecycle.Unresolved, lifecycle.StoredVersionRefused, refusalGrace},
		"an unsafe definition": {[]client.Object{extension("op.v1", "Retrying", `error for resolved bundle "op.v2" with version "2.0.0": validating upgrade for CRD "pots.example.com": v1alpha1: ^.spec.size: maximum: maximum decreased : 5 -> 3`, metav1.ConditionTrue)},
			lifecycle.Unresolved, lifecycle.UnsafeDefinition, refusalGrace},
		"dependencies": {[]client.Object{extension("op.v1", "Retrying", `validating bundle "op.v2": bundle "op.v2" has a dependency declared via property "olm.gvk.required" which is currently not supported`, metav1.ConditionTrue)},
			lifecycle.Unresolved, lifecycle.Unmet, refusalGrace},
	} {
		t.Run(name, func(t *testing.T) {
			seen := fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(c.objects...).Build()
			state, err := (&Client{}).State(t.Context(), lifecycle.Place{Package: "op", Namespace: "ns"}, r, lifecycle.View{Reader: seen})
			if err != nil || state.Stage != c.stage {
				t.Errorf("stage %d, %v; want %d", state.Stage, err, c.stage)
			}
			var got lifecycle.Stall
			if state.Stall != nil {
				got = *state.Stall
			}
			if got.Reason != c.reason || got.Grace != c.grace {
				t.Errorf("stall %+v; want %s after %s", got, c.reason, c.grace)
			}
		})
	}
}

func TestEvents(t *testing.T) {
	c := &Client{}
	before := extension("op.v1", reasonSucceeded, "", metav1.ConditionTrue)
	after := extension("op.v2", reasonSucceeded, "", metav1.ConditionTrue)
	if e := c.Events(before, after, false); len(e) != 1 || e[0].State != stateApplied || e[0].For != "op.v2" {
		t.Errorf("upgraded: %v", e)
	}
	if e := c.Events(after, after.copy(), false); e != nil {
		t.Errorf("unchanged: %v", e)
	}
	if e := c.Events(nil, after, true); len(e) != 1 || e[0].State != lifecycle.StateGone {
		t.Errorf("gone: %v", e)
	}
	if e := c.Events(nil, &corev1.Pod{}, false); e != nil {
		t.Errorf("another kind: %v", e)
	}
	read := &ClusterCatalog{Spec: ClusterCatalogSpec{Source: CatalogSource{Image: &ImageSource{Ref: "a@1"}}}}
	served := read.copy()
	served.Status.ResolvedSource = &CatalogSource{Image: &ImageSource{Ref: "a@1"}}
	meta.SetStatusCondition(&served.Status.Conditions, metav1.Condition{Type: conditionServing, Status: metav1.ConditionTrue})
	if e := c.Events(read, served, false); len(e) != 1 || e[0].State != lifecycle.StateReady {
		t.Errorf("served: %v", e)
	}
	moved := served.copy()
	moved.Spec.Source.Image.Ref = "a@2"
	if e := c.Events(served, moved, false); len(e) != 1 || e[0].State == lifecycle.StateReady {
		t.Errorf("what catalogd has not read yet: %v", e)
	}
}

// A container is of the one bundle that runs its image, and to ask again costs nothing.
func TestBundleOf(t *testing.T) {
	p := memcached(t)
	c := &Client{Package: p}
	for _, b := range p.Bundles {
		csv, err := b.CSV()
		if err != nil {
			t.Fatal(err)
		}
		own := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0]
		if got := c.BundleOf(&own); got != b.Name {
			t.Errorf("%s is of %q, not of %s", own.Image, got, b.Name)
		}
		if n := testing.AllocsPerRun(10, func() { c.BundleOf(&own) }); n > 0 {
			t.Errorf("%.0f allocations", n)
		}
	}
	if got := c.BundleOf(&corev1.Container{Image: "other"}); got != "" {
		t.Errorf("another image is of %q", got)
	}
	twice := &catalog.Package{Bundles: []*catalog.Bundle{p.Bundles[0], p.Bundles[1], p.Bundles[0]}}
	same := *p.Bundles[0]
	same.Name = "again"
	twice.Bundles[1] = &same
	for image, name := range bundlesByImage(twice) {
		if name != "" {
			t.Errorf("%s of two bundles is of %s", image, name)
		}
	}
}

// A request pins the bundle, with the rights to install it and to leave the one before, and a rollback says who answers for it.
func TestRequest(t *testing.T) {
	c := &Client{WithWatch: fake.NewClientBuilder().WithScheme(Scheme()).WithStatusSubresource(&ClusterExtension{}).Build(), Package: memcached(t)}
	p := lifecycle.Place{Package: "memcached-operator", Namespace: "operators", Catalog: "olmkit", Channel: "stable"}
	check := func(version, policy string) {
		t.Helper()
		var x ClusterExtension
		if err := c.Get(t.Context(), client.ObjectKey{Name: p.Package}, &x); err != nil {
			t.Fatal(err)
		}
		if f := x.Spec.Source.Catalog; f.Version != version || f.UpgradeConstraintPolicy != policy || !slices.Equal(f.Channels, []string{"stable"}) {
			t.Errorf("%+v, want version %s, %s", f, version, policy)
		}
	}
	if err := c.Prepare(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if err := c.Request(t.Context(), p, "memcached-operator.v0.5.0"); err != nil {
		t.Fatal(err)
	}
	check("0.5.0", catalogProvided)
	if _, err := c.Rollback(t.Context(), p, "memcached-operator.v0.4.0", time.Minute); err != nil {
		t.Fatal(err)
	}
	check("0.4.0", selfCertified)
	if err := c.Request(t.Context(), p, "memcached-operator.v9"); err == nil || !strings.Contains(err.Error(), "no bundle memcached-operator.v9") {
		t.Errorf("an unknown bundle: %v", err)
	}
}

// pushes keeps what is pushed.
type pushes struct {
	Host
	images map[string]v1.Image
}

func (p *pushes) PushImage(_ context.Context, repository string, image v1.Image) (string, error) {
	digest, err := image.Digest()
	ref := "registry:5000/" + repository + "@" + digest.String()
	if p.images == nil {
		p.images = map[string]v1.Image{}
	}
	p.images[ref] = image
	return ref, err
}

func TestStore(t *testing.T) {
	p := memcached(t)
	fbc, err := catalog.Whole(p)
	if err != nil {
		t.Fatal(err)
	}
	host := &pushes{}
	store := &Store{Host: host}
	var at cluster.CatalogAddress
	for range 2 {
		if at, err = store.Catalog(t.Context(), "olmkit", fbc); err != nil {
			t.Fatal(err)
		}
		if len(host.images) != len(p.Bundles)+1 {
			t.Errorf("%d images of %d bundles and a catalog", len(host.images), len(p.Bundles))
		}
	}
	if n := testing.AllocsPerRun(3, func() { _, err = store.Catalog(t.Context(), "olmkit", fbc) }); n > 100 || err != nil {
		t.Errorf("to publish the same again takes %.0f allocations (%v)", n, err)
	}
	if again, err := store.Catalog(t.Context(), "olmkit", append(fbc, '\n')); err != nil || host.images[again.Image] == nil {
		t.Errorf("another catalog is at %s (%v)", again.Image, err)
	}
	if host.images[at.Image] == nil {
		t.Errorf("the catalog is said to be at %s", at.Image)
	}
	rewritten, err := withImages(fbc, map[string]string{"memcached-operator.v0.5.0": "registry:5000/x@sha256:1"})
	if err != nil {
		t.Fatal(err)
	}
	got := catalog.Parse("rewritten", rewritten)
	if err := got.Err(); err != nil {
		t.Fatal(err)
	}
	b := got.Packages[0].Bundle("memcached-operator.v0.5.0")
	if b.Image != "registry:5000/x@sha256:1" || b.Has(catalog.PropertyObject) || !b.Has(catalog.PropertyPackage) {
		t.Errorf("image %s, properties %v", b.Image, b.Properties)
	}
	if other := got.Packages[0].Bundle("memcached-operator.v0.4.0"); !other.Has(catalog.PropertyObject) {
		t.Error("a bundle without an image lost its manifests")
	}
}

// release is one with a Deployment.
func release(name, deployment string) *lifecycle.Release {
	csv := &v1alpha1.ClusterServiceVersion{}
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []v1alpha1.StrategyDeploymentSpec{{Name: deployment}}
	return &lifecycle.Release{Name: name, CSV: csv}
}

// TestFaults: a fault of OLM v1's kills the pods of one program; faults that need what OLM v1 has not are left out.
func TestFaults(t *testing.T) {
	pod := func(program string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: program, Labels: map[string]string{"app.kubernetes.io/name": program}}}
	}
	for _, f := range (&Client{}).Faults() {
		c := &Client{WithWatch: fake.NewClientBuilder().WithObjects(pod("catalogd"), pod("operator-controller")).Build()}
		if _, err := c.Inject(t.Context(), f.Name, lifecycle.Hop{}); err != nil {
			t.Error(err)
		}
		var left corev1.PodList
		if err := c.List(t.Context(), &left); err != nil || len(left.Items) != 1 || "kill-"+left.Items[0].Name == f.Name {
			t.Errorf("%s leaves %d pods, %v", f.Name, len(left.Items), err)
		}
		if _, err := c.Inject(t.Context(), f.Name, lifecycle.Hop{}); err == nil {
			t.Errorf("%s is made without a pod", f.Name)
		}
	}
	for name, want := range map[string]string{"two-hops": "", "kill-operator": "applied", "registry-slow": "applied"} {
		if got := (&Client{}).FaultPhase(name, "installing"); got != want {
			t.Errorf("%s strikes at %q, not at %q", name, got, want)
		}
	}
}
