package leftover

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv1"
)

var extensionKind = olmv1.GroupVersion.WithKind(olmv1.KindExtension)

// findOwned adds the definitions that OLM v1 made for ClusterExtensions that were found.
func (c *Cleaner) findOwned(ctx context.Context, f *Found) error {
	extensions := map[types.UID]Object{}
	for _, o := range f.Objects {
		if o.key.GroupKind == extensionKind.GroupKind() {
			extensions[o.metadata.UID] = o
		}
	}
	if len(extensions) == 0 {
		return nil
	}
	list, err := c.list(ctx, definitionKind)
	if err != nil {
		return err
	}
	for _, m := range list {
		if e, owned := ownerOf(&m, extensions); owned {
			f.add(newObject(m, e.Walk, false))
		}
	}
	return nil
}

// ownerOf returns the one of extensions that owns m.
func ownerOf(m *metav1.PartialObjectMetadata, extensions map[types.UID]Object) (Object, bool) {
	for _, owner := range m.OwnerReferences {
		if e, ok := extensions[owner.UID]; ok {
			return e, true
		}
	}
	return Object{}, false
}

// removeExtensions removes the ClusterExtensions, with which OLM v1 deletes their definitions, and with these all objects. One whose
// definitions have objects that olmkit did not make stays, and so does all that was made for it.
func (r *removal) removeExtensions(ctx context.Context) error {
	extensions := r.pick(ofKinds(extensionKind))
	for _, e := range extensions {
		for _, d := range r.pick(ofKinds(definitionKind)) {
			if _, owned := ownerOf(&d.metadata, map[types.UID]Object{e.metadata.UID: e}); !owned {
				continue
			}
			if kept, hold := r.objectsHold(ctx, e, d); hold {
				r.reasons[e.key] = kept
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	if err := r.delete(ctx, ofKinds(extensionKind), r.limit); err != nil {
		return err
	}
	for _, e := range extensions {
		kept, stays := r.reasons[e.key]
		if !stays {
			continue
		}
		for _, o := range r.pick(func(o Object) bool { return o.Walk == e.Walk }) {
			r.reasons[o.key] = Kept{Why: fmt.Sprintf("%s stays, and needs it", e), Fix: kept.Fix}
		}
	}
	return nil
}

// objectsHold says why e must stay if there are objects of d that olmkit did not make, or if that is not known.
func (r *removal) objectsHold(ctx context.Context, e, d Object) (Kept, bool) {
	var definition apiextensionsv1.CustomResourceDefinition
	err := r.olm.Get(ctx, d.key.ObjectKey, &definition)
	var objects []metav1.PartialObjectMetadata
	if err == nil {
		objects, err = lifecycle.ObjectsOf(ctx, r.olm.WithWatch, &definition)
	}
	others := r.others(objects)
	if err == nil && len(others) == 0 { // objects with finalizers of an operator that is gone hold the definition
		err = lifecycle.DropFinalizersOf(ctx, r.olm.WithWatch, objects)
	}
	switch {
	case absent(err):
		return Kept{}, false
	case err != nil:
		return Kept{
			Why: fmt.Sprintf("OLM v1 deletes %s with it, and whether that has objects is not known: %v", d, err),
			Fix: fmt.Sprintf("make the operator run, and run this again; if nobody needs the objects, delete all of it: 'kubectl delete clusterextensions.%s %s', and run this again", extensionKind.Group, e.Name),
		}, true
	case len(others) == 0:
		return Kept{}, false
	}
	return Kept{
		Why: fmt.Sprintf("OLM v1 deletes %s with it, and %v", d, others),
		Fix: fmt.Sprintf("if nobody needs the objects, delete them while the operator runs, 'kubectl delete %s --all --all-namespaces', and run this again", d.Name),
	}, true
}
