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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/definition"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

const (
	// newLimit is how long an operator of which it is not known has to deal with a new object.
	newLimit = 15 * time.Second
	// boldLimit is how long an operator of which it is not known has to follow a change of one, or to make again what is deleted of it.
	boldLimit = 2 * time.Second
	// pollLimit is how long one has to follow a change of what an object names, at which it may look from time to time alone.
	pollLimit = 6 * time.Second
	// idleFor is how long nobody writes what is at rest, once all that was made is ready; longer where the operator is slow, up to mostIdle.
	idleFor  = 400 * time.Millisecond
	mostIdle = 2 * time.Second
	// lookPause is the time between two looks; quickPause that between two at what is known without asking.
	lookPause  = 100 * time.Millisecond
	quickPause = 50 * time.Millisecond
	// unownedLimit is how long what was made for a new object may stay after that is gone.
	unownedLimit = 10 * time.Second
)

// newObject is an object that was created while a release ran, and the sample that it is a copy of.
type newObject struct {
	*observe.Object
	like      *observe.Object
	variant   string                     // what else it asks for than the copy does; none if it is the copy
	besides   *newObject                 // the copy of another sample; nil if it is not a variant as another sample asks
	wanted    func(step) bool            // which changes are tried on it; nil if all are
	pause     *step                      // that it is deleted after; nil if after none
	later     []*observe.Object          // what it names and was there before
	unowned   []observe.Operand          // named as what was made for the copy
	distant   []distant                  // what was made for it elsewhere
	searched  bool                       // that is known
	hidden    bool                       // some of that is not seen to be the copy's
	ready     []string                   // what was made for the copy and does what it is for
	claims    []observe.Operand          // of what was made for the copy
	following following                  // of changes, by its fields
	needs     []need                     // what it names, copied for it
	far       *need                      // what others name in its namespace where it names the sample, if there is such a thing
	uniques   []unique                   // what it says otherwise than the sample, as no two objects may say the same
	held      bool                       // its pods were kept off the nodes for a moment
	readiness judge.Readiness            // what its status tells before and after its pods run
	placed    bool                       // one of them is on a node, or was
	running   int64                      // how many of them were ready at most
	told, ran time.Time                  // since when its status tells what it does, and since when as many run
	noted     bool                       // its status is not looked at any more for that
	marked    []observe.Operand          // what was made for the copy and has an annotation of somebody else
	first     map[string]observe.Operand // what was made for the copy before anything was tried
	had       map[string]observe.Operand // all that was ever seen to be made for the copy
	sums      map[string]summed          // of what the Secrets that were made for the copy say
	orders    orders                     // of what each of these says
	parts     bool                       // all that was ready of it is when it is deleted
	tried     bool                       // it was usable
	stuck     bool                       // something that was made for it did not get ready again in time
	says      map[string]string          // what its status tells of its health while it runs
	targets   map[string]string          // what its targets said before it was there
	returned  map[string]bool            // whether what its operator changed of its targets was changed back once it was gone
	slowest   time.Duration              // how long it took at most until its operator did something about it
	took      []time.Duration            // how long it took each time
}

// key is what is noted of o is known by.
func (o *newObject) key() string { return o.CRD + o.variant }

// acted notes how long it took the operator to do something about what happened to o.
func (o *newObject) acted(took time.Duration) {
	o.slowest, o.took = max(o.slowest, took), append(o.took, took)
}

// usually is how long it took mostly, 0 if it did nothing.
func (o *newObject) usually() time.Duration {
	if len(o.took) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(o.took))[len(o.took)/2]
}

// idle is how long nobody writes what is at rest: an operator that is at work would have written.
func (o *newObject) idle() time.Duration { return min(max(o.slowest, idleFor), mostIdle) }

// quick reports whether the operator always did something soon.
func (o *newObject) quick() bool { return o.slowest > 0 && o.slowest <= idleFor }

// judgeNew tells what r's operator does less for objects that are created now than for those that are there, although that of the
// release called from did the same for both.
func (w *walk) judgeNew(ctx context.Context, from string, r *lifecycle.Release) ([]finding.Finding, error) {
	if w.options.Restore != nil || !w.OperatorRuns(r) {
		return nil, nil
	}
	if w.created[r.Name] == nil {
		w.trying = w.options.Progress.Start("  try new objects on %s", r.Name)
		if err := w.trying.End(w.tryAll(ctx, from, r)); err != nil {
			return nil, err
		}
	}
	findings := judge.LeftAlone(from, r.Name, w.left[from], w.left[r.Name])
	for _, name := range slices.Sorted(maps.Keys(w.created[r.Name])) {
		if was, known := w.created[from][name]; known {
			var err error
			if was.Kept, err = w.still(ctx, was.Kept); err != nil { // some operators take their time
				return nil, err
			}
			is := w.created[r.Name][name]
			if is.Variant == "" {
				findings = append(findings, judge.NewObjects(from, r.Name, was, is)...)
				continue
			}
			copied := w.created[from][strings.TrimSuffix(name, is.Variant)]
			findings = append(findings, judge.Variants(from, r.Name, copied, was, is, findings)...)
		}
	}
	return findings, nil
}

// tryAll notes what r's operator does for objects that are created now, and whether it leaves alone what somebody else has. The release called from says how
// long that is waited for.
func (w *walk) tryAll(ctx context.Context, from string, r *lifecycle.Release) error {
	if err := w.placeForeign(ctx); err != nil {
		return err
	}
	created, copies, err := w.measureNew(ctx, from, r)
	if err == nil {
		err = w.recreate(ctx, r, copies, w.created[from], created)
	}
	if err == nil {
		err = w.tryContests(ctx, r, copies, w.created[from], created)
	}
	if err == nil {
		err = w.tryVariants(ctx, r, copies, w.created[from], created, func() error { return w.tryNewNamespace(ctx, r, copies, w.created[from], created) })
	}
	w.copyNames = nil
	for _, o := range copies {
		if !slices.Contains(w.lingering, o.Object) {
			w.copyNames = append(w.copyNames, o.Name)
		}
	}
	if err == nil {
		w.left[r.Name], err = w.seeForeign(ctx)
	}
	if err == nil {
		w.created[r.Name] = created
	}
	return err
}

// measureNew creates a copy of a sample of each of r's kinds, sees what r's operator does for it, and deletes it again. The
// release called from says how long that is waited for. It also returns the copies.
func (w *walk) measureNew(ctx context.Context, from string, r *lifecycle.Release) (created map[string]judge.New, copies []*newObject, err error) {
	created, w.calms = map[string]judge.New{}, nil
	there, err := w.RecentOperands(ctx)
	if err != nil {
		return created, nil, err
	}
	saidBefore := w.statusesNow(ctx, w.Untouched())
	started := time.Now()
	defer func() {
		if err = errors.Join(err, w.findElsewhere(ctx, r, copies, started)); err == nil {
			err = w.takeElsewhere(ctx, copies, w.created[from], created)
		}
		said := w.statusesNow(ctx, w.Untouched())
		if err = errors.Join(err, w.deleteNew(ctx, copies, there, w.created[from], created)); err == nil {
			err = w.recount(ctx, saidBefore, said, w.created[from], created)
		}
	}()
	if copies, err = w.makeCopiesHeld(ctx, from, r); err != nil {
		return created, copies, err
	}
	began := time.Now()
	err = lookUntil(ctx, w.newHealthLimit(ctx), lookPause, func() (bool, error) {
		if _, err := w.seeNew(ctx, copies, created); err != nil {
			return false, err
		}
		early := time.Since(began) < newLimit
		return !slices.ContainsFunc(copies, func(o *newObject) bool {
			was, known := w.created[from][o.CRD]
			expected := known && len(was.Lacks()) == 0
			is := created[o.CRD]
			return early && !is.Settled() || early && !is.Usable() || expected && len(is.Lacks()) > 0 || len(is.LacksKinds(was)) > 0
		}), nil
	})
	if err == nil {
		err = w.makeUnique(ctx, from, r, copies, created)
	}
	if err == nil && len(copies) > 1 { // while others are tried, nobody looks at it
		err = w.awaitIdle(ctx, slices.DeleteFunc(slices.Clone(copies), func(o *newObject) bool { return !o.held })...)
	}
	for _, o := range copies {
		if err == nil && created[o.CRD].Usable() && !o.hidden {
			o.tried = true
			err = w.tryNew(ctx, from, r, o, created)
		}
	}
	for _, o := range copies {
		if err == nil && o.tried {
			was, is := w.created[from][o.CRD], created[o.CRD]
			if err = w.leaveOutParts(ctx, r, o, was, &is); err == nil {
				err = w.readyToPart(ctx, o, was) // again
			}
			created[o.CRD] = is
		}
	}
	if untried := slices.DeleteFunc(slices.Clone(copies), func(o *newObject) bool { return o.tried }); err == nil && len(untried) > 0 { // more may be about to be made for it
		err = w.awaitIdle(ctx, untried...)
	}
	return created, copies, err
}

// makeCopiesHeld makes copies and, where that may be, holds their pods until their statuses were seen.
func (w *walk) makeCopiesHeld(ctx context.Context, from string, r *lifecycle.Release) (copies []*newObject, err error) {
	held, err := w.holds(ctx, r)
	if err != nil {
		return nil, err
	}
	if !held {
		return w.makeCopies(ctx, from, r)
	}
	err = w.whileHeld(ctx, mostHeld, func() (err error) {
		if copies, err = w.makeCopies(ctx, from, r); err != nil {
			return err
		}
		return w.seeHeld(ctx, copies)
	})
	return copies, err
}

// newHealthLimit is how long what is made for new objects has to become ready: longer if what is made for samples asks for a delay.
func (w *walk) newHealthLimit(ctx context.Context) time.Duration {
	operands, err := w.RecentOperands(ctx)
	if err != nil {
		return judge.HealthLimit // whoever looks next meets the error
	}
	return judge.HealthLimit + judge.Delay(operands)
}

// makeCopies creates a copy of a sample of each of r's kinds, of which the API server takes one. It also returns those made before an error.
func (w *walk) makeCopies(ctx context.Context, from string, r *lifecycle.Release) (copies []*newObject, err error) {
	chosen, err := w.toCopy(ctx, from, r)
	if err != nil {
		return nil, err
	}
	for _, like := range chosen {
		o, err := w.copyOf(ctx, r, like)
		if o == nil && err == nil {
			o, err = w.copyUnique(ctx, from, r, like)
		}
		if err != nil {
			return copies, err
		}
		if o != nil {
			copies = append(copies, o)
		}
	}
	return copies, nil
}

// viewOf is the walk's cluster with only some of its objects.
func (w *walk) viewOf(objects ...*observe.Object) observe.Cluster {
	view := *w.Cluster
	view.Objects, view.Others = objects, slices.Concat(w.Objects, w.Others)
	return view
}

// toCopy is one sample of each of r's kinds, if there is one that is served: rather one that was copied under the release called from, that is well, that needs
// something, of the version that is stored, for which something runs, and that asks for much.
func (w *walk) toCopy(ctx context.Context, from string, r *lifecycle.Release) (chosen []*observe.Object, err error) {
	operands, err := w.RecentOperands(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range r.CRDs {
		if w.SimulatedConverter(r, d.Name) != "" || w.alone[d.Name] {
			continue
		}
		var like *observe.Object
		var most int
		for _, o := range w.Untouched() {
			if o.CRD != d.Name || !slices.Contains(definition.ServedVersions(d), o.Version) {
				continue
			}
			well, err := w.Well(ctx, o)
			if err != nil {
				return nil, err
			}
			runs := podsOf(o.String(), operands).ready > 0
			if fit := w.fitness(o, d, runs, well, w.created[from][d.Name].Of == o.Sample); like == nil || fit > most {
				like, most = o, fit
			}
		}
		if like != nil {
			chosen = append(chosen, like)
		}
	}
	return chosen, nil
}

// fitness is the higher, the more a copy of a sample shows; known tells that the one before was of the same sample.
func (w *walk) fitness(o *observe.Object, d *apiextensionsv1.CustomResourceDefinition, runs, well, known bool) int {
	const each = 1 << 16 // more than one asks for
	fit := min(leaves(o.Author["spec"]), each-1)
	for i, is := range []bool{runs, o.Version == definition.StorageVersion(d), len(w.needed(o.Author, o.Namespace)) > 0, well, known} {
		if is {
			fit += each << i
		}
	}
	return fit
}

// leaves is how many values there are in value.
func leaves(value any) (n int) {
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			n += leaves(inner)
		}
	case []any:
		for _, item := range v {
			n += leaves(item)
		}
	default:
		n = 1
	}
	return n
}

// copyOf creates a copy of like, or returns nil where the API server refuses it. Its name is another one under each release, so
// that it does not find what is left of an earlier one, as the claims of a StatefulSet.
func (w *walk) copyOf(ctx context.Context, r *lifecycle.Release, like *observe.Object) (*newObject, error) {
	return w.copyNamed(ctx, r, like, fmt.Sprintf("%s-new%d", shortened(like.Name), len(w.created)+1))
}

// copyNamed creates a copy of like called name, once what it needs is there, or returns nil where the API server refuses it.
func (w *walk) copyNamed(ctx context.Context, r *lifecycle.Release, like *observe.Object, name string) (*newObject, error) {
	sample := &unstructured.Unstructured{Object: like.Author}
	needs := w.namesakes(sample, like.Namespace)
	created, err := w.createNeeds(ctx, needs)
	if err != nil || !created {
		needs = nil
	}
	targets, failed := w.targetsNow(ctx, needs)
	err = errors.Join(err, failed)
	var o *newObject
	key := client.ObjectKey{Namespace: like.Namespace, Name: name}
	if err == nil {
		o, err = w.makeCopy(ctx, r, like, key, naming(sample, needs))
	}
	if err == nil && o == nil && len(needs) > 0 { // it may have to name what it names
		if err = w.deleteNeeds(ctx, needs); err == nil {
			needs, targets = nil, nil
			o, err = w.makeCopy(ctx, r, like, key, sample.DeepCopy())
		}
	}
	if err != nil || o == nil {
		return nil, errors.Join(err, w.deleteNeeds(ctx, needs))
	}
	o.needs, o.targets = needs, targets
	return o, nil
}

// makeCopy creates a copy of like called key as object says, or returns nil where the API server refuses it.
func (w *walk) makeCopy(ctx context.Context, r *lifecycle.Release, like *observe.Object, key client.ObjectKey, object *unstructured.Unstructured) (*newObject, error) {
	object, uniques := w.withUniques(object, like, key)
	o := &observe.Object{
		CRD: like.CRD, Resource: like.Resource, Kind: like.Kind, Version: like.Version, Namespace: key.Namespace, Sample: like.Sample, Name: key.Name,
	}
	found, err := w.makeObject(ctx, r, r.CRD(like.CRD), object, o)
	w.refused = refusedOf(found)
	if err != nil || o.UID == "" {
		return nil, err
	}
	w.Forget([]*observe.Object{o})
	w.Others = append(w.Others, o)
	return &newObject{Object: o, like: like, uniques: uniques}, nil
}

// seeNew notes in created what was done for copies until now, and in these what was made for them that belongs to nobody. It returns what was made for them and for their samples.
func (w *walk) seeNew(ctx context.Context, copies []*newObject, created map[string]judge.New) (map[string]observe.Operand, error) {
	if len(copies) == 0 {
		return nil, nil
	}
	view := w.viewOf()
	for _, o := range copies {
		view.Objects = append(view.Objects, o.Object, o.like)
	}
	statuses := w.read(ctx, copies)
	operands, err := view.RecentOperands(ctx)
	if err != nil {
		return nil, err
	}
	for _, o := range copies {
		if err := w.note(ctx, o, statuses[o], operands); err != nil {
			return nil, err
		}
		is := judge.New{Sample: o.like.String(), Of: o.like.Sample, Variant: o.variant, Readiness: o.readiness}
		for _, side := range []struct {
			object *observe.Object
			dealt  *judge.Dealt
		}{{o.Object, &is.Copy}, {o.like, &is.Original}} {
			well, err := view.Well(ctx, side.object)
			if err != nil {
				return nil, err
			}
			*side.dealt = judge.DealtWith(side.object.String(), operands, well)
			if side.dealt.Unwell, err = view.UnwellAs(ctx, side.object, o.like); err != nil {
				return nil, err
			}
			side.dealt.Alike = side.dealt.Unwell == ""
		}
		if o.unowned, err = w.unownedOf(ctx, o, operands); err != nil {
			return nil, err
		}
		if len(o.unowned) > 0 { // something is made, and who it belongs to is the operator's matter if it deletes it
			is.Copy.Made = true
		}
		if !o.hidden && o.unseen(operands) { // watches may be late
			if operands, err = view.Operands(ctx); err != nil {
				return nil, err
			}
		}
		if o.hidden = o.unseen(operands); o.hidden {
			is.Copy.Ready, is.Copy.Kinds = is.Original.Ready, is.Original.Kinds
			o.claims = claimsOf(o, operands)
		}
		created[o.key()] = is
	}
	return operands, nil
}

// unseen reports whether something of what belongs to nobody has the name of what would be the copy's, and is not seen to be that among operands.
func (o *newObject) unseen(operands map[string]observe.Operand) bool {
	return slices.ContainsFunc(o.unowned, func(made observe.Operand) bool { return operands[made.String()].Of == "" })
}

// claimsOf are the claims with a volume that were made for a copy, among operands.
func claimsOf(o *newObject, operands map[string]observe.Operand) (claims []observe.Operand) {
	for _, name := range slices.Sorted(maps.Keys(operands)) {
		if made := operands[name]; made.Of == o.String() && made.Kind == observe.KindClaim && !made.Transient() && made.Volume() != "" {
			claims = append(claims, made)
		}
	}
	return claims
}

// unownedOf returns what has the name of something that would belong to o, as its like belongs to the sample or did, and belongs to
// nobody.
func (w *walk) unownedOf(ctx context.Context, o *newObject, operands map[string]observe.Operand) ([]observe.Operand, error) {
	var unowned []observe.Operand
	for _, name := range slices.Sorted(maps.Keys(operands)) {
		made := operands[name]
		if made.Of != o.like.String() || !made.Direct || made.Kind == observe.KindClaim { // data may be kept on purpose
			continue
		}
		for _, made.Name = range renamings(made.Name, o.like.Name, o.Name) {
			now, err := w.operandNow(ctx, made)
			if err != nil {
				return nil, err
			}
			if now != nil && len(now.GetOwnerReferences()) == 0 {
				unowned = append(unowned, made)
				break
			}
		}
	}
	return unowned, nil
}

// renamings are name with one of the places where it says from saying to instead: which of them is the name of the object, as in
// redis-redis, nobody knows.
func renamings(name, from, to string) []string {
	var names []string
	for i := range name {
		if rest, found := strings.CutPrefix(name[i:], from); found {
			names = append(names, name[:i]+to+rest)
		}
	}
	return names
}

// lookUntil calls done until it says so, or limit has passed, with a pause between two calls: it is too much to be done with every change of
// the cluster.
func lookUntil(ctx context.Context, limit, pause time.Duration, done func() (bool, error)) error {
	for deadline := time.Now().Add(limit); ; {
		if ok, err := done(); ok || err != nil {
			return err
		}
		if !time.Now().Before(deadline) {
			return nil
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// sleep waits for d, or returns why ctx ended before.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// operandNow reads an operand, or returns nil where there is none.
func (w *walk) operandNow(ctx context.Context, o observe.Operand) (*unstructured.Unstructured, error) {
	now, err := w.Dynamic.Resource(observe.OperandResource(o.Kind)).Namespace(o.Namespace).Get(ctx, o.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", o, err)
	}
	return now, nil
}

// deleteNew deletes copies, notes in created what stays of what was made for them, and deletes that, too. there are the operands that there were before copies, and before is what was
// noted of the release before.
func (w *walk) deleteNew(ctx context.Context, copies []*newObject, there map[string]observe.Operand, before, created map[string]judge.New) error {
	theirs, unread := w.theirs(ctx, there)
	began := time.Now()
	stay, err := w.removeCopies(ctx, copies)
	if err = errors.Join(err, unread); err == nil {
		gone := slices.DeleteFunc(slices.Clone(copies), func(o *newObject) bool { return slices.Contains(stay, o.Object) })
		err = w.notePartings(ctx, gone, began, before, created)
	}
	if err != nil {
		return err
	}
	along, err := w.goneAlong(ctx, theirs)
	if err != nil {
		return err
	}
	since := time.Now()
	deadline := since.Add(unownedLimit)
	for _, o := range copies {
		is := created[o.key()]
		is.Along = slices.DeleteFunc(slices.Clone(along), func(name string) bool { return !strings.HasPrefix(theirs[name].Of, o.Kind+"/") })
		created[o.key()] = is
		if slices.Contains(stay, o.Object) {
			continue // its operator may be about to delete what is left
		}
		if is.Kept, err = w.still(ctx, o.claims); err != nil {
			return err
		}
		is.Cleared, is.Returned = len(is.Kept) < len(o.claims), o.returned
		if err := w.noteUnowned(ctx, o, deadline, before[o.key()], &is); err != nil {
			return err
		}
		if is.Elsewhere, err = w.seeElsewhere(ctx, o, since, before[o.key()]); err != nil {
			return err
		}
		created[o.key()] = is
	}
	return nil
}

// noteUnowned notes in is what belongs to nobody and stays, though not beyond deadline, now that the copy it was made for is gone, and deletes it.
func (w *walk) noteUnowned(ctx context.Context, o *newObject, deadline time.Time, was judge.New, is *judge.New) error {
	for _, made := range o.unowned {
		left, err := w.leftOf(ctx, made, time.Until(deadline), o.quick() && !was.Clears(made.Kind))
		switch {
		case err != nil:
			return err
		case left:
			is.Unowned = append(is.Unowned, judge.Left{Kind: made.Kind, Name: strings.ReplaceAll(made.Name, o.Name, o.like.Name)})
		case is.Removes(made.Kind):
			is.Removed = append(is.Removed, made.Kind)
		default:
			w.noteCleared(distant{Creation: observe.CreationOf(made)}, o)
		}
	}
	return nil
}

// removeCopies deletes copies and what they need, and returns those that stay.
func (w *walk) removeCopies(ctx context.Context, copies []*newObject) ([]*observe.Object, error) {
	acted := map[*newObject][]string{}
	for _, o := range copies {
		var err error
		if acted[o], err = w.actedOn(ctx, o); err != nil {
			return nil, err
		}
	}
	stay, err := w.removeThese(ctx, objectsOf(copies), deletionLimit)
	w.lingering = append(w.lingering, stay...)
	for _, o := range copies {
		if !slices.Contains(stay, o.Object) { // its operator may need them to let it go
			err = errors.Join(err, w.noteReturned(ctx, o, acted[o]), w.deleteNeeds(ctx, o.needs))
		}
	}
	return stay, err
}

// objectsOf are copies as the objects that they are.
func objectsOf(copies []*newObject) []*observe.Object {
	objects := make([]*observe.Object, 0, len(copies))
	for _, o := range copies {
		objects = append(objects, o.Object)
	}
	return objects
}

// still are those of claims that stay for good, though the object is gone: nobody deletes them, nor are they to go with an owner.
func (w *walk) still(ctx context.Context, claims []observe.Operand) (stay []observe.Operand, err error) {
	for _, made := range claims {
		now, err := w.operandNow(ctx, made)
		if err != nil {
			return nil, err
		}
		if now != nil && now.GetUID() == made.UID && now.GetDeletionTimestamp() == nil && len(now.GetOwnerReferences()) == 0 {
			stay = append(stay, made)
		}
	}
	return stay, nil
}

// leftOf waits until an operand that belongs to nobody is gone, but no longer than limit, and deletes it if it stays. If soon, it is not
// waited for once its operator surely does nothing more.
func (w *walk) leftOf(ctx context.Context, made observe.Operand, limit time.Duration, soon bool) (bool, error) {
	var now *unstructured.Unstructured
	var since calm
	err := lookUntil(ctx, limit, lookPause, func() (_ bool, err error) {
		now, err = w.operandNow(ctx, made)
		if soon {
			since.goesOn(made.Name, w.usageNow(ctx))
		}
		return now == nil || soon && since.silent(silentFor), err
	})
	if err != nil || now == nil {
		return false, err
	}
	background := metav1.DeletePropagationBackground
	err = w.Dynamic.Resource(observe.OperandResource(made.Kind)).Namespace(made.Namespace).Delete(ctx, made.Name, metav1.DeleteOptions{PropagationPolicy: &background})
	if err != nil && !apierrors.IsNotFound(err) {
		return true, fmt.Errorf("delete %s: %w", made, err)
	}
	return true, nil
}
