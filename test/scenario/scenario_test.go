// Package scenario_test rebuilds failures that real operators had as small chains of this repository's operators, and asks
// whether olmkit says what is wrong with them: before anything is installed, while OLM upgrades, or both. Each folder of
// testdata is one scenario; README.md says what belongs in it.
package scenario_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"sigs.k8s.io/yaml"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/check"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/report"
	"github.com/olmkit/olmkit/test/support/pattern"
)

// pkg is the package of scenarios that name no operator, and tea that of the differences between OLM v0 and v1: its bundle is
// small, and nothing runs.
const (
	pkg = "memcached-operator"
	tea = "tea-operator"
)

// operator is what scenarios are made of: an operator of this repository, with its releases.
type operator struct {
	dir     string            // where the bundles are, and for redis-operator the Go module
	bundles string            // below dir, with a folder for each version
	newest  string            // version that stands in dir; earlier ones stand in dir/releases
	images  map[string]string // programs below bin/ of the images that it runs for its objects
	chain   []entry           // what counterparts walk, if it is always the same
	pattern string            // below dir, the bundle of every release, in which VERSION stands for its version; then there are no others
}

var pending = flag.Bool("pending", false, "walk also the scenarios that the walk does not tell all of yet")

var operators = map[string]operator{
	pkg: {dir: "operator", bundles: "../bundle/" + pkg, newest: "0.5.0"},
	"redis-operator": {
		dir: "examples/redis-operator", bundles: "bundle", newest: "0.3.0",
		images: map[string]string{"docker.io/library/redis:8.2.1": "redis-server"},
		chain:  []entry{{Version: "0.1.0"}, {Version: "0.2.0"}, {Version: "0.3.0"}},
	},
	tea: {dir: "test/scenario", pattern: "tea"},
}

// root is the repository's root.
var root = func() string {
	dir, err := filepath.Abs("../..")
	if err != nil {
		panic(err)
	}
	return dir
}()

// scenario is what a folder's scenario.yaml says.
type scenario struct {
	dir string

	Failures    []failure `json:"failures"` // in public, that the scenario rebuilds
	About       string    `json:"about"`    // what is broken, and how one comes to break it
	packaged              // the broken releases
	Counterpart *packaged `json:"counterpart"` // the sound ones; by default the same without what releases says
	Flags       []string  `json:"flags"`       // of 'olmkit upgrade test', besides those that every scenario has
	Expect      expected  `json:"expect"`      // what olmkit has to say
	Nightly     string    `json:"nightly"`     // the nearest scenario that every run walks; this one is walked without -short
}

// failure is where the public can read of a failure.
type failure struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	What string `json:"what"` // happened, in a sentence
}

// packaged are releases and where each stands in the channels.
type packaged struct {
	Operator string              `json:"operator"` // package; memcached-operator by default
	Channels map[string][]entry  `json:"channels"` // from the oldest; the default channel is stable
	Before   map[string][]entry  `json:"before"`   // the channels of the catalog that users have, for what --against finds
	Releases map[string][]change `json:"releases"` // by version, what is another in its bundle than in the product's

	Documents []json.RawMessage `json:"documents"` // more of the catalog
}

// entry is a channel's entry. Versions stand for the names of bundles; what begins with no digit is a name as it stands.
type entry struct {
	Version   string   `json:"version"`
	Replaces  *string  `json:"replaces"` // by default the entry before
	Skips     []string `json:"skips"`
	SkipRange string   `json:"skipRange"`
}

// UnmarshalJSON also reads an entry that is a version alone.
func (e *entry) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &e.Version) == nil {
		return nil
	}
	type plain entry
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	return decoder.Decode((*plain)(e))
}

// change alters the manifests of a kind by a JSON patch, adds a file, or alters a source of the manager.
type change struct {
	In    string          `json:"in"` // kind
	Patch json.RawMessage `json:"patch"`
	Add   json.RawMessage `json:"add"`
	As    string          `json:"as"` // where in the bundle; by default among the manifests

	Source  string `json:"source"`  // file below the operator's folder
	Replace string `json:"replace"` // what is there once
	By      string `json:"by"`
}

type expected struct {
	Static   []expectedFound `json:"static"`   // what 'olmkit catalog validate' finds beforehand, among others
	Exit     int             `json:"exit"`     // of 'olmkit upgrade test'
	Hops     []expectedHop   `json:"hops"`     // all hops, in their order; where there are none nothing is walked
	Findings []expectedFound `json:"findings"` // while walking, among others; but no error that is not expected here
	May      []string        `json:"may"`      // codes of errors that there may be besides, as the moment has it
	Pending  string          `json:"pending"`  // why the walk does not say all of this yet: walked only with -pending
}

type expectedHop struct {
	From   string        `json:"from"` // versions
	To     string        `json:"to"`
	Result report.Result `json:"result"`

	Rollback report.Result `json:"rollback"` // of the rollback, where the flags ask for it
}

type expectedFound struct {
	Code     string           `json:"code"`
	Severity finding.Severity `json:"severity"`
	From     string           `json:"from"`    // version, for any when empty
	To       string           `json:"to"`      // version that the hop leads to; "" for findings about no hop
	Object   string           `json:"object"`  // part of the object's name
	Message  []string         `json:"message"` // parts of the message or the cause: which of them tells is a matter of the moment
	Cause    []string         `json:"cause"`   // parts of the cause
	Fix      []string         `json:"fix"`     // parts of the fix
}

// scenarios reads testdata.
func scenarios(t *testing.T) []scenario {
	t.Helper()
	files, err := filepath.Glob("testdata/*/scenario.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("testdata holds no scenario: %v", err)
	}
	var list []scenario
	daily := map[string]bool{"": true}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s := scenario{dir: filepath.Dir(file)}
		if err := yaml.UnmarshalStrict(data, &s); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		s.Operator = cmp.Or(s.Operator, pkg)
		list = append(list, s)
		daily[s.name()] = s.Nightly == ""
	}
	groups := groups(t)
	for i, s := range list {
		if !daily[s.Nightly] {
			t.Fatalf("%s: nightly names no scenario that every run walks: %s", s.dir, s.Nightly)
		}
		for group, members := range groups {
			if slices.Contains(members, s.name()) {
				list[i].Nightly = group
			}
		}
	}
	return list
}

// groups reads together.yaml: the names of scenarios, by that of their group.
func groups(t *testing.T) (groups map[string][]string) {
	t.Helper()
	data, err := os.ReadFile("together.yaml")
	if err == nil {
		err = yaml.UnmarshalStrict(data, &groups)
	}
	if err != nil {
		t.Fatalf("together.yaml: %v", err)
	}
	return groups
}

// together is a scenario whose releases are broken as those of each of members are, and that expects what all of them do.
func together(name string, members []scenario) (scenario, error) {
	all := scenario{dir: filepath.Join("together", name), packaged: members[0].packaged, Flags: members[0].Flags, Expect: members[0].Expect}
	all.Releases = map[string][]change{}
	all.Expect.Hops, all.Expect.Findings, all.Expect.May = slices.Clone(all.Expect.Hops), nil, nil
	for _, s := range members {
		files, err := filepath.Glob(filepath.Join(s.dir, "*"))
		if err != nil {
			return scenario{}, err
		}
		if s.Operator != all.Operator || !reflect.DeepEqual(s.Channels, all.Channels) || !slices.Equal(s.Flags, all.Flags) || len(s.Documents) > 0 || len(files) > 1 {
			return scenario{}, fmt.Errorf("%s: %s has another operator, other channels or flags, or files and documents of its own", name, s.name())
		}
		for version, changes := range s.Releases {
			all.Releases[version] = append(all.Releases[version], changes...)
		}
		for i, h := range s.Expect.Hops {
			if h.Result == report.Failed {
				all.Expect.Hops[i].Result = report.Failed
			}
		}
		all.Expect.Exit = max(all.Expect.Exit, s.Expect.Exit)
		all.Expect.Findings = append(all.Expect.Findings, s.Expect.Findings...)
		all.Expect.May = append(all.Expect.May, s.Expect.May...)
	}
	return all, nil
}

// walked reports whether s is one to be walked now.
func (s scenario) walked() bool {
	return len(s.Expect.Hops) > 0 && (s.Expect.Pending == "" || *pending) && (s.Nightly == "" || !testing.Short())
}

func (s scenario) name() string { return filepath.Base(s.dir) }

// sound are the releases in which nothing is broken.
func (s scenario) sound() packaged {
	switch chain := operators[s.Operator].chain; {
	case s.Counterpart != nil:
		s.Counterpart.Operator = s.Operator
		return *s.Counterpart
	case chain != nil:
		return packaged{Operator: s.Operator, Channels: map[string][]entry{"stable": chain}}
	}
	return packaged{Operator: s.Operator, Channels: s.Channels, Before: s.Before}
}

// TestStatic holds what is found beforehand against each scenario, and looks for none of it in the counterpart.
func TestStatic(t *testing.T) {
	for _, s := range scenarios(t) {
		t.Run(s.name(), func(t *testing.T) {
			checkFound(t, s.judge(t), s.Expect.Static)
			for _, f := range s.sound().judge(t) {
				if f.Severity == finding.Error || slices.ContainsFunc(s.Expect.Static, func(w expectedFound) bool { return w.fits(f) }) {
					t.Errorf("of the counterpart is found:\n%s", describe(f))
				}
			}
		})
	}
}

// judge returns what the static checks find.
func (p packaged) judge(t *testing.T) []finding.Finding {
	t.Helper()
	read := func(channels map[string][]entry) *catalog.Catalog {
		return catalog.Parse("catalog.yaml", p.catalog(t, channels))
	}
	options := check.Options{}
	if p.Before != nil {
		options.Previous = read(p.Before)
	}
	findings, _ := check.Catalog(read(p.Channels), options)
	return findings
}

// catalog makes the file-based catalog of the releases in channels.
func (p packaged) catalog(t *testing.T, channels map[string][]entry) []byte {
	t.Helper()
	var out bytes.Buffer
	write := func(document any) {
		data, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n" + string(data) + "\n")
	}
	write(map[string]any{"schema": catalog.SchemaPackage, "name": p.Operator, "defaultChannel": "stable"})
	for _, channel := range slices.Sorted(maps.Keys(channels)) {
		var entries []map[string]any
		for i, e := range channels[channel] {
			fields := map[string]any{"name": p.bundleName(e.Version)}
			switch {
			case e.Replaces != nil:
				fields["replaces"] = p.bundleName(*e.Replaces)
			case i > 0:
				fields["replaces"] = p.bundleName(channels[channel][i-1].Version)
			}
			var skips []string
			for _, skipped := range e.Skips {
				skips = append(skips, p.bundleName(skipped))
			}
			if skips != nil {
				fields["skips"] = skips
			}
			if e.SkipRange != "" {
				fields["skipRange"] = e.SkipRange
			}
			entries = append(entries, fields)
		}
		write(map[string]any{"schema": catalog.SchemaChannel, "package": p.Operator, "name": channel, "entries": entries})
	}
	for _, version := range versions(channels) {
		b, err := bundle.Read(p.bundle(t, version))
		if err != nil {
			t.Fatal(err)
		}
		document, err := catalog.Render(b, "")
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n" + string(document.JSON) + "\n")
	}
	for _, d := range p.Documents {
		write(d)
	}
	return out.Bytes()
}

func (p packaged) bundleName(version string) string {
	if version == "" || version[0] < '0' || version[0] > '9' {
		return version
	}
	return p.Operator + ".v" + version
}

// versions returns the versions in channels, sorted by their text.
func versions(channels map[string][]entry) []string {
	var list []string
	for _, entries := range channels {
		for _, e := range entries {
			list = append(list, e.Version)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// bundle returns the folder of a release's bundle: the product's, or a copy of it with what is changed.
func (p packaged) bundle(t *testing.T, version string) string {
	t.Helper()
	of := operators[p.Operator]
	product := filepath.Join(root, of.dir, of.bundles, version)
	if of.pattern != "" {
		product = pattern.Fill(t, filepath.Join(root, of.dir, of.pattern), version)
	}
	changes := slices.DeleteFunc(slices.Clone(p.Releases[version]), func(c change) bool { return c.Source != "" })
	if len(changes) == 0 {
		return product
	}
	made := t.TempDir()
	if err := os.CopyFS(made, os.DirFS(product)); err != nil {
		t.Fatal(err)
	}
	for i, c := range changes {
		if c.Add != nil {
			file := cmp.Or(c.As, fmt.Sprintf("manifests/added-%d.yaml", i))
			if err := os.WriteFile(filepath.Join(made, file), c.Add, 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := c.apply(filepath.Join(made, "manifests")); err != nil {
			t.Fatalf("%s: %v", version, err)
		}
	}
	return made
}

// apply patches the manifests in dir that are of the change's kind, of which there must be one at least.
func (c change) apply(dir string) error {
	patch, err := jsonpatch.DecodePatch(c.Patch)
	if err != nil {
		return fmt.Errorf("patch of %s: %w", c.In, err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return err
	}
	patched := false
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		manifest, err := yaml.YAMLToJSON(data)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		var head struct {
			Kind string `json:"kind"`
		}
		if err := json.Unmarshal(manifest, &head); err != nil || head.Kind != c.In {
			continue
		}
		if manifest, err = patch.Apply(manifest); err != nil {
			return fmt.Errorf("patch of %s: %w", filepath.Base(file), err)
		}
		if err := os.WriteFile(file, manifest, 0o600); err != nil {
			return err
		}
		patched = true
	}
	if !patched {
		return fmt.Errorf("no manifest is of kind %s", c.In)
	}
	return nil
}

// checkFound looks for each finding that is wanted, and returns which of all were.
func checkFound(t *testing.T, all []finding.Finding, want []expectedFound) []bool {
	t.Helper()
	met := make([]bool, len(all))
	for _, w := range want {
		found := false
		for i, f := range all {
			if w.fits(f) {
				found, met[i] = true, true
			}
		}
		if !found {
			t.Errorf("nothing says %+v; of that code there is\n%s", w, ofCode(all, w.Code))
		}
	}
	return met
}

// fits reports whether f says what w expects.
func (w expectedFound) fits(f finding.Finding) bool {
	if f.Code != w.Code && !slices.Contains(f.Also, w.Code) || f.Severity != w.Severity || versionOf(f.Subject.To) != w.To || w.From != "" && versionOf(f.Subject.From) != w.From ||
		!strings.Contains(f.Subject.Object, w.Object) {
		return false
	}
	says := func(text string, parts []string) bool {
		return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(text, p) })
	}
	return says(f.Message+"\n"+f.Cause, w.Message) && says(f.Cause, w.Cause) && says(f.Fix, w.Fix)
}

// versionOf returns the version in the name of a bundle.
func versionOf(bundle string) string {
	if _, version, ok := strings.Cut(bundle, ".v"); ok {
		return version
	}
	return bundle
}

func ofCode(all []finding.Finding, code string) string {
	var list []string
	for _, f := range all {
		if f.Code == code || slices.Contains(f.Also, code) {
			list = append(list, describe(f))
		}
	}
	return strings.Join(list, "\n")
}

func describe(f finding.Finding) string {
	return fmt.Sprintf("%s %s %+v\n  %s\n  cause: %s\n  fix: %s", f.Severity, f.Code, f.Subject, f.Message, f.Cause, f.Fix)
}

// exists reports whether there is such a file.
func exists(t *testing.T, file string) bool {
	t.Helper()
	_, err := os.Stat(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}
