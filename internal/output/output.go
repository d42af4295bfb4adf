// Package output puts results where users want them, whole or not at all: a file is written under no name or a temporary one
// and takes its place when it is complete, so that no reader ever sees half of one. What is no file, as a device or a FIFO,
// is written into instead.
package output

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/olmkit/olmkit/internal/hint"
)

// Write puts data into file.
func Write(ctx context.Context, file string, data []byte) error {
	return File(ctx, file, func(w io.Writer) error { _, err := w.Write(data); return err })
}

// WritePrivate puts data into file, which only its owner may read.
func WritePrivate(ctx context.Context, file string, data []byte) error {
	return withFix(writeFile(ctx, file, 0o600, func(w io.Writer) error { _, err := w.Write(data); return err }))
}

// File puts what fill writes into file. A regular file, or the one that a symbolic link leads to, is replaced when fill has
// succeeded; a device, a FIFO or an open file as /dev/stdout is written into until ctx ends. Errors have a fix.
func File(ctx context.Context, file string, fill func(io.Writer) error) error {
	return withFix(writeFile(ctx, file, 0o644, fill))
}

// Check asks whether Write could put something into file, and leaves everything as it is. Errors have a fix.
func Check(file string) error { return withFix(check(file)) }

func check(file string) error {
	target, stream, err := resolve(file)
	if err != nil {
		return err
	}
	if stream {
		if _, ok := descriptor(target); ok {
			f, err := openStream(context.Background(), target)
			if err != nil {
				return err
			}
			return f.Close()
		}
		return os.NewSyscallError("access "+target, syscall.Access(target, 2)) // a FIFO would wait for its reader
	}
	dir := filepath.Dir(target)
	for {
		_, err := os.Stat(dir)
		if parent := filepath.Dir(dir); errors.Is(err, fs.ErrNotExist) && parent != dir {
			dir = parent // it would be made
			continue
		}
		break
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(target)+".*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Remove removes the regular file that Write would replace, if there is one. Errors have a fix.
func Remove(file string) error {
	target, stream, err := resolve(file)
	if err != nil || stream {
		return withFix(err)
	}
	if err := os.Remove(target); !errors.Is(err, fs.ErrNotExist) {
		return withFix(err)
	}
	return nil
}

// Dir puts the directory that fill makes, under the name that it is given, in the place of dir, unless ctx ends. Errors have
// a fix.
func Dir(ctx context.Context, dir string, fill func(fresh string) error) error {
	return withFix(replaceDir(ctx, dir, fill))
}

func withFix(err error) error {
	switch {
	case err == nil || hint.Of(err) != "":
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return hint.With(err, "make room there, or choose another place")
	}
	return hint.With(err, "choose a place that can be written")
}

// maxLinks is how many symbolic links are followed, as by Linux (path_resolution(7)).
const maxLinks = 40

// resolve follows the symbolic links that file ends in. It returns the path of a regular file or of nothing yet, which is to
// be replaced, or, with stream, of something to write into.
func resolve(file string) (target string, stream bool, err error) {
	target = file
	for range maxLinks {
		dir, base := filepath.Split(target)
		if resolved, err := filepath.EvalSymlinks(cmp.Or(dir, ".")); err == nil {
			target = filepath.Join(resolved, base)
		}
		if _, ok := descriptor(target); ok {
			return target, true, nil
		}
		info, err := os.Lstat(target)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return target, false, nil
		case err != nil:
			return "", false, err
		case info.IsDir():
			return "", false, &fs.PathError{Op: "write", Path: file, Err: syscall.EISDIR}
		case info.Mode().IsRegular():
			return target, false, nil
		case info.Mode()&fs.ModeSocket != 0:
			return "", false, &fs.PathError{Op: "write", Path: file, Err: errors.New("it is a socket")}
		case info.Mode()&fs.ModeSymlink == 0:
			return target, true, nil
		}
		link, err := os.Readlink(target)
		if err != nil {
			return "", false, err
		}
		if filepath.IsAbs(link) {
			target = link
			continue
		}
		target = filepath.Dir(target) + string(filepath.Separator) + link // not joined: what .. means depends on links
	}
	return "", false, &fs.PathError{Op: "write", Path: file, Err: syscall.ELOOP}
}

// ownDescriptor matches the names of what this process has open: those that Linux gives them, and those of other systems.
var ownDescriptor = regexp.MustCompile(fmt.Sprintf(`^(?:/proc/(?:self|thread-self|%d)(?:/task/[0-9]+)?|/dev)/fd/([0-9]+)$`, os.Getpid()))

// descriptor returns the file descriptor of this process that path names.
func descriptor(path string) (int, bool) {
	match := ownDescriptor.FindStringSubmatch(path)
	if match == nil {
		return 0, false
	}
	fd, err := strconv.Atoi(match[1])
	return fd, err == nil
}

// readerPeriod is how often a FIFO is asked whether somebody reads it.
const readerPeriod = 20 * time.Millisecond

// openStream opens what resolve called a stream. A FIFO is waited for until somebody reads it, or ctx ends.
func openStream(ctx context.Context, target string) (*os.File, error) {
	if fd, ok := descriptor(target); ok {
		own, err := syscall.Dup(fd) // opened anew it would be written from its beginning
		if err != nil {
			return nil, &fs.PathError{Op: "write", Path: target, Err: err}
		}
		syscall.CloseOnExec(own)
		return os.NewFile(uintptr(own), target), nil
	}
	for {
		f, err := os.OpenFile(target, os.O_WRONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
		info, found := os.Stat(target)
		if !errors.Is(err, syscall.ENXIO) || found != nil || info.Mode()&fs.ModeNamedPipe == 0 {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, &fs.PathError{Op: "write", Path: target, Err: fmt.Errorf("nobody reads the FIFO: %w", ctx.Err())}
		case <-time.After(readerPeriod):
		}
	}
}

func writeStream(ctx context.Context, target string, fill func(io.Writer) error) error {
	f, err := openStream(ctx, target)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = f.SetWriteDeadline(time.Now()) }) // a terminal or a disk does not let one wait
	defer stop()
	return errors.Join(buffered(until(ctx, f), fill), f.Close())
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// until returns a writer to w that fails when ctx has ended.
func until(ctx context.Context, w io.Writer) io.Writer {
	return writerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return w.Write(p)
	})
}

// buffered has fill write to f.
func buffered(f io.Writer, fill func(io.Writer) error) error {
	w := bufio.NewWriter(f)
	if err := fill(w); err != nil {
		return err
	}
	return w.Flush()
}

func writeFile(ctx context.Context, file string, mode fs.FileMode, fill func(io.Writer) error) error {
	target, stream, err := resolve(file)
	if err != nil {
		return err
	}
	if stream {
		return writeStream(ctx, target, fill)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	f, named, err := create(target)
	if err != nil {
		return err
	}
	err = buffered(until(ctx, f), fill)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil && !named {
		err = name(f, fmt.Sprintf("%s%d-%d", filepath.Join(filepath.Dir(target), temporary(target)), os.Getpid(), f.Fd()), target)
	}
	closed := f.Close()
	if err == nil {
		err = closed
	}
	if !named {
		return err
	}
	if err == nil {
		err = os.Rename(f.Name(), target)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// create opens a new file for what is to be at target: without a name, which nothing is left of when the process is killed,
// or with a temporary one beside target where the system or the disk knows no other.
func create(target string) (f *os.File, named bool, err error) {
	if f, err := nameless(filepath.Dir(target)); err == nil {
		return f, false, nil
	}
	f, err = os.CreateTemp(filepath.Dir(target), temporary(target)+"*")
	return f, true, err
}

// temporary is how the names begin of what is made to take the place of target.
func temporary(target string) string { return "." + filepath.Base(target) + ".olmkit-" }

func replaceDir(ctx context.Context, dir string, fill func(fresh string) error) (err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved // what a link leads to is replaced, not the link
	}
	if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
		return &fs.PathError{Op: "write", Path: dir, Err: syscall.ENOTDIR}
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	if err := removeAbandoned(dir); err != nil {
		return err
	}
	stage, err := newStage(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(stage.Name()), stage.Close()) }()
	fresh, old := filepath.Join(stage.Name(), "new"), filepath.Join(stage.Name(), "old")
	if err := cmp.Or(fill(fresh), ctx.Err()); err != nil {
		return err
	}
	if err := os.Rename(dir, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(fresh, dir); err != nil {
		if back := os.Rename(old, dir); back != nil && !errors.Is(back, fs.ErrNotExist) {
			err = errors.Join(err, back)
		}
		return err
	}
	return nil
}

// newStage makes a directory beside dir, and locks it for as long as it is open.
func newStage(dir string) (*os.File, error) {
	name, err := os.MkdirTemp(filepath.Dir(dir), temporary(dir)+"*")
	if err != nil {
		return nil, err
	}
	stage, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(stage.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(os.NewSyscallError("lock "+name, err), stage.Close())
	}
	return stage, nil
}

// removeAbandoned removes the stages of processes that were killed while they wrote dir. Where one was killed between taking
// the old directory away and putting the new one in its place, the old one is put back first.
func removeAbandoned(dir string) error {
	names, err := filepath.Glob(filepath.Join(escape(filepath.Dir(dir)), escape(temporary(dir))+"*"))
	if err != nil {
		return err
	}
	for _, name := range names {
		stage, err := os.Open(name)
		if err != nil {
			continue // another process has just removed it
		}
		if syscall.Flock(int(stage.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
				_ = os.Rename(filepath.Join(name, "old"), dir) // fails where there was none
			}
			err = os.RemoveAll(name)
		}
		if err := errors.Join(err, stage.Close()); err != nil {
			return err
		}
	}
	return nil
}

var special = regexp.MustCompile(`[\\*?[]`)

// escape returns text as a pattern of filepath.Match that matches it alone.
func escape(text string) string { return special.ReplaceAllString(text, `\$0`) }
