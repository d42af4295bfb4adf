package catalog

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/cache"
	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/image"
)

// lazyFormat is the version of the entries that lazy catalogs keep in the cache.
const lazyFormat = "lazy 1"

// OpenLazy reads refs as Load does, into a catalog to be served: documents hold what OLM asks for, and bundles' manifests stay
// on disk, in the cache, from where Objects reads them. They stay readable as long as the catalog is there, whatever becomes
// of the cache. Without a cache they are in files that nobody else sees. One file is in memory at a time.
func (l Loader) OpenLazy(ctx context.Context, refs ...string) (*Catalog, error) {
	if l.Cache == nil {
		if temporary, remove, err := cache.NewTemporary(); err == nil {
			defer remove()
			l.Cache = temporary
		}
	}
	s := &lazyReader{Loader: l, memo: &document.Memo{}}
	c := &Catalog{}
	for _, ref := range refs {
		p, err := s.read(ctx, ref)
		if err != nil {
			return nil, err
		}
		c.add(p)
	}
	c.index()
	if s.made {
		l.Cache.Trim(cache.MaxSize)
	}
	return c, nil
}

type lazyReader struct {
	Loader
	memo *document.Memo
	made bool   // something that the cache did not have
	most int    // bytes of the largest file
	room []byte // for one
}

func (s *lazyReader) read(ctx context.Context, ref string) (parsed, error) {
	info, err := os.Stat(ref)
	if err == nil && info.IsDir() && !image.Is(ref) && !bundle.Is(ref) {
		return s.directory(ctx, ref)
	}
	p, err := s.load(ctx, ref, s.memo)
	if err != nil || len(p.problems) > 0 {
		return p, err
	}
	var texts [][]byte
	for _, d := range p.documents {
		texts = append(texts, d.JSON)
	}
	key := cache.KeyOf(lazyFormat, texts...)
	if found, ok := cached(s.Cache.Get(key)); ok {
		return found, nil
	}
	return s.put(key, p), nil
}

// directory reads a file-based catalog.
func (s *lazyReader) directory(ctx context.Context, dir string) (parsed, error) {
	fsys, name := document.Dir(dir), filepath.ToSlash(filepath.Clean(dir))
	files, err := Files(fsys)
	if err != nil {
		return parsed{}, hint.With(fmt.Errorf("read catalog %s: %w", name, err), "check that the directory can be read")
	}
	for _, file := range files {
		info, err := fs.Stat(fsys, file)
		if err != nil {
			return parsed{}, fmt.Errorf("read catalog %s: %w", name, err)
		}
		if err := s.MaxFile.Check(file, info); err != nil {
			return parsed{}, fmt.Errorf("read catalog %s: %w", name, err)
		}
		s.most = max(s.most, int(info.Size()))
	}
	var all parsed
	for _, file := range files {
		p, err := document.Until(ctx, func() (parsed, error) {
			return s.file(filepath.Join(dir, filepath.FromSlash(file)), path.Join(name, file))
		})
		if err != nil {
			return parsed{}, fmt.Errorf("read catalog %s: %w", name, err)
		}
		all.add(p)
	}
	if len(all.documents)+len(all.problems) == 0 {
		return parsed{}, noDocuments(name)
	}
	return all, nil
}

// file returns what the cache has of a file, which is read for its digest alone then, or else puts it there.
func (s *lazyReader) file(file, name string) (parsed, error) {
	f, err := os.Open(file)
	if err != nil {
		return parsed{}, err
	}
	defer f.Close()
	if key, err := cache.KeyOfStream(lazyFormat+" of "+name, f); err != nil {
		return parsed{}, err
	} else if p, ok := cached(s.Cache.Get(key)); ok {
		return p, nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return parsed{}, err
	}
	if s.room == nil {
		s.room = make([]byte, 0, s.most+bytes.MinRead)
	}
	room := bytes.NewBuffer(s.room[:0])
	if _, err := room.ReadFrom(f); err != nil {
		return parsed{}, err
	}
	data := room.Bytes()
	key, err := cache.KeyOfStream(lazyFormat+" of "+name, bytes.NewReader(data)) // it may have changed meanwhile
	if err != nil {
		return parsed{}, err
	}
	p := s.put(key, parseFile(name, data))
	s.room = data
	if slices.ContainsFunc(p.documents, func(d *Document) bool { return d.manifests == nil }) || len(p.problems) > 0 {
		s.room = nil // which is in use
	}
	return p, nil
}

// put returns p with its bundles' manifests on disk; as it is where they cannot be kept there, or something is wrong with it.
func (s *lazyReader) put(key cache.Key, p parsed) parsed {
	c := &Catalog{}
	c.add(p)
	c.index()
	if len(c.Problems) > 0 { // the catalog of all files finds them again
		return p
	}
	bundles := map[*Document]*Bundle{}
	for _, pkg := range c.Packages {
		for _, b := range pkg.Bundles {
			bundles[b.Document] = b
		}
	}
	var parts []cache.Part
	for _, d := range p.documents {
		text := d.JSON
		var manifests []cache.Part
		var err error
		switch b := bundles[d]; {
		case b != nil:
			var kept []Property
			for _, p := range b.Properties {
				switch p.Type {
				case PropertyObject:
					manifests = append(manifests, cache.Part{Data: p.Value})
				case PropertyCSVMetadata: // which nobody is served
				default:
					kept = append(kept, p)
				}
			}
			text, err = encode(struct {
				Schema     string     `json:"schema"`
				Package    string     `json:"package"`
				Name       string     `json:"name"`
				Image      string     `json:"image"`
				Properties []Property `json:"properties"`
			}{SchemaBundle, b.Package, b.Name, b.Image, kept})
		case d.Schema == SchemaPackage: // without its icon, which is large
			text, err = encode(struct {
				Schema         string `json:"schema"`
				Name           string `json:"name"`
				DefaultChannel string `json:"defaultChannel"`
			}{SchemaPackage, d.Name, c.Find(d.Name).DefaultChannel})
		case d.Schema != SchemaChannel && d.Schema != SchemaDeprecations:
			continue
		}
		if err != nil {
			return p
		}
		parts = append(parts, cache.Part{Label: indexEntry{d.Schema, d.Package, d.Name, d.At, len(manifests)}, Data: text})
		parts = append(parts, manifests...)
	}
	entry := s.Cache.Put(key, parts...)
	s.made = s.made || entry != nil
	if found, ok := cached(entry); ok {
		return found
	}
	return p
}

// indexEntry is what the cache holds of a document beside its manifests.
type indexEntry struct {
	Schema    string           `json:"schema"`
	Package   string           `json:"package,omitempty"`
	Name      string           `json:"name,omitempty"`
	At        finding.Location `json:"at"`
	Manifests int              `json:"manifests,omitempty"` // how many of the parts that follow are the bundle's
}

// cached returns the documents of a cache's entry, and whether there is one and it is sound.
func cached(entry *cache.Entry) (p parsed, ok bool) {
	if entry == nil || entry.Hold() != nil {
		return parsed{}, false
	}
	for i := 0; i < entry.Len(); i++ {
		var l indexEntry
		text, err := entry.Read(i)
		if err != nil || entry.Label(i, &l) != nil {
			return parsed{}, false
		}
		first, end := i+1, i+1+l.Manifests
		p.documents = append(p.documents, &Document{
			Schema: l.Schema, Package: l.Package, Name: l.Name, JSON: text, At: l.At, Source: document.New(text, l.At),
			manifests: func() ([]Property, error) {
				var properties []Property
				for part := first; part < end; part++ {
					value, err := entry.Read(part)
					if err != nil {
						return nil, err
					}
					properties = append(properties, Property{Type: PropertyObject, Value: value})
				}
				return properties, nil
			},
		})
		i = end - 1
	}
	return p, true
}
