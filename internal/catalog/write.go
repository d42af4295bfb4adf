package catalog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/safetext"
)

// Formats are the formats that Write knows.
var Formats = []string{"json", "yaml"}

// order is where documents of a schema stand within their package, as opm writes them (operator-registry v1.74.0,
// alpha/declcfg/write.go).
func order(schema string) int {
	switch schema {
	case SchemaPackage:
		return 0
	case SchemaChannel:
		return 1
	case SchemaBundle:
		return 2
	case SchemaDeprecations:
		return 4
	default:
		return 3
	}
}

// Sorted returns the catalog's documents in the one order in which catalogs are written: by package, then package,
// channels, bundles (by version), others and deprecations; what belongs to no package stands last.
func (c *Catalog) Sorted() []*Document {
	rank := map[*Document]int{}
	for _, p := range c.Packages {
		for i, b := range p.Bundles {
			rank[b.Document] = i
		}
	}
	documents := slices.Clone(c.Documents)
	slices.SortStableFunc(documents, func(a, b *Document) int {
		return compare(heading{a.Schema, a.Package, a.Name, rank[a]}, heading{b.Schema, b.Package, b.Name, rank[b]})
	})
	return documents
}

// heading is what decides where a document stands in a catalog; rank is the bundle's among those of its package.
type heading struct {
	Schema, Package, Name string
	rank                  int
}

func compare(a, b heading) int {
	if (a.Package == "") != (b.Package == "") {
		return strings.Compare(b.Package, a.Package)
	}
	return cmp.Or(
		strings.Compare(a.Package, b.Package),
		order(a.Schema)-order(b.Schema),
		a.rank-b.rank,
		strings.Compare(a.Schema, b.Schema),
		strings.Compare(a.Name, b.Name),
	)
}

// Write writes the documents in one of Formats, as a stream that opm and Load read back to the same and that a terminal
// and a CI server only show.
func Write(w io.Writer, format string, documents []*Document) error {
	var text []byte
	for _, d := range documents {
		var err error
		text, err = d.text(format, text)
		if err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	return nil
}

// text returns the document in one of Formats; JSON in room, if it fits there.
func (d *Document) text(format string, room []byte) ([]byte, error) {
	switch format {
	case "json":
		text, err := document.Indent(room[:0], d.JSON)
		if err != nil {
			return nil, fmt.Errorf("write %s %s: %w", d.Schema, d.Name, err)
		}
		return append(safetext.JSON(text), '\n'), nil
	case "yaml":
		text, err := toYAML(d.JSON)
		if err != nil {
			return nil, fmt.Errorf("write %s %s: %w", d.Schema, d.Name, err)
		}
		return text, nil
	default:
		return nil, fmt.Errorf("catalog format %q: there are %s", format, strings.Join(Formats, ", "))
	}
}

// toYAML writes one JSON document as a YAML document, with its own order of keys, numbers as they stand, and text of
// several lines as a block.
func toYAML(raw json.RawMessage) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	node, err := yamlNode(decoder)
	if err != nil {
		return nil, err
	}
	text, err := safetext.EncodeYAML(node, false)
	return append([]byte("---\n"), text...), err
}

func yamlNode(decoder *json.Decoder) (*yaml.Node, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case json.Delim:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		if v == '{' {
			n.Kind, n.Tag = yaml.MappingNode, "!!map"
		}
		for decoder.More() {
			inner, err := yamlNode(decoder) // in a mapping keys and values alternate
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, inner)
		}
		if len(n.Content) == 0 {
			n.Style = yaml.FlowStyle
		}
		_, err := decoder.Token()
		return n, err
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(v)}, nil
	case string:
		n := &yaml.Node{Kind: yaml.ScalarNode}
		n.SetString(v)
		if n.Style == 0 && !document.IsString(v) {
			n.Style = yaml.DoubleQuotedStyle
		}
		return n, nil
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
	}
}
