package walk

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// takenLimit is how long definitions and their objects have to go when the manager deletes them.
const takenLimit = 15 * time.Second

// takenAlong has a manager that deletes definitions when it uninstalls do so while there is an object of each, as users would have
// them, and says what becomes of both. What stays then is for clean, which finds no operator any more.
func (w *walk) takenAlong(ctx context.Context) ([]finding.Finding, error) {
	taker, takes := w.Manager.(lifecycle.Taker)
	if !takes || !w.Provider.Disposable() || w.release == nil || len(w.Objects) == 0 || !w.OperatorRuns(w.release) {
		return nil, nil
	}
	step := w.options.Progress.Start("  uninstall, with objects")
	findings, err := w.takeAlong(ctx, taker)
	return findings, step.End(err)
}

func (w *walk) takeAlong(ctx context.Context, taker lifecycle.Taker) ([]finding.Finding, error) {
	kept := map[string]*observe.Object{}
	var others []*observe.Object
	for _, o := range w.Objects {
		if kept[o.CRD] == nil {
			kept[o.CRD] = o
		} else {
			others = append(others, o)
		}
	}
	w.Objects = others
	stay, err := w.remove(ctx, deletionLimit)
	if err != nil {
		return nil, err
	}
	findings := w.notGone(ctx, stay)
	if err := w.noteLastCalls(ctx); err != nil {
		return findings, err
	}
	finalizers := map[string]string{}
	for name, o := range kept {
		finalizers[name] = w.FinalizersOf(ctx, o)
	}
	if err := taker.BeginUninstall(ctx, w.Place); err != nil {
		return findings, err
	}
	left, err := w.definitionsLeft(ctx)
	if err != nil {
		return findings, err
	}
	by := w.Manager.ObjectOf(w.release.Name)
	for _, name := range w.CRDs {
		object := observe.KindCRD + "/" + name
		d, stays := left[name]
		switch {
		case kept[name] == nil:
		case stays:
			findings = append(findings, code.Finding(code.TakenHalfway, object,
				"%s after %s was deleted it is still there, with %s%s%s", takenLimit, by, kept[name], finalizers[name], deletionProblem(d)))
		default:
			findings = append(findings, code.Finding(code.TakenAlong, object, "deleting %s deleted it, and with it %s", by, kept[name]))
		}
	}
	return findings, nil
}

// definitionsLeft waits until the definitions that the walk brought are gone, and returns those that stay.
func (w *walk) definitionsLeft(ctx context.Context) (map[string]*apiextensionsv1.CustomResourceDefinition, error) {
	for deadline := time.Now().Add(takenLimit); ; {
		left := map[string]*apiextensionsv1.CustomResourceDefinition{}
		for _, name := range w.CRDs {
			var d apiextensionsv1.CustomResourceDefinition
			err := w.Client.Get(ctx, client.ObjectKey{Name: name}, &d)
			switch {
			case err == nil:
				left[name] = &d
			case !apierrors.IsNotFound(err):
				return nil, fmt.Errorf("look whether CustomResourceDefinition %s is gone: %w", name, err)
			}
		}
		if len(left) == 0 || time.Now().After(deadline) {
			return left, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// deletionProblem quotes why the API server does not delete d, "" if it does not say.
func deletionProblem(d *apiextensionsv1.CustomResourceDefinition) string {
	c := apihelpers.FindCRDCondition(d, apiextensionsv1.Terminating)
	if c == nil {
		return ""
	}
	return ": " + strings.TrimSpace(c.Reason+": "+c.Message)
}

// notGone are the findings that objects stay though they were deleted while the operator ran.
func (w *walk) notGone(ctx context.Context, stay []*observe.Object) []finding.Finding {
	var findings []finding.Finding
	for _, o := range stay {
		if o.Undeletable != nil {
			f := code.Finding(code.Uninstall, o.String(), "with %s the API server refuses to delete it: %v", w.release.Name, o.Undeletable)
			f.Fix = "let the webhook allow users to delete their objects; what must be done before belongs into a finalizer"
			findings = append(findings, f)
			continue
		}
		findings = append(findings, code.Finding(code.Uninstall, o.String(), "it was deleted, is still there, and for %s nothing else went: %s does not remove its finalizers%s",
			deletionLimit, w.release.Name, w.FinalizersOf(ctx, o)))
	}
	return findings
}
