package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

const potSchema = `{"type": "object", "description": "A pot", "properties": {
	"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
	"spec": {"type": "object", "required": ["size"], "properties": {
		"size": {"type": "integer", "minimum": 1},
		"lid": {"type": "object", "default": {"colour": "red"}, "properties": {"colour": {"type": "string"}}},
		"labels": {"type": "object", "additionalProperties": {"type": "string"}},
		"cups": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {
			"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "tea": {"type": "object", "properties": {"leaf": {"type": "string", "pattern": "^[a-z]+$"}}}}}},
		"port": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}
	}},
	"status": {"type": "object", "properties": {"cups": {"type": "array", "items": {"type": "string"}}}}
}}`

// ruleSchema has CEL rules beside fields without any, the cost of which depends on the size of what stands in the list.
const ruleSchema = `{"type": "object", "properties": {
	"spec": {"type": "object", "required": ["size"], "properties": {
		"size": {"type": "integer", "minimum": 1},
		"kettle": {"type": "object", "properties": {
			"heat": {"type": "string", "maxLength": 20, "x-kubernetes-validations": [{"rule": "self != 'off'"}]},
			"lid": {"type": "object", "default": {"colour": "red"}, "properties": {"colour": {"type": "string"}}}}},
		"cups": {"type": "array", "items": {"type": "object", "required": ["name", "text"], "properties": {
			"name": {"type": "string", "minLength": 20000, "x-kubernetes-validations": [{"rule": "self.matches('^[a-z]+$')"}]},
			"text": {"type": "string", "minLength": 20000}, "lid": {"type": "object", "properties": {"colour": {"type": "string"}}}}}}
	}},
	"status": {"type": "object", "properties": {"cups": {"type": "array", "items": {"type": "string"}}}}
}}`

func potCRD(schemas ...string) []byte {
	var versions []string
	for i, s := range schemas {
		versions = append(versions, fmt.Sprintf(`{"name": "v%d", "served": true, "storage": %t, "schema": {"openAPIV3Schema": %s}, "subresources": {"status": {}}}`, i+1, i == 0, s))
	}
	return []byte(`{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "pots.example.com"}, "spec": {
		"group": "example.com", "names": {"kind": "Pot", "plural": "pots", "singular": "pot", "listKind": "PotList"}, "scope": "Namespaced",
		"versions": [` + strings.Join(versions, ",") + `]}}`)
}

// TestSchemaReader: what is read by parts is what encoding/json reads.
func TestSchemaReader(t *testing.T) {
	cases := map[string][]byte{
		"one version":            potCRD(potSchema),
		"two versions":           potCRD(potSchema, strings.ReplaceAll(potSchema, "red", "blue")),
		"no schema":              []byte(`{"spec": {"versions": [{"name": "v1"}, {"name": "v2", "schema": {}}]}}`),
		"no versions":            []byte(`{"spec": {"group": "example.com"}}`),
		"null":                   potCRD(`null`, potSchema),
		"empty":                  potCRD(`{}`, `{"properties": {}}`),
		"a field twice":          potCRD(`{"properties": {"a": {"type": "string"}, "a": {"title": "x"}}}`),
		"properties twice":       potCRD(`{"properties": {"a": {"type": "string"}}, "properties": {"b": {"title": "x"}}}`),
		"other spelling":         potCRD(`{"Properties": {"a": {"type": "string"}}, "ITEMS": {"type": "string"}}`),
		"both spellings":         potCRD(`{"additionalProperties": {"type": "string"}, "additionalproperties": false}`),
		"an object, then no":     potCRD(`{"additionalProperties": {"type": "string"}, "additionalProperties": false}`),
		"no, then an object":     potCRD(`{"additionalProperties": false, "additionalProperties": {"type": "string"}}`),
		"a long s":               potCRD(`{"itemſ": {"type": "string"}}`),
		"escaped words":          potCRD(`{"propertie\u0073": {"a": {"type": "string"}}, "ty\u0070e": "object"}`),
		"escaped names":          potCRD(`{"properties": {"\u0061\"b": {"type": "string"}, "": {"type": "string"}}}`),
		"several items":          potCRD(`{"items": [{"type": "string"}, {"type": "integer"}]}`),
		"alternatives":           potCRD(`{"anyOf": [{"properties": {"a": {}}}], "not": {"type": "string"}, "default": {"b": 12345678901234567890}}`),
		"versions twice":         []byte(`{"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"type": "object"}}}], "versions": [{"name": "v2"}]}}`),
		"a spec spelt otherwise": []byte(`{"Spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"type": "object"}}}]}}`),
		"a wrong type":           potCRD(`{"properties": {"a": {"minimum": "1"}}}`),
		"no object":              potCRD(`{"properties": {"a": [], "b": null}}`),
		"a list":                 []byte(`[]`),
	}
	reader := &schemaReader{described: true}
	for name, text := range cases {
		want := &apiextensionsv1.CustomResourceDefinition{}
		if json.Unmarshal(text, want) != nil {
			want = nil
		}
		for range 2 { // new, and known
			var got *apiextensionsv1.CustomResourceDefinition
			if c := reader.crd(crdV1, text); c != nil {
				got = c.CustomResourceDefinition
				if len(c.schemas) != len(c.Spec.Versions) {
					t.Errorf("%s: %d schemas of %d versions", name, len(c.schemas), len(c.Spec.Versions))
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
	if reader.crd(crdV1, cases["one version"]).schema(0) != reader.crd(crdV1, cases["two versions"]).schema(0) {
		t.Error("equal schemas are not one")
	}
}

// TestUndescribed: schemas that differ only in what they say of fields to people are one, but for what the API server asks.
func TestUndescribed(t *testing.T) {
	schema := func(spec, size, metadata string) []byte {
		return potCRD(fmt.Sprintf(`{"type": "object", "properties": {
			"metadata": {"type": "object", "description": %q},
			"spec": {"type": "object", "description": %q, "properties": {"size": {"type": "integer", "description": %q},
				"description": {"type": "string"}, "port": {"anyOf": [{"description": %q}]}}}}}`, metadata, spec, size, metadata))
	}
	reader := &schemaReader{}
	one, same, other := reader.crd(crdV1, schema("a", "b", "c")), reader.crd(crdV1, schema("d", "", "c")), reader.crd(crdV1, schema("a", "b", "d"))
	if one.spec != same.spec || one.schema(0) != same.schema(0) {
		t.Error("schemas that differ in descriptions alone are not one")
	}
	if one.spec == other.spec {
		t.Error("a description that the API server refuses is left out")
	}
	properties := one.schema(0).Properties["spec"].Properties
	if properties["size"].Description != "" || properties["description"].Type != "string" || properties["port"].AnyOf[0].Description != "c" {
		t.Errorf("it reads %+v", properties)
	}
	if wrong := potCRD(`{"description": 5}`); reader.crd(crdV1, wrong) != nil {
		t.Error("a description that is no text is read")
	}
	full := &schemaReader{described: true}
	if full.crd(crdV1, schema("a", "b", "c")).spec == full.crd(crdV1, schema("d", "b", "c")).spec {
		t.Error("a reader that keeps descriptions takes others for the same")
	}
}

// distort puts something at a random place of a schema.
func distort(random *rand.Rand, schema map[string]any) {
	var nodes []map[string]any
	var visit func(any)
	visit = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			nodes = append(nodes, v)
			for _, k := range slices.Sorted(maps.Keys(v)) {
				visit(v[k])
			}
		case []any:
			for _, item := range v {
				visit(item)
			}
		}
	}
	visit(schema)
	words := slices.Sorted(maps.Keys(strangeWords))
	word := words[random.IntN(len(words))]
	var value any
	if err := json.Unmarshal([]byte(strangeWords[word]), &value); err != nil {
		panic(err)
	}
	word, _, _ = strings.Cut(word, " ")
	nodes[random.IntN(len(nodes))][word] = value
}

// strangeWords are what schemas may say, by the word; what follows a space tells several values apart.
var strangeWords = map[string]string{
	"type": `"string"`, "type object": `"object"`, "type array": `"array"`, "type none": `""`, "type odd": `"thing"`, "type null": `"null"`,
	"properties": `{"a": {"type": "string"}}`, "properties metadata": `{"metadata": {"type": "object", "properties": {"name": {"type": "string"}, "labels": {"type": "object"}}}}`,
	"properties b": `{"b": {"type": "array", "items": {}}}`, "items": `{"type": "string"}`, "items odd": `{"nullable": true}`,
	"additionalProperties": `true`, "additionalProperties a": `{"type": "string"}`, "additionalProperties b": `{}`,
	"nullable": `true`, "default": `{"a": "b"}`, "default text": `"a"`, "default object": `{"a": {}}`, "default lid": `{"colour": {}}`, "default list": `[{"name": "a"}]`, "required": `["a"]`, "pattern": `"["`, "pattern good": `"^a"`,
	"enum": `["a"]`, "uniqueItems": `true`, "minimum": `3`, "maxLength": `2`, "format": `"date"`, "description": `"x"`, "title": `"x"`, "id": `"x"`, "$ref": `"#/x"`,
	"x-kubernetes-list-type": `"set"`, "x-kubernetes-list-type map": `"map"`, "x-kubernetes-list-map-keys": `["a"]`, "x-kubernetes-map-type": `"atomic"`,
	"x-kubernetes-preserve-unknown-fields": `true`, "x-kubernetes-preserve-unknown-fields no": `false`, "x-kubernetes-embedded-resource": `true`,
	"x-kubernetes-int-or-string": `true`, "x-kubernetes-validations": `[{"rule": "self == oldSelf"}]`, "x-kubernetes-validations odd": `[{"rule": "self.nothing"}]`,
	"anyOf": `[{"type": "integer"}, {"type": "string"}]`, "allOf": `[{"properties": {"a": {"minLength": 1}}}]`, "oneOf": `[{"required": ["a"]}, {"description": "x"}]`,
	"not": `{"type": "string"}`, "definitions": `{"a": {}}`, "patternProperties": `{"a": {}}`, "dependencies": `{"a": ["b"]}`, "additionalItems": `true`, "example": `{}`,
}

// TestRefusedByParts: what is asked about the parts of two definitions is what the API server says of the whole.
func TestRefusedByParts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	s := &subject{schemas: &schemaReader{}}
	text := func(schema map[string]any) *crd {
		raw, err := json.Marshal(schema)
		if err != nil {
			t.Fatal(err)
		}
		return s.schemas.crd(crdV1, potCRD(string(raw)))
	}
	sound, refusedOnes := 0, 0
	same := func(before, after *crd) (refused bool) {
		got, want := s.refusals(before, after), refusals(before.CustomResourceDefinition, after.CustomResourceDefinition, false)
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-whole +parts):\n%s\n%s", diff, after.Name)
		}
		return len(want) > 0
	}
	for was, is := range map[string]string{
		`{"colour": "red"}`:        `{"colour": {}}`, // a default that does not fit
		`list-map-keys": ["name"]`: `list-map-keys": ["tea"]`,
		`"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]`: `"x-kubernetes-list-type": "set"`,
		`"required": ["name"], `:                    ``,                // a key that may be missing
		`["name", "text"]`:                          `["name"]`,        // what a rule costs
		`"minLength": 20000}`:                       `"minLength": 1}`, // likewise
		`self != 'off'`:                             `self.nothing`,
		`"status": {"type": "object",`:              `"status": {"x-kubernetes-embedded-resource": true, "type": "string",`,
		`[{"type": "integer"}, {"type": "string"}]`: `[{"type": "integer", "properties": {"a": {}}}]`,
	} {
		var old, next map[string]any
		base := potSchema
		if !strings.Contains(base, was) {
			base = ruleSchema
		}
		if err := errors.Join(json.Unmarshal([]byte(base), &old), json.Unmarshal([]byte(strings.Replace(base, was, is, 1)), &next)); err != nil {
			t.Fatal(err)
		}
		if !same(text(old), text(next)) {
			t.Errorf("the API server does not refuse %s", is)
		}
	}
	rounds := unhurried(1500)
	for i := range rounds {
		var old, next map[string]any
		for _, into := range []*map[string]any{&old, &next} {
			if err := json.Unmarshal([]byte([]string{potSchema, ruleSchema}[i%2]), into); err != nil {
				t.Fatal(err)
			}
		}
		for range random.IntN(3) {
			distort(random, old)
		}
		for range random.IntN(4) {
			distort(random, next)
		}
		if random.IntN(2) == 0 { // the mistake is an old one
			old["properties"].(map[string]any)["status"] = next["properties"].(map[string]any)["status"]
		}
		before, after := text(old), text(next)
		if before == nil || after == nil {
			continue
		}
		if same(before, after) {
			refusedOnes++
		} else {
			sound++
		}
	}
	spec := s.schemas.crd(crdV1, potCRD(ruleSchema)).outline().Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	if spec["kettle"].Properties["lid"].Properties != nil || spec["cups"].Items.Schema.Properties["lid"].Properties == nil {
		t.Errorf("the outline is %v", spec)
	}
	if sound < rounds/15 || refusedOnes < rounds/15 {
		t.Errorf("%d pairs are sound and %d refused: the test says little", sound, refusedOnes)
	}
}

// TestSamplesByParts: an object fits what concerns it of a schema as it fits the whole, and gets the same defaults.
func TestSamplesByParts(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	reader := &schemaReader{}
	bases := []string{potSchema, ruleSchema}
	values := []string{`1`, `"a"`, `"red"`, `null`, `{}`, `{"a": "b"}`, `{"colour": {}}`, `{"colour": "blue"}`, `{"heat": 1, "lid": {"colour": 2}}`, `[]`, `["a"]`, `[null]`, `[{"name": "a", "tea": {"leaf": "b"}}, {"tea": {"leaf": 1}}]`}
	names := []string{"size", "lid", "kettle", "labels", "cups", "port", "a", "tea"}
	fit, unfit, partial, same := 0, 0, 0, 0
	rounds := unhurried(1000)
	for i := range rounds {
		var schema map[string]any
		if err := json.Unmarshal([]byte(bases[i%2]), &schema); err != nil {
			t.Fatal(err)
		}
		for range random.IntN(3) {
			distort(random, schema)
		}
		raw, err := json.Marshal(schema)
		if err != nil {
			t.Fatal(err)
		}
		byParts := reader.crd(crdV1, potCRD(string(raw)))
		if byParts == nil {
			continue
		}
		whole := &crd{CustomResourceDefinition: byParts.CustomResourceDefinition, schemas: make([]*sharedSchema, 1)}
		var fields []string
		for range random.IntN(4) {
			fields = append(fields, fmt.Sprintf("%q: %s", names[random.IntN(len(names))], values[random.IntN(len(values))]))
		}
		sample := json.RawMessage(`{"apiVersion": "example.com/v1", "kind": "Pot", "metadata": {"name": "a"}, "spec": {` + strings.Join(fields, ",") + `}, "status": {"cups": 1}}`)
		got, want := byParts.defaulted(sample, 0), whole.defaulted(sample, 0)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the defaults of %s by %s (-whole +parts):\n%s", sample, raw, diff)
		}
		problems, expected := byParts.misfits(got, 0), whole.misfits(want, 0)
		slices.Sort(problems)
		slices.Sort(expected)
		if diff := cmp.Diff(expected, problems); diff != "" {
			t.Errorf("%s by %s (-whole +parts):\n%s", sample, raw, diff)
		}
		switch {
		case len(expected) > 0:
			unfit++
		default:
			fit++
		}
		if byParts.schemaFor(got, 0) != byParts.schema(0) {
			partial++
		}
		distort(random, schema)
		if raw, err = json.Marshal(schema); err != nil {
			t.Fatal(err)
		}
		if other := reader.crd(crdV1, potCRD(string(raw))); other != nil && byParts.saysSame(0, other, 0, sample) {
			same++
			if diff := cmp.Diff(len(problems), len(other.misfits(got, 0))); diff != "" {
				t.Errorf("%s is said to be the same by %s:\n%s", sample, raw, diff)
			}
		}
	}
	if min(fit, unfit, partial, same) < rounds/20 {
		t.Errorf("%d samples fit, %d do not, %d were held against a part, to %d another schema says the same: the test says little", fit, unfit, partial, same)
	}
}
