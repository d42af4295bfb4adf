package document

import (
	"bytes"
	"encoding/json"
	"io"
	"unicode/utf8"

	"github.com/olmkit/olmkit/internal/finding"
)

// streamPart is how much of a stream is read at first; more where a document is larger.
const streamPart = 1 << 20

// Stream calls each with the documents of r, which was read from file, one after the other, with the text of each and the offset at
// which that begins. The text is overwritten after that: what is kept is to be Cloned or Detached. Stream reports whether it read
// r to its end, as it does only for JSON objects, and for YAML as most people write it, without any mistake: Parse reads everything
// else, and says what is wrong. The error is r's.
func Stream(file string, r io.Reader, each func(d *Document, text []byte, offset int64)) (ok bool, err error) {
	s := stream{r: r, buffer: make([]byte, 0, streamPart)}
	if err := s.more(); err != nil {
		return false, err
	}
	next, read := s.nextYAML, s.yaml
	if byteAt(s.buffer, space(s.buffer, 0)) == '{' {
		next, read = s.nextJSON, s.json
	}
	for {
		text, err := next()
		if err != nil || text == nil {
			return err == nil && s.ended && s.start == len(s.buffer), err
		}
		lines := lineCounter{data: s.buffer, offset: s.counted, position: s.position}
		d, ok := read(file, text, lines.at(s.start))
		if !ok {
			return false, nil
		}
		if d != nil {
			each(d, text, s.before+int64(s.start))
		}
		s.start += len(text)
		s.position, s.counted = lines.at(s.start), s.start
	}
}

// stream holds a part of what a reader gives.
type stream struct {
	r        io.Reader
	buffer   []byte
	ended    bool
	start    int   // of what was not read yet
	before   int64 // how much came before the buffer
	counted  int   // up to where position counts
	position position
}

func (s *stream) json(file string, text []byte, at position) (*Document, bool) {
	return &Document{JSON: text, At: place(file, at), text: text, origin: at}, utf8.Valid(text)
}

// yaml returns no document for comments alone.
func (s *stream) yaml(file string, text []byte, at position) (*Document, bool) {
	if onlyComments(text) {
		return nil, ordinary(text)
	}
	raw, start, ok := readBlocks(text)
	if !ok {
		return nil, false
	}
	stands := (&lineCounter{data: text, position: at}).at(start)
	return &Document{JSON: raw, At: place(file, stands), text: text, yaml: true, unique: true, origin: at}, true
}

// onlyComments reports whether a part of a YAML text says nothing. It is not sure of all.
func onlyComments(text []byte) bool {
	for l := range bytes.Lines(text) {
		if bytes.HasPrefix(l, []byte("---")) && (len(l) == 3 || l[3] == ' ' || l[3] == '\n') {
			l = l[3:]
		}
		if l = bytes.TrimLeft(l, " "); len(l) > 0 && l[0] != '\n' && l[0] != '#' {
			return false
		}
	}
	return true
}

// nextJSON returns the object that comes next, nil if there is none.
func (s *stream) nextJSON() ([]byte, error) {
	for {
		s.start = space(s.buffer, s.start)
		if s.start < len(s.buffer) && s.buffer[s.start] != '{' {
			return nil, nil
		}
		if end := skip(s.buffer, s.start, 0); end >= 0 {
			return s.buffer[s.start:end:end], nil
		}
		if s.ended {
			return nil, nil
		}
		if err := s.more(); err != nil {
			return nil, err
		}
	}
}

// nextYAML returns the part that comes next, cut as by split; nil if there is none.
func (s *stream) nextYAML() ([]byte, error) {
	for seen := 0; ; {
		rest := s.buffer[s.start:]
		for {
			n := bytes.Index(rest[seen:], []byte("\n---"))
			if n < 0 || seen+n+4 == len(rest) && !s.ended {
				break
			}
			end := seen + n + 1
			if after := byteAt(rest, end+3); (end+3 == len(rest) || bytes.IndexByte([]byte(" \t\r\n"), after) >= 0) && !onlyPrologue(rest[:end]) {
				return rest[:end:end], nil
			}
			seen = end
		}
		if s.ended {
			if len(rest) == 0 {
				return nil, nil
			}
			return rest, nil
		}
		if err := s.more(); err != nil {
			return nil, err
		}
	}
}

// more drops what was read, and fills the rest of the buffer, which grows where one document fills it.
func (s *stream) more() error {
	lines := lineCounter{data: s.buffer, offset: s.counted, position: s.position}
	s.position, s.counted = lines.at(s.start), 0
	s.before += int64(s.start)
	rest, room := s.buffer[s.start:], s.buffer[:cap(s.buffer)]
	if len(rest) > len(room)/2 {
		room = make([]byte, 2*len(room))
	}
	s.buffer, s.start = room[:copy(room, rest)], 0
	n, err := io.ReadFull(s.r, s.buffer[len(s.buffer):cap(s.buffer)])
	s.buffer = s.buffer[:len(s.buffer)+n]
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		s.ended, err = true, nil
	}
	return err
}

// Clone returns a document that shares no text with d.
func (d *Document) Clone() *Document {
	c := &Document{JSON: d.JSON, At: d.At, text: bytes.Clone(d.text), yaml: d.yaml, unique: d.unique, origin: d.origin}
	if !d.yaml {
		c.JSON = c.text
	}
	return c
}

// Detach returns a document that holds raw in place of what d says, which is the same with some texts empty, and reads its text again
// where that is needed; again returns nil where it cannot. It returns nil if a key stands twice in d.
func (d *Document) Detach(raw json.RawMessage, again func() []byte) *Document {
	if !d.yaml && repeats(raw) {
		return nil
	}
	return &Document{JSON: raw, At: d.At, yaml: d.yaml, origin: d.origin, unique: true, again: again}
}

// PlacesAt returns where what stands at rising offsets of d's JSON does in its file; not ok where the JSON was made of another text.
func (d *Document) PlacesAt(offsets []int) (places []finding.Location, ok bool) {
	if d.yaml || d.text == nil {
		return nil, false
	}
	lines := lineCounter{data: d.text, position: d.origin}
	for _, offset := range offsets {
		places = append(places, place(d.At.File, lines.at(offset)))
	}
	return places, true
}

// Whole returns what a detached document says, read again; nil where it cannot be.
func (d *Document) Whole() json.RawMessage {
	text := d.source()
	if !d.yaml {
		return text
	}
	raw, _, _ := readBlocks(text)
	return raw
}

// Text returns what the document was parsed from, nil where it is not held, holds other documents, too, or d was made.
func (d *Document) Text() []byte {
	if d.beside {
		return nil
	}
	return d.text
}

// source is what the document was parsed from, nil if it was made.
func (d *Document) source() []byte {
	if d.again != nil {
		return d.again()
	}
	return d.text
}
