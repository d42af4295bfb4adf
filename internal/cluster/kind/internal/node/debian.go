//go:build linux

package main

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/progress"
)

const suite = "bookworm"

// packages are what kind's own base image has of Debian, less what serves its tests, and the samples' operand.
var packages = []string{
	"bash", "ca-certificates", "conntrack", "curl", "dbus", "e2fsprogs", "ethtool", "iproute2", "iptables", "jq", "kmod",
	"libseccomp2", "memcached", "mount", "nftables", "procps", "runc", "socat", "systemd", "systemd-sysv", "util-linux",
}

// fetchDebian makes the node's root of Debian's packages, unless the cache has it.
func (m *material) fetchDebian(ctx context.Context, p *progress.Printer) (err error) {
	args := []string{
		"--quiet", "--variant=minbase", "--include=" + strings.Join(packages, ","),
		"--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
		suite,
	}
	sum := sha256.Sum256([]byte(strings.Join(args, " ")))
	archive := filepath.Join(m.dir, "debian-"+hex.EncodeToString(sum[:8])+".tar")
	if _, err := os.Stat(archive); err != nil {
		step := p.Start("taking the node's root out of Debian's packages")
		cmd := exec.CommandContext(ctx, "mmdebstrap", append(args, archive+".new.tar")...)
		out, err := cmd.CombinedOutput()
		switch {
		case errors.Is(err, exec.ErrNotFound):
			err = errors.New("mmdebstrap makes the node's root: install the package mmdebstrap")
		case err != nil:
			err = fmt.Errorf("mmdebstrap: %w\n%s", err, out)
		default:
			err = os.Rename(archive+".new.tar", archive)
		}
		if step.End(err) != nil {
			return err
		}
	}
	m.debian, err = openTree(archive)
	return err
}

// tree is the files of an archive.
type tree struct {
	file    *os.File
	entries map[string]entry // by clean path without a leading slash
}

type entry struct {
	header *tar.Header
	data   *io.SectionReader
}

func openTree(archive string) (*tree, error) {
	f, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	t := &tree{file: f, entries: map[string]entry{}}
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", archive, err)
		}
		at, err := f.Seek(0, io.SeekCurrent) // tar reads no further than headers
		if err != nil {
			return nil, err
		}
		t.entries[path.Clean(h.Name)] = entry{h, io.NewSectionReader(f, at, h.Size)}
	}
}

// resolve returns where name leads, and the links on the way.
func (t *tree) resolve(name string) (file string, links []string, err error) {
	done, rest := "", strings.Split(strings.TrimPrefix(path.Clean(name), "/"), "/")
	for hops := 0; len(rest) > 0; {
		done, rest = path.Join(done, rest[0]), rest[1:]
		e, ok := t.entries[done]
		if !ok {
			return "", nil, fmt.Errorf("%s: there is no %s in Debian's packages", name, done)
		}
		if e.header.Typeflag != tar.TypeSymlink {
			continue
		}
		if hops++; hops > 20 {
			return "", nil, fmt.Errorf("%s: links without an end", name)
		}
		links = append(links, done)
		target := e.header.Linkname
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(done), target) //nolint:gosec // a name in the archive's own index, which nothing opens
		}
		done, rest = "", append(strings.Split(strings.TrimPrefix(path.Clean(target), "/"), "/"), rest...)
	}
	return done, links, nil
}

// closure returns the paths of programs, of the libraries that they load, and of the links that lead to them.
func (t *tree) closure(programs ...string) ([]string, error) {
	var libraries string
	for name := range t.entries {
		if path.Dir(name) == "usr/lib" && strings.HasSuffix(name, "-linux-gnu") {
			libraries = name
		}
	}
	found := map[string]bool{}
	for todo := programs; len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		file, links, err := t.resolve(name)
		if err != nil {
			return nil, err
		}
		for _, link := range links {
			found[link] = true
		}
		if found[file] {
			continue
		}
		found[file] = true
		program, err := elf.NewFile(t.entries[file].data)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		needed, err := program.ImportedLibraries()
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		for _, library := range needed {
			todo = append(todo, path.Join(libraries, library))
		}
		for _, section := range program.Progs {
			if section.Type == elf.PT_INTERP {
				loader, err := io.ReadAll(section.Open())
				if err != nil {
					return nil, err
				}
				todo = append(todo, strings.TrimRight(string(loader), "\x00"))
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// glob returns the paths that match pattern.
func (t *tree) glob(pattern string) []string {
	var found []string
	for name := range t.entries {
		if ok, _ := path.Match(pattern, name); ok {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}
