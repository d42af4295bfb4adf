//go:build linux

package main

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/compression"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/olmkit/olmkit/internal/cluster/embedded"
)

// searchPath is where images have their programs.
const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// References that others than kubeadm ask for.
const (
	pauseImage   = "registry.k8s.io/pause:3.10" // kind's containerd configuration
	networkImage = "localhost/olmkit/network:v1"
	opmImage     = "quay.io/operator-framework/opm:latest" // OLM's released manifests
	operandImage = "docker.io/library/memcached:1.6.39"    // the memcached operator's default
)

// layer writes a layer.
type layer struct {
	*tar.Writer
	err error
}

func (l *layer) add(h *tar.Header, data io.Reader) {
	if l.err == nil {
		l.err = l.WriteHeader(h)
	}
	if l.err == nil && data != nil {
		_, l.err = io.Copy(l, data)
	}
}

func (l *layer) bytes(name string, mode int64, data string) {
	l.add(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(data))}, strings.NewReader(data))
}

func (l *layer) link(name, target string) {
	l.add(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777}, nil)
}

// file adds the machine's file from.
func (l *layer) file(name string, mode int64, from string) {
	f, err := os.Open(from)
	if err != nil {
		l.err = err
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		l.err = err
		return
	}
	l.add(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: info.Size()}, f)
}

// debian adds programs of Debian's, with all that they load.
func (l *layer) debian(t *tree, programs ...string) {
	files, err := t.closure(programs...)
	if err != nil {
		l.err = err
		return
	}
	for _, name := range files {
		e := t.entries[name]
		header := *e.header
		header.Name = name
		l.add(&header, io.NewSectionReader(e.data, 0, e.data.Size()))
	}
}

// layers makes a layer of each of fills, in files of the folder dir.
func layers(dir string, fills ...func(*layer)) ([]v1.Layer, error) {
	var made []v1.Layer
	for _, fill := range fills {
		f, err := os.CreateTemp(dir, "layer-")
		if err != nil {
			return nil, err
		}
		l := &layer{Writer: tar.NewWriter(f)}
		fill(l)
		if l.err == nil {
			l.err = l.Close()
		}
		if err := f.Close(); l.err == nil {
			l.err = err
		}
		if l.err != nil {
			return nil, fmt.Errorf("write a layer: %w", l.err)
		}
		packed, err := tarball.LayerFromFile(f.Name(), tarball.WithCompression(compression.None))
		if err != nil {
			return nil, err
		}
		made = append(made, packed)
	}
	return made, nil
}

// assemble makes an image.
func assemble(dir string, config v1.Config, fills ...func(*layer)) (v1.Image, error) {
	content, err := layers(dir, fills...)
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(empty.Image, content...)
	if err != nil {
		return nil, err
	}
	goarch, err := output(context.Background(), "go", "env", "GOARCH")
	if err != nil {
		return nil, err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", string(goarch), config
	file.Config.Env = append([]string{searchPath}, config.Env...)
	return mutate.ConfigFile(img, file)
}

// guests makes the images that run in the node, in one archive.
func (m *material) guests(ctx context.Context, dir string) (string, error) {
	wanted, err := m.kubeadmImages(ctx)
	if err != nil {
		return "", err
	}
	all := map[name.Reference]v1.Image{}
	for _, i := range m.images() {
		img, err := assemble(dir, i.config, i.fill)
		if err != nil {
			return "", fmt.Errorf("make the image of %s: %w", i.names[0], err)
		}
		for _, called := range i.names {
			if reference, ok := wanted[called]; ok {
				called = reference
			}
			tag, err := name.NewTag(called)
			if err != nil {
				return "", err
			}
			all[tag] = img
		}
	}
	archive := filepath.Join(dir, "images.tar")
	return archive, tarball.MultiRefWriteToFile(archive, all)
}

// guestImage is an image that the node brings along.
type guestImage struct {
	names  []string // last parts of what kubeadm calls it, or whole references
	config v1.Config
	fill   func(*layer)
}

// images lists the images that the node brings along.
func (m *material) images() []guestImage {
	kubernetes := []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"}
	return []guestImage{
		{kubernetes, v1.Config{}, func(l *layer) {
			l.file("usr/local/bin/cluster", 0o755, filepath.Join(m.kubernetes, "cluster"))
			for _, component := range kubernetes {
				l.link("usr/local/bin/"+component, "cluster")
			}
		}},
		{[]string{"kube-proxy"}, v1.Config{}, func(l *layer) {
			l.file("usr/local/bin/kube-proxy", 0o755, m.program("kubernetes"))
			l.debian(m.debian, append([]string{"/usr/sbin/xtables-nft-multi", "/usr/sbin/conntrack", "/usr/sbin/nft"}, m.debian.glob("usr/lib/*/xtables/*.so")...)...)
			for _, tool := range []string{"iptables", "ip6tables"} {
				for _, verb := range []string{"", "-save", "-restore"} {
					l.link("usr/sbin/"+tool+verb, "xtables-nft-multi")
				}
			}
		}},
		{[]string{"coredns"}, v1.Config{Entrypoint: []string{"/coredns"}}, func(l *layer) { l.file("coredns", 0o755, m.program("coredns")) }},
		{[]string{"pause", pauseImage, networkImage}, v1.Config{Entrypoint: []string{"/pause"}, User: "65535:65535"}, func(l *layer) {
			l.file("pause", 0o755, m.program("guest"))
			l.link("network", "pause")
		}},
		{[]string{embedded.OLMImage}, v1.Config{Entrypoint: []string{"/bin/olm"}, User: "1001"}, func(l *layer) {
			l.link("bin", "usr/bin")
			l.debian(m.debian, "/usr/bin/cp")
			for _, program := range []string{"olm", "catalog"} {
				l.file("usr/bin/"+program, 0o755, filepath.Join(m.olm, "olm", "bin", program))
			}
			for _, program := range []string{"cpb", "copy-content"} {
				l.file("usr/bin/"+program, 0o755, m.program(program))
			}
		}},
		{[]string{opmImage}, v1.Config{Entrypoint: []string{"/bin/opm"}, User: "1001"}, func(l *layer) {
			l.file("bin/opm", 0o755, m.program("opm"))
			l.file("bin/grpc_health_probe", 0o755, m.program("grpc-health-probe"))
		}},
		{[]string{operandImage}, v1.Config{Entrypoint: []string{"memcached"}, User: "11211"}, func(l *layer) { l.debian(m.debian, "/usr/bin/memcached") }},
	}
}

// kubeadmImages returns the references that kubeadm asks for, by their last part: the versions of etcd, CoreDNS and pause
// in them are those of its release, whichever are built here.
func (m *material) kubeadmImages(ctx context.Context) (map[string]string, error) {
	kubeadm := m.program("kubeadm")
	if err := os.Symlink("kubernetes", kubeadm); err != nil && !os.IsExist(err) {
		return nil, err
	}
	list, err := output(ctx, kubeadm, "config", "images", "list", "--kubernetes-version", embedded.KubernetesVersion)
	if err != nil {
		return nil, err
	}
	references := map[string]string{}
	for reference := range strings.FieldsSeq(string(list)) {
		repository, _, _ := strings.Cut(reference, ":")
		references[path.Base(repository)] = reference
	}
	return references, nil
}
