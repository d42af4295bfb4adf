package kind

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path"
	"regexp"
	"strings"
)

// node is a container that is a cluster's node.
type node struct {
	engine string // the program that runs the container, docker or podman
	name   string
}

// run runs a command on the node, with the rights that the node itself has. What it reads and where it writes may be nil.
func (n node) run(ctx context.Context, in io.Reader, out io.Writer, command ...string) error {
	args := []string{"exec", "--privileged"}
	if in != nil {
		args = append(args, "--interactive")
	}
	return run(ctx, in, out, n.engine, append(append(args, n.name), command...)...)
}

// writeFile writes a file on the node, and the folders that it is in.
func (n node) writeFile(ctx context.Context, file, content string) error {
	if err := n.run(ctx, nil, nil, "mkdir", "-p", path.Dir(file)); err != nil {
		return err
	}
	return n.run(ctx, strings.NewReader(content), nil, "cp", "/dev/stdin", file)
}

// loadImages takes the images of an archive into the node's containerd, for pods.
func (n node) loadImages(ctx context.Context, archive io.Reader) error {
	var config bytes.Buffer
	if err := n.run(ctx, nil, &config, "containerd", "config", "dump"); err != nil {
		return err
	}
	command := []string{"ctr", "--namespace", "k8s.io", "images", "import", "--all-platforms", "--digests"}
	if s := snapshotter(config.String()); s != "" {
		command = append(command, "--snapshotter", s)
	}
	return n.run(ctx, archive, nil, append(command, "-")...)
}

// snapshotterOf finds what the part of containerd's configuration that is about pods' images says, in version 2 of its format, and since.
const snapshotterOf = `(?m)^\s*\[plugins\.['"]io\.containerd\.(?:cri\.v1\.images['"]|grpc\.v1\.cri['"]\.containerd)\]\n(?:[ \t]*(?:[^\[\s][^\n]*)?\n)*?\s*snapshotter = ['"]([^'"\n]+)['"]`

// snapshotter is where the images of pods are unpacked by containerd with this configuration; "" for ctr's own default.
func snapshotter(config string) string {
	if found := regexp.MustCompile(snapshotterOf).FindStringSubmatch(config); found != nil {
		return found[1]
	}
	return ""
}

// saidLimit bounds how much of what a program says is in an error, in bytes.
const saidLimit = 2000

// run runs a program. The error has what it said on stderr.
func run(ctx context.Context, in io.Reader, out io.Writer, program string, args ...string) error {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, &said
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	text := strings.TrimSpace(said.String())
	return fmt.Errorf("%s %s: %w: %s", program, args[0], err, text[max(0, len(text)-saidLimit):])
}
