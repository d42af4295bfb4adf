package walk

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/test/support/expect"
)

// A field that changes at every look tells a restless operator; one that comes to rest does not.
func TestRest(t *testing.T) {
	at := func(stamp string, ready int64, more bool) observe.Snapshot {
		status := map[string]any{"ready": ready, "nodes": []any{"a", "b"}}
		marks := map[string]any{"annotations": map[string]any{"stamp": stamp}}
		if more {
			status["note"] = "new"
		}
		return observe.Snapshot{"Memcached/a/b": {"spec": map[string]any{"size": int64(3)}, "status": status, "metadata": marks}, "Pod/a/" + stamp: {}}
	}
	first := at("1", 1, false).Changes(at("2", 2, true))
	if diff := cmp.Diff(map[string][]string{"Memcached/a/b": {"metadata.annotations.stamp", "status.note", "status.ready"}}, first); diff != "" {
		t.Errorf("the first look: %s", diff)
	}
	second := at("2", 2, true).Changes(at("3", 2, true))
	if diff := cmp.Diff(map[string][]string{"Memcached/a/b": {"metadata.annotations.stamp"}}, both(first, second)); diff != "" {
		t.Errorf("both: %s", diff)
	}
	if still := both(first, at("3", 2, true).Changes(at("3", 2, true))); len(still) > 0 {
		t.Errorf("at rest: %v", still)
	}
}

// An operator that answers each look with a write is told of as such, and one that goes on by itself as one that never rests.
func TestHotLoop(t *testing.T) {
	p, plan := things(t, "v1", "v2")
	for behaviour, want := range map[string]string{
		"":        "",
		answers:   "warning: 5 times in a row an object was written without a change to what it says, and each time the operator wrote in turn: data.written",
		sums:      "",
		announces: "warning: 5 times in a row an object was written without a change to what it says, and each time the operator wrote in turn: Event Looked",
		stamps:    "warning: 5 times in a row an object was written without a change to what it says, and each time the operator wrote in turn: status.seenAt",
		spins:     "error: reconcile hot loop: the operator keeps writing data.written although nobody touches the object",
	} {
		t.Run(behaviour, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.behaviour["v2"] = behaviour
				got := ""
				for _, f := range w.firstHop(t, p, plan).Findings {
					if f.Code == code.HotLoop {
						got = fmt.Sprintf("%s: %s", f.Severity, f.Message)
					}
				}
				if !strings.HasPrefix(got, want) || want == "" && got != "" {
					t.Errorf("it says %q, want %q", got, want)
				}
			})
		})
	}
}

// Who told of each look before goes on to do so.
func TestAnnounces(t *testing.T) {
	p, plan := things(t, "v1", "v2", "v3")
	expectAll(t, p, plan, []pairing{{announces, announces, "", ""}, {"", announces, code.HotLoop, "Event Looked"}})
}

// An operator that was slow to act on a change gets longer for what it does about a look, though not for ever.
func TestLookFor(t *testing.T) {
	for acted, want := range map[time.Duration]time.Duration{0: lookLimit, 300 * time.Millisecond: lookLimit, 2 * time.Second: 4 * time.Second, time.Minute: slowLookLimit} {
		if got := lookFor(acted); got != want {
			t.Errorf("it acted after %s: %s", acted, got)
		}
	}
}

// What an operator hands on of annotations is no answer to a write; where it reaches pods, writes change nothing from then on.
func TestHandedOn(t *testing.T) {
	p, plan := thingsOf(t, lifecycle.AllNamespaces, `{"size":60}`, "v1", "v2", "v3")
	for behaviour, uncounted := range map[string]bool{handsOn: false, handsDown: true} {
		t.Run(behaviour, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newDisposable()
				w.behaviour["v1"], w.behaviour["v2"] = behaviour, behaviour
				r, err := w.walk(t.Context(), t, p, plan, Options{})
				if err != nil {
					t.Fatal(err)
				}
				for _, found := range [][]finding.Finding{r.Installations[0].Findings, r.Hops[0].Findings} {
					if got := codes(found); got != "" {
						t.Errorf("%q: %s", got, expect.Said(found))
					}
				}
				if said := strings.Contains(strings.Join(r.Cluster.Limitations, "\n"), "writes of Thing/olmkit-samples/a-v1-w change nothing, because"); said != uncounted {
					t.Errorf("it says that writes are not counted: %t, want %t: %q", said, uncounted, r.Cluster.Limitations)
				}
			})
		})
	}
}
