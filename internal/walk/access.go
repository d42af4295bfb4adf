package walk

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// judgeAccess judges what the API server refused the operator of to since started, and what it would refuse from now on. What
// it refused the operator of from before that is told apart. earlier is what could be told of from then. smooth says whether the
// installation of to came to its end, and no fault disturbed it.
func (w *walk) judgeAccess(ctx context.Context, from, to *lifecycle.Release, started time.Time, earlier observe.Evidence, smooth bool) ([]finding.Finding, error) {
	if from == nil {
		w.freshSince = started
	}
	w.began[to.Name] = started
	local := func(namespace string) bool {
		return namespace == w.Place.Namespace || slices.Contains(w.Place.Targets, namespace)
	}
	auditor, ok := w.Provider.(observe.Auditor)
	if !ok {
		list, err := w.ObservedRefusals(ctx, from, to, started, earlier)
		return judge.RefusalFindings(list, earlier.Refused, to, started, local), err
	}
	log, err := auditor.Audit(ctx, w.freshSince)
	if err != nil {
		return nil, fmt.Errorf("ask what the API server refused the operator: %w", err)
	}
	w.noteCalls(log, from)
	w.noteCalls(log, to)
	// What an object there is refused for is its long name, or that the namespace goes.
	log = slices.DeleteFunc(log, func(e auditv1.Event) bool {
		return e.ObjectRef != nil && strings.HasPrefix(e.ObjectRef.Namespace, newNamespaces)
	})
	pods := w.Watcher.OperatorPods()
	mine := observe.Asker(to, w.Place.Namespace, pods, started, time.Time{})
	if !smooth {
		mine = observe.Known(mine)
	}
	list, err := w.StillForbidden(ctx, observe.Refusals(log, mine))
	if err != nil {
		return nil, err
	}
	lapsed, err := w.Lapsed(ctx, observe.Uses(log, mine))
	if err != nil {
		return nil, err
	}
	list = append(list, lapsed...)
	var before []observe.Refusal
	if from != nil {
		before = observe.Refusals(log, observe.Asker(from, w.Place.Namespace, pods, w.began[from.Name], started))
		lost, err := w.Lost(ctx, to, observe.Uses(log, observe.Asker(to, w.Place.Namespace, nil, time.Time{}, started)), list)
		if err != nil {
			return nil, err
		}
		list = append(list, lost...)
	}
	if list, err = observe.WithInformers(list, func(a observe.Access) (bool, error) { return w.Allowed(ctx, a) }); err != nil {
		return nil, err
	}
	for i, r := range list {
		if r.Code == code.Invalid {
			list[i].Fields = r.ChangedFields(w.Live(ctx, r))
		}
	}
	return judge.RefusalFindings(list, before, to, started, local), nil
}
