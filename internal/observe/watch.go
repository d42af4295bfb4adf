package observe

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/definition"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

// Watcher follows what the lifecycle manager and Kubernetes do on a cluster: it keeps their newest objects at hand and writes down what
// changed and when.
type Watcher struct {
	client.Reader
	namespace string // of the operator
	manager   lifecycle.Watched

	mu       sync.Mutex
	Timeline []lifecycle.Event
	crds     map[string]*lifecycle.Definition
	served   map[string]map[string]bool // whether a Service's slices have endpoints that take requests, by Service and slice
	pods     map[string]OperatorPod     // of the operator's namespace, by name, also those that are gone
	changed  chan struct{}              // closed and replaced at each change
	told     func(lifecycle.Event)      // called for each event; may be nil

	secrets secrets
	lasting sync.Map // by name of a Lease: for how long it keeps others from it, in seconds, as whoever held it last said
	between sync.Map // by CRD: its objects that belong to others ([]owned), as they were read last
	recent  *recent  // lists of what operators make
}

// NewWatcher returns a watcher of the manager's objects and of others in namespace, that reads the newest from c.
func NewWatcher(c client.Reader, manager lifecycle.Watched, namespace string) *Watcher {
	return &Watcher{
		Reader: c, namespace: namespace, manager: manager,
		crds: map[string]*lifecycle.Definition{}, served: map[string]map[string]bool{}, pods: map[string]OperatorPod{}, changed: make(chan struct{}),
	}
}

// Watch starts a watcher that runs until ctx is done. Of namespaced objects it sees those in namespace.
func Watch(ctx context.Context, config *rest.Config, manager lifecycle.Manager, namespace string) (*Watcher, error) {
	kinds := append(manager.Kinds(),
		&appsv1.Deployment{}, &appsv1.ReplicaSet{}, &corev1.Pod{}, &coordinationv1.Lease{}, &corev1.ConfigMap{},
		&corev1.Endpoints{}, //nolint:staticcheck // old operators lock them
	)
	here := map[client.Object]cache.ByObject{}
	for _, kind := range kinds {
		namespaced, err := manager.Client().IsObjectNamespaced(kind)
		if err != nil {
			return nil, fmt.Errorf("watch %T: %w", kind, err)
		}
		if namespaced {
			here[kind] = cache.ByObject{Namespaces: map[string]cache.Config{namespace: {}}}
		}
	}
	c, err := cache.New(config, cache.Options{Scheme: manager.Client().Scheme(), ByObject: here})
	if err != nil {
		return nil, fmt.Errorf("watch the cluster: %w", err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("watch the cluster: %w", err)
	}
	w := NewWatcher(c, manager, namespace)
	w.recent = newRecent(ctx, client)
	for _, kind := range append(manager.Kinds(),
		&appsv1.Deployment{}, &appsv1.ReplicaSet{}, &corev1.Pod{}, &apiextensionsv1.CustomResourceDefinition{},
		&discoveryv1.EndpointSlice{}, &coordinationv1.Lease{}, metadataOf("ConfigMap"), metadataOf("Endpoints"),
	) {
		informer, err := c.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watch %T: %w", kind, err)
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { w.See(nil, o, false) },
			UpdateFunc: func(o, n any) { w.See(o, n, false) },
			DeleteFunc: func(o any) { w.See(nil, o, true) },
		})
		if err != nil {
			return nil, fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	if !c.WaitForCacheSync(ctx) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("watch the cluster: %w", <-ended)
	}
	return w, nil
}

// metadataOf is a core object of kind of which only the metadata is wanted.
func metadataOf(kind string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kind}}
}

// See writes down what changed from before (nil if that is not known) to now.
func (w *Watcher) See(before, now any, gone bool) {
	if t, ok := now.(toolscache.DeletedFinalStateUnknown); ok {
		now = t.Obj
	}
	w.seeLease(now)
	events := changes(before, now, gone)
	if events == nil {
		events = w.manager.Events(before, now, gone)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, ok := now.(*corev1.Pod); ok {
		w.pods[p.Name] = operatorPodOf(w.manager, p)
	}
	at := time.Now()
	for _, e := range events {
		if e.Kind == KindCRD {
			known := w.crds[e.Name]
			if e.CRD != nil && e.CRD.Same(known) {
				continue
			}
			w.crds[e.Name] = e.CRD
		}
		if e.Kind == KindService && !w.serviceChanges(&e) {
			continue
		}
		e.At = at
		w.add(e)
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

// seeLease notes for how long o lasts, if it is a Lease that somebody holds: who releases one writes that it lasts for a second (k8s.io/client-go v0.36.3
// tools/leaderelection/leaderelection.go), although whoever is next looks as seldom as before.
func (w *Watcher) seeLease(o any) {
	if lease, is := o.(*coordinationv1.Lease); is && ptr.Deref(lease.Spec.HolderIdentity, "") != "" && lease.Spec.LeaseDurationSeconds != nil {
		w.lasting.Store(lease.Name, *lease.Spec.LeaseDurationSeconds)
	}
}

// serviceChanges makes e, which is of one of a Service's slices, one of the Service, and reports whether that changed: a
// Service has several slices where it has two families of addresses, or many endpoints.
func (w *Watcher) serviceChanges(e *lifecycle.Event) bool {
	slice := e.For
	e.For = ""
	known := w.served[e.Name]
	before, first := slices.Contains(slices.Collect(maps.Values(known)), true), known == nil
	if first {
		known = map[string]bool{}
		w.served[e.Name] = known
	}
	if known[slice] = e.State == StateReady; e.State == StateGone {
		delete(known, slice)
	}
	after := slices.Contains(slices.Collect(maps.Values(known)), true)
	switch {
	case after:
		e.State = StateReady
	case len(known) > 0:
		e.State = StateUnready
	default:
		delete(w.served, e.Name)
	}
	return first || before != after || len(known) == 0
}

func (w *Watcher) add(e lifecycle.Event) {
	w.Timeline = append(w.Timeline, e)
	if w.told != nil {
		w.told(e)
	}
}

// Mark writes down what the walk itself did.
func (w *Watcher) Mark(state string) time.Time { return w.MarkWhy(state, "") }

// MarkWhy writes down what the walk itself did, and why.
func (w *Watcher) MarkWhy(state, why string) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := lifecycle.Event{At: time.Now(), Kind: KindWalk, State: state, Reason: why}
	w.add(e)
	return e.At
}

// Tell has each event from now on passed to f, which must not block nor call the watcher.
func (w *Watcher) Tell(f func(lifecycle.Event)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = f
}

// Since returns the events from start on.
func (w *Watcher) Since(start time.Time) []lifecycle.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.Timeline, func(e lifecycle.Event) bool { return !e.At.Before(start) })
	if i < 0 {
		return nil
	}
	return slices.Clone(w.Timeline[i:])
}

// Definitions returns what the watcher knows of the cluster's definitions now, by name.
func (w *Watcher) Definitions() map[string]*lifecycle.Definition {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := make(map[string]*lifecycle.Definition, len(w.crds))
	for name, d := range w.crds {
		known[name] = d
	}
	return known
}

// OperatorPods returns the pods that were seen so far in the operator's namespace, by name.
func (w *Watcher) OperatorPods() map[string]OperatorPod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.pods)
}

// ErrTimeout is a condition's that did not come about in time.
var ErrTimeout = lifecycle.ErrTimeout

// Until waits until done says so, looking again whenever something changed. It returns ErrTimeout when limit has passed.
func (w *Watcher) Until(ctx context.Context, limit time.Duration, done func() (bool, error)) error {
	expired := time.NewTimer(limit)
	defer expired.Stop()
	// Conditions may rest on time, or on what the watcher does not watch.
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for {
		w.mu.Lock()
		changed := w.changed
		w.mu.Unlock()
		ok, err := done()
		if ok || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-again.C:
		case <-expired.C:
			return ErrTimeout
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// AtMost waits until done says so, or limit has passed.
func (w *Watcher) AtMost(ctx context.Context, limit time.Duration, done func() (bool, error)) error {
	if err := w.Until(ctx, limit, done); !errors.Is(err, ErrTimeout) {
		return err
	}
	return nil
}

// changes says what is worth writing down when an object of Kubernetes goes from before to now.
func changes(before, now any, gone bool) []lifecycle.Event {
	switch n := now.(type) {
	case *apiextensionsv1.CustomResourceDefinition:
		if gone {
			return []lifecycle.Event{{Kind: KindCRD, Name: n.Name, State: StateGone}}
		}
		return []lifecycle.Event{{Kind: KindCRD, Name: n.Name, State: "written", CRD: define(n)}}
	case *appsv1.Deployment:
		available := func(d *appsv1.Deployment) bool { return d.Status.AvailableReplicas > 0 }
		if b, ok := before.(*appsv1.Deployment); ok && available(b) == available(n) {
			return nil
		}
		return orGone(lifecycle.Event{Kind: kindDeployment, Name: n.Name, State: readiness(available(n))}, gone)
	case *appsv1.ReplicaSet:
		if before != nil {
			return nil
		}
		owner := ""
		if c := metav1.GetControllerOf(n); c != nil {
			owner = c.Name
		}
		return orGone(lifecycle.Event{Kind: KindRollout, Name: n.Name, State: StateCreated, For: owner}, gone)
	case *corev1.Pod:
		return podChanges(before, n, gone)
	case *discoveryv1.EndpointSlice:
		service := n.Labels[discoveryv1.LabelServiceName]
		b, ok := before.(*discoveryv1.EndpointSlice)
		if service == "" || ok && serves(b) == serves(n) && !gone {
			return nil
		}
		return orGone(lifecycle.Event{Kind: KindService, Name: n.Namespace + "/" + service, State: readiness(serves(n)), For: n.Name}, gone)
	case *coordinationv1.Lease:
		return lockChanges(KindLease, before, n, gone)
	case *metav1.PartialObjectMetadata:
		return lockChanges(n.Kind, before, n, gone)
	}
	return nil
}

// lockChanges says that a lock changed hands.
func lockChanges(kind string, before any, now metav1.Object, gone bool) []lifecycle.Event {
	holder, is := holderOf(now)
	if gone {
		holder = ""
	}
	if b, ok := before.(metav1.Object); ok {
		if was, _ := holderOf(b); was == holder && !gone {
			return nil
		}
	}
	if !is {
		return nil
	}
	return []lifecycle.Event{{Kind: kind, Name: now.GetName(), State: StateHeld, For: holder}}
}

func podChanges(before any, n *corev1.Pod, gone bool) []lifecycle.Event {
	var events []lifecycle.Event
	b, _ := before.(*corev1.Pod)
	for _, s := range slices.Concat(n.Status.InitContainerStatuses, n.Status.ContainerStatuses) {
		was := int32(0)
		if b != nil {
			for _, old := range slices.Concat(b.Status.InitContainerStatuses, b.Status.ContainerStatuses) {
				if old.Name == s.Name {
					was = old.RestartCount
				}
			}
		}
		if s.RestartCount > was && !gone {
			e := lifecycle.Event{Kind: KindPod, Name: n.Name + "/" + s.Name, State: StateRestarted, Reason: strconv.Itoa(int(s.RestartCount)) + " times"}
			if ended := s.LastTerminationState.Terminated; ended != nil {
				e.Reason += fmt.Sprintf(", last with exit code %d %s", ended.ExitCode, ended.Message)
			}
			e.Reason = strings.TrimSpace(e.Reason)
			events = append(events, e)
		}
	}
	switch {
	case gone:
		events = append(events, lifecycle.Event{Kind: KindPod, Name: n.Name, State: StateGone})
	case b == nil && !podReady(n):
		events = append(events, lifecycle.Event{Kind: KindPod, Name: n.Name, State: StateCreated})
	case b == nil || podReady(b) != podReady(n):
		events = append(events, lifecycle.Event{Kind: KindPod, Name: n.Name, State: readiness(podReady(n))})
	}
	return events
}

func podReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// serves reports whether a Service has an endpoint in s that takes requests.
func serves(s *discoveryv1.EndpointSlice) bool {
	return slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool { return e.Conditions.Ready == nil || *e.Conditions.Ready })
}

func readiness(is bool) string {
	if is {
		return StateReady
	}
	return StateUnready
}

func orGone(e lifecycle.Event, gone bool) []lifecycle.Event {
	if gone {
		e.State, e.Reason = StateGone, ""
	}
	return []lifecycle.Event{e}
}

// define extracts what decides how d's objects are served.
func define(d *apiextensionsv1.CustomResourceDefinition) *lifecycle.Definition {
	n := &lifecycle.Definition{
		Generation: d.Generation, Served: definition.ServedVersions(d), Storage: definition.StorageVersion(d), Stored: slices.Clone(d.Status.StoredVersions),
		Conversion: ConversionNone, Deleting: d.DeletionTimestamp != nil,
	}
	c := d.Spec.Conversion
	if c == nil || c.Strategy != apiextensionsv1.WebhookConverter {
		return n
	}
	n.Conversion = "elsewhere"
	if c.Webhook == nil || c.Webhook.ClientConfig == nil {
		return n
	}
	client := c.Webhook.ClientConfig
	if client.Service != nil {
		n.Conversion = client.Service.Namespace + "/" + client.Service.Name
		if client.Service.Path != nil {
			n.Conversion += *client.Service.Path
		}
	} else if client.URL != nil {
		n.Conversion = *client.URL
	}
	if len(client.CABundle) > 0 {
		sum := sha256.Sum256(client.CABundle)
		n.CA = hex.EncodeToString(sum[:4])
	}
	return n
}
