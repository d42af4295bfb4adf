package marker

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/hint"
)

// project unpacks a txtar archive into a Go module and makes it the working directory.
func project(t *testing.T, archive string) {
	t.Helper()
	dir := t.TempDir()
	for _, f := range append(txtar.Parse([]byte(archive)).Files, txtar.File{Name: "go.mod", Data: []byte("module example.com/cafe\n\ngo 1.26\n")}) {
		name := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("GOWORK", "off")
}

const cafe = `
-- api/v1/group.go --
// Package v1 is the cafe's API.
//
// +groupName=cafe.example.com
package v1
-- api/v1/coffee.go --
package v1

import "example.com/cafe/api/shared"

// Coffee is a cup
// of coffee.
//
// Second paragraph.
//
// +operator-sdk:csv:customresourcedefinitions:displayName="Cup of Coffee",order=2
// +operator-sdk:csv:customresourcedefinitions:resources={{Deployment,v1,cup},{Service,v1,"cup"}}
// +operator-sdk:csv:customresourcedefinitions:resources={{ConfigMap,v1}}
type Coffee struct {
	Kind   string
	Spec   CoffeeSpec   ` + "`json:\"spec,omitempty\"`" + `
	Status CoffeeStatus ` + "`json:\"status,omitempty\"`" + `
}

type CoffeeSpec struct {
	// How much.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Size, in ml",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number","urn:alm:descriptor:com.tectonic.ui:advanced"},order=1
	Size int ` + "`json:\"size\"`" + `

	// +operator-sdk:csv:customresourcedefinitions:type=spec
	Beans []Bean ` + "`json:\"beans,omitempty\"`" + `

	Milk map[string]*Milk ` + "`json:\"milk\"`" + `

	Extra shared.Extra ` + "`json:\"extra\"`" + `

	Core shared.Core ` + "`json:\"core\"`" + `

	Inner ` + "`json:\",inline\"`" + `

	// +operator-sdk:csv:customresourcedefinitions:type=spec
	secret string

	// +operator-sdk:csv:customresourcedefinitions:type=spec
	Hidden string ` + "`json:\"-\"`" + `
}

type Bean struct {
	// Where it grew.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Origin"
	Origin string ` + "`json:\"origin\"`" + `
	// Blends hold beans.
	Blend []Bean ` + "`json:\"blend\"`" + `
}

type Milk struct {
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	FatGrams int ` + "`json:\"fatGrams\"`" + `
}

type Inner struct {
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	ToGo bool ` + "`json:\"toGo\"`" + `
}

type CoffeeStatus struct {
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="State",xDescriptors="urn:alm:descriptor:io.kubernetes.phase"
	Phase string ` + "`json:\"phase\"`" + `
	Extra shared.Extra ` + "`json:\"extra\"`" + `
}
-- api/shared/shared.go --
package shared

import "example.com/cafe/core"

type Core core.Cup

type Extra struct {
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Sugar"
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Sugar left"
	Sugar int ` + "`json:\"sugar\"`" + `
}
-- core/core.go --
// +groupName=
package core

type Cup struct{}
-- api/v2/coffee.go --
// +groupName=other.example.com
package v2

type Coffee struct{}
-- api/nogroup/v3/coffee.go --
package v3

// Coffee of no group.
type Coffee struct{}
`

func TestDescribe(t *testing.T) {
	project(t, cafe)
	sources, err := Load(t.Context(), []string{"api"})
	if err != nil {
		t.Fatal(err)
	}
	one, two := 1, 2
	for kind, want := range map[schema.GroupVersionKind]*bundle.Description{
		{Group: "cafe.example.com", Version: "v1", Kind: "Coffee"}: {
			At:          finding.Location{File: "api/v1/coffee.go", Line: 13, Column: 6},
			DisplayName: "Cup of Coffee", Text: "Coffee is a cup\nof coffee.\n\nSecond paragraph.", Order: &two,
			Resources: []bundle.Resource{{Kind: "Deployment", Version: "v1", Name: "cup"}, {Kind: "Service", Version: "v1", Name: "cup"}, {Kind: "ConfigMap", Version: "v1"}},
			Spec: []bundle.Descriptor{
				{Path: "size", DisplayName: "Size, in ml", Text: "How much.", XDescriptors: []string{"urn:alm:descriptor:com.tectonic.ui:number", "urn:alm:descriptor:com.tectonic.ui:advanced"}, Order: &one},
				{Path: "beans"},
				{Path: "beans[0].origin", DisplayName: "Origin", Text: "Where it grew."},
				{Path: "milk.fatGrams"},
				{Path: "extra.sugar", DisplayName: "Sugar"},
				{Path: "toGo"},
			},
			Status: []bundle.Descriptor{
				{Path: "phase", DisplayName: "State", XDescriptors: []string{"urn:alm:descriptor:io.kubernetes.phase"}},
				{Path: "extra.sugar", DisplayName: "Sugar left"},
			},
		},
		{Group: "cafe.example.com", Version: "v2", Kind: "Coffee"}: nil,
		{Group: "cafe.example.com", Version: "v1", Kind: "Tea"}:    nil,
		{Group: "cafe.example.com", Version: "v3", Kind: "Coffee"}: {At: finding.Location{File: "api/nogroup/v3/coffee.go", Line: 4, Column: 6}, Text: "Coffee of no group."},
	} {
		t.Run(kind.String(), func(t *testing.T) {
			got, err := sources.Describe(kind)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDescribeErrors(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "cafe.example.com", Version: "v1", Kind: "Coffee"}
	typed := func(above string) string {
		return "-- api/v1/coffee.go --\npackage v1\n\n" + above + "\ntype Coffee struct {\n\tSpec Spec `json:\"spec\"`\n}\n\ntype Spec struct {\n}\n"
	}
	for name, test := range map[string]struct {
		archive string
		dirs    []string
		want    []string
	}{
		"a marker that does not parse": {typed("// +operator-sdk:csv:customresourcedefinitions:displayName=\"a"), nil, []string{"api/v1/coffee.go:3:1: read the marker"}},
		"an unknown argument":          {typed("// +operator-sdk:csv:customresourcedefinitions:name=a"), nil, []string{"api/v1/coffee.go:3:1: read the marker", "name"}},
		"two at once": {typed("// +operator-sdk:csv:customresourcedefinitions:name=a\n// +operator-sdk:csv:customresourcedefinitions:order=a"), nil,
			[]string{"api/v1/coffee.go:3:1", "api/v1/coffee.go:4:1"}},
		"a marker of old":            {typed("// +operator-sdk:gen-csv:customresourcedefinitions.displayName=\"a\""), nil, []string{"api/v1/coffee.go:3:1: there is no marker operator-sdk:gen-csv"}},
		"a misspelt marker":          {typed("// +operator-sdk:csv:customresourcedefinition:displayName=\"a\""), nil, []string{"api/v1/coffee.go:3:1: there is no marker"}},
		"a resource without version": {typed("// +operator-sdk:csv:customresourcedefinitions:resources={{Deployment}}"), nil, []string{"api/v1/coffee.go:4:6", `["Deployment"]`}},
		"a field of neither half": {"-- api/v1/coffee.go --\npackage v1\n\ntype Coffee struct {\n\tSpec Spec `json:\"spec\"`\n}\n\ntype Spec struct {\n\t// +operator-sdk:csv:customresourcedefinitions:displayName=\"Size\"\n\tSize int `json:\"size\"`\n}\n", nil,
			[]string{"api/v1/coffee.go:9:2", "field Size"}},
		"no Go":              {"-- api/v1/coffee.go --\npackage v1\n\ntype Coffee {\n", nil, []string{"api/v1/coffee.go:3:13"}},
		"no directory":       {"", []string{"api"}, []string{"api"}},
		"a file":             {"-- api --\n", []string{"api"}, []string{"not a directory"}},
		"no sources":         {"-- api/readme.md --\n", nil, []string{"read the Go sources in api: there are none"}},
		"a kind in two":      {"-- api/a/v1/a.go --\npackage v1\n\ntype Coffee struct{}\n-- api/b/v1/b.go --\npackage v1\n\ntype Coffee struct{}\n", nil, []string{"more than once: api/a/v1/a.go:3:6, api/b/v1/b.go:3:6"}},
		"an unknown package": {"-- api/v1/a.go --\npackage v1\n\nimport \"example.com/nowhere\"\n\ntype Coffee struct {\n\tSpec nowhere.Spec `json:\"spec\"`\n}\n", nil, []string{"api/v1/a.go:6:7: read nowhere.Spec", "example.com/nowhere"}},
	} {
		t.Run(name, func(t *testing.T) {
			project(t, test.archive)
			t.Setenv("GOFLAGS", "-mod=mod")
			t.Setenv("GOPROXY", "off")
			if test.dirs == nil {
				test.dirs = []string{"api"}
			}
			sources, err := Load(t.Context(), test.dirs)
			if err == nil {
				_, err = sources.Describe(kind)
			}
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
			if hint.Of(err) == "" {
				t.Errorf("no fix for: %v", err)
			}
		})
	}
}

// Without a go.mod, the go command cannot say what belongs to a package.
func TestLoadOutsideOfModules(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.CopyFS(".", fstest.MapFS{"api/a.go": {Data: []byte("package v1\n\ntype Coffee struct{}\n")}}); err != nil {
		t.Fatal(err)
	}
	_, err := Load(t.Context(), []string{"api"})
	if err == nil || !strings.HasPrefix(err.Error(), "read the Go sources: ") || strings.Contains(err.Error(), "there are none") || !strings.Contains(hint.Of(err), "go.mod") {
		t.Errorf("%v; fix: %s", err, hint.Of(err))
	}
}

func TestLoadInterrupted(t *testing.T) {
	project(t, cafe)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Load(ctx, []string{"api"}); err == nil {
		t.Error("it went on")
	}
}

func TestLoadWithoutGo(t *testing.T) {
	project(t, cafe)
	t.Setenv("PATH", t.TempDir())
	_, err := Load(t.Context(), []string{"api"})
	if err == nil || !strings.Contains(hint.Of(err), "install Go") {
		t.Errorf("got %v, fix %q", err, hint.Of(err))
	}
}
