// Command pins writes the archives of the modules that build other versions of what embedded clusters consist of.
//
// pins kubernetes ARCHIVE MODULE RELEASE… is for other Kubernetes minors. MODULE is the folder of the module that builds the default
// one; its program is built of each. What go.mod of k8s.io/kubernetes replaces by folders of its own repository is required as it was
// released with it.
//
// pins olm ARCHIVE RELEASE… is for other releases of OLM v0.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
	"golang.org/x/tools/txtar"
)

const kubernetes = "k8s.io/kubernetes"

func main() {
	var err error
	switch args := os.Args[1:]; {
	case len(args) > 3 && args[0] == "kubernetes":
		err = writeKubernetes(args[2], args[1], args[3:])
	case len(args) > 2 && args[0] == "olm":
		err = writeOLM(args[1], args[2:])
	default:
		fmt.Fprintln(os.Stderr, "usage: pins kubernetes ARCHIVE MODULE RELEASE…, or pins olm ARCHIVE RELEASE…")
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// writeKubernetes writes the modules of releases of Kubernetes that build the program of module to archive.
func writeKubernetes(module, archive string, releases []string) error {
	all := &txtar.Archive{Comment: []byte("Made by 'make kubernetes-modules'.\n")}
	for _, release := range releases {
		files, err := pin(module, release)
		if err != nil {
			return fmt.Errorf("make the module of Kubernetes %s: %w", release, err)
		}
		all.Files = append(all.Files, files...)
	}
	return os.WriteFile(archive, txtar.Format(all), 0o644)
}

// pin makes the module that builds the program of module with release.
func pin(module, release string) ([]txtar.File, error) {
	dir, err := os.MkdirTemp("", "olmkit-pins-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	program, err := filepath.Glob(filepath.Join(module, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range program {
		data, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(file)), data, 0o644)
		}
		if err != nil {
			return nil, err
		}
	}
	data, err := requirements(module, release)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), data, 0o644); err != nil {
		return nil, err
	}
	if _, err := output(dir, "mod", "tidy"); err != nil {
		return nil, err
	}
	var files []txtar.File
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		files = append(files, txtar.File{Name: minorOf(release) + "/" + name, Data: data})
	}
	return files, nil
}

// requirements is go.mod with what module itself requires, of Kubernetes that of release.
func requirements(module, release string) ([]byte, error) {
	own, err := read(filepath.Join(module, "go.mod"))
	if err != nil {
		return nil, err
	}
	staged, err := staging(release)
	if err != nil {
		return nil, err
	}
	library := "v0" + strings.TrimPrefix(release, "v1")
	made := &modfile.File{}
	err = errors.Join(made.AddModuleStmt(own.Module.Mod.Path), made.AddGoStmt(own.Go.Version))
	for _, r := range own.Require {
		version := r.Mod.Version
		switch {
		case r.Indirect:
			continue
		case r.Mod.Path == kubernetes:
			version = release
		case slices.Contains(staged, r.Mod.Path):
			version = library
		}
		made.AddNewRequire(r.Mod.Path, version, false)
	}
	for _, path := range staged {
		err = errors.Join(err, made.AddReplace(path, "", path, library))
	}
	if err != nil {
		return nil, err
	}
	return made.Format()
}

// staging are the modules that release has in its own repository.
func staging(release string) ([]string, error) {
	d, err := download(kubernetes, release)
	if err != nil {
		return nil, err
	}
	m, err := read(d.GoMod)
	if err != nil {
		return nil, err
	}
	paths := map[string]bool{} // the requirements, and in older releases replacements as well
	for _, r := range m.Require {
		if r.Mod.Version == "v0.0.0" && strings.HasPrefix(r.Mod.Path, "k8s.io/") {
			paths[r.Mod.Path] = true
		}
	}
	for _, r := range m.Replace {
		if strings.HasPrefix(r.New.Path, "./staging/") {
			paths[r.Old.Path] = true
		}
	}
	return slices.Sorted(maps.Keys(paths)), nil
}

// downloaded is what the Go command says of a module.
type downloaded struct{ Dir, GoMod, Sum, GoModSum string }

func download(module, release string) (d downloaded, err error) {
	said, err := output("", "mod", "download", "-json", module+"@"+release)
	if err != nil {
		return d, err
	}
	return d, json.Unmarshal(said, &d)
}

// minorOf is the minor of a release, without the v.
func minorOf(release string) string { return strings.TrimPrefix(semver.MajorMinor(release), "v") }

func read(file string) (*modfile.File, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return modfile.Parse(file, data, nil)
}

// output runs the Go command in dir, and returns what it prints.
func output(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, errOut.Bytes())
	}
	return out, nil
}
