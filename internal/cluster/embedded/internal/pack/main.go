// Command pack writes the files of a directory into an archive in the txtar format: pack DIRECTORY ARCHIVE.
package main

import (
	"fmt"
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
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	a := &txtar.Archive{Comment: fmt.Appendf(nil, "Made from %s by 'make generate'.\n", filepath.ToSlash(dir))}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		a.Files = append(a.Files, txtar.File{Name: e.Name(), Data: data})
	}
	return os.WriteFile(archive, txtar.Format(a), 0o644)
}
