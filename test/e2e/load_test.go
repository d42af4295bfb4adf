//go:build linux

package e2e_test

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// What 'image push' packs, 'cluster load' lets run.
func TestLoadPackedProgram(t *testing.T) {
	t.Parallel()
	kubeconfig, config := up(t, "e2e-load")
	c := client(t, config)
	archive := filepath.Join(t.TempDir(), "box.tar")
	must(t, "image", "push", "--program", buildBox(t), boxImage, "--output", archive)
	must(t, "cluster", "load", "--name", "e2e-load", boxImage+"="+archive)
	if images, err := filepath.Glob(filepath.Join(filepath.Dir(kubeconfig), "olmkit-images-*", "0", "manager")); err != nil || len(images) != 1 {
		t.Errorf("beside the kubeconfig there is %v, %v", images, err)
	}
	startBox(t, c)
	pod := readyPod(t, c, func(*corev1.Pod) bool { return true })
	if id := pod.Status.ContainerStatuses[0].ContainerID; !strings.HasPrefix(id, "process://") {
		t.Errorf("it runs as %s", id)
	}
}
