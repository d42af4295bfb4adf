package check

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/graph"
)

// longWay is how many upgrades in a row GRA017 finds worth telling.
const longWay = 10

// channelChecks look at what is more than one edge: ways, and what channels of one package say of each other.
var channelChecks = []Check{
	{
		Code: "GRA014", Severity: finding.Warning,
		Title:      "a skipRange covers no version",
		Cause:      "the upgrades that the range should allow do not exist",
		Fix:        "write the lower bound first, for example >=1.0.0 <1.2.0, or remove the range",
		References: []string{graphReference},
		run: perEntry(func(p *catalog.Package, c *catalog.Channel, e *catalog.Entry, found func(hit)) {
			if e.SkipRange == "" {
				return
			}
			if r, err := semver.ParseRange(e.SkipRange); err == nil && !slices.ContainsFunc(probes(e.SkipRange), r) && !covered(p.Bundles, e.SkipRange) {
				found(hit{at: c.Document.Place("entries", e.Index, "skipRange"), message: fmt.Sprintf("the skipRange %q of %s covers no version", e.SkipRange, e.Name)})
			}
		}),
	},
	{
		Code: "GRA015", Severity: finding.Warning,
		Title:      "a skipRange covers newer releases of its channel, and OLM takes it",
		Cause:      "OLM does not compare versions: no entry that it prefers upgrades these releases, so their users are downgraded",
		Fix:        "end the range below the entry's own version",
		References: []string{graphReference},
		run:        coversNewer,
	},
	{
		Code: "GRA016", Severity: finding.Warning,
		Title:      "skipped entries replace or skip each other in a cycle",
		Cause:      "none of them is newer than the others, so the edges between them have no effect: OLM ignores them, and opm does not report them",
		Fix:        "let the newer one replace the older, and only the head skip both",
		References: []string{graphReference},
		run:        circles,
	},
	{
		Code: "GRA017", Severity: finding.Info,
		Title: fmt.Sprintf("the upgrade path from an entry to the head has %d upgrades or more", longWay),
		Cause: "OLM installs each release on the path, one after the other; each of these upgrades takes time and must work",
		Fix:   "let newer releases skip older ones, or cover them by skipRange, if the upgrade in one step works",
		run:   longWays,
	},
	{
		Code: "GRA018", Severity: finding.Info,
		Title:      "users who switch to a channel are not upgraded",
		Cause:      "no entry of the channel replaces or skips their installed release or covers its version, although the channel's head is newer. The Subscription reports AtLatestKnown",
		Fix:        "if the switch should work, let an entry of the channel replace or skip the release, or cover it by skipRange; otherwise tell users which channels to use on the way",
		References: []string{graphReference},
		run:        switches(stays),
	},
	{
		Code: "GRA019", Severity: finding.Warning,
		Title:      "users who switch to a channel are downgraded",
		Cause:      "OLM follows the channel's replaces, skips and skipRange, and does not compare versions",
		Fix:        "remove the release's name and version from skips and skipRange of older releases",
		References: []string{graphReference},
		run:        switches(sinks),
	},
	{
		Code: "GRA020", Severity: finding.Warning,
		Title:      "an entry replaces different releases in two channels, and users who switch get no upgrade",
		Cause:      "in each channel the entry is the successor of another release. Users who have one of them and switch to the other channel have no upgrade path, although the successor is there",
		Fix:        "let the entry also skip the release that it replaces in the other channel",
		References: []string{graphReference},
		run:        contradictions,
	},
	{
		Code: "GRA021", Severity: finding.Warning,
		Title:      "the head of a channel is deprecated, and the channel is not",
		Cause:      "new Subscriptions to the channel install a release that should no longer be used, and there is no upgrade from it",
		Fix:        "publish a successor, or deprecate the channel",
		References: []string{formatReference},
		run:        deprecatedHead,
	},
	{
		Code: "GRA022", Severity: finding.Info,
		Title:      "a ClusterServiceVersion declares edges that no channel has",
		Cause:      "OLM follows the channels and ignores the ClusterServiceVersion; tools that rebuild the catalog from the bundles follow the ClusterServiceVersion",
		Fix:        "declare the same edges in both, or remove spec.replaces, spec.skips and olm.skipRange from the ClusterServiceVersion",
		References: []string{formatReference},
		run:        otherEdges,
	},
}

// writtenVersion is a version in the text of a range.
var writtenVersion = regexp.MustCompile(`\d+(\.\d+){0,2}(-[0-9A-Za-z.-]+)?`)

// covered reports whether a range covers one of bundles.
func covered(bundles []*catalog.Bundle, written string) bool {
	_, count := graph.Covered(written, bundles, 0)
	return count > 0
}

// probes are versions by which a range is known to be empty or not, with those of the package: those in the range's own text
// with their neighbours.
func probes(written string) []semver.Version {
	list := []semver.Version{{}}
	for _, text := range writtenVersion.FindAllString(written, -1) {
		v, err := semver.ParseTolerant(text)
		if err != nil {
			continue
		}
		plain := semver.Version{Major: v.Major, Minor: v.Minor, Patch: v.Patch}
		list = append(list, v, plain)
		for _, near := range []semver.Version{{Patch: 1}, {Minor: 1}, {Major: 1}} {
			up := semver.Version{Major: v.Major + near.Major, Minor: v.Minor + near.Minor, Patch: v.Patch + near.Patch}
			list = append(list, up)
			if v.Major >= near.Major && v.Minor >= near.Minor && v.Patch >= near.Patch {
				list = append(list, semver.Version{Major: v.Major - near.Major, Minor: v.Minor - near.Minor, Patch: v.Patch - near.Patch})
			}
		}
		plain.Pre = []semver.PRVersion{{VersionStr: "zz"}}
		list = append(list, plain)
	}
	return list
}

// coversNewer looks at the one upgrade that OLM takes from each entry; what becomes of users who switch channels is GRA019's matter.
var coversNewer = perGraph(func(g *graph.Channel, p *catalog.Package, c *catalog.Channel, found func(hit)) {
	newer := map[string][]string{} // by the entry that users are downgraded to
	for edge := range g.Main() {
		if edge.Kind != graph.SkipRange || !edge.Next {
			continue
		}
		if from, to := p.Bundle(edge.From), p.Bundle(edge.To); from != nil && to != nil && from.Version.GT(to.Version) {
			newer[edge.To] = append(newer[edge.To], edge.From)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(newer)) {
		e := c.Entry(name)
		found(hit{
			Subject: finding.Subject{To: name}, at: c.Document.Place("entries", e.Index, "skipRange"),
			message: fmt.Sprintf("the skipRange %q of %s covers newer releases, and OLM downgrades their users: %s", e.SkipRange, name, abridge(newer[name])),
		})
	}
})

// circles looks at channels that OLM can order; GRA001 speaks of the others.
var circles = perGraph(func(g *graph.Channel, _ *catalog.Package, c *catalog.Channel, found func(hit)) {
	if g.Err() != nil {
		return
	}
	told := map[string]bool{}
	for i := range c.Entries {
		start := &c.Entries[i]
		if told[start.Name] || !g.InCircle(start.Name) {
			continue
		}
		way := shortestCircle(g, c, start.Name)
		for _, name := range way {
			told[name] = true
		}
		found(hit{Subject: finding.Subject{From: start.Name}, at: start.At, message: fmt.Sprintf("%s replace or skip each other in a cycle", abridge(way))})
	}
})

// shortestCircle returns the entries by which one comes back to start, which is in a circle, by replaces and skips.
func shortestCircle(g *graph.Channel, c *catalog.Channel, start string) []string {
	before := map[string]string{start: ""}
	for queue := []string{start}; len(queue) > 0; queue = queue[1:] {
		e := c.Entry(queue[0])
		for _, next := range append(slices.Clone(e.Skips), e.Replaces) {
			if next == start && next != e.Name {
				var way []string
				for name := e.Name; name != ""; name = before[name] {
					way = append(way, name)
				}
				slices.Reverse(way)
				return way
			}
			if _, seen := before[next]; !seen && g.InCircle(next) {
				before[next] = e.Name
				queue = append(queue, next)
			}
		}
	}
	return nil
}

var longWays = perGraph(func(g *graph.Channel, p *catalog.Package, c *catalog.Channel, found func(hit)) {
	if g.Err() != nil {
		return
	}
	var far *catalog.Bundle
	longest, several := 0, 0
	steps := g.Steps()
	for _, e := range c.Entries {
		b := p.Bundle(e.Name)
		if b == nil {
			continue
		}
		count := steps[e.Name].Count
		if count >= longWay {
			several++
		}
		if count > longest {
			far, longest = b, count
		}
	}
	if longest >= longWay {
		way := g.Way(far.Name, far.Version)
		found(hit{
			Subject: finding.Subject{From: far.Name, To: way[len(way)-1]}, at: c.Document.Place("name"),
			message: fmt.Sprintf("from %s to %s OLM takes %d upgrades; from %d of the %d entries of channel %s it takes %d or more; the replaces chain has %d entries",
				far.Name, way[len(way)-1], longest, several, len(c.Entries), c.Name, longWay, len(g.Chain())),
		})
	}
})

// The outcomes of a switch to a channel that are worth telling.
type outcome int

const (
	rises outcome = iota // to a newer release, or there is none
	stays
	sinks
)

// switches is a check of what becomes of who has a release of one channel and switches to another that does not hold it.
func switches(wanted outcome) func(*subject, func(hit)) {
	return func(s *subject, found func(hit)) {
		perPackage(func(p *catalog.Package, found func(hit)) {
			if len(p.Channels) < 2 {
				return
			}
			origins := firstChannels(p)
			for _, target := range p.Channels {
				g := s.graph(p, target)
				head := p.Bundle(g.Head())
				if head == nil || deprecated(p, catalog.SchemaChannel, target.Name) {
					continue
				}
				list := switched(g, p, target, head, origins, wanted)
				if len(list) == 0 {
					continue
				}
				slices.Reverse(list) // the newest, which most users have, first
				message := fmt.Sprintf("no entry of channel %s upgrades %s", target.Name, abridge(list))
				if wanted == sinks {
					message = fmt.Sprintf("a switch to channel %s downgrades %s", target.Name, abridge(list))
				}
				found(hit{Subject: finding.Subject{Channel: target.Name}, at: target.Document.Place("name"), message: message})
			}
		})(s, found)
	}
}

// firstChannels returns by the names of entries the first channel of p that has each.
func firstChannels(p *catalog.Package) map[string]string {
	first := map[string]string{}
	for _, c := range slices.Backward(p.Channels) {
		for _, e := range c.Entries {
			first[e.Name] = c.Name
		}
	}
	return first
}

// switched tells of the bundles of p outside of target from which a switch to it has the wanted outcome; origins are their
// channels.
func switched(g *graph.Channel, p *catalog.Package, target *catalog.Channel, head *catalog.Bundle, origins map[string]string, wanted outcome) []string {
	var list []string
	for _, b := range p.Bundles {
		origin, there := origins[b.Name]
		if !there || target.Entry(b.Name) != nil {
			continue
		}
		next := g.Next(b.Name, b.Version)
		switch {
		case wanted == stays && next == "" && b.Version.LT(head.Version):
			list = append(list, fmt.Sprintf("%s (channel %s)", b.Name, origin))
		case wanted == sinks && next != "" && p.Bundle(next) != nil && p.Bundle(next).Version.LT(b.Version):
			list = append(list, fmt.Sprintf("%s (channel %s) to %s", b.Name, origin, next))
		}
	}
	return list
}

func deprecated(p *catalog.Package, schema, name string) bool {
	return slices.ContainsFunc(p.Deprecations, func(d catalog.Deprecation) bool { return d.Schema == schema && d.Name == name })
}

// variant is what an entry replaces in some channels.
type variant struct{ replaces, channel string } // the first of the channels

// variants are those of each entry of a package, by name.
func variants(p *catalog.Package) map[string][]variant {
	all := map[string][]variant{}
	for _, c := range p.Channels {
		for _, e := range c.Entries {
			known := slices.ContainsFunc(all[e.Name], func(v variant) bool { return v.replaces == e.Replaces })
			if e.Replaces != "" && !known {
				all[e.Name] = append(all[e.Name], variant{e.Replaces, c.Name})
			}
		}
	}
	return all
}

func contradictions(s *subject, found func(hit)) {
	for _, p := range s.packages {
		all := variants(p)
		for _, c := range p.Channels {
			contradictionsIn(s.graph(p, c), p, c, all, func(h hit) {
				h.Package, h.Channel = p.Name, c.Name
				found(h)
			})
		}
	}
}

// contradictionsIn finds the entries of c that replace something else in other channels, which leaves users of that behind.
func contradictionsIn(g *graph.Channel, p *catalog.Package, c *catalog.Channel, all map[string][]variant, found func(hit)) {
	head := p.Bundle(g.Head())
	if head == nil || deprecated(p, catalog.SchemaChannel, c.Name) {
		return
	}
	for i := range c.Entries {
		ours := &c.Entries[i]
		if ours.Replaces == "" || c.Entry(ours.Name) != ours { // of two with one name the first counts
			continue
		}
		for _, theirs := range all[ours.Name] {
			stuck := p.Bundle(theirs.replaces)
			if theirs.replaces == ours.Replaces || stuck == nil || c.Entry(stuck.Name) != nil || g.Next(stuck.Name, stuck.Version) != "" || stuck.Version.GTE(head.Version) {
				continue
			}
			found(hit{
				Subject: finding.Subject{From: stuck.Name, To: ours.Name}, at: c.Document.Place("entries", ours.Index, "replaces"),
				message: fmt.Sprintf("%s replaces %s here and %s in channel %s: users of %s who switch to channel %s are not upgraded", ours.Name, ours.Replaces, stuck.Name, theirs.channel, stuck.Name, c.Name),
			})
		}
	}
}

var deprecatedHead = perGraph(func(g *graph.Channel, p *catalog.Package, c *catalog.Channel, found func(hit)) {
	head := p.Bundle(g.Head())
	if head == nil || deprecated(p, catalog.SchemaPackage, "") || deprecated(p, catalog.SchemaChannel, c.Name) || !deprecated(p, catalog.SchemaBundle, head.Name) {
		return
	}
	i := slices.IndexFunc(p.Deprecations, func(d catalog.Deprecation) bool { return d.Schema == catalog.SchemaBundle && d.Name == head.Name })
	found(hit{Subject: finding.Subject{From: head.Name}, at: p.Deprecations[i].At, message: fmt.Sprintf("%s, the head of channel %s, is deprecated", head.Name, c.Name)})
})

// otherEdges says it once for a package.
func otherEdges(s *subject, found func(hit)) {
	for _, p := range s.packages {
		var list []string
		var first *catalog.Bundle
		for _, b := range p.Bundles {
			f := s.factsOf(b)
			if f == nil {
				continue
			}
			if what := otherEdgesOf(p, b.Name, f); what != "" {
				first = cmp.Or(first, b)
				list = append(list, what)
			}
		}
		if len(list) > 0 {
			found(hit{Subject: finding.Subject{Package: p.Name, From: first.Name}, at: s.release(first).place(""), message: abridge(list)})
		}
	}
}

// otherEdgesOf says in what the CSV contradicts every channel that holds the bundle, or "".
func otherEdgesOf(p *catalog.Package, name string, csv *facts) string {
	var replaces, skipped, covered bool // whether some channel agrees
	for _, c := range p.Channels {
		if e := c.Entry(name); e != nil {
			replaces = replaces || e.Replaces == csv.Replaces
			covered = covered || e.SkipRange == csv.SkipRange
			skipped = skipped || !slices.ContainsFunc(csv.Skips, func(s string) bool { return !slices.Contains(e.Skips, s) && e.Replaces != s })
		}
	}
	switch {
	case csv.Replaces != "" && !replaces:
		return fmt.Sprintf("%s replaces %s in its ClusterServiceVersion, but in no channel", name, csv.Replaces)
	case len(csv.Skips) > 0 && !skipped:
		return fmt.Sprintf("%s skips %s in its ClusterServiceVersion, but in no channel", name, abridge(csv.Skips))
	case csv.SkipRange != "" && !covered:
		return fmt.Sprintf("%s has the skipRange %q in its ClusterServiceVersion, but in no channel", name, csv.SkipRange)
	}
	return ""
}
