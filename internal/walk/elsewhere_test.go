package walk

import (
	"context"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/observe"
)

// TestElsewhere: what was made for an object outside of what Kubernetes deletes with it is found by the log, as far as it says that it is there for the
// object; what goes with the object, the operator deletes or made for others does not count. What stays is deleted.
func TestElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		object := func(kind, namespace, name, says string, owners ...metav1.OwnerReference) *unstructured.Unstructured {
			o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}, "says": says}}
			o.SetNamespace(namespace)
			o.SetCreationTimestamp(metav1.Now())
			o.SetOwnerReferences(owners)
			return o
		}
		owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Pot", Name: "teapot-new2", UID: "1"}
		w := teaWalk(object("ClusterRole", "", "view-teapot-new2", ""), object("ConfigMap", "registry", "hash", "uid-of-the-copy"), object("ConfigMap", "registry", "all", "others"),
			object("ConfigMap", "n", "teapot-new2", ""), object("Secret", "n", "teapot-new2-login", "of the teapot"), object("Vault", "n", "teapot-new2-vault", ""), object("Vault", "n", "owned", "teapot-new2", owner), object("Namespace", "", "tenant-teapot-new2", ""),
			object("ConfigMap", "n", "pair-teapot-new2", "", metav1.OwnerReference{APIVersion: "v1", Kind: "Cup", Name: "cups", UID: "2"}))
		w.Objects = append(w.Objects, &observe.Object{Name: "cups", UID: "2"})
		indexed := object("ConfigMap", "n", "index", "teapot, teapot-new2")
		if err := w.Dynamic.(*dynamicfake.FakeDynamicClient).Tracker().Add(indexed); err != nil {
			t.Fatal(err)
		}
		users := object("ConfigMap", "n", "cups-users", "teapot, teapot-new2", metav1.OwnerReference{APIVersion: "v1", Kind: "Cup", Name: "cups", UID: "2"})
		users.SetCreationTimestamp(metav1.NewTime(time.Now().Add(-time.Hour)))
		if err := w.Dynamic.(*dynamicfake.FakeDynamicClient).Tracker().Add(users); err != nil {
			t.Fatal(err)
		}
		changed := asked("update", 200, auditv1.ObjectReference{APIVersion: "v1", Resource: "configmaps", Namespace: "n", Name: "index"})
		status := asked("update", 200, auditv1.ObjectReference{APIVersion: "v1", Resource: "vaults", Namespace: "n", Name: "teapot-new2-vault", Subresource: "status"})
		log := []auditv1.Event{changed, changed, asked("patch", 200, auditv1.ObjectReference{APIVersion: "v1", Resource: "configmaps", Namespace: "n", Name: "cups-users"}), status, asked("update", 200, auditv1.ObjectReference{APIVersion: "v1", Resource: "pots", Namespace: "n", Name: "teapot-new2"})}
		for _, m := range []auditv1.ObjectReference{
			{Resource: "clusterroles", Name: "view-teapot-new2"}, {Resource: "configmaps", Namespace: "registry", Name: "hash"}, {Resource: "configmaps", Namespace: "registry", Name: "all"},
			{Resource: "configmaps", Namespace: "n", Name: "teapot-new2"}, {Resource: "secrets", Namespace: "n", Name: "teapot-new2-login"}, {Resource: "vaults", Namespace: "n", Name: "teapot-new2-vault"}, {Resource: "vaults", Namespace: "n", Name: "owned"},
			{Resource: "namespaces", Name: "tenant-teapot-new2"}, {Resource: "clusterroles", Name: "teapot-new2-deleted-before"}, {Resource: "configmaps", Namespace: "n", Name: "pair-teapot-new2"},
		} {
			m.APIVersion = "v1"
			log = append(log, asked("create", 201, m))
		}
		pot := &newObject{Object: &observe.Object{CRD: "pots", Resource: schema.GroupResource{Resource: "pots"}, Namespace: "n", Name: "teapot-new2", UID: "uid-of-the-copy", Since: time.Now()}, like: &observe.Object{Name: "teapot"}}
		pot.remember(map[string]observe.Operand{"": {Kind: "ConfigMap", Namespace: "n", Name: "teapot-new2"}})
		began := time.Now()
		for name, provider := range map[string]cluster.Cluster{"no audit log": nil, "a cluster that stays": audited{Cluster: fakeCluster{world: &world{}}, log: log}} {
			w.Provider = provider
			if err := w.findElsewhere(t.Context(), w.release, []*newObject{pot}, began); err != nil {
				t.Fatal(err)
			}
			if found, err := w.seeElsewhere(t.Context(), pot, time.Now(), judge.New{}); found != nil || err != nil {
				t.Errorf("%s: %+v, %v", name, found, err)
			}
		}
		w.Provider = audited{Cluster: fakeCluster{world: &world{takes: func(context.Context) error { return nil }}}, log: log}
		if err := w.findElsewhere(t.Context(), w.release, []*newObject{pot}, began); err != nil {
			t.Fatal(err)
		}
		vaults := w.Dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "vaults"}).Namespace("n")
		go func() { // as a controller does once it knows of the deletion
			time.Sleep(judge.EffectLimit / 2)
			_ = vaults.Delete(t.Context(), "teapot-new2-vault", metav1.DeleteOptions{})
		}()
		found, err := w.seeElsewhere(t.Context(), pot, time.Now(), judge.New{Elsewhere: []judge.Distant{{Kind: "Vault", Gone: true}}})
		if err != nil {
			t.Fatal(err)
		}
		want := []judge.Distant{{Kind: "ClusterRole", Name: "view-teapot"}, {Kind: "ConfigMap", Name: "n/cups-users", Shared: true, Beside: true}, {Kind: "ConfigMap", Name: "n/index", Shared: true, Beside: true}, {Kind: "ConfigMap", Name: "n/pair-teapot"}, {Kind: "ConfigMap", Name: "registry/hash"}, {Kind: "Namespace", Name: "tenant-teapot"}, {Kind: "Secret", Name: "n/teapot-login"}, {Kind: "Vault", Name: "n/teapot-vault", Gone: true}}
		if !slices.Equal(found, want) {
			t.Errorf("%+v, want %+v", found, want)
		}
		roles := w.Dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "clusterroles"})
		if _, err := roles.Get(t.Context(), "view-teapot-new2", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("what stayed is still there: %v", err)
		}
		if now, err := w.distantNow(t.Context(), observe.Creation{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, ObjectKey: client.ObjectKeyFromObject(indexed)}); now == nil {
			t.Errorf("what others share is gone: %v", err)
		}
	})
}

// TestTakeElsewhere: what was made elsewhere for a copy is deleted, and made again or not; what is not is put back, and what is shared or belongs to somebody is left alone.
func TestTakeElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &newObject{Object: &observe.Object{CRD: "pots", Kind: "Pot", Resource: schema.GroupResource{Resource: "pots"}, Version: "v1", Namespace: "n", Name: "teapot-new2"}, like: &observe.Object{Name: "teapot"}, tried: true}
		var there []runtime.Object
		for _, d := range []struct {
			kind, resource, name string
			shared               bool
			owners               []metav1.OwnerReference
		}{
			{"Secret", "secrets", "teapot-new2-kept", false, nil},
			{"Secret", "secrets", "teapot-new2-lost", false, nil},
			{"ConfigMap", "configmaps", "all", true, nil},
			{"Service", "services", "teapot-new2", false, []metav1.OwnerReference{{APIVersion: "v1", Kind: "Cup", Name: "c", UID: "2"}}},
			{"Job", "jobs", "teapot-new2", false, nil},
		} {
			made := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": d.kind, "says": d.name}}
			made.SetName(d.name)
			made.SetNamespace("far")
			made.SetUID("first")
			made.SetOwnerReferences(d.owners)
			there = append(there, made)
			at := schema.GroupVersionResource{Version: "v1", Resource: d.resource}
			o.distant = append(o.distant, distant{observe.Creation{GroupVersionResource: at, ObjectKey: client.ObjectKeyFromObject(made)}, made, d.shared, false})
		}
		w := teaWalk(there...)
		fake, deleted := w.Dynamic.(*dynamicfake.FakeDynamicClient), []string{}
		fake.PrependReactor("delete", "*", func(a k8stesting.Action) (bool, runtime.Object, error) {
			name := a.(k8stesting.DeleteAction).GetName()
			deleted = append(deleted, name)
			if name == "teapot-new2-kept" {
				again := there[0].DeepCopyObject().(*unstructured.Unstructured)
				again.SetUID(types.UID("again" + string(again.GetUID())))
				return true, nil, fake.Tracker().Update(a.GetResource(), again, "far")
			}
			return false, nil, nil
		})
		created := map[string]judge.New{"pots": {Remakes: map[string]bool{}}}
		before := map[string]judge.New{"pots": {Remakes: map[string]bool{"Secret far/…-kept": true, "Secret far/…-lost": true}}}
		if err := w.takeElsewhere(t.Context(), []*newObject{o}, before, created); err != nil {
			t.Fatal(err)
		}
		if want := map[string]bool{"Secret far/…-kept": true, "Secret far/…-lost": false}; !maps.Equal(created["pots"].Remakes, want) {
			t.Errorf("%v, want %v", created["pots"].Remakes, want)
		}
		if want := []string{"teapot-new2-kept", "teapot-new2-lost"}; !slices.Equal(deleted, want) {
			t.Errorf("deleted: %q, want %q", deleted, want)
		}
		for i, uid := range []types.UID{"againfirst", ""} {
			now, err := w.distantNow(t.Context(), o.distant[i].Creation)
			if err != nil || now == nil || now.GetUID() != uid || o.distant[i].made.GetUID() != uid || now.Object["says"] == nil {
				t.Errorf("%v, %v; noted %s", now, err, o.distant[i].made.GetUID())
			}
		}
	})
}
