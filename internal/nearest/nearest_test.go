package nearest

import (
	"slices"
	"testing"
)

func TestDistance(t *testing.T) {
	t.Parallel()
	var got []int
	for _, pair := range [][2]string{{"", ""}, {"", "tea"}, {"tea", ""}, {"tea", "tea"}, {"tea", "pea"}, {"tea", "eat"}, {"kitten", "sitting"}, {"pahts", "paths"}} {
		got = append(got, Distance(pair[0], pair[1]))
	}
	if want := []int{0, 3, 3, 0, 1, 2, 3, 1}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestMeant(t *testing.T) {
	t.Parallel()
	known := []string{"render", "validate", "graph"}
	for name, want := range map[string]string{"valdate": "validate", "rednre": "render", "graphs": "graph", "push": "", "": ""} {
		if got := Meant(name, known); got != want {
			t.Errorf("who wrote %q meant %q, want %q", name, got, want)
		}
	}
	if got := Meant("render", nil); got != "" {
		t.Errorf("of none %q is meant", got)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	if got := Names("sample", []string{"settle", "samples", "images"}, 2); !slices.Equal(got, []string{"samples", "settle"}) {
		t.Errorf("the nearest are %q", got)
	}
	if got := Names("sample", nil, 2); len(got) != 0 {
		t.Errorf("of none the nearest are %q", got)
	}
}
