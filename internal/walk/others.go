package walk

import (
	"context"
	"encoding/base64"
	"maps"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmkit/olmkit/internal/definition"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// addition is what somebody else sets of what an operator made, where the operator says nothing of it.
type addition struct {
	what  string // as a finding says it, before the name of what was made
	kinds []string
	path  []string
	value any
}

var (
	// usualAdditions are those that users make to any object's.
	usualAdditions = []addition{
		{"the restart (kubectl rollout restart) of", judge.Replicated, []string{"spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"}, "2000-01-01T00:00:00Z"},
		{"the imagePullSecrets of", []string{"ServiceAccount"}, []string{"imagePullSecrets"}, []any{map[string]any{"name": "olmkit"}}},
		{"the suspension of", []string{"CronJob"}, []string{"spec", "suspend"}, true},
		{"a key of", []string{"Secret"}, []string{"data", "olmkit.dev.tried"}, base64.StdEncoding.EncodeToString([]byte(tried))},
		{"the sessionAffinity of", []string{"Service"}, []string{"spec", "sessionAffinity"}, "ClientIP"},
	}
	// scaling is what an autoscaler, or kubectl scale, sets where the object leaves it out.
	scaling = addition{"the replicas of", []string{"Deployment", "StatefulSet"}, []string{"spec", "replicas"}, nil}
	// autoscaling is what a HorizontalPodAutoscaler sets that the operator made.
	autoscaling = addition{judge.Autoscaled, scaling.kinds, scaling.path, nil}
)

// setByOthers makes additions to what was made for newcomers, and notes in created which of them stay once the operator has looked at all of that. What did not in before is
// not tried.
func (w *walk) setByOthers(ctx context.Context, r *lifecycle.Release, in newcomers, before, created map[string]judge.New) error {
	view := w.viewOf(objectsOf(in.all())...)
	operands, err := view.RecentOperands(ctx)
	if err != nil {
		return err
	}
	for _, side := range []struct {
		objects   []*newObject
		additions []addition
	}{{in.there, usualAdditions}, {in.free, []addition{scaling}}} {
		for _, o := range side.objects {
			is := created[o.CRD]
			stays, err := w.setOn(ctx, r, o, side.additions, operands, operands, before[o.CRD].Additions, is)
			if err != nil {
				return err
			}
			if is.Additions == nil {
				is.Additions = map[string]bool{}
			}
			maps.Copy(is.Additions, stays)
			created[o.CRD] = is
		}
	}
	return nil
}

// setOn makes additions to those of operands, which are of o, that are among some, and returns which of them stay once the operator, which does what is says, has looked at all of that.
// What known says that does not stay is not tried.
func (w *walk) setOn(ctx context.Context, r *lifecycle.Release, o *newObject, additions []addition, some, operands map[string]observe.Operand, known map[string]bool, is judge.New) (stays map[string]bool, err error) {
	var list []added
	for _, a := range additions {
		made, err := w.add(ctx, o, a, some, known)
		if err != nil {
			return nil, err
		}
		list = append(list, made...)
	}
	if len(list) == 0 {
		return nil, nil
	}
	looked, err := w.looksAgain(ctx, o, operands, list, is.Remakes)
	if err == nil && !looked {
		looked, err = w.follows(ctx, r, o, is.Follows)
	}
	if err != nil || !looked {
		return nil, err
	}
	return w.stay(ctx, list)
}

// looksAgain has the operator reconcile a newcomer from beginning to end, and reports whether it did: twice it makes again something that is deleted and that it is known to
// make again, rather something without additions, and a Secret without any where there is nothing else. The first time may be in the middle of it.
func (w *walk) looksAgain(ctx context.Context, o *newObject, operands map[string]observe.Operand, list []added, remakes map[string]bool) (bool, error) {
	var untouched, touched, secrets []observe.Operand
	for _, name := range slices.Sorted(maps.Keys(operands)) {
		made, adds := operands[name], slices.ContainsFunc(list, func(a added) bool { return a.to.String() == name })
		switch {
		case made.Kind == "Secret" && !adds:
			secrets = append(secrets, made)
		case made.Kind == "Secret": // it would be made anew without them
		case adds:
			touched = append(touched, made)
		default:
			untouched = append(untouched, made)
		}
	}
	for _, made := range slices.Concat(untouched, touched, secrets) {
		if made.Of != o.String() || !made.Direct || made.Kind != "Secret" && !slices.Contains(remade, made.Kind) || !remakes[o.called(made)] {
			continue
		}
		for range 2 {
			if !w.deleteOperand(ctx, made) {
				return false, ctx.Err()
			}
			again, err := w.seeRemade(ctx, &made, judge.EffectLimit)
			if err != nil || !again {
				return false, err
			}
		}
		return true, nil
	}
	return false, nil
}

// follows has the operator reconcile o by a change of a field that is surely followed, as known says, and that is taken back, and reports whether it followed both.
func (w *walk) follows(ctx context.Context, r *lifecycle.Release, o *newObject, known map[string]int) (bool, error) {
	resource := o.At(w.Dynamic, o.Version)
	now, err := resource.Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return false, ctx.Err() // its operator may delete what it does not want
	}
	schema := definition.Schema(r.CRD(o.CRD), o.Version)
	surely, _ := partition(slices.Concat(bold(schema, now.Object), fewer(schema, now.Object, true)), func(path string) bool { return known[path] == judge.Surely })
	if len(surely) == 0 {
		return false, nil
	}
	for _, change := range [][]byte{surely[0].There, surely[0].Back} {
		if err := w.awaitIdle(ctx, o); err != nil {
			return false, err
		}
		follow, err := w.followed(ctx, o, judge.EffectLimit, func() error { return mergePatch(ctx, resource, o.Name, change) })
		if err != nil || !follow {
			return false, err
		}
	}
	return true, w.awaitIdle(ctx, o)
}

// stay tells of additions which are there still. What was made anew meanwhile tells nothing.
func (w *walk) stay(ctx context.Context, list []added) (map[string]bool, error) {
	stays := map[string]bool{}
	for _, a := range list {
		now, err := w.operandNow(ctx, a.to)
		if err != nil {
			return nil, err
		}
		if now != nil && now.GetUID() == a.to.UID {
			value, _, _ := unstructured.NestedFieldNoCopy(now.Object, a.path...)
			stays[a.name] = reflect.DeepEqual(value, a.value)
		}
	}
	return stays, nil
}

// added is an addition to what was made for a newcomer, and how a finding names it.
type added struct {
	addition
	name string
	to   observe.Operand
}

// add makes an addition to what was made for a newcomer directly, of those of operands of its kinds. What may not be changed is left out, and what known says that does not stay.
func (w *walk) add(ctx context.Context, o *newObject, a addition, operands map[string]observe.Operand, known map[string]bool) (made []added, err error) {
	for _, name := range slices.Sorted(maps.Keys(operands)) {
		to := operands[name]
		called := a.what + " " + o.called(to)
		if stays, tried := known[called]; to.Of != o.String() || !to.Direct || !slices.Contains(a.kinds, to.Kind) || tried && !stays {
			continue
		}
		now, _, _ := unstructured.NestedFieldNoCopy(to.Content, a.path...)
		switch n, counted := now.(int64); {
		case counted && n > 0:
			a.value = n + 1
		case now != nil && now != "None" && now != false: // the operator's own, or none at all
			continue
		}
		if mergePatch(ctx, w.Dynamic.Resource(observe.OperandResource(to.Kind)).Namespace(to.Namespace), to.Name, patchOf(a.path, a.value)) == nil {
			made = append(made, added{a, called, to})
		} else if ctx.Err() != nil {
			return made, ctx.Err()
		}
	}
	return made, nil
}

// countToLeaveOut is the path of the count nearest to the top that an object of schema may leave out and that has no default; nil if there is none.
func countToLeaveOut(schema *apiextensionsv1.JSONSchemaProps, object map[string]any) []string {
	return nearestCount(schema, object, func(path []string, _ any, s apiextensionsv1.JSONSchemaProps) bool {
		return s.Type == "integer" && s.Default == nil && !isRequired(schema, path)
	})
}
