package rehearsal

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/definition"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/progress"
)

// page is how many objects are read at once.
const page = 500

// readObjects reads the definitions that csv owns, and their objects.
func (s *Snapshot) readObjects(ctx context.Context, c client.Reader, csv *v1alpha1.ClusterServiceVersion, p *progress.Printer) error {
	var names []string
	for _, owned := range csv.Spec.CustomResourceDefinitions.Owned {
		names = append(names, owned.Name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		d := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(ctx, client.ObjectKey{Name: name}, d); err != nil {
			return fmt.Errorf("get CustomResourceDefinition %s: %w", name, err)
		}
		step := p.Start("read %s objects", d.Spec.Names.Kind)
		objects, err := s.objectsOf(ctx, c, d, csv.CreationTimestamp.Time, step)
		if step.End(err) != nil {
			return err
		}
		s.Definitions = append(s.Definitions, definitionOf(d))
		s.Objects = append(s.Objects, objects...)
	}
	return nil
}

// objectsOf reads the objects of d, each in the version in which it is restored as stored.
func (s *Snapshot) objectsOf(ctx context.Context, c client.Reader, d *apiextensionsv1.CustomResourceDefinition, since time.Time, step *progress.Step) ([]*unstructured.Unstructured, error) {
	now, older := definition.StorageVersion(d), s.olderVersions(d)
	version := now
	if !slices.Contains(definition.ServedVersions(d), now) && len(definition.ServedVersions(d)) > 0 {
		version = definition.ServedVersions(d)[0]
		s.note("%s objects are read and restored as %s: %s, in which they are stored, is not served", d.Spec.Names.Kind, version, now)
	}
	listed, err := list(ctx, c, d, version, step)
	if err != nil {
		return nil, err
	}
	in := spread(listed, older, since)
	var all []*unstructured.Unstructured
	var counts []string
	for _, old := range older {
		read, err := list(ctx, c, d, old, step)
		if err != nil {
			return nil, err
		}
		read = slices.DeleteFunc(read, func(o *unstructured.Unstructured) bool { return in[o.GetUID()] != old })
		all, counts = append(all, read...), append(counts, fmt.Sprintf("%d %s objects are restored as stored in %s", len(read), d.Spec.Names.Kind, old))
	}
	if len(in) > 0 {
		listed = slices.DeleteFunc(listed, func(o *unstructured.Unstructured) bool { return in[o.GetUID()] != "" })
		s.note("%s, and %d in %s: status.storedVersions names these versions, but not which object is stored in which; those that were written longest ago are restored in the older ones",
			strings.Join(counts, ", "), len(listed), version)
	}
	return s.clean(d, append(all, listed...)), nil
}

// spread says which of objects are restored as stored in one of the older versions, in the order in which these came: those that
// nobody has written since then, as who writes an object stores it in the present version. Each version gets at least one, the
// present one included, if there are enough. The longer ago an object was written, the older its version.
func spread(objects []*unstructured.Unstructured, older []string, since time.Time) map[types.UID]string {
	in := map[types.UID]string{}
	if len(older) == 0 {
		return in
	}
	written := map[*unstructured.Unstructured]time.Time{}
	count := 0
	for _, o := range objects {
		if written[o] = lastWritten(o); written[o].Before(since) {
			count++
		}
	}
	byAge := slices.Clone(objects)
	slices.SortStableFunc(byAge, func(a, b *unstructured.Unstructured) int { return written[a].Compare(written[b]) })
	switch {
	case count == len(objects) && count > len(older):
		count--
	case count < len(older):
		count = min(len(older), max(count, len(objects)-1))
	}
	for i := range count {
		in[byAge[i].GetUID()] = older[i*len(older)/count]
	}
	return in
}

// olderVersions are those besides the present one in which objects of d may be stored, and which can be read.
func (s *Snapshot) olderVersions(d *apiextensionsv1.CustomResourceDefinition) []string {
	var older []string
	for _, v := range d.Status.StoredVersions {
		switch {
		case v == definition.StorageVersion(d):
		case !slices.Contains(definition.ServedVersions(d), v):
			s.note("objects of %s may be stored in %s, which is not served, so they are restored in %s", d.Name, v, definition.StorageVersion(d))
		default:
			older = append(older, v)
		}
	}
	return older
}

// list reads the objects of d in a version, page by page.
func list(ctx context.Context, c client.Reader, d *apiextensionsv1.CustomResourceDefinition, version string, step *progress.Step) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	token := ""
	for {
		var l unstructured.UnstructuredList
		l.SetGroupVersionKind(schema.GroupVersionKind{Group: d.Spec.Group, Version: version, Kind: d.Spec.Names.ListKind})
		if err := c.List(ctx, &l, client.Limit(page), client.Continue(token)); err != nil {
			return nil, hint.With(fmt.Errorf("list %s as %s: %w", d.Name, version, err),
				"objects that cannot be read cannot be rehearsed: ask 'olmkit upgrade diagnose' whether the operator is well, or for the right to list them")
		}
		for i := range l.Items {
			all = append(all, &l.Items[i])
		}
		step.Note(fmt.Sprintf("%d as %s", len(all), version))
		if token = l.GetContinue(); token == "" {
			return all, nil
		}
	}
}

// lastWritten is when somebody last changed o, as far as it says so.
func lastWritten(o *unstructured.Unstructured) time.Time {
	last := o.GetCreationTimestamp().Time
	for _, m := range o.GetManagedFields() {
		if m.Time != nil && m.Time.After(last) {
			last = m.Time.Time
		}
	}
	return last
}

// kept is what of an object's metadata can be restored.
var kept = []string{"name", "namespace", "labels", "annotations", "finalizers"}

// clean leaves of objects what can be restored elsewhere.
func (s *Snapshot) clean(d *apiextensionsv1.CustomResourceDefinition, objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	owned, ending := 0, 0
	for _, o := range objects {
		if len(o.GetOwnerReferences()) > 0 {
			owned++
		}
		if o.GetDeletionTimestamp() != nil {
			ending++
		}
		m, _ := o.Object["metadata"].(map[string]any)
		for key := range m {
			if !slices.Contains(kept, key) {
				delete(m, key)
			}
		}
	}
	if owned > 0 {
		s.note("%d %s objects are restored without their owners", owned, d.Spec.Names.Kind)
	}
	if ending > 0 {
		s.note("%d %s objects were being deleted, and are restored as if they were not", ending, d.Spec.Names.Kind)
	}
	return objects
}

// definitionOf leaves of d what can be restored elsewhere.
func definitionOf(d *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	bare := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: d.Name}, Spec: *d.Spec.DeepCopy()}
	bare.APIVersion, bare.Kind = apiextensionsv1.SchemeGroupVersion.String(), "CustomResourceDefinition"
	if approved, protected := d.Annotations[apiextensionsv1.KubeAPIApprovedAnnotation]; protected {
		bare.Annotations = map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: approved}
	}
	if c := bare.Spec.Conversion; c != nil && c.Webhook != nil && c.Webhook.ClientConfig != nil {
		c.Webhook.ClientConfig.CABundle = nil // OLM sets that of its own certificate
	}
	bare.Status.StoredVersions = d.Status.StoredVersions
	return bare
}
