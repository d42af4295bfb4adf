package document

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// What a document may hold before it is taken for an attack: levels of nesting, values that aliases repeat, and bytes of
// JSON beyond those that its YAML could become without aliases.
const (
	maxDepth   = 1000
	maxAliased = 1_000_000
	maxGrown   = 64 << 20
)

// perByte is how many bytes of JSON one of YAML may become: a control character is written as \u0000.
const perByte = 6

// converter writes YAML nodes as JSON and stops at the first thing that JSON cannot hold.
type converter struct {
	out     []byte
	most    int // bytes that out may have
	aliased int // values written below an alias
	within  int // aliases around the current value
	err     error
	at      position
}

func (c *converter) fail(n *yaml.Node, format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
		c.at = position{n.Line - 1, n.Column - 1}
	}
}

func (c *converter) value(n *yaml.Node, depth int) {
	if c.err != nil {
		return
	}
	if c.within > 0 {
		c.aliased++
	}
	switch {
	case depth > maxDepth:
		c.fail(n, "values are nested more than %d deep", maxDepth)
		return
	case c.aliased > maxAliased:
		c.fail(n, "aliases repeat more than %d values", maxAliased)
		return
	case len(c.out) > c.most:
		c.fail(n, "aliases repeat more than %d bytes", maxGrown)
		return
	}
	switch n.Kind {
	case yaml.DocumentNode:
		c.value(n.Content[0], depth)
	case yaml.AliasNode:
		c.within++
		c.value(n.Alias, depth+1)
		c.within--
	case yaml.SequenceNode:
		c.out = append(c.out, '[')
		for i, item := range n.Content {
			if i > 0 {
				c.out = append(c.out, ',')
			}
			c.value(item, depth+1)
		}
		c.out = append(c.out, ']')
	case yaml.MappingNode:
		c.mapping(n, depth)
	case yaml.ScalarNode:
		c.scalar(n)
	default:
		c.fail(n, "a value of unknown kind")
	}
}

type field struct {
	key   string
	value *yaml.Node
}

func (c *converter) mapping(n *yaml.Node, depth int) {
	fields := c.fields(n, nil, false, depth)
	c.out = append(c.out, '{')
	for i, f := range fields {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.out = appendString(c.out, f.key)
		c.out = append(c.out, ':')
		c.value(f.value, depth+1)
	}
	c.out = append(c.out, '}')
}

// fields appends the fields of mapping n: of a key that stands twice the last one counts, and what a merge (<<) brings
// gives way to what stands there.
func (c *converter) fields(n *yaml.Node, fields []field, merged bool, depth int) []field {
	if depth > maxDepth {
		c.fail(n, "values are nested more than %d deep", maxDepth)
		return fields
	}
	index := make(map[string]int, len(n.Content)/2)
	for i, f := range fields {
		index[f.key] = i
	}
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.ScalarNode && key.Value == "<<" && key.ShortTag() == "!!merge" {
			merges = append(merges, value)
			continue
		}
		name := c.key(key)
		if at, ok := index[name]; ok {
			if !merged {
				fields[at].value = value
			}
			continue
		}
		index[name] = len(fields)
		fields = append(fields, field{key: name, value: value})
	}
	for _, m := range merges {
		sources := []*yaml.Node{m}
		if m.Kind == yaml.SequenceNode {
			sources = m.Content
		}
		for _, source := range sources {
			if source.Kind == yaml.AliasNode {
				source = source.Alias
			}
			if source.Kind != yaml.MappingNode {
				c.fail(m, "<< merges mappings only")
				return fields
			}
			if c.aliased += len(source.Content); c.aliased > maxAliased {
				c.fail(m, "aliases repeat more than %d values", maxAliased)
				return fields
			}
			fields = c.fields(source, fields, true, depth+1)
		}
	}
	return fields
}

// key returns the text of a mapping's key; numbers and booleans as JSON would write them.
func (c *converter) key(n *yaml.Node) string {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode {
		c.fail(n, "a key that is not a plain value")
		return ""
	}
	inner := converter{}
	inner.scalar(n)
	if inner.err != nil {
		c.fail(n, "%w", inner.err)
		return ""
	}
	if string(inner.out) == "-0" {
		return "0"
	}
	if len(inner.out) > 0 && inner.out[0] != '"' {
		return string(inner.out)
	}
	return n.Value
}

var (
	numberJSON = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
	// numberInteger matches an integer of any size that is written as JSON writes it, or with a plus sign.
	numberInteger = regexp.MustCompile(`^(\+?(0|[1-9][0-9]*)|-[1-9][0-9]*)$`)
	numberYAML    = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	// literals are the words of YAML 1.1 as go.yaml.in/yaml/v2 (resolve.go) reads them.
	literals = map[string]string{"": "null", "~": "null", "null": "null", "Null": "null", "NULL": "null"}
)

func init() {
	for _, word := range []string{"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"} {
		literals[word] = "true"
	}
	for _, word := range []string{"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"} {
		literals[word] = "false"
	}
}

func (c *converter) scalar(n *yaml.Node) {
	tag := n.Tag
	plain := n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
	explicit := n.Style&yaml.TaggedStyle != 0
	switch {
	case explicit && tag == "!!binary":
		decoded, err := base64.StdEncoding.DecodeString(strings.Map(dropSpace, n.Value))
		if err != nil {
			c.fail(n, "!!binary: %w", err)
			return
		}
		c.out = appendString(c.out, string(decoded))
	case !plain && !explicit, explicit && !slices.Contains([]string{"!!bool", "!!int", "!!float", "!!null"}, tag):
		c.out = appendString(c.out, n.Value)
	default:
		resolved, err := resolve(n.Value)
		if err != nil {
			c.fail(n, "%w", err)
			return
		}
		if resolved == "" {
			c.out = appendString(c.out, n.Value)
			return
		}
		c.out = append(c.out, resolved...)
	}
}

func dropSpace(r rune) rune {
	if strings.ContainsRune(" \t\r\n", r) {
		return -1
	}
	return r
}

// sexagesimal are numbers to some readers of YAML 1.1, though not to ours.
var sexagesimal = regexp.MustCompile(`^[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9]*)?$`)

// IsString reports whether every reader of YAML takes the plain scalar s for a string, so that it can be written without
// quotes as far as its meaning goes; its characters may still ask for them.
func IsString(s string) bool {
	if s == "<<" || s == "=" || sexagesimal.MatchString(s) {
		return false
	}
	resolved, err := resolve(s)
	return err == nil && resolved == ""
}

// resolve returns the JSON of a plain scalar that means something other than a string, else "".
func resolve(s string) (string, error) {
	if literal, ok := literals[s]; ok {
		return literal, nil
	}
	switch strings.ToLower(strings.TrimLeft(s, "+-")) {
	case ".nan", ".inf":
		if s[0] == '.' || strings.ToLower(s[1:]) == ".inf" {
			return "", errors.New("JSON has no " + s)
		}
	}
	if first := s[0]; (first < '0' || first > '9') && first != '-' && first != '+' && first != '.' {
		return "", nil
	}
	if numberJSON.MatchString(s) {
		return s, nil
	}
	digits := strings.ReplaceAll(s, "_", "")
	if s[0] == '.' {
		digits = s
	}
	if numberInteger.MatchString(digits) {
		return strings.TrimPrefix(digits, "+"), nil
	}
	if integer, err := strconv.ParseInt(digits, 0, 64); err == nil {
		return strconv.FormatInt(integer, 10), nil
	}
	if integer, err := strconv.ParseUint(strings.TrimPrefix(digits, "+"), 0, 64); err == nil {
		return strconv.FormatUint(integer, 10), nil
	}
	if numberYAML.MatchString(digits) {
		f, err := strconv.ParseFloat(digits, 64)
		if err == nil && !math.IsInf(f, 0) {
			out, _ := json.Marshal(f)
			return string(out), nil
		}
	}
	return "", nil
}

// appendString appends s as a JSON string, without the escapes that HTML asks for.
func appendString(out []byte, s string) []byte { return appendText(out, []byte(s)) }
