package report

import (
	"bufio"
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
	shaped.Compared = r.compared()
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
	if r.Rest != nil {
		return writeEndless(w, shaped)
	}
	return writeJSON(w, shaped)
}

// writeEndless writes r with Hops followed by Rest, which it does not hold.
func writeEndless(w io.Writer, r Report) error {
	b, err := indented(r)
	if err != nil {
		return err
	}
	// The lines of no string begin so: it has none.
	begin := bytes.Index(b, []byte("\n  \"hops\": ["))
	end := begin + bytes.Index(b[begin:], []byte("\n  ]"))
	buffer := bufio.NewWriter(w)
	_, _ = buffer.Write(b[:end]) // Flush has the error of all
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	for h := range r.Rest { // a line each: there may be millions
		line.Reset()
		line.WriteString(",\n    ")
		if err := encoder.Encode(h); err != nil {
			return err
		}
		if _, err := buffer.Write(safetext.JSON(bytes.TrimSuffix(line.Bytes(), []byte("\n")))); err != nil {
			return err
		}
	}
	_, _ = buffer.Write(b[end:])
	return buffer.Flush()
}

// writeJSON writes v, indented.
func writeJSON(w io.Writer, v any) error {
	b, err := indented(v)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// indented returns v as JSON, indented.
func indented(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(v)
	return safetext.JSON(b.Bytes()), err
}

// shown is r with all text in it fit to be shown. Only what is written as sentences, or was logged, may have several lines.
func shown(r *Report) *Report {
	return safetext.Clean(r, "Message", "Cause", "Fix", "Reason", "Text", "Excerpt")
}
