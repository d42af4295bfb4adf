package walk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/fault"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/graph"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/internal/report"
	"github.com/olmkit/olmkit/test/support/expect"
)

// world is a cluster with a lifecycle manager and an operator, all in memory and in the time of a synctest bubble. It keeps
// Things, of which the operator makes ConfigMaps.
type world struct {
	client.WithWatch
	tracker *countingTracker
	stuck   time.Time        // when a sample said last less than there is, of which nothing is taken away
	watcher *observe.Watcher // of the walk, once it follows

	mu        sync.Mutex
	calls     []string // of the manager and the cluster, as the walk made them
	on        func(call string) error
	behaviour map[string]string // by bundle, what comes of it; it is installed by default
	state     lifecycle.State
	wanted    string // bundle that was requested last
	running   string // bundle whose operator runs
	place     lifecycle.Place
	uid       int
	catalogs  []string  // that were published
	channels  []string  // that bundles were requested from
	gets      int       // of single objects, by the walk
	writes    int       // by anybody
	choked    bool      // the operator that chokes did
	sulked    types.UID // of what was paused last
	said      string    // by every operator
	tells     string    // by that of v2, instead

	// ticking are the things for which Jobs are made.
	ticking map[types.UID]bool

	// samples are what walks get beside the bundles' own.
	samples []*unstructured.Unstructured

	// takes, unless nil, uninstalls the package with its definitions and objects, on a cluster that goes with the walk.
	takes func(ctx context.Context) error

	// gone are the names of Things that were deleted while an operator ran that remembers them.
	gone []string

	// only, unless empty, is the name that every Thing must have.
	only string

	// hosts are the last hosts of Things, by name, where an operator looks at them.
	hosts map[string]string

	// ousting is held by who deletes what was made for other objects.
	ousting sync.Mutex

	// holders tells that the package has Holders, too.
	holders bool

	// rival writes an object when the walk is about to write it.
	rival func(o *unstructured.Unstructured)
}

// What may come of a bundle.
const (
	never        = "never chosen"
	hangs        = "hangs while it is installed"
	sleeps       = "goes on only when it is woken"
	locked       = "waits for the old one, which waits for it"
	forgotten    = "is installed, and the manager forgets it"
	lingers      = "takes long by itself"
	stays        = "the old one stays"
	fails        = "fails"
	waits        = "waits for what is not there"
	crashes      = "crashes"
	crashesBy    = "crashes because its objects are refused"
	isRefused    = "its pod is refused"
	servesOne    = "serves the first of its namespaces alone"
	idles        = "reconciles nothing"
	mends        = "updates what is there, and creates nothing"
	disowns      = "creates what belongs to nobody"
	evicts       = "deletes all but the first objects"
	purges       = "deletes all objects when it starts"
	strands      = "deletes all objects when it starts, and keeps them by a finalizer"
	deletes      = "creates what belongs to nobody, and deletes it with its object"
	sweeps       = "deletes all that belongs to nobody where it makes something"
	adopts       = "labels all where it makes something"
	pairs        = "makes something for each pair of objects, and deletes it with either"
	misses       = "does not look at a Holder again once there is what it names"
	clings       = "lets no Holder go without what it names"
	settles      = "looks at no Holder in a namespace that is newer than itself"
	tallies      = "tells with a Thing of all Holders that name it"
	talliesLast  = "does, with the one that a Holder names last"
	talliesNear  = "does, of those in its namespace"
	talliesNames = "does, of those that name one that is called so"
	nearby       = "looks for what a Holder names in the Holder's namespace alone"
	tires        = "updates nothing of a Holder when what it names changes"
	sticks       = "does, but for what a Holder named first"
	hosted       = "makes nothing for who has the host of another"
	hostedNext   = "does not either, until that is gone"
	hostedBoth   = "makes something for it, too"
	accepts      = "makes something for it, and says that it is not accepted"
	hostedFree   = "does not either, and creates what belongs to nobody"
	takesAll     = "selects for a Holder also what does not have the labels that it asks for"
	weighs       = "says for a Holder how deep the Things are that it selects"
	weighsOnce   = "says how deep they were when it selected them first"
	takesFar     = "has a Holder select Things of all namespaces"
	titles       = "calls what it makes as the Thing says, unless that is another's"
	titlesTakes  = "calls what it makes as the Thing says, and takes it from another"
	titlesNone   = "does, and creates nothing"
	leads        = "makes a Service, and says where that is"
	strays       = "makes a Service, and says another port"
	robs         = "does, and deletes with an object what others have"
	retains      = "creates what belongs to nobody for objects that are to retain it"
	chokes       = "lets nobody write once a spec was changed"
	freezes      = "lets nobody change a spec"
	reports      = "says that its objects are well, and where"
	hushes       = "says that its objects are well"
	sickens      = "says so until a spec is changed"
	keeps        = "lets nobody delete its objects"
	limits       = "lets nobody have an even number"
	holds        = "leaves what is paused alone"
	frees        = "leaves what is paused alone, and lets go what is deleted"
	clutches     = "leaves what is paused alone, also when it is deleted"
	sulks        = "leaves alone for ever what was paused"
	checks       = "lets nobody have a note of !"
	checksAll    = "lets nobody have a note of !, or no size"
	doubles      = "says the depth twice"
	sums         = "says which annotations it saw"
	stamps       = "says when it saw them"
	announces    = "tells in an Event that it looked at an object"
	seizes       = "makes ConfigMaps that nobody can change for who says no note"
	presumes     = "takes a note that is left out for 1h"
	presumesSame = "takes it for 7h"
	presumesLast = "takes it for the last one"
	halves       = "does, and keeps one of them when it changes"
	jams         = "cannot take back a greater depth until somebody deletes what it made"
	jamsMore     = "cannot either, and has one note"
	scales       = "scales the Deployment that a Thing names, until that is deleted"
	scalesOnce   = "does, and leaves it so when the Thing changes"
	scalesMore   = "does, to one more"
	scalesLeaves = "does, and leaves it so when the Thing is deleted"
	injects      = "adds to each pod"
	injectsLess  = "adds less to each pod"
	robsPods     = "adds less to each pod, and takes its environment"
	bansPods     = "lets nobody create a pod"
	fitsShort    = "does nothing for a name of more than 40 characters"
	bansLong     = "takes no name of more than 40 characters"
	ticks        = "makes a Job every five seconds"
	ticksShort   = "makes Jobs that say less"
	ticksNew     = "does, for what is new"
	labelsNodes  = "labels nodes"
	stripsNodes  = "does, and takes their other labels"
	hurries      = "takes a tenth of a second for all that it does"
	dawdles      = "takes more than five seconds for that"
	twins        = "makes two of each, and makes either again that somebody deletes"
	twinsHalf    = "makes two of each, and one of them again"
	paves        = "makes a Service for who says a depth, and again if somebody deletes it"
	pavesOnce    = "does not make it again"
	recounts     = "counts the Holders of a Thing"
	countsOnce   = "counts the first ones"
	favours      = "updates of the Holders of a Thing the first alone"
	heeds        = "has a Holder say whether what it names is there"
	heedsOnce    = "does, until it was there once"
	seals        = "makes a Secret, of which a Holder says what it says"
	mirrors      = "makes a Secret, and puts back what somebody changes of it"
	sealsOnce    = "does, and a Holder says what the first one said"
	repeats      = "makes a Secret, and a ConfigMap that says the same"
	repeatsOnce  = "does, and the ConfigMap goes on with what the first one said"
	clears       = "makes a Service of an extra, and deletes it"
	litters      = "makes a Service of an extra, and leaves it"
	insists      = "has a webhook that makes one of none"
	exits        = "ends when a spec is changed"
	operandsExit = "runs what ends when a spec is changed"
	answers      = "answers each write with one"
	spins        = "writes without end once it looked at an object"
	remembers    = "makes nothing for who has the name of one that is gone"
	ousts        = "deletes for each object what it made for the others"
	handsOn      = "gives what it makes the annotations that a Thing has"
	handsDown    = "gives them the pods, too, that a Deployment of it makes"
	fits         = "makes a Deployment of the size that a Thing says"
	grows        = "does so, but nothing for one that says less than there is"
	restores     = "puts back what somebody changes of what it made"
	understands  = "puts back what somebody changes of what it made, if that means something else"
)

var (
	thingKind  = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}
	holderKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Holder"}
)

func newWorld() *world {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	for _, kind := range []schema.GroupVersionKind{thingKind, holderKind} {
		s.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
		s.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &unstructured.UnstructuredList{})
	}
	// The tracker of managed fields, which is the default, takes half of the tests' time.
	tracker := &countingTracker{ObjectTracker: clienttesting.NewObjectTracker(s, serializer.NewCodecFactory(s).UniversalDecoder()),
		writes: map[schema.GroupVersionResource]int{}, last: map[reading]any{}}
	w := &world{tracker: tracker, behaviour: map[string]string{}, ticking: map[types.UID]bool{}, on: func(string) error { return nil }}
	w.WithWatch = fake.NewClientBuilder().WithScheme(s).WithRESTMapper(testrestmapper.TestOnlyStaticRESTMapper(s)).WithObjectTracker(tracker).
		WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceDefault}}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
				if review, is := o.(*authorizationv1.SubjectAccessReview); is {
					review.Status.Allowed = true
					return nil
				}
				if w.only != "" && o.GetObjectKind().GroupVersionKind() == thingKind && o.GetName() != w.only {
					return apierrors.NewInvalid(thingKind.GroupKind(), o.GetName(), nil)
				}
				if w.behaves() == bansLong && o.GetObjectKind().GroupVersionKind() == thingKind && len(o.GetName()) > 40 {
					return denial(o)
				}
				w.insist(o)
				if len((&client.CreateOptions{}).ApplyOptions(options).DryRun) > 0 {
					w.inject(o)
					return w.deniesNew(o)
				}
				w.mu.Lock()
				w.uid++
				o.SetUID(types.UID(fmt.Sprint(w.uid)))
				w.mu.Unlock()
				err := c.Create(ctx, o, options...)
				return w.saw(o, false, err)
			},
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
				return w.saw(o, false, c.Update(ctx, o, options...))
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
				if err := errors.Join(w.chokesOn(o, patch, options), w.denies(o, patch)); err != nil {
					return err
				}
				err := c.Patch(ctx, o, patch, options...)
				if len((&client.PatchOptions{}).ApplyOptions(options).DryRun) > 0 { // nobody sees that
					return err
				}
				return w.saw(o, false, err)
			},
			Apply: func(ctx context.Context, c client.WithWatch, config runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
				data, err := json.Marshal(config)
				o := &unstructured.Unstructured{}
				if err = errors.Join(err, json.Unmarshal(data, &o.Object)); err != nil {
					return err
				}
				if err = c.Create(ctx, o); apierrors.IsAlreadyExists(err) { // the walk applies it as it is
					err = nil
				}
				return w.saw(o, false, err)
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
				if w.keeps(o) {
					return denial(o)
				}
				return w.saw(o, true, c.Delete(ctx, o, options...))
			},
		}).Build()
	return w
}

// inject is what the webhook of the operator that runs makes of a new pod.
func (w *world) inject(o client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	pod, is := o.(*unstructured.Unstructured)
	if !is || pod.GetKind() != "Pod" {
		return
	}
	w.uid++ // as the API server does
	_ = unstructured.SetNestedSlice(pod.Object, []any{map[string]any{"name": fmt.Sprintf("kube-api-access-%05d", w.uid)}}, "spec", "volumes")
	behaviour := w.behaviour[w.running]
	added := map[string]map[string]string{injects: {"example.com/a": "1", "example.com/b": "2"}, injectsLess: {"example.com/a": "1"}, robsPods: {"example.com/a": "1"}}[behaviour]
	if added != nil {
		pod.SetAnnotations(added)
	}
	if behaviour == robsPods {
		_ = unstructured.SetNestedSlice(pod.Object, []any{map[string]any{"name": "shop", "image": "shop:1", "env": []any{map[string]any{"name": "A", "value": "1"}}}}, "spec", "containers")
	}
}

// newDisposable is a new world whose manager takes what there is with it, so that the walk may do there as it likes.
func newDisposable() *world {
	w := newWorld()
	w.takes = func(context.Context) error { return nil }
	return w
}

// chokesOn refuses a write of o if the operator that runs chokes and did so before, and notes whether it does now.
func (w *world) chokesOn(o client.Object, patch client.Patch, options []client.PatchOption) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o.GetObjectKind().GroupVersionKind().Kind != "Thing" || w.behaviour[w.running] != chokes {
		return nil
	}
	if w.choked {
		return errors.New("failed calling webhook: connection refused")
	}
	data, err := patch.Data(o)
	w.choked = strings.Contains(string(data), `"spec"`) && len((&client.PatchOptions{}).ApplyOptions(options).DryRun) == 0
	return err
}

// denies is what the webhook of the operator that runs says of a change of o.
func (w *world) denies(o client.Object, patch client.Patch) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	data, err := patch.Data(o)
	denied := map[string]string{freezes: `"spec"`, limits: `"size":2`, checks: `"!"`, checksAll: `"!"`}[w.behaviour[w.running]]
	if w.behaviour[w.running] == checksAll && strings.Contains(string(data), `"size":0`) {
		denied = `"size":0`
	}
	if err != nil || denied == "" || o.GetObjectKind().GroupVersionKind() != thingKind || !strings.Contains(string(data), denied) {
		return err
	}
	return denial(o)
}

// insist sets the size of o to one where it asks for none, if the webhook of the operator that runs does.
func (w *world) insist(o client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if thing, is := o.(*unstructured.Unstructured); is && w.behaviour[w.running] == insists && o.GetObjectKind().GroupVersionKind() == thingKind {
		if size, has, _ := unstructured.NestedInt64(thing.Object, "spec", "size"); has && size == 0 {
			_ = unstructured.SetNestedField(thing.Object, int64(1), "spec", "size")
		}
	}
}

// keeps reports whether the webhook of the operator that runs lets nobody delete o.
func (w *world) keeps(o client.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.behaviour[w.running] == keeps && o.GetObjectKind().GroupVersionKind() == thingKind
}

// deniesNew is what the webhook of the operator that runs says of a new object, if it checks them.
func (w *world) deniesNew(o client.Object) error {
	w.mu.Lock()
	checked := slices.Contains([]string{checks, checksAll, limits}, w.behaviour[w.running])
	banned := w.behaviour[w.running] == bansPods && o.GetObjectKind().GroupVersionKind().Kind == "Pod"
	w.mu.Unlock()
	if banned {
		return denial(o)
	}
	data, err := json.Marshal(o)
	if err != nil || !checked {
		return err
	}
	return w.denies(o, client.RawPatch(types.MergePatchType, data))
}

func denial(o client.Object) error {
	return apierrors.NewForbidden(schema.GroupResource{Group: "example.com", Resource: "things"}, o.GetName(), errors.New(`admission webhook "things" denied the request`))
}

// saw tells the walk's watcher and the operator of a write.
func (w *world) saw(o client.Object, gone bool, err error) error {
	if err != nil {
		return err
	}
	if w.watcher != nil {
		w.watcher.See(nil, o, gone)
	}
	w.mu.Lock()
	w.writes++
	operator, serves := w.running, w.serves(o.GetNamespace())
	w.mu.Unlock()
	thing, is := o.(*unstructured.Unstructured)
	switch {
	case is && thing.GetKind() == "ConfigMap" && !gone && slices.Contains([]string{restores, understands}, w.behaviour[operator]):
		w.reconcile(w.behaviour[operator], thing.GetNamespace(), thing.GetName())
	case is && thing.GetKind() == "Deployment" && !gone && w.behaviour[operator] == grows:
		w.reconcile(grows, thing.GetNamespace(), thing.GetName())
	case is && thing.GetKind() == "Service" && gone && w.behaviour[operator] == paves:
		w.reconcile(paves, thing.GetNamespace(), thing.GetName())
	case is && thing.GetKind() == "ConfigMap" && gone && (w.behaviour[operator] == jams || w.behaviour[operator] == jamsMore):
		w.reconcile(w.behaviour[operator], thing.GetNamespace(), thing.GetName())
	case is && thing.GetKind() == "ConfigMap" && gone && (w.behaviour[operator] == twins || w.behaviour[operator] == twinsHalf && !strings.HasSuffix(thing.GetName(), twin)):
		w.reconcile(w.behaviour[operator], thing.GetNamespace(), strings.TrimSuffix(thing.GetName(), twin))
	case is && thing.GetKind() == "Secret" && (gone && slices.Contains([]string{seals, sealsOnce, repeats, repeatsOnce}, w.behaviour[operator]) || w.behaviour[operator] == mirrors):
		w.reconcile(w.behaviour[operator], thing.GetNamespace(), strings.TrimSuffix(thing.GetName(), sealed))
	case is && thing.GetKind() == "Holder" && operator != "":
		w.hold(context.Background(), client.ObjectKeyFromObject(thing))
	case !is || thing.GetKind() != "Thing" || operator == "" || !serves:
	case w.behaviour[operator] == evicts && !gone && strings.Contains(thing.GetName(), "-new"):
		return w.Delete(context.Background(), thing)
	case slices.Contains([]string{scales, scalesOnce, scalesMore, scalesLeaves}, w.behaviour[operator]):
		w.scale(context.Background(), thing, w.behaviour[operator], gone)
	case slices.Contains([]string{ticks, ticksShort, ticksNew}, w.behaviour[operator]) && !gone && w.beginsToTick(thing):
		w.tick(client.ObjectKeyFromObject(thing), thing.GetUID())
	case !gone && (w.behaviour[operator] == labelsNodes || w.behaviour[operator] == stripsNodes):
		w.labelNodes(context.Background(), w.behaviour[operator])
		w.reconcile(w.behaviour[operator], thing.GetNamespace(), thing.GetName())
	case !gone && takes[w.behaviour[operator]] > 0:
		time.AfterFunc(takes[w.behaviour[operator]], func() { w.reconcile(w.behaviour[operator], thing.GetNamespace(), thing.GetName()) })
	case !gone || w.behaviour[operator] == frees || w.behaviour[operator] == clutches:
		w.reconcile(w.behaviour[operator], thing.GetNamespace(), thing.GetName())
	case w.behaviour[operator] == hostedNext:
		for _, other := range w.all(context.Background(), thingKind, "") {
			w.reconcile(hostedNext, other.GetNamespace(), other.GetName())
		}
	case w.behaviour[operator] == heeds || w.behaviour[operator] == heedsOnce:
		w.holdAll(context.Background(), thing.GetNamespace())
	case w.behaviour[operator] == remembers:
		w.mu.Lock()
		w.gone = append(w.gone, thing.GetName())
		w.mu.Unlock()
	case w.behaviour[operator] == pairs || w.behaviour[operator] == robs:
		w.takePaired(context.Background(), thing, w.behaviour[operator] == robs)
	case w.behaviour[operator] == deletes:
		return client.IgnoreNotFound(w.Delete(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: thing.GetNamespace(), Name: thing.GetName()}}))
	}
	return nil
}

// serves reports whether the operator that runs deals with what is in the namespace.
func (w *world) serves(namespace string) bool {
	switch w.behaviour[w.running] {
	case idles:
		return false
	case servesOne:
		return namespace == w.place.Targets[0]
	}
	switch w.place.Mode {
	case lifecycle.AllNamespaces:
		return true
	case lifecycle.OwnNamespace:
		return namespace == w.place.Namespace
	}
	return slices.Contains(w.place.Targets, namespace)
}

// takeOver deletes or labels the ConfigMaps of a namespace that belong to nobody.
func (w *world) takeOver(ctx context.Context, namespace string, deletes bool) {
	var all corev1.ConfigMapList
	_ = w.List(ctx, &all, client.InNamespace(namespace))
	for i := range all.Items {
		switch m := &all.Items[i]; {
		case len(m.OwnerReferences) > 0:
		case deletes:
			_ = w.Delete(ctx, m)
		case len(m.Labels) == 0:
			m.Labels = map[string]string{"app": "thing"}
			_ = w.Update(ctx, m)
		}
	}
}

// behaves is what the operator that runs does.
func (w *world) behaves() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.behaviour[w.running]
}

// hold is what an operator does about a Holder: it makes a ConfigMap once what the Holder names is there, and lets a Holder go that is deleted.
func (w *world) hold(ctx context.Context, key client.ObjectKey) {
	holder, thing := &unstructured.Unstructured{}, &unstructured.Unstructured{}
	holder.SetGroupVersionKind(holderKind)
	thing.SetGroupVersionKind(thingKind)
	if w.Get(ctx, key, holder) != nil || w.behaves() == settles && strings.HasPrefix(key.Namespace, newNamespaces) {
		return
	}
	of := w.heldBy(holder)
	name := of.Name
	there := w.Get(ctx, of, thing) == nil
	if there && slices.Contains([]string{recounts, countsOnce}, w.behaves()) {
		defer w.count(ctx, thing)
	}
	if slices.Contains([]string{tallies, talliesNear, talliesNames}, w.behaves()) {
		defer w.tally(ctx, w.all(ctx, thingKind, "")...)
	} else if there && w.behaves() == talliesLast {
		defer w.tally(ctx, *thing)
	}
	switch {
	case len(holder.GetFinalizers()) > 0 && holder.GetDeletionTimestamp() == nil && w.heed(ctx, holder, there):
	case holder.GetDeletionTimestamp() != nil:
		if there || w.behaves() != clings {
			holder.SetFinalizers(nil)
			_ = w.Update(ctx, holder)
		}
	case len(holder.GetFinalizers()) == 0:
		holder.SetFinalizers([]string{"example.com/holder"})
		_ = w.Update(ctx, holder)
	case there:
		owner := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Holder", Name: key.Name, UID: holder.GetUID()}
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "of-" + key.Name, OwnerReferences: []metav1.OwnerReference{owner}}}
		m.Data = map[string]string{"name": name, "held": fmt.Sprint(thing.Object["spec"]), "selected": w.selectedBy(ctx, holder)}
		key := &corev1.Secret{}
		if w.Get(ctx, client.ObjectKey{Namespace: thing.GetNamespace(), Name: thing.GetName() + sealed}, key) == nil {
			m.Data["key"] = string(key.UID)
		}
		held := m.Data
		if w.Create(ctx, m) == nil || w.behaves() == tires || w.Get(ctx, client.ObjectKeyFromObject(m), m) != nil {
			return
		}
		if w.behaves() == sealsOnce {
			held["key"] = m.Data["key"]
		}
		if w.behaves() == sticks {
			held["name"] = m.Data["name"]
		}
		if w.behaves() == weighsOnce && alone(m.Data["selected"]) == alone(held["selected"]) {
			held["selected"] = m.Data["selected"]
		}
		if !maps.Equal(m.Data, held) {
			m.Data = held
			_ = w.Update(ctx, m)
		}
	}
}

// tally has a ConfigMap of each of things say which Holders name it that are not deleted, of all namespaces or of its own.
func (w *world) tally(ctx context.Context, things ...unstructured.Unstructured) {
	for i := range things {
		thing, among := &things[i], ""
		if w.behaves() == talliesNear {
			among = thing.GetNamespace()
		}
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: thing.GetNamespace(), Name: thing.GetName() + "-holders", OwnerReferences: ownedBy(thing)}, Data: map[string]string{}}
		for _, holder := range w.all(ctx, holderKind, among) {
			held := w.heldBy(&holder)
			if w.behaves() == talliesNames {
				held.Namespace = thing.GetNamespace()
			}
			if held == client.ObjectKeyFromObject(thing) && holder.GetDeletionTimestamp() == nil {
				m.Data[holder.GetNamespace()+"."+holder.GetName()] = "held"
			}
		}
		if data := m.Data; w.Create(ctx, m) != nil && w.Get(ctx, client.ObjectKeyFromObject(m), m) == nil && !maps.Equal(m.Data, data) {
			m.Data = data
			_ = w.Update(ctx, m)
		}
	}
}

// heldBy is which Thing a Holder names, in its own namespace unless it says another one.
func (w *world) heldBy(holder *unstructured.Unstructured) client.ObjectKey {
	key := client.ObjectKey{Namespace: holder.GetNamespace()}
	key.Name, _, _ = unstructured.NestedString(holder.Object, "spec", "thing")
	if ref, says, _ := unstructured.NestedStringMap(holder.Object, "spec", "thingRef"); says {
		key.Name = ref["name"]
		if ref["namespace"] != "" && w.behaves() != nearby {
			key.Namespace = ref["namespace"]
		}
	}
	return key
}

// heed has a Holder say whether what it names is there, and reports whether it did not say so before.
func (w *world) heed(ctx context.Context, holder *unstructured.Unstructured, there bool) bool {
	was := holder.DeepCopy().Object["status"]
	said := fmt.Sprint(was) == fmt.Sprint(readyAs("True"))
	switch behaviour := w.behaves(); {
	case behaviour != heeds && behaviour != heedsOnce:
		return false
	case there || said && behaviour == heedsOnce:
		return w.ready(ctx, holder, was, "True")
	}
	return w.ready(ctx, holder, was, "False")
}

// count has the status of thing say how many Holders name it that are not deleted.
func (w *world) count(ctx context.Context, thing *unstructured.Unstructured) {
	n := int64(0)
	for _, holder := range w.all(ctx, holderKind, thing.GetNamespace()) {
		if w.heldBy(&holder) == client.ObjectKeyFromObject(thing) && holder.GetDeletionTimestamp() == nil {
			n++
		}
	}
	said, known, _ := unstructured.NestedInt64(thing.Object, "status", "holders")
	if said != n && (!known || w.behaves() == recounts) && w.Get(ctx, client.ObjectKeyFromObject(thing), thing) == nil {
		_ = unstructured.SetNestedField(thing.Object, n, "status", "holders")
		_ = w.Update(ctx, thing)
	}
}

// repeat makes a Secret with a password for thing, unless there is one, and in another namespace a ConfigMap with an address in which that is, which is kept.
func (w *world) repeat(ctx context.Context, thing *unstructured.Unstructured, keeps bool) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: thing.GetNamespace(), Name: thing.GetName() + sealed, OwnerReferences: ownedBy(thing)}}
	secret.Data = map[string][]byte{"user": []byte("thing"), "password": []byte(rand.String(12))}
	if w.Create(ctx, secret) != nil && w.Get(ctx, client.ObjectKeyFromObject(secret), secret) != nil {
		return
	}
	told := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: thing.GetNamespace() + "." + thing.GetName()}}
	told.Data = map[string]string{"address": fmt.Sprintf("http://thing:%s@host", secret.Data["password"])}
	if w.Create(ctx, told) != nil && keeps {
		_ = w.Update(ctx, told)
	}
}

// sealed ends the name of the Secret of a Thing.
const sealed = "-key"

// sealedPassword is what the Secrets of Things hold.
const sealedPassword = "Pa55-of-Things"

// selectedBy names the Things that a Holder selects by a label.
func (w *world) selectedBy(ctx context.Context, holder *unstructured.Unstructured) (names string) {
	app, _, _ := unstructured.NestedString(holder.Object, "spec", "selector", "matchLabels", "app")
	among := holder.GetNamespace()
	if w.behaves() == takesFar {
		among = ""
	}
	for _, thing := range w.all(ctx, thingKind, among) {
		if app != "" && (thing.GetLabels()["app"] == app || w.behaves() == takesAll) {
			names += thing.GetName() + " "
			if depth, _, _ := unstructured.NestedInt64(thing.Object, "spec", "depth"); slices.Contains([]string{weighs, weighsOnce}, w.behaves()) {
				names += fmt.Sprint(depth, " ")
			}
		}
	}
	return names
}

// alone are the names without numbers among words.
func alone(words string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(words), func(word string) bool { return word < "a" }), " ")
}

// hasHost reports whether an older Thing has the host of thing, which is not ready then.
func (w *world) hasHost(ctx context.Context, thing *unstructured.Unstructured) bool {
	host, _, _ := unstructured.NestedString(thing.Object, "spec", "host")
	taken := w.behaves() != hostedBoth && slices.ContainsFunc(w.all(ctx, thingKind, ""), func(other unstructured.Unstructured) bool {
		its, _, _ := unstructured.NestedString(other.Object, "spec", "host")
		return its == host && len(other.GetUID()) < len(thing.GetUID()) || its == host && len(other.GetUID()) == len(thing.GetUID()) && other.GetUID() < thing.GetUID()
	})
	w.mu.Lock()
	if w.hosts == nil {
		w.hosts = map[string]string{}
	}
	w.hosts[thing.GetName()] = host
	w.mu.Unlock()
	was, says := thing.DeepCopy().Object["status"], map[bool]string{true: "False", false: "True"}[taken]
	if w.behaves() == accepts {
		w.say(ctx, thing, was, conditionAs("Accepted", says))
		return false
	}
	w.ready(ctx, thing, was, says)
	return taken
}

// all are the objects of a kind in a namespace, or in all of them.
func (w *world) all(ctx context.Context, kind schema.GroupVersionKind, namespace string) []unstructured.Unstructured {
	of, _ := meta.UnsafeGuessKindToResource(kind)
	list, err := resourceOf{client: w, of: of, namespace: namespace}.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	return list.Items
}

// holdAll looks at all Holders of a namespace.
func (w *world) holdAll(ctx context.Context, namespace string) {
	held := map[string]bool{}
	for _, holder := range w.all(ctx, holderKind, namespace) {
		name := w.heldBy(&holder).Name
		if w.behaves() != favours || !held[name] {
			w.hold(ctx, client.ObjectKeyFromObject(&holder))
		}
		held[name] = true
	}
}

// pair makes a ConfigMap for thing and each other one, in both orders, which the first owns and which has the names of both.
func (w *world) pair(ctx context.Context, thing *unstructured.Unstructured) {
	for _, other := range w.all(ctx, thingKind, thing.GetNamespace()) {
		for first, second := range map[*unstructured.Unstructured]*unstructured.Unstructured{thing: &other, &other: thing} {
			if other.GetName() != thing.GetName() {
				_ = w.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: thing.GetNamespace(), Name: first.GetName() + "." + second.GetName(), OwnerReferences: ownedBy(first)}})
			}
		}
	}
}

// oust deletes what was made for others than the thing called key, for which it is made again.
func (w *world) oust(ctx context.Context, key client.ObjectKey) {
	var list corev1.ConfigMapList
	_ = w.List(ctx, &list, client.InNamespace(key.Namespace))
	for _, m := range list.Items {
		if m.Name != key.Name && len(m.OwnerReferences) > 0 {
			_ = w.Delete(ctx, &m)
			time.AfterFunc(takes[ousts], func() { w.reconcile(w.behaves(), m.Namespace, m.Name) })
		}
	}
}

// takePaired deletes the ConfigMaps that others own with thing, which is gone, or all that others own.
func (w *world) takePaired(ctx context.Context, thing *unstructured.Unstructured, all bool) {
	var list corev1.ConfigMapList
	_ = w.List(ctx, &list, client.InNamespace(thing.GetNamespace()))
	for _, m := range list.Items {
		if len(m.OwnerReferences) > 0 && (all || strings.HasSuffix(m.Name, "."+thing.GetName())) {
			_ = w.Delete(ctx, &m)
		}
	}
}

// scale gives the Deployment that a Thing names as many replicas as the Thing says, and those that it had once that is gone, of which nothing but the name is known then.
func (w *world) scale(ctx context.Context, thing *unstructured.Unstructured, behaviour string, gone bool) {
	const had, by = "example.com/had", "example.com/by"
	name, _, _ := unstructured.NestedString(thing.Object, "spec", "deploymentName")
	size, _, _ := unstructured.NestedInt64(thing.Object, "spec", "size")
	if behaviour == scalesMore {
		size++
	}
	var list appsv1.DeploymentList
	_ = w.List(ctx, &list, client.InNamespace(thing.GetNamespace()))
	for _, d := range list.Items {
		mine, replicas := d.Annotations[by] == thing.GetName(), int64(ptr.Deref(d.Spec.Replicas, 1))
		switch {
		case gone && mine && behaviour != scalesLeaves:
			size, _ = strconv.ParseInt(d.Annotations[had], 10, 32)
			d.Annotations = nil
		case !gone && d.Name == name && !mine:
			d.Annotations = map[string]string{had: fmt.Sprint(replicas), by: thing.GetName()}
		case gone || d.Name != name || behaviour == scalesOnce || replicas == size:
			continue
		}
		d.Spec.Replicas = ptr.To(int32(size))
		_ = w.Update(ctx, &d)
	}
}

// labelNodes labels all nodes.
func (w *world) labelNodes(ctx context.Context, behaviour string) {
	var nodes corev1.NodeList
	_ = w.List(ctx, &nodes)
	for _, n := range nodes.Items {
		if behaviour == stripsNodes {
			n.Labels = nil
		}
		metav1.SetMetaDataLabel(&n.ObjectMeta, "pool", "1")
		_ = w.Update(ctx, &n)
	}
}

// beginsToTick reports whether no Jobs are made for thing yet, and notes that they are now. The walk writes several at the same time.
func (w *world) beginsToTick(thing *unstructured.Unstructured) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ticking[thing.GetUID()] {
		return false
	}
	w.ticking[thing.GetUID()] = true
	return true
}

// tick makes a Job for a thing every five seconds, as long as that is there, and keeps the last three.
func (w *world) tick(key client.ObjectKey, of types.UID) {
	thing, ctx := &unstructured.Unstructured{}, context.Background()
	thing.SetGroupVersionKind(thingKind)
	if w.Get(ctx, key, thing) != nil || thing.GetUID() != of {
		return
	}
	time.AfterFunc(5*time.Second, func() { w.tick(key, of) })
	w.mu.Lock()
	behaviour := w.behaviour[w.running]
	w.mu.Unlock()
	if behaviour != ticks && behaviour != ticksShort && (behaviour != ticksNew || !strings.Contains(key.Name, "-new")) {
		return
	}
	job := func(at time.Time) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: fmt.Sprint(key.Name, "-", at.Unix()), CreationTimestamp: metav1.NewTime(at)}}
	}
	next := job(time.Now())
	next.OwnerReferences = ownedBy(thing)
	next.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	if size, _, _ := unstructured.NestedInt64(thing.Object, "spec", "size"); behaviour != ticksShort {
		next.Spec.ActiveDeadlineSeconds = &size
	}
	_ = w.Create(ctx, next)
	_ = w.Delete(ctx, job(time.Now().Add(-15*time.Second)))
}

// takes is how long those that are not at once done take for each change.
var takes = map[string]time.Duration{hurries: time.Second / 10, dawdles: 5*time.Second + time.Second/4, ousts: time.Second / 2}

// twin follows the name of the first of two.
const twin = "-twin"

// reconcile is what an operator that behaves so does: a ConfigMap says what the Thing says.
func (w *world) reconcile(behaviour, namespace, name string) {
	ctx := context.Background()
	thing := &unstructured.Unstructured{}
	thing.SetGroupVersionKind(thingKind)
	key := client.ObjectKey{Namespace: namespace, Name: name}
	if w.Get(ctx, key, thing) != nil {
		return
	}
	w.mu.Lock()
	paused, _, _ := unstructured.NestedBool(thing.Object, "spec", "paused")
	sulked := behaviour == sulks && (paused || w.sulked == thing.GetUID())
	if sulked {
		w.sulked = thing.GetUID()
	}
	known := slices.Contains(w.gone, name)
	onDelete, _, _ := unstructured.NestedString(thing.Object, "spec", "onDelete")
	w.mu.Unlock()
	guards := behaviour == frees || behaviour == clutches
	if sulked || known || behaviour == fitsShort && len(name) > 40 || slices.Contains([]string{hosted, hostedFree, hostedNext, hostedBoth, accepts}, behaviour) && w.hasHost(ctx, thing) || guards && w.guard(ctx, thing, behaviour == frees || !paused) || paused && (behaviour == holds || guards) {
		return
	}
	if behaviour == sweeps || behaviour == adopts {
		w.takeOver(ctx, namespace, behaviour == sweeps)
	}
	if slices.Contains([]string{seals, sealsOnce, mirrors}, behaviour) {
		w.seal(ctx, thing, behaviour == mirrors)
	}
	if behaviour == repeats || behaviour == repeatsOnce {
		w.repeat(ctx, thing, behaviour == repeats)
	}
	if w.holders && behaviour == takesFar {
		w.holdAll(ctx, "")
	} else if w.holders && behaviour != misses {
		w.holdAll(ctx, namespace)
	}
	if behaviour == pairs || behaviour == robs {
		w.pair(ctx, thing)
	}
	if (behaviour == fits || behaviour == grows) && !w.fit(ctx, thing, behaviour == fits) {
		return
	}
	if behaviour == handsOn || behaviour == handsDown {
		defer w.handOn(ctx, thing, behaviour == handsDown)
	}
	if behaviour == ousts {
		w.ousting.Lock()
		defer w.ousting.Unlock()
		w.oust(ctx, key)
	}
	if behaviour == announces {
		w.announce(ctx, thing)
	}
	if slices.Contains([]string{reports, sickens, hushes, sums, stamps}, behaviour) {
		w.report(ctx, thing, behaviour)
	}
	annotations := maps.Clone(thing.GetAnnotations())
	delete(annotations, observe.Writes)
	spec, _, _ := unstructured.NestedMap(thing.Object, "spec")
	delete(spec, "paused") // which is for the operator alone
	if behaviour == jamsMore {
		spec["note"] = "x"
	}
	w.presume(ctx, key, behaviour, spec)
	said := fmt.Sprint(spec, thing.GetLabels(), annotations)
	if _, deep := spec["depth"]; deep && (behaviour == paves || behaviour == pavesOnce) {
		w.serve(ctx, thing, 6379)
	}
	if _, extra := spec["extra"]; extra && (behaviour == clears || behaviour == litters) {
		w.serve(ctx, thing, 6379)
	} else if behaviour == clears {
		_ = w.Delete(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: thing.GetName()}})
	}
	m := &corev1.ConfigMap{}
	if behaviour == titles || behaviour == titlesNone || behaviour == titlesTakes {
		key.Name, _, _ = unstructured.NestedString(spec, "secretName")
		name = key.Name
		if behaviour == titlesTakes {
			w.take(ctx, thing, key)
		} else if w.isTaken(ctx, thing, key) {
			return
		}
	}
	if behaviour == twins || behaviour == twinsHalf {
		second := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + twin, OwnerReferences: ownedBy(thing)}}
		_ = w.Create(ctx, second)
	}
	jammed := behaviour == jams || behaviour == jamsMore
	switch err := w.Get(ctx, key, m); {
	case apierrors.IsNotFound(err):
		if behaviour == mends || behaviour == titlesNone {
			return
		}
		m.Namespace, m.Name, m.Data = namespace, name, map[string]string{"said": said}
		if behaviour == doubles || behaviour == halves || jammed {
			m.Data["depth"] = fmt.Sprint(spec["depth"])
		}
		if behaviour == leads || behaviour == strays {
			m.Data["server"] = w.serve(ctx, thing, map[bool]int32{true: 6379, false: 6380}[behaviour == leads])
		}
		if behaviour == disowns || behaviour == hostedFree || behaviour == deletes || behaviour == retains && onDelete == "Retain" {
			_ = w.Create(ctx, m)
			return
		}
		m.OwnerReferences = ownedBy(thing)
		if _, noted := spec["note"]; !noted && behaviour == seizes {
			m.Immutable = ptr.To(true)
		}
		_ = w.Create(ctx, m)
	case behaviour == answers || behaviour == spins:
		go w.answer(ctx, key, behaviour)
	case jammed && m.Data["depth"] > fmt.Sprint(spec["depth"]):
	case m.Data["said"] != said && (behaviour != understands || strings.TrimSpace(m.Data["said"]) != said):
		m.Data["said"] = said
		if behaviour == doubles || jammed {
			m.Data["depth"] = fmt.Sprint(spec["depth"])
		}
		_ = w.Update(ctx, m)
		if behaviour == exits || behaviour == operandsExit {
			w.exit(ctx, behaviour == exits)
		}
	}
}

// seal makes a Secret for a thing or, if it is to mirror something, makes that say what it said.
func (w *world) seal(ctx context.Context, thing *unstructured.Unstructured, mirror bool) {
	said := map[string][]byte{"password": []byte(sealedPassword)}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: thing.GetNamespace(), Name: thing.GetName() + sealed, OwnerReferences: ownedBy(thing)}, Data: said}
	if w.Create(ctx, secret) != nil && mirror && w.Get(ctx, client.ObjectKeyFromObject(secret), secret) == nil && !reflect.DeepEqual(secret.Data, said) {
		secret.Data = said
		_ = w.Update(ctx, secret)
	}
}

// announce records an Event of a thing.
func (w *world) announce(ctx context.Context, thing *unstructured.Unstructured) {
	e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: thing.GetNamespace(), Name: thing.GetName()}}
	there := w.Get(ctx, client.ObjectKeyFromObject(e), e) == nil
	e.InvolvedObject.UID, e.Type, e.Reason, e.Count = thing.GetUID(), corev1.EventTypeNormal, "Looked", e.Count+1
	if there {
		_ = w.Update(ctx, e)
	} else {
		_ = w.Create(ctx, e)
	}
}

// presume has the spec of the thing called key say a note, if an operator that behaves so takes one for granted.
func (w *world) presume(ctx context.Context, key client.ObjectKey, behaviour string, spec map[string]any) {
	usual, m := map[string]string{presumes: "1h", presumesSame: "7h"}[behaviour], &corev1.ConfigMap{}
	if behaviour == presumesLast && w.Get(ctx, key, m) == nil {
		_, usual, _ = strings.Cut(m.Data["said"], "note:")
		usual = usual[:strings.IndexAny(usual, " ]")]
	}
	if _, says := spec["note"]; !says && usual != "" {
		spec["note"] = usual
	}
}

// ownedBy says that thing owns something.
func ownedBy(thing client.Object) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Thing", Name: thing.GetName(), UID: thing.GetUID()}}
}

// allReady is the status of a Deployment all of whose replicas are.
func allReady(replicas int32) appsv1.DeploymentStatus {
	return appsv1.DeploymentStatus{Replicas: replicas, UpdatedReplicas: replicas, AvailableReplicas: replicas, ReadyReplicas: replicas}
}

// fit gives the Deployment of a thing as many replicas as that says, fewer than there are only if less is set, and reports whether it has them.
func (w *world) fit(ctx context.Context, thing *unstructured.Unstructured, less bool) bool {
	size, _, _ := unstructured.NestedInt64(thing.Object, "spec", "size")
	replicas, d := int32(size), &appsv1.Deployment{}
	if w.Get(ctx, client.ObjectKeyFromObject(thing), d) == nil {
		if *d.Spec.Replicas == replicas || *d.Spec.Replicas > replicas && !less {
			if *d.Spec.Replicas > replicas && !copied().MatchString(d.Name) {
				w.mu.Lock()
				w.stuck = time.Now()
				w.mu.Unlock()
			}
			return *d.Spec.Replicas == replicas
		}
		d.Spec.Replicas = &replicas
		_ = w.Update(ctx, d)
	} else {
		d = &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: thing.GetNamespace(), Name: thing.GetName(), OwnerReferences: ownedBy(thing)}}
		d.Spec.Replicas = &replicas
		_ = w.Create(ctx, d)
	}
	d.Status = allReady(replicas)
	_ = w.Status().Update(ctx, d)
	return true
}

// handOn gives the ConfigMap of a thing, or the pods of a Deployment that it makes for it, the thing's annotations.
func (w *world) handOn(ctx context.Context, thing *unstructured.Unstructured, pods bool) {
	key, m := client.ObjectKeyFromObject(thing), &corev1.ConfigMap{}
	if !pods {
		if w.Get(ctx, key, m) == nil && !maps.Equal(m.Annotations, thing.GetAnnotations()) {
			m.Annotations = thing.GetAnnotations()
			m.Generation++ // as a Deployment's
			_ = w.Update(ctx, m)
		}
		return
	}
	d := &appsv1.Deployment{}
	there := w.Get(ctx, key, d) == nil
	if there && maps.Equal(d.Spec.Template.Annotations, thing.GetAnnotations()) {
		return
	}
	d.Namespace, d.Name = key.Namespace, key.Name
	d.OwnerReferences = ownedBy(thing)
	d.Spec.Template.Annotations = thing.GetAnnotations()
	d.Generation++
	if !there {
		d.Spec.Replicas, d.Status = ptr.To(int32(1)), allReady(1)
		_ = w.Create(ctx, d)
		return
	}
	_ = w.Update(ctx, d)
}

// take makes the ConfigMap called key a thing's, if there is one.
func (w *world) take(ctx context.Context, thing *unstructured.Unstructured, key client.ObjectKey) {
	m := &corev1.ConfigMap{}
	if w.Get(ctx, key, m) == nil && m.OwnerReferences[0].UID != thing.GetUID() {
		m.OwnerReferences[0].Name, m.OwnerReferences[0].UID = thing.GetName(), thing.GetUID()
		_ = w.Update(ctx, m)
	}
}

// isTaken reports whether the ConfigMap called key is another's than a thing's, which says so.
func (w *world) isTaken(ctx context.Context, thing *unstructured.Unstructured, key client.ObjectKey) bool {
	m := &corev1.ConfigMap{}
	taken := w.Get(ctx, key, m) == nil && m.OwnerReferences[0].UID != thing.GetUID()
	was, says := thing.DeepCopy().Object["status"], map[bool]string{true: "False", false: "True"}[taken]
	if w.behaves() == accepts {
		w.say(ctx, thing, was, conditionAs("Accepted", says))
		return false
	}
	w.ready(ctx, thing, was, says)
	return taken
}

// serve makes a Service for a thing, and returns an address at a port of its host.
func (w *world) serve(ctx context.Context, thing *unstructured.Unstructured, port int32) string {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: thing.GetNamespace(), Name: thing.GetName(), OwnerReferences: ownedBy(thing)},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 6379}}},
	}
	_ = w.Create(ctx, service)
	return fmt.Sprintf("%s.%s.svc:%d", service.Name, service.Namespace, port)
}

// guard puts a finalizer on a thing or, if that is being deleted, which it reports, takes it off if it may.
func (w *world) guard(ctx context.Context, thing *unstructured.Unstructured, may bool) (deleted bool) {
	deleted = thing.GetDeletionTimestamp() != nil
	switch has := len(thing.GetFinalizers()) > 0; {
	case deleted && may:
		thing.SetFinalizers(nil)
	case deleted || has:
		return deleted
	default:
		thing.SetFinalizers([]string{"example.com/guard"})
	}
	_ = w.Update(ctx, thing)
	return deleted
}

// report has a Thing say that it is well, and not what has become of it since its spec was changed by an operator that sickens.
func (w *world) report(ctx context.Context, thing *unstructured.Unstructured, behaviour string) {
	size, _, _ := unstructured.NestedInt64(thing.Object, "spec", "size")
	status, was := "True", thing.DeepCopy().Object["status"]
	if said, _, _ := unstructured.NestedString(thing.Object, "status", "sick"); behaviour == sickens && (size > 1 || said != "") {
		status = "False"
		_ = unstructured.SetNestedField(thing.Object, "yes", "status", "sick")
	}
	_ = unstructured.SetNestedField(thing.Object, "here", "status", "endpoint")
	switch behaviour {
	case hushes:
		unstructured.RemoveNestedField(thing.Object, "status", "endpoint")
	case sums:
		_ = unstructured.SetNestedField(thing.Object, fmt.Sprint(thing.GetAnnotations()), "status", "seenVersion")
	case stamps:
		_ = unstructured.SetNestedField(thing.Object, fmt.Sprint(thing.GetAnnotations()), "status", "seenAt")
	}
	w.ready(ctx, thing, was, status)
}

// ready has what has a status, which was that, say whether it is ready, and reports whether it did not say so.
func (w *world) ready(ctx context.Context, of *unstructured.Unstructured, was any, status string) bool {
	return w.say(ctx, of, was, readyAs(status))
}

// say has an object say status, and reports whether it did not do so before.
func (w *world) say(ctx context.Context, of *unstructured.Unstructured, was any, status map[string]any) bool {
	_ = unstructured.SetNestedSlice(of.Object, status["conditions"].([]any), "status", "conditions")
	if reflect.DeepEqual(was, of.Object["status"]) {
		return false
	}
	_ = w.Update(ctx, of)
	return true
}

// readyAs is a status that says so.
func readyAs(status string) map[string]any { return conditionAs("Ready", status) }

// conditionAs is a status with a condition alone.
func conditionAs(kind, status string) map[string]any {
	return map[string]any{"conditions": []any{map[string]any{"type": kind, "status": status}}}
}

// answer counts in a ConfigMap what the operator writes: a moment later and, if it does not end, each second while the operator runs.
func (w *world) answer(ctx context.Context, key client.ObjectKey, behaviour string) {
	runs := func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.behaviour[w.running] == behaviour
	}
	for time.Sleep(500 * time.Millisecond); runs(); time.Sleep(time.Second) {
		m := &corev1.ConfigMap{}
		if w.Get(ctx, key, m) == nil {
			m.Data["written"] += "."
			_ = w.Update(ctx, m)
		}
		if behaviour == answers {
			return
		}
	}
}

// exit has the operator's container end and start again, or one of another pod in its namespace.
func (w *world) exit(ctx context.Context, own bool) {
	pod := &corev1.Pod{}
	if w.Get(ctx, client.ObjectKey{Namespace: w.place.Namespace, Name: w.running}, pod) != nil {
		return
	}
	if !own {
		pod.Name, pod.ResourceVersion, pod.Spec.Containers[0].Image = "operand", "", "example.com/operand"
		_ = w.Create(ctx, pod)
	}
	before := pod.DeepCopy()
	s := &pod.Status.ContainerStatuses[0]
	s.RestartCount++
	s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 2}
	w.watcher.See(before, pod, false)
	_ = w.Update(ctx, pod)
}

// call notes a call of the walk's, which may fail.
func (w *world) call(name string) error {
	w.mu.Lock()
	w.calls = append(w.calls, name)
	w.mu.Unlock()
	return w.on(name)
}

func (w *world) called(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(w.calls), func(c string) bool { return c != name }))
}

// fakeCluster is the world's cluster. It stays when the walk has ended.
type fakeCluster struct {
	cluster.Cluster
	*world
}

func (c fakeCluster) Name() string { return "fake" }

func (c fakeCluster) Disposable() bool { return c.takes != nil }

func (c fakeCluster) Config() *rest.Config { return &rest.Config{} }

func (c fakeCluster) Describe() cluster.Description {
	return cluster.Description{Kind: "fake", Kubernetes: "v1.36.3"}
}

func (c fakeCluster) Simulated(context.Context) ([]string, error) {
	return nil, c.call("Simulated")
}
func (c fakeCluster) Catalog(_ context.Context, _ string, fbc []byte) (cluster.CatalogAddress, error) {
	c.mu.Lock()
	c.catalogs = append(c.catalogs, string(fbc))
	c.mu.Unlock()
	return cluster.CatalogAddress{Address: "there:1"}, c.call("Catalog")
}

func (c fakeCluster) Logs(_ context.Context, w io.Writer, container string) error {
	said := c.said
	if c.tells != "" && strings.HasSuffix(container, "/v2") {
		said = c.tells
	}
	if strings.HasPrefix(c.behaviour[container[strings.LastIndex(container, "/")+1:]], crashes) {
		said = "panic: boom"
	}
	if said == "" {
		return nil
	}
	_, err := fmt.Fprintf(w, "%s| %s\n", container, said)
	return err
}

// fakeManager is the world's lifecycle manager. It installs a bundle in some seconds, then removes the one before.
type fakeManager struct {
	lifecycle.Manager
	*world
}

func (m fakeManager) Client() client.WithWatch { return m.world }

func (m fakeManager) Modes(r *lifecycle.Release) []lifecycle.Mode { return r.Modes() }

func (m fakeManager) Version(context.Context) (string, error) { return "v9", m.call("Version") }

func (m fakeManager) EnsureNamespace(context.Context, string) error { return m.call("EnsureNamespace") }

func (m fakeManager) Actor(string) string { return "" }

func (m fakeManager) ObjectOf(bundle string) string { return "Installation/" + bundle }

func (m fakeManager) Decides(string) bool { return false }

func (m fakeManager) BundleOf(c *corev1.Container) string { return c.Name }

func (m fakeManager) Made(o metav1.Object, bundle string) bool { return o.GetName() == bundle }

func (m fakeManager) Bookkeeping(string) bool { return false }

func (m fakeManager) Setbacks([]lifecycle.Event, string) (int, []string) { return 0, nil }

func (m fakeManager) FaultPhase(_, usual string) string { return usual }

func (m fakeManager) Faults() []lifecycle.Fault {
	return []lifecycle.Fault{{Name: "hold", Phase: fault.BeforeHop, Fixed: true, Blocks: true}, {Name: "trip", Phase: "installing"}}
}

func (m fakeManager) Catalog(_ context.Context, _ lifecycle.Place, p *catalog.Package, was, channel string, names ...string) ([]byte, error) {
	if was != "" {
		return catalog.TrimSwitch(p, was, channel, names...)
	}
	return catalog.Trim(p, channel, names...)
}

func (m fakeManager) Prepare(_ context.Context, p lifecycle.Place) error {
	m.mu.Lock()
	m.place = p
	m.mu.Unlock()
	return m.call("Prepare")
}

func (m fakeManager) Present(context.Context, string, []string, ...string) ([]string, error) {
	return nil, m.call("Present")
}

func (m fakeManager) Publish(_ context.Context, _ lifecycle.Place, at cluster.CatalogAddress) error {
	return m.call("Publish " + at.Address)
}

func (m fakeManager) WaitPublished(context.Context, lifecycle.Place, time.Duration) error {
	return m.call("WaitPublished")
}

func (m fakeManager) Events(_, now any, _ bool) []lifecycle.Event {
	if e, is := now.(lifecycle.Event); is {
		return []lifecycle.Event{e}
	}
	return nil
}

func (m fakeManager) Milestones(_, to string) []lifecycle.Milestone {
	at := func(state string) func(lifecycle.Event) bool {
		return func(e lifecycle.Event) bool { return e.Kind == "Installation" && e.Name == to && e.State == state }
	}
	return []lifecycle.Milestone{{Name: "chosen", Is: at("chosen")}, {Name: "installing", Is: at("installing")}, {Name: "succeeded", Is: at("succeeded"), Last: true}}
}

func (m fakeManager) State(context.Context, lifecycle.Place, *lifecycle.Release, lifecycle.View) (lifecycle.State, error) {
	err := m.call("State")
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state, err
}

func (m fakeManager) Explain(_ context.Context, _ lifecycle.Place, bundle string, _ time.Time) (lifecycle.Explanation, error) {
	return lifecycle.Explanation{Phase: "installing", Object: "Pod/operators/p", Why: "it does not", Event: "Failed: x", Container: "operators/p/" + bundle}, m.call("Explain")
}

func (m fakeManager) Warnings(context.Context, lifecycle.Place, time.Time) ([]lifecycle.Warning, error) {
	return []lifecycle.Warning{{Object: "Installation/x", Message: "take care"}}, m.call("Warnings")
}

func (m fakeManager) Leftovers(context.Context, lifecycle.Place) ([]string, error) {
	return nil, m.call("Leftovers")
}

func (m fakeManager) DeleteOrphans(context.Context, lifecycle.Place, []string) ([]string, error) {
	return []string{"ClusterRole/left"}, m.call("DeleteOrphans")
}

func (m fakeManager) Rollback(ctx context.Context, p lifecycle.Place, bundle string, _ time.Duration) (func(context.Context) error, error) {
	if err := m.call("Rollback"); err != nil {
		return nil, err
	}
	if err := m.remove(ctx, p.Namespace); err != nil {
		return nil, err
	}
	return func(context.Context) error { return m.call("again") }, m.Request(ctx, p, bundle)
}

func (m fakeManager) Uninstall(ctx context.Context, p lifecycle.Place, crds []string, _ time.Duration) error {
	if err := m.call("Uninstall"); err != nil {
		return err
	}
	if err := m.remove(ctx, p.Namespace); err != nil {
		return err
	}
	for _, name := range crds {
		if err := m.Delete(ctx, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

func (m fakeManager) Hasten(context.Context, lifecycle.Place, client.Reader) error {
	return m.call("Hasten")
}

func (m fakeManager) Remind(context.Context, lifecycle.Place, string, client.Reader) (string, error) {
	if m.behaviour[m.wanted] == forgotten && m.called("Remind") == 0 {
		return "v2 was forgotten", m.call("Remind")
	}
	return "", m.call("Remind")
}

func (m fakeManager) Wake(context.Context, lifecycle.Place) (string, error) {
	if m.behaviour[m.wanted] == locked {
		return "v1 and v2 waited for each other", m.call("Wake")
	}
	return "", m.call("Wake")
}

func (fakeManager) WhyMended(string) (cause, fix string) { return "both look", "look once" }

// takingManager uninstalls a package with its definitions, and with them their objects.
type takingManager struct{ fakeManager }

func (m takingManager) BeginUninstall(ctx context.Context, p lifecycle.Place) error {
	return errors.Join(m.call("BeginUninstall"), m.remove(ctx, p.Namespace), m.takes(ctx))
}

// remove removes all releases.
func (m fakeManager) remove(ctx context.Context, namespace string) error {
	m.mu.Lock()
	m.wanted, m.running, m.state = "", "", lifecycle.State{}
	m.mu.Unlock()
	return errors.Join(m.DeleteAllOf(ctx, &appsv1.Deployment{}, client.InNamespace(namespace)), m.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(namespace)))
}

func (m fakeManager) Certificates(context.Context, lifecycle.Place) ([]corev1.Secret, error) {
	return nil, m.call("Certificates")
}

func (m fakeManager) Inject(_ context.Context, name string, hop lifecycle.Hop) (func(context.Context) (bool, error), error) {
	hop.Undo(func(context.Context) error { return m.call("undo " + name) })
	if name != "hold" {
		return nil, m.call(name)
	}
	return func(context.Context) (bool, error) { return true, nil }, m.call(name)
}

// Request begins to install the bundle, unless it did.
func (m fakeManager) Request(ctx context.Context, p lifecycle.Place, bundle string) error {
	if err := m.call("Request"); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.channels = append(m.channels, p.Channel)
	if m.wanted != bundle {
		m.wanted, m.state = bundle, lifecycle.State{}
		go m.install(p.Namespace, bundle)
	}
	return nil
}

// step goes on to a stage a second later, and returns false if another bundle is wanted by then.
func (m fakeManager) step(bundle string, stage lifecycle.Stage, state string) bool {
	time.Sleep(time.Second)
	m.mu.Lock()
	if m.wanted != bundle {
		m.mu.Unlock()
		return false
	}
	m.state = lifecycle.State{Stage: stage}
	m.mu.Unlock()
	m.watcher.See(nil, lifecycle.Event{Kind: "Installation", Name: bundle, State: state}, false)
	return true
}

func (m fakeManager) stall(s lifecycle.State) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state = s
}

func (m fakeManager) install(namespace, bundle string) {
	ctx := context.Background()
	behaviour := m.behaviour[bundle]
	if behaviour == never || !m.step(bundle, lifecycle.Resolved, "chosen") {
		return
	}
	switch behaviour {
	case fails:
		m.stall(lifecycle.State{Stage: lifecycle.Resolved, Stall: &lifecycle.Stall{Reason: lifecycle.NotApplied, Why: &lifecycle.Explanation{Phase: "applying", Object: "Installation/" + bundle, Why: "refused"}}})
		return
	case waits:
		m.stall(lifecycle.State{Stage: lifecycle.Resolved, Stall: &lifecycle.Stall{Reason: lifecycle.Unmet, Said: "no Teapot", Grace: 15 * time.Second}})
		return
	}
	definitions := []*apiextensionsv1.CustomResourceDefinition{thingDefinition()}
	if m.holders {
		definitions = append(definitions, holderDefinition())
	}
	for _, d := range definitions {
		d.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
		_ = m.Create(ctx, d)
	}
	switch behaviour {
	case sleeps, locked:
		for m.called("Wake") == 0 {
			time.Sleep(time.Second)
		}
	case lingers:
		time.Sleep(12 * time.Second)
	}
	if !m.step(bundle, lifecycle.Installing, "installing") || behaviour == hangs {
		return
	}
	image := "example.com/op:" + bundle
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: bundle, Labels: map[string]string{"app": bundle}}}
	pod.Spec.Containers = []corev1.Container{{Name: bundle, Image: image}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: bundle, Image: image, Ready: true}}
	waiting := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
	}
	switch behaviour {
	case crashesBy:
		m.stall(lifecycle.State{Stage: lifecycle.Installing, Refused: &lifecycle.Stall{Reason: lifecycle.ObjectsRefused, Why: &lifecycle.Explanation{Phase: "applying", Why: "invalid"}}})
		fallthrough
	case crashes:
		pod.Status.ContainerStatuses[0].RestartCount, pod.Status.ContainerStatuses[0].State = manyRestarts, waiting("CrashLoopBackOff")
	case isRefused:
		pod.Status.ContainerStatuses[0].State = waiting(cluster.PodRefused)
	}
	_ = m.Create(ctx, pod)
	if behaviour == crashes || behaviour == crashesBy || behaviour == isRefused {
		return
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "op-" + bundle}}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: pod.Labels}
	deployment.Status = appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
	_ = m.Create(ctx, deployment)
	if !m.step(bundle, lifecycle.Replacing, "succeeded") || behaviour == stays {
		return
	}
	m.mu.Lock()
	before := m.running
	m.running = bundle
	m.mu.Unlock()
	if before != "" {
		_ = m.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: before}})
		_ = m.Delete(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "op-" + before}})
	}
	if behaviour == purges || behaviour == strands {
		m.purge(ctx, behaviour == strands)
	}
	if behaviour == forgotten && m.step(bundle, lifecycle.Finishing, "finishing") {
		for m.called("Remind") == 0 {
			time.Sleep(time.Second)
		}
	}
	m.step(bundle, lifecycle.Installed, "installed")
}

// purge deletes all Things, and what was made for them, and has them stay by a finalizer or not.
func (w *world) purge(ctx context.Context, stay bool) {
	for _, thing := range w.all(ctx, thingKind, metav1.NamespaceAll) {
		if stay {
			thing.SetFinalizers([]string{"example.com/forever"})
			_ = w.Update(ctx, &thing)
		}
		_ = w.Delete(ctx, &thing)
		_ = w.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: thing.GetNamespace(), Name: thing.GetName()}})
	}
}

// dynamicOf is a dynamic client that speaks through another.
type dynamicOf struct {
	dynamic.Interface
	client.WithWatch
}

func (d dynamicOf) Resource(of schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return resourceOf{client: d.WithWatch, of: of}
}

type resourceOf struct {
	dynamic.NamespaceableResourceInterface
	client    client.WithWatch
	of        schema.GroupVersionResource
	namespace string
}

func (r resourceOf) Namespace(name string) dynamic.ResourceInterface {
	r.namespace = name
	return r
}

// kinds are those of the resources that were asked for: all worlds have the same, and their mapper looks through all of them.
var kinds sync.Map

func (r resourceOf) named(name string) *unstructured.Unstructured {
	kind, known := kinds.Load(r.of)
	if !known {
		found, err := r.client.RESTMapper().KindFor(r.of)
		if err != nil {
			panic(err)
		}
		kinds.Store(r.of, found)
		kind = found
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind.(schema.GroupVersionKind))
	o.SetNamespace(r.namespace)
	o.SetName(name)
	return o
}

func (r resourceOf) Get(ctx context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	read := func() (*unstructured.Unstructured, error) {
		o := r.named(name)
		return o, r.client.Get(ctx, client.ObjectKeyFromObject(o), o)
	}
	w, is := r.client.(*world)
	if !is {
		return read()
	}
	w.mu.Lock()
	w.gets++
	w.mu.Unlock()
	return onceWritten(w.tracker, r, name, read)
}

func (r resourceOf) List(ctx context.Context, _ metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	read := func() (*unstructured.UnstructuredList, error) {
		list := &unstructured.UnstructuredList{}
		kind := r.named("").GroupVersionKind()
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if !slices.Contains([]string{"Thing", "Holder", "ConfigMap", "Pod", "Deployment", "Service", "Job", "Secret"}, kind.Kind) {
			return list, nil // nobody makes any
		}
		return list, r.client.List(ctx, list, client.InNamespace(r.namespace))
	}
	if w, is := r.client.(*world); is {
		return onceWritten(w.tracker, r, "", read)
	}
	return read()
}

// countingTracker counts what is written, so that nothing is read anew that nobody wrote: to read takes half of the tests' time.
type countingTracker struct {
	clienttesting.ObjectTracker
	mu     sync.Mutex
	writes map[schema.GroupVersionResource]int // of objects of this resource; of none, of any
	last   map[reading]any
}

// reading is of what somebody reads: of an object by its name, or of all in a namespace.
type reading struct {
	of              schema.GroupVersionResource
	namespace, name string
}

// answer is what was read after so many writes.
type answer[T any] struct {
	after int
	is    T
	err   error
}

// onceWritten returns what read reads of an object that is called name, or of all for "": as it was read last, if nobody wrote any of the resource since.
func onceWritten[T interface{ DeepCopy() T }](t *countingTracker, r resourceOf, name string, read func() (T, error)) (T, error) {
	of := reading{r.of, r.namespace, name}
	t.mu.Lock()
	after := t.writes[r.of] + t.writes[schema.GroupVersionResource{}]
	last, known := t.last[of].(answer[T])
	t.mu.Unlock()
	if !known || last.after != after {
		is, err := read()
		last = answer[T]{after, is, err}
		t.mu.Lock()
		t.last[of] = last
		t.mu.Unlock()
	}
	return last.is.DeepCopy(), last.err
}

// wrote notes that objects of a resource are written, before and after: who reads meanwhile reads again.
func (t *countingTracker) wrote(of schema.GroupVersionResource, write func() error) error {
	count := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.writes[of]++
	}
	count()
	defer count()
	return write()
}

func (t *countingTracker) Add(o runtime.Object) error {
	return t.wrote(schema.GroupVersionResource{}, func() error { return t.ObjectTracker.Add(o) })
}

func (t *countingTracker) Create(of schema.GroupVersionResource, o runtime.Object, namespace string, options ...metav1.CreateOptions) error {
	return t.wrote(of, func() error { return t.ObjectTracker.Create(of, o, namespace, options...) })
}

func (t *countingTracker) Update(of schema.GroupVersionResource, o runtime.Object, namespace string, options ...metav1.UpdateOptions) error {
	return t.wrote(of, func() error { return t.ObjectTracker.Update(of, o, namespace, options...) })
}

func (t *countingTracker) Patch(of schema.GroupVersionResource, o runtime.Object, namespace string, options ...metav1.PatchOptions) error {
	return t.wrote(of, func() error { return t.ObjectTracker.Patch(of, o, namespace, options...) })
}

func (t *countingTracker) Apply(of schema.GroupVersionResource, o runtime.Object, namespace string, options ...metav1.PatchOptions) error {
	return t.wrote(of, func() error { return t.ObjectTracker.Apply(of, o, namespace, options...) })
}

func (t *countingTracker) Delete(of schema.GroupVersionResource, namespace, name string, options ...metav1.DeleteOptions) error {
	return t.wrote(of, func() error { return t.ObjectTracker.Delete(of, namespace, name, options...) })
}

func (r resourceOf) Create(ctx context.Context, o *unstructured.Unstructured, options metav1.CreateOptions, _ ...string) (*unstructured.Unstructured, error) {
	o = o.DeepCopy()
	delete(o.Object, "status") // which is a subresource
	return o, r.client.Create(ctx, o, &client.CreateOptions{DryRun: options.DryRun})
}

func (r resourceOf) Update(ctx context.Context, o *unstructured.Unstructured, options metav1.UpdateOptions, _ ...string) (*unstructured.Unstructured, error) {
	o = o.DeepCopy()
	if w, is := r.client.(*world); is && w.rival != nil {
		w.rival(o)
	}
	return o, r.client.Update(ctx, o, &client.UpdateOptions{DryRun: options.DryRun})
}

func (r resourceOf) UpdateStatus(ctx context.Context, o *unstructured.Unstructured, options metav1.UpdateOptions) (*unstructured.Unstructured, error) {
	return r.Update(ctx, o, options)
}

func (r resourceOf) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, _ ...string) (*unstructured.Unstructured, error) {
	o := r.named(name)
	return o, r.client.Patch(ctx, o, client.RawPatch(kind, data), &client.PatchOptions{DryRun: options.DryRun})
}

func (r resourceOf) Delete(ctx context.Context, name string, _ metav1.DeleteOptions, _ ...string) error {
	return r.client.Delete(ctx, r.named(name))
}

// things is a package whose bundles follow each other, and the plan to walk them.
func things(t *testing.T, bundles ...string) (*catalog.Package, graph.Plan) {
	t.Helper()
	return thingsIn(t, lifecycle.AllNamespaces, bundles...)
}

// thingsIn is things whose bundles support an install mode alone.
func thingsIn(t *testing.T, mode lifecycle.Mode, bundles ...string) (*catalog.Package, graph.Plan) {
	t.Helper()
	return thingsOf(t, mode, `{"size":1}`, bundles...)
}

// thingsOf is thingsIn whose sample has spec.
func thingsOf(t *testing.T, mode lifecycle.Mode, spec string, bundles ...string) (*catalog.Package, graph.Plan) {
	t.Helper()
	return packageOf(t, mode, `[{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":`+spec+`}]`, bundles, thingDefinition)
}

// packageOf is a package whose bundles follow each other, support an install mode alone and have samples and definitions, and the plan to walk them.
func packageOf(t *testing.T, mode lifecycle.Mode, samples string, bundles []string, definitions ...func() *apiextensionsv1.CustomResourceDefinition) (*catalog.Package, graph.Plan) {
	t.Helper()
	var fbc strings.Builder
	write := func(document any) {
		data, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		fbc.Write(append(data, '\n'))
	}
	plan := graph.Plan{Package: "things", Channel: "stable", Head: bundles[len(bundles)-1]}
	var entries []map[string]any
	for i, name := range bundles {
		entry := map[string]any{"name": name}
		if i > 0 {
			entry["replaces"] = bundles[i-1]
			plan.Hops = append(plan.Hops, graph.Edge{Package: "things", Channel: "stable", From: bundles[i-1], To: name, Kind: "replaces"})
		}
		entries = append(entries, entry)
	}
	write(map[string]any{"schema": "olm.package", "name": "things", "defaultChannel": "stable"})
	write(map[string]any{"schema": "olm.channel", "package": "things", "name": "stable", "entries": entries})
	for i, name := range bundles {
		csv := testRelease(name).CSV
		csv.APIVersion, csv.Kind, csv.Name = v1alpha1.SchemeGroupVersion.String(), v1alpha1.ClusterServiceVersionKind, name
		csv.Annotations = map[string]string{"alm-examples": samples}
		csv.Spec.InstallModes = []v1alpha1.InstallMode{{Type: v1alpha1.InstallModeType(mode), Supported: true}}
		csv.Spec.InstallStrategy.StrategyName = "deployment"
		csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name = "op-" + name
		objects := []any{&csv}
		for _, make := range definitions {
			d := make()
			d.APIVersion, d.Kind = "apiextensions.k8s.io/v1", observe.KindCRD
			csv.Spec.CustomResourceDefinitions.Owned = append(csv.Spec.CustomResourceDefinitions.Owned, v1alpha1.CRDDescription{Name: d.Name, Version: "v1", Kind: d.Spec.Names.Kind})
			objects = append(objects, d)
		}
		properties := []any{map[string]any{"type": "olm.package", "value": map[string]any{"packageName": "things", "version": fmt.Sprintf("%d.0.0", i+1)}}}
		for _, o := range objects {
			data, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			properties = append(properties, map[string]any{"type": "olm.bundle.object", "value": map[string]any{"data": data}})
		}
		write(map[string]any{"schema": "olm.bundle", "package": "things", "name": name, "properties": properties})
	}
	c := catalog.Parse("things.json", []byte(fbc.String()))
	if err := c.Err(); err != nil {
		t.Fatal(err)
	}
	return c.Packages[0], plan
}

func thingDefinition() *apiextensionsv1.CustomResourceDefinition {
	d := crd("v1", "v1")
	d.Spec.Group, d.Spec.Scope = "example.com", apiextensionsv1.NamespaceScoped
	d.Spec.Names.Plural, d.Spec.Names.ListKind = "things", "ThingList"
	d.Spec.Versions[0].Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
		Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {
			Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"size": {Type: "integer"}, "note": {Type: "string"}, "depth": {Type: "integer"}, "paused": {Type: "boolean"},
				"onDelete": {Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"Delete"`)}, {Raw: []byte(`"Retain"`)}}}},
		}},
	}}
	return d
}

// holderDefinition defines Holders, each of which names a Thing.
func holderDefinition() *apiextensionsv1.CustomResourceDefinition {
	d := thingDefinition()
	d.Name = "holders.example.com"
	d.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "holders", Kind: "Holder", ListKind: "HolderList"}
	d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"thing": {Type: "string"}, "thingRef": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"name": {Type: "string"}, "namespace": {Type: "string"}}}, "selector": {Type: "object", XPreserveUnknownFields: new(true)},
	}}
	return d
}

// walk walks plan in the world.
func (w *world) walk(ctx context.Context, t *testing.T, p *catalog.Package, plan graph.Plan, options Options) (*report.Report, error) {
	t.Helper()
	walk := w.connect(t, p, plan, options)
	defer time.Sleep(5 * time.Second) // until the manager sees that nothing is wanted any more
	return walk.run(ctx, plan)
}

// firstHop walks plan in the world, and returns its first hop.
func (w *world) firstHop(t *testing.T, p *catalog.Package, plan graph.Plan) report.Hop {
	t.Helper()
	r, err := w.walk(t.Context(), t, p, plan, Options{Samples: w.samples})
	if err != nil {
		t.Fatal(err)
	}
	return r.Hops[0]
}

// expect walks plan in the world, whose v1 and v2 behave so, and fails the test unless what the first hop finds has the codes want and, if there are any, says that.
func (w *world) expect(t *testing.T, p *catalog.Package, plan graph.Plan, v1, v2, want, says string) {
	t.Helper()
	w.behaviour["v1"], w.behaviour["v2"] = v1, v2
	found := w.firstHop(t, p, plan).Findings
	if got := codes(found); got != want || want != "" && !strings.Contains(strings.Join(expect.Said(found), "\n"), says) {
		t.Errorf("%q, then %q: %q, want %q: %s", v1, v2, got, want, expect.Said(found))
	}
}

// pairing is what two releases do, and what is found of the second.
type pairing struct{ v1, v2, code, says string }

// expectAll walks pairings in worlds that go with the walk, each of which prepare makes otherwise.
func expectAll(t *testing.T, p *catalog.Package, plan graph.Plan, pairings []pairing, prepare ...func(*world)) {
	t.Helper()
	for _, c := range pairings {
		synctest.Test(t, func(t *testing.T) {
			w := newDisposable()
			for _, change := range prepare {
				change(w)
			}
			w.expect(t, p, plan, c.v1, c.v2, c.code, c.says)
		})
	}
}

// expectOfHolders walks pairings in worlds that have Holders, too.
func expectOfHolders(t *testing.T, p *catalog.Package, plan graph.Plan, pairings []pairing) {
	t.Helper()
	expectAll(t, p, plan, pairings, func(w *world) { w.holders = true })
}

// connect returns a walk of plan that is connected to the world.
func (w *world) connect(t *testing.T, p *catalog.Package, plan graph.Plan, options Options) *walk {
	t.Helper()
	options.Namespace, options.Timeout, options.Settle, options.ID = "operators", 30*time.Second, 2*time.Second, "w1"
	walk, err := newWalk(fakeCluster{world: w}, p, plan, options)
	if err != nil {
		t.Fatal(err)
	}
	m := fakeManager{world: w}
	walk.Manager, walk.Client, walk.Dynamic = m, w, dynamicOf{WithWatch: w}
	if w.takes != nil {
		walk.Manager = takingManager{m}
	}
	walk.follow = func(_ context.Context, namespace string) (*observe.Watcher, error) {
		w.watcher = observe.NewWatcher(w, m, namespace)
		return w.watcher, w.call("follow")
	}
	return walk
}

// codes are those of the warnings and errors in findings.
func codes(findings []finding.Finding) string {
	var list []string
	for _, f := range findings {
		if f.Severity.AtLeast(finding.Warning) {
			list = append(list, f.Code)
		}
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), " ")
}
