package document

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/finding"
)

func TestLines(t *testing.T) {
	t.Parallel()
	raw := `{"kind": "Tea", "metadata": {"name": "green"}, "spec": {"empty": {}, "none": [], "pots": [
		{"name": "a", "args": ["--leaves=2", "x: y", ""], "hot": true}, {"name": "b", "deep": [[1, {"z": null}]]}
	], "text": "one\ntwo", "a key": 1.10}}`
	for _, test := range []struct {
		path []any
		want string
	}{
		{[]any{"spec", "pots", 0}, "name: a|args:|- --leaves=2|- \"x: y\"|- \"\"|hot: true"},
		{[]any{"spec", "pots", 1}, "name: b|deep:|-|  - 1|  - z: null"},
		{[]any{"spec", "pots", 0, "args", 1}, `"x: y"`},
		{[]any{"spec", "pots", 0, "args"}, "args:|- --leaves=2|- \"x: y\"|- \"\""},
		{[]any{"spec", "pots", 7, "name"}, "pots:|- name: a|  args:|  - --leaves=2|  - \"x: y\"|…"},
		{[]any{"spec", "empty"}, "empty: {}"},
		{[]any{"spec", "none"}, "none: []"},
		{[]any{"spec", "text"}, "text: \x7c|  one|  two"},
		{[]any{"spec", "a key"}, "a key: 1.10"},
		{[]any{"metadata"}, "metadata:|  name: green"},
		{[]any{"nothing"}, "kind: Tea|metadata: …|spec: …"},
		{nil, "kind: Tea|metadata: …|spec: …"},
	} {
		if got := strings.Join(lines(json.RawMessage(raw), test.path), "|"); got != test.want {
			t.Errorf("%v:\n%s, not\n%s", test.path, got, test.want)
		}
	}
	schema := `{"spec": {"description": "long", "properties": {"a": {"type": "string"}, "b": {}}, "type": "object", "required": ["a", "b"], "enum": [[1]], "max": 3}, "list": {"a": {"x": 1}, "b": {"x": 1}, "c": {"x": 1}, "d": {"x": 1}, "e": {"x": 1}, "f": {"x": 1}}}`
	for field, want := range map[string]string{
		"spec": "spec:|  type: object|  required: [a, b]|  max: 3|  properties: …|…",
		"list": "list:|  a: …|  b: …|  c: …|  d: …|…",
	} {
		if got := strings.Join(lines(json.RawMessage(schema), []any{field}), "|"); got != want {
			t.Errorf("%s:\n%s, not\n%s", field, got, want)
		}
	}
	if got := strings.Join(lines(json.RawMessage(`{"a":"`+strings.Repeat("x", 1000)+`"}`), []any{"a"}), "|"); len(got) > 200 {
		t.Errorf("a line of %d bytes", len(got))
	}
	if got := lines(json.RawMessage(`{"a":`), []any{"a"}); len(got) > 0 {
		t.Errorf("broken JSON has lines: %q", got)
	}
}

func TestWithin(t *testing.T) {
	t.Parallel()
	at := finding.Location{File: "catalog.yaml", Line: 3, Column: 7}
	got := Within(json.RawMessage(`{"kind":"Tea","metadata":{"name":"green"},"spec":{"cups":2}}`), at, func() finding.Location { return at }).Place("spec", "cups")
	if want := (finding.Location{File: "catalog.yaml", Line: 3, Column: 7, Object: "Tea/green", Path: "spec.cups", Excerpt: "cups: 2"}); got != want {
		t.Errorf("%+v, not %+v", got, want)
	}
}
