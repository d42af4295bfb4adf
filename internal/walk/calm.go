package walk

import (
	"context"
	"fmt"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// How long an operator that may not come to rest is left alone first, and then is watched, in how many parts.
const (
	calmPause = time.Second
	calmPart  = 2 * time.Second
	calmParts = 3
)

const (
	// quietFor is how long an operator that usually is quick does nothing until it is at rest, and silentFor until nothing more comes of what nobody asked of it before.
	quietFor  = 120 * time.Millisecond
	silentFor = 3 * quietFor
	// quietUse is how much of a processor it uses in that time at most: to look at one object takes more.
	quietUse = 500 * time.Microsecond
)

// usage is how much of a processor an operator has used at a time.
type usage struct {
	at      time.Time
	used    time.Duration
	metered bool // used is known
}

func (w *walk) usageNow(ctx context.Context) usage {
	used, metered := w.Used(ctx, w.release)
	return usage{time.Now(), used, metered}
}

// quiet reports whether the operator surely did nothing since began.
func (u usage) quiet(began usage) bool {
	return u.metered && began.metered && u.used >= began.used && u.used-began.used <= quietUse
}

// calm is a time in which versions of what an operator takes care of stayed the same.
type calm struct {
	versions    string
	began, over usage
	quiet       usage // since when the operator did nothing
}

// goesOn notes what the versions and the operator's usage are now.
func (c *calm) goesOn(versions string, now usage) {
	if versions != c.versions {
		*c = calm{versions: versions, began: now, quiet: now}
	}
	if c.over = now; !now.quiet(c.quiet) {
		c.quiet = now
	}
}

// lasted reports whether nothing changed for idle, or for a moment in which an operator that usually is quick did nothing.
func (c calm) lasted(idle time.Duration, quick bool) bool {
	return c.over.at.Sub(c.began.at) >= idle || quick && c.silent(quietFor)
}

// silent reports whether the operator has surely done nothing for a time.
func (c calm) silent(lasting time.Duration) bool { return c.over.at.Sub(c.quiet.at) >= lasting }

// silence tells, whenever it is asked, whether the operator that runs has surely done nothing for a while now.
func (w *walk) silence(ctx context.Context) func() bool {
	var since calm
	return func() bool {
		since.goesOn("the operator", w.usageNow(ctx))
		return since.silent(silentFor)
	}
}

// auditedWork asks the audit log, if there is one, what r's operator wrote since began, and returns a function that tells what it did in a time.
func (w *walk) auditedWork(ctx context.Context, r *lifecycle.Release, began time.Time) (func(from, to usage) judge.Work, error) {
	log, mine, err := w.auditOf(ctx, r, began)
	if err != nil || mine == nil {
		return nil, err
	}
	return func(from, to usage) judge.Work {
		used := to.used - from.used // less than nothing when a container began anew
		return judge.Work{
			Seconds: to.at.Sub(from.at).Seconds(), Writes: observe.CountWrites(log, mine, from.at, to.at),
			Used: used.Seconds(), Metered: from.metered && to.metered && used >= 0,
		}
	}, nil
}

// auditOf returns what the API server was asked since began, and a function that tells which of that r's operator asked: nil without an audit log.
func (w *walk) auditOf(ctx context.Context, r *lifecycle.Release, began time.Time) ([]auditv1.Event, func(auditv1.Event) string, error) {
	auditor, ok := w.Provider.(observe.Auditor)
	if !ok {
		return nil, nil, nil
	}
	log, err := auditor.Audit(ctx, began)
	if err != nil {
		return nil, nil, fmt.Errorf("ask what the operator wrote: %w", err)
	}
	return log, observe.Known(observe.Asker(r, w.Place.Namespace, w.Watcher.OperatorPods(), began, time.Time{})), nil
}

// judgeCalm judges whether r's operator comes to rest, by what it did in the times in which nothing changed while new objects were tried. Who is
// suspected is watched for a while without being asked for anything, which is compared with what the operator of the release called from did while
// it was tried.
func (w *walk) judgeCalm(ctx context.Context, from string, r *lifecycle.Release) ([]finding.Finding, error) {
	if calms := w.calms; len(calms) > 0 {
		w.calms = nil
		if err := w.measureCalm(ctx, r, calms); err != nil {
			return nil, err
		}
	}
	if from == r.Name { // what was installed does is no matter of an upgrade
		return nil, nil
	}
	return judge.Restless(from, r.Name, w.worked[from], w.idled[r.Name]), nil
}

// measureCalm notes what r's operator did while it was tried and, if what it did in calms gives reason to look, once it was left alone.
func (w *walk) measureCalm(ctx context.Context, r *lifecycle.Release, calms []calm) error {
	first, last := calms[0].began, calms[len(calms)-1].over
	did, err := w.auditedWork(ctx, r, first.at)
	if err != nil || did == nil {
		return err
	}
	var moments []judge.Work
	for _, c := range calms {
		moments = append(moments, did(c.began, c.over))
	}
	if judge.Enough(moments) {
		w.worked[r.Name] = did(first, last)
	}
	if judge.Suspected(moments) {
		w.idled[r.Name], err = w.watchIdle(ctx, r)
	}
	return err
}

// watchIdle tells what r's operator does in each part of a time in which nobody asks it for anything, nothing if it comes to rest.
func (w *walk) watchIdle(ctx context.Context, r *lifecycle.Release) (parts []judge.Work, err error) {
	if err := sleep(ctx, calmPause); err != nil {
		return nil, err
	}
	began := w.usageNow(ctx)
	for range calmParts {
		if err := sleep(ctx, calmPart); err != nil {
			return nil, err
		}
		over := w.usageNow(ctx)
		did, err := w.auditedWork(ctx, r, began.at)
		if err != nil || did == nil || !did(began, over).Hot() {
			return nil, err
		}
		parts, began = append(parts, did(began, over)), over
	}
	return parts, nil
}
