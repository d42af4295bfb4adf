package walk

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// oftenAnew is how often what is made for an object that nobody changes is made anew where another object's reconciling deletes it.
const oftenAnew = 3

// rivals are, by their definition, what the operator made for objects and made anew, over and over. An operator that takes care of one object of a kind
// deletes for each what is another's.
type rivals map[string]observe.Operand

// rivalry returns a function that tells, whenever it is asked, which rivals there are among the walk's objects since it was asked first.
func (w *walk) rivalry(ctx context.Context) func() (rivals, error) {
	had := map[string]map[types.UID]bool{}
	return func() (rivals, error) {
		operands, err := w.RecentOperands(ctx)
		if err != nil {
			return nil, err
		}
		found := rivals{}
		for name, made := range operands {
			if !lasting(made) {
				continue
			}
			if had[name] == nil {
				had[name] = map[types.UID]bool{}
			}
			had[name][made.UID] = true
			of := slices.IndexFunc(w.Objects, func(o *observe.Object) bool { return o.String() == made.Of })
			if of >= 0 && len(had[name]) > oftenAnew && len(w.ofKind(w.Objects[of].CRD)) > 1 {
				found[w.Objects[of].CRD] = made
			}
		}
		return found, nil
	}
}

// lasting reports whether what an operator made stays while nobody changes what it is made for.
func lasting(made observe.Operand) bool {
	return made.Direct && !made.Transient() && made.Kind != "Job"
}

// census says, in a word, how much was made, and which of it lasts.
func census(operands map[string]observe.Operand) string {
	said := []string{fmt.Sprint(len(operands))}
	for _, made := range operands {
		if lasting(made) {
			said = append(said, string(made.UID))
		}
	}
	slices.Sort(said)
	return strings.Join(said, " ")
}

// ofKind are the walk's objects of the definition called crd.
func (w *walk) ofKind(crd string) []*observe.Object {
	return slices.DeleteFunc(slices.Clone(w.Objects), func(o *observe.Object) bool { return o.CRD != crd })
}

// leaveOne deletes all objects of the kinds of rivals but the first of each, which the walk goes on with alone.
func (w *walk) leaveOne(ctx context.Context, found rivals) error {
	for _, crd := range slices.Sorted(maps.Keys(found)) {
		all := w.ofKind(crd)
		all[0].Only, w.alone[crd] = true, true
		w.notes = append(w.notes, fmt.Sprintf("%s was deleted and made anew over and over while there were %d objects of kind %s, so the walk goes on with one: what takes two, as new objects beside it, is not tried",
			found[crd], len(all), all[0].Kind))
		stay, err := w.removeThese(ctx, all[1:], deletionLimit)
		if err != nil {
			return err
		}
		w.Forget(slices.DeleteFunc(all[1:], func(o *observe.Object) bool { return slices.Contains(stay, o) }))
	}
	return nil
}

// rivalLimit is how long an operator is watched that made anew what it had made, to see whether it goes on with that.
const rivalLimit = 8 * time.Second

// judgeRivals judges whether r's operator makes what it made for samples anew over and over: there is what that was before somebody looked at them.
func (w *walk) judgeRivals(ctx context.Context, from string, r *lifecycle.Release, there map[string]observe.Operand) ([]finding.Finding, error) {
	if from == r.Name { // what is made for samples was settled
		return nil, nil
	}
	now, err := w.RecentOperands(ctx)
	anew := func(name string) bool { return lasting(there[name]) && now[name].UID != there[name].UID }
	if err != nil || !slices.ContainsFunc(slices.Collect(maps.Keys(there)), anew) {
		return nil, err
	}
	var found rivals
	rivalry := w.rivalry(ctx)
	err = lookUntil(ctx, rivalLimit, quickPause, func() (bool, error) {
		found, err = rivalry()
		return len(found) > 0, err
	})
	var findings []finding.Finding
	for _, crd := range slices.Sorted(maps.Keys(found)) {
		f := code.Finding(code.HotLoop, found[crd].String(), "%s deletes it and makes it anew over and over, although nobody changes %s: what it makes for one object may be what it deletes for another of the kind",
			r.Name, found[crd].Of)
		f.Severity = finding.Error // samples of a release that did so before are one
		findings = append(findings, f)
	}
	return findings, err
}
