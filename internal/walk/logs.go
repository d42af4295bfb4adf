package walk

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/managerlog"
	"github.com/olmkit/olmkit/internal/observe"
)

// judgeLogs judges what the manager of r logged, and completes findings with what it says of their causes. known are the
// errors that the release before logged as well; done says that r runs, so that what goes wrong now stays so.
func (w *walk) judgeLogs(ctx context.Context, r *lifecycle.Release, known map[string]bool, findings []finding.Finding, done bool) ([]finding.Finding, error) {
	groups, _, err := w.Logged(ctx, r)
	if err != nil {
		return findings, err
	}
	var lasting []managerlog.Group
	if done {
		ofWalk := func(g managerlog.Group) bool { return w.ofTrials(g) || w.lacksDNS(g) }
		if lasting, err = w.Lasting(ctx, r, slices.DeleteFunc(slices.Clone(groups), ofWalk)); err != nil {
			return findings, err
		}
	}
	// What the release before called in vain as well is no reason for what it did and this one does not.
	called, err := w.calledInVain(ctx, slices.DeleteFunc(slices.Clone(groups), func(g managerlog.Group) bool { return known[g.Key] }))
	if err != nil {
		return findings, err
	}
	judge.NotAnswered(findings, called)
	told := judge.QuoteErrors(findings, groups)
	return append(findings, judge.Groups(r.Name, w.Manager.ObjectOf(r.Name), groups, lasting, known, told)...), nil
}

// ofTrials reports whether an error is alone of copies, there or in a namespace that went, of what was made for them, which are gone, and of samples before the walk took back how it had
// changed them: what it had them say may be no sense. One of no object is so if it tells of such a namespace.
func (w *walk) ofTrials(g managerlog.Group) bool {
	ofOthers := slices.ContainsFunc(g.Objects, func(object string) bool {
		last := g.LastOf[object]
		return !strings.HasPrefix(object, newNamespaces) && !copied.MatchString(object) && (last.IsZero() || last.After(w.takenBack))
	})
	return !g.Panic && (len(g.Objects) > 0 || strings.Contains(g.Excerpt, newNamespaces)) && !ofOthers
}

// copied matches the names of copies, and of what is called after them.
var copied = regexp.MustCompile(`-(new\d+|own\d+|alt\d+[a-z]|again)(-.*)?$`)

// noDNS matches what Go says where no server for names is configured: it asks the machine itself. Its group is the name.
var noDNS = regexp.MustCompile(`lookup (\S+) on (?:\[::1\]|127\.0\.0\.1):53`)

// lacksDNS reports whether an error is for want of cluster DNS, and notes that once.
func (w *walk) lacksDNS(g managerlog.Group) bool {
	if !noDNS.MatchString(g.Error + g.Message) {
		return false
	}
	const note = "the manager looks up names of Services, for which this cluster has no DNS: what it does once these answer is not verified"
	if !slices.Contains(w.notes, note) {
		w.notes = append(w.notes, note)
	}
	return true
}

// refused matches what Go says of a connection that nobody takes. Its group is the address.
var refused = regexp.MustCompile(`dial tcp (\d+(?:\.\d+){3}):\d+: connect: connection refused`)

// calledInVain are the Services among operands whose names groups say were looked up for want of cluster DNS, and the simulated pods that they say were called, sorted.
func (w *walk) calledInVain(ctx context.Context, groups []managerlog.Group) ([]string, error) {
	hosts, addresses := map[string]bool{}, map[string]bool{}
	for _, g := range groups {
		said := g.Error + " " + g.Message
		for _, match := range noDNS.FindAllStringSubmatch(said, -1) {
			name, of, _ := strings.Cut(match[1], ".")
			namespace, _, _ := strings.Cut(of, ".")
			hosts[namespace+"/"+name] = true
		}
		for _, match := range refused.FindAllStringSubmatch(said, -1) {
			addresses[match[1]] = true
		}
	}
	called, err := w.simulatedAt(ctx, addresses)
	if err != nil || len(hosts) == 0 {
		return called, err
	}
	operands, err := w.RecentOperands(ctx)
	for name, o := range operands {
		if o.Kind == observe.KindService && hosts[o.Namespace+"/"+o.Name] {
			called = append(called, name)
		}
	}
	slices.Sort(called)
	return called, err
}

// simulatedAt are the simulated pods that have one of addresses, sorted.
func (w *walk) simulatedAt(ctx context.Context, addresses map[string]bool) (names []string, err error) {
	if len(addresses) == 0 {
		return nil, nil
	}
	var pods corev1.PodList
	if err := w.Client.List(ctx, &pods); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	for _, p := range pods.Items {
		if addresses[p.Status.PodIP] && isSimulated(p) {
			names = append(names, observe.KindPod+"/"+p.Namespace+"/"+p.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// isSimulated reports whether nothing runs in p.
func isSimulated(p corev1.Pod) bool {
	return len(p.Status.ContainerStatuses) > 0 && !slices.ContainsFunc(p.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return !strings.HasPrefix(c.ContainerID, cluster.SimulatedContainer)
	})
}

// judgeBase judges what the manager of a release logged that users come from: no upgrade is to blame for its panics.
func (w *walk) judgeBase(ctx context.Context, r *lifecycle.Release, findings []finding.Finding) ([]finding.Finding, error) {
	judged, err := w.judgeLogs(ctx, r, nil, findings, true)
	for i := range judged {
		if judged[i].Code == code.Panics {
			judged[i].Severity = finding.Warning
		}
	}
	return judged, err
}
