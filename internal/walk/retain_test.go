package walk

import (
	"fmt"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// What goes on saying an entry that was taken out is named; what never said it, or says its key with another value, is not.
func TestRetains(t *testing.T) {
	said := func(name string, data map[string]any) observe.Operand {
		return observe.Operand{Kind: "ConfigMap", Namespace: "n", Name: name, Direct: true, Content: map[string]any{"data": data}}
	}
	all := func(list ...observe.Operand) map[string]observe.Operand {
		operands := map[string]observe.Operand{}
		for _, o := range list {
			operands[o.String()] = o
		}
		return operands
	}
	o := &newObject{Object: &observe.Object{Name: "q-new1"}}
	o.following.before = all(
		said("q-new1-user", map[string]any{"ttl": "60", "size": "1"}), said("q-new1", map[string]any{"conf": "ttl = 60\nsize = 1\n"}),
		said("q-new1-left", map[string]any{"conf": "ttl = 60\n"}), said("q-new1-other", map[string]any{"ttl": "9"}),
	)
	o.following.there = all(
		said("q-new1-user", map[string]any{"ttl": "60", "size": "1"}), said("q-new1", map[string]any{"conf": "ttl = 300\nsize = 1\n"}),
		said("q-new1-left", map[string]any{"conf": "# changed\nttl = 60\n"}), said("q-new1-other", map[string]any{"ttl": "9"}),
	)
	if got, want := o.retains([2]string{"ttl", "60"}), []string{"ConfigMap …-left", "ConfigMap …-user"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// What a field asks for has to follow in all places in which it did.
func TestKeepsInTheWorld(t *testing.T) {
	p, plan := thingsOf(t, lifecycle.AllNamespaces, `{"size":1,"depth":40}`, "v1", "v2", "v3")
	expectAll(t, p, plan, []pairing{
		{doubles, doubles, "", ""},
		{halves, halves, "", ""},
		{doubles, halves, code.DoesLess, "after a change of its spec.depth, what it asked for before stays in ConfigMap data.depth"},
	})
}

// A kind with many fields is tried to the last of them.
func TestManyFields(t *testing.T) {
	spec := `{"size":1,"depth":40`
	for i := range 20 {
		spec += fmt.Sprintf(`,"count%02d":%d`, i, 1000+i)
	}
	define := func() *apiextensionsv1.CustomResourceDefinition {
		d := thingDefinition()
		for i := range 20 {
			d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties[fmt.Sprintf("count%02d", i)] = apiextensionsv1.JSONSchemaProps{Type: "integer"}
		}
		return d
	}
	p, plan := packageOf(t, lifecycle.AllNamespaces, `[{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":`+spec+`}}]`, []string{"v1", "v2", "v3"}, define)
	expectAll(t, p, plan, []pairing{
		{doubles, doubles, "", ""},
		{doubles, halves, code.DoesLess, "after a change of its spec.depth, what it asked for before stays in ConfigMap data.depth"},
	})
}

// What cannot be changed back keeps nothing from being tried that comes next.
func TestPutRight(t *testing.T) {
	p, plan := thingsOf(t, lifecycle.AllNamespaces, `{"size":1,"depth":40,"note":"x"}`, "v1", "v2", "v3")
	expectAll(t, p, plan, []pairing{
		{jams, jams, "", ""},
		{jams, jamsMore, code.DoesLess, "a change of its spec.note"},
	})
}

// What says something else, or never said what the field asks for, keeps nothing.
func TestKeeps(t *testing.T) {
	said := func(port, probe, line string) map[string]observe.Operand {
		service := observe.Operand{Kind: "Service", Namespace: "n", Name: "q-new1", Direct: true, Content: map[string]any{"spec": map[string]any{"port": port, "probe": probe, "other": "6379"}}}
		file := observe.Operand{Kind: "ConfigMap", Namespace: "n", Name: "q-new1", Direct: true, Content: map[string]any{"data": map[string]any{"conf": line}}}
		return map[string]observe.Operand{service.String(): service, file.String(): file}
	}
	traces := []string{"ConfigMap data.conf", "Service spec.port", "Service spec.probe", "Service spec.gone"}
	for name, c := range map[string]struct {
		asked         string
		before, there map[string]observe.Operand
		want          []string
	}{
		"all follow":           {"6379", said("6379", "6379", "port 6379"), said("6386", "6386", "port 6386"), nil},
		"a probe does not":     {"6379", said("6379", "6379", "port 6379"), said("6386", "6379", "port 6386"), []string{"Service spec.probe"}},
		"a line does not":      {"6379", said("6379", "6379", "port 6379"), said("6386", "6386", "port 6379"), []string{"ConfigMap data.conf"}},
		"it never said so":     {"6379", said("6379", "redis", "port 6379"), said("6386", "redis", "port 6386"), nil},
		"by chance":            {"6", said("6", "16", "port 6379"), said("7", "16", "port 6379"), nil},
		"nothing is asked for": {"", said("6379", "", ""), said("6386", "", ""), nil},
	} {
		o := &newObject{Object: &observe.Object{Name: "q-new1"}}
		o.following.asked, o.following.before, o.following.there = c.asked, c.before, c.there
		if got := o.keeps(traces); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestAskedIn(t *testing.T) {
	object := map[string]any{"spec": map[string]any{"port": int64(6379), "tls": true, "host": "a", "labels": map[string]any{"k": "v"}, "list": []any{"a"}}}
	for path, want := range map[string]string{"spec.port": "6379", "spec.tls": "true", "spec.host (leaving that out)": "a", "spec.list (without the last)": "", "spec.none": ""} {
		if got := (step{Path: path}).askedIn(object); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if got := (step{Path: "spec.labels", Entry: [2]string{"k", "v"}}).askedIn(object); got != "v" {
		t.Error(got)
	}
}
