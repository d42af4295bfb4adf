package image

import (
	"compress/gzip"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/olmkit/olmkit/internal/hint"
)

// ProgramOptions say what the image of a program is like.
type ProgramOptions struct {
	Entrypoint string            // absolute path of the program in the image
	User       string            // UID or UID:GID that it runs as
	Labels     map[string]string // labels of each image, and annotations of the index
	Files      map[string]string // further files and folders for each image, by their absolute path in it
	Env        []string          // variables that it runs with, as KEY=VALUE
	Local      bool              // it does not leave this machine: time is saved, and not room
}

// machines is what GOARCH calls the machines that an ELF file can be for.
var machines = map[elf.Machine]string{
	elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64", elf.EM_PPC64: "ppc64le", elf.EM_S390: "s390x", elf.EM_RISCV: "riscv64",
}

var numericUser = regexp.MustCompile(`^[0-9]+(:[0-9]+)?$`)

// Programs returns an image that holds a statically linked program for Linux, and the files that it is given. With a
// program for each of several platforms, which the programs themselves tell, it is an index of as many images. The same
// files give the same bytes.
func Programs(programs []string, o ProgramOptions) (Artifact, error) {
	if !path.IsAbs(o.Entrypoint) || path.Clean(o.Entrypoint) != o.Entrypoint || o.Entrypoint == "/" {
		return nil, hint.With(fmt.Errorf("pack program: the entry point %q is no absolute path of a file", o.Entrypoint), "write it for example as /manager")
	}
	if !numericUser.MatchString(o.User) {
		return nil, hint.With(fmt.Errorf("pack program: the user %q is not a number", o.User), "write UID or UID:GID: Kubernetes cannot tell of a name whether it is root")
	}
	further, err := furtherFiles(o)
	if err != nil {
		return nil, fmt.Errorf("pack program: %w", err)
	}
	made := map[string]v1.Image{} // by architecture
	for _, program := range programs {
		architecture, err := machineOf(program)
		if err != nil {
			return nil, fmt.Errorf("pack program %s: %w", program, err)
		}
		if made[architecture] != nil {
			return nil, hint.With(fmt.Errorf("pack program %s: there is another one for linux/%s", program, architecture), "name one program for each platform")
		}
		if made[architecture], err = programImage(program, architecture, o, further); err != nil {
			return nil, fmt.Errorf("pack program %s: %w", program, err)
		}
	}
	architectures := slices.Sorted(maps.Keys(made))
	switch len(made) {
	case 0:
		return nil, errors.New("pack program: there is none")
	case 1:
		return made[architectures[0]], nil
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, architecture := range architectures {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: made[architecture], Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
	}
	annotated, ok := mutate.Annotations(index, o.Labels).(v1.ImageIndex)
	if !ok {
		return nil, errors.New("pack program: the annotated index is none")
	}
	return annotated, nil
}

// CheckProgram returns why containers on this machine cannot run the program in file: it is for another system or machine,
// not executable, or linked dynamically where containers have no libraries.
func CheckProgram(file string, libraries bool) error {
	b, err := readProgram(file)
	if err != nil {
		return err
	}
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return err
	case b.architecture != runtime.GOARCH:
		return hint.With(fmt.Errorf("it is built for %s, and this machine is %s", b.architecture, runtime.GOARCH), "build it with GOOS=linux GOARCH=%s", runtime.GOARCH)
	case info.Mode()&0o111 == 0:
		return hint.With(errors.New("it is not executable"), "make it so: chmod +x %s", file)
	case b.dynamic && !libraries:
		return errDynamic
	}
	return nil
}

// machineOf returns the architecture that a program was built for, which must not need libraries.
func machineOf(program string) (string, error) {
	b, err := readProgram(program)
	if err == nil && b.dynamic {
		err = errDynamic
	}
	return b.architecture, err
}

var errDynamic = hint.With(errors.New("it is linked dynamically, and the image has no libraries"), "build it with CGO_ENABLED=0")

// built is how a program was built.
type built struct {
	architecture string
	dynamic      bool // linked to libraries
}

// systems are those of whose programs the ELF header says that they are not for Linux.
var systems = map[elf.OSABI]string{elf.ELFOSABI_FREEBSD: "FreeBSD", elf.ELFOSABI_NETBSD: "NetBSD", elf.ELFOSABI_OPENBSD: "OpenBSD", elf.ELFOSABI_SOLARIS: "Solaris"}

// readProgram reads how a program for Linux was built.
func readProgram(program string) (built, error) {
	file, err := elf.Open(program)
	var format *elf.FormatError
	if errors.As(err, &format) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return built{}, hint.With(fmt.Errorf("it is no program for Linux%s", insteadOf(program)), "build it with GOOS=linux")
	}
	if err != nil {
		return built{}, hint.With(err, "build the program first")
	}
	defer file.Close()
	architecture, ok := machines[file.Machine]
	system, foreign := systems[file.OSABI]
	switch {
	case foreign:
		return built{}, hint.With(fmt.Errorf("it is no program for Linux, but one for %s", system), "build it with GOOS=linux")
	case !ok || file.Class != elf.ELFCLASS64 || file.Data == elf.ELFDATA2MSB && file.Machine != elf.EM_S390:
		return built{}, hint.With(fmt.Errorf("it is for %s, %s, %s, which no image is made for", file.Machine, file.Class, file.Data), "build it for one of %s", strings.Join(slices.Sorted(maps.Values(machines)), ", "))
	case file.Type != elf.ET_EXEC && file.Type != elf.ET_DYN:
		return built{}, hint.With(fmt.Errorf("it is of type %s, no program", file.Type), "name the program that the linker wrote")
	}
	return built{architecture, slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })}, nil
}

// heads is how files begin that are taken for programs.
var heads = []struct{ head, kind string }{
	{"#!", "a script, and an image of one program has no interpreter"},
	{"MZ", "one for Windows"},
	{"\xcf\xfa\xed\xfe", "one for macOS"},
	{"\xca\xfe\xba\xbe", "one for macOS"},
}

// insteadOf returns what file is that is no program for Linux, where its beginning tells.
func insteadOf(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, 4)
	n, _ := io.ReadFull(f, head)
	if n == 0 {
		return ", but empty"
	}
	for _, h := range heads {
		if strings.HasPrefix(string(head[:n]), h.head) {
			return ", but " + h.kind
		}
	}
	return ""
}

func programImage(program, architecture string, o ProgramOptions, further []*layer) (v1.Image, error) {
	dir, name := filepath.Split(program)
	level := gzip.BestCompression
	if o.Local {
		level = gzip.NoCompression
	}
	l, err := packAs(os.DirFS(filepath.Clean(dir)), map[string]string{strings.TrimPrefix(o.Entrypoint, "/"): name}, 0o755, level)
	if err != nil {
		return nil, err
	}
	img, err := assemble(scratch(), nil, o.Labels, append(slices.Clone(further), l)...)
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", architecture
	config.Config.User, config.Config.Entrypoint, config.Config.WorkingDir = o.User, []string{o.Entrypoint}, "/"
	config.Config.Env = o.Env
	return mutate.ConfigFile(img, config)
}

// furtherFiles returns what is in the image beside the program as a layer below it, which changes less often than it does;
// none where there is nothing.
func furtherFiles(o ProgramOptions) ([]*layer, error) {
	if len(o.Files) == 0 {
		return nil, nil
	}
	files := map[string]string{o.Entrypoint[1:]: ""} // by name in the image
	for _, at := range slices.Sorted(maps.Keys(o.Files)) {
		source, err := filepath.Abs(o.Files[at])
		if err != nil {
			return nil, err
		}
		if !path.IsAbs(at) || path.Clean(at) != at || at == "/" {
			return nil, hint.With(fmt.Errorf("%s can't be at %q in the image", source, at), "name an absolute path, as /etc/ssl/certs/ca-certificates.crt")
		}
		if err := filepath.WalkDir(source, func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			name := path.Join(at, filepath.ToSlash(strings.TrimPrefix(file, source)))[1:]
			if _, taken := files[name]; taken {
				return fmt.Errorf("%s is to be at /%s in the image, where something else is", file, name)
			}
			files[name] = filepath.ToSlash(file)[1:]
			return nil
		}); err != nil {
			return nil, hint.With(err, "name files and folders that are there, each for a path of its own")
		}
	}
	for name := range files {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, taken := files[dir]; taken {
				return nil, hint.With(fmt.Errorf("/%s is to be below /%s in the image, which is a file", name, dir), "choose another path for one of them")
			}
		}
	}
	delete(files, o.Entrypoint[1:])
	l, err := packAs(os.DirFS("/"), files, asBuilt, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	return []*layer{l}, nil
}
