package walk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/internal/undo"
)

const (
	// holdLimit is how long new pods are kept off the nodes at most, and undoHold how long it may take to let them on again.
	holdLimit = 3 * time.Second
	undoHold  = 20 * time.Second
	// promptly is how soon an operator that watches what it makes tells of what runs; one that waits for a while, whatever runs, tells later.
	promptly = 2 * time.Second
)

// holding is the taint that keeps new pods off a node.
var holding = corev1.Taint{Key: "olmkit.dev/held", Effect: corev1.TaintEffectNoSchedule}

// holds reports whether pods are to be held while r's operator deals with new objects: on a cluster that goes with the walk, and unless it is
// known that the release called from tells nothing of them.
func (w *walk) holds(from string, r *lifecycle.Release) bool {
	if !w.Provider.Disposable() {
		return false
	}
	for _, was := range w.created[from] {
		if was.Readiness.Waits() {
			return true
		}
	}
	return from == r.Name
}

// whileHeld calls do while no pod that is new gets onto a node.
func (w *walk) whileHeld(ctx context.Context, do func() error) (err error) {
	var nodes corev1.NodeList
	if err := w.Client.List(ctx, &nodes); err != nil {
		return fmt.Errorf("list nodes to keep pods off: %w", err)
	}
	var undo undo.Stack
	defer func() { err = errors.Join(err, undo.Run(ctx, undoHold)) }()
	for i := range nodes.Items {
		name := nodes.Items[i].Name
		undo.Push(func(ctx context.Context) error { return w.taint(ctx, name, false) })
		if err := w.taint(ctx, name, true); err != nil {
			return err
		}
	}
	return do()
}

// taint gives a node the taint that holds pods, or takes it away.
func (w *walk) taint(ctx context.Context, name string, wanted bool) error {
	err := observe.Retry(ctx, apierrors.IsNotFound, func() error {
		var node corev1.Node
		if err := w.Client.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
			return err
		}
		before := client.MergeFromWithOptions(node.DeepCopy(), client.MergeFromWithOptimisticLock{})
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == holding.Key })
		if wanted {
			node.Spec.Taints = append(node.Spec.Taints, holding)
		}
		return w.Client.Patch(ctx, &node, before)
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("keep pods off node %s, or let them on again: %w", name, err)
	}
	return nil
}

// seeHeld waits, though not for long, until what was made for each of copies waits for its pods and nobody writes any more, and notes in them what
// their statuses tell then.
func (w *walk) seeHeld(ctx context.Context, copies []*newObject) error {
	view := w.viewOf()
	for _, o := range copies {
		view.Objects = append(view.Objects, o.Object)
	}
	same := sameFor(idleFor)
	return lookUntil(ctx, holdLimit, lookPause, func() (bool, error) {
		operands, err := view.RecentOperands(ctx)
		if err != nil {
			return false, err
		}
		versions, all := "", true
		for _, o := range copies {
			now, err := o.At(w.Dynamic, o.Version).Get(ctx, o.Name, metav1.GetOptions{})
			if err != nil {
				return false, ctx.Err() // its operator may delete what it does not want
			}
			status, _, _ := unstructured.NestedMap(now.Object, "status")
			o.readiness = judge.Readiness{Unready: noneRuns(o.String(), operands), Before: judge.HealthWords(status)}
			versions += " " + now.GetResourceVersion()
			all = all && o.readiness.Unready && len(o.readiness.Before) > 0
		}
		for _, name := range slices.Sorted(maps.Keys(operands)) {
			versions += " " + operands[name].ResourceVersion
		}
		return same(versions) && all, nil
	})
}

// noneRuns reports whether something among operands runs pods for the object called name, and does not yet, and nothing does already.
func noneRuns(name string, operands map[string]observe.Operand) bool {
	waits := false
	for _, made := range operands {
		if made.Of != name || made.Kind == "Job" || made.Kind == "CronJob" || !slices.Contains(judge.WorkloadKinds, made.Kind) {
			continue
		}
		if made.Unready == "" {
			return false
		}
		waits = true
	}
	return waits
}

// note notes what the status of a copy whose pods were held tells by now, since when, and since when they run.
func (o *newObject) note(now *unstructured.Unstructured, operands map[string]observe.Operand) {
	if !o.readiness.Unready {
		return
	}
	status, _, _ := unstructured.NestedMap(now.Object, "status")
	if words := judge.HealthWords(status); !maps.Equal(words, o.readiness.Then) {
		o.readiness.Then, o.told = words, time.Now()
	}
	if o.ran.IsZero() && !noneRuns(o.String(), operands) {
		o.ran = time.Now()
	}
}

// seeReady notes in is what the status of a copy whose pods were held tells, now that they run.
func (w *walk) seeReady(ctx context.Context, o *newObject, is *judge.New) error {
	if !o.readiness.Unready {
		return nil
	}
	if err := w.awaitIdle(ctx, o); err != nil {
		return err
	}
	o.rested = true
	is.Readiness = o.readiness
	is.Readiness.Prompt = !o.ran.IsZero() && o.told.Sub(o.ran) < promptly
	return nil
}
