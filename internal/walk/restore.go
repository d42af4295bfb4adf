package walk

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/compare"
	"github.com/olmkit/olmkit/internal/definition"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/internal/progress"
)

// Restored is what a walk restores of another cluster, in place of making samples.
type Restored struct {
	// Definitions are as they are there, with status.storedVersions.
	Definitions []*apiextensionsv1.CustomResourceDefinition
	// Objects have status and all, each in the version in which it is stored.
	Objects []*unstructured.Unstructured
	Mode    lifecycle.Mode // in which the package is installed, in the namespace of the walk's options
	Targets []string       // the namespaces that it serves in place of its own, or none
	Notes   []string       // what is otherwise than there, for the report
	// Redacted says that the objects have other values than there, so that it is no finding if they are refused.
	Redacted bool
}

// restoring is how many objects are restored, written or judged at the same time.
const restoring = 8

// restoreKind restores the objects of d, which r has brought: those stored in older versions first. From the moment in which the
// operator has dealt with these, d stores in its own version again, so that they stay as they are.
func (w *walk) restoreKind(ctx context.Context, r *lifecycle.Release, d *apiextensionsv1.CustomResourceDefinition) ([]finding.Finding, error) {
	if w.restoredKinds[d.Name] {
		return nil, nil
	}
	w.restoredKinds[d.Name] = true
	versions, objects := w.toRestore(d)
	var findings []finding.Finding
	for _, version := range versions {
		step := w.options.Progress.Start("  restore %d %s objects stored as %s", len(objects[version]), d.Spec.Names.Kind, version)
		found, err := w.restoreAs(ctx, r, d, version, objects[version], step)
		findings = append(findings, found...)
		if step.End(err) != nil {
			return findings, fmt.Errorf("restore the objects of CustomResourceDefinition %s: %w", d.Name, err)
		}
	}
	return w.withoutRedacted(judge.Summarize(findings)), w.restoreStored(ctx, d)
}

// withoutRedacted makes notes of what is found of objects that are refused as they were redacted.
func (w *walk) withoutRedacted(findings []finding.Finding) []finding.Finding {
	return slices.DeleteFunc(findings, func(f finding.Finding) bool {
		if !w.options.Restore.Redacted || f.Code != code.SampleRefused {
			return false
		}
		w.notes = append(w.notes, fmt.Sprintf("%s, redacted, was left out: %s", f.Subject.Object, f.Message))
		return true
	})
}

// toRestore returns the objects of d by the version in which they are stored, and these versions, the present one last.
func (w *walk) toRestore(d *apiextensionsv1.CustomResourceDefinition) ([]string, map[string][]*unstructured.Unstructured) {
	objects := map[string][]*unstructured.Unstructured{}
	for _, o := range w.options.Restore.Objects {
		if kind := o.GroupVersionKind(); kind.Group == d.Spec.Group && kind.Kind == d.Spec.Names.Kind {
			objects[kind.Version] = append(objects[kind.Version], o)
		}
	}
	versions := slices.DeleteFunc(slices.Sorted(maps.Keys(objects)), func(v string) bool { return v == definition.StorageVersion(d) })
	if len(objects[definition.StorageVersion(d)]) > 0 {
		versions = append(versions, definition.StorageVersion(d))
	}
	return versions, objects
}

// restoreAs restores objects of d that are stored in version. What they say of themselves that is refused is a finding.
func (w *walk) restoreAs(ctx context.Context, r *lifecycle.Release, d *apiextensionsv1.CustomResourceDefinition, version string, objects []*unstructured.Unstructured, step *progress.Step) ([]finding.Finding, error) {
	if !slices.Contains(definition.ServedVersions(d), version) {
		w.notes = append(w.notes, fmt.Sprintf("%d %s objects were not restored: %s does not serve %s, in which they are stored", len(objects), d.Spec.Names.Kind, r.Name, version))
		return nil, nil
	}
	for _, o := range objects {
		if err := w.ensureNamespace(ctx, o.GetNamespace()); err != nil {
			return nil, err
		}
	}
	older := version != definition.StorageVersion(d)
	if older {
		if err := w.storeAs(ctx, d.Name, version); err != nil {
			return nil, err
		}
	}
	made, findings, err := w.restoreStoredAs(ctx, r, d, version, objects, step)
	w.restored = append(w.restored, made...)
	if err != nil || !older {
		return findings, err
	}
	if len(made) > 0 {
		if err := w.awaitQuiet(ctx, made[0]); err != nil {
			return findings, err
		}
	}
	return findings, w.storeAs(ctx, d.Name, definition.StorageVersion(d))
}

// restoreStoredAs restores objects of d, which the API server stores in version now, and returns those that it took.
func (w *walk) restoreStoredAs(ctx context.Context, r *lifecycle.Release, d *apiextensionsv1.CustomResourceDefinition, version string, objects []*unstructured.Unstructured, step *progress.Step) ([]*observe.Object, []finding.Finding, error) {
	first, found, err := w.restoreFirst(ctx, r, d, version, objects[0])
	if err != nil || len(found) > 0 && found[0].Code == code.NotProvable {
		return first, found, err
	}
	others, more, err := w.restoreObjects(ctx, r, d, version, objects[1:], step)
	return slices.Concat(first, others), slices.Concat(found, more), err
}

// ensureNamespace makes sure that the namespace of a restored object is there.
func (w *walk) ensureNamespace(ctx context.Context, name string) error {
	if name == "" || w.restoredIn[name] {
		return nil
	}
	w.restoredIn[name] = true
	return w.Manager.EnsureNamespace(ctx, name)
}

// storeAs has the API server store objects of the definition called name in version.
func (w *walk) storeAs(ctx context.Context, name, version string) error {
	return w.redefine(ctx, name, func(now *apiextensionsv1.CustomResourceDefinition) error {
		for i := range now.Spec.Versions {
			now.Spec.Versions[i].Storage = now.Spec.Versions[i].Name == version
		}
		return w.Client.Update(ctx, now)
	})
}

// restoreStored sets the status.storedVersions of d as they are on the other cluster.
func (w *walk) restoreStored(ctx context.Context, d *apiextensionsv1.CustomResourceDefinition) error {
	i := slices.IndexFunc(w.options.Restore.Definitions, func(there *apiextensionsv1.CustomResourceDefinition) bool { return there.Name == d.Name })
	if i < 0 {
		return nil
	}
	stored := slices.DeleteFunc(slices.Clone(w.options.Restore.Definitions[i].Status.StoredVersions), func(version string) bool {
		return !slices.ContainsFunc(d.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
	})
	return w.redefine(ctx, d.Name, func(now *apiextensionsv1.CustomResourceDefinition) error {
		if slices.Equal(now.Status.StoredVersions, stored) {
			return nil
		}
		now.Status.StoredVersions = stored
		return w.Client.Status().Update(ctx, now)
	})
}

// redefine changes the definition called name, again if somebody else changes it at the same time.
func (w *walk) redefine(ctx context.Context, name string, change func(*apiextensionsv1.CustomResourceDefinition) error) error {
	return observe.Retry(ctx, observe.Refused, func() error {
		now := &apiextensionsv1.CustomResourceDefinition{}
		if err := w.Client.Get(ctx, client.ObjectKey{Name: name}, now); err != nil {
			return err
		}
		return change(now)
	})
}

// restoreFirst restores the first object of a version, again until it is stored as it should be: the API server takes a moment to
// store in another version.
func (w *walk) restoreFirst(ctx context.Context, r *lifecycle.Release, d *apiextensionsv1.CustomResourceDefinition, version string, manifest *unstructured.Unstructured) ([]*observe.Object, []finding.Finding, error) {
	deadline := time.Now().Add(observe.RetryTimeout)
	for {
		o, found, err := w.restoreObject(ctx, r, d, version, manifest)
		if err != nil || o == nil {
			return nil, found, err
		}
		as, _, err := w.judgeStored(ctx, o, schemasOf(d))
		if err != nil || as == "" || as == version || time.Now().After(deadline) {
			return []*observe.Object{o}, nil, err
		}
		background := metav1.DeletePropagationBackground
		if err := o.At(w.Dynamic, version).Delete(ctx, o.Name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
			return nil, nil, err
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(lookPause):
		}
	}
}

// restoreObjects restores objects of d, several at the same time.
func (w *walk) restoreObjects(ctx context.Context, r *lifecycle.Release, d *apiextensionsv1.CustomResourceDefinition, version string, manifests []*unstructured.Unstructured, step *progress.Step) ([]*observe.Object, []finding.Finding, error) {
	made, found := make([]*observe.Object, len(manifests)), make([][]finding.Finding, len(manifests))
	var count atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(restoring)
	for i, manifest := range manifests {
		group.Go(func() (err error) {
			made[i], found[i], err = w.restoreObject(ctx, r, d, version, manifest)
			if n := count.Add(1); n%100 == 0 {
				step.Note(fmt.Sprintf("%d of %d", n, len(manifests)))
			}
			return err
		})
	}
	err := group.Wait()
	return slices.DeleteFunc(made, func(o *observe.Object) bool { return o == nil }), slices.Concat(found...), err
}

// restoreObject creates an object through version, with its status. It returns none, but a finding, if that is refused.
func (w *walk) restoreObject(ctx context.Context, r *lifecycle.Release, d *apiextensionsv1.CustomResourceDefinition, version string, manifest *unstructured.Unstructured) (*observe.Object, []finding.Finding, error) {
	o := &observe.Object{
		CRD: d.Name, Resource: schema.GroupResource{Group: d.Spec.Group, Resource: d.Spec.Names.Plural}, Kind: d.Spec.Names.Kind,
		Version: version, Namespace: manifest.GetNamespace(), Name: manifest.GetName(), Sample: manifest.GetName(), Restored: true,
		Author: manifest.Object,
	}
	made, err := w.create(ctx, o, manifest)
	if err == nil {
		o.UID = made.GetUID()
		err = w.restoreStatus(ctx, o, made, manifest.Object["status"])
	}
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if err != nil {
		f := w.refusal(r, o, err)
		if f.Code == code.SampleRefused {
			f = code.Finding(code.SampleRefused, o.String(), "it cannot be restored as %s on %s: %v", version, r.Name, err)
		}
		return nil, []finding.Finding{f}, nil
	}
	return o, nil, nil
}

// restoreStatus writes what the status of o said, which was just made, unless the operator has written another by then.
func (w *walk) restoreStatus(ctx context.Context, o *observe.Object, made *unstructured.Unstructured, status any) error {
	if status == nil {
		return nil
	}
	write := func(now *unstructured.Unstructured) error {
		if now.Object["status"] != nil {
			return nil
		}
		now.Object["status"] = status
		_, err := o.At(w.Dynamic, o.Version).UpdateStatus(ctx, now, metav1.UpdateOptions{FieldManager: "olmkit"})
		return err
	}
	err := write(made)
	if err != nil && !final(err) {
		err = observe.Retry(ctx, final, func() error {
			now, err := o.At(w.Dynamic, o.Version).Get(ctx, o.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			return write(now)
		})
	}
	if err != nil && final(err) {
		return nil // no such subresource, or a status that is not valid any more: the operator writes another
	}
	return err
}

// awaitQuiet waits, though not for ever, until nobody writes the objects of o's kind any more.
func (w *walk) awaitQuiet(ctx context.Context, o *observe.Object) error {
	same := sameFor(w.options.Settle)
	return w.Watcher.AtMost(ctx, judge.HealthLimit, func() (bool, error) {
		all, err := w.ListAll(ctx, o, o.Version)
		if err != nil {
			return false, err
		}
		var now strings.Builder
		for _, key := range slices.Sorted(maps.Keys(all)) {
			now.WriteString(key + " " + all[key].GetResourceVersion() + "\n")
		}
		return same(now.String()), nil
	})
}

// sameFor returns a function that reports whether it was told the same for a while.
func sameFor(while time.Duration) func(said string) bool {
	last, since := "", time.Now()
	return func(said string) bool {
		if said != last {
			last, since = said, time.Now()
		}
		return time.Since(since) >= while
	}
}

// mostOfShape and mostOfKind bound how many restored objects are looked at as closely as samples are.
const (
	mostOfShape = 2
	mostOfKind  = 6
)

// choose adds to the walk's objects some of the restored ones of d, of every shape first, and a copy of the first for the observers
// to write. All others are compared, and left alone.
func (w *walk) choose(ctx context.Context, d *apiextensionsv1.CustomResourceDefinition) error {
	if slices.ContainsFunc(w.Objects, func(o *observe.Object) bool { return o.CRD == d.Name }) {
		return nil
	}
	shapes := map[string][]*observe.Object{}
	var order []string
	for _, o := range w.restored {
		if o.CRD != d.Name {
			continue
		}
		s := o.Version + " " + strings.Join(shapeOf(compare.Content(o.Author), ""), " ")
		if shapes[s] == nil {
			order = append(order, s)
		}
		shapes[s] = append(shapes[s], o)
	}
	slices.SortStableFunc(order, func(a, b string) int { return len(shapes[b]) - len(shapes[a]) })
	var chosen []*observe.Object
	for i := range mostOfShape {
		for _, s := range order {
			if i < len(shapes[s]) && len(chosen) < mostOfKind {
				chosen = append(chosen, shapes[s][i])
			}
		}
	}
	w.Objects = append(w.Objects, chosen...)
	if len(chosen) == 0 {
		return nil
	}
	return w.copyForWrites(ctx, d, chosen[0])
}

// copyForWrites makes a copy of o, which observers write. One that is refused is left out.
func (w *walk) copyForWrites(ctx context.Context, d *apiextensionsv1.CustomResourceDefinition, o *observe.Object) error {
	if !slices.Contains(definition.ServedVersions(d), o.Version) {
		return nil
	}
	manifest := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(compare.Content(o.Author))}
	manifest.SetAPIVersion(d.Spec.Group + "/" + o.Version)
	manifest.SetKind(o.Kind)
	manifest.SetNamespace(o.Namespace)
	manifest.SetName(shortened(o.Name) + "-olmkit-w")
	c := &observe.Object{CRD: o.CRD, Resource: o.Resource, Kind: o.Kind, Version: o.Version, Namespace: o.Namespace, Name: manifest.GetName(), Sample: o.Name, Written: true}
	made, err := w.create(ctx, c, manifest)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		w.notes = append(w.notes, fmt.Sprintf("writes of %s objects were not watched: a copy of %s is refused: %v", o.Kind, o, err))
		return nil
	}
	c.UID = made.GetUID()
	c.Author = map[string]any{"apiVersion": manifest.GetAPIVersion(), "kind": c.Kind, "metadata": map[string]any{"name": c.Name}}
	maps.Copy(c.Author, compare.Content(made.Object))
	w.Objects = append(w.Objects, c)
	return nil
}

// shapeOf lists the fields of value, sorted, without their values.
func shapeOf(value any, at string) []string {
	var fields []string
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			fields = append(fields, shapeOf(v[key], compare.Join(at, key))...)
		}
	case []any:
		for _, item := range v {
			fields = append(fields, shapeOf(item, at+"[]")...)
		}
	}
	if len(fields) == 0 {
		return []string{at}
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

// rest are the restored objects that are not among the walk's chosen ones.
func (w *walk) rest(r *lifecycle.Release) map[string][]*observe.Object {
	rest := map[string][]*observe.Object{}
	chosen := map[*observe.Object]bool{}
	for _, o := range w.Objects {
		chosen[o] = true
	}
	for _, o := range w.restored {
		if r.CRD(o.CRD) != nil && !chosen[o] && w.SimulatedConverter(r, o.CRD) == "" {
			rest[o.CRD] = append(rest[o.CRD], o)
		}
	}
	return rest
}
