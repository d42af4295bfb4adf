package cli

import (
	"bytes"
	"math"
	"os"
	"strconv"
	"strings"
)

// What an embedded cluster takes of a machine on which nothing is to wait for the other. It needs half of the memory; the rest is for
// what operators run.
const (
	coresOfCluster  = 2
	memoryOfCluster = 2 << 30
)

// clustersFor returns how many embedded clusters so many cores and bytes of memory have room for, at least one.
func clustersFor(cores int, memory uint64) int {
	return int(max(1, min(uint64(cores/coresOfCluster), memory/memoryOfCluster)))
}

// availableMemory returns how many bytes of memory this process and its children can have, by Linux and by the control group that
// they are in; 0 where that is not known.
func availableMemory() uint64 {
	info, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	most, _ := os.ReadFile("/sys/fs/cgroup/memory.max")
	used, _ := os.ReadFile("/sys/fs/cgroup/memory.current")
	return min(availableIn(info), leftOf(most, used))
}

// availableIn reads MemAvailable of /proc/meminfo.
func availableIn(info []byte) uint64 {
	for line := range bytes.Lines(info) {
		fields := strings.Fields(string(line))
		if len(fields) == 3 && fields[0] == "MemAvailable:" && fields[2] == "kB" {
			kilobytes, _ := strconv.ParseUint(fields[1], 10, 64)
			return kilobytes << 10
		}
	}
	return 0
}

// leftOf returns what a control group may still use; all there is, if it has no limit.
func leftOf(most, used []byte) uint64 {
	limit, err := strconv.ParseUint(string(bytes.TrimSpace(most)), 10, 64)
	if err != nil { // there is no such file, or it says max
		return math.MaxUint64
	}
	now, _ := strconv.ParseUint(string(bytes.TrimSpace(used)), 10, 64)
	return limit - min(now, limit)
}
