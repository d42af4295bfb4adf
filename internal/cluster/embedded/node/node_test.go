//go:build linux

package node

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func TestExpand(t *testing.T) {
	vars := map[string]string{"A": "1", "B": "$(A)"}
	lookup := func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
	for in, want := range map[string]string{
		"plain":         "plain",
		"$(A)":          "1",
		"x$(A)y$(B)":    "x1y$(A)",
		"$$(A)":         "$(A)",
		"$(UNKNOWN)":    "$(UNKNOWN)",
		"$(A":           "$(A",
		"$":             "$",
		"100$ and $(A)": "100$ and 1",
	} {
		if got := expand(in, lookup); got != want {
			t.Errorf("expand(%q) = %q, want %q", in, got, want)
		}
	}
}

func testPod(t *testing.T) *pod {
	t.Helper()
	p := &pod{
		node:     &Node{config: Config{APIHost: "10.244.0.1", APIPort: 6443, Network: &Network{prefix: netip.MustParsePrefix("10.244.0.0/16")}}},
		dir:      t.TempDir(),
		endpoint: &endpoint{address: netip.MustParseAddr("10.244.0.7")},
		tokens:   map[string]token{},
	}
	p.update(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "p", Namespace: "n", UID: "u", Labels: map[string]string{"app": "a", "b": "c"},
			Annotations: map[string]string{"olm.targetNamespaces": "one,two"},
		},
		Spec: corev1.PodSpec{NodeName: "embedded", ServiceAccountName: "sa"},
	})
	return p
}

func TestEnvironment(t *testing.T) {
	c := &corev1.Container{
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}},
		Env: []corev1.EnvVar{
			{Name: "WATCH_NAMESPACE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['olm.targetNamespaces']"}}},
			{Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
			{Name: "MEMORY", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.memory", Divisor: resource.MustParse("1Mi")}}},
			{Name: "URL", Value: "http://$(IP):$(KUBERNETES_SERVICE_PORT)"},
			{Name: "HOME", Value: "/data"},
		},
	}
	env, err := testPod(t).environment(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"HOME=/data", "HOSTNAME=p", "IP=10.244.0.7", "KUBERNETES_SERVICE_HOST=10.244.0.1", "KUBERNETES_SERVICE_PORT=6443", "MEMORY=64",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "SSL_CERT_DIR=/etc/ssl/certs", "URL=http://10.244.0.7:6443", "WATCH_NAMESPACE=one,two",
	}
	if diff := cmp.Diff(want, env); diff != "" {
		t.Error(diff)
	}
	c.Env = []corev1.EnvVar{{Name: "X", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nothing"}}}}
	if _, err := testPod(t).environment(context.Background(), c); err == nil || !strings.Contains(err.Error(), "X: there is no field spec.nothing") {
		t.Errorf("got %v", err)
	}
}

func TestWriteFiles(t *testing.T) {
	dir := t.TempDir()
	read := func() map[string]string {
		got := map[string]string{}
		for _, name := range []string{"tls.crt", "sub/key", "gone"} {
			if data, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
				got[name] = string(data)
			}
		}
		return got
	}
	versions := func() string {
		link, err := os.Readlink(filepath.Join(dir, dataLink))
		if err != nil {
			t.Fatal(err)
		}
		return link
	}
	if err := writeFiles(dir, map[string]file{"tls.crt": {[]byte("1"), 0o644}, "gone": {[]byte("x"), 0o600}}); err != nil {
		t.Fatal(err)
	}
	first := versions()
	if err := writeFiles(dir, map[string]file{"tls.crt": {[]byte("1"), 0o644}, "gone": {[]byte("x"), 0o600}}); err != nil {
		t.Fatal(err)
	}
	if versions() != first {
		t.Error("the same content was written again")
	}
	if err := writeFiles(dir, map[string]file{"tls.crt": {[]byte("2"), 0o644}, "sub/key": {[]byte("k"), 0o644}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"tls.crt": "2", "sub/key": "k"}, read()); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(filepath.Join(dir, first)); err == nil {
		t.Error("the former version is still there")
	}
	for _, fewer := range []map[string]file{{"sub/key": {[]byte("k"), 0o644}}, {}} {
		if err := writeFiles(dir, fewer); err != nil {
			t.Fatal(err)
		}
		if got := read(); len(got) != len(fewer) {
			t.Errorf("with %d files there are %v", len(fewer), got)
		}
	}
	for _, path := range []string{"../x", "/x", "..data"} {
		if err := writeFiles(dir, map[string]file{path: {}}); err == nil {
			t.Errorf("a file at %q was accepted", path)
		}
	}
	t.Chdir(t.TempDir())
	if err := writeFiles("", map[string]file{"token": {}}); err == nil {
		t.Error("files were written beside the program that runs the cluster")
	}
}

// TestHostileVolume: whatever a program has put into a volume, refreshing the volume touches nothing beside it.
func TestHostileVolume(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, dir, outside string){
		"the data elsewhere": func(t *testing.T, dir, outside string) { relink(t, filepath.Join(dir, dataLink), outside) },
		"the data above": func(t *testing.T, dir, outside string) {
			relink(t, filepath.Join(dir, dataLink), "../"+filepath.Base(outside))
		},
		"a version above": func(t *testing.T, dir, outside string) {
			relink(t, filepath.Join(dir, dataLink), versionPrefix+"/../../"+filepath.Base(outside))
		},
		"a version that is a link": func(t *testing.T, dir, outside string) {
			relink(t, filepath.Join(dir, versionPrefix+"x"), outside)
			relink(t, filepath.Join(dir, dataLink), versionPrefix+"x")
		},
		"devices": func(t *testing.T, dir, _ string) { relink(t, filepath.Join(dir, dataLink), "/dev") },
		"a file that is a FIFO": func(t *testing.T, dir, _ string) {
			version := filepath.Join(dir, versionPrefix+"x")
			if err := os.Mkdir(version, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mkfifo(filepath.Join(version, "a"), 0o600); err != nil {
				t.Fatal(err)
			}
			relink(t, filepath.Join(dir, dataLink), versionPrefix+"x")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			above := t.TempDir()
			dir, outside := filepath.Join(above, "volume"), filepath.Join(above, "outside")
			for _, d := range []string{dir, outside} {
				if err := os.Mkdir(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			kept := filepath.Join(outside, "a")
			if err := os.WriteFile(kept, []byte("the machine's"), 0o600); err != nil {
				t.Fatal(err)
			}
			files := map[string]file{"a": {[]byte("1"), 0o644}}
			if err := writeFiles(dir, files); err != nil {
				t.Fatal(err)
			}
			change(t, dir, outside)
			for _, content := range []string{"1", "2"} {
				if err := writeFiles(dir, map[string]file{"a": {[]byte(content), 0o644}}); err != nil {
					t.Fatal(err)
				}
				if got, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(got) != content {
					t.Errorf("the volume holds %q, %v", got, err)
				}
			}
			if got, err := os.ReadFile(kept); err != nil || string(got) != "the machine's" {
				t.Errorf("beside the volume there is %q, %v", got, err)
			}
		})
	}
}

// relink makes a link in the place of what is there.
func relink(t *testing.T, link, target string) {
	t.Helper()
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
}

// TestUnmountedVolumeIsNotRefreshed: a volume that was never mounted has no directory, and must not get one elsewhere.
func TestUnmountedVolumeIsNotRefreshed(t *testing.T) {
	p := testPod(t)
	p.current().Spec.Volumes = []corev1.Volume{{Name: "later", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
		Items: []corev1.DownwardAPIVolumeFile{{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}}},
	}}}}
	p.current().Spec.Containers = []corev1.Container{{Name: "c", VolumeMounts: []corev1.VolumeMount{{Name: "later", MountPath: "/later"}}}}
	t.Chdir(t.TempDir())
	p.refreshVolumes(t.Context())
	entries, err := os.ReadDir(".")
	if err != nil || len(entries) > 0 {
		t.Errorf("in the working directory there is %v (%v)", entries, err)
	}
}

func TestRunLog(t *testing.T) {
	l := newRunLog()
	fmt.Fprint(l, "one\ntw")
	fmt.Fprint(l, "o\nthree")
	_ = l.Close()
	for _, c := range []struct {
		options logOptions
		want    string
	}{
		{logOptions{}, "one\ntwo\nthree\n"},
		{logOptions{tail: ptr.To[int64](2)}, "two\nthree\n"},
		{logOptions{tail: ptr.To[int64](9), follow: true}, "one\ntwo\nthree\n"},
		{logOptions{tail: ptr.To[int64](0)}, ""},
		{logOptions{since: time.Now().Add(time.Hour)}, ""},
	} {
		var out bytes.Buffer
		if err := l.copy(context.Background(), &out, c.options); err != nil {
			t.Fatal(err)
		}
		if out.String() != c.want {
			t.Errorf("%+v: %q, want %q", c.options, out.String(), c.want)
		}
	}
}

// TestEmptyLinesAreBounded: lines without text take memory too.
func TestEmptyLinesAreBounded(t *testing.T) {
	t.Parallel()
	l := newRunLog()
	lines := bytes.Repeat([]byte("\n"), 1<<16)
	for range maxLog / len(lines) {
		_, _ = l.Write(lines)
	}
	if most := maxLog / lineCost; len(l.lines) > most {
		t.Errorf("%d lines are kept, more than %d", len(l.lines), most)
	}
}

// TestProbeOutputIsBounded: a probe's command that never stops to write fills no memory.
func TestProbeOutputIsBounded(t *testing.T) {
	t.Parallel()
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"yes"}}}}
	var kept int
	err := check(t.Context(), probe, "", nil, func(_ context.Context, _ []string, _ io.Reader, out, _ io.Writer) (int, error) {
		for range 1000 {
			if n, err := out.Write(bytes.Repeat([]byte("x"), 1<<10)); n != 1<<10 || err != nil {
				t.Errorf("%d, %v", n, err)
			}
		}
		kept = out.(*beginning).Len()
		return 1, nil
	})
	if err == nil || !strings.Contains(err.Error(), "exit code 1: xxx") || kept != maxProbeOutput {
		t.Errorf("%d bytes are kept: %v", kept, err)
	}
}

func TestRunLogIsBounded(t *testing.T) {
	l := newRunLog()
	line := strings.Repeat("x", 1023) + "\n"
	for range 2 * maxLog / len(line) {
		fmt.Fprint(l, line)
	}
	if l.size > maxLog {
		t.Errorf("%d bytes are kept, more than %d", l.size, maxLog)
	}
	fmt.Fprint(l, strings.Repeat("y", maxLine+10)+"\n")
	var out bytes.Buffer
	if err := l.copy(context.Background(), &out, logOptions{tail: ptr.To[int64](2)}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), "y"); got != maxLine+10 {
		t.Errorf("%d of a long line's %d characters are left", got, maxLine+10)
	}
}

func TestAddressesAreNotReusedSoon(t *testing.T) {
	prefix := netip.MustParsePrefix("10.0.0.0/29")
	n := &Network{prefix: prefix, last: prefix.Addr().Next(), used: map[netip.Addr]bool{}}
	seen := []string{}
	for range 5 {
		a, err := n.allocate(false)
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, a.String())
		if len(seen) == 1 {
			n.release(a)
		}
	}
	if diff := cmp.Diff([]string{"10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6"}, seen); diff != "" {
		t.Error(diff)
	}
	if a, err := n.allocate(false); err != nil || a.String() != "10.0.0.2" {
		t.Errorf("got %v %v, want the address that was given back", a, err)
	}
	if _, err := n.allocate(false); err == nil {
		t.Error("an address was made up")
	}
}

func probeOf(t *testing.T, server *httptest.Server, scheme corev1.URIScheme) (*corev1.Probe, string) {
	t.Helper()
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt(port), Scheme: scheme}}}, u.Hostname()
}

func TestCheck(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
		}
	})
	plain, secure := httptest.NewServer(handler), httptest.NewUnstartedServer(handler)
	secure.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	secure.StartTLS()
	defer plain.Close()
	defer secure.Close()
	c := &corev1.Container{Ports: []corev1.ContainerPort{{Name: "health", ContainerPort: 1}}}

	probe, host := probeOf(t, plain, corev1.URISchemeHTTP)
	if err := check(context.Background(), probe, host, c, nil); err != nil {
		t.Error(err)
	}
	probe.HTTPGet.Path = "/other"
	if err := check(context.Background(), probe, host, c, nil); err == nil || !strings.Contains(err.Error(), "503: not ready") {
		t.Errorf("got %v", err)
	}
	probe, host = probeOf(t, secure, corev1.URISchemeHTTPS)
	if err := check(context.Background(), probe, host, c, nil); err != nil {
		t.Error(err)
	}
	tcp := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: probe.HTTPGet.Port}}}
	if err := check(context.Background(), tcp, host, c, nil); err != nil {
		t.Error(err)
	}
	tcp.TCPSocket.Port = intstr.FromString("unknown")
	if err := check(context.Background(), tcp, host, c, nil); err == nil {
		t.Error("a port of an unknown name was found")
	}
}

func TestSnapshotPhases(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	ended := func(code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
	}
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
	for _, c := range []struct {
		name       string
		policy     corev1.RestartPolicy
		init, main corev1.ContainerState
		ready      bool
		phase      corev1.PodPhase
		podReady   corev1.ConditionStatus
	}{
		{"creating", corev1.RestartPolicyNever, waiting, waiting, false, corev1.PodPending, corev1.ConditionFalse},
		{"initialising", corev1.RestartPolicyNever, running, waiting, false, corev1.PodPending, corev1.ConditionFalse},
		{"running", corev1.RestartPolicyNever, ended(0), running, false, corev1.PodRunning, corev1.ConditionFalse},
		{"ready", corev1.RestartPolicyNever, ended(0), running, true, corev1.PodRunning, corev1.ConditionTrue},
		{"succeeded", corev1.RestartPolicyNever, ended(0), ended(0), false, corev1.PodSucceeded, corev1.ConditionFalse},
		{"failed", corev1.RestartPolicyNever, ended(0), ended(1), false, corev1.PodFailed, corev1.ConditionFalse},
		{"between two runs", corev1.RestartPolicyAlways, ended(0), ended(0), false, corev1.PodRunning, corev1.ConditionFalse},
		{"to be tried again", corev1.RestartPolicyOnFailure, ended(0), ended(1), false, corev1.PodRunning, corev1.ConditionFalse},
		{"done at last", corev1.RestartPolicyOnFailure, ended(0), ended(0), false, corev1.PodSucceeded, corev1.ConditionFalse},
		{"failed to initialise", corev1.RestartPolicyNever, ended(1), waiting, false, corev1.PodFailed, corev1.ConditionFalse},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := testPod(t)
			p.current().Spec.RestartPolicy = c.policy
			p.current().Spec.InitContainers = []corev1.Container{{Name: "init"}}
			p.current().Spec.Containers = []corev1.Container{{Name: "main"}}
			p.status = corev1.PodStatus{Phase: corev1.PodPending, PodIP: "10.244.0.7"}
			p.containers = map[string]*container{
				"init": {pod: p, spec: &p.current().Spec.InitContainers[0], state: c.init},
				"main": {pod: p, spec: &p.current().Spec.Containers[0], state: c.main, ready: c.ready},
			}
			s := p.snapshot()
			if s.Phase != c.phase {
				t.Errorf("phase %s, want %s", s.Phase, c.phase)
			}
			for _, condition := range s.Conditions {
				if condition.Type == corev1.PodReady && condition.Status != c.podReady {
					t.Errorf("ready is %s, want %s", condition.Status, c.podReady)
				}
			}
		})
	}
}

// TestSidecarIsRestarted has a sidecar not run for a moment while a container waits for its next run: the pod has not failed.
func TestSidecarIsRestarted(t *testing.T) {
	p := testPod(t)
	spec := &p.current().Spec
	spec.InitContainers = []corev1.Container{{Name: "sidecar", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
	spec.Containers = []corev1.Container{{Name: "main"}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}
	p.containers = map[string]*container{
		"sidecar": {pod: p, spec: &spec.InitContainers[0], state: ended},
		"main":    {pod: p, spec: &spec.Containers[0], state: ended},
	}
	if got := p.snapshot().Phase; got != corev1.PodRunning {
		t.Errorf("phase %s", got)
	}
}

func TestGrace(t *testing.T) {
	p := &corev1.Pod{}
	if got := graceOf(p); got != 30*time.Second {
		t.Errorf("default %s", got)
	}
	p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](7)
	if got := graceOf(p); got != 7*time.Second {
		t.Errorf("the pod's %s", got)
	}
	p.DeletionGracePeriodSeconds = ptr.To[int64](0)
	if got := graceOf(p); got != 0 {
		t.Errorf("the deletion's %s", got)
	}
}

func TestUnusedVolumesAreLeftAlone(t *testing.T) {
	p := testPod(t)
	p.current().Spec.Volumes = []corev1.Volume{{Name: "unused"}, {Name: "used"}, {Name: "init"}}
	p.current().Spec.InitContainers = []corev1.Container{{VolumeMounts: []corev1.VolumeMount{{Name: "init"}}}}
	p.current().Spec.Containers = []corev1.Container{{VolumeMounts: []corev1.VolumeMount{{Name: "used"}}}}
	var names []string
	for _, v := range p.usedVolumes() {
		names = append(names, v.Name)
	}
	if diff := cmp.Diff([]string{"used", "init"}, names); diff != "" {
		t.Error(diff)
	}
}

// TestRefusal has pods that ask for the machine, with and without a program that would have it.
func TestRefusal(t *testing.T) {
	images := NewImages()
	if err := images.Load("example.com/real:v1", "/proc/self/exe"); err != nil {
		t.Fatal(err)
	}
	privileged := &corev1.SecurityContext{Privileged: ptr.To(true)}
	machine := corev1.Volume{Name: "machine", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}
	for _, c := range []struct {
		name string
		spec corev1.PodSpec
		want string // "" if it runs
	}{
		{"plain", corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/real:v1"}}}, ""},
		{"of a simulated image", corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{{Name: "c", Image: "example.com/none:v1"}}}, ""},
		{"volume that nothing mounts", corev1.PodSpec{Volumes: []corev1.Volume{machine}, Containers: []corev1.Container{{Name: "c", Image: "example.com/real:v1"}}}, ""},
		{"all", corev1.PodSpec{
			HostNetwork: true, HostPID: true, HostIPC: true, Volumes: []corev1.Volume{machine},
			InitContainers: []corev1.Container{{Name: "i", Image: "example.com/none:v1", SecurityContext: privileged}},
			Containers: []corev1.Container{{
				Name: "c", Image: "example.com/real:v1", VolumeMounts: []corev1.VolumeMount{{Name: "machine"}},
				SecurityContext: &corev1.SecurityContext{ProcMount: ptr.To(corev1.UnmaskedProcMount)},
			}},
		}, "hostNetwork, hostPID, hostIPC, privileged container i, procMount of container c, hostPath volume machine: "},
	} {
		p := &pod{node: &Node{config: Config{Images: images}}}
		p.update(&corev1.Pod{Spec: c.spec})
		p.idle = !p.hasProgram()
		if got := p.refusal(); (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
	if simulated := images.Simulated(); len(simulated) > 0 {
		t.Errorf("images count as asked for: %q", simulated)
	}
}

// However many pods there are, none waits for the others; one that failed waits longer each time.
func TestRetries(t *testing.T) {
	limiter := retries()
	for i := range 10_000 {
		if wait := limiter.When(strconv.Itoa(i)); wait > 10*time.Millisecond {
			t.Fatalf("pod %d waits %s", i, wait)
		}
	}
	first, second := limiter.When("failed"), limiter.When("failed")
	if second <= first {
		t.Errorf("waits %s, then %s", first, second)
	}
	for range 50 {
		second = limiter.When("failed")
	}
	if second != 10*time.Second {
		t.Errorf("waits %s in the end", second)
	}
}
