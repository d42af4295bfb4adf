package walk

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmkit/olmkit/internal/compare"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// targetKinds are the kinds of the user's workloads that an object may name to have them changed, as one that scales them does.
var targetKinds = []string{"Deployment", "StatefulSet"}

// targetsNow are the values that those of needs say now that are workloads of the user's, by the name of the original and the path; but for what Kubernetes' own controllers
// write of them.
func (w *walk) targetsNow(ctx context.Context, needs []need) (map[string]string, error) {
	all := map[string]string{}
	for _, n := range needs {
		if n.like != nil || !slices.Contains(targetKinds, n.GetKind()) {
			continue
		}
		now, err := w.Dynamic.Resource(observe.OperandResource(n.GetKind())).Namespace(n.GetNamespace()).Get(ctx, n.GetName(), metav1.GetOptions{})
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil { // it is gone, or nobody may read it
			continue
		}
		for path, value := range compare.Values(saidIn(now)) {
			if !strings.Contains(path, "deployment.kubernetes.io/") {
				all[n.original()+" "+path] = value
			}
		}
	}
	return all, nil
}

// actedOn are the fields of o's targets that say something else than before o was there, if that is known.
func (w *walk) actedOn(ctx context.Context, o *newObject) ([]string, error) {
	if len(o.targets) == 0 {
		return nil, nil
	}
	now, err := w.targetsNow(ctx, o.needs)
	return otherPaths(o.targets, now), err
}

// noteActed notes in is what the operator made of o's targets. What it made of them under the release before is waited for.
func (w *walk) noteActed(ctx context.Context, o *newObject, was judge.New, is *judge.New) error {
	if len(o.targets) == 0 {
		return nil
	}
	return lookUntil(ctx, was.Patience(), lookPause, func() (bool, error) {
		now, err := w.targetsNow(ctx, o.needs)
		is.Acted = map[string]string{}
		for _, at := range otherPaths(o.targets, now) {
			if value, says := now[at]; says && strings.Contains(at, " spec.") {
				is.Acted[at] = value
			}
		}
		return was.Acted == nil || is.ActsAs(was), err
	})
}

// noteReturned notes which of fields of its targets, which were others while o was there, are as before now that it is gone.
func (w *walk) noteReturned(ctx context.Context, o *newObject, fields []string) error {
	if len(fields) == 0 {
		return nil
	}
	silent := w.silent(ctx, o)
	return lookUntil(ctx, newLimit, lookPause, func() (bool, error) {
		left, err := w.actedOn(ctx, o)
		o.returned = map[string]bool{}
		for _, field := range fields {
			o.returned[field] = !slices.Contains(left, field)
		}
		return silent() || !slices.ContainsFunc(fields, func(field string) bool { return !o.returned[field] }), err
	})
}

// judgeGiven tells what r's operator made of the user's workloads that the samples name otherwise than that of the release called from, though nobody changed anything for that.
func (w *walk) judgeGiven(ctx context.Context, from string, r *lifecycle.Release) ([]finding.Finding, error) {
	if !w.Provider.Disposable() {
		return nil, nil
	}
	var given []need
	for _, o := range w.Objects {
		for _, named := range w.needed(o.Author, o.Namespace) {
			given = append(given, need{Unstructured: named, of: named.GetName()})
		}
	}
	now, err := w.targetsNow(ctx, given)
	if err != nil {
		return nil, err
	}
	was := w.given[from]
	w.given[r.Name] = now
	return judge.Given(from, r.Name, was, now), nil
}
