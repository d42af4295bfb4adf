// Package compare tells the fields of objects that are not what they were.
package compare

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// Content is what the users of an object say in it: all but apiVersion, kind, metadata and status.
func Content(object map[string]any) map[string]any {
	c := maps.Clone(object)
	for _, k := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(c, k)
	}
	return c
}

// Lost lists, sorted, the places where got does not say what want says. Fields that only got has are no matter, nor is an
// empty value (0, "", false, null, no items) that want states and got leaves out, since typed converters do so.
func Lost(want, got any) Diffs {
	found := Differences(want, got)
	slices.SortFunc(found, func(a, b Difference) int { return strings.Compare(a.String(), b.String()) })
	return found
}

// Diffs are fields that are not what they were.
type Diffs []Difference

func (d Diffs) String() string {
	var told []string
	for _, field := range d {
		told = append(told, field.String())
	}
	return strings.Join(told, "; ")
}

// Fields are the paths of the fields.
func (d Diffs) Fields() []string {
	var paths []string
	for _, field := range d {
		paths = append(paths, OrRoot(field.Path))
	}
	return paths
}

// WithoutRewritten leaves out of d the texts that are YAML or JSON and say in got, formatted in another way, all that they say in want: a conversion that reads a text into
// fields writes it anew.
func (d Diffs) WithoutRewritten() Diffs {
	return slices.DeleteFunc(slices.Clone(d), func(field Difference) bool {
		was, is := parsed(field.Was), parsed(field.Is)
		return was != nil && is != nil && len(Differences(was, is)) == 0
	})
}

// parsed is what value says as a map of YAML or JSON, nil if it is no text of one.
func parsed(value any) (said map[string]any) {
	if text, is := value.(string); !is || yaml.Unmarshal([]byte(text), &said) != nil {
		return nil
	}
	return said
}

// OtherFields are the paths of the fields that say something else in one of a and b than in the other, or nothing, as Lost sees it, sorted.
func OtherFields(a, b any) []string {
	fields := slices.Concat(Lost(a, b).Fields(), Lost(b, a).Fields())
	slices.Sort(fields)
	return slices.Compact(fields)
}

// Has reports whether field is one of d, with the same values.
func (d Diffs) Has(field Difference) bool {
	return slices.ContainsFunc(d, func(o Difference) bool {
		return o.Path == field.Path && o.Gone == field.Gone && encoded(o.Was) == encoded(field.Was) && encoded(o.Is) == encoded(field.Is)
	})
}

// Difference is a field that is not what it was.
type Difference struct {
	Path    string
	Was, Is any
	Gone    bool
	Renamed string // the key under which there is now what was here; "" for none
}

func (d Difference) String() string {
	was, is := encoded(d.Was), encoded(d.Is)
	switch {
	case d.Renamed != "":
		return fmt.Sprintf("%s was %s and is called %s now", d.Path, Show(d.Was), d.Renamed)
	case d.Gone:
		return fmt.Sprintf("%s was %s and is gone", d.Path, Show(d.Was))
	case len(was) > shownMost || len(is) > shownMost:
		if items := d.items(); items != "" {
			return items
		}
	}
	was, is = around(was, is)
	return fmt.Sprintf("%s was %s and is %s", OrRoot(d.Path), short(was), short(is))
}

// items says which items of a list came and went, in the words of String; "" if it is no list, or another matter.
func (d Difference) items() string {
	was, isList := d.Was.([]any)
	is, areLists := d.Is.([]any)
	if !isList || !areLists {
		return ""
	}
	only := func(list, other []any) (items []string) {
		for _, item := range list {
			if !slices.ContainsFunc(other, func(o any) bool { return reflect.DeepEqual(o, item) }) {
				items = append(items, Show(item))
			}
		}
		return items
	}
	gone, came := only(was, is), only(is, was)
	var told []string
	if len(gone) > 0 {
		told = append(told, "does not have "+strings.Join(gone[:min(len(gone), shownItems)], ", ")+" any more")
	}
	if len(came) > 0 {
		told = append(told, "has "+strings.Join(came[:min(len(came), shownItems)], ", ")+" now")
	}
	if len(told) == 0 {
		return ""
	}
	return OrRoot(d.Path) + " " + strings.Join(told, ", and ")
}

// around are two texts from shortly before what differs in them, if they are too long to show what does.
func around(a, b string) (string, string) {
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	from := same - shownBefore
	if from <= 0 || max(len(a), len(b)) <= shownMost {
		return a, b
	}
	for !utf8.RuneStart(a[from]) {
		from--
	}
	return "..." + a[from:], "..." + b[from:]
}

// Differences lists the fields of want that are not the same in got.
func Differences(want, got any) Diffs {
	var found Diffs
	compare("", want, got, &found)
	return found
}

func compare(at string, want, got any, found *Diffs) {
	if want == nil {
		return
	}
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok && got != nil {
			*found = append(*found, Difference{Path: at, Was: want, Is: got})
			return
		}
		for _, k := range slices.Sorted(maps.Keys(w)) {
			value, present := g[k]
			if !present {
				if !empty(w[k]) {
					*found = append(*found, Difference{Path: Join(at, k), Was: w[k], Gone: true, Renamed: renamed(w, g, k)})
				}
				continue
			}
			compare(Join(at, k), w[k], value, found)
		}
	case []any:
		g, ok := got.([]any)
		if !ok && got != nil || len(g) != len(w) {
			*found = append(*found, Difference{Path: at, Was: want, Is: got})
			return
		}
		for i := range w {
			compare(at+"["+strconv.Itoa(i)+"]", w[i], g[i], found)
		}
	default:
		if !sameScalar(want, got) && !canonical(at, want, got) && (!empty(want) || !empty(got)) {
			*found = append(*found, Difference{Path: at, Was: want, Is: got})
		}
	}
}

// renamed is the only key of got, which want does not have, that has what want has under key, "" for none. What is as short as a number or a word is so by chance.
func renamed(want, got map[string]any, key string) (now string) {
	if len(encoded(want[key])) < distinct {
		return ""
	}
	for _, k := range slices.Sorted(maps.Keys(got)) {
		if _, known := want[k]; known || !reflect.DeepEqual(got[k], want[key]) {
			continue
		}
		if now != "" {
			return ""
		}
		now = k
	}
	return now
}

// distinct is how long JSON is at least that is not there twice by chance.
const distinct = 12

func sameScalar(a, b any) bool {
	// 1 and 1.0 are one number in JSON; decoding tells them apart as int64 and float64.
	switch x := a.(type) {
	case int64:
		if y, ok := b.(float64); ok {
			return float64(x) == y
		}
	case float64:
		if y, ok := b.(int64); ok {
			return x == float64(y)
		}
	}
	return a == b
}

// canonical reports whether got is how Kubernetes' types write what want says at a place: a duration, a quantity with a unit, or a time. Who
// reads an object into such a type and writes it writes all of it so.
func canonical(at string, want, got any) bool {
	was, isText := want.(string)
	is, areTexts := got.(string)
	if !isText || !areTexts {
		return false
	}
	if d, err := time.ParseDuration(was); err == nil && d.String() == is {
		return true
	}
	if t, err := time.Parse(time.RFC3339, was); err == nil && t.Nanosecond() == 0 && t.UTC().Format(time.RFC3339) == is {
		return true
	}
	// A version 7.0 is no version 7, and 2000m may be megabytes; of processors they are 2.
	if !strings.ContainsFunc(is, unicode.IsLetter) && !strings.HasSuffix(at, "cpu") {
		return false
	}
	q, err := resource.ParseQuantity(was)
	return err == nil && q.String() == is
}

func empty(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, e := range x {
			if !empty(e) {
				return false
			}
		}
		return true
	case []any:
		return len(x) == 0
	case string:
		return x == ""
	case bool:
		return !x
	}
	return v == int64(0) || v == float64(0)
}

// shownItems is how many items of a list are shown at most that came, and that went.
const shownItems = 2

// How many bytes of a value are shown at most, and of what differs in it how many before that.
const (
	shownMost   = 80
	shownBefore = 20
)

// Show is v as JSON, cut short.
func Show(v any) string { return short(encoded(v)) }

// encoded is v as JSON.
func encoded(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// short is text, cut short.
func short(text string) string {
	if len(text) > shownMost {
		return strings.ToValidUTF8(text[:shownMost-3], "") + "..."
	}
	return text
}

// Values are all values of content by their paths, of which none is a map or a list.
func Values(content map[string]any) map[string]string {
	values := map[string]string{}
	var visit func(path string, value any)
	visit = func(path string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for k, inner := range value {
				visit(Join(path, k), inner)
			}
		case []any:
			for i, item := range value {
				visit(fmt.Sprintf("%s[%d]", path, i), item)
			}
		default:
			values[path] = fmt.Sprint(value)
		}
	}
	visit("", content)
	return values
}

// Join is the path of key below at.
func Join(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

// OrRoot is at, or what stands for the whole object.
func OrRoot(at string) string {
	if at == "" {
		return "the object"
	}
	return at
}
