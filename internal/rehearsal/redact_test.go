package rehearsal

import (
	"encoding/json"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// secretive is a snapshot of two Pots, one of which names the other.
func secretive() *Snapshot {
	d := &apiextensionsv1.CustomResourceDefinition{}
	d.Spec.Group, d.Spec.Names.Kind = "example.com", "Pot"
	text := func(pattern string, enum ...string) apiextensionsv1.JSONSchemaProps {
		p := apiextensionsv1.JSONSchemaProps{Type: "string", Pattern: pattern}
		for _, e := range enum {
			p.Enum = append(p.Enum, apiextensionsv1.JSON{Raw: []byte(`"` + e + `"`)})
		}
		return p
	}
	d.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Schema: &apiextensionsv1.CustomResourceValidation{
		OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"color": text("", "red", "blue"), "host": text(`^[a-z0-9-]+(\.[a-z0-9-]+)*$`), "strict": text(`^acme-.*$`),
		}}}},
	}}}
	s := &Snapshot{Definitions: []*apiextensionsv1.CustomResourceDefinition{d}, Installed: Installed{Namespace: "operators", Targets: []string{"acme-shop"}}}
	for _, text := range []string{
		`{"metadata": {"name": "acme-main", "namespace": "acme-shop", "labels": {"team": "Acme.Payments_1"}, "annotations": {"a/b": "{\"color\":\"red\",\"who\":\"acme-main\"}"}, "finalizers": ["example.com/empty"]},
		  "spec": {"color": "red", "host": "acme-main.acme-shop.svc", "size": 7, "memory": "128Mi", "since": "2026-01-01T00:00:00Z", "address": "10.1.2.3", "image": "registry.acme.example:5000/pot@sha256:0123456789abcdef"},
		  "status": {"conditions": [{"type": "Ready", "status": "True", "message": "acme is ready"}]}}`,
		`{"metadata": {"name": "acme-copy", "namespace": "operators"}, "spec": {"of": {"kind": "Pot", "name": "acme-main", "namespace": "acme-shop"}, "list": ["acme", "acme"]}}`,
		`{"metadata": {"name": "acme-wrong", "namespace": "operators"}, "spec": {"strict": "acme-7"}}`,
	} {
		o := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(text), &o.Object); err != nil {
			panic(err)
		}
		o.SetAPIVersion("example.com/v1")
		o.SetKind("Pot")
		s.Objects = append(s.Objects, o)
	}
	return s
}

// TestRedact: no word of a user is left, and what is left is as valid, and refers to the same, as before.
func TestRedact(t *testing.T) {
	s := secretive()
	s.Redact()
	if len(s.Objects) != 2 || !strings.Contains(strings.Join(s.Notes, "\n"), "1 objects are left out, since a redacted value would not match the pattern of the field: Pot: spec.strict") {
		t.Fatalf("%d objects are left; notes: %s", len(s.Objects), s.Notes)
	}
	data, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	objects, _ := json.Marshal(s.Objects)
	for _, word := range []string{"acme", "Acme", "Payments", "main", "shop", "registry", "10.1.2.3", "0123456789abcdef"} {
		if strings.Contains(string(objects), word) || strings.Contains(strings.Join(s.Installed.Targets, " "), word) {
			t.Errorf("it still says %s: %s", word, data)
		}
	}
	main, other := s.Objects[0], s.Objects[1]
	get := func(o *unstructured.Unstructured, fields ...string) string {
		v, _, _ := unstructured.NestedString(o.Object, fields...)
		return v
	}
	for what, ok := range map[string]bool{
		"the reference":          get(other, "spec", "of", "name") == main.GetName() && get(other, "spec", "of", "namespace") == main.GetNamespace(),
		"the kind":               get(other, "spec", "of", "kind") == "Pot",
		"the namespace":          other.GetNamespace() == "operators" && s.Installed.Targets[0] == main.GetNamespace(),
		"the host":               get(main, "spec", "host") == main.GetName()+"."+main.GetNamespace()+".svc",
		"the enum":               get(main, "spec", "color") == "red",
		"the quantity":           get(main, "spec", "memory") == "128Mi",
		"the time":               get(main, "spec", "since") == "2026-01-01T00:00:00Z",
		"the image":              regexp.MustCompile(`^[a-z]{8}\.[a-z]{4}\.[a-z]{7}:5000/[a-z]{3}@sha256:[0-9a-f]{16}$`).MatchString(get(main, "spec", "image")),
		"the address":            netip.MustParsePrefix("198.18.0.0/15").Contains(netip.MustParseAddr(get(main, "spec", "address"))),
		"the label":              regexp.MustCompile(`^[A-Z][a-z]{3}\.[A-Z][a-z]{7}_[1-9]$`).MatchString(main.GetLabels()["team"]),
		"the annotation":         main.GetAnnotations()["a/b"] == `{"color":"red","who":"`+main.GetName()+`"}`,
		"the finalizer":          main.GetFinalizers()[0] == "example.com/empty",
		"that it is redacted":    s.Redacted,
		"what differs otherwise": main.GetName() != other.GetName(),
	} {
		if !ok {
			t.Errorf("%s is not as it should be: %s", what, objects)
		}
	}
	again := secretive()
	again.Redact()
	if again.Objects[0].GetName() == main.GetName() {
		t.Error("two snapshots are redacted in the same way, so that words can be guessed")
	}
}

// TestRedactShort: words that are too short for others of the same shape stay apart.
func TestRedactShort(t *testing.T) {
	r := newRedactor(&Snapshot{})
	seen := map[string]bool{}
	for c := 'a'; c <= 'z'; c++ {
		seen[r.text(string(c))] = true
	}
	if len(seen) != 26 {
		t.Errorf("26 words became %d", len(seen))
	}
}

// What only begins as JSON is redacted as text, to its end.
func TestRedactHalfJSON(t *testing.T) {
	r := newRedactor(&Snapshot{})
	for _, text := range []string{`[1] shop`, `{"who":"shop"} {"who":"shop"}`, `["shop"]]`} {
		got := r.text(text)
		if len(got) != len(text) || strings.Contains(got, "shop") {
			t.Errorf("%s: %s", text, got)
		}
	}
}
