package embedded

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/tools/txtar"

	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/progress"
)

// componentSet is programs that the Go toolchain builds together, once, from one module. Nobody builds a set that is not used.
type componentSet struct {
	name     string // its folder in the cache begins with it
	module   []byte // an archive of its files
	says     string // what is built
	takes    string // how long that takes where nothing of it was built before, on two cores
	programs []componentProgram

	// within is a module that module requires, to build the programs in the folder of: by its own go.mod and go.sum, with the libraries
	// that it was released with. "" builds them in the folder of module.
	within string
	// documents are files that the set has besides programs, each of all YAML files of a folder of within, by their paths.
	documents map[string]string
	// anywhere tells that the set is of use, and is built, also where olmkit cannot start an embedded cluster.
	anywhere bool
	// otherwise is what users can do who can neither pull nor build the set; "" is to choose a kind cluster.
	otherwise string
}

type componentProgram struct {
	file  string // its path in the folder of the set
	pkg   string
	flags []string
}

// ensureBuilt builds the set unless the cache has it as it was built, and returns the folder that holds it.
func (s *componentSet) ensureBuilt(ctx context.Context, cache string, p *progress.Printer) (string, error) {
	content := s.content(cache, runtime.GOARCH)
	goVersion, err := goCommand(ctx, "", "env", "GOVERSION")
	if errors.Is(err, errNoGo) {
		err = hint.With(fmt.Errorf("the Go toolchain builds %s, and %w", s.says, err), "install Go (https://go.dev/dl), or %s", s.alternative())
	}
	if err != nil {
		// Without Go, as in olmkit's own image, those are good that another version of Go built.
		built, _ := filepath.Glob(filepath.Join(content+"-*", s.programs[0].file))
		slices.Reverse(built)
		for _, program := range built {
			dir := strings.TrimSuffix(program, string(filepath.Separator)+s.programs[0].file)
			damaged := s.check(dir)
			if damaged == nil {
				return dir, nil
			}
			err = hint.With(errors.Join(damaged, err), "install Go (https://go.dev/dl) to build them again, or fill %s anew with 'olmkit cluster build'", cache)
		}
		return "", err
	}
	return s.ensureBuiltBy(ctx, cache, string(goVersion), runtime.GOARCH, p)
}

// ensureBuiltBy is ensureBuilt with this version of Go, for an architecture.
func (s *componentSet) ensureBuiltBy(ctx context.Context, cache, goVersion, arch string, p *progress.Printer) (string, error) {
	dir := s.content(cache, arch) + "-" + goVersion
	if s.check(dir) == nil {
		return dir, nil
	}
	unlock, there, err := s.claim(ctx, cache, dir, "built", p)
	if err != nil {
		return "", err
	}
	defer unlock()
	if there {
		return dir, nil
	}
	p.Say("to build once: %s; %s on two cores, less if the Go command's cache has some of it", s.says, s.takes)
	step := p.Start("building %s", s.says)
	return dir, step.End(advise(replace(dir, func(work, out string) error { return s.build(ctx, work, out, arch, step) }), cache))
}

// claim waits until no other process fills the folder dir of the cache, and reports whether one has filled it meanwhile. That what is
// there is damaged is said: it is made again, which is built or pulled.
func (s *componentSet) claim(ctx context.Context, cache, dir, made string, p *progress.Printer) (unlock func(), there bool, err error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, false, advise(err, cache)
	}
	if unlock, err = lockFile(ctx, dir+".lock"); err != nil {
		return nil, false, advise(err, cache)
	}
	damaged := s.check(dir)
	if errors.As(damaged, &damagedError{}) {
		p.Say("%s: the cached one is %s again: %v", s.says, made, damaged)
	}
	return unlock, damaged == nil, nil
}

// content is the folder of what the module builds for an architecture, whichever version of Go does.
func (s *componentSet) content(cache, arch string) string {
	return filepath.Join(cache, "components", s.key(arch))
}

// key tells the set for an architecture, and this system, from all others.
func (s *componentSet) key(arch string) string {
	if runtime.GOOS != "linux" {
		arch = runtime.GOOS + "/" + arch
	}
	return s.name + "-" + digestOf(s.module, arch)
}

// alternative is what users can do who can neither pull nor build the set.
func (s *componentSet) alternative() string { return cmp.Or(s.otherwise, "use --cluster kind") }

// replace has fill make the folder out, below work, and puts it in the place of dir, all or nothing.
func replace(dir string, fill func(work, out string) error) error {
	work := dir + ".new"
	if err := os.RemoveAll(work); err != nil { // of a process that was killed
		return err
	}
	defer os.RemoveAll(work)
	if err := os.MkdirAll(work, 0o755); err != nil {
		return err
	}
	out := filepath.Join(work, "out")
	if err := fill(work, out); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil { // what is damaged; what runs from there goes on
		return err
	}
	return os.Rename(out, dir)
}

// build builds the set for an architecture into the folder out, with room for what that needs in work.
func (s *componentSet) build(ctx context.Context, work, out, arch string, step *progress.Step) error {
	source, temporary := filepath.Join(work, "source"), filepath.Join(work, "tmp")
	if err := os.MkdirAll(temporary, 0o755); err != nil {
		return err
	}
	for _, f := range txtar.Parse(s.module).Files {
		file := filepath.Join(source, filepath.FromSlash(f.Name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, f.Data, 0o644)); err != nil {
			return err
		}
	}
	source, err := s.enter(ctx, source, out)
	if err != nil {
		return err
	}
	for _, p := range s.programs {
		file := filepath.Join(out, p.file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		args := slices.Concat([]string{"build", "-v"}, CompilerFlags, p.flags, []string{"-o", file, p.pkg})
		if err := s.goBuild(ctx, source, temporary, arch, step, args...); err != nil {
			return err
		}
	}
	return s.recordDigests(out)
}

// enter returns the folder to build the set in, whose module's files are in source, and writes the set's documents below out.
func (s *componentSet) enter(ctx context.Context, source, out string) (string, error) {
	if s.within == "" {
		return source, nil
	}
	if _, err := goCommand(ctx, source, "mod", "download"); err != nil { // what the module requires: that one
		return "", err
	}
	said, err := goCommand(ctx, source, "mod", "download", "-json") // where it is now
	if err != nil {
		return "", err
	}
	var downloaded struct{ Path, Dir string }
	if err := json.Unmarshal(said, &downloaded); err != nil || downloaded.Path != s.within || downloaded.Dir == "" {
		return "", errors.Join(fmt.Errorf("download %s: %s", s.within, said), err)
	}
	for name, folder := range s.documents {
		files, err := filepath.Glob(filepath.Join(downloaded.Dir, folder, "*.yaml"))
		if err != nil {
			return "", err
		}
		if err := join(files, filepath.Join(out, name)); err != nil {
			return "", err
		}
	}
	return downloaded.Dir, nil
}

// join writes the YAML documents of files, of which there is at least one, to the file at path.
func join(files []string, path string) error {
	if len(files) == 0 {
		return fmt.Errorf("%s: there are no files to make it of", path)
	}
	var all []byte
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		all = append(append(all, "---\n"...), data...)
	}
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, all, 0o644))
}

// CompilerFlags are those of the Makefile (BUILD_FLAGS), so that a package that olmkit has as well is not compiled again: nothing is written for debuggers, and only what reads and
// computes much has its functions inlined.
var CompilerFlags = []string{
	"-trimpath", "-tags=grpcnotrace", "-gcflags=all=-dwarf=false -l", "-gcflags=std=-dwarf=false", "-gcflags=github.com/olmkit/...=-dwarf=false",
	"-gcflags=github.com/klauspost/...=-dwarf=false", "-gcflags=go.yaml.in/...=-dwarf=false", "-gcflags=sigs.k8s.io/yaml/...=-dwarf=false",
}

// CompilerEnv has the compiler collect its garbage less often: a fifth less time.
var CompilerEnv = []string{"GOGC=400", "GOMEMLIMIT=2GiB"}

// goBuild runs the Go command so that its compilers end with it. What it makes depends on the version of Go and on the system alone,
// and not on what this machine could run.
func (s *componentSet) goBuild(ctx context.Context, source, temporary, arch string, step *progress.Step, args ...string) error {
	cmd, process := s.command(ctx, "go", args...)
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOTMPDIR="+temporary,
		"GOOS="+runtime.GOOS, "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=-mod=readonly -buildvcs=false")
	cmd.Env = append(cmd.Env, CompilerEnv...)
	output, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := process.Start(); err != nil {
		return err
	}
	said := lastSaid(output, step)
	if err := process.Wait(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args[:1], " "), err, strings.Join(said, "\n"))
	}
	return nil
}

// lastSaid notes what the Go command says, to the end, and returns its last lines.
func lastSaid(output io.Reader, step *progress.Step) []string {
	var said []string
	lines := bufio.NewReader(output)
	for {
		line, err := lines.ReadString('\n')
		if line = strings.TrimSuffix(line, "\n"); line != "" {
			step.Note(strings.TrimPrefix(line, "go: "))
			said = append(said, line)
			said = said[max(0, len(said)-12):]
		}
		if err != nil {
			return said
		}
	}
}

// process is a command that is started and waited for in a way of its own.
type process interface {
	Start() error
	Wait() error
}

// grouped returns a command that ends with ctx, and all it started with it.
func grouped(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	return c
}

var errNoGo = errors.New("there is no program go on the PATH")

// goCommand returns what the Go command prints.
func goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, hint.With(errNoGo, "install Go (https://go.dev/dl)")
	}
	if err != nil {
		return nil, fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(errOut.Bytes()))
	}
	return bytes.TrimSpace(out), nil
}

// advise says what to do about an error that the cache folder met.
func advise(err error, cache string) error {
	switch {
	case err == nil || hint.Of(err) != "":
		return err
	case errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), "no space left on device"):
		return hint.With(err, "free some space (the components take 0.3 GB in %s, 0.15 GB more for each other Kubernetes, and as much for each other OLM; building each takes up to 4 GB in Go's build cache), or set OLMKIT_CACHE and GOCACHE to folders that have room", cache)
	case slices.ContainsFunc([]error{fs.ErrPermission, fs.ErrNotExist, syscall.ENOTDIR, syscall.EROFS}, func(e error) bool { return errors.Is(err, e) }):
		return hint.With(err, "make %s writable, or set OLMKIT_CACHE to a folder that is", cache)
	}
	return err
}
