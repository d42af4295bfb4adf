package upgrade

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/report"
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

// installed is what stands on the cluster for a release, by Kind/name, without what differs from one installation to the
// next: the cluster's own fields, certificates, hashes in names.
type installed map[string]map[string]any

// installed lists what OLM made for r.
func (w *walk) installed(ctx context.Context, r *release) (installed, error) {
	all := installed{}
	add := func(of schema.GroupVersionResource, namespace string, ours func(*unstructured.Unstructured) bool) error {
		list, err := w.dynamic.Resource(of).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list %s: %w", of.GroupResource(), err)
		}
		for i := range list.Items {
			if o := &list.Items[i]; ours(o) {
				all.put(o, w.manager.Bookkeeping)
			}
		}
		return nil
	}
	madeFor := func(o *unstructured.Unstructured) bool { return w.manager.Made(o, r.Name) }
	var errs []error
	for _, kind := range inNamespace {
		errs = append(errs, add(kind, w.place.Namespace, madeFor))
	}
	for _, kind := range inCluster {
		errs = append(errs, add(kind, "", madeFor))
	}
	errs = append(errs, add(definitions, "", func(o *unstructured.Unstructured) bool {
		return r.CRD(o.GetName()) != nil
	}))
	return all, errors.Join(errs...)
}

// put adds o, without the labels and annotations that bookkeeping is true of.
func (all installed) put(o *unstructured.Unstructured, bookkeeping func(string) bool) {
	says := content(o.Object)
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

// unlike says how upgraded, which is release, is not what fresh is, object by object.
func unlike(release string, upgraded, fresh installed) []finding.Finding {
	all := maps.Clone(upgraded)
	maps.Copy(all, fresh)
	var findings []finding.Finding
	for _, name := range slices.Sorted(maps.Keys(all)) {
		var places []string
		switch {
		case fresh[name] == nil:
			places = []string{"a fresh installation does not have it"}
		case upgraded[name] == nil:
			places = []string{"only a fresh installation has it"}
		default:
			differ("", upgraded[name], fresh[name], &places)
		}
		if len(places) > 0 {
			findings = append(findings, find(codeDiffersFromFresh, name, "after the upgrades to %s: %s", release, strings.Join(places, "; ")))
		}
	}
	return findings
}

func differ(at string, upgraded, fresh any, places *[]string) {
	u, mapping := upgraded.(map[string]any)
	f, both := fresh.(map[string]any)
	if mapping && both {
		keys := maps.Clone(u)
		maps.Copy(keys, f)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			differ(join(at, key), u[key], f[key], places)
		}
		return
	}
	us, list := upgraded.([]any)
	fs, both := fresh.([]any)
	if list && both && len(us) == len(fs) {
		for i := range us {
			differ(at+"["+strconv.Itoa(i)+"]", us[i], fs[i], places)
		}
		return
	}
	if a, b := text(upgraded), text(fresh); a != b {
		*places = append(*places, fmt.Sprintf("%s is %s, and %s in a fresh installation", orRoot(at), valueOf(upgraded), valueOf(fresh)))
	}
}

func text(v any) string {
	b, _ := json.Marshal(v) // it came from JSON
	return string(b)
}

func valueOf(v any) string {
	if v == nil {
		return "not there"
	}
	return show(v)
}

// compareFresh removes the release that upgrades have led to, installs it afresh, and compares what OLM made for both.
func (w *walk) compareFresh(ctx context.Context) ([]finding.Finding, error) {
	r := w.release
	upgraded, err := w.installed(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("look at what upgrades to %s made: %w", r.Name, err)
	}
	found, err := w.clean(ctx)
	if err != nil {
		return found, fmt.Errorf("clean up before %s is installed afresh: %w", r.Name, err)
	}
	refused, err := w.install(ctx, r, &report.Installation{})
	if refused != nil {
		found = append(found, baseFailed(r, *refused))
	}
	if err != nil || refused != nil {
		return found, err
	}
	fresh, err := w.installed(ctx, r)
	if err != nil {
		return found, fmt.Errorf("look at what a fresh installation of %s made: %w", r.Name, err)
	}
	return append(found, unlike(r.Name, upgraded, fresh)...), nil
}
