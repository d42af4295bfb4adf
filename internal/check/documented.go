package check

import (
	"slices"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/finding"
)

// loading are the mistakes that the loader itself finds.
var loading = []Check{
	{Code: catalog.CodeSyntax, Severity: finding.Error, Title: "a file is neither YAML nor JSON", Cause: "opm and OLM refuse the whole catalog when one of its files cannot be parsed", Fix: "correct the syntax, or add the file to .indexignore if it is no part of the catalog", References: []string{formatReference}},
	{Code: catalog.CodeSchema, Severity: finding.Error, Title: "a document has no schema", Cause: "schema is the type of a document in a file-based catalog; opm refuses a catalog with a document without it", Fix: "add the schema, or add the file to .indexignore if it is no part of the catalog", References: []string{formatReference}},
	{Code: catalog.CodeType, Severity: finding.Error, Title: "a known field has the wrong type", Cause: "opm and OLM refuse the whole catalog if a field that they know has an unexpected type", Fix: "write the field with the type that the format requires", References: []string{formatReference}},
}

// unresolved is what only OLM's own resolver says, which 'olmkit upgrade plan --resolver olm' asks.
var unresolved = Check{
	Code: "DEP009", Severity: finding.Warning,
	Title:      "OLM's resolver takes another upgrade than the channel's edges",
	Cause:      "OLM takes only what satisfies the dependencies and constraints of all that is installed in the namespace. `olmkit upgrade plan --resolver olm` asks OLM's own resolver",
	Fix:        "make what the bundle requires installable together with it, or let the edges lead to a bundle that can be installed",
	References: []string{dependencyReference},
}

// Unresolved is the finding that OLM's resolver does not take the upgrade of s, for a cause that it tells.
func Unresolved(s finding.Subject, at finding.Location, message, cause string) finding.Finding {
	return unresolved.finding(hit{Subject: s, at: at, message: message, cause: cause})
}

// Documented are all checks, and what can be wrong before there is anything to check, in reading a catalog, or only OLM's
// resolver or a plan under OLM v1 says.
func Documented() []Check { return slices.Concat(loading, All(), []Check{unresolved}, plannedUnderV1) }
