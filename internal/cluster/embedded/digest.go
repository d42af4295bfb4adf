package embedded

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// files are the set's programs and documents, by their paths in the folder.
func (s *componentSet) files() []string {
	files := make([]string, len(s.programs))
	for i, p := range s.programs {
		files[i] = p.file
	}
	return append(files, slices.Sorted(maps.Keys(s.documents))...)
}

// digestsFile holds the SHA-256 digests of the components as they were built, by path.
const digestsFile = "sha256.json"

// damagedError is of components that are not what was built.
type damagedError struct{ error }

func (e damagedError) Unwrap() error { return e.error }

// check returns an error unless the components in dir are there and are what was built. To digest them takes
// longer than to start them, so what was good is noted beside dir with what stat says of the files: what writes to one of them
// changes at least its time of change, which nobody sets. That finds damage, and not somebody who may write to the cache and
// wants to deceive: who can do that can as well put other digests there.
func (s *componentSet) check(dir string) error {
	recorded, err := os.ReadFile(filepath.Join(dir, digestsFile))
	if err != nil {
		return err
	}
	before, err := s.stateOf(dir, recorded)
	if err != nil {
		return err
	}
	noted := dir + ".checked"
	if known, err := os.ReadFile(noted); err == nil && string(known) == before {
		return nil
	}
	want, err := s.recorded(dir)
	if err != nil {
		return err
	}
	if err := s.compare(dir, want); err != nil {
		return err
	}
	_ = os.WriteFile(noted, []byte(before), 0o644) // in a cache that cannot be written they are digested each time
	return nil
}

// recorded returns the digests of the components in dir as they were built, by path.
func (s *componentSet) recorded(dir string) (map[string]string, error) {
	data, err := os.ReadFile(filepath.Join(dir, digestsFile))
	if err != nil {
		return nil, err
	}
	want := map[string]string{}
	if err := json.Unmarshal(data, &want); err != nil {
		return nil, damagedError{fmt.Errorf("%s: %w", filepath.Join(dir, digestsFile), err)}
	}
	return want, nil
}

// compare returns an error unless the components in dir have these digests.
func (s *componentSet) compare(dir string, want map[string]string) error {
	got, err := s.digest(dir)
	if err != nil {
		return err
	}
	for _, file := range s.files() {
		if got[file] != want[file] {
			return damagedError{fmt.Errorf("%s is damaged: its SHA-256 digest is %s, and was %q when it was built", filepath.Join(dir, file), got[file], want[file])}
		}
	}
	return nil
}

// recordDigests writes the digests of the components in dir.
func (s *componentSet) recordDigests(dir string) error {
	digests, err := s.digest(dir)
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(digests, "", "  ")
	if err != nil {
		return err
	}
	fresh := filepath.Join(dir, digestsFile+".new")
	if err := os.WriteFile(fresh, append(data, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(fresh, filepath.Join(dir, digestsFile))
}

// stateOf says in a text what would change if a component did.
func (s *componentSet) stateOf(dir string, recorded []byte) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%x\n", sha256.Sum256(recorded))
	for _, file := range s.files() {
		var st unix.Stat_t
		if err := unix.Stat(filepath.Join(dir, file), &st); err != nil {
			return "", &fs.PathError{Op: "stat", Path: filepath.Join(dir, file), Err: err}
		}
		fmt.Fprintf(&b, "%s %d %d %d %d.%d %d.%d\n", file, st.Dev, st.Ino, st.Size, st.Mtim.Sec, st.Mtim.Nsec, st.Ctim.Sec, st.Ctim.Nsec)
	}
	return b.String(), nil
}

// digest returns the digests of the components in dir, by path.
func (s *componentSet) digest(dir string) (map[string]string, error) {
	files := s.files()
	sums := make([]string, len(files))
	var group errgroup.Group
	for i, file := range files {
		group.Go(func() error {
			f, err := os.Open(filepath.Join(dir, file))
			if err != nil {
				return err
			}
			defer f.Close()
			digest := sha256.New()
			if _, err := io.Copy(digest, f); err != nil {
				return err
			}
			sums[i] = hex.EncodeToString(digest.Sum(nil))
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	digests := map[string]string{}
	for i, file := range files {
		digests[file] = sums[i]
	}
	return digests, nil
}
