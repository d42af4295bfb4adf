// Package pattern makes bundle directories of a pattern, for tests and benchmarks.
package pattern

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Fill returns a folder with the files of the folder dir, in which VERSION stands for a version. It is removed with the test.
func Fill(tb testing.TB, dir, version string) string {
	tb.Helper()
	made, pattern := tb.TempDir(), os.DirFS(dir)
	err := fs.WalkDir(pattern, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(pattern, name)
		text = bytes.ReplaceAll(text, []byte("VERSION"), []byte(version))
		return errors.Join(err, os.MkdirAll(filepath.Join(made, filepath.Dir(name)), 0o755), os.WriteFile(filepath.Join(made, name), text, 0o600))
	})
	if err != nil {
		tb.Fatal(err)
	}
	return made
}
