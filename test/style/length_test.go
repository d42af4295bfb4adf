package style_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// longest is the number of lines that a function of the product may have, its first and last included.
const longest = 60

var (
	// product is the files whose functions are short.
	product = regexp.MustCompile(`^(cmd|internal|operator|pkg)/.*\.go$`)
	// mayBeLong are files whose functions may be long: tests, generated files, releases' programs, which are frozen, and packages that
	// are still to be split.
	mayBeLong = regexp.MustCompile(`_test\.go$|/zz_generated|^operator/releases/|^internal/upgrade/|^internal/lifecycle/`)
)

// long are the functions that are still to be split. None is added.
var long = []string{
	"internal/bundle/generate_rbac.go: permissions",
	"internal/check/shared.go: read",
	"internal/cli/bundle.go: run",
	"internal/cli/bundle.go: newBundleValidate",
	"internal/cli/catalog.go: newCatalogValidate",
	"internal/cli/image.go: newImagePush",
	"internal/cluster/embedded/embedded_linux.go: launch",
	"internal/cluster/embedded/node/container_linux.go: runOnce",
	"internal/cluster/embedded/node/container_linux.go: start",
	"internal/cluster/kind/internal/node/images.go: guests",
	"internal/graph/circle.go: findCircles",
	"internal/report/html.go: channelViews",
}

// TestFunctionsAreShort: a function that does not fit on a screen does several things.
func TestFunctionsAreShort(t *testing.T) {
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "*.go")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("list the repository's files: %v", err)
	}
	functions := 0
	found := map[string]bool{}
	for file := range strings.SplitSeq(strings.Trim(string(out), "\x00"), "\x00") {
		if !product.MatchString(file) || mayBeLong.MatchString(file) {
			continue
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, filepath.Join(root, file), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range parsed.Decls {
			f, ok := declared.(*ast.FuncDecl)
			if !ok {
				continue
			}
			functions++
			first, last := fset.Position(f.Pos()).Line, fset.Position(f.End()).Line
			lines, name := last-first+1, file+": "+f.Name.Name
			found[name] = found[name] || lines > longest
			if lines > longest && !slices.Contains(long, name) {
				t.Errorf("%s:%d: %s has %d lines: split it, no function has more than %d", file, first, f.Name.Name, lines, longest)
			}
		}
	}
	for _, name := range long {
		if !found[name] {
			t.Errorf("%s is short: take it out of the list", name)
		}
	}
	if functions < 1000 {
		t.Errorf("only %d functions were read", functions)
	}
}
