package walk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
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
	// holdLimit is how long what is done about held pods is waited for. New pods are let onto the nodes again mostHeld after all of these are
	// tainted, although copies are not made yet; undoing that may take undoHold.
	holdLimit = 3 * time.Second
	mostHeld  = 2 * holdLimit
	undoHold  = 20 * time.Second
	// promptly is how soon an operator that watches what it makes tells of what runs; one that waits for a while, whatever runs, tells later.
	promptly = 2 * time.Second
)

// holding is the taint that keeps new pods off a node.
var holding = corev1.Taint{Key: "olmkit.dev/held", Effect: corev1.TaintEffectNoSchedule}

// holds reports whether pods are to be held while r's operator deals with new objects: on a cluster that goes with the walk, if it is not known
// that no status tells of them. A DaemonSet would look as if it wanted no pods.
func (w *walk) holds(ctx context.Context, r *lifecycle.Release) (bool, error) {
	if !slices.ContainsFunc(r.CRDs, func(d *apiextensionsv1.CustomResourceDefinition) bool { return w.mayWait(d.Name) }) {
		return false, nil
	}
	return w.mayHold(ctx)
}

// mayHold reports whether pods can be held.
func (w *walk) mayHold(ctx context.Context) (bool, error) {
	if !w.Provider.Disposable() {
		return false, nil
	}
	operands, err := w.RecentOperands(ctx)
	for _, made := range operands {
		if made.Kind == "DaemonSet" {
			return false, err
		}
	}
	return err == nil, err
}

// mayWait reports whether the status of an object of crd may tell of its pods: it did with any release, or nobody has looked yet.
func (w *walk) mayWait(crd string) bool {
	known := false
	for _, created := range w.created {
		n, looked := created[crd]
		if n.Readiness.Waits() {
			return true
		}
		known = known || looked
	}
	return !known
}

// whileHeld calls do while no pod that is new gets onto a node, though not for longer than limit.
func (w *walk) whileHeld(ctx context.Context, limit time.Duration, do func() error) (err error) {
	var nodes corev1.NodeList
	if err := w.Client.List(ctx, &nodes); err != nil {
		return fmt.Errorf("list nodes to keep pods off: %w", err)
	}
	var undo undo.Stack
	release := sync.OnceValue(func() error { return undo.Run(ctx, undoHold) })
	defer func() { err = errors.Join(err, release()) }()
	for i := range nodes.Items {
		name := nodes.Items[i].Name
		undo.Push(func(ctx context.Context) error { return w.taint(ctx, name, false) })
		if err := w.taint(ctx, name, true); err != nil {
			return err
		}
	}
	defer time.AfterFunc(limit, func() { _ = release() }).Stop() // whose error is told in the end
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

// read are those of copies of which the status is to be noted, as they are now, without those that cannot be read: their operator may delete what it
// does not want.
func (w *walk) read(ctx context.Context, copies []*newObject) map[*newObject]*unstructured.Unstructured {
	read := map[*newObject]*unstructured.Unstructured{}
	for _, o := range copies {
		if !o.held || o.noted {
			continue
		}
		if now, err := o.At(w.Dynamic, o.Version).Get(ctx, o.Name, metav1.GetOptions{}); err == nil {
			read[o] = now
		}
	}
	return read
}

// seeHeld waits, though not for long, until what was made for each of copies waits for its pods, its status tells something, and nobody writes any
// more. What it tells is noted.
func (w *walk) seeHeld(ctx context.Context, copies []*newObject) error {
	copies = slices.DeleteFunc(slices.Clone(copies), func(o *newObject) bool { return !w.mayWait(o.CRD) })
	view := w.viewOf()
	same := map[*newObject]func(string) bool{}
	for _, o := range copies {
		o.held = true
		view.Objects, same[o] = append(view.Objects, o.Object), sameFor(idleFor)
	}
	return lookUntil(ctx, holdLimit, lookPause, func() (bool, error) {
		statuses := w.read(ctx, copies)
		operands, err := view.RecentOperands(ctx)
		if err != nil {
			return false, err
		}
		still := len(statuses) == len(copies)
		for o, now := range statuses {
			if err := w.note(ctx, o, now, operands); err != nil {
				return false, err
			}
			versions := versionsOf(now, operands, func(made observe.Operand) bool { return made.Of == o.String() })
			still = same[o](versions) && o.readiness.Unready && len(o.readiness.Before) > 0 && still
		}
		return still, ctx.Err()
	})
}

// pods are those that were made for an object: how many are ready, whether more are to be, and whether any is on a node.
type pods struct {
	ready          int64
	wanted, placed bool
}

// podsOf are the pods among operands that were made for the object called name.
func podsOf(name string, operands map[string]observe.Operand) (p pods) {
	for _, made := range operands {
		switch {
		case made.Of != name:
		case made.Kind == "Pod":
			node, _, _ := unstructured.NestedString(made.Content, "spec", "nodeName")
			p.placed = p.placed || node != ""
		case slices.Contains(judge.Replicated, made.Kind):
			p.ready += made.Running
			p.wanted = p.wanted || made.Unready != ""
		}
	}
	return p
}

// held reports whether pods are wanted, and none is on a node.
func (p pods) held() bool { return p.wanted && !p.placed && p.ready == 0 }

// note notes what the status of a copy whose pods were held tells as long as none of them is on a node, what then, and since when they are ready.
// The status was read as now says, and operands after that: what is on no node yet was on none then.
func (w *walk) note(ctx context.Context, o *newObject, now *unstructured.Unstructured, operands map[string]observe.Operand) error {
	if !o.held || o.noted || now == nil {
		return nil
	}
	words := o.healthOf(now)
	is := podsOf(o.String(), operands)
	if is.held() && !maps.Equal(words, o.readiness.Before) { // what watches told may be late
		view := w.viewOf(o.Object)
		operands, err := view.Operands(ctx)
		if err != nil {
			return err
		}
		is = podsOf(o.String(), operands)
	}
	o.placed = o.placed || is.placed
	if is.ready > o.running {
		o.running, o.ran = is.ready, time.Now()
	}
	if is.held() && !o.placed {
		o.readiness.Unready, o.readiness.Before = true, words
	}
	if !maps.Equal(words, o.readiness.Then) {
		o.readiness.Then, o.told = words, time.Now()
	}
	o.readiness.Prompt = !o.ran.IsZero() && o.told.Sub(o.ran) < promptly
	return nil
}

// healthOf is what the status of a copy, as it is now, tells of its health, by path, with the same word for the name of each copy.
func (o *newObject) healthOf(now *unstructured.Unstructured) map[string]string {
	status, _, _ := unstructured.NestedMap(now.Object, "status")
	words := map[string]string{}
	for path, word := range judge.HealthWords(status) {
		words[o.plain(path)] = word
	}
	return words
}
