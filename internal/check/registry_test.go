package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/catalog"
)

func TestImages(t *testing.T) {
	b, err := bundle.Read(sound)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for image, platforms := range soundRegistry {
		if platforms != nil {
			want = append(want, image)
		}
	}
	slices.Sort(want)
	if got := Images(b); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// TestImagesIn: of a catalog all bundles are asked for, and of the heads what they run.
func TestImagesIn(t *testing.T) {
	c := releases(t, teaRelease, strings.ReplaceAll(teaRelease, "image: i}", "image: registry.example.com/tea:2}"))
	p := c.Find("tea")
	p.Bundle("tea.v1.0.0").Image = "registry.example.com/tea-bundle:1"
	want := []string{"registry.example.com/tea-bundle:1", "registry.example.com/tea:2"}
	if got := ImagesIn(c, Options{}); !slices.Equal(got, want) {
		t.Fatalf("%v", got)
	}
	if got := ImagesIn(c, Options{Packages: []string{"milk"}}); len(got) > 0 {
		t.Errorf("of another package: %v", got)
	}
	said := func(registry Registry) []string {
		findings, _ := Catalog(c, Options{Registry: registry, Only: []string{"IMG005", "IMG006"}})
		var list []string
		for _, f := range findings {
			list = append(list, f.Code+" "+f.Subject.From+": "+f.Message)
		}
		return list
	}
	if got := said(Registry{want[0]: {"linux/amd64"}, want[1]: {"linux/amd64", "linux/arm64"}}); len(got) > 0 {
		t.Errorf("all is there: %v", got)
	}
	for _, test := range []struct {
		registry Registry
		want     string
	}{
		{Registry{want[0]: nil, want[1]: {"linux/amd64"}}, "IMG005 tea.v1.0.0: the registry does not have image registry.example.com/tea-bundle:1 of bundle tea.v1.0.0"},
		{Registry{want[0]: {"linux/amd64"}, want[1]: nil}, "IMG005 tea.v2.0.0: the registry does not have image registry.example.com/tea:2 of container m"},
		{Registry{want[0]: {"linux/amd64"}, want[1]: {"linux/arm64"}}, "IMG006 tea.v2.0.0: image registry.example.com/tea:2 of container m is available for linux/arm64, but not for linux/amd64"},
	} {
		if got := said(test.registry); !slices.Equal(got, []string{test.want}) {
			t.Errorf("%q; want %s", got, test.want)
		}
	}
	if _, codes := Catalog(&catalog.Catalog{}, Options{}); slices.Contains(codes, "IMG005") || slices.Contains(BundleCodes(false), "IMG005") || !slices.Contains(BundleCodes(true), "IMG006") {
		t.Error("what asks registries runs when it is asked for, and only then")
	}
}
