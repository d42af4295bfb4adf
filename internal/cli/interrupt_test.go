//go:build unix

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// commandVariable makes this test's program olmkit; with commandTells it says on its descriptor 3 when it listens to signals.
const (
	commandVariable = "OLMKIT_TEST_COMMAND"
	commandTells    = "tells"
)

func TestMain(m *testing.M) {
	if os.Getenv(commandVariable) == "" {
		os.Exit(m.Run())
	}
	signals := interruptions()
	if os.Getenv(commandVariable) == commandTells {
		listening := os.NewFile(3, "listening")
		_, _ = listening.WriteString("x")
		_ = listening.Close()
	}
	os.Exit(runProcess(nil, signals, os.Args[1:]))
}

// hangLimit is when a command that was interrupted hangs. It is far more than any takes.
const hangLimit = 2 * time.Minute

// interrupted runs olmkit in dir, on pipes that nobody writes to and nobody reads, sends it SIGINT after some time, and
// returns its exit code and what it said. The test fails if it hangs, or leaves temporary files.
func interrupted(t *testing.T, dir string, after time.Duration, args ...string) (int, string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pipe := func() (*os.File, *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = r.Close(), w.Close() })
		return r, w
	}
	in, _ := pipe()
	_, out := pipe()
	listening, tell := pipe()
	temporary := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), hangLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, args...)
	var said bytes.Buffer
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = dir, in, out, &said, []*os.File{tell}
	cmd.Env = append(os.Environ(), commandVariable+"="+commandTells, "OLMKIT_CACHE=off", "TMPDIR="+temporary)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := listening.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)
	_ = cmd.Process.Signal(syscall.SIGINT)
	_ = cmd.Wait()
	if ctx.Err() != nil {
		t.Fatalf("it hangs\n%s", said.String())
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
	return cmd.ProcessState.ExitCode(), said.String()
}

// silent returns the address of a registry that never answers.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().String()
}

// bulk fills dir with input that takes long to read, to compute with or to print.
func bulk(t *testing.T, dir string) {
	t.Helper()
	const releases = 20_000
	version := func(i int) string { return fmt.Sprintf("1.%d.%d", i/100, i%100) }
	var chain, objects, findings strings.Builder
	chain.WriteString(`{"schema": "olm.package", "name": "tea", "defaultChannel": "stable"}` + "\n" + `{"schema": "olm.channel", "package": "tea", "name": "stable", "entries": [{"name": "tea.v0.9.9"}`)
	for i := range releases {
		before := "tea.v0.9.9"
		if i > 0 {
			before = "tea.v" + version(i-1)
		}
		fmt.Fprintf(&chain, ",\n{\"name\": \"tea.v%s\", \"replaces\": %q, \"skipRange\": \">=0.9.0 <%s\"}", version(i), before, version(i))
		fmt.Fprintf(&objects, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: tea-%d\ndata:\n  text: some\n---\n", i)
		fmt.Fprintf(&findings, `%s{"code": "CRD001", "severity": "info", "subject": {"package": "tea"}, "message": "number %d"}`, strings.Repeat(",", min(i, 1)), i)
	}
	chain.WriteString("]}\n")
	for i := range releases {
		fmt.Fprintf(&chain, `{"schema": "olm.bundle", "package": "tea", "name": "tea.v%s", "image": "quay.io/tea/tea:%d", "properties": [{"type": "olm.package", "value": {"packageName": "tea", "version": %q}}]}`+"\n", version(i), i, version(i))
	}
	const small = `{"schema": "olm.package", "name": "tea", "defaultChannel": "stable"}
{"schema": "olm.channel", "package": "tea", "name": "stable", "entries": [{"name": "tea.v1.0.0"}]}
{"schema": "olm.bundle", "package": "tea", "name": "tea.v1.0.0", "image": "quay.io/tea/tea:1", "properties": [{"type": "olm.package", "value": {"packageName": "tea", "version": "1.0.0"}}]}
`
	noise := make([]byte, 24<<20)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	for name, content := range map[string]string{
		"chain/catalog.json":         chain.String(),
		"other/catalog.json":         strings.ReplaceAll(chain.String(), "quay.io/tea", "quay.io/cup"),
		"small/catalog.json":         small,
		"template.yaml":              "schema: olm.template.basic\nentries:\n- " + strings.ReplaceAll(strings.TrimSpace(chain.String()), "}\n{\"schema\"", "}\n- {\"schema\"") + "\n",
		"objects.yaml":               objects.String(),
		"report.json":                `{"apiVersion": "olmkit/v1", "kind": "ValidateReport", "result": "passed", "findings": [` + findings.String() + "]}",
		"bundle/manifests/csv.yaml":  "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata:\n  name: tea.v1.0.0\nspec:\n  version: 1.0.0\n",
		"bundle/metadata/annot.yaml": "annotations:\n  operators.operatorframework.io.bundle.package.v1: tea\n",
		"bundle/tests/noise":         string(noise),
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	if code := Run(t.Context(), Streams{Out: &said, Err: &said}, []string{"bundle", "push", filepath.Join(dir, "bundle"), "--output", filepath.Join(dir, "bundle.tar")}); code != 0 {
		t.Fatal(said.String())
	}
}

// TestInterrupt: SIGINT ends each command that is busy, whatever with, by exit code 130, and nothing is left but what was
// there before.
func TestInterrupt(t *testing.T) {
	dir := t.TempDir()
	bulk(t, dir)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	registry := silent(t)
	kubeconfig := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a}}], clusters: [{name: a, cluster: {server: "http://%s"}}]}`, registry)
	if err := os.WriteFile(filepath.Join(dir, "kubeconfig"), []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(dir, "made")
	covered := map[string]bool{
		// These neither read much nor wait; test/e2e ends those that have a cluster.
		"version": true, "explain": true, "init": true, "cluster build": true, "cluster up": true, "cluster down": true, "cluster load": true, "cluster logs": true, "cluster status": true,
	}
	for _, test := range []struct {
		line  string
		waits bool // it cannot end by itself
	}{
		// What never comes: standard input, a FIFO's content, a registry's answer.
		{"bundle generate --version 1.0.0 --package tea --manifests - --output-dir MADE", true},
		{"bundle diff bundle REGISTRY/tea:1", true},
		{"bundle validate REGISTRY/tea:1", true},
		{"bundle validate bundle --suppress fifo", true},
		{"bundle push bundle REGISTRY/tea:1", true},
		{"bundle run REGISTRY/tea:1 --kubeconfig kubeconfig", true},
		{"cleanup tea --kubeconfig kubeconfig", true},
		{"catalog build fifo", true},
		{"catalog diff chain -", true},
		{"catalog graph -", true},
		{"catalog graph chain --project fifo", true},
		{"catalog push small REGISTRY/tea:1", true}, // which is one that opm serves, so that it comes to that
		{"catalog render -", true},
		{"catalog serve chain --address 127.0.0.1:0", false},
		{"catalog validate -", true},
		{"catalog validate REGISTRY/tea:1", true},
		{"image push --program SELF REGISTRY/tea:1", true},
		{"report merge fifo", true},
		{"report show -", true},
		{"subscription generate --package tea --address 127.0.0.1:1 --config fifo", true},
		{"upgrade diagnose --kubeconfig kubeconfig", true},
		{"upgrade plan -", true},
		{"upgrade rehearse -p tea --kubeconfig kubeconfig", true},
		{"upgrade rehearse --from fifo", true},
		{"upgrade test -", true},
		{"upgrade test chain --sample fifo", true},
		{"cleanup --kubeconfig kubeconfig", true},
		{"crd migrate teas.example.com --kubeconfig kubeconfig", true},
		{"olm install --kubeconfig kubeconfig", true},
		{"olm status --kubeconfig kubeconfig", true},
		{"olm uninstall --kubeconfig kubeconfig", true},
		// What nobody reads.
		{"catalog build template.yaml", false},
		{"catalog diff chain other", true},
		{"catalog graph chain", true},
		{"catalog graph chain --all -o json", true},
		{"catalog render chain", true},
		{"catalog render chain --migrate-level bundle-object-to-csv-metadata -o yaml", true},
		{"catalog validate chain", false}, // what it prints fits into a pipe
		{"catalog validate chain -o json", true},
		{"report show report.json -o json", true},
		{"upgrade plan chain -o json", true},
		{"upgrade plan chain", true},
		// What takes a while.
		{"bundle generate --version 1.0.0 --package tea --manifests objects.yaml --output-dir MADE", false},
		{"bundle push bundle --output MADE", false},
		{"bundle push bundle --oci-layout MADE", false},
		{"bundle validate bundle.tar", false},
		{"catalog build template.yaml --output-file MADE", false},
		{"catalog push chain --output MADE", false},
		{"catalog render chain --output-file MADE", false},
		{"catalog validate chain --report html=MADE", true},
		{"image push --program SELF --output MADE", false},
	} {
		words := strings.Fields(test.line)
		covered[words[0]], covered[strings.Join(words[:2], " ")] = true, true
		delays := []time.Duration{20 * time.Millisecond, 700 * time.Millisecond}
		for i, after := range delays {
			t.Run(fmt.Sprintf("%s after %s", test.line, after), func(t *testing.T) {
				t.Parallel()
				to := fmt.Sprintf("%s/%x-%d", made, test.line, i)
				var args []string
				for _, word := range words {
					args = append(args, strings.NewReplacer("MADE", filepath.Join(to, "it"), "REGISTRY", registry, "SELF", self).Replace(word))
				}
				code, said := interrupted(t, dir, after, args...)
				if code != exitInterrupted && (test.waits || code != exitPassed && code != exitFindings && code != exitFailed) {
					t.Errorf("exit code %d\n%s", code, said)
				}
				left, err := os.ReadDir(to)
				if err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
				for _, file := range left {
					if file.Name() != "it" {
						t.Errorf("%s is left", file.Name())
					}
				}
			})
		}
	}
	for _, command := range runnable(newRoot(&session{})) {
		if !covered[command] {
			t.Errorf("'%s' is not interrupted", command)
		}
	}
}

// runnable are the paths, without the program's name, of the commands below c that do something.
func runnable(c *cobra.Command) []string {
	var paths []string
	for _, sub := range c.Commands() {
		if sub.HasSubCommands() {
			paths = append(paths, runnable(sub)...)
		} else {
			_, path, _ := strings.Cut(sub.CommandPath(), " ")
			paths = append(paths, path)
		}
	}
	return paths
}

// TestInterruptedAgain: who interrupts a command twice is told what it still undoes and how to end it, and a third signal
// ends it.
func TestInterruptedAgain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		doing []string
		says  string
	}{
		"while it undoes something": {[]string{"undoing fault hang@start", "leaving cluster x as it was"}, "still under way: undoing fault hang@start (0s), leaving cluster x as it was (0s). Interrupt once more to exit now"},
		"while nobody says what":    {nil, "still under way: cleaning up. Interrupt once more to exit now"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var said bytes.Buffer
			s := &session{Streams: Streams{Err: &said}}
			for _, what := range test.doing {
				s.progress().Start("%s", what)
			}
			signals, cancelled, code := make(chan os.Signal), 0, -1
			heeded := make(chan struct{})
			go func() {
				defer close(heeded)
				s.heed(signals, func() { cancelled++ }, func(c int) { code = c })
			}()
			for range 3 {
				signals <- os.Interrupt
			}
			<-heeded
			if cancelled != 1 || code != exitInterrupted || !strings.Contains(said.String(), test.says) {
				t.Errorf("cancelled %d times, exit code %d: %s", cancelled, code, &said)
			}
		})
	}
}
