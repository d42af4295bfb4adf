package walk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/definition"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// tryNew takes from a copy what was made for it and changes it, and notes in created what r's operator does then. The release called
// from says how long that is waited for.
func (w *walk) tryNew(ctx context.Context, from string, r *lifecycle.Release, o *newObject, created map[string]judge.New) error {
	w.trying.Note(o.String())
	was, is := w.created[from][o.CRD], created[o.CRD]
	view := w.viewOf(o.Object)
	operands, err := view.Operands(ctx)
	if err != nil {
		return err
	}
	is.Takes, operands = o.takes(operands), without(operands, o.needs)
	o.remember(operands)
	o.first = operands
	for name, made := range operands {
		if made.Unready == "" {
			o.ready = append(o.ready, name)
		}
	}
	o.claims, is.Longest = claimsOf(o, operands), cmp.Or(was.Longest, o.longestName(operands))
	o.following.begin(was)
	is.Follows, is.Remakes, is.Reverts, is.Retains = map[string]int{}, map[string]bool{}, map[string]bool{}, map[string][]string{}
	for _, try := range []func() error{
		func() error { return w.noteActed(ctx, o, was, &is) },
		func() error { return w.lookAtMade(ctx, r, o, operands, &is) },
		func() error { return w.markNew(ctx, o, operands) },
		func() error {
			return w.editNew(ctx, o, editsOf(operands, knownFirst(o, operands, was.Reverts)), was, is.Reverts)
		},
		// Before fields are changed that the other release may not have.
		func() error { return w.noteMarks(ctx, o, &is) },
		func() (err error) { is.Written, err = w.writtenInto(ctx, o); return err },
		func() error { return w.takeFromNew(ctx, o, operands, was, remade, is.Remakes) },
		func() error { return w.changeNew(ctx, r, o, operands, was, &is) },
		func() error { return w.takeOut(ctx, r, o, was, &is) },
		func() error { return w.pauseNew(ctx, r, o, was, &is) },
		func() error { return w.changeNeeds(ctx, o, operands, was, &is) },
		func() error { return w.unlabelNew(ctx, r, o, was, is.Follows) },
		func() error { return w.spreadNew(ctx, o, operands, was, &is) },
		func() error { return w.changeWords(ctx, r, o, operands, was, &is) },
		func() error { return w.noteLast(ctx, o, is.Follows) },
		func() error { return w.scaleToNone(ctx, r, o, was, &is) },
		func() error { return w.takeLast(ctx, o, was, &is) },
	} {
		if err = try(); err != nil {
			break
		}
	}
	if err == nil && o.held && !o.noted { // there was nothing to try
		err = w.awaitIdle(ctx, o)
	}
	o.following.noteIn(&is)
	is.Slowest, is.Usually = o.slowest, o.usually()
	is.Unsteady, is.Readiness, is.Deprecated = o.unsteadyOf(operands), o.readiness, w.deprecatedOf(o, was, is)
	if err == nil {
		err = w.seeTried(ctx, o, was, &is)
	}
	created[o.CRD] = is
	return err
}

// seeTried notes in is what a copy says for which all was tried.
func (w *walk) seeTried(ctx context.Context, o *newObject, was judge.New, is *judge.New) error {
	err := w.readStatuses(ctx, o, was, is)
	if err == nil {
		err = w.readyToPart(ctx, o, was)
	}
	if err == nil && !is.Copy.Alike { // it has had its time by now
		err = w.lookWhetherWell(ctx, o, &is.Copy)
	}
	return err
}

// lookWhetherWell notes in dealt whether a copy is as well as its sample by its own words.
func (w *walk) lookWhetherWell(ctx context.Context, o *newObject, dealt *judge.Dealt) (err error) {
	dealt.Unwell, err = w.UnwellAs(ctx, o.Object, o.like)
	dealt.Alike = dealt.Unwell == ""
	return err
}

// lookAtMade notes in is what operands, which were made for a copy, are like before anything is tried.
func (w *walk) lookAtMade(ctx context.Context, r *lifecycle.Release, o *newObject, operands map[string]observe.Operand, is *judge.New) (err error) {
	spec, _ := o.Author["spec"].(map[string]any)
	is.Makes = o.makes(operands)
	is.Carried = judge.Carried(spec, slices.Collect(maps.Values(operands)))
	is.Programs, is.Secrets, o.sums = programsOf(o, operands), secretsOf(o, operands), sumsOf(o, operands)
	if is.Blocks, is.MayBlock, err = w.blocks(ctx, r, o, operands); err != nil {
		return err
	}
	view := w.viewOf(o.Object, o.like)
	both, err := view.Operands(ctx)
	if err != nil {
		return err
	}
	if err = w.noteBehind(ctx, o, both, is); err != nil {
		return err
	}
	if is.OwnedTwice, err = w.ownedTwice(ctx, o, both); err != nil {
		return err
	}
	if is.Leads, err = w.leadsOf(ctx, o, operands); err != nil {
		return err
	}
	is.Picks, err = w.picksOf(ctx, o)
	return err
}

// makes is what among operands was made for a copy, named as in judge.New.Remakes.
func (o *newObject) makes(operands map[string]observe.Operand) (names []string) {
	for _, made := range operands {
		if made.Direct {
			names = append(names, o.called(made))
		}
	}
	return names
}

// blocks reports whether an owner reference of what was made for a copy blocks the copy's deletion, and whether r's operator may set such a one everywhere:
// the admission plugin OwnerReferencesPermissionEnforcement asks for the right to update the owner's finalizers (k8s.io/kubernetes v1.36.3
// plugin/pkg/admission/gc/gc_admission.go).
func (w *walk) blocks(ctx context.Context, r *lifecycle.Release, o *newObject, operands map[string]observe.Operand) (blocks, may bool, err error) {
	for _, name := range slices.Sorted(maps.Keys(operands)) {
		if !operands[name].Direct {
			continue
		}
		now, err := w.operandNow(ctx, operands[name])
		if err != nil {
			return false, false, err
		}
		if now != nil && slices.ContainsFunc(now.GetOwnerReferences(), func(of metav1.OwnerReference) bool {
			return of.UID == o.UID && ptr.Deref(of.BlockOwnerDeletion, false)
		}) {
			may, err = w.AnyAllowed(ctx, r, observe.Access{Verb: "update", Group: o.Resource.Group, Resource: o.Resource.Resource + "/finalizers", Namespace: o.Namespace, Name: o.Name})
			return true, may, err
		}
	}
	return false, false, nil
}

// deprecatedOf tells which of the fields of a copy that were looked for or changed, or said something under the release before, are deprecated.
func (w *walk) deprecatedOf(o *newObject, was, is judge.New) map[string]bool {
	deprecated := map[string]bool{}
	for _, path := range slices.Concat(slices.Collect(maps.Keys(is.Follows)), slices.Collect(maps.Keys(is.Carried)), slices.Collect(maps.Keys(was.Says))) {
		deprecated[path] = w.isDeprecated(o.Object, judge.OfField(path))
	}
	return deprecated
}

// readStatuses notes in is the fields that the statuses of a copy and of its sample have, if both are there, and which Events there are about the copy. Some are empty while pods
// are replaced: what the copy had under the release before is waited for.
func (w *walk) readStatuses(ctx context.Context, o *newObject, was judge.New, is *judge.New) error {
	err := lookUntil(ctx, judge.HealthLimit, lookPause, func() (bool, error) {
		copied, err := o.At(w.Dynamic, o.Version).Get(ctx, o.Name, metav1.GetOptions{})
		if err != nil {
			return true, ctx.Err()
		}
		like, err := o.like.At(w.Dynamic, o.Version).Get(ctx, o.like.Name, metav1.GetOptions{})
		if err != nil {
			return true, ctx.Err()
		}
		is.Says, is.SampleSays = judge.Said(copied), judge.Said(like)
		is.Finalizers = copied.GetFinalizers()
		return len(is.Silent(was)) == 0, nil
	})
	if err == nil {
		is.Events, err = w.toldOf(ctx, o, was)
	}
	return err
}

// toldOf are the reasons of the Events about a copy, sorted, but for warnings. They are sent apart from what they tell of, and may come late: one is
// waited for if there were any under the release before.
func (w *walk) toldOf(ctx context.Context, o *newObject, was judge.New) (told []string, err error) {
	err = lookUntil(ctx, was.Patience(), lookPause, func() (bool, error) {
		var events corev1.EventList
		if err := w.Client.List(ctx, &events, client.InNamespace(cmp.Or(o.Namespace, metav1.NamespaceDefault))); err != nil {
			return false, fmt.Errorf("list Events: %w", err)
		}
		reasons := map[string]bool{}
		for _, e := range events.Items {
			if e.InvolvedObject.UID == o.UID && e.Type == corev1.EventTypeNormal {
				reasons[e.Reason] = true
			}
		}
		told = slices.Sorted(maps.Keys(reasons))
		return len(told) > 0 || len(was.Events) == 0, nil
	})
	return told, err
}

// changeNew changes the fields of a copy, one after the other, and notes in is how often anything that was made for it follows each.
func (w *walk) changeNew(ctx context.Context, r *lifecycle.Release, o *newObject, operands map[string]observe.Operand, was judge.New, is *judge.New) error {
	resource := o.At(w.Dynamic, o.Version)
	now, err := resource.Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return ctx.Err() // its operator may delete what it does not want
	}
	known, left, err := w.changesOf(ctx, r, o, now.Object, operands, was)
	if err != nil {
		return err
	}
	known, err = w.changeTogether(ctx, o, resource, known, was, is)
	if err != nil {
		return err
	}
	for _, change := range slices.Concat(known, left) {
		patch := func(data []byte, dryRun ...string) error {
			return mergePatch(ctx, resource, o.Name, data, dryRun...)
		}
		if patch(change.There, metav1.DryRunAll) != nil {
			continue
		}
		w.trying.Note(fmt.Sprintf("%s: %s", o, change.Path))
		o.following.entry, o.following.retained, o.following.asked, o.following.wanted = change.Entry, nil, change.askedIn(now.Object), change.wanted()
		times, err := w.thereAndBack(ctx, o, change.Path, was, is.Follows, func() error { return patch(change.There) }, func() error { return patch(change.Back) })
		if err != nil {
			return err
		}
		if times == 1 {
			if err := w.putRight(ctx, o); err != nil {
				return err
			}
		}
		if times > 0 {
			w.noteTried(o.CRD, change.Path)
		}
		if is.Follows[change.Path] = times; o.following.retained != nil {
			is.Retains[change.Path] = o.following.retained
		}
		if times > 0 || was.Follows[change.Path] < judge.Surely {
			continue
		}
		if usual, err := w.isUsual(ctx, o, change, now.Object, operands, was, patch); err != nil {
			return err
		} else if usual {
			delete(is.Follows, change.Path)
		}
	}
	o.following.entry, o.following.asked, o.following.wanted = [2]string{}, "", ""
	return nil
}

// isUsual reports whether a text of object, a copy, is what is usual, where nothing follows that it is left out: if it is another one at first, something does.
func (w *walk) isUsual(ctx context.Context, o *newObject, leftOut step, object map[string]any, operands map[string]observe.Operand, was judge.New, patch func(data []byte, dryRun ...string) error) (bool, error) {
	field, is := strings.CutSuffix(leftOut.Path, judge.LeftOut)
	path := strings.Split(field, ".")
	text, _, _ := unstructured.NestedString(object, path...)
	word := otherWord(lastOf(field), text)
	other := stepOf(path, word, text)
	if !is || word == text || len(w.withoutPulls([]step{other}, object, operands)) == 0 {
		return false, nil
	}
	follows := true
	for _, change := range [][]byte{other.There, leftOut.There} {
		err := w.awaitIdle(ctx, o)
		if err == nil && follows {
			follows, err = w.followed(ctx, o, was.Patience(), func() error { return patch(change) })
		}
		if err != nil {
			return false, err
		}
	}
	if patch(leftOut.Back) != nil { // the object is about to be deleted
		return follows, ctx.Err()
	}
	return follows, w.awaitIdle(ctx, o)
}

// changesOf lists the changes of object, a copy, that are tried: those that surely were followed under the release before, and the others.
func (w *walk) changesOf(ctx context.Context, r *lifecycle.Release, o *newObject, object map[string]any, operands map[string]observe.Operand, was judge.New) (known, left []step, err error) {
	schema := definition.Schema(r.CRD(o.CRD), o.Version)
	most := func(n int) int {
		if w.lastHop && was.Follows != nil { // nothing is compared with the last
			return 0
		}
		return n
	}
	untried := func(steps []step, most int) []step { return asBefore(o.toTry(steps), was.Follows, most) }
	elsewhere, err := w.pointElsewhere(ctx, o, object)
	if err != nil {
		return nil, nil, err
	}
	known, left = partition(slices.Concat(
		untried(w.withoutPulls(bold(schema, object), object, operands), mostBold), // one may end the operator
		untried(w.withoutPulls(leftOut(schema, object), object, operands), most(mostLeftOut)),
		untried(w.otherTexts(o, object), most(mostLeftOut)),
		untried(elsewhere, most(mostPointed)),
		untried(fewer(schema, object, slices.ContainsFunc(slices.Collect(maps.Values(operands)), judge.DeletesScaled)), most(mostFewer)),
		untried(unset(schema, object, giveSwitch), most(mostUnset)), // which may need what is not there
		untried(unset(schema, object, giveValue), most(mostGiven)),
		untried(zeros(schema, object), most(mostZeros)),
		untried(w.withoutPulls(texts(schema, object), object, operands), most(mostLeftOut)),
	), func(path string) bool { return was.Follows[path] == judge.Surely })
	return known, left, nil
}

// putRight deletes what was made for a copy that is another than before the last change, which was taken back, so that the operator makes it anew: what the API server does not let it change
// back, as a Deployment's strategy to Recreate by server-side apply, would keep it from all that is tried next.
func (w *walk) putRight(ctx context.Context, o *newObject) error {
	view := w.viewOf(o.Object)
	now, err := view.ConfirmedOperands(ctx)
	if err != nil {
		return err
	}
	kinds := slices.Concat(judge.Replicated, remade)
	for _, name := range slices.Sorted(maps.Keys(now)) {
		made, before := now[name], o.following.before[name]
		if !made.Direct || made.UID != before.UID || !slices.Contains(kinds, made.Kind) ||
			len(otherPaths(valuesByName(before.Content), valuesByName(made.Content))) == 0 {
			continue
		}
		if _, _, err := w.takeOne(ctx, o, &made, newLimit); err != nil {
			return err
		}
	}
	return nil
}

// scaleToNone has a copy ask for none of what it counts, and notes in is whether a workload that was made for it has no replicas then: who takes 0 for left out
// goes on with what is usual.
func (w *walk) scaleToNone(ctx context.Context, r *lifecycle.Release, o *newObject, was judge.New, is *judge.New) error {
	resource := o.At(w.Dynamic, o.Version)
	now, err := resource.Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return ctx.Err() // its operator may delete what it does not want
	}
	change := toNone(definition.Schema(r.CRD(o.CRD), o.Version), now.Object)
	if change == nil || mergePatch(ctx, resource, o.Name, change.There, metav1.DryRunAll) != nil {
		return ctx.Err()
	}
	limit := boldLimit
	switch times, known := was.Follows[change.Path]; {
	case times == judge.Surely:
		limit = was.Patience()
	case known: // what it did not do before need not be tried again
		is.Follows[change.Path] = 0
		return nil
	case slices.ContainsFunc(slices.Collect(maps.Values(o.first)), judge.DeletesScaled): // its claims would go with the pods
		return nil
	}
	if err := w.awaitIdle(ctx, o); err != nil {
		return err
	}
	view := w.viewOf(o.Object)
	before, err := view.ConfirmedOperands(ctx)
	if err != nil || mergePatch(ctx, resource, o.Name, change.There) != nil {
		return errors.Join(err, ctx.Err())
	}
	is.Follows[change.Path] = 0
	err = lookUntil(ctx, limit, quickPause, func() (bool, error) {
		now, err := view.RecentOperands(ctx)
		if scaledToNone(before, now) {
			is.Follows[change.Path] = judge.Surely
		}
		return is.Follows[change.Path] > 0, err
	})
	if err == nil && is.Follows[change.Path] > 0 {
		is.AtNone, err = w.unwellAtNone(ctx, o, was)
	}
	refused := mergePatch(ctx, resource, o.Name, change.Back) // the object is about to be deleted
	if err != nil || is.Follows[change.Path] == 0 {
		return err
	}
	there, err := view.RecentOperands(ctx)
	if err == nil {
		err = w.awaitIdle(ctx, o)
	}
	if err == nil && refused == nil {
		_, err = w.awaitBack(ctx, o, change.Path, before, there)
	}
	return err
}

// unwellAtNone says why a copy that was asked for none is not well by its own words, "" if it is. If it was under the release before, that is waited for.
func (w *walk) unwellAtNone(ctx context.Context, o *newObject, was judge.New) (*string, error) {
	limit := boldLimit
	if was.AtNone != nil && *was.AtNone == "" {
		limit = was.Patience()
	}
	why := ""
	err := lookUntil(ctx, limit, quickPause, func() (well bool, err error) {
		why, err = w.UnwellAs(ctx, o.Object, o.Object)
		return why == "", err
	})
	return &why, err
}

// leaveOutParts leaves out of the spec of a copy, at the same time, the parts that it may leave out and the API server takes it without, and notes in is
// whether anything that was made for it follows. An operator that looks into what is not there panics: nothing else is tried afterwards.
func (w *walk) leaveOutParts(ctx context.Context, r *lifecycle.Release, o *newObject, was judge.New, is *judge.New) error {
	resource := o.At(w.Dynamic, o.Version)
	now, err := resource.Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return ctx.Err() // its operator may delete what it does not want
	}
	view := w.viewOf(o.Object)
	operands, err := view.Operands(ctx)
	if err != nil {
		return err
	}
	var taken []step
	var paths []string
	for _, part := range o.toTry(w.withoutPulls(partsLeftOut(definition.Schema(r.CRD(o.CRD), o.Version), now.Object), now.Object, operands)) {
		there, _, err := merged(append(slices.Clone(taken), part))
		if err == nil && mergePatch(ctx, resource, o.Name, there, metav1.DryRunAll) == nil {
			taken, paths = append(taken, part), append(paths, part.Path)
		}
	}
	there, back, err := merged(taken)
	if err != nil || len(taken) == 0 {
		return errors.Join(err, ctx.Err())
	}
	path, limit := strings.Join(paths, judge.And)+judge.LeftOut, boldLimit
	if was.Follows[path] == judge.Surely {
		limit = was.Patience()
	}
	if err := w.awaitIdle(ctx, o); err != nil {
		return err
	}
	before, err := view.ConfirmedOperands(ctx) // a Secret that was made anew a moment ago is not the one that watches may still tell of
	if err == nil {
		o.following.said, err = w.statusOf(ctx, o.Object)
	}
	if err != nil {
		return err
	}
	follows, err := w.followed(ctx, o, limit, func() error { return mergePatch(ctx, resource, o.Name, there) })
	if is.Follows[path] = 0; follows {
		is.Follows[path] = judge.Surely
		if is.Sheds[path], err = w.awaitShed(ctx, o, before, path, was); err != nil {
			return err
		}
		if is.Tells[path], err = w.awaitTold(ctx, o, path, was); err != nil {
			return err
		}
	}
	refused := mergePatch(ctx, resource, o.Name, back) // the object is about to be deleted
	left, failed := view.RecentOperands(ctx)
	if err = errors.Join(err, failed, w.awaitIdle(ctx, o)); err == nil && follows && refused == nil {
		_, err = w.awaitBack(ctx, o, path, before, left)
	}
	return err
}

// scaledToNone reports whether a workload that was to have pods before is to have none now, or is gone, or whether no pod is left.
func scaledToNone(before, now map[string]observe.Operand) bool {
	had, has := false, false
	for _, made := range now {
		has = has || made.Kind == observe.KindPod
	}
	for name, made := range before {
		had = had || made.Kind == observe.KindPod
		replicas, counted, _ := unstructured.NestedInt64(made.Content, "spec", "replicas")
		left, _, _ := unstructured.NestedInt64(now[name].Content, "spec", "replicas")
		if counted && replicas > 0 && left == 0 && made.Direct && slices.Contains(judge.Replicated, made.Kind) {
			return true
		}
	}
	return had && !has
}

// thereAndBack changes a field and changes it back, and tells how often anything that was made for a copy follows; follows tells so of those that
// were changed before. What did surely under the release before is waited for longer; what nothing follows is changed back without a look.
func (w *walk) thereAndBack(ctx context.Context, o *newObject, field string, was judge.New, follows map[string]int, there, back func() error) (times int, err error) {
	limit, followed := boldLimit, w.followedSoon
	if _, tried := was.Follows[field]; was.Follows[field] == judge.Surely {
		limit, followed = was.Patience(), w.followed
	} else if !tried && slices.ContainsFunc(o.needs, func(n need) bool { return n.original() == field }) {
		limit, followed = pollLimit, w.followed
	}
	// What still follows an earlier change must not be taken for what follows this one.
	if err := w.awaitIdle(ctx, o); err != nil {
		return 0, err
	}
	if err := w.noteMoves(ctx, o, field, follows[o.following.field] == judge.Surely); err != nil {
		return 0, err
	}
	for _, change := range []func() error{there, back} {
		follow, err := followed(ctx, o, limit, change)
		if err != nil {
			return 0, err
		}
		if !follow {
			_ = back() // the object is about to be deleted
			break
		}
		followed = w.followed
		if times++; times > 1 {
			break
		}
		if err := w.noteFollowed(ctx, o, field, was); err != nil {
			return 0, err
		}
		if len(o.following.shed[field]) > 0 { // what is deleted takes a while to be made again
			limit = newLimit
		}
	}
	if times == 1 && len(o.following.shed[field]) > 0 { // nothing goes by chance
		times = judge.Surely
	}
	return times, nil
}

// noteFollowed notes what comes of a change of field of a copy that is followed.
func (w *walk) noteFollowed(ctx context.Context, o *newObject, field string, was judge.New) (err error) {
	if err := w.awaitMoves(ctx, o, was.Moves[field]); err != nil {
		return err
	}
	if err := w.awaitUntold(ctx, o, field, was); err != nil {
		return err
	}
	if err := w.awaitRoll(ctx, o, field, was); err != nil {
		return err
	}
	if o.following.shed[field], err = w.awaitShed(ctx, o, o.following.before, field, was); err != nil {
		return err
	}
	if o.following.tells[field], err = w.awaitTold(ctx, o, field, was); err != nil {
		return err
	}
	if err := w.awaitRelayed(ctx, o, field, was); err != nil {
		return err
	}
	return w.noteThere(ctx, o, field, was)
}

// remade are the kinds that operators make again without a loss to anybody who does not use the object.
var remade = []string{
	"Service", "ConfigMap", "ServiceAccount", "PodDisruptionBudget", "Ingress", "NetworkPolicy", "HorizontalPodAutoscaler", "Role", "RoleBinding",
}

// remadeLast are those of which others cannot do without: an operator that does not make them again may do nothing more.
var remadeLast = slices.Concat([]string{"Secret", "CronJob"}, judge.Replicated)

// mostOfOneKind is how many things of a kind are deleted, or edited, at most: an operator may take care of one and not of the next.
const mostOfOneKind = 3

// takeFromNew deletes what there is of each of kinds among operands, which were made for a copy, one after the other, and notes in remakes which of
// them the operator made again. What was made again under the release before is waited for longer.
func (w *walk) takeFromNew(ctx context.Context, o *newObject, operands map[string]observe.Operand, was judge.New, kinds []string, remakes map[string]bool) error {
	tried, watched := map[string]int{}, w.revertedKinds()
	for _, name := range knownFirst(o, operands, was.Remakes) {
		made := operands[name]
		if tried[made.Kind] == mostOfOneKind || !made.Direct || !slices.Contains(kinds, made.Kind) {
			continue
		}
		there, err := w.operandNow(ctx, made)
		if err != nil {
			return err
		}
		if there == nil || !isAlone(there) {
			continue
		}
		tried[made.Kind]++
		key := o.called(made)
		limit, times := trials(boldLimit, was.Remakes[key], watched[made.Kind], was)
		for range times {
			remade, deleted, err := w.takeOne(ctx, o, &made, limit)
			if err != nil {
				return err
			}
			if deleted {
				remakes[key] = remade
			}
			if watched[made.Kind] = remade; !remade {
				if _, err := w.putBack(ctx, observe.OperandResource(made.Kind), there); err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}

// putBack creates again what the walk deleted, as it was, unless somebody has made it meanwhile: what would next be made anew does not show which of its fields follow a change. It
// returns nil where the API server does not take it.
func (w *walk) putBack(ctx context.Context, resource schema.GroupVersionResource, deleted *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	again := deleted.DeepCopy()
	again.SetUID("")
	again.SetResourceVersion("")
	made, err := w.Dynamic.Resource(resource).Namespace(again.GetNamespace()).Create(ctx, again, metav1.CreateOptions{FieldManager: "olmkit"})
	if err != nil {
		return nil, ctx.Err()
	}
	return made, nil
}

// trials are for how long it is waited that an operator sees what somebody else did to something that was made for a copy, and how often that is tried. Once may be luck, as a reconcile that
// another cause began, unless the operator did see it under the release before, or surely watches the kind. Who did is waited for longer than limit.
func trials(limit time.Duration, did, watches bool, was judge.New) (time.Duration, int) {
	switch {
	case did:
		return was.Patience(), 1
	case watches:
		return limit, 1
	}
	return limit, 2
}

// revertedKinds are the kinds of the workloads that the operator that runs put back when somebody else scaled them: it watches them.
func (w *walk) revertedKinds() map[string]bool {
	kinds := map[string]bool{}
	for name, reverted := range w.reverts[w.release.Name] {
		kind, _, _ := strings.Cut(name, "/")
		kinds[kind] = kinds[kind] || reverted
	}
	return kinds
}

// takeLast is takeFromNew for what others cannot do without, of what is there now: some may have been made anew. It notes in is, too, what goes on with what a Secret said before, and
// whether the operator changes back what somebody changes of one.
func (w *walk) takeLast(ctx context.Context, o *newObject, was judge.New, is *judge.New) error {
	operands, err := w.madeFor(ctx, o)
	if err != nil {
		return err
	}
	repeats, err := w.repeatsOf(ctx, operands)
	if err != nil {
		return err
	}
	if err := w.takeFromNew(ctx, o, operands, was, remadeLast, is.Remakes); err != nil {
		return err
	}
	if len(repeats) > 0 {
		if is.Repeats, err = w.seeRepeated(ctx, o, repeats, was.Repeats); err != nil {
			return err
		}
	}
	now, err := w.madeFor(ctx, o)
	if err != nil {
		return err
	}
	edits, err := w.secretEdits(ctx, operands, now, knownFirst(o, now, was.Reverts))
	if err != nil {
		return err
	}
	return w.editNew(ctx, o, edits, was, is.Reverts)
}

// called names what was made for a copy, so that it is called the same for each copy: by its kind, and its name if that is another than the copy's.
func (o *newObject) called(made observe.Operand) string {
	if made.Name == o.Name {
		return made.Kind
	}
	return made.Kind + " " + chosenAnew.ReplaceAllStringFunc(o.plain(made.Name), func(chosen string) string {
		if strings.HasPrefix(chosen, "…-https") { // the only word that looks like it
			return chosen
		}
		return "…-*"
	})
}

// chosenAnew matches what follows a copy's name in that of an object that generateName called, and of what is called after such a one.
var chosenAnew = regexp.MustCompile(`…-` + chosenLetter + `{5}\b`)

// plain is text with the same word in place of each copy's name, and the names of what its sample needs.
func (o *newObject) plain(text string) string { return o.with(text, "…") }

// with is text with name in place of the copy's, and with the names of what its sample needs, and what that says, in place of those that are the copy's alone.
func (o *newObject) with(text, name string) string {
	for _, n := range o.needs {
		text = strings.ReplaceAll(text, n.GetName(), n.of)
	}
	for _, u := range o.uniques {
		text = strings.ReplaceAll(text, u.text, u.of)
	}
	return strings.ReplaceAll(text, o.Name, name)
}

// knownFirst are the names of operands in order, those first that known has: what is compared is what becomes of the same.
func knownFirst(o *newObject, operands map[string]observe.Operand, known map[string]bool) []string {
	names := slices.Sorted(maps.Keys(operands))
	slices.SortStableFunc(names, func(a, b string) int {
		rank := func(name string) int {
			if _, is := known[o.called(operands[name])]; is {
				return 0
			}
			return 1
		}
		return rank(a) - rank(b)
	})
	return names
}

// belongsAlone reports whether what was made for a copy is there, and is nobody else's as well, nor a sample of the user's.
func (w *walk) belongsAlone(ctx context.Context, made observe.Operand) (bool, error) {
	now, err := w.operandNow(ctx, made)
	return now != nil && isAlone(now), err
}

// isAlone reports whether nobody else owns what was made for a copy, and no user applied it.
func isAlone(made *unstructured.Unstructured) bool {
	return len(made.GetOwnerReferences()) <= 1 && !observe.Applied(made)
}

// takeOne deletes what was made for a copy, and reports whether the operator makes it again within limit, which made is then. Who may not
// delete it has tried nothing.
func (w *walk) takeOne(ctx context.Context, o *newObject, made *observe.Operand, limit time.Duration) (remade, tried bool, err error) {
	if err := w.awaitIdle(ctx, o); err != nil {
		return false, false, err
	}
	began := time.Now()
	if !w.deleteOperand(ctx, *made) {
		return false, false, ctx.Err()
	}
	remade, err = w.seeRemade(ctx, made, limit)
	if remade {
		o.acted(time.Since(began))
	}
	return remade, true, err
}

// seeRemade reports whether the operator makes again within limit what was deleted, which made is then.
func (w *walk) seeRemade(ctx context.Context, made *observe.Operand, limit time.Duration) (remade bool, err error) {
	anew, err := seeAnew(ctx, made.UID, limit, func() (*unstructured.Unstructured, error) { return w.operandNow(ctx, *made) })
	if anew != nil {
		made.UID = anew.GetUID()
	}
	return anew != nil, err
}

// seeAnew returns what read finds within limit that is another than what had uid, nil if there is no such thing.
func seeAnew(ctx context.Context, uid types.UID, limit time.Duration, read func() (*unstructured.Unstructured, error)) (anew *unstructured.Unstructured, err error) {
	err = lookUntil(ctx, limit, quickPause, func() (bool, error) {
		now, err := read()
		if now != nil && now.GetUID() != uid {
			anew = now
		}
		return anew != nil, err
	})
	return anew, err
}

// awaitIdle waits, though not for ever, until what was made for each of copies is as ready as it was, and nobody writes that or the copy for a
// moment: a reconcile that is under way for another reason, as a rollout, would make again what it finds missing.
func (w *walk) awaitIdle(ctx context.Context, copies ...*newObject) error {
	return w.awaitStill(ctx, true, copies...)
}

// awaitStill is awaitIdle for those who can do without what is ready. What did not get ready once is not waited for again: a change may have broken it.
func (w *walk) awaitStill(ctx context.Context, needReady bool, copies ...*newObject) error {
	rests, unready := map[*newObject]*calm{}, map[*newObject]bool{}
	for _, o := range copies {
		rests[o] = &calm{}
	}
	err := lookUntil(ctx, newLimit, quickPause, func() (bool, error) {
		for o, rest := range rests {
			operands, err := w.lookAtRest(ctx, o, rest)
			if err != nil {
				return false, err
			}
			unready[o] = needReady && !o.stuck && operands != nil && !o.isReady(operands)
			if rest.lasted(o.idle(), o.quick()) && !unready[o] {
				w.calms = append(w.calms, *rest)
				delete(rests, o)
			}
		}
		return len(rests) == 0, nil
	})
	for _, o := range copies {
		o.noted = true // from now on the walk changes it
		o.stuck = o.stuck || err == nil && unready[o]
	}
	return err
}

// lookAtRest notes in rest whether a copy, and what was made for it, are as they were, and returns what that is: nothing if the copy cannot be read.
func (w *walk) lookAtRest(ctx context.Context, o *newObject, rest *calm) (map[string]observe.Operand, error) {
	now, err := o.At(w.Dynamic, o.Version).Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return nil, ctx.Err()
	}
	view := w.viewOf(o.Object)
	operands, err := view.RecentOperands(ctx)
	if err != nil {
		return nil, err
	}
	if err := w.note(ctx, o, now, operands); err != nil {
		return nil, err
	}
	o.remember(operands)
	rest.goesOn(versionsOf(now, operands, func(made observe.Operand) bool { return made.Direct }), w.usageNow(ctx))
	return operands, nil
}

// versionsOf is which version a copy has now, and which those of operands that count.
func versionsOf(now *unstructured.Unstructured, operands map[string]observe.Operand, counts func(observe.Operand) bool) string {
	versions := now.GetResourceVersion()
	for _, name := range slices.Sorted(maps.Keys(operands)) {
		if counts(operands[name]) {
			versions += " " + operands[name].ResourceVersion
		}
	}
	return versions
}

// followed reports whether within limit after change anything that was made for o is another than before. A change that the API server
// refuses is followed by nothing.
func (w *walk) followed(ctx context.Context, o *newObject, limit time.Duration, change func() error) (bool, error) {
	return w.followedUnless(ctx, o, limit, change, func() bool { return false })
}

// followedSoon is followed for a change of which nobody knows whether an operator follows it: one that is quick, and has done nothing for a while, will not.
func (w *walk) followedSoon(ctx context.Context, o *newObject, limit time.Duration, change func() error) (bool, error) {
	return w.followedUnless(ctx, o, limit, change, w.silent(ctx, o))
}

// silent tells, whenever it is asked, whether o's operator usually is quick and has done nothing for a while now.
func (w *walk) silent(ctx context.Context, o *newObject) func() bool {
	silent := w.silence(ctx)
	return func() bool { return silent() && o.quick() }
}

// followedUnless is followed until ended says that nothing comes any more.
func (w *walk) followedUnless(ctx context.Context, o *newObject, limit time.Duration, change func() error, ended func() bool) (follows bool, err error) {
	view := w.viewOf(o.Object)
	before, err := view.ConfirmedOperands(ctx)
	if err != nil {
		return false, err
	}
	follow, err := w.follower(ctx, o, before)
	if err != nil {
		return false, err
	}
	began := time.Now()
	if change() != nil {
		return false, ctx.Err()
	}
	err = lookUntil(ctx, limit, quickPause, func() (bool, error) {
		after, err := view.RecentOperands(ctx)
		if err != nil {
			return false, err
		}
		seen := time.Since(began)
		last := ended() || seen+quickPause > limit
		if follows, err = follow(after); err == nil && (last || follows) { // what watches told may be late
			look := view.Operands
			if follows {
				look = view.ConfirmedOperands
			}
			if after, err = look(ctx); err == nil {
				follows, err = follow(after)
			}
		}
		if follows && err == nil {
			o.acted(seen)
		}
		return follows || last, err
	})
	return follows && err == nil, err
}

// follower returns what tells whether operands that were made for o are others than before or, where none were, whether something else shows what o's operator does.
func (w *walk) follower(ctx context.Context, o *newObject, before map[string]observe.Operand) (follow func(after map[string]observe.Operand) (bool, error), err error) {
	before = without(before, o.needs)
	bare := !slices.ContainsFunc(slices.Collect(maps.Values(before)), func(made observe.Operand) bool { return made.Direct })
	var showed shown
	if bare {
		showed, err = w.shownOf(ctx, o)
	}
	return func(after map[string]observe.Operand) (bool, error) {
		follows := judge.Follow(before, without(after, o.needs))
		if follows || !bare {
			return follows, nil
		}
		shows, err := w.shownOf(ctx, o)
		return !shows.isAs(showed), err
	}, err
}
