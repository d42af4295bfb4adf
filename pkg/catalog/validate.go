package catalog

import (
	"fmt"
	"slices"

	"github.com/olmkit/olmkit/internal/check"
	"github.com/olmkit/olmkit/internal/finding"
)

// Severity says how much a finding matters.
type Severity string

// The severities.
const (
	Error   Severity = Severity(finding.Error)   // OLM or the API server will refuse or lose something
	Warning Severity = Severity(finding.Warning) // users are likely to be harmed
	Info    Severity = Severity(finding.Info)    // worth knowing
)

// Finding is one fact about a catalog. docs/checks of the repository describes the codes.
type Finding struct {
	Code      string // as CRD001; a code never changes its meaning
	Severity  Severity
	Package   string
	Channel   string
	From, To  string // the bundles of an upgrade; From alone is the bundle that it is about
	Object    string // Kind/name or Kind/namespace/name
	File      string // where it is, if that is known
	Line      int    // counts from 1; 0 when unknown
	Column    int    // in characters, from 1; 0 when unknown
	Message   string // what is wrong, one sentence
	Cause     string // why it matters
	Fix       string // what to do
	Published bool   // it is about releases that users have, which nobody can change any more
}

// String renders the finding as one line, file:line:column first.
func (f Finding) String() string {
	place := ""
	if f.File != "" {
		place = finding.Location{File: f.File, Line: f.Line, Column: f.Column}.String() + ": "
	}
	return fmt.Sprintf("%s%s %s: %s", place, f.Severity, f.Code, f.Message)
}

// ValidateOptions choose what Validate does.
type ValidateOptions struct {
	Packages []string // only these packages; all when empty
	Only     []string // only these checks, by code (CRD001) or family (CRD); all when empty
	Skip     []string // not these checks, likewise
	Previous *Catalog // the published catalog, to compare with: exactly what it has already is Published then
}

// Validate runs the checks of 'olmkit catalog validate', without cluster and network, and returns what they found, in the order of
// the files. A catalog is fine when no finding is an Error and not Published. Comments that suppress findings are not
// read. It returns an error when an option names a package or a check that there is not.
func (c *Catalog) Validate(options ValidateOptions) ([]Finding, error) {
	for _, name := range slices.Concat(options.Only, options.Skip) {
		if !check.Known(name) {
			return nil, fmt.Errorf("validate a catalog: no check is called %s: docs/checks lists the codes", name)
		}
	}
	for _, name := range options.Packages {
		if _, err := c.find(name); err != nil && len(c.catalog.Problems) == 0 {
			return nil, err
		}
	}
	o := check.Options{Packages: options.Packages, Only: options.Only, Skip: options.Skip}
	if options.Previous != nil {
		o.Previous = options.Previous.catalog
	}
	found, _ := check.Catalog(c.catalog, o)
	findings := make([]Finding, len(found))
	for i, f := range found {
		findings[i] = Finding{
			Code: f.Code, Severity: Severity(f.Severity), Message: f.Message, Cause: f.Cause, Fix: f.Fix, Published: f.Published,
			Package: f.Subject.Package, Channel: f.Subject.Channel, From: f.Subject.From, To: f.Subject.To, Object: f.Subject.Object,
		}
		if at := f.Location; at != nil {
			findings[i].File, findings[i].Line, findings[i].Column = at.File, at.Line, at.Column
		}
	}
	return findings, nil
}
