package observe

import (
	"errors"
	"slices"
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
		var watchers []*watch.FakeWatcher
		r := &recent{lists: map[place]*recentList{}, watch: func(_ place, version string) (watch.Interface, error) {
			if version != "7" {
				t.Errorf("watched from version %q", version)
			}
			if len(watchers) == 2 {
				return nil, errors.New("no connection")
			}
			watchers = append(watchers, watch.NewFake())
			return watchers[len(watchers)-1], nil
		}}
		asked := 0
		look := func(want int, why string) {
			t.Helper()
			synctest.Wait()
			items, err := r.list(pods, func() (*unstructured.UnstructuredList, error) {
				asked++
				return listOf(asked), nil
			})
			if err != nil || asked != want || len(items) != want {
				t.Fatalf("%s: asked %d times, %d items, %v; want %d", why, asked, len(items), err, want)
			}
		}
		look(1, "the first")
		look(1, "nothing changed")
		watchers[0].Modify(&unstructured.Unstructured{})
		look(2, "something changed")
		look(2, "nothing changed since")
		time.Sleep(recentLimit)
		look(3, "it is old")
		watchers[0].Stop()
		look(4, "the watch ended")
		look(4, "another began")
		watchers[1].Error(&unstructured.Unstructured{}) // as when too much came after the version
		look(5, "the watch failed")
		look(6, "it is not begun again at once")
		time.Sleep(watchPause)
		look(7, "it is begun again, without a connection")
		look(8, "nobody watches")
	})
}

// listOf is a list of so many items.
func listOf(items int) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{Items: make([]unstructured.Unstructured, items)}
	list.SetResourceVersion("7")
	return list
}

// TestRecentMeanwhile: what changes while it is listed is listed again, an error is not kept, and of two who list at the same time the one
// that asked last is right.
func TestRecentMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch.NewFake()
		defer w.Stop()
		r := &recent{lists: map[place]*recentList{}, watch: func(place, string) (watch.Interface, error) { return w, nil }}
		list := func(meanwhile func() error) int {
			asked := false
			items, _ := r.list(pods, func() (*unstructured.UnstructuredList, error) {
				asked = true
				err := meanwhile()
				synctest.Wait()
				return listOf(1), err
			})
			if !asked {
				return -len(items)
			}
			return len(items)
		}
		nothing := func() error { return nil }
		change := func() error { w.Add(&unstructured.Unstructured{}); return nil }
		later := func() error {
			time.Sleep(time.Millisecond)
			if _, err := r.list(pods, func() (*unstructured.UnstructuredList, error) { return listOf(2), nil }); err != nil {
				t.Error(err)
			}
			return nil
		}
		var got []int
		for _, meanwhile := range []func() error{
			nothing, nothing, func() error { return errors.New("the API server is away") }, // the first is used again
		} {
			got = append(got, list(meanwhile))
		}
		synctest.Wait()
		_ = change()
		synctest.Wait()
		got = append(got, list(change), list(func() error { return errors.New("the API server is away") }), list(later), list(nothing))
		if want := []int{1, -1, -1, 1, 0, 1, -2}; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

// TestRecentForbidden: who may not watch is not asked to again and again, and lists every time; so does who keeps nothing.
func TestRecentForbidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		watched := 0
		for _, r := range []*recent{nil, {lists: map[place]*recentList{}, watch: func(place, string) (watch.Interface, error) {
			watched++
			return nil, apierrors.NewForbidden(pods.GroupResource(), "", errors.New("not you"))
		}}} {
			for asked := range 3 {
				got, err := r.list(pods, func() (*unstructured.UnstructuredList, error) { return listOf(asked), nil })
				if err != nil || len(got) != asked {
					t.Errorf("%d items, %v; want %d", len(got), err, asked)
				}
				time.Sleep(watchPause)
			}
		}
		if watched != 1 {
			t.Errorf("watched %d times", watched)
		}
	})
}
