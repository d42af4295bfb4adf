package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// Used returns for how long the containers of the pod namespace/name that run now have used a processor.
func (n *Node) Used(key string) (time.Duration, error) {
	p := n.find(key)
	if p == nil {
		return 0, notFound("pod %s is not on this node", key)
	}
	p.mu.Lock()
	var pids []int
	for _, c := range p.containers {
		if c.process != nil {
			pids = append(pids, c.process.Pid())
		}
	}
	p.mu.Unlock()
	var used time.Duration
	for _, pid := range pids {
		of, err := usedBy(pid)
		if err != nil {
			return 0, fmt.Errorf("measure pod %s: %w", key, err)
		}
		used += of
	}
	return used, nil
}

// ticks are how many there are in a second of what Linux tells of processor time (USER_HZ, proc(5)).
const ticks = 100

// clockOf returns for how long the threads of a process have used a processor, to the nanosecond, as clock_getcpuclockid(3) does: the kernel numbers the clock of
// a process by its id (include/linux/posix-timers_types.h, MAKE_PROCESS_CPUCLOCK).
func clockOf(pid int) (time.Duration, error) {
	const scheduled = 2 // CPUCLOCK_SCHED
	var used unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &used); err != nil {
		return 0, fmt.Errorf("read the clock of process %d: %w", pid, err)
	}
	return time.Duration(used.Nano()), nil
}

// usedBy returns for how long a process and those that it started have used a processor, but for those that ended and that nobody waited for.
func usedBy(pid int) (time.Duration, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	stat, err := process.Stat()
	if err != nil {
		return 0, err
	}
	used := time.Duration(stat.CUTime+stat.CSTime) * time.Second / ticks
	if own, err := clockOf(pid); err == nil {
		used += own
	} else {
		used += time.Duration(stat.UTime+stat.STime) * time.Second / ticks
	}
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // by the thread that started them
	if err != nil {
		return 0, err
	}
	for _, list := range lists {
		children, _ := os.ReadFile(list) // a thread may end
		for _, child := range strings.Fields(string(children)) {
			if id, err := strconv.Atoi(child); err == nil {
				of, _ := usedBy(id) // as a process may
				used += of
			}
		}
	}
	return used, nil
}
