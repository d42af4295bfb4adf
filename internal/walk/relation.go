package walk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/definition"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// How many changes at most that were not tried before are tried of an object that another one names, and how many labels by which another one selects it.
const (
	mostNamed    = 3
	mostSelected = 2
)

// otherChange is a change of something else than the object that is to follow it.
type otherChange struct {
	step
	do func(data []byte) error // makes the step, or takes it back
}

// changeNamed changes what a variant names, one field after the other, and notes in created whether what was made for the variant, or its status, follows: who makes something of two
// objects has to watch both, and to look for all that name one.
func (w *walk) changeNamed(ctx context.Context, r *lifecycle.Release, o *newObject, was judge.New, created map[string]judge.New) error {
	is := created[o.key()]
	if !is.Usable() || len(is.LacksOf(was)) > 0 { // which says more
		return nil
	}
	is.Follows, is.Slowest = map[string]int{}, o.slowest
	var followed []otherChange
	for _, named := range o.later {
		changes, err := w.changesOfNamed(ctx, r, o, named, was, created[named.CRD])
		if err != nil {
			return err
		}
		for _, c := range changes {
			if is.Follows[c.Path], err = w.otherFollowed(ctx, o, was, c.step, w.followedBy(ctx, o, c)); err != nil {
				return err
			}
			if is.Follows[c.Path] == judge.Surely {
				followed = append(followed, c)
			}
		}
	}
	created[o.key()] = is
	return w.changeForTwo(ctx, r, o, was, followed, is.Follows)
}

// changesOfNamed are what is tried of named, which o names: its fields and, of a Secret that was made for it and that its operator, which does what ofNamed says, makes again, that it is
// deleted: what says something else each time, as a password, others have to take over.
func (w *walk) changesOfNamed(ctx context.Context, r *lifecycle.Release, o *newObject, named *observe.Object, was, ofNamed judge.New) (changes []otherChange, err error) {
	resource := named.At(w.Dynamic, named.Version)
	now, err := resource.Get(ctx, named.Name, metav1.GetOptions{})
	if err != nil {
		return nil, ctx.Err() // its operator may delete what it does not want
	}
	view := w.viewOf(named)
	operands, err := view.RecentOperands(ctx)
	if err != nil {
		return nil, err
	}
	steps := w.withoutPulls(fieldsOfNamed(definition.Schema(r.CRD(named.CRD), named.Version), now.Object), now.Object, operands)
	for i := range steps {
		steps[i].Path = o.original(named) + judge.OfOther + strings.TrimPrefix(steps[i].Path, "spec.")
	}
	for _, s := range asBefore(steps, was.Follows, mostNamed) {
		changes = append(changes, otherChange{s, func(data []byte) error { return mergePatch(ctx, resource, named.Name, data) }})
	}
	for _, name := range slices.Sorted(maps.Keys(operands)) {
		made := operands[name]
		if made.Kind != "Secret" || made.Of != named.String() || !made.Direct || !ofNamed.RemakesKind(made.Kind) {
			continue
		}
		remake := func([]byte) error {
			now, err := w.operandNow(ctx, made)
			if err == nil && now != nil {
				made.UID = now.GetUID()
				w.deleteOperand(ctx, made)
			}
			return err
		}
		return append(changes, otherChange{step{Path: o.original(named) + judge.MadeFor + made.Kind}, remake}), nil
	}
	return changes, nil
}

// followedBy returns what otherFollowed asks whether o follows c.
func (w *walk) followedBy(ctx context.Context, o *newObject, c otherChange) func(limit time.Duration, data []byte, ended func() bool) (bool, error) {
	return func(limit time.Duration, data []byte, ended func() bool) (bool, error) {
		return w.followedUnless(ctx, o, limit, func() error { return c.do(data) }, ended)
	}
}

// changeForTwo makes the first and the last of changes of what o names once another object names it as well, and notes in follows how often that follows where o does: who looks for
// those that name something may find but one.
func (w *walk) changeForTwo(ctx context.Context, r *lifecycle.Release, o *newObject, was judge.New, changes []otherChange, follows map[string]int) error {
	if len(changes) == 0 {
		return nil
	}
	too, err := w.siblingOf(ctx, r, o)
	if err != nil || too == nil {
		return err
	}
	if last := len(changes) - 1; last > 0 {
		changes = []otherChange{changes[0], changes[last]}
	}
	for _, c := range changes {
		if err != nil {
			break
		}
		path, alone := c.Path+judge.Both, w.followedBy(ctx, o, c)
		_, err = w.otherFollowed(ctx, o, was, c.step, func(limit time.Duration, data []byte, ended func() bool) (did bool, err error) {
			var failed error
			also, err := w.otherFollows(ctx, too.Object, limit, func() error {
				did, failed = alone(limit, data, ended)
				return nil
			}, ended)
			if times := follows[path]; did && also {
				follows[path] = times + 1
			} else if did {
				follows[path] = times
			}
			return did, errors.Join(err, failed)
		})
	}
	_, failed := w.removeCopies(ctx, []*newObject{too})
	return errors.Join(err, failed)
}

// siblingOf creates another object like o that names what o names, and waits until as much is made for it as its operator makes; nil if that does not come.
func (w *walk) siblingOf(ctx context.Context, r *lifecycle.Release, o *newObject) (*newObject, error) {
	sample := &unstructured.Unstructured{Object: o.like.Author}
	too, err := w.makeCopy(ctx, r, o.like, client.ObjectKey{Namespace: o.Namespace, Name: o.Name + "-too"}, naming(sample, o.needs))
	if err != nil || too == nil {
		return nil, err
	}
	seen := map[string]judge.New{}
	err = w.awaitGood(ctx, too, newLimit, seen, judge.New.Usable)
	if err == nil && seen[too.key()].Usable() {
		return too, w.awaitIdle(ctx, too)
	}
	_, failed := w.removeCopies(ctx, []*newObject{too})
	return nil, errors.Join(err, failed)
}

// fieldsOfNamed lists changes of an object that others may have to follow: the count that is nearest to its top, and what nobody counts, but for what would pause it.
func fieldsOfNamed(schema *apiextensionsv1.JSONSchemaProps, object map[string]any) []step {
	steps := bold(schema, object)
	if first := harmless(schema, object)[0]; counts.MatchString(lastOf(first.Path)) {
		steps = append([]step{first}, steps...)
	}
	return slices.DeleteFunc(steps, func(s step) bool { return pausing.MatchString(lastOf(s.Path)) })
}

// shown is what a copy for which nothing is made shows of what its operator does: its status, what is made for others says of it, and its targets.
type shown struct {
	status  map[string]any
	entries map[string]string
	targets map[string]string
}

// shownOf is what o shows now.
func (w *walk) shownOf(ctx context.Context, o *newObject) (s shown, err error) {
	if s.status, err = w.statusOf(ctx, o.Object); err != nil {
		return s, err
	}
	if s.entries, err = w.entriesOf(ctx, o); err == nil {
		s.targets, err = w.targetsNow(ctx, o.needs)
	}
	return s, err
}

// madeForOthers is what is made for all objects but o, and stays until somebody deletes it.
func (w *walk) madeForOthers(ctx context.Context, o *newObject) (map[string]observe.Operand, error) {
	view := w.viewOf(slices.Concat(w.Objects, w.Others)...)
	operands, err := view.RecentOperands(ctx)
	others := maps.Clone(operands)
	maps.DeleteFunc(others, func(_ string, made observe.Operand) bool { return made.Of == o.String() || made.Transient() })
	return others, err
}

// isAs reports whether s is as before, but for what of a status tells of pods.
func (s shown) isAs(before shown) bool {
	return maps.Equal(before.entries, s.entries) && maps.Equal(before.targets, s.targets) && len(judge.ToldOf(before.status, s.status)) == 0
}

// original names what named, which o names, is a copy of.
func (o *newObject) original(named *observe.Object) string {
	for _, n := range o.needs {
		if n.like != nil && n.GetKind() == named.Kind && n.GetName() == named.Name {
			return n.original()
		}
	}
	return named.Kind + " " + named.Name
}

// unlabelNew takes from a copy the labels by which samples of r's other kinds select it, one after the other, and notes in follows whether what was made for who selects it follows.
func (w *walk) unlabelNew(ctx context.Context, r *lifecycle.Release, o *newObject, was judge.New, follows map[string]int) error {
	resource := o.At(w.Dynamic, o.Version)
	now, err := resource.Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return ctx.Err() // its operator may delete what it does not want
	}
	labels := now.GetLabels()
	steps, by := []step{}, map[string]*observe.Object{}
	for _, s := range w.Untouched() {
		if s.CRD == o.CRD || r.CRD(s.CRD) == nil {
			continue
		}
		for _, key := range selected(s.Author["spec"], "", labels) {
			c := stepOf([]string{"metadata", "labels", key}, nil, labels[key])
			c.Path = fmt.Sprintf(judge.OfLabel+"%s, by which a %s selects it", key, s.Kind)
			if by[c.Path] == nil {
				steps, by[c.Path] = append(steps, c), s
			}
		}
	}
	for _, change := range asBefore(steps, was.Follows, mostSelected) {
		follows[change.Path], err = w.otherFollowed(ctx, o, was, change,
			func(limit time.Duration, data []byte, ended func() bool) (bool, error) {
				return w.otherFollows(ctx, by[change.Path], limit, func() error { return mergePatch(ctx, resource, o.Name, data) }, ended)
			})
		if err != nil {
			return err
		}
	}
	return nil
}

// selected are the keys of labels that a selector below key asks for, sorted.
func selected(value any, key string, labels map[string]string) (keys []string) {
	switch v := value.(type) {
	case map[string]any:
		selects := strings.HasSuffix(strings.ToLower(key), "selector") || key == "matchLabels"
		for k, inner := range v {
			if text, is := inner.(string); is && selects && labels[k] == text && text != "" {
				keys = append(keys, k)
			}
			keys = append(keys, selected(inner, k, labels)...)
		}
		required, _ := v["key"].(string)
		values, _ := v["values"].([]any)
		if has, is := labels[required]; is && (v["operator"] == string(metav1.LabelSelectorOpExists) || v["operator"] == string(metav1.LabelSelectorOpIn) && slices.Contains(values, any(has))) {
			keys = append(keys, required)
		}
	case []any:
		for _, inner := range v {
			keys = append(keys, selected(inner, key, labels)...)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// otherFollowed makes change and takes it back while o rests, and tells how often that is followed, as follows says. What surely was under the release before, as was says, is waited
// for longer.
func (w *walk) otherFollowed(ctx context.Context, o *newObject, was judge.New, change step, follows func(limit time.Duration, data []byte, ended func() bool) (bool, error)) (times int, err error) {
	for _, data := range [][]byte{change.There, change.Back} {
		if err := w.awaitIdle(ctx, o); err != nil {
			return 0, err
		}
		limit, ended := boldLimit, w.silent(ctx, o)
		if was.Follows[change.Path] == judge.Surely || times > 0 {
			limit, ended = was.Patience(), func() bool { return false }
		}
		did, err := follows(limit, data, ended)
		if err != nil {
			return 0, err
		}
		if !did {
			_, err = follows(0, change.Back, ended) // the object is about to be deleted
			return times, err
		}
		times++
	}
	return times, nil
}

// otherFollows reports whether within limit after change something that was made for other, or its status, is another than before, unless ended says that nothing comes any more.
func (w *walk) otherFollows(ctx context.Context, other *observe.Object, limit time.Duration, change func() error, ended func() bool) (follows bool, err error) {
	view := w.viewOf(other)
	before, err := view.ConfirmedOperands(ctx)
	if err != nil {
		return false, err
	}
	said, err := w.statusOf(ctx, other)
	if err != nil {
		return false, err
	}
	if change() != nil {
		return false, ctx.Err()
	}
	err = lookUntil(ctx, limit, quickPause, func() (bool, error) {
		after, err := view.RecentOperands(ctx)
		if err != nil {
			return false, err
		}
		says, err := w.statusOf(ctx, other)
		follows = judge.Follow(before, after) || len(judge.ToldOf(said, says)) > 0
		return follows || ended(), err
	})
	return follows, err
}
