package upgrade

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"
)

// TestSigns takes writes of the new pods to an object, its operands and its events for signs, and nothing else.
func TestSigns(t *testing.T) {
	const account = "system:serviceaccount:operators:manager"
	who := actors{Accounts: []string{account}, Pods: []string{"new"}}
	targets := map[resource]string{
		{"cache.example.com", "memcacheds", "n", "a"}: "Memcached/n/a",
		{"apps", "deployments", "n", "a-server"}:      "Memcached/n/a",
	}
	request := func(user, pod, verb, of string, code int32) auditv1.Event {
		parts := strings.Split(of, "/")
		e := auditv1.Event{
			Verb: verb, User: authenticationv1.UserInfo{Username: user}, ResponseStatus: &metav1.Status{Code: code},
			ObjectRef: &auditv1.ObjectReference{APIGroup: parts[0], Resource: parts[1], Namespace: "n", Name: parts[2], Subresource: parts[3]},
		}
		if pod != "" {
			e.User.Extra = map[string]authenticationv1.ExtraValue{podNameKey: {pod}}
		}
		return e
	}
	const sample = "cache.example.com/memcacheds/a/"
	for _, test := range []struct {
		name string
		e    auditv1.Event
		want string
	}{
		{"its status", request(account, "new", "patch", sample+"status", 200), "patch of memcacheds/a status"},
		{"its operand", request(account, "new", "create", "apps/deployments/a-server/", 201), "create of deployments/a-server"},
		{"an event about it", request(account, "new", "create", "/events/a.18a/", 201), "create of events/a.18a"},
		{"a token of no pod", request(account, "", "update", sample, 200), "update of memcacheds/a"},
		{"the old pod", request(account, "old", "update", sample, 200), ""},
		{"somebody else", request("system:admin", "", "update", sample, 200), ""},
		{"refused", request(account, "new", "update", sample, 403), ""},
		{"only read", request(account, "new", "get", sample, 200), ""},
		{"of something else", request(account, "new", "update", "apps/deployments/b/", 200), ""},
		{"an event about another", request(account, "new", "create", "/events/ab.18a/", 201), ""},
	} {
		if got := signs([]auditv1.Event{test.e, {}}, who, targets)["Memcached/n/a"]; got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestHarmless prefers one more of what an object counts, and leaves alone what is delicate or bounded.
func TestHarmless(t *testing.T) {
	integer := apiextensionsv1.JSONSchemaProps{Type: "integer"}
	at := func(most float64) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "integer", Maximum: ptr.To(most)}
	}
	schema := &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"size": at(3), "port": integer, "retention": integer, "only": at(1),
		"server": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"replicas": integer}},
		"choice": {Type: "integer", Enum: []apiextensionsv1.JSON{{Raw: []byte("1")}}},
	}}}}
	object := map[string]any{"spec": map[string]any{
		"size": int64(3), "port": int64(80), "retention": int64(7), "only": int64(1), "choice": int64(1), "unknown": int64(1),
		"server": map[string]any{"replicas": int64(1)}, "list": []any{int64(1)},
	}}
	var got []string
	for _, s := range harmless(schema, object) {
		got = append(got, fmt.Sprintf("%s back %s", s.There, s.Back))
	}
	want := []string{
		`{"spec":{"server":{"replicas":2}}} back {"spec":{"server":{"replicas":1}}}`,
		`{"spec":{"size":2}} back {"spec":{"size":3}}`,
		`{"spec":{"retention":8}} back {"spec":{"retention":7}}`,
		`{"metadata":{"annotations":{"olmkit.dev/nudge":"1"}}} back {"metadata":{"annotations":{"olmkit.dev/nudge":null}}}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if only := harmless(nil, map[string]any{}); len(only) != 1 {
		t.Errorf("without a schema and a spec: %d steps", len(only))
	}
}

func TestUnready(t *testing.T) {
	object := func(generation int64, spec, status map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"namespace": "n", "name": "a", "generation": generation}, "spec": spec, "status": status,
		}}
	}
	type m = map[string]any
	served := map[string]bool{"n/a": true}
	for _, test := range []struct {
		name, kind string
		o          *unstructured.Unstructured
		served     map[string]bool
		want       string
	}{
		{"all replicas", "StatefulSet", object(1, m{"replicas": int64(2)}, m{"readyReplicas": int64(2), "observedGeneration": int64(1)}), nil, ""},
		{"one is missing", "StatefulSet", object(1, m{"replicas": int64(2)}, m{"readyReplicas": int64(1), "observedGeneration": int64(1)}), nil, "1 of 2 replicas are ready"},
		{"one by default", "Deployment", object(1, m{}, m{"observedGeneration": int64(1)}), nil, "0 of 1 replicas are ready"},
		{"not seen yet", "Deployment", object(2, m{}, m{"readyReplicas": int64(1), "observedGeneration": int64(1)}), nil, "its controller has not seen generation 2"},
		{"a stuck rollout", "Deployment", object(1, m{}, m{"readyReplicas": int64(1), "updatedReplicas": int64(0), "observedGeneration": int64(1)}), nil, "0 of 1 replicas are of its newest template"},
		{"scaled to nothing", "Deployment", object(1, m{"replicas": int64(0)}, m{"observedGeneration": int64(1)}), nil, ""},
		{"a daemon", "DaemonSet", object(0, m{}, m{"desiredNumberScheduled": int64(1)}), nil, "0 of 1 replicas are ready"},
		{"a failed job", "Job", object(0, m{}, m{"conditions": []any{m{"type": "Failed", "status": "True", "reason": "R", "message": "M"}}}), nil, "it failed: R: M"},
		{"a claim", "PersistentVolumeClaim", object(0, m{}, m{"phase": "Pending"}), nil, "it is Pending"},
		{"a bound claim", "PersistentVolumeClaim", object(0, m{}, m{"phase": "Bound"}), nil, ""},
		{"a Service", "Service", object(0, m{"selector": m{"a": "b"}}, nil), served, ""},
		{"a Service of nobody", "Service", object(0, m{"selector": m{"a": "b"}}, nil), nil, "it has no ready endpoint"},
		{"a Service that selects nothing", "Service", object(0, m{}, nil), nil, ""},
		{"what has no health", "ConfigMap", object(0, nil, nil), nil, ""},
	} {
		if got := unready(test.kind, test.o, test.served); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestWorse quotes why an object is not Ready or Available any more.
func TestWorse(t *testing.T) {
	object := func(conditions map[string]string) *unstructured.Unstructured {
		var list []any
		for _, name := range slices.Sorted(maps.Keys(conditions)) {
			list = append(list, map[string]any{"type": name, "status": conditions[name], "reason": "Broken", "message": "no server"})
		}
		return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": append(list, "hostile")}}}
	}
	was := object(map[string]string{"Available": "True", "Ready": "False", "Degraded": "True"})
	for want, now := range map[string]*unstructured.Unstructured{
		"": object(map[string]string{"Available": "True"}),
		"condition Available was True and is False: Broken: no server": object(map[string]string{"Available": "False"}),
		"condition Available was True and is not there any more":       object(nil),
	} {
		if got := worse(was, now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestJudgeHealth(t *testing.T) {
	before := map[string]operand{"StatefulSet/n/a": {}, "Service/n/a": {}, "Deployment/n/b": {Unready: "0 of 1 replicas are ready"}, "Pod/n/a-0": {Kind: "Pod"}}
	after := map[string]operand{
		"StatefulSet/n/a": {Unready: "1 of 2 replicas are ready"}, "Service/n/a": {}, "Deployment/n/b": {Unready: "0 of 1 replicas are ready"}, "Pod/n/a-0": {Kind: "Pod", Unready: "x"},
	}
	expect(t, judgeHealth(before, after),
		"error U511 StatefulSet/n/a: it was ready before the upgrade and is not 45s after it: 1 of 2 replicas are ready")
}

// TestJudgeRefusedOperand: a finding on an operand whose pod the cluster refuses says what the pod asks for, and no other does.
func TestJudgeRefusedOperand(t *testing.T) {
	before := map[string]operand{"StatefulSet/n/a": {Of: "A/n/a"}, "StatefulSet/n/b": {Of: "A/n/b"}}
	after := map[string]operand{
		"StatefulSet/n/a": {Of: "A/n/a", Unready: "0 of 1 replicas are ready"}, "Pod/n/a-0": {Kind: "Pod", Of: "A/n/a", Refused: "PodRefused: hostPID"},
		"StatefulSet/n/b": {Of: "A/n/b", Unready: "0 of 1 replicas are ready"},
	}
	got := judgeHealth(before, after)
	if len(got) != 2 || got[0].Cause != "Pod/n/a-0 is not run: PodRefused: hostPID" || !strings.Contains(got[0].Fix, "--cluster kind") || got[1].Cause == got[0].Cause || got[1].Fix == got[0].Fix {
		t.Errorf("got %+v", got)
	}
}

// TestJudgeOperandImages tells an image that cannot be had where others ran, and is silent where nothing ran before.
func TestJudgeOperandImages(t *testing.T) {
	pod := func(of, image string) operand { return operand{Kind: "Pod", Of: of, Images: []string{image}} }
	before := map[string]operand{"Pod/n/a": pod("A/n/a", "redis:7"), "Pod/n/b": pod("A/n/b", "other:1")}
	after := map[string]operand{"Pod/n/a2": pod("A/n/a", "redis:8"), "Pod/n/b2": pod("A/n/b", "other:2")}
	expect(t, judgeOperandImages(before, after, []string{"other:1", "other:2", "redis:8"}),
		"error U513 Pod/n/a2: its image redis:8 cannot be had, so the pod is simulated; the pods made for A/n/a ran before the upgrade")
	expect(t, judgeOperandImages(before, after, []string{"other:1"}))
}
