package walk

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/internal/report"
)

// installFirst installs r, which no upgrade leads to or from, as all that there is to test.
func (w *walk) installFirst(ctx context.Context, r *lifecycle.Release) error {
	w.Place.Mode, _ = w.sharedMode(r, r)
	in, refused, err := w.installation(ctx, r)
	if refused != nil {
		in.Findings = append(in.Findings, w.about([]finding.Finding{*refused}, finding.Subject{From: r.Name})...)
	}
	w.tellFindings(in.Findings)
	w.installations = append(w.installations, in)
	return err
}

// installBase installs r, which a hop goes on from, and returns what the hop has to say of that: why it cannot be walked.
// It then leaves w.release nil.
func (w *walk) installBase(ctx context.Context, r *lifecycle.Release) ([]finding.Finding, error) {
	in, refused, err := w.installation(ctx, r)
	w.tellFindings(in.Findings)
	w.installations = append(w.installations, in)
	if refused == nil {
		return nil, err
	}
	return []finding.Finding{baseFailed(r, *refused)}, err
}

// baseFailed says of why, for which r was not installed, what it means to who needs r.
func baseFailed(r *lifecycle.Release, why finding.Finding) finding.Finding {
	why.Code, why.Message = code.BaseFailed, fmt.Sprintf("%s could not be installed: %s", r.Name, why.Message)
	return why
}

// installation installs r, makes its samples, and judges both. If the manager cannot install r, it leaves w.release nil and returns
// why, which stands in no finding of the installation.
func (w *walk) installation(ctx context.Context, r *lifecycle.Release) (report.Installation, *finding.Finding, error) {
	in := report.Installation{Package: w.pkg.Name, Channel: w.channel, Name: r.Name, Result: report.Failed}
	refused, err := w.install(ctx, r, &in)
	w.verified.begin()
	var found []finding.Finding
	if err == nil && refused == nil {
		found, in.NotVerified, err = w.makeSamples(ctx, r)
	}
	if err == nil && refused == nil {
		var fuzzed []finding.Finding
		fuzzed, err = w.fuzz(ctx, "", r)
		found = append(found, fuzzed...)
	}
	if err == nil {
		var judged []finding.Finding
		judged, err = w.judgeAccess(ctx, nil, r, in.Start, observe.Evidence{}, refused == nil)
		if w.after[r.Name] != nil {
			judge.RefusedBase(judged)
		}
		found = append(found, judged...)
	}
	w.verified.did("requests and logs")
	in.Verification = w.verified.parts
	found = w.about(found, finding.Subject{From: r.Name})
	w.grade(found, nil)
	if worst, any := finding.Worst(found); err == nil && refused == nil && (!any || worst != finding.Error) {
		in.Result = report.Passed
	}
	if in.Result == report.Failed {
		in.Logs = w.FailedLogs(ctx, r, r, in.Logs)
	}
	in.NoSample = withoutSample(found)
	in.Findings = w.untold(judge.Collapse(found))
	finding.Sort(in.Findings)
	return in, refused, err
}

// withoutSample names the definitions of which findings say that there is no sample.
func withoutSample(findings []finding.Finding) (definitions []string) {
	for _, f := range findings {
		if f.Code == code.SampleMissing {
			definitions = append(definitions, f.Subject.Object)
		}
	}
	return definitions
}

// untold leaves of what was found of an installation what no earlier one of the walk had.
func (w *walk) untold(found []finding.Finding) []finding.Finding {
	var fresh []finding.Finding
	for _, f := range found {
		key := f.Code + " " + f.Subject.From + " " + f.Subject.Object + " " + f.Message
		if !w.told[key] {
			w.told[key] = true
			fresh = append(fresh, f)
		}
	}
	return fresh
}

// install installs r from a catalog that has nothing else, and notes in in how that went. If the manager cannot, it leaves w.release
// nil and returns why.
func (w *walk) install(ctx context.Context, r *lifecycle.Release, in *report.Installation) (*finding.Finding, error) {
	step := w.options.Progress.Start("  install %s", r.Name)
	refused, err := w.tryInstall(ctx, r, in)
	if err != nil {
		return nil, step.End(err)
	}
	var shown error
	if refused != nil {
		shown = fmt.Errorf("%s was not installed", r.Name)
	}
	_ = step.End(shown) // a release that cannot be installed is a finding, not the walk's error
	return refused, nil
}

func (w *walk) tryInstall(ctx context.Context, r *lifecycle.Release, in *report.Installation) (*finding.Finding, error) {
	if err := w.prepareAt(ctx); err != nil {
		return nil, err
	}
	if err := w.notePlain(ctx); err != nil {
		return nil, err
	}
	if err := w.Publish(ctx, r.Name); err != nil {
		return nil, err
	}
	if err := w.Manager.WaitPublished(ctx, w.Place, w.options.Timeout); err != nil {
		return nil, err
	}
	w.Brings(r)
	started := w.Watcher.Mark(observe.StatePublished)
	if err := w.Manager.Request(ctx, w.Place, r.Name); err != nil {
		return nil, err
	}
	stall, err := w.settle(ctx, started, "", r, nil, nil)
	if err != nil {
		return nil, err
	}
	if stall == nil {
		w.Watcher.Mark(observe.StateStable)
	}
	timeline := w.Watcher.Since(started)
	in.Start, in.Seconds = started.UTC(), observe.Seconds(time.Since(started))
	in.Phases, in.Events = observe.Phases(w.Milestones(timeline, started, "", r.Name), started), observe.ReportEvents(timeline, started)
	if w.Simulated, err = w.SimulatedOf(ctx, r); err != nil {
		return nil, err
	}
	in.Simulated = w.idleOf(r)
	if stall != nil {
		why, logs := w.explain(ctx, r, started, stall)
		in.Logs = logs
		return &why, nil
	}
	w.release = r
	return nil, nil
}

// makeSamples makes the objects of r's kinds that the walk goes on with, and what they need. Where there are new ones, or r
// was just installed, it judges whether the operator deals with them and returns the objects of which nothing shows that.
func (w *walk) makeSamples(ctx context.Context, r *lifecycle.Release) (findings []finding.Finding, notVerified []string, err error) {
	if err := w.applyExtraSamples(ctx, r); err != nil {
		return nil, nil, err
	}
	known := len(w.Objects)
	if findings, err = w.populate(ctx, r); err != nil {
		return findings, nil, err
	}
	w.populated = r
	if len(w.Objects) == known && known > 0 {
		return findings, nil, nil
	}
	if len(w.restored) > 0 {
		step := w.options.Progress.Start("  wait until %s is through with %d objects", r.Name, len(w.restored))
		defer func() { _ = step.End(err) }()
	}
	if err := w.settleSamples(ctx, r, known); err != nil {
		return findings, nil, err
	}
	w.verified.did("samples")
	found, notVerified, err := w.judgeInstalled(ctx, r)
	findings = append(findings, found...)
	if err != nil {
		return findings, notVerified, err
	}
	findings, err = w.judgeBase(ctx, r, findings)
	return findings, notVerified, err
}

// settleSamples waits until r's operator is through with the walk's objects from known on, and leaves one where it can take care of one alone, and none that
// another keeps from being well.
func (w *walk) settleSamples(ctx context.Context, r *lifecycle.Release, known int) error {
	made := slices.Clone(w.Objects[known:])
	apart, rivalry := w.apart(ctx, r, made), w.rivalry(ctx)
	var rivals rivals
	err := w.reconciled(ctx, r, func() (bool, error) {
		var err error
		if rivals, err = rivalry(); err != nil || len(rivals) > 0 {
			return true, err
		}
		return apart()
	})
	if err == nil && len(rivals) > 0 {
		if err = w.leaveOne(ctx, rivals); err == nil {
			err = w.reconciled(ctx, r, apart)
		}
	}
	if err != nil {
		return err
	}
	return w.separate(ctx, r, slices.DeleteFunc(made, func(o *observe.Object) bool { return !slices.Contains(w.Objects, o) }))
}
