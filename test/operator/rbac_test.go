//go:build linux

package operator_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	operators "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
	"github.com/olmkit/olmkit/operator/api/v1beta1"
)

// right is the least that can be granted: a verb on a resource, in one namespace or, if that is empty, everywhere, and on
// one object or, if that is empty, on all.
type right struct{ namespace, group, resource, object, verb string }

func (r right) String() string {
	s := r.verb + " " + r.resource
	if r.group != "" {
		s += "." + r.group
	}
	if r.object != "" {
		s += " " + r.object
	}
	if r.namespace != "" {
		s += " in " + r.namespace
	}
	return s
}

// allows tells whether r is a reason to allow the request.
func (r right) allows(request right) bool {
	fits := func(granted, asked, all string) bool { return granted == all || granted == asked }
	return fits(r.namespace, request.namespace, "") && fits(r.group, request.group, "*") && fits(r.resource, request.resource, "*") &&
		fits(r.object, request.object, "") && fits(r.verb, request.verb, "*")
}

// rightsOf is what rules grant in a namespace, or everywhere.
func rightsOf(namespace string, rules []rbacv1.PolicyRule) []right {
	var rights []right
	for _, rule := range rules {
		for _, verb := range rule.Verbs {
			for _, url := range rule.NonResourceURLs {
				rights = append(rights, right{resource: url, verb: verb})
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					if len(rule.ResourceNames) == 0 {
						rights = append(rights, right{namespace, group, resource, "", verb})
					}
					for _, name := range rule.ResourceNames {
						rights = append(rights, right{namespace, group, resource, name, verb})
					}
				}
			}
		}
	}
	return sorted(rights)
}

func sorted(rights []right) []right {
	slices.SortFunc(rights, func(a, b right) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(rights)
}

// requestsOf is the rights that the API server asked for before it answered as the event says.
func requestsOf(e auditv1.Event) []right {
	if e.ObjectRef == nil {
		path, _, _ := strings.Cut(e.RequestURI, "?")
		return []right{{resource: path, verb: e.Verb}}
	}
	asked := right{e.ObjectRef.Namespace, e.ObjectRef.APIGroup, e.ObjectRef.Resource, e.ObjectRef.Name, e.Verb}
	if e.ObjectRef.Subresource != "" {
		asked.resource += "/" + e.ObjectRef.Subresource
	}
	created := asked
	created.verb = "create"
	switch {
	case e.Verb == "create":
		asked.object = "" // not known before it is made; the event has it from the answer
	case e.Verb == "patch" && e.ResponseStatus != nil && e.ResponseStatus.Code == http.StatusCreated:
		return []right{asked, created} // what an apply creates must be allowed to be created, too
	}
	return []right{asked}
}

// unused is what of granted none of the requests needed.
func unused(granted, requests []right) []right {
	return slices.DeleteFunc(slices.Clone(granted), func(g right) bool { return slices.ContainsFunc(requests, g.allows) })
}

func TestUnused(t *testing.T) {
	t.Parallel()
	rule := func(group, resource, object string, verbs ...string) rbacv1.PolicyRule {
		r := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
		if object != "" {
			r.ResourceNames = []string{object}
		}
		return r
	}
	event := func(verb, group, resource, subresource, object string, code int32) auditv1.Event {
		return auditv1.Event{Verb: verb, ResponseStatus: &metav1.Status{Code: code}, ObjectRef: &auditv1.ObjectReference{
			Namespace: "ns", APIGroup: group, Resource: resource, Subresource: subresource, Name: object}}
	}
	events := []auditv1.Event{
		event("list", "", "pods", "", "", 200),
		event("patch", "apps", "deployments", "", "a", 201),
		event("patch", "", "services", "", "a", 200),
		event("patch", "cache.example.com", "memcacheds", "status", "a", 200),
		event("create", "", "secrets", "", "cert", 201),
		event("get", "", "secrets", "", "cert", 200),
	}
	for name, test := range map[string]struct {
		namespace string
		rules     []rbacv1.PolicyRule
		want      string
	}{
		"all used":                   {"", []rbacv1.PolicyRule{rule("", "pods", "", "list"), rule("apps", "deployments", "", "create", "patch")}, ""},
		"another verb":               {"", []rbacv1.PolicyRule{rule("", "pods", "", "list", "watch")}, "watch pods"},
		"patched, not created":       {"", []rbacv1.PolicyRule{rule("", "services", "", "create", "patch")}, "create services"},
		"another group":              {"", []rbacv1.PolicyRule{rule("extensions", "deployments", "", "patch")}, "patch deployments.extensions"},
		"the object for its status":  {"", []rbacv1.PolicyRule{rule("cache.example.com", "memcacheds", "", "patch")}, "patch memcacheds.cache.example.com"},
		"the status":                 {"", []rbacv1.PolicyRule{rule("cache.example.com", "memcacheds/status", "", "patch")}, ""},
		"another object":             {"ns", []rbacv1.PolicyRule{rule("", "secrets", "other", "get")}, "get secrets other in ns"},
		"the object":                 {"ns", []rbacv1.PolicyRule{rule("", "secrets", "cert", "get")}, ""},
		"creation of one name":       {"ns", []rbacv1.PolicyRule{rule("", "secrets", "cert", "create")}, "create secrets cert in ns"},
		"another namespace":          {"other", []rbacv1.PolicyRule{rule("", "pods", "", "list")}, "list pods in other"},
		"everything, and used":       {"", []rbacv1.PolicyRule{rule("*", "*", "", "*")}, ""},
		"a path":                     {"", []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}, "get /metrics"},
		"several in one rule, twice": {"", []rbacv1.PolicyRule{{APIGroups: []string{"", "apps"}, Resources: []string{"pods", "nodes"}, Verbs: []string{"list"}}, rule("", "nodes", "", "list")}, "list nodes, list nodes.apps, list pods.apps"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests []right
			for _, e := range events {
				requests = append(requests, requestsOf(e)...)
			}
			if got := phrase(unused(rightsOf(test.namespace, test.rules), requests)); got != test.want {
				t.Errorf("unused: %s, wanted %s", got, test.want)
			}
		})
	}
}

func phrase(rights []right) string {
	words := make([]string, 0, len(rights))
	for _, r := range rights {
		words = append(words, r.String())
	}
	return strings.Join(words, ", ")
}

// TestRightsByOLM: what OLM grants by a release's bundle is what its configuration does.
func TestRightsByOLM(t *testing.T) {
	t.Parallel()
	bundles, err := filepath.Glob(filepath.Join(root, "bundle", "memcached-operator", "*"))
	must(t, err)
	if len(bundles) == 0 {
		t.Fatal("no bundles")
	}
	for _, dir := range bundles {
		version := filepath.Base(dir)
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(filepath.Join(dir, "manifests", "memcached-operator.clusterserviceversion.yaml"))
			must(t, err)
			var csv operators.ClusterServiceVersion
			must(t, yaml.UnmarshalStrict(data, &csv))
			var byOLM []right
			for _, p := range csv.Spec.InstallStrategy.StrategySpec.ClusterPermissions {
				byOLM = append(byOLM, rightsOf("", p.Rules)...)
			}
			for _, p := range csv.Spec.InstallStrategy.StrategySpec.Permissions {
				byOLM = append(byOLM, rightsOf(system, p.Rules)...)
			}

			folder := config("manifests")
			if "v"+version != release {
				folder = filepath.Join(root, "operator", "releases", "v"+version, "config", "manifests")
			}
			var configured []right
			for _, object := range manifests(t, folder) {
				if object.GetName() != "memcached-operator-manager-role" {
					continue
				}
				var role rbacv1.Role // or a ClusterRole, which looks alike
				must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role))
				configured = append(configured, rightsOf(role.Namespace, role.Rules)...)
			}
			if diff := gocmp.Diff(strings.Split(phrase(sorted(configured)), ", "), strings.Split(phrase(sorted(byOLM)), ", ")); diff != "" {
				t.Errorf("the bundle grants other rights than the configuration (-) does; run 'make bundle':\n%s", diff)
			}
		})
	}
}

// granted is what the roles bound to the operator's account allow, of those whose names end so.
func granted(t *testing.T, suffix string) []right {
	t.Helper()
	var (
		rights   []right
		everyone rbacv1.ClusterRoleBindingList
		local    rbacv1.RoleBindingList
	)
	own := func(s rbacv1.Subject) bool {
		return s.Kind == rbacv1.ServiceAccountKind && s.Namespace == system && s.Name == manager
	}
	rules := func(namespace string, ref rbacv1.RoleRef) []rbacv1.PolicyRule {
		if ref.Kind == "Role" {
			var role rbacv1.Role
			must(t, admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: ref.Name}, &role))
			return role.Rules
		}
		var role rbacv1.ClusterRole
		must(t, admin.Get(t.Context(), client.ObjectKey{Name: ref.Name}, &role))
		return role.Rules
	}
	must(t, admin.List(t.Context(), &everyone))
	for _, binding := range everyone.Items {
		if strings.HasSuffix(binding.RoleRef.Name, suffix) && slices.ContainsFunc(binding.Subjects, own) {
			rights = append(rights, rightsOf("", rules("", binding.RoleRef))...)
		}
	}
	must(t, admin.List(t.Context(), &local))
	for _, binding := range local.Items {
		if strings.HasSuffix(binding.RoleRef.Name, suffix) && slices.ContainsFunc(binding.Subjects, own) {
			rights = append(rights, rightsOf(binding.Namespace, rules(binding.Namespace, binding.RoleRef))...)
		}
	}
	if len(rights) == 0 {
		t.Fatalf("no role is bound to %s", account)
	}
	return sorted(rights)
}

// TestRights has the operator do all that it can do, and holds what it asked of the API server against its roles: nothing
// that it needs is missing, nothing that it has is unused.
func TestRights(t *testing.T) {
	since := time.Now()
	prometheus(t)
	deploy(t)
	ns := namespace(t)
	reconciles(t, ns)
	measures(t, ns)
	migratesWithoutWatchLists(t, ns)
	keepsCertificateOfOLM(t)

	rights := granted(t, "")
	var m v1.Memcached
	must(t, admin.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "beta"}, &m))
	const certificate = manager + "-service-cert"
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: certificate}}
	inner := []innerRight{
		{right{"", "cache.example.com", "memcacheds/finalizers", "", "update"}, "cannot set blockOwnerDeletion", func(c client.Client) error {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "owned", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&m, v1.GroupVersion.WithKind("Memcached"))}}}
			d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
			d.Spec.Template.Labels = d.Spec.Selector.MatchLabels
			d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "a", Image: "a"}}
			return c.Create(t.Context(), d, client.DryRunAll)
		}},
		{right{system, "", "secrets", certificate, "delete"}, "cannot set an ownerRef", func(c client.Client) error {
			return c.Patch(t.Context(), secret.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`)), client.DryRunAll)
		}},
	}
	for resource, kind := range map[string]string{"servicemonitors": "ServiceMonitor", "prometheusrules": "PrometheusRule"} {
		const name = "memcached-operator"
		object := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "monitoring.coreos.com/v1", Kind: kind}, ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: name}}
		inner = append(inner, innerRight{right{system, "monitoring.coreos.com", resource, name, "delete"}, "cannot set an ownerRef", func(c client.Client) error {
			return c.Patch(t.Context(), object.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`)), client.DryRunAll)
		}})
	}
	requests := append(allowed(t, since), shownInner(t, ns, rights, inner)...)
	for _, r := range unused(rights, requests) {
		t.Errorf("not used: %s", r)
	}
}

// TestRightsForLife does so for what it takes to elect leaders for life.
func TestRightsForLife(t *testing.T) {
	since := time.Now()
	deployFrom(t, forLife(t), func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](2) })
	lock := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "memcached-operator.cache.example.com"}}
	leader := func() (string, error) {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(lock), lock); err != nil {
			return "", err
		}
		if len(lock.OwnerReferences) != 1 || lock.Data["state"] != "held" {
			return "", fmt.Errorf("the lock is %v of %v", lock.Data, lock.OwnerReferences)
		}
		return lock.OwnerReferences[0].Name, nil
	}
	var first string
	eventually(t, "there is a leader", func() (err error) {
		first, err = leader()
		return err
	})
	must(t, admin.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: first}}))
	eventually(t, "there is another leader", func() error {
		name, err := leader()
		if err == nil && name == first {
			err = errors.New("it is still the first")
		}
		return err
	})
	rights := granted(t, "-leader-for-life")
	must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(lock), lock))
	inner := []innerRight{{right{system, "", "configmaps", lock.Name, "delete"}, "cannot set an ownerRef", func(c client.Client) error {
		free := lock.DeepCopy()
		free.ResourceVersion, free.OwnerReferences = "", nil
		return c.Update(t.Context(), free, client.DryRunAll)
	}}}
	for _, r := range unused(rights, append(allowed(t, since), shownInner(t, "life", rights, inner)...)) {
		t.Errorf("not used: %s", r)
	}
}

// forLife is a configuration by which managers elect for life.
func forLife(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	relative := func(folder string) string {
		path, err := filepath.Abs(config(folder))
		must(t, err)
		path, err = filepath.Rel(dir, path)
		must(t, err)
		return path
	}
	kustomization := fmt.Sprintf("resources: [%s]\ncomponents: [%s]\n", relative("default"), relative("leader-for-life"))
	must(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(kustomization), 0o600))
	return dir
}

// allowed is the rights that the operator's requests needed since then. None of them may have been refused.
func allowed(t *testing.T, since time.Time) []right {
	t.Helper()
	var requests []right
	events := audited(t, account, since)
	for _, e := range events {
		if e.ResponseStatus != nil && e.ResponseStatus.Code == http.StatusForbidden {
			// The API server's admission learns of a new CRD up to half a minute after it serves it. That is no missing right.
			if strings.Contains(e.ResponseStatus.Message, "cannot find RESTMapping") {
				continue
			}
			t.Errorf("refused: %s %s: %s", e.Verb, e.RequestURI, e.ResponseStatus.Message)
			continue
		}
		requests = append(requests, requestsOf(e)...)
	}
	t.Logf("%d requests", len(events))
	return requests
}

// prometheus makes the kinds of the prometheus-operator known to the cluster, so far as the operator asks for them.
func prometheus(t *testing.T) {
	t.Helper()
	for plural, kind := range map[string]string{"servicemonitors": "ServiceMonitor", "prometheusrules": "PrometheusRule"} {
		crd := &apiextensions.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: plural + ".monitoring.coreos.com"},
			Spec: apiextensions.CustomResourceDefinitionSpec{
				Group: "monitoring.coreos.com", Scope: apiextensions.NamespaceScoped,
				Names: apiextensions.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
				Versions: []apiextensions.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
					Schema: &apiextensions.CustomResourceValidation{OpenAPIV3Schema: &apiextensions.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}}}},
			},
		}
		must(t, admin.Create(t.Context(), crd))
		t.Cleanup(func() {
			if err := admin.Delete(context.Background(), crd); err != nil {
				t.Error(err)
			}
		})
	}
}

// reconciles has the operator work for Memcacheds from their beginning to their end.
func reconciles(t *testing.T, ns string) {
	t.Helper()
	ctx := t.Context()
	must(t, admin.Create(ctx, &v1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "m"}, Spec: v1.MemcachedSpec{Replicas: 1}}))
	must(t, admin.Create(ctx, &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "beta"}}))
	m := available(t, ns, "m")
	available(t, ns, "beta")

	t.Log("changed")
	must(t, admin.Patch(ctx, m, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":2,"image":{"repository":"example.com/memcached","tag":"2"}}}`))))
	available(t, ns, "m")
	key := client.ObjectKey{Namespace: ns, Name: "memcached-m"}
	must(t, admin.Patch(ctx, m, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":1}}`))))
	eventually(t, "one server has no PodDisruptionBudget", func() error {
		err := admin.Get(ctx, key, &policyv1.PodDisruptionBudget{})
		if err == nil {
			return errors.New("it has one")
		}
		return client.IgnoreNotFound(err)
	})
	must(t, admin.Patch(ctx, m, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":2}}`))))
	available(t, ns, "m")

	t.Log("drifted")
	for _, owned := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}, &policyv1.PodDisruptionBudget{}, &networkingv1.NetworkPolicy{}} {
		must(t, admin.Get(ctx, key, owned))
		must(t, admin.Patch(ctx, owned, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"app.kubernetes.io/name":"drifted"}}}`)), client.FieldOwner("drift")))
		eventually(t, fmt.Sprintf("the label of the %T is mended", owned), func() error {
			if err := admin.Get(ctx, key, owned); err != nil {
				return err
			}
			if label := owned.GetLabels()["app.kubernetes.io/name"]; label != "memcached" {
				return fmt.Errorf("it is %q", label)
			}
			return nil
		})
		uid := owned.GetUID()
		must(t, admin.Delete(ctx, owned))
		eventually(t, fmt.Sprintf("the %T is there again", owned), func() error {
			if err := admin.Get(ctx, key, owned); err != nil {
				return err
			}
			if owned.GetUID() == uid {
				return errors.New("it is still the old one")
			}
			return nil
		})
	}

	t.Log("measured")
	for _, kind := range []string{"ServiceMonitor", "PrometheusRule"} {
		object := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "monitoring.coreos.com/v1", Kind: kind}}
		eventually(t, "there is a "+kind, func() error {
			return admin.Get(ctx, client.ObjectKey{Namespace: system, Name: "memcached-operator"}, object)
		})
	}

	t.Log("deleted")
	must(t, admin.Delete(ctx, m))
	eventually(t, "the Memcached is gone", func() error {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(m), m); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}

// measures reads the metrics, with the right to and without.
func measures(t *testing.T, ns string) {
	t.Helper()
	ctx := t.Context()
	pod := startBox(t, ns, "default")
	url := "https://" + operatorPods(t)[0].Status.PodIP + ":8443/metrics"
	status, _, err := answer(t, pod, url)
	must(t, err)
	if status != "403" {
		t.Errorf("whoever may not read the metrics is answered %s", status)
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: ns}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "memcached-operator-metrics-reader"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: "default"}}}
	must(t, admin.Create(ctx, binding))
	t.Cleanup(func() { _ = admin.Delete(context.Background(), binding) })
	eventually(t, "the metrics can be read", func() error {
		status, body, err := answer(t, pod, url)
		if err != nil || status != "200" || !strings.Contains(body, "controller_runtime_reconcile_total") {
			return fmt.Errorf("answered %s, %w", status, err)
		}
		return nil
	})
}

// change changes the manager's Deployment and waits until the new one serves.
func change(t *testing.T, f func(*appsv1.Deployment)) {
	t.Helper()
	var d appsv1.Deployment
	must(t, admin.Get(t.Context(), client.ObjectKey{Namespace: system, Name: manager}, &d))
	before := d.DeepCopy()
	f(&d)
	must(t, admin.Patch(t.Context(), &d, client.MergeFrom(before)))
	served(t)
}

func setEnv(name, value string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		c := &d.Spec.Template.Spec.Containers[0]
		c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value})
	}
}

// migratesWithoutWatchLists starts the operator once more, as on an API server that watches cannot list of, with objects
// to migrate and a certificate to renew.
func migratesWithoutWatchLists(t *testing.T, ns string) {
	t.Helper()
	ctx := t.Context()
	crd := &apiextensions.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crdName}}
	must(t, admin.Status().Patch(ctx, crd, client.RawPatch(types.MergePatchType, []byte(`{"status":{"storedVersions":["v1alpha1","v1"]}}`))))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "memcached-operator-webhook-cert"}}
	must(t, admin.Patch(ctx, secret, client.RawPatch(types.MergePatchType, []byte(`{"data":{"tls.crt":""}}`))))
	change(t, setEnv("KUBE_FEATURE_WatchListClient", "false"))
	eventually(t, "the objects are migrated", func() error {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
			return err
		}
		if !slices.Equal(crd.Status.StoredVersions, []string{"v1"}) {
			return fmt.Errorf("the stored versions are %v", crd.Status.StoredVersions)
		}
		return nil
	})
	available(t, ns, "beta")
	must(t, admin.Get(ctx, client.ObjectKeyFromObject(secret), secret))
	if len(secret.Data["tls.crt"]) == 0 {
		t.Error("the certificate was not renewed")
	}
}

// keepsCertificateOfOLM starts the operator as OLM does: OLM has made the certificate, and named it and the webhooks'
// Service after the Deployment.
func keepsCertificateOfOLM(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	const service, certificate = manager + "-service", manager + "-service-cert"
	var made corev1.Secret
	must(t, admin.Get(ctx, client.ObjectKey{Namespace: system, Name: "memcached-operator-webhook-cert"}, &made))
	owner := []metav1.OwnerReference{{APIVersion: operators.SchemeGroupVersion.String(), Kind: operators.ClusterServiceVersionKind, Name: "memcached-operator." + release, UID: "csv"}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: certificate}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{"tls.crt": made.Data["tls.crt"], "tls.key": made.Data["tls.key"]}}
	must(t, admin.Create(ctx, secret))
	must(t, admin.Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: service, OwnerReferences: owner},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}}}))
	change(t, func(d *appsv1.Deployment) {
		setEnv("OPERATOR_CONDITION_NAME", "memcached-operator."+release)(d)
		spec := &d.Spec.Template.Spec
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "cert", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: certificate}}})
		c := &spec.Containers[0]
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "cert", MountPath: "/tmp/k8s-webhook-server/serving-certs"})
		c.Args = slices.DeleteFunc(c.Args, func(arg string) bool { return arg == "--self-signed-certificate" })
	})
	must(t, admin.Get(ctx, client.ObjectKeyFromObject(secret), secret))
	owner[0].Controller, owner[0].BlockOwnerDeletion = ptr.To(false), ptr.To(false)
	if diff := gocmp.Diff(owner, secret.OwnerReferences); diff != "" {
		t.Error(diff)
	}
}

// innerRight is a right that the API server asks for within a request that is about something else, which the audit log
// does not tell.
type innerRight struct {
	right   right
	refusal string // what it says to who has not the right
	within  func(client.Client) error
}

// shownInner shows for each inner right that its request is refused to an account that has all rights but this one, and
// returns those for which it is.
func shownInner(t *testing.T, name string, rights []right, inner []innerRight) []right {
	t.Helper()
	var shown []right
	for i, test := range inner {
		if !slices.Contains(rights, test.right) {
			t.Errorf("not granted: %s", test.right)
			continue
		}
		with := accountWith(t, fmt.Sprintf("%s-%d-with", name, i), rights)
		eventually(t, "with the right, it is granted", func() error { return test.within(with) })
		without := accountWith(t, fmt.Sprintf("%s-%d-without", name, i), slices.DeleteFunc(slices.Clone(rights), func(r right) bool { return r == test.right }))
		eventually(t, "without the right, it is refused", func() error {
			err := test.within(without)
			if err == nil {
				return errors.New("it is granted")
			}
			if !strings.Contains(err.Error(), test.refusal) {
				return fmt.Errorf("wanted %q: %w", test.refusal, err)
			}
			return nil
		})
		shown = append(shown, test.right)
	}
	return shown
}

// accountWith is a client of somebody who has these rights.
func accountWith(t *testing.T, name string, rights []right) client.Client {
	t.Helper()
	rules := map[string][]rbacv1.PolicyRule{}
	for _, r := range rights {
		rule := rbacv1.PolicyRule{APIGroups: []string{r.group}, Resources: []string{r.resource}, Verbs: []string{r.verb}}
		if r.object != "" {
			rule.ResourceNames = []string{r.object}
		}
		rules[r.namespace] = append(rules[r.namespace], rule)
	}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}
	var objects []client.Object
	for namespace, rules := range rules {
		about := metav1.ObjectMeta{Namespace: namespace, Name: name}
		if namespace == "" {
			objects = append(objects, &rbacv1.ClusterRole{ObjectMeta: about, Rules: rules},
				&rbacv1.ClusterRoleBinding{ObjectMeta: about, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}})
			continue
		}
		objects = append(objects, &rbacv1.Role{ObjectMeta: about, Rules: rules},
			&rbacv1.RoleBinding{ObjectMeta: about, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}})
	}
	for _, object := range objects {
		must(t, admin.Create(t.Context(), object))
		t.Cleanup(func() { _ = admin.Delete(context.Background(), object) })
	}
	config := rest.CopyConfig(world.Config())
	config.Impersonate = rest.ImpersonationConfig{UserName: name}
	c, err := client.New(config, client.Options{Scheme: admin.Scheme(), Mapper: admin.RESTMapper()})
	must(t, err)
	return c
}
