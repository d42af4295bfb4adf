package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/graph"
)

// saying is a report in which everything that others name or say is s.
func saying(s string) *Report {
	f := finding.Finding{
		Code: "AAA001", Severity: finding.Error, Subject: finding.Subject{Package: s, Channel: s, From: s, To: s, Object: s},
		Location: &finding.Location{File: s, Line: 1, Column: 1}, Message: s, Cause: s, Fix: s, References: []string{s}, Fields: []string{s},
	}
	encoded, suppressed := f, f
	encoded.Severity, encoded.Location = finding.Warning, &finding.Location{File: s, Path: s}
	suppressed.Suppressed = &finding.Suppression{Reason: s, Until: s}
	all := []finding.Finding{f, encoded, suppressed}
	hop := Hop{
		Package: s, Channel: s, From: s, To: s, FromChannel: s, Edge: "replaces", Effective: true, Result: Failed, Seconds: 1, Findings: all,
		Phases: []Phase{{s, 1}}, Verification: []Phase{{s, 1}}, Outages: []Outage{{CRD: s, Version: s, Operation: s, First: s, Cause: s, Fault: s}}, Events: []Event{{Kind: s, Name: s, State: s, Detail: s}},
		Logs: []Log{{s, s + "\n" + s}}, Faults: []Fault{{Name: s, Phase: s, Outcome: s, Expected: s, Why: s}}, Simulated: []string{s}, NotVerified: []string{s},
		Rollback: &Rollback{To: s, Result: Failed, Findings: all},
	}
	return &Report{
		APIVersion: APIVersion, Kind: KindUpgrade, Result: Failed, Findings: all, Hops: []Hop{hop}, LeftOut: []Hop{hop},
		Installations: []Installation{{Package: s, Channel: s, Name: s, Result: Failed, Findings: all, Logs: hop.Logs}},
		Resolved:      []Resolution{{From: s, To: s, Along: []Change{{Package: s, From: s, To: s}}, Planned: s, Differs: true, Why: s, Missing: s}},
		Access:        []Access{{Release: s, Account: s, Unused: []Right{{Scope: ScopeCluster, Group: s, Resource: s, Names: []string{s}, Verbs: []string{s}}}}},
		Cluster:       &Cluster{Kind: s, Kubernetes: s, OLM: s, Limitations: []string{s}},
		Graph:         []graph.Drawing{{Package: s, Channel: s, Head: s, Problem: s, Entries: []graph.Entry{{Name: s, Version: s}}}},
		Page:          s, Source: func(string, int) (string, bool) { return s, true },
	}
}

func FuzzRenderings(f *testing.F) {
	for _, s := range []string{
		"plain", "\x1b[2J\x1b]0;title\a", "a\n::error file=x::y", "::warning::x", strings.Repeat("x", 113) + " ::error::z", "##[error]x", "##vso[task.setvariable]x", "\u202e\u2028\u009b", "\u200b\u2060\u00ad\ufeff\u3164\U000e0041",
		"a|b\r\n| c |", "</details><script>alert(1)</script>", "![x](https://example.com/x.png)", `\[x](javascript:x)`, "@team #12", "```\n`", "]]>", "\xff\x00", "&#64;team",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 1<<12 {
			t.Skip()
		}
		for _, format := range Formats {
			var b bytes.Buffer
			if err := Write(&b, format, saying(s), false); err != nil {
				t.Fatalf("%s: %v", format, err)
			}
			checkHarmless(t, format, s, b.String())
			switch format {
			case "json", "sarif":
				if !json.Valid(b.Bytes()) {
					t.Errorf("%s of %q is none", format, s)
				}
			case "junit":
				for decoder := xml.NewDecoder(&b); ; {
					if _, err := decoder.Token(); errors.Is(err, io.EOF) {
						break
					} else if err != nil {
						t.Fatalf("%s of %q: %v", format, s, err)
					}
				}
			case "markdown":
				for _, element := range []string{"<script", "](", "![", "<img"} {
					if rest := withoutLogs(b.String()); strings.Contains(strings.NewReplacer(`\\`, "_", `\[`, "_", `\]`, "_").Replace(rest), element) && strings.Contains(s, element) && !strings.Contains(s, "`") {
						t.Errorf("%s of %q holds %s:\n%s", format, s, element, rest)
					}
				}
			}
		}
	})
}

// The hops of a plan that are too many to hold are as harmless.
func TestRestIsHarmless(t *testing.T) {
	const s = "\x1b[2J\x1b]0;title\a"
	for _, format := range []string{"text", "json"} {
		var b bytes.Buffer
		hops := []Hop{{Package: s, Channel: s, From: s, To: s, FromChannel: s, Edge: "skips"}}
		r := &Report{APIVersion: APIVersion, Kind: KindPlan, Hops: hops, Rest: slices.Values(hops)}
		if err := Write(&b, format, r, false); err != nil {
			t.Fatal(err)
		}
		checkHarmless(t, format, s, b.String())
	}
}

// withoutLogs leaves out of a comment what is no Markdown: the lines of logs, the places of findings, and summaries.
func withoutLogs(s string) string {
	var kept strings.Builder
	for line := range strings.Lines(s) {
		if strings.HasPrefix(line, "    ") || strings.Contains(line, "<summary>") {
			continue
		}
		for i, part := range strings.Split(line, "`") {
			if i%2 == 0 {
				kept.WriteString(part)
			}
		}
	}
	return kept.String()
}

// checkHarmless fails the test if a terminal or a CI server would obey what is in a rendering.
func checkHarmless(t *testing.T, format, s, rendered string) {
	t.Helper()
	for _, r := range rendered {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || strings.ContainsRune("\u00ad\u200b\u200d\u2060\ufeff\u3164\U000e0041", r)) {
			t.Fatalf("%s of %q holds %q", format, s, r)
		}
	}
	for line := range strings.Lines(rendered) {
		if trimmed := strings.TrimSpace(line); len(trimmed) > 2 && strings.HasPrefix(trimmed, "::") && unicode.IsLetter(rune(trimmed[2])) || strings.Contains(line, "##[") || strings.Contains(line, "##vso[") {
			t.Errorf("%s of %q holds the line %q", format, s, line)
		}
	}
}
