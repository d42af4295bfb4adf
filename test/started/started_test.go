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
)

// blocks are what the page tells its reader to type; those marked 'fails' end with the exit code for findings.
var blocks = regexp.MustCompile("(?ms)^```sh( fails)?\n(.*?)^```$")

func TestGettingStarted(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs/getting-started.md"))
	if err != nil {
		t.Fatal(err)
	}
	registry := startRegistry(t, filepath.Join(root, "bin/registry"))
	script := "set -eux\n"
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
	script += `
# What was published is what was made, and running it again changes nothing.
test -z "$(olmkit catalog diff catalog $REGISTRY/guestbook-catalog:latest)"
olmkit bundle generate --version 0.2.0 --channels stable --api api --image controller=$REGISTRY/guestbook:v0.2.0 --output-dir bundle/0.2.0 2>&1 | grep 'is up to date'
grep 'kind: Subscription' install.yaml
test -s bin/upgrade.xml
`
	dir := t.TempDir()
	c := exec.CommandContext(t.Context(), "bash", "-c", script)
	c.Dir = dir
	c.Env = append(os.Environ(), "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"), "GOWORK=off", "GOFLAGS=")
	said, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("%v", err)
	}
	t.Logf("%s", said)
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
	text := fmt.Sprintf("version: 0.1\nstorage: {filesystem: {rootdirectory: %q}}\nhttp: {addr: %q}\nlog: {level: fatal}\n", filepath.Join(dir, "data"), address)
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
