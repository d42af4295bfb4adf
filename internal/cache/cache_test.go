package cache

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

func texts(n int) []Part {
	return []Part{{Label: "first", Data: bytes.Repeat([]byte{byte(n)}, 1000)}, {Label: "second", Data: []byte("two")}}
}

// holds reports whether e is there and says what texts(n) does.
func holds(e *Entry, n int) bool {
	if e == nil || e.Len() != 2 {
		return false
	}
	for i, want := range texts(n) {
		var label string
		data, err := e.Read(i)
		if err != nil || e.Label(i, &label) != nil || label != want.Label || !bytes.Equal(data, want.Data) {
			return false
		}
	}
	return true
}

func TestKeys(t *testing.T) {
	keys := map[Key]string{}
	for _, parts := range [][]string{{"v1", "a", "b"}, {"v2", "a", "b"}, {"v1", "ab"}, {"v1", "a", "", "b"}, {"v1a", "b"}, {"v1"}} {
		var data [][]byte
		for _, p := range parts[1:] {
			data = append(data, []byte(p))
		}
		key := KeyOf(parts[0], data...)
		if other, ok := keys[key]; ok {
			t.Errorf("%q has the key of %s", parts, other)
		}
		keys[key] = fmt.Sprint(parts)
	}
}

func TestPutGet(t *testing.T) {
	c := New(filepath.Join(t.TempDir(), "not", "there", "yet"))
	key := KeyOf("v1", []byte("content"))
	if c.Get(key) != nil {
		t.Error("an empty cache holds something")
	}
	if !holds(c.Put(key, texts(1)...), 1) || !holds(c.Get(key), 1) {
		t.Error("what was put is not there")
	}
	if c.Get(KeyOf("v2", []byte("content"))) != nil {
		t.Error("another version's entry is taken")
	}
	if !holds(c.Put(key, texts(2)...), 2) || !holds(c.Get(key), 2) {
		t.Error("what was put again is not there")
	}
}

func TestDamaged(t *testing.T) {
	key := KeyOf("v1", []byte("content"))
	c := New(t.TempDir())
	c.Put(key, texts(1)...)
	file := c.file(key)
	sound, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for at := range sound {
		damaged := bytes.Clone(sound)
		damaged[at] ^= 0x10
		for name, content := range map[string][]byte{"changed": damaged, "cut": sound[:at]} {
			if err := os.WriteFile(file, content, 0o644); err != nil {
				t.Fatal(err)
			}
			if e := c.Get(key); holds(e, 1) {
				t.Fatalf("an entry %s at %d is taken for sound", name, at)
			} else if e != nil {
				_, first := e.Read(0)
				_, second := e.Read(1)
				if first == nil && second == nil {
					t.Fatalf("an entry %s at %d is read", name, at)
				}
			}
		}
	}
	if !holds(c.Put(key, texts(1)...), 1) || !holds(c.Get(key), 1) {
		t.Error("a damaged entry is not written anew")
	}
}

// What others wrote there, with a sum that fits, is no entry either where its parts cannot be.
func TestImpossibleSizes(t *testing.T) {
	key := KeyOf("v1", []byte("content"))
	c := New(t.TempDir())
	c.Put(key, texts(1)...)
	for _, sizes := range [][]int64{{-1, 5}, {5, -1}, {math.MaxInt64, math.MinInt64 + 5}, {5, 0}} {
		head := fmt.Appendf(nil, "[{\"size\": %d}, {\"size\": %d}]\n", sizes[0], sizes[1])
		content := fmt.Appendf(nil, "%08x %sfour", crc32.Checksum(head, table), head)
		if err := os.WriteFile(c.file(key), content, 0o600); err != nil {
			t.Fatal(err)
		}
		if c.Get(key) != nil {
			t.Errorf("parts of %d bytes are taken for sound", sizes)
		}
	}
}

func TestTakes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	if !New(dir).Takes() {
		t.Error("a cache whose folder can be made takes nothing")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("it left %v, %v", entries, err)
	}
}

func TestUnwritable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Cache{nil, New(file), New(filepath.Join(file, "below"))} {
		if c.Put(Key{}, texts(1)...) != nil || c.Get(Key{}) != nil {
			t.Error("a cache that cannot be written holds something")
		}
		if c.Takes() {
			t.Error("a cache that cannot be written takes something")
		}
		c.Trim(0)
	}
}

// TestShared has writers, readers and one who deletes everything meet on the same entries: whatever is found is sound.
func TestShared(t *testing.T) {
	dir := t.TempDir()
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			c := New(dir)
			for i := range 200 {
				n := i % 5
				key := KeyOf("v1", []byte{byte(n)})
				switch e := c.Get(key); {
				case worker == 3 && i%20 == 0:
					_ = os.RemoveAll(dir)
				case worker == 2 && i%20 == 0:
					c.Trim(2000)
				case e == nil:
					c.Put(key, texts(n)...)
				default:
					for part, want := range texts(n) {
						if data, err := e.Read(part); err == nil && !bytes.Equal(data, want.Data) {
							t.Errorf("part %d of %d is another's", part, n)
						}
					}
				}
			}
		})
	}
	group.Wait()
}

func TestTrim(t *testing.T) {
	c := New(t.TempDir())
	key := func(n int) Key { return KeyOf("v1", []byte{byte(n)}) }
	for n := range 4 {
		c.Put(key(n), texts(n)...)
		used := time.Now().Add(-time.Duration(10-n) * 24 * time.Hour)
		if err := os.Chtimes(c.file(key(n)), used, used); err != nil {
			t.Fatal(err)
		}
	}
	begun := filepath.Join(filepath.Dir(c.file(key(3))), fresh+"1")
	if err := os.WriteFile(begun, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(begun, time.Now(), time.Now().Add(-2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if !holds(c.Get(key(0)), 0) { // and is in use by that
		t.Fatal("an old entry is gone before Trim")
	}
	info, err := os.Stat(c.file(key(0)))
	if err != nil {
		t.Fatal(err)
	}
	c.Trim(2*info.Size() + 1)
	for n, want := range []bool{true, false, false, true} {
		if got := holds(c.Get(key(n)), n); got != want {
			t.Errorf("entry %d is there: %v, want %v", n, got, want)
		}
	}
	if _, err := os.Stat(begun); err == nil {
		t.Error("what was begun long ago is still there")
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("OLMKIT_CACHE", dir)
	if c := Open("documents"); c == nil || c.dir != filepath.Join(dir, "documents") {
		t.Errorf("OLMKIT_CACHE does not move the cache: %v", c)
	}
	t.Setenv("OLMKIT_CACHE", "off")
	if Open("documents") != nil {
		t.Error("OLMKIT_CACHE=off does not switch it off")
	}
}

// TestTemporary: a temporary cache holds what is put there until it is removed, and is gone then for good, whoever is still about to
// put something there.
func TestTemporary(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	c, remove, err := NewTemporary()
	if err != nil {
		t.Fatal(err)
	}
	if e := c.Put(KeyOf("test"), Part{Data: []byte("kept")}); e == nil || c.Get(KeyOf("test")) == nil {
		t.Error("it does not keep what is put there")
	}
	var began, done sync.WaitGroup
	for i := range 4 {
		began.Add(1)
		done.Go(func() {
			began.Done()
			for n := range 200 {
				c.Put(KeyOf("test", []byte{byte(i), byte(n)}), Part{Data: []byte("late")})
			}
		})
	}
	began.Wait()
	remove()
	done.Wait()
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// What is no file is no entry, and is not waited for.
func TestNoFile(t *testing.T) {
	key := KeyOf("v1", []byte("content"))
	c := New(t.TempDir())
	for name, put := range map[string]func(file string) error{
		"a FIFO": func(file string) error { return syscall.Mkfifo(file, 0o600) }, "a link": func(file string) error { return os.Symlink("/dev/zero", file) },
	} {
		file := c.file(key)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), put(file)); err != nil {
			t.Fatal(err)
		}
		if e := c.Get(key); e != nil {
			t.Errorf("%s is an entry", name)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}
