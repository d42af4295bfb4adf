//go:build linux

package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// service is a Service at port 80 for the pods with app as label.
func service(name, app string, change func(*corev1.ServiceSpec)) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": app}, Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}},
	}}
	if change != nil {
		change(&s.Spec)
	}
	return s
}

func headless(s *corev1.ServiceSpec) { s.ClusterIP = corev1.ClusterIPNone }

// boxes are two pods that have names below boxes.
func boxes() *appsv1.StatefulSet {
	spec := boxDeployment(boxImage).Spec
	labels := map[string]string{"app": "boxes"}
	spec.Template.Labels = labels
	return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "set"}, Spec: appsv1.StatefulSetSpec{
		Replicas: ptr.To[int32](2), ServiceName: "boxes", Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: spec.Template,
	}}
}

// startBoxes starts a box that calls the others, a StatefulSet of boxes, a simulated pod, and their Services.
func startBoxes(t *testing.T, c *kubernetes.Clientset) {
	t.Helper()
	startBox(t, c)
	for _, s := range []*corev1.Service{
		service("box", "box", nil),
		service("boxes", "boxes", headless),
		service("addressed", "boxes", nil),
		service("simulated", "simulated", nil),
		service("nobody", "nobody", nil),
		service("nobodies", "nobody", headless),
		{ObjectMeta: metav1.ObjectMeta{Name: "alias"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "box.default.svc.cluster.local"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "outside"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"}},
	} {
		if _, err := c.CoreV1().Services("default").Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.AppsV1().StatefulSets("default").Create(t.Context(), boxes(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	simulated := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "simulated", Labels: map[string]string{"app": "simulated"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "example.com/nowhere:v1"}}}}
	eventually(t, "the namespace has its service account, and takes a pod", func() error {
		_, err := c.CoreV1().Pods("default").Create(t.Context(), simulated, metav1.CreateOptions{})
		return err
	})
}

// TestServices has a pod call Services by name and address.
func TestServices(t *testing.T) {
	t.Parallel()
	program := buildBox(t)
	kubeconfig, config := up(t, "e2e-services")
	c := client(t, config)
	load(t, kubeconfig, boxImage, program)
	startBoxes(t, c)
	caller := readyPod(t, c, whichever).Name
	ask := func(path string, parameters ...string) string {
		answer, err := ask(t, c, caller, path, parameters...)
		if err != nil {
			answer += err.Error()
		}
		return answer
	}
	addresses := map[string]string{}
	eventually(t, "all answer", func() error {
		for _, url := range []string{"http://box/healthz", "http://addressed/healthz"} {
			if got := ask("call", "url", url); got != "" {
				return fmt.Errorf("%s answers %s", url, got)
			}
		}
		if got := ask("lookup", "name", "boxes"); len(strings.Fields(got)) != 2 {
			return fmt.Errorf("boxes are at %s", got)
		}
		for _, name := range []string{"set-0", "set-1"} {
			p, err := c.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			addresses[name] = p.Status.PodIP
		}
		return nil
	})
	// API servers of aggregated APIs, as of metrics, read by it who calls them through the API server.
	if m, err := c.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "extension-apiserver-authentication", metav1.GetOptions{}); err != nil || m.Data["requestheader-client-ca-file"] == "" {
		t.Errorf("there is no authority for the API server's front proxy: %v", err)
	}
	for _, test := range []struct{ what, path, key, value, want string }{
		{"a name in the namespace", "call", "url", "http://box/file?path=/etc/pod/labels", `app="box"`},
		{"a name with the namespace", "call", "url", "http://box.default.svc/file?path=/etc/pod/labels", `app="box"`},
		{"a full name", "call", "url", "http://box.default.svc.cluster.local:80/file?path=/etc/pod/labels", `app="box"`},
		{"an alias", "call", "url", "http://alias/file?path=/etc/pod/labels", `app="box"`},
		{"another's Service", "call", "url", "http://addressed/file?path=/etc/pod/labels", `app="boxes"`},
		{"a pod of a StatefulSet", "lookup", "name", "set-1.boxes.default.svc", addresses["set-1"]},
		{"a pod by its address", "lookup", "name", strings.ReplaceAll(addresses["set-0"], ".", "-") + ".default.pod.cluster.local", addresses["set-0"]},
		{"the API server", "call", "url", "https://kubernetes.default.svc/version", `"gitVersion"`},
		{"a port that the Service lacks", "call", "url", "http://box:81/", "connection refused"},
		{"nobody is there", "call", "url", "http://nobody/", "connection refused"},
		{"nothing runs in the pod", "call", "url", "http://simulated/", "connection refused"},
		{"no pod has an address", "lookup", "name", "nobodies", "no such host"},
		{"no such Service", "lookup", "name", "nothing.default.svc", "no such host"},
		{"no such pod", "lookup", "name", "set-7.boxes", "no such host"},
		{"elsewhere", "lookup", "name", "example.com", "lookup example.com on 10.96.0.10:53: server misbehaving"},
		{"an alias of elsewhere", "lookup", "name", "outside.default.svc.cluster.local", "server misbehaving"},
	} {
		t.Run(test.what, func(t *testing.T) {
			if got := ask(test.path, test.key, test.value); !strings.Contains(got, test.want) {
				t.Errorf("%s of %s: %s, want %s", test.path, test.value, got, test.want)
			}
		})
	}
	t.Run("servers of a port", func(t *testing.T) {
		for name, want := range map[string]string{
			"box.default.svc.cluster.local":   "_http._tcp.box.default.svc.cluster.local. box.default.svc.cluster.local.:80",
			"boxes.default.svc.cluster.local": "set-0.boxes.default.svc.cluster.local.:8080",
		} {
			if got := ask("servers", "port", "http", "name", name); !strings.Contains(got, want) {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
	})
	t.Run("pods take turns", func(t *testing.T) {
		said := map[string]bool{}
		for range 4 {
			said[ask("call", "url", "http://addressed/self")] = true
		}
		if len(said) < 2 {
			t.Errorf("one alone answers: %v", said)
		}
	})
	t.Run("a Service goes", func(t *testing.T) {
		at := ask("lookup", "name", "addressed")
		if err := c.CoreV1().Services("default").Delete(t.Context(), "addressed", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "nobody answers", func() error {
			if got := ask("call", "url", "http://"+at+"/healthz"); !strings.Contains(got, "refused") {
				return fmt.Errorf("it answers %q", got)
			}
			return nil
		})
	})
}
