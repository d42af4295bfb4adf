//go:build linux

package e2e_test

import (
	"context"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/olmkit/olmkit/internal/cluster/embedded"
	"github.com/olmkit/olmkit/internal/cluster/embedded/sandbox"
	"github.com/olmkit/olmkit/internal/image"
)

// TestMain is what the packing of components starts of this program, too, where it has to build them.
func TestMain(m *testing.M) {
	sandbox.Main()
	os.Exit(m.Run())
}

// TestPulledComponents brings up a cluster from what a registry has, with an empty cache, without Go.
func TestPulledComponents(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	made, err := embedded.MakeArtifact(t.Context(), embedded.ArtifactOptions{Architectures: []string{runtime.GOARCH}, Parts: embedded.Parts{Kubernetes: []string{embedded.KubernetesVersion}}})
	if err != nil {
		t.Fatal(err)
	}
	ref, err := image.Client{}.Push(t.Context(), strings.TrimPrefix(server.URL, "http://")+"/team/components:v1", made)
	if err != nil {
		t.Fatal(err)
	}
	cache, name := t.TempDir(), "pulled"
	env := []string{"PATH=" + pathWithoutGo(t), "OLMKIT_CACHE=" + cache, embedded.ComponentsVariable + "=" + ref}
	r := run(t, env, "cluster", "up", "--name", name)
	if r.code != 0 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.out, r.errOut)
	}
	t.Cleanup(func() {
		cmd := exec.CommandContext(context.Background(), olmkit, "cluster", "down", "--name", name)
		cmd.Env = append(os.Environ(), env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("end the cluster: %v: %s", err, out)
		}
	})
	if !strings.Contains(r.errOut, "pulling etcd and Kubernetes") || strings.Contains(r.errOut, "building") {
		t.Errorf("it said:\n%s", r.errOut)
	}
	config, err := clientcmd.BuildConfigFromFlags("", strings.TrimPrefix(strings.TrimSpace(r.out), "export KUBECONFIG="))
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := client(t, config).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 1 {
		t.Errorf("nodes %v, %v", nodes, err)
	}
	_, digest, _ := strings.Cut(ref, "@")
	again := run(t, append(env, embedded.ComponentsVariable+"=127.0.0.1:1/nothing@"+digest), "cluster", "build", "--olm", "none")
	if dir := strings.TrimSpace(again.out); again.code != 0 || filepath.Dir(dir) != filepath.Join(cache, "components") {
		t.Errorf("from the cache: exit code %d\n%s%s", again.code, again.out, again.errOut)
	}
	gone := run(t, append(env, "OLMKIT_CACHE="+t.TempDir(), embedded.ComponentsVariable+"=127.0.0.1:1/nothing:v1"), "cluster", "build", "--olm", "none")
	if gone.code != 1 || !strings.Contains(gone.errOut, "no program go") || !strings.Contains(gone.errOut, "fix: make 127.0.0.1:1/nothing:v1 reachable") {
		t.Errorf("without a registry: exit code %d\n%s", gone.code, gone.errOut)
	}
}

// pathWithoutGo is the PATH without the folders that have Go.
func pathWithoutGo(t *testing.T) string {
	t.Helper()
	var dirs []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if _, err := os.Stat(filepath.Join(dir, "go")); err != nil {
			dirs = append(dirs, dir)
		}
	}
	return strings.Join(dirs, string(filepath.ListSeparator))
}
