//go:build linux

// Package e2e_test runs the built olmkit as a user does, on clusters of its own. 'make test-e2e' builds what it needs.
package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/olmkit/olmkit/test/support/wait"
)

// root is the repository's root.
var root = func() string {
	dir, err := filepath.Abs("../..")
	if err != nil {
		panic(err)
	}
	return dir
}()

var olmkit = filepath.Join(root, "bin", "olmkit")

// waitLimit bounds every wait for something that is to happen; reaching it is a failure.
const waitLimit = 5 * time.Minute

type result struct {
	code        int
	out, errOut string
}

// run runs olmkit and returns what it printed and its exit code.
func run(t *testing.T, env []string, args ...string) result {
	t.Helper()
	return runProgram(t, olmkit, env, args...)
}

// runLimit is how long olmkit may run. The machine may be busy with several clusters.
const runLimit = 25 * time.Minute

// runProgram is run with another build of olmkit.
func runProgram(t *testing.T, program string, env []string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), env...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run %s: %v (build it with 'make build build-race')", program, err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
}

// must runs olmkit and fails the test unless it exits with 0.
func must(t *testing.T, args ...string) result {
	t.Helper()
	r := run(t, nil, args...)
	if r.code != 0 {
		t.Fatalf("olmkit %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.errOut)
	}
	return r
}

// up starts a kept cluster that ends with the test, and returns its kubeconfig's path and its credentials.
func up(t *testing.T, name string, flags ...string) (string, *rest.Config) {
	t.Helper()
	r := must(t, append([]string{"cluster", "up", "--name", name}, flags...)...)
	t.Cleanup(func() {
		kind := "embedded"
		if slices.Contains(flags, "kind") {
			kind = "kind"
		}
		cmd := exec.Command(olmkit, "cluster", "down", "--kind", kind, "--name", name)
		if out, err := cmd.CombinedOutput(); err != nil && !strings.Contains(string(out), "there is no") {
			t.Errorf("end the cluster: %v: %s", err, out)
		}
	})
	path, ok := strings.CutPrefix(strings.TrimSpace(r.out), "export KUBECONFIG=")
	if !ok {
		t.Fatalf("cluster up printed %q", r.out)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	return path, config
}

func client(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// eventually waits until f returns nil.
func eventually(t *testing.T, what string, f func() error) {
	t.Helper()
	wait.For(t, waitLimit, what, f)
}
