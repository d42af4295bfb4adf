package bundle

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"go.yaml.in/yaml/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmkit/olmkit/internal/finding"
)

// Description is what Go sources say of a kind in one version, by markers and comments.
type Description struct {
	At          finding.Location // of the Go type
	DisplayName string           // "" if no marker says it
	Text        string           // the type's comment
	Order       *int             // place among the owned CRDs; nil: after those that have one
	Resources   []Resource
	Spec        []Descriptor
	Status      []Descriptor
}

// Resource is a kind of object that objects of the described kind are made of.
type Resource = v1alpha1.APIResourceReference

// Descriptor is what a marker says of a field below spec or status.
type Descriptor struct {
	Path         string // in JSON, below spec or status
	DisplayName  string // "" if the marker does not say it
	Text         string // the field's comment
	XDescriptors []string
	Order        *int // place among the descriptors; nil: after those that have one
}

// own states in the CSV that it owns one version of c. What a marker says wins over the base, as with operator-sdk, and
// what none says stays as the base has it; comments in Go only fill what the base leaves open.
func (g *generator) own(c *crd, version apiextensionsv1.CustomResourceDefinitionVersion) {
	said := g.describe(c, version.Name)
	owned := field(g.csv, "spec", "customresourcedefinitions", "owned")
	if owned == nil || owned.Kind != yaml.SequenceNode {
		owned = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		set(g.csv, owned, "spec", "customresourcedefinitions", "owned")
	}
	owned.Style = 0
	made := v1alpha1.CRDDescription{
		Name: c.CustomResourceDefinition.Name, Version: version.Name, Kind: c.Spec.Names.Kind,
		DisplayName: cmp.Or(said.DisplayName, displayName(c.Spec.Names.Kind)), Description: said.Text,
	}
	if version.Schema != nil && version.Schema.OpenAPIV3Schema != nil {
		made.Description = cmp.Or(made.Description, version.Schema.OpenAPIV3Schema.Description)
	}
	made.Description = cmp.Or(made.Description, made.Kind)
	at := slices.IndexFunc(owned.Content, func(n *yaml.Node) bool {
		return textAt(n, "name") == made.Name && textAt(n, "version") == made.Version
	})
	if at < 0 {
		at = len(owned.Content)
		owned.Content = append(owned.Content, nodeOf(made))
	}
	entry := owned.Content[at]
	set(entry, text(made.Kind), "kind")
	g.state(entry, "displayName", said.DisplayName, made.DisplayName, said.At)
	if textAt(entry, "description") == "" {
		set(entry, text(made.Description), "description")
	}
	resources(entry, said.Resources)
	g.descriptors(entry, "specDescriptors", said.Spec, said.At)
	g.descriptors(entry, "statusDescriptors", said.Status, said.At)
	if said.Order != nil {
		g.ranks[entry] = *said.Order
	}
}

func (g *generator) describe(c *crd, version string) Description {
	if g.Describe == nil {
		return Description{}
	}
	kind := schema.GroupVersionKind{Group: c.Spec.Group, Version: version, Kind: c.Spec.Names.Kind}
	said, err := g.Describe(kind)
	if err != nil {
		g.fail(err)
		return Description{}
	}
	if said == nil {
		g.note("%s: the Go sources do not declare %s %s", c.ID(), kind.GroupVersion(), kind.Kind)
		return Description{}
	}
	return *said
}

// state sets a text to what a marker says, or else, where the base is silent, to fallback.
func (g *generator) state(n *yaml.Node, key, marker, fallback string, at finding.Location) {
	switch present := textAt(n, key); {
	case marker == "" && present == "":
		set(n, text(fallback), key)
	case marker != "" && present != marker:
		if present != "" {
			g.note("%s: the marker's %s %q takes the place of the base CSV's %q", at, key, marker, present)
		}
		set(n, text(marker), key)
	}
}

// resources adds what the entry does not list yet.
func resources(entry *yaml.Node, said []Resource) {
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	if present := field(entry, "resources"); present != nil && present.Kind == yaml.SequenceNode {
		list = present
		list.Style = 0
	}
	for _, r := range said {
		if !slices.ContainsFunc(list.Content, func(n *yaml.Node) bool {
			return textAt(n, "kind") == r.Kind && textAt(n, "version") == r.Version && textAt(n, "name") == r.Name
		}) {
			list.Content = append(list.Content, nodeOf(r))
		}
	}
	if len(list.Content) > 0 {
		put(entry, "resources", list)
	}
}

// put is set, of one key, and adds a new one at the end.
func put(n *yaml.Node, key string, value *yaml.Node) {
	if keyIndex(n, key) < 0 {
		n.Content = append(n.Content, text(key), value)
		return
	}
	set(n, value, key)
}

// descriptors merges what markers say of fields into one list of an owned CRD: by order, then as the base has them, then
// by path.
func (g *generator) descriptors(entry *yaml.Node, key string, said []Descriptor, at finding.Location) {
	if len(said) == 0 {
		return
	}
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	if present := field(entry, key); present != nil && present.Kind == yaml.SequenceNode {
		list.Content = present.Content
	}
	said = slices.Clone(said)
	slices.SortStableFunc(said, func(a, b Descriptor) int { return cmp.Compare(a.Path, b.Path) })
	ranks := map[*yaml.Node]int{}
	for _, d := range said {
		made := v1alpha1.SpecDescriptor{
			Path: d.Path, DisplayName: cmp.Or(d.DisplayName, displayName(d.Path[strings.LastIndex(d.Path, ".")+1:])),
			Description: d.Text, XDescriptors: d.XDescriptors,
		}
		i := slices.IndexFunc(list.Content, func(n *yaml.Node) bool { return textAt(n, "path") == d.Path })
		if i < 0 {
			i = len(list.Content)
			list.Content = append(list.Content, nodeOf(made))
		}
		n := list.Content[i]
		g.state(n, "displayName", d.DisplayName, made.DisplayName, at)
		if textAt(n, "description") == "" && d.Text != "" {
			set(n, text(d.Text), "description")
		}
		if len(d.XDescriptors) > 0 {
			set(n, nodeOf(d.XDescriptors), "x-descriptors")
		}
		if d.Order != nil {
			ranks[n] = *d.Order
		}
	}
	byRank(list.Content, ranks, "path")
	put(entry, key, list)
}

// byRank puts the nodes with a rank first, those of one rank by their field key; the others stay in their order.
func byRank(nodes []*yaml.Node, ranks map[*yaml.Node]int, key string) {
	rank := func(n *yaml.Node) int {
		if r, ranked := ranks[n]; ranked {
			return r
		}
		return math.MaxInt
	}
	slices.SortStableFunc(nodes, func(a, b *yaml.Node) int {
		order := cmp.Compare(rank(a), rank(b))
		if order == 0 && rank(a) != math.MaxInt {
			order = cmp.Compare(textAt(a, key), textAt(b, key))
		}
		return order
	})
}
