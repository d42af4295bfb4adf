package walk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/definition"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// How many other new objects are tried at most: of a kind with another choice than the copy, and as other samples ask, and of all kinds.
const (
	mostChoices  = 4
	mostSamples  = 2
	mostVariants = 12
)

// asSample begins the name of a variant that is as another sample asks.
const asSample = " as "

// variant is another object than a copy: as another sample asks, or as the same one with another choice.
type variant struct {
	name   string // what is noted of it is known by that
	like   *observe.Object
	choice step              // what it chooses; none if nothing
	pause  *step             // that it is deleted after
	named  []*observe.Object // that it is created before
	length int               // how many characters its name has; 0 for as many as come about
}

// tryVariants creates for each of copies, which are gone, others that ask for something else, and deletes them again. It notes in created what r's operator does for them: what cannot
// be changed once it is there, or says what is to stay, is seen in no other way. before says how long that is waited for; meanwhile is done until they run. What they have
// kept may not be found again, so there are none on a cluster that stays.
func (w *walk) tryVariants(ctx context.Context, r *lifecycle.Release, copies []*newObject, before, created map[string]judge.New, meanwhile func() error) (err error) {
	if !w.Provider.Disposable() {
		return meanwhile()
	}
	w.trying.Note("with other choices, and as other samples ask")
	there, err := w.RecentOperands(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	all, err := w.makeVariants(ctx, r, copies, before, created)
	if len(all) > 0 {
		defer func() {
			err = errors.Join(err, w.findElsewhere(ctx, r, all, began), w.deleteNew(ctx, all, there, before, created), w.deleteAllNamed(ctx, all))
		}()
	}
	if err == nil {
		err = meanwhile()
	}
	if err == nil && len(all) > 0 {
		err = w.seeVariants(ctx, r, all, before, created)
	}
	return err
}

// makeVariants creates the variants of copies that are tried. It also returns those made before an error.
func (w *walk) makeVariants(ctx context.Context, r *lifecycle.Release, copies []*newObject, before, created map[string]judge.New) (all []*newObject, err error) {
	for _, first := range copies {
		if !first.tried || slices.Contains(w.lingering, first.Object) || len(all) >= mostVariants {
			continue
		}
		for i, v := range w.variantsOf(r, first, before, created[first.CRD]) {
			name := fmt.Sprintf("%s-alt%d%c", shortened(v.like.Name), len(w.created)+1, 'a'+i)
			key := client.ObjectKey{Namespace: first.Namespace, Name: name + strings.Repeat("x", max(0, v.length-len(name)))}
			o, err := w.copyInto(ctx, r, v.like, key, v.choice.There, w.laterNeeds(v.named)...)
			if err != nil {
				return all, err
			}
			if o == nil {
				if w.refused != "" && v.length > 0 { // whether others are refused is asked in dry runs
					created[first.CRD+v.name] = judge.New{Sample: v.like.String(), Of: v.like.Sample, Variant: v.name, Copy: judge.Dealt{Refused: true, Unwell: w.refused}}
				}
				continue
			}
			o.variant, o.slowest, o.pause = v.name, first.slowest, v.pause
			if strings.HasPrefix(v.name, asSample) && o.Version == first.Version { // another's fields are those of the copy
				o.besides = first
			}
			if v.like == first.like && len(v.named) == 0 && v.length == 0 { // else it is no other on purpose
				o.first = first.asSample(first.first)
			}
			all = append(all, o)
		}
	}
	return w.createNamed(ctx, r, all)
}

// variantsOf are the variants of a copy that are tried: those of the release before, as before says, and others, but on the last hop.
func (w *walk) variantsOf(r *lifecycle.Release, first *newObject, before map[string]judge.New, is judge.New) []variant {
	_, compared := before[first.CRD]
	pick := func(all []variant, most int) []variant {
		others := 0
		return slices.DeleteFunc(all, func(v variant) bool {
			if _, known := before[first.CRD+v.name]; known {
				return false
			}
			others++
			return others > most || w.lastHop && compared
		})
	}
	d := r.CRD(first.CRD)
	samples := w.otherSamples(d, first.like)
	chosen := choices(d, first.like, is)
	for _, v := range samples { // a newer version may have more to choose
		if more := choices(d, v.like, is); len(more) > len(chosen) {
			chosen = more
		}
	}
	chosen = slices.DeleteFunc(chosen, func(v variant) bool {
		return len(w.withoutPulls([]step{v.choice}, v.like.Author, first.first)) == 0
	})
	return slices.Concat(pick(w.pausedToo(r, first, before[first.CRD], is), 1), pick(w.earlyToo(r, first), 1), pick(longNamed(first, is), 1), pick(chosen, mostChoices), pick(samples, mostSamples))
}

// pausedToo is the variant that is paused when it is deleted, where r's operator heeds a pause, or that of the release before did.
func (w *walk) pausedToo(r *lifecycle.Release, first *newObject, was, is judge.New) []variant {
	for _, pause := range append(pauses(definition.Schema(r.CRD(first.CRD), first.Version), first.like.Author), annotated(r, first.Resource.Group)) {
		for _, known := range []judge.New{was, is} {
			for tried, came := range known.Pauses {
				if tried.By == pause.Path && came == judge.Held {
					return []variant{{name: " while it is paused", like: first.like, pause: &pause}}
				}
			}
		}
	}
	return nil
}

// longNamed is the variant whose name is as long as that of an object like first may be, as is says.
func longNamed(first *newObject, is judge.New) []variant {
	if is.Longest <= len(first.Name) {
		return nil
	}
	return []variant{{name: fmt.Sprintf(judge.With+"a name of %d characters", is.Longest), like: first.like, length: is.Longest}}
}

// otherSamples are the samples of a kind besides like in the versions that are served, each manifest once.
func (w *walk) otherSamples(d *apiextensionsv1.CustomResourceDefinition, like *observe.Object) (others []variant) {
	nameOf := func(o *observe.Object) string { return asSample + o.Version + " " + o.Sample }
	seen := []string{nameOf(like)}
	for _, o := range w.Untouched() {
		name := nameOf(o)
		if o.CRD == like.CRD && slices.Contains(definition.ServedVersions(d), o.Version) && !slices.Contains(seen, name) {
			seen, others = append(seen, name), append(others, variant{name: name, like: o})
		}
	}
	return others
}

// keeping matches fields by which an object says what becomes of what it has when it goes.
var keeping = regexp.MustCompile(`(?i)delet|reclaim|ret(ain|ention)|keep|orphan|prune|clean|preserv|purge|remov|finali|teardown|snapshot|backup`)

// choices are the variants of a sample that choose something else of few: first where the choice tells what stays when the object goes, then where a change of it is not surely
// followed, as is says. What would pause the object is left as it is.
func choices(d *apiextensionsv1.CustomResourceDefinition, like *observe.Object, is judge.New) []variant {
	var first, others []variant
	spec, _ := like.Author["spec"].(map[string]any)
	visitSchema(definition.Schema(d, like.Version), []string{"spec"}, spec, func(path []string, value any, s apiextensionsv1.JSONSchemaProps) {
		name := strings.Join(path, ".")
		keeps := slices.ContainsFunc(path[1:], keeping.MatchString)
		if pausing.MatchString(path[len(path)-1]) || !keeps && is.Follows[name] == judge.Surely {
			return
		}
		values := otherChoices(path[len(path)-1], value, s)
		for _, other := range values {
			v := variant{name: fmt.Sprintf(judge.With+"%s: %v", name, other), like: like, choice: stepOf(path, other, value)}
			if keeps {
				first = append(first, v)
			} else if other == values[0] {
				others = append(others, v)
			}
		}
	})
	return append(first, others...)
}

// otherChoices are what a field called name that has value, nil if it is left out, may choose instead, if it is a choice of few, an amount, or a number that counts nothing.
func otherChoices(name string, value any, s apiextensionsv1.JSONSchemaProps) (others []any) {
	if value == nil && s.Default != nil {
		_ = json.Unmarshal(s.Default.Raw, &value) // the API server took it
	}
	if s.Type == "boolean" {
		return []any{value != true}
	}
	for _, other := range otherWords(value, s) {
		others = append(others, other)
	}
	switch value := value.(type) {
	case string:
		if other := otherAmount(value); other != value {
			others = append(others, other)
		}
	case int64:
		if other, ok := otherNumber(name, value, s); ok {
			others = append(others, other)
		}
	}
	return others
}

// withChange is an object with change, a merge patch; nil changes nothing.
func withChange(object *unstructured.Unstructured, change []byte) (*unstructured.Unstructured, error) {
	if change == nil {
		return object, nil
	}
	data, err := object.MarshalJSON()
	if err == nil {
		data, err = jsonpatch.MergePatch(data, change)
	}
	made := &unstructured.Unstructured{}
	if err == nil {
		err = made.UnmarshalJSON(data)
	}
	if err != nil {
		return nil, fmt.Errorf("change a copy of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return made, nil
}

// seeVariants notes in created what is done for variants, as long as before says.
func (w *walk) seeVariants(ctx context.Context, r *lifecycle.Release, all []*newObject, before, created map[string]judge.New) error {
	began := time.Now()
	err := lookUntil(ctx, w.newHealthLimit(ctx), lookPause, func() (bool, error) {
		operands, err := w.seeNew(ctx, all, created)
		return err == nil && !slices.ContainsFunc(all, func(o *newObject) bool {
			was, known := before[o.key()]
			is := created[o.key()]
			if !known {
				return time.Since(began) < newLimit && (!is.Usable() || o.starts(operands))
			}
			return len(is.LacksOf(was)) > 0 || is.Copy.Ready < was.Copy.Ready
		}), err
	})
	if err == nil {
		err = w.awaitIdle(ctx, all...)
	}
	if err == nil {
		err = w.findFirst(ctx, all)
	}
	for _, o := range all {
		if err == nil {
			err = w.seeVariant(ctx, o, before[o.key()], created)
		}
	}
	for _, o := range all {
		if err == nil && o.besides != nil && created[o.key()].Usable() && !o.hidden {
			err = w.tryBesides(ctx, r, o, before, created)
		}
		if err == nil && o.pause != nil {
			err = w.deletePaused(ctx, o, before[o.key()], created)
		}
		if err == nil && len(o.later) > 0 {
			if err = w.changeNamed(ctx, r, o, before[o.key()], created); err == nil {
				err = w.deleteNamed(ctx, r, o, before[o.key()], created)
			}
		}
	}
	return err
}

// findFirst finds what those of all variants, which are at rest, are held against that are of another sample than the copy: what was made for the one that is as that sample asks.
func (w *walk) findFirst(ctx context.Context, all []*newObject) error {
	for _, plain := range all {
		of := slices.DeleteFunc(slices.Clone(all), func(o *newObject) bool { return o == plain || o.like != plain.like || o.first != nil })
		if !strings.HasPrefix(plain.variant, asSample) || len(of) == 0 {
			continue
		}
		view := w.viewOf(plain.Object)
		operands, err := view.RecentOperands(ctx)
		if err != nil {
			return err
		}
		for _, o := range of {
			o.first = plain.asSample(without(operands, plain.needs))
		}
	}
	return nil
}

// starts reports whether something among operands that was made for o is not ready.
func (o *newObject) starts(operands map[string]observe.Operand) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(operands)), func(made observe.Operand) bool { return made.Of == o.String() && made.Unready != "" })
}

// deletePaused pauses a variant and deletes it, and notes in created whether it goes. One that stays is paused no more.
func (w *walk) deletePaused(ctx context.Context, o *newObject, was judge.New, created map[string]judge.New) error {
	resource, is := o.At(w.Dynamic, o.Version), created[o.key()]
	if mergePatch(ctx, resource, o.Name, o.pause.There) != nil {
		return ctx.Err()
	}
	err := w.awaitStill(ctx, false, o)
	if err != nil {
		return err
	}
	if is.Paused, err = w.deleteAlone(ctx, o, goesWithin(was.Paused)); is.Paused == judge.Stays {
		_ = mergePatch(ctx, resource, o.Name, o.pause.Back) // whoever may not, or comes too late, has it deleted at the end
	}
	created[o.key()] = is
	return err
}

// seeVariant notes in created what was made for a variant, which is at rest.
func (w *walk) seeVariant(ctx context.Context, o *newObject, was judge.New, created map[string]judge.New) error {
	view, is := w.viewOf(o.Object), created[o.key()]
	unowned := map[string]observe.Operand{}
	for _, made := range o.unowned { // what it says is not known
		unowned[made.String()], o.first = made, nil
	}
	err := lookUntil(ctx, was.Patience(), lookPause, func() (bool, error) {
		operands, err := view.RecentOperands(ctx)
		o.remember(operands)
		maps.Copy(operands, unowned)
		o.claims, is.Unlike, is.Makes, is.Fixed = claimsOf(o, operands), o.unlike(operands), o.makes(operands), o.fixedOf(operands)
		if err == nil && !is.Copy.Alike {
			err = w.lookWhetherWell(ctx, o, &is.Copy)
		}
		return (len(was.Unlike) == 0 || len(is.Unlike) > 0 || is.Unlike == nil) && (is.Copy.Alike || !was.Copy.Alike), err
	})
	created[o.key()] = is
	if err != nil {
		return err
	}
	return w.readyToPart(ctx, o, was)
}

// unlike lists which fields of what among operands was made for a variant are not as what was made for the copy, named as in judge.New.Remakes, sorted: not those that nobody chose.
func (o *newObject) unlike(operands map[string]observe.Operand) []string {
	if o.first == nil {
		return nil
	}
	list := []string{}
	for _, m := range without(operands, o.needs) {
		if !m.Direct || m.Transient() || m.Kind == "Secret" || generated.MatchString(m.Name) {
			continue
		}
		first, there := o.first[o.called(m)]
		if !there {
			list = append(list, o.called(m))
			continue
		}
		list = append(list, o.apart(m, first.Content, noted)...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// asSample are operands, which were made for a copy, as if they were the sample's, by what they are called.
func (o *newObject) asSample(operands map[string]observe.Operand) map[string]observe.Operand {
	theirs := map[string]observe.Operand{}
	for _, m := range operands {
		renamed := m
		renamed.Content, _ = o.renamed(m.Content).(map[string]any)
		theirs[o.called(m)] = renamed
	}
	return theirs
}
