package catalog

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/blang/semver/v4"
	"golang.org/x/sync/errgroup"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/cache"
	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/image"
)

// maker names what the cache's entries are made by: another number whenever a rendering comes to look otherwise.
const maker = "rendering 1 as "

// renderEntry is a document between its source and the rendering: what decides its order, and how to get its text,
// which is held in memory only of single files and images, and where nothing can be written.
type renderEntry struct {
	heading
	version *semver.Version                   // of a bundle that counts
	text    func(room []byte) ([]byte, error) // in room, if it fits there

	cached bool // the text is also a part of the cache's entry of key
	key    cache.Key
	part   int
}

// label is what the cache says of a renderEntry.
type label struct {
	Schema  string          `json:"schema"`
	Package string          `json:"package,omitempty"`
	Name    string          `json:"name,omitempty"`
	Version *semver.Version `json:"version,omitempty"`
}

// Render writes to w, in one of Formats, what Load, Err, Sorted and Write would, but without having all of the catalog in
// memory: bundles and files are read on their own, the cache takes their texts and gives them back in order. Where no file has changed
// since it did so before, none is read. A text that w gets is overwritten after w took the next one.
func (l Loader) Render(ctx context.Context, w io.Writer, format string, refs ...string) error {
	r := renderer{Loader: l, format: format, memo: &document.Memo{}, rooms: &sync.Pool{New: func() any { return new([]byte) }}}
	set := r.set(ctx, refs)
	entries := set.get(func() ([]renderEntry, error) { return r.all(ctx, refs) })
	if entries == nil {
		if !l.Cache.Takes() {
			if temporary, remove, err := cache.NewTemporary(); err == nil {
				defer remove()
				r.spare = temporary
			}
		}
		var err error
		if entries, err = r.all(ctx, refs); err != nil {
			return err
		}
		set.put(entries)
	}
	return write(ctx, w, entries)
}

// all returns the entries of all refs, in the order in which they are written.
func (r renderer) all(ctx context.Context, refs []string) ([]renderEntry, error) {
	results, errs := make([]rendered, len(refs)), make([]error, len(refs))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, ref := range refs {
		group.Go(func() error {
			if errs[i] = ctx.Err(); errs[i] == nil {
				results[i], errs[i] = r.read(ctx, ref)
			}
			return nil
		})
	}
	_ = group.Wait() // errs holds them, in the order of refs
	var all rendered
	for i := range results {
		if errs[i] != nil {
			return nil, errs[i]
		}
		all.add(results[i])
	}
	if err := (&Catalog{Problems: all.problems}).Err(); err != nil {
		return nil, err
	}
	if all.made {
		r.Cache.Trim(cache.MaxSize)
	}
	arrange(all.entries)
	return all.entries, nil
}

// rendered is the entries of one source.
type rendered struct {
	entries  []renderEntry
	problems []finding.Finding
	made     bool // rather than found in the cache
}

func (l *rendered) add(other rendered) {
	l.entries = append(l.entries, other.entries...)
	l.problems = append(l.problems, other.problems...)
	l.made = l.made || other.made
}

type renderer struct {
	Loader
	format string
	memo   *document.Memo
	rooms  *sync.Pool   // of *[]byte, each for a text on its way into a cache
	spare  *cache.Cache // where texts are until the end, if Cache takes none
}

func (r renderer) read(ctx context.Context, ref string) (rendered, error) {
	info, err := os.Stat(ref)
	name := filepath.ToSlash(filepath.Clean(ref))
	switch {
	case err != nil || !info.IsDir() || image.Is(ref):
		p, err := r.load(ctx, ref, r.memo)
		if err != nil {
			return rendered{}, err
		}
		return document.Until(ctx, func() (rendered, error) { return r.render(p), nil })
	case bundle.Is(ref):
		name := filepath.ToSlash(ref)
		files := func() ([]bundle.File, error) { return bundle.Files(document.Dir(ref), name) }
		return document.Until(ctx, func() (rendered, error) {
			return r.source(files, func(files []bundle.File) (parsed, error) { return parseBundle(name, files, r.memo) })
		})
	}
	fsys := document.Dir(ref)
	results, err := eachFile(ctx, fsys, name, func(inside string) (rendered, error) {
		first, err := r.MaxFile.ReadFileIn(fsys, inside)
		if err != nil {
			return rendered{}, err
		}
		file := path.Join(name, inside)
		files := func() ([]bundle.File, error) {
			if first != nil {
				defer func() { first = nil }()
				return []bundle.File{{Data: first}}, nil
			}
			data, err := r.MaxFile.ReadFile(filepath.FromSlash(file))
			return []bundle.File{{Data: data}}, err
		}
		return r.source(files, func(files []bundle.File) (parsed, error) { return parseFile(file, files[0].Data), nil })
	})
	if err != nil {
		return rendered{}, err
	}
	var all rendered
	for _, one := range results {
		all.add(one)
	}
	if len(all.entries)+len(all.problems) == 0 {
		return rendered{}, noDocuments(name)
	}
	if len(all.entries) == 0 {
		err = noCatalog(ref)
	}
	return all, err
}

// source returns what the cache has of the files that read returns, or else what parse makes of them.
func (r renderer) source(read func() ([]bundle.File, error), parse func([]bundle.File) (parsed, error)) (rendered, error) {
	files, err := read()
	if err != nil {
		return rendered{}, err
	}
	key := r.key(files)
	entry := r.Cache.Get(key)
	var made rendered
	if entry == nil {
		p, err := parse(files)
		if err != nil {
			return rendered{}, err
		}
		made = r.render(p)
		if len(made.problems) > 0 {
			return made, nil
		}
		if entry, err = r.keep(key, made.entries); entry == nil || err != nil {
			return made, err
		}
		made.made = true
	}
	return r.kept(key, entry, made.made, func() (parsed, error) {
		files, err := read()
		if err == nil && r.key(files) != key {
			err = fmt.Errorf("it changed while it was read")
		}
		if err != nil {
			return parsed{}, err
		}
		return parse(files)
	})
}

func (r renderer) key(files []bundle.File) cache.Key {
	var parts [][]byte
	for _, f := range files {
		parts = append(parts, []byte(f.Path), f.Data)
	}
	return cache.KeyOf(maker+r.format, parts...)
}

// keep puts entries into the cache, or else into the spare one.
func (r renderer) keep(key cache.Key, entries []renderEntry) (*cache.Entry, error) {
	room := r.rooms.Get().(*[]byte)
	defer r.rooms.Put(room)
	var parts []cache.Part
	for _, s := range entries {
		text, err := s.text(*room)
		if err != nil {
			return nil, err
		}
		*room = nil // each text is needed until all are there
		parts = append(parts, cache.Part{Label: label{s.Schema, s.Package, s.Name, s.version}, Data: text})
	}
	entry := r.Cache.Put(key, parts...)
	if entry == nil {
		entry = r.spare.Put(key, parts...)
	}
	if len(parts) > 0 {
		*room = parts[len(parts)-1].Data
	}
	return entry, nil
}

// kept returns the entries of a cache's entry. One whose text is lost by the time that it is asked for is made again.
func (r renderer) kept(key cache.Key, entry *cache.Entry, made bool, again func() (parsed, error)) (rendered, error) {
	found := rendered{made: made}
	for i := range entry.Len() {
		var l label
		if err := entry.Label(i, &l); err != nil {
			return rendered{}, fmt.Errorf("read what is cached of %s: %w", l.Name, err)
		}
		text := func(room []byte) ([]byte, error) {
			if text, err := entry.ReadInto(i, room); err == nil {
				return text, nil
			}
			p, err := again()
			if err != nil {
				return nil, hint.With(fmt.Errorf("read %s %s again: %w", l.Schema, l.Name, err), "run it again while nothing changes")
			}
			return p.documents[i].text(r.format, room)
		}
		found.entries = append(found.entries, renderEntry{heading: heading{l.Schema, l.Package, l.Name, 0}, version: l.Version, text: text, cached: true, key: key, part: i})
	}
	return found, nil
}

// render returns the entries of documents that are in memory, and what is wrong with them.
func (r renderer) render(p parsed) rendered {
	c := &Catalog{}
	c.add(p)
	c.index()
	versions := map[*Document]*semver.Version{}
	for _, pkg := range c.Packages {
		for _, b := range pkg.Bundles {
			versions[b.Document] = &b.Version
		}
	}
	all := rendered{problems: c.Problems}
	for _, d := range c.Documents {
		all.entries = append(all.entries, renderEntry{heading: heading{d.Schema, d.Package, d.Name, 0}, version: versions[d], text: func(room []byte) ([]byte, error) { return d.text(r.format, room) }})
	}
	return all
}

// arrange sorts entries as Sorted does documents.
func arrange(entries []renderEntry) {
	bundles := map[string][]int{} // of each package, by their places in entries
	known := map[string]bool{}
	for i, s := range entries {
		if key := s.Package + "/" + s.Name; s.version != nil && !known[key] {
			known[key] = true
			bundles[s.Package] = append(bundles[s.Package], i)
		}
	}
	for _, places := range bundles {
		slices.SortFunc(places, func(i, j int) int {
			a, b := entries[i], entries[j]
			if n := a.version.Compare(*b.version); n != 0 {
				return n
			}
			return strings.Compare(a.Name, b.Name)
		})
		for rank, i := range places {
			entries[i].rank = rank
		}
	}
	slices.SortStableFunc(entries, func(a, b renderEntry) int { return compare(a.heading, b.heading) })
}

// write writes the entries' texts; while one is written the next one is got.
func write(ctx context.Context, w io.Writer, entries []renderEntry) error {
	type text struct {
		data []byte
		err  error
	}
	inner, stop := context.WithCancel(ctx)
	defer stop()
	texts := make(chan text)
	go func() {
		defer close(texts)
		var rooms [2][]byte // one is written, the other one filled
		for i, s := range entries {
			data, err := s.text(rooms[i%2])
			rooms[i%2] = data
			select {
			case texts <- text{data, err}:
			case <-inner.Done():
				return
			}
		}
	}()
	for t := range texts {
		if t.err != nil {
			return t.err
		}
		if _, err := w.Write(t.data); err != nil {
			return err
		}
	}
	return ctx.Err()
}
