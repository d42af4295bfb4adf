// Package output puts results where users want them, whole or not at all: they are written to a temporary name beside the
// place and renamed, so that no reader ever sees half of one.
package output

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/olmkit/olmkit/internal/advice"
)

// Write puts data into file.
func Write(file string, data []byte) error {
	return File(file, func(w io.Writer) error { _, err := w.Write(data); return err })
}

// File puts what fill writes into file. Errors have a cure.
func File(file string, fill func(io.Writer) error) error { return cured(writeFile(file, fill)) }

// Check asks whether Write could put something into file, and leaves everything as it is. Errors have a cure.
func Check(file string) error { return cured(check(file)) }

func check(file string) error {
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return &fs.PathError{Op: "write", Path: file, Err: syscall.EISDIR}
	}
	dir := filepath.Dir(file)
	for {
		_, err := os.Stat(dir)
		if parent := filepath.Dir(dir); errors.Is(err, fs.ErrNotExist) && parent != dir {
			dir = parent // it would be made
			continue
		}
		break
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Dir puts the directory that fill makes, under the name that it is given, in the place of dir. Errors have a cure.
func Dir(dir string, fill func(fresh string) error) error { return cured(replaceDir(dir, fill)) }

func cured(err error) error {
	switch {
	case err == nil || advice.Of(err) != "":
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return advice.With(err, "make room there, or choose another place")
	}
	return advice.With(err, "choose a place that can be written")
}

func writeFile(file string, fill func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // fails when it was renamed
	w := bufio.NewWriter(f)
	err = fill(w)
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Chmod(0o644)
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}

func replaceDir(dir string, fill func(fresh string) error) (err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	stage, err := os.MkdirTemp(parent, "."+filepath.Base(dir)+".")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(stage)) }()
	fresh, old := filepath.Join(stage, "new"), filepath.Join(stage, "old")
	if err := fill(fresh); err != nil {
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
