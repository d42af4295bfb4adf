//go:build !linux

package catalog

import (
	"io/fs"
	"time"
)

// stampOf is not ok: files are told apart by what they hold.
func stampOf(fs.FileInfo) (numbers [6]uint64, changed time.Time, ok bool) {
	return numbers, changed, false
}
