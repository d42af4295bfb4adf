package observe

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestChangedFields(t *testing.T) {
	t.Parallel()
	const live = `{"spec":{"replicas":1,"serviceName":"a","selector":{"matchLabels":{"app":"a"}},"podManagementPolicy":"OrderedReady",
		"volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{"resources":{"requests":{"storage":"1Gi"}}},"status":{"phase":"Pending"}}]}}`
	const message = `StatefulSet.apps "a" is invalid: spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'template' are forbidden`
	for _, test := range []struct {
		name, wanted, fields string
		want                 []string
	}{
		{"only what may not be changed", `{"spec":{"replicas":3,"serviceName":"b"}}`, "spec", []string{`spec.serviceName from "a" to "b"`}},
		{"inside of lists", `{"spec":{"volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{"resources":{"requests":{"storage":"2Gi"}}}}]}}`, "spec",
			[]string{`spec.volumeClaimTemplates[0].spec.resources.requests.storage from "1Gi" to "2Gi"`}},
		{"only the field that is named", `{"spec":{"serviceName":"b","selector":{"matchLabels":{"app":"b"}}}}`, "spec.selector",
			[]string{`spec.selector.matchLabels.app from "a" to "b"`}},
		{"what was written is not known", ``, "spec.selector", []string{"spec.selector"}},
		{"a JSON patch", `[{"op":"replace","path":"/spec/serviceName","value":"b"}]`, "spec", []string{"spec"}},
	} {
		var object map[string]any
		if err := json.Unmarshal([]byte(live), &object); err != nil {
			t.Fatal(err)
		}
		r := Refusal{Fields: []string{test.fields}, Wanted: []byte(test.wanted), Why: message}
		if diff := cmp.Diff(test.want, r.ChangedFields(object)); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

func TestOperatorPodOf(t *testing.T) {
	t.Parallel()
	p := &corev1.Pod{Status: corev1.PodStatus{PodIP: "10.1.0.7"}}
	p.Spec.Containers = []corev1.Container{{Name: "proxy"}, {Name: "manager", Env: []corev1.EnvVar{{Name: "OPERATOR_CONDITION_NAME", Value: "v2"}}}}
	if got, want := operatorPodOf(v0, p), (OperatorPod{Release: "v2", IP: "10.1.0.7"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	p.Spec.HostNetwork = true // its address is its node's
	if got := operatorPodOf(v0, p); got.IP != "" {
		t.Errorf("%+v", got)
	}
	for name, hash := range map[string]string{"op-76d4": "76d4", "op": "", "server": "76d4"} { // a ReplicaSet of a Deployment, and two of nobody
		p.Labels = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: hash}
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: name, Controller: ptr.To(true)}}
		want := ""
		if name == "op-76d4" {
			want = "op"
		}
		if got := operatorPodOf(v0, p); got.Deployment != want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestAlternatives(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		verb, resource, want string
	}{
		{"list", "teas", "list"}, {"get", "teas", ""}, {"patch", "teas/status", "update patch"}, {"create", "cups", "create"},
		{"list", "cups", ""}, {"patch", "cups/status", ""}, {"create", "cups/eviction", ""},
	} {
		got := strings.Join(Access{Verb: test.verb, Group: "example.com", Resource: test.resource}.alternatives([]string{"teas.example.com"}), " ")
		if got != test.want {
			t.Errorf("%s %s: %q, want %q", test.verb, test.resource, got, test.want)
		}
	}
}
