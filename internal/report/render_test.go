package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/olmkit/olmkit/internal/finding"
)

var update = flag.Bool("update", false, "write the golden files anew")

func validation() *Report {
	at := func(line int) *finding.Location {
		return &finding.Location{File: "catalog.yaml", Line: line, Column: 3}
	}
	return &Report{
		APIVersion: APIVersion, Kind: KindValidate, Result: Failed, Checks: []string{"AAA001", "AAA002", "AAA003"},
		Findings: []finding.Finding{
			{Code: "FBC001", Severity: finding.Error, Location: &finding.Location{File: "x.yaml"}, Message: "no YAML"},
			{Code: "AAA002", Severity: finding.Info, Subject: finding.Subject{Package: "p", Channel: "c"}, Location: at(1), Message: "a note"},
			{Code: "AAA001", Severity: finding.Error, Subject: finding.Subject{Package: "p", Channel: "c", From: "p.v1", To: "p.v2"}, Location: at(2), Message: "first <&>", Cause: "why\nin two lines", Fix: "what to do", References: []string{"https://example.com"}},
			{Code: "AAA001", Severity: finding.Error, Subject: finding.Subject{Package: "p", From: "p.v3", Object: "Deployment/x"}, Location: at(9), Message: "second", Cause: "why\nin two lines", Fix: "what to do", References: []string{"https://example.com"}},
		},
	}
}

func upgrade() *Report {
	return &Report{
		APIVersion: APIVersion, Kind: KindUpgrade, Result: Failed, Seconds: 12.34,
		Installations: []Installation{
			{
				Package: "p", Channel: "c", Name: "p.v1", Result: Passed, Seconds: 9.1, Phases: []Phase{{"install", 9.1}}, NotVerified: []string{"Thing/a"}, Verification: []Phase{{"samples", 1}},
				Findings: []finding.Finding{{Code: "UPG003", Severity: finding.Info, Subject: finding.Subject{Package: "p", Channel: "c", From: "p.v1", Object: "Thing/a"}, Message: "alone"}},
			},
			{Package: "p", Channel: "c", Name: "p.v9", Result: Failed, Logs: []Log{{"manager", "panic"}}},
		},
		Hops: []Hop{
			{
				Package: "p", Channel: "c", From: "p.v1", To: "p.v2", Edge: "replaces", Effective: true, Result: Passed, Seconds: 3.2,
				Phases: []Phase{{"install", 1.2}, {"upgrade", 2}}, Verification: []Phase{{"objects", 0.4}, {"new objects", 1.6}},
				Outages: []Outage{{Version: "v1", Operation: "write", Seconds: 0.7, Errors: 1, First: "connection refused", Start: time.Unix(0, 0).UTC(), Cause: "OLM"}},
			},
			{
				Package: "p", Channel: "c", From: "p.v2", To: "p.v3", Edge: "skips", Effective: true, Result: Failed, Simulated: []string{"registry.example.com/p"},
				Findings: []finding.Finding{{Code: "UPG001", Severity: finding.Error, Message: "lost", Cause: "conversion", Fix: "keep the field"}, {Code: "UPG002", Severity: finding.Warning, Message: "slow"}},
				Logs:     []Log{{Source: "ns/pod/manager", Text: "starting <manager>\n\tat main.go:1 ]]>"}},
			},
			{Package: "p", Channel: "c", From: "p.v3", To: "p.v4", Edge: "skipRange", Effective: true, Result: Skipped},
		},
		LeftOut: []Hop{{Package: "p", Channel: "c", From: "p.v0", To: "p.v1", Edge: "replaces", Effective: true}},
		Cluster: &Cluster{Kind: "embedded", Kubernetes: "v1.36.3", OLM: "v0.46.0", Limitations: []string{"Real nodes."}},
	}
}

func TestWrite(t *testing.T) {
	for name, r := range map[string]*Report{
		"validate": validation(),
		"upgrade":  upgrade(),
		"passed":   {APIVersion: APIVersion, Kind: KindValidate, Result: Passed, Checks: []string{"AAA001"}},
	} {
		for _, format := range Formats {
			if format == "html" {
				continue // see TestHTML
			}
			t.Run(name+"/"+format, func(t *testing.T) {
				var b bytes.Buffer
				if err := Write(&b, format, r, false); err != nil {
					t.Fatal(err)
				}
				file := filepath.Join("testdata", name+"."+map[string]string{"text": "txt", "json": "json", "junit": "xml", "sarif": "sarif", "markdown": "md"}[format])
				if *update {
					if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), b.String()); diff != "" {
					t.Errorf("(-want +got; write it anew with -update)\n%s", diff)
				}
			})
		}
	}
}

// TestJSON: what scripts rely on is there even when there is nothing to say.
func TestJSON(t *testing.T) {
	var b bytes.Buffer
	if err := JSON(&b, &Report{APIVersion: APIVersion, Kind: KindValidate, Result: Passed, Cluster: &Cluster{}}); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if _, ok := got["findings"].([]any); !ok {
		t.Errorf("findings: %v", got["findings"])
	}
	if _, ok := got["cluster"].(map[string]any)["limitations"].([]any); !ok {
		t.Errorf("cluster: %v", got["cluster"])
	}
}

func TestColour(t *testing.T) {
	var plain, coloured bytes.Buffer
	if err := Text(&plain, upgrade(), false); err != nil {
		t.Fatal(err)
	}
	if err := Text(&coloured, upgrade(), true); err != nil {
		t.Fatal(err)
	}
	stripped := coloured.String()
	for _, sequence := range []string{bold, dim, red, green, yellow, blue, reset} {
		stripped = strings.ReplaceAll(stripped, sequence, "")
	}
	if diff := cmp.Diff(plain.String(), stripped); diff != "" {
		t.Errorf("colour changes the text: %s", diff)
	}
}

// TestJUnitCounts: the sums that CI servers show are those of the cases.
func TestJUnitCounts(t *testing.T) {
	var b bytes.Buffer
	if err := JUnit(&b, upgrade()); err != nil {
		t.Fatal(err)
	}
	var got junitSuites
	if err := xml.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Tests != 5 || got.Failures != 2 || got.Skipped != 1 {
		t.Errorf("tests %d, failures %d, skipped %d", got.Tests, got.Failures, got.Skipped)
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"", []string{""}},
		{"short", []string{"short"}},
		{"one two three four", []string{"one two", "three four"}},
		{"averyveryverylongword and more", []string{"averyveryverylongword", "and more"}},
		{"a averyveryverylongword", []string{"a", "averyveryverylongword"}},
		{"   indented line", []string{"   indented", "line"}},
	} {
		if diff := cmp.Diff(c.want, wrap(c.in, 10)); diff != "" {
			t.Errorf("%q: %s", c.in, diff)
		}
	}
}

// TestWayBack has every rendering tell what came of going back after a hop that failed.
func TestWayBack(t *testing.T) {
	lost := finding.Finding{Code: "U802", Severity: finding.Error, Message: "the port was 80 and is 11211", Subject: finding.Subject{Object: "Thing/n/a"}}
	r := &Report{APIVersion: APIVersion, Kind: KindUpgrade, Result: Failed, Hops: []Hop{{
		Package: "p", Channel: "stable", From: "p.v1", To: "p.v2", Edge: "replaces", Effective: true, Result: Failed, Seconds: 3,
		Findings: []finding.Finding{{Code: "U104", Severity: finding.Error, Message: "it ends again and again"}},
		Rollback: &Rollback{To: "p.v1", Result: Failed, Seconds: 7.5, Objects: 3, Findings: []finding.Finding{lost}},
	}}}
	for format, words := range map[string][]string{
		"text":     {"rollback to p.v1: failed (7.5s)", "U802", lost.Message, "1 hop (1 failed)", "2 errors", "first failure: channel stable, p.v1 → p.v2\n  U104"},
		"json":     {`"rollback": {`, `"to": "p.v1"`, `"seconds": 7.5`, `"objects": 3`, `"code": "U802"`},
		"junit":    {"U802", lost.Message},
		"sarif":    {"U802", lost.Message},
		"markdown": {"failed, rollback failed", "| U802 | ", lost.Message},
		"html":     {"U802", lost.Message},
	} {
		var b strings.Builder
		if err := Write(&b, format, r, false); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		for _, word := range words {
			if !strings.Contains(b.String(), word) {
				t.Errorf("%s does not say %q:\n%s", format, word, b.String())
			}
		}
	}
}

// TestLogs has every rendering tell the end of the log of a hop that failed.
func TestLogs(t *testing.T) {
	lines := make([]string, 60)
	for i := range lines {
		lines[i] = fmt.Sprintf("line %d of %s", i+1, strings.Repeat("x", 900))
	}
	r := upgrade()
	r.Hops[1].Logs = []Log{{Source: "ns/pod/manager", Text: strings.Join(lines, "\n")}}
	for format, first := range map[string]int{"text": 51, "json": 1, "junit": 1, "sarif": 51, "markdown": 11, "html": 1} {
		var b strings.Builder
		if err := Write(&b, format, r, false); err != nil {
			t.Fatal(err)
		}
		for n, want := range map[int]bool{first - 1: false, first: true, 60: true} {
			if got := strings.Contains(b.String(), fmt.Sprintf("line %d of", n)); got != want {
				t.Errorf("%s: line %d is there: %v", format, n, got)
			}
		}
	}
}
