package walk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/definition"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// newNamespaces is how the names of namespaces begin that are newer than the operator's pod.
const newNamespaces = observe.SamplesNamespace + "-"

// tryNewNamespace creates for each of copies, which are gone, another one in a namespace that was not there when r's operator started, and notes in created whether
// it deals with that: who asks at its start which namespaces there are does not know of it. before says how long that is waited for.
func (w *walk) tryNewNamespace(ctx context.Context, r *lifecycle.Release, copies []*newObject, before, created map[string]judge.New) (err error) {
	if w.Place.Mode != lifecycle.AllNamespaces || !w.Provider.Disposable() {
		return nil
	}
	all := slices.DeleteFunc(slices.Clone(copies), func(first *newObject) bool {
		stays := slices.ContainsFunc(created[first.CRD].Elsewhere, func(d judge.Distant) bool { return !d.Gone }) // nobody would delete it
		return !first.tried || first.Namespace == "" || stays
	})
	copies = w.namedFirst(all)
	if len(copies) == 0 {
		return nil
	}
	w.trying.Note("in a new namespace")
	namespace, kinds := newNamespaces+rand.String(5), refusedKinds(copies, before)
	if err := w.likeNamespace(ctx, copies[0].Namespace, namespace, nil); err != nil {
		return err
	}
	full, err := w.fill(ctx, namespace, kinds)
	var in newcomers
	var strays map[string]map[string]string
	if err == nil {
		strays, err = w.straysOf(ctx, copies, namespace)
	}
	if err == nil {
		in, err = w.copiesInto(ctx, r, copies, namespace)
	}
	defer func() { err = errors.Join(err, w.deleteNamespace(ctx, namespace, in.all(), before, created)) }()
	if err != nil || len(in.there) == 0 {
		return err
	}
	if full {
		goesOn, err := w.makeRoom(ctx, namespace, in.there, kinds, before, created)
		if err != nil {
			return err
		}
		if !goesOn {
			if _, err := w.removeCopies(ctx, in.all()); err != nil {
				return err
			}
			if in, err = w.copiesInto(ctx, r, copies, namespace); err != nil {
				return err
			}
		}
	}
	if err := w.seeNewcomers(ctx, in, before, created); err != nil {
		return err
	}
	if err := w.setByOthers(ctx, r, in, before, created); err != nil {
		return err
	}
	if in.twins, err = w.twinsInto(ctx, r, all, namespace); err != nil {
		return err
	}
	if err := w.noteStrays(ctx, in.there, namespace, strays, created); err != nil {
		return err
	}
	return w.noteStrangers(ctx, in.twins, created)
}

// farAway ends the names of newcomers that name samples in another namespace.
const farAway = "-far"

// newcomers are copies in a new namespace: as those that were there before, with long names, without their counts, naming samples that are not in their namespace, and, as twins, called as
// samples that others name, and naming these.
type newcomers struct{ there, long, free, far, twins []*newObject }

func (n newcomers) all() []*newObject { return slices.Concat(n.there, n.long, n.free, n.far, n.twins) }

// seeNewcomers notes in created what is done for newcomers, as long as before says.
func (w *walk) seeNewcomers(ctx context.Context, in newcomers, before, created map[string]judge.New) error {
	view, began := w.viewOf(objectsOf(in.all())...), time.Now()
	return lookUntil(ctx, judge.EffectLimit, quickPause, func() (bool, error) {
		operands, err := view.RecentOperands(ctx)
		if err != nil {
			return false, err
		}
		done := true
		for _, o := range in.there {
			is, well := created[o.CRD], false
			if !is.Copy.Made {
				if well, err = view.Well(ctx, o.Object); err != nil {
					return false, err
				}
			}
			dealt := judge.DealtWith(o.String(), operands, well)
			is.Anywhere, is.Long = &dealt, lackOf(dealt.Kinds, in.long, o.CRD, operands)
			created[o.CRD] = is
			early, known := time.Since(began) < newLimit, before[o.CRD].Long != nil && len(before[o.CRD].Long) == 0
			runs := podsOf(o.String(), operands).ready >= int64(is.Copy.Ready) // what it does when it is deleted may rest on that
			done = done && (is.DoesAnywhere() && (runs || time.Since(began) > 2*boldLimit) || !before[o.CRD].DoesAnywhere() && !early) && (len(is.Long) == 0 || !known && time.Since(began) > boldLimit)
		}
		served, err := w.seeFar(ctx, in, operands, before, created)
		return done && (served || time.Since(began) > newLimit && !slices.ContainsFunc(in.far, func(o *newObject) bool { return before[o.CRD].DoesFar() })), err
	})
}

// seeFar notes in created what is done for newcomers that name samples in another namespace, and reports whether that is as much as for the others.
func (w *walk) seeFar(ctx context.Context, in newcomers, operands map[string]observe.Operand, before, created map[string]judge.New) (served bool, err error) {
	if len(in.far) == 0 {
		return true, nil
	}
	view := w.viewOf(w.Objects...)
	ofSamples, err := view.RecentOperands(ctx)
	if err != nil {
		return false, err
	}
	served = true
	for _, o := range in.far {
		beside := observe.Object{Kind: o.far.GetKind(), Namespace: o.far.GetNamespace(), Name: o.far.GetName()}
		is, dealt := created[o.CRD], judge.DealtWith(o.String(), operands, false)
		if dealt.Unwell, err = view.UnwellAs(ctx, o.Object, o.like); err != nil {
			return false, err
		}
		dealt.Alike, dealt.Told = dealt.Unwell == "", o.toldBy(ofSamples, o.far.like.String())
		is.Far = &dealt
		for _, near := range in.there {
			if near.CRD == o.CRD {
				is.Anywhere.Told = near.toldBy(operands, beside.String())
			}
		}
		created[o.CRD] = is
		served = served && is.DoesFar() && !is.ToldLater(before[o.CRD])
	}
	return served, nil
}

// toldBy are the kinds of those of operands that were made for other and say something of o, sorted.
func (o *newObject) toldBy(operands map[string]observe.Operand, other string) (kinds []string) {
	for _, made := range operands {
		if made.Of == other && !made.Transient() && !slices.Contains(kinds, made.Kind) && o.isIn(made) {
			kinds = append(kinds, made.Kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// copiesInto creates in a namespace another one as each of copies, two more with long names, one without its count, if that may be left out, and one that names a sample in
// that one's namespace, if it may say a namespace. It also returns those made before an error.
func (w *walk) copiesInto(ctx context.Context, r *lifecycle.Release, copies []*newObject, namespace string) (in newcomers, err error) {
	for _, first := range copies {
		schema, near := definition.Schema(r.CRD(first.CRD), first.Version), w.namedAmong(in.there, first.like)
		ways := []newcomer{{&in.there, first.Name, nil, near, nil}}
		if count := countToLeaveOut(schema, first.like.Author); count != nil {
			ways = append(ways, newcomer{&in.free, first.Name + "-free", patchOf(count, nil), near, nil})
		}
		for i, n := range near {
			if field := namespaceOfNamed(schema, first.like.Author, n); field != nil {
				ways = append(ways, newcomer{&in.far, first.Name + farAway, patchOf(field, first.like.Namespace), slices.Delete(slices.Clone(near), i, i+1), &n})
				break
			}
		}
		for _, way := range ways {
			o, err := w.copyInto(ctx, r, first.like, client.ObjectKey{Namespace: namespace, Name: way.name}, way.change, way.names...)
			if err != nil {
				return in, err
			}
			if o != nil {
				o.far = way.far
				*way.among = append(*way.among, o)
			}
		}
		long, err := w.longCopies(ctx, r, first, namespace, near)
		if in.long = append(in.long, long...); err != nil {
			return in, err
		}
	}
	return in, nil
}

// twinsInto creates in a namespace, of those of copies whose samples name each other, one that is called as the sample that is named, and one that names it: who looks objects up by their
// names alone takes one for the other. It waits until the operator is through with them, and also returns those made before an error.
func (w *walk) twinsInto(ctx context.Context, r *lifecycle.Release, copies []*newObject, namespace string) (twins []*newObject, err error) {
	for _, first := range copies {
		name := first.Name + "-twin"
		if w.isNamedBy(first, copies) {
			name = first.like.Name
		} else if len(w.namedNear(first.like)) == 0 {
			continue
		}
		o, err := w.copyInto(ctx, r, first.like, client.ObjectKey{Namespace: namespace, Name: name}, nil)
		if err != nil {
			return twins, err
		}
		if o != nil {
			twins = append(twins, o)
		}
	}
	return twins, w.awaitIdle(ctx, twins...)
}

// isNamedBy reports whether the sample of one of copies is named by that of another, and nothing is made for it alone in other namespaces or in none, which those of other namespaces would share.
func (w *walk) isNamedBy(first *newObject, copies []*newObject) bool {
	apart := slices.ContainsFunc(first.distant, func(d distant) bool { return !d.shared && d.Namespace != first.Namespace })
	return !apart && slices.ContainsFunc(copies, func(other *newObject) bool {
		return other.like.Namespace == first.like.Namespace && names(other.like.Author["spec"], first.Kind, first.like.Name)
	})
}

// longCopies creates in a namespace two copies like first with names that are as long as the API server takes.
func (w *walk) longCopies(ctx context.Context, r *lifecycle.Release, first *newObject, namespace string, near []need) (long []*newObject, err error) {
	for _, size := range judge.LongNames {
		for _, name := range longNames(first.Name, size) {
			o, err := w.copyInto(ctx, r, first.like, client.ObjectKey{Namespace: namespace, Name: name}, nil, near...)
			if err != nil {
				return long, err
			}
			if o == nil {
				break
			}
			long = append(long, o)
		}
		if len(long) > 0 {
			break
		}
	}
	return long, nil
}

// newcomer is what a newcomer is called, what it asks for otherwise, as a merge patch, what it names instead of samples, and in the place of which it names the sample, if of any.
type newcomer struct {
	among  *[]*newObject
	name   string
	change []byte
	names  []need
	far    *need
}

// namespaceOfNamed is the path of the field, not said yet, by which an object says the namespace of what it names as n's original; nil if there is none.
func namespaceOfNamed(schema *apiextensionsv1.JSONSchemaProps, object map[string]any, n need) []string {
	if schema == nil {
		return nil
	}
	for _, k := range slices.Sorted(maps.Keys(object)) {
		inner, is := object[k].(map[string]any)
		if !is {
			continue
		}
		below := schema.Properties[k]
		_, says := inner["namespace"]
		if inner["name"] == n.of && !says && below.Properties["namespace"].Type == "string" && (tells(n.GetKind(), k) || inner["kind"] == n.GetKind()) {
			return []string{k, "namespace"}
		}
		if path := namespaceOfNamed(&below, inner, n); path != nil {
			return append([]string{k}, path...)
		}
	}
	return nil
}

// longNames are two names of size characters that begin with name, as far as that is shorter, and differ at their ends alone.
func longNames(name string, size int) []string {
	name += "-" + strings.Repeat("long-", size/len("long-"))
	return []string{name[:size-1] + "1", name[:size-1] + "2"}
}

// lackOf are those of kinds of which not each of the copies of a definition that there are two of has something; nil where there are not.
func lackOf(kinds []string, copies []*newObject, crd string, operands map[string]observe.Operand) []string {
	var have [][]string
	for _, o := range copies {
		if o.CRD == crd {
			have = append(have, judge.DealtWith(o.String(), operands, false).Kinds)
		}
	}
	if len(have) < 2 {
		return nil
	}
	lack := []string{}
	for _, kind := range kinds {
		if slices.ContainsFunc(have, func(kinds []string) bool { return !slices.Contains(kinds, kind) }) {
			lack = append(lack, kind)
		}
	}
	return lack
}

// copyInto creates a copy of like, called key, with change, a merge patch, if there is one, that names others, which are not created here, or returns nil where the API server refuses it.
func (w *walk) copyInto(ctx context.Context, r *lifecycle.Release, like *observe.Object, key client.ObjectKey, change []byte, others ...need) (*newObject, error) {
	w.refused = "" // of what an earlier copy was
	sample := &unstructured.Unstructured{Object: like.Author}
	needs := w.namesakesIn(sample, like.Namespace, key.Namespace)
	if created, err := w.createNeeds(ctx, needs); err != nil || !created {
		return nil, err
	}
	all := slices.Concat(needs, others)
	object, err := withChange(naming(sample, all), change)
	if err != nil {
		return nil, err
	}
	o, err := w.makeCopy(ctx, r, like, key, object)
	if err != nil || o == nil {
		return nil, errors.Join(err, w.deleteNeeds(ctx, needs))
	}
	o.needs = all
	return o, nil
}

// likeNamespace creates the namespace called name, if it is not there, with labels and, if other is not empty, the labels and annotations of that one, by which operators may
// choose those that they serve.
func (w *walk) likeNamespace(ctx context.Context, other, name string, labels map[string]string) error {
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	if other != "" {
		var like corev1.Namespace
		if err := client.IgnoreNotFound(w.Client.Get(ctx, client.ObjectKey{Name: other}, &like)); err != nil {
			return fmt.Errorf("read namespace %s: %w", other, err)
		}
		maps.Copy(made.Labels, like.Labels)
		made.Annotations = like.Annotations
	}
	delete(made.Labels, corev1.LabelMetadataName)
	maps.Copy(made.Labels, labels)
	if err := w.Client.Create(ctx, made); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	return nil
}

// namedFirst are those of copies, which are to be created again in another namespace, whose samples name none that is not there then, each after those that it names.
func (w *walk) namedFirst(copies []*newObject) (ordered []*newObject) {
	for {
		next := slices.IndexFunc(copies, func(o *newObject) bool {
			return !slices.Contains(ordered, o) && len(w.namedAmong(ordered, o.like)) == len(w.namedNear(o.like))
		})
		if next < 0 {
			return ordered
		}
		ordered = append(ordered, copies[next])
	}
}

// namedNear are the other samples in its namespace that a sample names in its spec, or seems to.
func (w *walk) namedNear(like *observe.Object) []*observe.Object {
	spec := like.Author["spec"]
	return slices.DeleteFunc(slices.Clone(w.Objects), func(o *observe.Object) bool {
		seems := o.Name != like.Name && judge.Names(spec, o.Name, func(string) bool { return true })
		return o == like || o.Namespace != like.Namespace || !seems && !names(spec, o.Kind, o.Name)
	})
}

// namedAmong are those of copies that a copy of like is to name, as like names their samples.
func (w *walk) namedAmong(copies []*newObject, like *observe.Object) (needs []need) {
	for _, o := range copies {
		if o.like.Namespace == like.Namespace && names(like.Author["spec"], o.Kind, o.like.Name) {
			named := needLike(o.like, o.Name)
			named.SetNamespace(o.Namespace)
			needs = append(needs, named)
		}
	}
	return needs
}

// foreign is a finalizer of somebody else.
const foreign = "olmkit.dev/foreign"

// deleteNamespace deletes copies in a namespace that is being deleted, and notes in created whether they go: an operator that makes something there before it removes its
// finalizer cannot any more; and whether it removes the finalizer of somebody else as well. The namespace controller would delete them, too, some seconds later. before
// says how long that is waited for. What stays is let go, since the cluster is the walk's.
func (w *walk) deleteNamespace(ctx context.Context, name string, copies []*newObject, before, created map[string]judge.New) error {
	partings := map[*newObject]*parting{}
	for _, o := range copies {
		partings[o] = &parting{guarded: w.addForeign(ctx, o) == nil}
	}
	if w.Client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}) != nil {
		_, err := w.removeCopies(ctx, copies)
		return err
	}
	for _, o := range slices.Backward(copies) { // what names others before these
		_ = o.At(w.Dynamic, o.Version).Delete(ctx, o.Name, metav1.DeleteOptions{}) // who may not has the controller do it
	}
	began := time.Now()
	err := lookUntil(ctx, judge.GoLimit, lookPause, func() (bool, error) {
		done := true
		for _, o := range copies {
			limit := newLimit
			if before[o.CRD].GoesAnywhere() {
				limit = judge.GoLimit
			}
			w.lookAtParting(ctx, o, partings[o], time.Since(began)+lookPause >= limit)
			done = done && partings[o].gone
		}
		return done, nil
	})
	for _, o := range copies {
		p, is := partings[o], created[o.CRD]
		goes := p.gone && len(p.held) == 0 && (is.Goes == nil || *is.Goes)
		if is.Goes = &goes; len(p.held) > 0 {
			is.Held = p.held
		}
		is.Strips = is.Strips || p.stripped
		created[o.CRD] = is
		if !p.gone {
			w.lingering = append(w.lingering, o.Object)
		}
	}
	return err
}

// parting is how a deleted copy goes.
type parting struct {
	guarded  bool     // it has the finalizer of somebody else
	held     []string // the finalizers by which it stays
	stripped bool     // somebody removed the one of somebody else
	gone     bool     // or nothing holds it any more
}

// lookAtParting notes how a deleted copy goes, and lets it go if nobody but the walk holds it any more, or it is late.
func (w *walk) lookAtParting(ctx context.Context, o *newObject, p *parting, late bool) {
	if p.gone {
		return
	}
	resource := o.At(w.Dynamic, o.Version)
	now, err := resource.Get(ctx, o.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		p.gone, p.stripped, p.held = true, p.guarded, nil
		return
	case err != nil || now.GetDeletionTimestamp() == nil: // nobody was asked to let it go yet
		return
	}
	p.held = slices.DeleteFunc(now.GetFinalizers(), func(finalizer string) bool { return finalizer == foreign })
	if len(p.held) == 0 || late {
		p.gone = mergePatch(ctx, resource, o.Name, patchOf([]string{"metadata", "finalizers"}, nil)) == nil
	}
}

// addForeign adds the finalizer of somebody else to a copy.
func (w *walk) addForeign(ctx context.Context, o *newObject) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		resource := o.At(w.Dynamic, o.Version)
		now, err := resource.Get(ctx, o.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		now.SetFinalizers(append(now.GetFinalizers(), foreign))
		_, err = resource.Update(ctx, now, metav1.UpdateOptions{FieldManager: "olmkit"})
		return err
	})
}
