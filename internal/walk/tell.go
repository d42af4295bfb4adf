package walk

import (
	"fmt"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/report"
)

// tell prints what came out of a hop.
func (w *walk) tell(hop report.Hop) {
	w.options.Progress.Status("")
	w.tellFindings(hop.All())
	for _, f := range hop.Faults {
		w.options.Progress.Say("            %s", f)
	}
	w.options.Progress.Say("   %6.1fs  %s", hop.Seconds, hop.Result)
}

// tellFindings prints what of findings matters to users.
func (w *walk) tellFindings(findings []finding.Finding) {
	for _, f := range findings {
		if f.Severity.AtLeast(finding.Warning) {
			w.options.Progress.Say("            %s %s: %s", f.Severity, strings.TrimSpace(f.Code+" "+f.Subject.Object), f.Message)
		}
	}
}

// about completes findings with their subject, and with the word that they rest on simulated pods where they do.
func (w *walk) about(found []finding.Finding, subject finding.Subject) []finding.Finding {
	idles := len(w.idleOf(w.releases[subject.From], w.releases[subject.To])) > 0
	for i := range found {
		object := found[i].Subject.Object
		found[i].Subject = subject
		found[i].Subject.Package = w.pkg.Name
		found[i].Subject.Channel = w.channel
		found[i].Subject.Object = object
		if idles && w.restsOnPods(found[i]) {
			found[i].AddCause("not verified: the operator's pods were simulated")
		}
	}
	return found
}

// idleOf are the images of those pods of the operators of releases, which may be nil, in which nothing runs, sorted. That sidecars of the others, such as kube-rbac-proxy, were
// simulated is noted once.
func (w *walk) idleOf(releases ...*lifecycle.Release) (idle []string) {
	for _, r := range releases {
		if r == nil {
			continue
		}
		idles := r.Idle(w.Simulated)
		idle = append(idle, idles...)
		for _, image := range r.Images() {
			if slices.Contains(w.Simulated, image) && !slices.Contains(idles, image) {
				w.noteOnce("containers of " + image + " were simulated beside those of the operator that ran")
			}
		}
	}
	slices.Sort(idle)
	return slices.Compact(idle)
}

// restsOnPods reports whether f is about what the operator's process did.
func (w *walk) restsOnPods(f finding.Finding) bool {
	switch f.Code {
	case code.NotSucceeded, code.NotStable, code.BaseFailed:
		// What the manager or the API server refuses they refuse whatever runs.
		return !w.Manager.Decides(f.Subject.Object)
	case code.ReadOutage, code.WriteOutage, code.OutageStays, code.StatusStale, code.ConditionWorse, code.Uninstall:
		return true
	}
	return false
}

// simulatedIn returns the images whose pods were simulated in the installations and hops.
func simulatedIn(installations []report.Installation, hops []report.Hop) []string {
	var images []string
	for _, i := range installations {
		images = append(images, i.Simulated...)
	}
	for _, h := range hops {
		images = append(images, h.Simulated...)
	}
	slices.Sort(images)
	return slices.Compact(images)
}

// judgeImages finds, where the operator itself is required to run, that its pods were simulated.
func (w *walk) judgeImages(r *report.Report) []finding.Finding {
	images := simulatedIn(w.installations, r.Hops)
	if !w.options.RequireImages || len(images) == 0 {
		return nil
	}
	return []finding.Finding{code.Finding(code.NotRun, "", "the operator was not run: the pods of these images were simulated: %s", strings.Join(images, ", "))}
}

// notRun says of how many images the pods were simulated in r, if any were.
func notRun(r *report.Report) []string {
	images := simulatedIn(r.Installations, r.Hops)
	if len(images) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("pods were simulated because their images could not be had (%d): no program of theirs started, converted or reconciled anything", len(images))}
}

// grade gives findings the severities that the user asked for, those by code over those of a strict walk.
func (w *walk) grade(findings []finding.Finding, outages []report.Outage) {
	if w.options.Strict {
		judge.Strict(findings, outages)
	}
	w.options.Grades.Apply(findings)
}
