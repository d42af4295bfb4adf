//go:build linux

// Command node makes a node image for kind that needs no registry: node IMAGE, in the root of the repository, writes it into an
// archive, and node --load IMAGE hands that to Docker. It takes Debian's packages and what the Go toolchain builds from the modules
// below tools, and puts the images in that the control plane, OLM and the samples' operand run, so that a walk pulls nothing that
// olmkit does not serve itself.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/olmkit/olmkit/internal/cache"
	"github.com/olmkit/olmkit/internal/cluster/embedded"
	"github.com/olmkit/olmkit/internal/progress"
)

func main() {
	load := flag.Bool("load", false, "load the image into Docker")
	flag.Usage = func() { fmt.Fprintln(os.Stderr, "usage: node [--load] IMAGE") }
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt)
	if err := run(ctx, flag.Arg(0), *load, progress.New(os.Stderr)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// sourceLabel says on the image what it was made from.
const sourceLabel = "io.olmkit.source"

func run(ctx context.Context, name string, load bool, p *progress.Printer) error {
	source, err := sourceDigest(ctx)
	if err != nil {
		return err
	}
	cache, err := cache.Folder()
	if err != nil {
		return err
	}
	dir := filepath.Join(cache, "kind")
	archive := filepath.Join(dir, archivesOf(name)+source+".tar")
	if load {
		return loadArchive(ctx, name, source, archive, p)
	}
	if _, err := os.Stat(archive); err == nil {
		p.Say("the image %s is up to date", name)
		return nil
	}
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
		return err
	}
	m := material{dir: dir}
	group, building := errgroup.WithContext(ctx) // packages come from the network, while compilers take the processor
	group.Go(func() error { return m.fetchDebian(building, p) })
	group.Go(func() error {
		built, err := embedded.Build(building, embedded.Parts{Kubernetes: []string{embedded.KubernetesVersion}, OLMv0: []string{embedded.OLMVersion}}, p)
		if err != nil {
			return err
		}
		m.kubernetes, m.olm = built[0], built[1]
		return m.build(building, p)
	})
	if err := group.Wait(); err != nil {
		return err
	}
	step := p.Start("packing the node image %s", name)
	return step.End(m.pack(ctx, name, source, archive))
}

// loadArchive has Docker load the image that archive holds, unless it did.
func loadArchive(ctx context.Context, name, source, archive string, p *progress.Printer) error {
	loaded, err := output(ctx, "docker", "image", "ls", "--quiet", "--filter", "label="+sourceLabel+"="+source, name)
	if err != nil || len(loaded) > 0 {
		return err
	}
	step := p.Start("loading the node image %s", name)
	if _, err = output(ctx, "docker", "load", "--quiet", "--input", archive); err != nil && ctx.Err() == nil {
		err = errors.Join(err, os.Remove(archive)) // if it is broken, the next run makes it anew
	}
	return step.End(err)
}

// archivesOf is how the files begin that hold the image called name.
func archivesOf(name string) string {
	return "node-" + strings.NewReplacer("/", "_", ":", "_").Replace(name) + "-"
}

// material is what the images are made of.
type material struct {
	dir        string // the cache: bin/ for built programs
	kubernetes string // built for the embedded cluster, as is olm
	olm        string
	debian     *tree
}

func (m *material) program(name string) string { return filepath.Join(m.dir, "bin", name) }

const olm = "github.com/operator-framework/operator-lifecycle-manager"

// build builds the programs that the embedded cluster does not have.
func (m *material) build(ctx context.Context, p *progress.Printer) error {
	major, rest, _ := strings.Cut(strings.TrimPrefix(embedded.KubernetesVersion, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	const version = "k8s.io/component-base/version."
	stamp := fmt.Sprintf("-X %sgitVersion=%s -X %sgitMajor=%s -X %sgitMinor=%s", version, embedded.KubernetesVersion, version, major, version, minor)
	const containerd, plugins = "github.com/containerd/containerd/v2/cmd/", "github.com/containernetworking/plugins/plugins/"
	for _, b := range []struct {
		what, module, flags, ldflags string
		packages                     []string
		as                           string // name of the program; "" for those of the packages
	}{
		{"pause and the node's network", ".", "", "", []string{"./internal/cluster/kind/internal/guest"}, ""},
		{"kubelet, kubeadm, kubectl and kube-proxy", "tools/kind/kubernetes", "", stamp, []string{"."}, "kubernetes"},
		{"OLM's tools", "tools/kind/kubernetes", "", "", []string{olm + "/cmd/copy-content", olm + "/util/cpb"}, ""},
		{"opm", "tools/opm", "json1,containers_image_openpgp", "", []string{"github.com/operator-framework/operator-registry/cmd/opm"}, ""},
		{"grpc-health-probe", "tools/kind/probe", "", "", []string{"github.com/grpc-ecosystem/grpc-health-probe"}, ""},
		{"containerd", "tools/kind/containerd", "no_aufs,no_zfs,no_btrfs,no_devmapper", "", []string{containerd + "containerd", containerd + "containerd-shim-runc-v2", containerd + "ctr"}, ""},
		{"CNI plugins", "tools/kind/cni", "", "", []string{plugins + "ipam/host-local", plugins + "main/loopback", plugins + "main/ptp", plugins + "meta/portmap"}, ""},
		{"CoreDNS", "tools/kind/dns", "", "", []string{"."}, "coredns"},
	} {
		step := p.Start("building %s", b.what)
		args := append([]string{"-C", b.module, "build", "-trimpath", "-buildvcs=false", "-tags", b.flags,
			"-ldflags", "-s -w " + b.ldflags, "-o", m.program(b.as) + map[bool]string{true: "/"}[b.as == ""]}, b.packages...)
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
		cmd.Env = append(cmd.Env, embedded.CompilerEnv...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("build %s: %w\n%s", b.what, err, out)
		}
		if step.End(err) != nil {
			return err
		}
	}
	return nil
}

// sourceDigest identifies what the image is made from.
func sourceDigest(ctx context.Context) (string, error) {
	sum := sha256.New()
	goVersion, err := output(ctx, "go", "env", "GOVERSION", "GOARCH")
	if err != nil {
		return "", err
	}
	sum.Write(goVersion)
	for _, root := range []string{"tools/cluster", "tools/kind", "tools/opm", "internal/cluster/kind/internal"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			fmt.Fprintf(sum, "%s %d\n", path, len(data))
			sum.Write(data)
			return err
		})
		if err != nil {
			return "", fmt.Errorf("read what the image is made from, in the root of the repository: %w", err)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// output returns what a command prints.
func output(ctx context.Context, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(append([]string{name}, args[:1]...), " "), err)
	}
	return bytes.TrimSpace(out), nil
}
