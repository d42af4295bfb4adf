package fuzz

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

func unmarshal(data []byte, into any) error { return utiljson.Unmarshal(data, into) }

// reread returns object as JSON tells it.
func reread(t *testing.T, object map[string]any) map[string]any {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var again map[string]any
	if err := unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	return again
}

// definition returns a CRD with a version for each schema of spec, as YAML; the last one is stored.
func definition(t *testing.T, specs ...string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	d := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "things.example.com"}}
	d.Spec.Group, d.Spec.Scope = "example.com", apiextensionsv1.NamespaceScoped
	d.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Singular: "thing", Kind: "Thing", ListKind: "ThingList"}
	for i, spec := range specs {
		var props apiextensionsv1.JSONSchemaProps
		if err := yaml.UnmarshalStrict([]byte(spec), &props); err != nil {
			t.Fatal(err)
		}
		d.Spec.Versions = append(d.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: fmt.Sprintf("v%d", i+1), Served: true, Storage: i == len(specs)-1,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": props}, Required: []string{"spec"},
			}},
		})
	}
	return d
}

// mustBeValid fails the test unless the API server would take d.
func mustBeValid(t *testing.T, d *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	converted := &apiextensions.CustomResourceDefinition{}
	defaulted := d.DeepCopy()
	apiextensionsv1.SetDefaults_CustomResourceDefinition(defaulted)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&defaulted.Spec)
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(defaulted, converted, nil); err != nil {
		t.Fatal(err)
	}
	for _, e := range crdvalidation.ValidateCustomResourceDefinition(context.Background(), converted) {
		if !strings.HasPrefix(e.Field, "status") {
			t.Fatal(e)
		}
	}
}

// share returns how many of count seeds make an object of spec; each object has to be valid.
func share(t *testing.T, spec string, count int) int {
	t.Helper()
	d := definition(t, spec)
	mustBeValid(t, d)
	s, err := NewSchema(d, "v1")
	if err != nil {
		t.Fatal(err)
	}
	valid := 0
	for seed := range uint64(count) {
		object := s.Object(seed)
		if object == nil {
			continue
		}
		valid++
		if problems := s.Problems(reread(t, object)); len(problems) > 0 {
			t.Errorf("seed %d: %v", seed, problems)
		}
	}
	return valid
}

func TestObjectsOfHardSchemas(t *testing.T) {
	for name, spec := range map[string]string{
		"patterns and bounds": `
type: object
required: [name, port, ratio, step, tags]
properties:
  name: {type: string, pattern: "^[a-z]([-a-z0-9]*[a-z0-9])?$", minLength: 20, maxLength: 24}
  port: {type: integer, minimum: 1, exclusiveMinimum: true, maximum: 4}
  ratio: {type: number, minimum: 0.25, maximum: 0.5}
  step: {type: integer, multipleOf: 512, minimum: 1000, maximum: 4096}
  tags: {type: array, minItems: 3, maxItems: 4, x-kubernetes-list-type: set, items: {type: string, enum: [a, b, c, d]}}
  memory: {anyOf: [{type: integer}, {type: string}], x-kubernetes-int-or-string: true, pattern: '^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$'}`,
		"one of": `
type: object
properties:
  s3: {type: object, required: [bucket], properties: {bucket: {type: string, minLength: 3}}}
  gcs: {type: object, required: [bucket], properties: {bucket: {type: string}}}
  file: {type: string}
oneOf: [{required: [s3]}, {required: [gcs]}, {required: [file], properties: {file: {pattern: "^/"}}}]
minProperties: 1`,
		"not both": `
type: object
properties: {a: {type: string}, b: {type: string}, mode: {type: string}}
not: {required: [a, b]}
anyOf: [{properties: {mode: {enum: [x]}}, required: [mode]}, {properties: {mode: {enum: [y]}}, required: [mode, a]}]`,
		"map list": `
type: object
required: [ports, limits]
properties:
  ports:
    type: array
    minItems: 2
    x-kubernetes-list-type: map
    x-kubernetes-list-map-keys: [number, protocol]
    items: {type: object, required: [number], properties: {number: {type: integer, minimum: 80, maximum: 82}, protocol: {type: string, enum: [TCP, UDP], default: TCP}}}
  limits: {type: object, minProperties: 2, maxProperties: 3, additionalProperties: {type: integer, minimum: 1}}
  embedded: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}`,
		"formats": `
type: object
required: [a, b, c, d, e, f, g, h]
properties:
  a: {type: string, format: date-time}
  b: {type: string, format: ipv6}
  c: {type: string, format: cidr}
  d: {type: string, format: uuid}
  e: {type: string, format: byte}
  f: {type: string, format: duration}
  g: {type: string, format: email}
  h: {type: string, format: uri}`,
	} {
		t.Run(name, func(t *testing.T) {
			if valid := share(t, spec, 100); valid != 100 {
				t.Errorf("%d of 100 seeds make a valid object", valid)
			}
		})
	}
}

// TestObjectsOfRules: CEL rules as published APIs have them.
func TestObjectsOfRules(t *testing.T) {
	for name, spec := range map[string]string{
		"order": `{type: object, required: [min, max], properties: {min: {type: integer, minimum: 0, maximum: 1000}, max: {type: integer, minimum: 0, maximum: 1000}}, x-kubernetes-validations: [{rule: "self.min < self.max"}]}`,
		"discriminator": `
type: object
required: [type]
properties:
  type: {type: string, maxLength: 20}
  nodePort: {type: integer}
  host: {type: string, maxLength: 50}
x-kubernetes-validations:
- rule: "self.type in ['NodePort', 'Ingress', 'None']"
- rule: "self.type == 'NodePort' ? has(self.nodePort) : !has(self.nodePort)"
- rule: "self.type == 'Ingress' ? has(self.host) && self.host.endsWith('.example.com') : !has(self.host)"`,
		"exactly one": `
type: object
properties: {a: {type: string}, b: {type: string}, c: {type: string}}
x-kubernetes-validations: [{rule: "[has(self.a), has(self.b), has(self.c)].filter(x, x).size() == 1"}]`,
		"items": `
type: object
required: [servers]
properties:
  servers:
    type: array
    minItems: 1
    maxItems: 10
    items: {type: object, required: [name, weight], properties: {name: {type: string, maxLength: 30}, weight: {type: integer, minimum: 0, maximum: 100}}}
x-kubernetes-validations:
- rule: "self.servers.exists(s, s.name == 'primary')"
- rule: "self.servers.all(s, s.weight <= 50)"`,
		"odd": `{type: object, required: [size], properties: {size: {type: integer, minimum: 1, maximum: 9, x-kubernetes-validations: [{rule: "self % 2 == 1"}]}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if valid := share(t, spec, 100); valid < 95 {
				t.Errorf("%d of 100 seeds make a valid object", valid)
			}
		})
	}
}

// TestSingletonName: rules may say what an object is called.
func TestSingletonName(t *testing.T) {
	d := definition(t, `{type: object, properties: {a: {type: string}}}`)
	root := d.Spec.Versions[0].Schema.OpenAPIV3Schema
	root.XValidations = apiextensionsv1.ValidationRules{{Rule: "self.metadata.name == 'cluster'"}}
	s, err := NewSchema(d, "v1")
	if err != nil {
		t.Fatal(err)
	}
	if object := s.Object(1); object == nil || object["metadata"].(map[string]any)["name"] != "cluster" {
		t.Errorf("got %v", object)
	}
}

// TestUnsatisfiable: of what no object can satisfy none is made, and the search ends.
func TestUnsatisfiable(t *testing.T) {
	if valid := share(t, `{type: object, x-kubernetes-validations: [{rule: "false"}]}`, 3); valid != 0 {
		t.Errorf("%d objects", valid)
	}
}

// TestSchemasThatAskForTooMuch: the answer comes at once, that there is no such object.
func TestSchemasThatAskForTooMuch(t *testing.T) {
	for name, spec := range map[string]string{
		"text":  `{type: object, required: [a], properties: {a: {type: string, minLength: 3000000}}}`,
		"list":  `{type: object, required: [a], properties: {a: {type: array, minItems: 9000000000000000000, items: {type: integer}}}}`,
		"lists": `{type: object, required: [a], properties: {a: {type: array, minItems: 900, items: {type: array, minItems: 900, items: {type: array, minItems: 900, items: {type: string}}}}}}`,
		"map":   `{type: object, required: [a], properties: {a: {type: object, minProperties: 900000000, additionalProperties: {type: string}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s, err := NewSchema(definition(t, spec), "v1")
			if err != nil {
				t.Fatal(err)
			}
			g := &generator{Schema: s, random: rand.New(rand.NewPCG(1, 1)), budget: most}
			if data, err := json.Marshal(g.root(1)); err != nil || len(data) > 1<<20 {
				t.Errorf("%d bytes, %v", len(data), err)
			}
		})
	}
}

// TestLiteralsAreInOrder: a number and a text that look alike stand in the same order each time.
func TestLiteralsAreInOrder(t *testing.T) {
	d := definition(t, `{type: object, properties: {a: {type: string}}, x-kubernetes-validations: [{rule: "self.a in ['1', '2', '3', '4'] && size(self.a) in [1, 2, 3]"}]}`)
	var first []any
	for range 30 {
		s, err := NewSchema(d, "v1")
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = s.literals
		}
		if !reflect.DeepEqual(first, s.literals) {
			t.Fatalf("%v, then %v", first, s.literals)
		}
	}
}

// TestQuantitiesAreCanonical: what resource.Quantity would write in another way is no loss of a conversion.
func TestQuantitiesAreCanonical(t *testing.T) {
	d := definition(t, `
type: object
required: [memory]
properties:
  memory: {anyOf: [{type: integer}, {type: string}], x-kubernetes-int-or-string: true, pattern: '^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$'}`)
	s, err := NewSchema(d, "v1")
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(50) {
		said, _ := s.Object(seed)["spec"].(map[string]any)["memory"].(string)
		if q, err := resource.ParseQuantity(said); err != nil || q.String() != said {
			t.Errorf("seed %d: %q is %s (%v)", seed, said, q.String(), err)
		}
	}
}

func TestReplicasOfScale(t *testing.T) {
	d := definition(t, `{type: object, required: [replicas], properties: {replicas: {type: integer, format: int64}}}`)
	d.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Scale: &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.replicas"}}
	s, err := NewSchema(d, "v1")
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(300) {
		if n := s.Object(seed)["spec"].(map[string]any)["replicas"].(int64); n < 0 || n > 1<<31 {
			t.Errorf("seed %d: %d replicas", seed, n)
		}
	}
}

// TestRandomSchemas makes schemas at random, and objects of them.
func TestRandomSchemas(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const schemas, seeds = 150, 10
	valid := 0
	for range schemas {
		spec, err := json.Marshal(randomSchema(random, 0))
		if err != nil {
			t.Fatal(err)
		}
		valid += share(t, string(spec), seeds)
	}
	t.Logf("%d of %d seeds", valid, schemas*seeds)
	if valid < schemas*seeds*99/100 {
		t.Errorf("%d of %d seeds make a valid object", valid, schemas*seeds)
	}
}

// randomSchema returns a schema that some object satisfies.
func randomSchema(random *rand.Rand, depth int) map[string]any {
	if depth == 0 || depth < 4 && random.IntN(3) == 0 {
		properties, required := map[string]any{}, []any{}
		for i := range 1 + random.IntN(5) {
			name := fmt.Sprintf("f%d", i)
			properties[name] = randomSchema(random, depth+1)
			if random.IntN(3) == 0 {
				required = append(required, name)
			}
		}
		s := map[string]any{"type": "object", "properties": properties}
		if len(required) > 0 {
			s["required"] = required
		}
		if random.IntN(3) == 0 && len(properties) > 1 {
			s["oneOf"] = []any{map[string]any{"required": []any{"f0"}, "not": map[string]any{"required": []any{"f1"}}},
				map[string]any{"required": []any{"f1"}, "not": map[string]any{"required": []any{"f0"}}}}
			s["required"] = slices.DeleteFunc(required, func(name any) bool { return name == "f0" || name == "f1" })
			for _, name := range []string{"f0", "f1"} {
				delete(properties[name].(map[string]any), "default") // it would always be there
			}
		}
		return s
	}
	low := random.IntN(50)
	switch random.IntN(7) {
	case 0:
		return map[string]any{"type": "integer", "minimum": low, "maximum": low + random.IntN(10), "nullable": random.IntN(2) == 0}
	case 1:
		return map[string]any{"type": "string", "pattern": []string{"^[a-z]+(-[0-9]{2,3})?$", `^\d+(ms|s|m|h)$`, "^(a|b|cd)*x$", `[A-Z]\w`}[random.IntN(4)], "minLength": 3, "maxLength": 30}
	case 2:
		return map[string]any{"type": "string", "enum": []any{"A", "B", "C"}, "default": "B"}
	case 3:
		return map[string]any{"type": "array", "items": randomSchema(random, depth+1), "maxItems": 1 + random.IntN(4)}
	case 4:
		return map[string]any{"type": "object", "additionalProperties": randomSchema(random, depth+1), "minProperties": random.IntN(3)}
	case 5:
		return map[string]any{"x-kubernetes-int-or-string": true}
	}
	return map[string]any{"type": []string{"boolean", "string", "number"}[random.IntN(3)]}
}

func TestSeedsAreReproducible(t *testing.T) {
	d := definition(t, `{type: object, properties: {a: {type: object, additionalProperties: {type: string}}, b: {type: array, items: {type: integer}}, c: {x-kubernetes-int-or-string: true}}}`)
	different := map[string]bool{}
	for seed := range uint64(30) {
		var said []string
		for range 2 {
			s, err := NewSchema(d, "v1")
			if err != nil {
				t.Fatal(err)
			}
			data, _ := json.Marshal(s.Object(seed)["spec"])
			said = append(said, string(data))
		}
		if said[0] != said[1] {
			t.Errorf("seed %d: %s, then %s", seed, said[0], said[1])
		}
		different[said[0]] = true
	}
	if len(different) < 15 {
		t.Errorf("30 seeds made %d objects", len(different))
	}
}

// TestEveryFieldIsSet: as many seeds in a row as there are optional fields set each of them.
func TestEveryFieldIsSet(t *testing.T) {
	d := definition(t, `
type: object
properties:
  a: {type: object, properties: {b: {type: object, properties: {c: {type: array, items: {type: object, properties: {d: {type: string}}}}}}}}
  m: {type: object, additionalProperties: {type: object, properties: {n: {type: integer}}}}`)
	s, err := NewSchema(d, "v1")
	if err != nil {
		t.Fatal(err)
	}
	set := map[string]bool{}
	for seed := range uint64(len(s.optional)) {
		object := s.Object(seed)
		for _, p := range placesOf(object) {
			told := make([]string, 0, len(p))
			for i := range p {
				told = append(told, fmt.Sprint(p[i]))
			}
			set[s.fieldOf(object, strings.Join(told, "."))] = true
			set[s.fieldOf(object, pathOf(p))] = true
		}
	}
	for _, path := range s.optional {
		if !set[path] {
			t.Errorf("%s is set by no seed: %v", path, set)
		}
	}
}

// pathOf tells a place as Loss does.
func pathOf(p place) string {
	path := ""
	for _, step := range p {
		if name, ok := step.(string); ok {
			path = join(path, name)
		} else {
			path += fmt.Sprintf("[%d]", step)
		}
	}
	return path
}

func TestMatch(t *testing.T) {
	g := &generator{random: rand.New(rand.NewPCG(3, 4))}
	for _, pattern := range []string{
		`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`, `^(?:[01]\d|2[0-3]):[0-5]\d$`, `^v\d+(alpha|beta)?\d*$`,
		`(?i)^true|false$`, `^[^/]+/[^:]+:.{3,5}$`, `^\S+$`, `^$`, `^((a{2}){3}|b?)$`, `^\p{Lu}x$`,
	} {
		compiled := regexp.MustCompile(pattern)
		for range 50 {
			if made := g.match(pattern, 3); !compiled.MatchString(made) {
				t.Errorf("%s does not match %q", pattern, made)
			}
		}
	}
}

// two versions of a Thing: v1 has a flat size and zone, v2, which is stored, a list of zones and a nested size.
const (
	first = `
type: object
required: [size]
properties:
  size: {type: integer, format: int32, minimum: 1, maximum: 9}
  zone: {type: string, pattern: "^[a-z]{2,8}$"}
  labels: {type: object, additionalProperties: {type: string}}`
	second = `
type: object
required: [scale]
properties:
  scale: {type: object, required: [size], properties: {size: {type: integer, format: int32, minimum: 1, maximum: 9}, max: {type: integer, minimum: 1}}}
  zones: {type: array, items: {type: string, pattern: "^[a-z]{2,8}$"}}
  labels: {type: object, additionalProperties: {type: string}}`
)

// convertThings converts Things; lossy says what it forgets.
func convertThings(lossy string) func(context.Context, []map[string]any, string) ([]map[string]any, error) {
	const memory = "example.com/v2"
	return func(_ context.Context, objects []map[string]any, version string) ([]map[string]any, error) {
		var converted []map[string]any
		for _, o := range objects {
			o = runtime.DeepCopyJSON(o)
			metadata := o["metadata"].(map[string]any)
			annotations, _ := metadata["annotations"].(map[string]any)
			if annotations == nil {
				annotations = map[string]any{}
			}
			spec := o["spec"].(map[string]any)
			made := map[string]any{}
			if labels, has := spec["labels"]; has {
				made["labels"] = labels
			}
			if version == "v2" {
				if lossy == "refuses" && spec["zone"] == "xx" {
					return nil, fmt.Errorf("no such zone")
				}
				scale := map[string]any{"size": spec["size"]}
				made["scale"] = scale
				if zone, has := spec["zone"].(string); has {
					made["zones"] = []any{zone}
				}
				var kept map[string]any
				if said, has := annotations[memory].(string); has && unmarshal([]byte(said), &kept) == nil {
					if kept["max"] != nil {
						scale["max"] = kept["max"]
					}
					if others, has := kept["zones"].([]any); has && lossy != "zones" {
						made["zones"] = others
					}
				}
				delete(annotations, memory)
			} else {
				scale := spec["scale"].(map[string]any)
				made["size"] = scale["size"]
				zones, _ := spec["zones"].([]any)
				if len(zones) > 0 {
					made["zone"] = zones[0]
				}
				kept, _ := json.Marshal(map[string]any{"max": scale["max"], "zones": zones})
				annotations[memory] = string(kept)
			}
			if len(annotations) > 0 {
				metadata["annotations"] = annotations
			}
			o["apiVersion"], o["spec"] = "example.com/"+version, made
			converted = append(converted, o)
		}
		return converted, nil
	}
}

// lost is the simplest comparison there can be.
func lost(want, got map[string]any) []Loss {
	var losses []Loss
	for _, p := range placesOf(want) {
		if n := len(losses); n > 0 && within(pathOf(p), losses[n-1].Path) || n > 0 && strings.HasPrefix(pathOf(p), losses[n-1].Path+"[") {
			continue
		}
		was, is := valueAt(want, p), valueAt(got, p)
		_, isMap := was.(map[string]any)
		list, isList := was.([]any)
		if isMap || isList && (len(list) == 0 || is != nil) && len(list) == len(asList(is)) || reflect.DeepEqual(was, is) {
			continue
		}
		losses = append(losses, Loss{Path: pathOf(p), Text: fmt.Sprintf("%s was %v and is %v", pathOf(p), was, is)})
	}
	return losses
}

func asList(value any) []any {
	list, _ := value.([]any)
	return list
}

func things(t *testing.T, convert func(context.Context, []map[string]any, string) ([]map[string]any, error)) Options {
	return Options{
		Definition: definition(t, first, second), Namespace: "default", Count: 50, Seed: 1, Lost: lost, Convert: convert,
		Accept: func(context.Context, map[string]any) (error, error) { return nil, nil },
	}
}

func TestRunOnSoundConversion(t *testing.T) {
	result, err := Run(t.Context(), things(t, convertThings("")))
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Failures) > 0 || result.Made != 100 {
		t.Errorf("got %+v", result)
	}
}

func TestRunShrinksWhatIsLost(t *testing.T) {
	result, err := Run(t.Context(), things(t, convertThings("zones")))
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Failures) != 1 {
		t.Fatalf("got %+v", result.Failures)
	}
	f := result.Failures[0]
	if !result.Kinds[f.Kind()] || len(result.Kinds) != 1 {
		t.Errorf("kinds %v", result.Kinds)
	}
	least, _ := json.Marshal(f.Object["spec"])
	if f.Version != "v2" || f.Through != "v1" || f.Field != "spec.zones" || string(least) != `{"scale":{"size":1},"zones":["aa","aa"]}` && !regexp.MustCompile(`^\{"scale":\{"size":1\},"zones":\["[a-z]+","[a-z]+"\]\}$`).Match(least) {
		t.Errorf("got %+v: %s", f, least)
	}
	// The seed alone leads there again.
	o := things(t, convertThings("zones"))
	o.Count, o.Seed = 1, f.Seed
	again, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(again.Failures) != 1 || again.Failures[0].Field != f.Field || !reflect.DeepEqual(again.Failures[0].Object["spec"], f.Object["spec"]) {
		t.Errorf("seed %d: got %+v, then %+v", f.Seed, f, again.Failures)
	}
}

// TestRunFindsRefusals: a conversion that fails is told apart from one that loses, and hides no other object's loss.
func TestRunFindsRefusals(t *testing.T) {
	convert := convertThings("zones")
	o := things(t, func(ctx context.Context, objects []map[string]any, version string) ([]map[string]any, error) {
		for _, object := range objects {
			if spec := object["spec"].(map[string]any); version == "v2" && spec["labels"] != nil {
				return nil, fmt.Errorf("labels are not supported")
			}
		}
		return convert(ctx, objects, version)
	})
	result, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, f := range result.Failures {
		spec, _ := json.Marshal(f.Object["spec"])
		told = append(told, fmt.Sprint(f.Version, " ", f.Through, " ", f.Refused, " ", f.Field, " ", regexp.MustCompile(`"[a-z]{2,8}","[a-z]{2,8}"`).ReplaceAllString(string(spec), "2")))
	}
	slices.Sort(told)
	want := []string{`v1 v1 true  {"labels":{},"size":1}`, `v2 v1 false spec.zones {"scale":{"size":1},"zones":[2]}`, `v2 v1 true  {"labels":{},"scale":{"size":1}}`}
	if !slices.Equal(told, want) {
		t.Errorf("got  %q\nwant %q", told, want)
	}
}

// TestRunLeavesOutWhatAdmissionRefuses: an object that nobody can create loses nothing.
func TestRunLeavesOutWhatAdmissionRefuses(t *testing.T) {
	o := things(t, convertThings("zones"))
	o.Accept = func(_ context.Context, object map[string]any) (error, error) {
		if zones, _ := object["spec"].(map[string]any)["zones"].([]any); len(zones) > 1 {
			return fmt.Errorf("admission webhook denied the request: one zone at most"), nil
		}
		return nil, nil
	}
	result, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Failures) > 0 || result.Refused == 0 || !strings.Contains(result.Refusal, "one zone") {
		t.Errorf("got %+v", result)
	}
}

// TestRunWithoutWebhook: strategy None drops what the stored version does not know.
func TestRunWithoutWebhook(t *testing.T) {
	o := things(t, None("example.com"))
	o.Definition = definition(t, `{type: object, properties: {a: {type: string}, b: {type: string}}}`, `{type: object, properties: {a: {type: string}}}`)
	result, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Failures) != 1 || result.Failures[0].Field != "spec.b" || result.Failures[0].Through != "v1" {
		t.Errorf("got %+v", result.Failures)
	}
}

// A pattern whose loops write nothing comes to an end, too.
func TestEmptyLoops(t *testing.T) {
	g := generator{random: rand.New(rand.NewPCG(1, 2))}
	for _, pattern := range []string{`^((((((\b)*)*)*)*)*)*x*`, `(((((a?)*)*)*)*)*`, `((((()+)+)+)+)+`} {
		_ = g.match(pattern, 4096)
	}
}
