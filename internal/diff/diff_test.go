package diff

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/olmkit/olmkit/internal/catalog"
)

var update = flag.Bool("update", false, "write the golden files anew")

// release has a change of each area and kind, in no order, and what hostile manifests put into names.
var release = NewRelease("tea", "tea.v1.0.0", "tea.v1.1.0", []Change{
	{Area: Objects, Kind: Added, What: "ConfigMap leaves"},
	{Area: Images, Kind: Changed, What: "image manager", Old: "quay.io/tea/tea@sha256:" + sum("a"), New: "quay.io/tea/tea@sha256:" + sum("b")},
	{Area: Images, Kind: Changed, What: "image kettle", Old: "quay.io/tea/kettle:v1", New: "quay.io/other/kettle:v1"},
	{Area: Webhooks, Kind: Added, Object: "check.example.com", What: "ValidatingAdmissionWebhook", New: "failurePolicy: Fail"},
	{Area: Permissions, Kind: Removed, What: "get pods"},
	{Area: Permissions, Kind: Added, What: "* secrets (cluster-wide) @everybody <b>\x1b[31m"},
	{Area: APIs, Kind: Added, Object: "pots.example.com", Versions: []string{"v1"}, Field: "spec.lid.color", What: "field spec.lid.color", New: "string", Detail: "The color of | all."},
	{Area: APIs, Kind: Added, Object: "pots.example.com", Versions: []string{"v2"}, Field: "spec.lid.color", What: "field spec.lid.color", New: "string", Detail: "Its color."},
	{Area: APIs, Kind: Added, Object: "pots.example.com", Versions: []string{"v1", "v2"}, Field: "spec.color", What: "field spec.color", New: "string"},
	{Area: APIs, Kind: Stricter, Object: "pots.example.com", Versions: []string{"v1"}, Field: "spec.size", What: "spec.size must be at most 7", Breaking: true},
	{Area: APIs, Kind: Removed, Object: "pots.example.com", Versions: []string{"v1"}, Field: "spec.leaves", What: "field spec.leaves", Breaking: true},
	{Area: APIs, Kind: Looser, Object: "pots.example.com", Versions: []string{"v1"}, Field: "status.ready", What: "status.ready may be false"},
	{Area: APIs, Kind: Stricter, Object: "pots.example.com", Versions: []string{"v1"}, Field: "status.size", What: "status.size must be at most 7"},
	{Area: APIs, Kind: Changed, Object: "cups.example.com", Versions: []string{"v1"}, Field: "spec.size", What: "default of spec.size", Old: "3", New: "5"},
	{Area: Requirements, Kind: Stricter, What: "oldest Kubernetes", Old: "1.30.0", New: "1.31.0", Breaking: true},
})

func sum(digit string) string { return string(bytes.Repeat([]byte(digit), 64)) }

func TestGolden(t *testing.T) {
	named := release
	named.Channel = "stable"
	catalogs := Catalogs{Changes: []catalog.Change{
		{Kind: catalog.ChangeAdded, Package: "tea", Channel: "stable", Bundle: "tea.v1.1.0", New: "replaces tea.v1.0.0"},
		{Kind: catalog.ChangeChanged, Package: "tea", Field: "deprecation", New: "```use coffee"},
	}, Releases: []Release{named, NewRelease("tea", "tea.v1.0.0", "tea.v1.0.0", nil)}}
	for name, write := range map[string]func(io.Writer) error{
		"bundle.txt": release.WriteText, "bundle.md": release.WriteMarkdown, "bundle.json": release.WriteJSON,
		"catalog.txt": catalogs.WriteText, "catalog.md": catalogs.WriteMarkdown, "catalog.json": catalogs.WriteJSON,
	} {
		var got bytes.Buffer
		if err := write(&got); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != string(want) {
			t.Errorf("%s is\n%s\nwant\n%s", name, got.String(), want)
		}
	}
}

func TestNothingChanges(t *testing.T) {
	none := NewRelease("tea", "tea.v1.0.0", "tea.v1.1.0", nil)
	for name, write := range map[string]func(io.Writer) error{
		"text": none.WriteText, "markdown": none.WriteMarkdown, "text of catalogs": Catalogs{}.WriteText, "markdown of catalogs": Catalogs{}.WriteMarkdown,
	} {
		var got bytes.Buffer
		if err := write(&got); err != nil || got.Len() > 0 {
			t.Errorf("%s is %q, %v", name, got.String(), err)
		}
	}
}
