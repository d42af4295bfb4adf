package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olmkit/olmkit/internal/check"
	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/nearest"
	"github.com/olmkit/olmkit/internal/report"
	"github.com/olmkit/olmkit/internal/suppress"
)

// explanation is what is to be said of a code; docs/checks are written from the same.
type explanation struct {
	Code         string
	Severity     finding.Severity
	Title, Cause string
	Fix          string
	Static       []string // checks that may have told before a walk did
	References   []string
}

// explanations are those of all codes, static and dynamic, in their order.
func explanations() []explanation {
	var all []explanation
	for _, c := range check.Documented() {
		all = append(all, explanation{Code: c.Code, Severity: c.Severity, Title: c.Title, Cause: c.Cause, Fix: c.Fix, References: c.References})
	}
	for _, c := range suppress.Checks {
		all = append(all, explanation{Code: c.Code, Severity: c.Severity, Title: c.Title, Cause: c.Cause, Fix: c.Fix})
	}
	for _, c := range code.All {
		all = append(all, explanation{Code: c.Code, Severity: c.Severity, Title: strings.TrimSuffix(c.Doc, "."), Fix: c.Fix, Static: c.Static})
	}
	slices.SortStableFunc(all, func(a, b explanation) int { return strings.Compare(a.Code, b.Code) })
	return all
}

func newExplain(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "explain CODE|WORD...",
		Short: "Explain a finding code, a word of OLM, or a phase",
		Long: `Explain what a finding code means, and how to fix the finding. A CODE is a code such as U103 or CRD001, or a family of codes such
as CRD. Each command that validates prints the same with --explain CODE. A WORD is a word of docs/glossary.md such as InstallPlan or
hot loop, or a phase of a hop or of a ClusterServiceVersion such as crds-written or InstallReady.`,
		Example: `  olmkit explain CRD001
  olmkit explain skipRange InstallReady`,
		Args:              atLeastOne("CODE"),
		ValidArgsFunction: completeCodes,
		RunE:              func(_ *cobra.Command, codes []string) error { return explain(s.Out, codes, coloured(s.Out)) },
	}
}

// explain says what codes mean.
func explain(w io.Writer, codes []string, colour bool) error {
	var found []explanation
	var meant []glossaryTerm
	for _, code := range codes {
		before := len(found) + len(meant)
		for _, e := range explanations() {
			if strings.EqualFold(code, e.Code) || strings.EqualFold(code, check.Family(e.Code)) {
				found = append(found, e)
			}
		}
		meant = append(meant, termsOf(code)...)
		if len(found)+len(meant) == before {
			return hint.With(usagef("no finding has the code %s, and it is no word of the glossary", code), "nearest: %s; docs/checks lists all codes, docs/glossary.md all words", strings.Join(nearest.Names(code, explicable(), nearestCodes), ", "))
		}
	}
	for i, t := range meant {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if _, err := fmt.Fprintf(w, "%s (%s)\n  %s\n", t.word, t.section, t.meaning); err != nil {
			return fmt.Errorf("explain %s: %w", t.word, err)
		}
	}
	for i, e := range found {
		if i > 0 || len(meant) > 0 {
			fmt.Fprintln(w)
		}
		f := finding.Finding{Code: e.Code, Severity: e.Severity, Message: e.Title, Cause: e.Cause, Fix: e.Fix, References: e.References}
		if len(e.Static) > 0 {
			f.AddCause("'olmkit catalog validate' may tell beforehand: " + strings.Join(e.Static, ", "))
		}
		if err := report.Explain(w, f, colour); err != nil {
			return fmt.Errorf("explain %s: %w", e.Code, err)
		}
	}
	return nil
}

// completeCodes offers the codes of findings with what they mean.
func completeCodes(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	var codes []string
	for _, e := range explanations() {
		if strings.HasPrefix(e.Code, strings.ToUpper(begun)) {
			codes = append(codes, e.Code+"\t"+e.Title)
		}
	}
	for _, t := range terms() {
		if word := strings.ReplaceAll(t.names()[0], " ", "-"); begun != "" && strings.HasPrefix(strings.ToLower(word), strings.ToLower(begun)) {
			codes = append(codes, word+"\t"+t.meaning)
		}
	}
	return codes, cobra.ShellCompDirectiveNoFileComp
}

const explainFlag = "explain"

// explainable makes c and the commands below it explain the code that --explain names, whatever else they would need.
func explainable(c *cobra.Command, out io.Writer) {
	for _, sub := range c.Commands() {
		explainable(sub, out)
	}
	if c.Flags().Lookup(explainFlag) == nil {
		return
	}
	code := func() string { return c.Flag(explainFlag).Value.String() }
	args, prepare, run := c.Args, c.PreRunE, c.RunE
	c.Args = func(c *cobra.Command, given []string) error {
		if code() != "" || args == nil {
			return nil
		}
		return args(c, given)
	}
	c.PreRunE = func(c *cobra.Command, given []string) error {
		if code() != "" || prepare == nil {
			return nil
		}
		return prepare(c, given)
	}
	c.RunE = func(c *cobra.Command, given []string) error {
		if code() != "" {
			return explain(out, []string{code()}, coloured(out))
		}
		return run(c, given)
	}
}
