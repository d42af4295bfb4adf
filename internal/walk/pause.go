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

// paused pairs one of steps, which pause an object, with one of changes, of fields that are followed; those first that known has, and then those nearest to the top: the nearer
// a field is to it that pauses, the more of the object it does.
func paused(steps, changes []step, follows map[string]int, known map[judge.Paused]judge.Pause) (pause, change *step) {
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

// pauseNew pauses a copy by a field, or by an annotation where no field does, changes a field that the operator follows, and notes in is what comes of it.
func (w *walk) pauseNew(ctx context.Context, r *lifecycle.Release, o *newObject, was judge.New, is *judge.New) error {
	now, err := o.At(w.Dynamic, o.Version).Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return ctx.Err() // its operator may delete what it does not want
	}
	schema := definition.Schema(r.CRD(o.CRD), o.Version)
	changes := bold(schema, now.Object)
	is.Pauses = map[judge.Paused]judge.Pause{}
	for _, way := range []struct {
		steps []step
		usual bool // nobody said that it pauses
	}{{pauses(schema, now.Object), false}, {[]step{annotated(r, o.Resource.Group)}, true}} {
		pause, change := paused(way.steps, changes, is.Follows, was.Pauses)
		if pause == nil {
			continue
		}
		tried := judge.Paused{By: pause.Path, Changed: change.Path}
		came := was.Pauses[tried]
		if came != judge.Ignored { // as the backup's suspend, which pauses a CronJob and not the object
			if came, err = w.pauseBy(ctx, o, pause, change, is.Follows, way.usual && came != judge.Held); err != nil {
				return err
			}
		}
		if is.Pauses[tried] = came; came != judge.Ignored {
			return nil
		}
	}
	return nil
}

// pauseBy pauses a copy, changes a field, and tells whether that is followed before the copy goes on again, which is looked at twice where that is unsure, or afterwards; Unknown where
// the API server refuses it.
func (w *walk) pauseBy(ctx context.Context, o *newObject, pause, change *step, follows map[string]int, unsure bool) (judge.Pause, error) {
	resource := o.At(w.Dynamic, o.Version)
	var refused error // what is asked for last
	patch := func(data []byte) func() error {
		return func() error { refused = mergePatch(ctx, resource, o.Name, data); return refused }
	}
	if err := w.awaitIdle(ctx, o); err != nil {
		return judge.Unknown, err
	}
	if err := w.noteMoves(ctx, o, "", follows[o.following.field] == judge.Surely); err != nil {
		return judge.Unknown, err
	}
	if patch(pause.There)() != nil {
		return judge.Unknown, ctx.Err()
	}
	defer func() { _, _ = patch(pause.Back)(), patch(change.Back)() }() // the copy is about to be deleted
	came, err := w.changePaused(ctx, o, change, patch)
	if err != nil || refused != nil || came != judge.Held {
		return cameOf(came, refused), err
	}
	if unsure {
		late, err := w.followed(ctx, o, 2*boldLimit, func() error { return nil })
		if err != nil || late { // it was busy with the annotation
			return judge.Unknown, err
		}
	}
	goesOn, err := w.followed(ctx, o, judge.EffectLimit, patch(pause.Back))
	if err == nil && !goesOn {
		came = judge.StaysStill
	}
	return cameOf(came, refused), err
}

// cameOf is what came of a pause, unless the API server refused what was asked for.
func cameOf(came judge.Pause, refused error) judge.Pause {
	if refused != nil {
		return judge.Unknown
	}
	return came
}

// changePaused changes a copy that is paused, twice, and tells what comes of it; Unknown where the second is not followed.
func (w *walk) changePaused(ctx context.Context, o *newObject, change *step, patch func(data []byte) func() error) (judge.Pause, error) {
	for i, data := range [][]byte{change.There, change.Back} {
		if err := w.awaitStill(ctx, false, o); err != nil {
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
