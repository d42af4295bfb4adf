package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/olmkit/olmkit/internal/check"
	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/output"
	"github.com/olmkit/olmkit/internal/report"
	"github.com/olmkit/olmkit/internal/suppress"
)

// judge is what the commands that end in a report share: where the report goes and when it fails the command.
type judge struct {
	session *session
	output  string
	reports []string
	failOn  string
	grades  finding.Grades
	explain string // code to explain instead of judging

	severities []string // as they are given, CODE=SEVERITY
	olm        string   // the version of OLM for which bundles are judged; "" where that makes no difference

	suppressing bool   // whether findings can be suppressed
	suppress    string // file of suppressions
	rules       []suppress.Rule
	partial     bool // not everything was judged, so that a suppression may be for the rest

	failed bool // the command fails, whatever was found
}

// judged adds the flags of a judging command to c. The command calls check first and finish last.
func judged(s *session, c *cobra.Command) *judge {
	j := rendering(s, c)
	c.Flags().StringVar(&j.failOn, "fail-on", "error", "lowest severity that fails the command with exit code 3: error, warning, never")
	c.Flags().StringArrayVar(&j.severities, "severity", nil, "set the severity of a code, as `CODE=SEVERITY`: error, warning or info (repeatable)")
	c.Flags().StringVar(&j.explain, explainFlag, "", "explain the finding code `CODE`, and exit")
	_ = c.RegisterFlagCompletionFunc(explainFlag, completeCodes)
	return j
}

// rendering adds to c the flags that say where its report goes.
func rendering(s *session, c *cobra.Command) *judge {
	j := &judge{session: s, failOn: "never"}
	c.Flags().StringVarP(&j.output, "output", "o", "text", "format of the report on standard output: "+strings.Join(report.Formats, ", "))
	c.Flags().StringArrayVar(&j.reports, "report", nil, "also write the report to a file, as FORMAT=FILE, for example junit=report.xml (repeatable)")
	return j
}

// suppresses lets findings of c be suppressed.
func (j *judge) suppresses(c *cobra.Command) {
	j.suppressing = true
	c.Flags().StringVar(&j.suppress, "suppress", "", "`FILE` of suppressed findings, each with reason and expiry date; see docs/suppress.md, also for comments in YAML")
}

// forOLM lets users of c say for which version of OLM bundles are.
func (j *judge) forOLM(c *cobra.Command) {
	c.Flags().StringVar(&j.olm, "olm", olmV0, "version of OLM that the bundles are for: v0, or v1, with which the OLM codes are errors")
}

// check refuses wrong flags before any work is done.
func (j *judge) check(ctx context.Context) error {
	if err := failOn(j.failOn).check(); err != nil {
		return err
	}
	if !slices.Contains(report.Formats, j.output) {
		return usagef("--output %s: must be one of %s", j.output, strings.Join(report.Formats, ", "))
	}
	files := map[string]string{}
	for _, r := range j.reports {
		format, file, ok := strings.Cut(r, "=")
		if !ok || file == "" || !slices.Contains(report.Formats, format) {
			return hint.With(usagef("--report %s: must be FORMAT=FILE, with a format of %s", r, strings.Join(report.Formats, ", ")),
				"write for example --report junit=report.xml")
		}
		// A walk takes minutes, and its report nobody could read.
		if err := output.Check(file); err != nil {
			return usageError{fmt.Errorf("--report %s: %w", r, err)}
		}
		if other := files[filepath.Clean(file)]; other != "" {
			return hint.With(usagef("--report %s: --report %s writes to the same file", r, other), "give each report a file of its own")
		}
		files[filepath.Clean(file)] = r
	}
	var err error
	if j.grades, err = readGrades(j.severities); err != nil {
		return err
	}
	if err := j.gradeForOLM(); err != nil {
		return err
	}
	return j.readSuppressions(ctx)
}

// readSuppressions reads the file of --suppress.
func (j *judge) readSuppressions(ctx context.Context) error {
	if j.suppress == "" {
		return nil
	}
	data, err := readFile(ctx, j.suppress)
	if err != nil {
		return hint.With(fmt.Errorf("read the suppressions: %w", err), "name a file that can be read with --suppress")
	}
	if j.rules, err = suppress.File(j.suppress, data); err != nil {
		return hint.With(usageError{fmt.Errorf("read the suppressions: %w", err)}, "see docs/suppress.md for how they are written")
	}
	return nil
}

// wants reports whether the report is to be rendered in format.
func (j *judge) wants(format string) bool {
	return j.output == format || slices.ContainsFunc(j.reports, func(r string) bool { return strings.HasPrefix(r, format+"=") })
}

// tellLimit is how long who interrupted a walk waits for the report of what was walked.
const tellLimit = 5 * time.Second

// conclude is finish for a walk that err ended, or nothing; r is nil if nothing was walked. That of a walk that was interrupted has failed, and tells what was found until then.
func (j *judge) conclude(ctx context.Context, r *report.Report, err error) error {
	interrupted := ctx.Err() != nil
	if r == nil || interrupted && len(r.Installations) == 0 {
		return err
	}
	j.failed = err != nil
	if interrupted {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), tellLimit)
		defer cancel()
	}
	if told := j.finish(ctx, r); err == nil && !interrupted || !errors.Is(told, errFindings) {
		err = errors.Join(err, told)
	}
	return err
}

// finish sets the verdict, unless the report brings a failure along, renders r to every --report file and to standard
// output, and returns errFindings when the findings, or a hop that did not pass, fail the command.
func (j *judge) finish(ctx context.Context, r *report.Report) error {
	if err := until(ctx, func() error { return j.applySuppressions(r) }); err != nil {
		return err
	}
	if len(j.grades) > 0 {
		r.Regrade(func(findings []finding.Finding) {
			j.grades.Apply(findings)
			finding.Sort(findings)
		})
	}
	r.Source, r.Verbose, r.Titles = lines(), j.session.verbose, titles()
	if j.failed {
		r.Result = report.Failed
	}
	verdict := failOn(j.failOn).verdict(r.All())
	if r.Result == report.Failed && j.failOn != "never" {
		verdict = errFindings
	}
	if verdict != nil {
		r.Result = report.Failed
	} else if r.Result == "" {
		r.Result = report.Passed
	}
	written := j.write(ctx, r) // what could not be written is told last, and keeps nobody from reading the report
	j.session.printer.Close()
	if err := until(ctx, func() error { return report.Write(j.session.Out, j.output, r, coloured(j.session.Out)) }); err != nil {
		return errors.Join(written, fmt.Errorf("print the report: %w", err))
	}
	return cmp.Or(written, verdict)
}

// forget removes the reports of the run before, which would be taken for those of this one if that is interrupted.
func (j *judge) forget() error {
	for _, target := range j.reports {
		_, file, _ := strings.Cut(target, "=")
		if err := output.Remove(file); err != nil {
			return fmt.Errorf("remove the report of the run before: %w", err)
		}
	}
	return nil
}

// write writes r to every --report file.
func (j *judge) write(ctx context.Context, r *report.Report) error {
	for _, target := range j.reports {
		format, file, _ := strings.Cut(target, "=")
		err := output.File(ctx, file, func(w io.Writer) error {
			return until(ctx, func() error { return report.Write(w, format, r, false) })
		})
		if err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
		if format == "html" {
			r.Page = file
		}
	}
	return nil
}

// applySuppressions marks the findings of r that the file of --suppress, or a comment in a file that was judged, suppresses, and
// adds what is wrong with those.
func (j *judge) applySuppressions(r *report.Report) error {
	if !j.suppressing {
		return nil
	}
	rules := slices.Clone(j.rules)
	files := slices.Clone(r.Files)
	for _, f := range r.All() {
		if f.Location != nil {
			files = append(files, f.Location.File)
		}
	}
	slices.Sort(files)
	for _, file := range slices.Compact(files) {
		if ext := filepath.Ext(file); ext != ".yaml" && ext != ".yml" {
			continue
		}
		if data, err := document.ReadRegular(file); err == nil { // what was read from an image is not here
			rules = append(rules, suppress.Comments(file, data)...)
		}
	}
	if len(rules) == 0 {
		return nil
	}
	today, err := today()
	if err != nil {
		return err
	}
	a := suppress.NewJudge(rules, today, knownCode)
	r.Regrade(a.Apply)
	wrong := a.Findings(func(code string) bool { return !j.partial && slices.Contains(r.Checks, code) })
	if len(wrong) > 0 {
		r.Findings = append(r.Findings, wrong...)
		finding.Sort(r.Findings)
	}
	return nil
}

// today is the day of SOURCE_DATE_EPOCH, or of the clock.
func today() (time.Time, error) {
	date, err := sourceDate()
	if date == "" {
		return time.Now(), err
	}
	day, err := time.Parse(time.RFC3339, date)
	if err != nil {
		return day, fmt.Errorf("read the date %s: %w", date, err)
	}
	return day, nil
}

// coloured reports whether w is a terminal whose user wants colours: https://no-color.org.
func coloured(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// titles are what the codes mean.
func titles() map[string]string {
	all := map[string]string{}
	for _, e := range explanations() {
		all[e.Code] = e.Title
	}
	return all
}

// knownCode reports whether code is one of olmkit's, static or dynamic, that a finding to suppress can have.
func knownCode(code string) bool {
	return check.Family(code) != "ACC" && slices.ContainsFunc(explanations(), func(e explanation) bool { return e.Code == code })
}

// lines returns the function that reads single lines of files; it holds one file at a time, since findings are sorted by
// their places.
func lines() func(string, int) (string, bool) {
	var name string
	var data []byte
	var starts []int
	return func(file string, line int) (string, bool) {
		if file != name {
			name, data, starts = file, nil, nil
			if content, err := document.ReadRegular(file); err == nil {
				data, starts = content, []int{0}
			}
			for i, b := range data {
				if b == '\n' {
					starts = append(starts, i+1)
				}
			}
		}
		if line < 1 || line > len(starts) {
			return "", false
		}
		text, _, _ := bytes.Cut(data[starts[line-1]:], []byte{'\n'})
		return string(text), true
	}
}
