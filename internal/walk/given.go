package walk

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmkit/olmkit/internal/observe"
)

// giver returns a value for the field at path, which an object leaves out; false if it knows none that would do no harm.
type giver func(path []string, s apiextensionsv1.JSONSchemaProps) (any, bool)

// giveSwitch turns on what is off, and chooses one of few words; what would pause the object as a whole stays off.
func giveSwitch(path []string, s apiextensionsv1.JSONSchemaProps) (any, bool) {
	if len(path) == 2 && pausing.MatchString(path[1]) {
		return nil, false
	}
	if s.Type == "boolean" {
		return true, true
	}
	one, has := choice("", s)
	return one, has
}

// tried is what a text is given that may say anything.
const tried = "tried"

// givenTexts are values of texts that operators hand on, by the name of the field. What names something that would have to be there is not among them.
var givenTexts = []struct {
	name  func() *regexp.Regexp
	value string
}{
	{observe.Compiled(`(?i)schedule$|cron$`), "17 3 * * *"},
	{observe.Compiled(`(?i)host(name)?s?$|domains?$|dnsNames$|sans$`), "tried.example.com"},
	{observe.Compiled(`(?i)log.*level$|^level$|verbosity$`), "debug"},
	{observe.Compiled(`(?i)(interval|timeout|period|duration|ttl)$`), "7m"},
	{observe.Compiled(`(?i)^(title|description|displayName|message|greeting|banner|motd|comment)$`), tried},
}

var (
	// dangerous matches fields that are no harmless ones to set: where data are, what pods may do, where they run and when they count as ready.
	dangerous = observe.Compiled(`(?i)storage|volume|pvc|disk|persist|affinity|securityContext|probe|restore|recover|bootstrap|initdb`)
	selecting = observe.Compiled(`(?i)selector|match`)
	switching = observe.Compiled(`(?i)^enabled?$`)
)

// giveValue gives a value to a number, a text whose name tells what it says, a map of texts, a list or a part of whose shape that can be told.
func giveValue(path []string, s apiextensionsv1.JSONSchemaProps) (any, bool) {
	name := path[len(path)-1]
	switch {
	case dangerous().MatchString(name) || len(path) == 2 && pausing.MatchString(name):
		return nil, false
	case s.Type == "integer":
		return giveNumber(name, s)
	case s.Type == "string" && len(s.Enum) == 0:
		return giveText(path, s)
	case s.Type == "array":
		return giveList(path, s)
	case s.AdditionalProperties != nil:
		return giveMap(name, s)
	case s.Type == "object":
		return givePart(path, s)
	}
	return nil, false
}

// giveNumber gives two of what is counted, and 7 or the number that s allows nearest to that of anything else.
func giveNumber(name string, s apiextensionsv1.JSONSchemaProps) (any, bool) {
	number := int64(7)
	if counts.MatchString(name) {
		number = 2
	}
	if s.Minimum != nil {
		number = max(number, int64(*s.Minimum))
	}
	if s.Maximum != nil {
		number = min(number, int64(*s.Maximum))
	}
	given := allowed([]int64{number}, s)
	if len(given) == 0 || len(s.Enum) > 0 || ports.MatchString(name) || delicate.MatchString(name) {
		return nil, false
	}
	return number, true
}

// giveText gives a text what its name, or that of the part it is in, tells that it says.
func giveText(path []string, s apiextensionsv1.JSONSchemaProps) (any, bool) {
	name := path[len(path)-1]
	if s.Format == "duration" {
		return "7m", true
	}
	for _, text := range givenTexts {
		// A level says which of what only together with the name of its part.
		if text.name().MatchString(name) && (name != "level" || strings.Contains(strings.ToLower(path[len(path)-2]), "log")) {
			return text.value, true
		}
	}
	return nil, false
}

// giveMap gives a map of texts, or of amounts, an entry that is good everywhere.
func giveMap(name string, s apiextensionsv1.JSONSchemaProps) (any, bool) {
	of, lower := s.AdditionalProperties.Schema, strings.ToLower(name)
	switch {
	case of == nil || of.Type != "string":
		return nil, false
	case name == "nodeSelector":
		return map[string]any{"kubernetes.io/os": "linux"}, true
	case selecting().MatchString(name):
		return nil, false
	case strings.HasSuffix(lower, "labels"), strings.HasSuffix(lower, "annotations"):
		return map[string]any{"olmkit.dev/tried": tried}, true
	case strings.HasPrefix(lower, "env"):
		return map[string]any{"OLMKIT_TRIED": tried}, true
	}
	return map[string]any{tried: tried}, true
}

// giveList gives a list one item: a host, a variable of the environment, a toleration or the name of a Secret for pulls.
func giveList(path []string, s apiextensionsv1.JSONSchemaProps) (any, bool) {
	if s.Items == nil || s.Items.Schema == nil {
		return nil, false
	}
	name, item := path[len(path)-1], *s.Items.Schema
	has := func(fields ...string) bool {
		return !slices.ContainsFunc(fields, func(f string) bool { return item.Properties[f].Type != "string" })
	}
	switch {
	case item.Type == "string":
		text, ok := giveText(path, item)
		return []any{text}, ok
	case has("name", "value") && strings.Contains(strings.ToLower(name), "env"):
		return []any{map[string]any{"name": "OLMKIT_TRIED", "value": tried}}, true
	case has("key", "operator", "effect") && strings.Contains(strings.ToLower(name), "toleration"):
		return []any{map[string]any{"key": "olmkit.dev/tried", "operator": "Exists", "effect": "NoSchedule"}}, true
	case has("name") && strings.HasSuffix(name, "ullSecrets"):
		return []any{map[string]any{"name": "olmkit-tried"}}, true
	}
	return nil, false
}

// givePart gives a part what it has to have and its switch on or, where it has no switch, all that can be given. No part is given of which what it has to have
// is not known, or that would be empty.
func givePart(path []string, s apiextensionsv1.JSONSchemaProps) (any, bool) {
	if len(path) > maxDepth {
		return nil, false
	}
	if amounts := s.Properties["requests"].AdditionalProperties; amounts != nil {
		return map[string]any{"requests": map[string]any{"cpu": "17m", "memory": "37Mi"}}, true
	}
	part, on := map[string]any{}, ""
	for _, k := range slices.Sorted(maps.Keys(s.Properties)) {
		if s.Properties[k].Type == "boolean" && switching().MatchString(k) {
			on = k
		}
	}
	for _, k := range slices.Sorted(maps.Keys(s.Properties)) {
		required, inner := slices.Contains(s.Required, k), s.Properties[k]
		if on != "" && k != on && !required || inner.Default != nil && k != on || inner.Type == "boolean" && k != on && !required {
			continue
		}
		at := append(slices.Clone(path), k)
		value, ok := giveSwitch(at, inner)
		if !ok {
			value, ok = giveValue(at, inner)
		}
		switch {
		case ok:
			part[k] = value
		case required:
			return nil, false
		}
	}
	return part, len(part) > 0
}
