package judge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/observe"
)

// Readiness is what the status of a new object told of its health, as HealthWords tells it.
type Readiness struct {
	Unready bool              // something runs for the object, and none of its pods did
	Before  map[string]string // while none of them did
	Then    map[string]string // once they did
	Prompt  bool              // it told so at once: not what passes with time
}

// healthy matches the names of fields of a status that tell of health in one word or number.
var healthy = observe.Compiled(`^(?i:phase|state|status|health|healthy|ready|ready[A-Z]\w*|available|available[A-Z]\w*|\w*Ready)$`)

// HealthWords is what the status of an object tells of its health, by path: its conditions, by type, and fields that are called so.
func HealthWords(status map[string]any) map[string]string {
	health := map[string]string{}
	addHealth(health, "status", status)
	return health
}

func addHealth(health map[string]string, path string, fields map[string]any) {
	for name, value := range fields {
		at := path + "." + name
		switch inner := value.(type) {
		case map[string]any:
			addHealth(health, at, inner)
		case []any:
			if name == "conditions" {
				addConditions(health, at, inner)
			}
		default:
			if healthy().MatchString(name) {
				health[at] = fmt.Sprint(value)
			}
		}
	}
}

func addConditions(health map[string]string, path string, conditions []any) {
	for _, item := range conditions {
		c, _ := item.(map[string]any)
		kind, _ := c["type"].(string)
		if status, is := c["status"].(string); is && kind != "" {
			health[path+"["+kind+"]"] = status
		}
	}
}

// positive are values that tell that something is well, and what a status that leaves them out says instead. A number does, unless it is 0.
func positive(value string) (absent string, is bool) {
	switch {
	case value == "true":
		return "false", true
	case value == "True":
		return "", true
	case strings.Trim(value, "0123456789") == "" && strings.Trim(value, "0") != "":
		return "0", true
	}
	return "", false
}

// waited tells whether the field at path says that the object is well, and did not before its pods ran. That a number or a flag is not there counts
// if anything else is.
func (h Readiness) waited(path string) bool {
	absent, _ := positive(h.Then[path])
	before, said := h.Before[path]
	if !said && len(h.Before) > 0 {
		before = absent
	}
	return h.Unready && before != "" && before != h.Then[path]
}

// Waits reports whether the status told of an object that it is well, by any field, as soon as its pods ran and not before.
func (h Readiness) Waits() bool {
	return h.Prompt && slices.ContainsFunc(namesOf(h.Then, func(string) bool { return true }), h.waited)
}

// early are the fields that tell that an object is well while none of its pods runs, and did not in was. A word of another field may tell the
// truth, or a condition that is new: then a word is no lie, and a condition may be meant.
func (h Readiness) early(was Readiness) (lies []string, severe bool) {
	if !h.Unready || !was.Prompt {
		return nil, false
	}
	honest, renewed := false, false
	for path := range h.Then {
		_, known := was.Then[path]
		honest = honest || h.waited(path)
		renewed = renewed || !known && h.waited(path) && h.Then[path] == "True"
	}
	lies = namesOf(was.Then, func(path string) bool {
		nothing, sure := positive(was.Then[path])
		now, other := positive(h.Then[path])
		same := h.Then[path] == was.Then[path] || nothing == "0" && now == "0" && other // one object may ask for more than the other
		return was.waited(path) && h.Before[path] == h.Then[path] && same && (sure || !honest && !strings.HasSuffix(path, "]"))
	})
	return lies, !renewed
}

// unlooked tells which words of a new object's status say that it is well before anything runs for it, with to and not with from.
func unlooked(from, to string, was, is New) []finding.Finding {
	lies, severe := is.Readiness.early(was.Readiness)
	if len(lies) == 0 {
		return nil
	}
	told := make([]string, 0, len(lies))
	for _, path := range lies {
		told = append(told, path+" "+is.Readiness.Then[path])
	}
	f := code.Finding(code.ReadyEarly, is.Sample, "with %s the status of a new object like it says %s while none of its pods runs; with %s it did so once they ran", to, strings.Join(told, ", "), from)
	if !severe {
		f.Severity = finding.Warning
	}
	return []finding.Finding{f}
}
