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
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/olmkit/olmkit/internal/finding"
)

// Document is one YAML or JSON document of a text.
type Document struct {
	JSON json.RawMessage
	At   finding.Location // of its first character

	text   []byte        // what it was parsed from; nil for a document that was made, not read
	beside bool          // other documents were parsed from the same text
	again  func() []byte // reads that again where it is not held
	yaml   bool
	origin position                // of text in its file
	within func() finding.Location // where the encoded document stands, nil for one that is not encoded
	unique bool                    // no mapping holds a key twice
	asked  atomic.Int32            // for places
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
	fields []fieldSpot // by key; of two with one key the later one comes last
	items  []spot
}

// fieldSpot is the spot of a field's value, at the key.
type fieldSpot struct {
	key string
	spot
}

// field returns the spot of a field, or nil.
func (s *spot) field(key string) *spot {
	end := sort.Search(len(s.fields), func(i int) bool { return s.fields[i].key > key })
	if end == 0 || s.fields[end-1].key != key {
		return nil
	}
	return &s.fields[end-1].spot
}

// sorted puts the fields in order, and reports whether a key stands there twice.
func (s *spot) sorted() (twice bool) {
	slices.SortStableFunc(s.fields, func(a, b fieldSpot) int { return strings.Compare(a.key, b.key) })
	for i := 1; i < len(s.fields); i++ {
		twice = twice || s.fields[i].key == s.fields[i-1].key
	}
	return twice
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

// Within returns a document that stands encoded in another one, at the place that exact returns; at is a place that costs
// nothing to know.
func Within(raw json.RawMessage, at finding.Location, exact func() finding.Location) *Document {
	return &Document{JSON: raw, At: at, within: exact}
}

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
	if at := invalid(data); at >= 0 {
		return nil, &SyntaxError{At: place(file, (&lineCounter{data: data}).at(at)), Err: errors.New("it is not UTF-8")}
	}
	var documents []*Document
	lines := lineCounter{data: data}
	for start := space(data, 0); start < len(data); {
		end := skip(data, start, 0)
		if end < 0 || data[start] != '{' && data[start] != '[' {
			return decodeJSON(file, data)
		}
		at := lines.at(start)
		text := data[start:end:end]
		documents = append(documents, &Document{JSON: text, At: place(file, at), text: text, origin: at})
		start = space(data, end)
	}
	return documents, nil
}

// decodeJSON is parseJSON by encoding/json, which can say what is wrong.
func decodeJSON(file string, data []byte) ([]*Document, error) {
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

// invalid returns where data stops to be UTF-8, -1 if nowhere.
func invalid(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	at := 0
	for {
		r, n := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && n == 1 {
			return at
		}
		at += n
	}
}

func parseYAML(file string, data []byte) ([]*Document, error) {
	var documents []*Document
	left := perByte*len(data) + maxGrown
	for _, part := range split(data) {
		if raw, start, ok := readBlocks(part.text); ok {
			at := (&lineCounter{data: part.text, position: position{line: part.line}}).at(start)
			documents = append(documents, &Document{JSON: raw, At: place(file, at), text: part.text, yaml: true, unique: true, origin: position{line: part.line}})
			continue
		}
		decoder, first := yaml.NewDecoder(bytes.NewReader(part.text)), len(documents)
		for {
			var node yaml.Node
			err := decoder.Decode(&node)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, yamlError(file, part.line, part.text, err)
			}
			if blank(&node) {
				continue
			}
			c := converter{most: left}
			c.value(&node, 0)
			left -= len(c.out)
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
		for _, d := range documents[first:] {
			d.beside = len(documents) > first+1
		}
	}
	return documents, nil
}

func blank(n *yaml.Node) bool {
	return len(n.Content) == 0 || n.Content[0].Kind == yaml.ScalarNode && n.Content[0].ShortTag() == "!!null"
}

// yamlLine is how yaml.v3 says where: counting from 1 in what it was given.
var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// yamlAlias is how yaml.v3 says, without a line, that an alias has no anchor.
var yamlAlias = regexp.MustCompile(`^yaml: unknown anchor '(.+)' referenced$`)

// yamlError is err, which yaml.v3 returns of text, that begins at a line of file.
func yamlError(file string, line int, data []byte, err error) error {
	lines := lineCounter{data: data, position: position{line: line}}
	if at := invalid(data); at >= 0 {
		return &SyntaxError{At: place(file, lines.at(at)), Err: errors.New("it is not UTF-8")}
	}
	if m := yamlAlias.FindStringSubmatch(err.Error()); m != nil {
		return &SyntaxError{At: place(file, lines.at(max(bytes.Index(data, []byte("*"+m[1])), 0))), Err: fmt.Errorf("the alias *%s has no anchor", m[1])}
	}
	at := position{line: line, column: -1}
	text := err.Error()
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		if n, ok := strconv.Atoi(m[1]); ok == nil {
			at.line += n - 1
		}
		text = text[len(m[0]):]
	}
	if offset := breaks(data); offset >= 0 {
		at = lines.at(offset)
	}
	return &SyntaxError{At: place(file, at), Err: errors.New(text)}
}

// mostTried is how many bytes of YAML are parsed again and again to find what is wrong.
const mostTried = 256 << 10

// breaks returns where the line of data begins, without its indentation, with which yaml.v3 begins to say what is wrong with data, -1 if that
// cannot be told: it names the line where the block begins that it cannot go on with.
func breaks(data []byte) int {
	if len(data) > mostTried {
		return -1
	}
	ends := []int{0} // of lines
	for i, c := range data {
		if c == '\n' || i == len(data)-1 {
			ends = append(ends, i+1)
		}
	}
	// An empty line before it all, since yaml.v3 does not say where on the first one a block begins.
	wrong := func(n int) string {
		decoder := yaml.NewDecoder(io.MultiReader(strings.NewReader("\n"), bytes.NewReader(data[:ends[n]])))
		for {
			var node yaml.Node
			if err := decoder.Decode(&node); errors.Is(err, io.EOF) {
				return ""
			} else if err != nil {
				return err.Error()
			}
		}
	}
	says := wrong(len(ends) - 1)
	n := sort.Search(len(ends), func(n int) bool { return wrong(n) == says })
	if n == 0 || n == len(ends) || says == "" {
		return -1
	}
	start := ends[n-1]
	line := data[start:ends[n]]
	if text := bytes.TrimLeft(line, " "); len(bytes.TrimSpace(text)) > 0 {
		start += len(line) - len(text)
	}
	return start
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
// path leads further than the document does, it is the place of the last step that exists. In an encoded document every
// field stands where the document does, and the location says the object, the path, and the field's first lines.
func (d *Document) Place(path ...any) finding.Location {
	if d.within != nil {
		at := d.within()
		at.Object, at.Path, at.Excerpt = named(d.JSON), pathText(path), strings.Join(lines(d.JSON, path), "\n")
		return at
	}
	// To read the text anew for each place is quicker than to find all places, until there are many.
	if !d.yaml && (d.text != nil || d.again != nil) && d.asked.Add(1) <= fewPlaces {
		return d.find(d.source(), path)
	}
	d.locate()
	at := d.At
	for here := d.spots; here != nil && len(path) > 0; path = path[1:] {
		switch step := path[0].(type) {
		case string:
			here = here.field(step)
		case int:
			if step < 0 || step >= len(here.items) {
				return at
			}
			here = &here.items[step]
		}
		if here != nil {
			at = place(d.At.File, here.position)
		}
	}
	return at
}

// fewPlaces is for how many places a JSON text is read anew.
const fewPlaces = 4

// find is Place for a JSON text, of which it reads what is on the way.
func (d *Document) find(text []byte, path []any) finding.Location {
	at, begin := -1, 0 // the place, and the value there
	for _, step := range path {
		next, value := -1, -1
		switch step := step.(type) {
		case string:
			if byteAt(text, begin) == '{' {
				pairs(text, begin, func(start, end, at int) int {
					if unquote(text[start:end]) == step {
						next, value = start, at
					}
					return skip(text, at, 0)
				})
			}
		case int:
			if n := 0; byteAt(text, begin) == '[' {
				items(text, begin, func(at int) int {
					if n == step {
						next, value = at, at
					}
					n++
					return skip(text, at, 0)
				})
			}
		}
		if next < 0 {
			break
		}
		at, begin = next, value
	}
	if at < 0 {
		return d.At
	}
	return place(d.At.File, (&lineCounter{data: text, position: d.origin}).at(at))
}

// Items returns where the items of the list in a field of the document stand, each as Place would say it, and nil where that
// is no list of the document's text.
func (d *Document) Items(field string) []finding.Location {
	if d.within != nil || d.text == nil {
		return nil
	}
	if !d.yaml {
		return d.findItems(field)
	}
	d.locate()
	list := d.spots.field(field)
	if list == nil {
		return nil
	}
	places := make([]finding.Location, len(list.items))
	for i, item := range list.items {
		places[i] = place(d.At.File, item.position)
	}
	return places
}

// findItems is Items for a JSON text, of which it keeps nothing: such a list can be most of it.
func (d *Document) findItems(field string) []finding.Location {
	begin := -1
	pairs(d.text, 0, func(start, end, at int) int {
		if unquote(d.text[start:end]) == field {
			begin = at
		}
		return skip(d.text, at, 0)
	})
	if begin < 0 || d.text[begin] != '[' {
		return nil
	}
	places := []finding.Location{}
	lines := lineCounter{data: d.text, position: d.origin}
	items(d.text, begin, func(at int) int {
		places = append(places, place(d.At.File, lines.at(at)))
		return skip(d.text, at, 0)
	})
	return places
}

// pathText writes a path as kubectl does: spec.versions[0].name, and keys that are no plain words in brackets.
func pathText(path []any) string {
	var b strings.Builder
	for _, step := range path {
		switch step := step.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", step)
		case string:
			switch {
			case strings.ContainsAny(step, ".[]/ "):
				fmt.Fprintf(&b, "[%s]", step)
			case b.Len() > 0:
				b.WriteString("." + step)
			default:
				b.WriteString(step)
			}
		}
	}
	return b.String()
}

// Duplicates returns the keys that stand twice in one mapping, in the order of the text.
func (d *Document) Duplicates() []Duplicate {
	if d.unique || d.text != nil && !d.yaml && !repeats(d.text) {
		return nil
	}
	d.locate()
	return d.twice
}

// locate finds the places, which few documents are ever asked for, by reading the text again.
func (d *Document) locate() {
	d.once.Do(func() {
		switch text := d.source(); {
		case text == nil:
		case d.yaml:
			if d.spots = d.blockSpots(text); d.spots != nil {
				return
			}
			decoder := yaml.NewDecoder(bytes.NewReader(text))
			var node yaml.Node
			for decoder.Decode(&node) == nil {
				if !blank(&node) && d.origin.line+node.Content[0].Line == d.At.Line {
					spots := d.yamlSpots(node.Content[0], 0)
					d.spots = &spots
					return
				}
				node = yaml.Node{}
			}
		default:
			j := newJSONSpots(d, text)
			spots, _ := j.value(0, 0)
			d.spots = &spots
		}
	})
}

// blockSpots returns the spots of a document, which was parsed from text, that readBlocks reads; nil for others.
func (d *Document) blockSpots(text []byte) *spot {
	var marks []mark
	out, _, ok := markBlocks(text, &marks)
	if !ok {
		return nil
	}
	j := newJSONSpots(d, out)
	j.lines.data, j.marks = text, marks
	if len(marks) == 0 || marks[0].out != 0 {
		return nil
	}
	spots, _ := j.value(0, 0)
	if j.lost {
		return nil
	}
	return &spots
}

func (d *Document) yamlSpots(n *yaml.Node, depth int) spot {
	s := spot{position: position{d.origin.line + n.Line - 1, n.Column - 1}}
	switch {
	case depth > maxDepth:
	case n.Kind == yaml.MappingNode:
		seen := make(map[string]bool, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, inner := n.Content[i], d.yamlSpots(n.Content[i+1], depth+1)
			inner.position = position{d.origin.line + key.Line - 1, key.Column - 1}
			if seen[key.Value] {
				d.twice = append(d.twice, Duplicate{Key: key.Value, At: place(d.At.File, inner.position)})
			}
			seen[key.Value] = true
			s.fields = append(s.fields, fieldSpot{key.Value, inner})
		}
		s.sorted()
	case n.Kind == yaml.SequenceNode:
		for _, item := range n.Content {
			s.items = append(s.items, d.yamlSpots(item, depth+1))
		}
	}
	return s
}

// jsonSpots finds the places of what a JSON text holds, or what a YAML text holds that was made into it.
type jsonSpots struct {
	document *Document
	text     []byte
	lines    lineCounter       // of the document's text
	marks    []mark            // of a YAML text, those that are still to come
	lost     bool              // a value of the YAML text has no mark
	names    map[string]string // keys, which are few
}

func newJSONSpots(d *Document, text []byte) *jsonSpots {
	return &jsonSpots{document: d, text: text, lines: lineCounter{data: text, position: d.origin}, names: map[string]string{}}
}

// at is the position of what stands at an offset that is higher than any before.
func (j *jsonSpots) at(offset int) position {
	if j.document.yaml {
		for len(j.marks) > 0 && j.marks[0].out < offset {
			j.marks = j.marks[1:]
		}
		if len(j.marks) == 0 || j.marks[0].out != offset {
			j.lost = true
			return position{}
		}
		offset = j.marks[0].text
	}
	return j.lines.at(offset)
}

// name returns what a key says.
func (j *jsonSpots) name(quoted []byte) string {
	if known, ok := j.names[string(quoted)]; ok {
		return known
	}
	name := unquote(quoted)
	if len(j.names) < 1000 {
		j.names[string(quoted)] = name
	}
	return name
}

// value returns the spot of the value at offset i of the text, and the value's end, or -1.
func (j *jsonSpots) value(i, depth int) (spot, int) {
	s := spot{position: j.at(i)}
	end := j.inner(&s, i, depth)
	return s, end
}

// inner finds the spots of what the value at offset i of the text holds.
func (j *jsonSpots) inner(s *spot, i, depth int) int {
	if depth > deepest {
		return -1
	}
	switch byteAt(j.text, i) {
	case '{':
		end := pairs(j.text, i, func(start, end, at int) int {
			f := fieldSpot{key: j.name(j.text[start:end])}
			f.position = j.at(start)
			end = j.inner(&f.spot, at, depth+1)
			s.fields = append(s.fields, f)
			return end
		})
		inOrder := s.fields
		if !slices.IsSortedFunc(inOrder, func(a, b fieldSpot) int { return strings.Compare(a.key, b.key) }) {
			inOrder = slices.Clone(inOrder)
		}
		if s.sorted() {
			j.tellTwice(inOrder)
		}
		return end
	case '[':
		return items(j.text, i, func(at int) int {
			item, end := j.value(at, depth+1)
			s.items = append(s.items, item)
			return end
		})
	default:
		return skip(j.text, i, depth)
	}
}

// tellTwice notes the keys of a mapping that were there before.
func (j *jsonSpots) tellTwice(fields []fieldSpot) {
	seen := map[string]bool{}
	for _, f := range fields {
		if seen[f.key] {
			j.document.twice = append(j.document.twice, Duplicate{Key: f.key, At: place(j.document.At.File, f.position)})
		}
		seen[f.key] = true
	}
}

// repeats reports whether a mapping of a JSON text holds a key twice, or may do so.
func repeats(text []byte) bool {
	var keys [][]byte
	twice := false
	var visit func(i, depth int) int
	visit = func(i, depth int) int {
		switch {
		case depth > deepest:
			return -1
		case byteAt(text, i) == '[':
			return items(text, i, func(at int) int { return visit(at, depth+1) })
		case byteAt(text, i) != '{':
			return skip(text, i, depth)
		}
		first := len(keys)
		end := pairs(text, i, func(start, end, at int) int {
			key := text[start:end]
			keys = append(keys, key)
			twice = twice || bytes.IndexByte(key, '\\') >= 0
			if end = visit(at, depth+1); twice {
				return -1
			}
			return end
		})
		twice = twice || anyTwice(keys[first:])
		keys = keys[:first]
		return end
	}
	return visit(0, 0) < 0 || twice
}

// anyTwice reports whether two of keys are the same; it puts them in order.
func anyTwice(keys [][]byte) bool {
	slices.SortFunc(keys, bytes.Compare)
	for i := 1; i < len(keys); i++ {
		if bytes.Equal(keys[i], keys[i-1]) {
			return true
		}
	}
	return false
}

// unquote returns what a JSON string says.
func unquote(quoted []byte) string {
	bare := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(bare, '\\') < 0 && utf8.Valid(bare) {
		return string(bare)
	}
	var text string
	if json.Unmarshal(quoted, &text) != nil {
		return string(bare)
	}
	return text
}
