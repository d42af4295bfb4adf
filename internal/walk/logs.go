package walk

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"

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
	called, err := w.calledInVain(ctx, groups)
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

// calledInVain are the Services among operands whose names groups say were looked up for want of cluster DNS in vain, sorted.
func (w *walk) calledInVain(ctx context.Context, groups []managerlog.Group) ([]string, error) {
	looked := map[string]bool{}
	for _, g := range groups {
		for _, match := range noDNS.FindAllStringSubmatch(g.Error+" "+g.Message, -1) {
			name, of, _ := strings.Cut(match[1], ".")
			namespace, _, _ := strings.Cut(of, ".")
			looked[namespace+"/"+name] = true
		}
	}
	if len(looked) == 0 {
		return nil, nil
	}
	operands, err := w.RecentOperands(ctx)
	maps.DeleteFunc(operands, func(_ string, o observe.Operand) bool {
		return o.Kind != "Service" || !looked[o.Namespace+"/"+o.Name]
	})
	return slices.Sorted(maps.Keys(operands)), err
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
