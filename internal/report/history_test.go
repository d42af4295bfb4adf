package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/finding"
)

// publishedBefore is a report with findings on what is published.
func publishedBefore() *Report {
	edge := func(code string, severity finding.Severity, pkg, from, to string) finding.Finding {
		return finding.Finding{Code: code, Severity: severity, Subject: finding.Subject{Package: pkg, From: from, To: to}, Message: "fields of " + to + " are gone", Published: true}
	}
	known := edge("CRD007", finding.Warning, "tea", "tea.v0.8.0", "tea.v0.9.0")
	known.Suppressed = &finding.Suppression{Reason: "so", Until: "2027-01-31"}
	r := &Report{APIVersion: APIVersion, Kind: KindValidate, Result: Passed, Titles: map[string]string{"CRD007": "an upgrade removes fields"}, Findings: []finding.Finding{
		edge("CRD007", finding.Warning, "tea", "tea.v1.0.0", "tea.v1.1.0"),
		edge("CRD007", finding.Warning, "tea", "tea.v1.1.0", "tea.v1.2.0"),
		known,
		edge("CRD001", finding.Error, "tea", "tea.v1.1.0", "tea.v1.2.0"),
		edge("GRA013", finding.Warning, "cup", "cup.v1.1.0", ""),
		{Code: "GRA010", Severity: finding.Warning, Subject: finding.Subject{Package: "tea"}, Message: "this can be changed"},
	}}
	r.Split()
	return r
}

func TestHistory(t *testing.T) {
	t.Parallel()
	r := publishedBefore()
	if len(r.Findings) != 1 || len(r.History) != 5 {
		t.Fatalf("%d findings, %d of history", len(r.Findings), len(r.History))
	}
	for format, want := range map[string][]string{
		"text": {
			"\npublished before: cannot be changed, and fails nothing (--all shows and counts it)\n  package cup\n" +
				"    warning GRA013: 1 on a published release (fields of  are gone)\n  package tea\n" +
				"    error CRD001: 1 on a published upgrade (fields of tea.v1.2.0 are gone)\n    warning CRD007: 2 on published upgrades (an upgrade removes fields)\n",
			"passed: 1 warning, 4 published before\n",
		},
		"markdown": {
			"<details><summary>4 findings on published releases, which fail nothing</summary>",
			"| tea | warning | CRD007: 2 on published upgrades | an upgrade removes fields |",
		},
		"html":  {"4 findings on published releases, which fail nothing", "CRD007: 2 on published upgrades"},
		"junit": {"<system-out>CRD007: 2 on published upgrades in package tea&#xA;</system-out>", `failures="0"`},
		"sarif": {"this can be changed"},
	} {
		var b bytes.Buffer
		if err := Write(&b, format, r, false); err != nil {
			t.Fatal(err)
		}
		for _, part := range want {
			if !strings.Contains(b.String(), part) {
				t.Errorf("%s lacks %q:\n%s", format, part, b.String())
			}
		}
		if strings.Contains(b.String(), "tea.v1.1.0 are gone") {
			t.Errorf("%s tells of a published upgrade:\n%s", format, b.String())
		}
	}
}

// JSON has a list of history, which is never absent from a validation.
func TestHistoryJSON(t *testing.T) {
	t.Parallel()
	var read struct {
		Findings, History []finding.Finding
		Result            Result
	}
	decode := func(r *Report) {
		t.Helper()
		var b bytes.Buffer
		if err := JSON(&b, r); err != nil {
			t.Fatal(err)
		}
		read.History = nil
		if err := json.Unmarshal(b.Bytes(), &read); err != nil {
			t.Fatal(err)
		}
	}
	decode(publishedBefore())
	if len(read.Findings) != 1 || len(read.History) != 5 || !read.History[0].Published || read.Result != Passed {
		t.Errorf("%+v", read)
	}
	if decode(&Report{Kind: KindValidate}); read.History == nil {
		t.Error("a validation without history has no list of it")
	}
	if decode(&Report{Kind: KindUpgrade}); read.History != nil {
		t.Error("a walk has a list of history")
	}
}

// What is decided of findings, as their suppression, is decided of history as well, and changes no result.
func TestHistoryRegrade(t *testing.T) {
	t.Parallel()
	r := publishedBefore()
	seen := 0
	r.Regrade(func(findings []finding.Finding) {
		for i := range findings {
			seen++
			if findings[i].Published {
				findings[i].Severity = finding.Error
			}
		}
	})
	if seen != 6 || r.History[0].Severity != finding.Error || r.Result != Passed {
		t.Errorf("%d findings were seen; the result is %s", seen, r.Result)
	}
}
