package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/rbac"
	"github.com/olmkit/olmkit/internal/report"
)

func newReport(s *session) *cobra.Command {
	return group("report", "Work with the reports of other commands", newReportMerge(s), newReportShow(s))
}

func newReportMerge(s *session) *cobra.Command {
	c := &cobra.Command{
		Use:   "merge FILE...",
		Short: "Merge the reports of all shards of a walk",
		Long: `Merge the reports of all shards of a walk.

Each FILE is what 'olmkit upgrade test --shard I/N --report json=FILE' wrote. The merged report and the exit code are those
of the whole walk. A shard that is missing, given twice, or of another walk is an error.`,
		Example: `  olmkit report merge shard-*/report.json --report junit=report.xml -o markdown`,
		Args:    atLeastOne("FILE"),
	}
	j := judged(s, c)
	c.RunE = func(c *cobra.Command, files []string) error {
		if err := j.check(c.Context()); err != nil {
			return err
		}
		reports := make([]*report.Report, len(files))
		for i, file := range files {
			var err error
			if reports[i], err = s.readReport(c.Context(), file); err != nil {
				return err
			}
		}
		merged, err := document.Until(c.Context(), func() (*report.Report, error) { return report.Merge(reports) })
		if err != nil {
			return hint.With(usageError{fmt.Errorf("merge %d reports: %w", len(files), err)},
				"give the JSON report of each shard of one walk once (report 1 is %s)", files[0])
		}
		merged.Access = rbac.Join(merged.Access)
		return j.finish(c.Context(), merged)
	}
	return c
}

func newReportShow(s *session) *cobra.Command {
	c := &cobra.Command{
		Use:   "show FILE",
		Short: "Show a stored report, also in another format",
		Long: `Show a stored report, also in another format.

FILE is what a command wrote with --report json=FILE, or - for standard input. The verdict and the exit code are those of the
report. The lines of findings are shown if their files exist.`,
		Example: `  olmkit report show report.json --report html=report.html --report sarif=report.sarif`,
		Args:    exactlyOne("FILE"),
	}
	j := rendering(s, c)
	c.RunE = func(c *cobra.Command, files []string) error {
		if err := j.check(c.Context()); err != nil {
			return err
		}
		kept, err := s.readReport(c.Context(), files[0])
		if err != nil {
			return err
		}
		if err := j.finish(c.Context(), kept); err != nil || kept.Result != report.Failed {
			return err
		}
		return errFindings
	}
	return c
}

// readReport reads a report as --report json=FILE wrote it, or one on standard input.
func (s *session) readReport(ctx context.Context, file string) (*report.Report, error) {
	r, err := document.Until(ctx, func() (*report.Report, error) {
		var data []byte
		var err error
		if file == "-" {
			data, err = document.ReadAll(s.In)
		} else {
			data, err = document.ReadFile(file)
		}
		if err != nil {
			return nil, hint.With(fmt.Errorf("read a report: %w", err), "name a file that --report json=FILE wrote, or - for standard input")
		}
		r := &report.Report{}
		if err := json.Unmarshal(data, r); err != nil {
			return nil, hint.With(usageError{fmt.Errorf("read the report %s: %w", file, err)}, "write it with --report json=%s", file)
		}
		return r, nil
	})
	if err != nil {
		return nil, err
	}
	if r.APIVersion != report.APIVersion {
		return nil, usagef("%s is no report of this olmkit: its apiVersion is %q, not %q", file, r.APIVersion, report.APIVersion)
	}
	if !slices.Contains([]string{report.KindValidate, report.KindPlan, report.KindUpgrade}, r.Kind) {
		return nil, usagef("%s is no report: its kind is %q", file, r.Kind)
	}
	return r, nil
}
