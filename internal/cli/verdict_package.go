package cli

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/olmkit/olmkit/internal/cache"
	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/check"
	"github.com/olmkit/olmkit/internal/finding"
)

// packageVerdicts keeps what checks found of each package, under the digests of its documents: where only one package of a catalog
// changed, the others are not judged again. It is a check.Kept.
type packageVerdicts struct {
	cache, parts     *cache.Cache // of packages, and of what was found of their bundles
	by               []byte       // the program and its options
	loaded, previous *content
	changed          func() error // whether a file is not as it was read
	new              atomic.Bool  // something was kept
}

// content is a catalog, and the documents of each of its packages.
type content struct {
	*catalog.Catalog
	documents map[string][]*catalog.Document
}

func contentOf(c *catalog.Catalog) *content {
	if c == nil {
		return nil
	}
	by := map[string][]*catalog.Document{}
	for _, d := range c.Documents {
		by[d.Package] = append(by[d.Package], d)
	}
	return &content{c, by}
}

// packageVerdicts returns where what program finds of the packages of loaded by options is kept; nil where nothing is.
func (s *session) packageVerdicts(program []byte, options check.Options, loaded *catalog.Catalog) *packageVerdicts {
	kept, parts := cache.Open("verdicts-by-package"), cache.Open("verdicts-by-bundle")
	by, err := json.Marshal(struct{ Only, Skip []string }{options.Only, options.Skip})
	if kept == nil || parts == nil || err != nil || options.Registry != nil || options.Template != nil || program == nil {
		return nil
	}
	return &packageVerdicts{
		cache: kept, parts: parts, by: slices.Concat(program, by), loaded: contentOf(loaded), previous: contentOf(options.Previous),
		changed: func() error { return cmp.Or(loaded.Changed(), options.Previous.Changed()) },
	}
}

// Alone returns the catalogs that hold nothing but p.
func (v *packageVerdicts) Alone(p *catalog.Package) (c, previous *catalog.Catalog) {
	c = v.loaded.Alone(p, v.loaded.documents[p.Name])
	if v.previous != nil {
		previous = &catalog.Catalog{}
		if was := v.previous.Find(p.Name); was != nil {
			previous = v.previous.Alone(was, v.previous.documents[p.Name])
		}
	}
	return c, previous
}

// Get returns what is kept of p, with the places where its documents stand now.
func (v *packageVerdicts) Get(p *catalog.Package) ([]finding.Finding, bool) {
	for _, moved := range []bool{true, false} {
		key, first, ok := v.key(p, moved)
		if !ok {
			return nil, false
		}
		var found []finding.Finding
		if v.cache.GetJSON(key, &found) {
			if moved {
				move(found, first, 1)
			}
			return found, true
		}
	}
	return nil, false
}

// Put keeps what was found of p. It holds wherever the documents of p stand in their files, unless a text names such a place.
func (v *packageVerdicts) Put(p *catalog.Package, found []finding.Finding) {
	moved := !slices.ContainsFunc(found, v.namesPlace(p))
	key, first, ok := v.key(p, moved)
	if !ok || v.changed() != nil {
		return
	}
	raw, err := json.Marshal(found)
	var again []finding.Finding
	if err != nil || json.Unmarshal(raw, &again) != nil || len(found) > 0 && !reflect.DeepEqual(found, again) {
		return
	}
	if moved {
		move(again, first, -1)
		if raw, err = json.Marshal(again); err != nil {
			return
		}
	}
	if v.cache.Put(key, cache.Part{Data: raw}) != nil {
		v.new.Store(true)
	}
}

// trim bounds what is kept.
func (v *packageVerdicts) trim() {
	if v.new.Load() {
		v.cache.Trim(mostVerdicts)
		v.parts.Trim(mostVerdicts)
	}
}

// namesPlace returns the function that reports whether a finding may say in its text where something of p stands.
func (v *packageVerdicts) namesPlace(p *catalog.Package) func(finding.Finding) bool {
	files := map[string]bool{}
	for _, c := range []*content{v.loaded, v.previous} {
		if c != nil {
			for _, d := range c.documents[p.Name] {
				files[d.At.File+":"] = true
			}
		}
	}
	return func(f finding.Finding) bool {
		for file := range files {
			if f.Says(file) {
				return true
			}
		}
		return false
	}
}

// key returns the key of what is found of p: with moved set wherever its documents stand in their files, which first tells, by file.
func (v *packageVerdicts) key(p *catalog.Package, moved bool) (key cache.Key, first map[string]int, ok bool) {
	type document struct {
		File, Schema, Name string
		Line, Column       int // the line counts from that of the file's first document
		Digest             [32]byte
	}
	first = map[string]int{}
	var all [2][]document
	for i, c := range []*content{v.loaded, v.previous} {
		if c == nil {
			continue
		}
		for _, d := range c.documents[p.Name] {
			digest, ok := d.Digest()
			if !ok {
				return key, nil, false
			}
			if _, known := first[d.At.File]; !known && moved {
				first[d.At.File] = d.At.Line
			}
			all[i] = append(all[i], document{d.At.File, d.Schema, d.Name, d.At.Line - first[d.At.File], d.At.Column, digest})
		}
	}
	asked, err := json.Marshal(struct {
		Package          string
		Loaded, Previous []document
		Against          bool
	}{p.Name, all[0], all[1], v.previous != nil})
	return cache.KeyOf("package verdict 1", v.by, asked), first, err == nil
}

// move adds to the lines of places how many there are before those of their files, as often as times says.
func move(found []finding.Finding, lines map[string]int, times int) {
	for i := range found {
		if at := found[i].Location; at != nil && at.Line > 0 {
			at.Line += times * (lines[at.File] - 1) // which is still no 0, the line that is not known
		}
	}
}
