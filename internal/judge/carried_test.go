package judge

import (
	"testing"

	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/test/support/expect"
)

// What an object asks for by fields that pods, Services and claims have as well must go on reaching them.
func TestUnheeded(t *testing.T) {
	type m = map[string]any
	toleration := m{"key": "dedicated", "operator": "Exists"}
	o := &observe.Object{Kind: "Pot", Namespace: "n", Name: "a", Author: m{"spec": m{
		"image": "pots:7", "size": int64(2), "mode": "tall", "tolerations": []any{toleration}, "empty": []any{},
		"pod":     m{"nodeSelector": m{"disk": "fast"}, "resources": m{"limits": m{"memory": "1Gi"}, "requests": m{"cpu": "1250m"}}},
		"service": m{"annotations": m{"example.com/lb": "inner"}},
	}}}
	operands := func(container, pod m, annotations m, others ...observe.Operand) map[string]observe.Operand {
		spec := m{"containers": []any{container}}
		for k, v := range pod {
			spec[k] = v
		}
		all := map[string]observe.Operand{
			"Deployment/n/a": {Kind: "Deployment", Of: o.String(), Content: m{"spec": m{"template": m{"metadata": m{"labels": m{"mode": "tall"}}, "spec": spec}}}},
			"Service/n/a":    {Kind: "Service", Of: o.String(), Marks: m{"annotations": annotations}},
			"Pod/n/a-0":      {Kind: "Pod", Of: o.String(), Content: m{"spec": m{"tolerations": []any{toleration}}}},
		}
		for _, other := range others {
			all[other.String()] = other
		}
		return all
	}
	resources := m{"limits": m{"memory": "1Gi", "cpu": "2"}, "requests": m{"cpu": "1250m"}}
	container, annotations := m{"image": "pots:7", "resources": resources}, m{"example.com/lb": "inner", "more": "x"}
	pod := m{"tolerations": []any{m{"key": "mine"}, m{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}}, "nodeSelector": m{"disk": "fast"}}
	before := operands(container, pod, annotations)
	used := func(*observe.Object, string) bool { return false }
	settings := observe.Operand{Kind: "ConfigMap", Namespace: "n", Name: "a", Of: o.String(), Content: m{"data": m{"pod.yaml": "tolerate: dedicated, if it Exists"}}}
	for _, c := range []struct {
		name  string
		after map[string]observe.Operand
		want  []string
	}{
		{"as before", before, nil},
		{"tolerations", operands(container, m{"nodeSelector": m{"disk": "fast"}}, annotations),
			[]string{"error U514 Pot/n/a: what its spec.tolerations asks for was in what was made for it before the upgrade, and is not any more"}},
		{"tolerations in a file", operands(container, m{"nodeSelector": m{"disk": "fast"}}, annotations, settings), nil},
		{"one of them alone", operands(m{"image": "pots:7", "resources": m{"limits": m{"memory": "1Gi"}}}, pod, annotations),
			[]string{"error U514 Pot/n/a: what its spec.pod.resources.requests.cpu asks for was in what was made for it before the upgrade, and is not any more"}},
		{"a map of keys", operands(container, m{"tolerations": pod["tolerations"], "nodeSelector": m{}}, nil),
			[]string{"error U514 Pot/n/a: what its spec.pod.nodeSelector, spec.service.annotations asks for was in what was made for it before the upgrade, and is not any more"}},
		{"the image", operands(m{"image": "pots:8", "resources": resources}, pod, annotations),
			[]string{"error U514 Pot/n/a: what its spec.image asks for was in what was made for it before the upgrade, and is not any more"}},
		{"another registry", operands(m{"image": "mirror.example.com/pots:7", "resources": resources}, pod, annotations), nil},
		{"a Secret that was not there", operands(container, nil, annotations, observe.Operand{Kind: "Secret", Of: o.String()}), nil},
		{"a pod that the operator makes", operands(container, m{"nodeSelector": m{"disk": "fast"}}, annotations,
			observe.Operand{Kind: "Pod", Name: "mine", Of: o.String(), Direct: true, Content: m{"spec": m{"tolerations": []any{toleration}}}}), nil},
		{"nothing is made any more, which others tell", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.Findings(t, Unheeded([]*observe.Object{o}, before, c.after, used), c.want...)
		})
	}
	expect.Findings(t, Unheeded([]*observe.Object{o}, operands(container, nil, nil), operands(m{"resources": resources, "image": "pots:7"}, pod, annotations), used))
	deprecated := func(_ *observe.Object, path string) bool { return path == "spec.tolerations" }
	expect.Findings(t, Unheeded([]*observe.Object{o}, before, operands(m{"image": "pots:8", "resources": resources}, m{"nodeSelector": m{"disk": "fast"}}, annotations), deprecated),
		"error U514 Pot/n/a: what its spec.image asks for was in what was made for it before the upgrade, and is not any more",
		"warning U514 Pot/n/a: what its spec.tolerations asks for was in what was made for it before the upgrade, and is not any more")
}

// A word is found as a whole, and keys of labels and selectors are words.
func TestMentioned(t *testing.T) {
	type m = map[string]any
	made := func(text string) []observe.Operand {
		return []observe.Operand{{Kind: "ConfigMap", Content: m{"data": m{"f": text}}}}
	}
	for _, c := range []struct {
		spec m
		text string
		want Carriage
	}{
		{m{"cpu": "2"}, "memory: 2Gi", absent}, {m{"cpu": "2"}, "cpus=2, memory=1", mentioned}, {m{"image": "pots:7"}, "pots:7.2", absent},
		{m{"image": "pots:7"}, "mirror/pots:7", mentioned}, {m{"class": "high"}, "highest", absent},
		{m{"nodeSelector": m{"worker": ""}}, "nothing", absent}, {m{"nodeSelector": m{"worker": ""}}, "run on worker", mentioned},
		{m{"keep": []any{"daily", "weekly"}}, "--keep=daily,weekly", mentioned}, {m{"keep": []any{"daily", "weekly"}}, "--keep=daily", partly},
		{m{"keep": []any{"daily", "weekly"}}, "--keep=all", absent}, {m{"keep": []any{m{"of": "daily"}, m{"of": "weekly"}}}, "--keep=daily", absent},
		{m{"f": "all of it"}, "all of it", carried},
	} {
		for path, got := range Carried(c.spec, made(c.text)) {
			if got != c.want {
				t.Errorf("%s in %q: %d, want %d", path, c.text, got, c.want)
			}
		}
	}
}
