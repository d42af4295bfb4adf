package walk

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// TestPartings: what is made for an object that is deleted, but for what it had and what is others'.
func TestPartings(t *testing.T) {
	o := &newObject{Object: &observe.Object{Name: "a-new2"}, had: map[string]observe.Operand{"s": {Kind: "Service", Name: "a-new2"}, "c": {Kind: "ConfigMap", Name: "a-new2-settings"}}}
	var made []observe.Creation
	for _, m := range []struct{ group, resource, name string }{
		{"", "services", "a-new2"}, {"", "configmaps", "a-new2-settings"}, {"", "pods", "a-new2-xyz"}, {"", "secrets", "a-backup"},
		{"batch", "jobs", "a-new2-backup"}, {"", "services", "a-new2-archive"}, {"batch", "jobs", "clean-a-new2"},
	} {
		made = append(made, observe.Creation{GroupVersionResource: schema.GroupVersionResource{Group: m.group, Version: "v1", Resource: m.resource}, ObjectKey: client.ObjectKey{Name: m.name}})
	}
	if got, want := o.partings(made), []string{"jobs.batch", "services"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestNotePartings: what is made is known of copies that were ready and are gone, on a cluster that has an audit log.
func TestNotePartings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &walk{memory: newMemory(), Cluster: &observe.Cluster{Watcher: &observe.Watcher{}, Place: lifecycle.Place{Namespace: "n"}}}
		w.release = &lifecycle.Release{Name: "tea.v2", CSV: &v1alpha1.ClusterServiceVersion{}}
		w.release.CSV.Spec.InstallStrategy.StrategySpec.ClusterPermissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "tea"}}
		began := time.Now()
		e := auditv1.Event{RequestReceivedTimestamp: metav1.NewMicroTime(began), Verb: "create", ResponseStatus: &metav1.Status{Code: 201}}
		e.User.Username = "system:serviceaccount:n:tea"
		e.ObjectRef = &auditv1.ObjectReference{Resource: "secrets", APIVersion: "v1", Name: "a-new2-backup"}
		pot := &newObject{Object: &observe.Object{CRD: "pots", Resource: schema.GroupResource{Resource: "pots"}, Name: "a-new2"}, had: map[string]observe.Operand{}}
		cup := &newObject{Object: &observe.Object{CRD: "cups", Name: "a-new2"}} // was not ready
		created := map[string]judge.New{"pots": {}, "cups": {}}
		note := func() {
			t.Helper()
			if err := w.notePartings(t.Context(), []*newObject{pot, cup}, began, created); err != nil {
				t.Fatal(err)
			}
		}
		if note(); created["pots"].Parted {
			t.Error("it is known without an audit log")
		}
		w.Provider = audited{log: []auditv1.Event{e}}
		if note(); created["pots"].Parted {
			t.Error("it is known though the log is late")
		}
		gone := auditv1.Event{RequestReceivedTimestamp: metav1.NewMicroTime(began), Verb: "delete", ResponseStatus: &metav1.Status{Code: 404}, ObjectRef: &auditv1.ObjectReference{Resource: "pots", Name: "a-new2"}}
		w.Provider = audited{log: []auditv1.Event{e, gone}}
		if note(); !created["pots"].Parted || !slices.Equal(created["pots"].Partings, []string{"secrets"}) || created["cups"].Parted {
			t.Errorf("%+v", created)
		}
	})
}
