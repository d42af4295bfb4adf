package kind

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/olmkit/olmkit/internal/progress"
)

// creation is what kind makes a cluster from.
type creation struct {
	name       string
	image      string // "" for that of kind's release
	kubeconfig string // the file that it writes
	config     string
}

// readyLimit bounds how long nodes may take to be ready.
const readyLimit = 3 * time.Minute

// create has the program kind make the cluster, whose steps are told as notes. Where that fails, kind and all that it started are gone
// when create returns, but not what they made.
func (e *engine) create(ctx context.Context, program string, c creation, step *progress.Step) error {
	args := []string{"create", "cluster", "--name", c.name, "--config", "-", "--kubeconfig", c.kubeconfig, "--wait", readyLimit.String()}
	if c.image != "" {
		args = append(args, "--image", c.image)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin = strings.NewReader(c.config)
	cmd.Env = append(os.Environ(), "KIND_EXPERIMENTAL_PROVIDER="+e.program)
	// A group of its own gets no Ctrl-C from the terminal, and can be ended as a whole.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	reader, writer, err := os.Pipe()
	if err != nil {
		return err
	}
	defer reader.Close()
	cmd.Stderr = writer
	err = cmd.Start()
	writer.Close()
	if err != nil {
		return fmt.Errorf("run %s: %w", program, err)
	}
	said := make(chan string, 1)
	go func() { said <- follow(reader, step) }()
	err = cmd.Wait()
	if err == nil && ctx.Err() == nil {
		return nil
	}
	e.end(context.WithoutCancel(ctx), cmd.Process.Pid, c.name)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return explain(err, <-said)
}

// endLimit bounds how long the commands that kind was running may go on after it ended.
const endLimit = 15 * time.Second

// end waits until all has ended that kind, the ended leader of a process group, had started for the cluster called name. Commands on
// nodes end as these are deleted. One that makes a node is not killed at once: the container engine would go on making it, and it would
// be there after all were deleted.
func (e *engine) end(ctx context.Context, group int, name string) {
	for began := time.Now(); syscall.Kill(-group, 0) == nil; time.Sleep(100 * time.Millisecond) {
		_ = e.removeNodes(ctx, name) // what fails is tried again when all has ended
		if time.Since(began) > endLimit {
			_ = syscall.Kill(-group, syscall.SIGKILL)
			return
		}
	}
}

// follow tells kind's steps as notes, and returns all that it says.
func follow(r io.Reader, step *progress.Step) string {
	var said strings.Builder
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		said.WriteString(line)
		for _, mark := range []string{" • ", " ✓ ", " ✗ "} {
			if strings.HasPrefix(line, mark) {
				step.Note(strings.TrimSpace(line))
			}
		}
		if err != nil {
			return said.String()
		}
	}
}

// explain is the error of kind, which said this on stderr: its own, and kubeadm's, among much that it logs.
func explain(err error, said string) error {
	if _, own, ok := strings.Cut("\n"+said, "\nERROR: "); ok {
		text, output, _ := strings.Cut(own, "\nCommand Output: ")
		err, said = errors.New(strings.TrimPrefix(strings.TrimSpace(text), "failed to create cluster: ")), output
	}
	said = strings.TrimSpace(said)
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, "error") {
			said = strings.TrimSpace(line)
		}
	}
	if said == "" {
		return fmt.Errorf("kind: %w", err)
	}
	return fmt.Errorf("kind: %w: %s", err, said[max(0, len(said)-saidLimit):])
}
