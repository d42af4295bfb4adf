package observe

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/olmkit/olmkit/internal/compare"
)

// Snapshot is what an operator may write for the walk's objects: the objects themselves and their operands, by name.
type Snapshot map[string]map[string]any

// Look reads an object through its storage version, or writes it without a change to what it says.
type Look func(ctx context.Context, o *Object, stored dynamic.ResourceInterface) (*unstructured.Unstructured, error)

// ReadObject is a look that only reads.
func ReadObject(ctx context.Context, o *Object, stored dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
	return stored.Get(ctx, o.Name, metav1.GetOptions{})
}

// Touch is a look that writes the annotation that counts writes, and nothing else.
func Touch(ctx context.Context, o *Object, stored dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
	return o.writeTo(ctx, stored, o.Acked.Load()+1)
}

// Snapshot sees the operands, and then by look the objects that observers write. Those that cannot be read or written are told
// elsewhere.
func (c *Cluster) Snapshot(ctx context.Context, look Look) (Snapshot, error) {
	operands, err := c.Operands(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at what the operator made: %w", err)
	}
	seen := Snapshot{}
	for name, o := range operands {
		if !o.Transient() { // which Kubernetes' own controllers write
			seen[name] = maps.Clone(o.Content)
			seen[name]["metadata"] = o.Marks
		}
	}
	definitions := c.Watcher.Definitions()
	for _, o := range c.Objects {
		d := definitions[o.CRD]
		if !o.Written || d == nil {
			continue
		}
		now, err := look(ctx, o, o.At(c.Dynamic, d.Storage))
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
	all := compare.Content(o.Object)
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

// Changes names the fields that are others in after, by the name of what they are of. What came or went meanwhile is none.
func (g Snapshot) Changes(after Snapshot) map[string][]string {
	changed := map[string][]string{}
	for name, was := range g {
		is, there := after[name]
		if !there {
			continue
		}
		fields := append(compare.Lost(was, is).Fields(), compare.Lost(is, was).Fields()...)
		if slices.Sort(fields); len(fields) > 0 {
			changed[name] = slices.Compact(fields)
		}
	}
	return changed
}
