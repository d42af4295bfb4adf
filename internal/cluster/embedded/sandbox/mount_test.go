//go:build linux

package sandbox

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestSubPath looks at what is mounted of a volume in which a program has put whatever it likes.
func TestSubPath(t *testing.T) {
	dir := t.TempDir()
	volume := filepath.Join(dir, "volume")
	for path, content := range map[string]string{"secret": "host", "volume/plain": "plain", "volume/dir/file": "file"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(volume, 0o777); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{
		"inner": "dir/file", "root": "/", "secret": filepath.Join(dir, "secret"), "up": "../secret", "dir/up": "../..", "proc": "/proc/self/root", "dangling": "../made",
	} {
		if err := os.Symlink(target, filepath.Join(volume, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(volume, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"plain": "plain", "dir/file": "file", "inner": "file", "./dir/../plain": "plain"} {
		f, err := Mount{Source: volume, SubPath: path}.open()
		if err != nil {
			t.Error(err)
			continue
		}
		if data, err := io.ReadAll(f); err != nil || string(data) != want {
			t.Errorf("%s is %q, %v", path, data, err)
		}
		f.Close()
	}
	for _, path := range []string{"root", "root/etc", "secret", "up", "dir/up/secret", "..", "../secret", "/etc", "proc", "proc/etc", "dangling", "dangling/x", "up/x", "plain/x"} {
		if f, err := (Mount{Source: volume, SubPath: path}).open(); err == nil {
			t.Errorf("%s is mounted: %s", path, f.Name())
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); !os.IsNotExist(err) {
		t.Errorf("a link had something made outside of the volume: %v", err)
	}
	f, err := Mount{Source: volume, SubPath: "new/deep"}.open()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if info, err := os.Stat(filepath.Join(volume, "new", "deep")); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("the missing directory is made as %v, %v", info, err)
	}
	fifo, err := Mount{Source: volume, SubPath: "fifo"}.open()
	if err != nil {
		t.Fatalf("a FIFO: %v", err)
	}
	fifo.Close()
}

// TestMountPoint looks at where a volume is mounted in a root full of links.
func TestMountPoint(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	for _, path := range []string{"root/run", "outside"} {
		if err := os.MkdirAll(filepath.Join(dir, path), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"absolute": "/run", "relative": "run", "out": filepath.Join(dir, "outside"), "up": "../outside"} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		path string
		dir  bool
		want string // relative to root, "" if it is refused
	}{
		{"/run", true, "run"},
		{"/absolute/a/b", true, "run/a/b"},
		{"/absolute/file", false, "run/file"},
		{"/relative/c", true, "run/c"},
		{"/new/deep/file", false, "new/deep/file"},
		{"/../beside", true, "beside"},
		{"/up/x", true, ""},
		{"/out/x", true, ""},
		{"/out", false, ""},
	} {
		f, err := mountPoint(root, c.path, c.dir)
		if (err == nil) != (c.want != "") {
			t.Errorf("%s: %v", c.path, err)
		}
		if err != nil {
			continue
		}
		got, err := os.Readlink(descriptorPath(f))
		info, statErr := f.Stat()
		if err != nil || statErr != nil || got != filepath.Join(root, c.want) || info.IsDir() != c.dir {
			t.Errorf("%s is %s, %v, %v", c.path, got, err, statErr)
		}
		f.Close()
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "outside")); err != nil || len(entries) > 0 {
		t.Errorf("mount points were made outside of the root: %v, %v", entries, err)
	}
}
