package observe

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/managerlog"
)

// Evidence replaces the audit log on a cluster without one: what shows which requests of a release the API server refuses.
type Evidence struct {
	Refused []Refusal // quoted in its log, in events and in conditions
	Did     []Access  // writes to the walk's objects that its ServiceAccounts are allowed
}

// Statement is a text that may quote the API server, and where it stands.
type Statement struct {
	Text        string
	Where       string
	Count       int // how often it was said, 0 if that is not known
	First, Last time.Time
}

// GatherEvidence returns the evidence of r, which runs, with the events from since on. On a cluster with an audit log it is
// empty.
func (c *Cluster) GatherEvidence(ctx context.Context, r *lifecycle.Release, since time.Time) (Evidence, error) {
	var t Evidence
	if _, audited := c.Provider.(Auditor); audited {
		return t, nil
	}
	var err error
	if t.Refused, err = c.quoted(ctx, r, since); err != nil {
		return t, err
	}
	t.Did, err = c.mayDo(ctx, r)
	return t, err
}

// quoted returns what r's log, the events from since on and the objects' conditions say that the API server refused r's
// operator. What RBAC forbids is asked about again, of the rest counts what goes on.
func (c *Cluster) quoted(ctx context.Context, r *lifecycle.Release, since time.Time) ([]Refusal, error) {
	logs, err := c.Logged(ctx, r)
	if err != nil {
		return nil, err
	}
	groups := logs.Groups
	statements := logStatements(groups)
	for _, read := range []func(context.Context) ([]Statement, error){
		func(ctx context.Context) ([]Statement, error) { return c.eventStatements(ctx, since) },
		c.conditionStatements,
	} {
		more, err := read(ctx)
		if err != nil {
			return nil, err
		}
		statements = append(statements, more...)
	}
	list, err := c.StillForbidden(ctx, ForbiddenIn(statements, r.Permitted(c.Place.Namespace)))
	if err != nil {
		return nil, err
	}
	groups = slices.DeleteFunc(groups, func(g managerlog.Group) bool { return !invalidObject().MatchString(logged(g)) })
	if groups, err = c.Lasting(ctx, r, groups); err != nil || len(groups) == 0 {
		return list, err
	}
	operands, err := c.Operands(ctx)
	account, _, _ := strings.Cut(strings.Join(r.Permitted(c.Place.Namespace), " "), " ")
	return append(list, InvalidIn(logStatements(groups), account, operands)...), err
}

// logStatements are the errors that a manager logged.
func logStatements(groups []managerlog.Group) []Statement {
	var list []Statement
	for _, g := range groups {
		list = append(list, Statement{Text: logged(g), Where: "the manager's log", Count: g.Count, First: g.First, Last: g.Last})
	}
	return list
}

// logged is what g says, without the escapes of a text in a text.
func logged(g managerlog.Group) string { return strings.ReplaceAll(g.Message+": "+g.Error, `\`, "") }

// eventStatements are the warnings about anything in the operator's namespace and those of the walk's objects, since then on.
func (c *Cluster) eventStatements(ctx context.Context, since time.Time) ([]Statement, error) {
	events, err := c.events(ctx)
	if err != nil {
		return nil, err
	}
	var list []Statement
	for i := range events {
		if s := eventStatement(&events[i]); events[i].Type == corev1.EventTypeWarning && !s.Last.Before(since) {
			list = append(list, s)
		}
	}
	return list, nil
}

// events lists those in the operator's namespace and where those of the walk's objects are: events of an object that has no
// namespace are in the default one.
func (c *Cluster) events(ctx context.Context) ([]corev1.Event, error) {
	namespaces := []string{c.Place.Namespace}
	for _, o := range c.Objects {
		if namespace := cmp.Or(o.Namespace, metav1.NamespaceDefault); !slices.Contains(namespaces, namespace) {
			namespaces = append(namespaces, namespace)
		}
	}
	var all []corev1.Event
	for _, namespace := range namespaces {
		var events corev1.EventList
		if err := c.Client.List(ctx, &events, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("list events in %s: %w", namespace, err)
		}
		all = append(all, events.Items...)
	}
	return all, nil
}

// EventCounts tells how often Events of the walk's objects were recorded, by the object's UID and the Event's reason.
func (c *Cluster) EventCounts(ctx context.Context) (map[types.UID]map[string]any, error) {
	events, err := c.events(ctx)
	counts := map[types.UID]map[string]any{}
	for i := range events {
		e := &events[i]
		if counts[e.InvolvedObject.UID] == nil {
			counts[e.InvolvedObject.UID] = map[string]any{}
		}
		before, _ := counts[e.InvolvedObject.UID][e.Reason].(int64)
		counts[e.InvolvedObject.UID][e.Reason] = before + int64(eventStatement(e).Count)
	}
	return counts, err
}

// eventStatement reads an event, which tells its time and count in one of two ways (k8s.io/api v0.36.3 core/v1/types.go, Event).
func eventStatement(e *corev1.Event) Statement {
	on := strings.ReplaceAll(fmt.Sprintf("%s/%s/%s", e.InvolvedObject.Kind, e.InvolvedObject.Namespace, e.InvolvedObject.Name), "//", "/")
	s := Statement{
		Text: e.Message, Where: fmt.Sprintf("event %s of %s", e.Reason, on),
		Count: max(1, int(e.Count)), First: e.FirstTimestamp.Time, Last: e.LastTimestamp.Time,
	}
	if s.First.IsZero() {
		s.First = e.EventTime.Time
	}
	if s.Last.IsZero() {
		s.Last = s.First
	}
	if e.Series != nil {
		s.Count, s.Last = int(e.Series.Count), e.Series.LastObservedTime.Time
	}
	return s
}

// conditionStatements are the messages of the conditions of the walk's objects.
func (c *Cluster) conditionStatements(ctx context.Context) ([]Statement, error) {
	var list []Statement
	for _, o := range c.Objects {
		now, err := c.current(ctx, o)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			continue // what cannot be read is judged elsewhere
		}
		conditions, _, _ := unstructured.NestedSlice(now.Object, "status", "conditions")
		for _, condition := range conditions {
			fields, _ := condition.(map[string]any)
			if text, _ := fields["message"].(string); text != "" {
				list = append(list, Statement{Text: text, Where: fmt.Sprintf("condition %v of %s", fields["type"], o)})
			}
		}
	}
	return list, nil
}

// How the API server words that RBAC or another authorizer does not allow what a ServiceAccount asks for (k8s.io/apiserver
// v0.36.3 pkg/endpoints/handlers/responsewriters/errors.go, forbiddenMessage), and that an object is invalid
// (k8s.io/apimachinery v0.36.3 pkg/api/errors/errors.go, NewInvalid, and pkg/util/validation/field/errors.go).
var (
	notAllowed = Compiled(`(?:[^\s:]{1,300}(?: "[^"]{0,300}")? is forbidden: )?` +
		`User "system:serviceaccount:([a-z0-9-]{1,63}):([a-z0-9.-]{1,253})" cannot ([a-z]{1,63}) ` +
		`resource "([a-z0-9./*-]{1,253})" in API group "([a-z0-9.-]{0,253})" ` +
		`(?:at the cluster scope|in the namespace "([a-z0-9-]{1,63})")`)
	invalidObject = Compiled(`([A-Z][A-Za-z0-9]{0,62})(?:\.([a-z0-9.-]{1,253}))? "([^"]{1,253})" is invalid: .{1,1000}`)
	invalidField  = Compiled(`(?:: |\[|, )([a-z][^\s:]{0,300}): ` +
		`(?:Invalid value|Forbidden|Required value|Unsupported value|Duplicate value|Not found|Too long|Too many)`)
)

// Compiled returns what compiles expression when it is first needed. Bounded repetitions make large programs, of megabytes for
// all of this package, and most commands observe nothing.
func Compiled(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// ForbiddenIn returns what statements say that one of accounts was not allowed, each once.
func ForbiddenIn(statements []Statement, accounts []string) []Refusal {
	var list []Refusal
	for _, s := range statements {
		for _, m := range notAllowed().FindAllStringSubmatch(s.Text, -1) {
			a := Access{Account: m[1] + "/" + m[2], Verb: m[3], Resource: m[4], Group: m[5], Namespace: m[6]}
			known := slices.ContainsFunc(list, func(r Refusal) bool { return r.Access == a })
			if !known && slices.Contains(accounts, a.Account) {
				list = append(list, s.refusal(a, code.Forbidden, m[0]))
			}
		}
	}
	return list
}

// refusal is what s quotes as said.
func (s Statement) refusal(a Access, code, said string) Refusal {
	return Refusal{
		Access: a, Code: code, Count: s.Count, First: s.First, Last: s.Last,
		Why: fmt.Sprintf("the API server says: %s (quoted by %s)", said, s.Where),
	}
}

// InvalidIn returns what statements say that the API server found invalid of what account wrote, each object once. operands tell
// the namespaces of the objects.
func InvalidIn(statements []Statement, account string, operands map[string]Operand) []Refusal {
	var list []Refusal
	for _, s := range statements {
		m := invalidObject().FindStringSubmatch(s.Text)
		if m == nil {
			continue
		}
		resource, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: m[2], Version: "v1", Kind: m[1]})
		a := Access{Account: account, Verb: "write", Group: m[2], Resource: resource.Resource, Name: m[3]}
		for _, o := range operands {
			if o.Kind == m[1] && o.Name == m[3] {
				a.Namespace = o.Namespace
			}
		}
		if slices.ContainsFunc(list, func(r Refusal) bool { return r.Access == a }) {
			continue
		}
		r := s.refusal(a, code.Invalid, m[0])
		for _, f := range invalidField().FindAllStringSubmatch(m[0], -1) {
			if !slices.Contains(r.Fields, f[1]) {
				r.Fields = append(r.Fields, f[1])
			}
		}
		list = append(list, r)
	}
	return list
}

// mayDo returns what some operator did for the walk's objects, as they and their operands show, as far as r may do it: it sees
// its own kinds, reports on their objects, and makes what belongs to them.
func (c *Cluster) mayDo(ctx context.Context, r *lifecycle.Release) ([]Access, error) {
	did, err := c.done(ctx, r)
	if err != nil {
		return nil, err
	}
	var list []Access
	for _, a := range did {
		may, err := c.AnyAllowed(ctx, r, a)
		if err != nil {
			return nil, err
		}
		// Who may do it everywhere need not be asked about a namespace.
		everywhere := slices.ContainsFunc(list, func(o Access) bool {
			return o.Namespace == "" && o.Verb == a.Verb && o.Group == a.Group && o.Resource == a.Resource
		})
		if may && !everywhere {
			list = append(list, a)
		}
	}
	return list, nil
}

// done lists what r's operator does if it does what the walk's objects and their operands show, each once.
func (c *Cluster) done(ctx context.Context, r *lifecycle.Release) ([]Access, error) {
	operands, err := c.Operands(ctx)
	if err != nil {
		return nil, err
	}
	var list []Access
	add := func(a Access) {
		if !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	for _, o := range c.Objects {
		if r.CRD(o.CRD) == nil {
			continue
		}
		a := Access{Group: o.Resource.Group, Resource: o.Resource.Resource}
		for _, namespace := range []string{"", o.Namespace} {
			for _, verb := range []string{"list", "watch"} {
				a.Verb, a.Namespace = verb, namespace
				add(a)
			}
		}
		now, err := c.current(ctx, o)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil && now.Object["status"] != nil {
			for _, verb := range []string{"patch", "update"} {
				a.Verb, a.Resource, a.Namespace = verb, o.Resource.Resource+"/status", o.Namespace
				add(a)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(operands)) {
		if o := operands[name]; o.Direct {
			of := OperandResource(o.Kind)
			add(Access{Verb: "create", Group: of.Group, Resource: of.Resource, Namespace: o.Namespace})
		}
	}
	slices.SortStableFunc(list, func(a, b Access) int { return strings.Compare(a.Namespace, b.Namespace) })
	return list, nil
}

// AnyAllowed asks whether any ServiceAccount that r's operator runs as may do a.
func (c *Cluster) AnyAllowed(ctx context.Context, r *lifecycle.Release, a Access) (bool, error) {
	for _, account := range r.RunsAs(c.Place.Namespace) {
		a.Account = account
		if may, err := c.Allowed(ctx, a); may || err != nil {
			return may, err
		}
	}
	return false, nil
}

// lostBy returns what of did none of the ServiceAccounts of to's operator may, although it cannot do without. told has been found
// already.
func (c *Cluster) lostBy(ctx context.Context, to *lifecycle.Release, did []Access, told []Refusal) ([]Refusal, error) {
	var list []Refusal
	for _, a := range did {
		var first []Refusal
		for i, account := range to.RunsAs(c.Place.Namespace) {
			a.Account = account
			lost, err := c.Lost(ctx, to, []Access{a}, told)
			if err != nil {
				return nil, err
			}
			if len(lost) == 0 {
				first = nil
				break
			}
			if i == 0 {
				first = lost
			}
		}
		list = append(list, first...)
	}
	return list, nil
}

// ObservedRefusals returns what is told of what the API server refuses the operator of to since started, which comes after from if
// that is not nil.
func (c *Cluster) ObservedRefusals(ctx context.Context, from, to *lifecycle.Release, started time.Time, earlier Evidence) ([]Refusal, error) {
	if from == nil {
		return c.quoted(ctx, to, started)
	}
	list, err := c.quoted(ctx, to, c.replaced(from.Name, started))
	if err != nil {
		return nil, err
	}
	lost, err := c.lostBy(ctx, to, earlier.Did, list)
	if err != nil {
		return nil, err
	}
	return WithInformers(append(list, lost...), func(a Access) (bool, error) { return c.Allowed(ctx, a) })
}

// replaced returns when the last pod of the release called name was gone, or started if none went since.
func (c *Cluster) replaced(name string, started time.Time) time.Time {
	pods := c.Watcher.OperatorPods()
	at := started
	for _, e := range c.Watcher.Since(started) {
		if e.Kind == KindPod && e.State == StateGone && pods[e.Name].Release == name {
			at = e.At
		}
	}
	return at
}
