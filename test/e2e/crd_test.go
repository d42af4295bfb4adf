//go:build linux

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/check"
)

var (
	crdResource  = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	planResource = schema.GroupVersionResource{Group: "operators.coreos.com", Version: "v1alpha1", Resource: "installplans"}
)

// fields is an object of Kubernetes, or a part of one.
type fields = map[string]any

// pot is a CustomResourceDefinition of group, with two served versions and a field of most kinds.
func pot(group string) fields {
	version := func(name string, storage bool) fields {
		return fields{
			"name": name, "served": true, "storage": storage, "subresources": fields{"status": fields{}},
			"schema": fields{"openAPIV3Schema": fields{"type": "object", "properties": fields{
				"spec": fields{"type": "object", "properties": fields{
					"size":   fields{"type": "integer", "minimum": 1, "maximum": 10},
					"mode":   fields{"type": "string", "enum": []any{"fast", "slow"}},
					"name":   fields{"type": "string", "maxLength": 20},
					"port":   fields{"x-kubernetes-int-or-string": true},
					"tags":   fields{"type": "array", "items": fields{"type": "string"}},
					"labels": fields{"type": "object", "additionalProperties": fields{"type": "string"}},
					"free":   fields{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
					"level":  fields{"type": "integer", "default": 3},
					"lid":    fields{"type": "object", "properties": fields{"colour": fields{"type": "string"}, "open": fields{"type": "boolean"}}},
					"steps": fields{"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{"id"}, "items": fields{
						"type": "object", "required": []any{"id"}, "properties": fields{"id": fields{"type": "string"}, "weight": fields{"type": "number"}},
					}},
				}},
				"status": fields{"type": "object", "properties": fields{"ready": fields{"type": "boolean"}}},
			}}},
		}
	}
	return fields{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": fields{"name": "pots." + group},
		"spec": fields{
			"group": group, "scope": "Namespaced",
			"names":    fields{"kind": "Pot", "listKind": "PotList", "plural": "pots", "singular": "pot", "shortNames": []any{"pt"}},
			"versions": []any{version("v1alpha1", false), version("v1", true)},
		},
	}
}

// at returns the part of o at path, which is there.
func at(o fields, path ...any) fields {
	var part any = o
	for _, step := range path {
		switch s := step.(type) {
		case string:
			part = part.(fields)[s]
		case int:
			part = part.([]any)[s]
		}
	}
	return part.(fields)
}

// specOf returns the schema of the spec in a version, 0 or 1.
func specOf(crd fields, version int) fields {
	return at(crd, "spec", "versions", version, "schema", "openAPIV3Schema", "properties", "spec")
}

// A mutation changes a CRD as authors do, well or badly. What it does to the schema it does in one version.
var mutations = map[string]func(r *rand.Rand, crd, spec fields){
	"required":             func(_ *rand.Rand, _, spec fields) { spec["required"] = []any{"name"} },
	"required and default": func(_ *rand.Rand, _, spec fields) { spec["required"] = []any{"level"} },
	"required, new default": func(_ *rand.Rand, _, spec fields) {
		spec["required"] = []any{"mode"}
		at(spec, "properties", "mode")["default"] = "slow"
	},
	"required, unknown": func(_ *rand.Rand, _, spec fields) { spec["required"] = []any{"handle"} },
	"required deep":     func(_ *rand.Rand, _, spec fields) { at(spec, "properties", "lid")["required"] = []any{"open"} },
	"required in items": func(_ *rand.Rand, _, spec fields) {
		at(spec, "properties", "steps", "items")["required"] = []any{"id", "weight"}
	},
	"new field": func(_ *rand.Rand, _, spec fields) { at(spec, "properties")["handle"] = fields{"type": "string"} },
	"new field, default": func(_ *rand.Rand, _, spec fields) {
		at(spec, "properties")["handle"] = fields{"type": "string", "default": "left"}
	},
	"wrong default": func(_ *rand.Rand, _, spec fields) {
		at(spec, "properties")["handle"] = fields{"type": "string", "default": 3}
	},
	"enum narrower": func(_ *rand.Rand, _, spec fields) { at(spec, "properties", "mode")["enum"] = []any{"fast"} },
	"enum wider": func(_ *rand.Rand, _, spec fields) {
		at(spec, "properties", "mode")["enum"] = []any{"fast", "slow", "still"}
	},
	"enum new":              func(_ *rand.Rand, _, spec fields) { at(spec, "properties", "name")["enum"] = []any{"one", "two"} },
	"maximum lower":         func(r *rand.Rand, _, spec fields) { at(spec, "properties", "size")["maximum"] = 2 + r.IntN(8) },
	"maximum higher":        func(_ *rand.Rand, _, spec fields) { at(spec, "properties", "size")["maximum"] = 20 },
	"minimum higher":        func(r *rand.Rand, _, spec fields) { at(spec, "properties", "size")["minimum"] = 1 + r.IntN(4) },
	"exclusive":             func(_ *rand.Rand, _, spec fields) { at(spec, "properties", "size")["exclusiveMaximum"] = true },
	"multiple":              func(_ *rand.Rand, _, spec fields) { at(spec, "properties", "size")["multipleOf"] = 2 },
	"minimum above maximum": func(_ *rand.Rand, _, spec fields) { at(spec, "properties", "size")["minimum"] = 30 },
	"pattern":               func(_ *rand.Rand, _, spec fields) { at(spec, "properties", "name")["pattern"] = "^[a-m]+$" },
	"bad pattern":           func(_ *rand.Rand, _, spec fields) { at(spec, "properties", "name")["pattern"] = "[" },
	"format":                func(_ *rand.Rand, _, spec fields) { at(spec, "properties", "name")["format"] = "date" },
	"shorter":               func(_ *rand.Rand, _, spec fields) { at(spec, "properties", "name")["maxLength"] = 3 },
	"longer":                func(_ *rand.Rand, _, spec fields) { at(spec, "properties", "name")["minLength"] = 3 },
	"fewer items":           func(_ *rand.Rand, _, spec fields) { at(spec, "properties", "tags")["maxItems"] = 1 },
	"more items":            func(_ *rand.Rand, _, spec fields) { at(spec, "properties", "tags")["minItems"] = 1 },
	"unique items":          func(_ *rand.Rand, _, spec fields) { at(spec, "properties", "tags")["uniqueItems"] = true },
	"set":                   func(_ *rand.Rand, _, spec fields) { at(spec, "properties", "tags")["x-kubernetes-list-type"] = "set" },
	"keyless map":           func(_ *rand.Rand, _, spec fields) { at(spec, "properties", "tags")["x-kubernetes-list-type"] = "map" },
	"other key": func(_ *rand.Rand, _, spec fields) {
		at(spec, "properties", "steps")["x-kubernetes-list-map-keys"] = []any{"weight"}
	},
	"list no map": func(_ *rand.Rand, _, spec fields) {
		delete(at(spec, "properties", "steps"), "x-kubernetes-list-type")
		delete(at(spec, "properties", "steps"), "x-kubernetes-list-map-keys")
	},
	"fewer labels": func(_ *rand.Rand, _, spec fields) { at(spec, "properties", "labels")["maxProperties"] = 1 },
	"labels are numbers": func(_ *rand.Rand, _, spec fields) {
		at(spec, "properties", "labels")["additionalProperties"] = fields{"type": "integer"}
	},
	"labels are fields": func(_ *rand.Rand, _, spec fields) {
		at(spec, "properties")["labels"] = fields{"type": "object", "properties": fields{"a": fields{"type": "string"}}}
	},
	"both kinds of fields": func(_ *rand.Rand, _, spec fields) {
		at(spec, "properties", "labels")["properties"] = fields{"a": fields{"type": "string"}}
	},
	"free no more": func(_ *rand.Rand, _, spec fields) {
		delete(at(spec, "properties", "free"), "x-kubernetes-preserve-unknown-fields")
	},
	"number": func(_ *rand.Rand, _, spec fields) { at(spec, "properties", "size")["type"] = "number" },
	"integer": func(_ *rand.Rand, _, spec fields) {
		at(spec, "properties", "steps", "items", "properties", "weight")["type"] = "integer"
	},
	"other type":       func(_ *rand.Rand, _, spec fields) { at(spec, "properties")["mode"] = fields{"type": "integer"} },
	"no type":          func(_ *rand.Rand, _, spec fields) { delete(at(spec, "properties", "name"), "type") },
	"no such type":     func(_ *rand.Rand, _, spec fields) { at(spec, "properties", "name")["type"] = "text" },
	"port is a number": func(_ *rand.Rand, _, spec fields) { at(spec, "properties")["port"] = fields{"type": "integer"} },
	"nullable":         func(_ *rand.Rand, _, spec fields) { at(spec, "properties", "name")["nullable"] = true },
	"field gone":       func(_ *rand.Rand, _, spec fields) { delete(at(spec, "properties"), "name") },
	"items gone":       func(_ *rand.Rand, _, spec fields) { delete(at(spec, "properties", "tags"), "items") },
	"reference":        func(_ *rand.Rand, _, spec fields) { at(spec, "properties")["lid"] = fields{"$ref": "#/lid"} },
	"one of": func(_ *rand.Rand, _, spec fields) {
		spec["oneOf"] = []any{fields{"required": []any{"size"}}, fields{"required": []any{"name"}}}
	},
	"any of": func(_ *rand.Rand, _, spec fields) { spec["anyOf"] = []any{fields{"required": []any{"tags"}}} },
	"not":    func(_ *rand.Rand, _, spec fields) { spec["not"] = fields{"required": []any{"free"}} },
	"type in one of": func(_ *rand.Rand, _, spec fields) {
		spec["oneOf"] = []any{fields{"properties": fields{"x": fields{"type": "string"}}}}
	},
	"rule": func(_ *rand.Rand, _, spec fields) {
		at(spec, "properties", "size")["x-kubernetes-validations"] = []any{fields{"rule": "self < 5"}}
	},
	"bad rule": func(_ *rand.Rand, _, spec fields) {
		spec["x-kubernetes-validations"] = []any{fields{"rule": "self.handle > 1"}}
	},
	"costly rule": func(_ *rand.Rand, _, spec fields) {
		spec["x-kubernetes-validations"] = []any{fields{"rule": "self.tags.all(a, self.tags.all(b, self.tags.all(c, self.tags.all(d, a + b == c + d))))"}}
	},
	"transition rule": func(_ *rand.Rand, _, spec fields) {
		at(spec, "properties", "size")["x-kubernetes-validations"] = []any{fields{"rule": "self >= oldSelf"}}
	},
	"default changed": func(_ *rand.Rand, _, spec fields) { at(spec, "properties", "level")["default"] = 4 },
	"default gone":    func(_ *rand.Rand, _, spec fields) { delete(at(spec, "properties", "level"), "default") },
	"embedded": func(_ *rand.Rand, _, spec fields) {
		at(spec, "properties")["lid"] = fields{"type": "object", "x-kubernetes-embedded-resource": true}
	},
	"metadata": func(_ *rand.Rand, crd, _ fields) {
		at(crd, "spec", "versions", 1, "schema", "openAPIV3Schema", "properties")["metadata"] = fields{"type": "object", "properties": fields{"labels": fields{"type": "object"}}}
	},
	"cluster-wide":       func(_ *rand.Rand, crd, _ fields) { at(crd, "spec")["scope"] = "Cluster" },
	"other kind":         func(_ *rand.Rand, crd, _ fields) { at(crd, "spec", "names")["kind"] = "Kettle" },
	"other list kind":    func(_ *rand.Rand, crd, _ fields) { at(crd, "spec", "names")["listKind"] = "Pots" },
	"other plural":       func(_ *rand.Rand, crd, _ fields) { at(crd, "spec", "names")["plural"] = "kettles" },
	"capital short name": func(_ *rand.Rand, crd, _ fields) { at(crd, "spec", "names")["shortNames"] = []any{"PT"} },
	"version gone": func(_ *rand.Rand, crd, _ fields) {
		at(crd, "spec")["versions"] = at(crd, "spec")["versions"].([]any)[1:]
	},
	"stored version gone": func(_ *rand.Rand, crd, _ fields) {
		at(crd, "spec")["versions"] = at(crd, "spec")["versions"].([]any)[:1]
		at(crd, "spec", "versions", 0)["storage"] = true
	},
	"unserved": func(_ *rand.Rand, crd, _ fields) { at(crd, "spec", "versions", 0)["served"] = false },
	"other storage": func(_ *rand.Rand, crd, _ fields) {
		at(crd, "spec", "versions", 0)["storage"], at(crd, "spec", "versions", 1)["storage"] = true, false
	},
	"two storages":  func(_ *rand.Rand, crd, _ fields) { at(crd, "spec", "versions", 0)["storage"] = true },
	"no storage":    func(_ *rand.Rand, crd, _ fields) { at(crd, "spec", "versions", 1)["storage"] = false },
	"version twice": func(_ *rand.Rand, crd, _ fields) { at(crd, "spec", "versions", 0)["name"] = "v1" },
	"no schema":     func(_ *rand.Rand, crd, _ fields) { delete(at(crd, "spec", "versions", 0), "schema") },
	"no status":     func(_ *rand.Rand, crd, _ fields) { delete(at(crd, "spec", "versions", 1), "subresources") },
	"scale": func(_ *rand.Rand, crd, _ fields) {
		at(crd, "spec", "versions", 1, "subresources")["scale"] = fields{"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
	},
	"bad scale": func(_ *rand.Rand, crd, _ fields) {
		at(crd, "spec", "versions", 1, "subresources")["scale"] = fields{"specReplicasPath": "spec", "statusReplicasPath": ".status.size"}
	},
	"column": func(_ *rand.Rand, crd, _ fields) {
		at(crd, "spec", "versions", 1)["additionalPrinterColumns"] = []any{fields{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}}
	},
	"bad column": func(_ *rand.Rand, crd, _ fields) {
		at(crd, "spec", "versions", 1)["additionalPrinterColumns"] = []any{fields{"name": "Size", "type": "size", "jsonPath": "spec.size"}}
	},
	"selectable": func(_ *rand.Rand, crd, _ fields) {
		at(crd, "spec", "versions", 1)["selectableFields"] = []any{fields{"jsonPath": ".spec.mode"}}
	},
	"not selectable": func(_ *rand.Rand, crd, _ fields) {
		at(crd, "spec", "versions", 1)["selectableFields"] = []any{fields{"jsonPath": ".spec.tags"}}
	},
}

// potSpec makes the spec of an object that fits an unchanged pot.
func potSpec(r *rand.Rand) fields {
	all := fields{
		"size": 1 + r.IntN(10), "mode": []any{"fast", "slow"}[r.IntN(2)], "name": []any{"a", "one", "zebra", "2024-02-30"}[r.IntN(4)],
		"port": []any{80, "http"}[r.IntN(2)], "tags": []any{"a", "b", "a"}[:r.IntN(4)], "labels": fields{"a": "x", "b": "7"},
		"free": fields{"anything": r.IntN(9)}, "lid": []any{fields{}, fields{"colour": "red"}, fields{"open": true}}[r.IntN(3)],
		"steps": []any{fields{"id": "p"}, fields{"id": "q", "weight": 1.5}}[:r.IntN(3)],
	}
	for name := range all {
		if r.IntN(3) == 0 {
			delete(all, name)
		}
	}
	return all
}

// pairCase is an update of a CRD by a release, with objects that users have.
type pairCase struct {
	group    string
	applied  []string // names of the mutations
	old, new fields
	samples  []fields
}

func makeCase(number int, r *rand.Rand, names []string) pairCase {
	c := pairCase{group: fmt.Sprintf("case%d.example.com", number)}
	c.old, c.new = pot(c.group), pot(c.group)
	for range 1 + r.IntN(2) {
		name := names[(number+len(c.applied)*7)%len(names)] // each in turn, in pairs that change
		c.applied = append(c.applied, name)
	}
	if len(c.applied) > 1 && r.IntN(2) == 0 {
		c.applied[1] = names[r.IntN(len(names))]
	}
	for _, name := range c.applied {
		func() {
			defer func() { _ = recover() }() // what an earlier mutation took away cannot be changed
			mutations[name](r, c.new, specOf(c.new, r.IntN(2)))
		}()
	}
	for i := range 4 {
		version := []string{"v1", "v1alpha1"}[r.IntN(2)]
		c.samples = append(c.samples, fields{
			"apiVersion": c.group + "/" + version, "kind": "Pot", "metadata": fields{"name": fmt.Sprintf("pot-%d", i)}, "spec": potSpec(r),
		})
	}
	return c
}

// codes returns the codes of what the static checks say of the release with c.old and the one with c.new, of all and of
// the upgrade to the second.
func (c pairCase) codes(t *testing.T) map[string]string {
	t.Helper()
	examples, err := json.Marshal(c.samples)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	write := func(document any) {
		data, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(data, '\n'))
	}
	write(fields{"schema": "olm.package", "name": "tea", "defaultChannel": "stable"})
	write(fields{"schema": "olm.channel", "package": "tea", "name": "stable", "entries": []any{fields{"name": "tea.v1.0.0"}, fields{"name": "tea.v2.0.0", "replaces": "tea.v1.0.0"}}})
	for version, crd := range map[string]fields{"1.0.0": c.old, "2.0.0": c.new} {
		csv := fields{
			"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
			"metadata": fields{"name": "tea.v" + version, "annotations": fields{"alm-examples": string(examples)}}, "spec": fields{"version": version},
		}
		properties := []any{fields{"type": "olm.package", "value": fields{"packageName": "tea", "version": version}}}
		for _, o := range []fields{csv, crd} {
			data, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			properties = append(properties, fields{"type": "olm.bundle.object", "value": fields{"data": data}})
		}
		write(fields{"schema": "olm.bundle", "package": "tea", "name": "tea.v" + version, "image": "", "properties": properties})
	}
	findings, _ := check.Catalog(catalog.Parse("tea.json", []byte(out.String())), check.Options{Only: []string{"CRD", "SCH"}})
	said := map[string]string{}
	for _, f := range findings {
		said[f.Code] += f.Message + "\n"
	}
	return said
}

// fresh returns a copy of o as a request's body.
func fresh(t *testing.T, o fields) *unstructured.Unstructured {
	t.Helper()
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return u
}

// TestCRDJudgement holds what the static checks say of CRDs, alone and from one release to the next, against what the real
// API server and OLM's own catalog operator do with them. OLMKIT_CRD_CASES sets how many. In short it is
// every second one.
func TestCRDJudgement(t *testing.T) {
	t.Parallel()
	cases := len(mutations)
	if s := os.Getenv("OLMKIT_CRD_CASES"); s != "" {
		var err error
		if cases, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	_, config := up(t, "crd-judgement", "--olm")
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 200, 400
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(mutations))
	for name := range mutations {
		names = append(names, name)
	}
	slices.Sort(names)
	step := 1
	if testing.Short() {
		step = 2
	}
	var tally struct{ created, refused, updated, unupdatable, installed, held int }
	for number := 0; number < cases; number += step {
		r := rand.New(rand.NewPCG(uint64(number), 11))
		c := makeCase(number, r, names)
		said := c.codes(t)
		complain := func(format string, args ...any) {
			t.Errorf("case %d (%s): %s\nwe say %v", number, strings.Join(c.applied, ", "), fmt.Sprintf(format, args...), said)
		}

		// Alone: the new CRD under a name of its own.
		alone := makeCase(number, rand.New(rand.NewPCG(uint64(number), 11)), names)
		renamed := strings.ReplaceAll(string(mustJSON(t, alone.new)), c.group, "alone-"+c.group)
		var body fields
		if err := json.Unmarshal([]byte(renamed), &body); err != nil {
			t.Fatal(err)
		}
		_, err := client.Resource(crdResource).Create(t.Context(), fresh(t, body), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		switch _, bad := said["SCH001"]; {
		case err != nil && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err):
			t.Fatalf("case %d: %v", number, err)
		case (err != nil) != bad:
			complain("the API server says of the CRD: %v", err)
		case bad:
			tally.refused++
		default:
			tally.created++
		}

		// After the old one, with objects.
		if _, err := client.Resource(crdResource).Create(t.Context(), fresh(t, c.old), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		existing := c.create(t, client)
		update := fresh(t, c.new)
		current, err := client.Resource(crdResource).Get(t.Context(), update.GetName(), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		update.SetResourceVersion(current.GetResourceVersion())
		_, err = client.Resource(crdResource).Update(t.Context(), update, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		_, removed := said["CRD001"]
		_, invalid := said["CRD005"]
		switch {
		case (err != nil) != (removed || invalid):
			complain("the API server says of the update: %v", err)
		case err != nil:
			tally.unupdatable++
		default:
			tally.updated++
		}
		if t.Failed() || err != nil {
			continue
		}

		refusal := c.install(t, client)
		_, sample := said["CRD008"]
		warned := sample || said["CRD006"] != "" || said["CRD013"] != "" || said["CRD018"] != ""
		switch {
		case refusal == "" && sample && existing == len(c.samples):
			complain("OLM installs it, with all samples there")
		case refusal != "" && !warned:
			complain("OLM says: %s", refusal)
		case refusal == "":
			tally.installed++
		default:
			tally.held++
		}
	}
	t.Logf("%d CRDs: %d created and %d refused alone; %d updated and %d refused after the old one; of those OLM installed %d and held %d back for objects",
		cases/step, tally.created, tally.refused, tally.updated, tally.unupdatable, tally.installed, tally.held)
	if tally.refused < cases/10/step || tally.unupdatable < cases/10/step || tally.held < cases/20/step {
		t.Errorf("that tests too little: %+v", tally)
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// create makes the samples as soon as the API server serves them, and returns how many there are.
func (c pairCase) create(t *testing.T, client dynamic.Interface) int {
	t.Helper()
	made := 0
	for _, s := range c.samples {
		_, version, _ := strings.Cut(s["apiVersion"].(string), "/")
		resource := client.Resource(schema.GroupVersionResource{Group: c.group, Version: version, Resource: "pots"}).Namespace("default")
		eventually(t, "create a sample", func() error {
			_, err := resource.Create(t.Context(), fresh(t, s), metav1.CreateOptions{})
			switch {
			case apierrors.IsInvalid(err):
				return nil
			case err == nil || apierrors.IsAlreadyExists(err):
				made++
				return nil
			}
			return err
		})
	}
	return made
}

// install lets OLM's catalog operator replace the CRD by an InstallPlan of this one step. It returns why OLM does not, or "".
func (c pairCase) install(t *testing.T, client dynamic.Interface) string {
	t.Helper()
	plan := &v1alpha1.InstallPlan{
		TypeMeta:   metav1.TypeMeta{APIVersion: "operators.coreos.com/v1alpha1", Kind: "InstallPlan"},
		ObjectMeta: metav1.ObjectMeta{Name: strings.Split(c.group, ".")[0], Namespace: "operators"},
		Spec:       v1alpha1.InstallPlanSpec{Approval: v1alpha1.ApprovalAutomatic, Approved: true, ClusterServiceVersionNames: []string{"tea.v2.0.0"}},
	}
	plans := client.Resource(planResource).Namespace(plan.Namespace)
	encode := func() *unstructured.Unstructured {
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(plan)
		if err != nil {
			t.Fatal(err)
		}
		return &unstructured.Unstructured{Object: u}
	}
	made, err := plans.Create(t.Context(), encode(), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	plan.ResourceVersion, plan.UID = made.GetResourceVersion(), made.GetUID()
	plan.Status = v1alpha1.InstallPlanStatus{
		Phase: v1alpha1.InstallPlanPhaseInstalling, CatalogSources: []string{},
		Plan: []*v1alpha1.Step{{
			Resolving: "tea.v2.0.0", Status: v1alpha1.StepStatusUnknown,
			Resource: v1alpha1.StepResource{
				Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Name: "pots." + c.group, Manifest: string(mustJSON(t, c.new)),
			},
		}},
	}
	if _, err := plans.UpdateStatus(t.Context(), encode(), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	var refusal string
	eventually(t, "carry out the InstallPlan "+plan.Name, func() error {
		u, err := plans.Get(t.Context(), plan.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		var now v1alpha1.InstallPlan
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &now); err != nil {
			return err
		}
		if now.Status.Phase == v1alpha1.InstallPlanPhaseComplete {
			return nil
		}
		if refusal = now.Status.Message; refusal != "" {
			return nil
		}
		return fmt.Errorf("it is in phase %s", now.Status.Phase)
	})
	if err := plans.Delete(context.WithoutCancel(t.Context()), plan.Name, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	return refusal
}
