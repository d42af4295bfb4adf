// Package graph is the upgrade graph of a package: its channels' edges, declared by the author and effective under the
// rule by which OLM's resolver chooses a successor, and the walks over them.
package graph

import (
	"github.com/olmkit/olmkit/internal/catalog"
)

// Kind says which statement of a channel makes an edge.
type Kind string

// The kinds of edge.
const (
	Replaces  Kind = "replaces"
	Skips     Kind = "skips"
	SkipRange Kind = "skipRange"
)

// Edge is one upgrade that a channel speaks of.
type Edge struct {
	Package, Channel string
	From, To         string // bundle names
	Kind             Kind   // the first that applies, in the order replaces, skips, skipRange
	Declared         bool   // named by replaces or skips
	Effective        bool   // OLM would take it, were To the only candidate
	Next             bool   // OLM takes it with the whole channel to choose from
}

// Edges returns every edge of the channel, declared or effective, sorted by the versions of From, then To.
func Edges(p *catalog.Package, c *catalog.Channel) []Edge { panic("to be written") }

// Mode chooses the hops of a plan.
type Mode string

// The modes: Chain is the longest replaces chain of the channel; Next adds for every entry the hop that OLM takes from
// it; All is every effective edge.
const (
	Chain Mode = "chain"
	Next  Mode = "next"
	All   Mode = "all"
)

// Options cut a plan.
type Options struct {
	Channel  string // the package's default channel when empty
	Mode     Mode
	From, To string // bundle name or version; keep only hops at or above From and at or below To
	MaxHops  int    // keep the newest hops; 0 for no limit
}

// Plan is the hops to walk, in order, and those that the options left out.
type Plan struct {
	Package, Channel string
	Hops             []Edge // the chain's hops come first, oldest first, so that each goes on from the last
	LeftOut          []Edge
}

// NewPlan lays out the walk over one channel of p.
func NewPlan(p *catalog.Package, options Options) (Plan, error) { panic("to be written") }
