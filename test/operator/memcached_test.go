//go:build linux

package operator_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
)

// talkArgument makes a program of pods of this test binary that speaks to a memcached server.
const talkArgument = "talk-memcached"

// realMemcached makes ref an image of Debian's memcached: the program and the libraries that it needs.
func realMemcached(t *testing.T, ref string) {
	t.Helper()
	program, err := exec.LookPath("memcached")
	if err != nil {
		t.Fatalf("%v: install the package memcached", err)
	}
	libraries, err := exec.Command("ldd", program).Output()
	must(t, err)
	image := t.TempDir()
	must(t, os.Chmod(image, 0o755))
	files := map[string]string{"/usr/local/bin/memcached": program}
	for _, path := range regexp.MustCompile(`/\S+`).FindAllString(string(libraries), -1) {
		files[path] = path
	}
	for target, source := range files {
		data, err := os.ReadFile(source)
		must(t, err)
		target = filepath.Join(image, target)
		must(t, os.MkdirAll(filepath.Dir(target), 0o755))
		must(t, os.WriteFile(target, data, 0o755))
	}
	must(t, world.LoadImage(t.Context(), ref, image))
}

// talk is one conversation in memcached's text protocol: it sends the words in lines and returns the answer.
func talk(w io.Writer, address string, words ...string) error {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer connection.Close()
	if words[0] == "set" {
		_, err = fmt.Fprintf(connection, "set %s 0 0 %d\r\n%s\r\n", words[1], len(words[2]), words[2])
	} else {
		_, err = fmt.Fprintf(connection, "%s\r\n", strings.Join(words, " "))
	}
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(connection)
	for lines.Scan() {
		line := lines.Text()
		fmt.Fprintln(w, line)
		if line == "END" || line == "STORED" || line == "OK" || strings.HasSuffix(line, "ERROR") {
			return nil
		}
	}
	return errors.Join(lines.Err(), io.ErrUnexpectedEOF)
}

// runIn runs a command in the only container of a pod, and returns what it prints.
func runIn(t *testing.T, pod *corev1.Pod, command ...string) string {
	t.Helper()
	c, err := kubernetes.NewForConfig(world.Config())
	must(t, err)
	target := c.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
	executor, err := remotecommand.NewSPDYExecutor(world.Config(), http.MethodPost, target)
	must(t, err)
	var out, errOut bytes.Buffer
	if err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &out, Stderr: &errOut}); err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(command, " "), err, errOut.String())
	}
	return strings.TrimSpace(out.String())
}

// endpoints waits until a Memcached's Service leads to so many servers, and returns their addresses, as a client that
// resolves the headless Service's name has them.
func endpoints(t *testing.T, m *v1.Memcached, count int) []string {
	t.Helper()
	var out []string
	eventually(t, fmt.Sprintf("the Service leads to %d servers", count), func() error {
		var slicesOf discoveryv1.EndpointSliceList
		if err := admin.List(t.Context(), &slicesOf, client.InNamespace(m.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: "memcached-" + m.Name}); err != nil {
			return err
		}
		out = nil
		for _, slice := range slicesOf.Items {
			for _, e := range slice.Endpoints {
				if e.Conditions.Ready == nil || *e.Conditions.Ready {
					out = append(out, net.JoinHostPort(e.Addresses[0], strconv.Itoa(int(*slice.Ports[0].Port))))
				}
			}
		}
		slices.Sort(out)
		if len(out) != count {
			return fmt.Errorf("it leads to %v", out)
		}
		return nil
	})
	return out
}

// The operand is a real memcached: what is written to it through the Service is read again, also after an upgrade of
// the operator from 0.4.0, which must restart nothing.
func TestRealMemcached(t *testing.T) {
	const image = "example.com/debian/memcached:1.6"
	share(t)
	realMemcached(t, image)
	ns := namespace(t)
	earlier := startProgram(t, filepath.Join(root, "bin", "memcached-operator", "v0.4.0", "manager"), nil, "WATCH_NAMESPACE="+ns)
	box := startBox(t, ns, "default")
	say := func(address string, words ...string) string {
		t.Helper()
		return runIn(t, box, append([]string{"/box", talkArgument, address}, words...)...)
	}
	m := create(t, ns, "m", v1.MemcachedSpec{
		Replicas: 2, Service: v1.Service{Port: 11300}, Image: &v1.Image{Repository: "example.com/debian/memcached", Tag: "1.6"},
		Cache: v1.Cache{MemoryMegabytes: 32, MaxConnections: 77, ExtraArgs: []string{"--max-item-size=2m"}},
	})
	m = available(t, ns, m.Name)
	servers := endpoints(t, m, 2)
	for i, server := range servers {
		if got := say(server, "set", "greeting", fmt.Sprintf("hello-%d", i)); got != "STORED" {
			t.Errorf("set: %s", got)
		}
	}
	// What the spec asks for is what the program does.
	settings := say(servers[0], "stats", "settings")
	for _, want := range []string{"STAT maxbytes 33554432", "STAT maxconns 77", "STAT tcpport 11300", "STAT item_size_max 2097152"} {
		if !strings.Contains(settings, want) {
			t.Errorf("no %q in %s", want, settings)
		}
	}
	before := map[string]corev1.Pod{}
	for _, pod := range podsOf(t, m) {
		before[pod.Name] = pod
	}

	earlier.stop(t)
	start(t, nil, "WATCH_NAMESPACE="+ns)
	eventually(t, "0.5.0 took over", func() error {
		operandOf(t, m) // with the budget and the policy, which 0.4.0 does not make
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
			return err
		}
		if !slices.Contains(m.Finalizers, finalizer) {
			return errors.New("it has no finalizer")
		}
		return nil
	})
	m = available(t, ns, m.Name)
	for _, pod := range podsOf(t, m) {
		was, ok := before[pod.Name]
		if !ok || was.UID != pod.UID || pod.Status.ContainerStatuses[0].RestartCount != 0 || pod.Status.ContainerStatuses[0].ContainerID != was.Status.ContainerStatuses[0].ContainerID {
			t.Errorf("%s is new, or was restarted", pod.Name)
		}
	}
	for i, server := range endpoints(t, m, 2) {
		if got := say(server, "get", "greeting"); !strings.Contains(got, fmt.Sprintf("hello-%d", i)) {
			t.Errorf("get: %s", got)
		}
	}

	// A change that memcached does not start with changes nothing for its clients.
	edit(t, m, func(m *v1.Memcached) { m.Spec.Cache.ExtraArgs = []string{"--max-item-size=nonsense"} })
	condition(t, m, v1.ConditionProgressing, "True/RollingOut")
	eventually(t, "the new server fails", func() error {
		for _, pod := range podsOf(t, m) {
			if s := pod.Status.ContainerStatuses; len(s) > 0 && !s[0].Ready && s[0].RestartCount > 0 {
				return nil
			}
		}
		return errors.New("no pod fails")
	})
	if got := endpoints(t, m, 2); !slices.Equal(got, servers) {
		t.Errorf("the Service leads to %v, before to %v", got, servers)
	}
	if got := say(servers[0], "get", "greeting"); !strings.Contains(got, "hello-0") {
		t.Errorf("get: %s", got)
	}
	if simulated, err := world.Simulated(t.Context()); err != nil || slices.Contains(simulated, image) {
		t.Errorf("simulated: %v, %v", simulated, err)
	}
}
