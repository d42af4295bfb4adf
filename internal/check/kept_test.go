package check

import (
	"encoding/json"
	"testing"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/finding"
)

// damagedParts has a text that is not what was kept.
type damagedParts struct {
	text string
	put  any
}

func (d *damagedParts) Get(_ Part, found any) bool {
	return json.Unmarshal([]byte(d.text), found) == nil
}
func (d *damagedParts) Put(_ Part, found any) { d.put = found }
func (d *damagedParts) Save()                 {}

// What cannot be read, or only in part, is found again, and nothing of it is kept.
func TestDamagedParts(t *testing.T) {
	for _, text := range []string{``, `null`, `[]`, `{"AAA001": [{"Message": "old"}], "ZZZ": 5}`, `{"AAA001": 1}`} {
		parts := &damagedParts{text: text}
		in := &catalog.Bundle{At: finding.Location{File: "tea.yaml", Line: 7}}
		var told []string
		(&subject{parts: parts}).judgePart([]Check{{Code: "AAA001"}}, Part{Bundles: []*catalog.Bundle{in}}, in, func(_ Check, found func(hit)) {
			found(hit{at: finding.Location{File: "tea.yaml", Line: 9}, message: "new"})
		}, func(Check) func(hit) { return func(h hit) { told = append(told, h.message) } })
		if len(told) != 1 || told[0] != "new" {
			t.Errorf("%q: told is %q", text, told)
		}
		kept, _ := parts.put.(map[string][]keptHit)
		if len(kept["AAA001"]) != 1 || kept["AAA001"][0].Message != "new" || kept["AAA001"][0].At.Line != 2 {
			t.Errorf("%q: kept is %+v", text, kept)
		}
	}
}

// TestRefusedMetadata: what is wrong with the metadata of a CRD is said of that one alone, not of all that have the same spec.
func TestRefusedMetadata(t *testing.T) {
	s := &subject{schemas: &schemaReader{}}
	definition := func(field, label string) *crd {
		return s.schemas.crd("apiextensions.k8s.io/v1", []byte(`{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": {"name": "cups.example.com", "labels": {"a": "`+label+`"}},
			"spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Cup", "plural": "cups", "singular": "cup", "listKind": "CupList"},
			"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"`+field+`": {"type": "string"}}}}}]}}`))
	}
	before := definition("one", "b")
	for _, label := range []string{"b", "no such value!", "b"} {
		after := definition("two", label)
		got, want := s.refusals(before, after), refusals(before.CustomResourceDefinition, after.CustomResourceDefinition, false)
		if len(got) != len(want) || len(got) > 0 && got[0] != want[0] || (label == "b") != (len(got) == 0) {
			t.Errorf("label %q: %q, want %q", label, got, want)
		}
	}
}
