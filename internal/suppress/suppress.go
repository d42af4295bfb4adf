// Package suppress reads suppressions of findings and applies them. Each names a code and a place, with a reason and an
// expiry date, in a comment beside the finding's line or in a file of its own.
//
// A comment stands on the line of the finding, or on lines of its own directly above it:
//
//	replaces: tea.v0.9.0 # olmkit:suppress GRA007 until=2027-01-31 the release was withdrawn
//
// A file lists them, each with at least one place:
//
//	suppress:
//	- code: CRD006
//	  to: tea.v2.0.0
//	  until: 2027-01-31
//	  reason: nobody uses the field
package suppress

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/finding"
)

// Codes of what Apply finds of the suppressions themselves.
const (
	CodeUnknown = "ACC001" // of a code that no check has
	CodeVoid    = "ACC002" // without a place, a reason or a day
	CodeExpired = "ACC003" // of a day that is past
	CodeUnused  = "ACC004" // of what is not found any more
)

// Rule suppresses findings of one code at one place. Empty fields of the place fit anything.
type Rule struct {
	Code    string `json:"code"`
	Package string `json:"package"`
	Channel string `json:"channel"`
	From    string `json:"from"`
	To      string `json:"to"`
	Object  string `json:"object"`
	File    string `json:"file"` // the end of the file's path
	Until   string `json:"until"`
	Reason  string `json:"reason"`

	line    int // of the comment's subject; 0 in a file
	at      finding.Location
	comment bool
	unknown []string // fields
}

// dayLayout is how a day is written.
const dayLayout = "2006-01-02"

var mark = []byte("olmkit:suppress")

// comment is a suppression at the end of a line.
var comment = regexp.MustCompile(`(?:^|\s)#\s*olmkit:suppress\b[ \t]*(.*)$`)

// Comments returns the suppressions in the comments of a YAML file.
func Comments(file string, data []byte) []Rule {
	if !bytes.Contains(data, mark) {
		return nil
	}
	var rules []Rule
	var above []int // of rules that wait for the line below
	number := 0
	for raw := range bytes.Lines(data) {
		number++
		l := strings.TrimRight(string(raw), "\r\n")
		m := comment.FindStringSubmatchIndex(l)
		alone := strings.HasPrefix(strings.TrimSpace(l), "#")
		if !alone && strings.TrimSpace(l) != "" && strings.TrimSpace(l) != "---" {
			for _, i := range above {
				rules[i].line = number
			}
			above = nil
		}
		if m == nil {
			continue
		}
		column := len([]rune(l[:m[0]])) + 1 + strings.Index(l[m[0]:], "#")
		r := Rule{File: file, line: number, at: finding.Location{File: file, Line: number, Column: column}, comment: true}
		var reason []string
		for i, word := range strings.Fields(l[m[2]:m[3]]) {
			switch day, ok := strings.CutPrefix(word, "until="); {
			case i == 0:
				r.Code = word
			case ok && r.Until == "":
				r.Until = day
			default:
				reason = append(reason, word)
			}
		}
		r.Reason = strings.Join(reason, " ")
		if alone {
			above = append(above, len(rules))
		}
		rules = append(rules, r)
	}
	return rules
}

// File reads a list of suppressions.
func File(file string, data []byte) ([]Rule, error) {
	documents, err := document.Parse(file, data)
	if err != nil {
		return nil, err
	}
	var rules []Rule
	for _, d := range documents {
		var content struct {
			Suppress []json.RawMessage `json:"suppress"`
		}
		decoder := json.NewDecoder(bytes.NewReader(d.JSON))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&content); err != nil {
			return nil, fmt.Errorf("%s: it must be a mapping with the list suppress: %w", d.At, err)
		}
		for i, raw := range content.Suppress {
			r := Rule{at: d.Place("suppress", i)}
			if err := json.Unmarshal(raw, &r); err != nil {
				return nil, fmt.Errorf("%s: %w", r.at, err)
			}
			var fields map[string]json.RawMessage
			_ = json.Unmarshal(raw, &fields) // it was read as a mapping just now
			for name := range fields {
				if !slices.Contains([]string{"code", "package", "channel", "from", "to", "object", "file", "until", "reason"}, name) {
					r.unknown = append(r.unknown, name)
				}
			}
			slices.Sort(r.unknown)
			rules = append(rules, r)
		}
	}
	return rules, nil
}

// fits reports whether r is about f.
func (r *Rule) fits(f finding.Finding) bool {
	if f.Code != r.Code {
		return false
	}
	file, line := "", 0
	if f.Location != nil {
		file, line = f.Location.File, f.Location.Line
	}
	if r.comment {
		return file == r.File && line == r.line
	}
	for _, p := range []struct{ wanted, got string }{
		{r.Package, f.Subject.Package}, {r.Channel, f.Subject.Channel}, {r.From, f.Subject.From}, {r.To, f.Subject.To}, {r.Object, f.Subject.Object},
	} {
		if p.wanted != "" && p.wanted != p.got {
			return false
		}
	}
	return r.File == "" || file == path.Clean(r.File) || strings.HasSuffix(file, "/"+path.Clean(r.File))
}

// void says why r suppresses nothing, or "".
func (r *Rule) void() string {
	_, err := time.Parse(dayLayout, r.Until)
	switch {
	case r.Code == "":
		return "it has no code"
	case len(r.unknown) > 0:
		return "it has no field " + strings.Join(r.unknown, ", ")
	case !r.comment && r.Package+r.Channel+r.From+r.To+r.Object+r.File == "":
		return "it has no place"
	case r.Until == "":
		return "it has no until date"
	case err != nil:
		return fmt.Sprintf("until %q is no date", r.Until)
	case r.Reason == "":
		return "it has no reason"
	}
	return ""
}

// Judge applies suppressions to findings.
type Judge struct {
	rules []Rule
	used  []bool
	today string
	known func(code string) bool
}

// NewJudge returns a judge on a day; known tells whether a check has a code.
func NewJudge(rules []Rule, today time.Time, known func(code string) bool) *Judge {
	return &Judge{rules: rules, used: make([]bool, len(rules)), today: today.UTC().Format(dayLayout), known: known}
}

// Apply marks those of findings that are suppressed, and says in the message of one whose suppression is past that it is so.
func (j *Judge) Apply(findings []finding.Finding) {
	for i := range findings {
		f := &findings[i]
		for n := range j.rules {
			r := &j.rules[n]
			if !r.fits(*f) || f.Suppressed != nil {
				continue
			}
			j.used[n] = true
			switch {
			case r.void() != "":
			case r.Until < j.today:
				f.Message += fmt.Sprintf(" (suppression expired after %s)", r.Until)
			default:
				at := r.at
				f.Suppressed = &finding.Suppression{Reason: r.Reason, Until: r.Until, Location: &at}
			}
		}
	}
}

// Findings returns what is wrong with the suppressions, once all findings were judged; ran tells whether the check of a code
// ran, so that a suppression for one that did not is left alone.
func (j *Judge) Findings(ran func(code string) bool) []finding.Finding {
	var list []finding.Finding
	for i := range j.rules {
		r := &j.rules[i]
		add := func(code string, severity finding.Severity, message, cause, fix string) {
			at := r.at
			list = append(list, finding.Finding{Code: code, Severity: severity, Subject: finding.Subject{Package: r.Package}, Location: &at, Message: message, Cause: cause, Fix: fix})
		}
		why := r.void()
		switch {
		case why != "":
			c := Checks[1]
			add(c.Code, c.Severity, fmt.Sprintf("the suppression of %s is invalid: %s", cmp.Or(r.Code, "a finding"), why), c.Cause, c.Fix)
		case !j.known(r.Code):
			c := Checks[0]
			add(c.Code, c.Severity, fmt.Sprintf("%s is suppressed, but no check has that code", r.Code), c.Cause, c.Fix)
		case !j.used[i] && ran(r.Code):
			c := Checks[3]
			add(c.Code, c.Severity, fmt.Sprintf("%s is suppressed here, but not found", r.Code), c.Cause, c.Fix)
		case j.used[i] && r.Until < j.today:
			c := Checks[2]
			add(c.Code, c.Severity, fmt.Sprintf("the suppression of %s expired after %s: %s", r.Code, r.Until, r.Reason), c.Cause, c.Fix)
		}
	}
	return list
}

// Check is what one of the codes means, for the documentation.
type Check struct {
	Code       string
	Severity   finding.Severity
	Title      string
	Cause, Fix string
}

// Checks are what Findings looks for, in the order of their codes.
var Checks = []Check{
	{CodeUnknown, finding.Error, "a suppression has an unknown code", "it suppresses nothing", "correct the code; docs/checks lists them all"},
	{CodeVoid, finding.Error, "a suppression lacks its place, its date or its reason", "it suppresses nothing: without them nobody can check later whether it is still right", "write code, at least one of package, channel, from, to, object and file, until (a date as 2027-01-31) and reason; in a comment # olmkit:suppress CODE until=2027-01-31 the reason"},
	{CodeExpired, finding.Warning, "a suppression has expired", "the finding counts again", "fix what is found, or set a later date"},
	{CodeUnused, finding.Warning, "a suppression matches no finding", "the finding was fixed or has moved; the suppression would hide the next one of its kind", "remove it, or correct its place"},
}
