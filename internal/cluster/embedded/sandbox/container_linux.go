package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Names under which the program starts itself again.
const (
	argvInit      = "olmkit-init"
	argvContainer = "olmkit-container"
	argvExec      = "olmkit-exec"
	argvProbe     = "olmkit-probe"
)

// Main does the work inside of a namespace and ends the process, if that is what this process was started for; else it
// returns at once.
func Main() {
	var run func() error
	switch os.Args[0] {
	case argvInit:
		run = initMain
	case argvContainer:
		run = containerMain
	case argvExec:
		run = execMain
	case argvProbe:
		run = mountOwnProc
	default:
		return
	}
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[0], err)
		os.Exit(128)
	}
	os.Exit(0)
}

// program is where this program is started from again, and null what commands read that get no input.
var (
	program = "/proc/self/exe"
	null    = os.DevNull
)

// Seal mounts this program and /dev/null read-only below dir, from where containers and commands in them are started, and have that, from then on. An image
// may name /proc/self/exe as its program, which is this one, and who runs it may be its owner.
func Seal(dir string) error {
	if err := sealProgram(dir); err != nil {
		return err
	}
	path := filepath.Join(dir, "null")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	if err := unix.Mount(os.DevNull, path, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s: %w", os.DevNull, err)
	}
	if err := readOnly(path, 0); err != nil {
		return fmt.Errorf("make %s read-only: %w", os.DevNull, err)
	}
	null = path
	return nil
}

func sealProgram(dir string) error {
	running, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer running.Close()
	path := filepath.Join(dir, "olmkit")
	sealed, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o700)
	if err != nil {
		return err
	}
	defer sealed.Close()
	source := path
	if file := executable(running); file != "" {
		source = file
	} else if _, err := io.Copy(sealed, running); err != nil { // its file was replaced since it was started
		return err
	}
	if err := sealed.Close(); err != nil {
		return err
	}
	if err := unix.Mount(source, path, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount olmkit itself: %w", err)
	}
	if err := readOnly(path, unix.AT_RECURSIVE); err != nil {
		return fmt.Errorf("make olmkit itself read-only: %w", err)
	}
	program = path
	return nil
}

// executable returns where the running program is, "" if its file is not there any more. Through /proc/self/exe it can't be
// mounted: it was started from outside of this mount namespace.
func executable(running *os.File) string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	at, err := os.Stat(path)
	if err != nil {
		return ""
	}
	if info, err := running.Stat(); err != nil || !os.SameFile(at, info) {
		return ""
	}
	return path
}

// Mount makes a file or directory of the host appear in a container.
type Mount struct {
	Source   string // absolute path outside
	SubPath  string // relative path below Source of what to mount; a directory is made where nothing is
	Target   string // absolute path inside
	ReadOnly bool
}

// Container is a process to run with a file system of its own.
type Container struct {
	Scratch      string // an existing empty directory on tmpfs; the container's root is put together below it
	Image        string // directory that is the image's root; "" for a minimal root
	Mounts       []Mount
	Command      []string // never empty
	Env          []string
	Dir          string // working directory, / when empty
	User         User
	ReadOnlyRoot bool
	Hostname     string
	Files        map[string]string // small files of the root: path to content
	MissingFiles map[string]string // those that only a root without them gets
}

// withoutLimits is the environment in which this program starts again: Go's runtime does not open the files of the machine's cgroup, which a container might find then.
var withoutLimits = []string{"GODEBUG=containermaxprocs=0,updatemaxprocs=0"}

// maxStatus is how many bytes are read at most of the reason why a program cannot be executed.
const maxStatus = 64 << 10

// Process is a running container.
type Process struct {
	cmd       *exec.Cmd
	container Container
	handle    *os.File // of the container's first process, which nobody else gets when its process id is used again; closed with the last reference
}

// Start runs c in the network namespace network, with its output to out. It returns once the program has been started
// or could not be.
func Start(c Container, network netns.NsHandle, out io.Writer) (*Process, error) {
	config, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	configReader, configWriter, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer configWriter.Close()
	statusReader, statusWriter, err := os.Pipe()
	if err != nil {
		configReader.Close()
		return nil, err
	}
	defer statusReader.Close()
	handle := -1
	cmd := &exec.Cmd{
		Path:       program,
		Args:       []string{argvContainer},
		Env:        withoutLimits,
		Stdout:     out,
		Stderr:     out,
		ExtraFiles: []*os.File{configReader, statusWriter},
		WaitDelay:  time.Second, // what it wrote to may have been passed on to another container
		SysProcAttr: &syscall.SysProcAttr{
			Setsid:     true,
			PidFD:      &handle,
			Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWCGROUP,
		},
	}
	err = InNetwork(network, cmd.Start)
	configReader.Close()
	statusWriter.Close()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Command[0], err)
	}
	process := &Process{cmd: cmd, container: c, handle: os.NewFile(uintptr(handle), "pidfd")}
	_, writeErr := configWriter.Write(config)
	configWriter.Close()
	message, _ := io.ReadAll(io.LimitReader(statusReader, maxStatus)) // ends when the program is executed, or with the reason why it can't be
	if len(message) > 0 || writeErr != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = process.handle.Close()
		return nil, errors.Join(errors.New(string(message)), writeErr)
	}
	return process, nil
}

// InNetwork calls f on a thread that is in the network namespace network.
func InNetwork(network netns.NsHandle, f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := netns.Set(network); err != nil {
			result <- fmt.Errorf("enter the network namespace: %w", err)
			return
		}
		result <- f()
	}()
	return <-result
}

// Pid returns the process id of the container's first process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Signal sends a signal to the container's first process.
func (p *Process) Signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// catchLimit is how long a program has from its start until it catches signals.
const catchLimit = time.Second

// Terminate sends SIGTERM once the program can have noticed it. The kernel drops what the first process of a process id namespace does not catch
// (pid_namespaces(7)), and a program needs a moment until it does: one that is to end as soon as it has started would stay until it is killed.
func (p *Process) Terminate() error {
	for began := time.Now(); time.Since(began) < catchLimit && !catchesTerm(p.cmd.Process.Pid); {
		time.Sleep(5 * time.Millisecond)
	}
	return p.Signal(syscall.SIGTERM)
}

// catchesTerm reports whether a process catches SIGTERM (SigCgt in proc_pid_status(5)), or is gone.
func catchesTerm(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(status), "\nSigCgt:")
	mask, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
	caught, err := strconv.ParseUint(mask, 16, 64)
	return err != nil || caught>>(syscall.SIGTERM-1)&1 == 1
}

// Wait waits for the container's end and returns its exit code, 128 + n when signal n ended it.
func (p *Process) Wait() int {
	_ = p.cmd.Wait()
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return p.cmd.ProcessState.ExitCode()
}

func containerMain() error {
	status := os.NewFile(4, "status")
	err := func() error {
		if err := keepOpen(3); err != nil {
			return err
		}
		if err := yield(); err != nil {
			return err
		}
		if err := hide(); err != nil {
			return err
		}
		var c Container
		if err := json.NewDecoder(os.NewFile(3, "config")).Decode(&c); err != nil {
			return fmt.Errorf("read the container's configuration: %w", err)
		}
		if err := c.enter(); err != nil {
			return err
		}
		return c.exec()
	}()
	fmt.Fprint(status, err)
	return err
}

// exec gives up privileges and becomes the container's program.
func (c *Container) exec() error {
	if c.Dir != "" {
		if err := os.Chdir(c.Dir); err != nil {
			return err
		}
	}
	program, err := lookPath(c.Command[0], c.Env)
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	for _, step := range []func() error{dropPrivileges, c.User.become, stayBelowRoot, limitCalls} {
		if err := step(); err != nil {
			return err
		}
	}
	if err := syscall.Exec(program, c.Command, c.Env); err != nil {
		return fmt.Errorf("execute %s: %w", program, err)
	}
	return nil
}

// lookPath finds the program as a shell in the container would.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		if _, err := os.Stat(name); err != nil {
			return "", fmt.Errorf("the image has no %s: %w", name, err)
		}
		return name, nil
	}
	path := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	if i := slices.IndexFunc(env, func(e string) bool { return strings.HasPrefix(e, "PATH=") }); i >= 0 {
		path = strings.TrimPrefix(env[i], "PATH=")
	}
	for _, dir := range filepath.SplitList(path) {
		candidate := filepath.Join(dir, name)
		if info, err := os.Stat(candidate); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return candidate, nil
		}
	}
	return "", fmt.Errorf("the image has no program %s on its PATH", name)
}
