package walk

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/managerlog"
	"github.com/olmkit/olmkit/internal/observe"
)

// logged is what the manager of a release logged.
type logged struct {
	groups []managerlog.Group
	idle   map[string]string // what unanswered names among what they tell of
	leaks  []string          // the lines with credentials, without these
	known  bool              // whether it was read
}

// loggedBy is what the manager of r logged until now.
func (w *walk) loggedBy(ctx context.Context, r *lifecycle.Release) (l logged, err error) {
	logs, err := w.Logged(ctx, r)
	if err == nil {
		l = logged{groups: logs.Groups, leaks: logs.Leaks, known: true}
		l.idle, err = w.unanswered(ctx, l.groups)
	}
	return l, err
}

// keys are those of the errors and panics that were logged.
func (l logged) keys() map[string]bool {
	keys := map[string]bool{}
	for _, g := range l.groups {
		keys[g.Key] = true
	}
	return keys
}

// judgeLogs judges what the manager of r logged, and completes findings with what it says of their causes. before is what that of the release before
// logged; done says that r runs, so that what goes wrong now stays so.
func (w *walk) judgeLogs(ctx context.Context, r *lifecycle.Release, before logged, findings []finding.Finding, done bool) ([]finding.Finding, error) {
	now, err := w.loggedBy(ctx, r)
	if err != nil {
		return findings, err
	}
	var lasting []managerlog.Group
	if done && len(now.groups) > 0 {
		operands, err := w.RecentOperands(ctx)
		if err != nil {
			return findings, err
		}
		ofWalk := func(g managerlog.Group) bool {
			return w.ofTrials(g) || w.contends(g, operands) || w.callsElsewhere(g) || w.callsIdle(g, now.idle)
		}
		if lasting, err = w.Lasting(ctx, r, slices.DeleteFunc(slices.Clone(now.groups), ofWalk)); err != nil {
			return findings, err
		}
	}
	// What the release before called in vain as well is no reason for what it did and this one does not.
	already := calledIn(before.groups, before.idle)
	judge.NotAnswered(findings, slices.DeleteFunc(calledIn(now.groups, now.idle), func(name string) bool { return slices.Contains(already, name) }))
	if before.known && len(before.leaks) == 0 && len(now.leaks) > 0 {
		findings = append(findings, judge.LogsLeak(w.Manager.ObjectOf(r.Name), r.Name, now.leaks[0]))
	}
	told := judge.QuoteErrors(findings, now.groups)
	return append(findings, judge.Groups(r.Name, w.Manager.ObjectOf(r.Name), now.groups, lasting, before.keys(), told)...), nil
}

// ofTrials reports whether an error is alone of copies, there or in a namespace that went, of what was made for them, which are gone, and of samples before the walk took back how it had
// changed them: what it had them say may be no sense. One of no object is so if it tells of such a namespace.
func (w *walk) ofTrials(g managerlog.Group) bool {
	ofOthers := slices.ContainsFunc(g.Objects, func(object string) bool {
		last := g.LastOf[object]
		return !strings.HasPrefix(object, newNamespaces) && !copied().MatchString(object) && (last.IsZero() || last.After(w.takenBack))
	})
	return !g.Panic && (len(g.Objects) > 0 || strings.Contains(g.Excerpt, newNamespaces)) && !ofOthers
}

// contends reports whether an error is of objects of samples alone, and names what another one has that the walk made of the same sample, and that is called after neither: both ask for it.
func (w *walk) contends(g managerlog.Group, operands map[string]observe.Operand) bool {
	words := nameLike.FindAllString(g.Message+" "+g.Error, -1)
	has := func(other, o *observe.Object) bool {
		for _, made := range operands {
			if made.Of == other.String() && slices.Contains(words, made.Name) && !strings.Contains(made.Name, other.Name) && !strings.Contains(made.Name, o.Name) {
				return true
			}
		}
		return false
	}
	return len(g.Objects) > 0 && !g.Panic && !slices.ContainsFunc(g.Objects, func(name string) bool {
		return !slices.ContainsFunc(w.Objects, func(o *observe.Object) bool {
			return (name == o.Name || name == o.Namespace+"/"+o.Name) && slices.ContainsFunc(w.Objects, func(other *observe.Object) bool {
				return other != o && other.CRD == o.CRD && other.Sample == o.Sample && has(other, o)
			})
		})
	})
}

// copied matches the names of copies, and of what is called after them.
var copied = observe.Compiled(`-(new\d+|own\d+|alt\d+[a-z]+|again)(-.*)?$`)

// outside matches what programs say of names that nobody can be asked for: Go where there is no server or it fails, Python and what else uses libc, and Node.js.
var outside = observe.Compiled(`lookup \S+ on (?:\[::1\]|127\.0\.0\.1):53|lookup \S+ on \S+: server misbehaving|Temporary failure in name resolution|EAI_AGAIN`)

// callsElsewhere reports whether an error is for want of DNS of names elsewhere, and notes that once.
func (w *walk) callsElsewhere(g managerlog.Group) bool {
	if !outside().MatchString(g.Error + g.Message) {
		return false
	}
	w.noteOnce("the manager looks up names elsewhere, and the cluster's DNS has nobody to ask: what it does once these answer is not verified")
	return true
}

// callsIdle reports whether an error is of a call to one of idle, and notes that once.
func (w *walk) callsIdle(g managerlog.Group, idle map[string]string) bool {
	if len(calledIn([]managerlog.Group{g}, idle)) == 0 {
		return false
	}
	w.noteOnce("the manager calls pods in which nothing runs: what it does once they answer is not verified; --image gives their images a program")
	return true
}

// noteOnce notes what the report is to say, unless it is noted.
func (w *walk) noteOnce(text string) {
	if !slices.Contains(w.notes, text) {
		w.notes = append(w.notes, text)
	}
}

var (
	refused   = observe.Compiled(`(?i)connection refused|ECONNREFUSED`)
	addressed = observe.Compiled(`\b(\d+(?:\.\d+){3}):\d+\b`)
	hostNamed = observe.Compiled(`\b([a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)\b`)
)

// refusedAt are the addresses, or where an error names none the names of Services with their namespaces, of who refused what an error says was tried.
func refusedAt(g managerlog.Group) (who []string) {
	said := g.Error + " " + g.Message
	if !refused().MatchString(said) {
		return nil
	}
	matches := addressed().FindAllStringSubmatch(said, -1)
	if len(matches) == 0 {
		matches = hostNamed().FindAllStringSubmatch(said, -1)
	}
	for _, match := range matches {
		who = append(who, match[1])
	}
	return who
}

// calledIn are those of idle that groups say were called, sorted.
func calledIn(groups []managerlog.Group, idle map[string]string) (called []string) {
	for _, g := range groups {
		for _, who := range refusedAt(g) {
			if name := idle[who]; name != "" {
				called = append(called, name)
			}
		}
	}
	slices.Sort(called)
	return slices.Compact(called)
}

// unanswered names, by address and by name.namespace, the pods in which nothing runs and the Services that have such pods alone. It looks for
// them only where groups tell of a call that was refused.
func (w *walk) unanswered(ctx context.Context, groups []managerlog.Group) (map[string]string, error) {
	if !slices.ContainsFunc(groups, func(g managerlog.Group) bool { return len(refusedAt(g)) > 0 }) {
		return nil, nil
	}
	var pods corev1.PodList
	if err := w.Client.List(ctx, &pods); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	var services corev1.ServiceList
	if err := w.Client.List(ctx, &services); err != nil {
		return nil, fmt.Errorf("list Services: %w", err)
	}
	idle := map[string]string{}
	for _, p := range pods.Items {
		if isSimulated(p) && p.Status.PodIP != "" {
			idle[p.Status.PodIP] = observe.KindPod + "/" + p.Namespace + "/" + lastingName(p)
		}
	}
	for _, s := range services.Items {
		if haveOnlySimulated(s, pods.Items) {
			name := observe.KindService + "/" + s.Namespace + "/" + s.Name
			idle[s.Spec.ClusterIP], idle[s.Name+"."+s.Namespace] = name, name
		}
	}
	return idle, nil
}

// lastingName is what p and the pods that take its place are called.
func lastingName(p corev1.Pod) string {
	if hash := p.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; hash != "" {
		return strings.TrimSuffix(p.GenerateName, hash+"-") + "…"
	}
	if p.GenerateName != "" {
		return p.GenerateName + "…"
	}
	return p.Name
}

// haveOnlySimulated reports whether s picks pods, and nothing runs in any of them.
func haveOnlySimulated(s corev1.Service, pods []corev1.Pod) bool {
	of := slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool {
		return p.Namespace != s.Namespace || !labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(p.Labels))
	})
	return len(s.Spec.Selector) > 0 && len(of) > 0 && !slices.ContainsFunc(of, func(p corev1.Pod) bool { return !isSimulated(p) })
}

// isSimulated reports whether nothing runs in p.
func isSimulated(p corev1.Pod) bool {
	return len(p.Status.ContainerStatuses) > 0 && !slices.ContainsFunc(p.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return !strings.HasPrefix(c.ContainerID, cluster.SimulatedContainer)
	})
}

// judgeBase judges what the manager of a release logged that users come from: no upgrade is to blame for its panics.
func (w *walk) judgeBase(ctx context.Context, r *lifecycle.Release, findings []finding.Finding) ([]finding.Finding, error) {
	judged, err := w.judgeLogs(ctx, r, logged{}, findings, true)
	for i := range judged {
		if judged[i].Code == code.Panics {
			judged[i].Severity = finding.Warning
		}
	}
	return judged, err
}
