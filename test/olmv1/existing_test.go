package olmv1_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/lifecycle/olmv1"
	"github.com/olmkit/olmkit/internal/report"
)

// TestExisting walks an upgrade under the OLM v1 of a cluster that stays, and leaves nothing behind; what a walk that is killed leaves,
// cleanup removes.
func TestExisting(t *testing.T) {
	const name = "olmv1-existing"
	k := keptWithOLMv1(t, name)
	for _, version := range []string{"v0.3.1", "v0.4.0"} {
		ask(t, 0, "cluster", "load", "--name", name, fmt.Sprintf("ghcr.io/olmkit/%s:%s=%s", pkg, version, filepath.Join(root, "bin", pkg, version, "manager")))
	}
	file := filepath.Join(t.TempDir(), "report.json")
	walk := "upgrade test " + filepath.Join(root, "catalog") + " --package " + pkg + " --edges chain --from 0.3.1 --to 0.4.0 --cluster existing --olm v1"
	k.olmkit(2, walk+" --registry example.com/r", "--registry is for a cluster that pulls images")
	k.leftNothing("a walk that is refused")
	k.olmkit(0, walk+" --report json="+file)
	r := read(t, file)
	if r.Cluster.Kind != "existing" || r.Cluster.OLM != olmv1.Version || len(r.Hops) != 1 || r.Hops[0].Result != report.Passed {
		t.Errorf("the report: %+v %+v", r.Cluster, r.Hops)
	}
	for _, l := range r.Cluster.Limitations {
		if strings.Contains(l, "inline") {
			t.Errorf("a limitation that is of OLM v0: %s", l)
		}
	}
	k.leftNothing("a walk")

	k.killInHop(strings.Fields(walk + " --kubeconfig " + k.kubeconfig))
	k.olmkit(1, walk, "has left objects on cluster", "ClusterExtension/memcached-operator", "olmkit cleanup --kubeconfig")
	k.olmkit(0, "cleanup", "removed  ClusterExtension/memcached-operator", "removed  Namespace/olmkit-walk ")
	k.leftNothing("cleanup")
	k.olmkit(0, "cleanup", "nothing is left of walks")
}

// killInHop begins a walk and kills it when OLM v1 has applied the new release.
func (k kept) killInHop(walk []string) {
	k.Helper()
	said, err := os.Create(filepath.Join(k.TempDir(), "said"))
	if err != nil {
		k.Fatal(err)
	}
	defer said.Close()
	cmd := exec.CommandContext(k.Context(), filepath.Join(root, "bin", "olmkit"), walk...)
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		k.Fatal(err)
	}
	for range 1200 {
		text, err := os.ReadFile(said.Name())
		if err != nil {
			k.Fatal(err)
		}
		if _, hop, found := bytes.Cut(text, []byte("install memcached-operator.v0.3.1 (")); found && bytes.Contains(hop, []byte("applied")) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err := cmd.Process.Kill(); err != nil {
		k.Fatal(err)
	}
	_ = cmd.Wait()
}

// leftNothing fails if something of a walk is on the cluster.
func (k kept) leftNothing(what string) {
	k.Helper()
	for _, o := range []client.Object{
		&olmv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: pkg}}, &olmv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: "olmkit"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "olmkit-walk"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "olmkit-samples"}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: olmv1.Installer(pkg)}}, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: olmv1.Installer(pkg)}},
		&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "memcacheds.cache.example.com"}},
	} {
		if k.there(o) {
			k.Errorf("%s leaves %T %s", what, o, o.GetName())
		}
	}
}
