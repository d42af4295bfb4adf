package walk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/internal/report"
	"github.com/olmkit/olmkit/test/support/expect"
)

// An object that is created after an upgrade gets what the old version made for one, and it goes with the object.
func TestNewObjects(t *testing.T) {
	p, plan := things(t, "v1", "v2")
	for behaviour, c := range map[string]struct{ code, says string }{
		"":        {},
		mends:     {code.NewIgnored, "v2 does less for a new object like it: within 45s nothing is made that belongs to it; with v1 it was as for this one"},
		disowns:   {code.NewUnowned, "v2 makes ConfigMap a for a new object like it without an owner reference, and it stayed when the object was deleted; with v1 it did not"},
		deletes:   {},
		remembers: {code.NewIgnored, "v2 does less for an object that has the name of one that was deleted before: within 45s nothing is made that belongs to it; with v1 it was as for the first"},
	} {
		t.Run(behaviour, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.expect(t, p, plan, "", behaviour, c.code, c.says)
				var left corev1.ConfigMapList
				if err := w.List(t.Context(), &left, client.InNamespace(metav1.NamespaceAll)); err != nil {
					t.Fatal(err)
				}
				for _, m := range left.Items {
					if strings.Contains(m.Name, "-new") && len(m.OwnerReferences) == 0 {
						t.Errorf("%s is left", m.Name)
					}
				}
			})
		})
	}
}

// What somebody changes of what was made for a new object must be changed back if the old version did so.
func TestEdits(t *testing.T) {
	p, plan := things(t, "v1", "v2")
	for _, c := range []struct{ v1, v2, want string }{
		{restores, restores, ""}, {"", "", ""}, {"", restores, ""}, {restores, "", code.DriftStays}, {restores, understands, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			newWorld().expect(t, p, plan, c.v1, c.v2, c.want, "v2 leaves ConfigMap of a new object like it as somebody else changes it, for 30s; v1 changed it back")
		})
	}
}

// Of what there are two, neither must stay away.
func TestTwins(t *testing.T) {
	p, plan := things(t, "v1", "v2", "v3")
	expectAll(t, p, plan, []pairing{
		{twins, twins, "", ""},
		{twinsHalf, twinsHalf, "", ""},
		{twins, twinsHalf, code.DriftStays, "v2 does not make ConfigMap …-twin again that somebody deletes of a new object like it"},
	})
}

// A Secret that is made anew as it was is nobody's choice: it is put back, too, if somebody changes it.
func TestMirrors(t *testing.T) {
	p, plan := things(t, "v1", "v2", "v3")
	expectAll(t, p, plan, []pairing{
		{mirrors, seals, code.DriftStays, "v2 leaves Secret …-key of a new object like it as somebody else changes it"},
		{mirrors, mirrors, "", ""},
		{seals, seals, "", ""},
		{seals, mirrors, "", ""},
	})
}

// What nobody can change is seen where it is made anew.
func TestFixed(t *testing.T) {
	p, plan := packageOf(t, lifecycle.AllNamespaces, `[{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"size":1}},
		{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"b"},"spec":{"size":2,"note":"x"}}]`, []string{"v1", "v2", "v3"}, thingDefinition)
	expectAll(t, p, plan, []pairing{
		{seizes, "", code.OperandChanged, "v2 makes what it makes for a new object like it otherwise than v1, in what nobody can change once it is there: ConfigMap immutable was true and is not set"},
		{seizes, seizes, "", ""},
	})
}

// Who does everything, but late, is told of.
func TestSlower(t *testing.T) {
	p, plan := things(t, "v1", "v2", "v3")
	expectAll(t, p, plan, []pairing{
		{hurries, dawdles, code.DoesLess, "v2 mostly takes 5."},
		{hurries, hurries, "", ""},
		{dawdles, hurries, "", ""},
	})
}

// Of what belongs to nobody, what the walk itself deleted was not the operator's to delete with its object.
func TestNoteUnowned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stays := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"namespace": "n", "name": "teapot-new2-http"}}}
		w := teaWalk(stays)
		o := &newObject{Object: &observe.Object{CRD: "pots", Namespace: "n", Name: "teapot-new2"}, like: &observe.Object{Name: "teapot"}}
		for _, made := range []observe.Operand{{Kind: "Service", Name: "teapot-new2-http"}, {Kind: "Ingress", Name: "teapot-new2"}, {Kind: "CronJob", Name: "teapot-new2"}} {
			made.Namespace = "n"
			o.unowned = append(o.unowned, made)
		}
		is := judge.New{Sample: "Pot/n/teapot", Remakes: map[string]bool{"Ingress": false, "CronJob": true}}
		if err := w.noteUnowned(t.Context(), o, time.Now().Add(unownedLimit), judge.New{}, &is); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(is.Unowned, []judge.Left{{Kind: "Service", Name: "teapot-http"}}) || !slices.Equal(is.Removed, []string{"Ingress"}) {
			t.Errorf("stays: %v, was removed: %v", is.Unowned, is.Removed)
		}
		if is.Clears("Service") || is.Clears("Ingress") || !is.Clears("CronJob") {
			t.Errorf("said to be cleared: Service %v, Ingress %v, CronJob %v", is.Clears("Service"), is.Clears("Ingress"), is.Clears("CronJob"))
		}
	})
}

// An edit is one that the owner of a thing alone would change back: a few of each kind, and nothing that nobody may change.
func TestEditsOf(t *testing.T) {
	type m = map[string]any
	made := func(kind, name string, direct bool, content m) observe.Operand {
		return observe.Operand{Kind: kind, Namespace: "n", Name: name, Direct: direct, Content: content}
	}
	operands := map[string]observe.Operand{}
	for _, o := range []observe.Operand{
		made("ConfigMap", "a", false, m{"data": m{"k": "v"}}), made("ConfigMap", "b", true, m{"data": m{"k": "v"}, "immutable": true}), made("ConfigMap", "c", true, nil),
		made("ConfigMap", "cc", true, m{"data": m{"k": "password=(hidden) sha256:0a"}}),
		made("ConfigMap", "d", true, m{"data": m{"k": "v", "l": "w"}}), made("ConfigMap", "e", true, m{"data": m{"k": "v"}}),
		made("ConfigMap", "f", true, m{"data": m{"k": "w"}}), made("ConfigMap", "g", true, m{"data": m{"k": "v"}}),
		made("Service", "a", true, m{"spec": m{}}), made("Service", "b", true, m{"spec": m{"selector": m{"app": "a"}}}), made("Deployment", "a", true, m{"spec": m{}}),
		made("NetworkPolicy", "a", true, m{"spec": m{"podSelector": m{}}}), made("NetworkPolicy", "b", true, m{"spec": m{"podSelector": m{"matchLabels": m{"app": "a"}}}}),
		made("PodDisruptionBudget", "b", true, m{"spec": m{"selector": m{"matchLabels": m{"app": "a"}}}}),
		made("CronJob", "a", true, m{"spec": m{"schedule": "@daily"}}), made("CronJob", "b", true, m{"spec": m{"schedule": "0 3 * * *"}}),
	} {
		operands[o.String()] = o
	}
	var said []string
	for _, e := range editsOf(operands, slices.Sorted(maps.Keys(operands))) {
		said = append(said, fmt.Sprintf("%s %s %s", e.Operand, e.there, e.back))
	}
	slices.Sort(said)
	want := []string{
		`ConfigMap/n/d {"data":{"k":"v\n"}} {"data":{"k":"v"}}`,
		`ConfigMap/n/e {"data":{"k":"v\n"}} {"data":{"k":"v"}}`,
		`ConfigMap/n/f {"data":{"k":"w\n"}} {"data":{"k":"w"}}`,
		`CronJob/n/b {"spec":{"schedule":"7 3 * * *"}} {"spec":{"schedule":"0 3 * * *"}}`,
		`NetworkPolicy/n/b {"spec":{"podSelector":{"matchLabels":{"olmkit.dev/nudge":"1"}}}} {"spec":{"podSelector":{"matchLabels":{"olmkit.dev/nudge":null}}}}`,
		`PodDisruptionBudget/n/b {"spec":{"selector":{"matchLabels":{"olmkit.dev/nudge":"1"}}}} {"spec":{"selector":{"matchLabels":{"olmkit.dev/nudge":null}}}}`,
		`Service/n/b {"spec":{"selector":{"olmkit.dev/nudge":"1"}}} {"spec":{"selector":{"olmkit.dev/nudge":null}}}`,
	}
	if !slices.Equal(said, want) {
		t.Errorf("%q", said)
	}
}

// What the old version did not do for a new object either is nothing that the upgrade breaks: the names of kinds of which there
// may be one are fixed in many operators.
func TestNewObjectsAsBefore(t *testing.T) {
	p, plan := things(t, "v1", "v2", "v3")
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.behaviour["v1"], w.behaviour["v2"], w.behaviour["v3"] = evicts, evicts, evicts
		r, err := w.walk(t.Context(), t, p, plan, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := codes(r.Hops[0].Findings) + codes(r.Hops[1].Findings); got != "" {
			t.Errorf("of what an operator deletes at once: %s", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.behaviour["v2"], w.behaviour["v3"] = mends, mends
		r, err := w.walk(t.Context(), t, p, plan, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := codes(r.Hops[0].Findings) + ", " + codes(r.Hops[1].Findings); got != code.NewIgnored+", " {
			t.Errorf("%s: %s", got, expect.Said(r.Hops[1].Findings))
		}
	})
}

// An API server that takes one name only takes the sample's own. That it takes no second object is the package's choice.
func TestOnlyOne(t *testing.T) {
	p, plan := things(t, "v1", "v2")
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.only = "a"
		hop := w.firstHop(t, p, plan)
		if hop.Result != report.Passed {
			t.Errorf("%s: %s", hop.Result, expect.Said(hop.Findings))
		}
	})
}

func TestRenamings(t *testing.T) {
	for _, c := range []struct {
		name string
		want []string
	}{
		{"redis", []string{"new"}},
		{"data-redis", []string{"data-new"}},
		{"redis-redis", []string{"new-redis", "redis-new"}},
		{"other", nil},
	} {
		if got := renamings(c.name, "redis", "new"); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestIdle: who is slow once is given more time to come to rest from then on.
func TestIdle(t *testing.T) {
	o := &newObject{}
	for _, test := range []struct{ took, want time.Duration }{
		{0, idleFor}, {idleFor / 4, idleFor}, {2 * idleFor, 2 * idleFor}, {0, 2 * idleFor}, {2 * mostIdle, mostIdle},
	} {
		if o.acted(test.took); o.idle() != test.want {
			t.Errorf("after %s: %s, want %s", test.took, o.idle(), test.want)
		}
	}
}

// TestFindEach: what is found is told in the order of the objects, whichever is through first; an error ends it.
func TestFindEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := []*observe.Object{{Name: "a"}, {Name: "b"}, {Name: "c"}}
		failed := errors.New("away")
		for _, fails := range []string{"", "b"} {
			found, err := findEach(t.Context(), objects, func(_ context.Context, o *observe.Object) ([]finding.Finding, error) {
				time.Sleep(time.Duration('c'-o.Name[0]) * time.Second)
				f := []finding.Finding{{Message: o.Name}}
				if o.Name == fails {
					return f, failed
				}
				return f, nil
			})
			var said string
			for _, f := range found {
				said += f.Message
			}
			if said != "abc" || (err != nil) != (fails != "") {
				t.Errorf("%s, %v", said, err)
			}
		}
	})
}

// An Event that comes late counts where the release before had some recorded, and nobody waits for one where it had none.
func TestToldLate(t *testing.T) {
	for name, test := range map[string]struct{ was, want []string }{
		"some before": {[]string{"Made"}, []string{"Made"}},
		"none before": {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := fake.NewClientBuilder().Build()
				w := &walk{Cluster: &observe.Cluster{Client: c}}
				o := &newObject{Object: &observe.Object{Namespace: "n", UID: "1"}}
				late := time.AfterFunc(2*time.Second, func() {
					_ = c.Create(t.Context(), &corev1.Event{
						ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "made"}, InvolvedObject: corev1.ObjectReference{UID: "1"}, Type: corev1.EventTypeNormal, Reason: "Made",
					})
				})
				defer late.Stop()
				told, err := w.toldOf(t.Context(), o, judge.New{Events: test.was})
				if err != nil || !slices.Equal(told, test.want) {
					t.Errorf("%v, %v", told, err)
				}
			})
		})
	}
}
