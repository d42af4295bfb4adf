package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/safetext"
)

// Formats are the names of the renderings, in the order in which help texts list them.
var Formats = []string{"text", "json", "junit", "sarif", "markdown", "html"}

// All returns the findings of the report, of its installations and of its hops, in the order in which they stand; those of
// an installation or a hop are about that unless they say otherwise.
func (r *Report) All() []finding.Finding {
	all := slices.Clone(r.Findings)
	for _, h := range r.Steps() {
		for _, f := range h.All() {
			if f.Subject.Package == "" {
				f.Subject = h.subject(f.Subject.Object)
			}
			all = append(all, f)
		}
	}
	return all
}

// Write renders r in one of Formats. Colour is for text alone.
func Write(w io.Writer, format string, r *Report, colour bool) error {
	switch format {
	case "text":
		return Text(w, r, colour)
	case "json":
		return JSON(w, r)
	case "junit":
		return JUnit(w, r)
	case "sarif":
		return SARIF(w, r)
	case "markdown":
		return Markdown(w, r)
	case "html":
		return HTML(w, r)
	}
	return fmt.Errorf("report format %q: there are %s", format, strings.Join(Formats, ", "))
}

// JSON renders r in its stable shape, indented.
func JSON(w io.Writer, r *Report) error {
	shaped := *r
	shaped.Verdict = verdict(r)
	if shaped.Findings == nil {
		shaped.Findings = []finding.Finding{}
	}
	if shaped.Kind == KindValidate && shaped.History == nil {
		shaped.History = []finding.Finding{}
	}
	if shaped.Cluster != nil && shaped.Cluster.Limitations == nil {
		cluster := *shaped.Cluster
		cluster.Limitations = []string{}
		shaped.Cluster = &cluster
	}
	return writeJSON(w, shaped)
}

// writeJSON writes v, indented.
func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(safetext.JSON(b.Bytes()))
	return err
}

// shown is r with all text in it fit to be shown. Only what is written as sentences, or was logged, may have several lines.
func shown(r *Report) *Report {
	return safetext.Clean(r, "Message", "Cause", "Fix", "Reason", "Text", "Excerpt")
}
