package compare

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olmkit/olmkit/test/support/expect"
)

func TestLost(t *testing.T) {
	const head = "apiVersion: v1\nkind: T\n"
	for _, test := range []struct {
		name, want, got string
		lost            []string
	}{
		{"equal", "spec: {a: 1, b: [x, {c: true}]}", "spec: {a: 1, b: [x, {c: true}]}", nil},
		{"more is no loss", "spec: {a: 1}", "spec: {a: 1, b: 2}\nstatus: {}", nil},
		{"gone", "spec: {a: 1, b: {c: x}}", "spec: {b: {}}", []string{"spec.a was 1 and is gone", `spec.b.c was "x" and is gone`}},
		{"other value", "spec: {a: 1}", "spec: {a: 2}", []string{"spec.a was 1 and is 2"}},
		{"other type", "spec: {a: '1'}", "spec: {a: 1}", []string{`spec.a was "1" and is 1`}},
		{"scalar became a map", "spec: {a: x}", "spec: {a: {b: x}}", []string{`spec.a was "x" and is {"b":"x"}`}},
		{"map became a scalar", "spec: {a: {b: x}}", "spec: {a: x}", []string{`spec.a was {"b":"x"} and is "x"`}},
		{"empty values may be left out", "spec: {a: 0, b: '', c: false, d: {}, e: [], f: null, g: {h: {i: ''}}}", "spec: {}", nil},
		{"an empty value is not any value", "spec: {a: 0}", "spec: {a: 1}", []string{"spec.a was 0 and is 1"}},
		{"a number is a number", "spec: {a: 1}", "spec: {a: 1.0}", nil},
		{"as Kubernetes writes it", "spec: {a: 5m, b: '0.5', c: 1024Mi, d: 90s, e: '2024-01-02T03:04:05+01:00', cpu: 1000m}", "spec: {a: 5m0s, b: 500m, c: 1Gi, d: 1m30s, e: '2024-01-02T02:04:05Z', cpu: '1'}", nil},
		{"not as it writes it", "spec: {a: '7.0', b: '1.10', c: 1Gi, d: 5m, e: 2000m, f: '2024-01-02T03:04:05.9Z'}", "spec: {a: '7', b: '1.1', c: 1024Mi, d: 300s, e: '2', f: '2024-01-02T03:04:05Z'}",
			[]string{`spec.a was "7.0" and is "7"`, `spec.b was "1.10" and is "1.1"`, `spec.c was "1Gi" and is "1024Mi"`, `spec.d was "5m" and is "300s"`, `spec.e was "2000m" and is "2"`, `spec.f was "2024-01-02T03:04:05.9Z" and is "2024-01-02T03:04:05Z"`}},
		{"big numbers are exact", "spec: {a: 9007199254740993}", "spec: {a: 9007199254740992}", []string{"spec.a was 9007199254740993 and is 9007199254740992"}},
		{"list grew", "spec: {a: [1]}", "spec: {a: [1, 2]}", []string{"spec.a was [1] and is [1,2]"}},
		{"a long list without one", "args: [--first-of-many-arguments=yes, --second-of-many-arguments=yes, --third=3, --fourth=4]", "args: [--first-of-many-arguments=yes, --second-of-many-arguments=yes, --fourth=4]",
			[]string{`args does not have "--third=3" any more`}},
		{"a long text with what is no ASCII", "a: " + strings.Repeat("é", 50) + "x", "a: " + strings.Repeat("é", 50) + "y",
			[]string{`a was ...ééééééééééx" and is ...ééééééééééy"`}},
		{"called something else", "data: {my.conf: maxmemory 1gb}", "data: {redis.conf: maxmemory 1gb}", []string{`data.my.conf was "maxmemory 1gb" and is called redis.conf now`}},
		{"what is short is so by chance", "data: {a: 'true'}", "data: {b: 'true'}", []string{`data.a was "true" and is gone`}},
		{"one of two is not known", "data: {a: maxmemory 1gb}", "data: {b: maxmemory 1gb, c: maxmemory 1gb}", []string{`data.a was "maxmemory 1gb" and is gone`}},
		{"list in another order", "spec: {a: [1, 2]}", "spec: {a: [2, 1]}", []string{"spec.a[0] was 1 and is 2", "spec.a[1] was 2 and is 1"}},
		{"data beside spec counts", "data: {k: v}", "spec: {}", []string{`data was {"k":"v"} and is gone`}},
		{"status and metadata do not", "metadata: {name: a}\nstatus: {x: 1}", "metadata: {name: b}", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, d := range Lost(Content(expect.Object(t, head+test.want)), Content(expect.Object(t, head+test.got))) {
				got = append(got, d.String())
			}
			if diff := cmp.Diff(test.lost, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A text that is YAML and is formatted anew says what it said; one that says less, or is no YAML, does not.
func TestWithoutRewritten(t *testing.T) {
	const text = "receivers:\n  otlp:\n    protocols: \n      grpc: {}\n\nexporters: [debug]\n"
	for name, c := range map[string]struct {
		was, is any
		lost    bool
	}{
		"formatted anew": {text, "exporters:\n- debug\nreceivers:\n  otlp:\n    protocols:\n      grpc: {}\n", false},
		"as JSON":        {text, `{"exporters":["debug"],"receivers":{"otlp":{"protocols":{"grpc":{}}}}}`, false},
		"with a default": {text, "exporters:\n- debug\nreceivers:\n  otlp:\n    protocols:\n      grpc:\n        endpoint: 0.0.0.0:4317\n", false},
		"it says less":   {text, "receivers:\n  otlp:\n    protocols:\n      grpc: {}\n", true},
		"it says other":  {text, "exporters:\n- file\nreceivers:\n  otlp:\n    protocols:\n      grpc: {}\n", true},
		"no YAML":        {text, "receivers: [", true},
		"no text":        {text, int64(1), true},
		"words":          {"red", "blue", true},
		"gone":           {text, nil, true},
	} {
		want, got := map[string]any{"config": c.was}, map[string]any{"config": c.is}
		if lost := Lost(want, got).WithoutRewritten(); len(lost) > 0 != c.lost {
			t.Errorf("%s: %s", name, lost)
		}
	}
}

// TestOtherFields: a field is told once, whichever side says something else or nothing; what is empty is as if it was not there.
func TestOtherFields(t *testing.T) {
	a := map[string]any{"same": "1", "other": "1", "gone": "1", "none": ""}
	b := map[string]any{"same": "1", "other": "2", "new": "1"}
	if got, want := OtherFields(a, b), []string{"gone", "new", "other"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Of a long list it is said which items came and went.
func TestItems(t *testing.T) {
	rule := func(resource string) any {
		return map[string]any{"apiGroups": []any{"postgresql.example.com"}, "resources": []any{resource}, "verbs": []any{"get"}}
	}
	for _, c := range []struct {
		was, is []any
		want    string
	}{
		{[]any{rule("a"), rule("b")}, []any{rule("a"), rule("b"), rule("c")}, `rules has {"apiGroups":["postgresql.example.com"],"resources":["c"],"verbs":["get"]} now`},
		{[]any{rule("a"), rule("b")}, []any{rule("a")}, `rules does not have {"apiGroups":["postgresql.example.com"],"resources":["b"],"verbs":["get"]} any more`},
		{[]any{"a"}, []any{"a", "b"}, `rules was ["a"] and is ["a","b"]`},
	} {
		if got := (Difference{Path: "rules", Was: c.was, Is: c.is}).String(); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
