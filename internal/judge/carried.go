package judge

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/observe"
)

// Carriage is how what an object asks for is found in what was made for it.
type Carriage int

const (
	absent    Carriage = iota // nowhere
	partly                    // some words of a list are, somewhere
	mentioned                 // its words are, somewhere
	carried                   // a field of the same name says the same, as a pod's tolerations do
)

// Found reports whether all of it is found.
func (c Carriage) Found() bool { return c >= mentioned }

// Carried tells, by its path, how what spec asks for by a text, a list or a map is found in operands. Numbers and choices are tried by changes,
// and say too little to be recognized.
func Carried(spec map[string]any, operands []observe.Operand) map[string]Carriage {
	contents := contentsOf(operands)
	found := map[string]Carriage{}
	visitAsked("spec", spec, func(path, key string, value any) {
		switch {
		case slices.ContainsFunc(contents, func(content any) bool { return carries(content, key, value) }):
			found[path] = carried
		case allMentioned(contents, value, slices.Contains(tagging, key)):
			found[path] = mentioned
		case someMentioned(contents, value):
			found[path] = partly
		default:
			found[path] = absent
		}
	})
	return found
}

// contentsOf are what operands say that an operator makes itself.
func contentsOf(operands []observe.Operand) []any {
	var contents []any
	for _, o := range operands {
		if !o.Transient() || o.Kind == observe.KindPod && o.Direct {
			contents = append(contents, o.Content, o.Marks)
		}
	}
	return contents
}

// Mentioned reports whether every text in value is found in operands.
func Mentioned(operands map[string]observe.Operand, value any) bool {
	return allMentioned(contentsOf(slices.Collect(maps.Values(operands))), value, false)
}

// allMentioned reports whether every text in value, and where keys says so each key, is found in contents.
func allMentioned(contents []any, value any, keys bool) bool {
	return everyText(value, keys, func(text string) bool {
		return slices.ContainsFunc(contents, func(content any) bool { return mentions(content, text) })
	})
}

// someMentioned reports whether value is a list of texts of which some are found in contents.
func someMentioned(contents []any, value any) bool {
	list, _ := value.([]any)
	some := false
	for _, item := range list {
		text, is := item.(string)
		if !is {
			return false
		}
		some = some || allMentioned(contents, text, false)
	}
	return some
}

// visitAsked calls asked for each text, list and map below value, but not within lists.
func visitAsked(path string, value map[string]any, asked func(path, key string, value any)) {
	for key, inner := range value {
		at := path + "." + key
		switch inner := inner.(type) {
		case string:
			if inner != "" {
				asked(at, key, inner)
			}
		case []any:
			if len(inner) > 0 {
				asked(at, key, inner)
			}
		case map[string]any:
			if len(inner) > 0 {
				asked(at, key, inner)
				visitAsked(at, inner, asked)
			}
		}
	}
}

// tagging are maps whose keys are no fields: what is called as one of them may be so by chance.
var tagging = []string{"labels", "annotations", "matchLabels", "selector", "nodeSelector"}

// carries reports whether a field called key, anywhere in content, says at least value.
func carries(content any, key string, value any) bool {
	switch content := content.(type) {
	case map[string]any:
		for k, inner := range content {
			if k == key && includes(inner, value) || !slices.Contains(tagging, k) && carries(inner, key, value) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(content, func(inner any) bool { return carries(inner, key, value) })
	}
	return false
}

// includes reports whether has says all that value says.
func includes(has, value any) bool {
	switch value := value.(type) {
	case map[string]any:
		members, ok := has.(map[string]any)
		for k, inner := range value {
			ok = ok && includes(members[k], inner)
		}
		return ok
	case []any:
		items, ok := has.([]any)
		return ok && !slices.ContainsFunc(value, func(wanted any) bool {
			return !slices.ContainsFunc(items, func(item any) bool { return includes(item, wanted) })
		})
	}
	return reflect.DeepEqual(has, value)
}

// everyText reports whether is holds for every text in value that is not empty, and where keys says so for the keys of maps.
func everyText(value any, keys bool, is func(text string) bool) bool {
	switch value := value.(type) {
	case string:
		return value == "" || is(value)
	case map[string]any:
		for key, inner := range value {
			if keys && !is(key) || !everyText(inner, keys, is) {
				return false
			}
		}
	case []any:
		return !slices.ContainsFunc(value, func(inner any) bool { return !everyText(inner, keys, is) })
	}
	return true
}

// mentions reports whether a text or a key in content has text in it, and not as a part of a word or a number.
func mentions(content any, text string) bool {
	return !everyText(content, true, func(s string) bool { return !hasWord(s, text) })
}

// hasWord reports whether word is in s, with nothing before and after it that would make another word or number of it.
func hasWord(s, word string) bool {
	inWord := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(".-_", r)
	}
	for at := 0; ; at++ {
		i := strings.Index(s[at:], word)
		if i < 0 {
			return false
		}
		at += i
		before, _ := utf8.DecodeLastRuneInString(s[:at])
		after, _ := utf8.DecodeRuneInString(s[at+len(word):])
		if !inWord(before) && !inWord(after) {
			return true
		}
	}
}

// NotCarried are the paths of what was carried before and is not after, without those above others. What was only mentioned may be said in other words, unless some of them are.
func NotCarried(before, after map[string]Carriage) []string {
	lost := namesOf(before, func(path string) bool {
		is, asked := after[path]
		return asked && (before[path] == carried && !is.Found() || before[path] == mentioned && is == partly)
	})
	return slices.DeleteFunc(slices.Clone(lost), func(path string) bool {
		return slices.ContainsFunc(lost, func(other string) bool { return strings.HasPrefix(other, path+".") })
	})
}

// handOn is what to do about a field that is not carried.
const handOn = "hand each field of the spec on to what is made for the object, or say in the schema that it is deprecated"

// Unheeded tells what objects ask for that was found in what was made for them before, and is not after. That of a field that is deprecated is a warning.
func Unheeded(objects []*observe.Object, before, after map[string]observe.Operand, deprecated func(o *observe.Object, path string) bool) []finding.Finding {
	were, are := byObject(before), byObject(after)
	var findings []finding.Finding
	for _, o := range objects {
		spec, _ := o.Author["spec"].(map[string]any)
		was, is := were[o.String()], are[o.String()]
		if len(was) == 0 || len(is) == 0 {
			continue
		}
		if newSecret(was, is) {
			continue
		}
		isDeprecated := func(path string) bool { return deprecated(o, path) }
		findings = append(findings, lessOf(NotCarried(Carried(spec, was), Carried(spec, is)), isDeprecated, func(fields string) finding.Finding {
			return doesLess(handOn, o.String(), "what its %s asks for was in what was made for it before the upgrade, and is not any more", fields)
		})...)
	}
	return findings
}

// newSecret reports whether among after there is a Secret that says something else than before: what it says is not known here.
func newSecret(before, after []observe.Operand) bool {
	return slices.ContainsFunc(after, func(is observe.Operand) bool {
		return is.Kind == "Secret" && !slices.ContainsFunc(before, func(was observe.Operand) bool {
			return was.String() == is.String() && reflect.DeepEqual(was.Content, is.Content)
		})
	})
}

// byObject are operands by the object that they were made for.
func byObject(operands map[string]observe.Operand) map[string][]observe.Operand {
	all := map[string][]observe.Operand{}
	for _, o := range operands {
		all[o.Of] = append(all[o.Of], o)
	}
	return all
}
