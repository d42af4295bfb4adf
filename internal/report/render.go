package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/finding"
)

// Formats are the names of the renderings, in the order in which help texts list them.
var Formats = []string{"text", "json", "junit", "sarif", "markdown", "html"}

// All returns the findings of the report and of its hops, in the order in which they stand; those of a hop are about the
// hop unless they say otherwise.
func (r *Report) All() []finding.Finding {
	all := slices.Clone(r.Findings)
	for _, h := range r.Hops {
		for _, f := range h.All() {
			if f.Subject.Package == "" {
				f.Subject.Package, f.Subject.Channel, f.Subject.From, f.Subject.To = h.Package, h.Channel, h.From, h.To
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
	if shaped.Findings == nil {
		shaped.Findings = []finding.Finding{}
	}
	if shaped.Cluster != nil && shaped.Cluster.NotProven == nil {
		cluster := *shaped.Cluster
		cluster.NotProven = []string{}
		shaped.Cluster = &cluster
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(shaped)
}
