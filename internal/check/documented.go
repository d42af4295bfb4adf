package check

import (
	"slices"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/finding"
)

// loading are the mistakes that the loader itself finds.
var loading = []Check{
	{Code: catalog.CodeSyntax, Severity: finding.Error, Title: "a file is neither YAML nor JSON", Cause: "opm and OLM refuse the whole catalog when one of its files cannot be parsed", Fix: "mend the syntax, or name the file in .indexignore if it is no part of the catalog", References: []string{formatReference}},
	{Code: catalog.CodeSchema, Severity: finding.Error, Title: "a document has no schema", Cause: "every document of a file-based catalog says by schema what it is; opm refuses a catalog with one that does not", Fix: "add the schema, or name the file in .indexignore if it is no part of the catalog", References: []string{formatReference}},
	{Code: catalog.CodeType, Severity: finding.Error, Title: "a known field is of the wrong type", Cause: "opm and OLM refuse the whole catalog when a field they know has another type than they expect", Fix: "write the field as the format says", References: []string{formatReference}},
}

// Documented are all checks, and what can be wrong before there is anything to check: in reading a catalog.
func Documented() []Check { return slices.Concat(loading, All()) }
