package bundle

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/safetext"
)

// nodeOf returns v as a YAML tree, by way of its JSON.
func nodeOf(v any) *yaml.Node {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic(fmt.Sprintf("encode a %T: %v", v, err)) // only ever called with types that encode
	}
	return nodeOfJSON(b.Bytes())
}

// nodeOfJSON returns valid JSON as a YAML tree, with its keys in order and its numbers as they are written.
func nodeOfJSON(raw []byte) *yaml.Node {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return decodeNode(decoder)
}

func decodeNode(decoder *json.Decoder) *yaml.Node {
	token, err := decoder.Token()
	if err != nil {
		panic(fmt.Sprintf("decode JSON that was parsed before: %v", err))
	}
	switch token := token.(type) {
	case json.Delim:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		if token == '[' {
			n = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		}
		for decoder.More() {
			n.Content = append(n.Content, decodeNode(decoder))
		}
		if _, err := decoder.Token(); err != nil {
			panic(fmt.Sprintf("decode JSON that was parsed before: %v", err))
		}
		if len(n.Content) == 0 {
			n.Style = yaml.FlowStyle
		}
		return n
	case json.Number:
		// Tagged as what the text resolves to, so that the encoder adds neither quotes nor a tag.
		n := &yaml.Node{Kind: yaml.ScalarNode, Value: token.String()}
		n.Tag = n.ShortTag()
		return n
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(token)}
	case string:
		return text(token)
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
	}
}

// text returns a string scalar, quoted where a reader of YAML 1.1, as the Kubernetes tools are, would take the plain text
// for something else.
func text(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if len(s) <= 40 && s != "" && !plain(s) {
		if documents, err := document.Parse("", []byte(s+"\n")); err == nil && len(documents) == 1 && documents[0].JSON[0] != '"' &&
			documents[0].JSON[0] != '{' && documents[0].JSON[0] != '[' {
			n.Style = yaml.DoubleQuotedStyle
		} else if err == nil && len(documents) == 0 {
			n.Style = yaml.DoubleQuotedStyle
		}
	}
	if strings.HasPrefix(strings.TrimLeft(s, " \n"), "\t") {
		n.Style = yaml.DoubleQuotedStyle // a literal that begins with a tab cannot be read
	}
	return n
}

// words are what YAML 1.1 takes for true, false or null, in whatever case.
var words = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}

// plain reports whether s, which is not empty, is nothing but a string to every reader of YAML, without asking one: most strings are.
func plain(s string) bool {
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		other := r >= '0' && r <= '9' || strings.ContainsRune("-./_ ", r)
		if !letter && (i == 0 || !other) {
			return false
		}
	}
	return !strings.HasSuffix(s, " ") && !slices.Contains(words, strings.ToLower(s))
}

// encode writes the tree as YAML, in the style of the Kubernetes tools.
func encode(n *yaml.Node) []byte {
	text, err := safetext.EncodeYAML(n, true)
	if err != nil {
		panic(fmt.Sprintf("encode a YAML tree: %v", err))
	}
	return text
}

// field returns the value at the keys, or nil.
func field(n *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		n = resolved(n)
		if n == nil || n.Kind != yaml.MappingNode {
			return nil
		}
		i := keyIndex(n, key)
		if i < 0 {
			return nil
		}
		n = n.Content[i+1]
	}
	return resolved(n)
}

func resolved(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// textAt returns the scalar at the keys, or "".
func textAt(n *yaml.Node, keys ...string) string {
	if n = field(n, keys...); n == nil || n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return ""
	}
	return n.Value
}

func keyIndex(n *yaml.Node, key string) int {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return i
		}
	}
	return -1
}

// set puts value at the keys and makes the mappings on the way. A key that is there already keeps its place and its
// comments; a new one goes before the first that sorts after it.
func set(n *yaml.Node, value *yaml.Node, keys ...string) {
	for i, key := range keys {
		if n.Kind != yaml.MappingNode {
			*n = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", HeadComment: n.HeadComment}
		}
		if len(n.Content) == 0 {
			n.Style = 0
		}
		at := keyIndex(n, key)
		if at < 0 {
			at = 0
			for at < len(n.Content) && n.Content[at].Value < key {
				at += 2
			}
			n.Content = slices.Insert(n.Content, at, text(key), &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"})
		}
		if i == len(keys)-1 {
			old := n.Content[at+1]
			value.LineComment = cmp.Or(value.LineComment, old.LineComment)
			value.HeadComment = cmp.Or(value.HeadComment, old.HeadComment)
			n.Content[at+1] = value
			return
		}
		if n.Content[at+1].Kind == yaml.AliasNode {
			copied := *n.Content[at+1].Alias
			copied.Anchor = ""
			copied.Content = slices.Clone(copied.Content)
			n.Content[at+1] = &copied
		}
		n = n.Content[at+1]
	}
}

// remove takes the field at the keys away, and says whether it was there.
func remove(n *yaml.Node, keys ...string) bool {
	parent := field(n, keys[:len(keys)-1]...)
	if parent == nil || parent.Kind != yaml.MappingNode {
		return false
	}
	i := keyIndex(parent, keys[len(keys)-1])
	if i < 0 {
		return false
	}
	parent.Content = slices.Delete(parent.Content, i, i+2)
	return true
}

// removeEmpty is remove, and takes mappings that it leaves empty away too.
func removeEmpty(n *yaml.Node, keys ...string) {
	if !remove(n, keys...) {
		return
	}
	for i := len(keys) - 1; i > 0; i-- {
		if parent := field(n, keys[:i]...); parent == nil || len(parent.Content) > 0 {
			return
		}
		remove(n, keys[:i]...)
	}
}
