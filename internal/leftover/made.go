package leftover

import (
	"context"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
)

var (
	namespaceKind    = corev1.SchemeGroupVersion.WithKind("Namespace")
	definitionKind   = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")
	subscriptionKind = v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.SubscriptionKind)
	versionKind      = v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.ClusterServiceVersionKind)
	planKind         = v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.InstallPlanKind)
	sourceKind       = v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.CatalogSourceKind)
	operatorKind     = operatorsv1.GroupVersion.WithKind("Operator")
	groupKind        = operatorsv1.GroupVersion.WithKind(operatorsv1.OperatorGroupKind)
	roleBindingKind  = rbacv1.SchemeGroupVersion.WithKind("RoleBinding")

	// outside are the kinds of the cluster's scope of which OLM makes objects for a namespace that it names in their labels.
	outside = []schema.GroupVersionKind{
		rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
		rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
		admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"),
		admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"),
	}
	// shipped are the kinds of the cluster's scope that bundles bring and OLM does not remove.
	shipped = []schema.GroupVersionKind{
		definitionKind, schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"),
		rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
	}
)

// home is a namespace in which a walk had OLM install something.
type home struct {
	walk   string
	since  metav1.Time     // when the walk made the first object there: what is older is not of its doing
	whole  bool            // the walk made the namespace, so all in it is of its doing
	brings map[string]bool // what the walk brings of the cluster's scope, each Kind/name
	gone   bool            // nothing is left there of what the walk made
}

// findHomes finds the namespaces of walks by what walks made: namespaces, CatalogSources and Subscriptions.
func (f *Found) findHomes() {
	for _, h := range f.homes {
		h.gone = true
	}
	for _, o := range f.Objects {
		var name string
		switch {
		case o.ofOLM:
			continue
		case o.key.GroupKind == namespaceKind.GroupKind():
			name = o.Name
		case o.key.GroupKind == subscriptionKind.GroupKind(), o.key.GroupKind == sourceKind.GroupKind():
			name = o.Namespace
		default:
			continue
		}
		h := f.homes[name]
		if h == nil {
			h = &home{walk: o.Walk, since: o.metadata.CreationTimestamp, brings: map[string]bool{}}
			f.homes[name] = h
		}
		if o.metadata.CreationTimestamp.Before(&h.since) {
			h.since = o.metadata.CreationTimestamp
		}
		h.gone = false
		h.whole = h.whole || o.key.GroupKind == namespaceKind.GroupKind()
		for brings := range strings.SplitSeq(o.metadata.Annotations[olmv0.BringsAnnotation], ",") {
			h.brings[brings] = true
		}
	}
}

// componentPrefix begins the label that OLM puts on what belongs to a package in a namespace: it is followed by PACKAGE.NAMESPACE
// (pkg/controller/operators/decorators/operator.go of operator-lifecycle-manager v0.46.0).
const componentPrefix = "operators.coreos.com/"

// componentOf returns the home of a walk to which OLM's labels say that m belongs.
func (f *Found) componentOf(m *metav1.PartialObjectMetadata) *home {
	for label := range m.Labels {
		if component, ok := strings.CutPrefix(label, componentPrefix); ok {
			if h := f.homes[component[strings.LastIndex(component, ".")+1:]]; h != nil {
				return h
			}
		}
	}
	return nil
}

// findMade adds what OLM made for the walks' namespaces: what is in namespaces that the walks made only where it has to be
// removed before them.
func (c *Cleaner) findMade(ctx context.Context, f *Found) error {
	if len(f.homes) == 0 {
		return nil
	}
	for _, find := range []struct {
		kinds []schema.GroupVersionKind
		of    func(m *metav1.PartialObjectMetadata) *home
	}{
		{[]schema.GroupVersionKind{versionKind, planKind}, func(m *metav1.PartialObjectMetadata) *home {
			h := f.homes[m.Namespace]
			if _, copied := m.Labels[v1alpha1.CopiedLabelKey]; copied || h == nil || !h.whole && f.componentOf(m) != h {
				return nil
			}
			return h
		}},
		{shipped, func(m *metav1.PartialObjectMetadata) *home {
			isDefinition := m.Kind == definitionKind.Kind
			if h := f.componentOf(m); isDefinition && h != nil {
				return h
			}
			managed := m.Labels[olmv0.ManagedLabel] == "true"
			for _, h := range f.homes {
				if h.brings[m.Kind+"/"+m.Name] && (managed || isDefinition && !h.gone) {
					return h
				}
			}
			return nil
		}},
		{outside, func(m *metav1.PartialObjectMetadata) *home {
			h := f.homes[m.Labels[olmv0.OwnerLabel+".namespace"]]
			if h == nil || !h.whole && f.componentOf(m) != h {
				return nil
			}
			return h
		}},
		{[]schema.GroupVersionKind{operatorKind}, func(m *metav1.PartialObjectMetadata) *home {
			h := f.homes[m.Name[strings.LastIndex(m.Name, ".")+1:]]
			if h == nil || !h.whole && !f.subscribed(m.Name) {
				return nil
			}
			return h
		}},
	} {
		for _, kind := range find.kinds {
			list, err := c.list(ctx, kind)
			if err != nil {
				return err
			}
			for _, m := range list {
				if h := find.of(&m); h != nil && !m.CreationTimestamp.Before(&h.since) {
					f.add(newObject(m, h.walk, false))
				}
			}
		}
	}
	return c.findReaders(ctx, f)
}

// subscribed tells whether a walk subscribed to the package that OLM's Operator called name is of. OLM names it after the
// package and the namespace, and walks name Subscriptions after the package.
func (f *Found) subscribed(name string) bool {
	return slices.ContainsFunc(f.Objects, func(o Object) bool {
		return o.key.GroupKind == subscriptionKind.GroupKind() && o.Name+"."+o.Namespace == name
	})
}

// findReaders adds the right to read how the API server authenticates, which OLM gives to every operator with webhooks, in
// another namespace than its own.
func (c *Cleaner) findReaders(ctx context.Context, f *Found) error {
	for name, h := range f.homes {
		if !h.whole {
			continue
		}
		orphans, err := c.olm.Orphans(ctx, name, nil)
		if err != nil {
			return err
		}
		for _, s := range orphans {
			m := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: s.GetNamespace(), Name: s.GetName(), UID: s.GetUID(), CreationTimestamp: s.GetCreationTimestamp()}}
			m.SetGroupVersionKind(roleBindingKind)
			f.add(newObject(m, h.walk, false))
		}
	}
	return nil
}

// absent reports whether err says that there is no such object, or no such kind.
func absent(err error) bool {
	return apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
}
