package walk

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/internal/report"
)

// An operator that ends when users change their objects is not one that works, unless the one before did the same, or it had to end.
func TestExit(t *testing.T) {
	p, plan := things(t, "v1", "v2")
	for name, c := range map[string]struct {
		before, after, said string
		want                finding.Severity
	}{
		"it ends":                   {"", exits, "", finding.Error},
		"it ends as the one before": {exits, exits, "", finding.Warning},
		"it lost its lock":          {"", exits, "E1 leader election lost", finding.Warning},
		"the one before ended":      {exits, "", "", ""},
		"nobody ends":               {"", "", "", ""},
		"what it runs ends":         {"", operandsExit, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.behaviour["v1"], w.behaviour["v2"], w.said = c.before, c.after, c.said
				var got finding.Severity
				for _, f := range w.firstHop(t, p, plan).Findings {
					if f.Code == code.Exits {
						got = f.Severity
						if !strings.Contains(f.Message, "exit code 2") || c.said != "" && !strings.Contains(f.Cause, c.said) {
							t.Errorf("it says %q, %q", f.Message, f.Cause)
						}
					}
				}
				if got != c.want {
					t.Errorf("%q, want %q", got, c.want)
				}
			})
		})
	}
}

// A sample is changed once under each release, however many samples come later.
func TestAskedOnce(t *testing.T) {
	p, plan := things(t, "v1", "v2")
	synctest.Test(t, func(t *testing.T) {
		world := newWorld()
		w := world.connect(t, p, plan, Options{})
		r := w.releases["v1"]
		if _, refused, err := w.installation(t.Context(), r); err != nil || refused != nil {
			t.Fatal(refused, err)
		}
		defer func() {
			if err := errors.Join(w.cleanup(t.Context()), w.Manager.Uninstall(t.Context(), w.Place, nil, time.Minute)); err != nil {
				t.Error(err)
			}
			w.unwatch()
			time.Sleep(5 * time.Second)
		}()
		writes := func(from string) bool {
			before := world.writes
			if _, _, err := w.verifyReconciled(t.Context(), from, r, nil, observe.Leadership{}); err != nil {
				t.Fatal(err)
			}
			return world.writes > before
		}
		if writes("v1") {
			t.Error("what v1 was asked about is changed again")
		}
		if !writes("v0") {
			t.Error("after an upgrade nothing is changed")
		}
	})
}

// The walk tells its own share of an installation and of a hop: what it does of itself, in the order in which it does it.
func TestOwnShare(t *testing.T) {
	p, plan := things(t, "v1", "v2")
	synctest.Test(t, func(t *testing.T) {
		r, err := newWorld().walk(t.Context(), t, p, plan, Options{})
		if err != nil {
			t.Fatal(err)
		}
		names := func(parts []report.Phase) (all string) {
			for _, part := range parts {
				all += part.Name + "; "
			}
			return all
		}
		if got := names(r.Installations[0].Verification); got != "samples; changes; drift; new objects; rest; metrics; requests and logs; " {
			t.Errorf("of the installation: %s", got)
		}
		if got := names(r.Hops[0].Verification); got != "before; objects; changes; drift; new objects; rest; metrics; health; requests and logs; " {
			t.Errorf("of the hop: %s", got)
		}
		share := 0.0
		for _, part := range r.Hops[0].Verification {
			share += part.Seconds
		}
		// The world's operator acts at once, so all of it is olmkit's.
		if share > (6 * time.Second).Seconds() {
			t.Errorf("of a hop of %.1f s %.1f s are the walk's own share: %v", r.Hops[0].Seconds, share, r.Hops[0].Verification)
		}
	})
}

// The report names the kinds of which there is no sample.
func TestNoSample(t *testing.T) {
	p, plan := packageOf(t, lifecycle.AllNamespaces, `[{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"size":1}}]`, []string{"v1", "v2"}, thingDefinition, holderDefinition)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.holders = true
		r, err := w.walk(t.Context(), t, p, plan, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"CustomResourceDefinition/holders.example.com"}; !slices.Equal(r.Installations[0].NoSample, want) {
			t.Errorf("%q, want %q", r.Installations[0].NoSample, want)
		}
	})
}
