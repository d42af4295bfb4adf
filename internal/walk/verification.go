package walk

import (
	"context"
	"slices"
	"time"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/internal/report"
)

// verification notes what the walk does before and after the lifecycle manager installs a release, and how long each part takes: the
// walk's own share of a hop.
type verification struct {
	resumed time.Time // since when the release is installed
	since   time.Time // since when the part that is under way is
	parts   []report.Phase
}

// begin forgets what was noted before.
func (v *verification) begin() {
	v.parts = nil
	v.resume()
}

// resume goes on after what is not the walk's own.
func (v *verification) resume() { v.resumed, v.since = time.Now(), time.Now() }

// did notes that the part called name took the time since the part before.
func (v *verification) did(name string) {
	took := observe.Seconds(time.Since(v.since))
	v.since = time.Now()
	if i := slices.IndexFunc(v.parts, func(p report.Phase) bool { return p.Name == name }); i >= 0 {
		v.parts[i].Seconds += took
		return
	}
	v.parts = append(v.parts, report.Phase{Name: name, Seconds: took})
}

// judgeExits judges whether the process of r's operator ended while the walk verified it. That of the release called from may have done
// the same.
func (w *walk) judgeExits(ctx context.Context, from string, r *lifecycle.Release) ([]finding.Finding, error) {
	list, err := w.Exits(ctx, r, w.verified.resumed)
	if len(list) == 0 {
		return nil, err
	}
	last := list[len(list)-1]
	lost := linesWith(w.logged(ctx, w.Place.Namespace+"/"+last.Name), "election lost")
	known := w.exits[from] || from == r.Name
	w.exits[r.Name] = true
	return []finding.Finding{judge.Exit(r.Name, last, known, lost)}, err
}
