//go:build linux

package e2e_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/cache"
)

// nobody is the ordinary user as whom the test runs olmkit when it is run as root itself.
const nobody = "65534"

// ordinaryUser returns a folder of an ordinary user's, with files in it, and a function for olmkit's command lines there.
// The cluster's components are those that are built already, in a copy of the cache.
func ordinaryUser(t *testing.T, files ...string) (string, func(args ...string) *exec.Cmd) {
	t.Helper()
	name := "e2e-" + strings.ToLower(t.Name())
	must(t, "cluster", "up", "--name", name) // so that the components are built
	must(t, "cluster", "down", "--name", name)
	cache, err := cache.Folder()
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp("", "olmkit-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	for _, words := range [][]string{
		{"mkdir", home + "/cache"},
		{"cp", "-r", cache + "/components", home + "/cache/"},
		{"mkdir", home + "/bin"},
		append(append([]string{"cp", "-r", olmkit}, files...), home+"/bin"),
		{"cp", "-r", filepath.Join(root, "catalog"), home},
		{"chown", "-R", nobody + ":" + nobody, home},
	} {
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", words, err, out)
		}
	}
	return home, func(args ...string) *exec.Cmd {
		cmd := exec.Command("setpriv", append([]string{"--reuid", nobody, "--regid", nobody, "--clear-groups", home + "/bin/olmkit"}, args...)...)
		cmd.Dir = home
		cmd.Env = []string{"HOME=" + home, "OLMKIT_CACHE=" + home + "/cache", "PATH=" + os.Getenv("PATH")}
		return cmd
	}
}

// TestAsOrdinaryUser walks a hop without root.
func TestAsOrdinaryUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return // every other test is this one
	}
	_, command := ordinaryUser(t, filepath.Join(root, "bin", "memcached-operator"))
	cmd := command("upgrade", "test", "catalog", "--package", "memcached-operator", "--from", "0.1.0", "--to", "0.2.0", "-o", "json", "--fail-on", "error",
		"--image", "ghcr.io/olmkit/memcached-operator:v0.1.0=bin/memcached-operator/v0.1.0/manager",
		"--image", "ghcr.io/olmkit/memcached-operator:v0.2.0=bin/memcached-operator/v0.2.0/manager")
	var errOut strings.Builder
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, errOut.String())
	}
	var report struct {
		Result  string
		Cluster struct{ Limitations []string }
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatal(err)
	}
	if report.Result != "passed" {
		t.Errorf("the walk %s", report.Result)
	}
	if !strings.Contains(strings.Join(report.Cluster.Limitations, "\n"), "runAsUser") {
		t.Errorf("the report does not say that users can't be honoured: %v", report.Cluster.Limitations)
	}
}
