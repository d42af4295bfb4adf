// Package project reads olmkit.yaml, in which a project says once what its command lines would repeat.
package project

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/nearest"
)

// FileName is what the file of a project is called.
const FileName = "olmkit.yaml"

// Settings are the keys of an olmkit.yaml. The JSON schema and docs/configuration.md are made from them.
type Settings struct {
	Package      string   `json:"package,omitempty" jsonschema:"name of the operator's package"`
	Catalog      string   `json:"catalog,omitempty" jsonschema:"the package's file-based catalog: a directory, a file or an image"`
	Images       []string `json:"images,omitempty" jsonschema:"what images run in tests, each as REF=PROGRAM; {version} in both stands for the version of each bundle, and versions whose program does not exist are simulated"`
	Samples      []string `json:"samples,omitempty" jsonschema:"files with the samples that upgrade tests create instead of the bundles' alm-examples of the same kinds and versions"`
	Assertions   []string `json:"assertions,omitempty" jsonschema:"files with the partial objects that must match after installation and after each hop of an upgrade test"`
	Suppressions string   `json:"suppressions,omitempty" jsonschema:"file of suppressed findings, each with a reason and an expiry date"`
	Cluster      string   `json:"cluster,omitempty" jsonschema:"kind of cluster of upgrade tests: embedded, kind or existing"`
	Settle       string   `json:"settle,omitempty" jsonschema:"how long nothing must change in an upgrade test before a version counts as stable, for example 2s"`

	Flags map[string]map[string]json.RawMessage `json:"flags,omitempty" jsonschema:"further flags by command, for example upgrade test: {timeout: 10m}"`
}

// File is an olmkit.yaml that was read.
type File struct {
	Settings
	Path string // as messages name it

	document *document.Document // nil for a file without any
}

// Find returns the path of the olmkit.yaml in dir or the nearest directory above it, up to the root of dir's git
// repository, or "" if there is none. The path is relative to dir. A file that somebody else has put there is an error: it says
// what olmkit writes and runs.
func Find(dir string) (string, error) {
	for at, name := dir, FileName; ; name = filepath.Join("..", name) {
		info, err := os.Stat(filepath.Join(at, FileName))
		if err == nil {
			return name, check(dir, name, info)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", hint.With(fmt.Errorf("look for %s: %w", FileName, err), "name the file with --project, or none with --project none")
		}
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			return "", nil
		}
		above := filepath.Dir(at)
		if above == at {
			return "", nil
		}
		at = above
	}
}

// check refuses the file called name, found for dir, if it is none to be read unasked.
func check(dir, name string, found fs.FileInfo) error {
	if !found.Mode().IsRegular() {
		return hint.With(fmt.Errorf("%s is no regular file", name), "name the settings with --project, or none with --project none")
	}
	above, err := os.Stat(dir)
	if err != nil {
		return err
	}
	file, ok := found.Sys().(*syscall.Stat_t)
	own, known := above.Sys().(*syscall.Stat_t)
	if ok && known && !trusted(int(file.Uid), int(own.Uid), os.Geteuid()) {
		return hint.With(fmt.Errorf("%s belongs to another user, and not to the one of the working directory", name),
			"name it with --project %s if you trust what it says, or none with --project none", name)
	}
	return nil
}

// trusted reports whether a file of the user owner is read unasked, in a directory of the user dir, by the user me.
func trusted(owner, dir, me int) bool { return owner == me || owner == dir || owner == 0 }

// Read reads an olmkit.yaml. Its error joins all that is wrong with the file, each with its line.
func Read(path string) (*File, error) {
	data, err := document.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the project's settings: %w", err)
	}
	documents, err := document.Parse(path, data)
	if err != nil {
		return nil, err
	}
	f := &File{Path: path}
	switch len(documents) {
	case 0:
		return f, nil
	case 1:
		f.document = documents[0]
	default:
		return nil, fmt.Errorf("%s: %s holds one document, and this is another", documents[1].At, FileName)
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	if err := document.Decode(f.document.JSON, &f.Settings); err != nil {
		return nil, fmt.Errorf("%s: %w", f.document.At, err)
	}
	return f, nil
}

// At returns where in the file the value at path stands.
func (f *File) At(path ...any) finding.Location {
	if f.document == nil {
		return finding.Location{File: f.Path}
	}
	return f.document.Place(path...)
}

// Resolve returns a path that the file holds, which is relative to the file, relative to the working directory.
func (f *File) Resolve(path string) string {
	if path == "" || path == "-" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(f.Path), path)
}

// check returns what is wrong with the document: unknown keys, keys that stand there twice, and values of another type.
func (f *File) check() error {
	var wrong []error
	for _, twice := range f.document.Duplicates() {
		wrong = append(wrong, fmt.Errorf("%s: the key %s stands here twice", twice.At, twice.Key))
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(f.document.JSON, &fields) != nil {
		return fmt.Errorf("%s: it must be a mapping, as in 'package: my-operator'", f.document.At)
	}
	known, names := map[string]reflect.Type{}, []string{}
	for i, t := 0, reflect.TypeFor[Settings](); i < t.NumField(); i++ {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		known[name], names = t.Field(i).Type, append(names, name)
	}
	for _, name := range inOrder(f, fields) {
		if known[name] == nil {
			wrong = append(wrong, f.Unknown("key", name, names, name))
			continue
		}
		wrong = append(wrong, f.fits(fields[name], known[name], name))
	}
	return errors.Join(wrong...)
}

// inOrder returns the keys of the mapping at path as they stand in the file.
func inOrder[V any](f *File, mapping map[string]V, path ...any) []string {
	return slices.SortedFunc(maps.Keys(mapping), func(a, b string) int {
		here, there := f.At(append(path[:len(path):len(path)], a)...), f.At(append(path[:len(path):len(path)], b)...)
		return cmp.Or(cmp.Compare(here.Line, there.Line), cmp.Compare(here.Column, there.Column), strings.Compare(a, b))
	})
}

// Unknown returns the error of a name of what, at path, that is none of known.
func (f *File) Unknown(what, name string, known []string, path ...any) error {
	err := fmt.Errorf("%s: there is no %s %q", f.At(path...), what, name)
	if near := nearest.Meant(name, known); near != "" {
		return hint.With(err, "did you mean %s?", near)
	}
	return hint.With(err, "choose one of %s", strings.Join(known, ", "))
}

// fits returns what is wrong with the value raw at path, which is to be of the type t.
func (f *File) fits(raw json.RawMessage, t reflect.Type, path ...any) error {
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		if _, err := texts(raw); err != nil {
			return fmt.Errorf("%s: %v: %w", f.At(path...), path[len(path)-1], err)
		}
	case t.Kind() == reflect.String:
		var text string
		if raw[0] != '"' || json.Unmarshal(raw, &text) != nil {
			return fmt.Errorf("%s: %v is a text, not %s", f.At(path...), path[0], raw)
		}
	case t.Kind() == reflect.Slice:
		var items []json.RawMessage
		if raw[0] != '[' || json.Unmarshal(raw, &items) != nil {
			return fmt.Errorf("%s: %v is a list, as in '%v: [one, two]'", f.At(path...), path[0], path[0])
		}
		var wrong []error
		for i, item := range items {
			wrong = append(wrong, f.fits(item, t.Elem(), append(path[:len(path):len(path)], i)...))
		}
		return errors.Join(wrong...)
	case t.Kind() == reflect.Map:
		var values map[string]json.RawMessage
		if raw[0] != '{' || json.Unmarshal(raw, &values) != nil {
			return fmt.Errorf("%s: %v is a mapping", f.At(path...), path[len(path)-1])
		}
		var wrong []error
		for _, name := range inOrder(f, values, path...) {
			wrong = append(wrong, f.fits(values[name], t.Elem(), append(path[:len(path):len(path)], name)...))
		}
		return errors.Join(wrong...)
	}
	return nil
}

// Flag is a flag of a command that the file sets.
type Flag struct {
	Command, Name string
	Values        []string // several for a flag that can be repeated
}

// Commands returns the commands whose flags the file sets, in the order of the text.
func (f *File) Commands() []string { return inOrder(f, f.Flags, "flags") }

// FlagList returns what the file's flags say, in the order of the text.
func (f *File) FlagList() []Flag {
	var all []Flag
	for _, command := range f.Commands() {
		for _, name := range inOrder(f, f.Flags[command], "flags", command) {
			values, _ := texts(f.Flags[command][name]) // it was read before
			all = append(all, Flag{Command: command, Name: name, Values: values})
		}
	}
	return all
}

// texts returns a scalar, or the scalars of a list, as they are written on a command line.
func texts(raw json.RawMessage) ([]string, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	all := []string{}
	for _, item := range list {
		switch item.(type) {
		case string, bool, json.Number:
			all = append(all, fmt.Sprint(item))
		default:
			return nil, fmt.Errorf("a flag's value is a text, a number, true, false, or a list of those, not %s", raw)
		}
	}
	return all, nil
}
