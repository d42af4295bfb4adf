package embedded

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/olmkit/olmkit/internal/hint"
)

// TestLimits: limits that are too low are refused with what to do, before anything is built or started; soft ones are not.
func TestLimits(t *testing.T) {
	t.Parallel()
	const plenty = unix.RLIM_INFINITY
	for name, test := range map[string]struct {
		files, addresses unix.Rlimit
		says, fix        string
	}{
		"none":                  {unix.Rlimit{Cur: plenty, Max: plenty}, unix.Rlimit{Cur: plenty, Max: plenty}, "", ""},
		"just enough":           {unix.Rlimit{Cur: 256, Max: 256}, unix.Rlimit{Cur: 12 << 30, Max: 12 << 30}, "", ""},
		"soft ones":             {unix.Rlimit{Cur: 64, Max: 4096}, unix.Rlimit{Cur: 2 << 30, Max: plenty}, "", ""},
		"open files":            {unix.Rlimit{Cur: 64, Max: 64}, unix.Rlimit{Cur: plenty, Max: plenty}, "64 open files", "ulimit -n 1024"},
		"address space":         {unix.Rlimit{Cur: 1024, Max: 4096}, unix.Rlimit{Cur: 2 << 30, Max: 2 << 30}, "2048 MiB", "ulimit -v unlimited"},
		"both: one at one time": {unix.Rlimit{Cur: 64, Max: 64}, unix.Rlimit{Cur: 2 << 30, Max: 2 << 30}, "64 open files", "ulimit -n 1024"},
	} {
		err := checkLimits(func(resource int, into *unix.Rlimit) error {
			*into = map[int]unix.Rlimit{unix.RLIMIT_NOFILE: test.files, unix.RLIMIT_AS: test.addresses}[resource]
			return nil
		})
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) || !strings.Contains(hint.Of(err), test.fix) {
			t.Errorf("%s: %v (%s)", name, err, hint.Of(err))
		}
	}
}

// limitsArgument makes this test's program raise its limits, and start a process that prints its own.
const limitsArgument = "raise limits"

func printRaisedLimits() {
	if err := raiseLimits(); err != nil {
		os.Stdout.WriteString(err.Error())
	}
	cmd := exec.Command("sh", "-c", "ulimit -Sn; ulimit -Sv")
	cmd.Stdout = os.Stdout
	if err := cmd.Run(); err != nil {
		os.Stdout.WriteString(err.Error())
	}
}

// TestRaisedLimits: what a cluster starts has the hard limits, not the soft ones that olmkit was started with.
func TestRaisedLimits(t *testing.T) {
	t.Parallel()
	self, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `ulimit -Sn 64 && ulimit -Hn 300 && ulimit -Sv 1000000000000 && exec "$0" "$1"`, self, limitsArgument)
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil || string(out) != "300\nunlimited\n" {
		t.Errorf("%v: %q %s", err, out, errOut.String())
	}
}

// TestUnusableCache: a cache that cannot be had is an error with what to do, whatever is in its way.
func TestUnusableCache(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, cache := range []string{"/proc/x", "/sys", filepath.Join(file, "x"), file} {
		_, err := olmComponents.ensure(t.Context(), cache, Source{}, nil)
		if err == nil || !strings.Contains(hint.Of(err), "set OLMKIT_CACHE to a folder") {
			t.Errorf("components in %s: %v (%s)", cache, err, hint.Of(err))
		}
		_, _, err = claim(t.Context(), cache, "test")
		if err = advise(err, cache); err == nil || !strings.Contains(hint.Of(err), "set OLMKIT_CACHE to a folder") {
			t.Errorf("clusters in %s: %v (%s)", cache, err, hint.Of(err))
		}
	}
}
