package judge

import (
	"fmt"
	"maps"
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

var (
	// serving matches the types of conditions that tell that an object serves, and telling the names of fields that do, in one word or number.
	serving = observe.Compiled(`(Ready|Available|Healthy|Running)$`)
	telling = observe.Compiled(`^(phase|state|status|health|healthy|ready|available|\w+Ready|(ready|available)(Replicas|Pods|Nodes|Members|Instances|Brokers|Workers))$`)
	// plainly matches the paths of those that everybody takes at their word; what others mean may be something else, as that a part is there.
	plainly = observe.Compiled(`^status\.(conditions\[(Ready|Available)\]|ready|available|healthy)$|\.(ready|available)[A-Z]\w+$`)
)

// HealthWords is what the status of an object tells of its health, by path: conditions, by type, and fields that are called so.
func HealthWords(status map[string]any) map[string]string {
	health := map[string]string{}
	eachField("status", status, func(path, name string, value any) {
		list, several := value.([]any)
		switch {
		case several && name == "conditions":
			addConditions(health, path, list)
		case !several && telling().MatchString(name):
			health[path] = fmt.Sprint(value)
		}
	})
	return health
}

func addConditions(health map[string]string, path string, conditions []any) {
	for _, item := range conditions {
		c, _ := item.(map[string]any)
		kind, _ := c["type"].(string)
		if status, is := c["status"].(string); is && serving().MatchString(kind) {
			health[path+"["+kind+"]"] = status
		}
	}
}

// well tells whether value can tell that something is well, and what a status says instead that leaves it out, if that is known: a number that is
// not 0 does, and any word.
func well(value string) (absent string, is bool) {
	switch value {
	case "", "False", "Unknown", "false":
		return "", false
	case "true":
		return "false", true
	}
	if strings.Trim(value, "0123456789") == "" {
		return "0", strings.Trim(value, "0") != ""
	}
	return "", true
}

// waited tells whether the field at path says that the object is well, and did not before its pods ran. That a number or a flag is not there counts
// if anything else is.
func (h Readiness) waited(path string) bool {
	absent, is := well(h.Then[path])
	before, said := h.Before[path]
	if !said && len(h.Before) > 0 {
		before = absent
	}
	return h.Unready && is && before != "" && before != h.Then[path]
}

// Waits reports whether the status told of an object that it is well, by any field, as soon as its pods ran and not before.
func (h Readiness) Waits() bool {
	return h.Prompt && slices.ContainsFunc(slices.Collect(maps.Keys(h.Then)), h.waited)
}

// early are the fields that tell that an object is well while none of its pods runs, and did not in was. As long as any field tells the truth, only
// those are lies that everybody takes at their word; and they may be meant if another one of these, which is new, does.
func (h Readiness) early(was Readiness) (lies []string, severe bool) {
	if !h.Unready || !was.Prompt {
		return nil, false
	}
	honest, renewed := false, false
	for path := range h.Then {
		_, known := was.Then[path]
		honest = honest || h.waited(path)
		renewed = renewed || !known && h.waited(path) && plainly().MatchString(path)
	}
	lies = namesOf(was.Then, func(path string) bool {
		nothing, _ := well(was.Then[path])
		now, is := well(h.Then[path])
		same := h.Then[path] == was.Then[path] || nothing == "0" && now == "0" // one object may ask for more than the other
		return was.waited(path) && is && h.Before[path] == h.Then[path] && same && (!honest || plainly().MatchString(path))
	})
	return lies, !renewed
}

// quote is what the fields at paths say once pods run.
func (h Readiness) quote(paths []string) string {
	said := make([]string, 0, len(paths))
	for _, path := range paths {
		said = append(said, path+" "+h.Then[path])
	}
	return strings.Join(said, ", ")
}

// unlooked tells which words of a new object's status say that it is well before anything runs for it, with to and not with from.
func unlooked(from, to string, was, is New) []finding.Finding {
	lies, severe := is.Readiness.early(was.Readiness)
	if len(lies) == 0 {
		return nil
	}
	f := code.Finding(code.ReadyEarly, is.Sample, "with %s the status of a new object like it says %s while none of its pods runs; with %s it did so once they ran", to, is.Readiness.quote(lies), from)
	if !severe {
		f.Severity = finding.Warning
	}
	return []finding.Finding{f}
}
