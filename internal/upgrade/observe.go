package upgrade

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// probe is one thing that an observer does over and over.
type probe struct {
	Object    *object // nil for the control: a read that no upgrade touches
	Version   string
	Operation string
	List      bool // read all objects of the kind in the object's namespace at once, as informers do
}

// control is the operation of the control probe.
const control = "control"

var controlResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// observer reads and writes objects all the time and notes how each attempt went.
type observer struct {
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu       sync.Mutex
	attempts []attempt
	last     map[probe]attempt
}

// An observer tries each probe every pace, or slower if that would make more than rate attempts a second in all: it must
// not become the load under which the cluster slows down. An attempt that takes longer than limit has failed; lists get
// more time, for after a CRD was written they wait until the API server has filled its cache again.
const (
	pace      = 100 * time.Millisecond
	rate      = 100
	limit     = 2 * time.Second
	listLimit = 5 * time.Second
	listSize  = 20 // objects of each list
)

// observe starts an observer of probes.
func observe(ctx context.Context, client dynamic.Interface, probes []probe) *observer {
	ctx, cancel := context.WithCancel(ctx)
	o := &observer{cancel: cancel, last: map[probe]attempt{}}
	every := max(pace, time.Duration(len(probes))*time.Second/rate)
	for _, p := range probes {
		o.done.Go(func() { o.run(ctx, client, p, every) })
	}
	o.done.Go(func() { o.run(ctx, client, probe{Operation: control}, pace) })
	return o
}

// stop ends the observer and returns what it noted.
func (o *observer) stop() []attempt {
	o.cancel()
	o.done.Wait()
	return o.attempts
}

// failing names the probes whose last attempt failed although the version is served.
func (o *observer) failing(isServed func(crd, version string) bool) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var names []string
	for p, a := range o.last {
		if a.Err != "" && p.Object != nil && isServed(a.CRD, a.Version) {
			names = append(names, fmt.Sprintf("%s of %s as %s: %s", p.Operation, a.Object, p.Version, a.Err))
		}
	}
	slices.Sort(names)
	return names
}

func (o *observer) run(ctx context.Context, client dynamic.Interface, p probe, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var n int64
	if p.Object != nil {
		n = p.Object.acked.Load()
	}
	for ctx.Err() == nil {
		n++
		a := p.try(ctx, client, n)
		if ctx.Err() == nil {
			o.mu.Lock()
			o.attempts = append(o.attempts, a)
			o.last[p] = a
			o.mu.Unlock()
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// try makes one attempt; n numbers a write.
func (p probe) try(ctx context.Context, client dynamic.Interface, n int64) attempt {
	longest := limit
	if p.List {
		longest = listLimit
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	if p.Operation == control {
		a := attempt{Start: time.Now(), Operation: control}
		_, err := client.Resource(controlResource).Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		if a.End = time.Now(); err != nil {
			a.Err = err.Error()
		}
		return a
	}
	a := attempt{Start: time.Now(), CRD: p.Object.CRD, Version: p.Version, Operation: p.Operation, Object: p.Object.String()}
	target := p.Object.at(client, p.Version)
	var wrong diffs
	var err error
	switch {
	case p.List:
		a.Object = "list of " + p.Object.Kind
		_, err = target.List(ctx, metav1.ListOptions{Limit: listSize})
	case p.Operation == read:
		got, e := target.Get(ctx, p.Object.Name, metav1.GetOptions{})
		if err = e; err == nil && p.Version == p.Object.Version {
			wrong = lost(content(p.Object.Author), content(got.Object))
		}
	default:
		got, e := target.Patch(ctx, p.Object.Name, types.MergePatchType, writePatch(n), metav1.PatchOptions{FieldManager: "olmkit"})
		switch {
		case apierrors.IsConflict(e):
			// Someone else wrote at the same time: neither an outage nor a success.
			got, e = target.Get(ctx, p.Object.Name, metav1.GetOptions{})
		case e == nil:
			p.Object.acked.Store(n)
		case ctx.Err() != nil:
			p.Object.late.Store(n, true)
		}
		if err = e; err == nil && p.Version == p.Object.Version {
			wrong = lost(content(p.Object.Author), content(got.Object))
		}
	}
	a.End = time.Now()
	if err != nil {
		a.Err = err.Error()
	}
	a.Wrong = wrong.String()
	return a
}

// probes lays out what to observe of objects while from is replaced by to: reads of the untouched objects in every
// version that either serves, lists of them, and writes of each version's twin.
func probes(objects []*object, from, to *release) []probe {
	var list []probe
	listed := map[string]bool{}
	for _, o := range objects {
		var versions []string
		for _, r := range []*release{from, to} {
			if d := r.CRD(o.CRD); d != nil {
				versions = append(versions, served(d)...)
			}
		}
		slices.Sort(versions)
		for _, version := range slices.Compact(versions) {
			if o.Written {
				if version == o.Version {
					list = append(list, probe{Object: o, Version: version, Operation: write})
				}
				continue
			}
			list = append(list, probe{Object: o, Version: version, Operation: read})
			key := o.CRD + " " + version + " " + o.Namespace
			if !listed[key] {
				listed[key] = true
				list = append(list, probe{Object: o, Version: version, Operation: read, List: true})
			}
		}
	}
	return list
}
