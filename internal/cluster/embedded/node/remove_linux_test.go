package node

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Folders in folders take no file each to be removed, nor is a link followed.
func TestRemoveAll(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "kept")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "volume")
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{"link", "a/link", "a/b/link"} {
		if err := os.Symlink(filepath.Dir(outside), filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	const depth = 3000
	at, err := os.OpenRoot(dir)
	for range depth {
		if err == nil {
			err = errors.Join(at.Mkdir("d", 0o700), at.WriteFile("f", nil, 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
		inner, failed := at.OpenRoot("d")
		err = errors.Join(failed, at.Close())
		at = inner
	}
	if err := errors.Join(err, at.Close()); err != nil {
		t.Fatal(err)
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	few := limit
	few.Cur = 200
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	err = removeAll(dir)
	if failed := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); failed != nil {
		t.Fatal(failed)
	}
	if err != nil {
		t.Fatalf("%.200s", err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is there: %v", err)
	}
	if _, err := os.Lstat(outside); err != nil {
		t.Error(err)
	}
	if err := removeAll(filepath.Join(dir, strings.Repeat("none", 3))); err != nil {
		t.Errorf("what is not there: %v", err)
	}
}
