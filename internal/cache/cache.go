// Package cache keeps on disk what was made from some content, under the digest of that content. An entry is all there and
// sound, or not there: files are written beside their name and renamed, and what does not fit its checksum is passed over.
// So processes share a cache without locks, and it can be deleted at any moment. It holds nothing that could not be made
// again, and an error of the disk is no error of its user's.
package cache

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/olmkit/olmkit/internal/hint"
)

// MaxSize is how many bytes Trim leaves.
const MaxSize = 2 << 30

// Variable of the environment that names the folder of all that olmkit keeps. Off means that nothing is kept that can be
// done without.
const (
	Variable = "OLMKIT_CACHE"
	off      = "off"
)

// Folder is where olmkit keeps what it made: $OLMKIT_CACHE, or olmkit in the user's cache folder, also with off.
func Folder() (string, error) {
	if dir := os.Getenv(Variable); dir != "" && dir != off {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", hint.With(fmt.Errorf("find the cache folder: %w", err), "set %s to a folder", Variable)
	}
	return filepath.Join(dir, "olmkit"), nil
}

// Cache is a folder of entries. A nil Cache is always empty.
type Cache struct {
	dir     string
	putting sync.RWMutex // held for reading while something is put, and for writing while all is removed
	removed bool
}

// Open returns the user's cache of that name below Folder; nil where there is none, or the variable says off.
func Open(name string) *Cache {
	dir, err := Folder()
	if err != nil || os.Getenv(Variable) == off {
		return nil
	}
	return New(filepath.Join(dir, name))
}

// New returns the cache in dir, which need not exist.
func New(dir string) *Cache { return &Cache{dir: dir} }

// NewTemporary returns a cache in a new folder, and what removes that: what is put there afterwards, by something that nobody waits
// for any more, is not kept.
func NewTemporary() (*Cache, func(), error) {
	dir, err := os.MkdirTemp("", "olmkit-cache-")
	if err != nil {
		return nil, nil, fmt.Errorf("make a temporary folder: %w", err)
	}
	c := New(dir)
	return c, func() {
		c.putting.Lock()
		defer c.putting.Unlock()
		c.removed = true
		_ = os.RemoveAll(dir)
	}, nil
}

// Key is the digest of what an entry was made from.
type Key [sha256.Size]byte

// KeyOf returns the key of what is made from parts by the code that maker names; another maker, or the same parts split
// otherwise, give another key.
func KeyOf(maker string, parts ...[]byte) Key {
	digest := sha256.New()
	add := func(part []byte) {
		digest.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		digest.Write(part)
	}
	add([]byte(maker))
	for _, part := range parts {
		add(part)
	}
	return Key(digest.Sum(nil))
}

// KeyOfStream returns the key of what is made from all that part reads, which is not held in memory; KeyOf never gives it.
func KeyOfStream(maker string, part io.Reader) (Key, error) {
	digest := sha256.New()
	digest.Write(binary.BigEndian.AppendUint64(nil, uint64(len(maker))))
	digest.Write([]byte(maker))
	if _, err := io.Copy(digest, part); err != nil {
		return Key{}, err
	}
	return Key(digest.Sum(nil)), nil
}

// Part is one of the texts of an entry, and what is to be known of it without reading it.
type Part struct {
	Label any // is kept as JSON
	Data  []byte
}

// Entry is where the parts of an entry stand.
type Entry struct {
	file  string
	parts []section
	held  *os.File
}

type section struct {
	Label json.RawMessage `json:"label"`
	Size  int64           `json:"size"`
	Sum   uint32          `json:"sum"`
	start int64
}

var table = crc32.MakeTable(crc32.Castagnoli)

func (c *Cache) file(key Key) string {
	name := hex.EncodeToString(key[:])
	return filepath.Join(c.dir, name[:2], name[2:])
}

// longestHead is how long the first line of an entry is at most, which lists its parts.
const longestHead = 64 << 20

// Get returns the entry of key, or nil.
func (c *Cache) Get(key Key) *Entry {
	if c == nil {
		return nil
	}
	e := &Entry{file: c.file(key)}
	f, err := os.OpenFile(e.file, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0) // it may be a link, or a FIFO that nobody writes to
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	head, err := bufio.NewReader(io.LimitReader(f, longestHead)).ReadBytes('\n')
	if err != nil || len(head) < 9 || fmt.Sprintf("%08x ", crc32.Checksum(head[9:], table)) != string(head[:9]) || json.Unmarshal(head[9:], &e.parts) != nil {
		return nil
	}
	at := int64(len(head))
	for i, p := range e.parts {
		if p.Size < 0 || p.Size > info.Size()-at {
			return nil
		}
		e.parts[i].start = at
		at += p.Size
	}
	if at != info.Size() {
		return nil
	}
	if now := time.Now(); now.Sub(info.ModTime()) > time.Hour {
		_ = os.Chtimes(e.file, now, now) // so that Trim knows what is in use
	}
	return e
}

// Takes reports whether something can be put there.
func (c *Cache) Takes() bool {
	if c == nil || os.MkdirAll(c.dir, 0o755) != nil {
		return false
	}
	f, err := os.CreateTemp(c.dir, fresh+"*")
	if err != nil {
		return false
	}
	_, written := f.WriteString("\n") // a full disk has room for a name
	return errors.Join(written, f.Close(), os.Remove(f.Name())) == nil
}

// Put keeps parts under key and returns their entry, or nil where they could not be kept.
func (c *Cache) Put(key Key, parts ...Part) *Entry {
	if c == nil {
		return nil
	}
	c.putting.RLock()
	defer c.putting.RUnlock()
	if c.removed {
		return nil
	}
	e := &Entry{file: c.file(key)}
	for _, p := range parts {
		label, err := json.Marshal(p.Label)
		if err != nil {
			return nil
		}
		e.parts = append(e.parts, section{Label: label, Size: int64(len(p.Data)), Sum: crc32.Checksum(p.Data, table)})
	}
	head, err := json.Marshal(e.parts)
	if err != nil {
		return nil
	}
	head = append(head, '\n')
	at := int64(9 + len(head))
	for i := range e.parts {
		e.parts[i].start = at
		at += e.parts[i].Size
	}
	if err := os.MkdirAll(filepath.Dir(e.file), 0o755); err != nil {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(e.file), fresh+"*")
	if err != nil {
		return nil
	}
	_, err = fmt.Fprintf(f, "%08x %s", crc32.Checksum(head, table), head)
	for _, p := range parts {
		if err == nil {
			_, err = f.Write(p.Data)
		}
	}
	if closed := f.Close(); err != nil || closed != nil || os.Chmod(f.Name(), 0o644) != nil || os.Rename(f.Name(), e.file) != nil {
		_ = os.Remove(f.Name())
		return nil
	}
	return e
}

// fresh begins the names of files that are being written.
const fresh = ".new-"

// Len returns how many parts the entry has.
func (e *Entry) Len() int { return len(e.parts) }

// Label reads what was said of part i into v.
func (e *Entry) Label(i int, v any) error { return json.Unmarshal(e.parts[i].Label, v) }

// Hold keeps the entry readable for as long as it is referred to, also when it is removed from the cache.
func (e *Entry) Hold() (err error) {
	e.held, err = os.Open(e.file)
	return err
}

// GetJSON reads into value what an entry that has one part says, and reports whether it is there.
func (c *Cache) GetJSON(key Key, value any) bool {
	e := c.Get(key)
	if e == nil || e.Len() != 1 {
		return false
	}
	raw, err := e.Read(0)
	return err == nil && json.Unmarshal(raw, value) == nil
}

// Read returns the data of part i, or an error if it is gone or damaged by now.
func (e *Entry) Read(i int) ([]byte, error) { return e.ReadInto(i, nil) }

// ReadInto is Read for who has room for the data, if they fit there.
func (e *Entry) ReadInto(i int, room []byte) ([]byte, error) {
	f := e.held
	if f == nil {
		var err error
		if f, err = os.Open(e.file); err != nil {
			return nil, err
		}
		defer f.Close()
	}
	data := slices.Grow(room[:0], int(e.parts[i].Size))[:e.parts[i].Size]
	if _, err := io.ReadFull(io.NewSectionReader(f, e.parts[i].start, e.parts[i].Size), data); err != nil {
		return nil, err
	}
	if crc32.Checksum(data, table) != e.parts[i].Sum {
		return nil, fmt.Errorf("%s is damaged", e.file)
	}
	return data, nil
}

// Trim removes the entries that were not used for longest until at most size bytes are left, and what interrupted
// processes began more than an hour ago.
func (c *Cache) Trim(size int64) {
	if c == nil {
		return
	}
	type file struct {
		name string
		size int64
		used time.Time
	}
	var files []file
	total := int64(0)
	_ = filepath.WalkDir(c.dir, func(name string, entry fs.DirEntry, unread error) error {
		if unread != nil || entry.IsDir() {
			return nil //nolint:nilerr // what is gone needs no trimming
		}
		info, unread := entry.Info()
		switch {
		case unread != nil:
		case strings.HasPrefix(entry.Name(), fresh):
			if time.Since(info.ModTime()) > time.Hour {
				_ = os.Remove(name)
			}
		default:
			files = append(files, file{name, info.Size(), info.ModTime()})
			total += info.Size()
		}
		return nil //nolint:nilerr // likewise
	})
	slices.SortFunc(files, func(a, b file) int { return a.used.Compare(b.used) })
	for _, f := range files {
		if total <= size {
			return
		}
		if os.Remove(f.name) == nil {
			total -= f.size
		}
	}
}
