package catalog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/hint"
)

// leastSparse is the size in bytes of files that are worth to be read twice.
const leastSparse = 1 << 20

// sparse is how a catalog is read whose manifests stay in its files.
type sparse struct {
	digests bool
	changed atomic.Pointer[string] // a file that is not as it was read
}

// LoadSparse reads refs as Load does, for who looks at one bundle after the other: manifests that stand in large files are not
// held, Objects reads them there each time. Changed tells whether it could.
func (l Loader) LoadSparse(ctx context.Context, refs ...string) (*Catalog, error) {
	l.sparse = &sparse{digests: l.Digests}
	c, err := l.Load(ctx, refs...)
	if c != nil {
		c.sparse = l.sparse
	}
	return c, err
}

// Changed returns an error if a file of a sparse catalog changed since it was loaded, and a manifest was asked for that was in it. A nil
// catalog did not change.
func (c *Catalog) Changed() error {
	if c == nil || c.sparse == nil || c.sparse.changed.Load() == nil {
		return nil
	}
	return hint.With(fmt.Errorf("read catalog: %s changed while it was read", *c.sparse.changed.Load()), "run the command again once nobody writes the file")
}

// file reads a file of fsys, which stays open: who puts another in its place, or a pipe, changes nothing. It is not ok with what is
// small, cannot be read, or is no stream of JSON or YAML, and is itself nil where no catalog is to be sparse.
func (s *sparse) file(limit document.Limit, fsys fs.FS, file, name string) (p parsed, ok bool) {
	if s == nil {
		return parsed{}, false
	}
	info, err := fs.Stat(fsys, file)
	if err != nil || info.Size() < leastSparse || limit.Check(file, info) != nil {
		return parsed{}, false
	}
	f, err := fsys.Open(file)
	if err != nil {
		return parsed{}, false
	}
	defer func() {
		if !ok {
			_ = f.Close()
		}
	}()
	at, can := f.(io.ReaderAt)
	if !can {
		return parsed{}, false
	}
	ok, err = document.Stream(name, f, func(source *document.Document, text []byte, offset int64) {
		d, problem := s.detach(source, &region{s, at, name, offset, len(text), digestOf(text)}), (*finding.Finding)(nil)
		if d == nil {
			d, problem = newDocument(source.Clone())
		}
		if problem != nil {
			p.problems = append(p.problems, *problem)
			return
		}
		p.documents = append(p.documents, d)
	})
	return p, ok && err == nil
}

// detach returns the document of a bundle, of which it leaves all but the data of manifests; nil where that cannot be, or it is none.
func (s *sparse) detach(source *document.Document, at *region) *Document {
	short, held := withoutData(source.JSON)
	rest := source.Detach(short, at.whole)
	if rest == nil {
		return nil
	}
	d, problem := newDocument(rest)
	if problem != nil || d.Schema != SchemaBundle {
		return nil
	}
	d.size, d.held = len(source.JSON), held
	if text := source.Text(); s.digests && text != nil {
		d.sum = new(sha256.Sum256(text))
	}
	if d.locate(source) {
		d.region = at
		return d
	}
	d.manifests = func() ([]Property, error) {
		var fields struct {
			Properties []Property `json:"properties"`
		}
		whole := rest.Whole()
		if whole == nil {
			return nil, at.isChanged()
		}
		_ = document.Decode(whole, &fields) // what is wrong with it is among the catalog's problems
		return fields.Properties, nil
	}
	return d
}

// locate finds the places of the data that are held, and reports whether they stand in the document's text as they do in source.
func (d *Document) locate(source *document.Document) bool {
	offsets := make([]int, 0, len(d.held))
	for _, one := range d.held {
		if one.Size > 0 {
			offsets = append(offsets, one.key)
		}
	}
	places, ok := source.PlacesAt(offsets)
	for i := range d.held {
		if ok && d.held[i].Size > 0 {
			d.held[i].at, places = places[0], places[1:]
		}
	}
	return ok
}

// region is a part of a file, as it was.
type region struct {
	of     *sparse
	file   io.ReaderAt
	name   string
	offset int64
	length int
	digest uint64
}

// read fills text with what stands in the region behind an offset.
func (r *region) read(text []byte, from int) error {
	_, err := r.file.ReadAt(text, r.offset+int64(from))
	return err
}

// whole returns the text of the region; nil if it has changed.
func (r *region) whole() []byte {
	text := make([]byte, r.length)
	if r.read(text, 0) != nil || digestOf(text) != r.digest {
		_ = r.isChanged()
		return nil
	}
	return text
}

// isChanged notes that the file is not as it was, and returns the error that says so.
func (r *region) isChanged() error {
	r.of.changed.Store(&r.name)
	return fmt.Errorf("%s changed while it was read", r.name)
}

// seed is of the digests of this run.
var seed = maphash.MakeSeed()

func digestOf(text []byte) uint64 { return maphash.Bytes(seed, text) }

// Text is what is told of an olm.bundle.object property whose value may stand in its file alone.
type Text struct {
	Digest uint64 // of its text, to compare with others of this run
	Size   int    // of that, in bytes
}

// heldText is what is held of the value of a property. Its Size is 0 where that is the value itself.
type heldText struct {
	Text
	offset int              // of the value in the document's JSON
	key    int              // of the key of its data there
	at     finding.Location // of that key, where the JSON is the text
}

// Texts returns what is told of the bundle's olm.bundle.object properties, in their order.
func (b *Bundle) Texts() []Text {
	var all []Text
	for i, p := range b.Properties {
		if p.Type != PropertyObject {
			continue
		}
		if i < len(b.Document.held) && b.Document.held[i].Size > 0 {
			all = append(all, b.Document.held[i].Text)
			continue
		}
		all = append(all, Text{Digest: digestOf(p.Value), Size: len(p.Value)})
	}
	return all
}

// PlaceOfData returns where the data of a property stand.
func (b *Bundle) PlaceOfData(property int) finding.Location {
	if d := b.Document; d.region != nil && property < len(d.held) && d.held[property].Size > 0 {
		return d.held[property].at
	}
	return b.Document.Place("properties", property, "value", "data")
}

// room is where values are read that are decoded at once.
var room = sync.Pool{New: func() any { return new([]byte) }}

// withValues returns the bundle's properties with the values that are held in the file, those of numbers from first up to end. They are
// there until done is called.
func (d *Document) withValues(properties []Property, first, end int) (list []Property, done func(), err error) {
	list, done = slices.Clone(properties), func() {}
	from, to := d.region.length, 0
	for i := first; i < end; i++ {
		if one := d.held[i]; one.Size > 0 {
			from, to = min(from, one.offset), max(to, one.offset+one.Size)
		}
	}
	if from >= to {
		return list, done, nil
	}
	text := room.Get().(*[]byte)
	done = func() { room.Put(text) }
	if *text = slices.Grow((*text)[:0], to-from)[:to-from]; d.region.read(*text, from) != nil {
		return nil, done, d.region.isChanged()
	}
	for i := first; i < end; i++ {
		if one := d.held[i]; one.Size > 0 {
			list[i].Value = (*text)[one.offset-from : one.offset-from+one.Size]
			if digestOf(list[i].Value) != one.Digest {
				return nil, done, d.region.isChanged()
			}
		}
	}
	return list, done, nil
}

// Size is the size of the document's JSON in bytes, as it was written.
func (d *Document) Size() int {
	if d.size > 0 {
		return d.size
	}
	return len(d.JSON)
}

// withoutData returns a bundle's document without the data of its olm.bundle.object properties, and for each property what is told of
// the value that lost it. A property that is not as opm writes it keeps what it has.
func withoutData(text json.RawMessage) (json.RawMessage, []heldText) {
	var short json.RawMessage
	var held []heldText
	kept := 0 // up to where text is in short, or left out
	var kind string
	var begin, end, others int // the data, and what stands beside it
	var is heldText
	document.Values(text, 4, func(keys []string, from, to int) {
		switch {
		case keys[0] != "properties" || len(keys) == 1:
		case len(keys) == 3 && keys[2] == "type":
			kind = string(text[from:to])
		case len(keys) == 3 && keys[2] == "value":
			is.Text, is.offset = Text{Digest: digestOf(text[from:to]), Size: to - from}, from
		case len(keys) == 4 && keys[2] != "value":
		case len(keys) == 4 && keys[3] == "data" && text[from] == '"':
			begin, end, is.key = from+1, to-1, keyBefore(text, from, `"data"`)
		case len(keys) == 4:
			others++
		case len(keys) == 2:
			if kind == `"`+PropertyObject+`"` && others == 0 && end > begin && is.key >= 0 && document.IsBase64(text[begin:end]) {
				short = append(short, text[kept:begin]...)
				kept = end
			} else {
				is = heldText{}
			}
			held = append(held, is)
			kind, begin, end, others, is = "", 0, 0, 0, heldText{}
		}
	})
	return append(short, text[kept:]...), held
}

// keyBefore returns where the key of the value at text[value] stands, or -1 if it is not written as key.
func keyBefore(text []byte, value int, key string) int {
	at := bytes.LastIndex(text[:value], []byte(key))
	if at < 0 || len(bytes.Trim(text[at+len(key):value], " \t\r\n:")) > 0 {
		return -1
	}
	return at
}
