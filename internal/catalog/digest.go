package catalog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/image"
)

// ErrNoDigest is Digest's where refs are more than file-based catalogs on disk.
var ErrNoDigest = errors.New("no digest of what is not a file-based catalog on disk")

// Digest is of all that Load reads of refs.
type Digest struct {
	Content [sha256.Size]byte
	files   []hashed
	refs    []string
}

// hashed is a file of a catalog as it was when it was hashed.
type hashed struct {
	Ref, Name string
	Size      int64
	modified  time.Time
	file      string
}

// chunk is how much of a file is hashed at a time, so that all processors share in a large one.
const chunk = 4 << 20

// Digest returns the digest of the files that Load reads of refs. The error is ErrNoDigest, or what Load would say, too.
func (l Loader) Digest(ctx context.Context, refs ...string) (*Digest, error) {
	files, err := l.hashable(refs)
	if err != nil {
		return nil, err
	}
	sums := make([][][sha256.Size]byte, len(files))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, f := range files {
		sums[i] = make([][sha256.Size]byte, (f.Size+chunk-1)/chunk)
		for j := range sums[i] {
			group.Go(func() error {
				err := ctx.Err()
				if err == nil {
					sums[i][j], err = sumOf(f.file, int64(j)*chunk, min(chunk, f.Size-int64(j)*chunk))
				}
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	all, err := json.Marshal(struct {
		Files []hashed
		Sums  [][][sha256.Size]byte
	}{files, sums})
	if err != nil {
		return nil, err
	}
	return &Digest{sha256.Sum256(all), files, refs}, nil
}

// Stands reports whether the files look as they did when they were hashed.
func (l Loader) Stands(d *Digest) bool {
	files, err := l.hashable(d.refs)
	if err != nil || len(files) != len(d.files) {
		return false
	}
	for i, f := range files {
		if f != d.files[i] {
			return false
		}
	}
	return true
}

// hashable returns the files of refs.
func (l Loader) hashable(refs []string) ([]hashed, error) {
	var list []hashed
	add := func(ref, name, file string) error {
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() || l.MaxFile.Check(file, info) != nil {
			return ErrNoDigest
		}
		list = append(list, hashed{ref, name, info.Size(), info.ModTime(), file})
		return nil
	}
	for _, ref := range refs {
		if ref == "-" || image.Is(ref) {
			return nil, ErrNoDigest
		}
		info, err := os.Stat(ref)
		switch {
		case err != nil:
			return nil, err
		case !info.IsDir():
			err = add(ref, "", ref)
		case bundle.Is(ref):
			err = ErrNoDigest
		default:
			var files []string
			if files, err = Files(document.Dir(ref)); err == nil {
				for _, file := range files {
					err = cmp.Or(err, add(ref, file, filepath.Join(ref, filepath.FromSlash(file))))
				}
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// sumOf returns the digest of size bytes of a file.
func sumOf(file string, from, size int64) (sum [sha256.Size]byte, err error) {
	f, err := os.Open(file)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	digest := sha256.New()
	if n, err := io.Copy(digest, io.NewSectionReader(f, from, size)); err != nil || n != size {
		return sum, cmp.Or(err, fmt.Errorf("%s changes while it is read", file))
	}
	return [sha256.Size]byte(digest.Sum(nil)), nil
}
