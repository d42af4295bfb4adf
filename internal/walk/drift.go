package walk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/internal/undo"
)

// driftLimit is how long an operator of which it is not known has to put back what somebody else changes of its workloads.
const driftLimit = 3 * time.Second

// drift is a workload whose number of replicas the walk changed, as somebody with kubectl would.
type drift struct {
	operand  observe.Operand
	resource dynamic.ResourceInterface
	replicas int64 // before
}

// judgeDrift tells the workloads that r's operator leaves as somebody else changed them although the operator of the release
// called from corrected them: r does not watch what it made. answered are the objects that r's operator acts on.
func (w *walk) judgeDrift(ctx context.Context, from string, r *lifecycle.Release, answered map[string]string) ([]finding.Finding, error) {
	if w.reverts[r.Name] == nil {
		reverts, err := w.measureDrift(ctx, from, answered)
		if err != nil {
			return nil, err
		}
		w.reverts[r.Name] = reverts
	}
	var findings []finding.Finding
	for _, name := range slices.Sorted(maps.Keys(w.reverts[r.Name])) {
		if w.reverts[from][name] && !w.reverts[r.Name][name] {
			findings = append(findings, code.Finding(code.DriftStays, name,
				"somebody else changed its spec.replicas, and %s did not correct it within %s; %s did", r.Name, judge.EffectLimit, from))
		}
	}
	return findings, nil
}

// measureDrift scales the workloads of answered, and tells of each whether the operator that runs corrected it. Whether the
// release called from did says how long that is waited for.
func (w *walk) measureDrift(ctx context.Context, from string, answered map[string]string) (reverted map[string]bool, err error) {
	// A look at an object that is still under way would correct what it finds, also without a watch.
	before, err := w.AwaitRest(ctx)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(before.Operands, func(_ string, o observe.Operand) bool { return answered[o.Of] == "" })
	reverted = map[string]bool{}
	var undo undo.Stack
	defer func() {
		err = errors.Join(err, undo.Run(ctx, w.undoLimit(ctx)))
		w.takenBack = time.Now()
	}()
	changed, err := w.scaleWorkloads(ctx, before.Operands, func(name string, d drift) {
		undo.Push(func(ctx context.Context) error {
			if reverted[name] {
				return nil
			}
			return d.putBack(ctx)
		})
	})
	if err != nil {
		return nil, err
	}
	began := time.Now()
	err = w.Watcher.AtMost(ctx, judge.EffectLimit, func() (bool, error) {
		awaited := false
		for name, d := range changed {
			if reverted[name] = reverted[name] || d.isBack(ctx); !reverted[name] {
				awaited = awaited || w.reverts[from][name] || time.Since(began) < driftLimit
			}
		}
		return !awaited, nil
	})
	return reverted, err
}

// scaleWorkloads adds a replica to each of operands that was made directly for an object and is ready, and returns those that
// let it. begin is called for each before.
func (w *walk) scaleWorkloads(ctx context.Context, operands map[string]observe.Operand, begin func(string, drift)) (map[string]drift, error) {
	changed := map[string]drift{}
	for name, o := range operands {
		replicas, set, _ := unstructured.NestedInt64(o.Content, "spec", "replicas")
		if !o.Direct || o.Unready != "" || !set || replicas == 0 || !slices.Contains(judge.WorkloadKinds, o.Kind) || judge.Scaled(o, operands) {
			continue
		}
		d := drift{o, w.Dynamic.Resource(observe.OperandResource(o.Kind)).Namespace(o.Namespace), replicas}
		begin(name, d)
		if err := d.scale(ctx, replicas+1); err == nil {
			changed[name] = d
		} else if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return changed, nil
}

func (d drift) scale(ctx context.Context, replicas int64) error {
	return mergePatch(ctx, d.resource, d.operand.Name, patchOf(strings.Split(judge.ReplicasField, "."), replicas))
}

// isBack reports whether somebody put the number of replicas back.
func (d drift) isBack(ctx context.Context) bool {
	now, err := d.resource.Get(ctx, d.operand.Name, metav1.GetOptions{})
	if err != nil {
		return false
	}
	replicas, _, _ := unstructured.NestedInt64(now.Object, "spec", "replicas")
	return replicas == d.replicas
}

// putBack undoes what nobody undid.
func (d drift) putBack(ctx context.Context) error {
	if err := observe.Retry(ctx, final, func() error { return d.scale(ctx, d.replicas) }); err != nil && !final(err) {
		return fmt.Errorf("put spec.replicas of %s back: %w", d.operand, err)
	}
	return nil
}
