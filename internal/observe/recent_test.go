package observe

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

var pods = place{schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "n"}

// TestRecent lists only what may be another: nobody tells, or nothing was told for long.
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
		look := func(want int, there, why string) {
			t.Helper()
			synctest.Wait()
			items, err := r.list(pods, func() (*unstructured.UnstructuredList, error) {
				asked++
				return listOf(strings.Fields(there)...), nil
			})
			if err != nil || asked != want || namesIn(items) != there {
				t.Fatalf("%s: asked %d times, %s, %v; want %d, %s", why, asked, namesIn(items), err, want, there)
			}
		}
		look(1, "b d", "the first")
		look(1, "b d", "nothing changed")
		watchers[0].Add(named("c"))
		look(1, "b c d", "one more was told")
		watchers[0].Modify(named("d", "new"))
		watchers[0].Delete(named("b"))
		look(1, "c d=new", "a change and a deletion were told")
		time.Sleep(recentLimit)
		look(2, "c d=new", "it is old")
		watchers[0].Add(ofVersion("c", "7"))
		watchers[0].Delete(ofVersion("d", "6"))
		look(2, "c d=new", "what the list had is told late")
		watchers[0].Delete(ofVersion("x", "8"))
		watchers[0].Delete(ofVersion("c", "9"))
		watchers[0].Add(ofVersion("c", "10"))
		look(2, "c=10 d=new", "something unknown is deleted, and something is made anew")
		time.Sleep(recentLimit / 2)
		watchers[0].Add(ofVersion("a", "11"))
		time.Sleep(recentLimit / 2)
		look(2, "a=11 c=10 d=new", "it is told of, and not old any more")
		watchers[0].Stop()
		look(3, "a", "the watch ended")
		look(3, "a", "another began")
		watchers[1].Error(&metav1.Status{}) // as when too much came after the version
		look(4, "b", "the watch failed")
		look(5, "b", "it is not begun again at once")
		time.Sleep(watchPause)
		look(6, "b", "it is begun again, without a connection")
		look(7, "c", "nobody watches")
	})
}

// named is an object of that name, with a mark.
func named(name string, mark ...string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetName(name)
	if len(mark) > 0 {
		o.SetLabels(map[string]string{"mark": mark[0]})
	}
	return o
}

// ofVersion is the named object in a version, with that as its mark.
func ofVersion(name, version string) *unstructured.Unstructured {
	o := named(name, version)
	o.SetResourceVersion(version)
	return o
}

// listOf is a list of the named objects; one called name=mark has a mark.
func listOf(names ...string) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	for _, name := range names {
		name, mark, marked := strings.Cut(name, "=")
		if marked {
			list.Items = append(list.Items, *named(name, mark))
		} else {
			list.Items = append(list.Items, *named(name))
		}
	}
	list.SetResourceVersion("7")
	return list
}

// namesIn names the items, with their marks.
func namesIn(items []unstructured.Unstructured) string {
	var names []string
	for _, o := range items {
		name := o.GetName()
		if mark := o.GetLabels()["mark"]; mark != "" {
			name += "=" + mark
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// TestRecentMeanwhile: what is told while it is listed stays, an error is not kept, and of two who list at the same time the one that asked
// last is right.
func TestRecentMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch.NewFake()
		defer w.Stop()
		r := &recent{lists: map[place]*recentList{}, watch: func(place, string) (watch.Interface, error) { return w, nil }}
		list := func(meanwhile func() (string, error)) string {
			prefix := "known "
			items, _ := r.list(pods, func() (*unstructured.UnstructuredList, error) {
				prefix = ""
				is, err := meanwhile()
				synctest.Wait()
				return listOf(strings.Fields(is)...), err
			})
			return prefix + namesIn(items)
		}
		is := func(names string, err error) func() (string, error) {
			return func() (string, error) { return names, err }
		}
		away := errors.New("the API server is away")
		told := func() (string, error) {
			time.Sleep(time.Millisecond)
			w.Add(named("b"))
			return "a", nil
		}
		later := func() (string, error) {
			time.Sleep(time.Millisecond)
			_, err := r.list(pods, func() (*unstructured.UnstructuredList, error) { return listOf("newer"), nil })
			return "older", err
		}
		got := []string{list(is("", away)), list(is("a", nil)), list(is("", away))}
		time.Sleep(recentLimit)
		got = append(got, list(is("", away)), list(told), list(is("", nil)))
		time.Sleep(recentLimit)
		got = append(got, list(later), list(is("", nil)))
		if want := []string{"", "a", "known a", "", "a", "known a b", "older", "known newer"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
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
				got, err := r.list(pods, func() (*unstructured.UnstructuredList, error) { return listOf(strconv.Itoa(asked)), nil })
				if err != nil || namesIn(got) != strconv.Itoa(asked) {
					t.Errorf("%s, %v; want %d", namesIn(got), err, asked)
				}
				time.Sleep(watchPause)
			}
		}
		if watched != 1 {
			t.Errorf("watched %d times", watched)
		}
	})
}
