package catalog

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/cache"
	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/image"
)

// settled is how long before it was looked at a file must have changed for the last time: so much later its file system gives any other
// change another time. Git has the same rule for the files of its index.
const settled = 2 * time.Second

// renderedSet is where the cache keeps which of its entries the rendering of several directories is made of, under what the file system
// says of each of their files: sizes, inodes and times. Nobody can set the time of a file's last change, so that a file which changed, or
// another one in its place, is told from the one that was read. A nil set has nothing, and keeps nothing.
type renderedSet struct {
	cache *cache.Cache
	key   cache.Key
	sound bool // no file changed but now
}

// textAt is where the cache has a text.
type textAt struct {
	Key  []byte
	Part int
}

// set returns that of refs; nil where they are more than directories, or the file system does not tell enough.
func (r renderer) set(ctx context.Context, refs []string) *renderedSet {
	if r.Cache == nil {
		return nil
	}
	now := time.Now()
	stamps := make([][]byte, len(refs))
	sound := make([]bool, len(refs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, ref := range refs {
		group.Go(func() (err error) {
			if err = ctx.Err(); err == nil {
				stamps[i], sound[i], err = stampsOf(ref, now.Add(-settled))
			}
			return err
		})
	}
	if group.Wait() != nil {
		return nil // whatever it is, reading says it better
	}
	s := &renderedSet{cache: r.Cache, sound: true}
	parts := [][]byte{fmt.Append(nil, r.MaxFile)}
	for i, ref := range refs {
		parts = append(parts, []byte(ref), stamps[i])
		s.sound = s.sound && sound[i]
	}
	s.key = cache.KeyOf("set 1 of "+maker+r.format, parts...)
	return s
}

// stampsOf returns what the file system says of the files of a bundle directory or a catalog, and whether none changed after a time.
func stampsOf(ref string, after time.Time) (stamps []byte, sound bool, err error) {
	if ref == "-" || image.Is(ref) {
		return nil, false, ErrNoDigest
	}
	fsys, names := document.Dir(ref), []string(nil)
	if bundle.Is(ref) {
		names, err = bundle.FileNames(fsys, ref)
	} else {
		names, err = Files(fsys)
	}
	if err != nil {
		return nil, false, err
	}
	sound = true
	for _, name := range names {
		info, err := os.Stat(filepath.Join(ref, filepath.FromSlash(name)))
		if err != nil {
			return nil, false, err
		}
		numbers, changed, ok := stampOf(info)
		if !ok || !info.Mode().IsRegular() {
			return nil, false, ErrNoDigest
		}
		sound = sound && changed.Before(after) && info.ModTime().Before(after)
		stamps = append(append(stamps, name...), 0)
		for _, n := range numbers {
			stamps = binary.BigEndian.AppendUint64(stamps, n)
		}
	}
	return stamps, sound, nil
}

// get returns the entries of the set, nil if they are not all there. A text that is lost by the time that it is asked for is that of the
// entry which all returns.
func (s *renderedSet) get(all func() ([]renderEntry, error)) []renderEntry {
	if s == nil {
		return nil
	}
	var list []textAt
	if !s.cache.GetJSON(s.key, &list) {
		return nil
	}
	known := map[string]*cache.Entry{}
	again := sync.OnceValues(all)
	entries := make([]renderEntry, len(list))
	for i, at := range list {
		from := known[string(at.Key)]
		if from == nil && len(at.Key) == len(cache.Key{}) {
			from = s.cache.Get(cache.Key(at.Key))
			known[string(at.Key)] = from
		}
		if from == nil || at.Part < 0 || at.Part >= from.Len() {
			return nil
		}
		entries[i].text = func(room []byte) ([]byte, error) {
			if text, err := from.ReadInto(at.Part, room); err == nil {
				return text, nil
			}
			made, err := again()
			if err != nil {
				return nil, err
			}
			if len(made) != len(list) {
				return nil, hint.With(fmt.Errorf("read catalog: it changed while it was read"), "run it again while nothing changes")
			}
			return made[i].text(room)
		}
	}
	return entries
}

// put keeps of which texts in the cache the set is made.
func (s *renderedSet) put(entries []renderEntry) {
	if s == nil || !s.sound {
		return
	}
	list := make([]textAt, len(entries))
	for i, e := range entries {
		if !e.cached {
			return
		}
		list[i] = textAt{e.key[:], e.part}
	}
	if raw, err := json.Marshal(list); err == nil {
		s.cache.Put(s.key, cache.Part{Data: raw})
	}
}
