package walk

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/observe"
)

// logLimit is how late the audit log may be.
const logLimit = 2 * time.Second

// readyToPart waits, though not for ever, until what was made for a copy is as ready as it was: an operator saves nothing of what does not run. Where
// nothing came of that under the release before, or nobody would know, it is not waited for.
func (w *walk) readyToPart(ctx context.Context, o *newObject, was judge.New) error {
	limit := newLimit
	if _, audited := w.Provider.(observe.Auditor); !audited || was.Parted && len(was.Lasting) == 0 {
		limit = 0
	}
	view := w.viewOf(o.Object)
	return lookUntil(ctx, limit, quickPause, func() (bool, error) {
		operands, err := view.RecentOperands(ctx)
		o.remember(operands)
		o.parts = err == nil && o.isReady(operands)
		return o.parts, err
	})
}

// remember notes that operands were made for a copy.
func (o *newObject) remember(operands map[string]observe.Operand) {
	if o.had == nil {
		o.had = map[string]observe.Operand{}
	}
	maps.Copy(o.had, operands)
	o.orders.see(operands)
}

// isReady reports whether among operands what was ready of a copy is.
func (o *newObject) isReady(operands map[string]observe.Operand) bool {
	for name, made := range operands {
		if !made.Transient() && made.Unready != "" && slices.Contains(o.ready, name) {
			return false
		}
	}
	return true
}

// notePartings notes in created what the operator made since began, when copies that are gone by now were asked to go: a backup, or a Job that cleans
// up. What was made under the release before, as before says, is waited for. Nothing is known without an audit log, or of a copy that was not ready.
func (w *walk) notePartings(ctx context.Context, copies []*newObject, began time.Time, before, created map[string]judge.New) error {
	copies = slices.DeleteFunc(copies, func(o *newObject) bool { return !o.parts })
	if len(copies) == 0 {
		return nil
	}
	asked := time.Now()
	return lookUntil(ctx, judge.EffectLimit, lookPause, func() (done bool, err error) {
		log, mine, err := w.auditOf(ctx, w.release, began)
		if err != nil || mine == nil {
			return true, err
		}
		resources, made := observe.Made(log, mine), observe.Creations(log, mine)
		done = true
		for _, o := range copies {
			is := created[o.key()]
			if is.Parted = o.goneBy(log); is.Parted {
				is.Partings = resources
				if is.Lasting, err = w.lasting(ctx, o, made); err != nil {
					return true, err
				}
			}
			created[o.key()] = is
			awaited := !is.Parted && time.Since(asked) < logLimit || len(is.Unsaved(before[o.key()])) > 0
			done = done && !awaited
		}
		return done, nil
	})
}

// goneBy reports whether log, which may be late, goes on until somebody heard that the copy is gone.
func (o *newObject) goneBy(log []auditv1.Event) bool {
	return slices.ContainsFunc(log, func(e auditv1.Event) bool {
		of := e.ObjectRef
		return of != nil && of.Resource == o.Resource.Resource && of.Name == o.Name && e.Verb == "delete" && e.ResponseStatus != nil && e.ResponseStatus.Code == http.StatusNotFound
	})
}

// lasting are the resources of which one among made, which has the copy's name in its own, outlasts the copy, sorted: it belongs to nobody, or it is a
// Job and there were none before, for what the walk did last. What there was before is only made again, as pods are.
func (w *walk) lasting(ctx context.Context, o *newObject, made []observe.Creation) ([]string, error) {
	resources := map[string]bool{}
	for _, m := range made {
		if !strings.Contains(m.Name, o.Name) || m.Resource == "pods" || o.hadBefore(m) {
			continue
		}
		now, err := w.Dynamic.Resource(m.GroupVersionResource).Namespace(m.Namespace).Get(ctx, m.Name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		if m.GroupResource() == jobs && !o.hadJobs() || err == nil && len(now.GetOwnerReferences()) == 0 {
			resources[m.GroupResource().String()] = true
		}
	}
	return slices.Sorted(maps.Keys(resources)), nil
}

var jobs = schema.GroupResource{Group: "batch", Resource: "jobs"}

// hadBefore reports whether m was there before the copy was asked to go.
func (o *newObject) hadBefore(m observe.Creation) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(o.had)), func(had observe.Operand) bool { return madeAs(had, m) })
}

// madeAs reports whether made has the name of c and is of its resource.
func madeAs(made observe.Operand, c observe.Creation) bool {
	return made.Name == c.Name && observe.OperandResource(made.Kind).GroupResource() == c.GroupResource()
}

// hadJobs reports whether any Job was made for the copy before it was asked to go.
func (o *newObject) hadJobs() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(o.had)), func(had observe.Operand) bool { return had.Kind == "Job" })
}
