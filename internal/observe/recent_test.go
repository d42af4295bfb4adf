package observe

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

var pods = place{schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "n"}

// TestRecent lists only what may have changed: something was told, nobody tells, or the list is old.
func TestRecent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, told := make(chan struct{}), make(chan *watch.FakeWatcher, 1)
		r := &recent{ended: ended, lists: map[place]*recentList{}, watch: func(place) (watch.Interface, error) {
			select {
			case w := <-told:
				return w, nil
			default:
				return nil, errors.New("no connection")
			}
		}}
		defer close(ended)
		asked := 0
		look := func(want int, why string) {
			t.Helper()
			synctest.Wait()
			items, err := r.list(pods, func() ([]unstructured.Unstructured, error) {
				asked++
				return make([]unstructured.Unstructured, asked), nil
			})
			if err != nil || asked != want || len(items) != want {
				t.Fatalf("%s: asked %d times, %d items, %v; want %d", why, asked, len(items), err, want)
			}
		}
		look(1, "the first")
		look(2, "nobody watches yet")
		w := watch.NewFake()
		told <- w
		time.Sleep(watchPause)
		look(3, "it was listed before the watch began")
		look(3, "nothing changed")
		w.Modify(&unstructured.Unstructured{})
		look(4, "something changed")
		look(4, "nothing changed since")
		time.Sleep(recentLimit)
		look(5, "it is old")
		w.Stop()
		look(6, "the watch ended")
		look(7, "nobody watches")
		w = watch.NewFake()
		defer w.Stop()
		told <- w
		time.Sleep(watchPause)
		look(8, "nobody watched for a while")
		look(8, "the next watch tells of nothing")
	})
}

// TestRecentMeanwhile: what changes while it is listed is listed again, and an error is not kept.
func TestRecentMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, w := make(chan struct{}), watch.NewFake()
		r := &recent{ended: ended, lists: map[place]*recentList{}, watch: func(place) (watch.Interface, error) { return w, nil }}
		defer func() { close(ended); w.Stop(); synctest.Wait() }()
		r.at(pods)
		synctest.Wait()
		asked := 0
		for _, meanwhile := range []func() error{
			func() error { w.Add(&unstructured.Unstructured{}); return nil },
			func() error { return errors.New("the API server is away") },
			func() error { return nil },
		} {
			_, _ = r.list(pods, func() ([]unstructured.Unstructured, error) {
				asked++
				err := meanwhile()
				synctest.Wait()
				return nil, err
			})
		}
		_, _ = r.list(pods, func() ([]unstructured.Unstructured, error) { asked++; return nil, nil })
		if asked != 3 {
			t.Errorf("asked %d times, want 3", asked)
		}
	})
}

// TestRecentForbidden: who may not watch is not asked to again and again, and lists every time; so does who keeps nothing.
func TestRecentForbidden(t *testing.T) {
	watched := make(chan struct{}, 2)
	for _, r := range []*recent{nil, {lists: map[place]*recentList{}, watch: func(place) (watch.Interface, error) {
		watched <- struct{}{}
		return nil, apierrors.NewForbidden(pods.GroupResource(), "", errors.New("not you"))
	}}} {
		for asked := range 3 {
			got, err := r.list(pods, func() ([]unstructured.Unstructured, error) { return make([]unstructured.Unstructured, asked), nil })
			if err != nil || len(got) != asked {
				t.Errorf("%d items, %v; want %d", len(got), err, asked)
			}
		}
	}
	if <-watched; len(watched) > 0 {
		t.Error("watched again")
	}
}
