package walk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/fault"
	"github.com/olmkit/olmkit/internal/graph"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/report"
	"github.com/olmkit/olmkit/test/support/expect"
)

// A walk installs, upgrades hop by hop, judges, and leaves nothing.
func TestWalk(t *testing.T) {
	p, plan := things(t, "v1", "v2", "v3")
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		var after []string
		r, err := w.walk(t.Context(), t, p, plan, Options{Fresh: true, AfterHop: func(_ context.Context, _ *rest.Config, h report.Hop) error { after = append(after, h.To); return nil }})
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range r.Hops {
			if h.Result != report.Passed || codes(h.Findings) != "" || len(h.NotVerified) > 0 {
				t.Errorf("%s → %s %s: %s, not verified: %s", h.From, h.To, h.Result, expect.Said(h.Findings), h.NotVerified)
			}
			var phases []string
			for _, p := range h.Phases {
				phases = append(phases, p.Name)
			}
			if got := strings.Join(phases, ", "); got != "chosen, installing, succeeded, stable" {
				t.Errorf("its phases are %s", got)
			}
		}
		if got := strings.Join(after, " "); got != "v2 v3" {
			t.Errorf("called after %s", got)
		}
		if r.Cluster.OLM != "v9" || len(r.Installations) != 1 || r.Installations[0].Result != report.Passed || codes(r.Findings) != code.DiffersFromFresh && codes(r.Findings) != "" {
			t.Errorf("%+v, %+v, %s", r.Cluster, r.Installations, expect.Said(r.Findings))
		}
		if w.called("Uninstall") != 2 {
			t.Errorf("uninstalled %d times, and not before and after the fresh installation", w.called("Uninstall"))
		}
		w.isEmpty(t)
	})
}

// isEmpty fails if something of a walk is in the world.
func (w *world) isEmpty(t *testing.T) {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(thingKind.GroupVersion().WithKind("ThingList"))
	if err := w.List(context.Background(), list); err != nil || len(list.Items) > 0 {
		t.Errorf("left: %d Things, %v", len(list.Items), err)
	}
	if w.running != "" || w.wanted != "" {
		t.Errorf("%s is installed, %s wanted", w.running, w.wanted)
	}
}

// A hop comes to the end that its release deserves, the walk goes on with the next, and a rollback brings the old one back.
func TestHopEnds(t *testing.T) {
	p, plan := things(t, "v1", "v2", "v3")
	for behaviour, want := range map[string]string{
		never: code.NotChosen, hangs: code.NotSucceeded, stays: code.OldVersionStays, fails: code.PlanFailed, waits: code.Unmet,
		crashes: code.Crashed, crashesBy: code.ObjectsRefused, isRefused: code.NotSucceeded, idles: code.NotReconciled,
	} {
		t.Run(behaviour, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.behaviour["v2"] = behaviour
				r, err := w.walk(t.Context(), t, p, plan, Options{Rollback: true})
				if err != nil {
					t.Fatal(err)
				}
				h := r.Hops[0]
				if h.Result != report.Failed || !strings.Contains(codes(h.Findings), want) {
					t.Errorf("%s: %s", h.Result, expect.Said(h.Findings))
				}
				if back := h.Rollback; back == nil || back.Result != report.Passed || back.Objects == 0 {
					t.Errorf("the rollback: %+v", back)
				}
				// What cannot be upgraded to may be installed afresh all the same; here it cannot, or does not reconcile.
				if next := r.Hops[1]; behaviour != idles && (next.Result != report.Failed || codes(next.Findings) != code.BaseFailed) {
					t.Errorf("the next hop: %s %s", next.Result, expect.Said(next.Findings))
				}
				w.isEmpty(t)
			})
		})
	}
}

// An operator that deletes its objects fails its hop for that alone, and not for what follows from it.
func TestDeletesObjects(t *testing.T) {
	p, plan := things(t, "v1", "v2")
	for behaviour, says := range map[string]string{purges: "it is gone", strands: "only finalizers keep it: example.com/forever"} {
		t.Run(behaviour, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.behaviour["v2"] = behaviour
				r, err := w.walk(t.Context(), t, p, plan, Options{})
				if err != nil {
					t.Fatal(err)
				}
				h := r.Hops[0]
				if said := expect.Said(h.Findings); h.Result != report.Failed || codes(h.Findings) != code.ObjectGone || !strings.Contains(fmt.Sprint(said), says) {
					t.Errorf("%s: %s", h.Result, said)
				}
			})
		})
	}
}

// What the manager puts off is told from what takes long, and from what never comes: a walk wakes the manager in all of these, and
// a hop that it takes up only then passes with a warning.
func TestWakesTheManager(t *testing.T) {
	p, plan := things(t, "v1", "v2")
	for _, step := range []struct {
		behaviour string
		result    report.Result
		woken     bool
	}{{sleeps, report.Passed, true}, {locked, report.Passed, true}, {lingers, report.Passed, false}, {hangs, report.Failed, false}} {
		t.Run(step.behaviour, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.behaviour["v2"] = step.behaviour
				r, err := w.walk(t.Context(), t, p, plan, Options{})
				if err != nil {
					t.Fatal(err)
				}
				h := r.Hops[0]
				if told := strings.Contains(codes(h.Findings), code.Woken); h.Result != step.result || told != step.woken || w.called("Wake") == 0 {
					t.Errorf("%s, woken %d times: %s", h.Result, w.called("Wake"), expect.Said(h.Findings))
				}
				if told := strings.Contains(fmt.Sprint(expect.Said(h.Findings)), "waited for each other"); told != (step.behaviour == locked) {
					t.Errorf("a deadlock is told: %t", told)
				}
			})
		})
	}
	t.Run("in vain", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.behaviour["v2"] = lingers
			w.on = func(call string) error {
				if call == "Wake" {
					return errors.New("forbidden")
				}
				return nil
			}
			if r, err := w.walk(t.Context(), t, p, plan, Options{}); err != nil || r.Hops[0].Result != report.Passed {
				t.Errorf("%v: %+v", err, r.Hops)
			}
		})
	})
}

// A manager that has forgotten what is installed is reminded of it, long before it would be woken, and that is told.
func TestRemindsTheManager(t *testing.T) {
	p, plan := things(t, "v1", "v2")
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.behaviour["v2"] = forgotten
		r, err := w.walk(t.Context(), t, p, plan, Options{})
		if err != nil {
			t.Fatal(err)
		}
		h := r.Hops[0]
		if said := expect.Said(h.Findings); h.Result != report.Passed || w.called("Wake") > 0 || !strings.Contains(fmt.Sprint(said), "v2 was forgotten") {
			t.Errorf("%s: %s", h.Result, said)
		}
	})
}

// A rollback that the manager does not take up, or whose release does not come up again, is a finding.
func TestRollbackFails(t *testing.T) {
	p, plan := things(t, "v1", "v2")
	for name, on := range map[string]func(w *world) error{
		"it is not taken up":        func(*world) error { return fmt.Errorf("wait: %w", lifecycle.ErrTimeout) },
		"it does not come up again": func(w *world) error { w.behaviour["v1"] = fails; return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.behaviour["v2"] = crashes
				w.on = func(call string) error {
					if call == "Rollback" {
						return on(w)
					}
					return nil
				}
				r, err := w.walk(t.Context(), t, p, plan, Options{Rollback: true})
				if err != nil {
					t.Fatal(err)
				}
				if back := r.Hops[0].Rollback; back == nil || back.Result != report.Failed || codes(back.Findings) != code.RollbackFailed {
					t.Errorf("%+v", back)
				}
			})
		})
	}
}

// In each install mode samples are where the operator serves, in all of its namespaces; one that serves less fails.
func TestInstallModes(t *testing.T) {
	for mode, where := range map[lifecycle.Mode]string{
		lifecycle.AllNamespaces: "olmkit-samples", lifecycle.OwnNamespace: "things",
		lifecycle.SingleNamespace: "things-served", lifecycle.MultiNamespace: "things-served things-served-2",
	} {
		t.Run(string(mode), func(t *testing.T) {
			p, plan := thingsIn(t, mode, "v1", "v2", "v3")
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				if mode == lifecycle.MultiNamespace {
					w.behaviour["v3"] = servesOne
				}
				var namespaces []string
				r, err := w.walk(t.Context(), t, p, plan, Options{AfterHop: func(ctx context.Context, _ *rest.Config, h report.Hop) error {
					list := &unstructured.UnstructuredList{}
					list.SetGroupVersionKind(thingKind.GroupVersion().WithKind("ThingList"))
					err := w.List(ctx, list)
					for _, o := range list.Items {
						namespaces = append(namespaces, o.GetNamespace())
					}
					if len(list.Items) != 2*len(strings.Fields(where)) {
						t.Errorf("%s: %d objects", h.To, len(list.Items))
					}
					return err
				}})
				if err != nil {
					t.Fatal(err)
				}
				slices.Sort(namespaces)
				if got := strings.Join(slices.Compact(namespaces), " "); got != where {
					t.Errorf("the samples are in %s, want %s", got, where)
				}
				if h := r.Hops[0]; h.Result != report.Passed || codes(h.Findings) != "" || len(h.NotVerified) > 0 {
					t.Errorf("%s: %s, not verified: %s", h.Result, expect.Said(h.Findings), h.NotVerified)
				}
				if h := r.Hops[1]; mode == lifecycle.MultiNamespace && codes(h.Findings) != code.NotReconciled {
					t.Errorf("%s: %s", h.Result, expect.Said(h.Findings))
				}
				w.isEmpty(t)
			})
		})
	}
}

// eachCall walks with something done at the first of each call that a walk makes, in turn, and checks what came of it.
func eachCall(t *testing.T, do func(w *world, cancel func()) error, check func(t *testing.T, w *world, call string, r *report.Report, err error)) {
	p, plan := things(t, "v1", "v2")
	faults, err := fault.ParseInjections(fakeManager{}, "hold,trip,catalog-flapping")
	if err != nil {
		t.Fatal(err)
	}
	walk := func(n int) (calls int) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			w := newWorld()
			w.behaviour["v2"] = crashes
			seen := map[string]bool{}
			at, made := "", 0
			w.on = func(call string) error {
				w.mu.Lock()
				defer w.mu.Unlock()
				if at != "" || seen[call] {
					return nil
				}
				seen[call] = true
				if made++; made != n {
					return nil
				}
				at = call
				return do(w, cancel)
			}
			r, err := w.walk(ctx, t, p, plan, Options{Rollback: true, Faults: [][]fault.Injection{faults}})
			calls = made
			if at != "" {
				check(t, w, at, r, err)
			}
		})
		return calls
	}
	calls := walk(0)
	if calls < 15 {
		t.Fatalf("a walk makes %d calls", calls)
	}
	for n := 1; n <= calls; n++ {
		walk(n)
	}
}

// undone fails unless each fault that was made was taken back, and the cluster is as it was.
func (w *world) undone(t *testing.T, call string) {
	t.Helper()
	for _, fault := range []string{"hold", "trip"} {
		if w.called(fault) > 0 && w.called("undo "+fault) != w.called(fault) {
			t.Errorf("%s: the fault %s was made %d times and undone %d times", call, fault, w.called(fault), w.called("undo "+fault))
		}
	}
	published := ""
	for _, c := range w.calls {
		if at, is := strings.CutPrefix(c, "Publish "); is {
			published = at
		}
	}
	if published == nowhere.Address {
		t.Errorf("%s: the catalog is still hidden", call)
	}
}

// A walk that is interrupted at whatever it does ends with that, takes its faults back and leaves nothing.
func TestInterrupted(t *testing.T) {
	eachCall(t, func(_ *world, cancel func()) error { cancel(); return context.Canceled }, func(t *testing.T, w *world, call string, r *report.Report, err error) {
		cleaning := strings.HasPrefix(call, "Uninstall") || strings.HasPrefix(call, "DeleteOrphans") || strings.HasPrefix(call, "undo") || strings.HasPrefix(call, "Explain")
		if !errors.Is(err, context.Canceled) && !cleaning {
			t.Errorf("%s: it ends with %v", call, err)
		}
		w.undone(t, call)
		if !cleaning {
			w.isEmpty(t)
		}
	})
}

// A call that fails ends the walk with its error, or is a finding; what was made is taken back in both cases.
func TestBroken(t *testing.T) {
	broken := errors.New("the API server is gone")
	eachCall(t, func(*world, func()) error { return broken }, func(t *testing.T, w *world, call string, r *report.Report, err error) {
		told := err != nil && strings.Contains(err.Error(), broken.Error())
		if r != nil {
			told = told || slices.ContainsFunc(expect.Said(r.Findings), func(s string) bool { return strings.Contains(s, broken.Error()) })
			for _, h := range r.Hops {
				told = told || slices.ContainsFunc(expect.Said(h.Findings), func(s string) bool { return strings.Contains(s, broken.Error()) })
			}
		}
		if !told {
			t.Errorf("%s: nothing tells of it: %v", call, err)
		}
		w.undone(t, call)
	})
}

// Every fault that needs no cluster of its own is made at its phase and taken back, and the upgrade is what it is expected to be.
func TestFaultsInWalk(t *testing.T) {
	p, plan := things(t, "v1", "v2", "v3")
	for asked, want := range map[string]string{
		"hold": "blocked", "trip@installing": "survived", "trip@chosen": "survived", "forbidden@installing": "survived", "two-writers": "survived",
		"hostile": "survived", "two-hops": "survived", "catalog-down@chosen": "survived", "catalog-flapping@chosen": "survived", "catalog-changed@chosen": "survived",
		"cert-rotated@succeeded": "skipped", "convert-absent@succeeded": "skipped", "convert-500@succeeded": "skipped", "kill-operator@installing": "survived",
	} {
		t.Run(asked, func(t *testing.T) {
			injections, err := fault.ParseInjections(fakeManager{}, asked)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				hops := plan
				hops.Hops = plan.Hops[:1]
				if asked == "two-hops" {
					hops = plan
				}
				r, err := w.walk(t.Context(), t, p, hops, Options{Faults: [][]fault.Injection{injections}})
				if err != nil {
					t.Fatal(err)
				}
				h := r.Hops[0]
				if h.Result != report.Passed || len(h.Faults) != 1 || h.Faults[0].Outcome != want {
					t.Errorf("%s: %+v, %s", h.Result, h.Faults, expect.Said(h.Findings))
				}
				w.undone(t, asked)
				w.isEmpty(t)
			})
		})
	}
}

// A plan without hops is an installation; one that cannot be installed says so.
func TestInstallation(t *testing.T) {
	p, plan := things(t, "v1")
	for behaviour, want := range map[string]string{"": "", crashes: code.Crashed} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.behaviour["v1"] = behaviour
			r, err := w.walk(t.Context(), t, p, plan, Options{})
			if err != nil || len(r.Installations) != 1 || codes(r.Installations[0].Findings) != want {
				t.Errorf("%q: %v, %+v", behaviour, err, r)
			}
			w.isEmpty(t)
		})
	}
}

// What is on the cluster already is not touched.
func TestPreflight(t *testing.T) {
	p, plan := things(t, "v1", "v2")
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.on = func(call string) error {
			if call == "Present" {
				return errors.New("forbidden")
			}
			return nil
		}
		if _, err := w.walk(t.Context(), t, p, plan, Options{}); err == nil || !strings.Contains(err.Error(), "look for package things on cluster fake: forbidden") {
			t.Errorf("it says %v", err)
		}
		if w.called("Prepare")+w.called("Uninstall") > 0 {
			t.Errorf("it did %v", w.calls)
		}
	})
}

func crd(stored string, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	d := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "things.example.com"}}
	d.Spec.Names.Kind = "Thing"
	for _, v := range versions {
		name, deprecated := strings.CutSuffix(v, "!")
		d.Spec.Versions = append(d.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: name == stored, Deprecated: deprecated,
		})
	}
	return d
}

func testRelease(name string) *lifecycle.Release {
	r := &lifecycle.Release{Name: name, CSV: &v1alpha1.ClusterServiceVersion{}}
	var d appsv1.DeploymentSpec
	d.Template.Spec.Containers = []corev1.Container{{Image: "example.com/op:" + name}}
	r.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []v1alpha1.StrategyDeploymentSpec{{Name: "op", Spec: d}}
	return r
}

func TestSharedMode(t *testing.T) {
	const all, own, single = lifecycle.AllNamespaces, lifecycle.OwnNamespace, lifecycle.SingleNamespace
	for _, test := range []struct {
		name     string
		from, to []lifecycle.Mode
		now      lifecycle.Mode
		want     lifecycle.Mode
		shared   bool
	}{
		{"the widest", []lifecycle.Mode{all, own}, []lifecycle.Mode{all, own}, "", all, true},
		{"the widest of both", []lifecycle.Mode{all, own, single}, []lifecycle.Mode{own, single}, "", own, true},
		{"what is there stays", []lifecycle.Mode{all, own}, []lifecycle.Mode{all, own}, own, own, true},
		{"nothing in common", []lifecycle.Mode{own}, []lifecycle.Mode{all}, "", own, false},
		{"nothing at all", nil, nil, "", all, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, shared := sharedMode(test.from, test.to, test.now)
			if got != test.want || shared != test.shared {
				t.Errorf("got %s, %t", got, shared)
			}
		})
	}
}

func TestShard(t *testing.T) {
	plan := graph.Plan{LeftOut: []graph.Edge{{To: "x"}}}
	for _, to := range []string{"a", "b", "c", "d", "e"} {
		plan.Hops = append(plan.Hops, graph.Edge{To: to})
	}
	names := func(edges []graph.Edge) string {
		var s string
		for _, e := range edges {
			s += e.To
		}
		return s
	}
	for _, test := range []struct{ shard, hops, leftOut string }{
		{"0/1", "abcde", "x"}, {"0/2", "abc", "xde"}, {"1/2", "de", "xabc"}, {"1/4", "c", "xabde"}, {"4/9", "e", "xabcd"}, {"7/9", "", "xabcde"},
	} {
		s, err := ParseShard(test.shard, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := s.Take(plan)
		if names(got.Hops) != test.hops || names(got.LeftOut) != test.leftOut {
			t.Errorf("shard %s: hops %s, left out %s", test.shard, names(got.Hops), names(got.LeftOut))
		}
	}
	for _, wrong := range []string{"", "1", "2/2", "-1/2", "a/b", "1/2/3"} {
		if _, err := ParseShard(wrong, nil); err == nil {
			t.Errorf("shard %q is taken", wrong)
		}
	}
}

func TestShardOfTheEnvironment(t *testing.T) {
	for _, test := range []struct {
		shard string
		env   map[string]string
		want  Shard
		wrong string
	}{
		{"auto/4", map[string]string{"JOB_COMPLETION_INDEX": "3"}, Shard{3, 4}, ""},
		{"auto", map[string]string{"CI_NODE_INDEX": "1", "CI_NODE_TOTAL": "3"}, Shard{0, 3}, ""},
		{"auto", map[string]string{"CIRCLE_NODE_INDEX": "1", "CIRCLE_NODE_TOTAL": "3"}, Shard{1, 3}, ""},
		{"auto", map[string]string{"BUILDKITE_PARALLEL_JOB": "2", "BUILDKITE_PARALLEL_JOB_COUNT": "3"}, Shard{2, 3}, ""},
		{"auto/2", map[string]string{"CI_NODE_INDEX": "2", "CI_NODE_TOTAL": "3"}, Shard{1, 2}, ""},
		{"auto", map[string]string{"JOB_COMPLETION_INDEX": "3"}, Shard{}, "none of how many: write auto/N"},
		{"auto/3", map[string]string{"JOB_COMPLETION_INDEX": "3"}, Shard{}, "0 <= INDEX < OF"},
		{"auto", map[string]string{"CI_NODE_INDEX": "one", "CI_NODE_TOTAL": "3"}, Shard{}, `CI_NODE_INDEX is "one"`},
		{"auto", nil, Shard{}, "JOB_COMPLETION_INDEX, CI_NODE_INDEX"},
	} {
		got, err := ParseShard(test.shard, func(name string) string { return test.env[name] })
		if got != test.want || (err == nil) != (test.wrong == "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
			t.Errorf("shard %s with %v: %v, %v", test.shard, test.env, got, err)
		}
	}
}

func TestLastLines(t *testing.T) {
	if got := lastLines("a\n\nb\nc\n", 2); got != "b\nc" {
		t.Errorf("got %q", got)
	}
	if got := lastLines("started\npanic: no luck\n\ngoroutine 1 [running]:\nmain.main()\n\tmain.go:3 +0x1\n", 3); got != "panic: no luck\ngoroutine 1 [running]:\nmain.main()" {
		t.Errorf("%q", got)
	}
	if got := lastLines("", 2); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestEnd(t *testing.T) {
	w := &walk{}
	found, err := w.end(nil)
	if expect.Findings(t, found); err != nil {
		t.Errorf("of a walk that came to its end: %v", err)
	}
	found, err = w.end(fmt.Errorf("uninstall: %w", lifecycle.DeletionTimeoutError{What: []string{"Deployment/n/a", "CustomResourceDefinition/b"}, After: time.Minute}))
	if expect.Findings(t, found,
		"error U606 Deployment/n/a: it was deleted 1m0s ago and is still there, so the walk ended here",
		"error U606 CustomResourceDefinition/b: it was deleted 1m0s ago and is still there, so the walk ended here"); err != nil {
		t.Errorf("what stays is no error of the walk: %v", err)
	}
	broken := errors.New("the API server is gone")
	found, err = w.end(broken)
	if expect.Findings(t, found, "error U903 : the API server is gone"); !errors.Is(err, broken) {
		t.Errorf("the walk's error became %v", err)
	}
}
