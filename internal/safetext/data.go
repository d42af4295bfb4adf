package safetext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// JSON returns a JSON document with the same meaning and nothing in it that a terminal or a CI server obeys. The characters
// concerned can only stand in its strings.
func JSON(document []byte) []byte {
	if plain(document) {
		return document
	}
	var b bytes.Buffer
	for i, r := range string(document) {
		switch {
		case r > 0xffff && obeyed(r):
			high, low := (r-0x10000)>>10+0xd800, (r-0x10000)&0x3ff+0xdc00
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		case obeyed(r), r == '#' && serverCommandAt(document[i:]):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.Bytes()
}

// plain reports whether document is nothing but ASCII to be shown, as catalogs of hundreds of MB nearly always are.
func plain(document []byte) bool {
	special := func(c byte) bool { return c >= 0x7f || c < ' ' && c != '\n' && c != '\t' }
	return !slices.ContainsFunc(document, special) && !bytes.Contains(document, []byte("##[")) && !bytes.Contains(document, []byte("##vso["))
}

// EncodeJSON writes v to w as JSON does, indented.
func EncodeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(JSON(b.Bytes()))
	return err
}

// EncodeYAML returns tree as a YAML document with the same meaning and nothing in it that a terminal or a CI server obeys,
// indented by two. It sets the style of such scalars; comments show what is in them instead. With compact, lists are not
// indented below their key, as the Kubernetes tools write them.
func EncodeYAML(tree *yaml.Node, compact bool) ([]byte, error) {
	quote(tree)
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if compact {
		encoder.CompactSeqIndent()
	}
	if err := encoder.Encode(tree); err != nil {
		return nil, err
	}
	if err := encoder.Close(); err != nil {
		return nil, err
	}
	return escapeYAML(b.Bytes()), nil
}

// YAML returns the YAML document text as EncodeYAML would, unless it is harmless as it stands.
func YAML(text []byte) ([]byte, error) {
	if plain(text) && !serverCommand.Match(text) {
		return text, nil
	}
	var tree yaml.Node
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return nil, err
	}
	return EncodeYAML(&tree, true)
}

// quote has the scalars of tree that need escapes written in double quotes, on one line.
func quote(tree *yaml.Node) {
	if tree.Kind == yaml.ScalarNode && (strings.ContainsFunc(tree.Value, obeyed) || serverCommand.MatchString(tree.Value)) {
		tree.Style = tree.Style&yaml.TaggedStyle | yaml.DoubleQuotedStyle
	}
	for _, inner := range tree.Content {
		quote(inner)
	}
}

// escapeYAML escapes what stands in double quotes, as quote has made it, or in comments.
func escapeYAML(document []byte) []byte {
	if plain(document) {
		return document
	}
	var b bytes.Buffer
	for i := 0; i < len(document); {
		r, size := utf8.DecodeRune(document[i:])
		switch {
		case obeyed(r):
			b.WriteString(escape(r))
		case r == '#' && serverCommandAt(document[i:]):
			b.WriteString(`#\x23`)
			size = 2
		default:
			b.Write(document[i : i+size])
		}
		i += size
	}
	return b.Bytes()
}

// serverCommandAt reports whether a command of the older form begins text.
func serverCommandAt(text []byte) bool {
	return bytes.HasPrefix(text, []byte("##[")) || bytes.HasPrefix(text, []byte("##vso["))
}
