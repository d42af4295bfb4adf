package graph

import (
	"iter"
	"slices"

	"github.com/blang/semver/v4"
)

// Head returns the name of the channel's head, "" for a channel without entries and one that OLM cannot order.
func (g *Channel) Head() string {
	if len(g.candidates) == 0 {
		return ""
	}
	return g.candidates[0].Name
}

// NextOf returns the bundle to which OLM upgrades from an entry, or "" for none but itself.
func (g *Channel) NextOf(entry string) string {
	if n := g.byName[entry]; n != nil && n.next != nil && n.next != n {
		return n.next.Name
	}
	return ""
}

// Way returns the bundles that OLM installs one after the other from an installed one until nothing follows. Its last is the
// head unless users are stranded; it is empty when nothing follows at all.
func (g *Channel) Way(installed string, version semver.Version) []string {
	var way []string
	seen := map[string]bool{installed: true}
	for n := g.successor(installed, version); n != nil && !seen[n.Name]; n = n.next {
		seen[n.Name] = true
		way = append(way, n.Name)
	}
	return way
}

// Steps returns for each entry how many bundles Way has from there, and whether they lead to the head.
func (g *Channel) Steps() map[string]Steps {
	known := make(map[string]Steps, len(g.list))
	var head *node
	if len(g.candidates) > 0 {
		head = g.candidates[0]
	}
	var way []*node
	for _, n := range g.list {
		onWay := map[*node]int{}
		way = way[:0]
		for ; n != nil; n = n.next {
			if _, done := known[n.Name]; done {
				break
			}
			if at, again := onWay[n]; again {
				g.round(known, way[at:], head)
				way = way[:at]
				break
			}
			onWay[n] = len(way)
			way = append(way, n)
		}
		for _, n := range slices.Backward(way) {
			s := Steps{ToHead: n == head}
			if n.next != nil {
				after := known[n.next.Name]
				s = Steps{Count: after.Count + 1, ToHead: s.ToHead || after.ToHead}
			}
			known[n.Name] = s
		}
	}
	return known
}

// Steps are what Way makes.
type Steps struct {
	Count  int
	ToHead bool // the head is among them, or is where they begin
}

// round sets what is known of entries from each of which OLM upgrades to the next, and from the last to the first.
func (g *Channel) round(known map[string]Steps, entries []*node, head *node) {
	toHead := slices.Contains(entries, head)
	for _, n := range entries {
		known[n.Name] = Steps{Count: len(entries) - 1, ToHead: toHead}
	}
}

// Chain returns the entries along replaces from the head to the oldest, skipped ones included, the oldest first.
func (g *Channel) Chain() []string {
	var names []string
	for n := range g.chain() {
		names = append(names, n.Name)
	}
	slices.Reverse(names)
	return names
}

// chain are the entries of Chain, the newest first.
func (g *Channel) chain() iter.Seq[*node] {
	return func(yield func(*node) bool) {
		if len(g.candidates) == 0 {
			return
		}
		for n := g.candidates[0]; n != nil && yield(n) && n.Replaces != ""; n = g.byName[n.Replaces] {
		}
	}
}
