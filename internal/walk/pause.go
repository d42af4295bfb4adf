package walk

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/olmkit/olmkit/internal/definition"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// pausing are fields by which a user tells an operator to leave an object alone for a while.
var pausing = regexp.MustCompile(`(?i)^(pause|paused|suspend|suspended|reconciliationpaused|pausereconciliation)$`)

// pauses lists changes that pause an object which is not.
func pauses(schema *apiextensionsv1.JSONSchemaProps, object map[string]any) []step {
	var steps []step
	spec, _ := object["spec"].(map[string]any)
	visitSchema(schema, []string{"spec"}, spec, func(path []string, value any, s apiextensionsv1.JSONSchemaProps) {
		if s.Type == "boolean" && value != true && pausing.MatchString(path[len(path)-1]) {
			steps = append(steps, stepOf(path, true, value))
		}
	})
	return steps
}

// pausingKey matches annotations by which a user does the same, where a text names them.
var pausingKey = observe.Compiled(`\b[a-z0-9.-]+\.[a-z]{2,}/[A-Za-z-]*(pause|suspend|skip-reconcil)[A-Za-z-]*`)

// annotated is the change that pauses an object of a definition by an annotation: whichever its operator heeds, of those that are usual, for the definition's group and the domain
// that this is in, and of those that release names.
func annotated(release *lifecycle.Release, group string) step {
	keys := map[string]any{}
	_, domain, _ := strings.Cut(group, ".")
	for _, prefix := range []string{group, domain} {
		for _, name := range []string{"paused", "pause", "suspend"} {
			if strings.Contains(prefix, ".") {
				keys[prefix+"/"+name] = "true"
			}
		}
	}
	for _, text := range []any{release.CSV, release.CRDs} {
		written, _ := json.Marshal(text) // what cannot be written names nothing
		for _, key := range pausingKey().FindAllString(string(written), -1) {
			if len(validation.IsQualifiedName(key)) == 0 {
				keys[key] = "true"
			}
		}
	}
	none := map[string]any{}
	for key := range keys {
		none[key] = nil
	}
	path := []string{"metadata", "annotations"}
	return step{Path: fmt.Sprintf("annotation %s/paused, or one like it,", group), There: patchOf(path, keys), Back: patchOf(path, none)}
}

// paused pairs the changes that pause object, and others that do, with those of fields that are followed, those first that known has: the nearer to the top a field is
// that pauses, the more of the object it does.
func paused(schema *apiextensionsv1.JSONSchemaProps, object map[string]any, follows map[string]int, known map[judge.Paused]judge.Pause, others ...step) (pause, change *step) {
	steps, changes := append(pauses(schema, object), others...), bold(schema, object)
	slices.SortStableFunc(steps, func(a, b step) int { return strings.Count(a.Path, ".") - strings.Count(b.Path, ".") })
	for _, wanted := range []func(judge.Paused) bool{func(p judge.Paused) bool { return known[p] == judge.Held }, func(judge.Paused) bool { return true }} {
		for _, p := range steps {
			for _, c := range changes {
				if !pausing.MatchString(lastOf(c.Path)) && follows[c.Path] == judge.Surely && wanted(judge.Paused{By: p.Path, Changed: c.Path}) {
					return &p, &c
				}
			}
		}
	}
	return nil, nil
}

// pauseNew pauses a copy, changes a field that the operator follows, and notes in is whether that is followed before the copy goes on again, which
// is looked at twice, or afterwards.
func (w *walk) pauseNew(ctx context.Context, r *lifecycle.Release, o *newObject, was judge.New, is *judge.New) error {
	resource := o.At(w.Dynamic, o.Version)
	now, err := resource.Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return ctx.Err() // its operator may delete what it does not want
	}
	schema := definition.Schema(r.CRD(o.CRD), o.Version)
	pause, change := paused(schema, now.Object, is.Follows, was.Pauses)
	unsure := pause == nil // no field does
	if unsure {
		pause, change = paused(schema, now.Object, is.Follows, was.Pauses, annotated(r, o.Resource.Group))
	}
	if pause == nil {
		return nil
	}
	tried := judge.Paused{By: pause.Path, Changed: change.Path}
	is.Pauses = map[judge.Paused]judge.Pause{}
	if unsure && was.Pauses[tried] == judge.Ignored { // few operators heed one
		is.Pauses[tried] = judge.Ignored
		return nil
	}
	var refused error // what is asked for last
	patch := func(data []byte) func() error {
		return func() error { refused = mergePatch(ctx, resource, o.Name, data); return refused }
	}
	if err := w.awaitIdle(ctx, o); err != nil {
		return err
	}
	if err := w.noteMoves(ctx, o, "", is.Follows[o.following.field] == judge.Surely); err != nil {
		return err
	}
	if patch(pause.There)() != nil {
		return ctx.Err()
	}
	defer func() { _, _ = patch(pause.Back)(), patch(change.Back)() }() // the copy is about to be deleted
	came, err := w.changePaused(ctx, o, change, patch)
	if err != nil || refused != nil || came == judge.Unknown {
		return err
	}
	if came == judge.Held && unsure && was.Pauses[tried] != judge.Held {
		late, err := w.followed(ctx, o, 2*boldLimit, func() error { return nil })
		if err != nil || late { // it was busy with the annotation
			return err
		}
	}
	if came == judge.Held {
		goesOn, err := w.followed(ctx, o, judge.EffectLimit, patch(pause.Back))
		if err != nil || refused != nil {
			return err
		}
		if !goesOn {
			came = judge.StaysStill
		}
	}
	is.Pauses[tried] = came
	return nil
}

// changePaused changes a copy that is paused, twice, and tells what comes of it; Unknown where the second is not followed.
func (w *walk) changePaused(ctx context.Context, o *newObject, change *step, patch func(data []byte) func() error) (judge.Pause, error) {
	for i, data := range [][]byte{change.There, change.Back} {
		if err := w.awaitStill(ctx, o, false); err != nil {
			return judge.Unknown, err
		}
		follows, err := w.followed(ctx, o, max(boldLimit, 2*o.slowest), patch(data))
		switch {
		case err != nil || !follows && i > 0:
			return judge.Unknown, err
		case !follows:
			return judge.Held, nil
		}
	}
	return judge.Ignored, nil
}
