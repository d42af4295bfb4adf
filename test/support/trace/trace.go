//go:build linux

// Package trace gives runs of olmkit a cache folder of their own, and looks for what they leave behind.
package trace

import (
	"bytes"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/cache"
)

// Trace is what must be after a run as it was before.
type Trace struct {
	Cache  string // folder of this run alone, by which its processes are known
	mounts string
	links  []string
}

// New looks at the machine before a run, and makes a cache folder for it that has the user's components, which take minutes
// to build. The folder ends with the test.
func New(t testing.TB) Trace {
	t.Helper()
	users, err := cache.Folder()
	if err != nil {
		t.Fatal(err)
	}
	components := filepath.Join(users, "components")
	if err := os.MkdirAll(components, 0o755); err != nil {
		t.Fatal(err)
	}
	before := Unbuilt(t)
	if err := os.Symlink(components, filepath.Join(before.Cache, "components")); err != nil {
		t.Fatal(err)
	}
	return before
}

// Unbuilt is New with an empty cache folder.
func Unbuilt(t testing.TB) Trace {
	t.Helper()
	return Trace{t.TempDir(), mounts(t), interfaces(t)}
}

// Env is how the run is told of its cache folder.
func (tr Trace) Env() string { return cache.Variable + "=" + tr.Cache }

// Check fails the test if the run left a process, a mount, an interface or a cluster behind.
func (tr Trace) Check(t testing.TB) {
	t.Helper()
	if left := tr.Processes(t); len(left) > 0 {
		t.Errorf("processes were left:\n%s", strings.Join(left, "\n"))
	}
	tr.CheckMachine(t)
	if clusters, err := os.ReadDir(filepath.Join(tr.Cache, "clusters")); err != nil && !errors.Is(err, fs.ErrNotExist) || len(clusters) > 0 {
		t.Errorf("clusters were left: %v, %v", clusters, err)
	}
}

// CheckMachine fails the test if mounts or interfaces are not as before.
func (tr Trace) CheckMachine(t testing.TB) {
	t.Helper()
	if now := mounts(t); now != tr.mounts {
		t.Errorf("mounts changed:\n%s", now)
	}
	if now := interfaces(t); !slices.Equal(now, tr.links) {
		t.Errorf("interfaces %v, before %v", now, tr.links)
	}
}

// Processes returns the run's processes, which are those whose command line or environment names its cache folder.
func (tr Trace) Processes(t testing.TB) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range entries {
		line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err != nil {
			continue // no process, or none any more
		}
		environ, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if bytes.Contains(line, []byte(tr.Cache)) || bytes.Contains(environ, []byte(tr.Cache)) {
			found = append(found, e.Name()+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

// Files returns the regular files in the cache folder, without locks.
func (tr Trace) Files(t testing.TB) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(tr.Cache, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && !strings.HasSuffix(path, ".lock") {
			files = append(files, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return files
}

func mounts(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func interfaces(t testing.TB) []string {
	t.Helper()
	links, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(links))
	for _, l := range links {
		names = append(names, l.Name)
	}
	slices.Sort(names)
	return names
}
