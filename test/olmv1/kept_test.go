package olmv1_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv1"
)

// kept is a kept cluster with OLM v1.
type kept struct {
	*testing.T
	kubeconfig string
	olm        *olmv1.Client
}

// olmkit runs a command on the cluster, wants it to end with an exit code and to say all of wants, and returns its standard output.
func (k kept) olmkit(code int, command string, wants ...string) string {
	k.Helper()
	out, errOut := askBoth(k.T, code, append(strings.Fields(command), "--kubeconfig", k.kubeconfig)...)
	for _, want := range wants {
		if !strings.Contains(out+errOut, want) {
			k.Errorf("olmkit %s does not say %q\n%s%s", command, want, out, errOut)
		}
	}
	return out
}

// bundle is the command line that runs the memcached operator of a release.
func (k kept) bundle(release string) string {
	return fmt.Sprintf("bundle run %s --image ghcr.io/olmkit/%s:v%s=%s", filepath.Join(root, "bundle", pkg, release), pkg, release, filepath.Join(root, "bin", pkg, "v"+release, "manager"))
}

// there reports whether o is on the cluster.
func (k kept) there(o client.Object) bool {
	k.Helper()
	err := k.olm.Get(k.Context(), client.ObjectKeyFromObject(o), o)
	if client.IgnoreNotFound(err) != nil {
		k.Fatal(err)
	}
	return err == nil
}

// keptWithOLMv1 brings a kept cluster up until the test's end.
func keptWithOLMv1(t *testing.T, name string, flags ...string) kept {
	t.Helper()
	said, _ := askBoth(t, 0, append([]string{"cluster", "up", "--name", name, "--olm=v1"}, flags...)...)
	t.Cleanup(func() {
		if out, err := exec.Command(filepath.Join(root, "bin", "olmkit"), "cluster", "down", "--name", name).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	k := kept{T: t, kubeconfig: strings.TrimPrefix(strings.TrimSpace(said), "export KUBECONFIG=")}
	config, err := clientcmd.BuildConfigFromFlags("", k.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if k.olm, err = olmv1.Connect(config); err != nil {
		t.Fatal(err)
	}
	return k
}

// TestKept is the loop of every day under OLM v1 on one kept cluster: bring it up with OLM v1 and a catalog, run a bundle and a newer
// one, clean up, and uninstall OLM v1.
func TestKept(t *testing.T) {
	const name = "olmv1-kept"
	k := keptWithOLMv1(t, name, "--catalog", filepath.Join(root, "catalog"))
	k.replacesCatalog(name)
	k.runsBundles()
	k.cleansUp()
	k.tellsRefusal()
	k.reinstalls()
}

// replacesCatalog has the catalog of 'cluster up' replaced, and removes it.
func (k kept) replacesCatalog(name string) {
	served := &olmv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: "olmkit-catalog"}}
	if !k.there(served) || !served.Serves() {
		k.Fatalf("the catalog: %+v", served.Status)
	}
	before := served.Spec.Source.Image.Ref
	newer, err := os.ReadFile(filepath.Join(root, "catalog", pkg, "catalog.yaml"))
	if err != nil {
		k.Fatal(err)
	}
	file := filepath.Join(k.TempDir(), "catalog.yaml")
	if err := os.WriteFile(file, append(newer, "\n---\nschema: olm.package\nname: tea\n"...), 0o600); err != nil {
		k.Fatal(err)
	}
	ask(k.T, 0, "cluster", "load", "--name", name, "--catalog", file)
	if !k.there(served) || !served.Serves() || served.Trouble() != "" || served.Spec.Source.Image.Ref == before {
		k.Errorf("the catalog: %+v, and was %s", served, before)
	}
	k.olmkit(1, "olm uninstall --olm v1", "OLM v1 is in use: ClusterCatalog/olmkit-catalog")
	if err := k.olm.Delete(k.Context(), served); err != nil {
		k.Fatal(err)
	}
}

// runsBundles runs a bundle and a newer one, and is refused an older one.
func (k kept) runsBundles() {
	k.olmkit(0, k.bundle("0.1.0"), "memcached-operator.v0.1.0 is installed", "Deployments rolled out", "kubectl get clusterextensions,pods --namespace memcached-operator")
	var r struct{ OLM, From, Bundle, Namespace string }
	if err := json.Unmarshal([]byte(k.olmkit(0, k.bundle("0.2.0")+" -o json")), &r); err != nil || r.From != "memcached-operator.v0.1.0" || r.Bundle != "memcached-operator.v0.2.0" || r.OLM != "v1" {
		k.Errorf("the upgrade: %v: %+v", err, r)
	}
	k.olmkit(0, k.bundle("0.2.0")+" --olm v1", "was installed before, and is left as it is")
	k.olmkit(1, k.bundle("0.1.0"), "memcached-operator.v0.2.0 is installed, which is 0.2.0", "fix: run a bundle of a higher version")
	k.olmkit(2, k.bundle("0.2.0")+" --registry example.com/r", "--registry is for a cluster that pulls images")
	k.olmkit(0, "olm status", "OLM "+olmv1.Version, "5 of 5 parts are well")
	k.olmkit(0, "upgrade diagnose -p "+pkg, "installed  memcached-operator.v0.2.0", "up to date")
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: olmv1.Installer(pkg)}}
	if !k.there(role) {
		k.Fatal("there is no role to install with")
	}
	for _, rule := range role.Rules {
		if slices.ContainsFunc(rule.ResourceNames, func(n string) bool { return strings.Contains(n, "v0.1.0") }) {
			k.Errorf("the role still names what was replaced: %v", rule)
		}
	}
}

// cleansUp cleans up, which is refused while there is an object that OLM v1 would delete.
func (k kept) cleansUp() {
	apply(k.T, k.olm, []byte(`{"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "metadata": {"name": "mine", "namespace": "default"}, "spec": {"size": 1}}`))
	k.olmkit(0, "cleanup "+pkg+" --dry-run", "found   ClusterExtension/memcached-operator", "CustomResourceDefinition/memcacheds.cache.example.com")
	k.olmkit(1, "cleanup "+pkg, "Memcached/default/mine", "kubectl delete memcacheds.cache.example.com --all --all-namespaces")
	mine := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mine"}}
	mine.SetGroupVersionKind(schema.GroupVersionKind{Group: "cache.example.com", Version: "v1alpha1", Kind: "Memcached"})
	extension := &olmv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: pkg}}
	if !k.there(mine) || mine.DeletionTimestamp != nil || !k.there(extension) || extension.DeletionTimestamp != nil {
		k.Error("it has removed what it was to keep")
	}
	k.olmkit(1, "olm uninstall --olm v1", "OLM v1 is in use: ClusterExtension/memcached-operator", "olmkit cleanup PACKAGE")
	if err := k.olm.Delete(k.Context(), mine); err != nil {
		k.Fatal(err)
	}
	k.olmkit(0, "cleanup "+pkg, "removed  ClusterExtension/memcached-operator", "removed  Namespace/memcached-operator ")
	for _, o := range []client.Object{
		extension, &olmv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: olmv1.RunCatalog(pkg)}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: pkg}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: olmv1.Installer(pkg)}}, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: olmv1.Installer(pkg)}},
		&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "memcacheds.cache.example.com"}},
	} {
		if k.there(o) {
			k.Errorf("%T %s is left", o, o.GetName())
		}
	}
}

// tellsRefusal runs a bundle of which somebody else made the CRD, which is refused at once, and one that OLM v1 refuses, since its
// Deployment is somebody else's, and cleans up.
func (k kept) tellsRefusal() {
	file := filepath.Join(root, "bundle", pkg, "0.1.0", "manifests", "cache.example.com_memcacheds.yaml")
	manifest, err := os.ReadFile(file)
	if err != nil {
		k.Fatal(err)
	}
	apply(k.T, k.olm, manifest)
	k.olmkit(1, k.bundle("0.1.0"), "CustomResourceDefinition/memcacheds.cache.example.com is there already", "--olm v0")
	k.olmkit(0, "cleanup "+pkg, "nothing that 'olmkit bundle run' installed")
	theirs := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "memcacheds.cache.example.com"}}
	if err := k.olm.Delete(k.Context(), theirs); err != nil {
		k.Fatal(err)
	}

	labels := map[string]string{"app": "theirs"}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: pkg}}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: pkg, Name: pkg + "-controller-manager"}}
	deployment.Spec.Replicas, deployment.Spec.Selector = new(int32), &metav1.LabelSelector{MatchLabels: labels}
	deployment.Spec.Template.Labels = labels
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "theirs", Image: "example.com/theirs"}}
	for _, o := range []client.Object{namespace, deployment} {
		if err := k.olm.Create(k.Context(), o); err != nil {
			k.Fatal(err)
		}
	}
	k.olmkit(1, k.bundle("0.1.0"), "is not installed after", "ClusterExtension/memcached-operator says: Retrying", "olmkit cleanup memcached-operator")
	k.olmkit(0, "cleanup "+pkg)
	if !k.there(deployment) {
		k.Error("somebody else's Deployment is gone")
	}
	if err := k.olm.Delete(k.Context(), namespace); err != nil {
		k.Fatal(err)
	}
}

// reinstalls removes OLM v1 and installs it again.
func (k kept) reinstalls() {
	k.olmkit(0, "olm uninstall --olm v1", "OLM "+olmv1.Version+" is removed")
	var definitions apiextensionsv1.CustomResourceDefinitionList
	var roles rbacv1.ClusterRoleList
	if err := k.olm.List(k.Context(), &definitions); err != nil || len(definitions.Items) > 0 {
		k.Errorf("%v: %d definitions are left", err, len(definitions.Items))
	}
	if err := k.olm.List(k.Context(), &roles, client.MatchingLabels(cluster.Labels(""))); err != nil || len(roles.Items) > 0 {
		k.Errorf("%v: %d roles are left", err, len(roles.Items))
	}
	if k.there(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: olmv1.Namespace}}) {
		k.Error("the namespace is left")
	}
	k.olmkit(1, k.bundle("0.1.0")+" --olm v1", "OLM v1 is not on the cluster", "olmkit olm install --olm v1")
	k.olmkit(1, "olm uninstall --olm v1", "the cluster has no OLM v1")
	k.olmkit(0, "olm install --olm v1", "OLM "+olmv1.Version+" is installed")
	k.olmkit(0, "olm install --olm v1", "0 objects were created")
	k.olmkit(0, "olm status", "4 of 4 parts are well")
	k.olmkit(0, k.bundle("0.1.0"), "memcached-operator.v0.1.0 is installed")
}
