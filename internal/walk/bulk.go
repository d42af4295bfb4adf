package walk

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/compare"
	"github.com/olmkit/olmkit/internal/definition"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// recordRest notes what the restored objects that were not chosen say, in each version that r serves.
func (w *walk) recordRest(ctx context.Context, r *lifecycle.Release) ([]finding.Finding, error) {
	var findings []finding.Finding
	rest := w.rest(r)
	for _, crd := range slices.Sorted(maps.Keys(rest)) {
		for _, o := range rest[crd] {
			o.Views = map[string]*unstructured.Unstructured{}
		}
		for _, version := range definition.ServedVersions(r.CRD(crd)) {
			all, found, err := w.readRest(ctx, rest[crd], version, "before the upgrade, on "+r.Name)
			findings = append(findings, found...)
			if err != nil {
				return findings, err
			}
			for _, o := range rest[crd] {
				if view := all[o.Key()]; view != nil {
					o.See(version, view)
				}
			}
		}
	}
	return append(findings, w.compareRestored(r)...), nil
}

// compareRestored compares, once, what was restored with what it says on the first release. From there on that is what counts.
func (w *walk) compareRestored(r *lifecycle.Release) []finding.Finding {
	var findings []finding.Finding
	for _, o := range w.restored {
		view := o.Views[o.Version]
		if o.Compared || view == nil {
			continue
		}
		o.Compared = true
		if places := compare.Lost(compare.Content(o.Author), compare.Content(view.Object)).WithoutRewritten(); len(places) > 0 {
			findings = append(findings, judge.WithFields(code.Finding(code.LostAtOnce, o.String(), "restored as %s, on %s it comes back changed: %s", o.Version, r.Name, places), places))
		}
		author := compare.Content(view.Object)
		for _, k := range []string{"apiVersion", "kind", "metadata"} {
			author[k] = o.Author[k]
		}
		o.Author = author
	}
	return judge.Summarize(findings)
}

// readRest lists the objects' kind in a version. Where that fails it says for which objects, as far as a few tries show it.
func (w *walk) readRest(ctx context.Context, objects []*observe.Object, version, when string) (map[string]*unstructured.Unstructured, []finding.Finding, error) {
	all, err := w.ListAll(ctx, objects[0], version)
	if err == nil || ctx.Err() != nil {
		return all, nil, ctx.Err()
	}
	findings := []finding.Finding{code.Finding(code.Unreadable, "CustomResourceDefinition/"+objects[0].CRD, "%s, the list of its %d objects cannot be read as %s: %v", when, len(objects), version, err)}
	const named = 3
	for _, o := range objects {
		_, failed := o.At(w.Dynamic, version).Get(ctx, o.Name, metav1.GetOptions{})
		if ctx.Err() != nil {
			return nil, findings, ctx.Err()
		}
		if failed != nil {
			findings = append(findings, code.Finding(code.Unreadable, o.String(), "%s, it cannot be read as %s: %v", when, version, failed))
		}
		if len(findings) > named {
			break
		}
	}
	return nil, findings, nil
}

// judgeRest compares the restored objects that were not chosen, in each version that r serves, with what their users wrote and with
// what they said before the hop. After the last hop it writes each back through every version, and compares again.
func (w *walk) judgeRest(ctx context.Context, r *lifecycle.Release) ([]finding.Finding, error) {
	var findings []finding.Finding
	rest := w.rest(r)
	for _, crd := range slices.Sorted(maps.Keys(rest)) {
		step := w.options.Progress.Start("  compare %d %s objects", len(rest[crd]), rest[crd][0].Kind)
		found, err := w.judgeRestOf(ctx, r, r.CRD(crd), rest[crd])
		findings = append(findings, found...)
		if step.End(err) != nil {
			return findings, err
		}
	}
	return findings, nil
}

func (w *walk) judgeRestOf(ctx context.Context, r *lifecycle.Release, d *apiextensionsv1.CustomResourceDefinition, objects []*observe.Object) ([]finding.Finding, error) {
	storedAs, findings, err := w.storedRest(ctx, d, objects)
	if err != nil {
		return findings, err
	}
	now, read := map[string]map[string]*unstructured.Unstructured{}, true
	for _, version := range definition.ServedVersions(d) {
		all, found, err := w.readRest(ctx, objects, version, "after the upgrade to "+r.Name)
		findings = append(findings, found...)
		if err != nil {
			return findings, err
		}
		if all == nil {
			read = false
			continue
		}
		now[version] = all
		for _, o := range objects {
			view := all[o.Key()]
			if view == nil {
				findings = append(findings, code.Finding(code.ObjectGone, o.String(), "it is gone after the upgrade to %s", r.Name))
			} else if ended := deletedFinding(o, view); ended != nil {
				findings = append(findings, *ended)
			} else {
				findings = append(findings, judge.FieldFindings(o, d, version, view, storedAs[o])...)
			}
		}
	}
	if !w.lastHop || !read {
		return findings, nil
	}
	found, err := w.roundTripRest(ctx, d, objects, now)
	return append(findings, found...), err
}

// storedRest looks at what etcd holds of objects, if the cluster can tell.
func (w *walk) storedRest(ctx context.Context, d *apiextensionsv1.CustomResourceDefinition, objects []*observe.Object) (map[*observe.Object]string, []finding.Finding, error) {
	var mu sync.Mutex
	versions := map[*observe.Object]string{}
	schema := schemasOf(d)
	findings, err := findEach(ctx, objects, func(ctx context.Context, o *observe.Object) ([]finding.Finding, error) {
		version, found, err := w.judgeStored(ctx, o, schema)
		mu.Lock()
		defer mu.Unlock()
		versions[o] = version
		return found, err
	})
	slices.SortFunc(findings, func(a, b finding.Finding) int { return strings.Compare(a.Subject.Object, b.Subject.Object) })
	return versions, findings, err
}

// each calls do for all objects, several at the same time.
func each(ctx context.Context, objects []*observe.Object, do func(ctx context.Context, o *observe.Object) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(restoring)
	for _, o := range objects {
		group.Go(func() error { return do(ctx, o) })
	}
	return group.Wait()
}

// findEach returns what find finds of objects, in their order; it is called for several at the same time.
func findEach(ctx context.Context, objects []*observe.Object, find func(ctx context.Context, o *observe.Object) ([]finding.Finding, error)) ([]finding.Finding, error) {
	var mu sync.Mutex
	of := map[*observe.Object][]finding.Finding{}
	err := each(ctx, objects, func(ctx context.Context, o *observe.Object) error {
		found, err := find(ctx, o)
		mu.Lock()
		defer mu.Unlock()
		of[o] = found
		return err
	})
	var findings []finding.Finding
	for _, o := range objects {
		findings = append(findings, of[o]...)
	}
	return findings, err
}

// roundTripRest writes objects back through every version as they read there, and compares what they say before and after.
func (w *walk) roundTripRest(ctx context.Context, d *apiextensionsv1.CustomResourceDefinition, objects []*observe.Object, before map[string]map[string]*unstructured.Unstructured) ([]finding.Finding, error) {
	var findings []finding.Finding
	last := maps.Clone(before)
	for _, version := range definition.ServedVersions(d) {
		var mu sync.Mutex
		err := each(ctx, objects, func(ctx context.Context, o *observe.Object) error {
			err := w.writeBack(ctx, o, version, last[version][o.Key()])
			if err == nil || ctx.Err() != nil || apierrors.IsNotFound(err) {
				return ctx.Err()
			}
			mu.Lock()
			defer mu.Unlock()
			findings = append(findings, code.Finding(code.RoundTrip, o.String(), "read as %s and written back unchanged, it is refused: %v", version, err))
			return nil
		})
		if err != nil {
			return findings, err
		}
		for _, v := range definition.ServedVersions(d) {
			after, found, err := w.readRest(ctx, objects, v, "after all were written back through "+version)
			findings = append(findings, found...)
			if err != nil {
				return findings, err
			}
			last[v] = after
			for _, o := range objects {
				was, is := before[v][o.Key()], after[o.Key()]
				if was == nil || is == nil {
					continue
				}
				if places := compare.Lost(compare.Content(was.Object), compare.Content(is.Object)); len(places) > 0 {
					findings = append(findings, judge.WithFields(code.Finding(code.RoundTrip, o.String(), "read as %s and written back unchanged, it then says as %s: %s", version, v, places), places))
				}
			}
		}
		if len(findings) > 0 {
			break
		}
	}
	slices.SortStableFunc(findings, func(a, b finding.Finding) int { return strings.Compare(a.Subject.Object, b.Subject.Object) })
	return findings, nil
}

// writeBack writes o through version as it reads there: as it was last listed, unless it is not so any more.
func (w *walk) writeBack(ctx context.Context, o *observe.Object, version string, listed *unstructured.Unstructured) error {
	if listed != nil {
		if _, err := o.At(w.Dynamic, version).Update(ctx, listed, metav1.UpdateOptions{FieldManager: "olmkit"}); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return observe.Retry(ctx, final, func() error {
		view, err := o.At(w.Dynamic, version).Get(ctx, o.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		_, err = o.At(w.Dynamic, version).Update(ctx, view, metav1.UpdateOptions{FieldManager: "olmkit"})
		return err
	})
}
