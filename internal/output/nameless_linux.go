package output

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

const descriptors = "/proc/self/fd"

// nameless opens a new file in dir that has no name (open(2), O_TMPFILE).
func nameless(dir string) (*os.File, error) {
	if _, err := os.Stat(descriptors); err != nil {
		return nil, err // it could not be given a name
	}
	return os.OpenFile(dir, os.O_RDWR|unix.O_TMPFILE, 0o600)
}

// name gives the nameless file f its place. Where another is in it, f has the name temporary, beside it, for an instant.
func name(f *os.File, temporary, target string) error {
	link := func(to string) error {
		err := unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("%s/%d", descriptors, f.Fd()), unix.AT_FDCWD, to, unix.AT_SYMLINK_FOLLOW)
		return os.NewSyscallError("link "+to, err)
	}
	err := link(target)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	_ = os.Remove(temporary)
	if err := link(temporary); err != nil {
		return err
	}
	if err := os.Rename(temporary, target); err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	return nil
}
