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
	"strings"
	"syscall"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Names under which the program starts itself again.
const (
	argvInit      = "olmkit-init"
	argvContainer = "olmkit-container"
	argvExec      = "olmkit-exec"
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
	default:
		return
	}
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[0], err)
		os.Exit(128)
	}
	os.Exit(0)
}

// Mount makes a file or directory of the host appear in a container.
type Mount struct {
	Source   string // absolute path outside
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
	UID, GID     int
	Groups       []int
	ReadOnlyRoot bool
	Privileged   bool // keeps all capabilities of its user, within the cluster's namespaces
	Hostname     string
	Files        map[string]string // small files of the root: path to content
}

// Process is a running container.
type Process struct {
	cmd *exec.Cmd
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
	cmd := &exec.Cmd{
		Path:       "/proc/self/exe",
		Args:       []string{argvContainer},
		Env:        []string{},
		Stdout:     out,
		Stderr:     out,
		ExtraFiles: []*os.File{configReader, statusWriter},
		SysProcAttr: &syscall.SysProcAttr{
			Setsid:     true,
			Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
		},
	}
	err = inNetwork(network, cmd.Start)
	configReader.Close()
	statusWriter.Close()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Command[0], err)
	}
	_, writeErr := configWriter.Write(config)
	configWriter.Close()
	message, _ := io.ReadAll(statusReader) // ends when the program is executed, or with the reason why it can't be
	if len(message) > 0 || writeErr != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, errors.Join(errors.New(string(message)), writeErr)
	}
	return &Process{cmd: cmd}, nil
}

// inNetwork calls f on a thread that is in the network namespace network.
func inNetwork(network netns.NsHandle, f func() error) error {
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
	unix.CloseOnExec(4)
	err := func() error {
		var c Container
		if err := json.NewDecoder(os.NewFile(3, "config")).Decode(&c); err != nil {
			return fmt.Errorf("read the container's configuration: %w", err)
		}
		unix.CloseOnExec(3)
		if err := c.enter(); err != nil {
			return err
		}
		return c.exec()
	}()
	fmt.Fprint(status, err)
	return err
}

// enter puts the root together and makes it this process's root.
func (c *Container) enter() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if c.Hostname != "" {
		if err := unix.Sethostname([]byte(c.Hostname)); err != nil {
			return fmt.Errorf("set the host name: %w", err)
		}
	}
	if err := unix.Mount("tmpfs", c.Scratch, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
		return fmt.Errorf("mount the container's scratch space: %w", err)
	}
	root := filepath.Join(c.Scratch, "root")
	for _, dir := range []string{root, filepath.Join(c.Scratch, "upper"), filepath.Join(c.Scratch, "work")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	if c.Image != "" {
		options := fmt.Sprintf("lowerdir=%s,upperdir=%s/upper,workdir=%s/work,userxattr", c.Image, c.Scratch, c.Scratch)
		if err := unix.Mount("overlay", root, "overlay", 0, options); err != nil {
			return fmt.Errorf("mount the image %s: %w", c.Image, err)
		}
	} else if err := unix.Mount(root, root, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount the root: %w", err)
	}
	if err := c.furnish(root); err != nil {
		return err
	}
	for _, m := range c.Mounts {
		if err := bind(root, m); err != nil {
			return err
		}
	}
	if c.Dir != "" {
		if err := os.MkdirAll(filepath.Join(root, c.Dir), 0o755); err != nil {
			return err
		}
	}
	if c.ReadOnlyRoot {
		if err := readOnly(root); err != nil {
			return fmt.Errorf("make the root read-only: %w", err)
		}
	}
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the old root: %w", err)
	}
	return os.Chdir("/")
}

// furnish makes what every container finds in its root.
func (c *Container) furnish(root string) error {
	for dir, mode := range map[string]os.FileMode{"proc": 0o555, "dev": 0o755, "etc": 0o755, "tmp": 0o777 | os.ModeSticky, "var/run": 0o755} {
		path := filepath.Join(root, dir)
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
		if err := os.Chmod(path, mode); err != nil {
			return err
		}
	}
	if err := unix.Mount("proc", filepath.Join(root, "proc"), "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	dev := filepath.Join(root, "dev")
	if err := unix.Mount("tmpfs", dev, "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=0755"); err != nil {
		return fmt.Errorf("mount /dev: %w", err)
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		if err := bind(root, Mount{Source: "/dev/" + name, Target: "/dev/" + name}); err != nil {
			return err
		}
	}
	if err := os.Mkdir(filepath.Join(dev, "shm"), 0o777|os.ModeSticky); err != nil {
		return err
	}
	for name, target := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		if err := os.Symlink(target, filepath.Join(dev, name)); err != nil {
			return err
		}
	}
	for name, content := range c.Files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// bind mounts m.Source at m.Target below root, and makes the mount point if need be.
func bind(root string, m Mount) error {
	target, err := resolveBelow(root, m.Target)
	if err != nil {
		return fmt.Errorf("mount at %s: %w", m.Target, err)
	}
	info, err := os.Stat(m.Source)
	if err != nil {
		return fmt.Errorf("mount at %s: %w", m.Target, err)
	}
	if info.IsDir() {
		err = os.MkdirAll(target, 0o755)
	} else if err = os.MkdirAll(filepath.Dir(target), 0o755); err == nil {
		var f *os.File
		if f, err = os.OpenFile(target, os.O_CREATE|os.O_WRONLY, 0o644); err == nil {
			err = f.Close()
		}
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("mount at %s: %w", m.Target, err)
	}
	if err := unix.Mount(m.Source, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount %s at %s: %w", m.Source, m.Target, err)
	}
	if m.ReadOnly {
		if err := readOnly(target); err != nil {
			return fmt.Errorf("make %s read-only: %w", m.Target, err)
		}
	}
	return nil
}

// resolveBelow joins root and path, and refuses a path that a symbolic link of the image leads out of root.
func resolveBelow(root, path string) (string, error) {
	target := filepath.Join(root, filepath.Clean("/"+path))
	for dir := target; dir != root; dir = filepath.Dir(dir) {
		real, err := filepath.EvalSymlinks(dir)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		if real != root && !strings.HasPrefix(real, root+"/") {
			return "", fmt.Errorf("%s is a link that leads out of the image", path)
		}
		break
	}
	return target, nil
}

// readOnly makes the mount at path read-only. Flags that the mount already has are kept: a user namespace must not drop
// those it inherited.
func readOnly(path string) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return err
	}
	flags := uintptr(unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY)
	for have, want := range map[int64]uintptr{unix.ST_NOSUID: unix.MS_NOSUID, unix.ST_NODEV: unix.MS_NODEV, unix.ST_NOEXEC: unix.MS_NOEXEC, unix.ST_NOATIME: unix.MS_NOATIME, unix.ST_RELATIME: unix.MS_RELATIME} {
		if fs.Flags&have != 0 {
			flags |= want
		}
	}
	return unix.Mount("", path, "", flags, "")
}

// confine gives up what only a privileged container has.
func confine() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("forbid new privileges: %w", err)
	}
	for capability := uintptr(0); capability <= unix.CAP_LAST_CAP; capability++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("drop capability %d: %w", capability, err)
		}
	}
	return nil
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
	if !c.Privileged {
		if err := confine(); err != nil {
			return err
		}
	}
	if c.UID != 0 || c.GID != 0 || len(c.Groups) > 0 {
		if err := syscall.Setgroups(c.Groups); err != nil {
			return fmt.Errorf("set groups: %w", err)
		}
		if err := syscall.Setgid(c.GID); err != nil {
			return fmt.Errorf("set the group: %w", err)
		}
		if err := syscall.Setuid(c.UID); err != nil {
			return fmt.Errorf("set the user: %w", err)
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
