package upgrade

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/report"
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
				t.Errorf("%s → %s %s: %s, not verified: %s", h.From, h.To, h.Result, said(h.Findings), h.NotVerified)
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
		if r.Cluster.OLM != "v9" || len(r.Installations) != 1 || r.Installations[0].Result != report.Passed || codes(r.Findings) != codeDiffersFromFresh && codes(r.Findings) != "" {
			t.Errorf("%+v, %+v, %s", r.Cluster, r.Installations, said(r.Findings))
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
		never: codeNotChosen, hangs: codeNotSucceeded, stays: codeOldVersionStays, fails: codePlanFailed, waits: codeUnmet,
		crashes: codeCrashed, crashesBy: codeObjectsRefused, isRefused: codeNotSucceeded, idles: codeNotReconciled,
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
					t.Errorf("%s: %s", h.Result, said(h.Findings))
				}
				if back := h.Rollback; back == nil || back.Result != report.Passed || back.Objects == 0 {
					t.Errorf("the rollback: %+v", back)
				}
				// What cannot be upgraded to may be installed afresh all the same; here it cannot, or does not reconcile.
				if next := r.Hops[1]; behaviour != idles && (next.Result != report.Failed || codes(next.Findings) != codeBaseFailed) {
					t.Errorf("the next hop: %s %s", next.Result, said(next.Findings))
				}
				w.isEmpty(t)
			})
		})
	}
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
				if back := r.Hops[0].Rollback; back == nil || back.Result != report.Failed || codes(back.Findings) != codeRollbackFailed {
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
					t.Errorf("%s: %s, not verified: %s", h.Result, said(h.Findings), h.NotVerified)
				}
				if h := r.Hops[1]; mode == lifecycle.MultiNamespace && codes(h.Findings) != codeNotReconciled {
					t.Errorf("%s: %s", h.Result, said(h.Findings))
				}
				w.isEmpty(t)
			})
		})
	}
}

// eachCall walks with something done at the first of each call that a walk makes, in turn, and checks what came of it.
func eachCall(t *testing.T, do func(w *world, cancel func()) error, check func(t *testing.T, w *world, call string, r *report.Report, err error)) {
	p, plan := things(t, "v1", "v2")
	faults, err := ParseInjections(fakeManager{}, "hold,trip,catalog-flapping")
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
			r, err := w.walk(ctx, t, p, plan, Options{Rollback: true, Faults: [][]Injection{faults}})
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
			told = told || slices.ContainsFunc(said(r.Findings), func(s string) bool { return strings.Contains(s, broken.Error()) })
			for _, h := range r.Hops {
				told = told || slices.ContainsFunc(said(h.Findings), func(s string) bool { return strings.Contains(s, broken.Error()) })
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
	for fault, want := range map[string]string{
		"hold": "blocked", "trip@installing": "survived", "trip@chosen": "survived", "forbidden@installing": "survived", "two-writers": "survived",
		"hostile": "survived", "two-hops": "survived", "catalog-down@chosen": "survived", "catalog-flapping@chosen": "survived", "catalog-changed@chosen": "survived",
		"cert-rotated@succeeded": "skipped", "convert-absent@succeeded": "skipped", "convert-500@succeeded": "skipped", "kill-operator@installing": "survived",
	} {
		t.Run(fault, func(t *testing.T) {
			injections, err := ParseInjections(fakeManager{}, fault)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				hops := plan
				hops.Hops = plan.Hops[:1]
				if fault == "two-hops" {
					hops = plan
				}
				r, err := w.walk(t.Context(), t, p, hops, Options{Faults: [][]Injection{injections}})
				if err != nil {
					t.Fatal(err)
				}
				h := r.Hops[0]
				if h.Result != report.Passed || len(h.Faults) != 1 || h.Faults[0].Outcome != want {
					t.Errorf("%s: %+v, %s", h.Result, h.Faults, said(h.Findings))
				}
				w.undone(t, fault)
				w.isEmpty(t)
			})
		})
	}
}

// A plan without hops is an installation; one that cannot be installed says so.
func TestInstallation(t *testing.T) {
	p, plan := things(t, "v1")
	for behaviour, want := range map[string]string{"": "", crashes: codeCrashed} {
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
