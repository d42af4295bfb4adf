package observe

import (
	"context"
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
	// recentLimit is how long a list is used again at most, whatever its watch tells.
	recentLimit = time.Second
	// watchPause is the time until a watch that ended is begun anew.
	watchPause = 500 * time.Millisecond
)

// recent keeps lists until a watch tells that something is another: who waits for a change looks many times, and must not be the load
// under which the cluster slows down. A nil recent keeps nothing. It is safe for concurrent use.
type recent struct {
	watch func(place) (watch.Interface, error) // until the walk ends
	ended <-chan struct{}                      // closed when the walk ends

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
	live    bool // a watch is under way
	changes int  // that it told, its own beginnings and ends among them
	items   []unstructured.Unstructured
	listed  time.Time // zero if items are not to be used
	after   int       // so many changes had been told when items were asked for
}

// newRecent returns a recent that watches by client until ctx is done.
func newRecent(ctx context.Context, client dynamic.Interface) *recent {
	return &recent{
		watch: func(at place) (watch.Interface, error) {
			return client.Resource(at.GroupVersionResource).Namespace(at.namespace).Watch(ctx, metav1.ListOptions{})
		},
		ended: ctx.Done(), lists: map[place]*recentList{},
	}
}

// list returns what is at a place, which callers must not change: as it was listed last if no change was told since, or else as ask
// lists it.
func (r *recent) list(at place, ask func() ([]unstructured.Unstructured, error)) ([]unstructured.Unstructured, error) {
	if r == nil {
		return ask()
	}
	l := r.at(at)
	if items, known := l.known(); known {
		return items, nil
	}
	return l.ask(ask)
}

// at returns the list of a place, which is watched from now on.
func (r *recent) at(at place) *recentList {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.lists[at]
	if l == nil {
		l = &recentList{}
		r.lists[at] = l
		go r.follow(at, l)
	}
	return l
}

// follow watches a place until the walk ends. Who may list but not watch has it listed every time.
func (r *recent) follow(at place, l *recentList) {
	for {
		w, err := r.watch(at)
		switch {
		case err == nil:
			l.tell(true)
			for range w.ResultChan() {
				l.tell(true)
			}
			w.Stop()
			l.tell(false)
		case apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err):
			return
		}
		select {
		case <-r.ended:
			return
		case <-time.After(watchPause):
		}
	}
}

func (l *recentList) tell(live bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.live = live
	l.changes++
}

// known returns the items if they are still what the cluster has.
func (l *recentList) known() ([]unstructured.Unstructured, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.items, l.live && !l.listed.IsZero() && l.after == l.changes && time.Since(l.listed) < recentLimit
}

// ask has the items listed, and keeps them.
func (l *recentList) ask(ask func() ([]unstructured.Unstructured, error)) ([]unstructured.Unstructured, error) {
	l.mu.Lock()
	after := l.changes
	l.mu.Unlock()
	began := time.Now()
	items, err := ask()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !began.Before(l.listed) {
		l.items, l.listed, l.after = items, began, after
	}
	return items, nil
}
