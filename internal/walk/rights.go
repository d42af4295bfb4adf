package walk

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/internal/rbac"
	"github.com/olmkit/olmkit/internal/report"
)

// calls are what ServiceAccounts of a release asked for, by their names.
type calls map[string]map[rbac.Call]bool

// noteCalls notes what log says that r's operator asked for since it was installed. Of pods that were simulated nothing is known.
func (w *walk) noteCalls(log []auditv1.Event, r *lifecycle.Release) {
	if r == nil || !w.OperatorRuns(r) {
		return
	}
	if w.calls[r.Name] == nil {
		w.calls[r.Name] = calls{}
		w.measured = append(w.measured, r)
	}
	everywhere := w.Place.Mode == lifecycle.AllNamespaces // where OLM makes ClusterRoles of Roles
	who := observe.Known(observe.Asker(r, w.Place.Namespace, w.Watcher.OperatorPods(), w.began[r.Name], time.Time{}))
	for _, e := range log {
		_, account, ok := strings.Cut(who(e), "/")
		if !ok {
			continue
		}
		for _, c := range rbac.Calls(e) {
			c.Local = everywhere || c.Namespace == w.Place.Namespace || slices.Contains(w.Place.Targets, c.Namespace)
			if w.calls[r.Name][account] == nil {
				w.calls[r.Name][account] = map[rbac.Call]bool{}
			}
			w.calls[r.Name][account][c] = true
		}
	}
}

// noteLastCalls notes what the installed operator asked for until now.
func (w *walk) noteLastCalls(ctx context.Context) error {
	auditor, ok := w.Provider.(observe.Auditor)
	if !ok || w.release == nil {
		return nil
	}
	log, err := auditor.Audit(ctx, w.freshSince)
	if err != nil {
		return fmt.Errorf("ask what the operator asked for: %w", err)
	}
	w.noteCalls(log, w.release)
	return nil
}

// access tells what the releases' ServiceAccounts did with their rights, the newest release last: a plan may come to an older one
// after it.
func (w *walk) access() []report.Access {
	slices.SortStableFunc(w.measured, func(a, b *lifecycle.Release) int { return a.CSV.Spec.Version.Compare(b.CSV.Spec.Version.Version) })
	var list []report.Access
	for _, r := range w.measured {
		for _, account := range r.Permitted("") {
			account = strings.TrimPrefix(account, "/")
			a := rbac.Measure(r.CSV, account, slices.Collect(maps.Keys(w.calls[r.Name][account])), w.serves)
			a.Package = w.pkg.Name
			list = append(list, a)
		}
	}
	return list
}

// serves reports whether the cluster has a resource, or had it as long as the package was installed.
func (w *walk) serves(group, resource string) bool {
	for _, r := range w.releases {
		if r.CRD(resource+"."+group) != nil {
			return true
		}
	}
	_, err := w.Client.RESTMapper().ResourcesFor(schema.GroupVersionResource{Group: group, Resource: resource})
	return !meta.IsNoMatchError(err)
}
