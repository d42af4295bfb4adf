package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/graph"
)

const olmV1Resolution = "https://github.com/operator-framework/operator-controller/blob/v1.10.0/internal/operator-controller/resolve/catalog.go"

// plannedUnderV1 is what a plan under OLM v1 says of a package besides its hops.
var plannedUnderV1 = []Check{
	{
		Code: "OLM006", Severity: finding.Info,
		Title:      "a ClusterExtension that names no channel gets another release than the default channel's",
		Cause:      "OLM v1 does not read defaultChannel: without spec.source.catalog.channels it chooses from all channels (resolve/catalog.go)",
		Fix:        "tell users of OLM v1 which channel to name; 'olmkit subscription generate --olm v1 --channel' writes it",
		References: []string{olmV1Resolution},
	},
	{
		Code: "OLM007", Severity: finding.Info,
		Title: "with upgradeConstraintPolicy SelfCertified, OLM v1 goes between releases that no edge connects, also downwards",
		Cause: "SelfCertified leaves out the channel's edges, and with a pinned version OLM v1 goes from any release to any. Only CRD upgrade safety still refuses what may break objects; " +
			"migrations that the releases in between would make do not run",
		Fix:        "tell users to keep upgradeConstraintPolicy CatalogProvided; test a way that you support with 'olmkit upgrade test --olm v1', by an edge for it",
		References: []string{olmV1Resolution, "https://github.com/operator-framework/operator-controller/blob/v1.10.0/api/v1/clusterextension_types.go"},
	},
}

// PlannedUnderV1 returns what is worth knowing of p for who plans upgrades through channel, or through all if that is "", under
// OLM v1.
func PlannedUnderV1(c *catalog.Catalog, p *catalog.Package, channel string) []finding.Finding {
	s := &subject{catalog: c, schemas: &schemaReader{}, packages: []*catalog.Package{p}}
	var findings []finding.Finding
	for i, look := range []func(*catalog.Package, string) string{withoutChannel, s.selfCertified} {
		if message := look(p, channel); message != "" {
			findings = append(findings, plannedUnderV1[i].finding(hit{Subject: finding.Subject{Package: p.Name, Channel: channel}, at: p.At, message: message}))
		}
	}
	return findings
}

// withoutChannel compares what a new ClusterExtension of p gets from all channels with what it gets from the default one.
func withoutChannel(p *catalog.Package, _ string) string {
	if p.Channel(p.DefaultChannel) == nil {
		return ""
	}
	all := graph.NewV1(p, "").Next("", semver.Version{}, false)
	named := graph.NewV1(p, p.DefaultChannel).Next("", semver.Version{}, false)
	if all == named {
		return ""
	}
	return fmt.Sprintf("it gets %s; one that names the default channel %s gets %s", all, p.DefaultChannel, named)
}

// mostCertified is how many of the newest releases are looked at.
const mostCertified = 20

// selfCertified names the releases from which, and to which, OLM v1 goes where the newest release is to be, or is, installed and
// users certify the way themselves: those without an edge whose definitions CRD upgrade safety accepts.
func (s *subject) selfCertified(p *catalog.Package, channel string) string {
	g := graph.NewV1(p, channel)
	head := p.Bundle(g.Next("", semver.Version{}, false))
	if head == nil {
		return ""
	}
	others := slices.DeleteFunc(g.Bundles(), func(b *catalog.Bundle) bool { return b.Name == head.Name })
	var up, down []string
	for _, b := range others[:min(len(others), mostCertified)] {
		if !g.Follows(b, head) && s.safe(b, head) {
			up = append(up, b.Name)
		}
		if !g.Follows(head, b) && s.safe(head, b) {
			down = append(down, b.Name)
		}
	}
	var parts []string
	if len(up) > 0 {
		parts = append(parts, "up to "+head.Name+" from "+abridge(up))
	}
	if len(down) > 0 {
		parts = append(parts, "from "+head.Name+" down to "+abridge(down))
	}
	if len(parts) == 0 {
		return ""
	}
	return "without an edge, and not refused by CRD upgrade safety, it goes " + strings.Join(parts, ", and ")
}

// safe reports whether OLM v1's CRD upgrade safety accepts the definitions of to after those of from.
func (s *subject) safe(from, to *catalog.Bundle) bool {
	before, after := s.release(from), s.release(to)
	if before == nil || after == nil {
		return false // nobody knows
	}
	safe := true
	perPair(upgrade{from: before, to: after}, func(old, next *crd) {
		safe = safe && len(s.refusalsOfV1(old, next, next.converted(after))) == 0
	})
	return safe
}
