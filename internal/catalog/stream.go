package catalog

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

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

// sheet is a document on its way from its source to a rendering: what decides where it stands, and how to get its text,
// which is held in memory only where there is no cache.
type sheet struct {
	heading
	version *semver.Version // of a bundle that counts
	text    func() ([]byte, error)
}

// label is what the cache says of a sheet.
type label struct {
	Schema  string          `json:"schema"`
	Package string          `json:"package,omitempty"`
	Name    string          `json:"name,omitempty"`
	Version *semver.Version `json:"version,omitempty"`
}

// Render writes to w, in one of Formats, what Load, Err, Sorted and Write would, but without having all of the catalog in
// memory: bundles and files are read on their own, the cache takes their texts and gives them back in order.
func (l Loader) Render(ctx context.Context, w io.Writer, format string, refs ...string) error {
	results, errs := make([]leaves, len(refs)), make([]error, len(refs))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	r := renderer{Loader: l, format: format, memo: &document.Memo{}}
	for i, ref := range refs {
		group.Go(func() error {
			if errs[i] = ctx.Err(); errs[i] == nil {
				results[i], errs[i] = r.read(ctx, ref)
			}
			return nil
		})
	}
	_ = group.Wait() // errs holds them, in the order of refs
	var all leaves
	for i := range results {
		if errs[i] != nil {
			return errs[i]
		}
		all.add(results[i])
	}
	if err := (&Catalog{Problems: all.problems}).Err(); err != nil {
		return err
	}
	if all.made {
		l.Cache.Trim(cache.MaxSize)
	}
	arrange(all.sheets)
	return write(ctx, w, all.sheets)
}

// leaves is what one source gives.
type leaves struct {
	sheets   []sheet
	problems []finding.Finding
	made     bool // rather than found in the cache
}

func (l *leaves) add(other leaves) {
	l.sheets = append(l.sheets, other.sheets...)
	l.problems = append(l.problems, other.problems...)
	l.made = l.made || other.made
}

type renderer struct {
	Loader
	format string
	memo   *document.Memo
}

func (r renderer) read(ctx context.Context, ref string) (leaves, error) {
	info, err := os.Stat(ref)
	name := filepath.ToSlash(filepath.Clean(ref))
	switch {
	case err != nil || !info.IsDir() || image.Is(ref):
		p, err := r.load(ctx, ref, r.memo)
		if err != nil {
			return leaves{}, err
		}
		return r.leaves(p), nil
	case bundle.Is(ref):
		name := filepath.ToSlash(ref)
		files := func() ([]bundle.File, error) { return bundle.Files(os.DirFS(ref), name) }
		return r.source(files, func(files []bundle.File) (parsed, error) { return parseBundle(name, files, r.memo) })
	}
	results, err := eachFile(ctx, r.MaxFile, os.DirFS(ref), name, func(file string, data []byte) (leaves, error) {
		first := data
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
		return leaves{}, err
	}
	var all leaves
	for _, one := range results {
		all.add(one)
	}
	if len(all.sheets)+len(all.problems) == 0 {
		return leaves{}, noDocuments(name)
	}
	return all, nil
}

// source returns what the cache has of the files that read returns, or else what parse makes of them.
func (r renderer) source(read func() ([]bundle.File, error), parse func([]bundle.File) (parsed, error)) (leaves, error) {
	files, err := read()
	if err != nil {
		return leaves{}, err
	}
	key := r.key(files)
	entry := r.Cache.Get(key)
	var made leaves
	if entry == nil {
		p, err := parse(files)
		if err != nil {
			return leaves{}, err
		}
		made = r.leaves(p)
		if len(made.problems) > 0 {
			return made, nil
		}
		if entry, err = r.keep(key, made.sheets); entry == nil || err != nil {
			return made, err
		}
		made.made = true
	}
	return r.kept(entry, made.made, func() (parsed, error) {
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

// keep puts sheets into the cache.
func (r renderer) keep(key cache.Key, sheets []sheet) (*cache.Entry, error) {
	if r.Cache == nil {
		return nil, nil
	}
	var parts []cache.Part
	for _, s := range sheets {
		text, err := s.text()
		if err != nil {
			return nil, err
		}
		parts = append(parts, cache.Part{Label: label{s.Schema, s.Package, s.Name, s.version}, Data: text})
	}
	return r.Cache.Put(key, parts...), nil
}

// kept returns the sheets of a cache's entry. One whose text is lost by the time that it is asked for is made again.
func (r renderer) kept(entry *cache.Entry, made bool, again func() (parsed, error)) (leaves, error) {
	found := leaves{made: made}
	for i := range entry.Len() {
		var l label
		if err := entry.Label(i, &l); err != nil {
			return leaves{}, fmt.Errorf("read what is cached of %s: %w", l.Name, err)
		}
		found.sheets = append(found.sheets, sheet{heading{l.Schema, l.Package, l.Name, 0}, l.Version, func() ([]byte, error) {
			if text, err := entry.Read(i); err == nil {
				return text, nil
			}
			p, err := again()
			if err != nil {
				return nil, hint.With(fmt.Errorf("read %s %s again: %w", l.Schema, l.Name, err), "run it again while nothing changes")
			}
			return p.documents[i].text(r.format)
		}})
	}
	return found, nil
}

// leaves returns the sheets of documents that are in memory, and what is wrong with them.
func (r renderer) leaves(p parsed) leaves {
	c := &Catalog{}
	c.add(p)
	c.index()
	versions := map[*Document]*semver.Version{}
	for _, pkg := range c.Packages {
		for _, b := range pkg.Bundles {
			versions[b.Document] = &b.Version
		}
	}
	all := leaves{problems: c.Problems}
	for _, d := range c.Documents {
		all.sheets = append(all.sheets, sheet{heading{d.Schema, d.Package, d.Name, 0}, versions[d], func() ([]byte, error) { return d.text(r.format) }})
	}
	return all
}

// arrange sorts sheets as Sorted does documents.
func arrange(sheets []sheet) {
	bundles := map[string][]int{} // of each package, by their places in sheets
	known := map[string]bool{}
	for i, s := range sheets {
		if key := s.Package + "/" + s.Name; s.version != nil && !known[key] {
			known[key] = true
			bundles[s.Package] = append(bundles[s.Package], i)
		}
	}
	for _, places := range bundles {
		slices.SortFunc(places, func(i, j int) int {
			a, b := sheets[i], sheets[j]
			if n := a.version.Compare(*b.version); n != 0 {
				return n
			}
			return strings.Compare(a.Name, b.Name)
		})
		for rank, i := range places {
			sheets[i].rank = rank
		}
	}
	slices.SortStableFunc(sheets, func(a, b sheet) int { return compare(a.heading, b.heading) })
}

// write writes the sheets' texts; while one is written the next one is got.
func write(ctx context.Context, w io.Writer, sheets []sheet) error {
	type text struct {
		data []byte
		err  error
	}
	inner, stop := context.WithCancel(ctx)
	defer stop()
	texts := make(chan text)
	go func() {
		defer close(texts)
		for _, s := range sheets {
			data, err := s.text()
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
