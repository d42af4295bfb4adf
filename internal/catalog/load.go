package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/blang/semver/v4"
	"github.com/joelanford/ignore"
	"golang.org/x/sync/errgroup"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/cache"
	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/image"
)

// Codes of what Load finds: the part of a catalog that cannot be read at all.
const (
	CodeSyntax = "FBC001" // neither YAML nor JSON
	CodeSchema = "FBC002" // no schema
	CodeType   = "FBC003" // a known field of the wrong type
)

// ignoreFile names what is no part of the catalog, in the format of .gitignore. The library is the one
// by which opm reads it (operator-registry v1.74.0, alpha/declcfg/load.go).
const ignoreFile = ".indexignore"

// Loader reads catalogs and bundles. The zero Loader has no standard input and knows no registry but the usual ones.
type Loader struct {
	Stdin  io.Reader    // what "-" means
	Images image.Client // by which references that are images are read
	Cache  *cache.Cache // of what was rendered; nil for none

	MaxFile document.Limit // of each file, and of standard input
	Digests bool           // whether the documents of a sparse catalog are to have one

	sparse *sparse // where large files are read again rather than held
}

// Load reads refs as the zero Loader does, with stdin.
func Load(ctx context.Context, stdin io.Reader, refs ...string) (*Catalog, error) {
	return Loader{Stdin: stdin}.Load(ctx, refs...)
}

// Load reads the catalogs and bundles that refs name into one catalog: directories of a file-based catalog, its single
// files, "-" for stdin, and bundle directories, which are rendered; and images of catalogs and of bundles, on a registry, in
// an archive or in an OCI layout. The error is of the environment, for example a missing file; what is wrong with the
// content is in the catalog's Problems.
func (l Loader) Load(ctx context.Context, refs ...string) (*Catalog, error) {
	results, errs := make([]parsed, len(refs)), make([]error, len(refs))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	memo := &document.Memo{}
	for i, ref := range refs {
		group.Go(func() error {
			if errs[i] = ctx.Err(); errs[i] == nil {
				results[i], errs[i] = l.load(ctx, ref, memo)
			}
			return nil
		})
	}
	_ = group.Wait() // errs holds them, in the order of refs
	c := &Catalog{}
	for i, r := range results {
		if errs[i] != nil {
			return nil, errs[i]
		}
		c.add(r)
	}
	return document.Until(ctx, func() (*Catalog, error) {
		c.index()
		return c, nil
	})
}

// Parse reads a catalog from data; locations name file.
func Parse(file string, data []byte) *Catalog {
	c := &Catalog{}
	c.add(parseFile(file, data))
	c.index()
	return c
}

// Err returns the problems of severity error as one error, or nil: for those who need the whole catalog.
func (c *Catalog) Err() error {
	var errs []error
	for _, p := range c.Problems {
		if p.Severity == finding.Error {
			errs = append(errs, hint.With(fmt.Errorf("%s: %s", p.Location, p.Message), "%s", p.Fix))
		}
	}
	return errors.Join(errs...)
}

func (l Loader) load(ctx context.Context, ref string, memo *document.Memo) (parsed, error) {
	if ref == "-" {
		return document.Until(ctx, func() (parsed, error) {
			data, err := l.MaxFile.ReadAll(l.Stdin)
			if err != nil {
				return parsed{}, fmt.Errorf("read catalog from standard input: %w", err)
			}
			return some("<stdin>", parseFile("<stdin>", data))
		})
	}
	if image.Is(ref) {
		return l.loadImage(ctx, ref)
	}
	info, err := os.Stat(ref)
	if err != nil {
		return parsed{}, hint.With(fmt.Errorf("read catalog: %w", err), "name a directory or file of a file-based catalog, a bundle directory, an image with its registry's host, or - for standard input")
	}
	switch {
	case !info.IsDir():
		return document.Until(ctx, func() (parsed, error) {
			if p, ok := l.sparse.file(l.MaxFile, os.DirFS(filepath.Dir(ref)), filepath.Base(ref), filepath.ToSlash(ref)); ok {
				return some(ref, p)
			}
			data, err := l.MaxFile.ReadFile(ref)
			if err != nil {
				return parsed{}, fmt.Errorf("read catalog: %w", err)
			}
			return some(ref, parseFile(filepath.ToSlash(ref), data))
		})
	case bundle.Is(ref):
		return document.Until(ctx, func() (parsed, error) {
			files, err := bundle.Files(document.Dir(ref), filepath.ToSlash(ref))
			if err != nil {
				return parsed{}, err
			}
			p, err := parseBundle(filepath.ToSlash(ref), files, memo)
			for _, d := range p.documents {
				d.files = sync.OnceValue(func() []bundle.Manifest { return manifestsIn(ref) })
			}
			return p, err
		})
	default:
		p, err := l.loadFS(ctx, document.Dir(ref), filepath.ToSlash(filepath.Clean(ref)))
		if err == nil && len(p.documents) == 0 {
			err = noCatalog(ref)
		}
		return p, err
	}
}

// noCatalog is the error that the directory ref, which has no document, is a folder of bundle directories; nil if it is none.
func noCatalog(ref string) error {
	inside, _ := bundle.In(ref) // who cannot tell is told what is wrong with each file
	if len(inside) == 0 {
		return nil
	}
	return hint.With(fmt.Errorf("read catalog: %s is no catalog: it has bundle directories in it, such as %s", ref, inside[0]),
		"name one bundle directory, or make a catalog of them with 'olmkit catalog build'")
}

// manifestsIn returns those of a bundle directory, none if it cannot be read any more.
func manifestsIn(dir string) []bundle.Manifest {
	b, err := bundle.Read(dir)
	if err != nil {
		return nil
	}
	return b.Manifests
}

// NotParsedIn is the problem that a file of a bundle could not be parsed, nil if err is none of that kind.
func NotParsedIn(err error) *finding.Finding {
	var syntax *document.SyntaxError
	if !errors.As(err, &syntax) {
		return nil
	}
	return new(notParsed(syntax.At, err, "correct the YAML there"))
}

// notParsed is the problem that the file at could not be parsed.
func notParsed(at finding.Location, err error, fix string) finding.Finding {
	var syntax *document.SyntaxError
	message := err.Error()
	if errors.As(err, &syntax) {
		at, message = syntax.At, syntax.Err.Error()
	}
	return finding.Finding{
		Code: CodeSyntax, Severity: finding.Error, Location: &at, Fix: fix,
		Message: "the file is neither YAML nor JSON: " + message,
		Cause:   "opm and OLM refuse the whole catalog when one of its files cannot be parsed",
	}
}

// parseBundle returns the document of the bundle directory that is called name.
func parseBundle(name string, files []bundle.File, memo *document.Memo) (parsed, error) {
	b, err := bundle.Parse(name, files, memo.Parse)
	if problem := NotParsedIn(err); problem != nil {
		return parsed{problems: []finding.Finding{*problem}}, nil
	}
	if err != nil {
		return parsed{}, err
	}
	d, err := Render(b, "")
	if err != nil {
		return parsed{}, err
	}
	return parsed{documents: []*Document{d}}, nil
}

func (l Loader) loadImage(ctx context.Context, ref string) (_ parsed, err error) {
	content, err := l.Images.Unpack(ctx, ref)
	if err != nil {
		return parsed{}, err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	l.sparse = nil // what was unpacked does not stay
	if !content.Bundle {
		return l.loadFS(ctx, content.FS, content.Name)
	}
	return document.Until(ctx, func() (parsed, error) {
		b, err := bundle.ReadFS(content.FS, content.Name)
		if err != nil {
			return parsed{}, err
		}
		d, err := Render(b, content.Reference)
		if err != nil {
			return parsed{}, err
		}
		return parsed{documents: []*Document{d}}, nil
	})
}

// parsed is what one file, or one reference, holds.
type parsed struct {
	documents []*Document
	problems  []finding.Finding
}

func (p *parsed) add(other parsed) {
	p.documents = append(p.documents, other.documents...)
	p.problems = append(p.problems, other.problems...)
}

func (c *Catalog) add(p parsed) {
	c.Documents = append(c.Documents, p.documents...)
	c.Problems = append(c.Problems, p.problems...)
}

func (l Loader) loadFS(ctx context.Context, fsys fs.FS, name string) (parsed, error) {
	results, err := eachFile(ctx, fsys, name, func(file string) (parsed, error) {
		if p, ok := l.sparse.file(l.MaxFile, fsys, file, path.Join(name, file)); ok {
			return p, nil
		}
		data, err := l.MaxFile.ReadFileIn(fsys, file)
		return parseFile(path.Join(name, file), data), err
	})
	if err != nil {
		return parsed{}, err
	}
	var all parsed
	for _, r := range results {
		all.add(r)
	}
	return some(name, all)
}

// some returns p, or an error if nothing was read from what is called name: an empty file, or null documents alone.
func some(name string, p parsed) (parsed, error) {
	if len(p.documents)+len(p.problems) == 0 {
		return parsed{}, noDocuments(name)
	}
	return p, nil
}

func noDocuments(name string) error {
	return hint.With(fmt.Errorf("read catalog %s: it holds no documents", name), "name a directory of a file-based catalog, or look what its %s leaves out", ignoreFile)
}

// eachFile returns what read makes of each file of the catalog at the root of fsys, which is called name.
func eachFile[T any](ctx context.Context, fsys fs.FS, name string, read func(file string) (T, error)) ([]T, error) {
	files, err := document.Until(ctx, func() ([]string, error) { return Files(fsys) })
	if err != nil {
		return nil, hint.With(fmt.Errorf("read catalog %s: %w", name, err), "check that the directory can be read")
	}
	results := make([]T, len(files))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, file := range files {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			var err error
			results[i], err = document.Until(ctx, func() (T, error) {
				result, err := read(file)
				if err != nil {
					return result, fmt.Errorf("read catalog %s: %w", name, err)
				}
				return result, nil
			})
			return err
		})
	}
	return results, group.Wait()
}

// Files returns the files of the catalog at the root of fsys, which are all but those that .indexignore files name, in
// lexical order of their paths.
func Files(fsys fs.FS) ([]string, error) {
	var files []string
	err := fs.WalkDir(fsys, ".", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || entry.IsDir():
			return err
		case entry.Name() != ignoreFile:
			files = append(files, file)
			return nil
		}
		info, err := fs.Stat(fsys, file)
		if err != nil {
			return err
		}
		return document.Limit(0).Check(file, info)
	})
	if err != nil {
		return nil, err
	}
	matcher, err := ignore.NewMatcher(fsys, ignoreFile)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(files, func(file string) bool { return matcher.Match(file, false) }), nil
}

func parseFile(file string, data []byte) parsed {
	var p parsed
	sources, err := document.Parse(file, data)
	if err != nil {
		return parsed{problems: []finding.Finding{notParsed(finding.Location{File: file}, err,
			"correct the syntax there, or add the file to "+ignoreFile+" if it is not part of the catalog")}}
	}
	for _, source := range sources {
		d, problem := newDocument(source)
		if problem != nil {
			p.problems = append(p.problems, *problem)
			continue
		}
		p.documents = append(p.documents, d)
	}
	return p
}

// text is a string that must not be null, as opm asks of the three fields that every document has (operator-registry
// v1.74.0, alpha/declcfg/declcfg.go, extractUniqueMetaKeys).
type text string

func (t *text) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return &json.UnmarshalTypeError{Value: "null", Type: reflect.TypeFor[string]()}
	}
	return json.Unmarshal(raw, (*string)(t))
}

func newDocument(source *document.Document) (*Document, *finding.Finding) {
	var meta struct {
		Schema  text `json:"schema"`
		Package text `json:"package"`
		Name    text `json:"name"`
	}
	if err := document.Decode(source.JSON, &meta); err != nil {
		return nil, typeProblem(source, err, finding.Subject{})
	}
	if meta.Schema == "" {
		at := source.At
		return nil, &finding.Finding{
			Code: CodeSchema, Severity: finding.Error, Location: &at,
			Message: "the document has no schema",
			Cause:   "schema is the type of a document in a file-based catalog; opm refuses a catalog with a document without it",
			Fix:     "add schema: " + SchemaPackage + ", " + SchemaChannel + " or " + SchemaBundle + ", or add the file to " + ignoreFile + " if it is no part of the catalog",
		}
	}
	d := &Document{Schema: string(meta.Schema), Package: string(meta.Package), Name: string(meta.Name), JSON: source.JSON, At: source.At, Source: source}
	if d.Schema == SchemaPackage {
		d.Package = d.Name
	}
	return d, nil
}

// typeProblem says which field is of the wrong type.
func typeProblem(source *document.Document, err error, subject finding.Subject, prefix ...any) *finding.Finding {
	at, message := source.Mismatch(err, prefix...)
	return &finding.Finding{
		Code: CodeType, Severity: finding.Error, Subject: subject, Location: &at,
		Message: message,
		Cause:   "opm and OLM refuse the whole catalog if a field that they know has an unexpected type",
		Fix:     "write the field as https://olm.operatorframework.io/docs/reference/file-based-catalogs/ says",
	}
}

// index fills the packages from the documents. Where two documents have one name the first counts.
func (c *Catalog) index() {
	packages := map[string]*Package{}
	find := func(name string, d *Document) *Package {
		p := packages[name]
		if p == nil {
			p = &Package{Name: name, At: d.At}
			packages[name] = p
			c.Packages = append(c.Packages, p)
		}
		return p
	}
	names := map[string]bool{} // of channels and bundles
	for _, d := range c.Documents {
		if d.Package == "" {
			continue
		}
		switch d.Schema {
		case SchemaPackage, SchemaChannel, SchemaBundle, SchemaDeprecations:
		default:
			continue
		}
		p := find(d.Package, d)
		key := d.Schema + "/" + d.Package + "/" + d.Name
		switch {
		case d.Schema == SchemaPackage && p.Document == nil:
			c.addPackage(p, d)
		case d.Schema == SchemaChannel && !names[key]:
			c.addChannel(p, d)
		case d.Schema == SchemaBundle && !names[key]:
			c.addBundle(p, d)
		case d.Schema == SchemaDeprecations && p.Deprecations == nil:
			c.addDeprecations(p, d)
		}
		names[key] = true
	}
	slices.SortFunc(c.Packages, func(a, b *Package) int { return strings.Compare(a.Name, b.Name) })
	for _, p := range c.Packages {
		slices.SortFunc(p.Channels, func(a, b *Channel) int { return strings.Compare(a.Name, b.Name) })
		slices.SortFunc(p.Bundles, compareBundles)
		p.channels = namesOf(p.Channels, func(c *Channel) string { return c.Name })
		p.bundles = namesOf(p.Bundles, func(b *Bundle) string { return b.Name })
		for _, c := range p.Channels {
			c.entries = namesOf(c.Entries, func(e Entry) string { return e.Name })
		}
	}
	c.packages = namesOf(c.Packages, func(p *Package) string { return p.Name })
}

func compareBundles(a, b *Bundle) int {
	return cmp.Or(a.Version.Compare(b.Version), strings.Compare(a.Name, b.Name))
}

func (c *Catalog) problem(d *Document, err error, prefix ...any) {
	c.Problems = append(c.Problems, *typeProblem(d.Source, err, finding.Subject{Package: d.Package}, prefix...))
}

func (c *Catalog) addPackage(p *Package, d *Document) {
	var fields struct {
		DefaultChannel string     `json:"defaultChannel"`
		Description    string     `json:"description"`
		Icon           icon       `json:"icon"`
		Properties     []Property `json:"properties"`
	}
	if err := document.Decode(d.JSON, &fields); err != nil {
		c.problem(d, err)
	}
	p.DefaultChannel, p.At, p.Document = fields.DefaultChannel, d.At, d
}

func (c *Catalog) addChannel(p *Package, d *Document) {
	var fields struct {
		Entries    []json.RawMessage `json:"entries"`
		Properties []Property        `json:"properties"`
	}
	if err := document.Decode(d.JSON, &fields); err != nil {
		c.problem(d, err)
	}
	channel := &Channel{Name: d.Name, At: d.At, Document: d}
	channel.Entries = make([]Entry, 0, len(fields.Entries))
	places := d.items("entries")
	for i, raw := range fields.Entries {
		at := d.At
		if i < len(places) {
			at = places[i]
		}
		var e struct {
			Name      string   `json:"name"`
			Replaces  string   `json:"replaces"`
			Skips     []string `json:"skips"`
			SkipRange string   `json:"skipRange"`
		}
		if err := document.Decode(raw, &e); err != nil {
			c.problem(d, err, "entries", i)
		}
		channel.Entries = append(channel.Entries, Entry{
			Name: e.Name, Replaces: e.Replaces, Skips: e.Skips, SkipRange: e.SkipRange, Index: i, At: at,
		})
	}
	p.Channels = append(p.Channels, channel)
}

func (c *Catalog) addBundle(p *Package, d *Document) {
	var fields struct {
		Image         string         `json:"image"`
		Properties    []Property     `json:"properties"`
		RelatedImages []RelatedImage `json:"relatedImages"`
	}
	if err := document.Decode(d.JSON, &fields); err != nil {
		c.problem(d, err)
	}
	b := &Bundle{
		Name: d.Name, Package: d.Package, Image: fields.Image,
		Properties: fields.Properties, RelatedImages: fields.RelatedImages, At: d.At, Document: d, manifests: d.manifests,
	}
	for _, property := range b.Properties {
		if property.Type != PropertyPackage {
			continue
		}
		var value struct {
			Version string `json:"version"`
		}
		if json.Unmarshal(property.Value, &value) == nil {
			if version, err := semver.Parse(value.Version); err == nil {
				b.Version = version
			}
		}
		break
	}
	p.Bundles = append(p.Bundles, b)
}

func (c *Catalog) addDeprecations(p *Package, d *Document) {
	var fields struct {
		Entries []struct {
			Reference struct {
				Schema string `json:"schema"`
				Name   string `json:"name"`
			} `json:"reference"`
			Message string `json:"message"`
		} `json:"entries"`
	}
	if err := document.Decode(d.JSON, &fields); err != nil {
		c.problem(d, err)
	}
	for i, e := range fields.Entries {
		p.Deprecations = append(p.Deprecations, Deprecation{
			Schema: e.Reference.Schema, Name: e.Reference.Name, Message: e.Message, At: d.Place("entries", i), Document: d,
		})
	}
}
