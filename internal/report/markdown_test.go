package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/olmkit/olmkit/internal/finding"
)

// However much there is to tell, GitHub takes the comment, and it begins with what matters.
func TestMarkdownLimit(t *testing.T) {
	r := &Report{Kind: KindUpgrade, Result: Failed, Cluster: &Cluster{Kind: "embedded", Limitations: []string{"Real nodes."}}}
	long := strings.Repeat("<|\n", 5000)
	for i := range 3000 {
		r.Hops = append(r.Hops, Hop{Package: "tea", From: fmt.Sprintf("tea.v1.%d.0", i), To: fmt.Sprintf("tea.v1.%d.0", i+1), Edge: "replaces", Result: Passed})
		r.Findings = append(r.Findings, finding.Finding{Code: "AAA001", Severity: finding.Warning, Message: long, Fix: long})
	}
	r.Hops[2000].Result = Failed
	r.Hops[2000].Findings = []finding.Finding{{Code: "U103", Severity: finding.Error, Message: "no kettle", Cause: long, Fix: long}}
	var b bytes.Buffer
	if err := Markdown(&b, r); err != nil {
		t.Fatal(err)
	}
	if n := utf8.RuneCount(b.Bytes()); n > markdownLimit {
		t.Errorf("it has %d characters, GitHub takes %d", n, markdownLimit)
	}
	top := b.String()[:400]
	for _, want := range []string{"### ❌ olmkit: failed", "**First failure:** tea.v1.2000.0 → tea.v1.2001.0", "**U103** no kettle"} {
		if !strings.Contains(top, want) {
			t.Errorf("it does not begin with %q:\n%s", want, top)
		}
	}
	for _, want := range []string{"1 failed hop", "more, for which a comment has no room"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("it lacks %q", want)
		}
	}
	if open, closed := strings.Count(b.String(), "<details"), strings.Count(b.String(), "</details>"); open != closed {
		t.Errorf("%d folds are opened, %d are closed", open, closed)
	}
}
