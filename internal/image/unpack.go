package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/olmkit/olmkit/internal/hint"
)

// limits bound what an archive or an image may cost to read.
type limits struct {
	entries int   // files, folders and links
	files   int   // files and links of what is unpacked
	read    int64 // bytes, decompressed, of everything
	kept    int64 // bytes of what is unpacked
	names   int64 // bytes of the names of files and links, which are held in memory
}

// defaultLimits leave room for the largest catalogs that are published, on their base images.
var defaultLimits = limits{entries: 2_000_000, files: maxFiles, read: 16 << 30, kept: 2 << 30, names: 256 << 20}

// maxFiles is how many files of an image are unpacked: many times what bundles and catalogs have.
const maxFiles = 50_000

// refused is an error of content that must not be unpacked, or is damaged: reading it again would not help.
type refused struct{ error }

func (r refused) Unwrap() error { return r.error }

func refuse(format string, args ...any) error { return refused{fmt.Errorf(format, args...)} }

// whiteout is how a layer says that a file of the layers below is gone
// (https://github.com/opencontainers/image-spec/blob/v1.1.1/layer.md#whiteouts).
const (
	whiteout = ".wh."
	opaque   = ".wh..wh..opq"
)

// unpacker gathers files from tar streams. What it takes stands under numbers in a folder until all streams are read, so
// that no name in them ever meets the file system before it is known to be good.
type unpacker struct {
	dir     string // of the numbered files
	left    limits
	most    int // files
	wants   func(name string) bool
	layered bool // streams are layers of an image
	files   map[string]unpacked
	streams int
	count   int
}

// unpacked is a file or, with a target, a link.
type unpacked struct {
	number, stream int
	size           int64
	executable     bool
	target         string // within the image
}

// maxPath is how long a path is that Linux takes. A longer one, of hundreds of thousands of folders, is of no image that was ever
// a file system.
const maxPath = 4096

// maxDepth is how many folders deep a path may be: what is done for each folder of each file has to stay little.
const maxDepth = 100

// cleanName returns an entry's name without leading slashes; "" for the root.
func cleanName(entry string) (string, error) {
	if len(entry) > maxPath {
		return "", refuse("the path %.60q… is %d bytes, longer than any path", entry, len(entry))
	}
	name := path.Clean(strings.TrimLeft(entry, "/"))
	if name == "." {
		return "", nil
	}
	if name == ".." || strings.HasPrefix(name, "../") || strings.ContainsRune(name, 0) {
		return "", outsideError{refuse("the entry %q leads out of the archive", entry)}
	}
	if n := strings.Count(name, "/"); n > maxDepth {
		return "", refuse("the path %.60q… is %d folders deep, and no image that olmkit reads is deeper than %d", entry, n, maxDepth)
	}
	return name, nil
}

// outsideError is of a path that leads out of the archive.
type outsideError struct{ error }

func (e outsideError) Unwrap() error { return e.error }

// counter fails once more has been read than is left.
type counter struct {
	r    io.Reader
	left *int64
}

func (c counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if *c.left -= int64(n); *c.left < 0 {
		return n, refuse("it unpacks to more than olmkit reads")
	}
	return n, err
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// until returns a reader of r that fails when ctx has ended.
func until(ctx context.Context, r io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(p)
	})
}

// add reads the next stream to its end.
func (u *unpacker) add(ctx context.Context, r io.Reader) error {
	u.streams++
	gone, hidden := map[string]bool{}, map[string]bool{}
	bounded := counter{until(ctx, r), &u.left.read}
	archive := tar.NewReader(bounded)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read tar: %w", err)
		}
		if u.left.entries--; u.left.entries < 0 {
			return refuse("it holds more files than olmkit reads")
		}
		if u.left.names -= int64(len(header.Name) + len(header.Linkname)); u.left.names < 0 {
			return refuse("the names of its files are longer than olmkit keeps")
		}
		name, err := cleanName(header.Name)
		if err != nil {
			return err
		}
		if name == "" {
			continue
		}
		dir, base := path.Split(name)
		switch {
		case u.layered && base == opaque:
			hidden[path.Clean(dir)] = true
		case u.layered && strings.HasPrefix(base, whiteout):
			gone[dir+strings.TrimPrefix(base, whiteout)] = true
		case u.wants(name):
			if err := u.take(archive, header, name); err != nil {
				return err
			}
		}
	}
	if err := u.drop(ctx, gone, hidden); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, bounded) // what follows the archive's end counts for the digest
	return err
}

// drop forgets what this stream says is gone from those below.
func (u *unpacker) drop(ctx context.Context, gone, hidden map[string]bool) error {
	if len(gone)+len(hidden) == 0 {
		return nil
	}
	for name, f := range u.files {
		if f.stream == u.streams {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		drop := gone[name]
		for dir := path.Dir(name); !drop && dir != "."; dir = path.Dir(dir) {
			drop = gone[dir] || hidden[dir]
		}
		if drop || hidden["."] {
			delete(u.files, name)
		}
	}
	return nil
}

func (u *unpacker) take(archive *tar.Reader, header *tar.Header, name string) error {
	switch header.Typeflag {
	case tar.TypeDir:
		return nil
	case tar.TypeReg, tar.TypeLink, tar.TypeSymlink:
		if u.left.files--; u.left.files < 0 {
			return refuse("it holds more than %d files to unpack; file %d is %q", u.most, u.most+1, header.Name)
		}
	}
	switch header.Typeflag {
	case tar.TypeReg:
	case tar.TypeLink, tar.TypeSymlink:
		target := header.Linkname
		if header.Typeflag == tar.TypeSymlink && !strings.HasPrefix(target, "/") {
			target = path.Join(path.Dir(name), target) //nolint:gosec // cleanName refuses what leads out
		}
		clean, err := cleanName(target)
		switch {
		case errors.As(err, &outsideError{}):
			return refuse("the link %q leads out of the archive, to %q", header.Name, header.Linkname)
		case err != nil:
			return err
		}
		u.files[name] = unpacked{stream: u.streams, target: clean}
		return nil
	default:
		return refuse("the entry %q is neither a file, a folder nor a link", header.Name)
	}
	if header.Size > u.left.kept {
		return refuse("it unpacks to more than olmkit keeps: the entry %q is %d bytes", header.Name, header.Size)
	}
	u.left.kept -= header.Size
	u.count++
	f, err := os.Create(filepath.Join(u.dir, strconv.Itoa(u.count)))
	if err != nil {
		return err
	}
	_, err = io.Copy(f, archive)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("unpack %s: %w", name, roomy(err))
	}
	u.files[name] = unpacked{number: u.count, stream: u.streams, size: header.Size, executable: header.Mode&0o111 != 0}
	return nil
}

// maxLinks is how many links may follow each other.
const maxLinks = 16

// tree puts the files where they belong below dir, which must not exist, under the names that place gives them.
func (u *unpacker) tree(ctx context.Context, dir string, place func(name string) string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	names := slices.Sorted(maps.Keys(u.files))
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		u.uncover(name)
	}
	for _, name := range names {
		f, ok := u.files[name]
		if !ok {
			continue
		}
		linked := f.target != ""
		for range maxLinks {
			if f.target == "" {
				break
			}
			next, ok := u.files[f.target]
			if !ok {
				return refuse("the link %q leads to %q, which is not there or is no file of the same folder", name, f.target)
			}
			f = next
		}
		if f.target != "" {
			return refuse("the link %q leads in circles", name)
		}
		if linked { // a small archive of links must not fill the disk
			if u.left.kept -= f.size; u.left.kept < 0 {
				return refuse("its links unpack to more than olmkit keeps")
			}
		}
		if err := u.copy(ctx, root, f, place(name)); err != nil {
			return fmt.Errorf("unpack %s: %w", name, roomy(err))
		}
	}
	return nil
}

// uncover forgets name where a file or link of the same or a later stream has taken the place of one of its folders, and
// otherwise what stood in the folder's place before.
func (u *unpacker) uncover(name string) {
	own := u.files[name]
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		above, ok := u.files[dir]
		if ok && above.stream >= own.stream {
			delete(u.files, name)
			return
		}
		delete(u.files, dir)
	}
}

func (u *unpacker) copy(ctx context.Context, root *os.Root, f unpacked, name string) (err error) {
	mode := os.FileMode(0o644)
	if f.executable {
		mode = 0o755
	}
	from, err := os.Open(filepath.Join(u.dir, strconv.Itoa(f.number)))
	if err != nil {
		return err
	}
	defer from.Close()
	if err := root.MkdirAll(filepath.FromSlash(path.Dir(name)), 0o755); err != nil {
		return err
	}
	to, err := root.OpenFile(filepath.FromSlash(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, until(ctx, from))
	return errors.Join(err, to.Close())
}

// below returns what the path name is below folder, and whether it is there at all.
func below(folder, name string) (string, bool) {
	if folder == "." {
		return name, true
	}
	return strings.CutPrefix(name, folder+"/")
}

const roomFix = "make room for temporary files, or set TMPDIR to where there is some"

// roomy tells of a full disk what can be done.
func roomy(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return hint.With(err, roomFix)
	}
	return err
}

// newUnpacker returns an unpacker with a temporary folder of its own, which its user removes.
func newUnpacker(left limits, layered bool, wants func(string) bool) (*unpacker, error) {
	return newUnpackerIn("", left, layered, wants)
}

// newUnpackerIn is newUnpacker with the temporary folder below room; "" is the system's.
func newUnpackerIn(room string, left limits, layered bool, wants func(string) bool) (*unpacker, error) {
	dir, err := os.MkdirTemp(room, "olmkit-image-")
	if err != nil {
		return nil, hint.With(fmt.Errorf("unpack: %w", err), roomFix)
	}
	return &unpacker{dir: dir, left: left, most: left.files, layered: layered, wants: wants, files: map[string]unpacked{}}, nil
}
