// Package scaffold owns the files that a kubebuilder project needs to be packaged with olmkit: what 'olmkit init' writes.
package scaffold

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/mail"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/output"
	"github.com/olmkit/olmkit/internal/project"
)

// Options are what a user says of the operator; Complete fills in what is empty.
type Options struct {
	Package     string
	DisplayName string
	Description string
	Provider    string
	Maintainers []string // each NAME <EMAIL>
	ImageBase   string   // of the manager's image, without a tag
	Channel     string
	Version     string
}

// Complete returns o with defaults from what the project's makefiles say, and what kubebuilder knows of it.
func (o Options) Complete(k *project.Kubebuilder, said Options) Options {
	o.Version, o.ImageBase = cmp.Or(o.Version, said.Version), cmp.Or(o.ImageBase, said.ImageBase)
	o.Package = cmp.Or(o.Package, k.Name)
	o.DisplayName = cmp.Or(o.DisplayName, titled(o.Package))
	if o.Description == "" {
		o.Description = "Manages " + cmp.Or(strings.Join(k.Kinds(), ", "), o.Package) + "."
	}
	host, path, _ := strings.Cut(k.Repo, "/")
	owner, _, _ := strings.Cut(path, "/")
	if host == "github.com" && owner != "" {
		o.ImageBase = cmp.Or(o.ImageBase, "ghcr.io/"+strings.ToLower(owner)+"/"+o.Package)
	}
	o.ImageBase = cmp.Or(o.ImageBase, cmp.Or(k.Domain, "example.com")+"/"+o.Package)
	o.Provider = cmp.Or(o.Provider, owner, k.Domain, o.Package)
	o.Channel = cmp.Or(o.Channel, "stable")
	o.Version = cmp.Or(o.Version, "0.1.0")
	return o
}

// assigned matches what a makefile sets one of the variables to that olmkit.mk has, too: a plain value.
var assigned = regexp.MustCompile(`(?m)^(VERSION|IMAGE_TAG_BASE)[ \t]*(\?|:{1,2})?=[ \t]*([^\s$#]+)[ \t]*(?:#.*)?\r?$`)

// Said is what makefiles in dir say of the release and its image, as to make: what the Makefile sets counts before what olmkit.mk does by ?=, and
// that before the Makefile's own ?=.
func Said(dir string) (Options, error) {
	var o Options
	set := func(name, value string) {
		switch {
		case name == "IMAGE_TAG_BASE" && imageBase.MatchString(value):
			o.ImageBase = cmp.Or(o.ImageBase, value)
		case name == "VERSION" && isVersion(value):
			o.Version = cmp.Or(o.Version, value)
		}
	}
	own, err := readMakefile(dir, makefile)
	if err != nil {
		return o, err
	}
	ours, err := readMakefile(dir, included)
	if err != nil {
		return o, err
	}
	for _, from := range []struct {
		text   []byte
		counts func(operator string) bool
	}{
		{own, func(operator string) bool { return operator != "?" }},
		{ours, func(string) bool { return true }},
		{own, func(operator string) bool { return operator == "?" }},
	} {
		for _, m := range assigned.FindAllStringSubmatch(string(from.text), -1) {
			if from.counts(m[2]) {
				set(m[1], m[3])
			}
		}
	}
	return o, nil
}

// readMakefile reads one of the project's makefiles, which is empty if it is not there.
func readMakefile(dir, name string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the project's makefiles: %w", err)
	}
	return text, nil
}

func isVersion(text string) bool {
	_, err := semver.Parse(text)
	return err == nil
}

// target matches the targets of a makefile, in one line, that are plain words and have a recipe.
var target = regexp.MustCompile(`(?m)^([a-z][a-z -]*?)[ \t]*:(?:[^=\n][^\n]*)?\r?\n\t`)

// Clashes are the targets that both the Makefile in dir, after it includes olmkit.mk, and olmkit.mk have a recipe for: make runs the later one.
func Clashes(dir string) ([]string, error) {
	var targets [2][]string
	for i, name := range []string{makefile, included} {
		text, err := readMakefile(dir, name)
		if err != nil {
			return nil, err
		}
		if at := includes.FindIndex(text); at != nil {
			text = text[at[1]:]
		}
		for _, m := range target.FindAllSubmatch(text, -1) {
			targets[i] = append(targets[i], strings.Fields(string(m[1]))...)
		}
	}
	both := slices.DeleteFunc(targets[0], func(name string) bool { return !slices.Contains(targets[1], name) })
	slices.Sort(both)
	return slices.Compact(both), nil
}

// titled is a name in words: Redis Operator for redis-operator.
func titled(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	for i, w := range words {
		words[i] = string(unicode.ToUpper(rune(w[0]))) + w[1:]
	}
	return strings.Join(words, " ")
}

// imageBase is a reference without tag and digest, with a registry's host.
var imageBase = regexp.MustCompile(`^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)+$`)

// Check returns what is wrong with completed options, each an error that names the flag.
func (o Options) Check() error {
	var errs []error
	named := len(validation.IsDNS1123Subdomain(o.Package)) == 0
	if !named {
		errs = append(errs, hint.With(fmt.Errorf("--package %q: it is no name of a package", o.Package), "use lower case letters, digits, dashes and dots"))
	}
	if _, err := semver.Parse(o.Version); err != nil {
		errs = append(errs, hint.With(fmt.Errorf("--version %s: %w", o.Version, err), "write it as 0.1.0, without a v"))
	}
	if named && !imageBase.MatchString(o.ImageBase) { // the package's name is in the default
		errs = append(errs, hint.With(fmt.Errorf("--image-tag-base %q: it is no image without a tag", o.ImageBase), "write for example ghcr.io/team/my-operator"))
	}
	if !regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]*$`).MatchString(o.Channel) {
		errs = append(errs, hint.With(fmt.Errorf("--channel %q: it is no name of a channel", o.Channel), "use letters, digits, dashes and dots"))
	}
	for _, m := range o.Maintainers {
		if a, err := mail.ParseAddress(m); err != nil || a.Name == "" {
			errs = append(errs, hint.With(fmt.Errorf("--maintainer %q: it is no name with an address", m), "write for example 'Jo Doe <jo@example.com>'"))
		}
	}
	return errors.Join(errs...)
}

// Result is what became of a file.
type Result struct {
	Path   string `json:"path"`
	Action string `json:"action"` // one of the constants below
}

// What becomes of a file.
const (
	Written = "written"
	Changed = "changed"    // the Makefile, which includes one more file
	Same    = "up to date" // it is what would be written
	Kept    = "kept"       // it is there, and the user's
)

//go:embed files
var files embed.FS

// Write writes the files that the kubebuilder project in dir lacks. A file that is there is never overwritten; only the
// Makefile gets a block of its own at the beginning.
func Write(ctx context.Context, dir string, k *project.Kubebuilder, o Options) ([]Result, error) {
	made, err := render(dir, k, o)
	if err != nil {
		return nil, err
	}
	var results []Result
	for _, f := range made {
		action, err := write(ctx, filepath.Join(dir, f.path), f.text)
		if err != nil {
			return results, err
		}
		results = append(results, Result{f.path, action})
	}
	action, err := include(ctx, filepath.Join(dir, makefile))
	if err != nil {
		return results, err
	}
	return append(results, Result{makefile, action}), nil
}

type file struct {
	path string
	text []byte
}

// render returns the files, but for the Makefile.
func render(dir string, k *project.Kubebuilder, o Options) ([]file, error) {
	placeholders, err := fill(dir, k, o)
	if err != nil {
		return nil, err
	}
	var made []file
	for _, f := range []struct{ template, path string }{
		{"olmkit.yaml", project.FileName},
		{"csv.yaml", "config/manifests/bases/" + o.Package + ".clusterserviceversion.yaml"},
		{"kustomization.yaml", "config/manifests/kustomization.yaml"},
		{"catalog-template.yaml", "catalog-template.yaml"},
		{"olmkit.mk", included},
		{"workflow.yml", ".github/workflows/olmkit.yml"},
	} {
		text, err := files.ReadFile("files/" + f.template + ".tmpl")
		if err != nil {
			return nil, fmt.Errorf("make %s: %w", f.path, err)
		}
		made = append(made, file{f.path, []byte(placeholders.Replace(string(text)))})
	}
	return made, nil
}

// fill returns what stands for the placeholders in files. Those that are alone on their line are whole lines, or none.
func fill(dir string, k *project.Kubebuilder, o Options) (*strings.Replacer, error) {
	maintained, err := maintainers(o.Maintainers)
	if err != nil {
		return nil, err
	}
	text, err := readMakefile(dir, makefile)
	if err != nil {
		return nil, err
	}
	manifests := regexp.MustCompile(`(?m)^manifests\s*:([^=]|$)`).Match(text)
	return strings.NewReplacer(
		"{{package}}", o.Package,
		"{{version}}", o.Version,
		"{{channel}}", o.Channel,
		"{{image}}", o.ImageBase,
		"{{displayName}}", quoted(o.DisplayName),
		"{{description}}", quoted(o.Description),
		"{{provider}}", quoted(o.Provider),
		"{{keywords}}\n", keywords(k, o.Package),
		"{{maintainers}}\n", maintained,
		"{{homepage}}\n", homepage(k.Repo),
		"{{api}}\n", api(dir),
		"{{samples}}\n", when(isDir(dir, "config/samples"), "- ../samples\n"),
		"{{scorecard}}\n", when(isDir(dir, "config/scorecard"), "- ../scorecard\n"),
		"{{manifests}}", when(manifests, " manifests"),
		"{{main}}", "."+when(isDir(dir, "cmd"), "/cmd"),
	), nil
}

// when is text, or nothing.
func when(is bool, text string) string {
	if is {
		return text
	}
	return ""
}

// keywords are the project's kinds, or the package if it has none.
func keywords(k *project.Kubebuilder, pkg string) string {
	words := k.Kinds()
	if len(words) == 0 {
		words = []string{pkg}
	}
	var lines strings.Builder
	for _, w := range words {
		lines.WriteString("  - " + quoted(strings.ToLower(w)) + "\n")
	}
	return lines.String()
}

// maintainers are those of the list, each NAME <EMAIL>.
func maintainers(list []string) (string, error) {
	if len(list) == 0 {
		return "", nil
	}
	lines := "  maintainers:\n"
	for _, m := range list {
		a, err := mail.ParseAddress(m)
		if err != nil {
			return "", fmt.Errorf("maintainer %q: %w", m, err)
		}
		lines += "  - name: " + quoted(a.Name) + "\n    email: " + quoted(a.Address) + "\n"
	}
	return lines, nil
}

// homepage is the repository's page, if it is on GitHub.
func homepage(repo string) string {
	if !strings.HasPrefix(repo, "github.com/") {
		return ""
	}
	parts := strings.Split(repo, "/")
	url := "https://" + strings.Join(parts[:min(3, len(parts))], "/")
	return "    url: " + url + "\n  links:\n  - name: Source\n    url: " + url + "\n"
}

// api names the folder of the project's API, if there is one.
func api(dir string) string {
	for _, api := range []string{"api", "apis"} { // kubebuilder's layouts 4 and 3, the latter with several groups
		if isDir(dir, api) {
			return "    api: [" + api + "]\n"
		}
	}
	return ""
}

func isDir(dir, name string) bool {
	info, err := os.Stat(filepath.Join(dir, name))
	return err == nil && info.IsDir()
}

// plain is a text that means itself in YAML.
var plain = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9 ,./()-]*$`)

// quoted is text as a YAML scalar.
func quoted(text string) string {
	switch strings.ToLower(text) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
	default:
		if plain.MatchString(text) && !strings.HasSuffix(text, " ") {
			return text
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // any text can be encoded
	return strings.TrimSpace(b.String())
}

// write writes a file that is not there.
func write(ctx context.Context, path string, text []byte) (string, error) {
	there, err := os.ReadFile(path)
	switch {
	case err == nil && bytes.Equal(there, text):
		return Same, nil
	case err == nil:
		return Kept, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	return Written, output.Write(ctx, path, text)
}

const (
	makefile = "Makefile"
	included = "olmkit.mk" // by the Makefile
)

// block is the block of the Makefile. It comes first, so that the project's own 'IMG ?=' follows olmkit.mk's.
const block = `# olmkit: begin. What is set here comes before the defaults below.
include olmkit.mk
# olmkit: end.

`

// includes is a Makefile that includes olmkit.mk.
var includes = regexp.MustCompile(`(?m)^[ \t]*-?include[ \t]+(\S+[ \t]+)*olmkit\.mk\b`)

// include makes the Makefile at path include olmkit.mk.
func include(ctx context.Context, path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if includes.Match(text) {
		return Same, nil
	}
	return Changed, output.Write(ctx, path, append([]byte(block), text...))
}
