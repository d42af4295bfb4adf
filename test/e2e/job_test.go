//go:build linux

package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/olmkit/olmkit/internal/image"
)

// The Job of examples/ walks a plan in pods of olmkit's own image, which has neither Go nor a shell, a part in each. Their
// reports make the one that a walk in one piece gives.
func TestIndexedJob(t *testing.T) {
	t.Parallel()
	made := exec.CommandContext(t.Context(), "make", "olmkit-image")
	made.Dir = root
	if out, err := made.CombinedOutput(); err != nil {
		t.Fatalf("make olmkit-image: %v\n%s", err, out)
	}
	files := filepath.Join(t.TempDir(), "root")
	if err := (image.Client{}).Root(t.Context(), filepath.Join(root, "bin", "image", "olmkit.tar"), files); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(files, "catalog"), os.DirFS(filepath.Join(root, "catalog", "memcached-operator"))); err != nil {
		t.Fatal(err)
	}
	plan := []string{"--package=memcached-operator", "--channel=stable", "--edges=chain", "--max-hops=2"}

	var job batchv1.Job
	if err := yaml.UnmarshalStrict([]byte(read(t, filepath.Join(root, "examples", "job.yaml"))), &job); err != nil {
		t.Fatal(err)
	}
	job.Spec.Completions, job.Spec.Parallelism = ptr.To[int32](2), ptr.To[int32](2)
	c := &job.Spec.Template.Spec.Containers[0]
	c.Env = []corev1.EnvVar{{Name: "OLMKIT_CACHE", Value: "/var/cache/olmkit"}} // as the image says, which a folder can't
	c.Args = append(slices.DeleteFunc(c.Args, func(arg string) bool {
		return strings.HasPrefix(arg, "--image=") || strings.HasPrefix(arg, "--channel=")
	}), plan...)
	for i, arg := range c.Args {
		c.Args[i] = strings.NewReplacer("quay.io/team/my-catalog:v1", "/catalog", "auto/4", "auto/2").Replace(arg)
	}

	_, config := up(t, "e2e-job")
	must(t, "cluster", "load", "--name", "e2e-job", c.Image+"="+files)
	kube := client(t, config)
	if _, err := kube.BatchV1().Jobs("default").Create(t.Context(), &job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the job ends", func() error {
		found, err := kube.BatchV1().Jobs("default").Get(t.Context(), job.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range found.Status.Conditions {
			switch {
			case condition.Status != corev1.ConditionTrue:
			case condition.Type == batchv1.JobComplete:
				return nil
			case condition.Type == batchv1.JobFailed:
				for _, pod := range podsOf(t, kube, job.Name, "") {
					t.Logf("%s: %+v\n%s", pod.Name, pod.Status.ContainerStatuses, logOf(t, kube, pod.Name))
				}
				t.Fatal(condition.Message)
			}
		}
		return fmt.Errorf("its status is %+v", found.Status)
	})
	pods := podsOf(t, kube, job.Name, "status.phase=Succeeded")
	if len(pods) != 2 {
		t.Fatalf("%d pods", len(pods))
	}
	merge := []string{"report", "merge", "-o", "json"}
	for _, pod := range pods {
		report := logOf(t, kube, pod.Name)
		if !json.Valid(bytes.TrimSpace(report)) {
			t.Fatalf("pod %s prints no report alone: %.2000s", pod.Name, report)
		}
		file := filepath.Join(t.TempDir(), pod.Name+".json")
		write(t, file, string(report))
		merge = append(merge, file)
	}
	merged := filepath.Join(t.TempDir(), "merged.json")
	write(t, merged, must(t, merge...).out)

	var planned struct {
		Hops []struct{ From, To string }
	}
	if err := json.Unmarshal([]byte(must(t, append([]string{"upgrade", "plan", "catalog", "-o", "json"}, plan...)...).out), &planned); err != nil {
		t.Fatal(err)
	}
	walked := readReport(t, merged)
	if len(walked.Hops) != 2 || len(planned.Hops) != 2 {
		t.Fatalf("walked %d hops of %d", len(walked.Hops), len(planned.Hops))
	}
	for i, h := range walked.Hops {
		if h.From != planned.Hops[i].From || h.To != planned.Hops[i].To || h.Result != "passed" {
			t.Errorf("hop %d is %s → %s, %s; planned was %v", i, h.From, h.To, h.Result, planned.Hops[i])
		}
	}
}

func podsOf(t *testing.T, kube *kubernetes.Clientset, job, which string) []corev1.Pod {
	t.Helper()
	pods, err := kube.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + job, FieldSelector: which})
	if err != nil {
		t.Fatal(err)
	}
	return pods.Items
}

func logOf(t *testing.T, kube *kubernetes.Clientset, pod string) []byte {
	t.Helper()
	log, err := kube.CoreV1().Pods("default").GetLogs(pod, &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return log
}
