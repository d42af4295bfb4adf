package walk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/olmkit/olmkit/internal/compare"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/observe"
)

// changeTogether makes at the same time those of steps that each left traces of their own under the release before, and takes them back. If that leaves
// these traces, all of them, and no others, each was followed as before. It returns the steps that are to be tried alone: all of them, if not.
func (w *walk) changeTogether(ctx context.Context, o *newObject, resource dynamic.ResourceInterface, steps []step, was judge.New, is *judge.New) (alone []step, err error) {
	together, alone := ofTheirOwn(steps, was)
	if len(together) < 2 {
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
	if err := w.noteMoves(ctx, o, "", is.Follows[o.following.field] == judge.Surely); err != nil {
		return nil, err
	}
	for i, change := range [][]byte{there, back} {
		same, err := w.leavesTraces(ctx, o, together, was, func() error { return mergePatch(ctx, resource, o.Name, change) })
		if err != nil {
			return nil, err
		}
		if !same {
			_ = mergePatch(ctx, resource, o.Name, back) // the object is about to be deleted
			return steps, ctx.Err()
		}
		if i > 0 {
			break
		}
		if err := w.awaitRolls(ctx, o, together, was); err != nil {
			return nil, err
		}
	}
	for _, s := range together {
		is.Follows[s.Path] = judge.Surely
		o.following.moves[s.Path], o.following.traces[s.Path], o.following.shed[s.Path] = was.Moves[s.Path], was.Traces[s.Path], was.Sheds[s.Path]
	}
	return alone, nil
}

// ofTheirOwn separates those of steps that surely left traces under the release before which no other one of them left from the others.
func ofTheirOwn(steps []step, was judge.New) (together, alone []step) {
	var taken []string
	fields := map[string]bool{}
	for _, s := range steps {
		left := was.Traces[s.Path]
		isTaken := func(trace string) bool {
			return slices.ContainsFunc(taken, func(other string) bool { return strings.HasPrefix(trace, other) || strings.HasPrefix(other, trace) })
		}
		untraced := func(kind string) bool {
			return !slices.ContainsFunc(left, func(trace string) bool { return strings.HasPrefix(trace, kind+" ") })
		}
		field := judge.OfField(s.Path)
		if was.Follows[s.Path] < judge.Surely || len(left) == 0 || fields[field] || slices.ContainsFunc(left, isTaken) || slices.ContainsFunc(was.Moves[s.Path], untraced) {
			alone = append(alone, s)
			continue
		}
		together, taken, fields[field] = append(together, s), append(taken, left...), true
	}
	return together, alone
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

// leavesTraces reports whether change leaves, soon, the traces in what was made for o that each of steps left under the release before, and no others.
func (w *walk) leavesTraces(ctx context.Context, o *newObject, steps []step, was judge.New, change func() error) (same bool, err error) {
	var want []string
	for _, s := range steps {
		want = append(want, was.Traces[s.Path]...)
	}
	slices.Sort(want)
	view := w.viewOf(o.Object)
	before, err := view.Operands(ctx)
	if err != nil || change() != nil {
		return false, errors.Join(err, ctx.Err())
	}
	err = lookUntil(ctx, boldLimit, quickPause, func() (bool, error) {
		now, err := view.RecentOperands(ctx)
		same = err == nil && slices.Equal(o.trace(before, now), want)
		return same, err
	})
	return same, err
}

// awaitRolls waits, if any of steps had pods replaced under the release before, until they are, and notes for each of those whether.
func (w *walk) awaitRolls(ctx context.Context, o *newObject, steps []step, was judge.New) error {
	rolling, _ := partition(steps, func(path string) bool { return was.Rolls[path] })
	if len(rolling) == 0 {
		return nil
	}
	if err := w.awaitRoll(ctx, o, rolling[0].Path, was); err != nil {
		return err
	}
	for _, s := range rolling {
		o.following.rolls[s.Path] = o.following.rolls[rolling[0].Path]
	}
	return nil
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
		fields := otherPaths(valuesOf(before[name].Content), valuesOf(after[name].Content))
		if len(fields) == 0 && written[name] != writtenThen[name] {
			fields = []string{""}
		}
		for _, field := range fields {
			trace = append(trace, o.called(made)+" "+o.plain(field))
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

// valuesOf are all values of content by their paths, of which none is a map or a list.
func valuesOf(content map[string]any) map[string]string {
	values := map[string]string{}
	var visit func(path string, value any)
	visit = func(path string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for k, inner := range value {
				visit(compare.Join(path, k), inner)
			}
		case []any:
			for i, item := range value {
				visit(fmt.Sprintf("%s[%d]", path, i), item)
			}
		default:
			values[path] = fmt.Sprint(value)
		}
	}
	visit("", content)
	return values
}
