package walk

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/olmkit/olmkit/internal/judge"
)

// entriesOf is what that says of a copy which is made for others, by its kind, namespace, name and path.
func (w *walk) entriesOf(ctx context.Context, o *newObject) (map[string]string, error) {
	others, err := w.madeForOthers(ctx, o)
	entries := map[string]string{}
	for name, made := range others {
		for path, value := range valuesByName(made.Content) {
			if o.meant(path) || o.meant(value) {
				entries[name+" "+path] = value
			}
		}
	}
	return entries, err
}

// saying names what has entries and is made for no copy, sorted.
func saying(entries map[string]string) (names []string) {
	for key := range entries {
		name, _, _ := strings.Cut(key, " ")
		kind, rest, _ := strings.Cut(name, "/")
		if name = rest[strings.LastIndex(rest, "/")+1:]; unnumbered(name) == name {
			names = append(names, kind+" "+name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// relayed names what has other entries in after than in before, sorted.
func relayed(before, after map[string]string) []string {
	differ := map[string]string{}
	for _, path := range otherPaths(before, after) {
		differ[path] = ""
	}
	return saying(differ)
}

// honoured names what says in after, in other lines than in before, the number that a change asks for, sorted.
func honoured(before, after map[string]string, wanted string) []string {
	says := maps.Clone(after)
	maps.DeleteFunc(says, func(path, value string) bool { return !comesToSay(before[path], value, wanted) })
	return saying(says)
}

// awaitRelayed notes what is made for others and says something else of a copy than before the change of field that is followed. What did under the release before is waited for.
func (w *walk) awaitRelayed(ctx context.Context, o *newObject, field string, was judge.New) error {
	f, limit := &o.following, time.Duration(0)
	if len(was.Relays[field]) > 0 {
		limit = was.Patience()
	}
	return lookUntil(ctx, limit, quickPause, func() (bool, error) {
		now, err := w.entriesOf(ctx, o)
		f.saying, f.relays[field] = union(f.saying, saying(now)), relayed(f.entries, now)
		return hasAll(f.relays[field], was.Relays[field]), err
	})
}

// noteEntries notes what is made for others and says of a copy, now that all is at rest. What did not come back with the field that was changed before, and did not follow
// that under the release before, may have become another by chance.
func (w *walk) noteEntries(ctx context.Context, o *newObject) error {
	f := &o.following
	now, err := w.entriesOf(ctx, o)
	if relays, followed := f.relays[f.field]; followed {
		stays := relayed(f.entries, now)
		f.relays[f.field] = slices.DeleteFunc(slices.Clone(relays), func(name string) bool {
			return slices.Contains(stays, name) && !slices.Contains(f.was.Relays[f.field], name)
		})
	}
	f.entries, f.saying = now, union(f.saying, saying(now))
	return err
}
