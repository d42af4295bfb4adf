package installation

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/lib/version"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
)

// offered is a catalog with the bundle 0.4.0 of the memcached operator.
func offered(t *testing.T) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Load(t.Context(), nil, "../../bundle/memcached-operator/0.4.0")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func subscription(namespace, name, installed string, labels map[string]string) *v1alpha1.Subscription {
	s := &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
	s.Spec = &v1alpha1.SubscriptionSpec{Package: name}
	s.Status.InstalledCSV = installed
	return s
}

func csv(namespace, name, release string) *v1alpha1.ClusterServiceVersion {
	v := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	v.Spec.Version = version.OperatorVersion{Version: semver.MustParse(release)}
	v.Status.Phase = v1alpha1.CSVPhaseSucceeded
	return v
}

// TestRefused: nothing is made on a cluster where a bundle can't be run, and the error says what to do.
func TestRefused(t *testing.T) {
	const pkg = "memcached-operator"
	ours := map[string]string{cluster.RunLabel: pkg}
	olm := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "olm-operator"}}
	olm.Spec.Template.Spec.Containers = []corev1.Container{{Image: olmv0.Image}}
	for name, test := range map[string]struct {
		namespace string
		there     []client.Object
		want, fix string
	}{
		"no OLM":                      {"", nil, "OLM is not on the cluster", "olmkit olm install"},
		"somebody installed it":       {"", []client.Object{olm, subscription("n", pkg, "", nil)}, "Subscription/n/memcached-operator, which 'olmkit bundle run' did not make", "another cluster"},
		"the namespace is in use":     {"n", []client.Object{olm, subscription("n", "tea", "", nil)}, "namespace n has Subscription/n/tea already", "choose another --namespace"},
		"it runs in another one":      {"m", []client.Object{olm, subscription("n", pkg, "", ours)}, "runs in namespace n", "leave --namespace m out"},
		"a higher version is there":   {"", []client.Object{olm, subscription("n", pkg, "x", ours), csv("n", "x", "0.5.0")}, "x is installed, which is 0.5.0", "olmkit cleanup memcached-operator"},
		"the same version, otherwise": {"", []client.Object{olm, subscription("n", pkg, "x", ours), csv("n", "x", "0.4.0")}, "x is installed, which is 0.4.0", "a higher version"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &olmv0.Client{WithWatch: fake.NewClientBuilder().WithScheme(olmv0.Scheme()).WithObjects(test.there...).Build()}
			_, err := Run(t.Context(), c, offered(t), pkg, Options{Namespace: test.namespace})
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(hint.Of(err), test.fix) {
				t.Errorf("%v; fix: %s", err, hint.Of(err))
			}
			var namespaces corev1.NamespaceList
			if err := c.List(t.Context(), &namespaces); err != nil || len(namespaces.Items) > 0 {
				t.Errorf("%v: it made %v", err, namespaces.Items)
			}
		})
	}
}

// TestUnchanged: a bundle that is installed is left alone.
func TestUnchanged(t *testing.T) {
	const pkg, name = "memcached-operator", "memcached-operator.v0.4.0"
	olm := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "olm-operator"}}
	olm.Spec.Template.Spec.Containers = []corev1.Container{{Image: olmv0.Image}}
	c := &olmv0.Client{WithWatch: fake.NewClientBuilder().WithScheme(olmv0.Scheme()).WithObjects(olm,
		subscription("n", pkg, name, map[string]string{cluster.RunLabel: pkg}), csv("n", name, "0.4.0")).Build()}
	r, err := Run(t.Context(), c, offered(t), pkg, Options{})
	if err != nil || !r.Unchanged || r.Namespace != "n" {
		t.Errorf("%v: %+v", err, r)
	}
}

// TestRun: what is made is labelled, and an InstallPlan that failed ends the wait with the reason.
func TestRun(t *testing.T) {
	const pkg, name = "memcached-operator", "memcached-operator.v0.4.0"
	olm := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "olm-operator"}}
	olm.Spec.Template.Spec.Containers = []corev1.Container{{Image: olmv0.Image}}
	plan := &v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: pkg, Name: "install-1"}}
	plan.Spec.ClusterServiceVersionNames = []string{name}
	plan.Status.Phase = v1alpha1.InstallPlanPhaseFailed
	plan.Status.Conditions = []v1alpha1.InstallPlanCondition{{Status: corev1.ConditionFalse, Reason: "InstallComponentFailed", Message: "no right"}}
	pending := csv(pkg, name, "0.4.0") // OLM makes it before the plan's step that fails
	pending.Status.Phase = v1alpha1.CSVPhasePending
	source := &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: pkg, Name: olmv0.RunCatalog}}
	c := &olmv0.Client{WithWatch: fake.NewClientBuilder().WithScheme(olmv0.Scheme()).WithObjects(olm, plan, source, pending).Build()}
	var fbc string
	r, err := Run(t.Context(), c, offered(t), pkg, Options{Timeout: time.Minute, Publish: func(_ context.Context, _, _ string, labels map[string]string, content []byte) error {
		fbc = labels[cluster.RunLabel] + " " + string(content)
		return nil
	}})
	if err == nil || !strings.Contains(err.Error(), "InstallComponentFailed: no right") || r.Namespace != pkg {
		t.Errorf("%v: %+v", err, r)
	}
	if !strings.HasPrefix(fbc, pkg+" ") || !strings.Contains(fbc, `"skipRange":"\u003c0.4.0"`) && !strings.Contains(fbc, `"skipRange":"<0.4.0"`) {
		t.Errorf("it serves %.300s", fbc)
	}
	var s v1alpha1.Subscription
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: pkg, Name: pkg}, &s); err != nil || s.Labels[cluster.RunLabel] != pkg || s.Spec.CatalogSource != olmv0.RunCatalog {
		t.Errorf("%v: %+v", err, s)
	}
}
