package installation

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv1"
)

const memcached = "memcached-operator"

// extension is a ClusterExtension to the memcached operator with a version installed, "" for none.
func extension(namespace, version string, labels map[string]string) *olmv1.ClusterExtension {
	e := &olmv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: memcached, Labels: labels}}
	e.Spec.Namespace = namespace
	e.Status.Conditions = []metav1.Condition{{Type: "Progressing", Status: metav1.ConditionTrue, Reason: "Succeeded"}}
	if version != "" {
		e.Status.Install = &olmv1.InstallStatus{Bundle: olmv1.BundleMetadata{Name: memcached + ".v" + version, Version: version}}
	}
	return e
}

// clusterV1 is a cluster with OLM v1, as far as it is asked for, and objects.
func clusterV1(objects ...client.Object) *olmv1.Client {
	olm := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "clusterextensions.olm.operatorframework.io"}}
	return &olmv1.Client{WithWatch: fake.NewClientBuilder().WithScheme(olmv1.Scheme()).WithObjects(append(objects, olm)...).Build()}
}

// TestRefusedV1: nothing is made on a cluster where a bundle can't be run, and the error says what to do.
func TestRefusedV1(t *testing.T) {
	ours := map[string]string{cluster.RunLabel: memcached}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "memcacheds.cache.example.com", OwnerReferences: []metav1.OwnerReference{{UID: "another"}}}}
	theirs := &olmv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: "olmkit-run-" + memcached}}
	none := &olmv1.Client{WithWatch: fake.NewClientBuilder().WithScheme(olmv1.Scheme()).Build()}
	for name, test := range map[string]struct {
		namespace string
		c         *olmv1.Client
		want, fix string
	}{
		"no OLM v1":                   {"", none, "OLM v1 is not on the cluster", "olmkit olm install --olm v1"},
		"somebody installed it":       {"", clusterV1(extension("n", "", nil)), "ClusterExtension/memcached-operator, which 'olmkit bundle run' did not make", "another cluster"},
		"it runs in another one":      {"m", clusterV1(extension("n", "", ours)), "runs in namespace n", "leave --namespace m out"},
		"a higher version is there":   {"", clusterV1(extension("n", "0.5.0", ours)), "memcached-operator.v0.5.0 is installed, which is 0.5.0", "olmkit cleanup memcached-operator"},
		"another made its kind":       {"", clusterV1(crd), "CustomResourceDefinition/memcacheds.cache.example.com is there already", "--olm v0"},
		"its catalog is another's":    {"", clusterV1(theirs), "ClusterCatalog/olmkit-run-memcached-operator, which", "another name"},
		"no name of a namespace":      {"Not_A_Name", clusterV1(), `namespace "Not_A_Name"`, ""},
		"a version that can't be one": {"", clusterV1(extension("n", "x", ours)), "read the version of memcached-operator.vx", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := RunV1(t.Context(), test.c, offered(t), memcached, Options{Namespace: test.namespace})
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(hint.Of(err), test.fix) {
				t.Errorf("%v; fix: %s", err, hint.Of(err))
			}
			var namespaces corev1.NamespaceList
			if err := test.c.List(t.Context(), &namespaces); err != nil || len(namespaces.Items) > 0 {
				t.Errorf("%v: it made %v", err, namespaces.Items)
			}
		})
	}
}

// TestDependenciesV1: OLM v1 installs no dependencies, so that bundles of several packages are refused.
func TestDependenciesV1(t *testing.T) {
	two := offered(t)
	two.Packages = append(two.Packages, &catalog.Package{Name: "tea"})
	if _, err := RunV1(t.Context(), clusterV1(), two, memcached, Options{}); err == nil || !strings.Contains(hint.Of(err), "one bundle after the other") {
		t.Errorf("%v; fix: %s", err, hint.Of(err))
	}
}

// TestUnchangedV1: a bundle that is installed is left alone, unless its Deployment is not rolled out.
func TestUnchangedV1(t *testing.T) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: memcached + "-controller-manager"}}
	ours := extension("n", "0.4.0", map[string]string{cluster.RunLabel: memcached})
	if r, err := RunV1(t.Context(), clusterV1(ours.DeepCopyObject().(client.Object), d), offered(t), memcached, Options{}); err != nil || !r.Unchanged || r.Namespace != "n" || r.OLM != "v1" {
		t.Errorf("%v: %+v", err, r)
	}
	stop := errors.New("it is published")
	d = d.DeepCopy()
	d.Status.UnavailableReplicas, d.ResourceVersion = 1, ""
	again := Options{Publish: func(context.Context, string, string, map[string]string, []byte) error { return stop }}
	if r, err := RunV1(t.Context(), clusterV1(ours, d), offered(t), memcached, again); !errors.Is(err, stop) || r.Unchanged {
		t.Errorf("what is not rolled out: %v: %+v", err, r)
	}
}

// TestRunV1: what is made is labelled, and what OLM v1 refuses for good ends the wait with its reason.
func TestRunV1(t *testing.T) {
	refused := extension(memcached, "", map[string]string{cluster.RunLabel: memcached})
	refused.Status.Conditions = []metav1.Condition{{Type: "Progressing", Status: metav1.ConditionFalse, Reason: "Blocked", Message: "no right"}}
	catalogs := &olmv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: "olmkit-run-" + memcached, Labels: refused.Labels}}
	catalogs.Status.Conditions = []metav1.Condition{{Type: "Serving", Status: metav1.ConditionTrue}}
	image := &olmv1.ImageSource{Ref: "example.com/c@sha256:1"}
	catalogs.Spec.Source.Image, catalogs.Status.ResolvedSource = image, &olmv1.CatalogSource{Image: image}
	c := clusterV1(refused, catalogs)
	var at, fbc string
	r, err := RunV1(t.Context(), c, offered(t), memcached, Options{Timeout: time.Minute, Publish: func(_ context.Context, namespace, name string, _ map[string]string, content []byte) error {
		at, fbc = namespace+"/"+name, string(content)
		return nil
	}})
	if err == nil || !strings.Contains(err.Error(), "Blocked: no right") || !strings.Contains(hint.Of(err), "upgrade diagnose -p memcached-operator") || r.Namespace != memcached {
		t.Errorf("%v: %+v", err, r)
	}
	if at != "/olmkit-run-memcached-operator" || !strings.Contains(fbc, `"skipRange":"<0.4.0"`) {
		t.Errorf("published at %s: %.300s", at, fbc)
	}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: memcached}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: memcached, Name: "memcached-operator-installer"}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "memcached-operator-installer"}},
		&olmv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: memcached}},
	} {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil || o.GetLabels()[cluster.RunLabel] != memcached {
			t.Errorf("%T: %v, labels %v", o, err, o.GetLabels())
		}
	}
	e := &olmv1.ClusterExtension{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: memcached}, e); err != nil || e.Spec.Source.Catalog.Version != "0.4.0" {
		t.Errorf("%v: %+v", err, e.Spec)
	}
}

// TestStalled: a refusal that OLM v1 repeats counts after a while, and one that it does not try again at once.
func TestStalled(t *testing.T) {
	for name, test := range map[string]struct {
		stall *lifecycle.Stall
		since time.Duration
		want  bool
	}{
		"none":         {nil, 0, false},
		"for good":     {&lifecycle.Stall{}, 0, true},
		"a moment ago": {&lifecycle.Stall{Grace: time.Second}, time.Second, false},
		"for a while":  {&lifecycle.Stall{Grace: time.Second}, unresolvedLimit + time.Second, true},
	} {
		if got := stalled(test.stall, time.Now().Add(-test.since)); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestObjectsOfDroppedDefinitions: a bundle without a CRD of the one before is refused while that has objects, which OLM v1 would
// delete. Another's CRDs, and those that the bundle has, are of no concern.
func TestObjectsOfDroppedDefinitions(t *testing.T) {
	object := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mine"}} // of a kind that the client knows
	definition := func(name, owner string) client.Object {
		d := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{{UID: types.UID(owner)}}}}
		d.Spec.Group, d.Spec.Names = "apps", apiextensionsv1.CustomResourceDefinitionNames{Kind: "Deployment", ListKind: "DeploymentList"}
		d.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true}}
		return d
	}
	before := extension("n", "0.3.1", map[string]string{cluster.RunLabel: memcached})
	before.UID = "1"
	published := errors.New("it is published")
	for name, test := range map[string]struct {
		there []client.Object
		want  string
	}{
		"objects":       {[]client.Object{definition("cups.example.com", "1"), object}, "would delete that with its 1 objects"},
		"no objects":    {[]client.Object{definition("cups.example.com", "1")}, published.Error()},
		"another's":     {[]client.Object{definition("cups.example.com", "2"), object}, published.Error()},
		"it is shipped": {[]client.Object{definition("memcacheds.cache.example.com", "1"), object}, published.Error()},
	} {
		c := clusterV1(append(test.there, before.DeepCopyObject().(client.Object))...)
		_, err := RunV1(t.Context(), c, offered(t), memcached, Options{Publish: func(context.Context, string, string, map[string]string, []byte) error { return published }})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
