package kind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/olmkit/olmkit/internal/hint"
)

// engine runs the nodes' containers.
type engine struct {
	program  string // docker or podman, as kind calls them, too
	cgroupV1 bool
}

// Check returns why there can be no kind cluster on this machine, if none can: a container engine is missing.
func Check(ctx context.Context) error {
	_, err := findEngine(ctx)
	return err
}

// findEngine returns Docker, or else Podman.
func findEngine(ctx context.Context) (*engine, error) {
	var missing error
	for _, e := range []struct {
		engine *engine
		info   string
	}{
		{&engine{program: "docker"}, "{{.CgroupVersion}}"},
		{&engine{program: "podman"}, "{{.Host.CgroupsVersion}}"},
	} {
		out, err := exec.CommandContext(ctx, e.engine.program, "info", "--format", e.info).CombinedOutput()
		switch said := strings.TrimSpace(string(out)); {
		case err == nil:
			e.engine.cgroupV1 = strings.TrimPrefix(said, "v") == "1"
			return e.engine, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, exec.ErrNotFound):
		case missing == nil:
			missing = hint.With(fmt.Errorf("ask %s for its state: %s", e.engine.program, lastLine(said)),
				"start its daemon ('sudo systemctl start %s'), and see that 'docker info' works for you; or use --cluster embedded, which needs none", e.engine.program)
		}
	}
	if missing == nil {
		missing = hint.With(errors.New("kind runs its nodes in containers, and there is neither docker nor podman on the PATH"),
			"install Docker (on Debian 'apt-get install docker.io'), or use --cluster embedded, which needs none")
	}
	return nil, missing
}

// ensureImage pulls the node image unless it is there.
func (e *engine) ensureImage(ctx context.Context, image string) error {
	if exec.CommandContext(ctx, e.program, "image", "inspect", image).Run() == nil {
		return nil
	}
	if out, err := exec.CommandContext(ctx, e.program, "pull", "--quiet", image).CombinedOutput(); err != nil {
		return advise(fmt.Errorf("pull the node image %s: %s", image, lastLine(string(out))), image)
	}
	return nil
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// clusterLabel is on the containers that kind makes, with the name of their cluster.
const clusterLabel = "io.x-k8s.kind.cluster"

// list returns the words that the container engine answers with.
func (e *engine) list(ctx context.Context, args ...string) ([]string, error) {
	var listed bytes.Buffer
	err := run(ctx, nil, &listed, e.program, args...)
	return strings.Fields(listed.String()), err
}

// containers returns the nodes of the cluster called name, in whatever state they are, as a format of the container engine has them. It
// knows them, so that who lists or deletes clusters need not have kind.
func (e *engine) containers(ctx context.Context, name, format string) ([]string, error) {
	found, err := e.list(ctx, "ps", "--all", "--no-trunc", "--filter", "label="+clusterLabel+"="+name, "--format", format)
	if err != nil {
		return nil, fmt.Errorf("list the nodes of kind cluster %s: %w", name, err)
	}
	return found, nil
}

// nodes returns the names of the nodes of the cluster called name.
func (e *engine) nodes(ctx context.Context, name string) ([]string, error) {
	return e.containers(ctx, name, "{{.Names}}")
}

// removeNodes deletes what kind made of the cluster called name: containers with their volumes, and on Podman the volume that it makes
// beforehand, which has the node's name as a label.
func (e *engine) removeNodes(ctx context.Context, name string) error {
	nodes, err := e.nodes(ctx, name)
	if err != nil {
		return err
	}
	if len(nodes) > 0 {
		if err := run(ctx, nil, nil, e.program, append([]string{"rm", "--force", "--volumes"}, nodes...)...); err != nil {
			return err
		}
	}
	if e.program != "podman" {
		return nil
	}
	volumes, err := e.list(ctx, "volume", "ls", "--quiet", "--filter", "label="+name+"-control-plane")
	if err != nil || len(volumes) == 0 {
		return err
	}
	return run(ctx, nil, nil, e.program, append([]string{"volume", "rm", "--force"}, volumes...)...)
}

// remove deletes the cluster called name and its kubeconfig. A container engine on a busy machine gives up to end a container
// while that ends, so that it is asked several times.
func (e *engine) remove(ctx context.Context, name, kubeconfig string) error {
	const tries, pause = 10, 3 * time.Second
	err := e.removeNodes(ctx, name)
	for i := 1; err != nil && ctx.Err() == nil && i < tries; i++ {
		e.thaw(ctx, name)
		time.Sleep(pause)
		err = e.removeNodes(ctx, name)
	}
	if err != nil {
		return hint.With(fmt.Errorf("delete kind cluster %s: %w", name, err), "try again with 'olmkit cluster down --kind kind --name %s'", name)
	}
	for _, file := range []string{kubeconfig, kubeconfig + ".lock", policyOf(kubeconfig)} { // the lock is of a kind that was ended
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// thaw lets go on what runc froze in the nodes' containers of the cluster called name. With cgroup v1 runc freezes a container
// while it changes its limits; killed in that moment, it leaves processes that no signal ends, and the node with them.
func (e *engine) thaw(ctx context.Context, name string) {
	if !e.cgroupV1 {
		return
	}
	ids, err := e.containers(ctx, name, "{{.ID}}")
	if err != nil {
		return
	}
	for _, id := range ids {
		_ = filepath.WalkDir(filepath.Join("/sys/fs/cgroup/freezer/docker", id), func(file string, _ fs.DirEntry, err error) error {
			if err == nil && filepath.Base(file) == "freezer.state" {
				if state, _ := os.ReadFile(file); strings.TrimSpace(string(state)) != "THAWED" {
					_ = os.WriteFile(file, []byte("THAWED"), 0)
				}
			}
			return nil
		})
	}
}
