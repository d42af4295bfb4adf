package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/olmkit/olmkit/internal/hint"
)

// Options of Command.
type Options struct {
	Network bool // a network namespace of its own, empty but for a loopback interface that is down
	Detach  bool // the program outlives this process
}

// Command returns a command that runs name with args as the child of the first process of a process id namespace of its
// own (and a mount namespace, and a user namespace in which it is root). When the program ends, or
// this process does, however it ends, the kernel ends everything that was started below it. With Detach set the program
// and what it started outlive this process.
//
// The caller may set the command's streams, Env, Dir and ExtraFiles; the files arrive in the program from descriptor 3 on.
func Command(ctx context.Context, options Options, name string, args ...string) *Cmd {
	c := exec.CommandContext(ctx, "/proc/self/exe")
	c.Args = append([]string{argvInit, "", "", name}, args...)
	c.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true, // an interrupt typed at the terminal is for this process, not for those below it
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS,
	}
	if options.Network {
		c.SysProcAttr.Cloneflags |= unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	}
	if os.Geteuid() != 0 {
		mapUser(c.SysProcAttr)
	} else if mayNest() {
		mapAll(c.SysProcAttr)
	}
	return &Cmd{Cmd: c, detach: options.Detach}
}

// mapUser makes this process's user root in a user namespace of its own, where no other user is.
func mapUser(a *syscall.SysProcAttr) {
	a.Cloneflags |= unix.CLONE_NEWUSER
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
}

// mapAll keeps all users and groups what they are, in a user namespace: its root has no power over what is not made in it.
// Volumes and images stay whose they are, on any kernel and file system.
func mapAll(a *syscall.SysProcAttr) {
	a.Cloneflags |= unix.CLONE_NEWUSER
	a.UidMappings, a.GidMappings = identity("uid_map"), identity("gid_map")
	groups, err := os.ReadFile("/proc/self/setgroups")
	a.GidMappingsEnableSetgroups = err == nil && string(groups) == "allow\n"
}

// identity maps the IDs that this process's user namespace has to themselves.
func identity(file string) []syscall.SysProcIDMap {
	data, err := os.ReadFile("/proc/self/" + file)
	if err != nil {
		return nil
	}
	var same []syscall.SysProcIDMap
	for line := range strings.Lines(string(data)) {
		var inside, outside, size int
		if _, err := fmt.Sscan(line, &inside, &outside, &size); err == nil {
			same = append(same, syscall.SysProcIDMap{ContainerID: inside, HostID: inside, Size: size})
		}
	}
	return same
}

// mayNest tells whether root may have a user namespace with a /proc of its own. Some machines allow none, and in some
// containers /proc is masked, so that none may be mounted there.
var mayNest = sync.OnceValue(func() bool {
	c := exec.Command("/proc/self/exe")
	c.Args = []string{argvProbe}
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
	mapAll(c.SysProcAttr)
	return c.Run() == nil
})

// Cmd is a command in namespaces of its own.
type Cmd struct {
	*exec.Cmd
	detach   bool
	lifeline *os.File
}

// Start starts the command.
func (c *Cmd) Start() error {
	c.Args[1], c.Args[2] = strconv.Itoa(len(c.ExtraFiles)), "detached"
	if !c.detach {
		reader, writer, err := os.Pipe()
		if err != nil {
			return err
		}
		defer reader.Close()
		c.Args[2] = "attached"
		c.ExtraFiles = append(c.ExtraFiles, reader)
		c.lifeline = writer
	}
	if err := c.Cmd.Start(); err != nil {
		if c.lifeline != nil {
			c.lifeline.Close()
		}
		return namespaceError(err)
	}
	return nil
}

// Wait waits for the command's end.
func (c *Cmd) Wait() error {
	err := c.Cmd.Wait()
	if c.lifeline != nil {
		c.lifeline.Close()
	}
	return err
}

// Run starts the command and waits for its end.
func (c *Cmd) Run() error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Wait()
}

// namespaceError explains why namespaces can't be had.
func namespaceError(err error) error {
	if !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EINVAL) {
		return err
	}
	reason := err
	if errors.Is(err, unix.ENOSPC) {
		reason = errors.New("a limit below /proc/sys/user is reached")
	}
	err = fmt.Errorf("this machine refuses to create namespaces for user %d: %w", os.Getuid(), reason)
	for file, fix := range map[string]struct{ value, advice string }{
		"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": {"1", "run 'sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0' (Ubuntu 24.04 and later forbid them by AppArmor), or run olmkit as root, or use --cluster kind"},
		"/proc/sys/kernel/unprivileged_userns_clone":             {"0", "run 'sudo sysctl kernel.unprivileged_userns_clone=1', or run olmkit as root, or use --cluster kind"},
		"/proc/sys/user/max_user_namespaces":                     {"0", "run 'sudo sysctl user.max_user_namespaces=15000', or run olmkit as root, or use --cluster kind"},
	} {
		if data, readErr := os.ReadFile(file); readErr == nil && string(data) == fix.value+"\n" {
			return hint.With(err, "%s", fix.advice)
		}
	}
	return hint.With(err, "allow user namespaces (a container needs seccomp and AppArmor profiles that do), run olmkit as root, or use --cluster kind")
}

// initMain is the first process of a process id namespace. It does little, so that little can go wrong: when it ends the
// kernel ends all others.
func initMain() error {
	count, err := strconv.Atoi(os.Args[1])
	if err != nil {
		return err
	}
	if err := keepOpen(3 + count); err != nil {
		return err
	}
	if err := mountOwnProc(); err != nil {
		return err
	}
	files := []*os.File{os.Stdin, os.Stdout, os.Stderr}
	for fd := 3; fd < 3+count; fd++ {
		files = append(files, os.NewFile(uintptr(fd), "passed on"))
	}
	if os.Args[2] == "attached" {
		go func() {
			_, _ = io.Copy(io.Discard, os.NewFile(uintptr(3+count), "lifeline"))
			os.Exit(137)
		}()
	}
	program, err := exec.LookPath(os.Args[3])
	if err != nil {
		return err
	}
	child, err := os.StartProcess(program, os.Args[3:], &os.ProcAttr{Env: os.Environ(), Files: files})
	if err != nil {
		return err
	}
	for _, f := range files[3:] {
		f.Close()
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	go func() {
		for s := range signals {
			_ = child.Signal(s)
		}
	}()
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("wait for processes: %w", err)
		}
		if pid == child.Pid && status.Exited() {
			os.Exit(status.ExitStatus())
		}
		if pid == child.Pid && status.Signaled() {
			os.Exit(128 + int(status.Signal()))
		}
	}
}

// keepOpen leaves a program that this process starts the files below the descriptor next, and none that whoever started olmkit
// left open, as a shell does with a lock: a directory of the machine among them would be a way out of a container's root.
func keepOpen(next int) error {
	err := unix.CloseRange(uint(next), math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	entries, err := os.ReadDir("/proc/self/fd") // before Linux 5.11
	if err != nil {
		return fmt.Errorf("list open files: %w", err)
	}
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd >= next {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// mountOwnProc mounts /proc for the namespaces that this process is in.
func mountOwnProc() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return nil
}
