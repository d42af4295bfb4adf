package walk

import (
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
