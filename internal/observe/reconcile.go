package observe

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// How long an operator has to act on an object: by itself once its pod leads, and on a change that asks for it.
const (
	actLimit   = 1500 * time.Millisecond
	NudgeLimit = 15 * time.Second
)

// resource is an object as an audit log names it.
type resource struct{ Group, Resource, Namespace, Name string }

// actors are whose requests count as the operator's: its service accounts and, where the log tells, its pods.
type actors struct {
	Accounts []string // full user names
	Pods     []string
}

// podNameKey is where a token that is bound to a pod tells the pod (k8s.io/apiserver v0.36.3
// pkg/authentication/serviceaccount/util.go, PodNameKey).
const podNameKey = "authentication.kubernetes.io/pod-name"

// asked reports whether e is a request of one of the actors.
func (a actors) asked(e auditv1.Event) bool {
	if !slices.Contains(a.Accounts, e.User.Username) {
		return false
	}
	pod := e.User.Extra[podNameKey]
	return len(pod) == 0 || slices.Contains(a.Pods, pod[0])
}

// signs tells, by object, the first successful write of the actors to the object, its status, its operands or its events
// in log. targets names the object that a resource belongs to.
func signs(log []auditv1.Event, a actors, targets map[resource]string) map[string]string {
	found := map[string]string{}
	for _, e := range log {
		r := e.ObjectRef
		if r == nil || !slices.Contains([]string{"create", "update", "patch", "delete"}, e.Verb) || !a.asked(e) ||
			e.ResponseStatus == nil || e.ResponseStatus.Code >= 300 {
			continue
		}
		of := targets[resource{r.APIGroup, r.Resource, r.Namespace, r.Name}]
		if r.Resource == "events" {
			of = eventOf(targets, r)
		}
		if of != "" && found[of] == "" {
			found[of] = strings.TrimSuffix(e.Verb+" of "+r.Resource+"/"+r.Name+" "+r.Subresource, " ")
		}
	}
	return found
}

// eventOf returns the object that the event r is about: client-go names events after the object, with "." and a number.
func eventOf(targets map[resource]string, r *auditv1.ObjectReference) string {
	for t, of := range targets {
		if strings.HasPrefix(r.Name, t.Name+".") && (t.Namespace == r.Namespace || t.Namespace == "" && r.Namespace == metav1.NamespaceDefault) {
			return of
		}
	}
	return ""
}

// actorsOf returns whose requests are those of r's operator now.
func (c *Cluster) actorsOf(ctx context.Context, r *lifecycle.Release) (actors, error) {
	pods, err := c.podsOf(ctx, r)
	return actors{Accounts: r.Accounts(c.Place.Namespace), Pods: pods}, err
}

// targets returns the walk's objects and their operands as an audit log names them, each with the object that it is of.
func (c *Cluster) targets(ctx context.Context) (map[resource]string, error) {
	operands, err := c.RecentOperands(ctx)
	if err != nil {
		return nil, err
	}
	list := map[resource]string{}
	for _, o := range c.Objects {
		list[resource{o.Resource.Group, o.Resource.Resource, o.Namespace, o.Name}] = o.String()
	}
	for _, o := range operands {
		of := OperandResource(o.Kind)
		list[resource{of.Group, of.Resource, o.Namespace, o.Name}] = o.Of
	}
	return list, nil
}

// acted tells, by object, what r's operator wrote for it since the given time. Where the cluster keeps no audit log, it is
// what differs from before: whoever wrote it.
func (c *Cluster) acted(ctx context.Context, r *lifecycle.Release, since time.Time, before Snapshot) (map[string]string, error) {
	auditor, ok := c.Provider.(Auditor)
	if !ok {
		return c.changedSince(ctx, before)
	}
	a, err := c.actorsOf(ctx, r)
	if err != nil {
		return nil, err
	}
	targets, err := c.targets(ctx)
	if err != nil {
		return nil, err
	}
	log, err := auditor.Audit(ctx, since)
	if err != nil {
		return nil, fmt.Errorf("ask what the operator wrote: %w", err)
	}
	return signs(log, a, targets), nil
}

// changedSince names the objects of which something differs from before: status, finalizers, what was made for them, or their
// events.
func (c *Cluster) changedSince(ctx context.Context, before Snapshot) (map[string]string, error) {
	if before == nil {
		return nil, nil
	}
	after, err := c.RecentState(ctx)
	if err != nil {
		return nil, err
	}
	return after.since(before), nil
}

// Seen is what an operator writes of and for the walk's objects, and which object each thing is of.
type Seen struct {
	Snapshot
	Of       map[string]string
	Operands map[string]Operand // all there are, by name
}

// since tells, by object, what differs from before.
func (s Seen) since(before Snapshot) map[string]string {
	found := map[string]string{}
	for name, fields := range before.Changes(s.Snapshot) {
		found[s.Of[name]] = "change of " + name + " " + strings.Join(fields, ", ")
	}
	for name := range s.Snapshot {
		if before[name] == nil {
			found[s.Of[name]] = "new " + name
		}
	}
	return found
}

// State reads the status of the walk's samples, all operands and, where there is no audit log, the samples' events.
func (c *Cluster) State(ctx context.Context) (Seen, error) { return c.state(ctx, nil) }

// RecentState is State for those who look many times, with RecentOperands.
func (c *Cluster) RecentState(ctx context.Context) (Seen, error) {
	return c.state(ctx, c.Watcher.recent)
}

func (c *Cluster) state(ctx context.Context, known *recent) (Seen, error) {
	operands, err := c.operands(ctx, known)
	s := Seen{Snapshot{}, map[string]string{}, operands}
	if err != nil {
		return s, err
	}
	for name, o := range operands {
		if !o.Transient() {
			s.Snapshot[name], s.Of[name] = maps.Clone(o.Content), o.Of
			s.Snapshot[name]["metadata"] = o.Marks
		}
	}
	for _, o := range c.Objects {
		now, err := c.current(ctx, o)
		switch {
		case err == nil:
			s.Snapshot[o.String()], s.Of[o.String()] = map[string]any{"status": now.Object["status"]}, o.String()
		case ctx.Err() != nil:
			return s, ctx.Err()
		}
	}
	if _, audited := c.Provider.(Auditor); audited {
		return s, nil
	}
	events, err := c.events(ctx)
	s.addEvents(events, c.Objects)
	return s, err
}

// addEvents adds those of events that are about objects.
func (s Seen) addEvents(events []corev1.Event, objects []*Object) {
	for i := range events {
		e := &events[i]
		for _, o := range objects {
			if e.InvolvedObject.UID == o.UID {
				name, told := "Event/"+e.Namespace+"/"+e.Name, eventStatement(e)
				s.Snapshot[name], s.Of[name] = map[string]any{"count": int64(told.Count), "last": told.Last.String()}, o.String()
			}
		}
	}
}

// current reads o as it is stored, without conversion.
func (c *Cluster) current(ctx context.Context, o *Object) (*unstructured.Unstructured, error) {
	d := c.Watcher.Definitions()[o.CRD]
	if d == nil {
		return nil, fmt.Errorf("there is no CustomResourceDefinition %s", o.CRD)
	}
	return o.At(c.Dynamic, d.Storage).Get(ctx, o.Name, metav1.GetOptions{})
}

// OperatorRuns reports whether a program of r's own runs at all: not all of its images are simulated.
func (c *Cluster) OperatorRuns(r *lifecycle.Release) bool {
	return slices.ContainsFunc(r.Images(), func(image string) bool { return !slices.Contains(c.Simulated, image) })
}

// AwaitReconcile waits until a pod of r leads and knows its objects, and gives it a moment to look at every object by itself. It returns what it
// wrote for each, and how the election went.
func (c *Cluster) AwaitReconcile(ctx context.Context, r *lifecycle.Release) (map[string]string, Leadership, error) {
	if !c.OperatorRuns(r) || len(c.Untouched()) == 0 {
		return nil, Leadership{}, nil
	}
	l, err := c.awaitLeader(ctx, r)
	if err != nil {
		return nil, l, err
	}
	pods, err := c.podsOf(ctx, r)
	if err != nil {
		return nil, l, err
	}
	since := newestPod(c.Watcher.Since(time.Time{}), pods)
	if err := c.awaitInformers(ctx, r, since); err != nil {
		return nil, l, err
	}
	if l.Leads {
		c.Watcher.Mark(stateLeading)
		since = Latest(since, l.Since.Add(-WatchSkew))
	}
	var found map[string]string
	err = c.Watcher.AtMost(ctx, max(0, actLimit-time.Since(since)), func() (bool, error) {
		found, err = c.acted(ctx, r, since, nil)
		return len(found) == len(c.Objects), err
	})
	return found, l, err
}

// Untouched are the objects that no observer writes.
func (c *Cluster) Untouched() []*Object {
	return slices.DeleteFunc(slices.Clone(c.Objects), func(o *Object) bool { return o.Written })
}

// String says who leads.
func (l Leadership) String() string {
	switch {
	case l.Leads:
		return fmt.Sprintf("%s leads (%s)", l.Holder, l.Lock)
	case l.Elects && l.Holder != "":
		return fmt.Sprintf("no pod of the new release leads: %s is held by %s", l.Lock, l.Holder)
	case l.Elects:
		return fmt.Sprintf("no pod of the new release leads: nobody holds %s", l.Lock)
	}
	return ""
}

// AwaitActed waits until r's operator wrote something for each of the objects called names since began, or ended, which may be nil, says
// of those for which it did not that it will not, but no longer than limit. It returns what it wrote for any.
func (c *Cluster) AwaitActed(ctx context.Context, r *lifecycle.Release, began time.Time, before Snapshot, names []string, limit time.Duration, ended func(late []string) bool) (found map[string]string, err error) {
	err = c.Watcher.AtMost(ctx, limit, func() (bool, error) {
		if found, err = c.acted(ctx, r, began, before); err != nil {
			return false, err
		}
		late := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return found[name] != "" })
		return len(late) == 0 || ended != nil && ended(late), nil
	})
	return found, err
}

// NewEffectFor is how long the effects of a change that no release was compared on yet are waited for.
const NewEffectFor = 5 * time.Second

// Rests reports whether the object called name is well, and what was made for it is ready.
func (c *Cluster) Rests(ctx context.Context, name string, operands map[string]Operand) (bool, error) {
	for _, o := range operands {
		if o.Of == name && !o.Transient() && o.Unready != "" {
			return false, nil
		}
	}
	i := slices.IndexFunc(c.Objects, func(o *Object) bool { return o.String() == name })
	return c.Well(ctx, c.Objects[i])
}

// restFor is how long nothing must change until an operator is at rest.
const restFor = 500 * time.Millisecond

// AwaitRest waits, though not for ever, until for a moment nothing changes of what the operator writes, which it returns.
func (c *Cluster) AwaitRest(ctx context.Context) (now Seen, err error) {
	last, err := c.RecentState(ctx)
	if err != nil {
		return last, err
	}
	since := time.Now()
	err = c.Watcher.AtMost(ctx, NewEffectFor, func() (bool, error) {
		if now, err = c.RecentState(ctx); err != nil {
			return false, err
		}
		if len(now.since(last.Snapshot)) > 0 {
			last, since = now, time.Now()
		}
		return time.Since(since) > restFor, nil
	})
	return now, err
}
