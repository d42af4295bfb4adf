package upgrade

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/progress"
)

// hopFaults are the faults of one hop under way.
type hopFaults struct {
	*walk
	from, to *release
	next     *release      // that the walk goes on to, if two hops are published at once
	settled  chan struct{} // closed when the hop has come to its end, well or not
	end      func()        // closes settled, once
	faults   []*activeFault

	changing sync.Mutex // held while a fault is made or undone: one that kills the API server must not meet another that asks it
	trust    sync.Mutex // held while certificates or converters are not as they should be, which one fault at a time puts back
}

// activeFault is one fault of a hop.
type activeFault struct {
	*faultResult
	undo  undoStack                           // takes the fault back
	held  func(context.Context) (bool, error) // of a fault that holds the hop up: whether it does so now
	clear undoStack                           // removes what has to stay until the hop is judged

	came    atomic.Bool // it was injected, or was found not to be possible
	ended   chan struct{}
	abandon context.CancelFunc // gives up waiting for the phase; nil before that has begun
	err     error
}

// newHopFaults prepares the injections of a hop, and makes those before it.
func (w *walk) newHopFaults(ctx context.Context, from, to *release, injections []Injection) (*hopFaults, error) {
	s := &hopFaults{walk: w, from: from, to: to, settled: make(chan struct{})}
	s.end = sync.OnceFunc(func() { close(s.settled) })
	for _, i := range injections {
		k := &activeFault{faultResult: &faultResult{Injection: i}, ended: make(chan struct{})}
		s.faults = append(s.faults, k)
		if i.At == beforeHop {
			if err := s.injectNow(ctx, k); err != nil {
				return s, err
			}
		}
	}
	return s, nil
}

// injectNow makes the fault of k now. One that cannot be made, or only in part, is undone.
func (s *hopFaults) injectNow(ctx context.Context, k *activeFault) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	k.Start = time.Now()
	err := k.inject(s, ctx, k)
	k.End = time.Now()
	var not inapplicable
	switch {
	case errors.As(err, &not):
		k.Why = string(not)
		if err := s.undoNow(ctx, k); err != nil {
			return err
		}
	case err != nil:
		return errors.Join(fmt.Errorf("make the fault %s: %w", k.Injection, err), s.undoNow(ctx, k))
	default:
		s.watcher.mark("fault " + k.String())
		s.options.Progress.Say("            fault %s", k.Injection)
	}
	k.came.Store(true)
	return nil
}

// undoFault takes back what k changed, also when ctx is done: the cluster may stay.
func (s *hopFaults) undoFault(ctx context.Context, k *activeFault) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	return s.undoNow(ctx, k)
}

// undoNow is undoFault for who holds changing.
func (s *hopFaults) undoNow(ctx context.Context, k *activeFault) error {
	if k.undo.empty() {
		return nil
	}
	if err := k.undo.run(ctx, s.options.Timeout); err != nil {
		return fmt.Errorf("undo the fault %s: %w", k.Injection, err)
	}
	k.End = time.Now()
	if k.Why == "" {
		s.watcher.mark("fault " + k.String() + " undone")
	}
	return nil
}

// begin starts what makes the faults at their phases, counted from started, and undoes them.
func (s *hopFaults) begin(ctx context.Context, started time.Time) {
	for _, k := range s.faults {
		var waiting context.Context
		waiting, k.abandon = context.WithCancel(ctx)
		go func() {
			defer close(k.ended)
			defer func() {
				if p := recover(); p != nil {
					k.err = errors.Join(fmt.Errorf("the fault %s panicked: %v\n%s", k.Injection, p, debug.Stack()), s.undoFault(ctx, k))
				}
			}()
			k.err = s.run(ctx, waiting, k, started)
		}()
	}
}

func (s *hopFaults) run(ctx, waiting context.Context, k *activeFault, started time.Time) error {
	if !k.came.Load() {
		missed := s.watcher.until(waiting, s.options.Timeout, func() (bool, error) {
			return slices.ContainsFunc(s.milestones(s.watcher.since(started), started, s.from.Name, s.to.Name), func(m milestone) bool { return slug(m.Name) == k.At }), nil
		})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case missed != nil:
			k.Why = "the hop never came to this phase"
			k.came.Store(true)
			return nil
		}
		k.came.Store(true) // though it may have to wait for others
		if k.inTrust {
			s.trust.Lock()
			defer s.trust.Unlock()
		}
		if err := s.injectNow(ctx, k); err != nil {
			return err
		}
	}
	if k.Why != "" {
		return nil
	}
	err := s.wait(ctx, k)
	var not inapplicable
	if errors.As(err, &not) {
		k.Why, err = string(not), nil
	}
	return errors.Join(err, s.undoFault(ctx, k))
}

// heldFor is how long a hop has to stand still before it counts as held up.
const heldFor = 2 * time.Second

// wait waits as long as the fault is to be in force.
func (s *hopFaults) wait(ctx context.Context, k *activeFault) error {
	var over <-chan time.Time
	switch {
	case k.held != nil:
		var since time.Time
		err := s.watcher.until(ctx, s.options.Timeout/2, func() (bool, error) {
			is, err := k.held(ctx)
			if err != nil {
				return false, err
			}
			if !is {
				since = time.Time{}
			} else if since.IsZero() {
				since = time.Now()
			}
			k.Held = is && time.Since(since) >= heldFor
			return k.Held || s.isSettled(), nil
		})
		if errors.Is(err, errTimeout) {
			return nil
		}
		return err
	case k.throughout:
		over = nil
	default:
		timer := time.NewTimer(k.hold)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
	case <-s.settled:
	case <-ctx.Done():
	}
	return nil
}

func (s *hopFaults) isSettled() bool {
	select {
	case <-s.settled:
		return true
	default:
		return false
	}
}

// finished reports whether every fault is over, and was long enough ago for its effects to show. It gives up those whose phase
// has not come: it is asked when the hop is at its end.
func (s *hopFaults) finished() bool {
	if s == nil {
		return true
	}
	for _, k := range s.faults {
		if !k.came.Load() {
			k.abandon()
		}
		select {
		case <-k.ended:
			if k.Why == "" && time.Since(k.End) < s.options.Settle {
				return false
			}
		default:
			if !k.throughout {
				return false
			}
		}
	}
	return true
}

// inForce reports whether a fault is in force, or was until just now.
func (s *hopFaults) inForce() bool {
	return s != nil && slices.ContainsFunc(s.faults, func(k *activeFault) bool {
		if !k.came.Load() || k.throughout {
			return false
		}
		select {
		case <-k.ended:
			return k.Why == "" && time.Since(k.End) < recovery
		default:
			return true
		}
	})
}

// finish ends what is still in force, and says how every fault went.
func (s *hopFaults) finish() ([]*faultResult, error) {
	s.end()
	var list []*faultResult
	var errs []error
	for _, k := range s.faults {
		list = append(list, k.faultResult)
		if k.abandon != nil {
			k.abandon()
			<-k.ended
			errs = append(errs, k.err)
		}
	}
	return list, errors.Join(errs...)
}

// undoAll undoes every fault that still is in force, the last first, and removes what faults left until the hop was judged.
// It does so however the hop ended.
func (s *hopFaults) undoAll(ctx context.Context) error {
	var told *progress.Printer // nobody, unless somebody who interrupted the walk waits
	if ctx.Err() != nil {
		told = s.options.Progress
	}
	_, _ = s.finish() // whose errors were told if the hop came so far; else what ended the hop is
	var errs []error
	for _, k := range slices.Backward(s.faults) {
		step := told.Start("undoing fault %s", k.Injection)
		errs = append(errs, step.End(errors.Join(s.undoFault(ctx, k), k.clear.run(ctx, s.options.Timeout))))
	}
	return errors.Join(errs...)
}

// deleted is how pods are killed: at once.
var deleted = &client.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}

func (s *hopFaults) killPods(ctx context.Context, pods []corev1.Pod) error {
	for i := range pods {
		if err := s.client.Delete(ctx, &pods[i], deleted); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("kill pod %s: %w", pods[i].Name, err)
		}
	}
	return nil
}

func (s *hopFaults) killOperator(ctx context.Context, _ *activeFault) error {
	var pods corev1.PodList
	if err := s.client.List(ctx, &pods, client.InNamespace(s.place.Namespace)); err != nil {
		return fmt.Errorf("list the operator's pods: %w", err)
	}
	var selectors []labels.Selector
	for _, r := range []*release{s.from, s.to} {
		for _, name := range r.Deployments() {
			var d appsv1.Deployment
			if err := s.watcher.Get(ctx, client.ObjectKey{Namespace: s.place.Namespace, Name: name}, &d); err != nil {
				continue // the version has none at this phase
			}
			selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
			if err != nil {
				return err
			}
			selectors = append(selectors, selector)
		}
	}
	return s.killPods(ctx, slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool {
		return !slices.ContainsFunc(selectors, func(s labels.Selector) bool { return s.Matches(labels.Set(p.Labels)) })
	}))
}

// injectManagers has the lifecycle manager make a fault of its own.
func (s *hopFaults) injectManagers(ctx context.Context, k *activeFault) (err error) {
	k.held, err = s.manager.Inject(ctx, k.Name, lifecycle.Hop{Place: s.place, From: s.from.Name, To: s.to.Name, Seen: s.watcher, Undo: k.undo.push})
	return err
}

// killComponent ends a component of the cluster and waits until the API server answers again.
func (s *hopFaults) killComponent(ctx context.Context, k *activeFault) error {
	killer, ok := s.cluster.(Killer)
	if !ok {
		return inapplicable("this kind of cluster cannot do it")
	}
	if err := killer.Kill(ctx, k.component); err != nil {
		return err
	}
	return s.watcher.until(ctx, s.options.Timeout, func() (bool, error) {
		return s.client.Get(ctx, client.ObjectKey{Name: metav1.NamespaceDefault}, &corev1.Namespace{}) == nil, nil
	})
}

// faultName is what objects that make faults are called.
const faultName = "olmkit-fault"

// forbid has the API server refuse what the operator's accounts write. A policy does so without taking a right away, which
// a lifecycle manager would notice and mend.
func (s *hopFaults) forbid(ctx context.Context, k *activeFault) error {
	var accounts []string
	for _, r := range []*release{s.from, s.to} {
		for _, name := range r.Accounts(s.place.Namespace) {
			accounts = append(accounts, "'"+name+"'")
		}
	}
	all := []string{"*"}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: faultName, Labels: cluster.Labels(s.options.ID)},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete},
					Rule:       admissionregistrationv1.Rule{APIGroups: all, APIVersions: all, Resources: []string{"*/*"}},
				},
			}}},
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "operator", Expression: "request.userInfo.username in [" + strings.Join(accounts, ", ") + "]"}},
			Validations:     []admissionregistrationv1.Validation{{Expression: "false", Message: "olmkit forbids it for a while", Reason: ptr.To(metav1.StatusReasonForbidden)}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: faultName, Labels: cluster.Labels(s.options.ID)},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: faultName, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	k.undo.push(func(ctx context.Context) error {
		auditor, ok := s.cluster.(Auditor)
		if !ok {
			return nil
		}
		log, err := auditor.Audit(ctx, k.Start)
		k.Note = fmt.Sprintf("%d writes were refused", forbidden(log, "olmkit forbids it"))
		return err
	})
	for _, o := range []client.Object{policy, binding} {
		k.undo.push(func(ctx context.Context) error { return client.IgnoreNotFound(s.client.Delete(ctx, o)) })
		if err := s.client.Create(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// forbidden counts the requests in log that were answered with 403 and the given words.
func forbidden(log []auditv1.Event, words string) int {
	n := 0
	for _, e := range log {
		if s := e.ResponseStatus; s != nil && s.Code == http.StatusForbidden && strings.Contains(s.Message, words) {
			n++
		}
	}
	return n
}

// goOn has the version after the new one published as well.
func (s *hopFaults) goOn(_ context.Context, k *activeFault) error {
	if s.next = s.after[s.to.Name]; s.next == nil {
		return inapplicable("the plan has no hop from " + s.to.Name)
	}
	k.Note = "on to " + s.next.Name
	return nil
}

func (s *hopFaults) downCatalog(ctx context.Context, k *activeFault) error {
	k.undo.push(func(ctx context.Context) error { return s.hideCatalog(ctx, k, false) })
	return s.hideCatalog(ctx, k, true)
}

func (s *hopFaults) flapCatalog(ctx context.Context, k *activeFault) error {
	k.undo.push(func(ctx context.Context) error { return s.hideCatalog(ctx, k, false) })
	for range 5 {
		for _, hide := range []bool{true, false} {
			if err := s.hideCatalog(ctx, k, hide); err != nil {
				return err
			}
			select {
			case <-time.After(300 * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

func (s *hopFaults) changeCatalog(ctx context.Context, k *activeFault) error {
	k.undo.push(func(ctx context.Context) error { return s.publish(ctx, s.published()...) })
	return s.publish(ctx, s.from.Name)
}

// published are the bundles that the hop's catalog has.
func (s *hopFaults) published() []string {
	names := []string{s.from.Name, s.to.Name}
	if s.next != nil {
		names = append(names, s.next.Name)
	}
	return names
}

// goal is the release that the hop ends at.
func (s *hopFaults) goal() *release {
	if s.next != nil {
		return s.next
	}
	return s.to
}

// probeWith makes one more object of each kind, like the first, with annotations, for as long as the hop is judged.
func (s *hopFaults) probeWith(ctx context.Context, k *activeFault, suffix string, annotations map[string]string) error {
	known := slices.Clone(s.objects)
	if len(known) == 0 {
		return inapplicable("there are no objects")
	}
	var made []*object
	k.clear.push(func(ctx context.Context) error {
		s.objects = slices.DeleteFunc(s.objects, func(o *object) bool { return slices.Contains(made, o) })
		return s.forget(ctx, made)
	})
	kinds := map[string]bool{}
	for _, like := range known {
		d := s.from.CRD(like.CRD)
		if kinds[like.CRD] || d == nil || !slices.Contains(served(d), like.Version) {
			continue
		}
		kinds[like.CRD] = true
		sample := (&unstructured.Unstructured{Object: like.Author}).DeepCopy()
		sample.SetName(suffix)
		sample.SetAnnotations(annotations)
		found, err := s.make(ctx, s.from, d, like.Version, sample, 0)
		made = slices.Clone(s.objects[len(known):])
		if err != nil {
			return err
		}
		for _, f := range found {
			if f.Code == codeSampleRefused {
				k.Note = f.Message
			}
		}
	}
	if len(made) == 0 {
		return inapplicable("the API server takes no such object: " + k.Note)
	}
	_, err := s.record(ctx, s.from)
	return err
}

func (s *hopFaults) oversize(ctx context.Context, k *activeFault) error {
	return s.probeWith(ctx, k, "oversize", map[string]string{"olmkit.dev/oversize": strings.Repeat("olmkit! ", 200<<10/8)})
}

// surprises are texts that programs stumble over: every one is valid in JSON, and none may be changed or acted on.
var surprises = map[string]string{
	"quotes":     `'"` + "`" + `\ $(id) ${HOME} %s %n {{ .Values }} <script>alert(1)</script> ]]> -- ; DROP TABLE`,
	"yaml":       "- &a [*a, !!binary x, 0o17, 1_000, yes, null, ~, 2001-01-01]\n--- \n...\n\t# no comment",
	"controls":   "nul \x00 bell \a escape \x1b[31m delete \x7f next line \u0085 separators \u2028\u2029 end\r\n",
	"direction":  "\u202etxt.exe\u202c \u2066isolate\u2069 \u200f\u200e",
	"invisible":  "zero\u200bwidth\u200cnon\u200djoiner\ufeff soft\u00adhyphen tag\U000e0041",
	"combining":  "Z" + strings.Repeat("\u0351\u0301\u0489", 40) + " e\u0301 \u00e9 \u1100\u1161 \ufb01 \u212b",
	"planes":     "\U0001f469\u200d\U0001f680 \U0010fffd \ufffe \uffff \ufffd \U0001d54f",
	"cases":      "\u0130\u0131 \u00df \u1e9e \u01c5 \u03c2",
	"deep":       strings.Repeat(`{"a":[`, 500) + strings.Repeat(`]}`, 500),
	"empty":      "",
	"whitespace": " \t\u00a0\u3000\n ",
}

func (s *hopFaults) hostile(ctx context.Context, k *activeFault) error {
	annotations := map[string]string{}
	for name, text := range surprises {
		annotations["olmkit.dev/"+name] = text
	}
	return s.probeWith(ctx, k, "hostile", annotations)
}
