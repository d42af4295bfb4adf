package walk

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/observe"
)

// TestSetByOthers: what others set stays or is taken back; what the operator says itself, what did not stay before and what is made anew tells nothing.
func TestSetByOthers(t *testing.T) {
	operands := map[string]observe.Operand{}
	var there []runtime.Object
	for _, o := range []struct {
		apiVersion, kind, name string
		spec                   map[string]any
	}{
		{"apps/v1", "StatefulSet", "a", map[string]any{"replicas": int64(2)}},
		{"v1", "Service", "a", map[string]any{"sessionAffinity": "None"}},
		{"v1", "Service", "a-sticky", map[string]any{"sessionAffinity": "ClientIP"}},
		{"v1", "ServiceAccount", "a", nil},
		{"v1", "Secret", "a", nil},
		{"batch/v1", "CronJob", "a", map[string]any{"suspend": false}},
		{"batch/v1", "CronJob", "a-off", map[string]any{"suspend": true}},
	} {
		content := map[string]any{"apiVersion": o.apiVersion, "kind": o.kind, "metadata": map[string]any{"namespace": "n", "name": o.name, "uid": o.name}}
		if o.spec != nil {
			content["spec"] = o.spec
		}
		made := observe.Operand{Kind: o.kind, Namespace: "n", Name: o.name, UID: types.UID(o.name), Direct: true, Of: "Pot/n/a", Content: content}
		operands[made.String()] = made
		there = append(there, &unstructured.Unstructured{Object: content})
	}
	client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), there...)
	w := &walk{Cluster: &observe.Cluster{Dynamic: client}}
	o := &newObject{Object: &observe.Object{Kind: "Pot", CRD: "pots", Namespace: "n", Name: "a"}}
	var made []added
	for _, a := range append(slices.Clone(usualAdditions), scaling) {
		some, err := w.add(t.Context(), o, a, operands, map[string]bool{"the imagePullSecrets of ServiceAccount": false})
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, some...)
	}
	sets := client.Resource(observe.OperandResource("StatefulSet")).Namespace("n")
	if err := mergePatch(t.Context(), sets, "a", patchOf([]string{"spec", "replicas"}, 2)); err != nil { // the operator
		t.Fatal(err)
	}
	is, err := w.stay(t.Context(), made)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"the restart (kubectl rollout restart) of StatefulSet": true, "the sessionAffinity of Service": true, "the suspension of CronJob": true, "a key of Secret": true, "the replicas of StatefulSet": false}
	if !maps.Equal(is, want) {
		t.Errorf("%v, want %v", is, want)
	}
}

// TestCountToLeaveOut: the count nearest to the top that may be left out, and that nothing fills in.
func TestCountToLeaveOut(t *testing.T) {
	number := func(value string) apiextensionsv1.JSONSchemaProps {
		p := apiextensionsv1.JSONSchemaProps{Type: "integer"}
		if value != "" {
			p.Default = &apiextensionsv1.JSON{Raw: []byte(value)}
		}
		return p
	}
	type fields = map[string]apiextensionsv1.JSONSchemaProps
	object := map[string]any{"spec": map[string]any{"servers": map[string]any{}}}
	for name, c := range map[string]struct {
		spec apiextensionsv1.JSONSchemaProps
		want []string
	}{
		"optional":  {apiextensionsv1.JSONSchemaProps{Properties: fields{"port": number(""), "replicas": number("")}}, []string{"spec", "replicas"}},
		"required":  {apiextensionsv1.JSONSchemaProps{Required: []string{"replicas"}, Properties: fields{"replicas": number("")}}, nil},
		"filled in": {apiextensionsv1.JSONSchemaProps{Properties: fields{"replicas": number("1")}}, nil},
		"limiting":  {apiextensionsv1.JSONSchemaProps{Properties: fields{"maxReplicas": number("")}}, nil},
		"deeper":    {apiextensionsv1.JSONSchemaProps{Properties: fields{"servers": {Type: "object", Properties: fields{"size": number("")}}}}, []string{"spec", "servers", "size"}},
	} {
		t.Run(name, func(t *testing.T) {
			if is := countToLeaveOut(&apiextensionsv1.JSONSchemaProps{Properties: fields{"spec": c.spec}}, object); !slices.Equal(is, c.want) {
				t.Errorf("%v, want %v", is, c.want)
			}
		})
	}
}

// TestRefusedKinds: of each definition what runs first, and then what it makes otherwise; not what did not come before.
func TestRefusedKinds(t *testing.T) {
	made := func(kinds ...string) map[string]observe.Operand {
		operands := map[string]observe.Operand{}
		for _, kind := range kinds {
			operands[kind] = observe.Operand{Kind: kind, Direct: kind != "ReplicaSet"}
		}
		return operands
	}
	copies := []*newObject{
		{Object: &observe.Object{CRD: "pots"}, first: made("Service", "Deployment", "ReplicaSet")},
		{Object: &observe.Object{CRD: "teas"}, first: made("Secret", "ReplicaSet")},
		{Object: &observe.Object{CRD: "cups"}, first: made("Service", "Job")},
	}
	before := map[string]judge.New{"pots": {Retries: map[string]bool{"Deployment": true}}, "cups": {Retries: map[string]bool{"Job": false}}}
	if is, want := refusedKinds(copies, before), map[string]string{"pots": "Deployment"}; !maps.Equal(is, want) {
		t.Errorf("%v, want %v", is, want)
	}
	room := roomFor(map[string]string{"pots": "Deployment", "cups": "Service"}, "0")
	if names := slices.Sorted(maps.Keys(room)); !slices.Equal(names, []corev1.ResourceName{"count/deployments.apps", "count/services"}) {
		t.Errorf("room for %v", names)
	}
}
