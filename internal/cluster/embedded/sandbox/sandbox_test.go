//go:build linux

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netns"
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
		Mounts:       append(mounts, Mount{Source: os.Args[2], Target: "/tmp/volume", ReadOnly: true}),
		Command:      append([]string{"/bin/self"}, os.Args[3:]...),
		Env:          []string{"COLOUR=green"},
		ReadOnlyRoot: true,
		Hostname:     "box",
	}, network, os.Stdout)
	if err != nil {
		os.Stdout.WriteString("start: " + err.Error())
		os.Exit(3)
	}
	os.Exit(process.Wait())
}

// runInside runs this test program in a container of a sandbox with the -test.run pattern.
func runInside(t *testing.T, pattern string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := Command(context.Background(), Options{Network: true}, "/proc/self/exe", "inside", t.TempDir(), "-test.run", pattern, "-test.v")
	c.Stdout, c.Stderr = &out, &out
	c.Env = append(os.Environ(), "OLMKIT_INSIDE=1")
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
