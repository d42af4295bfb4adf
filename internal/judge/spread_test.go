package judge

import (
	"strings"
	"testing"
)

// What an operator made in namespaces that are new, or chosen later, the next one makes as well, and takes away where none is chosen any more.
func TestUnspread(t *testing.T) {
	all := &Spread{[]string{"ConfigMap"}, true, true}
	for name, test := range map[string]struct {
		was, is *Spread
		of      string
		says    string
	}{
		"as before":             {all, all, "a", ""},
		"not tried":             {all, nil, "a", ""},
		"not known":             {nil, &Spread{}, "a", ""},
		"never did":             {&Spread{}, &Spread{}, "a", ""},
		"does more":             {&Spread{Kinds: []string{"ConfigMap"}}, &Spread{[]string{"ConfigMap", "Secret"}, true, true}, "a", ""},
		"of another sample":     {all, &Spread{}, "b", ""},
		"not in a new one":      {all, &Spread{}, "a", "no ConfigMap is made for it in a namespace that is created later"},
		"a kind less":           {&Spread{Kinds: []string{"ConfigMap", "Secret"}}, all, "a", "no Secret is made for it in a namespace that is created later"},
		"stays":                 {all, &Spread{Kinds: []string{"ConfigMap"}}, "a", "does not go when that loses the labels"},
		"not where it is later": {all, &Spread{[]string{"ConfigMap"}, true, false}, "a", "in a namespace that gets the labels by which it is chosen later"},
	} {
		found := unspread("v1", "v2", New{Of: "a", Spread: test.was}, New{Of: test.of, Spread: test.is})
		if (len(found) == 0) != (test.says == "") || len(found) > 0 && !strings.Contains(found[0].Message, test.says) {
			t.Errorf("%s: %v", name, found)
		}
	}
	was, is := New{Spread: all, Makes: []string{"ConfigMap …-roots"}}, New{Spread: &Spread{}, Makes: []string{"Secret …-roots"}}
	if found := unspread("v1", "v2", was, is); len(found) > 0 {
		t.Errorf("of a kind that is made nowhere any more: %v", found)
	}
}
