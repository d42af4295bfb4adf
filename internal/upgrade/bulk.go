package upgrade

import (
	"context"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmkit/olmkit/internal/finding"
)

// recordRest notes what the restored objects that were not chosen say, in each version that r serves.
func (w *walk) recordRest(ctx context.Context, r *release) ([]finding.Finding, error) {
	var findings []finding.Finding
	rest := w.rest(r)
	for _, crd := range slices.Sorted(maps.Keys(rest)) {
		for _, o := range rest[crd] {
			o.Views = map[string]*unstructured.Unstructured{}
		}
		for _, version := range served(r.CRD(crd)) {
			all, found, err := w.readRest(ctx, rest[crd], version, "before the upgrade, on "+r.Name)
			findings = append(findings, found...)
			if err != nil {
				return findings, err
			}
			for _, o := range rest[crd] {
				if view := all[o.key()]; view != nil {
					o.Views[version] = view
				}
			}
		}
	}
	return append(findings, w.compareRestored(r)...), nil
}

// key is how listed objects are found.
func (o *object) key() string { return o.Namespace + "/" + o.Name }

// compareRestored compares, once, what was restored with what it says on the first release. From there on that is what counts.
func (w *walk) compareRestored(r *release) []finding.Finding {
	var findings []finding.Finding
	for _, o := range w.restored {
		view := o.Views[o.Version]
		if o.compared || view == nil {
			continue
		}
		o.compared = true
		if places := lost(content(o.Author), content(view.Object)); len(places) > 0 {
			findings = append(findings, find(codeLostAtOnce, o.String(), "restored as %s, on %s it comes back changed: %s", o.Version, r.Name, places))
		}
		author := content(view.Object)
		for _, k := range []string{"apiVersion", "kind", "metadata"} {
			author[k] = o.Author[k]
		}
		o.Author = author
	}
	return summarize(findings)
}

// readRest lists the objects' kind in a version. Where that fails it says for which objects, as far as a few tries show it.
func (w *walk) readRest(ctx context.Context, objects []*object, version, when string) (map[string]*unstructured.Unstructured, []finding.Finding, error) {
	all, err := w.listAll(ctx, objects[0], version)
	if err == nil || ctx.Err() != nil {
		return all, nil, ctx.Err()
	}
	findings := []finding.Finding{find(codeUnreadable, "CustomResourceDefinition/"+objects[0].CRD, "%s, the list of its %d objects cannot be read as %s: %v", when, len(objects), version, err)}
	const named = 3
	for _, o := range objects {
		_, failed := o.at(w.dynamic, version).Get(ctx, o.Name, metav1.GetOptions{})
		if ctx.Err() != nil {
			return nil, findings, ctx.Err()
		}
		if failed != nil {
			findings = append(findings, find(codeUnreadable, o.String(), "%s, it cannot be read as %s: %v", when, version, failed))
		}
		if len(findings) > named {
			break
		}
	}
	return nil, findings, nil
}

// judgeRest compares the restored objects that were not chosen, in each version that r serves, with what their users wrote and with
// what they said before the hop. After the last hop it writes each back through every version, and compares again.
func (w *walk) judgeRest(ctx context.Context, r *release) ([]finding.Finding, error) {
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

func (w *walk) judgeRestOf(ctx context.Context, r *release, d *apiextensionsv1.CustomResourceDefinition, objects []*object) ([]finding.Finding, error) {
	storedAs, findings, err := w.storedRest(ctx, d, objects)
	if err != nil {
		return findings, err
	}
	now, read := map[string]map[string]*unstructured.Unstructured{}, true
	for _, version := range served(d) {
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
			view := all[o.key()]
			switch {
			case view == nil:
				findings = append(findings, find(codeObjectGone, o.String(), "it is gone after the upgrade to %s", r.Name))
			case view.GetUID() != o.UID:
				findings = append(findings, find(codeObjectGone, o.String(), "it was deleted and made anew during the upgrade: its UID is another"))
			default:
				findings = append(findings, fieldFindings(o, d, version, view, storedAs[o])...)
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
func (w *walk) storedRest(ctx context.Context, d *apiextensionsv1.CustomResourceDefinition, objects []*object) (map[*object]string, []finding.Finding, error) {
	var mu sync.Mutex
	versions := map[*object]string{}
	var findings []finding.Finding
	err := each(ctx, objects, func(ctx context.Context, o *object) error {
		version, found, err := w.judgeStored(ctx, o, d)
		mu.Lock()
		defer mu.Unlock()
		versions[o] = version
		findings = append(findings, found...)
		return err
	})
	slices.SortFunc(findings, func(a, b finding.Finding) int { return strings.Compare(a.Subject.Object, b.Subject.Object) })
	return versions, findings, err
}

// each calls do for all objects, several at the same time.
func each(ctx context.Context, objects []*object, do func(ctx context.Context, o *object) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(restoring)
	for _, o := range objects {
		group.Go(func() error { return do(ctx, o) })
	}
	return group.Wait()
}

// roundTripRest writes objects back through every version as they read there, and compares what they say before and after.
func (w *walk) roundTripRest(ctx context.Context, d *apiextensionsv1.CustomResourceDefinition, objects []*object, before map[string]map[string]*unstructured.Unstructured) ([]finding.Finding, error) {
	var findings []finding.Finding
	for _, version := range served(d) {
		var mu sync.Mutex
		err := each(ctx, objects, func(ctx context.Context, o *object) error {
			err := w.writeBack(ctx, o, version)
			if err == nil || ctx.Err() != nil || apierrors.IsNotFound(err) {
				return ctx.Err()
			}
			mu.Lock()
			defer mu.Unlock()
			findings = append(findings, find(codeRoundTrip, o.String(), "read as %s and written back unchanged, it is refused: %v", version, err))
			return nil
		})
		if err != nil {
			return findings, err
		}
		for _, v := range served(d) {
			after, found, err := w.readRest(ctx, objects, v, "after all were written back through "+version)
			findings = append(findings, found...)
			if err != nil {
				return findings, err
			}
			for _, o := range objects {
				was, is := before[v][o.key()], after[o.key()]
				if was == nil || is == nil {
					continue
				}
				if places := lost(content(was.Object), content(is.Object)); len(places) > 0 {
					findings = append(findings, withFields(find(codeRoundTrip, o.String(), "read as %s and written back unchanged, it then says as %s: %s", version, v, places), places))
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

// writeBack writes o through version as it reads there.
func (w *walk) writeBack(ctx context.Context, o *object, version string) error {
	return retry(ctx, func(err error) bool { return refused(err) || apierrors.IsNotFound(err) }, func() error {
		view, err := o.at(w.dynamic, version).Get(ctx, o.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		_, err = o.at(w.dynamic, version).Update(ctx, view, metav1.UpdateOptions{FieldManager: "olmkit"})
		return err
	})
}

// values are the values in what findings say of fields.
var values = regexp.MustCompile(` was (?s:.*?) and is (?:gone|"(?:[^"\\]|\\.)*"|[^;]*)`)

// summarize makes one finding of those that say the same of the same fields of several objects, whatever their values are.
func summarize(findings []finding.Finding) []finding.Finding {
	const named = 5
	var kept []finding.Finding
	at, others := map[string]int{}, map[int][]string{}
	for _, f := range findings {
		kind, _, _ := strings.Cut(f.Subject.Object, "/")
		said := strings.ReplaceAll(f.Message, `"`+path.Base(f.Subject.Object)+`"`, "…")
		key := strings.Join([]string{f.Code, string(f.Severity), kind, f.Cause, values.ReplaceAllString(said, " was … and is …")}, "\n")
		i, known := at[key]
		switch {
		case !known:
			at[key] = len(kept)
			kept = append(kept, f)
		case f.Subject.Object != kept[i].Subject.Object:
			others[i] = append(others[i], f.Subject.Object)
		}
	}
	for i, objects := range others {
		kept[i].Message += fmt.Sprintf("; the same of %d more: %s", len(objects), strings.Join(objects[:min(named, len(objects))], ", "))
		if len(objects) > named {
			kept[i].Message += ", …"
		}
	}
	return kept
}
