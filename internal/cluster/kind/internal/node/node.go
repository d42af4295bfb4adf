//go:build linux

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/olmkit/olmkit/internal/cluster/embedded"
)

// pack writes the node image into archive, in place of those of earlier sources.
func (m *material) pack(ctx context.Context, called, source, archive string) error {
	dir, err := os.MkdirTemp(m.dir, "pack-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	tag, err := name.NewTag(called)
	if err != nil {
		return err
	}
	const kind = "sigs.k8s.io/kind"
	if _, err := output(ctx, "go", "-C", "tools/kind/kind", "mod", "download", kind); err != nil {
		return err
	}
	files, err := output(ctx, "go", "-C", "tools/kind/kind", "list", "-m", "-f", "{{.Dir}}", kind)
	if err != nil {
		return err
	}
	spec, err := m.containerSpec(ctx)
	if err != nil {
		return err
	}
	guests, err := m.guests(ctx, dir)
	if err != nil {
		return err
	}
	img, err := assemble(dir, v1.Config{
		Env:        []string{"container=docker"},
		StopSignal: "SIGRTMIN+3", // systemd's for ending
		Entrypoint: []string{"/usr/local/bin/entrypoint", "/sbin/init"},
		Labels:     map[string]string{sourceLabel: source},
	}, m.base, m.programs, func(l *layer) {
		configure(l, filepath.Join(string(files), "images/base/files"), spec)
	}, func(l *layer) {
		l.file("kind/images.tar", 0o644, guests)
	})
	if err != nil {
		return err
	}
	packed := filepath.Join(dir, "image.tar")
	if err := tarball.WriteToFile(packed, tag, img); err != nil {
		return fmt.Errorf("write the image: %w", err)
	}
	earlier, err := filepath.Glob(filepath.Join(m.dir, archivesOf(called)+"*.tar"))
	if err != nil {
		return err
	}
	for _, file := range earlier {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return os.Rename(packed, archive)
}

// base is Debian's files, without what systemd would start that a node has no use for, as in kind's own base image.
func (m *material) base(l *layer) {
	for _, name := range slices.Sorted(maps.Keys(m.debian.entries)) {
		e := m.debian.entries[name]
		if unwanted(name) || name == "." {
			continue
		}
		header := *e.header
		header.Name = name
		l.add(&header, io.NewSectionReader(e.data, 0, e.data.Size()))
	}
}

func unwanted(name string) bool {
	if strings.HasPrefix(name, "dev/") || strings.HasPrefix(name, "var/cache/apt/") {
		return true
	}
	for _, pattern := range []string{
		"usr/lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service", "usr/lib/systemd/system/multi-user.target.wants/*",
		"etc/systemd/system/*.wants/*", "usr/lib/systemd/system/local-fs.target.wants/*", "usr/lib/systemd/system/sockets.target.wants/*udev*",
		"usr/lib/systemd/system/sockets.target.wants/*initctl*", "usr/lib/systemd/system/basic.target.wants/*",
	} {
		if ok, _ := path.Match(pattern, name); ok {
			return true
		}
	}
	return false
}

// programs are those that run on the node itself.
func (m *material) programs(l *layer) {
	l.file("usr/bin/kubernetes", 0o755, m.program("kubernetes"))
	for _, part := range []string{"kubeadm", "kubectl", "kubelet"} {
		l.link("usr/bin/"+part, "kubernetes")
	}
	for _, program := range []string{"containerd", "containerd-shim-runc-v2", "ctr"} {
		l.file("usr/local/bin/"+program, 0o755, m.program(program))
	}
	for _, plugin := range []string{"host-local", "loopback", "portmap", "ptp"} {
		l.file("opt/cni/bin/"+plugin, 0o755, m.program(plugin))
	}
}

// containerSpec is what containers are made from: containerd's own, with kind's hook, and limits as those of containerd.
func (m *material) containerSpec(ctx context.Context) ([]byte, error) {
	out, err := output(ctx, m.program("ctr"), "oci", "spec")
	if err != nil {
		return nil, err
	}
	var spec map[string]any
	decoder := json.NewDecoder(bytes.NewReader(out))
	decoder.UseNumber()
	if err := decoder.Decode(&spec); err != nil {
		return nil, fmt.Errorf("read containerd's specification of containers: %w", err)
	}
	if process, ok := spec["process"].(map[string]any); ok {
		delete(process, "rlimits")
	}
	spec["hooks"] = map[string]any{"createContainer": []any{map[string]any{"path": "/kind/bin/mount-product-files.sh"}}}
	return json.Marshal(spec)
}

// configure adds the files of kind's base image, which stand in folder, and what kind's node image has besides.
func configure(l *layer, folder string, spec []byte) {
	err := filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(folder, file)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		mode := int64(0o644)
		if strings.Contains(name, "bin/") {
			mode = 0o755
		}
		if name == "etc/containerd/config.toml" {
			// The node runs also where root may not lower its own score.
			data = bytes.ReplaceAll(data, []byte("restrict_oom_score_adj = false"), []byte("restrict_oom_score_adj = true"))
		}
		l.bytes(name, mode, string(data))
		return nil
	})
	if err != nil {
		l.err = err
	}
	const units = "etc/systemd/system/"
	for _, unit := range []string{"containerd", "images", "kubelet", "undo-mount-hacks"} {
		l.link(units+"multi-user.target.wants/"+unit+".service", "/"+units+unit+".service")
	}
	l.link(units+"systemd-binfmt.service", "/dev/null") // what it registers is the whole machine's
	l.bytes(units+"images.service", 0o644, imagesUnit)
	l.bytes(units+"kubelet.service.d/20-images.conf", 0o644, "[Unit]\nRequires=images.service\nAfter=images.service\n")
	l.bytes("etc/systemd/journald.conf.d/kind.conf", 0o644, "[Journal]\nReadKMsg=no\n")
	l.add(&tar.Header{Typeflag: tar.TypeDir, Name: "etc/kubernetes/manifests/", Mode: 0o755}, nil)
	l.bytes("etc/containerd/cri-base.json", 0o644, string(spec))
	l.bytes("kind/version", 0o644, embedded.KubernetesVersion)
	l.bytes("kind/manifests/default-cni.yaml", 0o644, networkManifest)
	l.bytes("kind/manifests/default-storage.yaml", 0o644, storageManifest)
}

// imagesUnit takes the images into containerd when a node starts, before the kubelet asks for them: what a node has in /var
// is copied for each one, so that having them there would cost as much.
const imagesUnit = `[Unit]
Description=Images of the node
After=containerd.service
Requires=containerd.service
Before=kubelet.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/bin/ctr --namespace k8s.io images import --no-unpack /kind/images.tar

[Install]
WantedBy=multi-user.target
`

// kind replaces the pods' subnet in it.
const networkManifest = `# would you kindly template this file
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: network
  namespace: kube-system
spec:
  selector:
    matchLabels:
      app: network
  template:
    metadata:
      labels:
        app: network
    spec:
      hostNetwork: true
      automountServiceAccountToken: false
      priorityClassName: system-node-critical
      tolerations:
      - operator: Exists
      containers:
      - name: network
        image: ` + networkImage + `
        command: [/network, /etc/cni/net.d/10-ptp.conflist]
        env:
        - name: POD_SUBNET
          value: {{ .PodSubnet }}
        securityContext:
          runAsUser: 0
        volumeMounts:
        - name: configuration
          mountPath: /etc/cni/net.d
      volumes:
      - name: configuration
        hostPath:
          path: /etc/cni/net.d
          type: DirectoryOrCreate
`

const storageManifest = `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: standard
  annotations:
    storageclass.kubernetes.io/is-default-class: "true"
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
`
