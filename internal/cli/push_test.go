//go:build unix

package cli

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

// TestPushAsksFirst: a registry that takes no uploads is told of before anything is packed: what could not be packed, or had,
// does not come to light.
func TestPushAsksFirst(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.URL.Path == "/v2/" {
			return
		}
		http.Error(w, `{"errors": [{"code": "DENIED", "message": "not you"}]}`, http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	reference := strings.TrimPrefix(server.URL, "http://") + "/tea/tea:1"
	bundle := filepath.Join(t.TempDir(), "bundle")
	if err := os.CopyFS(bundle, os.DirFS("../../bundle/memcached-operator/0.5.0")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(bundle, "tests"), 0o755), os.Symlink("nothing", filepath.Join(bundle, "tests", "link"))); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"bundle", "push", bundle, reference},
		{"catalog", "push", "../../catalog", reference, "--base", "127.0.0.1:1/opm:1"},
	} {
		var said bytes.Buffer
		if code := Run(t.Context(), Streams{Out: &said, Err: &said}, args); code != exitFailed || !strings.Contains(said.String(), "ask whether it can be pushed") || !strings.Contains(said.String(), "docker login") {
			t.Errorf("%v: exit code %d\n%s", args, code, said.String())
		}
	}
}

// TestKilledPushes kills pushes at random moments, and looks for temporary files. OLMKIT_KILLS is how many, a few unless told;
// 'make kills' takes a hundred.
func TestKilledPushes(t *testing.T) {
	t.Parallel()
	kills, err := strconv.Atoi(cmp.Or(os.Getenv("OLMKIT_KILLS"), "8"))
	if err != nil {
		t.Fatalf("OLMKIT_KILLS: %v", err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	to := t.TempDir()
	pushes := [][]string{
		{"bundle", "push", "../../bundle/memcached-operator/0.5.0", host + "/tea/bundle:1"},
		{"bundle", "push", "../../bundle/memcached-operator/0.5.0", "--output", filepath.Join(to, "bundle.tar")},
		{"catalog", "push", "../../catalog", host + "/tea/catalog:1"},
		{"catalog", "push", "../../catalog", "--oci-layout", filepath.Join(to, "layout")},
	}
	temporary := t.TempDir()
	push := func(args []string, after time.Duration) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), self, args...)
		cmd.Env = append(os.Environ(), commandVariable+"=1", "OLMKIT_CACHE=off", "TMPDIR="+temporary)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		timer.Stop()
		return cmd
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("the seed is %d", seed)
	for i := range kills {
		push(pushes[i%len(pushes)], time.Duration(random.Int64N(int64(200*time.Millisecond))))
	}
	for _, args := range pushes { // what a killed writer of a folder left goes with the next one
		if cmd := push(args, time.Minute); !cmd.ProcessState.Success() {
			t.Errorf("%v: %v", args, cmd.ProcessState)
		}
	}
	for dir, want := range map[string][]string{temporary: {}, to: {"bundle.tar", "layout"}} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		names := []string{}
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
		if !slices.Equal(names, want) {
			t.Errorf("%s holds %v, not %v", dir, names, want)
		}
	}
}

// TestPushRefusesWhatOpmDoes: a catalog that opm does not serve is not published.
func TestPushRefusesWhatOpmDoes(t *testing.T) {
	t.Parallel()
	const sound = "schema: olm.package\nname: tea\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: tea\nname: stable\nentries: [{name: tea.v1.0.0}]\n---\n" +
		"schema: olm.bundle\npackage: tea\nname: tea.v1.0.0\nimage: example.com/tea:1\nproperties: [{type: olm.package, value: {packageName: tea, version: 1.0.0}}]\n"
	for name, c := range map[string]struct{ from, to, says string }{
		"sound":              {"", "", ""},
		"no default channel": {"defaultChannel: stable", "defaultChannel: other", "catalog.yaml:3:1: "},
		"unknown field":      {"entries: [{name: tea.v1.0.0}]", "entries: [{name: tea.v1.0.0, replace: tea.v0.9.0}]", ""},
		"stranded":           {"entries: [{name: tea.v1.0.0}]", "entries: [{name: tea.v1.0.0, skips: [tea.v0.9.0]}, {name: tea.v0.9.0, replaces: tea.v0.8.0}, {name: tea.v0.8.0}]", "catalog.yaml:"},
		"no bundle":          {"entries: [{name: tea.v1.0.0}]", "entries: [{name: tea.v2.0.0, replaces: tea.v1.0.0}, {name: tea.v1.0.0}]", "catalog.yaml:"},
		"two heads":          {"entries: [{name: tea.v1.0.0}]", "entries: [{name: tea.v1.0.0}, {name: tea.v2.0.0}]", "catalog.yaml:"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "catalog.yaml"), []byte(strings.Replace(sound, c.from, c.to, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			var said bytes.Buffer
			code := Run(t.Context(), Streams{Out: &said, Err: &said}, []string{"catalog", "push", dir, "--output", filepath.Join(t.TempDir(), "out.tar")})
			if (code == exitPassed) != (c.says == "") || !strings.Contains(said.String(), c.says) || c.says != "" && !strings.Contains(said.String(), "opm does not serve this catalog") {
				t.Errorf("exit code %d, %s", code, said.String())
			}
		})
	}
}
