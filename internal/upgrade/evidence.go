package upgrade

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/managerlog"
)

// evidence replaces the audit log on a cluster without one: what shows which requests of a release the API server refuses.
type evidence struct {
	Refused []refusal // quoted in its log, in events and in conditions
	Did     []access  // writes to the walk's objects that its ServiceAccounts are allowed
}

// statement is a text that may quote the API server, and where it stands.
type statement struct {
	Text        string
	Where       string
	Count       int // how often it was said, 0 if that is not known
	First, Last time.Time
}

// gatherEvidence returns the evidence of r, which runs, with the events from since on. On a cluster with an audit log it is
// empty.
func (w *walk) gatherEvidence(ctx context.Context, r *release, since time.Time) (evidence, error) {
	var t evidence
	if _, audited := w.cluster.(Auditor); audited {
		return t, nil
	}
	var err error
	if t.Refused, err = w.quoted(ctx, r, since); err != nil {
		return t, err
	}
	t.Did, err = w.mayDo(ctx, r)
	return t, err
}

// quoted returns what r's log, the events from since on and the objects' conditions say that the API server refused r's
// operator. What RBAC forbids is asked about again, of the rest counts what goes on.
func (w *walk) quoted(ctx context.Context, r *release, since time.Time) ([]refusal, error) {
	groups, _, err := w.logged(ctx, r)
	if err != nil {
		return nil, err
	}
	statements := logStatements(groups)
	for _, read := range []func(context.Context) ([]statement, error){
		func(ctx context.Context) ([]statement, error) { return w.eventStatements(ctx, since) },
		w.conditionStatements,
	} {
		more, err := read(ctx)
		if err != nil {
			return nil, err
		}
		statements = append(statements, more...)
	}
	list, err := w.stillForbidden(ctx, forbiddenIn(statements, r.Permitted(w.place.Namespace)))
	if err != nil {
		return nil, err
	}
	groups = slices.DeleteFunc(groups, func(g managerlog.Group) bool { return !invalidObject.MatchString(logged(g)) })
	if groups, err = w.lasting(ctx, r, groups); err != nil || len(groups) == 0 {
		return list, err
	}
	operands, err := w.operands(ctx)
	account, _, _ := strings.Cut(strings.Join(r.Permitted(w.place.Namespace), " "), " ")
	return append(list, invalidIn(logStatements(groups), account, operands)...), err
}

// logStatements are the errors that a manager logged.
func logStatements(groups []managerlog.Group) []statement {
	var list []statement
	for _, g := range groups {
		list = append(list, statement{Text: logged(g), Where: "the manager's log", Count: g.Count, First: g.First, Last: g.Last})
	}
	return list
}

// logged is what g says, without the escapes of a text in a text.
func logged(g managerlog.Group) string { return strings.ReplaceAll(g.Message+": "+g.Error, `\`, "") }

// eventStatements are the warnings about anything in the operator's namespace and those of the walk's objects, since then on.
func (w *walk) eventStatements(ctx context.Context, since time.Time) ([]statement, error) {
	events, err := w.events(ctx)
	if err != nil {
		return nil, err
	}
	var list []statement
	for i := range events {
		if s := eventStatement(&events[i]); events[i].Type == corev1.EventTypeWarning && !s.Last.Before(since) {
			list = append(list, s)
		}
	}
	return list, nil
}

// events lists those in the operator's namespace and where those of the walk's objects are: events of an object that has no
// namespace are in the default one.
func (w *walk) events(ctx context.Context) ([]corev1.Event, error) {
	namespaces := []string{w.place.Namespace}
	for _, o := range w.objects {
		if namespace := cmp.Or(o.Namespace, metav1.NamespaceDefault); !slices.Contains(namespaces, namespace) {
			namespaces = append(namespaces, namespace)
		}
	}
	var all []corev1.Event
	for _, namespace := range namespaces {
		var events corev1.EventList
		if err := w.client.List(ctx, &events, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("list events in %s: %w", namespace, err)
		}
		all = append(all, events.Items...)
	}
	return all, nil
}

// eventStatement reads an event, which tells its time and count in one of two ways (k8s.io/api v0.36.3 core/v1/types.go, Event).
func eventStatement(e *corev1.Event) statement {
	on := strings.ReplaceAll(fmt.Sprintf("%s/%s/%s", e.InvolvedObject.Kind, e.InvolvedObject.Namespace, e.InvolvedObject.Name), "//", "/")
	s := statement{
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
func (w *walk) conditionStatements(ctx context.Context) ([]statement, error) {
	var list []statement
	for _, o := range w.objects {
		now, err := w.current(ctx, o)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			continue // what cannot be read is judged elsewhere
		}
		conditions, _, _ := unstructured.NestedSlice(now.Object, "status", "conditions")
		for _, c := range conditions {
			fields, _ := c.(map[string]any)
			if text, _ := fields["message"].(string); text != "" {
				list = append(list, statement{Text: text, Where: fmt.Sprintf("condition %v of %s", fields["type"], o)})
			}
		}
	}
	return list, nil
}

// How the API server words that RBAC or another authorizer does not allow what a ServiceAccount asks for (k8s.io/apiserver
// v0.36.3 pkg/endpoints/handlers/responsewriters/errors.go, forbiddenMessage), and that an object is invalid
// (k8s.io/apimachinery v0.36.3 pkg/api/errors/errors.go, NewInvalid, and pkg/util/validation/field/errors.go).
var (
	notAllowed = regexp.MustCompile(`(?:[^\s:]{1,300}(?: "[^"]{0,300}")? is forbidden: )?` +
		`User "system:serviceaccount:([a-z0-9-]{1,63}):([a-z0-9.-]{1,253})" cannot ([a-z]{1,63}) ` +
		`resource "([a-z0-9./*-]{1,253})" in API group "([a-z0-9.-]{0,253})" ` +
		`(?:at the cluster scope|in the namespace "([a-z0-9-]{1,63})")`)
	invalidObject = regexp.MustCompile(`([A-Z][A-Za-z0-9]{0,62})(?:\.([a-z0-9.-]{1,253}))? "([^"]{1,253})" is invalid: .{1,1000}`)
	invalidField  = regexp.MustCompile(`(?:: |\[|, )([a-z][^\s:]{0,300}): ` +
		`(?:Invalid value|Forbidden|Required value|Unsupported value|Duplicate value|Not found|Too long|Too many)`)
)

// forbiddenIn returns what statements say that one of accounts was not allowed, each once.
func forbiddenIn(statements []statement, accounts []string) []refusal {
	var list []refusal
	for _, s := range statements {
		for _, m := range notAllowed.FindAllStringSubmatch(s.Text, -1) {
			a := access{Account: m[1] + "/" + m[2], Verb: m[3], Resource: m[4], Group: m[5], Namespace: m[6]}
			known := slices.ContainsFunc(list, func(r refusal) bool { return r.access == a })
			if !known && slices.Contains(accounts, a.Account) {
				list = append(list, s.refusal(a, codeForbidden, m[0]))
			}
		}
	}
	return list
}

// refusal is what s quotes as said.
func (s statement) refusal(a access, code, said string) refusal {
	return refusal{
		access: a, Code: code, Count: s.Count, First: s.First, Last: s.Last,
		Why: fmt.Sprintf("the API server says: %s (quoted by %s)", said, s.Where),
	}
}

// invalidIn returns what statements say that the API server found invalid of what account wrote, each object once. operands tell
// the namespaces of the objects.
func invalidIn(statements []statement, account string, operands map[string]operand) []refusal {
	var list []refusal
	for _, s := range statements {
		m := invalidObject.FindStringSubmatch(s.Text)
		if m == nil {
			continue
		}
		resource, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: m[2], Version: "v1", Kind: m[1]})
		a := access{Account: account, Verb: "write", Group: m[2], Resource: resource.Resource, Name: m[3]}
		for _, o := range operands {
			if o.Kind == m[1] && o.Name == m[3] {
				a.Namespace = o.Namespace
			}
		}
		if slices.ContainsFunc(list, func(r refusal) bool { return r.access == a }) {
			continue
		}
		r := s.refusal(a, codeInvalid, m[0])
		for _, f := range invalidField.FindAllStringSubmatch(m[0], -1) {
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
func (w *walk) mayDo(ctx context.Context, r *release) ([]access, error) {
	did, err := w.done(ctx, r)
	if err != nil {
		return nil, err
	}
	var list []access
	for _, a := range did {
		may, err := w.anyAllowed(ctx, r, a)
		if err != nil {
			return nil, err
		}
		// Who may do it everywhere need not be asked about a namespace.
		everywhere := slices.ContainsFunc(list, func(o access) bool {
			return o.Namespace == "" && o.Verb == a.Verb && o.Group == a.Group && o.Resource == a.Resource
		})
		if may && !everywhere {
			list = append(list, a)
		}
	}
	return list, nil
}

// done lists what r's operator does if it does what the walk's objects and their operands show, each once.
func (w *walk) done(ctx context.Context, r *release) ([]access, error) {
	operands, err := w.operands(ctx)
	if err != nil {
		return nil, err
	}
	var list []access
	add := func(a access) {
		if !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	for _, o := range w.objects {
		if r.CRD(o.CRD) == nil {
			continue
		}
		a := access{Group: o.Resource.Group, Resource: o.Resource.Resource}
		for _, namespace := range []string{"", o.Namespace} {
			for _, verb := range []string{"list", "watch"} {
				a.Verb, a.Namespace = verb, namespace
				add(a)
			}
		}
		now, err := w.current(ctx, o)
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
			of := operandResource(o.Kind)
			add(access{Verb: "create", Group: of.Group, Resource: of.Resource, Namespace: o.Namespace})
		}
	}
	slices.SortStableFunc(list, func(a, b access) int { return strings.Compare(a.Namespace, b.Namespace) })
	return list, nil
}

// anyAllowed asks whether any ServiceAccount that r's operator runs as may do a.
func (w *walk) anyAllowed(ctx context.Context, r *release, a access) (bool, error) {
	for _, account := range r.RunsAs(w.place.Namespace) {
		a.Account = account
		if may, err := w.allowed(ctx, a); may || err != nil {
			return may, err
		}
	}
	return false, nil
}

// lostBy returns what of did none of the ServiceAccounts of to's operator may, although it cannot do without. told has been found
// already.
func (w *walk) lostBy(ctx context.Context, to *release, did []access, told []refusal) ([]refusal, error) {
	var list []refusal
	for _, a := range did {
		var first []refusal
		for i, account := range to.RunsAs(w.place.Namespace) {
			a.Account = account
			lost, err := w.lost(ctx, to, []access{a}, told)
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

// observedRefusals returns what is told of what the API server refuses the operator of to since started, which comes after from if
// that is not nil.
func (w *walk) observedRefusals(ctx context.Context, from, to *release, started time.Time, earlier evidence) ([]refusal, error) {
	if from == nil {
		return w.quoted(ctx, to, started)
	}
	list, err := w.quoted(ctx, to, w.replaced(from.Name, started))
	if err != nil {
		return nil, err
	}
	lost, err := w.lostBy(ctx, to, earlier.Did, list)
	if err != nil {
		return nil, err
	}
	return withInformers(append(list, lost...), func(a access) (bool, error) { return w.allowed(ctx, a) })
}

// replaced returns when the last pod of the release called name was gone, or started if none went since.
func (w *walk) replaced(name string, started time.Time) time.Time {
	pods := w.watcher.operatorPods()
	at := started
	for _, e := range w.watcher.since(started) {
		if e.Kind == kindPod && e.State == stateGone && pods[e.Name].Release == name {
			at = e.At
		}
	}
	return at
}
