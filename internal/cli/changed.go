package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/graph"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/revision"
)

// onlyChanged leaves in plan the hops that changed since f.since: those that OLM did not take before, and those from or to
// a bundle that is new or another. Where nothing is asked for, plan stays as it is.
func (f *planFlags) onlyChanged(ctx context.Context, s *session, refs []string, p *catalog.Package, plan graph.Plan) (graph.Plan, error) {
	if f.since == "" {
		return plan, nil
	}
	before, err := s.catalogAt(ctx, f.since, refs)
	if err != nil {
		return plan, fmt.Errorf("--changed-since %s: %w", f.since, err)
	}
	old := before.Find(p.Name)
	if old == nil {
		return plan, nil // all of the package is new
	}
	return document.Until(ctx, func() (graph.Plan, error) { return f.changedHops(before, old, p, plan), nil })
}

// changedHops is what onlyChanged leaves of plan; p was old in the catalog before.
func (f *planFlags) changedHops(before *catalog.Catalog, old, p *catalog.Package, plan graph.Plan) graph.Plan {
	known := func(graph.Edge) bool { return false }
	if c := old.Channel(plan.Channel); c != nil {
		were := graph.New(old, c)
		known = func(e graph.Edge) bool {
			if b := old.Bundle(e.From); e.Switch != "" {
				return b != nil && were.Next(b.Name, b.Version) == e.To
			}
			return were.Planned(f.options.Mode, e.From, e.To)
		}
	}
	touched := map[string]bool{}
	for _, c := range catalog.Diff(before, &catalog.Catalog{Packages: []*catalog.Package{p}}) {
		if c.Package == p.Name && c.Channel == "" && c.Bundle != "" {
			touched[c.Bundle] = true
		}
	}
	taken := plan.Keep(func(_ int, e graph.Edge) bool { return touched[e.From] || touched[e.To] || !known(e) })
	if !touched[plan.Head] && old.Bundle(plan.Head) != nil {
		taken.Head = ""
	}
	return taken
}

// catalogAt loads the catalog that refs, paths in git repositories, were at a revision.
func (s *session) catalogAt(ctx context.Context, rev string, refs []string) (*catalog.Catalog, error) {
	room, err := os.MkdirTemp("", "olmkit-revision-")
	if err != nil {
		return nil, hint.With(fmt.Errorf("make room for files: %w", err), "set TMPDIR to where there is some")
	}
	defer func() { _ = os.RemoveAll(room) }()
	var paths []string
	for i, ref := range refs {
		if _, err := os.Stat(ref); err != nil {
			return nil, hint.With(usagef("%s is no file or folder", ref), "name the catalog by its path in a git repository")
		}
		into := filepath.Join(room, strconv.Itoa(i))
		if err := os.Mkdir(into, 0o755); err != nil {
			return nil, err
		}
		at, err := revision.Checkout(ctx, rev, ref, into)
		if err != nil {
			return nil, usageError{err}
		}
		if at != "" {
			paths = append(paths, at)
		}
	}
	if len(paths) == 0 {
		return &catalog.Catalog{}, nil
	}
	return s.loadCatalog(ctx, paths...)
}
