package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/olmkit/olmkit/internal/finding"
)

// Markdown renders r as a comment on a pull request: the verdict, hops and findings as tables, and what explains them
// folded away.
func Markdown(w io.Writer, r *Report) error {
	t := &text{out: w}
	mark := "✅"
	if r.Result == Failed {
		mark = "❌"
	}
	t.line("### %s olmkit: %s", mark, r.Result)
	if len(r.Hops) > 0 {
		t.line("")
		t.line("| hop | by | result | seconds | outages |")
		t.line("|---|---|---|---|---|")
		for _, h := range r.Hops {
			var outages []string
			for _, o := range h.Outages {
				outages = append(outages, fmt.Sprintf("%s %s %.1fs", o.Operation, o.Version, o.Seconds))
			}
			result := string(h.Result)
			if result == "" {
				result = "planned"
			}
			if len(h.Simulated) > 0 {
				result += ", with simulated pods"
			}
			t.line("| %s → %s | %s | %s | %.1f | %s |", escape(h.From), escape(h.To), escape(h.Edge), result, h.Seconds, escape(strings.Join(outages, ", ")))
		}
	}
	all := r.All()
	for _, group := range []struct {
		severity finding.Severity
		noun     string
	}{{finding.Error, "error"}, {finding.Warning, "warning"}, {finding.Info, "note"}} {
		var findings []finding.Finding
		for _, f := range all {
			if f.Severity == group.severity {
				findings = append(findings, f)
			}
		}
		if len(findings) == 0 {
			continue
		}
		open := ""
		if group.severity == finding.Error {
			open = " open"
		}
		t.line("")
		t.line("<details%s><summary>%s</summary>", open, count(len(findings), group.noun))
		t.line("")
		t.line("| code | where | what | cure |")
		t.line("|---|---|---|---|")
		for _, f := range findings {
			where := subject(f.Subject)
			if f.Location != nil && f.Location.File != "" {
				where = "`" + f.Location.String() + "` " + where
			}
			t.line("| %s | %s | %s | %s |", f.Code, escape(where), escape(f.Message), escape(f.Cure))
		}
		t.line("")
		t.line("</details>")
	}
	if r.Cluster != nil && len(r.Cluster.NotProven) > 0 {
		t.line("")
		t.line("Ran on a cluster of kind %s, Kubernetes %s, OLM %s. Not proven there:", r.Cluster.Kind, r.Cluster.Kubernetes, r.Cluster.OLM)
		t.line("")
		for _, s := range r.Cluster.NotProven {
			t.line("- %s", escape(s))
		}
	}
	return t.err
}

// escape makes s fit a cell of a table.
func escape(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", "<br>", "<", "&lt;", ">", "&gt;").Replace(strings.TrimSpace(s))
}
