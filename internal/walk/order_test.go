package walk

import (
	"maps"
	"strconv"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/olmkit/olmkit/internal/observe"
)

// TestUnsteady: what is said in another order is told from what says something else, and whether that replaces pods.
func TestUnsteady(t *testing.T) {
	const summed = "{spec: {template: {metadata: {annotations: {checksum/config: abc}}}}}"
	for name, c := range map[string]struct {
		kind     string
		contents []string
		beside   string // a Deployment
		unsteady bool
		replaces bool
	}{
		"the same":                        {kind: "ConfigMap", contents: []string{"{data: {a: 'b c'}}", "{data: {a: 'b c'}}"}},
		"lines in another order":          {kind: "ConfigMap", contents: []string{`{data: {a: "b\nc"}}`, `{data: {a: "c\nb"}}`}, unsteady: true},
		"and back":                        {kind: "ConfigMap", contents: []string{`{data: {a: "b\nc"}}`, `{data: {a: "c\nb"}}`, `{data: {a: "b\nc"}}`}, unsteady: true},
		"after another change":            {kind: "ConfigMap", contents: []string{`{data: {a: "b\nc"}}`, `{data: {a: "c"}}`, `{data: {a: "c\nb"}}`}},
		"words change lines":              {kind: "ConfigMap", contents: []string{`{data: {a: "x 1\ny 2"}}`, `{data: {a: "x 2\ny 1"}}`}},
		"pods have a sum of it":           {kind: "ConfigMap", contents: []string{`{data: {a: "b\nc"}}`, `{data: {a: "c\nb"}}`}, beside: summed, unsteady: true, replaces: true},
		"pods are marked":                 {kind: "ConfigMap", contents: []string{`{data: {a: "b\nc"}}`, `{data: {a: "c\nb"}}`}, beside: `{spec: {template: {metadata: {annotations: {scrape: "true", container: abcdefghijklmnopqrstuvw}}}}}`, unsteady: true},
		"words in another order":          {kind: "ConfigMap", contents: []string{"{data: {a: 'x=1,y=2'}}", "{data: {a: 'y=2,x=1'}}"}, unsteady: true},
		"another value":                   {kind: "ConfigMap", contents: []string{"{data: {a: 'x=1,y=2'}}", "{data: {a: 'x=2,y=2'}}", "{data: {a: 'x=1,y=2'}}"}},
		"an empty line more":              {kind: "ConfigMap", contents: []string{`{data: {a: "b"}}`, `{data: {a: "b\n"}}`, `{data: {a: "b"}}`}},
		"another key has it":              {kind: "ConfigMap", contents: []string{"{data: {a: x, b: y}}", "{data: {a: y, b: x}}"}},
		"a list in another order":         {kind: "Deployment", contents: []string{"{env: [{name: a}, {name: b}]}", "{env: [{name: b}, {name: a}]}"}, unsteady: true, replaces: true},
		"a list within a list":            {kind: "Service", contents: []string{"{ports: [{of: [1, 2]}, 3]}", "{ports: [3, {of: [2, 1]}]}"}, unsteady: true},
		"a longer list":                   {kind: "Deployment", contents: []string{"{env: [{name: a}]}", "{env: [{name: a}, {name: a}]}"}},
		"a number and a word of the same": {kind: "Service", contents: []string{"{port: 1}", "{port: '1'}"}},
		"what comes and goes":             {kind: "Pod", contents: []string{`{data: {a: "b\nc"}}`, `{data: {a: "c\nb"}}`}},
	} {
		o := &newObject{Object: &observe.Object{Name: "a-new2"}}
		operands := map[string]observe.Operand{}
		see := func(name, kind, content string, version int) {
			made := observe.Operand{Kind: kind, Name: name, Direct: true, ResourceVersion: strconv.Itoa(version)}
			if err := yaml.Unmarshal([]byte(content), &made.Content); err != nil {
				t.Fatal(err)
			}
			operands[made.String()] = made
			o.remember(maps.Clone(operands))
		}
		if c.beside != "" {
			see("beside", "Deployment", c.beside, 1)
		}
		for i, content := range c.contents {
			see("a-new2", c.kind, content, i)
		}
		replaces, unsteady := o.unsteadyOf(operands)[c.kind]
		if unsteady != c.unsteady || replaces != c.replaces {
			t.Errorf("%s: unsteady %t, replaces pods %t", name, unsteady, replaces)
		}
	}
}
