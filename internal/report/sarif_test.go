package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/finding"
)

// TestSARIFSchema holds what is written against the schema of the standard, testdata/sarif-schema-2.1.0.json as OASIS
// publishes it, and against what GitHub's code scanning asks for beyond it:
// https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning.
func TestSARIFSchema(t *testing.T) {
	raw, err := os.ReadFile("testdata/sarif-schema-2.1.0.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	suppressed := validation()
	suppressed.Findings[1].Suppressed = &finding.Suppression{Reason: "so", Until: "2027-01-31", Location: &finding.Location{File: "catalog.yaml", Line: 1}}
	suppressed.Findings[2].Location.File = "/a b/ü:#.yaml"
	suppressed.Findings[3].Location.Path = "spec.version"
	for name, r := range map[string]*Report{"validate": validation(), "suppressed": suppressed, "upgrade": upgrade(), "nothing": {}} {
		var b bytes.Buffer
		if err := SARIF(&b, r); err != nil {
			t.Fatal(err)
		}
		var log map[string]any
		if err := json.Unmarshal(b.Bytes(), &log); err != nil {
			t.Fatal(err)
		}
		for _, problem := range violations(schema, schema, log, "") {
			t.Errorf("%s: %s", name, problem)
		}
		run := log["runs"].([]any)[0].(map[string]any)
		rules := run["tool"].(map[string]any)["driver"].(map[string]any)["rules"].([]any)
		for _, result := range run["results"].([]any) {
			result := result.(map[string]any)
			rule := rules[int(result["ruleIndex"].(float64))].(map[string]any)
			if rule["id"] != result["ruleId"] {
				t.Errorf("%s: the rule of %v is %v", name, result["ruleId"], rule["id"])
			}
		}
		for _, rule := range rules {
			if rule.(map[string]any)["shortDescription"].(map[string]any)["text"] == "" {
				t.Errorf("%s: %v has no short description", name, rule)
			}
		}
	}
	// The validator itself finds what is wrong.
	for _, text := range []string{
		`{}`, `{"version": "2.0.0", "runs": []}`, `{"version": "2.1.0", "runs": [{}]}`,
		`{"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "x"}}, "results": [{"message": {}}]}]}`,
		`{"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "x"}}, "results": [{"message": {"text": "x"}, "level": "info"}]}]}`,
		`{"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "x"}}, "results": [{"message": {"text": "x"}, "ruleIndex": -2}]}]}`,
		`{"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "x"}}, "nonsense": 1}]}`,
	} {
		var log any
		if err := json.Unmarshal([]byte(text), &log); err != nil {
			t.Fatal(err)
		}
		if len(violations(schema, schema, log, "")) == 0 {
			t.Errorf("nothing is found wrong with %s", text)
		}
	}
}

// violations says what of v does not fit a schema of JSON Schema draft 4, as far as the schema of SARIF uses it.
func violations(root, schema map[string]any, v any, path string) []string {
	if ref, ok := schema["$ref"].(string); ok {
		target := root
		for _, step := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
			target = target[step].(map[string]any)
		}
		return violations(root, target, v, path)
	}
	var list []string
	add := func(format string, args ...any) { list = append(list, path+": "+fmt.Sprintf(format, args...)) }
	if kind, ok := schema["type"]; ok && !ofType(kind, v) {
		add("%v is no %v", v, kind)
		return list
	}
	if enum, ok := schema["enum"].([]any); ok {
		there := false
		for _, e := range enum {
			there = there || reflect.DeepEqual(e, v)
		}
		if !there {
			add("%v is none of %v", v, enum)
		}
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		inner, ok := schema[key].([]any)
		if !ok {
			continue
		}
		fitting := 0
		for _, s := range inner {
			if len(violations(root, s.(map[string]any), v, path)) == 0 {
				fitting++
			}
		}
		if key == "anyOf" && fitting == 0 || key == "oneOf" && fitting != 1 || key == "allOf" && fitting != len(inner) {
			add("%d of %s fit", fitting, key)
		}
	}
	switch v := v.(type) {
	case map[string]any:
		properties, _ := schema["properties"].(map[string]any)
		for _, name := range itemsOf(schema["required"]) {
			if _, there := v[name.(string)]; !there {
				add("%v is missing", name)
			}
		}
		for name, value := range v {
			inner, known := properties[name].(map[string]any)
			other, _ := schema["additionalProperties"].(map[string]any)
			switch {
			case known:
				list = append(list, violations(root, inner, value, path+"."+name)...)
			case other != nil:
				list = append(list, violations(root, other, value, path+"."+name)...)
			case schema["additionalProperties"] == false:
				add("%s is not known", name)
			}
		}
	case []any:
		if least, ok := schema["minItems"].(float64); ok && len(v) < int(least) {
			add("%d items", len(v))
		}
		for i, item := range v {
			if items, ok := schema["items"].(map[string]any); ok {
				list = append(list, violations(root, items, item, fmt.Sprintf("%s[%d]", path, i))...)
			}
			for _, other := range v[:i] {
				if schema["uniqueItems"] == true && reflect.DeepEqual(item, other) {
					add("item %d stands twice", i)
				}
			}
		}
	case string:
		if pattern, ok := schema["pattern"].(string); ok && !regexp.MustCompile(pattern).MatchString(v) {
			add("%q does not match %s", v, pattern)
		}
		if format := schema["format"]; (format == "uri" || format == "uri-reference") && strings.ContainsAny(v, " \"<>\\^`{|}") {
			add("%q is no %v", v, format)
		}
	case float64:
		if least, ok := schema["minimum"].(float64); ok && v < least {
			add("%v is less than %v", v, least)
		}
		if most, ok := schema["maximum"].(float64); ok && v > most {
			add("%v is more than %v", v, most)
		}
	}
	return list
}

func itemsOf(v any) []any {
	list, _ := v.([]any)
	return list
}

func ofType(kind, v any) bool {
	for _, k := range append(itemsOf(kind), kind) {
		switch v := v.(type) {
		case map[string]any:
			if k == "object" {
				return true
			}
		case []any:
			if k == "array" {
				return true
			}
		case string:
			if k == "string" {
				return true
			}
		case bool:
			if k == "boolean" {
				return true
			}
		case float64:
			if k == "number" || k == "integer" && v == float64(int(v)) {
				return true
			}
		case nil:
			if k == "null" {
				return true
			}
		}
	}
	return false
}
