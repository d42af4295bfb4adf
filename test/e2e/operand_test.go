//go:build linux

package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The operands of a walk are a real memcached, from Debian: the walk finds that they run, and that the hop does not
// restart them.
func TestWalkWithRealOperands(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("memcached")
	if err != nil {
		t.Fatalf("%v: install the package memcached", err)
	}
	libraries, err := exec.Command("ldd", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	image := t.TempDir()
	if err := os.Chmod(image, 0o755); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"/usr/local/bin/memcached": program}
	for _, path := range regexp.MustCompile(`/\S+`).FindAllString(string(libraries), -1) {
		files[path] = path
	}
	for target, source := range files {
		data, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		target = filepath.Join(image, target)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(target, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"upgrade", "test", "catalog", "--package", "memcached-operator", "--edges", "chain", "--from", "0.4.0", "--to", "0.5.0",
		"--image", "docker.io/library/memcached:1.6.39=" + image, "-o", "json"}
	for _, v := range []string{"v0.4.0", "v0.5.0"} {
		args = append(args, "--image", "ghcr.io/olmkit/memcached-operator:"+v+"="+filepath.Join(root, "bin", "memcached-operator", v, "manager"))
	}
	report := must(t, args...).out
	if !strings.Contains(report, `"result": "passed"`) || strings.Contains(report, "simulated") {
		t.Errorf("reported %s", report)
	}
}
