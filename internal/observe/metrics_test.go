package observe

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestMetricsPorts(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Ports: []corev1.ContainerPort{{Name: "probes", ContainerPort: 8081}, {Name: "metrics", ContainerPort: 8443}, {Name: "udp", ContainerPort: 53, Protocol: corev1.ProtocolUDP}},
	}}}}
	service := func(app string, ports ...corev1.ServicePort) corev1.Service {
		return corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: app}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": app}, Ports: ports}}
	}
	services := []corev1.Service{
		service("a", corev1.ServicePort{Port: 443, TargetPort: intstr.FromString("metrics")}, corev1.ServicePort{Port: 9443}, corev1.ServicePort{Port: 80, TargetPort: intstr.FromInt32(8080)}),
		service("b", corev1.ServicePort{Port: 1}),
		service("a", corev1.ServicePort{Port: 2, TargetPort: intstr.FromString("none")}, corev1.ServicePort{Port: 3, Protocol: corev1.ProtocolUDP}),
		{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 4}}}},
	}
	if got, want := metricsPorts(pod, services), (map[int32]string{8080: "a", 8081: "", 8443: "a", 9443: "a"}); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestFamilies(t *testing.T) {
	got, stale, err := familiesOf([]byte(`# TYPE acme_messages counter
acme_messages{queue="a"} 1
acme_messages{namespace="b",queue="b"} 2
# TYPE acme_queues gauge
acme_queues 3
# TYPE acme_took histogram
acme_took_bucket{le="1"} 0
acme_took_bucket{le="+Inf"} 0
acme_took_sum 0
acme_took_count 0
`), []string{"b", "c"})
	if want := map[string][]string{"acme_messages": {"namespace", "queue"}, "acme_queues": nil, "acme_took": nil}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if stale = sortedSet(stale); !slices.Equal(stale, []string{"acme_messages"}) {
		t.Errorf("stale are %v", stale)
	}
	for _, text := range []string{"<html>", `{"kind": "Status"}`, "a{"} {
		if got, _, err := familiesOf([]byte(text), nil); err == nil && len(got) > 0 {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}
