//go:build linux

// Package started follows docs/getting-started.md by the letter, as a new user would, on a project that kubebuilder makes.
package started

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/olmkit/olmkit/internal/cache"
)

// blocks are what the page tells its reader to type; those marked 'fails' end with the exit code for findings.
var blocks = regexp.MustCompile("(?ms)^```sh( fails)?\n(.*?)^```$")

func TestGettingStarted(t *testing.T) { follow(t, "") }

// TestGettingStartedOnKind follows the page with --kind kind wherever it keeps a cluster.
func TestGettingStartedOnKind(t *testing.T) {
	node := os.Getenv("OLMKIT_NODE_IMAGE")
	if node == "" {
		t.Fatal("OLMKIT_NODE_IMAGE names no node image: 'make test-started' brings one, with Docker")
	}
	follow(t, node)
}

// kept are the commands that keep a cluster, or do something with it.
var kept = regexp.MustCompile(`olmkit cluster (up|load|down)`)

// follow runs what the page says, with a kept cluster of kind if node is a node image.
func follow(t *testing.T, node string) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs/getting-started.md"))
	if err != nil {
		t.Fatal(err)
	}
	registry := startRegistry(t, filepath.Join(root, "bin/registry"))
	script := "set -eux\ntrap 'olmkit cluster down || true' EXIT\n"
	for _, block := range blocks.FindAllStringSubmatch(string(page), -1) {
		if block[1] == "" {
			script += block[2]
			continue
		}
		script += "set +e\n" + block[2] + "code=$?\nset -e\ntest $code = 3\n"
	}
	const published = "export REGISTRY=localhost:5000\n"
	if strings.Count(script, published) != 1 {
		t.Fatalf("the page does not say %q once", published)
	}
	script = strings.Replace(script, published, "export REGISTRY="+registry+"\n", 1)
	if node != "" {
		script = strings.ReplaceAll(kept.ReplaceAllString(script, "$0 --kind kind"), "cluster up --kind kind", "cluster up --kind kind --node-image "+node)
	}
	script += `
# What was published is what was made, and running it again changes nothing.
test -z "$(olmkit catalog diff catalog $REGISTRY/guestbook-catalog:latest)"
make bundle 2>&1 | grep 'is up to date'
grep 'kind: Subscription' install.yaml
grep 'interval: 10m0s' install.yaml
test -s bin/upgrade.xml
`
	dir := t.TempDir()
	c := exec.CommandContext(t.Context(), "bash", "-c", script)
	c.Dir = dir
	c.Env = append(os.Environ(), "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"), "GOWORK=off", "GOFLAGS=", "OLMKIT_CACHE="+ownCache(t))
	said, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("%v", err)
	}
	t.Logf("%s", said)
}

// ownCache is a cache for kept clusters of this test alone, with the components of the user's.
func ownCache(t *testing.T) string {
	t.Helper()
	folder, err := cache.Folder()
	if err != nil {
		t.Fatal(err)
	}
	dir, components := t.TempDir(), filepath.Join(folder, "components")
	if err := os.MkdirAll(components, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(components, filepath.Join(dir, "components")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// startRegistry starts distribution's registry and returns its host.
func startRegistry(t *testing.T, program string) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yml")
	text := fmt.Sprintf("version: 0.1\nstorage: {filesystem: {rootdirectory: %q}}\nhttp: {addr: %q}\nlog: {level: error}\n", filepath.Join(dir, "data"), address)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), program, "serve", config)
	c.Env = append(os.Environ(), "OTEL_TRACES_EXPORTER=none")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
			_, port, _ := net.SplitHostPort(address)
			return "localhost:" + port
		}
		if time.Now().After(deadline) {
			t.Fatal("the registry does not listen")
		}
	}
}
