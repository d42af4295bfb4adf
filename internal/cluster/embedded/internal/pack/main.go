// Command pack writes the files below a directory into an archive in the txtar format: pack DIRECTORY ARCHIVE.
package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/tools/txtar"
)

func main() {
	if err := pack(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func pack(dir, archive string) error {
	a := &txtar.Archive{Comment: fmt.Appendf(nil, "Made from %s by 'make generate'.\n", filepath.ToSlash(dir))}
	files := os.DirFS(dir)
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		a.Files = append(a.Files, txtar.File{Name: name, Data: data})
		return err
	})
	if err != nil {
		return err
	}
	return os.WriteFile(archive, txtar.Format(a), 0o644)
}
