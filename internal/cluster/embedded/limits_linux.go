package embedded

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/olmkit/olmkit/internal/hint"
)

// limit is a resource limit of processes, and the least of it with which the cluster's components run.
type limit struct {
	resource int
	least    uint64
	low      func(have uint64) error // what to say of a limit that is lower
}

var limits = []limit{
	{unix.RLIMIT_NOFILE, 256, func(have uint64) error {
		return hint.With(fmt.Errorf("a process may have %d open files at most: etcd and the API server need 256", have),
			"raise the limit before olmkit runs: 'ulimit -n 1024', LimitNOFILE= of a systemd unit, --ulimit nofile=1024 of docker run")
	}},
	// etcd maps 10 GiB of its database at once; the memory that it uses is a small part of that.
	{unix.RLIMIT_AS, 12 << 30, func(have uint64) error {
		return hint.With(fmt.Errorf("the address space of a process is limited to %d MiB: etcd needs 12 GiB of it, most of which it never uses", have>>20),
			"run olmkit without that limit: 'ulimit -v unlimited'; memory itself is limited by a cgroup, as with 'systemd-run --user --scope -p MemoryMax=4G'")
	}},
}

// checkLimits returns an error if the components could not run with the hard limits that get returns.
func checkLimits(get func(resource int, into *unix.Rlimit) error) error {
	for _, l := range limits {
		var now unix.Rlimit
		if err := get(l.resource, &now); err != nil {
			return fmt.Errorf("read the limits of processes: %w", err)
		}
		if now.Max < l.least {
			return l.low(now.Max)
		}
	}
	return nil
}

// openFiles is how many open files each process of a cluster may have, on every machine whose hard limit allows it. It may
// raise that itself.
const openFiles = 1 << 16

// raiseLimits sets the limits of this process, and of those that it starts from then on.
func raiseLimits() error {
	for resource, most := range map[int]uint64{unix.RLIMIT_NOFILE: openFiles, unix.RLIMIT_AS: unix.RLIM_INFINITY} {
		var now syscall.Rlimit
		if err := syscall.Getrlimit(resource, &now); err != nil {
			return fmt.Errorf("read the limits of processes: %w", err)
		}
		now.Cur = min(now.Max, most)
		// Of package syscall, since os/exec gives processes the limit that olmkit was started with unless this one sets it.
		if err := syscall.Setrlimit(resource, &now); err != nil {
			return fmt.Errorf("raise the limits of processes: %w", err)
		}
	}
	return nil
}
