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
	"sigs.k8s.io/yaml"

	"github.com/olmkit/olmkit/internal/image"
)

// The containers of the Job of examples/ walk a plan in the root of olmkit's own image, which has neither Go nor a shell, a part
// in each. Their reports make the one that a walk in one piece gives. They are privileged, which no container of an embedded
// cluster can be, so that the test runs them itself.
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
	c := &job.Spec.Template.Spec.Containers[0]
	args := append(slices.DeleteFunc(c.Args, func(arg string) bool {
		return strings.HasPrefix(arg, "--image=") || strings.HasPrefix(arg, "--channel=")
	}), plan...)
	for i, arg := range args {
		args[i] = strings.NewReplacer("quay.io/team/my-catalog:v1", "/catalog", "auto/4", "auto/2").Replace(arg)
	}
	for _, dir := range []string{"dev", "proc", "tmp"} {
		if err := os.MkdirAll(filepath.Join(files, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	merge := []string{"report", "merge", "-o", "json"}
	for index := range 2 {
		part := privileged(t, files, fmt.Sprintf("JOB_COMPLETION_INDEX=%d", index), slices.Concat(c.Command, args)...)
		if !json.Valid(bytes.TrimSpace(part)) {
			t.Fatalf("part %d prints no report alone: %.2000s", index, part)
		}
		file := filepath.Join(t.TempDir(), fmt.Sprintf("%d.json", index))
		write(t, file, string(part))
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

// privileged runs a command in the folder root, in namespaces of its own and with all that the user may do, as a privileged
// container runs, and returns what it prints.
func privileged(t *testing.T, root, env string, command ...string) []byte {
	t.Helper()
	const enter = `mount --rbind "$0" "$0" && mount --rbind /dev "$0/dev" && mount -t proc proc "$0/proc" && exec chroot "$0" "$@"`
	cmd := exec.CommandContext(t.Context(), "unshare", slices.Concat([]string{"--mount", "--pid", "--fork", "--kill-child", "sh", "-c", enter, root}, command)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "OLMKIT_CACHE=/var/cache/olmkit", env} // as the image says
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errOut.Bytes())
	}
	return out
}
