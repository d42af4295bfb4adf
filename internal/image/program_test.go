package image

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/olmkit/olmkit/internal/hint"
)

var plain = ProgramOptions{Entrypoint: "/bin/manager", User: "65532:65532", Labels: map[string]string{"org.opencontainers.image.version": "v1"}}

// programFor writes the beginning of a program for a machine, with program headers of these types.
func programFor(t *testing.T, machine elf.Machine, kind elf.Type, headers ...elf.ProgType) string {
	t.Helper()
	var b bytes.Buffer
	header := elf.Header64{Type: uint16(kind), Machine: uint16(machine), Version: 1, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: uint16(len(headers))}
	copy(header.Ident[:], []byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1})
	var order binary.ByteOrder = binary.LittleEndian
	if machine == elf.EM_S390 || machine == elf.EM_SPARCV9 {
		header.Ident[elf.EI_DATA], order = byte(elf.ELFDATA2MSB), binary.BigEndian
	}
	if err := binary.Write(&b, order, header); err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		if err := binary.Write(&b, order, elf.Prog64{Type: uint32(h)}); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "built-"+machine.String())
	if err := os.WriteFile(file, b.Bytes(), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestPrograms(t *testing.T) {
	amd64, arm64 := programFor(t, elf.EM_X86_64, elf.ET_EXEC), programFor(t, elf.EM_AARCH64, elf.ET_DYN, elf.PT_LOAD)
	made, err := Programs([]string{arm64, amd64}, plain)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Programs([]string{amd64, programFor(t, elf.EM_AARCH64, elf.ET_DYN, elf.PT_LOAD)}, plain)
	if err != nil {
		t.Fatal(err)
	}
	first, _ := made.Digest()
	second, _ := again.Digest()
	if first != second {
		t.Error("the same programs made two different images")
	}
	index := made.(v1.ImageIndex)
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if manifest.Annotations["org.opencontainers.image.version"] != "v1" {
		t.Errorf("annotations %v", manifest.Annotations)
	}
	var platforms []string
	for _, d := range manifest.Manifests {
		platforms = append(platforms, d.Platform.String())
		img, err := index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if c := config.Config; config.Platform().String() != d.Platform.String() || c.User != plain.User ||
			!slices.Equal(c.Entrypoint, []string{plain.Entrypoint}) || len(c.Cmd) > 0 || c.Labels["org.opencontainers.image.version"] != "v1" {
			t.Errorf("%s: %+v", config.Platform(), c)
		}
		layers, err := img.Layers()
		if err != nil || len(layers) != 1 {
			t.Fatalf("%d layers, %v", len(layers), err)
		}
		content, err := layers[0].Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		for archive, want := tar.NewReader(content), []string{"bin/", "bin/manager"}; ; want = want[1:] {
			header, err := archive.Next()
			if errors.Is(err, io.EOF) && len(want) == 0 {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if header.Name != want[0] || header.Mode != 0o755 || header.Uid != 0 {
				t.Errorf("%s: mode %o, owner %d, want %s", header.Name, header.Mode, header.Uid, want[0])
			}
		}
	}
	if !slices.Equal(platforms, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("platforms %v", platforms)
	}

	single, err := Programs([]string{amd64}, plain)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := single.(v1.Image); !ok {
		t.Errorf("one program made a %T", single)
	}
}

// Further files are where they were asked for, programs among them as such, in a layer that does not change with the
// program.
func TestFurtherFiles(t *testing.T) {
	dir := t.TempDir()
	for file, mode := range map[string]os.FileMode{"charts/a.yaml": 0o600, "charts/deep/hook": 0o750, "ca.crt": 0o444} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700), os.WriteFile(filepath.Join(dir, file), []byte(file), mode)); err != nil {
			t.Fatal(err)
		}
	}
	options := plain
	options.Files = map[string]string{"/charts": filepath.Join(dir, "charts"), "/etc/ca.crt": filepath.Join(dir, "ca.crt")}
	made, err := Programs([]string{programFor(t, elf.EM_X86_64, elf.ET_EXEC)}, options)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := made.(v1.Image).Layers()
	if err != nil || len(layers) != 2 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %o", header.Name, header.Mode))
	}
	if want := []string{"charts/ 755", "charts/a.yaml 644", "charts/deep/ 755", "charts/deep/hook 755", "etc/ 755", "etc/ca.crt 644"}; !slices.Equal(got, want) {
		t.Errorf("the layer holds %v, want %v", got, want)
	}
}

// TestLocalProgram holds an image that stays on this machine to what others are pushed: the same files, without the work of making
// them small.
func TestLocalProgram(t *testing.T) {
	program := programFor(t, elf.EM_X86_64, elf.ET_EXEC)
	layer := func(o ProgramOptions) (content v1.Hash, size int64) {
		made, err := Programs([]string{program}, o)
		if err != nil {
			t.Fatal(err)
		}
		layers, err := made.(v1.Image).Layers()
		if err != nil || len(layers) != 1 {
			t.Fatalf("%d layers, %v", len(layers), err)
		}
		content, err = layers[0].DiffID()
		if err != nil {
			t.Fatal(err)
		}
		size, err = layers[0].Size()
		if err != nil {
			t.Fatal(err)
		}
		return content, size
	}
	local := plain
	local.Local = true
	content, small := layer(plain)
	same, large := layer(local)
	if content != same || large <= small {
		t.Errorf("%s of %d bytes, and %s of %d where it is local", content, small, same, large)
	}
}

func TestProgramsRefuses(t *testing.T) {
	amd64 := programFor(t, elf.EM_X86_64, elf.ET_EXEC)
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	with := func(change func(*ProgramOptions)) ProgramOptions {
		o := plain
		change(&o)
		return o
	}
	for name, test := range map[string]struct {
		programs []string
		options  ProgramOptions
		err      string
	}{
		"no program":            {[]string{script}, plain, "no program for Linux"},
		"a directory":           {[]string{t.TempDir()}, plain, "is a directory"},
		"nothing":               {[]string{"missing"}, plain, "no such file"},
		"two for one platform":  {[]string{amd64, amd64}, plain, "another one for linux/amd64"},
		"dynamically linked":    {[]string{programFor(t, elf.EM_X86_64, elf.ET_DYN, elf.PT_INTERP)}, plain, "linked dynamically"},
		"an object file":        {[]string{programFor(t, elf.EM_X86_64, elf.ET_REL)}, plain, "no program"},
		"another machine":       {[]string{programFor(t, elf.EM_SPARCV9, elf.ET_EXEC)}, plain, "EM_SPARCV9"},
		"a user by name":        {[]string{amd64}, with(func(o *ProgramOptions) { o.User = "nobody" }), "is not a number"},
		"no entry point":        {[]string{amd64}, with(func(o *ProgramOptions) { o.Entrypoint = "" }), "no absolute path"},
		"a file at no path":     {[]string{amd64}, with(func(o *ProgramOptions) { o.Files = map[string]string{"charts": script} }), "can't be at"},
		"a file not there":      {[]string{amd64}, with(func(o *ProgramOptions) { o.Files = map[string]string{"/a": "missing"} }), "no such file"},
		"a file as the program": {[]string{amd64}, with(func(o *ProgramOptions) { o.Files = map[string]string{o.Entrypoint: script} }), "something else"},
		"two at one path": {[]string{amd64}, with(func(o *ProgramOptions) {
			o.Files = map[string]string{"/a": filepath.Dir(script), "/a/script": script}
		}), "something else"},
		"a file below another": {[]string{amd64}, with(func(o *ProgramOptions) {
			o.Files = map[string]string{"/a": script, "/a/b": script}
		}), "which is a file"},
		"a file above the program": {[]string{amd64}, with(func(o *ProgramOptions) { o.Files = map[string]string{"/bin": script} }), "which is a file"},
		"an entry point outside":   {[]string{amd64}, with(func(o *ProgramOptions) { o.Entrypoint = "/../x" }), "no absolute path"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Programs(test.programs, test.options)
			if err == nil || !strings.Contains(err.Error(), test.err) || hint.Of(err) == "" {
				t.Errorf("got %v, want an error with %q and a fix", err, test.err)
			}
		})
	}
}

// A program is taken out of every form of image as it was put in.
func TestRoot(t *testing.T) {
	program := programFor(t, elf.EM_X86_64, elf.ET_EXEC)
	made, err := Programs([]string{program, programFor(t, elf.EM_AARCH64, elf.ET_EXEC)}, plain)
	if err != nil {
		t.Fatal(err)
	}
	dir, host := t.TempDir(), startRegistry(t)
	archive, lay := filepath.Join(dir, "a.tar"), filepath.Join(dir, "layout")
	if err := errors.Join(quick.Archive(t.Context(), archive, "quay.io/team/app:v1", made), quick.Layout(t.Context(), lay, "", made)); err != nil {
		t.Fatal(err)
	}
	if _, err := quick.Push(t.Context(), host+"/team/app:v1", made); err != nil {
		t.Fatal(err)
	}
	for name, ref := range map[string]string{"archive": archive, "layout": lay, "registry": host + "/team/app:v1"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			root := filepath.Join(dir, "root-"+name)
			if err := quick.Root(t.Context(), ref, root); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(filepath.Join(root, "bin", "manager"))
			if err != nil || info.Mode().Perm()&0o111 != 0o111 {
				t.Errorf("%v, %v", info, err)
			}
			if got, err := machineOf(filepath.Join(root, "bin", "manager")); err != nil || got != runtime.GOARCH {
				t.Errorf("it is for %s, %v", got, err)
			}
			if left, _ := os.ReadDir(os.Getenv("TMPDIR")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
	t.Run("a link to a folder", func(t *testing.T) {
		linked := filepath.Join(dir, "linked.tar")
		config := `{"rootfs":{"type":"layers","diff_ids":["sha256:` + sum(tarOf(t, entry{name: "bin", kind: tar.TypeSymlink, link: "usr/bin"})) + `"]}}`
		if err := os.WriteFile(linked, tarOf(t,
			entry{name: "manifest.json", body: `[{"Config":"c","Layers":["l"]}]`}, entry{name: "c", body: config},
			entry{name: "l", body: string(tarOf(t, entry{name: "bin", kind: tar.TypeSymlink, link: "usr/bin"}))},
		), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := quick.Root(t.Context(), linked, filepath.Join(dir, "linked")); err == nil || !strings.Contains(hint.Of(err), "olmkit image push") {
			t.Errorf("%v", err)
		}
	})
}

// TestCheckProgram: a program runs here or it is told why not, and what to do.
func TestCheckProgram(t *testing.T) {
	here, other := elf.EM_X86_64, elf.EM_AARCH64
	if runtime.GOARCH == "arm64" {
		here, other = other, here
	}
	file := func(content string) string {
		name := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(name, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
		return name
	}
	static, dynamic, freebsd := programFor(t, here, elf.ET_EXEC), programFor(t, here, elf.ET_DYN, elf.PT_INTERP), programFor(t, here, elf.ET_EXEC)
	data, err := os.ReadFile(freebsd)
	if err != nil {
		t.Fatal(err)
	}
	data[elf.EI_OSABI] = byte(elf.ELFOSABI_FREEBSD)
	unmarked := programFor(t, here, elf.ET_EXEC)
	if err := errors.Join(os.WriteFile(freebsd, data, 0o700), os.Chmod(unmarked, 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		file      string
		libraries bool
		err, fix  string // "" if it runs
	}{
		"linked statically":              {static, false, "", ""},
		"linked dynamically":             {dynamic, true, "", ""},
		"dynamically, without libraries": {dynamic, false, "linked dynamically", "CGO_ENABLED=0"},
		"another machine":                {programFor(t, other, elf.ET_EXEC), true, "and this machine is " + runtime.GOARCH, "GOOS=linux GOARCH=" + runtime.GOARCH},
		"another system":                 {freebsd, true, "one for FreeBSD", "GOOS=linux"},
		"not executable":                 {unmarked, true, "not executable", "chmod +x"},
		"empty":                          {file(""), true, "but empty", "GOOS=linux"},
		"a script":                       {file("#!/bin/sh\n"), true, "but a script", "GOOS=linux"},
		"text":                           {file("no program"), true, "no program for Linux", "GOOS=linux"},
		"a short text":                   {file("no"), true, "no program for Linux", "GOOS=linux"},
		"a program cut short":            {file("\x7fELF\x02\x01"), true, "no program for Linux", "GOOS=linux"},
		"for Windows":                    {file("MZ\x90\x00"), true, "one for Windows", "GOOS=linux"},
		"for macOS":                      {file("\xcf\xfa\xed\xfe\x07"), true, "one for macOS", "GOOS=linux"},
		"not there":                      {filepath.Join(t.TempDir(), "none"), true, "no such file", "build the program"},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckProgram(test.file, test.libraries)
			if (err == nil) != (test.err == "") || err != nil && (!strings.Contains(err.Error(), test.err) || !strings.Contains(hint.Of(err), test.fix)) {
				t.Errorf("%v; fix: %s", err, hint.Of(err))
			}
		})
	}
}
