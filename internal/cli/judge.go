package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olmkit/olmkit/internal/advice"
	"github.com/olmkit/olmkit/internal/report"
)

// judge is what the commands that end in a report share: where the report goes and when it fails the command.
type judge struct {
	session *session
	output  string
	reports []string
	failOn  string
}

// judged adds the flags of a judging command to c. The command calls check first and finish last.
func judged(s *session, c *cobra.Command) *judge {
	j := &judge{session: s}
	c.Flags().StringVarP(&j.output, "output", "o", "text", "format of the report on standard output: "+strings.Join(report.Formats, ", "))
	c.Flags().StringArrayVar(&j.reports, "report", nil, "also write the report as FORMAT=FILE, for example junit=report.xml (repeatable)")
	c.Flags().StringVar(&j.failOn, "fail-on", "error", "severity from which findings fail the command with exit code 3: error, warning, never")
	return j
}

// check refuses wrong flags before any work is done.
func (j *judge) check() error {
	if err := failOn(j.failOn).check(); err != nil {
		return err
	}
	if !slices.Contains(report.Formats, j.output) {
		return usagef("--output %s: it is one of %s", j.output, strings.Join(report.Formats, ", "))
	}
	for _, r := range j.reports {
		format, file, ok := strings.Cut(r, "=")
		if !ok || file == "" || !slices.Contains(report.Formats, format) {
			return advice.With(usagef("--report %s: it is FORMAT=FILE, with a format of %s", r, strings.Join(report.Formats, ", ")),
				"write for example --report junit=report.xml")
		}
	}
	return nil
}

// finish sets the verdict, unless the report brings a failure along, renders r to standard output and to every --report
// file, and returns errFindings when the findings, or a hop that did not pass, fail the command.
func (j *judge) finish(r *report.Report) error {
	verdict := failOn(j.failOn).verdict(r.All())
	if r.Result == report.Failed && j.failOn != "never" {
		verdict = errFindings
	}
	if verdict != nil {
		r.Result = report.Failed
	} else if r.Result == "" {
		r.Result = report.Passed
	}
	colour := isTerminal(j.session.Out) && os.Getenv("NO_COLOR") == ""
	if err := report.Write(j.session.Out, j.output, r, colour); err != nil {
		return fmt.Errorf("print the report: %w", err)
	}
	for _, target := range j.reports {
		format, file, _ := strings.Cut(target, "=")
		var b bytes.Buffer
		if err := report.Write(&b, format, r, false); err != nil {
			return fmt.Errorf("render the report for %s: %w", file, err)
		}
		if err := replaceFile(file, b.Bytes()); err != nil {
			return advice.With(fmt.Errorf("write the report: %w", err), "choose a place for --report that can be written")
		}
	}
	return verdict
}

// replaceFile writes data to a temporary name beside file and renames it there, so that no reader sees half of it.
func replaceFile(file string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // fails when it was renamed
	_, err = io.Copy(f, bytes.NewReader(data))
	if err == nil {
		err = f.Chmod(0o644)
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}
