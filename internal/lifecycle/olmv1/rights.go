package olmv1

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	registrybundle "github.com/operator-framework/operator-registry/pkg/lib/bundle"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/catalog"
)

// Installer is the name of the ServiceAccount that installs a package, and of its roles.
func Installer(pkg string) string { return pkg + "-installer" }

// Rights are what a ServiceAccount needs so that OLM v1 can install a bundle with it: to make and change the objects that OLM v1
// renders of it (operator-controller v1.10.0, internal/operator-controller/rukpak/render/registryv1), to watch their kinds, and all
// that the operator itself may do, since nobody can grant what they may not do.
type Rights struct {
	managed map[resource]map[string]bool // names of the objects, by their resource
	granted []rbacv1.PolicyRule          // of the operator's own
}

type resource struct {
	group, name string
	namespaced  bool
}

// RightsOf returns the least rights that install b as pkg.
func RightsOf(pkg string, b *catalog.Bundle) (Rights, error) {
	r := Rights{managed: map[resource]map[string]bool{}}
	csv, err := b.CSV()
	if err != nil {
		return r, err
	}
	objects, err := b.Objects()
	if err != nil {
		return r, err
	}
	for _, raw := range objects {
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(raw); err != nil {
			return r, fmt.Errorf("read an object of bundle %s: %w", b.Name, err)
		}
		if o.GetKind() == v1alpha1.ClusterServiceVersionKind {
			continue
		}
		_, namespaced := registrybundle.IsSupported(o.GetKind())
		plural, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		r.manage(plural.Group, plural.Resource, bool(namespaced), o.GetName())
		// To apply a role takes what it allows.
		var role rbacv1.ClusterRole
		if o.GetKind() == "ClusterRole" || o.GetKind() == "Role" {
			if err := json.Unmarshal(raw, &role); err != nil {
				return r, fmt.Errorf("read %s %s of bundle %s: %w", o.GetKind(), o.GetName(), b.Name, err)
			}
			r.granted = append(r.granted, role.Rules...)
		}
	}
	r.addCSV(csv)
	return r, nil
}

// addCSV adds what OLM v1 renders of csv, in the names that it gives.
func (r *Rights) addCSV(csv *v1alpha1.ClusterServiceVersion) {
	strategy := csv.Spec.InstallStrategy.StrategySpec
	for _, d := range strategy.DeploymentSpecs {
		r.manage("apps", "deployments", true, d.Name)
	}
	permissions := slices.Clone(strategy.ClusterPermissions)
	for _, p := range strategy.Permissions { // what serves all namespaces gets them in all namespaces
		p.Rules = append(slices.Clone(p.Rules), rbacv1.PolicyRule{
			Verbs: []string{"get", "list", "watch"}, APIGroups: []string{corev1.GroupName}, Resources: []string{"namespaces"},
		})
		permissions = append(permissions, p)
	}
	for _, p := range permissions {
		account := cmp.Or(p.ServiceAccountName, "default")
		if account != "default" {
			r.manage("", "serviceaccounts", true, account)
		}
		name := joinName(csv.Name+"-"+account, hash(p))
		r.manage(rbacv1.GroupName, "clusterroles", false, name)
		r.manage(rbacv1.GroupName, "clusterrolebindings", false, name)
		r.granted = append(r.granted, p.Rules...)
	}
	for _, w := range csv.Spec.WebhookDefinitions {
		service := joinName(strings.ReplaceAll(w.DeploymentName, ".", "-"), "service")
		certificate := joinName(service, "cert")
		r.manage("", "services", true, service)
		r.manage("cert-manager.io", "certificates", true, certificate)
		r.manage("cert-manager.io", "issuers", true, joinName(certificate, "selfsigned-issuer"))
		name := strings.TrimSuffix(w.GenerateName, "-")
		switch w.Type {
		case v1alpha1.ValidatingAdmissionWebhook:
			r.manage("admissionregistration.k8s.io", "validatingwebhookconfigurations", false, name)
		case v1alpha1.MutatingAdmissionWebhook:
			r.manage("admissionregistration.k8s.io", "mutatingwebhookconfigurations", false, name)
		}
	}
}

func (r *Rights) manage(group, name string, namespaced bool, object string) {
	of := resource{group, name, namespaced}
	if r.managed[of] == nil {
		r.managed[of] = map[string]bool{}
	}
	r.managed[of][object] = true
}

// Add returns the rights of both, as an upgrade takes.
func (r Rights) Add(other Rights) Rights {
	sum := Rights{managed: map[resource]map[string]bool{}, granted: slices.Concat(r.granted, other.granted)}
	for _, of := range []Rights{r, other} {
		for kind, names := range of.managed {
			for name := range names {
				sum.manage(kind.group, kind.name, kind.namespaced, name)
			}
		}
	}
	return sum
}

// Objects are the roles that give r to the ServiceAccount that installs pkg into namespace, with their bindings.
func (r Rights) Objects(pkg, namespace string) []client.Object {
	cluster, local := r.rules(pkg)
	kind := func(name string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: name}
	}
	at := metav1.ObjectMeta{Name: Installer(pkg)}
	within := metav1.ObjectMeta{Namespace: namespace, Name: Installer(pkg)}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: Installer(pkg)}}
	ref := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: Installer(pkg)}
	}
	return []client.Object{
		&rbacv1.ClusterRole{TypeMeta: kind("ClusterRole"), ObjectMeta: at, Rules: cluster},
		&rbacv1.ClusterRoleBinding{TypeMeta: kind("ClusterRoleBinding"), ObjectMeta: at, Subjects: subjects, RoleRef: ref("ClusterRole")},
		&rbacv1.Role{TypeMeta: kind("Role"), ObjectMeta: within, Rules: local},
		&rbacv1.RoleBinding{TypeMeta: kind("RoleBinding"), ObjectMeta: within, Subjects: subjects, RoleRef: ref("Role")},
	}
}

// rules are those for the whole cluster, and those for the namespace of the operator.
func (r Rights) rules(pkg string) (cluster, local []rbacv1.PolicyRule) {
	kinds := make([]resource, 0, len(r.managed))
	for kind := range r.managed {
		kinds = append(kinds, kind)
	}
	slices.SortFunc(kinds, func(a, b resource) int { return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.name, b.name)) })
	for _, kind := range kinds {
		names := make([]string, 0, len(r.managed[kind]))
		for name := range r.managed[kind] {
			names = append(names, name)
		}
		slices.Sort(names)
		rule := func(verbs, names []string) rbacv1.PolicyRule {
			return rbacv1.PolicyRule{APIGroups: []string{kind.group}, Resources: []string{kind.name}, Verbs: verbs, ResourceNames: names}
		}
		change := rule([]string{"get", "update", "patch", "delete"}, names)
		if kind.namespaced {
			// OLM v1 watches what it made in all namespaces.
			cluster = append(cluster, rule([]string{"list", "watch"}, nil))
			local = append(local, rule([]string{"create"}, nil), change)
		} else {
			cluster = append(cluster, rule([]string{"create", "list", "watch"}, nil), change)
		}
	}
	cluster = append(cluster, rbacv1.PolicyRule{
		APIGroups: []string{GroupVersion.Group}, Resources: []string{"clusterextensions/finalizers"}, Verbs: []string{"update"}, ResourceNames: []string{pkg},
	})
	return append(cluster, unique(r.granted)...), local
}

// unique drops rules that are there already.
func unique(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var kept []rbacv1.PolicyRule
	seen := map[string]bool{}
	for _, rule := range rules {
		key, err := json.Marshal(rule)
		if err == nil && !seen[string(key)] {
			seen[string(key)] = true
			kept = append(kept, rule)
		}
	}
	return kept
}

// longestName is the longest name that OLM v1 gives (internal/operator-controller/rukpak/util/util.go).
const longestName = 63

func joinName(base, suffix string) string {
	if len(base)+len(suffix) > longestName {
		base = base[:longestName-len(suffix)-1]
	}
	return base + "-" + suffix
}

// hash is how OLM v1 tells the roles of a bundle apart (internal/shared/util/hash/hash.go).
func hash(p v1alpha1.StrategyDeploymentPermissions) string {
	data, _ := json.Marshal(p) // plain strings
	sum := sha256.Sum224(append(data, '\n'))
	return new(big.Int).SetBytes(sum[:]).Text(36)
}
