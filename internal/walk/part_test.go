package walk

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// teaWalk is a walk on a cluster that has objects, with the release tea.v2, which runs as a ServiceAccount called tea.
func teaWalk(objects ...runtime.Object) *walk {
	w := &walk{memory: newMemory(), Cluster: &observe.Cluster{
		Watcher: &observe.Watcher{}, Place: lifecycle.Place{Namespace: "n"}, Dynamic: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), objects...),
	}}
	w.release = &lifecycle.Release{Name: "tea.v2", CSV: &v1alpha1.ClusterServiceVersion{}}
	w.release.CSV.Spec.InstallStrategy.StrategySpec.ClusterPermissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "tea"}}
	return w
}

// asked is an event of the audit log of teaWalk's operator.
func asked(verb string, code int32, of auditv1.ObjectReference) auditv1.Event {
	e := auditv1.Event{RequestReceivedTimestamp: metav1.NewMicroTime(time.Now()), Verb: verb, ResponseStatus: &metav1.Status{Code: code}, ObjectRef: &of}
	e.User.Username = "system:serviceaccount:n:tea"
	return e
}

// TestNotePartings: what is made for an object that is deleted and outlasts it is known of copies that were ready and are gone, once the audit log says so;
// what there was, what goes with the object and what is others' does not count.
func TestNotePartings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		object := func(apiVersion, kind, name string, owned bool) *unstructured.Unstructured {
			o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"namespace": "n", "name": name}}}
			if owned {
				o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Pot", Name: "a-new2", UID: "1"}})
			}
			return o
		}
		w := teaWalk(object("v1", "Secret", "a-new2-backup", false), object("v1", "ConfigMap", "a-new2-settings", true), object("v1", "Service", "a-new2", false))
		had := map[string]observe.Operand{"s": {Kind: "Service", Name: "a-new2"}}
		pot := &newObject{Object: &observe.Object{CRD: "pots", Resource: schema.GroupResource{Resource: "pots"}, Name: "a-new2"}, had: had, parts: true}
		cup := &newObject{Object: &observe.Object{CRD: "cups", Resource: schema.GroupResource{Resource: "cups"}, Name: "a-new2"}} // was not ready
		began, created := time.Now(), map[string]judge.New{"pots": {}, "cups": {}}
		note := func() judge.New {
			t.Helper()
			if err := w.notePartings(t.Context(), []*newObject{pot, cup}, began, nil, created); err != nil {
				t.Fatal(err)
			}
			if created["cups"].Parted {
				t.Error("it is known of what was not ready")
			}
			return created["pots"]
		}
		if note().Parted {
			t.Error("it is known without an audit log")
		}
		var log []auditv1.Event
		for _, m := range []struct{ group, resource, name string }{
			{"", "secrets", "a-new2-backup"}, {"", "configmaps", "a-new2-settings"}, {"", "services", "a-new2"}, {"batch", "jobs", "clean-a-new2"},
			{"", "pods", "a-new2-xyz"}, {"", "serviceaccounts", "tea"}, {"apps", "deployments", ""},
		} {
			log = append(log, asked("create", 201, auditv1.ObjectReference{APIGroup: m.group, APIVersion: "v1", Resource: m.resource, Namespace: "n", Name: m.name}))
		}
		w.Provider = audited{log: log}
		if note().Parted {
			t.Error("it is known though the log is late")
		}
		w.Provider = audited{log: append(log, asked("delete", 404, auditv1.ObjectReference{Resource: "pots", Name: "a-new2"}))}
		is := note()
		if want := []string{"jobs.batch", "secrets"}; !is.Parted || !slices.Equal(is.Lasting, want) {
			t.Errorf("%+v, want %v", is, want)
		}
		if !slices.Contains(is.Partings, "deployments.apps") || slices.Contains(is.Lasting, "deployments.apps") {
			t.Errorf("what got its name from the API server: %+v", is)
		}
	})
}

// TestUnsavedIsAwaited: what was made under the release before is waited for.
func TestUnsavedIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := teaWalk()
		w.Provider = audited{log: []auditv1.Event{asked("delete", 404, auditv1.ObjectReference{Resource: "pots", Name: "a-new2"})}}
		pot := &newObject{Object: &observe.Object{CRD: "pots", Resource: schema.GroupResource{Resource: "pots"}, Name: "a-new2"}, parts: true}
		began := time.Now()
		if err := w.notePartings(t.Context(), []*newObject{pot}, began, map[string]judge.New{"pots": {Lasting: []string{"secrets"}}}, map[string]judge.New{}); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited < judge.EffectLimit {
			t.Errorf("it was waited for %s", waited)
		}
	})
}
