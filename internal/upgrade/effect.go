package upgrade

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/olmkit/olmkit/internal/finding"
)

// How long an operator has to show all that it does about a change: where it is known from the release before what that is,
// and where it is not.
const (
	effectLimit  = 30 * time.Second
	newEffectFor = 5 * time.Second
)

// effect is what an operator did when the walk changed an object.
type effect struct {
	Change    string              // the path of the field that was changed
	Status    bool                // the object's status changed
	Workloads map[string][]string // the fields of workloads that changed, by the workload's name
}

// workloadKinds are the operands that run something.
var workloadKinds = []string{"Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job"}

// replicasField is the field that operators set by what an object counts.
const replicasField = "spec.replicas"

// effectOf is what is seen of the object called name between before and now, after its field change was changed.
func effectOf(name, change string, before, now seen) effect {
	e := effect{Change: change, Workloads: map[string][]string{}}
	e.Status = !reflect.DeepEqual(before.snapshot[name], now.snapshot[name])
	for operand, fields := range before.changes(now.snapshot) {
		kind, _, _ := strings.Cut(operand, "/")
		if before.of[operand] != name || !slices.Contains(workloadKinds, kind) {
			continue
		}
		fields = slices.DeleteFunc(fields, func(f string) bool { return strings.HasPrefix(f, "metadata.") })
		if len(fields) > 0 {
			e.Workloads[operand] = fields
		}
	}
	return e
}

// lacks says what of e, which an earlier release did, is not seen of now, in the words of a finding; nil if nothing. there
// are the operands that there are now. Other fields than the number of replicas are as good as each other: how a release
// writes a template is its own matter.
func (e effect) lacks(now effect, there map[string]operand) []string {
	if e.Change != now.Change || !ofSpec(e.Change) {
		return nil
	}
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(e.Workloads)) {
		counts := slices.Contains(e.Workloads[name], replicasField)
		follows := func(workload string) bool {
			fields := now.Workloads[workload]
			return len(fields) > 0 && (!counts || slices.Contains(fields, replicasField))
		}
		instead := insteadOf(name, follows, e, now)
		_, stays := there[name]
		switch {
		case follows(name), instead != "" && !stays:
		case instead != "":
			missing = append(missing, fmt.Sprintf("it does not change %s any more, and leaves it behind: %s changes in its place", name, instead))
		default:
			missing = append(missing, fmt.Sprintf("it does not change %s of %s any more", strings.Join(e.Workloads[name], ", "), name))
		}
	}
	if e.Status && !now.Status {
		missing = append(missing, "it does not change the object's status any more")
	}
	return missing
}

// ofSpec reports whether field is one that users ask for something by.
func ofSpec(field string) bool { return strings.HasPrefix(field, "spec.") }

// insteadOf names the workload of name's kind that follows now and that e does not know, or "".
func insteadOf(name string, follows func(string) bool, e, now effect) string {
	kind, _, _ := strings.Cut(name, "/")
	for _, other := range slices.Sorted(maps.Keys(now.Workloads)) {
		if e.Workloads[other] == nil && strings.HasPrefix(other, kind+"/") && follows(other) {
			return other
		}
	}
	return ""
}

// with is e and what other saw besides.
func (e effect) with(other effect) effect {
	if e.Change != other.Change {
		return other
	}
	e.Status = e.Status || other.Status
	e.Workloads = maps.Clone(e.Workloads)
	maps.Copy(e.Workloads, other.Workloads)
	return e
}

// compareEffects waits until all that the release called from did about the changes of n is seen again since before, though
// not for ever, and tells what is not. What no release did yet is given some time to come to rest.
func (w *walk) compareEffects(ctx context.Context, from string, r *release, n nudged, before seen) ([]finding.Finding, error) {
	began, effects := time.Now(), map[string]effect{}
	var now seen
	err := w.watcher.atMost(ctx, effectLimit, func() (done bool, err error) {
		if now, err = w.state(ctx); err != nil {
			return false, err
		}
		done = true
		for name, field := range n.changed {
			if n.answered[name] == "" {
				continue
			}
			effects[name] = effectOf(name, field, before, now)
			if e, known := w.effects[from][name]; known && e.Change == field {
				done = done && e.lacks(effects[name], now.operands) == nil
			} else if done && time.Since(began) < newEffectFor {
				done, err = w.rests(ctx, name, now.operands)
			}
		}
		return done, err
	})
	return w.judgeEffects(from, r.Name, effects, now.operands), err
}

// rests reports whether the object called name is well, and what was made for it is ready.
func (w *walk) rests(ctx context.Context, name string, operands map[string]operand) (bool, error) {
	for _, o := range operands {
		if o.Of == name && !o.transient() && o.Unready != "" {
			return false, nil
		}
	}
	i := slices.IndexFunc(w.objects, func(o *object) bool { return o.String() == name })
	return w.well(ctx, w.objects[i])
}

// judgeEffects compares what the operator of the release called to did about the walk's changes, by object, with what that of
// from did, and notes it for the releases that follow. there are the operands that there are now.
func (w *walk) judgeEffects(from, to string, effects map[string]effect, there map[string]operand) []finding.Finding {
	var findings []finding.Finding
	noted := w.effects[to]
	if noted == nil {
		noted = map[string]effect{}
		w.effects[to] = noted
	}
	for _, name := range slices.Sorted(maps.Keys(effects)) {
		was, now := w.effects[from][name], effects[name]
		if missing := was.lacks(now, there); from != to && len(missing) > 0 {
			findings = append(findings, find(codeDoesLess, name, "%s does less for it than %s: within %s of a change of its %s %s",
				to, from, effectLimit, now.Change, strings.Join(missing, "; ")))
		}
		noted[name] = noted[name].with(now)
	}
	return findings
}
