// Package revision reads files as they were at a revision of the git repository that they are in.
package revision

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/olmkit/olmkit/internal/hint"
)

// Checkout writes the file or folder at name, as it was at revision, below into, and returns where it is then; nothing,
// and an empty string, if it did not exist. The work tree is not touched. Links are left out: what they lead to need not
// be of that revision.
func Checkout(ctx context.Context, revision, name, into string) (string, error) {
	folder, base := filepath.Dir(name), filepath.Base(name)
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		folder, base = name, "."
	}
	commit, err := git(ctx, folder, "rev-parse", "--verify", "--quiet", "--end-of-options", revision+"^{commit}")
	if err != nil {
		return "", hint.With(fmt.Errorf("find revision %s in the git repository of %s: %w", revision, name, err),
			"name a commit, tag or branch that was fetched: CI systems often fetch the newest commit only (for actions/checkout: fetch-depth: 0)")
	}
	prefix, err := git(ctx, folder, "rev-parse", "--show-prefix")
	if err != nil {
		return "", fmt.Errorf("find %s in its git repository: %w", name, err)
	}
	inside := path.Join(prefix, filepath.ToSlash(base))
	object := commit + ":" + inside
	if inside == "." {
		object = commit + "^{tree}"
	}
	if _, err := git(ctx, folder, "cat-file", "-e", object); err != nil {
		return "", nil //nolint:nilerr // it did not exist, which is an answer
	}
	archive := exec.CommandContext(ctx, "git", "-C", folder, "archive", "--format=tar", commit, "--", base)
	var complaint bytes.Buffer
	archive.Stderr = &complaint
	files, err := archive.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := archive.Start(); err != nil {
		return "", fmt.Errorf("run git: %w", err)
	}
	unpacked := unpack(files, into)
	_, drained := io.Copy(io.Discard, files)
	if err := archive.Wait(); err != nil {
		return "", fmt.Errorf("read %s at %s: %w: %s", name, revision, err, strings.TrimSpace(complaint.String()))
	}
	if err := errors.Join(unpacked, drained); err != nil {
		return "", fmt.Errorf("read %s at %s: %w", name, revision, err)
	}
	return filepath.Join(into, base), nil
}

// git returns what a git command prints.
func git(ctx context.Context, folder string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", folder}, args...)...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return "", errors.New(strings.TrimSpace(string(exit.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}

// unpack writes the files of an archive below into.
func unpack(archive io.Reader, into string) error {
	root, err := os.OpenRoot(into)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for r := tar.NewReader(archive); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if err := root.MkdirAll(path.Dir(header.Name), 0o755); err != nil {
			return err
		}
		file, err := root.OpenFile(header.Name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		_, err = io.CopyN(file, r, header.Size)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
}
