//go:build linux

package e2e_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/olmkit/olmkit/test/support/trace"
)

// ends are the ways in which a walk of one hop comes to an early end. after is when, for a walk that is in full swing after
// ten seconds and over after thirty.
var ends = []struct {
	name   string
	tidies bool // olmkit hears of it and removes its files
	walk   func(t *testing.T, before trace.Trace, temporary string, after time.Duration) *exec.Cmd
}{
	{"kill -9", false, signalled(unix.SIGKILL)},
	{"Ctrl-C", true, signalled(unix.SIGINT)},
	{"SIGTERM", true, signalled(unix.SIGTERM)},
	{"closed output", false, func(t *testing.T, before trace.Trace, temporary string, after time.Duration) *exec.Cmd {
		t.Helper()
		cmd := exec.Command(olmkit, hopArgs()...)
		cmd.Env = append(os.Environ(), before.Env(), "TMPDIR="+temporary)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Dir, cmd.Stdout, cmd.Stderr = root, w, w
		time.AfterFunc(after, func() { _ = r.Close() })
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_ = w.Close()
		_ = cmd.Wait()
		return cmd
	}},
	{"full disk", true, func(t *testing.T, before trace.Trace, temporary string, after time.Duration) *exec.Cmd {
		t.Helper()
		args := []string{"-m", "--propagation", "private"}
		if os.Geteuid() != 0 {
			args = append(args, "-Ur")
		}
		// Of the disk that only this process sees, all is taken after a while.
		args = append(args, "bash", "-c", `components=$(readlink "$1/components")
mount -t tmpfs -o size=64m tmpfs "$1" && ln -s "$components" "$1/components" && mkdir "$1/tmp" || exit 99
(sleep "$2"; dd if=/dev/zero of="$1/fill" bs=64k 2>/dev/null) &
TMPDIR="$1/tmp" OLMKIT_CACHE="$1" "${@:3}" --report json="$1/report.json"
code=$?; kill $! 2>/dev/null; wait; rm -f "$1/fill" "$1/report.json"
find "$1" -type f ! -name '*.lock' -printf 'left: %P\n'
exit $code`, "bash", before.Cache, strconv.FormatFloat(after.Seconds(), 'f', 2, 64), olmkit)
		cmd := exec.Command("unshare", append(args, hopArgs()...)...)
		var out bytes.Buffer
		cmd.Dir, cmd.Stdout, cmd.Stderr = root, &out, &out
		_ = cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != 0 && code != 1 && code != 3 || strings.Contains(out.String(), "left: ") {
			t.Errorf("exit code %d\n%s", code, out.String())
		}
		return cmd
	}},
}

func signalled(signal unix.Signal) func(t *testing.T, before trace.Trace, temporary string, after time.Duration) *exec.Cmd {
	return func(t *testing.T, before trace.Trace, temporary string, after time.Duration) *exec.Cmd {
		t.Helper()
		cmd := exec.Command(olmkit, hopArgs()...)
		cmd.Env = append(os.Environ(), before.Env(), "TMPDIR="+temporary)
		var out bytes.Buffer
		cmd.Dir, cmd.Stdout, cmd.Stderr = root, &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(after, func() { _ = cmd.Process.Signal(signal) })
		_ = cmd.Wait()
		if ended := !timer.Stop(); ended && signal != unix.SIGKILL {
			if code := cmd.ProcessState.ExitCode(); code != 130 && code != 0 {
				t.Errorf("exit code %d, want 130\n%s", code, out.String())
			}
		}
		return cmd
	}
}

// TestEnds ends walks at random moments, in every way that there is, and looks for what they leave: processes, mounts,
// interfaces, files. OLMKIT_ENDS is how many of each, one unless told; 'make ends' takes twenty.
func TestEnds(t *testing.T) {
	t.Parallel()
	n, err := strconv.Atoi(cmp.Or(os.Getenv("OLMKIT_ENDS"), "1"))
	if err != nil {
		t.Fatalf("OLMKIT_ENDS: %v", err)
	}
	must(t, "cluster", "build")
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("the seed is %d", seed)
	for i := range n {
		for _, end := range ends {
			after := time.Duration(random.Int64N(int64(30 * time.Second)))
			t.Run(fmt.Sprintf("%s/%d after %.1fs", end.name, i, after.Seconds()), func(t *testing.T) {
				t.Parallel()
				before, temporary := trace.New(t), t.TempDir()
				cmd := end.walk(t, before, temporary, after)
				t.Log(cmd.ProcessState)
				eventually(t, "no process is left", func() error {
					if left := before.Processes(t); len(left) > 0 {
						return fmt.Errorf("processes: %s", strings.Join(left, "; "))
					}
					return nil
				})
				before.CheckMachine(t)
				if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
					t.Errorf("temporary files are left: %v, %v", left, err)
				}
				if files := before.Files(t); end.tidies && len(files) > 0 {
					t.Errorf("files are left: %v", files)
				}
			})
		}
	}
}
