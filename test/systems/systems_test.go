// Package systems_test checks the code's types for the systems that olmkit runs on, without compiling anything for them: 'make cross', which
// does, takes twenty times as long.
package systems_test

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestSystems: the code of all that is released, and all that it imports, fits together on each system.
func TestSystems(t *testing.T) {
	for _, system := range []string{"linux-arm64", "darwin-arm64"} {
		t.Run(system, func(t *testing.T) {
			goos, arch, _ := strings.Cut(system, "-")
			list, err := packages.Load(&packages.Config{
				Context: t.Context(), Dir: "../..",
				Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps | packages.NeedTypes | packages.NeedTypesSizes,
				Env:  append(os.Environ(), "GOOS="+goos, "GOARCH="+arch, "CGO_ENABLED=0"),
			}, "./cmd/...", "./internal/...", "./operator/...", "./pkg/...")
			if err != nil {
				t.Fatal(err)
			}
			seen := 0
			packages.Visit(list, nil, func(p *packages.Package) {
				seen++
				for _, err := range p.Errors {
					t.Error(err)
				}
			})
			if seen < 1000 { // with all that is imported
				t.Errorf("%d packages were looked at", seen)
			}
		})
	}
}
