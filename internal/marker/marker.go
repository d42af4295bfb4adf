// Package marker reads what the Go sources of an API say about it to its users: the
// +operator-sdk:csv:customresourcedefinitions markers and the comments of types and fields,
// https://sdk.operatorframework.io/docs/building-operators/golang/references/markers/.
package marker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	pathpkg "path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/controller-tools/pkg/markers"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/hint"
)

// prefix begins every marker of operator-sdk; name is the one that there is.
const (
	prefix = "+operator-sdk:"
	name   = "operator-sdk:csv:customresourcedefinitions"
)

// onType and onField are the marker's arguments, which controller-tools finds by the fields' names.
type onType struct {
	DisplayName string     `marker:",optional"`
	Resources   [][]string `marker:",optional"`
	Order       *int       `marker:",optional"`
}

type onField struct {
	Type         string   `marker:",optional"`
	DisplayName  string   `marker:",optional"`
	XDescriptors []string `marker:",optional"`
	Order        *int     `marker:",optional"`
}

// Sources are the Go packages of an API.
type Sources struct {
	dirs      []directory
	roots     []*loader.Package
	files     *token.FileSet
	collector *markers.Collector // of types and fields
	packages  *markers.Collector // of the roots
	types     map[*loader.Package]map[string]*markers.TypeInfo
}

// directory is one that was asked for, as the user wrote it and as the Go tools name it.
type directory struct{ given, absolute string }

// Load reads the Go packages in dirs and below them. It runs the go command, which must find the modules that they
// import. All that is wrong with the markers is reported at once, by file and line.
func Load(ctx context.Context, dirs []string) (*Sources, error) {
	s := &Sources{files: token.NewFileSet(), types: map[*loader.Package]map[string]*markers.TypeInfo{}}
	var err error
	if s.collector, err = collector(
		markers.Must(markers.MakeDefinition(name, markers.DescribesType, onType{})),
		markers.Must(markers.MakeDefinition(name, markers.DescribesField, onField{})),
	); err != nil {
		return nil, err
	}
	// As controller-gen reads them: the group and version of a package's kinds. Only of the packages that were asked for:
	// among those that they import, Kubernetes' core has no group.
	if s.packages, err = collector(
		markers.Must(markers.MakeDefinition("groupName", markers.DescribesPackage, "")),
		markers.Must(markers.MakeDefinition("versionName", markers.DescribesPackage, "")),
	); err != nil {
		return nil, err
	}
	var patterns []string
	for _, dir := range dirs {
		absolute, err := filepath.Abs(dir)
		if err != nil {
			return nil, fmt.Errorf("read the Go sources in %s: %w", dir, err)
		}
		if info, err := os.Stat(absolute); err != nil || !info.IsDir() {
			return nil, hint.With(fmt.Errorf("read the Go sources in %s: %w", dir, cmp.Or(err, error(&fs.PathError{Op: "read", Path: dir, Err: errors.New("not a directory")}))),
				"name the directory that holds the API's Go packages, for example api")
		}
		// The Go tools name files by where they really are.
		if absolute, err = filepath.EvalSymlinks(absolute); err != nil {
			return nil, fmt.Errorf("read the Go sources in %s: %w", dir, err)
		}
		s.dirs = append(s.dirs, directory{dir, absolute})
		patterns = append(patterns, filepath.Join(absolute, "..."))
	}
	if _, err := exec.LookPath("go"); err != nil {
		return nil, hint.With(fmt.Errorf("read the Go sources in %s: %w", strings.Join(dirs, ", "), err), "install Go: its own tools say which files make up a package")
	}
	if s.roots, err = loader.LoadRootsWithConfig(&packages.Config{Context: ctx, Fset: s.files}, patterns...); err != nil {
		return nil, fmt.Errorf("read the Go sources in %s: %w", strings.Join(dirs, ", "), err)
	}
	slices.SortFunc(s.roots, func(a, b *loader.Package) int { return cmp.Compare(a.PkgPath, b.PkgPath) })
	var problems []error
	files := 0
	for _, root := range s.roots {
		files += len(root.CompiledGoFiles)
		problems = append(problems, s.read(root))
	}
	if files == 0 && errors.Join(problems...) == nil {
		problems = append(problems, hint.With(fmt.Errorf("read the Go sources in %s: there are none", strings.Join(dirs, ", ")), "name the directory that holds the API's Go packages, for example api"))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return s, nil
}

func collector(definitions ...*markers.Definition) (*markers.Collector, error) {
	registry := &markers.Registry{}
	for _, d := range definitions {
		if err := registry.Register(d); err != nil {
			return nil, fmt.Errorf("register the markers: %w", err)
		}
	}
	return &markers.Collector{Registry: registry}, nil
}

// read parses one of the packages that were asked for and everything about its markers.
func (s *Sources) read(p *loader.Package) error {
	p.NeedSyntax()
	var problems []error
	for _, e := range p.Errors {
		at := e.Pos
		if at == "" || at == "-" { // it is about no file
			problems = append(problems, hint.With(fmt.Errorf("read the Go sources: %s", strings.TrimSpace(e.Msg)), "run olmkit in the Go module that holds the directory (go.mod), or leave out --api"))
			continue
		}
		if file, rest, found := strings.Cut(at, ":"); found && filepath.IsAbs(file) {
			at = s.file(file) + ":" + rest
		}
		problems = append(problems, hint.With(fmt.Errorf("%s: %s", at, strings.TrimSpace(e.Msg)), "mend what 'go build' says of the package, or leave out --api"))
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	for _, file := range p.Syntax {
		for _, group := range file.Comments {
			for _, comment := range group.List {
				text, isLine := strings.CutPrefix(comment.Text, "//")
				text = strings.TrimSpace(text)
				if !isLine || !strings.HasPrefix(text, prefix) {
					continue
				}
				if rest, ok := strings.CutPrefix(text, "+"+name); !ok || rest != "" && rest[0] != ':' {
					problems = append(problems, hint.With(fmt.Errorf("%s: there is no marker %s", s.at(comment.Pos()), strings.TrimPrefix(text, "+")),
						"write it as +%s:displayName=\"…\",resources={{Kind,version,name}} on a type, or :type=spec,displayName=\"…\" on a field", name))
				}
			}
		}
	}
	if _, err := s.typesOf(p); err != nil {
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// typesOf returns the types that a package declares, by name.
func (s *Sources) typesOf(p *loader.Package) (map[string]*markers.TypeInfo, error) {
	if known := s.types[p]; known != nil {
		return known, nil
	}
	found := map[string]*markers.TypeInfo{}
	if err := markers.EachType(s.collector, p, func(info *markers.TypeInfo) { found[info.Name] = info }); err != nil {
		return nil, s.placed(err)
	}
	s.types[p] = found
	return found, nil
}

// inMarker is how controller-tools says where in a marker an error is.
var inMarker = regexp.MustCompile(` \(at <input>:[0-9:]+\)`)

// placed gives the errors of controller-tools their places, in the order of the text.
func (s *Sources) placed(err error) error {
	var list []loader.PositionedError
	var flatten func(error) error
	flatten = func(err error) error {
		switch err := err.(type) { //nolint:errorlint // what controller-tools makes, and these two hold others without unwrapping
		case loader.ErrList:
			var others []error
			for _, inner := range err {
				others = append(others, flatten(inner))
			}
			return errors.Join(others...)
		case loader.PositionedError:
			list = append(list, err)
			return nil
		}
		return err
	}
	problems := []error{flatten(err)}
	slices.SortStableFunc(list, func(a, b loader.PositionedError) int { return cmp.Compare(a.Pos, b.Pos) })
	for _, e := range list {
		problems = append(problems, hint.With(fmt.Errorf("%s: read the marker: %s", s.at(e.Pos), inMarker.ReplaceAllString(e.Error(), "")),
			"see https://sdk.operatorframework.io/docs/building-operators/golang/references/markers/"))
	}
	return errors.Join(problems...)
}

func (s *Sources) at(pos token.Pos) finding.Location {
	p := s.files.Position(pos)
	return finding.Location{File: s.file(p.Filename), Line: p.Line, Column: p.Column}
}

// file names a file as the user would, who named the directory.
func (s *Sources) file(absolute string) string {
	for _, d := range s.dirs {
		if rest, ok := strings.CutPrefix(absolute, d.absolute+string(filepath.Separator)); ok {
			return filepath.ToSlash(filepath.Join(d.given, rest))
		}
	}
	return absolute
}

// Describe returns what the sources say of a kind, or nil when they do not declare it. The kind's group and version are
// those of controller-gen: the package's +groupName, and its +versionName or else its name. A package without a group
// may be of any.
func (s *Sources) Describe(kind schema.GroupVersionKind) (*bundle.Description, error) {
	var found []*loader.Package
	for _, p := range s.roots {
		types, err := s.typesOf(p)
		if err != nil {
			return nil, err
		}
		if types[kind.Kind] == nil {
			continue
		}
		said, err := markers.PackageMarkers(s.packages, p)
		if err != nil {
			return nil, s.placed(err)
		}
		group, _ := said.Get("groupName").(string)
		version, _ := said.Get("versionName").(string)
		if cmp.Or(version, p.Name) == kind.Version && (group == kind.Group || group == "") {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return s.describe(found[0], s.types[found[0]][kind.Kind])
	}
	var places []string
	for _, p := range found {
		places = append(places, s.at(s.types[p][kind.Kind].RawSpec.Pos()).String())
	}
	return nil, hint.With(fmt.Errorf("the Go sources declare %s %s more than once: %s", kind.GroupVersion(), kind.Kind, strings.Join(places, ", ")),
		"name the directory of one with --api, or give the packages a // +groupName")
}

func (s *Sources) describe(p *loader.Package, info *markers.TypeInfo) (*bundle.Description, error) {
	d := &bundle.Description{At: s.at(info.RawSpec.Pos()), Text: info.Doc}
	for _, value := range info.Markers[name] {
		m := value.(onType)
		d.DisplayName = cmp.Or(m.DisplayName, d.DisplayName)
		if m.Order != nil {
			d.Order = m.Order
		}
		for _, r := range m.Resources {
			if len(r) != 2 && len(r) != 3 {
				return nil, hint.With(fmt.Errorf("%s: read the marker: the resource %q is not a kind, a version and a name", d.At, r), "write resources={{Deployment,v1,name},{Service,v1,name}}")
			}
			resource := bundle.Resource{Kind: strings.TrimSpace(r[0]), Version: strings.TrimSpace(r[1])}
			if len(r) == 3 {
				resource.Name = strings.TrimSpace(r[2])
			}
			d.Resources = append(d.Resources, resource)
		}
	}
	for _, field := range info.Fields {
		segment, _, ok := segmentOf(field)
		into := map[string]*[]bundle.Descriptor{"spec": &d.Spec, "status": &d.Status}[segment]
		if !ok || into == nil {
			continue
		}
		w := walk{sources: s, want: segment, inside: map[*markers.TypeInfo]bool{}}
		if err := w.expression(p, info.RawFile, field.RawField.Type, nil); err != nil {
			return nil, err
		}
		*into = w.found
	}
	return d, nil
}

// walk collects the descriptors of one half of an object, spec or status.
type walk struct {
	sources *Sources
	want    string
	inside  map[*markers.TypeInfo]bool // what holds the type at hand, so that one that holds itself is entered once
	found   []bundle.Descriptor
}

// expression goes into the type that an expression of file names; path leads to it. A list's items are at [0], as consoles
// expect, and a map's values where the map is, which is how operator-sdk has it.
func (w *walk) expression(p *loader.Package, file *ast.File, expr ast.Expr, path []string) error {
	switch t := expr.(type) {
	case *ast.ParenExpr:
		return w.expression(p, file, t.X, path)
	case *ast.StarExpr:
		return w.expression(p, file, t.X, path)
	case *ast.MapType:
		return w.expression(p, file, t.Value, path)
	case *ast.ArrayType:
		if len(path) > 0 {
			path = slices.Clone(path)
			path[len(path)-1] += "[0]"
		}
		return w.expression(p, file, t.Elt, path)
	case *ast.Ident:
		return w.declared(p, t.Name, path)
	case *ast.SelectorExpr:
		from, ok := t.X.(*ast.Ident)
		if !ok {
			return nil
		}
		imported := importOf(p, file, from.Name)
		if imported == nil {
			return nil
		}
		if len(imported.Errors) > 0 {
			return hint.With(fmt.Errorf("%s: read %s.%s: %s", w.sources.at(t.Pos()), from.Name, t.Sel.Name, imported.Errors[0].Msg), "make 'go build' find the package, for example with 'go mod download'")
		}
		return w.declared(imported, t.Sel.Name, path)
	}
	return nil
}

func (w *walk) declared(p *loader.Package, typeName string, path []string) error {
	types, err := w.sources.typesOf(p)
	if err != nil {
		return err
	}
	info := types[typeName]
	if info == nil || w.inside[info] {
		return nil
	}
	w.inside[info] = true
	defer delete(w.inside, info)
	if _, isStruct := info.RawSpec.Type.(*ast.StructType); !isStruct {
		return w.expression(p, info.RawFile, info.RawSpec.Type, path)
	}
	for _, field := range info.Fields {
		segment, inline, ok := segmentOf(field)
		if !ok {
			continue
		}
		here := path
		if !inline {
			here = append(slices.Clone(path), segment)
			if err := w.field(field, here); err != nil {
				return err
			}
		}
		if err := w.expression(p, info.RawFile, field.RawField.Type, here); err != nil {
			return err
		}
	}
	return nil
}

// field adds the descriptor of a marked field.
func (w *walk) field(field markers.FieldInfo, path []string) error {
	d := bundle.Descriptor{Path: strings.Join(path, "."), Text: field.Doc}
	marked := false
	for _, value := range field.Markers[name] {
		m := value.(onField)
		if m.Type != "spec" && m.Type != "status" {
			return hint.With(fmt.Errorf("%s: read the marker of field %s: its type is %q", w.sources.at(field.RawField.Pos()), field.Name, m.Type), "write type=spec or type=status")
		}
		if m.Type != w.want {
			continue // of a type that is used in both
		}
		marked = true
		d.DisplayName = cmp.Or(d.DisplayName, m.DisplayName)
		d.XDescriptors = append(d.XDescriptors, m.XDescriptors...)
		if m.Order != nil {
			d.Order = m.Order
		}
	}
	if marked {
		w.found = append(w.found, d)
	}
	return nil
}

// segmentOf returns the name of a field in JSON, by the rules of encoding/json; inline fields belong to what holds them.
// ok is false for a field that JSON does not have.
func segmentOf(field markers.FieldInfo) (segment string, inline, ok bool) {
	tag, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	switch {
	case tag == "-" && options == "":
		return "", false, false
	case tag != "":
		return tag, false, true
	case field.Name == "" || slices.Contains(strings.Split(options, ","), "inline"):
		return "", true, true
	case !ast.IsExported(field.Name):
		return "", false, false
	}
	return field.Name, false, true
}

// importOf returns the package that file calls name.
func importOf(p *loader.Package, file *ast.File, name string) *loader.Package {
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		imported := p.Imports()[path]
		if imported == nil {
			continue
		}
		called := cmp.Or(imported.Name, pathpkg.Base(path)) // one that was not found has no name
		if spec.Name != nil {
			called = spec.Name.Name
		}
		if called == name {
			return imported
		}
	}
	return nil
}
