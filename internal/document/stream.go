package document

import (
	"bytes"
	"encoding/json"
	"io"
	"unicode/utf8"
)

// streamPart is how much of a stream is read at first; more where a document is larger.
const streamPart = 1 << 20

// Stream calls each with the JSON documents of r, which was read from file, one after the other, and with the offset at which each
// begins. The text of a document is overwritten after that: what is kept is to be Cloned or Detached. Stream reports whether it read
// r to its end, as it does only for JSON objects without any mistake: Parse reads everything else, and says what is wrong. The
// error is r's.
func Stream(file string, r io.Reader, each func(d *Document, offset int64)) (ok bool, err error) {
	s := stream{r: r, buffer: make([]byte, 0, streamPart)}
	for {
		text, err := s.next()
		if err != nil || text == nil {
			return err == nil && s.ended && s.start == len(s.buffer), err
		}
		if !utf8.Valid(text) {
			return false, nil
		}
		lines := lineCounter{data: s.buffer, offset: s.counted, position: s.position}
		at := lines.at(s.start)
		each(&Document{JSON: text, At: place(file, at), text: text, origin: at}, s.before+int64(s.start))
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

// next returns the object that comes next, nil if there is none.
func (s *stream) next() ([]byte, error) {
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
	text := bytes.Clone(d.text)
	return &Document{JSON: text, At: d.At, text: text, origin: d.origin}
}

// Detach returns a document that holds raw in place of d's text, which it asks again for to tell places; nil if again has nothing. It
// returns nil if a key stands twice in d, which only the text tells.
func (d *Document) Detach(raw json.RawMessage, again func() []byte) *Document {
	if repeats(d.text) {
		return nil
	}
	return &Document{JSON: raw, At: d.At, origin: d.origin, unique: true, again: again}
}

// source is what the document was parsed from, nil if it was made.
func (d *Document) source() []byte {
	if d.again != nil {
		return d.again()
	}
	return d.text
}
