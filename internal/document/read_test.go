//go:build unix

package document

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// endless is a stream without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestReadAll(t *testing.T) {
	for name, test := range map[string]struct {
		from io.Reader
		want string
	}{
		"little":      {strings.NewReader("a: 1"), ""},
		"as much":     {strings.NewReader(strings.Repeat("a", 1000)), ""},
		"one more":    {strings.NewReader(strings.Repeat("a", 1001)), "it holds more than 1000 bytes"},
		"without end": {endless{}, "it holds more than 1000 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := Limit(1000).ReadAll(test.from)
			if test.want == "" && err != nil || test.want != "" && (err == nil || err.Error() != test.want || data != nil) {
				t.Errorf("%d bytes, error %v", len(data), err)
			}
		})
	}
	if _, err := ReadFile(filepath.Join(t.TempDir(), "a")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// TestRegular: what has no end, and what may keep a reader waiting, is refused by name.
func TestRegular(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "text"), []byte("a: 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"pipe": "pipe is a named pipe (FIFO)", "text": "text: it holds more than 3 bytes"} {
		if data, err := Limit(3).ReadFileIn(os.DirFS(dir), name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	if data, err := Limit(4).ReadFile(filepath.Join(dir, "text")); err != nil || string(data) != "a: 1" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := ReadFile("/dev/zero"); err == nil || !strings.Contains(err.Error(), "/dev/zero is a device") {
		t.Errorf("/dev/zero: %v", err)
	}
}

// TestUntil: work that does not end is left alone when it is no longer wanted.
func TestUntil(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stuck := make(chan struct{})
	defer close(stuck)
	cancel()
	if _, err := Until(ctx, func() (int, error) { <-stuck; return 1, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if n, err := Until(t.Context(), func() (int, error) { return 1, nil }); n != 1 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
}

// Links lead no further than the folder: one that stays inside is followed.
func TestDir(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("token"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "text"), []byte("a: 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"inside": "text", "out": secret, "up": "../" + filepath.Base(outside) + "/secret", "folder": outside} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	files := Dir(dir)
	if data, err := Limit(9).ReadFileIn(files, "inside"); err != nil || string(data) != "a: 1" {
		t.Errorf("a link inside: %q, %v", data, err)
	}
	for _, name := range []string{"out", "up", "folder/secret"} {
		if data, err := Limit(9).ReadFileIn(files, name); err == nil || !strings.Contains(err.Error(), "leads out of its folder") {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	if _, err := Limit(9).ReadFileIn(Dir(filepath.Join(dir, "missing")), "a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}
