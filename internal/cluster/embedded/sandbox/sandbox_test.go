//go:build linux

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	Main()
	if len(os.Args) > 1 && os.Args[1] == "inside" {
		inside()
		return
	}
	os.Exit(m.Run())
}

// inside is the program that tests run in a sandbox.
func inside() {
	dir, err := os.MkdirTemp(os.Args[2], "scratch")
	if err != nil {
		panic(err)
	}
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	if err := Seal(dir); err != nil {
		panic(err)
	}
	if dir, err = os.MkdirTemp(os.Args[2], "scratch"); err != nil {
		panic(err)
	}
	mounts, err := ProgramMounts(self, "/bin/self")
	if err != nil {
		panic(err)
	}
	network, err := netns.Get()
	if err != nil {
		panic(err)
	}
	process, err := Start(Container{
		Scratch:      dir,
		Image:        os.Getenv("IMAGE"),
		Files:        map[string]string{"etc/hosts": "hosts", "etc/resolv.conf": ""},
		MissingFiles: map[string]string{"etc/passwd": "passwd"},
		Mounts:       append(mounts, Mount{Source: os.Args[2], Target: "/tmp/volume", ReadOnly: true}, Mount{Source: os.Args[2], Target: "/tmp/free"}),
		Command:      append([]string{"/bin/self"}, os.Args[3:]...),
		Env:          []string{"COLOUR=green"},
		ReadOnlyRoot: os.Getenv("IMAGE") == "",
		Hostname:     "box",
	}, network, io.MultiWriter(os.Stdout)) // which is no file, so that somebody copies
	if err != nil {
		os.Stdout.WriteString("start: " + err.Error())
		os.Exit(3)
	}
	switch os.Getenv("AFTER") {
	case "hold":
		hold(process, filepath.Join(os.Args[2], "socket"))
	case "exec":
		process.Wait()
		process.cmd.Process = &os.Process{Pid: os.Getpid()} // as if this one had got its process id
		_, err := process.Exec(context.Background(), []string{"/bin/self", "-test.run", "^$"}, nil, nil, os.Stdout, os.Stdout)
		fmt.Println("exec:", err)
		return
	}
	os.Exit(process.Wait())
}

// hold keeps what the container passes on at a socket, its output, until the container has ended.
func hold(process *Process, socket string) {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket})
	if err != nil {
		panic(err)
	}
	connection, err := listener.AcceptUnix()
	if err != nil {
		panic(err)
	}
	if _, _, _, _, err := connection.ReadMsgUnix(make([]byte, 1), make([]byte, unix.CmsgSpace(4))); err != nil {
		panic(err)
	}
	process.Wait()
	fmt.Println("ended while its output is held")
	os.Exit(0)
}

// TestOutputPassedOn: a container has ended when its program has, whoever has its output by then.
func TestOutputPassedOn(t *testing.T) {
	if os.Getenv("COLOUR") == "green" { // this is the program in the container
		for range 100 {
			if connection, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: "/tmp/free/socket"}); err == nil {
				if _, _, err := connection.WriteMsgUnix([]byte("x"), unix.UnixRights(1), nil); err != nil {
					t.Fatal(err)
				}
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Fatal("nobody listens")
	}
	out, err := runInside(t, "^TestOutputPassedOn$", "AFTER=hold")
	if err != nil || !strings.Contains(out, "ended while its output is held") {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestExecInAnother: what has the process id of a container that is gone is none, and no command is executed there.
func TestExecInAnother(t *testing.T) {
	if os.Getenv("COLOUR") == "green" { // this is the program in the container
		return
	}
	out, err := runInside(t, "^TestExecInAnother$", "AFTER=exec")
	if err != nil || !strings.Contains(out, "the container is gone") {
		t.Fatalf("%v\n%s", err, out)
	}
}

// runInside runs this test program in a container of a sandbox with the -test.run pattern.
func runInside(t *testing.T, pattern string, env ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := Command(context.Background(), Options{Network: true}, "/proc/self/exe", "inside", t.TempDir(), "-test.run", pattern, "-test.v")
	c.Stdout, c.Stderr = &out, &out
	c.Env = append(os.Environ(), env...)
	err := c.Run()
	return out.String(), err
}

func TestContainer(t *testing.T) {
	if os.Getenv("COLOUR") == "green" { // this is the program in the container
		if os.Getpid() != 1 {
			t.Errorf("the container's program has process id %d, want 1", os.Getpid())
		}
		if name, _ := os.Hostname(); name != "box" {
			t.Errorf("host name %q", name)
		}
		if err := os.WriteFile("/file", nil, 0o644); err == nil {
			t.Error("the root can be written to")
		}
		if err := os.WriteFile("/tmp/volume/file", nil, 0o644); err == nil {
			t.Error("a read-only volume can be written to")
		}
		if err := os.WriteFile("/tmp/free/file", nil, 0o644); err != nil {
			t.Errorf("the root is read-only, and a volume in it: %v", err)
		}
		if entries, _ := os.ReadDir("/"); len(entries) > 12 {
			t.Errorf("the root shows more than the image: %v", entries)
		}
		if _, err := os.ReadFile("/proc/self/status"); err != nil {
			t.Error(err)
		}
		return
	}
	out, err := runInside(t, "^TestContainer$")
	if err != nil || !strings.Contains(out, "--- PASS: TestContainer") {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestNothingOutlivesItsStarter(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "marker")
	c := Command(context.Background(), Options{}, "sh", "-c", "sleep 1000 & echo started; exec sleep 1000 #"+marker)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 7)
	if _, err := out.Read(buffer); err != nil {
		t.Fatal(err)
	}
	c.lifeline.Close() // as the kernel does when this process is killed
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("the first process outlived its lifeline")
	}
	if left, _ := exec.Command("pgrep", "-f", marker).Output(); len(left) > 0 {
		t.Fatalf("processes left: %s", left)
	}
}

func TestExitCode(t *testing.T) {
	err := Command(context.Background(), Options{}, "sh", "-c", "exit 7").Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Fatalf("got %v, want exit code 7", err)
	}
}

// TestHostileRoots runs containers from root folders whose links lead to places of the machine.
func TestHostileRoots(t *testing.T) {
	if os.Getenv("COLOUR") == "green" { // this is the program in the container
		for path, want := range map[string]string{"/etc/hosts": "hosts", "/etc/passwd": "passwd", "/etc/resolv.conf": ""} {
			if data, err := os.ReadFile(path); err != nil || string(data) != want {
				t.Errorf("%s holds %q, %v", path, data, err)
			}
		}
		for _, dir := range []string{"/tmp", "/var/run"} {
			if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
				t.Error(err)
			}
		}
		return
	}
	const loop = "the temporary folder leads to itself" // as the machine's is where tests have theirs
	for name, fill := range map[string]func(link func(target, path string), image, outside string){
		"folders lead out": func(link func(target, path string), _, outside string) {
			for _, dir := range []string{"etc", "var", "run", "proc", "dev"} {
				link(filepath.Join(outside, dir), dir)
			}
		},
		"folders lead up": func(link func(target, path string), _, outside string) {
			up := strings.Repeat("../", 20)
			for _, dir := range []string{"etc", "run"} {
				link(up+outside, dir)
			}
		},
		loop: func(link func(target, path string), _, outside string) { link(outside, "tmp") },
		"a file leads to root's": func(link func(target, path string), _, _ string) {
			link("/etc/shadow", "etc/passwd")
			link("/etc/gshadow", "etc/resolv.conf")
		},
		"files lead out": func(link func(target, path string), _, outside string) {
			for _, file := range []string{"etc/passwd", "etc/hosts", "etc/resolv.conf"} {
				link(filepath.Join(outside, filepath.Base(file)), file)
			}
		},
		"a FIFO and a folder": func(_ func(target, path string), image, _ string) {
			if err := os.MkdirAll(filepath.Join(image, "etc", "resolv.conf"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mkfifo(filepath.Join(image, "etc", "hosts"), 0o644); err != nil {
				t.Fatal(err)
			}
		},
		"Debian": func(link func(target, path string), image, _ string) {
			for _, dir := range []string{"usr/bin", "run", "etc"} {
				if err := os.MkdirAll(filepath.Join(image, dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			link("usr/bin", "bin")
			link("/run", "var/run")
			link("/run/lock", "var/lock")
			link("../proc/self/mounts", "etc/mtab")
			link("../run/systemd/resolve/stub-resolv.conf", "etc/resolv.conf")
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			image, outside := filepath.Join(dir, "im,a:ge"), filepath.Join(dir, "outside")
			for _, d := range []string{image, outside} {
				if err := os.Mkdir(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for _, file := range []string{"passwd", "hosts", "resolv.conf"} {
				if err := os.WriteFile(filepath.Join(outside, file), []byte("of the machine"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			fill(func(target, path string) {
				path = filepath.Join(image, path)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(target, path)); err != nil {
					t.Fatal(err)
				}
			}, image, outside)
			before := listing(t, dir)
			out, err := runInside(t, "^TestHostileRoots$", "IMAGE="+image)
			if runs := err == nil && strings.Contains(out, "--- PASS: TestHostileRoots"); runs == (name == loop) {
				t.Errorf("%v\n%s", err, out)
			}
			if after := listing(t, dir); after != before {
				t.Errorf("before:\n%s\nafter:\n%s", before, after)
			}
		})
	}
}

// listing tells what is below dir: names, modes, content.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		var content []byte
		if info.Mode().IsRegular() {
			content, err = os.ReadFile(path)
		}
		fmt.Fprintf(&all, "%s %s %q\n", info.Mode(), path, content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// TestOwnUserNamespace shows that a program has no power over what is not of its own namespaces, also when root starts it.
func TestOwnUserNamespace(t *testing.T) {
	mine, err := os.Readlink("/proc/self/ns/user")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	c := Command(context.Background(), Options{}, "sh", "-c", "readlink /proc/self/ns/user; id -u")
	c.Stdout, c.Stderr = &out, &out
	if err := c.Run(); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	if words := strings.Fields(out.String()); len(words) != 2 || words[0] == mine || words[1] != "0" {
		t.Errorf("in %s it is %q", mine, out.String())
	}
}

// TestIdentity has what a user namespace of root's maps.
func TestIdentity(t *testing.T) {
	if os.Geteuid() != 0 {
		return // it maps what root has
	}
	var a syscall.SysProcAttr
	mapAll(&a)
	if len(a.UidMappings) == 0 || len(a.GidMappings) == 0 {
		t.Fatalf("it maps nothing: %+v", a)
	}
	for _, m := range append(a.UidMappings, a.GidMappings...) {
		if m.ContainerID != m.HostID || m.Size < 1 {
			t.Errorf("it maps %+v", m)
		}
	}
}
