package embedded

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
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

//go:generate go run ./internal/pack ../../../tools/cluster components.txtar

// componentsModule is the module in tools/cluster, which pins and builds the components, as an archive: a module can't
// embed the files of another.
//
//go:embed components.txtar
var componentsModule []byte

const olmModule = "github.com/operator-framework/operator-lifecycle-manager"

// Components are the built programs of the cluster.
type Components struct {
	Dir string // holds the program cluster, and olm, the root of OLM's image
}

// EnsureComponents builds the components unless the cache has them as they were built.
func EnsureComponents(ctx context.Context, cache string, p *progress.Printer) (Components, error) {
	content := content(cache)
	goVersion, err := goCommand(ctx, "", "env", "GOVERSION")
	if err != nil {
		// Without Go, as in olmkit's own image, those are good that another version of Go built.
		built, _ := filepath.Glob(filepath.Join(content+"-*", "cluster"))
		slices.Reverse(built)
		for _, program := range built {
			dir := filepath.Dir(program)
			damaged := checkComponents(dir)
			if damaged == nil {
				return Components{dir}, nil
			}
			err = hint.With(errors.Join(damaged, err), "install Go (https://go.dev/dl) to build them again, or fill %s anew with 'olmkit cluster build'", cache)
		}
		return Components{}, err
	}
	dir := content + "-" + string(goVersion)
	if checkComponents(dir) == nil {
		return Components{dir}, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return Components{}, advise(err, cache)
	}
	unlock, err := lockFile(ctx, dir+".lock")
	if err != nil {
		return Components{}, advise(err, cache)
	}
	defer unlock()
	damaged := checkComponents(dir)
	if damaged == nil {
		return Components{dir}, nil // built by another process meanwhile
	}
	if errors.As(damaged, &damagedError{}) {
		p.Say("the cluster's components are built again: %v", damaged)
	}
	step := p.Start("building etcd, Kubernetes %s and OLM %s (once; 5 to 10 min on two cores)", KubernetesVersion, OLMVersion)
	return Components{dir}, step.End(advise(build(ctx, dir, step), cache))
}

// content is the folder of what the module builds for this machine, whichever version of Go does.
func content(cache string) string {
	sum := sha256.New()
	for _, part := range [][]byte{componentsModule, []byte(runtime.GOARCH)} {
		fmt.Fprintf(sum, "%d\n%s", len(part), part)
	}
	return filepath.Join(cache, "components", hex.EncodeToString(sum.Sum(nil))[:16])
}

// build builds the components into dir, all or nothing.
func build(ctx context.Context, dir string, step *progress.Step) error {
	work := dir + ".new"
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	defer os.RemoveAll(work)
	source, temporary, out := filepath.Join(work, "source"), filepath.Join(work, "tmp"), filepath.Join(work, "out")
	for _, d := range []string{source, temporary, filepath.Join(out, "olm", "bin")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	for _, f := range txtar.Parse(componentsModule).Files {
		if err := os.WriteFile(filepath.Join(source, f.Name), f.Data, 0o644); err != nil {
			return err
		}
	}
	major, rest, _ := strings.Cut(strings.TrimPrefix(KubernetesVersion, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	const version = "k8s.io/component-base/version."
	stamp := fmt.Sprintf("-s -w -X %sgitVersion=%s -X %sgitMajor=%s -X %sgitMinor=%s", version, KubernetesVersion, version, major, version, minor)
	for _, target := range []struct{ out, pkg string }{
		{filepath.Join(out, "olm", "bin", "olm"), olmModule + "/cmd/olm"},
		{filepath.Join(out, "olm", "bin", "catalog"), olmModule + "/cmd/catalog"},
		{filepath.Join(out, "cluster"), "."},
	} {
		if err := goBuild(ctx, source, temporary, step, "build", "-v", "-trimpath", "-ldflags", stamp, "-o", target.out, target.pkg); err != nil {
			return err
		}
	}
	if err := recordDigests(out); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil { // what is damaged; what runs from there goes on
		return err
	}
	return os.Rename(out, dir)
}

// goBuild runs the Go command in namespaces of its own, so that its compilers end with this process.
func goBuild(ctx context.Context, source, temporary string, step *progress.Step, args ...string) error {
	cmd := contained(ctx, "go", args...)
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOTMPDIR="+temporary, "GOFLAGS=-mod=readonly -buildvcs=false")
	output, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var said []string
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		line := lines.Text()
		step.Note(strings.TrimPrefix(line, "go: "))
		if said = append(said, line); len(said) > 12 {
			said = said[1:]
		}
	}
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args[:1], " "), err, strings.Join(said, "\n"))
	}
	return nil
}

// goCommand returns what the Go command prints.
func goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, hint.With(errors.New("the embedded cluster's components are built by the Go toolchain, and there is no program go on the PATH"), "install Go (https://go.dev/dl), or use --cluster kind")
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
		return hint.With(err, "free some space (the components take 0.3 GB in %s, building them 4 GB in Go's build cache), or set OLMKIT_CACHE and GOCACHE to folders that have room", cache)
	case slices.ContainsFunc([]error{fs.ErrPermission, fs.ErrNotExist, syscall.ENOTDIR, syscall.EROFS}, func(e error) bool { return errors.Is(err, e) }):
		return hint.With(err, "make %s writable, or set OLMKIT_CACHE to a folder that is", cache)
	}
	return err
}
