package walk

import (
	"context"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/managerlog"
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
		if lasting, err = w.Lasting(ctx, r, slices.DeleteFunc(slices.Clone(groups), ofNewNamespace)); err != nil {
			return findings, err
		}
	}
	told := judge.QuoteErrors(findings, groups)
	return append(findings, judge.Groups(r.Name, w.Manager.ObjectOf(r.Name), groups, lasting, known, told)...), nil
}

// ofNewNamespace reports whether an error is of objects alone that were in a namespace that went, or had long names there.
func ofNewNamespace(g managerlog.Group) bool {
	elsewhere := func(object string) bool { return !strings.HasPrefix(object, newNamespaces) }
	return !g.Panic && strings.Contains(g.Excerpt, newNamespaces) && !slices.ContainsFunc(g.Objects, elsewhere)
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
