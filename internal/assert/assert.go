// Package assert reads the assertions that users write about objects, and compares objects with them.
//
// An assertion is a partial object, as the assert files of kuttl and chainsaw hold them: a mapping names some fields of the
// object's, a list all items of the object's. What stands in parentheses, as (conditions[?type == 'Ready']), is an
// expression, as in chainsaw.
package assert

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jmespath-community/go-jmespath/pkg/binding"
	"github.com/kyverno/kyverno-json/pkg/core/assertion"
	"github.com/kyverno/kyverno-json/pkg/core/compilers"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/finding"
)

// DefaultTimeout is how long an assertion may take to come true if its file has no TestAssert with a timeout.
const DefaultTimeout = 30 * time.Second

// Assertion is what one object has to say.
type Assertion struct {
	At        finding.Location
	Kind      schema.GroupVersionKind
	Namespace string            // "" if it names none
	Name      string            // "" for any object of the kind that has the labels
	Labels    map[string]string // those that it names with their values
	Timeout   time.Duration

	fields assertion.Assertion
}

// language is that of chainsaw: expressions are JMESPath unless they begin with "cel;".
var language = compilers.DefaultCompilers.WithDefaultCompiler(compilers.CompilerJP)

// Parse returns the assertions in data, which was read from file. Its errors begin with the place that they are about.
func Parse(file string, data []byte) ([]Assertion, error) {
	documents, err := document.Parse(file, data)
	if err != nil {
		return nil, err
	}
	var assertions []Assertion
	timeout := DefaultTimeout
	for _, d := range documents {
		var object map[string]any
		if err := utiljson.Unmarshal(d.JSON, &object); err != nil || object == nil {
			return nil, fmt.Errorf("%s: an assertion is a mapping with apiVersion and kind", d.At)
		}
		if twice := d.Duplicates(); len(twice) > 0 {
			return nil, fmt.Errorf("%s: the key %s stands twice in one mapping", twice[0].At, twice[0].Key)
		}
		version, _ := object["apiVersion"].(string)
		kind, _ := object["kind"].(string)
		group, err := schema.ParseGroupVersion(version)
		switch {
		case version == "" || kind == "" || err != nil:
			return nil, fmt.Errorf("%s: an assertion is a mapping with apiVersion and kind", d.At)
		case group.Group == "kuttl.dev" && kind == "TestAssert":
			if timeout, err = settings(d, object, timeout); err != nil {
				return nil, err
			}
			continue
		case group.Group == "kuttl.dev", group.Group == "chainsaw.kyverno.io":
			return nil, fmt.Errorf("%s: a %s runs a test and asserts nothing: give the file with the objects that it asserts", d.At, kind)
		}
		a, err := parse(d, object)
		if err != nil {
			return nil, err
		}
		a.Kind = group.WithKind(kind)
		assertions = append(assertions, a)
	}
	if len(assertions) == 0 {
		return nil, fmt.Errorf("%s: there is no object in it, so it asserts nothing", file)
	}
	for i := range assertions {
		assertions[i].Timeout = timeout
	}
	return assertions, nil
}

// settings returns the timeout of a kuttl TestAssert, or otherwise. Its collectors only say what to print of a failure, and
// are passed over; what else it asserts or runs is refused, because it would count as asserted.
func settings(d *document.Document, object map[string]any, otherwise time.Duration) (time.Duration, error) {
	for name := range object {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata", "timeout", "collectors"}, name) {
			return 0, fmt.Errorf("%s: the field %s of a TestAssert is not supported, only timeout is: take it out", d.Place(name), name)
		}
	}
	value, there := object["timeout"]
	if !there {
		return otherwise, nil
	}
	seconds, whole := value.(int64)
	if !whole || seconds < 1 || seconds > int64(time.Hour/time.Second) {
		return 0, fmt.Errorf("%s: the timeout of a TestAssert is a number of seconds from 1 to 3600", d.Place("timeout"))
	}
	return time.Duration(seconds) * time.Second, nil
}

// parse takes out of object what says which object is meant, and leaves its fields to the library.
func parse(d *document.Document, object map[string]any) (Assertion, error) {
	a := Assertion{At: d.At, Labels: map[string]string{}}
	metadata, _ := object["metadata"].(map[string]any)
	for name, to := range map[string]*string{"name": &a.Name, "namespace": &a.Namespace} {
		value, there := metadata[name]
		text, ok := value.(string)
		if there && (!ok || strings.HasPrefix(text, "(")) {
			return a, fmt.Errorf("%s: metadata.%s is a text, and no expression: leave it out and tell the object by its labels", d.Place("metadata", name), name)
		}
		*to = text
		delete(metadata, name)
	}
	labels, _ := metadata["labels"].(map[string]any)
	for key, value := range labels {
		if text, ok := value.(string); ok && !strings.HasPrefix(key, "(") && !strings.HasPrefix(text, "(") {
			a.Labels[key] = text
		}
	}
	delete(object, "apiVersion")
	delete(object, "kind")
	if len(metadata) == 0 {
		delete(object, "metadata")
	}
	fields, err := assertion.Parse(nil, object, language)
	if err != nil {
		return a, fmt.Errorf("%s: %s: %s", d.At, err.Field, err.Detail)
	}
	a.fields = fields
	return a, nil
}

// Bounds of what is told of one object: of differences, and of the characters of a value.
const (
	most    = 10
	longest = 200
)

// Differences says where object is not what a asserts, in the order of the fields; nil if it is.
func (a Assertion) Differences(object map[string]any) []string {
	found, err := a.fields.Assert(nil, object, binding.NewBindings())
	if err != nil {
		// It ends the comparison; what is not of the type that is asserted is no less a difference.
		var one *field.Error
		if !errors.As(err, &one) {
			return []string{abridge(err.Error())}
		}
		found = field.ErrorList{one}
	}
	var differences []string
	for _, e := range found {
		differences = append(differences, describe(e))
	}
	slices.SortFunc(differences, cmp.Compare[string])
	if n := len(differences); n > most {
		differences = append(differences[:most], fmt.Sprintf("and %d more", n-most))
	}
	return differences
}

// describe tells one difference: the field, what is asserted and what was found.
func describe(e *field.Error) string {
	if e.Type == field.ErrorTypeRequired {
		return abridge(e.Field) + " is missing"
	}
	said := abridge(e.Field) + ": " + abridge(strings.Replace(e.Detail, "Expected value: ", "expected ", 1))
	if e.Type == field.ErrorTypeInternal {
		return said
	}
	value, err := json.Marshal(e.BadValue)
	if err != nil {
		return said
	}
	return said + ", found " + abridge(string(value))
}

// abridge cuts text to what can be told.
func abridge(text string) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	if utf8.RuneCountInString(text) <= longest {
		return text
	}
	return string([]rune(text)[:longest-3]) + "..."
}
