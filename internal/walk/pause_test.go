package walk

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

// Who left paused objects alone must do so still; who never did need not begin.
func TestPaused(t *testing.T) {
	p, plan := thingsOf(t, lifecycle.AllNamespaces, `{"size":1,"depth":1,"paused":false}`, "v1", "v2", "v3") // after the last hop the operator would be started again
	const alone, goesOn = "v2 does not leave a new object like it alone while its spec.paused is true: what is made for it follows a change of its spec.depth", "v2 does not go on with a new object like it once its spec.paused is not true any more"
	const stays = "v2 does not let a new object like it go that is deleted while it is paused"
	expectAll(t, p, plan, []pairing{
		{holds, holds, "", ""}, {"", "", "", ""}, {"", holds, "", ""}, {holds, "", code.DoesLess, alone}, {holds, sulks, code.DoesLess, goesOn}, {sulks, sulks, "", ""},
		{frees, frees, "", ""}, {clutches, clutches, "", ""}, {clutches, frees, "", ""}, {frees, clutches, code.DoesLess, stays},
	})
}

// What is paused needs no pause, and only a choice that says so is one.
func TestPauses(t *testing.T) {
	schema := thingDefinition().Spec.Versions[0].Schema.OpenAPIV3Schema
	for _, c := range []struct {
		spec map[string]any
		want int
	}{
		{map[string]any{"size": int64(1)}, 1}, {map[string]any{"paused": false}, 1}, {map[string]any{"paused": true}, 0},
	} {
		if got := pauses(schema, map[string]any{"spec": c.spec}); len(got) != c.want {
			t.Errorf("%v: %v", c.spec, got)
		}
	}
}

// An object is paused by the usual annotations, and by those that a release names.
func TestAnnotated(t *testing.T) {
	csv := &v1alpha1.ClusterServiceVersion{}
	csv.Spec.Description = "Set `ops.example.org/skip-reconcile: \"true\"` to pause it, not example.com/size."
	s := annotated(&lifecycle.Release{CSV: csv}, "things.example.com")
	var there, back struct {
		Metadata struct{ Annotations map[string]any }
	}
	if err := errors.Join(json.Unmarshal(s.There, &there), json.Unmarshal(s.Back, &back)); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"example.com/pause", "example.com/paused", "example.com/suspend", "ops.example.org/skip-reconcile",
		"things.example.com/pause", "things.example.com/paused", "things.example.com/suspend",
	}
	if got := slices.Sorted(maps.Keys(there.Metadata.Annotations)); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, key := range want {
		if value, has := back.Metadata.Annotations[key]; !has || value != nil || there.Metadata.Annotations[key] != "true" {
			t.Errorf("%s: %v and back %v", key, there.Metadata.Annotations[key], value)
		}
	}
}
