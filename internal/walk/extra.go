package walk

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

// applyExtraSamples applies what the user's samples need besides the package's own kinds: Secrets and the like.
func (w *walk) applyExtraSamples(ctx context.Context, r *lifecycle.Release) error {
	for _, s := range w.options.Samples {
		kind := s.GroupVersionKind()
		if r.Owns(kind.Group, kind.Kind) {
			continue
		}
		mapping, err := w.Client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return hint.With(fmt.Errorf("apply the sample %s %s: %w", kind.Kind, s.GetName(), err), "give samples of the package's kinds, or of kinds that Kubernetes has")
		}
		namespaces := []string{""}
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			namespaces = w.ObjectNamespaces(s.GetNamespace())
		}
		for _, namespace := range namespaces {
			o := s.DeepCopy()
			o.SetNamespace(namespace)
			if namespace != "" {
				if err := w.Manager.EnsureNamespace(ctx, namespace); err != nil {
					return err
				}
			}
			if err := w.applyExtra(ctx, o); err != nil {
				return fmt.Errorf("apply the sample %s %s: %w", kind.Kind, s.GetName(), err)
			}
		}
	}
	return nil
}

// applyExtra applies o. On a cluster that stays it leaves an object alone that is somebody else's.
func (w *walk) applyExtra(ctx context.Context, o *unstructured.Unstructured) error {
	if w.options.ID != "" {
		w.label(o)
		there := &unstructured.Unstructured{}
		there.SetGroupVersionKind(o.GroupVersionKind())
		err := w.Client.Get(ctx, client.ObjectKeyFromObject(o), there)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil && there.GetLabels()[cluster.WalkLabel] != w.options.ID {
			return hint.With(fmt.Errorf("it is on cluster %s already, and the walk did not create it", w.Provider.Name()), "rename the sample, or put it into another namespace")
		}
	}
	return w.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("olmkit"), client.ForceOwnership)
}

// label marks an object that the walk makes of somebody's manifest. Its other labels may mean something to others, so they stay.
func (w *walk) label(o *unstructured.Unstructured) {
	if w.options.ID == "" {
		return
	}
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[cluster.WalkLabel] = w.options.ID
	o.SetLabels(labels)
}
