package catalog

import (
	"io/fs"
	"syscall"
	"time"
)

// stampOf returns what tells a file from any other, and from itself once it has changed, and when it changed last.
func stampOf(info fs.FileInfo) (numbers [6]uint64, changed time.Time, ok bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return numbers, changed, false
	}
	changed = time.Unix(stat.Ctim.Unix())
	return [6]uint64{
		uint64(stat.Dev), stat.Ino, uint64(stat.Size), uint64(stat.Mode), uint64(info.ModTime().UnixNano()), uint64(changed.UnixNano()), //nolint:unconvert // Dev is no uint64 everywhere
	}, changed, true
}
