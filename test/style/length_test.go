package style_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// longest is the number of lines that a function of the product may have, its first and last included.
const longest = 60

var (
	// product is the files whose functions are short.
	product = regexp.MustCompile(`^(cmd|internal|operator|pkg)/.*\.go$`)
	// mayBeLong are files whose functions may be long: tests, generated files and releases' programs, which are frozen.
	mayBeLong = regexp.MustCompile(`_test\.go$|/zz_generated|^operator/releases/`)
)

// TestFunctionsAreShort: a function that does not fit on a screen does several things.
func TestFunctionsAreShort(t *testing.T) {
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "*.go")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("list the repository's files: %v", err)
	}
	functions := 0
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
			if lines := last - first + 1; lines > longest {
				t.Errorf("%s:%d: %s has %d lines: split it, no function has more than %d", file, first, f.Name.Name, lines, longest)
			}
		}
	}
	if functions < 1000 {
		t.Errorf("only %d functions were read", functions)
	}
}
