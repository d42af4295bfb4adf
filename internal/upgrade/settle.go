package upgrade

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
	"github.com/olmkit/olmkit/internal/managerlog"
	"github.com/olmkit/olmkit/internal/report"
)

// stalled says that an installation will not come to its end.
type stalled struct {
	Code  string
	After string                // the last milestone that was reached
	Late  bool                  // the time was up; else nothing more would have happened
	Plan  *v1alpha1.InstallPlan // as it was when it said why, or nil: OLM soon writes something else
}

// settle waits until r is installed and everything is as it should stay: its CSV Succeeded, no other left, the deployments
// rolled out, the definitions established, no change for the time that the options say, and no fault left of s, which may be
// nil. Meanwhile it calls assist, which may be nil, over and over. It returns a stalled if r will never be installed.
func (w *walk) settle(ctx context.Context, started time.Time, from string, r *release, s *hopFaults, assist func() error) (*stalled, error) {
	var end *stalled
	var waiting held
	printed := map[string]bool{}
	reached := "publishing the catalog"
	err := w.watcher.until(ctx, w.options.Timeout, func() (bool, error) {
		timeline := w.watcher.since(started)
		for _, m := range milestones(timeline, started, from, r.Name) {
			if !printed[m.Name] && from != "" {
				w.options.Progress.Say("   %6.1fs  %s", m.At.Sub(started).Seconds(), m.Name)
				w.options.Progress.Status("%s → %s, after '%s'", from, r.Name, m.Name)
			}
			printed[m.Name] = true
			reached = m.Name
		}
		if assist != nil {
			if err := assist(); err != nil {
				return false, err
			}
		}
		if !s.inForce() {
			var err error
			if end, err = w.terminalFailure(ctx, r, timeline, &waiting); err != nil {
				return false, err
			}
			if end != nil {
				end.After = reached
				return true, nil
			}
		}
		done, err := w.isInstalled(ctx, r)
		if err != nil || !done || !quiet(timeline, w.options.Settle) {
			return false, err
		}
		return s.finished(), nil
	})
	if errors.Is(err, errTimeout) {
		return &stalled{Code: w.lateCode(ctx, r), After: reached, Late: true}, nil
	}
	return end, err
}

// quiet reports whether nothing changed in timeline for the last d.
func quiet(timeline []event, d time.Duration) bool {
	for _, e := range slices.Backward(timeline) {
		if e.Kind != kindWalk {
			return time.Since(e.At) >= d
		}
	}
	return true
}

// isInstalled reports whether r runs, alone.
func (w *walk) isInstalled(ctx context.Context, r *release) (bool, error) {
	var versions v1alpha1.ClusterServiceVersionList
	if err := w.watcher.List(ctx, &versions, client.InNamespace(w.namespace)); err != nil {
		return false, err
	}
	for i := range versions.Items {
		v := &versions.Items[i]
		if !v.IsCopied() && (v.Name != r.Name || v.Status.Phase != v1alpha1.CSVPhaseSucceeded) {
			return false, nil
		}
	}
	if !slices.ContainsFunc(versions.Items, func(v v1alpha1.ClusterServiceVersion) bool { return v.Name == r.Name }) {
		return false, nil
	}
	var plans v1alpha1.InstallPlanList
	if err := w.watcher.List(ctx, &plans, client.InNamespace(w.namespace)); err != nil {
		return false, err
	}
	if plan := olmv0.PlanFor(plans.Items, r.Name); plan == nil || plan.Status.Phase != v1alpha1.InstallPlanPhaseComplete {
		return false, nil
	}
	for _, name := range r.deployments() {
		var d appsv1.Deployment
		if err := w.watcher.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, &d); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		wanted := int32(1)
		if d.Spec.Replicas != nil {
			wanted = *d.Spec.Replicas
		}
		s := d.Status
		if s.ObservedGeneration != d.Generation || s.Replicas != wanted || s.UpdatedReplicas != wanted || s.AvailableReplicas != wanted {
			return false, nil
		}
	}
	for _, owned := range r.CRDs {
		var d apiextensionsv1.CustomResourceDefinition
		if err := w.watcher.Get(ctx, client.ObjectKey{Name: owned.Name}, &d); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		if !slices.ContainsFunc(d.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
		}) {
			return false, nil
		}
	}
	return true, nil
}

// After how many restarts a container that still waits to be started again is given up, and after how many failures in
// the same words a CSV is. OLM itself goes on for ever, or until the InstallPlan's minute is over.
const (
	hopelessRestarts = 3
	hopelessFailures = 6
)

// failedAlike counts how often the CSV called name failed in timeline in the words in which it failed last.
func failedAlike(timeline []event, name string) int {
	n := 0
	last := ""
	for _, e := range slices.Backward(timeline) {
		if e.Kind != kindCSV || e.Name != name || e.State != string(v1alpha1.CSVPhaseFailed) {
			continue
		}
		if last == "" {
			last = e.Reason
		}
		if e.Reason == last {
			n++
		}
	}
	return n
}

// terminalFailure returns what keeps r from ever being installed, or nil. In waiting it remembers what OLM waits for.
func (w *walk) terminalFailure(ctx context.Context, r *release, timeline []event, waiting *held) (*stalled, error) {
	var plans v1alpha1.InstallPlanList
	if err := w.watcher.List(ctx, &plans, client.InNamespace(w.namespace)); err != nil {
		return nil, err
	}
	var refused *stalled // objects, by the new schema: a crash of the operator is no reason for it, but may follow from it
	if plan := olmv0.PlanFor(plans.Items, r.Name); plan != nil {
		code := planCode(plan)
		said := &stalled{Code: code, Plan: plan}
		// OLM tries for a minute, but stored versions do not change by themselves.
		if plan.Status.Phase == v1alpha1.InstallPlanPhaseFailed || code == codeStoredRefused {
			return said, nil
		}
		if code == codeObjectsRefused {
			refused = said
		}
	}
	lacks, err := w.unmet(ctx, r)
	if err != nil {
		return nil, err
	}
	if lacks == nil {
		lacks = &demand{}
	}
	if waiting.lasts(lacks.Said, time.Now()) > lacks.Grace {
		return &stalled{Code: lacks.Code}, nil
	}
	var csv v1alpha1.ClusterServiceVersion
	err = w.watcher.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: r.Name}, &csv)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	switch csv.Status.Reason {
	// OLM does not leave these by itself.
	case v1alpha1.CSVReasonComponentFailedNoRetry, v1alpha1.CSVReasonInvalidInstallModes, v1alpha1.CSVReasonInvalidStrategy,
		v1alpha1.CSVReasonInvalidWebhookDescription, v1alpha1.CSVReasonUnsupportedOperatorGroup, v1alpha1.CSVReasonOwnerConflict:
		if csv.Status.Phase == v1alpha1.CSVPhaseFailed {
			return &stalled{Code: codeNotSucceeded}, nil
		}
	}
	if csv.Status.Phase == v1alpha1.CSVPhaseSucceeded {
		return nil, nil
	}
	if failedAlike(timeline, r.Name) >= hopelessFailures {
		return &stalled{Code: codeNotSucceeded}, nil
	}
	var pods corev1.PodList
	if err := w.watcher.List(ctx, &pods, client.InNamespace(w.namespace)); err != nil {
		return nil, err
	}
	for _, p := range pods.Items {
		for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			if s.State.Waiting != nil && s.State.Waiting.Reason == cluster.PodRefused && runs(r, s.Image) {
				return &stalled{Code: codeNotSucceeded}, nil
			}
			if s.RestartCount >= hopelessRestarts && s.State.Waiting != nil && s.State.Waiting.Reason == "CrashLoopBackOff" && runs(r, s.Image) {
				if refused != nil {
					return refused, nil
				}
				return &stalled{Code: codeCrashed}, nil
			}
		}
	}
	return nil, nil
}

// runs reports whether image is one of r's own.
func runs(r *release, image string) bool { return slices.Contains(r.images(), image) }

// planCode tells the failures of an InstallPlan apart that have a code of their own. The texts are those of
// pkg/controller/operators/catalog/step.go and pkg/lib/crd/storage.go of operator-lifecycle-manager v0.46.0.
func planCode(plan *v1alpha1.InstallPlan) string {
	said := plan.Status.Message
	for _, c := range plan.Status.Conditions {
		said += " " + c.Message
	}
	switch {
	case strings.Contains(said, "risk of data loss"):
		return codeStoredRefused
	case strings.Contains(said, "conversion webhook for"):
		return codeConversionBlocks
	case strings.Contains(said, "error validating existing CRs"):
		return codeObjectsRefused
	}
	return codePlanFailed
}

// lateCode returns the code for an installation whose time is up, by how far it came.
func (w *walk) lateCode(ctx context.Context, r *release) string {
	var csv v1alpha1.ClusterServiceVersion
	err := w.watcher.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: r.Name}, &csv)
	switch {
	case apierrors.IsNotFound(err):
		var plans v1alpha1.InstallPlanList
		if w.watcher.List(ctx, &plans, client.InNamespace(w.namespace)) == nil && olmv0.PlanFor(plans.Items, r.Name) != nil {
			return codePlanFailed
		}
		return codeNotChosen
	case csv.Status.Phase != v1alpha1.CSVPhaseSucceeded:
		return codeNotSucceeded
	}
	var versions v1alpha1.ClusterServiceVersionList
	if w.watcher.List(ctx, &versions, client.InNamespace(w.namespace)) == nil {
		for i := range versions.Items {
			if !versions.Items[i].IsCopied() && versions.Items[i].Name != r.Name {
				return codeOldVersionStays
			}
		}
	}
	return codeNotStable
}

// explain turns s into a finding that says why: the phase, the object and condition, the event, and the last lines of
// the process to blame, of which it also returns more lines.
func (w *walk) explain(ctx context.Context, r *release, started time.Time, s *stalled) (finding.Finding, []report.Log) {
	var e olmv0.Explanation
	if s.Plan != nil {
		e = olmv0.ExplainPlan(s.Plan)
	} else {
		var err error
		if e, err = w.olm.Explain(ctx, w.subscription(), r.Name, started); err != nil {
			return find(s.Code, "", "after %s, %s did not come up, and the reason could not be read: %v", s.After, r.Name, err), nil
		}
	}
	f := find(s.Code, e.Object, "after '%s' the installation of %s did not go on", s.After, r.Name)
	if s.Late {
		f.Message += fmt.Sprintf(" within %s", w.options.Timeout)
	}
	f.Message += ": " + e.Phase + ": " + e.Why
	var causes []string
	if e.Event != "" && !strings.Contains(f.Message, e.Event) {
		causes = append(causes, "event "+e.Event)
	}
	var logs []report.Log
	if e.Container != "" {
		var written bytes.Buffer
		if err := w.cluster.Logs(ctx, &written, e.Container); err == nil && written.Len() > 0 {
			text := strings.ReplaceAll("\n"+managerlog.Clean(written.Bytes()), "\n"+e.Container+"| ", "\n")
			causes = append(causes, "last lines of "+e.Container+":\n"+lastLines(text, 5))
			logs = []report.Log{{Source: e.Container, Text: lastLines(text, logLines)}}
		}
	}
	f.Cause = strings.Join(causes, "; ")
	if fix := versionFix(r.CSV, w.cluster.Describe().Kubernetes); s.Code == codeUnmet && fix != "" {
		f.Fix = fix
	}
	if strings.Contains(f.Message, "field is immutable") {
		f.Fix = "keep the field as it was, or give the object another name; 'olmkit catalog validate' tells of such changes before anything is installed"
	}
	return f, logs
}

// logLines is how much of the log of the process to blame a report carries.
const logLines = 200

// lastLines returns the last n lines of s that are not empty. Of a Go program that panicked it returns the n lines from the
// panic on, since what comes last is only the stack.
func lastLines(s string, n int) string {
	lines := slices.DeleteFunc(strings.Split(s, "\n"), func(l string) bool { return strings.TrimSpace(l) == "" })
	start := max(0, len(lines)-n)
	for i, l := range slices.Backward(lines) {
		if strings.HasPrefix(l, "panic: ") || strings.HasPrefix(l, "fatal error: ") {
			start = i
			break
		}
	}
	return strings.Join(lines[start:min(start+n, len(lines))], "\n")
}

// warnings returns what OLM warned of since start while it carried out the InstallPlan for r.
func (w *walk) warnings(ctx context.Context, r *release, start time.Time) ([]finding.Finding, error) {
	var events corev1.EventList
	if err := w.olm.List(ctx, &events, client.InNamespace(w.namespace)); err != nil {
		return nil, fmt.Errorf("list events in %s: %w", w.namespace, err)
	}
	var findings []finding.Finding
	said := map[string]bool{}
	for _, e := range events.Items {
		recent := !e.LastTimestamp.Before(&metav1.Time{Time: start.Truncate(time.Second)})
		if e.Type == corev1.EventTypeWarning && e.InvolvedObject.Kind == v1alpha1.InstallPlanKind && recent {
			// OLM repeats a plan's steps, and with them their warnings, in any order.
			words := strings.FieldsFunc(e.Message, func(c rune) bool { return c == ' ' || c == ',' })
			slices.Sort(words)
			if key := e.InvolvedObject.Name + " " + strings.Join(words, " "); !said[key] {
				said[key] = true
				findings = append(findings, find(codePlanWarning, "InstallPlan/"+w.namespace+"/"+e.InvolvedObject.Name,
					"installing %s: %s: %s", r.Name, e.Reason, strings.TrimSpace(e.Message)))
			}
		}
	}
	return findings, nil
}
