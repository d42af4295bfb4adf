package walk

import (
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmkit/olmkit/internal/observe"
)

var (
	// versions match the names of fields that may say which version is to run, and version what they say, or a number, with its last number.
	versions = observe.Compiled(`^version$|Version$`)
	version  = observe.Compiled(`^(v?(?:[0-9]{1,5}\.){0,3})([0-9]{1,5})$`)
	// levels match the names of fields that may say how much is logged.
	levels = observe.Compiled(`(?i)level$|verbosity$`)
	// free match the names of fields that may say anything.
	free = observe.Compiled(`(?i)(title|description|displayName|message|greeting|banner|motd|comment)$`)
)

// texts lists changes of an object to other texts where the name of a field tells of which kind they are, though what is made for the object may say them in other words: how much is
// logged, what may say anything and, at the end, which version is to run, from which some operators do not go back.
func texts(schema *apiextensionsv1.JSONSchemaProps, object map[string]any) []step {
	var steps, last []step
	spec, _ := object["spec"].(map[string]any)
	visitFields(schema, []string{"spec"}, spec, func(path []string, value any, s apiextensionsv1.JSONSchemaProps) {
		text, is := value.(string)
		if !is || text == "" || len(s.Enum) > 0 {
			return
		}
		switch name := path[len(path)-1]; {
		case versions().MatchString(name):
			if other := otherVersion(text); other != text {
				last = append(last, stepOf(path, other, text))
			}
		case leveled(path):
			steps = append(steps, stepOf(path, otherLevel(text), text))
		case free().MatchString(name):
			steps = append(steps, stepOf(path, text+" "+tried, text))
		}
	})
	return slices.Concat(steps, last)
}

// leveled reports whether the field at path says how much is logged.
func leveled(path []string) bool {
	return levels().MatchString(path[len(path)-1]) && strings.Contains(strings.ToLower(strings.Join(path, ".")), "log")
}

// otherVersion is the version after value, or the same of what is none.
func otherVersion(value string) string {
	parts := version().FindStringSubmatch(value)
	if parts == nil {
		return value
	}
	n, _ := strconv.Atoi(parts[2]) // digits alone
	return parts[1] + strconv.Itoa(n+1)
}

// otherLevel is another level of what is logged than value, in its way of writing.
func otherLevel(value string) string {
	if version().MatchString(value) {
		return otherVersion(value)
	}
	other := "debug"
	if strings.EqualFold(value, other) {
		other = "info"
	}
	switch {
	case value == strings.ToLower(value):
		return other
	case value == strings.ToUpper(value):
		return strings.ToUpper(other)
	}
	return strings.ToUpper(other[:1]) + other[1:]
}
