//go:build linux

// Package hostile_test runs programs and images that try to leave the embedded cluster's containers, on a cluster of root's
// and on one of an ordinary user's. SECURITY.md lists the attacks.
package hostile_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/utils/ptr"

	"github.com/olmkit/olmkit/internal/cache"
	"github.com/olmkit/olmkit/test/support/wait"
)

// waitLimit bounds every wait for something that is to happen; reaching it is a failure.
const waitLimit = time.Minute

// attackerImage runs the attacker as it is, without a root folder.
const attackerImage = "example.com/attacker:v1"

// nobody is the ordinary user.
const nobody = 65534

// world is a cluster, and the machine's files around it.
type world struct {
	*kubernetes.Clientset
	config  *rest.Config
	command func(args ...string) *exec.Cmd // olmkit as the user whose cluster it is
	dir     string                         // a folder of that user's
	program string                         // the attacker
	secret  string                         // a file that only that user may read
	sockets string                         // of the machine, as attackers are told them
	users   bool                           // containers may have any user
	cluster string                         // its name
}

func TestOfRoot(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return // TestOfAnOrdinaryUser is what this user can have
	}
	folder, err := cache.Folder()
	if err != nil {
		t.Fatal(err)
	}
	testAttacks(t, newWorld(t, "hostile-root", folder, 0))
}

func TestOfAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	testAttacks(t, newWorld(t, "hostile-user", "", ordinary()))
}

// ordinary is the user as whom olmkit runs: another one than root.
func ordinary() int {
	if os.Geteuid() == 0 {
		return nobody
	}
	return os.Geteuid()
}

// newWorld starts a cluster as the user uid, whose cache is at folder, a copy when that is empty.
func newWorld(t *testing.T, name, folder string, uid int) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "olmkit-hostile-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	w := &world{dir: dir, program: filepath.Join(dir, "attacker"), secret: filepath.Join(dir, "secret"), users: uid == 0, cluster: name}
	olmkit := filepath.Join(dir, "olmkit")
	shell(t, "cp", "../../bin/olmkit", olmkit)
	build := exec.Command("go", "build", "-o", w.program, "./attacker")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the attacker: %v\n%s", err, out)
	}
	if err := os.WriteFile(w.secret, []byte("of the machine's"), 0o600); err != nil {
		t.Fatal(err)
	}
	if folder == "" {
		folder = filepath.Join(dir, "cache")
		shell(t, olmkit, "cluster", "build") // so that they are built
		built, err := cache.Folder()
		if err != nil {
			t.Fatal(err)
		}
		shell(t, "mkdir", folder)
		shell(t, "cp", "-r", filepath.Join(built, "components"), folder)
	}
	words := []string{olmkit}
	if uid != os.Geteuid() {
		shell(t, "chown", "-R", fmt.Sprintf("%d:%d", uid, uid), dir)
		words = []string{"setpriv", "--reuid", fmt.Sprint(uid), "--regid", fmt.Sprint(uid), "--clear-groups", olmkit}
	}
	machine, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { machine.Close() })
	w.command = func(args ...string) *exec.Cmd {
		cmd := exec.Command(words[0], append(words[1:], args...)...)
		cmd.ExtraFiles = slices.Repeat([]*os.File{machine}, 16) // left open, as shells do with locks; olmkit has some of its own
		cmd.Dir = dir
		cmd.Env = []string{"HOME=" + dir, "OLMKIT_CACHE=" + folder, "PATH=" + os.Getenv("PATH")}
		return cmd
	}
	out, err := w.command("cluster", "up", "--name", name).Output()
	if err != nil {
		t.Fatalf("start the cluster: %v", err)
	}
	t.Cleanup(func() {
		if out, err := w.command("cluster", "down", "--name", name).CombinedOutput(); err != nil {
			t.Errorf("end the cluster: %v: %s", err, out)
		}
	})
	kubeconfig := strings.TrimPrefix(strings.TrimSpace(string(out)), "export KUBECONFIG=")
	if w.config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		t.Fatal(err)
	}
	w.config.QPS = -1
	private(t, kubeconfig)
	w.sockets = w.listen(t, filepath.Dir(kubeconfig))
	w.Clientset = kubernetes.NewForConfigOrDie(w.config)
	w.load(t, attackerImage, w.program)
	eventually(t, "pods may be created", func() error {
		_, err := w.CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})
		return err
	})
	return w
}

// private fails the test if another user may use what is beside the kubeconfig.
func private(t *testing.T, kubeconfig string) {
	t.Helper()
	for path, most := range map[string]os.FileMode{filepath.Dir(kubeconfig): 0o700, kubeconfig: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&^most != 0 {
			t.Errorf("%s is %v, %v", path, info.Mode(), err)
		}
	}
}

// listen opens sockets of every kind that programs of the machine have, and names them and the cluster's own.
func (w *world) listen(t *testing.T, clusterDir string) string {
	t.Helper()
	server := strings.TrimPrefix(w.config.Host, "https://")
	sockets := []string{"tcp=" + server, "unix=" + filepath.Join(clusterDir, "control.sock")}
	for _, at := range []struct{ network, address string }{
		{"unix", filepath.Join(w.dir, "socket")}, {"unix", "@" + w.dir}, {"tcp", ":0"},
	} {
		listener, err := net.Listen(at.network, at.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { listener.Close() })
		tcp, ok := listener.Addr().(*net.TCPAddr)
		if !ok {
			sockets = append(sockets, at.network+"="+at.address)
			continue
		}
		addresses, err := net.InterfaceAddrs()
		if err != nil {
			t.Fatal(err)
		}
		for _, address := range addresses {
			if ip, ok := address.(*net.IPNet); ok && !ip.IP.IsLinkLocalUnicast() {
				sockets = append(sockets, "tcp="+net.JoinHostPort(ip.IP.String(), strconv.Itoa(tcp.Port)))
			}
		}
	}
	return strings.Join(sockets, ",")
}

func shell(t *testing.T, words ...string) {
	t.Helper()
	if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", words, err, out)
	}
}

func (w *world) load(t *testing.T, image, source string) {
	t.Helper()
	if out, err := w.command("cluster", "load", "--name", w.cluster, image+"="+source).CombinedOutput(); err != nil {
		t.Fatalf("load %s: %v: %s", image, err, out)
	}
}

// create creates a pod whose container runs the attacker as change says.
func (w *world) create(t *testing.T, name string, change func(*corev1.PodSpec)) {
	t.Helper()
	spec := corev1.PodSpec{
		TerminationGracePeriodSeconds: ptr.To[int64](5),
		Containers: []corev1.Container{{
			Name: "attacker", Image: attackerImage, Args: []string{"serve"},
			Env: []corev1.EnvVar{{Name: "ATTACK_PATHS", Value: w.secret + ":/etc/shadow"}, {Name: "ATTACK_SOCKETS", Value: w.sockets}},
		}},
	}
	change(&spec)
	if _, err := w.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// eventually waits until f returns nil.
func eventually(t *testing.T, what string, f func() error) {
	t.Helper()
	wait.For(t, waitLimit, what, f)
}

// findings are what an attacker reports.
type findings struct {
	Facts map[string]string
	Harm  []string
}

// parse reads the first report in text.
func parse(text []byte) (findings, error) {
	var found findings
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&found); err != nil {
		return found, fmt.Errorf("%w in %q", err, text)
	}
	return found, nil
}

// report waits for what the attacker in the pod says in its log.
func (w *world) report(t *testing.T, pod string) findings {
	t.Helper()
	var found findings
	eventually(t, "a report of pod "+pod, func() error {
		log, err := w.CoreV1().Pods("default").GetLogs(pod, &corev1.PodLogOptions{}).DoRaw(t.Context())
		if err == nil {
			found, err = parse(log)
		}
		return err
	})
	return found
}

// exec runs a command in the pod as kubectl exec does.
func (w *world) exec(t *testing.T, pod string, words ...string) (string, error) {
	t.Helper()
	url := w.CoreV1().RESTClient().Post().Resource("pods").Namespace("default").Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: words, Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
	executor, err := remotecommand.NewSPDYExecutor(w.config, http.MethodPost, url)
	if err != nil {
		return "", err
	}
	var out, errOut bytes.Buffer
	err = executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &out, Stderr: &errOut})
	return out.String() + errOut.String(), err
}

// harmless fails the test if an attack succeeded.
func harmless(t *testing.T, found findings) {
	t.Helper()
	for _, harm := range found.Harm {
		t.Error(harm)
	}
}

// identities are the users as whom attackers run: any that the cluster can give.
func (w *world) identities() map[string]*corev1.PodSecurityContext {
	all := map[string]*corev1.PodSecurityContext{"root": nil}
	if w.users {
		all["user"] = &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](1000), RunAsGroup: ptr.To[int64](1001), SupplementalGroups: []int64{1002}}
	}
	return all
}

func testAttacks(t *testing.T, w *world) {
	for name, identity := range w.identities() {
		t.Run("container of "+name, func(t *testing.T) { testConfinement(t, w, name, identity) })
	}
	t.Run("root folder", func(t *testing.T) { testRootFolder(t, w) })
	t.Run("sub-path", func(t *testing.T) { testSubPath(t, w) })
	t.Run("volume at /dev", func(t *testing.T) { testDevices(t, w) })
	t.Run("processes that stay", func(t *testing.T) { testStay(t, w) })
	t.Run("refused pods", func(t *testing.T) { testRefused(t, w) })
}

// testRootFolder runs an image whose root folder leads out of it, and one that is olmkit itself.
func testRootFolder(t *testing.T, w *world) {
	outside, image := filepath.Join(w.dir, "outside"), filepath.Join(w.dir, "image")
	for _, dir := range []string{outside, image + "/usr/bin", image + "/run", image + "/etc", image + outside} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	shell(t, "cp", w.program, image+"/usr/bin/attacker")
	for path, target := range map[string]string{
		"bin": "usr/bin", "var/run": "/run", "etc/mtab": "/proc/mounts", // as Debian has them
		"etc/passwd": outside + "/passwd", "etc/hosts": outside + "/hosts", "opt": outside,
		"self": "/proc/self/exe",
	} {
		path = filepath.Join(image, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"passwd", "hosts"} {
		if err := os.WriteFile(filepath.Join(outside, file), []byte("of the machine"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(image, "catalog.yaml"), []byte(catalog), 0o644); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 && !w.users {
		shell(t, "chown", "-R", fmt.Sprintf("%d:%d", nobody, nobody), image, outside)
	}
	w.load(t, "example.com/links:v1", image)
	w.create(t, "links", func(spec *corev1.PodSpec) {
		spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		c := &spec.Containers[0]
		c.Image, c.Command, c.WorkingDir = "example.com/links:v1", []string{"/bin/attacker"}, "/opt/work"
		c.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/opt/data"}}
	})
	harmless(t, w.report(t, "links"))
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 2 {
		t.Errorf("the machine's folder has %v, %v", entries, err)
	}
	for _, entry := range entries {
		if data, err := os.ReadFile(filepath.Join(outside, entry.Name())); err != nil || string(data) != "of the machine" {
			t.Errorf("the machine's %s holds %q, %v", entry.Name(), data, err)
		}
	}
	t.Run("of olmkit itself", func(t *testing.T) {
		w.create(t, "self", func(spec *corev1.PodSpec) {
			c := &spec.Containers[0]
			c.Image, c.Command, c.Args = "example.com/links:v1", []string{"/self"}, []string{"catalog", "serve", "/catalog.yaml"}
		})
		var refused bool // by Landlock, where the kernel has it
		eventually(t, "pod self runs or is kept from it", func() error {
			log, err := w.CoreV1().Pods("default").GetLogs("self", &corev1.PodLogOptions{}).DoRaw(t.Context())
			refused = strings.Contains(string(log), "execute /self: permission denied")
			if err == nil && !refused && !strings.Contains(string(log), "serving") {
				return fmt.Errorf("its log is %q", log)
			}
			return err
		})
		if refused {
			return
		}
		if out, err := w.exec(t, "self", "/bin/attacker", "hunt"); err != nil || !strings.Contains(out, "read-only file system") {
			t.Errorf("olmkit's own program can be changed from a container: %s, %v", out, err)
		}
	})
}

// catalog is what olmkit serves, so that it runs for a while.
const catalog = `
{"schema": "olm.package", "name": "p", "defaultChannel": "a"}
{"schema": "olm.channel", "name": "a", "package": "p", "entries": [{"name": "p.v1.0.0"}]}
{"schema": "olm.bundle", "name": "p.v1.0.0", "package": "p", "image": "example.com/p:v1", "properties": [{"type": "olm.package", "value": {"packageName": "p", "version": "1.0.0"}}]}
`

// testSubPath mounts by its sub-path a link to the machine that an init container has put into a volume.
func testSubPath(t *testing.T, w *world) {
	w.create(t, "subpath", func(spec *corev1.PodSpec) {
		spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		link := *spec.Containers[0].DeepCopy()
		link.Name, link.Args = "link", []string{"link", w.dir, "/data/out"}
		link.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
		spec.InitContainers = []corev1.Container{link}
		spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data", SubPath: "out"}}
	})
	wait.ForEvent(t, waitLimit, w, "subpath", "Failed", "path escapes from parent")
}

// testDevices runs containers with a volume at /dev, in which an init container has put links to what the process has open that becomes the container's, in the place of /dev/null.
func testDevices(t *testing.T, w *world) {
	names := map[int]string{}
	for fd := 3; fd < 9; fd++ {
		names[fd] = fmt.Sprint("devices", fd)
		w.create(t, names[fd], func(spec *corev1.PodSpec) {
			spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			spec.Containers[0].Command = []string{"/attacker"}
			link := *spec.Containers[0].DeepCopy()
			link.Name, link.Args = "link", []string{"link", fmt.Sprint("/proc/self/fd/", fd), "/data/null"}
			link.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
			spec.InitContainers = []corev1.Container{link}
			spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/dev"}}
		})
	}
	for fd, name := range names {
		harmless(t, w.report(t, name))
		out, err := w.exec(t, name, "/attacker")
		if err != nil {
			t.Fatalf("%d: %v: %s", fd, err, out)
		}
		found, err := parse([]byte(out))
		if err != nil {
			t.Fatal(err)
		}
		harmless(t, found)
	}
}

// testStay deletes a pod whose program has started others that ignore signals, in sessions of their own.
func testStay(t *testing.T, w *world) {
	name := "stay-" + w.cluster
	w.create(t, "stay", func(spec *corev1.PodSpec) { spec.Containers[0].Args = []string{"breed", name} })
	eventually(t, "the processes are there", func() error {
		log, err := w.CoreV1().Pods("default").GetLogs("stay", &corev1.PodLogOptions{}).DoRaw(t.Context())
		if err == nil && !strings.Contains(string(log), "bred") {
			err = fmt.Errorf("the log is %q", log)
		}
		return err
	})
	if alive(t, name) == 0 {
		t.Error("none is seen")
	}
	if err := w.CoreV1().Pods("default").Delete(t.Context(), "stay", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the processes have ended", func() error {
		if n := alive(t, name); n > 0 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
}

// alive counts the processes of the machine that call themselves name.
func alive(t *testing.T, name string) int {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, path := range lines {
		if line, err := os.ReadFile(path); err == nil && strings.HasPrefix(string(line), "attacker\x00stay\x00"+name) {
			n++
		}
	}
	return n
}

// testRefused creates pods that ask for the machine.
func testRefused(t *testing.T, w *world) {
	for what, change := range map[string]func(*corev1.PodSpec){
		"hostNetwork": func(s *corev1.PodSpec) { s.HostNetwork = true },
		"hostPID":     func(s *corev1.PodSpec) { s.HostPID = true },
		"hostIPC":     func(s *corev1.PodSpec) { s.HostIPC = true },
		"privileged": func(s *corev1.PodSpec) {
			s.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
		},
		"hostPath": func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "machine", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
			s.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "machine", MountPath: "/machine"}}
		},
	} {
		name := strings.ToLower(what)
		w.create(t, name, change)
		wait.ForEvent(t, waitLimit, w, name, "PodRefused", what)
		eventually(t, "the container of "+name+" says why it waits", func() error {
			pod, err := w.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			for _, s := range pod.Status.ContainerStatuses {
				if s.State.Waiting != nil && s.State.Waiting.Reason == "PodRefused" && strings.Contains(s.State.Waiting.Message, what) {
					return nil
				}
			}
			return fmt.Errorf("it is %+v", pod.Status)
		})
	}
}

// testConfinement has the container's program attack, and then commands in it, which are to be confined as it is.
func testConfinement(t *testing.T, w *world, name string, identity *corev1.PodSecurityContext) {
	if _, err := w.CoreV1().PersistentVolumeClaims("default").Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"a": "b"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	volumes := []corev1.Volume{
		{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}},
		{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}},
	}
	write := func(file string) corev1.ProbeHandler {
		return corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/attacker", "write", "/data/" + file}}}
	}
	setUp := func(spec *corev1.PodSpec) {
		spec.Volumes, spec.SecurityContext = volumes, identity
		c := &spec.Containers[0]
		c.Command, c.WorkingDir = []string{"/attacker"}, "/data"
		c.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}, {Name: "config", MountPath: "/config"}}
	}
	w.create(t, name, func(spec *corev1.PodSpec) {
		setUp(spec)
		spec.TerminationGracePeriodSeconds = ptr.To[int64](60) // an attack takes its time on a busy machine, and the hook has no longer
		c := &spec.Containers[0]
		c.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 10, ProbeHandler: write("probe")}
		c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: write("hook").Exec}}
	})
	program := w.report(t, name)
	harmless(t, program)
	confined := func(t *testing.T, got findings) {
		t.Helper()
		harmless(t, got)
		if diff := cmp.Diff(program.Facts, got.Facts); diff != "" {
			t.Errorf("it is not confined as the container's program is (-program +this):\n%s", diff)
		}
	}
	t.Run("exec", func(t *testing.T) {
		out, err := w.exec(t, name, "/attacker")
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		got, err := parse([]byte(out))
		if err != nil {
			t.Fatal(err)
		}
		confined(t, got)
	})
	w.waitReady(t, name)
	if err := w.CoreV1().Pods("default").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for file, what := range map[string]string{"probe": "exec probe", "hook": "preStop hook"} {
		t.Run(what, func(t *testing.T) {
			w.create(t, name+"-"+file, func(spec *corev1.PodSpec) {
				setUp(spec)
				spec.Containers[0].Args = []string{"await", "/data/" + file}
			})
			confined(t, w.report(t, name+"-"+file))
		})
	}
}

// waitReady waits until the pod is ready.
func (w *world) waitReady(t *testing.T, name string) {
	t.Helper()
	eventually(t, "pod "+name+" is ready", func() error {
		pod, err := w.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("it is %s: %+v", pod.Status.Phase, pod.Status.ContainerStatuses)
	})
}
