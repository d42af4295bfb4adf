package walk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/fault"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/managerlog"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/internal/report"
)

// stalled says that an installation will not come to its end.
type stalled struct {
	Code  string
	After string                 // the last milestone that was reached
	Late  bool                   // the time was up; else nothing more would have happened
	Why   *lifecycle.Explanation // in the moment in which the manager said it, or nil
}

// stallCodes are the codes of a manager's reasons.
var stallCodes = map[lifecycle.Reason]string{
	lifecycle.NotChosen: code.NotChosen, lifecycle.NotApplied: code.PlanFailed, lifecycle.NotSucceeded: code.NotSucceeded, lifecycle.Unmet: code.Unmet,
	lifecycle.UnsafeDefinition: code.UnsafeDefinition, lifecycle.StoredVersionRefused: code.StoredRefused, lifecycle.ObjectsRefused: code.ObjectsRefused, lifecycle.ConversionFails: code.ConversionBlocks,
}

// stalledBy is what a manager's reason comes to.
func stalledBy(s *lifecycle.Stall) *stalled { return &stalled{Code: stallCodes[s.Reason], Why: s.Why} }

// lateCodes are the codes of an installation whose time is up, by how far it came.
var lateCodes = map[lifecycle.Stage]string{
	lifecycle.Unresolved: code.NotChosen, lifecycle.Resolved: code.PlanFailed, lifecycle.Installing: code.NotSucceeded,
	lifecycle.Replacing: code.OldVersionStays, lifecycle.Finishing: code.NotStable, lifecycle.Installed: code.NotStable,
}

// settle waits until r is installed and everything is as it should stay: the manager is done with it, the deployments are
// rolled out, the definitions established, no change for the time that the options say, and no fault left of s, which may be
// nil. Meanwhile it calls assist, which may be nil, over and over. It returns a stalled if r will never be installed.
func (w *walk) settle(ctx context.Context, started time.Time, from string, r *lifecycle.Release, s *fault.Set, assist func(context.Context) error) (*stalled, error) {
	var end *stalled
	var waiting held
	var state lifecycle.State
	printed := map[string]bool{}
	woken := started
	reached := "publishing the catalog"
	err := w.Watcher.Until(ctx, w.options.Timeout, func() (_ bool, err error) {
		timeline := w.Watcher.Since(started)
		for _, m := range w.Milestones(timeline, started, from, r.Name) {
			if !printed[m.Name] && from != "" {
				w.options.Progress.Say("   %6.1fs  %s", m.At.Sub(started).Seconds(), m.Name)
				w.options.Progress.Status("%s → %s, after '%s'", from, r.Name, m.Name)
			}
			printed[m.Name] = true
			reached = m.Name
		}
		if assist != nil {
			if err := assist(ctx); err != nil {
				return false, err
			}
		}
		if state, err = w.Manager.State(ctx, w.Place, r, lifecycle.View{Reader: w.Watcher, Timeline: timeline}); err != nil {
			return false, err
		}
		if !s.InForce() {
			if end, err = w.terminalFailure(ctx, r, state, &waiting); err != nil {
				return false, err
			}
			if end != nil {
				end.After = reached
				return true, nil
			}
			if err := w.wake(ctx, r.Name, state, timeline, &woken); err != nil {
				return false, err
			}
		}
		done, err := w.IsInstalled(ctx, r, state)
		if err != nil || !done || !quiet(timeline, w.options.Settle) {
			return false, err
		}
		return s.Finished(), nil
	})
	if errors.Is(err, observe.ErrTimeout) {
		return &stalled{Code: lateCodes[state.Stage], After: reached, Late: true}, nil
	}
	return end, err
}

// wake has a manager that can be woken look again once nothing has happened for a quarter of the timeout, and again after each
// quarter: so what it merely puts off is told from what it cannot do. woken is when that was done last. What the manager would look at by
// the clock alone it is hastened to, and of what it has forgotten it is reminded.
func (w *walk) wake(ctx context.Context, bundle string, state lifecycle.State, timeline []lifecycle.Event, woken *time.Time) error {
	waker, can := w.Manager.(lifecycle.Waker)
	if !can {
		return nil
	}
	switch state.Stage {
	case lifecycle.Unresolved:
		if err := waker.Hasten(ctx, w.Place, w.Watcher); err != nil {
			return err
		}
	case lifecycle.Finishing:
		mended, err := waker.Remind(ctx, w.Place, bundle, w.Watcher)
		if err != nil {
			return err
		}
		w.markMended(mended)
	}
	quarter := w.options.Timeout / 4
	if time.Since(*woken) < quarter || !quiet(timeline, quarter) {
		return nil
	}
	*woken = w.Watcher.Mark(observe.StateWoken)
	mended, err := waker.Wake(ctx, w.Place)
	w.markMended(mended)
	if err != nil && ctx.Err() == nil {
		w.options.Progress.Say("            waking the lifecycle manager: %v", err) // what it does by itself decides
		return nil
	}
	return err
}

// markMended notes in the timeline what was mended of the manager, unless that is "".
func (w *walk) markMended(what string) {
	if what != "" {
		w.Watcher.MarkWhy(observe.StateWoken, what)
	}
}

// quiet reports whether nothing changed in timeline for the last d.
func quiet(timeline []lifecycle.Event, d time.Duration) bool {
	for _, e := range slices.Backward(timeline) {
		if e.Kind != observe.KindWalk {
			return time.Since(e.At) >= d
		}
	}
	return true
}

// manyRestarts is after how many restarts a container that still waits to be started again is given up.
const manyRestarts = 3

// held remembers since when something has been said.
type held struct {
	said  string
	since time.Time
}

// lasts returns for how long said has been said without a break. What is empty lasts for no time.
func (h *held) lasts(said string, now time.Time) time.Duration {
	if said != h.said || said == "" {
		h.said, h.since = said, now
	}
	return now.Sub(h.since)
}

// terminalFailure returns what keeps r from ever being installed, or nil. In waiting it remembers what the manager waits for.
func (w *walk) terminalFailure(ctx context.Context, r *lifecycle.Release, state lifecycle.State, waiting *held) (*stalled, error) {
	said := ""
	if state.Stall != nil {
		said = state.Stall.Said
	}
	if lasts := waiting.lasts(said, time.Now()); state.Stall != nil && lasts >= state.Stall.Grace {
		return stalledBy(state.Stall), nil
	}
	if state.Stage != lifecycle.Installing {
		return nil, nil
	}
	var pods corev1.PodList
	if err := w.Watcher.List(ctx, &pods, client.InNamespace(w.Place.Namespace)); err != nil {
		return nil, err
	}
	for _, p := range pods.Items {
		for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			if s.State.Waiting == nil || !runs(r, s.Image) {
				continue
			}
			switch reason := s.State.Waiting.Reason; {
			case reason == cluster.PodRefused:
				return &stalled{Code: code.NotSucceeded}, nil
			case s.RestartCount >= manyRestarts && reason == "CrashLoopBackOff" && state.Refused != nil:
				return stalledBy(state.Refused), nil
			case s.RestartCount >= manyRestarts && reason == "CrashLoopBackOff":
				return &stalled{Code: code.Crashed}, nil
			}
		}
	}
	return nil, nil
}

// runs reports whether image is one of r's own.
func runs(r *lifecycle.Release, image string) bool { return slices.Contains(r.Images(), image) }

// explain turns s into a finding that says why: the phase, the object and condition, the event, and the last lines of
// the process to blame, of which it also returns more lines.
func (w *walk) explain(ctx context.Context, r *lifecycle.Release, started time.Time, s *stalled) (finding.Finding, []report.Log) {
	e := s.Why
	if e == nil {
		said, err := w.Manager.Explain(ctx, w.Place, r.Name, started)
		if err != nil {
			return code.Finding(s.Code, "", "after %s, %s did not come up, and the reason could not be read: %v", s.After, r.Name, err), nil
		}
		e = &said
	}
	f := code.Finding(s.Code, e.Object, "installing %s stalled after phase '%s'", r.Name, s.After)
	if s.Late {
		f.Message += fmt.Sprintf(" within %s", w.options.Timeout)
	}
	f.Message += ": " + e.Phase + ": " + e.Why
	var causes []string
	if e.Event != "" && !strings.Contains(e.Why, e.Event) {
		causes = append(causes, "event "+e.Event)
	}
	var logs []report.Log
	if text := w.logged(ctx, e.Container); text != "" {
		causes = append(causes, "last lines of "+e.Container+":\n"+lastLines(text, 5))
		logs = []report.Log{{Source: e.Container, Text: lastLines(text, logLines)}}
	}
	if s.Late {
		if text := linesWith(w.logged(ctx, e.Decider), r.Name); text != "" {
			causes = append(causes, "last lines of "+e.Decider+" about it:\n"+lastLines(text, 3))
			logs = []report.Log{{Source: e.Decider, Text: lastLines(text, logLines)}}
		}
	}
	f.Cause = strings.Join(causes, "; ")
	if fix := versionFix(r.CSV.Spec.MinKubeVersion, w.Provider.Describe().Kubernetes); s.Code == code.Unmet && fix != "" {
		f.Fix = fix
	}
	if strings.Contains(e.Why, "field is immutable") {
		f.Fix = "keep the field as it was, or give the object another name; 'olmkit catalog validate' tells of such changes before anything is installed"
	}
	return f, logs
}

// logged returns what container logged, without its name before each line; "" for none, or where that cannot be read.
func (w *walk) logged(ctx context.Context, container string) string {
	var written bytes.Buffer
	if container == "" || w.Provider.Logs(ctx, &written, container) != nil {
		return ""
	}
	return strings.ReplaceAll("\n"+managerlog.Clean(written.Bytes()), "\n"+container+"| ", "\n")
}

// linesWith returns those lines of s in which word occurs.
func linesWith(s, word string) string {
	var found strings.Builder
	for line := range strings.Lines(s) {
		if strings.Contains(line, word) {
			found.WriteString(line)
		}
	}
	return found.String()
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

// warnings returns what the manager warned of since start while it installed r.
func (w *walk) warnings(ctx context.Context, r *lifecycle.Release, start time.Time) ([]finding.Finding, error) {
	said, err := w.Manager.Warnings(ctx, w.Place, start)
	var findings []finding.Finding
	for _, s := range said {
		findings = append(findings, code.Finding(code.PlanWarning, s.Object, "installing %s: %s", r.Name, s.Message))
	}
	return findings, err
}

// versionFix says what to do where the API server is older than the minimum that a bundle asks for, or "".
func versionFix(minimum, server string) string {
	asked, err := semver.ParseTolerant(minimum)
	has, unknown := semver.ParseTolerant(server)
	if errors.Join(err, unknown) != nil || asked.LTE(has) {
		return ""
	}
	return fmt.Sprintf("lower spec.minKubeVersion of the ClusterServiceVersion to %d.%d.0 or less if the operator runs there; "+
		"else test it on a cluster of Kubernetes %s or newer: --kubernetes, --cluster kind with --node-image, or --cluster existing", has.Major, has.Minor, asked)
}
