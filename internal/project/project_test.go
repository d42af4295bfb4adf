package project

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/olmkit/olmkit/internal/hint"
)

func TestTrusted(t *testing.T) {
	t.Parallel()
	const root, me, other = 0, 1000, 1001
	for _, test := range []struct {
		owner, dir, me int
		want           bool
	}{
		{me, me, me, true},
		{me, other, me, true},
		{root, me, me, true},
		{other, other, root, true}, // a workspace that is mounted into a container of root's
		{other, me, me, false},     // in /tmp, above one's own directory
		{other, root, me, false},   // in /tmp
		{other, root, root, false},
	} {
		if got := trusted(test.owner, test.dir, test.me); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}

// TestFind: the nearest file is taken, unless it is no regular one, or another user has put it above the working directory.
func TestFind(t *testing.T) {
	t.Parallel()
	above := t.TempDir()
	dir, file := filepath.Join(above, "mine"), filepath.Join(above, FileName)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Find(dir); err != nil || got != "../"+FileName {
		t.Errorf("got %q, %v", got, err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(file, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		if _, err := Find(dir); err == nil || hint.Of(err) == "" {
			t.Errorf("another user's file: %v", err)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(dir); err == nil || hint.Of(err) == "" {
		t.Errorf("a FIFO: %v", err)
	}
}
