package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/finding"
)

// The elements of JUnit's XML, as CI servers read it: https://github.com/testmoapp/junitxml.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Time     string       `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string `xml:"name,attr"`
		Tests    int    `xml:"tests,attr"`
		Failures int    `xml:"failures,attr"`
		Skipped  int    `xml:"skipped,attr"`
		Time     string `xml:"time,attr"`

		Properties []junitProperty `xml:"properties>property,omitempty"`
		Cases      []junitCase     `xml:"testcase"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		File    string        `xml:"file,attr,omitempty"`
		Time    string        `xml:"time,attr"`
		Failure *junitMessage `xml:"failure,omitempty"`
		Skipped *junitMessage `xml:"skipped,omitempty"`
		Out     string        `xml:"system-out,omitempty"`
	}
	junitMessage struct {
		Message string `xml:"message,attr,omitempty"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// JUnit renders r as JUnit XML: a test case for each installation and each hop, and one for each check that ran or found something. Findings of
// severity error fail their case; others are its output.
func JUnit(w io.Writer, r *Report) error {
	r = shown(r)
	var suites []junitSuite
	for _, version := range r.versions() {
		steps := slices.DeleteFunc(r.Steps(), func(h Hop) bool { return label(h.OLM, h.Kubernetes) != version })
		cases := hopCases(r, steps)
		if len(cases) == 0 {
			continue
		}
		suite := suiteOf("hops"+after(version), cases)
		var spent float64
		for _, h := range steps {
			spent += h.Seconds
		}
		suite.Time = seconds(spent)
		suites = append(suites, suite)
	}
	if cases := checkCases(r); len(cases) > 0 {
		suites = append(suites, suiteOf("checks", cases))
	}
	all := junitSuites{Name: "olmkit " + r.Kind, Suites: suites, Time: seconds(r.Seconds)}
	for i, s := range suites {
		suites[i].Properties = []junitProperty{{"verdict", verdict(r)}}
		all.Tests += s.Tests
		all.Failures += s.Failures
		all.Skipped += s.Skipped
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func suiteOf(name string, cases []junitCase) junitSuite {
	s := junitSuite{Name: name, Tests: len(cases), Cases: cases}
	for _, c := range cases {
		if c.Failure != nil {
			s.Failures++
		}
		if c.Skipped != nil {
			s.Skipped++
		}
	}
	s.Time = seconds(0)
	return s
}

// hopCases are the cases of steps, and one for the hops of r that are too many to hold.
func hopCases(r *Report, steps []Hop) []junitCase {
	var cases []junitCase
	for _, h := range steps {
		c := caseOf(h.All(), nil, h.Result == Failed)
		c.Class, c.Name, c.Time = h.Package+"/"+h.Channel+of(h.OLM, h.Kubernetes), strings.ReplaceAll(h.Title(), "→", "->"), seconds(h.Seconds)
		for _, o := range h.Outages {
			c.Out += fmt.Sprintf("outage: no %s through %s for %.1fs, %d errors, the first: %s\n", o.Operation, o.Of(), o.Seconds, o.Errors, o.First)
		}
		if len(h.Simulated) > 0 {
			c.Out += "simulated, not really run: " + strings.Join(h.Simulated, ", ") + "\n"
		}
		for _, l := range h.Logs {
			c.Out += "log of " + l.Source + ":\n" + strings.TrimRight(l.Text, "\n") + "\n"
		}
		if len(h.NotVerified) > 0 {
			c.Out += unverified + ": " + strings.Join(h.NotVerified, ", ") + "\n"
		}
		if h.Result == Skipped || h.Result == "" {
			c.Skipped = &junitMessage{Message: "planned, not walked"}
		}
		cases = append(cases, c)
	}
	if r.MoreHops > 0 {
		cases = append(cases, junitCase{
			Name: fmt.Sprintf("%s more, which only text and JSON list", count(r.MoreHops, "hop")), Time: seconds(0), Skipped: &junitMessage{Message: "planned, not walked"},
		})
	}
	return cases
}

func checkCases(r *Report) []junitCase {
	found := map[string][]finding.Finding{}
	codes := slices.Clone(r.Checks)
	for _, f := range r.Findings {
		found[f.Code] = append(found[f.Code], f)
		codes = append(codes, f.Code)
	}
	history := map[string]string{}
	for _, l := range historyLines(r) {
		history[l.Code] += fmt.Sprintf("%s in package %s\n", l, l.Subject.Package)
		codes = append(codes, l.Code)
	}
	slices.Sort(codes)
	var cases []junitCase
	for _, code := range slices.Compact(codes) {
		told, notes := r.withoutNotes(found[code])
		c := caseOf(told, noteLines(r, notes), false)
		c.Out += history[code]
		c.Class, c.Name, c.Time = strings.TrimRight(code, "0123456789"), code, seconds(0)
		if findings := found[code]; len(findings) > 0 && findings[0].Location != nil {
			c.File = findings[0].Location.File
		}
		cases = append(cases, c)
	}
	return cases
}

// caseOf is a case that fails by the errors among findings, or because failed says so. Those that say the same are told once,
// and notes as their lines say.
func caseOf(findings []finding.Finding, notes []noteLine, failed bool) junitCase {
	var c junitCase
	for _, g := range groupEqual(findings) {
		s := plain(g)
		if g[0].Severity != finding.Error || g[0].Suppressed != nil {
			c.Out += s
			continue
		}
		if c.Failure == nil {
			c.Failure = &junitMessage{Message: g[0].Message, Type: g[0].Code}
		}
		c.Failure.Text += s
	}
	for _, l := range notes {
		c.Out += l.String() + "\n"
	}
	if failed && c.Failure == nil {
		c.Failure = &junitMessage{Message: "failed", Type: "failed"}
	}
	return c
}

// plain is a group as text without colour.
func plain(g group) string {
	var b strings.Builder
	t := &text{out: &b}
	t.statement(g[0], "")
	if same := g.same(true); same != "" {
		t.paragraph("  ", same)
	}
	t.explanation(g[0], "")
	return b.String()
}

func seconds(s float64) string { return fmt.Sprintf("%.3f", s) }
