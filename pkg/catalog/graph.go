package catalog

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/graph"
)

// Graph is the upgrade graph of one channel.
type Graph struct {
	Package, Channel string
	Head             string   // the bundle that OLM installs for a new subscription; "" when it can't order the channel
	Problem          string   // why OLM cannot order the channel: then it upgrades nobody
	Entries          []string // the channel's bundles, by version
	Edges            []Edge   // by the versions of From, then To

	drawing graph.Drawing
}

// Edge is one upgrade, from one bundle of a channel to another.
type Edge struct {
	From, To string
	Kind     string // what makes it: replaces, skips or skipRange
	Declared bool   // an entry names it by replaces or skips
	Next     bool   // OLM takes it: from each bundle at most one
}

// Graph returns the upgrade graph of a channel: the edges that its entries declare, and those that OLM takes. An empty package
// name means the only package, an empty channel name the package's default channel. It returns an error when the catalog does not have
// these. What is wrong with a channel is the Graph's Problem.
func (c *Catalog) Graph(packageName, channelName string) (*Graph, error) {
	p, err := c.find(packageName)
	if err != nil {
		return nil, err
	}
	channel := p.Channel(cmp.Or(channelName, p.DefaultChannel))
	if channel == nil {
		return nil, fmt.Errorf("the package %s has no channel %q: it has %s", p.Name, cmp.Or(channelName, p.DefaultChannel), strings.Join(channels(p), ", "))
	}
	d := graph.NewDrawing(p, channel, false)
	g := &Graph{Package: p.Name, Channel: channel.Name, Head: d.Head, Problem: d.Problem, drawing: d}
	for _, e := range d.Entries {
		g.Entries = append(g.Entries, e.Name)
	}
	for _, e := range d.Edges {
		g.Edges = append(g.Edges, Edge{From: e.From, To: e.To, Kind: string(e.Edge), Declared: e.Declared, Next: e.Next})
	}
	return g, nil
}

func channels(p *catalog.Package) []string {
	var names []string
	for _, c := range p.Channels {
		names = append(names, c.Name)
	}
	return names
}

// Draw writes the graph to w in one of GraphFormats, as 'olmkit catalog graph' does. Another format is an error, and one of w's is returned.
func (g *Graph) Draw(w io.Writer, format string) error {
	if !slices.Contains(GraphFormats, format) {
		return fmt.Errorf("draw a graph: the format %q is not one of %s", format, strings.Join(GraphFormats, ", "))
	}
	return graph.Draw(w, format, []graph.Drawing{g.drawing})
}

// PlanOptions choose the hops of a plan.
type PlanOptions struct {
	Package  string // "" for the only package
	Channel  string // "" for the package's default channel
	Edges    string // "chain" (the head's replaces chain), "next" (and the hop that OLM takes from every entry; the default) or "all" (every hop that OLM could take)
	From, To string // bundle name or version: only hops from From or above, to To or below
	MaxHops  int    // only the newest so many hops; 0 for all
}

// Plan is what a test of a channel's upgrades does, in this order.
type Plan struct {
	Package, Channel string
	Install          string // the bundle to install first; "" when there is nothing to do
	Hops             []Edge // the hops of the replaces chain come first, the oldest first
}

// Plan returns the hops of a channel as 'olmkit upgrade plan' does. It returns an error when an option names what the
// catalog does not have, when OLM cannot order the channel, and when there are more than 10,000 hops.
func (c *Catalog) Plan(options PlanOptions) (*Plan, error) {
	p, err := c.find(options.Package)
	if err != nil {
		return nil, err
	}
	mode := graph.Mode(cmp.Or(options.Edges, string(graph.Next)))
	if !slices.Contains(graph.Modes, mode) {
		return nil, fmt.Errorf("plan upgrades: edges %q: they are chain, next or all", options.Edges)
	}
	plan, err := graph.NewPlan(p, graph.Options{Channel: options.Channel, Mode: mode, From: options.From, To: options.To, MaxHops: options.MaxHops})
	if err != nil {
		return nil, fmt.Errorf("plan upgrades: %w", err)
	}
	if plan.More > 0 {
		return nil, fmt.Errorf("plan upgrades: there are %d hops or more, and a plan has at most %d: choose fewer by Edges, From, To or MaxHops", plan.Count(), graph.MostHops)
	}
	result := &Plan{Package: plan.Package, Channel: plan.Channel, Install: plan.First()}
	for _, e := range plan.Hops {
		result.Hops = append(result.Hops, Edge{From: e.From, To: e.To, Kind: string(e.Kind), Declared: e.Declared, Next: e.Next})
	}
	return result, nil
}
