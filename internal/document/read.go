package document

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/hint"
)

// MaxText is how many bytes of a file or a stream are read, unless something else is asked for: several times what the
// largest published catalogs have.
const MaxText = 1 << 30

// Limit is the most bytes of a file or a stream that are read; 0 is MaxText.
type Limit int64

func (l Limit) bytes() int64 {
	if l == 0 {
		return MaxText
	}
	return int64(l)
}

// ReadAll returns what r holds, or an error if that is too much to be a text.
func ReadAll(r io.Reader) ([]byte, error) { return Limit(0).ReadAll(r) }

// ReadFile is ReadAll of the file called name.
func ReadFile(name string) ([]byte, error) { return Limit(0).ReadFile(name) }

// ReadAll returns what r holds, or an error if that is more than the limit.
func (l Limit) ReadAll(r io.Reader) ([]byte, error) { return l.read(r, 0) }

// read is ReadAll for who knows about how much r holds. Of a stream whose end is not known it holds parts, so that one that
// never ends takes no more memory than the limit says.
func (l Limit) read(r io.Reader, size int64) ([]byte, error) {
	const part = 4 << 20
	var parts [][]byte
	total := int64(0)
	for room := max(size, 0) + bytes.MinRead; ; room = part {
		next := make([]byte, min(room, l.bytes()+1-total))
		n, err := io.ReadFull(r, next)
		parts = append(parts, next[:n])
		if total += int64(n); total > l.bytes() {
			return nil, l.tooLarge()
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			if total == int64(len(parts[0])) {
				return parts[0], nil
			}
			return slices.Concat(parts...), nil
		case err != nil:
			return nil, err
		}
	}
}

func (l Limit) tooLarge() error {
	return hint.With(fmt.Errorf("it holds more than %d bytes", l.bytes()), "name a catalog or manifests; if it is one, raise the limit with --max-file-size")
}

// ReadFile returns what the file called name holds, which may be a pipe, or an error if that is more than the limit. A device
// is refused: it has no end.
func (l Limit) ReadFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	switch {
	case info.Mode()&(fs.ModeDevice|fs.ModeSocket) != 0:
		return nil, irregular(name, info.Mode())
	case info.Mode().IsRegular() && info.Size() > l.bytes():
		return nil, fmt.Errorf("%s: %w", name, l.tooLarge())
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := l.read(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}

// ReadRegular returns what the regular file called name holds, or an error if it is none or larger than MaxText: who opens a
// pipe may wait for ever.
func ReadRegular(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if err := Limit(0).Check(name, info); err != nil {
		return nil, err
	}
	return ReadFile(name)
}

// ReadFileIn returns what a file of a folder holds, which must be a regular one: who opens a pipe may wait for ever.
func (l Limit) ReadFileIn(fsys fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, unread(name, err)
	}
	if err := l.Check(name, info); err != nil {
		return nil, err
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return l.read(f, info.Size())
}

// Check refuses what is no regular file, and files over the limit.
func (l Limit) Check(name string, info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular():
		return irregular(name, info.Mode())
	case info.Size() > l.bytes():
		return fmt.Errorf("%s: %w", name, l.tooLarge())
	}
	return nil
}

// irregular is the error of what is no file to be read to its end.
func irregular(name string, mode fs.FileMode) error {
	kind := "no regular file"
	switch {
	case mode&fs.ModeNamedPipe != 0:
		kind = "a named pipe (FIFO)"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	case mode&fs.ModeDevice != 0:
		kind = "a device"
	case mode.IsDir():
		kind = "a folder"
	}
	return hint.With(fmt.Errorf("%s is %s, and only regular files are read there", name, kind), "take it out, or name a file")
}

// Until returns what work does, or the context's error as soon as that is done: work that only computes or reads is left to
// itself then, and what it returns is dropped.
func Until[T any](ctx context.Context, work func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		r.value, r.err = work()
		done <- r
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// Dir is the files below dir. Links lead no further than dir: what is elsewhere is not the author's to publish. A dir that cannot be opened
// is an error of each file.
func Dir(dir string) fs.FS {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return unopened{err}
	}
	return root.FS()
}

// unopened is a folder that cannot be opened.
type unopened struct{ error }

// Open is fs.FS's.
func (u unopened) Open(string) (fs.File, error) { return nil, u.error }

// unread is err, which package os returns of a file called name in a folder, in words that name the file alone. Of a link that leads out of the
// folder, which package os has no error for, it says what to do.
func unread(name string, err error) error {
	if strings.Contains(err.Error(), "path escapes from parent") {
		return hint.With(fmt.Errorf("%s is a link that leads out of its folder", name), "put a copy of the file there, in place of the link")
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		return fmt.Errorf("%s: %w", name, path.Err)
	}
	return err
}
