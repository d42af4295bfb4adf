package walk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/observe"
)

// fewSteps are not worth another try to make them together: a try that fails takes as long as changing them alone.
const fewSteps = 3

// changeTogether makes those of steps that each left traces of their own under the release before, one after the other without taking one back, and then
// takes back all of them. If each leaves its traces, and all together leave no others, each was followed as before, and so it goes on with those that left the same traces as one of
// them. If not, the others are made together without those that may have left other ones. It returns the steps that are to be tried alone.
func (w *walk) changeTogether(ctx context.Context, o *newObject, resource dynamic.ResourceInterface, steps []step, was judge.New, is *judge.New) (alone []step, err error) {
	together, alone := ofTheirOwn(steps, was)
	if len(together) < 2 || o.slowest > boldLimit/2 {
		return steps, nil
	}
	there, back, err := merged(together)
	if err != nil {
		return nil, err
	}
	if mergePatch(ctx, resource, o.Name, there, metav1.DryRunAll) != nil {
		return steps, ctx.Err()
	}
	if err := w.awaitIdle(ctx, o); err != nil {
		return nil, err
	}
	if err := w.noteMoves(ctx, o, "", false); err != nil {
		return nil, err
	}
	view := w.viewOf(o.Object)
	before, err := view.ConfirmedOperands(ctx)
	if err != nil {
		return nil, err
	}
	fine, same, err := w.leaveTraces(ctx, o, resource, before, together, back, was)
	if err != nil || !same {
		if err = errors.Join(err, w.undoTogether(ctx, o, resource, before, together, back)); err != nil {
			return nil, err
		}
		suspects, others := suspected(together, fine)
		if len(others) < fewSteps {
			return steps, nil
		}
		left, err := w.changeTogether(ctx, o, resource, others, was, is)
		return slices.Concat(alone, suspects, left), err
	}
	for _, s := range together {
		is.Follows[s.Path] = judge.Surely
		o.following.moves[s.Path], o.following.traces[s.Path], o.following.shed[s.Path] = was.Moves[s.Path], was.Traces[s.Path], was.Sheds[s.Path]
		o.following.stays[s.Path], o.following.honours[s.Path] = []string{}, was.Honours[s.Path]
		if s.Entry[0] != "" {
			is.Retains[s.Path] = was.Retains[s.Path]
		}
	}
	return w.changeTogether(ctx, o, resource, alone, was, is) // they left what those left, not each other
}

// suspected separates those of steps that may have left other traces, when the first that are fine had left theirs, from the others: the next step or, as some come late, the last
// that was fine. If all were, it may be any.
func suspected(steps []step, fine int) (suspects, others []step) {
	if fine == len(steps) {
		return steps, nil
	}
	first := max(fine-1, 0)
	return steps[first : fine+1], slices.Concat(steps[:first], steps[fine+1:])
}

// ofTheirOwn separates those of steps that surely left traces under the release before which no other one of them left from the others. Where pods were
// replaced, they are of one workload. What the status, or what is made for others, told of is tried alone.
func ofTheirOwn(steps []step, was judge.New) (together, alone []step) {
	var taken []string
	fields, rolled := map[string]bool{}, ""
	for _, s := range steps {
		left := was.Traces[s.Path]
		isTaken := func(trace string) bool {
			return slices.ContainsFunc(taken, func(other string) bool { return strings.HasPrefix(trace, other) || strings.HasPrefix(other, trace) })
		}
		untraced := func(kind string) bool {
			return !slices.ContainsFunc(left, func(trace string) bool { return strings.HasPrefix(trace, kind+" ") })
		}
		field, rolls := judge.OfField(s.Path), workloadsOf(left)
		if !was.Rolls[s.Path] {
			rolls = rolled
		}
		if rolled != "" && rolls != rolled || was.Follows[s.Path] < judge.Surely || len(left) == 0 || len(was.Tells[s.Path]) > 0 || len(was.Relays[s.Path]) > 0 || fields[field] || slices.ContainsFunc(left, isTaken) || slices.ContainsFunc(was.Moves[s.Path], untraced) {
			alone = append(alone, s)
			continue
		}
		together, taken, fields[field], rolled = append(together, s), append(taken, left...), true, rolls
	}
	return together, alone
}

// workloadsOf are the workloads that traces are of, in a word.
func workloadsOf(traces []string) string {
	workloads := map[string]bool{}
	for _, trace := range traces {
		if kind, _, _ := strings.Cut(trace, " "); slices.Contains(judge.Replicated, kind) {
			workloads[trace[:strings.LastIndex(trace, " ")]] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(workloads)), ", ")
}

// merged are the patches that make all of steps, and that take all of them back.
func merged(steps []step) (there, back []byte, err error) {
	there, back = []byte("{}"), []byte("{}")
	for _, s := range steps {
		var failed error
		there, err = jsonpatch.MergeMergePatches(there, s.There)
		back, failed = jsonpatch.MergeMergePatches(back, s.Back)
		if err = errors.Join(err, failed); err != nil {
			return nil, nil, fmt.Errorf("change %s beside other fields: %w", s.Path, err)
		}
	}
	return there, back, nil
}

// leaveTraces makes each of steps, and then back, and reports whether after each what was made for o is another than before just where all steps until then
// had left traces under the release before, soon, and as before in the end, and after how many it is. It notes whether pods were replaced if they were then.
func (w *walk) leaveTraces(ctx context.Context, o *newObject, resource dynamic.ResourceInterface, before map[string]observe.Operand, steps []step, back []byte, was judge.New) (fine int, same bool, err error) {
	var want []string
	for i, s := range steps {
		want = union(want, was.Traces[s.Path])
		left := func(now map[string]observe.Operand) bool {
			return slices.Equal(o.trace(before, now), want) && hasAll(o.honours(before, now, s.wanted()), was.Honours[s.Path])
		}
		if same, err = w.comesTo(ctx, o, left, func() error { return mergePatch(ctx, resource, o.Name, s.There) }); err != nil || !same {
			return i, false, err
		}
	}
	rolling, _ := partition(steps, func(path string) bool { return was.Rolls[path] })
	if len(rolling) > 0 {
		if err := w.awaitRoll(ctx, o, rolling[0].Path, was); err != nil {
			return len(steps), false, err
		}
		for _, s := range rolling { // they are of one workload
			if rolled, known := o.following.rolls[rolling[0].Path]; known {
				o.following.rolls[s.Path] = rolled
			}
		}
	}
	before = without(before, o.needs)
	asBefore := func(now map[string]observe.Operand) bool { return !judge.Follow(before, without(now, o.needs)) }
	same, err = w.comesTo(ctx, o, asBefore, func() error { return mergePatch(ctx, resource, o.Name, back) })
	return len(steps), same, err
}

// undoTogether takes all of steps back, and notes what of that which was made for o does not follow: before each is tried alone, it has changed already.
func (w *walk) undoTogether(ctx context.Context, o *newObject, resource dynamic.ResourceInterface, before map[string]observe.Operand, steps []step, back []byte) error {
	view := w.viewOf(o.Object)
	there, err := view.RecentOperands(ctx)
	if err != nil {
		return err
	}
	if mergePatch(ctx, resource, o.Name, back) != nil { // the object is about to be deleted
		return ctx.Err()
	}
	if err := w.awaitIdle(ctx, o); err != nil {
		return err
	}
	paths := make([]string, 0, len(steps))
	for _, s := range steps {
		paths = append(paths, s.Path)
	}
	_, err = w.awaitBack(ctx, o, strings.Join(paths, judge.And), before, there)
	return err
}

// comesTo reports whether soon after change what was made for o is as wanted.
func (w *walk) comesTo(ctx context.Context, o *newObject, wanted func(now map[string]observe.Operand) bool, change func() error) (is bool, err error) {
	began := time.Now()
	if change() != nil {
		return false, ctx.Err()
	}
	view := w.viewOf(o.Object)
	err = lookUntil(ctx, boldLimit, quickPause, func() (bool, error) {
		now, err := view.RecentOperands(ctx)
		if is = err == nil && wanted(now); is {
			o.acted(time.Since(began))
		}
		return is, err
	})
	return is, err
}

// hasAll reports whether list has all of wanted.
func hasAll(list, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(name string) bool { return !slices.Contains(list, name) })
}

// union is a and b, sorted, each once.
func union(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

// trace lists which fields of what was made directly for a copy are others in after than in before, named as in judge.New.Remakes, sorted.
func (o *newObject) trace(before, after map[string]observe.Operand) []string {
	before, after = without(before, o.needs), without(after, o.needs)
	written, writtenThen := writes(before), writes(after)
	names := maps.Clone(before)
	maps.Copy(names, after)
	var trace []string
	for name, made := range names {
		if !made.Direct || made.Transient() {
			continue
		}
		fields := otherPaths(valuesByName(before[name].Content), valuesByName(after[name].Content))
		if len(fields) == 0 && written[name] != writtenThen[name] {
			fields = []string{""}
		}
		scaled := judge.Scaled(made, before) || judge.Scaled(made, after)
		for _, field := range fields {
			if !scaled || field != judge.ReplicasField {
				trace = append(trace, o.called(made)+" "+o.plain(field))
			}
		}
	}
	slices.Sort(trace)
	return slices.Compact(trace)
}

// otherPaths are the paths at which before and after say something else.
func otherPaths(before, after map[string]string) []string {
	paths := maps.Clone(before)
	maps.Copy(paths, after)
	maps.DeleteFunc(paths, func(path, _ string) bool {
		was, had := before[path]
		is, has := after[path]
		return had == has && was == is
	})
	return slices.Collect(maps.Keys(paths))
}
