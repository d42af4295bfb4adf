// Package expect has what tests of several packages say of findings and objects.
package expect

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/olmkit/olmkit/internal/finding"
)

// Said renders findings as "severity code object: message".
func Said(findings []finding.Finding) []string {
	var lines []string
	for _, f := range findings {
		lines = append(lines, fmt.Sprintf("%s %s %s: %s", f.Severity, f.Code, f.Subject.Object, f.Message))
	}
	return lines
}

// Findings fails the test if got are not those that want says.
func Findings(t *testing.T, got []finding.Finding, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, Said(got)); diff != "" {
		t.Error(diff)
	}
}

// Object reads YAML as the API server's clients do.
func Object(t *testing.T, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err == nil {
		return u.Object
	}
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	return m
}
