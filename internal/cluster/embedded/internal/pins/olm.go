package main

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/mod/modfile"
	"golang.org/x/tools/txtar"
)

const olm = "github.com/operator-framework/operator-lifecycle-manager"

// writeOLM writes the modules of releases of OLM v0 to archive.
func writeOLM(archive string, releases []string) error {
	all := &txtar.Archive{Comment: []byte("Made by 'make olm-modules'.\n")}
	for _, release := range releases {
		files, err := pinOLM(release)
		if err != nil {
			return fmt.Errorf("make the module of OLM %s: %w", release, err)
		}
		all.Files = append(all.Files, files...)
	}
	return os.WriteFile(archive, txtar.Format(all), 0o644)
}

// pinOLM makes the module that requires release of OLM v0 and nothing else: what that is built of is in its own go.mod and go.sum. All
// of it can be had, or there is an error.
func pinOLM(release string) ([]txtar.File, error) {
	d, err := download(olm, release)
	if err != nil {
		return nil, err
	}
	if _, err := output(d.Dir, "list", "-mod=readonly", "-deps", "./cmd/olm", "./cmd/catalog"); err != nil {
		return nil, err
	}
	own, err := read(d.GoMod)
	if err != nil {
		return nil, err
	}
	made := &modfile.File{}
	if err := errors.Join(made.AddModuleStmt("github.com/olmkit/olmkit/tools/olm"), made.AddGoStmt(own.Go.Version)); err != nil {
		return nil, err
	}
	made.AddNewRequire(olm, release, false)
	data, err := made.Format()
	if err != nil {
		return nil, err
	}
	sums := fmt.Sprintf("%[1]s %[2]s %[3]s\n%[1]s %[2]s/go.mod %[4]s\n", olm, release, d.Sum, d.GoModSum)
	return []txtar.File{{Name: minorOf(release) + "/go.mod", Data: data}, {Name: minorOf(release) + "/go.sum", Data: []byte(sums)}}, nil
}
