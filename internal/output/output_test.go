package output

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/olmkit/olmkit/internal/hint"
)

// only fails the test unless dir holds these entries.
func only(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(names) {
		t.Fatalf("%s holds %v, want %v", dir, entries, names)
	}
	for i, name := range names {
		if entries[i].Name() != name {
			t.Errorf("%s holds %v, want %v", dir, entries, names)
		}
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "in", "a.txt")
	if err := Write(t.Context(), file, []byte("old")); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := File(t.Context(), file, func(w io.Writer) error { fmt.Fprint(w, "half"); return broken })
	if !errors.Is(err, broken) || hint.Of(err) == "" {
		t.Errorf("got %v", err)
	}
	data, err := os.ReadFile(file)
	if err != nil || string(data) != "old" {
		t.Errorf("the file holds %q (%v)", data, err)
	}
	only(t, filepath.Dir(file), "a.txt")
	info, err := os.Stat(file)
	if err != nil || info.Mode() != 0o644 {
		t.Errorf("its mode is %v (%v)", info.Mode(), err)
	}
	if err := Write(t.Context(), filepath.Join(file, "below"), nil); err == nil || hint.Of(err) == "" {
		t.Errorf("got %v", err)
	}
}

func TestWritePrivate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.txt")
	if err := Write(t.Context(), file, []byte("for all")); err != nil {
		t.Fatal(err)
	}
	if err := WritePrivate(t.Context(), file, []byte("mine")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("its mode is %v (%v)", info.Mode(), err)
	}
}

func TestDir(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "out")
	fill := func(name string) func(string) error {
		return func(fresh string) error {
			if err := os.Mkdir(fresh, 0o755); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(fresh, name), nil, 0o644)
		}
	}
	for _, name := range []string{"first", "second"} {
		if err := Dir(t.Context(), dir, fill(name)); err != nil {
			t.Fatal(err)
		}
		only(t, dir, name)
	}
	err := Dir(t.Context(), dir, func(fresh string) error { return errors.Join(fill("third")(fresh), syscall.ENOSPC) })
	if !errors.Is(err, syscall.ENOSPC) || hint.Of(err) != "make room there, or choose another place" {
		t.Errorf("got %v; %s", err, hint.Of(err))
	}
	if err := Dir(t.Context(), dir, func(string) error { return nil }); err == nil {
		t.Error("nothing was made, and nothing was said")
	}
	only(t, dir, "second")
	only(t, parent, "out")
}
