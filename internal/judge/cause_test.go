package judge

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/test/support/expect"
)

// TestOnePerCause makes one finding of what one lost field leads to, and leaves alone what has another cause.
func TestOnePerCause(t *testing.T) {
	about := func(of, object, message string, fields ...string) finding.Finding {
		f := code.Finding(of, object, "%s", message)
		f.Fields = fields
		return f
	}
	outage := func(of, cause string) finding.Finding {
		f := code.Finding(of, "CustomResourceDefinition/c", "no answer")
		f.Cause = cause
		return f
	}
	found := onePerCause([]finding.Finding{
		about(code.RoundTrip, "A/n/x", "written back", "spec.b"),
		about(code.FieldLost, "A/n/x", "read as v1", "spec.a"),
		about(code.FieldLost, "A/n/y", "read as v2", "spec.b"),
		about(code.ManifestRefused, "A/n/x", "refused"), // by a webhook, perhaps
		about(code.FieldLost, "B/n/x", "read as v1", "spec.a"),
		outage(code.ReadOutage, "no CA"), outage(code.WriteOutage, "no CA"), outage(code.WriteOutage, "no pod"),
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

// What objects have lost is told once for the same fields, whatever their values are; other fields and kinds are told apart.
func TestSummarize(t *testing.T) {
	a := code.Finding(code.FieldLost, "A/n/1", `read as v1: spec.x was "a; b" and is gone; spec.y was 1 and is 2`)
	b := code.Finding(code.FieldLost, "A/n/2", `read as v1: spec.x was "c" and is gone; spec.y was {"z":"\""} and is "4; 5"`)
	c := code.Finding(code.FieldLost, "A/n/3", `read as v1: spec.x was "c" and is gone`)
	d := code.Finding(code.FieldLost, "B/n/1", `read as v1: spec.x was "c" and is gone`)
	e := code.Finding(code.SampleRefused, "A/n/1", `it is refused: A "1" is invalid: size is 0`)
	f := code.Finding(code.SampleRefused, "A/n/2", `it is refused: A "2" is invalid: size is 0`)
	a.Fields, b.Fields, c.Fields, d.Fields = []string{"spec.x", "spec.y"}, []string{"spec.x", "spec.y"}, []string{"spec.x"}, []string{"spec.x"}
	got := Summarize([]finding.Finding{a, b, c, d, e, f})
	if len(got) != 4 || got[3].Message != e.Message+"; the same of 1 more: A/n/2" || got[0].Message != a.Message+"; the same of 1 more: A/n/2" {
		t.Errorf("%d findings: %s", len(got), expect.Said(got))
	}
}

// What a webhook refuses that cannot be called for good is told once; one that answered again refused for a reason of its own.
func TestUncalled(t *testing.T) {
	calling := func(of, webhook string) finding.Finding {
		return code.Finding(of, "Pot/n/a", "Internal error occurred: failed calling webhook %q: failed to call webhook: the server could not find the requested resource", webhook)
	}
	found := WithoutConsequences([]finding.Finding{
		calling(code.RoundTrip, "vpot"), calling(code.OutageStays, "vpot"), calling(code.ManifestRefused, "vpot"), calling(code.ManifestRefused, "vpan"), calling(code.AdmissionOutage, "vpan"),
		code.Finding(code.ManifestRefused, "Pot/n/a", `admission webhook "vpot" denied the request`),
	})
	var got []string
	for _, f := range found {
		got = append(got, f.Code)
	}
	want := []string{code.OutageStays, code.ManifestRefused, code.AdmissionOutage, code.ManifestRefused}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What is not made again of one kind's objects is no consequence of what is done less for another kind's; who scales a workload may be any controller's.
func TestDriftBesideOtherKinds(t *testing.T) {
	less, remade, scaled := code.Finding(code.DoesLess, "Pot/n/a", "less"), code.Finding(code.DriftStays, "User/n/a", "Secret stays gone"), code.Finding(code.DriftStays, "Deployment/n/a", "stays scaled")
	ofPot := code.Finding(code.DriftStays, "Pot/n/a", "Service stays gone")
	for name, c := range map[string]struct{ found, want []finding.Finding }{
		"of another kind": {[]finding.Finding{less, remade}, []finding.Finding{less, remade}},
		"of the same":     {[]finding.Finding{less, ofPot}, []finding.Finding{less}},
		"of a workload":   {[]finding.Finding{less, scaled}, []finding.Finding{less}},
		"alone":           {[]finding.Finding{scaled}, []finding.Finding{scaled}},
	} {
		if diff := cmp.Diff(c.want, WithoutConsequences(c.found)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
