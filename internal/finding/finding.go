// Package finding is what every judgement of olmkit ends in, static or dynamic: one stated fact about the thing under
// test, where it is, why it matters and how to mend it.
package finding

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity says how much a finding matters.
type Severity string

const (
	// Error means that OLM or the API server will refuse or lose something.
	Error Severity = "error"
	// Warning means that users are likely to be harmed.
	Warning Severity = "warning"
	// Info is worth knowing.
	Info Severity = "info"
)

// AtLeast reports whether s is as severe as least, or more.
func (s Severity) AtLeast(least Severity) bool { return rank(s) >= rank(least) }

func rank(s Severity) int {
	switch s {
	case Error:
		return 2
	case Warning:
		return 1
	default:
		return 0
	}
}

// Subject is what a finding is about; fields that do not apply are empty.
type Subject struct {
	Package string `json:"package,omitempty"`
	Channel string `json:"channel,omitempty"`
	From    string `json:"from,omitempty"`   // bundle name, the edge's tail; the bundle itself when it is about one bundle
	To      string `json:"to,omitempty"`     // bundle name, the edge's head
	Object  string `json:"object,omitempty"` // Kind/namespace/name or Kind/name of a Kubernetes object
	OLM     string `json:"olm,omitempty"`    // v0 or v1, or the release of OLM v0, where several walks are compared

	Kubernetes string `json:"kubernetes,omitempty"` // the release, where several are compared
}

// Location is a place in a file. Line and Column count from 1, Column in characters; 0 means unknown.
type Location struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`

	// Of an object that is encoded there, as manifests are in catalogs: its kind and name, the path of the field, and the
	// field's first lines as YAML.
	Object  string `json:"object,omitempty"`
	Path    string `json:"path,omitempty"`
	Excerpt string `json:"excerpt,omitempty"`
}

// String renders the location as file:line:column, as editors and terminals recognise it.
func (l Location) String() string {
	switch {
	case l.File == "":
		return ""
	case l.Line == 0:
		return l.File
	case l.Column == 0:
		return fmt.Sprintf("%s:%d", l.File, l.Line)
	default:
		return fmt.Sprintf("%s:%d:%d", l.File, l.Line, l.Column)
	}
}

// Finding is one fact about the thing under test.
type Finding struct {
	Code       string    `json:"code"` // family and number, stable for ever once released
	Severity   Severity  `json:"severity"`
	Subject    Subject   `json:"subject"`
	Location   *Location `json:"location,omitempty"`
	Message    string    `json:"message"`         // what is wrong, one sentence
	Cause      string    `json:"cause,omitempty"` // why it is so, or why it matters
	Fix        string    `json:"fix,omitempty"`   // what to do
	References []string  `json:"references,omitempty"`

	Fields  []string `json:"fields,omitempty"`  // paths of the object's fields that it is about
	Seed    uint64   `json:"seed,omitempty"`    // of the generated object that shows it
	Example string   `json:"example,omitempty"` // the least object that shows it, as JSON

	Also  []string `json:"also,omitempty"`  // codes of what else the same cause led to
	Fault string   `json:"fault,omitempty"` // the injected fault that caused it, as NAME@PHASE

	Suppressed *Suppression `json:"suppressed,omitempty"` // the finding is known, and fails nothing

	Published bool `json:"published,omitempty"` // it is about releases that users have, which nobody can change any more
}

// AddCause adds more to what is said of f's cause.
func (f *Finding) AddCause(more string) { f.Cause = strings.TrimPrefix(f.Cause+"; "+more, "; ") }

// Says reports whether some text of f for people holds part.
func (f Finding) Says(part string) bool {
	return strings.Contains(f.Message, part) || strings.Contains(f.Cause, part) || strings.Contains(f.Fix, part)
}

// Suppression is why and how long users live with a finding.
type Suppression struct {
	Reason   string    `json:"reason"`
	Until    string    `json:"until"` // a day, as 2027-01-31, and the whole of it
	Location *Location `json:"location,omitempty"`
}

// Open returns the findings that are not suppressed.
func Open(findings []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f Finding) bool { return f.Suppressed != nil })
}

// Worst returns the highest severity among findings that are not suppressed, and false when there are none.
func Worst(findings []Finding) (Severity, bool) {
	findings = Open(findings)
	if len(findings) == 0 {
		return "", false
	}
	return slices.MaxFunc(findings, func(a, b Finding) int { return cmp.Compare(rank(a.Severity), rank(b.Severity)) }).Severity, true
}

// Sort puts findings in the one order all reports use: place, then severity (worst first), code and message.
func Sort(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(a.Subject.Package, b.Subject.Package),
			compareLocations(a.Location, b.Location),
			cmp.Compare(rank(b.Severity), rank(a.Severity)),
			cmp.Compare(a.Code, b.Code),
			cmp.Compare(a.Subject.Channel, b.Subject.Channel),
			cmp.Compare(a.Subject.From, b.Subject.From),
			cmp.Compare(a.Subject.To, b.Subject.To),
			cmp.Compare(a.Subject.OLM, b.Subject.OLM),
			cmp.Compare(a.Subject.Kubernetes, b.Subject.Kubernetes),
			cmp.Compare(a.Subject.Object, b.Subject.Object),
			cmp.Compare(a.Message, b.Message),
		)
	})
}

func compareLocations(a, b *Location) int {
	var x, y Location
	if a != nil {
		x = *a
	}
	if b != nil {
		y = *b
	}
	return cmp.Or(cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line), cmp.Compare(x.Column, y.Column), cmp.Compare(x.Path, y.Path))
}
