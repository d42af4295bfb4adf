package document

import (
	"bytes"
	"unicode/utf8"
)

// blocks reads YAML as Kubernetes' tools and most people write it, mappings and lists by indentation with plain, quoted,
// literal and folded texts, straight to JSON. Whatever else there is, and every mistake, it leaves to yaml.v3, which it agrees with
// (FuzzBlocks).
type blocks struct {
	text   []byte
	at     int // the next character; between values the first one of the next line that says something
	line   int // where that line begins
	indent int // of that line, -1 behind the last one
	out    []byte
	keys   [][]byte // of the mappings around
	marks  *[]mark  // nil when nobody wants them
}

// mark says where in the YAML text a key or an item stands that is at an offset of the JSON.
type mark struct{ out, text int }

func (b *blocks) mark(out int) {
	if b.marks != nil {
		*b.marks = append(*b.marks, mark{out, b.at})
	}
}

// readBlocks returns the JSON of a text of one document and the offset at which it begins, or false.
func readBlocks(text []byte) (json []byte, start int, ok bool) { return markBlocks(text, nil) }

// markBlocks is readBlocks for who wants to know where things stand.
func markBlocks(text []byte, marks *[]mark) (json []byte, start int, ok bool) {
	if !ordinary(text) {
		return nil, 0, false
	}
	b := &blocks{text: text, out: make([]byte, 0, len(text)), marks: marks}
	if bytes.HasPrefix(text, []byte("---")) {
		if b.at = 3; !b.lineEnds() {
			return nil, 0, false
		}
		b.at = b.endOfLine()
	}
	b.next()
	start = b.at
	b.mark(0)
	if b.indent < 0 || !b.isItem() && !b.isKey() || !b.block(0) || b.indent >= 0 {
		return nil, 0, false
	}
	return b.out, start, true
}

// ordinary reports whether text has only characters that stand for themselves and lines that end in the one way, and is
// but one document.
func ordinary(text []byte) bool {
	if parts(text) {
		return false
	}
	for i := unusual(text, 0); i < len(text); i = unusual(text, i) {
		switch c := text[i]; {
		case c == '\n' && !parts(text[i+1:]), c == '\t':
			i++
		case c < utf8.RuneSelf:
			return false
		default:
			r, n := utf8.DecodeRune(text[i:])
			if r == utf8.RuneError || r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r&0xfffe == 0xfffe {
				return false
			}
			i += n
		}
	}
	return true
}

// parts reports whether a line is between documents: the end of one, or a directive for the next one.
func parts(line []byte) bool {
	return bytes.HasPrefix(line, []byte("%")) || bytes.HasPrefix(line, []byte("..."))
}

// next goes on to the next line that is neither empty nor a comment. b.at is at the end of a line, or at the start of text.
func (b *blocks) next() {
	for i := b.at; i < len(b.text); {
		if b.text[i] == '\n' {
			i++
		}
		b.line = i
		for byteAt(b.text, i) == ' ' {
			i++
		}
		if c := byteAt(b.text, i); i < len(b.text) && c != '\n' && c != '#' {
			b.at, b.indent = i, i-b.line
			return
		}
		for i < len(b.text) && b.text[i] != '\n' {
			i++
		}
	}
	b.at, b.indent = len(b.text), -1
}

func (b *blocks) endOfLine() int {
	if n := bytes.IndexByte(b.text[b.at:], '\n'); n >= 0 {
		return b.at + n
	}
	return len(b.text)
}

// lineEnds reports whether there is nothing but spaces and a comment up to the end of the line, and goes there.
func (b *blocks) lineEnds() bool {
	i := b.at
	for byteAt(b.text, i) == ' ' {
		i++
	}
	if i < len(b.text) && b.text[i] != '\n' && (b.text[i] != '#' || i == b.at) {
		return false
	}
	b.at = b.endOfLine()
	return true
}

// isItem reports whether an item of a list begins here.
func (b *blocks) isItem() bool {
	return byteAt(b.text, b.at) == '-' && (b.at+1 == len(b.text) || b.text[b.at+1] == ' ' || b.text[b.at+1] == '\n')
}

// isKey reports whether a key and its colon are on this line.
func (b *blocks) isKey() bool {
	_, end := b.key()
	return end >= 0
}

// key returns the key that begins here, and the place behind its colon, or -1.
func (b *blocks) key() ([]byte, int) {
	rest := b.text[b.at:b.endOfLine()]
	if len(rest) == 0 {
		return nil, -1
	}
	if quote := rest[0]; quote == '"' || quote == '\'' {
		n := bytes.IndexByte(rest[1:], quote)
		if n < 0 || n > 1000 || bytes.IndexByte(rest[1:n+1], '\\') >= 0 || bytes.IndexByte(rest[1:n+1], '\t') >= 0 {
			return nil, -1
		}
		if end := n + 2; byteAt(rest, end) == ':' && (end+1 == len(rest) || rest[end+1] == ' ') {
			return rest[1 : n+1], b.at + end + 1
		}
		return nil, -1
	}
	for i, c := range rest {
		switch {
		case c == ':' && (i+1 == len(rest) || rest[i+1] == ' '):
			key := rest[:i]
			if !begins(key) || i > 1000 || key[i-1] == ' ' || string(key) == "<<" {
				return nil, -1
			}
			if isText, _ := b.meaning(key); !isText {
				return nil, -1
			}
			return key, b.at + i + 1
		case c == '\t', c == '#' && i > 0 && rest[i-1] == ' ':
			return nil, -1
		}
	}
	return nil, -1
}

// begins reports whether text can be a plain scalar by its first characters.
func begins(text []byte) bool {
	if len(text) == 0 {
		return false
	}
	switch text[0] {
	case '-':
		return len(text) > 1 && text[1] != ' '
	case '?', ':', ',', '[', ']', '{', '}', '#', '&', '*', '!', '|', '>', '\'', '"', '%', '@', '`', ' ', '=':
		return false
	}
	return true
}

// meaning returns whether a plain scalar is a text, or else the JSON that it stands for; neither where that is an error.
func (b *blocks) meaning(text []byte) (isText bool, json string) {
	if c := text[0]; len(text) > 5 && ('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z') {
		return true, "" // no word that means something is so long
	}
	resolved, err := resolve(string(text))
	return err == nil && resolved == "", resolved
}

// block writes the list or mapping that begins here.
func (b *blocks) block(depth int) bool {
	column := b.at - b.line
	switch {
	case depth > maxDepth:
		return false
	case b.isItem():
		return b.list(column, depth)
	default:
		return b.mapping(column, depth)
	}
}

func (b *blocks) list(column, depth int) bool {
	for mark := byte('['); ; mark = ',' {
		b.out = append(b.out, mark)
		b.at++
		if !b.item(column, depth) {
			return false
		}
		if b.indent != column || !b.isItem() {
			b.out = append(b.out, ']')
			return b.indent <= column
		}
	}
}

func (b *blocks) item(column, depth int) bool {
	if b.lineEnds() {
		b.next()
		if b.indent > column {
			b.mark(len(b.out))
			return b.nested(column, depth)
		}
		b.out = append(b.out, "null"...)
		return true
	}
	for byteAt(b.text, b.at) == ' ' {
		b.at++
	}
	b.mark(len(b.out))
	if b.isItem() || b.isKey() {
		return b.block(depth + 1)
	}
	return b.scalar(column)
}

// manyKeys is how many keys of a mapping are compared one by one.
const manyKeys = 1000

func (b *blocks) mapping(column, depth int) bool {
	first := len(b.keys)
	defer func() { b.keys = b.keys[:first] }()
	for mark := byte('{'); ; mark = ',' {
		key, end := b.key()
		if end < 0 {
			return false
		}
		if len(b.keys)-first > manyKeys {
			return false // yaml.v3 looks keys up in a map
		}
		for _, other := range b.keys[first:] {
			if bytes.Equal(key, other) {
				return false
			}
		}
		b.keys = append(b.keys, key)
		b.mark(len(b.out) + 1)
		b.out = append(appendText(append(b.out, mark), key), ':')
		b.at = end
		if !b.member(column, depth) {
			return false
		}
		if b.indent != column {
			b.out = append(b.out, '}')
			return b.indent < column
		}
	}
}

func (b *blocks) member(column, depth int) bool {
	if b.lineEnds() {
		b.next()
		switch {
		case b.indent > column:
			return b.nested(column, depth)
		case b.indent == column && b.isItem():
			return b.list(column, depth+1)
		}
		b.out = append(b.out, "null"...)
		return true
	}
	for byteAt(b.text, b.at) == ' ' {
		b.at++
	}
	return b.scalar(column)
}

// nested writes the value that begins on a line of its own, deeper than column.
func (b *blocks) nested(column, depth int) bool {
	if b.isItem() || b.isKey() {
		return b.block(depth + 1)
	}
	return b.scalar(column)
}

// scalar writes the text that begins here, and goes on to the next line; what belongs to it is deeper than column.
func (b *blocks) scalar(column int) bool {
	switch byteAt(b.text, b.at) {
	case '{', '[':
		empty := b.text[b.at:min(b.at+2, len(b.text))]
		if string(empty) != "{}" && string(empty) != "[]" {
			return false
		}
		b.out = append(b.out, empty...)
		b.at += 2
		return b.finish()
	case '|', '>':
		return b.indented(column)
	case '"':
		return b.quoted('"')
	case '\'':
		return b.quoted('\'')
	}
	return b.plain(column)
}

// finish ends a value whose line must end here.
func (b *blocks) finish() bool {
	ok := b.lineEnds()
	b.next()
	return ok
}

// following returns how many empty lines follow the line that ends at end, and where the text behind them begins and ends,
// if that is deeper than column; else -1.
func (b *blocks) following(end, column int) (empty, from, to int) {
	for i := end; i < len(b.text); empty++ {
		start := i + 1
		for i = start; byteAt(b.text, i) == ' '; {
			i++
		}
		if i == len(b.text) {
			break
		}
		if b.text[i] != '\n' {
			if i-start <= column {
				break
			}
			to = len(b.text)
			if n := bytes.IndexByte(b.text[i:], '\n'); n >= 0 {
				to = i + n
			}
			return empty, i, to
		}
	}
	return 0, -1, -1
}

// fold appends what the end of a line becomes within a text.
func (b *blocks) fold(empty int) {
	if empty == 0 {
		b.out = append(b.out, ' ')
	}
	b.breaks(empty)
}

func (b *blocks) plain(column int) bool {
	end := b.endOfLine()
	text, whole := plainText(b.text[b.at:end])
	if !begins(text) {
		return false
	}
	empty, from, to := b.following(end, column)
	if from < 0 {
		isText, json := b.meaning(text)
		switch {
		case isText:
			b.out = appendText(b.out, text)
		case json == "":
			return false
		default:
			b.out = append(b.out, json...)
		}
		b.at = end
		b.next()
		return true
	}
	b.out = appendInner(append(b.out, '"'), text)
	for from >= 0 {
		more, wholeToo := plainText(b.text[from:to])
		if !whole || !wholeToo || len(more) == 0 || more[0] == '#' {
			return false
		}
		b.fold(empty)
		b.out = appendInner(b.out, more)
		end = to
		empty, from, to = b.following(end, column)
	}
	b.out = append(b.out, '"')
	b.at = end
	b.next()
	return true
}

// plainText returns the plain scalar in a line, and whether that is all of it but for spaces; nothing where the line has
// something that is none.
func plainText(line []byte) (text []byte, whole bool) {
	for i := ending(line, 0); i < len(line); i = ending(line, i+1) {
		switch c := line[i]; {
		case c == '\t', c == ':' && (i+1 == len(line) || line[i+1] == ' '):
			return nil, false
		case c == '#' && i > 0 && line[i-1] == ' ':
			return bytes.TrimRight(line[:i], " "), false
		}
	}
	return bytes.TrimRight(line, " "), true
}

func (b *blocks) quoted(quote byte) bool {
	b.out = append(b.out, '"')
	start, end := b.at+1, b.endOfLine()
	for {
		i, joined := start, false
		for ; i < end && b.text[i] != quote || quote == '\'' && i+1 < end && b.text[i] == quote && b.text[i+1] == quote; i++ {
			switch c := b.text[i]; {
			case c == '\t':
				return false
			case c == quote:
				b.out = append(b.out, b.text[start:i]...)
				i++
				start = i
			case c == '\\' && quote == '"':
				if i+1 == end {
					joined = true
					continue
				}
				if b.text[i+1] == ' ' { // one that is not folded away
					b.out = append(append(b.out, b.text[start:i]...), ' ')
					i++
					start = i + 1
					continue
				}
				if bytes.IndexByte([]byte(`"\nrt`), b.text[i+1]) < 0 {
					return false
				}
				i++ // it means the same in JSON
			case c == '\\' || c == '"':
				b.out = append(append(b.out, b.text[start:i]...), '\\')
				start = i
			}
		}
		if i < end {
			b.out = append(append(b.out, b.text[start:i]...), '"')
			b.at = i + 1
			return b.finish()
		}
		empty, from, to := b.following(end, -1) // a text in quotes ends with them, however deep its lines are
		if from < 0 || joined && empty > 0 || b.text[from-1] == '\n' && bytes.HasPrefix(b.text[from:to], []byte("---")) {
			return false
		}
		if joined {
			b.out = append(b.out, b.text[start:end-1]...)
		} else {
			b.out = append(b.out, bytes.TrimRight(b.text[start:end], " ")...)
			b.fold(empty)
		}
		start, end = from, to
	}
}

// indented writes a literal or a folded text: the lines that are deeper than column, after a header of their own.
func (b *blocks) indented(column int) bool {
	folded := b.text[b.at] == '>'
	b.at++
	chomp := byteAt(b.text, b.at)
	if chomp == '-' || chomp == '+' {
		b.at++
	}
	end := b.endOfLine()
	if len(bytes.TrimRight(b.text[b.at:end], " ")) > 0 || b.text[len(b.text)-1] != '\n' {
		return false
	}
	_, from, _ := b.following(end, column)
	if from < 0 {
		return false
	}
	b.out = append(b.out, '"')
	ends, ok := b.lines(end+1, from-1-bytes.LastIndexByte(b.text[:from], '\n'), folded)
	switch chomp {
	case '-':
		ends = 0
	case '+':
	default:
		ends = min(ends, 1)
	}
	b.breaks(ends)
	b.out = append(b.out, '"')
	b.next()
	return ok
}

// lines writes the lines from i on that are indented so deep, and goes to the end of the last one. It returns how many ends of
// lines come after the text. Where it is folded, the end of a line is a space between two lines of which neither begins with one.
func (b *blocks) lines(i, indent int, folded bool) (ends int, ok bool) {
	begun, wasDeeper := false, false
	for i < len(b.text) {
		stop := i + bytes.IndexByte(b.text[i:], '\n')
		line := b.text[i:stop]
		deep := len(line) - len(bytes.TrimLeft(line, " "))
		if deep < len(line) && deep < indent {
			if line[deep] == '\t' {
				return 0, false
			}
			break
		}
		i = stop + 1
		if deep == len(line) && (deep <= indent || !begun) {
			if deep > indent {
				return 0, false
			}
			ends++
			continue
		}
		deeper := line[indent] == ' ' || line[indent] == '\t'
		if deeper && !begun {
			return 0, false
		}
		if folded && begun && !deeper && !wasDeeper {
			if ends--; ends == 0 {
				b.out = append(b.out, ' ')
			}
		}
		b.breaks(ends)
		b.out = appendInner(b.out, line[indent:])
		ends, begun, wasDeeper = 1, true, deeper
	}
	b.at = i - 1
	return ends, true
}

// breaks writes so many ends of lines.
func (b *blocks) breaks(n int) {
	for range n {
		b.out = append(b.out, '\\', 'n')
	}
}

// appendText appends text as a JSON string.
func appendText(out, text []byte) []byte { return append(appendInner(append(out, '"'), text), '"') }

// appendInner appends text as it stands within a JSON string.
func appendInner(out, text []byte) []byte {
	const hex = "0123456789abcdef"
	for {
		n := plain(text, 0)
		out = append(out, text[:n]...)
		if n == len(text) {
			return out
		}
		switch c := text[n]; c {
		case '"', '\\':
			out = append(out, '\\', c)
		case '\n':
			out = append(out, '\\', 'n')
		case '\r':
			out = append(out, '\\', 'r')
		case '\t':
			out = append(out, '\\', 't')
		default:
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		text = text[n+1:]
	}
}
