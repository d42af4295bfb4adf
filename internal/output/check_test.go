package output

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/olmkit/olmkit/internal/hint"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("as it was"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, file string
		good       bool
	}{
		{"a new file", filepath.Join(dir, "new"), true},
		{"a file that is there", file, true},
		{"in a folder that would be made", filepath.Join(dir, "a", "b", "new"), true},
		{"a folder", dir, false},
		{"below a file", filepath.Join(file, "new"), false},
		{"where nobody can write", "/proc/olmkit/new", false},
	} {
		err := Check(test.file)
		if (err == nil) != test.good || err != nil && hint.Of(err) == "" {
			t.Errorf("%s: %v, with the fix %q", test.name, err, hint.Of(err))
		}
	}
	entries, err := os.ReadDir(dir)
	if data, _ := os.ReadFile(file); err != nil || len(entries) != 1 || string(data) != "as it was" {
		t.Errorf("something was left or changed: %v, %v, %q", entries, err, data)
	}
}
