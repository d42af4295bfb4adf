package observe

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/olmkit/olmkit/internal/compare"
	"github.com/olmkit/olmkit/internal/definition"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/managerlog"
)

// probe is one thing that an observer does over and over.
type probe struct {
	Object    *Object // nil for the control: a read that no upgrade touches
	Version   string
	Operation string
	List      bool // read all objects of the kind in the object's namespace at once, as informers do
}

// Control is the operation of the control probe.
const Control = "control"

var controlResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// Probing reads and writes objects all the time and notes how each attempt went.
type Probing struct {
	cancel  context.CancelFunc
	done    sync.WaitGroup
	lenient atomic.Bool // an attempt may take as long as webhookTimeout

	mu       sync.Mutex
	attempts []Attempt
	last     map[probe]Attempt
}

// An observer tries each probe every pace, or slower if that would make more than rate attempts a second in all: it must
// not become the load under which the cluster slows down. Probes take turns, so that what befalls all of them is met by the next. An
// attempt that takes longer than limit has failed; lists get more time, for after a CRD was written they wait until the API server has
// filled its cache again.
const (
	Pace           = 100 * time.Millisecond
	rate           = 50
	ProbeLimit     = 2 * time.Second
	listLimit      = 5 * time.Second
	webhookTimeout = 30 * time.Second // as long as the API server waits for a webhook
	listSize       = 20               // objects of each list
)

// Start starts an observer of probes.
func Start(ctx context.Context, client dynamic.Interface, probes []probe) *Probing {
	ctx, cancel := context.WithCancel(ctx)
	o := &Probing{cancel: cancel, last: map[probe]Attempt{}}
	every := max(Pace, time.Duration(len(probes))*time.Second/rate)
	for i, p := range probes {
		o.done.Go(func() {
			select {
			case <-time.After(every * time.Duration(i) / time.Duration(len(probes))):
				o.run(ctx, client, p, every)
			case <-ctx.Done():
			}
		})
	}
	o.done.Go(func() { o.run(ctx, client, probe{Operation: Control}, Pace) })
	return o
}

// Stop ends the observer and returns what it noted.
func (o *Probing) Stop() []Attempt {
	o.cancel()
	o.done.Wait()
	return o.attempts
}

// failing returns the last attempts that failed although the version is served.
func (o *Probing) failing(isServed func(crd, version string) bool) []Attempt {
	o.mu.Lock()
	defer o.mu.Unlock()
	var list []Attempt
	for p, a := range o.last {
		if a.Err != "" && p.Object != nil && isServed(a.CRD, a.Version) {
			list = append(list, a)
		}
	}
	return list
}

func (o *Probing) run(ctx context.Context, client dynamic.Interface, p probe, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var n int64
	if p.Object != nil {
		n = p.Object.Acked.Load()
	}
	for ctx.Err() == nil {
		n++
		a, gone := p.try(ctx, client, n, o.lenient.Load())
		if ctx.Err() == nil {
			o.note(p, a, gone)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// note takes down how an attempt of p went. That its object is gone is no outage: the API server answers.
func (o *Probing) note(p probe, a Attempt, gone bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if gone {
		delete(o.last, p)
		return
	}
	o.attempts = append(o.attempts, a)
	o.last[p] = a
}

// try makes one attempt, and reports whether the object is gone; n numbers a write. A lenient one may take longer.
func (p probe) try(ctx context.Context, client dynamic.Interface, n int64, lenient bool) (_ Attempt, gone bool) {
	limit := ProbeLimit
	if p.List {
		limit = listLimit
	}
	longest := limit
	if lenient {
		longest = webhookTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	if p.Operation == Control {
		a := Attempt{Start: time.Now(), Operation: Control}
		_, err := client.Resource(controlResource).Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		if a.End = time.Now(); err != nil {
			a.Err = managerlog.Cut(err.Error(), mostSaid)
		}
		return a, false
	}
	a := Attempt{Start: time.Now(), CRD: p.Object.CRD, Version: p.Version, Operation: p.Operation, Object: p.Object.String()}
	target := p.Object.At(client, p.Version)
	var wrong compare.Diffs
	var err error
	switch {
	case p.List:
		a.Object = "list of " + p.Object.Kind
		_, err = target.List(ctx, metav1.ListOptions{Limit: listSize})
	case p.Operation == Read:
		got, e := target.Get(ctx, p.Object.Name, metav1.GetOptions{})
		if err = e; err == nil && p.Version == p.Object.Version {
			wrong = compare.Lost(compare.Content(p.Object.Author), compare.Content(got.Object))
		}
	default:
		got, e := p.Object.writeTo(ctx, target, n)
		switch {
		case apierrors.IsConflict(e):
			// Someone else wrote at the same time: neither an outage nor a success.
			got, e = target.Get(ctx, p.Object.Name, metav1.GetOptions{})
		case e != nil && ctx.Err() != nil:
			p.Object.Late.Store(n, true)
		}
		if err = e; err == nil && p.Version == p.Object.Version {
			wrong = compare.Lost(compare.Content(p.Object.Author), compare.Content(got.Object))
		}
	}
	a.End = time.Now()
	if err != nil {
		a.Err = managerlog.Cut(err.Error(), mostSaid)
	}
	a.Wrong, a.Late = managerlog.Cut(wrong.String(), mostSaid), err == nil && a.End.Sub(a.Start) > limit
	return a, isGone(err, p.Object)
}

// mostSaid is how much is kept of what an attempt came to: there are many, and webhooks say what they like.
const mostSaid = 2 << 10

// isGone reports whether the API server's answer is that there is no o. It says the same, but without a name, of a version that it
// does not serve.
func isGone(err error, o *Object) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Name == o.Name
}

// Probes lays out what to observe of objects while from is replaced by to: reads of the untouched objects in every
// version that either serves, lists of them, and writes of each version's twin.
func Probes(objects []*Object, from, to *lifecycle.Release) []probe {
	var list []probe
	listed := map[string]bool{}
	for _, o := range objects {
		var versions []string
		for _, r := range []*lifecycle.Release{from, to} {
			if d := r.CRD(o.CRD); d != nil {
				versions = append(versions, definition.ServedVersions(d)...)
			}
		}
		slices.Sort(versions)
		for _, version := range slices.Compact(versions) {
			if o.Written {
				if version == o.Version {
					list = append(list, probe{Object: o, Version: version, Operation: Write})
				}
				continue
			}
			list = append(list, probe{Object: o, Version: version, Operation: Read})
			key := o.CRD + " " + version + " " + o.Namespace
			if !listed[key] {
				listed[key] = true
				list = append(list, probe{Object: o, Version: version, Operation: Read, List: true})
			}
		}
	}
	return list
}

// Attempt is one try of an observer to read or write one object in one version.
type Attempt struct {
	Start, End time.Time
	CRD        string
	Version    string
	Operation  string // read or write
	Object     string
	Err        string // the error's text; "" for success
	Wrong      string // it succeeded, and this was not as written
	Late       bool   // it succeeded, but took longer than attempts usually may
}

// OutOfTime reports whether all that an error's text says is that the time was up.
func OutOfTime(said string) bool { return strings.Contains(said, context.DeadlineExceeded.Error()) }

// The operations of observers.
const (
	Read  = "read"
	Write = "write"
)

// Latest returns the later of two moments.
func Latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Order compares what a and b tried, as cmp.Compare does, and not how it went.
func (a Attempt) Order(b Attempt) int {
	return slices.Compare([]string{a.CRD, a.Version, a.Operation, a.Object}, []string{b.CRD, b.Version, b.Operation, b.Object})
}
