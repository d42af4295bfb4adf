package walk

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/observe"
)

// straysOf is what was made for samples outside of namespace and says something of copies: what it says, by its name and that of the copy's definition.
func (w *walk) straysOf(ctx context.Context, copies []*newObject, namespace string) (map[string]map[string]string, error) {
	view := w.viewOf(slices.DeleteFunc(slices.Clone(w.Objects), func(sample *observe.Object) bool { return sample.Namespace == "" })...)
	operands, err := view.RecentOperands(ctx)
	if err != nil {
		return nil, err
	}
	strays := map[string]map[string]string{}
	for _, o := range copies {
		strays[o.CRD] = map[string]string{}
		for _, made := range operands {
			if made.Namespace != "" && made.Namespace != namespace && !made.Transient() && o.isSaidIn(made) {
				strays[o.CRD][made.String()+", which is made for "+made.Of] = fmt.Sprint(made.Content)
			}
		}
	}
	return strays, nil
}

// isSaidIn reports whether made says the name of o, and not that of one called after it that names samples in their namespace.
func (o *newObject) isSaidIn(made observe.Operand) bool {
	return saysAny(made, func(text string) bool { return strings.Contains(strings.ReplaceAll(text, o.Name+farAway, ""), o.Name) })
}

// noteStrays notes in created what is outside of namespace, where copies are, and says something of them that it did not say, as before tells, when they were not there.
func (w *walk) noteStrays(ctx context.Context, copies []*newObject, namespace string, before map[string]map[string]string, created map[string]judge.New) error {
	now, err := w.straysOf(ctx, copies, namespace)
	if err != nil {
		return err
	}
	for _, o := range copies {
		is := created[o.CRD]
		is.Strays = []string{}
		for _, name := range slices.Sorted(maps.Keys(now[o.CRD])) {
			if was, said := before[o.CRD][name]; !said || was != now[o.CRD][name] {
				is.Strays = append(is.Strays, name)
			}
		}
		created[o.CRD] = is
	}
	return nil
}

// noteStrangers notes in created what is made for twins, and says the name of a sample, which is in another namespace, that names one as those do.
func (w *walk) noteStrangers(ctx context.Context, twins []*newObject, created map[string]judge.New) error {
	view := w.viewOf(objectsOf(twins)...)
	operands, err := view.RecentOperands(ctx)
	if err != nil {
		return err
	}
	for _, o := range twins {
		if o.Name == o.like.Name { // which has the sample's name itself
			continue
		}
		is := created[o.CRD]
		if is.Strays == nil {
			is.Strays = []string{}
		}
		saysSample := w.sayingSamplesBeside(o)
		for _, name := range slices.Sorted(maps.Keys(operands)) {
			if made := operands[name]; made.Of != o.String() && !made.Transient() && saysAny(made, saysSample) {
				is.Strays = append(is.Strays, fmt.Sprintf("%s %s, which is made for %s of another namespace", made.Kind, made.Name, made.Of))
			}
		}
		created[o.CRD] = is
	}
	return nil
}

// sayingSamplesBeside returns what reports whether a text has the name of a sample of o's kind that o does not name itself.
func (w *walk) sayingSamplesBeside(o *newObject) func(text string) bool {
	others := slices.DeleteFunc(w.ofKind(o.CRD), func(sample *observe.Object) bool {
		return judge.Names(o.like.Author["spec"], sample.Name, func(string) bool { return true })
	})
	return func(text string) bool {
		words := nameLike.FindAllString(text, -1)
		return slices.ContainsFunc(others, func(sample *observe.Object) bool { return slices.Contains(words, sample.Name) })
	}
}
