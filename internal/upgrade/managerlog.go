package upgrade

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/managerlog"
	"github.com/olmkit/olmkit/internal/report"
)

// An error is repeated if it was logged so often, and goes on if it is logged again within logWatch. Controllers double their
// wait after each failure, so what was repeated in the last seconds is repeated in the next.
const (
	repeatedOften = 3
	logWatch      = 12 * time.Second
	logAnswer     = 2 * time.Second // until an object that was touched is reconciled
	logPace       = 500 * time.Millisecond
)

// toldErrors is how many errors of a manager's log are findings of their own.
const toldErrors = 5

// containersOf returns the containers that the manager runs for the release called name, as namespace/pod/container, sorted.
func (w *walk) containersOf(ctx context.Context, name string) ([]string, error) {
	var pods corev1.PodList
	if err := w.watcher.List(ctx, &pods, client.InNamespace(w.place.Namespace)); err != nil {
		return nil, err
	}
	var containers []string
	for _, p := range pods.Items {
		for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
			if w.manager.BundleOf(&c) == name {
				containers = append(containers, p.Namespace+"/"+p.Name+"/"+c.Name)
			}
		}
	}
	slices.Sort(containers)
	return containers, nil
}

// logged reads what the containers of r logged: the errors, and the last lines of each.
func (w *walk) logged(ctx context.Context, r *release) ([]managerlog.Group, []report.Log, error) {
	containers, err := w.containersOf(ctx, r.Name)
	if err != nil {
		return nil, nil, err
	}
	all := managerlog.New()
	var tails []report.Log
	for _, c := range containers {
		reader := all.Reader(c + "| ")
		// A container may be gone by now, or not have begun: then there is nothing to read.
		_ = w.cluster.Logs(ctx, reader, c)
		_ = reader.Close()
		if text := reader.Tail(); text != "" {
			tails = append(tails, report.Log{Source: c, Text: text})
		}
	}
	return all.Groups(), tails, ctx.Err()
}

// errorKeys returns which errors and panics r has logged.
func (w *walk) errorKeys(ctx context.Context, r *release) (map[string]bool, error) {
	groups, _, err := w.logged(ctx, r)
	keys := map[string]bool{}
	for _, g := range groups {
		keys[g.Key] = true
	}
	return keys, err
}

// judgeLogs judges what the manager of r logged, and completes findings with what it says of their causes. known are the
// errors that the release before logged as well; done says that r runs, so that what goes wrong now stays so.
func (w *walk) judgeLogs(ctx context.Context, r *release, known map[string]bool, findings []finding.Finding, done bool) ([]finding.Finding, error) {
	groups, _, err := w.logged(ctx, r)
	if err != nil {
		return findings, err
	}
	var lasting []managerlog.Group
	if done {
		if lasting, err = w.lasting(ctx, r, groups); err != nil {
			return findings, err
		}
	}
	told := quoteErrors(findings, groups)
	return append(findings, judgeGroups(r.Name, w.manager.ObjectOf(r.Name), groups, lasting, known, told)...), nil
}

// lasting returns those of groups that are repeated, and go on.
func (w *walk) lasting(ctx context.Context, r *release, groups []managerlog.Group) ([]managerlog.Group, error) {
	suspects := slices.DeleteFunc(slices.Clone(groups), func(g managerlog.Group) bool { return g.Panic || g.Count < repeatedOften })
	if len(suspects) > 0 {
		if err := w.touchAll(ctx); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	var lasting []managerlog.Group
	now := groups
	for {
		waited := time.Since(began)
		suspects = slices.DeleteFunc(suspects, func(was managerlog.Group) bool {
			is := was
			if i := slices.IndexFunc(now, func(g managerlog.Group) bool { return g.Key == was.Key }); i >= 0 {
				is = now[i]
			}
			goesOn, decided := persists(was, is, waited, time.Since(was.Last))
			if goesOn {
				lasting = append(lasting, is)
			}
			return decided
		})
		if len(suspects) == 0 {
			return lasting, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(logPace):
		}
		var err error
		if now, _, err = w.logged(ctx, r); err != nil {
			return nil, err
		}
	}
}

// touchAll has the operator look at the objects that observers wrote: after many failures its next look may be minutes away.
func (w *walk) touchAll(ctx context.Context) error {
	definitions := w.watcher.definitions()
	for _, o := range w.objects {
		if d := definitions[o.CRD]; o.Written && d != nil {
			// What cannot be written is judged elsewhere.
			_, _ = touch(ctx, o, o.at(w.dynamic, d.Storage))
		}
	}
	return ctx.Err()
}

// persists tells whether an error that was logged as was, and after waited as is, goes on; age is how long it was last logged
// before now. It is not decided while it may yet be logged again.
func persists(was, is managerlog.Group, waited, age time.Duration) (goesOn, decided bool) {
	switch {
	case is.Count > was.Count:
		return true, true
	case !was.Last.IsZero() && waited > logAnswer && age > 2*was.Gap+time.Second:
		return false, true
	case waited > logWatch:
		return !was.Last.IsZero(), true // the next time is still to come
	}
	return false, false
}

// quoteErrors adds to those of findings that an error in the manager's log explains what it says, and returns the keys of
// the errors that need not be told again.
func quoteErrors(findings []finding.Finding, groups []managerlog.Group) map[string]bool {
	told := map[string]bool{}
	for i := range findings {
		f := &findings[i]
		for _, g := range groups {
			if !explains(g, *f) {
				continue
			}
			said, _, _ := strings.Cut(g.Excerpt, "\n")
			if !strings.Contains(f.Cause, said) && !strings.Contains(f.Message, said) {
				f.Cause = strings.TrimPrefix(f.Cause+"; "+quote(g), "; ")
			}
			if !g.Panic || f.Code == codeNotSucceeded || f.Code == codeCrashed || f.Code == codeNotStable {
				told[g.Key] = true
			}
			break
		}
	}
	return told
}

// quote is g in the words of the log.
func quote(g managerlog.Group) string {
	times := "once"
	if g.Count > 1 {
		times = fmt.Sprintf("%d times", g.Count)
	}
	return fmt.Sprintf("the manager logged %s: %s", times, g.Excerpt)
}

// explains reports whether what f finds may be the consequence of g.
func explains(g managerlog.Group, f finding.Finding) bool {
	switch f.Code {
	case codeNotSucceeded, codeCrashed, codeNotStable:
		return strings.HasPrefix(f.Subject.Object, "Pod/") || strings.HasPrefix(f.Subject.Object, "Deployment/")
	case codeRestarted:
		return g.Panic
	case codeStatusStale, codeConditionWorse, codeNotReconciled, codeOperandWorse:
		return names(g, f.Subject.Object)
	case codeForbidden, codeNoResource, codeConflicts, codeInvalid, codeDenied:
		return shares(g.Error+"\n"+g.Message, f.Message+"\n"+f.Cause)
	}
	return false
}

// names reports whether g was logged for object, or says its name.
func names(g managerlog.Group, object string) bool {
	_, name, _ := strings.Cut(object, "/")
	if slices.Contains(g.Objects, name) {
		return true
	}
	name = name[strings.LastIndex(name, "/")+1:]
	return len(name) > 2 && slices.Contains(strings.FieldsFunc(g.Excerpt, func(c rune) bool { return strings.ContainsRune(" \t\n\"'`/,:;=()[]{}", c) }), name)
}

// How many bytes of an error two texts must have in common to be about the same.
const (
	sharedLeast = 30
	sharedMost  = 120
)

// shares reports whether said quotes what logged ends in: errors are wrapped as "what was tried: why it failed".
func shares(logged, said string) bool {
	said = strings.ReplaceAll(said, `\`, "")
	for line := range strings.Lines(strings.ReplaceAll(logged, `\`, "")) {
		for part := strings.TrimSpace(line); len(part) >= sharedLeast; {
			if strings.Contains(said, part[:min(len(part), sharedMost)]) {
				return true
			}
			_, rest, more := strings.Cut(part, ": ")
			if !more {
				break
			}
			part = rest
		}
	}
	return false
}

// judgeGroups makes findings of the panics among groups and of the errors that last, but for those that are told already.
func judgeGroups(name, object string, groups, lasting []managerlog.Group, known, told map[string]bool) []finding.Finding {
	var findings []finding.Finding
	for _, g := range groups {
		if !g.Panic || told[g.Key] {
			continue
		}
		f := find(codePanics, object, "the manager of %s panicked%s", name, howOften(g))
		if f.Cause = quote(g); known[g.Key] {
			f.Severity = finding.Warning
			f.Message += "; the release before did so as well"
		}
		findings = append(findings, f)
	}
	for _, g := range lasting {
		if told[g.Key] {
			continue
		}
		f := find(codeLogErrors, object, "the manager of %s logs an error again and again%s: %s", name, howOften(g), strings.TrimSuffix(g.Message+": "+g.Error, ": "))
		if f.Cause = quote(g); known[g.Key] {
			f.Severity = finding.Info
			f.Message += "; the release before did so as well"
		}
		findings = append(findings, f)
	}
	return findings[:min(len(findings), toldErrors)]
}

// howOften says how often g was logged, and in which time, where that is known.
func howOften(g managerlog.Group) string {
	s := fmt.Sprintf(" (%d times", g.Count)
	if g.Count == 1 {
		s = " (once"
	}
	if d := g.Last.Sub(g.First); d > 0 {
		s += fmt.Sprintf(" in %.1fs", d.Seconds())
	}
	return s + ")"
}

// judgeBase judges what the manager of a release logged that users come from: no upgrade is to blame for its panics.
func (w *walk) judgeBase(ctx context.Context, r *release, findings []finding.Finding) ([]finding.Finding, error) {
	judged, err := w.judgeLogs(ctx, r, nil, findings, true)
	for i := range judged {
		if judged[i].Code == codePanics {
			judged[i].Severity = finding.Warning
		}
	}
	return judged, err
}

// failedLogs returns known with the last lines of the containers of r, or where it has none of those of before. It leaves out
// what cannot be read: a hop that failed has worse to tell.
func (w *walk) failedLogs(ctx context.Context, r, before *release, known []report.Log) []report.Log {
	if w.watcher == nil {
		return known
	}
	_, tails, err := w.logged(ctx, r)
	if err == nil && len(tails) == 0 {
		_, tails, _ = w.logged(ctx, before)
	}
	for _, t := range tails {
		if !slices.ContainsFunc(known, func(l report.Log) bool { return l.Source == t.Source }) {
			known = append(known, t)
		}
	}
	return known
}
