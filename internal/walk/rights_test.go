package walk

import (
	"slices"
	"testing"
	"time"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/internal/rbac"
	"github.com/olmkit/olmkit/internal/report"
)

// TestAccessEndsWithTheNewest: hops of a plan lead from every older release to the newest.
func TestAccessEndsWithTheNewest(t *testing.T) {
	var releases []*lifecycle.Release
	for _, v := range []string{"1.0.0", "10.0.0", "2.0.0"} {
		csv := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Name: "thing.v" + v}}
		csv.Spec.Version.Version = semver.MustParse(v)
		csv.Spec.InstallStrategy.StrategySpec.Permissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "manager"}}
		d := v1alpha1.StrategyDeploymentSpec{Name: "manager"}
		d.Spec.Template.Spec = corev1.PodSpec{ServiceAccountName: "manager", Containers: []corev1.Container{{Image: "manager:" + v}}}
		csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []v1alpha1.StrategyDeploymentSpec{d}
		releases = append(releases, &lifecycle.Release{Name: csv.Name, CSV: csv})
	}
	w := &walk{
		Cluster: &observe.Cluster{Watcher: observe.NewWatcher(nil, nil, "operators")}, pkg: &catalog.Package{Name: "thing"}, memory: newMemory(),
		installed: installed{began: map[string]time.Time{}},
	}
	for _, r := range releases {
		w.noteCalls(nil, r)
	}
	newest, _ := rbac.Of(&report.Report{Access: w.access()})
	if newest != "thing.v10.0.0" {
		t.Errorf("the newest is %q", newest)
	}
}

// TestAccessOfReleases: requests count for the release that was there, permissions reach the operator's namespace alone unless it
// serves all, and of a simulated operator nothing is told.
func TestAccessOfReleases(t *testing.T) {
	began := time.Now().Add(-time.Minute)
	releaseOf := func(name string) *lifecycle.Release {
		csv := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Name: name}}
		csv.Spec.InstallStrategy.StrategySpec.Permissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "manager", Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}, {APIGroups: []string{"example.org"}, Resources: []string{"absent"}, Verbs: []string{"get"}},
			{APIGroups: []string{"example.org"}, Resources: []string{"things/status"}, Verbs: []string{"patch"}},
		}}}
		d := v1alpha1.StrategyDeploymentSpec{Name: "manager"}
		d.Spec.Template.Spec = corev1.PodSpec{ServiceAccountName: "manager", Containers: []corev1.Container{{Image: "example.com/" + name}}}
		csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []v1alpha1.StrategyDeploymentSpec{d}
		return &lifecycle.Release{Name: name, CSV: csv}
	}
	get := func(namespace string) auditv1.Event {
		e := auditv1.Event{Verb: "get", ObjectRef: &auditv1.ObjectReference{Resource: "secrets", Namespace: namespace, Name: "x"}, ResponseStatus: &metav1.Status{Code: 200}, RequestReceivedTimestamp: metav1.NewMicroTime(began.Add(time.Second))}
		e.User.Username = "system:serviceaccount:operators:manager"
		return e
	}
	tests := map[string]struct {
		mode      lifecycle.Mode
		simulated []string
		log       []auditv1.Event
		used      []string // releases that used the right
		measured  int
	}{
		"in the operator's namespace": {mode: lifecycle.OwnNamespace, log: []auditv1.Event{get("operators")}, used: []string{"v1"}, measured: 2},
		"elsewhere":                   {mode: lifecycle.OwnNamespace, log: []auditv1.Event{get("other")}, measured: 2},
		"elsewhere, and serving all":  {mode: lifecycle.AllNamespaces, log: []auditv1.Event{get("other")}, used: []string{"v1"}, measured: 2},
		"simulated":                   {mode: lifecycle.OwnNamespace, simulated: []string{"example.com/v2"}, log: []auditv1.Event{get("operators")}, used: []string{"v1"}, measured: 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, meta.RESTScopeNamespace)
			w := &walk{
				Cluster: &observe.Cluster{
					Client: fake.NewClientBuilder().WithRESTMapper(mapper).Build(), Simulated: test.simulated,
					Place: lifecycle.Place{Namespace: "operators", Mode: test.mode}, Watcher: observe.NewWatcher(nil, nil, "operators"),
				},
				pkg: &catalog.Package{Name: "thing"}, memory: newMemory(),
				installed: installed{began: map[string]time.Time{"v1": began, "v2": began.Add(time.Hour)}},
			}
			w.noteCalls(test.log, releaseOf("v1"))
			w.noteCalls(test.log, releaseOf("v2"))
			for _, r := range w.measured { // which was there
				r.CRDs = []*apiextensionsv1.CustomResourceDefinition{{ObjectMeta: metav1.ObjectMeta{Name: "things.example.org"}}}
				w.releases = map[string]*lifecycle.Release{r.Name: r}
			}
			list := w.access()
			var used []string
			for _, a := range list {
				if len(a.Used) > 0 {
					used = append(used, a.Release)
				}
				if !slices.ContainsFunc(a.Unused, func(r report.Right) bool { return r.Resource == "things/status" }) {
					t.Errorf("a kind of the package's own is not told: %+v", a)
				}
				if len(a.Kept) != 1 || a.Kept[0].Resource != "absent" || a.Package != "thing" || a.Account != "manager" {
					t.Errorf("got %+v", a)
				}
			}
			if !slices.Equal(used, test.used) || len(list) != test.measured {
				t.Errorf("%d were measured, and %v used it", len(list), used)
			}
		})
	}
}
