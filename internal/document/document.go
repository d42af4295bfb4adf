// Package document reads YAML and JSON text into exact JSON and remembers where every field stands.
//
// Numbers are carried over as they are written, never through a float, and unknown fields and the order of keys stay.
// Plain YAML scalars mean what they mean to the Kubernetes tools (YAML 1.1 as sigs.k8s.io/yaml reads it), so that "yes"
// is true here as it is to kubectl and opm.
package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/olmkit/olmkit/internal/finding"
)

// Document is one YAML or JSON document of a text.
type Document struct {
	JSON json.RawMessage
	At   finding.Location // of its first character

	text   []byte // what it was parsed from; nil for a document that was made, not read
	yaml   bool
	origin position // of text in its file
	once   sync.Once
	spots  *spot
	twice  []Duplicate
}

// Duplicate is a key that a mapping holds more than once; the last one counts.
type Duplicate struct {
	Key string
	At  finding.Location // of the later one
}

// position counts lines and columns from 0.
type position struct{ line, column int }

// spot is where a value stands, and where what it holds stands.
type spot struct {
	position
	fields map[string]*spot // by key, at the key
	items  []*spot
}

// SyntaxError is a text that is neither YAML nor JSON.
type SyntaxError struct {
	At  finding.Location
	Err error
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s: %v", e.At, e.Err) }
func (e *SyntaxError) Unwrap() error { return e.Err }

// New returns a document that was made rather than read: raw, said to be at.
func New(raw json.RawMessage, at finding.Location) *Document { return &Document{JSON: raw, At: at} }

// Parse returns the documents of data, which was read from file: a stream of JSON values if it begins with one, else
// YAML. Empty documents are left out. The error is a *SyntaxError.
func Parse(file string, data []byte) ([]*Document, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if trimmed := bytes.TrimLeft(data, " \t\r\n"); len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
		documents, err := parseJSON(file, data)
		if err == nil {
			return documents, nil
		}
		// Flow style YAML begins alike.
		if asYAML, other := parseYAML(file, data); other == nil {
			return asYAML, nil
		}
		return nil, err
	}
	return parseYAML(file, data)
}

func parseJSON(file string, data []byte) ([]*Document, error) {
	var documents []*Document
	lines := lineCounter{data: data}
	decoder := json.NewDecoder(bytes.NewReader(data))
	for {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			offset := decoder.InputOffset()
			var syntax *json.SyntaxError
			if errors.As(err, &syntax) {
				offset = max(syntax.Offset-1, 0)
			}
			if errors.Is(err, io.ErrUnexpectedEOF) {
				offset = int64(len(data))
			}
			return nil, &SyntaxError{At: place(file, (&lineCounter{data: data}).at(int(offset))), Err: err}
		}
		end := int(decoder.InputOffset())
		start := end - len(raw)
		at := lines.at(start)
		documents = append(documents, &Document{JSON: raw, At: place(file, at), text: data[start:end], origin: at})
	}
}

func parseYAML(file string, data []byte) ([]*Document, error) {
	var documents []*Document
	for _, part := range split(data) {
		decoder := yaml.NewDecoder(bytes.NewReader(part.text))
		for {
			var node yaml.Node
			err := decoder.Decode(&node)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, yamlError(file, part.line, err)
			}
			if blank(&node) {
				continue
			}
			c := converter{}
			c.value(&node, 0)
			if c.err != nil {
				return nil, &SyntaxError{At: place(file, position{part.line + c.at.line, c.at.column}), Err: c.err}
			}
			root := node.Content[0]
			documents = append(documents, &Document{
				JSON:   c.out,
				At:     place(file, position{part.line + root.Line - 1, root.Column - 1}),
				text:   part.text,
				yaml:   true,
				origin: position{line: part.line},
			})
		}
	}
	return documents, nil
}

func blank(n *yaml.Node) bool {
	return len(n.Content) == 0 || n.Content[0].Kind == yaml.ScalarNode && n.Content[0].ShortTag() == "!!null"
}

// yamlLine is how yaml.v3 says where: counting from 1 in what it was given.
var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

func yamlError(file string, line int, err error) error {
	at := position{line: line, column: -1}
	text := err.Error()
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		if n, ok := strconv.Atoi(m[1]); ok == nil {
			at.line += n - 1
		}
		text = text[len(m[0]):]
	}
	return &SyntaxError{At: place(file, at), Err: errors.New(text)}
}

func place(file string, p position) finding.Location {
	return finding.Location{File: file, Line: p.line + 1, Column: p.column + 1}
}

// part is a stretch of a YAML text that begins at a document marker.
type part struct {
	text []byte
	line int
}

// split cuts a YAML text at lines that begin with "---", which YAML reserves for that at any depth.
func split(data []byte) []part {
	var parts []part
	start, startLine, line := 0, 0, 0
	for i := 0; i < len(data); line++ {
		end := len(data)
		if n := bytes.IndexByte(data[i:], '\n'); n >= 0 {
			end = i + n + 1
		}
		if l := data[i:end]; i > start && bytes.HasPrefix(l, []byte("---")) && (len(l) == 3 || strings.IndexByte(" \t\r\n", l[3]) >= 0) {
			if !onlyPrologue(data[start:i]) {
				parts = append(parts, part{data[start:i], startLine})
				start, startLine = i, line
			}
		}
		i = end
	}
	return append(parts, part{data[start:], startLine})
}

// onlyPrologue reports whether text is comments, blank lines and %directives, which belong to the document that follows.
func onlyPrologue(text []byte) bool {
	directive := false
	for l := range bytes.Lines(text) {
		switch l = bytes.TrimSpace(l); {
		case len(l) == 0 || l[0] == '#':
		case l[0] == '%':
			directive = true
		default:
			return false
		}
	}
	return directive
}

// lineCounter turns rising offsets into positions.
type lineCounter struct {
	data   []byte
	offset int
	position
}

func (l *lineCounter) at(offset int) position {
	offset = min(offset, len(l.data))
	between := l.data[l.offset:offset]
	if n := bytes.Count(between, []byte{'\n'}); n > 0 {
		l.line += n
		l.column = 0
		between = between[bytes.LastIndexByte(between, '\n')+1:]
	}
	l.column += utf8.RuneCount(between)
	l.offset = offset
	return l.position
}

// Place returns where the field at path stands: a string steps to a mapping's key, an int to a sequence's item. Where the
// path leads further than the document does, it is the place of the last step that exists.
func (d *Document) Place(path ...any) finding.Location {
	d.locate()
	at := d.At
	for here := d.spots; here != nil && len(path) > 0; path = path[1:] {
		switch step := path[0].(type) {
		case string:
			here = here.fields[step]
		case int:
			if step < 0 || step >= len(here.items) {
				return at
			}
			here = here.items[step]
		}
		if here != nil {
			at = place(d.At.File, here.position)
		}
	}
	return at
}

// Duplicates returns the keys that stand twice in one mapping, in the order of the text.
func (d *Document) Duplicates() []Duplicate {
	d.locate()
	return d.twice
}

// locate finds the places, which few documents are ever asked for, by reading the text again.
func (d *Document) locate() {
	d.once.Do(func() {
		switch {
		case d.text == nil:
		case d.yaml:
			decoder := yaml.NewDecoder(bytes.NewReader(d.text))
			var node yaml.Node
			for decoder.Decode(&node) == nil {
				if !blank(&node) && d.origin.line+node.Content[0].Line == d.At.Line {
					d.spots = d.yamlSpots(node.Content[0], 0)
					return
				}
				node = yaml.Node{}
			}
		default:
			j := jsonSpots{document: d, decoder: json.NewDecoder(bytes.NewReader(d.text)), lines: lineCounter{data: d.text, position: d.origin}}
			d.spots = j.value()
		}
	})
}

func (d *Document) yamlSpots(n *yaml.Node, depth int) *spot {
	s := &spot{position: position{d.origin.line + n.Line - 1, n.Column - 1}}
	switch {
	case depth > maxDepth:
	case n.Kind == yaml.MappingNode:
		s.fields = make(map[string]*spot, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, inner := n.Content[i], d.yamlSpots(n.Content[i+1], depth+1)
			inner.position = position{d.origin.line + key.Line - 1, key.Column - 1}
			if s.fields[key.Value] != nil {
				d.twice = append(d.twice, Duplicate{Key: key.Value, At: place(d.At.File, inner.position)})
			}
			s.fields[key.Value] = inner
		}
	case n.Kind == yaml.SequenceNode:
		for _, item := range n.Content {
			s.items = append(s.items, d.yamlSpots(item, depth+1))
		}
	}
	return s
}

type jsonSpots struct {
	document *Document
	decoder  *json.Decoder
	lines    lineCounter
}

// token returns the next token and where it begins.
func (j *jsonSpots) token() (json.Token, position) {
	start := int(j.decoder.InputOffset())
	token, err := j.decoder.Token()
	if err != nil {
		return nil, j.lines.position
	}
	text := j.lines.data
	for start < len(text) && strings.IndexByte(" \t\r\n,:", text[start]) >= 0 {
		start++
	}
	return token, j.lines.at(start)
}

func (j *jsonSpots) value() *spot {
	token, at := j.token()
	s := &spot{position: at}
	switch token {
	case json.Delim('{'):
		s.fields = map[string]*spot{}
		for j.decoder.More() {
			key, at := j.token()
			name, ok := key.(string)
			if !ok {
				return s
			}
			inner := j.value()
			inner.position = at
			if s.fields[name] != nil {
				j.document.twice = append(j.document.twice, Duplicate{Key: name, At: place(j.document.At.File, at)})
			}
			s.fields[name] = inner
		}
		j.token()
	case json.Delim('['):
		for j.decoder.More() {
			s.items = append(s.items, j.value())
		}
		j.token()
	}
	return s
}
