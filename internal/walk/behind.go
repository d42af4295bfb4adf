package walk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/olmkit/olmkit/internal/compare"
	"github.com/olmkit/olmkit/internal/definition"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// renewed are the kinds that operators write again when they would make them otherwise.
var renewed = []string{
	"Deployment", "StatefulSet", "DaemonSet", "CronJob", "ConfigMap", "Service", "PodDisruptionBudget", "Ingress", "NetworkPolicy", "HorizontalPodAutoscaler", "Role", "RoleBinding", "ResourceQuota", "LimitRange",
}

// fixed matches fields that nobody can change once something is made, that the cluster chooses, or that have a sum of what has a name in it.
var fixed = regexp.MustCompile(`^(spec\.(selector|volumeClaimTemplates|serviceName|podManagementPolicy|clusterIPs?|ipFamil\w+|healthCheckNodePort)|roleRef)\b|[nN]odePort|^spec\.replicas$|annotations\.\S*(?i:sum|hash|digest)`)

// noteBehind notes in is the fields of what among operands was made for a copy's sample that are not what they are for the copy, which has the same spec, what was made for the
// copy alone, and what for the sample alone: the sample's was made by another release. Nothing is noted where they do not say the same, or where nothing is there that was made for the
// sample: somebody has deleted it.
func (w *walk) noteBehind(ctx context.Context, o *newObject, operands map[string]observe.Operand, is *judge.New) error {
	copied, err := o.At(w.Dynamic, o.Version).Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return ctx.Err() // its operator may delete what it does not want
	}
	like, err := o.like.At(w.Dynamic, o.Version).Get(ctx, o.like.Name, metav1.GetOptions{})
	if err != nil || !reflect.DeepEqual(like.Object["spec"], o.renamed(copied.Object["spec"])) {
		return ctx.Err()
	}
	operands = without(operands, o.needs)
	if !judge.DealtWith(o.like.String(), operands, false).Made {
		return nil
	}
	is.Behind, is.Beside = o.behind(operands, w.ofOtherKinds(o)), o.beside(operands)
	return nil
}

// ownedTwice names what among operands was made for a copy's sample, as each copy's is named, of which a manager that updated or applied it before still owns what another one
// applies now. What that does not apply any more stays there.
func (w *walk) ownedTwice(ctx context.Context, o *newObject, operands map[string]observe.Operand) ([]string, error) {
	names := []string{}
	for _, name := range slices.Sorted(maps.Keys(operands)) {
		made := operands[name]
		if made.Of != o.like.String() || !made.Direct || !slices.Contains(renewed, made.Kind) {
			continue
		}
		now, err := w.operandNow(ctx, made)
		if err != nil {
			return nil, err
		}
		if now != nil && sharesFields(now.GetManagedFields()) {
			made.Name = strings.ReplaceAll(made.Name, o.like.Name, o.Name)
			names = append(names, o.called(made))
		}
	}
	return names, nil
}

// sharesFields reports whether in list somebody applies what somebody else applies or updates, besides the walk, and but for metadata.
func sharesFields(list []metav1.ManagedFieldsEntry) (shared bool) {
	updated, applied := &fieldpath.Set{}, &fieldpath.Set{}
	note := func(mine, others *fieldpath.Set) {
		mine.Intersection(others).Iterate(func(path fieldpath.Path) {
			field := path[0].FieldName
			shared = shared || field != nil && *field != "metadata"
		})
	}
	for _, m := range list {
		var fields fieldpath.Set
		if m.Subresource != "" || m.Manager == "olmkit" || m.FieldsV1 == nil || fields.FromJSON(m.FieldsV1.GetRawReader()) != nil {
			continue
		}
		if note(&fields, applied); m.Operation == metav1.ManagedFieldsOperationUpdate {
			updated = updated.Union(&fields)
			continue
		}
		note(&fields, updated)
		applied = applied.Union(&fields)
	}
	return shared
}

// mostTakenOut is how much is taken out at most of the specs of a copy and its sample.
const mostTakenOut = 4

// takeOut takes what surely is followed, and parts, out of the specs of a copy and its sample, and notes in is what then stays in what was made for the sample alone: where another manager
// still owns what the operator applies, that does not go with it.
func (w *walk) takeOut(ctx context.Context, r *lifecycle.Release, o *newObject, was judge.New, is *judge.New) error {
	if len(is.OwnedTwiceNow(was)) == 0 || is.Behind == nil || !w.Provider.Disposable() {
		return nil
	}
	var steps [2][]step
	for i, object := range []*observe.Object{o.Object, o.like} {
		now, err := object.At(w.Dynamic, o.Version).Get(ctx, object.Name, metav1.GetOptions{})
		if err != nil {
			return ctx.Err() // its operator may delete what it does not want
		}
		steps[i] = takenOut(definition.Schema(r.CRD(o.CRD), o.Version), now.Object, is.Follows)
	}
	is.TakenOut = map[string][]string{}
	for _, ofCopy := range steps[0] {
		at := slices.IndexFunc(steps[1], func(s step) bool { return s.Path == ofCopy.Path })
		if at < 0 || len(is.TakenOut) == mostTakenOut {
			continue
		}
		left, err := w.takeOutOne(ctx, o, ofCopy, steps[1][at], is.Behind)
		if err != nil {
			return err
		}
		is.TakenOut[ofCopy.Path] = left
	}
	return nil
}

// takenOut are the changes of an object that take something out of its spec: what surely is followed, as known says, and parts.
func takenOut(schema *apiextensionsv1.JSONSchemaProps, object map[string]any, known map[string]int) []step {
	takes := slices.DeleteFunc(slices.Concat(fewer(schema, object, true), leftOut(schema, object), bold(schema, object)), func(s step) bool {
		return known[s.Path] < judge.Surely || s.Path == judge.OfField(s.Path) && s.Entry[0] == ""
	})
	return slices.Concat(takes, partsLeftOut(schema, object))
}

// takeOutOne makes a change of a copy and the same one of its sample, takes both back, and returns what was behind meanwhile that was not before.
func (w *walk) takeOutOne(ctx context.Context, o *newObject, ofCopy, ofSample step, before []string) (left []string, err error) {
	copied, sample := o.At(w.Dynamic, o.Version), o.like.At(w.Dynamic, o.Version)
	patch := func(ofCopy, ofSample []byte, dryRun ...string) error {
		return errors.Join(mergePatch(ctx, sample, o.like.Name, ofSample, dryRun...), mergePatch(ctx, copied, o.Name, ofCopy, dryRun...))
	}
	if patch(ofCopy.There, ofSample.There, metav1.DryRunAll) != nil {
		return nil, ctx.Err()
	}
	if err := w.awaitIdle(ctx, o); err != nil {
		return nil, err
	}
	follows, err := w.followedSoon(ctx, o, boldLimit, func() error { return patch(ofCopy.There, ofSample.There) })
	if err == nil && follows {
		err = w.awaitIdle(ctx, o)
	}
	if err == nil && follows {
		view, others := w.viewOf(o.Object, o.like), w.ofOtherKinds(o)
		err = lookUntil(ctx, judge.EffectLimit, lookPause, func() (bool, error) {
			operands, err := view.ConfirmedOperands(ctx)
			left = slices.DeleteFunc(o.behind(without(operands, o.needs), others), func(name string) bool { return slices.Contains(before, name) })
			return len(left) == 0, err
		})
	}
	refused := patch(ofCopy.Back, ofSample.Back)
	if err == nil {
		err = errors.Join(refused, w.awaitIdle(ctx, o))
	}
	return left, err
}

// chosenLetter matches a letter of what generateName adds to a name, which has no vowels (k8s.io/apimachinery v0.36.3 pkg/util/rand).
const chosenLetter = "[bcdfghjklmnpqrstvwxz2456789]"

// generated matches a name that ends in what is chosen anew for each, as by generateName, or in a sum, or that has the former in it,
// as it is called after what generateName called.
var generated = regexp.MustCompile(`-(` + chosenLetter + `{5,10}|[0-9a-f]{6,})$|-` + chosenLetter + `{5}-`)

// behind is what behindOf finds among operands, each named as what each copy has. Of a kind of which both have as many under generated names, each has its own.
// others are the names of objects of other kinds of the operator's.
func (o *newObject) behind(operands map[string]observe.Operand, others map[string]bool) []string {
	theirs, found := map[string]any{}, []string{}
	unmatched := map[string]int{} // of the sample, by kind
	for _, m := range operands {
		if m.Of == o.like.String() && m.Direct {
			theirs[m.Kind+" "+m.Name] = withoutEntries(m, others)
			if generated.MatchString(m.Name) {
				unmatched[m.Kind]++
			}
		}
	}
	var alone []observe.Operand
	for _, name := range slices.Sorted(maps.Keys(operands)) {
		m := operands[name]
		if m.Of != o.String() || !m.Direct || !slices.Contains(renewed, m.Kind) {
			continue
		}
		now, there := theirs[m.Kind+" "+o.named(m.Name)]
		if !there {
			alone = append(alone, m)
			continue
		}
		if generated.MatchString(m.Name) {
			unmatched[m.Kind]--
		}
		m.Content = withoutEntries(m, others)
		found = append(found, o.apart(m, now, fixed)...)
	}
	for _, m := range alone {
		if !generated.MatchString(m.Name) || unmatched[m.Kind] <= 0 {
			found = append(found, o.called(m))
			continue
		}
		unmatched[m.Kind]--
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// withoutEntries is what made says, but for the entries of a ConfigMap that name one of others, which are theirs.
func withoutEntries(made observe.Operand, others map[string]bool) map[string]any {
	data, _ := made.Content["data"].(map[string]any)
	if made.Kind != "ConfigMap" || len(data) == 0 || len(others) == 0 {
		return made.Content
	}
	content, own := maps.Clone(made.Content), maps.Clone(data)
	maps.DeleteFunc(own, func(key string, value any) bool {
		return slices.ContainsFunc(nameLike.FindAllString(fmt.Sprint(key, " ", value), -1), func(word string) bool { return others[word] })
	})
	if content["data"] = own; len(own) == 0 {
		delete(content, "data")
	}
	return content
}

// ofOtherKinds are the names of all objects of the package that are of other kinds than o.
func (w *walk) ofOtherKinds(o *newObject) map[string]bool {
	names := map[string]bool{}
	for _, other := range slices.Concat(w.Objects, w.Others) {
		if other.CRD != o.CRD {
			names[other.Name] = true
		}
	}
	return names
}

// beside names what among operands was made for the sample and not for the copy, as each copy has it: of a kind of which the copy has some, and fewer than the sample. What has a
// generated name may be an older one that is kept.
func (o *newObject) beside(operands map[string]observe.Operand) []string {
	copied, count, few, names := map[string]bool{}, map[string]int{}, map[string]bool{}, []string{}
	for _, m := range operands {
		switch {
		case m.Direct && m.Of == o.String():
			copied[m.Kind+" "+o.named(m.Name)], few[m.Kind] = true, true
			count[m.Kind]++
		case m.Direct && m.Of == o.like.String():
			count[m.Kind]--
		}
	}
	for _, m := range operands {
		if m.Direct && m.Of == o.like.String() && slices.Contains(renewed, m.Kind) && !generated.MatchString(m.Name) &&
			!copied[m.Kind+" "+m.Name] && few[m.Kind] && count[m.Kind] < 0 {
			names = append(names, strings.TrimSuffix(m.Kind+" "+strings.ReplaceAll(m.Name, o.like.Name, "…"), " …"))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// apart are the fields of made, of a copy, that say something else in other, which is as if it was the sample's, but for those that but matches, each named as what each copy has.
// Items that have names may be in any order, as the ports of a Service that an operator keeps in a map.
func (o *newObject) apart(made observe.Operand, other any, but *regexp.Regexp) (fields []string) {
	for _, field := range compare.OtherFields(byName(o.renamed(made.Content)), byName(other)) {
		if !but.MatchString(field) {
			fields = append(fields, o.called(made)+" "+field)
		}
	}
	return fields
}

// named is a name with those of the sample and of what that needs in place of those of the copy and of its needs.
func (o *newObject) named(name string) string { return o.with(name, o.like.Name) }

// renamed is value with the names of the sample and of what that needs in place of those of the copy and of its needs.
func (o *newObject) renamed(value any) any {
	switch v := value.(type) {
	case string:
		return strings.ReplaceAll(o.named(v), string(o.UID), string(o.like.UID))
	case map[string]any:
		renamed := map[string]any{}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			renamed[o.named(k)] = o.renamed(v[k])
		}
		return renamed
	case []any:
		renamed := make([]any, len(v))
		for i, item := range v {
			renamed[i] = o.renamed(item)
		}
		return renamed
	}
	return value
}
