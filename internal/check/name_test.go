package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/catalog"
)

// nameExamples are the versions of bundles, what their names say instead, and whether that is another version.
var nameExamples = []struct {
	version, name string
	another       bool
}{
	{"1.2.0", "1.2.0", false},
	{"1.2.0", "1.3.0", true},
	{"1.2.0+3", "1.2.0-3", false}, // "+" cannot stand in names
	{"1.2.0+3", "1.2.0", false},
	{"1.2.0+3", "1.2.0-4", true},
	{"1.2.0-rc1+0.16", "1.2.0-rc1-0.16", false},
	{"1.2.0-RC1", "1.2.0-rc1", false}, // neither can capital letters
	{"1.2.0", "1.2.0-3", true},
}

// Names in a catalog are GRA013's.
func TestNamesInCatalogs(t *testing.T) {
	for _, e := range nameExamples {
		t.Run(e.version+" "+e.name, func(t *testing.T) {
			text := strings.NewReplacer("tea.vVERSION", "tea.v"+e.name, "version: VERSION", "version: "+e.version).Replace(teaRelease)
			raw := strings.NewReplacer("tea.v1.0.0", "tea.v"+e.name, "version: 1.0.0", "version: "+e.version).Replace(releasesText(t, text))
			findings, _ := Catalog(catalog.Parse("f", []byte(raw)), Options{Only: []string{"GRA013", "CSV006"}})
			var got, want []string
			for _, f := range findings {
				got = append(got, f.Code)
			}
			if e.another {
				want = []string{"GRA013"}
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", findings, want)
			}
		})
	}
}

// Those of bundles are CSV006's.
func TestNamesOfBundles(t *testing.T) {
	for _, e := range nameExamples {
		t.Run(e.version+" "+e.name, func(t *testing.T) {
			files := soundFiles(t)
			changed := strings.NewReplacer("name: cafe-operator.v1.2.0", "name: cafe-operator.v"+e.name, "  version: 1.2.0\n", "  version: "+e.version+"\n")
			files[soundCSV].Data = []byte(changed.Replace(string(files[soundCSV].Data)))
			var got []string
			for _, f := range judge(t, files) {
				if f.Code == "CSV006" {
					got = append(got, f.Message)
				}
			}
			if (len(got) > 0) != e.another {
				t.Errorf("%v", got)
			}
		})
	}
}
