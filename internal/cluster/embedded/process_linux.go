package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

// component is a program of the control plane that is kept running.
type component struct {
	name string
	args []string

	log *ring

	mu      sync.Mutex
	process *os.Process   // nil while there is none
	ended   chan struct{} // closed when process is gone
	ends    int           // how often the program ended
}

// restartPause keeps a component that ends at once from keeping the machine busy.
const restartPause = 300 * time.Millisecond

// environment is the components'. Twice the heap of Go's default is less than half of its work: the API server takes a sixth
// less processor time in a walk. They work at the same time, so half of the processors are enough for each, whose threads wake
// each other less: a walk takes a tenth less on two.
var environment = []string{"PATH=/usr/bin:/bin", "GOGC=200", fmt.Sprintf("GOMAXPROCS=%d", max(1, runtime.GOMAXPROCS(0)/2))}

// start runs program as the component for as long as this process lives, starting it again whenever it ends.
func start(name, program string, args ...string) *component {
	c := &component{name: name, args: append([]string{name}, args...), log: &ring{}}
	go c.supervise(program)
	return c
}

func (c *component) supervise(program string) {
	for {
		cmd := &exec.Cmd{Path: program, Args: c.args, Env: environment, Stdout: c.log, Stderr: c.log}
		err := cmd.Start()
		if err == nil {
			ended := make(chan struct{})
			c.mu.Lock()
			c.process, c.ended = cmd.Process, ended
			c.mu.Unlock()
			err = cmd.Wait()
			close(ended)
		}
		fmt.Fprintf(c.log, "olmkit: %s ended: %v\n", c.name, err)
		c.mu.Lock()
		c.process = nil
		c.ends++
		c.mu.Unlock()
		time.Sleep(restartPause)
	}
}

// crashes returns how often the program ended.
func (c *component) crashes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ends
}

// kill ends the running program and returns when it is gone.
func (c *component) kill(ctx context.Context) error {
	c.mu.Lock()
	process, ended := c.process, c.ended
	c.mu.Unlock()
	if process == nil {
		return fmt.Errorf("%s is not running", c.name)
	}
	if err := process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", c.name, err)
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ringSize bounds what is kept of a component's output.
const ringSize = 4 << 20

// ring keeps the newest output of a component. It is safe for concurrent use.
type ring struct {
	mu   sync.Mutex
	data []byte
}

func (r *ring) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.data = append(r.data, p...)
	if len(r.data) > ringSize {
		cut := len(r.data) - ringSize/2
		if end := bytes.IndexByte(r.data[cut:], '\n'); end >= 0 {
			cut += end + 1
		}
		r.data = bytes.Clone(r.data[cut:])
	}
	return len(p), nil
}

// writeTo copies what is kept to w, each line after the component's name.
func (r *ring) writeTo(w io.Writer, name string) error {
	r.mu.Lock()
	data := bytes.Clone(r.data)
	r.mu.Unlock()
	for line := range bytes.Lines(data) {
		if _, err := fmt.Fprintf(w, "%s| %s", name, line); err != nil {
			return err
		}
	}
	return nil
}

// tail returns the last lines that are kept.
func (r *ring) tail(lines int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := strings.Split(strings.TrimRight(string(r.data), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
