//go:build linux

package e2e_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmkit/olmkit/internal/cache"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/report"
)

// needKind returns the node image to test with.
func needKind(t *testing.T) string {
	t.Helper()
	image := cmp.Or(os.Getenv("OLMKIT_NODE_IMAGE"), "olmkit/node:v1.36.3")
	if out, err := exec.Command("docker", "image", "inspect", "--format", "{{.Id}}", image).CombinedOutput(); err != nil {
		missing := fmt.Sprintf("kind needs Docker and the node image %s: %v: %s", image, err, bytes.TrimSpace(out))
		if os.Getenv("CI") != "" {
			t.Fatal(missing)
		}
		t.Skip(missing + "; 'make test-kind' brings both")
	}
	return image
}

// docker returns the lines that Docker prints.
func docker(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.Command("docker", args...).Output()
	if err != nil {
		t.Fatalf("docker %s: %v", strings.Join(args, " "), err)
	}
	return strings.Fields(string(out))
}

// nothingLeft fails if there are containers, volumes or kubeconfigs that there were not before it was called.
func nothingLeft(t *testing.T) func() {
	t.Helper()
	state := func() string {
		folder, err := cache.Folder()
		if err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(folder, "kind", "clusters", "*"))
		if err != nil {
			t.Fatal(err)
		}
		containers, volumes := docker(t, "ps", "--all", "--quiet"), docker(t, "volume", "ls", "--quiet")
		return fmt.Sprint(containers, volumes, files)
	}
	before := state()
	return func() {
		t.Helper()
		if now := state(); now != before {
			t.Errorf("containers, volumes and files before: %s, and now: %s", before, now)
		}
	}
}

// measured is a walk's report and the most memory that its processes took at the same time (bytes).
type measured struct {
	report  report.Report
	account string
	seconds float64
	memory  int64
}

// measureWalk walks the memcached operator's chain; in short its hop after which a version is not served any more.
func measureWalk(t *testing.T, flags ...string) measured {
	t.Helper()
	args := append([]string{"upgrade", "test", "catalog", "--package", "memcached-operator", "--channel", "candidate", "--edges", "chain", "--timeout", "6m", "-o", "json"}, flags...)
	if testing.Short() && !slices.Contains(flags, "--from") {
		args = append(args, "--from", "0.4.0", "--to", "0.5.0")
	}
	managers, err := filepath.Glob(filepath.Join(root, "bin/memcached-operator/*/manager"))
	if err != nil || len(managers) == 0 {
		t.Fatalf("no managers (%v): build them with 'make managers'", err)
	}
	for _, m := range managers {
		args = append(args, "--image", "ghcr.io/olmkit/memcached-operator:"+filepath.Base(filepath.Dir(m))+"="+m)
	}
	cmd := exec.CommandContext(t.Context(), olmkit, args...)
	cmd.Dir = root
	var out, account bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &account
	start := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatalf("run olmkit: %v (build it with 'make build')", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	peak := make(chan int64)
	go func() {
		var most int64
		for ctx.Err() == nil {
			most = max(most, memory(cmd.Process.Pid))
			time.Sleep(time.Second)
		}
		peak <- most
	}()
	err = cmd.Wait()
	m := measured{seconds: time.Since(start).Seconds(), account: account.String()}
	stop()
	m.memory = <-peak
	if json.Unmarshal(out.Bytes(), &m.report) != nil || m.report.Result == "" {
		t.Fatalf("olmkit %s: %v\n%s%s", strings.Join(args, " "), err, out.String(), account.String())
	}
	return m
}

// memory sums what the process pid, those below it and those in containers take, each its share of what several do.
func memory(pid int) int64 {
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0
	}
	below := map[string]bool{strconv.Itoa(pid): true}
	parent := map[string]string{}
	for _, p := range processes {
		stat, _ := os.ReadFile(filepath.Join(p, "stat"))
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 {
			parent[filepath.Base(p)] = fields[1]
		}
	}
	var sum int64
	for p := range parent {
		own := false
		for up := p; up != "" && up != "0" && !own; up = parent[up] {
			own = below[up]
		}
		if !own {
			groups, _ := os.ReadFile(filepath.Join("/proc", p, "cgroup"))
			own = bytes.Contains(groups, []byte("docker"))
		}
		if !own {
			continue
		}
		rollup, _ := os.ReadFile(filepath.Join("/proc", p, "smaps_rollup"))
		for line := range strings.Lines(string(rollup)) {
			if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "Pss:" {
				kilobytes, _ := strconv.ParseInt(fields[1], 10, 64)
				sum += kilobytes << 10
			}
		}
	}
	return sum
}

// took returns the seconds that a step took by the walk's own account.
func (m measured) took(t *testing.T, step string) float64 {
	t.Helper()
	for line := range strings.Lines(m.account) {
		if strings.Contains(line, step) && strings.Contains(line, "✓") {
			_, rest, _ := strings.Cut(line, " (")
			if seconds, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), "s)"), 64); err == nil {
				return seconds
			}
		}
	}
	t.Fatalf("the walk does not say how long %q took:\n%s", step, m.account)
	return 0
}

// TestKindWalk walks the same chain on an embedded and on a kind cluster, one after the other, and compares.
func TestKindWalk(t *testing.T) {
	compareKind(t)
}

// TestKindWalkOLMv1 walks under OLM v1 the hop with the conversion webhook on both clusters, and compares. On kind it runs as released.
func TestKindWalkOLMv1(t *testing.T) {
	kind := compareKind(t, "--olm", "v1", "--from", "0.4.0", "--to", "0.5.0")
	if kind.report.Result != report.Passed || len(kind.report.Hops) != 1 {
		t.Errorf("%s, %d hops\n%s", kind.report.Result, len(kind.report.Hops), kind.account)
	}
	limits := strings.Join(kind.report.Cluster.Limitations, "\n")
	for _, want := range []string{"in cert-manager's place", "OLM v1 ran"} {
		if !strings.Contains(limits, want) {
			t.Errorf("the limitations do not say %q:\n%s", want, limits)
		}
	}
}

// compareKind walks with flags on an embedded and on a kind cluster, compares, and returns the walk on kind.
func compareKind(t *testing.T, flags ...string) measured {
	t.Helper()
	image := needKind(t)
	check := nothingLeft(t)
	embedded := measureWalk(t, flags...)
	kind := measureWalk(t, append(flags, "--cluster", "kind", "--node-image", image)...)
	check()

	if kind.report.Result != embedded.report.Result || len(kind.report.Hops) != len(embedded.report.Hops) {
		t.Fatalf("on kind: %s, %d hops, %q; embedded: %s, %d hops, %q\nembedded:\n%s\non kind:\n%s", kind.report.Result, len(kind.report.Hops), told(kind.report),
			embedded.report.Result, len(embedded.report.Hops), told(embedded.report), embedded.account, kind.account)
	}
	for i, hop := range kind.report.Hops {
		if len(hop.Simulated) > 0 {
			t.Errorf("%s to %s: simulated %v", hop.From, hop.To, hop.Simulated)
		}
		if other := embedded.report.Hops[i]; hop.Result != other.Result {
			t.Errorf("%s to %s: %s on kind, %s embedded", hop.From, hop.To, hop.Result, other.Result)
		}
	}
	if onKind, onEmbedded := told(kind.report), told(embedded.report); !slices.Equal(onKind, onEmbedded) {
		t.Errorf("on kind:\n%s\nembedded:\n%s", strings.Join(onKind, "\n"), strings.Join(onEmbedded, "\n"))
	}
	row := func(what string, embedded, kind float64, unit string) {
		t.Logf("%-14s embedded %7.1f %s, kind %7.1f %s, ratio %.1f", what, embedded, unit, kind, unit, kind/embedded)
	}
	row("cluster up", embedded.took(t, "embedded cluster"), kind.took(t, "kind cluster"), "s")
	row("OLM ready", embedded.took(t, "OLM v"), kind.took(t, "OLM v"), "s")
	row("one hop", mean(embedded.report), mean(kind.report), "s")
	row("whole chain", embedded.seconds, kind.seconds, "s")
	row("peak memory", float64(embedded.memory>>20), float64(kind.memory>>20), "MiB")
	return kind
}

func mean(r report.Report) float64 {
	var sum float64
	for _, hop := range r.Hops {
		sum += hop.Seconds
	}
	return sum / float64(len(r.Hops))
}

// told returns what r found, less what only a cluster's speed decides: how often OLM set to it again, how long it took, what
// could not be read or written meanwhile. Names that OLM makes up are left out.
func told(r report.Report) []string {
	timing := []string{"U202", "U203", "U204", "U401", "U402", "U404", "U507", "U902", "U905"}
	var list []string
	add := func(findings []finding.Finding) {
		for _, f := range findings {
			if object, _, _ := strings.Cut(f.Subject.Object, "/install-"); !slices.Contains(timing, f.Code) {
				list = append(list, fmt.Sprintf("%s %s %s>%s %s", f.Code, f.Severity, f.Subject.From, f.Subject.To, object))
			}
		}
	}
	add(r.Findings)
	for _, hop := range r.Hops {
		add(hop.Findings)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// TestKindKept keeps a kind cluster, and walks on it as on one that was there before.
func TestKindKept(t *testing.T) {
	image := needKind(t)
	check := nothingLeft(t)
	t.Cleanup(check)
	const name = "e2e-kind"
	kubeconfig, config := up(t, name, "--kind", "kind", "--node-image", image)
	c := client(t, config)
	if status := must(t, "cluster", "status").out; !strings.Contains(status, name) || !strings.Contains(status, kubeconfig) {
		t.Errorf("the status is\n%s", status)
	}
	if r := run(t, nil, "cluster", "up", "--kind", "kind", "--name", name, "--node-image", image); r.code != 1 || !strings.Contains(r.errOut, "already") {
		t.Errorf("a taken name: %+v", r)
	}
	must(t, "cluster", "load", "--kind", "kind", "--name", name, "example.com/box:v1="+buildBox(t))
	d := boxDeployment("example.com/box:v1")
	d.Spec.Template.Spec.Volumes, d.Spec.Template.Spec.Containers[0].VolumeMounts = nil, nil
	d.Spec.Template.Spec.Containers[0].Env, d.Spec.Template.Spec.Containers[0].Args = nil, nil
	d.Spec.Template.Spec.Containers[0].Command = []string{"/box"}
	if _, err := c.AppsV1().Deployments("default").Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := readyPod(t, c, whichever)
	if id := pod.Status.ContainerStatuses[0].ContainerID; !strings.HasPrefix(id, "containerd://") {
		t.Errorf("the container is %q", id)
	}
	eventually(t, "the box says that it started", func() error {
		if logs := must(t, "cluster", "logs", "--kind", "kind", "--name", name, "default/"+pod.Name+"/box").out; !strings.Contains(logs, "box started") {
			return fmt.Errorf("the log is %q", logs)
		}
		return nil
	})
	loadManagers(t, "kind", name)
	leavesAlone(t, kubeconfig, config)
	must(t, "cluster", "down", "--kind", "kind", "--name", name)
}

// TestKindInterrupted presses Ctrl-C while the nodes come up.
func TestKindInterrupted(t *testing.T) {
	image := needKind(t)
	check := nothingLeft(t)
	before := docker(t, "ps", "--quiet")
	cmd := exec.Command(olmkit, "upgrade", "test", "catalog", "--package", "memcached-operator", "--max-hops", "1", "--cluster", "kind", "--node-image", image)
	cmd.Dir = root
	var account bytes.Buffer
	cmd.Stderr = &account
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node runs", func() error {
		if now := docker(t, "ps", "--quiet"); len(now) <= len(before) {
			return fmt.Errorf("containers: %v", now)
		}
		return nil
	})
	if err := cmd.Process.Signal(unix.SIGINT); err != nil {
		t.Fatal(err)
	}
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("it ended with %v, want exit code 130\n%s", cmd.ProcessState, account.String())
	}
	check()
}

// Without what it needs, kind says what to do.
func TestKindSaysWhatIsMissing(t *testing.T) {
	needKind(t)
	for name, test := range map[string]struct {
		env, args []string
		want      []string
	}{
		"no container engine": {[]string{"PATH=" + t.TempDir()}, nil, []string{"neither docker nor podman", "apt-get install docker.io"}},
		"none for OLM v1":     {[]string{"PATH=" + t.TempDir()}, []string{"--olm", "v1"}, []string{"neither docker nor podman", "apt-get install docker.io"}},
		"no daemon":           {[]string{"DOCKER_HOST=unix:///nowhere.sock"}, nil, []string{"ask docker for its state", "start its daemon"}},
		"no node image":       {nil, []string{"--node-image", "localhost:1/none:v1"}, []string{"localhost:1/none:v1", "make kind-node"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, test.env, append([]string{"upgrade", "test", "catalog", "--package", "memcached-operator", "--max-hops", "1", "--cluster", "kind"}, test.args...)...)
			if r.code != 1 {
				t.Errorf("exit code %d", r.code)
			}
			for _, want := range test.want {
				if !strings.Contains(r.errOut, want) {
					t.Errorf("it does not say %q:\n%s", want, r.errOut)
				}
			}
		})
	}
}
