package upgrade

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/olmkit/olmkit/internal/finding"
)

// How long an operator has to act on an object: by itself once its pod leads, and on a change that asks for it.
const (
	actLimit   = 1500 * time.Millisecond
	nudgeLimit = 15 * time.Second
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
func (w *walk) actorsOf(ctx context.Context, r *release) (actors, error) {
	pods, err := w.podsOf(ctx, r)
	return actors{Accounts: r.Accounts(w.place.Namespace), Pods: pods}, err
}

// targets returns the walk's objects and their operands as an audit log names them, each with the object that it is of.
func (w *walk) targets(ctx context.Context) (map[resource]string, error) {
	operands, err := w.operands(ctx)
	if err != nil {
		return nil, err
	}
	list := map[resource]string{}
	for _, o := range w.objects {
		list[resource{o.Resource.Group, o.Resource.Resource, o.Namespace, o.Name}] = o.String()
	}
	for _, o := range operands {
		of := operandResource(o.Kind)
		list[resource{of.Group, of.Resource, o.Namespace, o.Name}] = o.Of
	}
	return list, nil
}

// acted tells, by object, what r's operator wrote for it since the given time. Where the cluster keeps no audit log, it is
// what differs from before: whoever wrote it.
func (w *walk) acted(ctx context.Context, r *release, since time.Time, before snapshot) (map[string]string, error) {
	auditor, ok := w.cluster.(Auditor)
	if !ok {
		return w.changedSince(ctx, before)
	}
	a, err := w.actorsOf(ctx, r)
	if err != nil {
		return nil, err
	}
	targets, err := w.targets(ctx)
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
func (w *walk) changedSince(ctx context.Context, before snapshot) (map[string]string, error) {
	if before == nil {
		return nil, nil
	}
	after, err := w.state(ctx)
	if err != nil {
		return nil, err
	}
	return after.since(before), nil
}

// seen is what an operator writes of and for the walk's objects, and which object each thing is of.
type seen struct {
	snapshot
	of       map[string]string
	operands map[string]operand // all there are, by name
}

// since tells, by object, what differs from before.
func (s seen) since(before snapshot) map[string]string {
	found := map[string]string{}
	for name, fields := range before.changes(s.snapshot) {
		found[s.of[name]] = "change of " + name + " " + strings.Join(fields, ", ")
	}
	for name := range s.snapshot {
		if before[name] == nil {
			found[s.of[name]] = "new " + name
		}
	}
	return found
}

// state reads the status of the walk's samples, all operands and, where there is no audit log, the samples' events.
func (w *walk) state(ctx context.Context) (seen, error) {
	operands, err := w.operands(ctx)
	s := seen{snapshot{}, map[string]string{}, operands}
	if err != nil {
		return s, err
	}
	for name, o := range operands {
		if !o.transient() {
			s.snapshot[name], s.of[name] = maps.Clone(o.Content), o.Of
			s.snapshot[name]["metadata"] = o.Marks
		}
	}
	for _, o := range w.objects {
		now, err := w.current(ctx, o)
		switch {
		case err == nil:
			s.snapshot[o.String()], s.of[o.String()] = map[string]any{"status": now.Object["status"]}, o.String()
		case ctx.Err() != nil:
			return s, ctx.Err()
		}
	}
	if _, audited := w.cluster.(Auditor); audited {
		return s, nil
	}
	events, err := w.events(ctx)
	s.addEvents(events, w.objects)
	return s, err
}

// addEvents adds those of events that are about objects.
func (s seen) addEvents(events []corev1.Event, objects []*object) {
	for i := range events {
		e := &events[i]
		for _, o := range objects {
			if e.InvolvedObject.UID == o.UID {
				name, told := "Event/"+e.Namespace+"/"+e.Name, eventStatement(e)
				s.snapshot[name], s.of[name] = map[string]any{"count": int64(told.Count), "last": told.Last.String()}, o.String()
			}
		}
	}
}

// current reads o as it is stored, without conversion.
func (w *walk) current(ctx context.Context, o *object) (*unstructured.Unstructured, error) {
	d := w.watcher.definitions()[o.CRD]
	if d == nil {
		return nil, fmt.Errorf("there is no CustomResourceDefinition %s", o.CRD)
	}
	return o.at(w.dynamic, d.Storage).Get(ctx, o.Name, metav1.GetOptions{})
}

// operatorRuns reports whether a program of r's own runs at all: not all of its images are simulated.
func (w *walk) operatorRuns(r *release) bool {
	return slices.ContainsFunc(r.Images(), func(image string) bool { return !slices.Contains(w.simulated, image) })
}

// awaitReconcile waits until a pod of r leads and gives it a moment to look at every object by itself. It returns what it
// wrote for each, and how the election went.
func (w *walk) awaitReconcile(ctx context.Context, r *release) (map[string]string, leadership, error) {
	if !w.operatorRuns(r) || len(w.untouched()) == 0 {
		return nil, leadership{}, nil
	}
	l, err := w.awaitLeader(ctx, r)
	if err != nil {
		return nil, l, err
	}
	pods, err := w.podsOf(ctx, r)
	if err != nil {
		return nil, l, err
	}
	since := newestPod(w.watcher.since(time.Time{}), pods)
	if l.Leads {
		w.watcher.mark(stateLeading)
		since = latest(since, l.Since.Add(-watchSkew))
	}
	var found map[string]string
	err = w.watcher.atMost(ctx, max(0, actLimit-time.Since(since)), func() (bool, error) {
		found, err = w.acted(ctx, r, since, nil)
		return len(found) == len(w.objects), err
	})
	return found, l, err
}

// untouched are the objects that no observer writes.
func (w *walk) untouched() []*object {
	return slices.DeleteFunc(slices.Clone(w.objects), func(o *object) bool { return o.Written })
}

// verifyReconciled asks of every sample whether r's operator reconciles it: by what it wrote by itself, or else by what it
// does when the sample is changed a little and changed back, which is compared with what the release called from did then. It
// returns findings about those that another release acted on and r does not, or does less, and the names of those of which
// nothing shows either way.
func (w *walk) verifyReconciled(ctx context.Context, from string, r *release, shown map[string]string, l leadership) ([]finding.Finding, []string, error) {
	if !w.operatorRuns(r) {
		return nil, nil, nil
	}
	var ask []*object
	for _, o := range w.untouched() {
		if r.CRD(o.CRD) != nil && w.simulatedConverter(r, o.CRD) == "" {
			ask = append(ask, o)
		}
	}
	n, err := w.nudge(ctx, from, r, ask)
	if err != nil {
		return nil, nil, err
	}
	findings := n.findings
	var unverified []string
	for _, o := range ask {
		name := o.String()
		switch {
		case n.answered[name] != "":
			w.responds[name] = true
		// An annotation may be what a new release ignores on purpose.
		case shown[name] != "" && (!w.responds[name] || !ofSpec(n.changed[name])):
		case w.responds[name] && n.changed[name] != "":
			f := find(codeNotReconciled, name, "%s does not reconcile it: the operator wrote nothing for it within %s of a change to it, and the release before did", r.Name, nudgeLimit)
			f.Cause = l.String()
			findings = append(findings, f)
		default:
			unverified = append(unverified, name)
		}
	}
	drifted, err := w.judgeDrift(ctx, from, r, n.answered)
	return append(findings, drifted...), unverified, err
}

// judgeInstalled judges whether r's operator, which was installed, reconciles the samples that were made since, and returns
// the names of those of which nothing shows.
func (w *walk) judgeInstalled(ctx context.Context, r *release) ([]finding.Finding, []string, error) {
	shown, l, err := w.awaitReconcile(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	findings, unverified, err := w.verifyReconciled(ctx, r.Name, r, shown, l)
	if err != nil {
		return findings, unverified, err
	}
	unmet, err := w.judgeAssertions(ctx, r)
	return append(findings, unmet...), unverified, err
}

// judgeReconciling judges whether r's operator reconciles the walk's samples as that of from did, and whether it comes to rest
// then. shown is what it wrote by itself since it leads.
func (w *walk) judgeReconciling(ctx context.Context, from, r *release, shown map[string]string, l leadership) ([]finding.Finding, []string, error) {
	findings, unverified, err := w.verifyReconciled(ctx, from.Name, r, shown, l)
	if err != nil {
		return findings, unverified, err
	}
	found, err := w.judgeHotLoop(ctx, r)
	return append(findings, found...), unverified, err
}

// String says who leads.
func (l leadership) String() string {
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

// nudged is what came of changing objects a little.
type nudged struct {
	changed  map[string]string // the fields that the API server let change, by object
	answered map[string]string // what the operator wrote then, by object
	findings []finding.Finding // about what the release before did and this one does not
}

// nudge changes each of objects a little, waits until r's operator acts on it as that of the release called from did, and
// changes it back.
func (w *walk) nudge(ctx context.Context, from string, r *release, objects []*object) (n nudged, err error) {
	n.changed = map[string]string{}
	if len(objects) == 0 {
		return n, nil
	}
	before, err := w.state(ctx)
	if err != nil {
		return n, err
	}
	began := time.Now()
	var undo undoStack
	defer func() { err = errors.Join(err, undo.run(ctx, retryTimeout)) }()
	for _, o := range objects {
		field, back, failed := w.change(ctx, r, o)
		if ctx.Err() != nil {
			return n, ctx.Err()
		}
		if failed == nil {
			n.changed[o.String()] = field
			undo.push(back)
		}
	}
	if n.answered, err = w.awaitActed(ctx, r, began, before.snapshot, slices.Sorted(maps.Keys(n.changed))); err != nil {
		return n, err
	}
	if n.findings, err = w.compareEffects(ctx, from, r, n, before); err != nil {
		return n, err
	}
	return n, w.takeBack(ctx, r, n, &undo, before.operands)
}

// takeBack takes the changes of a nudge back by undo, and waits until r's operator acted on that and the operands are as
// ready as they were.
func (w *walk) takeBack(ctx context.Context, r *release, n nudged, undo *undoStack, operands map[string]operand) error {
	began := time.Now()
	before, err := w.state(ctx)
	if err != nil {
		return err
	}
	if err := undo.run(ctx, retryTimeout); err != nil {
		return err
	}
	answered := slices.DeleteFunc(slices.Sorted(maps.Keys(n.changed)), func(name string) bool { return n.answered[name] == "" })
	if _, err = w.awaitActed(ctx, r, began, before.snapshot, answered); err != nil {
		return err
	}
	_, err = w.awaitOperands(ctx, operands)
	return err
}

// awaitActed waits until r's operator wrote something for each of the objects called names since began, though not for ever.
func (w *walk) awaitActed(ctx context.Context, r *release, began time.Time, before snapshot, names []string) (found map[string]string, err error) {
	err = w.watcher.atMost(ctx, nudgeLimit, func() (bool, error) {
		if found, err = w.acted(ctx, r, began, before); err != nil {
			return false, err
		}
		return !slices.ContainsFunc(names, func(name string) bool { return found[name] == "" }), nil
	})
	return found, err
}

// final reports whether trying again does not help.
func final(err error) bool { return apierrors.IsNotFound(err) || refused(err) }

// adopt takes what o says now for what its author wrote: a change that the API server takes and does not let be taken back,
// as where a size may only grow.
func (w *walk) adopt(ctx context.Context, o *object) error {
	if !w.isServed(o.CRD, o.Version) {
		return nil // nobody reads what its author wrote
	}
	now, err := o.at(w.dynamic, o.Version).Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read %s, of which the walk's change cannot be taken back: %w", o, err)
	}
	for k, v := range content(now.Object) {
		if _, authored := o.Author[k]; authored {
			o.Author[k] = v
		}
	}
	return nil
}

// change makes the first harmless change of o that the API server takes, and returns the field's path and what takes the
// change back. An object that takes none is an error.
func (w *walk) change(ctx context.Context, r *release, o *object) (string, func(context.Context) error, error) {
	version := o.Version
	if !w.isServed(o.CRD, version) {
		version = w.watcher.definitions()[o.CRD].Storage
	}
	resource := o.at(w.dynamic, version)
	patch := func(ctx context.Context, data []byte, dryRun ...string) error {
		_, err := resource.Patch(ctx, o.Name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: "olmkit", DryRun: dryRun})
		return err
	}
	now, err := resource.Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return "", nil, err
	}
	for _, c := range harmless(schemaOf(r.CRD(o.CRD), version), now.Object) {
		if patch(ctx, c.There, metav1.DryRunAll) != nil {
			continue
		}
		if err = patch(ctx, c.There); err == nil {
			return c.Path, func(ctx context.Context) error {
				err := retry(ctx, final, func() error { return patch(ctx, c.Back) })
				switch {
				case err == nil || apierrors.IsNotFound(err):
					return nil
				case refused(err):
					return w.adopt(ctx, o)
				}
				return fmt.Errorf("take the walk's change of %s back: %w", o, err)
			}, nil
		}
	}
	return "", nil, cmp.Or(err, fmt.Errorf("the API server takes no change of %s", o))
}
