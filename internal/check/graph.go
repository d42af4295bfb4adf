package check

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/graph"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/nearest"
)

const graphReference = "https://olm.operatorframework.io/docs/concepts/olm-architecture/operator-catalog/creating-an-update-graph/"

// graphChecks look at the upgrade graph of each channel.
var graphChecks = []Check{
	{
		Code: "GRA001", Severity: finding.Error,
		Title:      "a channel has no head, more than one head, or a cycle",
		Cause:      "OLM and opm refuse a channel that does not lead to exactly one newest release: no Subscription to it is upgraded",
		Fix:        "let the newest entry replace or skip the others, directly or along a chain, and nothing replace it",
		References: []string{graphReference},
		run: perGraph(func(g *graph.Channel, _ *catalog.Package, c *catalog.Channel, found func(hit)) {
			if err := g.Err(); err != nil {
				found(hit{at: c.Document.Place("entries"), message: err.Error(), fix: hint.Of(err)})
			}
		}),
	},
	{
		Code: "GRA002", Severity: finding.Error,
		Title:      "an entry is neither on the head's replaces chain nor skipped",
		Cause:      "opm refuses the catalog: the entry is cut off from the upgrade graph",
		Fix:        "let an entry of the chain replace or skip it, or remove it from the channel",
		References: []string{graphReference},
		run:        cutOff,
	},
	{
		Code: "GRA003", Severity: finding.Error,
		Title: "no upgrade path leads from an entry to the head",
		Cause: "no entry that OLM's resolver would choose replaces or skips the entry or covers its version: the Subscription silently stays at it, " +
			"and so do those of earlier releases whose upgrade path ends there",
		Fix:        "let the head, or an entry on its replaces chain that is not skipped, replace or skip the entry, or cover its version by skipRange",
		References: []string{graphReference},
		run:        stranded,
	},
	{
		Code: "GRA004", Severity: finding.Error,
		Title:      "a skipRange is no valid version range",
		Cause:      "opm refuses the catalog; OLM ignores the range, so the upgrades that it allows do not exist",
		Fix:        `write a range as https://pkg.go.dev/github.com/blang/semver/v4#ParseRange says, for example ">=1.0.0 <1.2.0"`,
		References: []string{graphReference},
		run: perEntry(func(_ *catalog.Package, c *catalog.Channel, e *catalog.Entry, found func(hit)) {
			if e.SkipRange == "" {
				return
			}
			if _, err := semver.ParseRange(e.SkipRange); err != nil {
				found(hit{at: c.Document.Place("entries", e.Index, "skipRange"), message: fmt.Sprintf("the skipRange %q of %s is no valid version range: %v", e.SkipRange, e.Name, err)})
			}
		}),
	},
	{
		Code: "GRA005", Severity: finding.Error,
		Title:      "an entry replaces or skips itself, or skips an empty name",
		Cause:      "opm refuses an empty skip; an entry that replaces or skips itself is no upgrade, and OLM never chooses it as head",
		Fix:        "remove the name",
		References: []string{graphReference},
		run: perEntry(func(_ *catalog.Package, c *catalog.Channel, e *catalog.Entry, found func(hit)) {
			if e.Replaces != "" && e.Replaces == e.Name {
				found(hit{at: c.Document.Place("entries", e.Index, "replaces"), message: e.Name + " replaces itself"})
			}
			for i, s := range e.Skips {
				switch s {
				case "":
					found(hit{at: c.Document.Place("entries", e.Index, "skips", i), message: e.Name + " skips an empty name"})
				case e.Name:
					found(hit{at: c.Document.Place("entries", e.Index, "skips", i), message: e.Name + " skips itself"})
				}
			}
		}),
	},
	{
		Code: "GRA006", Severity: finding.Info,
		Title:      "the oldest entry replaces one that is no longer in the catalog",
		Cause:      "this is valid, and users of that release can upgrade. But it can no longer be installed from this catalog, so the upgrade cannot be tested from it",
		Fix:        "keep the edge as long as users can have that release",
		References: []string{graphReference},
		run:        dangling(false),
	},
	{
		Code: "GRA007", Severity: finding.Warning,
		Title:      "an entry replaces or skips a name that looks misspelt",
		Cause:      "a name that was never in the package is no edge: users of the intended release are not upgraded",
		Fix:        "correct the name",
		References: []string{graphReference},
		run:        dangling(true),
	},
	{
		Code: "GRA008", Severity: finding.Warning,
		Title:      "an upgrade goes to a lower version",
		Cause:      "OLM follows replaces and skips by name and does not compare versions: users are downgraded",
		Fix:        "let the newer release replace the older",
		References: []string{graphReference},
		run:        backwards,
	},
	{
		Code: "GRA009", Severity: finding.Warning,
		Title:      "a skipRange covers the entry's own version",
		Cause:      "OLM finds the entry as its own successor, and no other until a newer range covers it",
		Fix:        "end the range below the entry's version",
		References: []string{graphReference},
		run:        perPackage(ownRanges),
		alone:      ofCSV(checkOwnRange),
	},
	{
		Code: "GRA010", Severity: finding.Info,
		Title:      "OLM never takes some edges that the channel declares",
		Cause:      "from each release OLM takes the one edge that ends nearest to the head; other edges have an effect only in older catalogs",
		Fix:        "nothing to do, unless users must install the release in between",
		References: []string{graphReference},
		run:        untaken,
	},
	{
		Code: "GRA011", Severity: finding.Info,
		Title:      "upgrades exist by skipRange only, without replaces or skips",
		Cause:      "OLM takes them: users skip the releases in between, so each of these upgrades must work",
		Fix:        "test them with 'olmkit upgrade test --edges next'",
		References: []string{graphReference},
		run:        jumps,
	},
	{
		Code: "GRA012", Severity: finding.Warning,
		Title:      "the default channel's head is older than the head of another channel without pre-releases",
		Cause:      "a Subscription that names no channel does not get the newest release",
		Fix:        "set defaultChannel to the channel that new users should take",
		References: []string{formatReference},
		run:        oldDefault,
	},
	{
		Code: "GRA013", Severity: finding.Warning,
		Title:      "the version in a bundle's name differs from the bundle's version",
		Cause:      "people and tools read the version from the name, but OLM compares the bundle's version",
		Fix:        "name the bundle <package>.v<version>; write '-' for the '+' of build metadata, which names cannot contain",
		References: []string{formatReference},
		run:        perContent(misnamed),
	},
}

// perEntry is a check that looks at one entry at a time.
func perEntry(look func(*catalog.Package, *catalog.Channel, *catalog.Entry, func(hit))) func(*subject, func(hit)) {
	return perChannel(func(p *catalog.Package, c *catalog.Channel, found func(hit)) {
		for i := range c.Entries {
			e := &c.Entries[i]
			look(p, c, e, func(h hit) {
				if h.To == "" {
					h.To = e.Name
				}
				found(h)
			})
		}
	})
}

func covers(e *catalog.Entry, b *catalog.Bundle) bool {
	if e.SkipRange == "" || b == nil {
		return false
	}
	r, err := semver.ParseRange(e.SkipRange)
	return err == nil && r(b.Version)
}

// ownRanges tells of all entries of a package at once: where there are many, that is how its author writes ranges.
func ownRanges(p *catalog.Package, found func(hit)) {
	var first hit
	var names []string
	for _, c := range p.Channels {
		for i := range c.Entries {
			e := &c.Entries[i]
			if !covers(e, p.Bundle(e.Name)) || slices.Contains(names, e.Name) {
				continue
			}
			if names = append(names, e.Name); len(names) == 1 {
				first = hit{
					Subject: finding.Subject{Channel: c.Name, To: e.Name}, at: c.Document.Place("entries", e.Index, "skipRange"),
					message: fmt.Sprintf("the skipRange %q of %s covers its own version", e.SkipRange, e.Name),
				}
			}
		}
	}
	if len(names) > 1 {
		first.Subject = finding.Subject{}
		first.message = fmt.Sprintf("the skipRanges of %d releases each cover their own version: %s", len(names), abridge(names))
	}
	if len(names) > 0 {
		found(first)
	}
}

// cutOff follows opm: operator-registry v1.74.0, alpha/model/model.go, validateReplacesChain. It leaves a channel alone
// that has not exactly one head, which is GRA001's.
var cutOff = perGraph(func(g *graph.Channel, _ *catalog.Package, c *catalog.Channel, found func(hit)) {
	if g.Err() != nil || len(c.Entries) == 0 {
		return
	}
	replaced, skipped := map[string]bool{}, map[string]bool{}
	for _, e := range c.Entries {
		replaced[e.Replaces] = true
		for _, s := range e.Skips {
			skipped[s] = true
		}
	}
	reached := map[string]bool{}
	for _, e := range c.Entries {
		if replaced[e.Name] || skipped[e.Name] {
			continue
		}
		for at := &e; at != nil && !reached[at.Name]; at = c.Entry(at.Replaces) {
			reached[at.Name] = true
			if skipped[at.Replaces] {
				break
			}
		}
	}
	for _, e := range c.Entries {
		if !reached[e.Name] && !skipped[e.Name] {
			found(hit{Subject: finding.Subject{From: e.Name}, at: e.At, message: fmt.Sprintf("%s is not on the replaces chain of the head, and no entry skips it", e.Name)})
		}
	}
})

// versionInName splits what comes before the version from it.
var versionInName = regexp.MustCompile(`^(.*?)[.-]?v?(\d+\.\d+\.\d+.*)$`)

// prefix is what a bundle's name says before the version, and whether it says a version at all.
func prefix(name string) (string, bool) {
	m := versionInName.FindStringSubmatch(name)
	if m == nil {
		return name, false
	}
	return m[1], true
}

// dangling looks at replaces and skips of names that the package has not: with slips set at those that nothing explains,
// else at replaces that a release explains which has left the catalog.
func dangling(slips bool) func(*subject, func(hit)) {
	return func(s *subject, found func(hit)) {
		for _, p := range s.packages {
			names := &bundleNames{pkg: p}
			one := &subject{packages: []*catalog.Package{p}}
			perEntry(func(p *catalog.Package, c *catalog.Channel, e *catalog.Entry, found func(hit)) {
				names.dangling(slips, c, e, found)
			})(one, found)
		}
	}
}

// bundleNames are those of a package, taken apart once something is asked about them.
type bundleNames struct {
	pkg      *catalog.Package
	prefixes map[string]bool // and the package's name
	of       map[string]bool // the same without that
	ends     map[string]bool // what stands behind a dot of some name
	asked    map[string]bool // names, and whether they are slips
}

func (n *bundleNames) dangling(slips bool, c *catalog.Channel, e *catalog.Entry, found func(hit)) {
	gone := func(name string) bool { return name != "" && c.Entry(name) == nil && n.pkg.Bundle(name) == nil }
	if gone(e.Replaces) && n.slip(e.Replaces) == slips {
		message := fmt.Sprintf("%s replaces %s, which the catalog does not contain", e.Name, e.Replaces)
		if slips {
			message = fmt.Sprintf("%s replaces %s, which is not named like the bundles of package %s", e.Name, e.Replaces, n.pkg.Name)
		}
		found(hit{Subject: finding.Subject{From: e.Replaces, To: e.Name}, at: c.Document.Place("entries", e.Index, "replaces"), message: message})
	}
	if !slips {
		return
	}
	for i, s := range e.Skips {
		if gone(s) && n.slip(s) {
			found(hit{
				Subject: finding.Subject{From: s, To: e.Name}, at: c.Document.Place("entries", e.Index, "skips", i),
				message: fmt.Sprintf("%s skips %s, which is not named like the bundles of package %s", e.Name, s, n.pkg.Name),
			})
		}
	}
}

// slip reports whether a name that the package has not looks like a slip of the pen for one that it has.
func (n *bundleNames) slip(name string) bool {
	if n.asked == nil {
		n.asked, n.ends = map[string]bool{}, map[string]bool{}
		n.prefixes, n.of = map[string]bool{n.pkg.Name: true}, map[string]bool{}
		for _, b := range n.pkg.Bundles {
			before, _ := prefix(b.Name)
			n.prefixes[before], n.of[before] = true, true
			for rest, dotted := b.Name, true; dotted; {
				if _, rest, dotted = strings.Cut(rest, "."); dotted {
					n.ends[rest] = true
				}
			}
		}
	}
	answer, known := n.asked[name]
	if !known {
		answer = n.findSlip(name)
		n.asked[name] = answer
	}
	return answer
}

func (n *bundleNames) findSlip(name string) bool {
	if n.ends[name] {
		return true // the package's name was left out
	}
	before, versioned := prefix(name)
	if !versioned {
		return slices.ContainsFunc(n.pkg.Bundles, func(b *catalog.Bundle) bool { return near(b.Name, name) })
	}
	if n.prefixes[before] {
		return false
	}
	for known := range n.of {
		if near(known, before) {
			return true
		}
	}
	return false
}

// near reports whether two names differ by two slips at most.
func near(a, b string) bool {
	return len(a)-len(b) <= 2 && len(b)-len(a) <= 2 && nearest.Distance(a, b) <= 2
}

var backwards = perGraph(func(g *graph.Channel, p *catalog.Package, c *catalog.Channel, found func(hit)) {
	for edge := range g.Main() {
		from, to := p.Bundle(edge.From), p.Bundle(edge.To)
		if from == nil || to == nil || !to.Version.LT(from.Version) {
			continue
		}
		e := c.Entry(edge.To)
		if edge.Kind == graph.Skips && !edge.Next {
			continue // skipping a faulty newer release withdraws it; only who is taken there goes back
		}
		if edge.Kind == graph.SkipRange {
			continue // GRA015's matter
		}
		field := string(edge.Kind)
		found(hit{
			Subject: finding.Subject{From: edge.From, To: edge.To}, at: c.Document.Place("entries", e.Index, field),
			message: fmt.Sprintf("%s (%s) upgrades by %s to %s (%s), which is lower", edge.From, from.Version, edge.Kind, edge.To, to.Version),
		})
	}
})

var untaken = perGraph(func(g *graph.Channel, _ *catalog.Package, c *catalog.Channel, found func(hit)) {
	if g.Err() != nil {
		return
	}
	var edges []string
	for e := range g.Main() {
		if e.Declared && !e.Next {
			edges = append(edges, e.From+" → "+e.To)
		}
	}
	if len(edges) > 0 {
		found(hit{at: c.Document.Place("name"), message: fmt.Sprintf("OLM never takes these edges of channel %s (%d): %s", c.Name, len(edges), abridge(edges))})
	}
})

var jumps = perGraph(func(g *graph.Channel, _ *catalog.Package, c *catalog.Channel, found func(hit)) {
	var edges []string
	for e := range g.Main() {
		if !e.Declared && e.Next {
			edges = append(edges, e.From+" → "+e.To)
		}
	}
	if len(edges) > 0 {
		found(hit{at: c.Document.Place("name"), message: fmt.Sprintf("upgrades of channel %s by skipRange only (%d): %s", c.Name, len(edges), abridge(edges))})
	}
})

// abridged is how many things a message names.
const abridged = 5

// abridge joins the first few of list.
func abridge(list []string) string { return abridgeOf(list, len(list)) }

// abridgeOf is abridge for a list of which there are count, and only the first are known.
func abridgeOf(list []string, count int) string {
	if count <= abridged {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:abridged], ", "), count-abridged)
}

// sentences joins the first few of list, which hold commas themselves.
func sentences(list []string) string {
	if len(list) <= abridged {
		return strings.Join(list, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(list[:abridged], "; "), len(list)-abridged)
}

// headOf returns the bundle at the channel's head, or nil.
func headOf(p *catalog.Package, c *catalog.Channel) *catalog.Bundle {
	return p.Bundle(graph.New(p, c).Head())
}

func oldDefault(s *subject, found func(hit)) {
	for _, p := range s.packages {
		if c := p.Channel(p.DefaultChannel); c != nil {
			s.oldDefaultOf(p, c, func(h hit) {
				h.Package = p.Name
				found(h)
			})
		}
	}
}

// oldDefaultOf finds the first channel of p whose head is newer than that of the default channel c.
func (s *subject) oldDefaultOf(p *catalog.Package, c *catalog.Channel, found func(hit)) {
	head := p.Bundle(s.graph(p, c).Head())
	if head == nil {
		return
	}
	for _, other := range p.Channels {
		b := p.Bundle(s.graph(p, other).Head())
		if b == nil || other == c || deprecated(p, catalog.SchemaChannel, other.Name) || unstable.MatchString(other.Name) || len(b.Version.Pre) > 0 || !b.Version.GT(semver.Version{Major: head.Version.Major, Minor: head.Version.Minor, Patch: head.Version.Patch}) {
			continue
		}
		found(hit{
			Subject: finding.Subject{Channel: c.Name}, at: p.Document.Place("defaultChannel"),
			message: fmt.Sprintf("the head of default channel %s is %s, the head of channel %s is %s", c.Name, head.Version, other.Name, b.Version),
		})
		return
	}
}

// unstable are names by which authors call channels that are meant to be ahead.
var unstable = regexp.MustCompile(`(?i)alpha|beta|candidate|preview|dev|edge|fast|latest|nightly|next|rc|test|tech|unstable`)

var misnamed = perBundle(func(_ *catalog.Package, b *catalog.Bundle, found func(hit)) {
	if b.Version.String() != "0.0.0" && !hasRelease(b) && namesAnother(b.Name, b.Version) {
		found(hit{at: b.Document.Place("name"), message: fmt.Sprintf("bundle %s has version %s", b.Name, b.Version)})
	}
})

// namesAnother reports whether a name says a version, and another than v.
func namesAnother(name string, v semver.Version) bool {
	m := versionInName.FindStringSubmatch(name)
	if m == nil {
		return false
	}
	named, err := semver.Parse(m[2])
	return err == nil && named.Compare(v) != 0 && m[2] != versionForName(v)
}

// versionForName returns a version as the name of a Kubernetes object can say it: in small letters, and with "-" for "+"
// (k8s.io/apimachinery v0.36.3, pkg/util/validation, IsDNS1123Subdomain).
func versionForName(v semver.Version) string {
	return strings.ToLower(strings.ReplaceAll(v.String(), "+", "-"))
}

// hasRelease reports whether the bundle has a release beside its version: then CAT012 holds its name.
func hasRelease(b *catalog.Bundle) bool {
	return slices.ContainsFunc(b.Properties, func(p catalog.Property) bool {
		var v struct {
			Release string `json:"release"`
		}
		return p.Type == catalog.PropertyPackage && document.Decode(p.Value, &v) == nil && v.Release != ""
	})
}
