package walk

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/observe"
)

// readyToPart waits, though not for ever, until what was made for a copy is as ready as it was, and notes what there is then: an operator saves
// nothing of what does not run. Where nothing came of that under the release before, nobody waits.
func (w *walk) readyToPart(ctx context.Context, o *newObject, was judge.New) error {
	limit := newLimit
	if was.Parted && len(was.Partings) == 0 {
		limit = 0
	}
	view := w.viewOf(o.Object)
	return lookUntil(ctx, limit, quickPause, func() (bool, error) {
		operands, err := view.RecentOperands(ctx)
		if err != nil || !o.isReady(operands) {
			return false, err
		}
		o.had = operands
		return true, nil
	})
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
// up. Nothing is known where there is no audit log, or it is late, or of a copy that was not ready.
func (w *walk) notePartings(ctx context.Context, copies []*newObject, began time.Time, created map[string]judge.New) error {
	auditor, ok := w.Provider.(observe.Auditor)
	copies = slices.DeleteFunc(copies, func(o *newObject) bool { return o.had == nil })
	if !ok || len(copies) == 0 {
		return nil
	}
	log, err := auditor.Audit(ctx, began)
	if err != nil {
		return fmt.Errorf("ask what the operator made for deleted objects: %w", err)
	}
	made := observe.Creations(log, observe.Known(observe.Asker(w.release, w.Place.Namespace, w.Watcher.OperatorPods(), began, time.Time{})))
	for _, o := range copies {
		if is := created[o.CRD]; o.goneBy(log) {
			is.Parted, is.Partings = true, o.partings(made)
			created[o.CRD] = is
		}
	}
	return nil
}

// goneBy reports whether log, which may be late, goes on until somebody heard that the copy is gone.
func (o *newObject) goneBy(log []auditv1.Event) bool {
	return slices.ContainsFunc(log, func(e auditv1.Event) bool {
		of := e.ObjectRef
		return of != nil && of.Resource == o.Resource.Resource && of.Name == o.Name && e.Verb == "delete" && e.ResponseStatus != nil && e.ResponseStatus.Code == http.StatusNotFound
	})
}

// partings are the resources of which one among made has the copy's name in its own, sorted. What there was before is only made again, as pods are.
func (o *newObject) partings(made []observe.Creation) []string {
	resources := map[string]bool{}
	for _, m := range made {
		again := slices.ContainsFunc(slices.Collect(maps.Values(o.had)), func(had observe.Operand) bool {
			return had.Name == m.Name && observe.OperandResource(had.Kind).GroupResource() == m.GroupResource()
		})
		if strings.Contains(m.Name, o.Name) && !again && m.Resource != "pods" {
			resources[m.GroupResource().String()] = true
		}
	}
	return slices.Sorted(maps.Keys(resources))
}
