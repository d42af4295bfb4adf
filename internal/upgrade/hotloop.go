package upgrade

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/olmkit/olmkit/internal/finding"
)

// How long an operator has to act on a look at an object that there is nothing to do for, and how often in a row it has to
// write the same field to be called restless: what was still on its way from the upgrade itself comes to rest.
const (
	lookLimit = 1100 * time.Millisecond
	looks     = 5
)

// snapshot is what an operator may write for the walk's objects: the objects themselves and their operands, by name.
type snapshot map[string]map[string]any

// judgeHotLoop has the operator look at objects once more by a write that changes nothing of what they say, and asks whether it
// then writes in turn. Objects that no observer writes are left as they were first stored.
func (w *walk) judgeHotLoop(ctx context.Context, r *release) ([]finding.Finding, error) {
	if !w.operatorRuns(r) || !slices.ContainsFunc(w.objects, func(o *object) bool { return o.Written }) {
		return nil, nil
	}
	var restless map[string][]string
	for i := range looks {
		before, err := w.snapshot(ctx, touch)
		if err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lookLimit):
		}
		after, err := w.snapshot(ctx, readObject)
		if err != nil {
			return nil, err
		}
		changed := before.changes(after)
		if i > 0 {
			changed = both(restless, changed)
		}
		if restless = changed; len(restless) == 0 {
			return nil, nil
		}
	}
	return w.hotLoopFindings(ctx, restless)
}

// loopWindow is how long an operator that does not come to rest is watched without being asked for anything.
const loopWindow = 2 * time.Second

// hotLoopFindings tells an operator that only answers each write with one from one that keeps writing by itself: a hot loop.
func (w *walk) hotLoopFindings(ctx context.Context, restless map[string][]string) ([]finding.Finding, error) {
	before, err := w.snapshot(ctx, readObject)
	if err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(loopWindow):
	}
	after, err := w.snapshot(ctx, readObject)
	if err != nil {
		return nil, err
	}
	looping := both(restless, before.changes(after))
	var findings []finding.Finding
	for _, name := range slices.Sorted(maps.Keys(restless)) {
		f := find(codeHotLoop, name, "%d times in a row an object was written without a change to what it says, and each time the operator wrote in turn: %s", looks, strings.Join(restless[name], ", "))
		if len(looping[name]) > 0 {
			f.Message = fmt.Sprintf("reconcile hot loop: the operator keeps writing %s although nobody touches the object", strings.Join(looping[name], ", "))
			if !w.looped[name] {
				f.Severity = finding.Error
			}
			w.looped[name] = true
		}
		findings = append(findings, f)
	}
	return findings, nil
}

// look reads an object through its storage version, or writes it without a change to what it says.
type look func(ctx context.Context, o *object, stored dynamic.ResourceInterface) (*unstructured.Unstructured, error)

func readObject(ctx context.Context, o *object, stored dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
	return stored.Get(ctx, o.Name, metav1.GetOptions{})
}

func touch(ctx context.Context, o *object, stored dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
	n := o.acked.Load() + 1
	now, err := stored.Patch(ctx, o.Name, types.MergePatchType, writePatch(n), metav1.PatchOptions{FieldManager: "olmkit"})
	if err == nil {
		o.acked.Store(n)
	}
	return now, err
}

// snapshot sees the operands, and then by look the objects that observers write. Those that cannot be read or written are told
// elsewhere.
func (w *walk) snapshot(ctx context.Context, look look) (snapshot, error) {
	operands, err := w.operands(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at what the operator made: %w", err)
	}
	seen := snapshot{}
	for name, o := range operands {
		if !o.transient() { // which Kubernetes' own controllers write
			seen[name] = maps.Clone(o.Content)
			seen[name]["metadata"] = o.Marks
		}
	}
	definitions := w.watcher.definitions()
	for _, o := range w.objects {
		d := definitions[o.CRD]
		if !o.Written || d == nil {
			continue
		}
		now, err := look(ctx, o, o.at(w.dynamic, d.Storage))
		switch {
		case err == nil:
			seen[o.String()] = fullState(now)
		case ctx.Err() != nil:
			return nil, ctx.Err()
		}
	}
	return seen, nil
}

// fullState is all of o that somebody writes.
func fullState(o *unstructured.Unstructured) map[string]any {
	all := content(o.Object)
	all["metadata"] = marks(o)
	all["status"] = o.Object["status"]
	return all
}

// marks is what of an object's metadata tells that somebody wrote it.
func marks(o *unstructured.Unstructured) map[string]any {
	all := map[string]any{"generation": o.GetGeneration()}
	for name, list := range map[string]map[string]string{"labels": o.GetLabels(), "annotations": o.GetAnnotations()} {
		values := map[string]any{}
		for k, v := range list {
			values[k] = v
		}
		all[name] = values
	}
	return all
}

// changes names the fields that are others in after, by the name of what they are of. What came or went meanwhile is none.
func (g snapshot) changes(after snapshot) map[string][]string {
	changed := map[string][]string{}
	for name, was := range g {
		is, there := after[name]
		if !there {
			continue
		}
		fields := append(lost(was, is).fields(), lost(is, was).fields()...)
		if slices.Sort(fields); len(fields) > 0 {
			changed[name] = slices.Compact(fields)
		}
	}
	return changed
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
