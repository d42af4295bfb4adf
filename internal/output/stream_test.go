package output

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/olmkit/olmkit/internal/hint"
)

// modeOf returns the type of what is at path itself.
func modeOf(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Type()
}

func TestFIFO(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Check(fifo); err != nil {
		t.Error(err)
	}
	read := make(chan string)
	go func() {
		time.Sleep(50 * time.Millisecond)
		data, _ := os.ReadFile(fifo)
		read <- string(data)
	}()
	if err := Write(t.Context(), fifo, []byte("through")); err != nil {
		t.Fatal(err)
	}
	if got := <-read; got != "through" {
		t.Errorf("got %q", got)
	}
	if modeOf(t, fifo) != fs.ModeNamedPipe {
		t.Error("the FIFO is replaced")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := Write(ctx, fifo, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without a reader: %v", err)
	}
	only(t, filepath.Dir(fifo), "fifo")
}

// A reader that stops reading does not keep the writer beyond its context.
func TestFIFOFull(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := Write(ctx, fifo, make([]byte, 1<<20)); err == nil {
		t.Error("a full FIFO took everything")
	}
}

func TestDevice(t *testing.T) {
	t.Parallel()
	if err := Write(t.Context(), "/dev/full", []byte("a")); !errors.Is(err, syscall.ENOSPC) || hint.Of(err) == "" {
		t.Errorf("got %v", err)
	}
	for _, device := range []string{"/dev/full", "/dev/null"} {
		if err := Check(device); err != nil {
			t.Error(err)
		}
	}
	if err := Write(t.Context(), "/dev/null", []byte("a")); err != nil {
		t.Error(err)
	}
	if err := Remove("/dev/full"); err != nil {
		t.Error(err)
	}
	if modeOf(t, "/dev/full") != fs.ModeDevice|fs.ModeCharDevice {
		t.Error("the device is replaced")
	}
	if err := Dir(t.Context(), "/dev/null", func(string) error { return nil }); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a directory in place of a device: %v", err)
	}
}

// A link stays, and what it leads to is replaced, also when that is in another folder, through a linked folder, or not yet there.
func TestLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "deep", "real"), 0o755), os.Mkdir(filepath.Join(dir, "links"), 0o755),
		os.Symlink("deep/real", filepath.Join(dir, "folder")), os.WriteFile(filepath.Join(dir, "deep", "target"), nil, 0o600),
		os.Symlink("../folder/../target", filepath.Join(dir, "links", "a")), os.Symlink(filepath.Join(dir, "links", "a"), filepath.Join(dir, "links", "b")),
		os.Symlink("../folder/new", filepath.Join(dir, "links", "dangling")), os.Symlink("loop", filepath.Join(dir, "links", "loop")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"b": "deep/target", "dangling": "deep/real/new"} {
		link = filepath.Join(dir, "links", link)
		if err := errors.Join(Check(link), Write(t.Context(), link, []byte(target))); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(target))); err != nil || string(data) != target {
			t.Errorf("%s holds %q (%v)", target, data, err)
		}
		if err := errors.Join(Remove(link), Remove(link)); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(target))); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is not removed: %v", target, err)
		}
		if modeOf(t, link) != fs.ModeSymlink {
			t.Errorf("the link %s is replaced", link)
		}
	}
	if err := Write(t.Context(), filepath.Join(dir, "links", "loop"), nil); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a link to itself: %v", err)
	}
	if err := Dir(t.Context(), filepath.Join(dir, "folder"), func(fresh string) error { return os.Mkdir(fresh, 0o755) }); err != nil {
		t.Fatal(err)
	}
	only(t, filepath.Join(dir, "deep"), "real")
	only(t, filepath.Join(dir, "deep", "real"))
	if modeOf(t, filepath.Join(dir, "folder")) != fs.ModeSymlink {
		t.Error("the link to a folder is replaced")
	}
}

const helperVariable = "OLMKIT_OUTPUT_HELPER"

// TestHelper is what the tests below run as a process of its own.
func TestHelper(t *testing.T) {
	switch kind, at, _ := strings.Cut(os.Getenv(helperVariable), "="); kind {
	case "stdout":
		fmt.Println("before")
		if err := errors.Join(Check("/dev/stdout"), Write(t.Context(), "/dev/stdout", []byte("meanwhile\n"))); err != nil {
			t.Fatal(err)
		}
		fmt.Println("after")
	case "file":
		_ = File(t.Context(), at, hang)
	case "dir":
		_ = Dir(t.Context(), at, func(fresh string) error { return errors.Join(os.Mkdir(fresh, 0o755), hang(io.Discard)) })
	}
}

// hang says on standard output that it does.
func hang(w io.Writer) error {
	_, err := w.Write(make([]byte, 1<<16))
	fmt.Println("hangs")
	time.Sleep(time.Minute)
	return err
}

func helper(t *testing.T, what string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHelper$")
	c.Env = append(os.Environ(), helperVariable+"="+what)
	return c
}

// What stands in the file that standard output goes to is not written over.
func TestStandardOutput(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "out")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	c := helper(t, "stdout")
	c.Stdout = out
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(data), "before\nmeanwhile\nafter\n") {
		t.Errorf("got %q (%v)", data, err)
	}
	piped, err := helper(t, "stdout").Output()
	if err != nil || !strings.HasPrefix(string(piped), "before\nmeanwhile\nafter\n") {
		t.Errorf("through a pipe: %q (%v)", piped, err)
	}
}

// killed runs the helper until it hangs, and kills it.
func killed(t *testing.T, what string) {
	t.Helper()
	c := helper(t, what)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, len("hangs"))
	_, err = io.ReadFull(out, said)
	_ = c.Process.Kill()
	_ = c.Wait()
	if err != nil || string(said) != "hangs" {
		t.Fatalf("%q (%v)", said, err)
	}
}

func TestKilled(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	killed(t, "file="+filepath.Join(parent, "file"))
	only(t, parent)

	dir := filepath.Join(parent, "out*")
	killed(t, "dir="+dir)
	abandoned, err := filepath.Glob(filepath.Join(parent, ".out*"))
	if err != nil || len(abandoned) != 1 {
		t.Fatalf("%v (%v)", abandoned, err)
	}
	// Killed between the two renames: the old one is only in there.
	if err := os.MkdirAll(filepath.Join(abandoned[0], "old", "kept"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Dir(t.Context(), dir, func(string) error { return syscall.EIO }); !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
	only(t, parent, "out*")
	only(t, dir, "kept")
}
