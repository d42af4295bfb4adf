package walk

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/test/support/expect"
)

// What a webhook refused it must refuse still, or what refuses a part of it may be meant; and it must not refuse more that is usual.
func TestAdmission(t *testing.T) {
	p, plan := things(t, "v1", "v2")
	for _, c := range []struct{ v1, v2, want string }{
		{"", "", ""}, {"", checksAll, ""}, {checks, checks, ""}, {checks, checksAll, ""},
		{checks, "", `error U521 Thing/olmkit-samples/a: under v2 the API server takes for an object like it what a webhook or a policy of v1 refused: the creation of one with spec.note = "!"`},
		{checksAll, "", `error U521 Thing/olmkit-samples/a: under v2 the API server takes for an object like it what a webhook or a policy of v1 refused: the creation of one with spec.size = 0, the creation of one with spec.note = "!"`},
		{"", limits, `warning U526 Thing/olmkit-samples/a: under v2 a webhook or a policy refuses for an object like it what the API server took under v1: the creation of one with spec.size = 2`}, {limits, limits, ""},
		{"", insists, `error U526 Thing/olmkit-samples/a: under v2 an admission webhook or policy sets another value for what an object like it asks for, and the API server took as it was under v1: the creation of one with spec.size = 0`},
		{insists, insists, ""},
		{checksAll, checks, `warning U521 Thing/olmkit-samples/a: under v2 the API server takes for an object like it what a webhook or a policy of v1 refused: the creation of one with spec.size = 0`},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "things"}}
			configuration.Webhooks = []admissionregistrationv1.ValidatingWebhook{{Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create}, Rule: admissionregistrationv1.Rule{APIGroups: []string{"example.com"}, Resources: []string{"things"}},
			}}}}
			if err := w.Create(t.Context(), configuration); err != nil {
				t.Fatal(err)
			}
			w.behaviour["v1"], w.behaviour["v2"] = c.v1, c.v2
			found := w.firstHop(t, p, plan).Findings
			if got := strings.Join(expect.Said(found), "\n"); codes(found) != "" && c.want == "" || !strings.Contains(got, c.want) {
				t.Errorf("%q, then %q: %s", c.v1, c.v2, got)
			}
		})
	}
}

// Each field that the schema has is tried, those last of which the object says nothing, the first value of each first, and what is usual after that.
func TestUnusual(t *testing.T) {
	schema := &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"size": {Type: "integer"}, "image": {Type: "string"}, "on": {Type: "boolean"}, "other": {Type: "string"},
		"pool": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"args": {Type: "array"}, "kind": {Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"a"`)}, {Raw: []byte(`"b"`)}}}}},
	}}}}
	object := map[string]any{"spec": map[string]any{"size": int64(1), "image": "i", "on": true, "pool": map[string]any{"args": []any{"-v"}, "kind": "a"}}}
	var said []string
	for _, r := range unusual(schema, object) {
		said = append(said, fmt.Sprint(r))
	}
	want := `the creation of one with spec.image = "!"|the creation of one with spec.pool.args = ["-v","-v"]|the creation of one with spec.size = 0|` +
		`the creation of one with spec.other = "!"|the creation of one with spec.image = "-1"|`
	usual := `|the creation of one without spec.image|the creation of one with spec.on = false|the creation of one without spec.pool.args|` +
		`the creation of one with spec.pool.kind = "b"|the creation of one with spec.size = 2|a change that removes spec.image|`
	if got := strings.Join(said, "|"); !strings.HasPrefix(got, want) || !strings.Contains(got, usual) || !strings.Contains(got, `|a change to spec.image = "!"|`) || strings.Contains(got, "a change to spec.other") {
		t.Errorf("%s", strings.ReplaceAll(got, "|", "\n"))
	}
}

// What one sample does not say another may: none of that is asked for once.
func TestForNone(t *testing.T) {
	schema := &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"replicas": {Type: "integer"}, "members": {Type: "integer"}, "seconds": {Type: "integer"},
	}}}}
	known := forNone(schema, map[string]any{"spec": map[string]any{"replicas": int64(2)}}, nil)
	more := forNone(schema, map[string]any{"spec": map[string]any{"replicas": int64(1), "members": int64(3), "seconds": int64(9)}}, known)
	got := fmt.Sprint(known, more)
	want := "[the creation of one with spec.replicas = 0 a change to spec.replicas = 0] [the creation of one with spec.members = 0 a change to spec.members = 0]"
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Usual is what many objects may say, so that nobody should begin to refuse it.
func TestIsUsual(t *testing.T) {
	text, number, choices := apiextensionsv1.JSONSchemaProps{Type: "string"}, apiextensionsv1.JSONSchemaProps{Type: "integer"}, apiextensionsv1.JSONSchemaProps{Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"a"`)}}}
	for _, c := range []struct {
		value, other any
		schema       apiextensionsv1.JSONSchemaProps
		want         bool
	}{
		{int64(3), int64(4), number, true}, {int64(3), int64(2), number, true}, {int64(1), int64(0), number, false}, {int64(3), int64(1_000_000), number, false}, {int64(-1), int64(-2), number, false},
		{nil, int64(1), number, false}, {"x", nil, text, true}, {"x", "!", text, false}, {"b", "a", choices, true}, {nil, "a", choices, false},
		{true, false, apiextensionsv1.JSONSchemaProps{Type: "boolean"}, true}, {[]any{"a"}, []any{}, apiextensionsv1.JSONSchemaProps{Type: "array"}, false},
	} {
		if got := isUsual(c.value, c.other, c.schema); got != c.want {
			t.Errorf("%v for %v: %t", c.other, c.value, got)
		}
	}
}

// A field that the new version does not know is taken by nobody: the API server drops it.
func TestKnows(t *testing.T) {
	schema := &thingDefinition().Spec.Versions[0]
	for path, want := range map[string]bool{"spec.size": true, "spec.gone": false, "spec.size.more": false} {
		if got := knows(schema.Schema.OpenAPIV3Schema, strings.Split(path, ".")); got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
}

func TestVerdictOf(t *testing.T) {
	for want, err := range map[judge.Verdict]error{
		judge.Taken: nil, judge.RefusedByGuard: denial(crd("v1", "v1")), judge.RefusedByRules: apierrors.NewInvalid(thingKind.GroupKind(), "a", nil), judge.Unanswered: errors.New("failed calling webhook"),
	} {
		if got := verdictOf(err); got != want {
			t.Errorf("%v: %d", err, got)
		}
	}
	said := func(code int32, text string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: `admission webhook "m" denied the request: ` + text}}
	}
	for text, want := range map[string]judge.Verdict{"400 unable to parse quantity's suffix": judge.RefusedByRules, "422 spec.every: time: invalid duration": judge.RefusedByGuard, "500 panic: nil [recovered]": judge.Unanswered} {
		code, rest, _ := strings.Cut(text, " ")
		n, err := strconv.Atoi(code)
		if got := verdictOf(said(int32(n), rest)); got != want || err != nil {
			t.Errorf("%s: %d", text, got)
		}
	}
	if got := verdictOf(errors.New(`things "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`)); got != judge.RefusedByGuard {
		t.Error(got)
	}
}

// What somebody sets to something else is told, unless it is left out, or unknown.
func TestNoteRequest(t *testing.T) {
	object := map[string]any{"spec": map[string]any{"size": int64(3)}}
	size := []string{"spec", "size"}
	for _, c := range []struct {
		r    request
		want judge.Verdict
	}{
		{request{}, judge.Taken}, {requestOf(size, int64(3)), judge.Taken}, {requestOf(size, int64(0)), judge.Overridden}, {requestOf(size, nil), judge.Unanswered},
		{requestOf([]string{"spec", "note"}, nil), judge.Taken}, {requestOf([]string{"spec", "note"}, "a"), judge.Unanswered}, {requestOf([]string{"spec", "size", "x"}, nil), judge.Unanswered},
	} {
		c.r.Verdict = judge.Taken
		if c.r.note(object); c.r.Verdict != c.want || c.want == judge.Overridden && c.r.Said != "3" {
			t.Errorf("%s: %d, %s", c.r, c.r.Verdict, c.r.Said)
		}
	}
}
