package kind

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/olmkit/olmkit/internal/hint"
)

// fakeEngine keeps the nodes of a cluster as lines of a file with the cluster's name in $STATE, and what it was asked for in $STATE/asked.
const fakeEngine = `#!/bin/sh
echo "$@" >>"$STATE/asked"
case $1 in
info) echo 2 ;;
ps)
	for word; do case $word in label=*) cluster=${word##*=} ;; esac; done
	cat "$STATE/nodes/$cluster" 2>/dev/null || true ;;
rm)
	for word; do [ -z "$(grep -lsx -- "$word" "$STATE"/nodes/*)" ] || rm -f $(grep -lsx -- "$word" "$STATE"/nodes/*); done ;;
volume) [ "$2" != ls ] || echo volume-1 ;;
exec)
	case "$*" in
	*--interactive*) cat >"$STATE/written" ;;
	*"config dump") printf "version = 3\n[plugins.'io.containerd.cri.v1.images']\n  snapshotter = 'native'\n" ;;
	*" fails"*) echo "no such thing" >&2; exit 3 ;;
	esac ;;
esac
`

// fakeKind makes a node, and then does what $KIND says.
const fakeKind = `#!/bin/sh
echo "$KIND_EXPERIMENTAL_PROVIDER $*" >"$STATE/kind"
cat >"$STATE/config"
echo 'Creating cluster "tea" ...' >&2
echo ' • Preparing nodes  ...' >&2
echo tea-control-plane >"$STATE/nodes/tea"
: >"$OLMKIT_CACHE/kind/clusters/tea.kubeconfig.lock"
case $KIND in
fails)
	{
		echo 'ERROR: failed to create cluster: failed to init node with kubeadm: command "docker exec" failed with error: exit status 1'
		echo
		echo 'Command Output: I0102 much that it logs'
		echo 'error execution phase preflight: port 6443 is in use'
		echo 'To see the stack trace'
	} >&2
	exit 1 ;;
breaks) echo 'panic: none of ours' >&2; exit 2 ;;
hangs)
	(sleep 1; echo tea-control-plane >"$STATE/nodes/tea"; echo made >"$STATE/late") &
	: >"$STATE/hangs"
	sh -c 'while [ -e "$STATE/nodes/tea" ]; do sleep 0.1; done' ;;
esac
`

// fakes has a docker and a kind on the PATH that are scripts, and returns the folder of their state, and kind.
func fakes(t *testing.T, does string) (state, program string) {
	t.Helper()
	state, bin := t.TempDir(), t.TempDir()
	cache := filepath.Join(state, "cache")
	for _, dir := range []string{filepath.Join(state, "nodes"), filepath.Join(cache, "kind", "clusters")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"docker": fakeEngine, "podman": fakeEngine, "kind": fakeKind} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{"PATH": bin + ":/usr/bin:/bin", "STATE": state, "KIND": does, "OLMKIT_CACHE": cache} {
		t.Setenv(name, value)
	}
	return state, filepath.Join(bin, "kind")
}

func read(t *testing.T, elements ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// clean fails if a node or a file of a cluster is left.
func clean(t *testing.T, state string) {
	t.Helper()
	for _, dir := range []string{"nodes", "cache/kind/clusters"} {
		left, err := filepath.Glob(filepath.Join(state, dir, "*"))
		if err != nil || len(left) > 0 {
			t.Errorf("left are %v, %v", left, err)
		}
	}
}

func start(ctx context.Context, program string) error {
	_, err := Start(ctx, Options{Name: "tea", NodeImage: "example.com/node:v1", Audit: true, Port: 7, Program: func(context.Context) (string, error) { return program, nil }})
	return err
}

// TestCreateFails has what kind and kubeadm say in the error, and nothing left.
func TestCreateFails(t *testing.T) {
	for does, want := range map[string]string{
		"fails":  `kind: failed to init node with kubeadm: command "docker exec" failed with error: exit status 1: error execution phase preflight: port 6443 is in use`,
		"breaks": "panic: none of ours",
	} {
		t.Run(does, func(t *testing.T) {
			state, program := fakes(t, does)
			err := start(t.Context(), program)
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "much that it logs") {
				t.Errorf("the error is %v", err)
			}
			if fix := hint.Of(err); !strings.Contains(fix, "example.com/node:v1 is a node image") {
				t.Errorf("it says to %s", fix)
			}
			clean(t, state)
			asked := read(t, state, "kind")
			for _, want := range []string{"docker create cluster --name tea --config - --kubeconfig ", "--wait 3m0s", "--image example.com/node:v1"} {
				if !strings.Contains(asked, want) {
					t.Errorf("kind was run as %q, without %q", asked, want)
				}
			}
			if config := read(t, state, "config"); !strings.Contains(config, "apiServerPort: 7\n") {
				t.Errorf("its configuration is\n%s", config)
			}
		})
	}
	_, program := fakes(t, "")
	if err := start(t.Context(), program+"-gone"); err == nil || !strings.Contains(err.Error(), "run "+program+"-gone") {
		t.Errorf("without the program: %v", err)
	}
}

// TestCreateInterrupted cancels while a command that kind started is about to make a node.
func TestCreateInterrupted(t *testing.T) {
	state, program := fakes(t, "hangs")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for i := 0; i < 600; i++ {
			if _, err := os.Stat(filepath.Join(state, "hangs")); err == nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	began := time.Now()
	if err := start(ctx, program); !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
	if took := time.Since(began); took > endLimit {
		t.Errorf("it took %s", took)
	}
	if late := read(t, state, "late"); late != "made\n" {
		t.Errorf("what was about to make a node did %q", late)
	}
	clean(t, state)
}

// TestNames lists and deletes clusters where there is no kind.
func TestNames(t *testing.T) {
	state, program := fakes(t, "")
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gone", "tea"} {
		if err := os.WriteFile(filepath.Join(state, "cache", "kind", "clusters", name+".kubeconfig"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"tea", "of-others"} {
		if err := os.WriteFile(filepath.Join(state, "nodes", name), []byte(name+"-control-plane\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if names, err := Names(t.Context()); err != nil || !slices.Equal(names, []string{"tea"}) {
		t.Errorf("there are %v, %v", names, err)
	}
	if err := start(t.Context(), program); err == nil || !strings.Contains(err.Error(), `there is a cluster "tea" already`) {
		t.Errorf("a taken name: %v", err)
	}
	if err := Delete(t.Context(), "of-others"); err == nil || !strings.Contains(err.Error(), `there is no kind cluster "of-others"`) {
		t.Errorf("another's cluster: %v", err)
	}
	if err := Delete(t.Context(), "tea"); err != nil {
		t.Fatal(err)
	}
	if names, err := Names(t.Context()); err != nil || len(names) > 0 {
		t.Errorf("after the deletion there are %v, %v", names, err)
	}
	if asked := read(t, state, "asked"); !strings.Contains(asked, "rm --force --volumes tea-control-plane\n") || strings.Contains(asked, "of-others-control-plane") {
		t.Errorf("Docker was asked for\n%s", asked)
	}
}

// TestPodmanVolumes deletes the volume that kind makes before a node, also without that node.
func TestPodmanVolumes(t *testing.T) {
	state, _ := fakes(t, "")
	e := engine{program: "podman"}
	if err := e.removeNodes(t.Context(), "tea"); err != nil {
		t.Fatal(err)
	}
	if asked := read(t, state, "asked"); !strings.Contains(asked, "volume ls --quiet --filter label=tea-control-plane\nvolume rm --force volume-1\n") {
		t.Errorf("Podman was asked for\n%s", asked)
	}
}

// TestNode runs commands on a node.
func TestNode(t *testing.T) {
	state, _ := fakes(t, "")
	n := node{"docker", "tea-control-plane"}
	if err := n.writeFile(t.Context(), "/etc/tea/leaves", "green"); err != nil {
		t.Fatal(err)
	}
	if got := read(t, state, "written"); got != "green" {
		t.Errorf("written is %q", got)
	}
	if err := n.loadImages(t.Context(), strings.NewReader("an archive")); err != nil {
		t.Fatal(err)
	}
	if got := read(t, state, "written"); got != "an archive" {
		t.Errorf("loaded is %q", got)
	}
	asked := read(t, state, "asked")
	for _, want := range []string{
		"exec --privileged tea-control-plane mkdir -p /etc/tea\n",
		"exec --privileged --interactive tea-control-plane cp /dev/stdin /etc/tea/leaves\n",
		"exec --privileged --interactive tea-control-plane ctr --namespace k8s.io images import --all-platforms --digests --snapshotter native -\n",
	} {
		if !strings.Contains(asked, want) {
			t.Errorf("Docker was asked for\n%s\nwithout %s", asked, want)
		}
	}
	if err := n.run(t.Context(), nil, nil, "command", "fails"); err == nil || !strings.Contains(err.Error(), "docker exec: exit status 3: no such thing") {
		t.Errorf("the error is %v", err)
	}
}

// TestSnapshotter reads containerd's configuration in its versions.
func TestSnapshotter(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		"version = 2\n[plugins]\n  [plugins.\"io.containerd.grpc.v1.cri\"]\n    sandbox_image = \"\"\n    [plugins.\"io.containerd.grpc.v1.cri\".containerd]\n" +
			"      names = [\"a\"]\n\n      no_pivot = false\n      snapshotter = \"fuse-overlayfs\"\n": "fuse-overlayfs",
		"version = 3\n\n[plugins]\n  [plugins.'io.containerd.cri.v1.images']\n    snapshotter = 'overlayfs'\n":                     "overlayfs",
		"[plugins.'io.containerd.cri.v1.images']\n  a = 1\n[plugins.'io.containerd.transfer.v1.local']\n  snapshotter = 'other'\n": "",
		"": "",
	} {
		if got := snapshotter(config); got != want {
			t.Errorf("%q in\n%s", got, config)
		}
	}
}
