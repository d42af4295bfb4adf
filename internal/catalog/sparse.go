package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"sync/atomic"

	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/hint"
)

// leastSparse is the size in bytes of files that are worth to be read twice.
const leastSparse = 1 << 20

// sparse is how a catalog is read whose manifests stay in its files.
type sparse struct {
	changed atomic.Pointer[string] // a file that is not as it was read
}

// LoadSparse reads refs as Load does, for who looks at one bundle after the other: manifests that stand in large files are not
// held, Objects reads them there each time. Changed tells whether it could.
func (l Loader) LoadSparse(ctx context.Context, refs ...string) (*Catalog, error) {
	l.sparse = &sparse{}
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
		d, problem := newDocument(source)
		if problem != nil || d.Schema != SchemaBundle || !s.detach(d, region{at, name, offset, int64(len(text)), digestOf(text)}) {
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

// detach leaves of d all but the data of manifests, and reports whether that is well.
func (s *sparse) detach(d *Document, at region) bool {
	short, held := withoutData(d.JSON)
	again := func() []byte {
		text, err := at.read()
		if err != nil {
			s.changed.Store(&at.name)
		}
		return text
	}
	source := d.Source.Detach(short, again)
	if source == nil {
		return false
	}
	d.size, d.held, d.JSON, d.Source = len(d.JSON), held, short, source
	d.manifests = func() ([]Property, error) {
		var fields struct {
			Properties []Property `json:"properties"`
		}
		whole := source.Whole()
		if whole == nil {
			return nil, fmt.Errorf("%s changed while it was read", d.At.File)
		}
		_ = document.Decode(whole, &fields) // what is wrong with it is among the catalog's problems
		return fields.Properties, nil
	}
	return true
}

// region is a part of a file, as it was.
type region struct {
	file           io.ReaderAt
	name           string
	offset, length int64
	digest         uint64
}

// read reads the region again. That it has changed is an error.
func (r region) read() ([]byte, error) {
	text := make([]byte, r.length)
	if _, err := r.file.ReadAt(text, r.offset); err != nil {
		return nil, err
	}
	if digestOf(text) != r.digest {
		return nil, fs.ErrInvalid
	}
	return text, nil
}

// seed is of the digests of this run.
var seed = maphash.MakeSeed()

func digestOf(text []byte) uint64 { return maphash.Bytes(seed, text) }

// Text is what is told of an olm.bundle.object property whose value may stand in its file alone.
type Text struct {
	Digest uint64 // of its text, to compare with others of this run
	Size   int    // of that, in bytes
}

// Texts returns what is told of the bundle's olm.bundle.object properties, in their order.
func (b *Bundle) Texts() []Text {
	var all []Text
	for i, p := range b.Properties {
		if p.Type != PropertyObject {
			continue
		}
		if i < len(b.Document.held) && b.Document.held[i].Size > 0 {
			all = append(all, b.Document.held[i])
			continue
		}
		all = append(all, Text{Digest: digestOf(p.Value), Size: len(p.Value)})
	}
	return all
}

// Size is the size of the document's JSON in bytes, as it was written.
func (d *Document) Size() int {
	if d.size > 0 {
		return d.size
	}
	return len(d.JSON)
}

// withoutData returns a bundle's document without the data of its olm.bundle.object properties, and for each property what is told of
// the data that it lost. A property that is not as opm writes it keeps what it has.
func withoutData(text json.RawMessage) (json.RawMessage, []Text) {
	var short json.RawMessage
	var held []Text
	kept := 0 // up to where text is in short, or left out
	var kind string
	var begin, end, others int // the data, and what stands beside it
	var is Text
	document.Values(text, 4, func(keys []string, from, to int) {
		switch {
		case keys[0] != "properties" || len(keys) == 1:
		case len(keys) == 3 && keys[2] == "type":
			kind = string(text[from:to])
		case len(keys) == 3 && keys[2] == "value":
			is = Text{Digest: digestOf(text[from:to]), Size: to - from}
		case len(keys) == 4 && keys[2] != "value":
		case len(keys) == 4 && keys[3] == "data" && text[from] == '"':
			begin, end = from+1, to-1
		case len(keys) == 4:
			others++
		case len(keys) == 2:
			if kind == `"`+PropertyObject+`"` && others == 0 && end > begin && document.IsBase64(text[begin:end]) {
				short = append(short, text[kept:begin]...)
				kept = end
			} else {
				is = Text{}
			}
			held = append(held, is)
			kind, begin, end, others, is = "", 0, 0, 0, Text{}
		}
	})
	return append(short, text[kept:]...), held
}
