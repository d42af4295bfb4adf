package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/graph"
)

// stranded says each break of the graph once: the entries from which users find no way to the head, as far as they end at
// the same entry, or at entries between whose versions no other leads to the head.
var stranded = perGraph(func(g *graph.Channel, p *catalog.Package, c *catalog.Channel, found func(hit)) {
	head := g.Head()
	if head == "" {
		return
	}
	for _, b := range breaks(g, p, c) {
		newest := b.ends[len(b.ends)-1]
		where := "its users stay on it forever"
		if b.before > 0 {
			names := make([]string, len(b.ends))
			for i, e := range b.ends {
				names[i] = e.Name
			}
			where = "their users' upgrades end at " + abridge(names)
			if len(names) == b.before+1 {
				where = "OLM offers their users no upgrade"
			}
		}
		found(hit{
			Subject: finding.Subject{From: newest.Name, To: head}, at: newest.At,
			message: fmt.Sprintf("from %s%s no upgrade path leads to %s, the head of channel %s: %s", newest.Name, releasesBefore(b.before), head, c.Name, where),
		})
	}
})

func releasesBefore(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return " and 1 release before it"
	}
	return fmt.Sprintf(" and %d releases before it", n)
}

// gap is a break of the graph.
type gap struct {
	ends   []*catalog.Entry // where users stay, by version
	before int              // how many entries more have no way to the head for it
}

// breaks returns those of a channel, by version.
func breaks(g *graph.Channel, p *catalog.Package, c *catalog.Channel) []gap {
	steps := g.Steps()
	entries := byVersion(p, c)
	count := map[string]int{} // of the entries whose users end at each
	ends := endings(g, entries)
	for _, e := range entries {
		if !steps[e.Name].ToHead {
			count[ends[e.Name]]++
		}
	}
	var list []gap
	open := false
	for _, e := range entries {
		switch {
		case steps[e.Name].ToHead:
			open = false
		case count[e.Name] > 0:
			if !open {
				list, open = append(list, gap{before: -1}), true // the newest end is not before itself
			}
			last := &list[len(list)-1]
			last.ends = append(last.ends, e)
			last.before += count[e.Name]
		}
	}
	return list
}

// byVersion returns the entries of a channel by the versions of their bundles. Of two with one name the first counts.
func byVersion(p *catalog.Package, c *catalog.Channel) []*catalog.Entry {
	list := make([]*catalog.Entry, 0, len(c.Entries))
	seen := map[string]bool{}
	for i := range c.Entries {
		if e := &c.Entries[i]; !seen[e.Name] {
			seen[e.Name] = true
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, func(a, b *catalog.Entry) int {
		x, y := p.Bundle(a.Name), p.Bundle(b.Name)
		switch {
		case x == nil && y == nil:
			return strings.Compare(a.Name, b.Name)
		case x == nil:
			return -1
		case y == nil:
			return 1
		}
		return x.Version.Compare(y.Version)
	})
	return list
}

// endings returns for each entry the one where users of it end up; of entries that OLM goes round, the first that it comes to.
func endings(g *graph.Channel, entries []*catalog.Entry) map[string]string {
	ends := map[string]string{}
	for _, e := range entries {
		var way []string
		on := map[string]bool{}
		at := e.Name
		for next := at; next != "" && !on[next] && ends[next] == ""; next = g.NextOf(next) {
			on[next] = true
			way = append(way, next)
			at = next
		}
		end := at
		if next := g.NextOf(at); next != "" {
			end = next
			if known := ends[next]; known != "" {
				end = known
			}
		}
		for _, name := range way {
			ends[name] = end
		}
	}
	return ends
}
