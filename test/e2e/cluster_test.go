//go:build linux

package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
	"k8s.io/utils/ptr"

	"github.com/olmkit/olmkit/test/support/trace"
	"github.com/olmkit/olmkit/test/support/wait"
)

const boxImage = "example.com/box:v1"

// buildBox builds the program box and returns its path.
func buildBox(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "box")
	cmd := exec.Command("go", "build", "-o", path, "./box")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build box: %v\n%s", err, out)
	}
	return path
}

func boxDeployment(image string) *appsv1.Deployment {
	labels := map[string]string{"app": "box"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "box"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"colour": "green"}},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: ptr.To[int64](5),
					Volumes: []corev1.Volume{
						{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "box"}}},
						{Name: "pod", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
							{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}}}}}},
						{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
					},
					Containers: []corev1.Container{{
						Name: "box", Image: image, Command: []string{"/manager"}, Args: []string{"--ip=$(IP)"},
						Env: []corev1.EnvVar{
							{Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
							{Name: "COLOUR", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['colour']"}}},
							{Name: "KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "box"}, Key: "key"}}},
						},
						VolumeMounts: []corev1.VolumeMount{
							{Name: "secret", MountPath: "/tmp/deep/secret", ReadOnly: true},
							{Name: "pod", MountPath: "/etc/pod"},
							{Name: "scratch", MountPath: "/scratch"},
						},
						ReadinessProbe:  &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}}},
						LivenessProbe:   &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 2, ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}}},
						SecurityContext: &corev1.SecurityContext{RunAsNonRoot: ptr.To(true), ReadOnlyRootFilesystem: ptr.To(true)},
					}},
				},
			},
		},
	}
}

// startBox makes the Deployment box, and what its pod mounts.
func startBox(t *testing.T, c *kubernetes.Clientset) {
	t.Helper()
	if _, err := c.CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "box"}, StringData: map[string]string{"key": "one"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.AppsV1().Deployments("default").Create(t.Context(), boxDeployment(boxImage), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// ask sends a request to box in the pod, and returns what it answers.
func ask(t *testing.T, c *kubernetes.Clientset, pod, path string, parameters ...string) (string, error) {
	t.Helper()
	request := c.CoreV1().RESTClient().Get().Namespace("default").Resource("pods").Name(pod + ":8080").SubResource("proxy").Suffix(path)
	for i := 0; i < len(parameters); i += 2 {
		request = request.Param(parameters[i], parameters[i+1])
	}
	answer, err := request.DoRaw(t.Context())
	return string(answer), err
}

// load tells the cluster's control socket what an image runs from.
func load(t *testing.T, kubeconfig, ref, program string) {
	t.Helper()
	dir, err := os.Open(filepath.Dir(kubeconfig))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	socket := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/control.sock", dir.Fd()))
	}}}
	body, _ := json.Marshal(map[string]string{"ref": ref, "source": program})
	request, err := http.NewRequest(http.MethodPut, "http://cluster/images", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := socket.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("load %s: %s", ref, response.Status)
	}
}

// command runs a command in the pod's container as kubectl exec -i does from a terminal, whose input stays open.
func command(t *testing.T, config *rest.Config, c *kubernetes.Clientset, pod string, words ...string) (string, error) {
	t.Helper()
	url := c.CoreV1().RESTClient().Post().Resource("pods").Namespace("default").Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: "box", Command: words, Stdin: true, Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
	executor, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, url)
	if err != nil {
		t.Fatal(err)
	}
	terminal, stay := io.Pipe()
	defer stay.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, errOut bytes.Buffer
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: terminal, Stdout: &out, Stderr: &errOut})
	return out.String() + errOut.String(), err
}

// forwarded has kubectl forward a port of a pod until the test ends, and returns the address here.
func forwarded(t *testing.T, kubeconfig, pod, port string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(root, "bin", "kubectl"), "--kubeconfig", kubeconfig, "port-forward", "pod/"+pod, ":"+port)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	lines.Scan()
	address, _, _ := strings.Cut(strings.TrimPrefix(lines.Text(), "Forwarding from "), " ")
	return address
}

// get returns what a server answers.
func get(url string) (string, error) {
	response, err := http.Get(url)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return string(answer), err
}

// commandLines are those of all processes of this machine, those in containers included.
func commandLines(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil { // it may have ended
			lines = append(lines, string(line))
		}
	}
	return lines
}

// readyPod waits for a ready pod of box that fits.
func readyPod(t *testing.T, c *kubernetes.Clientset, fits func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	var found *corev1.Pod
	eventually(t, "a ready pod", func() error {
		pods, err := c.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app=box"})
		if err != nil {
			return err
		}
		for i := range pods.Items {
			p := &pods.Items[i]
			ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			})
			if ready && p.DeletionTimestamp == nil && fits(p) {
				found = p
				return nil
			}
		}
		return fmt.Errorf("%d pods, none as wanted", len(pods.Items))
	})
	return found
}

func whichever(*corev1.Pod) bool { return true }

func TestPodsRunAsProcesses(t *testing.T) {
	t.Parallel()
	program := buildBox(t)
	kubeconfig, config := up(t, "e2e-pods")
	c := client(t, config)
	load(t, kubeconfig, boxImage, program)
	startBox(t, c)
	pod := readyPod(t, c, whichever)

	t.Run("arguments, variables and logs", func(t *testing.T) {
		log, err := c.CoreV1().Pods("default").GetLogs(pod.Name, &corev1.PodLogOptions{Container: "box"}).DoRaw(t.Context())
		if err != nil || !strings.Contains(string(log), "box started [--ip="+pod.Status.PodIP+"]") {
			t.Errorf("the log is %q, %v", log, err)
		}
	})
	t.Run("commands", func(t *testing.T) {
		out, err := command(t, config, c, pod.Name, "/manager", "--second")
		if ended := (utilexec.CodeExitError{}); !errors.As(err, &ended) || !strings.Contains(out, "box started [--second]") || !strings.Contains(out, "address already in use") {
			t.Errorf("a second box in the pod's network printed %q, %v", out, err)
		}
		if out, err := command(t, config, c, pod.Name, "/manager", "link", "nowhere", "/scratch/link"); err != nil || out != "box started [link nowhere /scratch/link]\n" {
			t.Errorf("a command that ends well, while its input is open, printed %q, %v", out, err)
		}
	})
	t.Run("forwarded ports", func(t *testing.T) {
		address := forwarded(t, kubeconfig, pod.Name, "8080")
		for range 3 { // each is a connection of its own
			if answer, err := get("http://" + address + "/file?path=/etc/hosts"); err != nil || !strings.Contains(answer, pod.Name) {
				t.Errorf("the forwarded port answers %q, %v", answer, err)
			}
		}
		if _, err := get("http://" + forwarded(t, kubeconfig, pod.Name, "8099") + "/"); err == nil {
			t.Errorf("a port that nobody listens at answers")
		}
	})
	t.Run("deletion is prompt and orderly", func(t *testing.T) {
		if err := c.CoreV1().Pods("default").Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the pod is gone", func() error {
			p, err := c.CoreV1().Pods("default").Get(t.Context(), pod.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) || err == nil && p.UID != pod.UID {
				return nil
			}
			return fmt.Errorf("it is there: %w", err)
		})
	})
	t.Run("an ill container is restarted", func(t *testing.T) {
		pod = readyPod(t, c, whichever)
		// Reached through the API server's proxy to the pod, as kubectl port-forward users do by hand.
		if _, err := ask(t, c, pod.Name, "ill"); err != nil {
			t.Fatal(err)
		}
		restarted := readyPod(t, c, func(p *corev1.Pod) bool { return p.Status.ContainerStatuses[0].RestartCount == 1 })
		last := restarted.Status.ContainerStatuses[0].LastTerminationState.Terminated
		if last == nil || !strings.Contains(last.Message, "Liveness probe failed") {
			t.Errorf("the last termination is %+v", last)
		}
		previous, err := c.CoreV1().Pods("default").GetLogs(pod.Name, &corev1.PodLogOptions{Container: "box", Previous: true}).DoRaw(t.Context())
		if err != nil || !strings.Contains(string(previous), "box ends") {
			t.Errorf("the former run's log is %q, %v", previous, err)
		}
	})
	file := func(path string) (string, error) { return ask(t, c, pod.Name, "file", "path", path) }
	t.Run("volumes", func(t *testing.T) {
		for path, want := range map[string]string{
			"/tmp/deep/secret/key": "one",
			"/etc/pod/labels":      `app="box"`,
			"/var/run/secrets/kubernetes.io/serviceaccount/namespace": "default",
		} {
			if got, err := file(path); err != nil || !strings.Contains(got, want) {
				t.Errorf("%s holds %q, %v", path, got, err)
			}
		}
		if _, err := c.CoreV1().Secrets("default").Patch(t.Context(), "box", types.MergePatchType, []byte(`{"stringData":{"key":"two"}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the changed secret arrives in the pod", func() error {
			if got, err := file("/tmp/deep/secret/key"); err != nil || got != "two" {
				return fmt.Errorf("%q, %w", got, err)
			}
			return nil
		})
	})
	t.Run("the pod's own credentials", func(t *testing.T) {
		token, err := file("/var/run/secrets/kubernetes.io/serviceaccount/token")
		if err != nil {
			t.Fatal(err)
		}
		own := rest.AnonymousClientConfig(config)
		own.BearerToken = token
		_, err = client(t, own).CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "system:serviceaccount:default:default") {
			t.Errorf("got %v, want what an account without rights is told", err)
		}
	})
	t.Run("a pod that has hours to end has less once that is said", func(t *testing.T) {
		spec := boxDeployment(boxImage).Spec.Template.Spec
		spec.TerminationGracePeriodSeconds = ptr.To[int64](7200)
		spec.Containers[0].Args = []string{"--has-hours-to-end"}
		spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 3600}}}
		pods := c.CoreV1().Pods("default")
		if _, err := pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "slow", Labels: map[string]string{"app": "box"}}, Spec: spec}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		readyPod(t, c, func(p *corev1.Pod) bool { return p.Name == "slow" })
		runs := func() error {
			for _, line := range commandLines(t) {
				if strings.Contains(line, "--has-hours-to-end") {
					return errors.New("its process runs")
				}
			}
			return nil
		}
		if runs() == nil {
			t.Fatal("its process is not found")
		}
		if err := pods.Delete(t.Context(), "slow", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := pods.Delete(t.Context(), "slow", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](1)}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the pod is gone", func() error {
			if _, err := pods.Get(t.Context(), "slow", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is there: %w", err)
			}
			return runs()
		})
	})
	t.Run("an image that can't be had is simulated", func(t *testing.T) {
		if _, err := c.AppsV1().Deployments("default").Patch(t.Context(), "box", types.StrategicMergePatchType,
			[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"box","image":"example.com/nowhere:v1"}]}}}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		p := readyPod(t, c, func(p *corev1.Pod) bool { return p.Spec.Containers[0].Image == "example.com/nowhere:v1" })
		if id := p.Status.ContainerStatuses[0].ContainerID; !strings.HasPrefix(id, "simulated://") {
			t.Errorf("its container is %q", id)
		}
		said, err := ask(t, c, p.Name, "")
		if err == nil || !strings.Contains(said, "connection refused") {
			t.Errorf("who calls it gets %s: %v", said, err)
		}
	})
}

// TestManySimulatedPods has, in its long form, more pods than a bridge of Linux has interfaces.
func TestManySimulatedPods(t *testing.T) {
	t.Parallel()
	replicas := int32(1500)
	if testing.Short() {
		replicas = 100
	}
	_, config := up(t, "e2e-many")
	c := client(t, config)
	many := boxDeployment("")
	many.Spec.Replicas = &replicas
	many.Spec.Template.Spec = corev1.PodSpec{Containers: []corev1.Container{{Name: "box", Image: "example.com/nowhere:v1"}}}
	if _, err := c.AppsV1().Deployments("default").Create(t.Context(), many, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	wait.For(t, 10*time.Minute, "many pods", func() error {
		d, err := c.AppsV1().Deployments("default").Get(t.Context(), many.Name, metav1.GetOptions{})
		if err == nil && d.Status.ReadyReplicas < replicas {
			err = fmt.Errorf("%d of %d are ready", d.Status.ReadyReplicas, replicas)
		}
		return err
	})
	t.Logf("%d pods were ready after %.1f s", replicas, time.Since(began).Seconds())
}

func TestTwoClustersAtOnce(t *testing.T) {
	t.Parallel()
	_, first := up(t, "e2e-one")
	_, second := up(t, "e2e-two")
	if _, err := client(t, first).CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "only-here"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client(t, second).CoreV1().Namespaces().Get(t.Context(), "only-here", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the second cluster answers %v", err)
	}
	status := must(t, "cluster", "status").out
	for _, name := range []string{"e2e-one", "e2e-two"} {
		if !strings.Contains(status, name) {
			t.Errorf("%s is not in\n%s", name, status)
		}
		must(t, "cluster", "down", "--name", name)
	}
}

// TestKilledAtAnyMoment kills olmkit the hard way while a cluster is coming up, and looks for what is left; TestEnds does so later.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	must(t, "cluster", "up", "--name", "e2e-warm") // so that the components are built
	must(t, "cluster", "down", "--name", "e2e-warm")
	for _, moment := range []struct {
		name  string
		built bool
		delay time.Duration
	}{
		{"building", false, 2 * time.Second},
		{"starting", true, 50 * time.Millisecond},
		{"control plane", true, 300 * time.Millisecond},
		{"control plane, later", true, time.Second},
		{"node", true, 2 * time.Second},
	} {
		t.Run(moment.name, func(t *testing.T) {
			before := trace.Unbuilt(t)
			if moment.built {
				before = trace.New(t)
			}
			cmd := exec.Command(olmkit, "upgrade", "test", "catalog", "--package", "memcached-operator", "--max-hops", "1")
			cmd.Dir = root
			temporary := t.TempDir()
			cmd.Env = append(os.Environ(), before.Env(), "TMPDIR="+temporary)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(moment.delay) // the moment of the kill is what is varied
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			eventually(t, "nothing is left", func() error {
				if left := before.Processes(t); len(left) > 0 {
					return fmt.Errorf("processes: %s", strings.Join(left, "; "))
				}
				return nil
			})
			before.CheckMachine(t)
			if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
				t.Errorf("temporary files are left: %v, %v", left, err)
			}
		})
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestTakenPortAndName(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := fmt.Sprint(listener.Addr().(*net.TCPAddr).Port)
	r := run(t, nil, "cluster", "up", "--name", "e2e-port", "--port", port)
	if r.code != 1 || !strings.Contains(r.errOut, "address already in use") || !strings.Contains(r.errOut, "fix: choose another --port") {
		t.Errorf("a taken port: %+v", r)
	}
	up(t, "e2e-name")
	r = run(t, nil, "cluster", "up", "--name", "e2e-name")
	if r.code != 1 || !strings.Contains(r.errOut, "there is a cluster \"e2e-name\" already") {
		t.Errorf("a taken name: %+v", r)
	}
	r = run(t, nil, "cluster", "down", "--name", "e2e-none")
	if r.code != 1 || !strings.Contains(r.errOut, "there is no cluster \"e2e-none\"") {
		t.Errorf("an unknown name: %+v", r)
	}
}

// TestFullDisk has no room in the cache folder: a file system of 1 MiB, in a mount namespace of its own.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := []string{"-m", "--propagation", "private"}
	if os.Geteuid() != 0 {
		args = append(args, "-Ur")
	}
	cmd := exec.Command("unshare", append(args, "sh", "-c", `mount -t tmpfs -o size=1m tmpfs "$1" && dd if=/dev/zero of="$1/fill" bs=1k 2>/dev/null; OLMKIT_CACHE="$1" "$2" cluster up --name e2e-full`, "sh", dir, olmkit)...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Fatalf("got %v\n%s", err, out)
	}
	for _, want := range []string{"no space left on device", "fix: free some space"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the message says no %q:\n%s", want, out)
		}
	}
}

// TestWithoutUserNamespaces is a machine that forbids them, as some distributions do.
func TestWithoutUserNamespaces(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		// The limit of the namespace that is entered holds for its children, whoever asks: an ordinary user is one who
		// has no privileges in it.
		out, err := exec.Command("unshare", "-Ur", "sh", "-c", `echo 0 > /proc/sys/user/max_user_namespaces && echo 0 > /proc/sys/user/max_pid_namespaces && "$1" cluster up --name e2e-userns`, "sh", olmkit).CombinedOutput()
		checkNoNamespaces(t, out, err)
		return
	}
	out, err := exec.Command("unshare", "-Ur", "unshare", "-U", "sh", "-c", `"$1" cluster up --name e2e-userns`, "sh", olmkit).CombinedOutput()
	checkNoNamespaces(t, out, err)
}

func checkNoNamespaces(t *testing.T, out []byte, err error) {
	t.Helper()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Fatalf("got %v\n%s", err, out)
	}
	for _, want := range []string{"refuses to create namespaces", "fix:", "--cluster kind"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the message says no %q:\n%s", want, out)
		}
	}
}
