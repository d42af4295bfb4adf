package embedded

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/olmkit/olmkit/internal/cache"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/image"
	"github.com/olmkit/olmkit/internal/progress"
)

// get pulls or builds the set unless the cache has it, and returns its folder.
func (s *componentSet) get(ctx context.Context, from Source, p *progress.Printer) (string, error) {
	cache, err := cache.Folder()
	if err != nil {
		return "", err
	}
	dir, err := s.ensure(ctx, cache, from, p)
	if err != nil {
		return "", fmt.Errorf("get %s: %w", s.says, err)
	}
	return dir, nil
}

// ensure returns the folder that holds the set: of the cache, or else pulled, or else built. Why it was not pulled is said, since
// to build it takes minutes.
func (s *componentSet) ensure(ctx context.Context, cache string, from Source, p *progress.Printer) (string, error) {
	ref := from.reference()
	if ref == "" {
		return s.ensureBuilt(ctx, cache, p)
	}
	dir := s.content(cache, runtime.GOARCH) + "-" + pulledFrom(ref)
	if s.check(dir) == nil {
		return dir, nil
	}
	if goVersion, err := goCommand(ctx, "", "env", "GOVERSION"); err == nil {
		if built := s.content(cache, runtime.GOARCH) + "-" + string(goVersion); s.check(built) == nil {
			return built, nil
		}
	}
	unlock, there, err := s.claim(ctx, cache, dir, "pulled", p)
	if err != nil {
		return "", err
	}
	defer unlock()
	if there {
		return dir, nil
	}
	step := p.Start("pulling %s from %s", s.says, ref)
	err = replace(dir, func(_, out string) error { return s.pull(ctx, ref, from.Images, out) })
	switch {
	case err == nil:
		return dir, step.End(nil)
	case ctx.Err() != nil || ofDisk(err) || image.IsWrongReference(err):
		return "", step.End(advisePull(err, cache))
	}
	step.End(err) //nolint:errcheck // it is told below, or returned
	return s.instead(ctx, cache, ref, err, p)
}

// instead builds the set that could not be pulled from ref.
func (s *componentSet) instead(ctx context.Context, cache, ref string, why error, p *progress.Printer) (string, error) {
	if _, err := exec.LookPath("go"); err == nil {
		p.Say("%s: %s cannot be pulled, and so it is built from source, which takes %s on two cores", why, s.says, s.takes)
		return s.ensureBuilt(ctx, cache, p)
	}
	dir, err := s.ensureBuilt(ctx, cache, p) // the cache may have what another version of Go built
	if err != nil {
		err = hint.With(fmt.Errorf("%w; to build %s from source, %w", why, s.says, errNoGo),
			"make %s reachable, or name a mirror, or an archive of the release, with --components or %s, or install Go (https://go.dev/dl), or %s", ref, ComponentsVariable, s.alternative())
	}
	return dir, err
}

// pulledFrom names in the cache what is pulled from ref: by its digest, wherever it comes from, or else by all of it.
func pulledFrom(ref string) string {
	if _, digest, ok := strings.Cut(ref, "@sha256:"); ok && len(digest) >= 16 {
		return "pulled-" + digest[:16]
	}
	return fmt.Sprintf("pulled-%x", sha256.Sum256([]byte(ref)))[:len("pulled-")+16]
}

// pull unpacks the set for this machine out of the index ref to out, and holds it to the digests of what was built.
func (s *componentSet) pull(ctx context.Context, ref string, images image.Client, out string) error {
	if err := images.Folder(ctx, ref, s.key(runtime.GOARCH), out); err != nil {
		return err
	}
	recorded, err := s.recorded(out)
	if err != nil {
		return err
	}
	return s.compare(out, recorded)
}

// ofDisk reports whether err is of a disk that takes no more.
func ofDisk(err error) bool {
	return slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO}, func(e error) bool { return errors.Is(err, e) })
}

// advisePull says what to do about an error that the cache folder met while components were unpacked.
func advisePull(err error, cache string) error {
	if !ofDisk(err) {
		return err
	}
	return hint.With(err, "free some space (the components take 0.3 GB in %s, and as much while they are unpacked), or set OLMKIT_CACHE to a folder that has room", filepath.Clean(cache))
}
