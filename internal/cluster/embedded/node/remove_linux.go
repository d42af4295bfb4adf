package node

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// removeAll removes dir with all that is in it, which programs in containers wrote. It moves what is in folders up before it removes these: os.RemoveAll has a file open for each folder in
// which one is, and what all of the host has open is bounded. What cannot be moved, as what is mounted, is left to that.
func removeAll(dir string) error {
	if flatten(dir) == nil {
		return os.Remove(dir)
	}
	if err := os.RemoveAll(dir); err != nil {
		var at *fs.PathError
		if errors.As(err, &at) { // its path may be as long as a program likes
			err = at.Err
		}
		return fmt.Errorf("remove %s: %w", filepath.Base(dir), err)
	}
	return nil
}

// flatten empties dir.
func flatten(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	unlike, moved := rand.Text(), 0 // what is there already
	for {
		entries, err := fs.ReadDir(root.FS(), ".")
		if err != nil || len(entries) == 0 {
			return err
		}
		for _, entry := range entries {
			name := entry.Name()
			if entry.IsDir() {
				inside, err := fs.ReadDir(root.FS(), name)
				if err != nil {
					return err
				}
				for _, e := range inside {
					moved++
					if err := root.Rename(filepath.Join(name, e.Name()), fmt.Sprint(unlike, moved)); err != nil {
						return err
					}
				}
			}
			if err := root.Remove(name); err != nil {
				return err
			}
		}
	}
}
