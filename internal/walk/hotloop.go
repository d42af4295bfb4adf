package walk

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// How long an operator has at least to act on a look at an object that there is nothing to do for, and at most if it was slow to act
// on a change, and how often in a row it has to write the same field to be called restless: what was still on its way from the
// upgrade itself comes to rest.
const (
	lookLimit     = 1100 * time.Millisecond
	slowLookLimit = 6 * time.Second
	looks         = 5
)

// lookFor is how long to wait for what an operator does about a look if acted is how long it took to act on a change.
func lookFor(acted time.Duration) time.Duration {
	return min(max(lookLimit, 2*acted), slowLookLimit)
}

// touched is what there was at the moment in which objects were written without a change to what they say.
type touched struct {
	observe.Snapshot
	at time.Time
}

// touch has r's operator look at objects once more by a write that changes nothing of what they say. Objects that no observer
// writes are left as they were first stored. It returns nil if there is nobody to look, or nothing to look at.
func (w *walk) touch(ctx context.Context, r *lifecycle.Release) (*touched, error) {
	if !w.OperatorRuns(r) || !slices.ContainsFunc(w.Objects, func(o *observe.Object) bool { return o.Written }) {
		return nil, nil
	}
	before, err := w.lookAt(ctx, observe.Touch)
	return &touched{before, time.Now()}, err
}

// lookAt is a snapshot in which objects also have how many Events of each reason there are of them.
func (w *walk) lookAt(ctx context.Context, look observe.Look) (observe.Snapshot, error) {
	counts, err := w.EventCounts(ctx) // before the look, about which there may be some at once
	if err != nil {
		return nil, err
	}
	seen, err := w.Snapshot(ctx, look)
	if err != nil {
		return nil, err
	}
	for _, o := range w.Objects {
		if is := seen[o.String()]; is != nil && counts[o.UID] != nil {
			is[told] = counts[o.UID]
		}
	}
	return seen, nil
}

// told is where a snapshot has an object's Events.
const told = "Event"

// judgeHotLoop asks whether r's operator writes in turn when it looks at objects, also when it does so again and again. The first look
// was had by a touch, since which anything may have gone on elsewhere. What an operator does that was installed, so that from is r, is no
// matter of an upgrade.
func (w *walk) judgeHotLoop(ctx context.Context, from, r *lifecycle.Release, look *touched) ([]finding.Finding, error) {
	var restless map[string][]string
	for i := 0; i < looks && look != nil; i++ {
		if i > 0 {
			var err error
			if look, err = w.touch(ctx, r); err != nil {
				return nil, err
			}
		}
		if err := sleep(ctx, lookFor(w.acted)-time.Since(look.at)); err != nil {
			return nil, err
		}
		after, err := w.lookAt(ctx, observe.ReadObject)
		if err != nil {
			return nil, err
		}
		changed := look.Changes(after)
		if err := w.dropHandedOn(ctx, changed); err != nil {
			return nil, err
		}
		if i > 0 {
			changed = both(restless, changed)
		}
		if restless = changed; len(restless) == 0 {
			return nil, nil
		}
	}
	return w.hotLoopFindings(ctx, w.withoutTold(restless, from.Name, r.Name), from == r)
}

// withoutTold is restless without the Events that the operator of the release called from sent as well, or that of the one that was installed: some send one whenever they look at an
// object. It notes those of the release called to.
func (w *walk) withoutTold(restless map[string][]string, from, to string) map[string][]string {
	others := map[string][]string{}
	for name, fields := range restless {
		for _, field := range fields {
			isTold := strings.HasPrefix(field, told+".")
			if isTold {
				w.tells[to+name] = append(w.tells[to+name], field)
			}
			if !isTold || from != to && !slices.Contains(w.tells[from+name], field) {
				others[name] = append(others[name], field)
			}
		}
	}
	return others
}

// dropHandedOn takes out of changed that an operator hands on to what it makes the annotation by which writes of its objects are counted. Where that
// reaches pods, each write would roll these out, so that the writes of such an object are not counted any more.
func (w *walk) dropHandedOn(ctx context.Context, changed map[string][]string) error {
	const annotation = "metadata.annotations." + observe.Writes
	if len(changed) == 0 {
		return nil
	}
	operands, err := w.RecentOperands(ctx)
	if err != nil {
		return err
	}
	for name, fields := range changed {
		made, is := operands[name]
		isHanded := func(field string) bool { return strings.HasSuffix(field, annotation) }
		if !is || !slices.ContainsFunc(fields, isHanded) {
			continue
		}
		if slices.ContainsFunc(fields, func(field string) bool { return isHanded(field) && field != annotation }) {
			w.leaveUncounted(made.Of)
		}
		// A Deployment's generation counts what its annotations say, too: k8s.io/kubernetes v1.36.3 pkg/registry/apps/deployment/strategy.go.
		others := slices.DeleteFunc(slices.Clone(fields), func(field string) bool { return field == "metadata.generation" || isHanded(field) })
		if changed[name] = others; len(others) == 0 {
			delete(changed, name)
		}
	}
	return nil
}

// leaveUncounted has the writes of the object called name change nothing from now on.
func (w *walk) leaveUncounted(name string) {
	for _, o := range w.Objects {
		if o.String() == name && !o.Uncounted.Swap(true) {
			w.notes = append(w.notes, fmt.Sprintf("writes of %s change nothing, because its operator hands annotations on to pods, which each would roll out: whether writes are lost is not verified", o))
		}
	}
}

// summing matches fields of a status that tell which state of all of an object, with its annotations, its operator has seen.
var summing = observe.Compiled(`^status\..*(?i:version|hash|checksum|digest)$`)

// loopWindow is how long an operator that does not come to rest is watched without being asked for anything.
const loopWindow = 2 * time.Second

// hotLoopFindings tells an operator that only answers each write with one from one that keeps writing by itself: a hot loop, which known says to
// be of no upgrade.
func (w *walk) hotLoopFindings(ctx context.Context, restless map[string][]string, known bool) ([]finding.Finding, error) {
	if len(restless) == 0 {
		return nil, nil
	}
	before, err := w.lookAt(ctx, observe.ReadObject)
	if err != nil {
		return nil, err
	}
	if err := sleep(ctx, loopWindow); err != nil {
		return nil, err
	}
	after, err := w.lookAt(ctx, observe.ReadObject)
	if err != nil {
		return nil, err
	}
	looping := both(restless, before.Changes(after))
	var findings []finding.Finding
	for _, name := range slices.Sorted(maps.Keys(restless)) {
		fields := slices.DeleteFunc(slices.Clone(restless[name]), summing().MatchString)
		if len(fields)+len(looping[name]) == 0 {
			continue
		}
		f := code.Finding(code.HotLoop, name, "%d times in a row an object was written without a change to what it says, and each time the operator wrote in turn: %s", looks, inWords(fields))
		if len(looping[name]) > 0 {
			f.Message = fmt.Sprintf("reconcile hot loop: the operator keeps writing %s although nobody touches the object", inWords(looping[name]))
			before := w.looped[name]
			if !known && slices.ContainsFunc(looping[name], func(field string) bool { return !slices.Contains(before, field) }) {
				f.Severity = finding.Error
			}
			w.looped[name] = append(before, looping[name]...)
		}
		findings = append(findings, f)
	}
	return findings, nil
}

// inWords are fields in the words of a finding.
func inWords(fields []string) string {
	return strings.ReplaceAll(strings.Join(fields, ", "), told+".", told+" ")
}

// both is what a and b have in common.
func both(a, b map[string][]string) map[string][]string {
	common := map[string][]string{}
	for name, fields := range a {
		shared := slices.DeleteFunc(slices.Clone(fields), func(f string) bool { return !slices.Contains(b[name], f) })
		if len(shared) > 0 {
			common[name] = shared
		}
	}
	return common
}
