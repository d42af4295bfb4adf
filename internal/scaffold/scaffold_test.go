package scaffold

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/olmkit/olmkit/internal/project"
)

func TestComplete(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		given      Options
		kubebuild  project.Kubebuilder
		wantedBase string
		provider   string
	}{
		"on GitHub":          {Options{}, project.Kubebuilder{Name: "tea-pot", Domain: "example.org", Repo: "github.com/Team/teas/pot"}, "ghcr.io/team/tea-pot", "Team"},
		"elsewhere":          {Options{}, project.Kubebuilder{Name: "tea-pot", Domain: "example.org", Repo: "example.org/pot"}, "example.org/tea-pot", "pot"},
		"without a domain":   {Options{}, project.Kubebuilder{Name: "tea-pot", Repo: "pot"}, "example.com/tea-pot", "tea-pot"},
		"what is said stays": {Options{ImageBase: "quay.io/a/b", Provider: "Me"}, project.Kubebuilder{Name: "tea-pot", Repo: "github.com/team/teas"}, "quay.io/a/b", "Me"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := test.given.Complete(&test.kubebuild, Options{})
			want := Options{Package: "tea-pot", DisplayName: "Tea Pot", Description: "Manages tea-pot.", Provider: test.provider, ImageBase: test.wantedBase, Channel: "stable", Version: "0.1.0"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("wanted and got (-/+):\n%s", diff)
			}
			if err := got.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// What the makefiles of an operator-sdk project say is taken over, and targets that are there twice are told.
func TestMakefiles(t *testing.T) {
	t.Parallel()
	k := &project.Kubebuilder{Name: "tea"}
	dir := t.TempDir()
	theirs := "VERSION ?= 1.4.0\nIMAGE_TAG_BASE ?= quay.io/acme/tea # ours\nIMG := $(IMAGE_TAG_BASE):v$(VERSION)\n\n.PHONY: bundle\nbundle: manifests ## Make it.\n\toperator-sdk generate bundle\nall : build\n"
	if err := os.WriteFile(filepath.Join(dir, "Makefile"), []byte(theirs), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, given := range []Options{{}, {Version: "2.0.0", ImageBase: "example.com/other"}} { // of the second time, olmkit.mk is kept
		said, err := Said(dir)
		if want := (Options{Version: "1.4.0", ImageBase: "quay.io/acme/tea"}); err != nil || cmp.Diff(want, said) != "" {
			t.Fatalf("%+v, %v", said, err)
		}
		if _, err := Write(t.Context(), dir, k, given.Complete(k, said)); err != nil {
			t.Fatal(err)
		}
	}
	if clashes, err := Clashes(dir); err != nil || strings.Join(clashes, " ") != "bundle" {
		t.Errorf("%q, %v", clashes, err)
	}
	for text, want := range map[string]string{
		"include olmkit.mk\nbundle: lint\ncatalog:\n\n": "", "include olmkit.mk\nbundle: VERSION = 2.0.0\n": "", "bundle:\n\tx\ninclude olmkit.mk\n": "",
		"include olmkit.mk\r\nbundle catalog : x\r\n\tx\r\n": "bundle catalog",
	} {
		if err := os.WriteFile(filepath.Join(dir, "Makefile"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if clashes, err := Clashes(dir); err != nil || strings.Join(clashes, " ") != want {
			t.Errorf("%q: %q, want %q, %v", text, clashes, want, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "Makefile"), []byte("VERSION := 3.0.0\r\nIMAGE_TAG_BASE ?= quay.io/other/tea\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := Said(dir); err != nil || said.Version != "3.0.0" || said.ImageBase != "quay.io/acme/tea" {
		t.Errorf("%+v, %v", said, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "Makefile"), []byte("VERSION = v1\nIMAGE_TAG_BASE = $(BASE)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "olmkit.mk")); err != nil {
		t.Fatal(err)
	}
	if said, err := Said(dir); err != nil || said.Version+said.ImageBase != "" {
		t.Errorf("%+v, %v", said, err)
	}
}

func TestAsk(t *testing.T) {
	t.Parallel()
	var asked bytes.Buffer
	given := Options{Provider: "Me"}
	got, err := Ask(strings.NewReader("Tea\n\nJo Doe <jo@example.com>\nquay.io/a/tea"), &asked, given, Options{DisplayName: "Pot", Description: "Makes tea.", ImageBase: "example.com/pot"})
	if err != nil {
		t.Fatal(err)
	}
	want := Options{DisplayName: "Tea", Provider: "Me", Maintainers: []string{"Jo Doe <jo@example.com>"}, ImageBase: "quay.io/a/tea"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("wanted and got (-/+):\n%s", diff)
	}
	if text := asked.String(); !strings.Contains(text, "[Makes tea.]: ") || strings.Contains(text, "Provider") {
		t.Errorf("it asks %q", text)
	}
}

// TestTexts: what users write comes back from the YAML as it was.
func TestTexts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"Tea", "yes", "null", "Tea: a pot", "# tea", "1.0", "", " tea ", `"tea"`, "<tea> & {pot}", "tea\npot", "- tea", "Tea's", "ends "} {
		written := quoted(text)
		var got struct{ A any }
		if err := yaml.Unmarshal([]byte("a: "+written), &got); err != nil || got.A != text {
			t.Errorf("%q is written as %s, which is %q (%v)", text, written, got.A, err)
		}
	}
}

// TestPlaceholders: all are filled in, and a text that looks like one stays as its user wrote it.
func TestPlaceholders(t *testing.T) {
	t.Parallel()
	const description = "a {{package}} of {{.Tea}}"
	k := &project.Kubebuilder{Name: "tea", Repo: "github.com/team/teas"}
	made, err := render(t.TempDir(), k, Options{Description: description, Maintainers: []string{"Jo Doe <jo@example.com>"}}.Complete(k, Options{}))
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for _, f := range made {
		text := string(f.text)
		kept += strings.Count(text, description)
		if rest := strings.ReplaceAll(text, description, ""); strings.Contains(rest, "{{") {
			t.Errorf("%s has a placeholder:\n%s", f.path, text)
		}
	}
	if kept != 2 {
		t.Errorf("the description stands in %d files, want 2", kept)
	}
}

// TestLayouts: what the project has decides what its files name.
func TestLayouts(t *testing.T) {
	t.Parallel()
	k := &project.Kubebuilder{Name: "tea", Repo: "example.org/tea"}
	for name, test := range map[string]struct {
		dirs          []string
		makefile      string
		file          string
		has, has2, no string
	}{
		"version 4":                  {[]string{"api", "cmd"}, "manifests: controller-gen\n", "olmkit.mk", "\nbundle: manifests ", "$(MANAGER) ./cmd\n", "apis"},
		"version 3, several groups":  {[]string{"apis"}, "", "olmkit.mk", "\nbundle: ##", "$(MANAGER) .\n", "manifests "},
		"its API":                    {[]string{"apis"}, "", "olmkit.yaml", "api: [apis]", "package: tea", "api: [api]"},
		"without an API":             {nil, "", "olmkit.yaml", "package: tea", "channels: [stable]", "api:"},
		"samples and scorecard":      {[]string{"config/samples", "config/scorecard"}, "", "config/manifests/kustomization.yaml", "- ../samples", "- ../scorecard", "none"},
		"without them":               {nil, "manifests := a\n", "config/manifests/kustomization.yaml", "- ../default", "- bases/tea.", "- ../s"},
		"a variable is no target":    {nil, "manifests := a\n", "olmkit.mk", "\nbundle: ##", "VERSION ?= 0.1.0", "bundle: manifests"},
		"no maintainer, no homepage": {nil, "", "config/manifests/bases/tea.clusterserviceversion.yaml", "name: tea", "displayName: Tea", "maintainers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, d := range test.dirs {
				if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, "Makefile"), []byte(test.makefile), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Write(t.Context(), dir, k, Options{}.Complete(k, Options{})); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(filepath.Join(dir, test.file))
			if err != nil || !strings.Contains(string(text), test.has) || !strings.Contains(string(text), test.has2) || strings.Contains(string(text), test.no) {
				t.Errorf("%s is (%v)\n%s", test.file, err, text)
			}
		})
	}
}
