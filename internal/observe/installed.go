package observe

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmkit/olmkit/internal/compare"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

// Kinds of which a lifecycle manager makes objects for a release.
var (
	inNamespace = []schema.GroupVersionResource{
		{Group: "apps", Version: "v1", Resource: "deployments"},
		{Version: "v1", Resource: "services"},
		{Version: "v1", Resource: "serviceaccounts"},
		{Version: "v1", Resource: "configmaps"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
		{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
		{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
	}
	inCluster = []schema.GroupVersionResource{
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
	}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// Installed is what stands on the cluster for a release, by Kind/name, without what differs from one installation to the
// next: the cluster's own fields, certificates, hashes in names.
type Installed map[string]map[string]any

// Installed lists what OLM made for r.
func (c *Cluster) Installed(ctx context.Context, r *lifecycle.Release) (Installed, error) {
	all := Installed{}
	add := func(of schema.GroupVersionResource, namespace string, ours func(*unstructured.Unstructured) bool) error {
		list, err := c.Dynamic.Resource(of).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list %s: %w", of.GroupResource(), err)
		}
		for i := range list.Items {
			if o := &list.Items[i]; ours(o) {
				all.Put(o, c.Manager.Bookkeeping)
			}
		}
		return nil
	}
	madeFor := func(o *unstructured.Unstructured) bool { return c.Manager.Made(o, r.Name) }
	var errs []error
	for _, kind := range inNamespace {
		errs = append(errs, add(kind, c.Place.Namespace, madeFor))
	}
	for _, kind := range inCluster {
		errs = append(errs, add(kind, "", madeFor))
	}
	errs = append(errs, add(definitions, "", func(o *unstructured.Unstructured) bool {
		return r.CRD(o.GetName()) != nil
	}))
	return all, errors.Join(errs...)
}

// Put adds o, without the labels and annotations that bookkeeping is true of.
func (all Installed) Put(o *unstructured.Unstructured, bookkeeping func(string) bool) {
	says := compare.Content(o.Object)
	for _, words := range []map[string]string{o.GetLabels(), o.GetAnnotations()} {
		for key, value := range words {
			if !ofOneInstallation(key, bookkeeping) {
				says["metadata "+key] = value
			}
		}
	}
	delete(says, "secrets") // a ServiceAccount's
	name := o.GetName()
	if made := o.GetGenerateName(); made != "" {
		name = made
	}
	base := o.GetKind() + "/" + strings.TrimSuffix(name, "-")
	name = base
	for n := 2; all[name] != nil; n++ {
		name = base + " " + strconv.Itoa(n)
	}
	all[name] = plain(says, bookkeeping).(map[string]any)
}

// ofOneInstallation tells the labels and annotations in which the manager and the deployment controller keep account of their
// own.
func ofOneInstallation(key string, bookkeeping func(string) bool) bool {
	return bookkeeping(key) || strings.HasPrefix(key, "deployment.kubernetes.io/")
}

// plain is value without the fields that the cluster fills in as it likes.
func plain(value any, bookkeeping func(string) bool) any {
	switch v := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, member := range v {
			switch key {
			case "caBundle", "clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort", "storedVersions":
			default:
				if !ofOneInstallation(key, bookkeeping) {
					kept[key] = plain(member, bookkeeping)
				}
			}
		}
		return kept
	case []any:
		kept := make([]any, len(v))
		for i, item := range v {
			kept[i] = plain(item, bookkeeping)
		}
		return kept
	}
	return value
}
