package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

type execConfig struct {
	Pid     int // first process of the container
	Command []string
	Env     []string
	Dir     string // working directory, / when empty
	User    User
}

// Exec runs command inside of the running container p with the environment env, and returns its exit code. It may do what
// the container's own program may. Landlock alone does not hold it, by whose rules it could not reach that program's output
// at /proc/1/fd, as commands of probes do.
func (p *Process) Exec(ctx context.Context, command, env []string, in io.Reader, out, errOut io.Writer) (int, error) {
	config, err := json.Marshal(execConfig{Pid: p.Pid(), Command: command, Env: env, Dir: p.container.Dir, User: p.container.User})
	if err != nil {
		return 0, err
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer reader.Close()
	cmd := exec.CommandContext(ctx, program)
	cmd.Args = []string{argvExec}
	cmd.Env = withoutLimits
	cmd.Stdout, cmd.Stderr = out, errOut
	nothing, err := os.OpenFile(null, os.O_RDWR, 0)
	if err == nil {
		defer nothing.Close()
		if cmd.Stdout == nil {
			cmd.Stdout = nothing
		}
		if cmd.Stderr == nil {
			cmd.Stderr = nothing
		}
		err = feed(cmd, in, nothing)
	}
	if err != nil {
		writer.Close()
		return 0, err
	}
	cmd.ExtraFiles = []*os.File{reader, p.handle}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it passes the end on to the command
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		writer.Close()
		return 0, err
	}
	_, err = writer.Write(config)
	writer.Close()
	waitErr := cmd.Wait()
	var exit *exec.ExitError
	if waitErr != nil && !errors.As(waitErr, &exit) {
		err = errors.Join(err, waitErr)
	}
	return cmd.ProcessState.ExitCode(), err
}

// feed has cmd read in, or nothing for nil. A client may keep in open after the command has ended: that is not waited for.
func feed(cmd *exec.Cmd, in io.Reader, nothing *os.File) error {
	if in == nil {
		cmd.Stdin = nothing
		return nil
	}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(pipe, in)
		_ = pipe.Close()
	}()
	return nil
}

// execMain joins the container's namespaces. A thread may only change its mount namespace after it has stopped sharing
// its file system attributes with the others; the process id namespace takes effect for children alone, hence the fork.
func execMain() error {
	if err := keepOpen(3); err != nil {
		return err
	}
	var c execConfig
	if err := json.NewDecoder(os.NewFile(3, "config")).Decode(&c); err != nil {
		return err
	}
	if err := yield(); err != nil {
		return err
	}
	if err := hide(); err != nil {
		return err
	}
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return err
	}
	if err := join(c.Pid); err != nil {
		return err
	}
	if err := os.Chdir(cmp.Or(c.Dir, "/")); err != nil {
		return err
	}
	program, err := lookPath(c.Command[0], c.Env)
	if err != nil {
		return err
	}
	for _, step := range []func() error{dropPrivileges, c.User.setGroups, limitCalls} { // the child is forked from this thread
		if err := step(); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	child := exec.CommandContext(ctx, program)
	child.Args, child.Env = c.Command, c.Env
	child.SysProcAttr = &syscall.SysProcAttr{Credential: c.User.credential()}
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = child.Run()
	stop()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		os.Exit(exit.ExitCode())
	}
	return err
}

// join enters the namespaces of the container whose first process has the id pid, and is the one of the descriptor that was passed on.
func join(pid int) error {
	var handles []int
	names := []string{"cgroup", "ipc", "uts", "net", "pid", "mnt"}
	for _, name := range names {
		fd, err := unix.Open(filepath.Join("/proc", strconv.Itoa(pid), "ns", name), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("the container is gone: %w", err)
		}
		handles = append(handles, fd)
	}
	// What has its process id now need not be the container. Before Linux 5.3, and under some filters of calls, nothing tells.
	if err := unix.PidfdSendSignal(4, 0, nil, 0); errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("the container is gone: %w", err)
	}
	for i, fd := range handles {
		if err := unix.Setns(fd, 0); err != nil {
			return fmt.Errorf("enter the container's %s namespace: %w", names[i], err)
		}
	}
	return nil
}

// libraryMounts are the places where a dynamic program of this machine finds its libraries.
func libraryMounts() []Mount {
	var mounts []Mount
	for _, dir := range []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache"} {
		if _, err := os.Stat(dir); err == nil {
			mounts = append(mounts, Mount{Source: dir, Target: dir, ReadOnly: true})
		}
	}
	return mounts
}

// ProgramMounts returns the mounts under which the program source runs at target: itself, and this machine's libraries
// if it is linked dynamically.
func ProgramMounts(source, target string) ([]Mount, error) {
	interpreter, err := elfInterpreter(source)
	if err != nil {
		return nil, fmt.Errorf("%s is not a program for this machine: %w", source, err)
	}
	mounts := []Mount{{Source: source, Target: target, ReadOnly: true}}
	if interpreter != "" {
		mounts = append(mounts, libraryMounts()...)
	}
	return mounts, nil
}
