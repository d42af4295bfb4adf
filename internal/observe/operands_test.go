package observe

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// byName puts operands of one object under their names.
func byName(list ...Operand) map[string]Operand {
	all := map[string]Operand{}
	for _, o := range list {
		o.Namespace, o.Of = "n", "Pot/n/a"
		all[o.String()] = o
	}
	return all
}

// TestAddClaims finds the claims that pods mount, and no other.
func TestAddClaims(t *testing.T) {
	pod := Operand{Kind: "Pod", Name: "a-0", Claims: []string{KindClaim + "/n/data", KindClaim + "/n/absent"}}
	found := byName(pod)
	addClaims(found, map[string]Operand{
		KindClaim + "/n/data":  {Kind: KindClaim, Namespace: "n", Name: "data"},
		KindClaim + "/n/other": {Kind: KindClaim, Namespace: "n", Name: "other"},
	})
	if len(found) != 2 || found[KindClaim+"/n/data"].Of != "Pot/n/a" {
		t.Errorf("found %v", found)
	}
}

// TestBelonging follows owners, also over custom resources that are no operands, and in any order.
func TestBelonging(t *testing.T) {
	made := func(kind, name string, owners ...types.UID) owned {
		return owned{Operand: Operand{Kind: kind, Namespace: "n", Name: name, UID: types.UID(kind + name)}, owners: owners}
	}
	before := byName(
		Operand{Kind: "StatefulSet", Name: "left", UID: "StatefulSetleft", Direct: true}, // it has no owner any more
		Operand{Kind: "StatefulSet", Name: "anew", UID: "another", Direct: true},
		Operand{Kind: "StatefulSet", Name: "gone", UID: "StatefulSetgone", Direct: true},
		Operand{Kind: "StatefulSet", Name: "given", UID: "StatefulSetgiven", Direct: true}, // it belongs to somebody else
	)
	found := belonging([]*Object{{Kind: "Pot", Namespace: "n", Name: "a", UID: "a"}}, before, []owned{
		made("StatefulSet", "left"), made("Pod", "left", "StatefulSetleft"), made("StatefulSet", "anew"), made("StatefulSet", "given", "nobody"),
		made("Pod", "a", "ReplicaSeta"), made("ReplicaSet", "a", "Deploymenta"), made("Deployment", "a", "a"),
		made("StatefulSet", "lid", "lid"), {Operand: Operand{UID: "lid"}, owners: []types.UID{"handle"}}, {Operand: Operand{UID: "handle"}, owners: []types.UID{"a"}},
		made("Deployment", "other", "other"), {Operand: Operand{UID: "other"}, owners: []types.UID{"nobody"}},
		{Operand: Operand{Kind: "Deployment", Namespace: "n", Name: "a-named", UID: "named"}, named: "Pot/n/a"}, made("ReplicaSet", "a-named", "named"),
	})
	var got []string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		got = append(got, fmt.Sprint(name, " of ", found[name].Of, " ", found[name].Direct, " ", found[name].Disowned, " ", found[name].Unowned))
	}
	want := []string{
		"Deployment/n/a of Pot/n/a true false false", "Deployment/n/a-named of Pot/n/a true false true", "Pod/n/a of Pot/n/a false false false",
		"Pod/n/left of Pot/n/a false false false", "ReplicaSet/n/a of Pot/n/a false false false", "ReplicaSet/n/a-named of Pot/n/a false false false",
		"StatefulSet/n/left of Pot/n/a true true false", "StatefulSet/n/lid of Pot/n/a true false false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestNamed knows what has an object's name in its own, and neither what was there before nor what has owners or was applied for users.
func TestNamed(t *testing.T) {
	since := time.Unix(100, 0)
	of := (&Cluster{Provider: endingCluster{ends: true}, Place: lifecycle.Place{Namespace: "operators"}, Objects: []*Object{
		{Kind: "Pot", Namespace: "n", Name: "a", Since: since}, {Kind: "Pot", Namespace: "n", Name: "a-v1-w", Since: since},
		{Kind: "Lid", Name: "lid", Since: since}, {Kind: "Pot", Namespace: "n", Name: "both", Since: since}, {Kind: "Lid", Namespace: "n", Name: "both", Since: since},
		{Kind: "Lid", Namespace: "n", Name: "a", Since: since.Add(time.Hour)}, {Kind: "Pot", Namespace: "operators", Name: "a", Since: since}, {Kind: "Pot", Namespace: "n", Name: "restored"},
	}}).namedAfter()
	for _, test := range []struct {
		name, kind, namespace string
		change                func(*unstructured.Unstructured)
		want                  string
	}{
		{name: "a", want: "Pot/n/a"},
		{name: "data-a-server", want: "Pot/n/a"},
		{name: "a-v1-w-server", want: "Pot/n/a-v1-w"},
		{name: "the-lid", want: "Lid/lid"},
		{name: "ab"},
		{name: "both-server"},
		{name: "the-lid", namespace: "operators"},
		{name: "restored"},
		{name: "a", namespace: "operators"},
		{name: "a", namespace: "elsewhere"},
		{name: "a", kind: "ConfigMap"},
		{name: "a", change: func(m *unstructured.Unstructured) { m.SetCreationTimestamp(metav1.Unix(99, 0)) }},
		{name: "a", change: func(m *unstructured.Unstructured) { m.SetOwnerReferences([]metav1.OwnerReference{{Name: "x"}}) }},
		{name: "a", change: func(m *unstructured.Unstructured) {
			m.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "olmkit", Operation: metav1.ManagedFieldsOperationApply}})
		}},
		{name: "a", want: "Pot/n/a", change: func(m *unstructured.Unstructured) {
			m.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "olmkit", Operation: metav1.ManagedFieldsOperationUpdate}})
		}},
	} {
		m := &unstructured.Unstructured{Object: map[string]any{}}
		m.SetNamespace(cmp.Or(test.namespace, "n"))
		m.SetName(test.name)
		m.SetCreationTimestamp(metav1.Unix(100, 0))
		if test.change != nil {
			test.change(m)
		}
		if got := of.of(cmp.Or(test.kind, "Deployment"), m); got != test.want {
			t.Errorf("%s %s: %q, want %q", test.kind, test.name, got, test.want)
		}
	}
}

// TestBetween reads the kinds of a package that has more than one, and keeps what it read while they cannot be read.
func TestBetween(t *testing.T) {
	lid := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v2", "kind": "Lid", "metadata": map[string]any{
		"namespace": "n", "name": "a", "uid": "lid", "ownerReferences": []any{map[string]any{"apiVersion": "example.com/v2", "kind": "Pot", "name": "a", "uid": "pot"}},
	}}}
	resources := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		{Group: "example.com", Version: "v2", Resource: "lids"}: "LidList", {Group: "example.com", Version: "v2", Resource: "pots"}: "PotList",
	}, lid)
	c := &Cluster{Dynamic: resources, Watcher: NewWatcher(nil, nil, "n")}
	for _, name := range []string{"pots.example.com", "lids.example.com", "pots.example.com"} {
		c.Brings(&lifecycle.Release{CRDs: []*apiextensionsv1.CustomResourceDefinition{{ObjectMeta: metav1.ObjectMeta{Name: name}}}})
	}
	for _, name := range c.CRDs {
		c.Watcher.crds[name] = &lifecycle.Definition{Storage: "v2"}
	}
	read := func(want int) {
		t.Helper()
		got := c.between(t.Context(), nil)
		if len(got) != want || want > 0 && (got[0].UID != "lid" || got[0].owners[0] != "pot" || got[0].Kind != "") {
			t.Errorf("%+v", got)
		}
	}
	read(1)
	resources.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no webhook") })
	read(1)
	c.CRDs = c.CRDs[:1]
	read(0)
}

// TestConfirmed lists all only where what was made directly is not as watches told last.
func TestConfirmed(t *testing.T) {
	object := func(kind, name, version string, generation int64) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"kind": kind, "apiVersion": "v1"}}
		if kind == "Deployment" {
			o.SetAPIVersion("apps/v1")
		}
		o.SetNamespace("n")
		o.SetName(name)
		o.SetUID(types.UID(name))
		o.SetResourceVersion(version)
		o.SetGeneration(generation)
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Pot", Name: "a", UID: "a"}})
		return o
	}
	for _, test := range []struct {
		name   string
		change func(settings, workload dynamic.ResourceInterface) error
		listed bool
		want   int
	}{
		{"nothing", func(_, _ dynamic.ResourceInterface) error { return nil }, false, 2},
		{"the status of what has a generation", func(_, workload dynamic.ResourceInterface) error {
			_, err := workload.Update(t.Context(), object("Deployment", "server", "9", 1), metav1.UpdateOptions{})
			return err
		}, false, 2},
		{"its spec", func(_, workload dynamic.ResourceInterface) error {
			_, err := workload.Update(t.Context(), object("Deployment", "server", "9", 2), metav1.UpdateOptions{})
			return err
		}, true, 2},
		{"what has no generation", func(settings, _ dynamic.ResourceInterface) error {
			_, err := settings.Update(t.Context(), object("ConfigMap", "settings", "9", 0), metav1.UpdateOptions{})
			return err
		}, true, 2},
		{"it is gone", func(settings, _ dynamic.ResourceInterface) error {
			return settings.Delete(t.Context(), "settings", metav1.DeleteOptions{})
		}, true, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			client := dynamicfake.NewSimpleDynamicClient(scheme.Scheme, object("ConfigMap", "settings", "1", 0), object("Deployment", "server", "1", 1))
			c := &Cluster{Dynamic: client, Objects: []*Object{{Kind: "Pot", Namespace: "n", Name: "a", UID: "a"}}, Watcher: &Watcher{
				Reader: fake.NewClientBuilder().WithScheme(scheme.Scheme).Build(),
				recent: &recent{lists: map[place]*recentList{}, watch: func(place, string) (watch.Interface, error) { return watch.NewFake(), nil }}, // which tells nothing
			}}
			if _, err := c.RecentOperands(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := test.change(client.Resource(OperandResource("ConfigMap")).Namespace("n"), client.Resource(OperandResource("Deployment")).Namespace("n")); err != nil {
				t.Fatal(err)
			}
			client.ClearActions()
			got, err := c.ConfirmedOperands(t.Context())
			if err != nil || len(got) != test.want {
				t.Errorf("%v, %v", got, err)
			}
			if listed := slices.ContainsFunc(client.Actions(), func(a clienttesting.Action) bool { return a.GetVerb() == "list" }); listed != test.listed {
				t.Errorf("all are listed: %v, want %v", listed, test.listed)
			}
		})
	}
}

// TestCollect has the garbage collector take a Service three seconds after its object went. What stays is deleted on a cluster that ends
// with the walk: a StatefulSet's claim, and what the collector does not take in time; but neither a claim that a pod only mounts, nor what
// belongs to somebody else, too, or was made anew meanwhile.
func TestCollect(t *testing.T) {
	object := func(kind, name, uid string, owners ...metav1.OwnerReference) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
		o.SetNamespace("n")
		o.SetName(name)
		o.SetUID(types.UID(uid))
		o.SetOwnerReferences(owners)
		return o
	}
	ours := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Thing", Name: "a", UID: "a"}
	others := metav1.OwnerReference{APIVersion: "cert-manager.io/v1", Kind: "Certificate", Name: "b", UID: "b"}
	for _, test := range []struct {
		name       string
		disposable bool
		after      time.Duration // the collector takes the Service; 0 for never
		waits      time.Duration
		left       []string
	}{
		{"the collector takes it", true, 3 * time.Second, 3 * time.Second, []string{"theirs", "again", "shared"}},
		{"the collector does not", true, 0, 10 * time.Second, []string{"theirs", "again", "shared"}},
		{"the cluster stays", false, 0, 10 * time.Second, []string{"cache", "data-cache-0", "theirs", "again", "shared"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := dynamicfake.NewSimpleDynamicClient(scheme.Scheme, object("Service", "cache", "1", ours), object(KindClaim, "data-cache-0", "2"), object(KindClaim, "theirs", "5"),
					object("ConfigMap", "again", "9"), object("Secret", "shared", "6", ours, others))
				c := &Cluster{Dynamic: client, Provider: endingCluster{ends: test.disposable}, CRDs: []string{"things.example.com"}}
				operands := map[string]Operand{}
				for _, o := range []Operand{
					{Kind: "Service", Name: "cache", UID: "1"}, {Kind: KindClaim, Name: "data-cache-0", UID: "2"}, {Kind: "ConfigMap", Name: "again", UID: "3"}, {Kind: "Secret", Name: "gone", UID: "4"},
					{Kind: KindClaim, Name: "theirs", UID: "5"}, {Kind: "Secret", Name: "shared", UID: "6"}, {Kind: "StatefulSet", Name: "cache", UID: "7"},
				} {
					o.Namespace = "n"
					operands[o.String()] = o
				}
				services := client.Resource(OperandResource("Service")).Namespace("n")
				if test.after > 0 {
					time.AfterFunc(test.after, func() { _ = services.Delete(t.Context(), "cache", metav1.DeleteOptions{}) })
				}
				began := time.Now()
				if err := c.Collect(t.Context(), operands, 10*time.Second); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took < test.waits || took > test.waits+time.Second {
					t.Errorf("it took %s", took)
				}
				var left []string
				for _, kind := range []string{"Service", KindClaim, "ConfigMap", "Secret"} {
					list, err := client.Resource(OperandResource(kind)).Namespace("n").List(t.Context(), metav1.ListOptions{})
					if err != nil {
						t.Fatal(err)
					}
					for _, o := range list.Items {
						left = append(left, o.GetName())
					}
				}
				if !slices.Equal(left, test.left) {
					t.Errorf("%q are left, not %q", left, test.left)
				}
			})
		})
	}
}

// TestBetweenUnanswered has the API server never answer for a kind, as without its conversion webhook: what was read last counts.
func TestBetweenUnanswered(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer server.Close()
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{Dynamic: client, CRDs: []string{"parts.example.com", "things.example.com"}, Watcher: &Watcher{crds: map[string]*lifecycle.Definition{"parts.example.com": {Storage: "v1"}}}}
	c.Watcher.between.Store("parts.example.com", []owned{{Operand: Operand{UID: "p"}, owners: []types.UID{"t"}}})
	if known := c.between(t.Context(), nil); len(known) != 1 || known[0].UID != "p" {
		t.Errorf("known is %+v", known)
	}
}

// TestCrowded: a pod that would fit beside another one on a second node is told from one that fits nowhere.
func TestCrowded(t *testing.T) {
	for message, want := range map[string]bool{
		"0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules. no new claims to deallocate":      true,
		"0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.":                    true,
		"0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules.":                                  false,
		"0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints.":                          true,
		"0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing required label).": false,
		"0/1 nodes are available: 1 Insufficient cpu.":                                                              false,
	} {
		pod := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
			map[string]any{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message},
		}}}}
		var o Operand
		if err := o.readPod(pod); err != nil || (o.Crowded != "") != want {
			t.Errorf("%s: crowded %q, %v", message, o.Crowded, err)
		}
	}
}
