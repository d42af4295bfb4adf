package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	securejoin "github.com/cyphar/filepath-securejoin"
	pathrs "github.com/cyphar/filepath-securejoin/pathrs-lite"
	"golang.org/x/sys/unix"
)

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
	root, err := c.mountImage()
	if err != nil {
		return err
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
		dir, err := mountPoint(root, c.Dir, true)
		if err != nil {
			return fmt.Errorf("make the working directory: %w", err)
		}
		dir.Close()
	}
	if c.ReadOnlyRoot {
		if err := readOnly(root, 0); err != nil { // volumes in it stay as they are
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

// mountImage mounts the container's root, that of the image with a layer of its own to write to, and returns where.
func (c *Container) mountImage() (string, error) {
	if err := os.Chdir(c.Scratch); err != nil { // so that no path needs to be quoted in mount options
		return "", err
	}
	for _, dir := range []string{"root", "image", "upper", "work"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return "", err
		}
	}
	root := filepath.Join(c.Scratch, "root")
	if c.Image == "" {
		if err := unix.Mount(root, root, "", unix.MS_BIND, ""); err != nil {
			return "", fmt.Errorf("mount the root: %w", err)
		}
		return root, nil
	}
	if err := unix.Mount(c.Image, "image", "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return "", fmt.Errorf("mount the image %s: %w", c.Image, err)
	}
	if err := unix.Mount("overlay", "root", "overlay", unix.MS_NOSUID|unix.MS_NODEV, "lowerdir=image,upperdir=upper,workdir=work,userxattr"); err != nil {
		return "", fmt.Errorf("mount the image %s: %w", c.Image, err)
	}
	return root, nil
}

// furnish makes what every container finds in its root. The image may have links at any place: they lead to where they lead
// a process whose root this is. Nothing writes to the root meanwhile.
func (c *Container) furnish(root string) error {
	for name, content := range c.Files {
		if err := writeFile(root, name, content); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	for name, content := range c.MissingFiles {
		if _, err := inRoot(root, name, os.Stat); errors.Is(err, fs.ErrNotExist) {
			err = writeFile(root, name, content)
			if err != nil {
				return fmt.Errorf("write %s: %w", name, err)
			}
		}
	}
	if _, err := makeDir(root, "var/run"); err != nil {
		return err
	}
	tmp, err := makeDir(root, "tmp")
	if err != nil {
		return err
	}
	if err := os.Chmod(tmp, 0o777|os.ModeSticky); err != nil {
		return err
	}
	if err := mountDev(root); err != nil {
		return err
	}
	return mountProc(root)
}

// inRoot calls f with the path that name is of for a process whose root is root. What is at the path is no link.
func inRoot[T any](root, name string, f func(string) (T, error)) (T, error) {
	path, err := securejoin.SecureJoin(root, name)
	if err != nil {
		var none T
		return none, err
	}
	return f(path)
}

// makeDir makes a directory unless there is one, and returns its path.
func makeDir(root, name string) (string, error) {
	return inRoot(root, name, func(path string) (string, error) { return path, os.MkdirAll(path, 0o755) })
}

// writeFile writes a file, in the place of what may be there instead: opening a device or a FIFO has effects elsewhere.
func writeFile(root, name, content string) error {
	path, err := securejoin.SecureJoin(root, name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	return errors.Join(err, f.Close())
}

// mountDev mounts /dev with the devices that every container has, of which this process has null from then on. They are the machine's: a container that has its IDs may write to them,
// and not change their mode or owner, which the read-only mounts prevent.
func mountDev(root string) error {
	dev, err := makeDir(root, "dev")
	if err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", dev, "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=0755"); err != nil {
		return fmt.Errorf("mount /dev: %w", err)
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		if err := bind(root, Mount{Source: "/dev/" + name, Target: "/dev/" + name, ReadOnly: true}); err != nil {
			return err
		}
	}
	if err := ownNull(filepath.Join(dev, "null")); err != nil { // while it is there: a volume may take its place
		return err
	}
	if err := os.Mkdir(filepath.Join(dev, "shm"), 0o777); err != nil {
		return err
	}
	if err := os.Chmod(filepath.Join(dev, "shm"), 0o777|os.ModeSticky); err != nil {
		return err
	}
	for name, target := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		if err := os.Symlink(target, filepath.Join(dev, name)); err != nil {
			return err
		}
	}
	return nil
}

// What of /proc is of the whole machine: containers don't see the ones, and can't write to the others. The lists are those
// of containerd v1.7.34, oci/mounts.go and oci/spec.go, and moby v28, oci/defaults.go, and what of the machine's memory its root alone may read without a capability.
var (
	maskedPaths = []string{
		"acpi", "asound", "interrupts", "kcore", "keys", "latency_stats", "sched_debug", "scsi", "timer_list", "timer_stats",
		"kpagecgroup", "kpagecount", "kpageflags", "pagetypeinfo", "slabinfo", "vmallocinfo",
	}
	readOnlyPaths = []string{"bus", "fs", "irq", "pressure", "sys", "sysrq-trigger"}
)

// mountProc mounts /proc as container runtimes do.
func mountProc(root string) error {
	proc, err := makeDir(root, "proc")
	if err != nil {
		return err
	}
	if err := unix.Mount("proc", proc, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	for _, name := range maskedPaths {
		if err := mask(filepath.Join(proc, name)); err != nil {
			return fmt.Errorf("mask /proc/%s: %w", name, err)
		}
	}
	for _, name := range readOnlyPaths {
		path := filepath.Join(proc, name)
		err := unix.Mount(path, path, "", unix.MS_BIND|unix.MS_REC, "")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = readOnly(path, unix.AT_RECURSIVE)
		}
		if err != nil {
			return fmt.Errorf("make /proc/%s read-only: %w", name, err)
		}
	}
	return nil
}

// mask mounts something empty over a file or directory, if it exists.
func mask(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.IsDir() {
		return unix.Mount("tmpfs", path, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=0k")
	}
	if err := unix.Mount("/dev/null", path, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	return readOnly(path, 0)
}

// ownNull replaces the machine's /dev/null among the standard streams, which a container could change as the owner that it is, by that of
// the container, at path.
func ownNull(path string) error {
	null, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("open the container's /dev/null: %w", err)
	}
	defer null.Close()
	for stream := range 3 {
		if !isNull(stream) {
			continue
		}
		if err := unix.Dup3(int(null.Fd()), stream, 0); err != nil {
			return fmt.Errorf("open the container's /dev/null: %w", err)
		}
	}
	return nil
}

// isNull reports whether a descriptor is of the device that /dev/null is.
func isNull(fd int) bool {
	var info unix.Stat_t
	return unix.Fstat(fd, &info) == nil && info.Mode&unix.S_IFMT == unix.S_IFCHR && info.Rdev == unix.Mkdev(1, 3)
}

// bind mounts m at m.Target below root, and makes the mount point if need be. What programs write in volumes may change
// meanwhile, so both ends are descriptors.
func bind(root string, m Mount) error {
	source, err := m.open()
	if err != nil {
		return fmt.Errorf("mount at %s: %w", m.Target, err)
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return fmt.Errorf("mount at %s: %w", m.Target, err)
	}
	target, err := mountPoint(root, m.Target, info.IsDir())
	if err != nil {
		return fmt.Errorf("mount at %s: %w", m.Target, err)
	}
	defer target.Close()
	if err := unix.Mount(descriptorPath(source), descriptorPath(target), "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount %s at %s: %w", filepath.Join(m.Source, m.SubPath), m.Target, err)
	}
	if !m.ReadOnly {
		return nil
	}
	mounted, err := pathrs.OpenInRoot(root, m.Target)
	if err != nil {
		return fmt.Errorf("make %s read-only: %w", m.Target, err)
	}
	defer mounted.Close()
	if err := readOnly(descriptorPath(mounted), unix.AT_RECURSIVE); err != nil {
		return fmt.Errorf("make %s read-only: %w", m.Target, err)
	}
	return nil
}

func descriptorPath(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

// mountPoint opens what is at path for a process whose root is root, and makes a directory or an empty file where nothing
// is. Links lead nowhere else.
func mountPoint(root, path string, dir bool) (*os.File, error) {
	found, err := pathrs.OpenInRoot(root, path)
	if !errors.Is(err, os.ErrNotExist) {
		return found, err
	}
	handle, err := os.Open(root)
	if err != nil {
		return nil, err
	}
	defer handle.Close()
	if dir {
		return pathrs.MkdirAllHandle(handle, path, 0o755)
	}
	parent, err := pathrs.MkdirAllHandle(handle, filepath.Dir(path), 0o755)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	fd, err := unix.Openat(int(parent.Fd()), filepath.Base(path), unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, &os.PathError{Op: "create", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// open opens what m mounts. Programs in pods write what is below Source, so its links are followed only where they do
// not lead out of it, and what was checked is what is opened.
func (m Mount) open() (*os.File, error) {
	if m.SubPath == "" {
		fd, err := unix.Open(m.Source, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: m.Source, Err: err}
		}
		return os.NewFile(uintptr(fd), m.Source), nil
	}
	root, err := os.OpenRoot(m.Source)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	const flags = os.O_RDONLY | unix.O_NONBLOCK // it may be a FIFO, which nobody writes to
	source, err := root.OpenFile(m.SubPath, flags, 0)
	if errors.Is(err, os.ErrNotExist) {
		if err = makeSubPath(root, m.SubPath); err == nil {
			source, err = root.OpenFile(m.SubPath, flags, 0)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("sub-path of the volume: %w", err)
	}
	return source, nil
}

// makeSubPath makes directories with the mode of the volume, as the kubelet does, so that whoever may write to the one
// may to the other.
func makeSubPath(root *os.Root, path string) error {
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	defer unix.Umask(unix.Umask(0))
	return root.MkdirAll(path, info.Mode().Perm())
}

// readOnly makes the mount at path read-only, with the flag AT_RECURSIVE those below it, too.
func readOnly(path string, flags uint) error {
	err := unix.MountSetattr(unix.AT_FDCWD, path, flags, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	if errors.Is(err, unix.ENOSYS) {
		return remountReadOnly(path)
	}
	return err
}

// remountReadOnly is readOnly for kernels before 5.12, and for one mount. Flags that it already has are kept: a user
// namespace must not drop those it inherited.
func remountReadOnly(path string) error {
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
