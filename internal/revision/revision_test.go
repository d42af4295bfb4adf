package revision

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/hint"
)

// repository has a file in two revisions, tagged one and two; the work tree says three.
func repository(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", folder, "-c", "user.name=n", "-c", "user.email=e@example.com", "-c", "commit.gpgsign=false"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	write := func(name, content string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run("init", "-q")
	write("catalog/a/catalog.yaml", "one")
	write("other.txt", "other")
	run("add", ".")
	run("commit", "-qm", "one")
	run("tag", "one")
	write("catalog/a/catalog.yaml", "two")
	write("catalog/b/catalog.yaml", "two")
	if err := os.Symlink("../other.txt", filepath.Join(folder, "catalog", "link")); err != nil {
		t.Fatal(err)
	}
	run("add", ".")
	run("commit", "-qm", "two")
	run("tag", "two")
	write("catalog/a/catalog.yaml", "three")
	return folder
}

func TestCheckout(t *testing.T) {
	t.Parallel()
	folder := repository(t)
	for name, test := range map[string]struct {
		revision, path string
		want           map[string]string // below what is returned
	}{
		"a folder":                 {"one", "catalog", map[string]string{"a/catalog.yaml": "one", "b/catalog.yaml": ""}},
		"a folder, without links":  {"two", "catalog", map[string]string{"a/catalog.yaml": "two", "b/catalog.yaml": "two", "link": ""}},
		"a file":                   {"one", "catalog/a/catalog.yaml", map[string]string{".": "one"}},
		"the whole":                {"one", ".", map[string]string{"catalog/a/catalog.yaml": "one", "other.txt": "other"}},
		"a revision by its parent": {"two~1", "catalog/a", map[string]string{"catalog.yaml": "one"}},
		"what did not exist":       {"one", "catalog/b", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			into := t.TempDir()
			at, err := Checkout(t.Context(), test.revision, filepath.Join(folder, test.path), into)
			if err != nil {
				t.Fatal(err)
			}
			if (at == "") != (test.want == nil) {
				t.Fatalf("it is at %q", at)
			}
			for name, want := range test.want {
				got, err := os.ReadFile(filepath.Join(at, name))
				if string(got) != want || (err != nil) != (want == "") {
					t.Errorf("%s: %q, %v", name, got, err)
				}
			}
		})
	}
	if now, err := os.ReadFile(filepath.Join(folder, "catalog/a/catalog.yaml")); err != nil || string(now) != "three" {
		t.Errorf("the work tree was touched: %s, %v", now, err)
	}
}

func TestCheckoutRefuses(t *testing.T) {
	t.Parallel()
	folder := repository(t)
	for _, revision := range []string{"three", "", "--all", "one:catalog"} {
		if at, err := Checkout(t.Context(), revision, folder, t.TempDir()); err == nil || !strings.Contains(hint.Of(err), "fetch") {
			t.Errorf("revision %q: %q, %v", revision, at, err)
		}
	}
	if at, err := Checkout(t.Context(), "HEAD", t.TempDir(), t.TempDir()); err == nil {
		t.Errorf("outside of a repository: %q", at)
	}
}
