package observe

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

const (
	// recentLimit is how long a list is used again at most without a word of its watch.
	recentLimit = 5 * time.Second
	// watchPause is how long no other watch is begun after one.
	watchPause = 500 * time.Millisecond
)

// recent keeps lists, and what watches tell of them: who waits for a change looks many times, and must not be the load
// under which the cluster slows down. A nil recent keeps nothing. It is safe for concurrent use.
type recent struct {
	watch func(at place, version string) (watch.Interface, error) // of what came after version, until the walk ends

	mu    sync.Mutex
	lists map[place]*recentList
}

// place is what a list is of.
type place struct {
	schema.GroupVersionResource
	namespace string // "" for all
}

// recentList is a list, and what its watch told.
type recentList struct {
	mu      sync.Mutex
	items   []unstructured.Unstructured // sorted; others have them, so they are never changed in place
	version uint64                      // of the list, or of what the watch told last
	seen    time.Time                   // when they were asked for, or the watch told last
	watched bool                        // a watch is under way, of all that comes after a list
	began   time.Time                   // the last watch; zero for none
	refused bool                        // there is no right to watch: it is listed every time
}

// newRecent returns a recent that watches by client until ctx is done.
func newRecent(ctx context.Context, client dynamic.Interface) *recent {
	return &recent{
		watch: func(at place, version string) (watch.Interface, error) {
			return client.Resource(at.GroupVersionResource).Namespace(at.namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: version})
		},
		lists: map[place]*recentList{},
	}
}

// list returns what is at a place, which callers must not change: as it was listed last with what a watch told since, or else as ask
// lists it.
func (r *recent) list(at place, ask func() (*unstructured.UnstructuredList, error)) ([]unstructured.Unstructured, error) {
	if r == nil {
		list, err := ask()
		if err != nil {
			return nil, err
		}
		return list.Items, nil
	}
	l := r.at(at)
	if items, known := l.known(); known {
		return items, nil
	}
	began := time.Now()
	list, err := ask()
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b unstructured.Unstructured) int { return compareNames(a, &b) })
	if l.keep(list, began) {
		go r.follow(at, l, list.GetResourceVersion())
	}
	return list.Items, nil
}

// compareNames is the order of objects of one kind.
func compareNames(a unstructured.Unstructured, b *unstructured.Unstructured) int {
	return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}

func (r *recent) at(at place) *recentList {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lists[at] == nil {
		r.lists[at] = &recentList{}
	}
	return r.lists[at]
}

// follow watches a place, where version was listed, as long as the API server lets it.
func (r *recent) follow(at place, l *recentList, version string) {
	w, err := r.watch(at, version)
	if err == nil {
		for e := range w.ResultChan() {
			o, ok := e.Object.(*unstructured.Unstructured)
			if !ok || e.Type == watch.Error {
				break
			}
			l.tell(e.Type, o)
		}
		w.Stop()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watched, l.refused = false, apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err)
}

// tell notes what a watch tells of o. What a list that was asked for later had already is no news.
func (l *recentList) tell(what watch.EventType, o *unstructured.Unstructured) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = time.Now()
	version, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err == nil && version <= l.version {
		return
	}
	l.version = version
	i, there := slices.BinarySearchFunc(l.items, o, compareNames)
	after := i
	if there {
		after++
	}
	var is []unstructured.Unstructured
	if what != watch.Deleted {
		is = []unstructured.Unstructured{*o}
	}
	l.items = slices.Concat(l.items[:i], is, l.items[after:])
}

// known returns the items if they are what the cluster has.
func (l *recentList) known() ([]unstructured.Unstructured, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.items, l.watched && time.Since(l.seen) < recentLimit
}

// keep keeps a list that was asked for at began, unless it was asked for again or the watch told of more since, and reports whether a watch
// is to begin of all that comes after it.
func (l *recentList) keep(list *unstructured.UnstructuredList, began time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if began.Before(l.seen) {
		return false
	}
	l.items, l.seen = list.Items, began
	l.version, _ = strconv.ParseUint(list.GetResourceVersion(), 10, 64)
	if l.watched || l.refused || !l.began.IsZero() && time.Since(l.began) < watchPause {
		return false
	}
	l.watched, l.began = true, time.Now()
	return true
}
