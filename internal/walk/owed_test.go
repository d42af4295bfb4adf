package walk

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/test/support/expect"
)

// TestOwed: what the operator deleted with a copy, or of what it said there, it has to delete with the sample as well. What has no name of the sample's, is not there, or is of
// another object is not asked for; nor is anything of who stays.
func TestOwed(t *testing.T) {
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	for name, c := range map[string]struct {
		key          string
		shared       bool
		before, says string // what is there before the sample goes and afterwards, "" for nothing
		stays        bool
		want         string
	}{
		"taken out":                  {"list", true, "teapot, cup", "cup", false, ""},
		"still said":                 {"list", true, "teapot, cup", "teapot, cup", false, "error U518 Pot/n/teapot: tea.v2 leaves what is there for it in ConfigMap n/list when it is deleted, which was there before the upgrade; of an object that was created afterwards it did not"},
		"still said, more than once": {"list", true, "teapot teapot", "teapot", false, ""},
		"never said":                 {"list", true, "cup, teapot.example.com", "cup, teapot.example.com", false, ""},
		"deleted":                    {"about-teapot-new2", false, "x", "", false, ""},
		"still there":                {"about-teapot-new2", false, "x", "x", false, "error U518 Pot/n/teapot: tea.v2 leaves what is there for it in ConfigMap n/about-teapot when it is deleted, which was there before the upgrade; of an object that was created afterwards it did not"},
		"of nobody's name":           {"a6f3", false, "x", "x", false, ""},
		"the sample stays itself":    {"list", true, "teapot", "teapot", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := teaWalk()
				sample := &observe.Object{Kind: "Pot", Namespace: "n", Name: "teapot", UID: "1"}
				w.Objects = []*observe.Object{sample}
				copied := &newObject{Object: &observe.Object{Name: "teapot-new2"}, like: sample}
				w.cleared[w.release.Name] = []cleared{{distant{Creation: observe.Creation{GroupVersionResource: configMaps, ObjectKey: client.ObjectKey{Namespace: "n", Name: c.key}}, shared: c.shared}, copied}}
				list := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "says": c.before}}
				list.SetNamespace("n")
				list.SetName(strings.ReplaceAll(c.key, "teapot-new2", "teapot"))
				tracker := w.Dynamic.(*dynamicfake.FakeDynamicClient).Tracker()
				if err := tracker.Add(list); err != nil {
					t.Fatal(err)
				}
				all, err := w.owing(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				list = list.DeepCopy()
				list.Object["says"] = c.says
				if c.says == "" {
					err = w.Dynamic.Resource(configMaps).Namespace("n").Delete(t.Context(), list.GetName(), metav1.DeleteOptions{})
				} else {
					_, err = w.Dynamic.Resource(configMaps).Namespace("n").Update(t.Context(), list, metav1.UpdateOptions{})
				}
				if err != nil {
					t.Fatal(err)
				}
				var stay []*observe.Object
				if c.stays {
					stay = w.Objects
				}
				found, err := w.judgeOwed(t.Context(), all, stay)
				if err != nil {
					t.Fatal(err)
				}
				var want []string
				if c.want != "" {
					want = append(want, c.want)
				}
				expect.Findings(t, found, want...)
			})
		})
	}
}

// disposing is a cluster with an audit log that goes with the walk.
type disposing struct{ audited }

func (disposing) Disposable() bool { return true }

// TestOwingOlder: what an earlier release called otherwise has to go with a sample as well, where what is made for new objects goes with them.
func TestOwingOlder(t *testing.T) {
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	secret := func(name string, owners ...metav1.OwnerReference) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "n", "name": name, "uid": "u"}}}
		o.SetOwnerReferences(owners)
		return o
	}
	for name, c := range map[string]struct {
		made    *unstructured.Unstructured
		created judge.New
		shared  bool
		want    string
	}{
		"under another name":      {made: secret("user-n-teapot"), want: "user-n-teapot of Pot/n/teapot"},
		"of another":              {made: secret("user-n-teapot-lid"), want: "user-n-teapot-lid of Pot/n/teapot-lid"},
		"of nobody":               {made: secret("user-n-teapots")},
		"of two":                  {made: secret("cup")},
		"it has an owner":         {made: secret("user-n-teapot", metav1.OwnerReference{APIVersion: "v1", Kind: "Pot", Name: "teapot", UID: "1"})},
		"an earlier one left it":  {made: secret("user-n-teapot"), created: judge.New{Elsewhere: []judge.Distant{{Kind: "Secret"}}}},
		"nobody owned it earlier": {made: secret("user-n-teapot"), created: judge.New{Unowned: []judge.Left{{Kind: "Secret"}}}},
		"others say it, too":      {made: secret("user-n-teapot"), shared: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := teaWalk(c.made)
			w.releases = map[string]*lifecycle.Release{w.release.Name: w.release}
			w.Provider = disposing{audited{log: []auditv1.Event{asked("create", 201, auditv1.ObjectReference{APIVersion: "v1", Resource: "secrets", Namespace: "n", Name: c.made.GetName()})}}}
			for i, name := range []string{"teapot", "teapot-lid", "cup", "cup"} {
				w.Objects = append(w.Objects, &observe.Object{CRD: "pots.example.com", Kind: "Pot", Namespace: "n", Name: name, UID: types.UID(fmt.Sprint(i))})
			}
			w.created["tea.v1"] = map[string]judge.New{"pots.example.com": c.created}
			copied := &newObject{Object: &observe.Object{CRD: "pots.example.com", Name: "teapot-new2"}, like: w.Objects[0]}
			w.cleared[w.release.Name] = []cleared{{distant{Creation: observe.Creation{GroupVersionResource: secrets, ObjectKey: client.ObjectKey{Namespace: "n", Name: "own-teapot-new2"}}, shared: c.shared}, copied}}
			all, err := w.owing(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, o := range all {
				got += o.Name + " of " + o.of.String()
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
