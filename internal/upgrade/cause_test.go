package upgrade

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olmkit/olmkit/internal/finding"
)

// TestOnePerCause makes one finding of what one lost field leads to, and leaves alone what has another cause.
func TestOnePerCause(t *testing.T) {
	about := func(code, object, message string, fields ...string) finding.Finding {
		f := find(code, object, "%s", message)
		f.Fields = fields
		return f
	}
	outage := func(code, cause string) finding.Finding {
		f := find(code, "CustomResourceDefinition/c", "no answer")
		f.Cause = cause
		return f
	}
	found := onePerCause([]finding.Finding{
		about(codeRoundTrip, "A/n/x", "written back", "spec.b"),
		about(codeFieldLost, "A/n/x", "read as v1", "spec.a"),
		about(codeFieldLost, "A/n/y", "read as v2", "spec.b"),
		about(codeManifestRefused, "A/n/x", "refused"), // by a webhook, perhaps
		about(codeFieldLost, "B/n/x", "read as v1", "spec.a"),
		outage(codeReadOutage, "no CA"), outage(codeWriteOutage, "no CA"), outage(codeWriteOutage, "no pod"),
	})
	var got []string
	for _, f := range found {
		got = append(got, strings.Join([]string{f.Code, f.Subject.Object, f.Message, strings.Join(f.Fields, ","), strings.Join(f.Also, ",")}, " | "))
	}
	want := []string{
		"U302 | A/n/x | read as v1 | spec.a,spec.b | U303",
		"U308 | A/n/x | refused |  | ",
		"U302 | B/n/x | read as v1 | spec.a | ",
		"U401 | CustomResourceDefinition/c | no answer |  | U402",
		"U402 | CustomResourceDefinition/c | no answer |  | ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if want := "the same cause shows as:\nU302 A/n/y: read as v2\nU303 A/n/x: written back"; found[0].Cause != want {
		t.Errorf("the cause is %q, want %q", found[0].Cause, want)
	}
	if found[3].Cause != "no CA\nthe same cause shows as:\nU402 CustomResourceDefinition/c: no answer" {
		t.Errorf("the outage's cause is %q", found[3].Cause)
	}
}
