package fault

import (
	"cmp"
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
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/definition"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/internal/progress"
	"github.com/olmkit/olmkit/internal/undo"
)

// Walk is what faults need of the walk that makes them.
type Walk interface {
	// Publish serves a catalog with exactly the bundles names, and has the manager read it.
	Publish(ctx context.Context, names ...string) error
	// Hide has the manager look for the catalog where nothing is, on behalf of k, or ends that.
	Hide(ctx context.Context, k *Active, hide bool) error
	// Add makes objects of sample, of the definition d of r, and notes what they say before the hop. It returns those that it
	// made, also with an error, and why the API server refuses the sample, if it does.
	Add(ctx context.Context, r *lifecycle.Release, d *apiextensionsv1.CustomResourceDefinition, version string, sample *unstructured.Unstructured) (made []*observe.Object, refused string, err error)
	// Forget takes objects out of the walk; they are not judged any more.
	Forget(objects []*observe.Object)
}

// Hop is a hop under faults.
type Hop struct {
	*observe.Cluster
	Walk     Walk
	From, To *lifecycle.Release
	After    *lifecycle.Release // that the plan goes on to from To, or nil
	ID       string             // of the walk
	Timeout  time.Duration
	Settle   time.Duration
	Progress *progress.Printer
}

// Set are the faults of one hop under way.
type Set struct {
	Hop
	next    *lifecycle.Release // that the walk goes on to, if two hops are published at once
	settled chan struct{}      // closed when the hop has come to its end, well or not
	end     func()             // closes settled, once
	faults  []*Active

	changing sync.Mutex // held while a fault is made or undone: one that kills the API server must not meet another that asks it
	trust    sync.Mutex // held while certificates or converters are not as they should be, which one fault at a time puts back
}

// Active is one fault of a hop.
type Active struct {
	*Result
	Undo  undo.Stack                          // takes the fault back
	held  func(context.Context) (bool, error) // of a fault that holds the hop up: whether it does so now
	clear undo.Stack                          // removes what has to stay until the hop is judged

	came    atomic.Bool // it was injected, or was found not to be possible
	ended   chan struct{}
	abandon context.CancelFunc // gives up waiting for the phase; nil before that has begun
	err     error
}

// New prepares the injections of a hop, and makes those before it.
func New(ctx context.Context, hop Hop, injections []Injection) (*Set, error) {
	s := &Set{Hop: hop, settled: make(chan struct{})}
	s.end = sync.OnceFunc(func() { close(s.settled) })
	for _, i := range injections {
		k := &Active{Result: &Result{Injection: i}, ended: make(chan struct{})}
		s.faults = append(s.faults, k)
		if i.At == BeforeHop {
			if err := s.injectNow(ctx, k); err != nil {
				return s, err
			}
		}
	}
	return s, nil
}

// injectNow makes the fault of k now. One that cannot be made, or only in part, is undone.
func (s *Set) injectNow(ctx context.Context, k *Active) error {
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
		s.Watcher.Mark("fault " + k.String())
		s.Progress.Say("            fault %s", k.Injection)
	}
	k.came.Store(true)
	return nil
}

// undoFault takes back what k changed, also when ctx is done: the cluster may stay.
func (s *Set) undoFault(ctx context.Context, k *Active) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	return s.undoNow(ctx, k)
}

// undoNow is undoFault for who holds changing.
func (s *Set) undoNow(ctx context.Context, k *Active) error {
	if k.Undo.Empty() {
		return nil
	}
	if err := k.Undo.Run(ctx, s.Timeout); err != nil {
		return fmt.Errorf("undo the fault %s: %w", k.Injection, err)
	}
	k.End = time.Now()
	if k.Why == "" {
		s.Watcher.Mark("fault " + k.String() + " undone")
	}
	return nil
}

// Begin starts what makes the faults at their phases, counted from started, and undoes them.
func (s *Set) Begin(ctx context.Context, started time.Time) {
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

func (s *Set) run(ctx, waiting context.Context, k *Active, started time.Time) error {
	if !k.came.Load() {
		missed := s.Watcher.Until(waiting, s.Timeout, func() (bool, error) {
			return slices.ContainsFunc(s.Milestones(s.Watcher.Since(started), started, s.From.Name, s.To.Name), func(m observe.Milestone) bool { return slug(m.Name) == k.At }), nil
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
		if k.InTrust {
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
func (s *Set) wait(ctx context.Context, k *Active) error {
	var over <-chan time.Time
	switch {
	case k.held != nil:
		var since time.Time
		err := s.Watcher.Until(ctx, s.Timeout/2, func() (bool, error) {
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
		if errors.Is(err, observe.ErrTimeout) {
			return inapplicable(fmt.Sprintf("the upgrade did not come to where it would stop within %s; give it more time with --timeout", s.Timeout/2))
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

func (s *Set) isSettled() bool {
	select {
	case <-s.settled:
		return true
	default:
		return false
	}
}

// Finished reports whether every fault is over, and was long enough ago for its effects to show. It gives up those whose phase
// has not come: it is asked when the hop is at its end.
func (s *Set) Finished() bool {
	if s == nil {
		return true
	}
	for _, k := range s.faults {
		if !k.came.Load() {
			k.abandon()
		}
		select {
		case <-k.ended:
			if k.Why == "" && time.Since(k.End) < s.Settle {
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

// InForce reports whether a fault is in force, or was until just now.
func (s *Set) InForce() bool {
	return s != nil && slices.ContainsFunc(s.faults, func(k *Active) bool {
		if !k.came.Load() || k.throughout {
			return false
		}
		select {
		case <-k.ended:
			return k.Why == "" && time.Since(k.End) < Recovery
		default:
			return true
		}
	})
}

// Finish ends what is still in force, and says how every fault went.
func (s *Set) Finish() ([]*Result, error) {
	s.end()
	var list []*Result
	var errs []error
	for _, k := range s.faults {
		list = append(list, k.Result)
		if k.abandon != nil {
			k.abandon()
			<-k.ended
			errs = append(errs, k.err)
		}
	}
	return list, errors.Join(errs...)
}

// UndoAll undoes every fault that still is in force, the last first, and removes what faults left until the hop was judged.
// It does so however the hop ended.
func (s *Set) UndoAll(ctx context.Context) error {
	var told *progress.Printer // nobody, unless somebody who interrupted the walk waits
	if ctx.Err() != nil {
		told = s.Progress
	}
	_, _ = s.Finish() // whose errors were told if the hop came so far; else what ended the hop is
	var errs []error
	for _, k := range slices.Backward(s.faults) {
		step := told.Start("undoing fault %s", k.Injection)
		errs = append(errs, step.End(errors.Join(s.undoFault(ctx, k), k.clear.Run(ctx, s.Timeout))))
	}
	return errors.Join(errs...)
}

func (s *Set) killOperator(ctx context.Context, _ *Active) error {
	var pods corev1.PodList
	if err := s.Client.List(ctx, &pods, client.InNamespace(s.Place.Namespace)); err != nil {
		return fmt.Errorf("list the operator's pods: %w", err)
	}
	var selectors []labels.Selector
	for _, r := range []*lifecycle.Release{s.From, s.To} {
		for _, name := range r.Deployments() {
			var d appsv1.Deployment
			if err := s.Watcher.Get(ctx, client.ObjectKey{Namespace: s.Place.Namespace, Name: name}, &d); err != nil {
				continue // the version has none at this phase
			}
			selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
			if err != nil {
				return err
			}
			selectors = append(selectors, selector)
		}
	}
	return lifecycle.KillPods(ctx, s.Client, slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool {
		return !slices.ContainsFunc(selectors, func(s labels.Selector) bool { return s.Matches(labels.Set(p.Labels)) })
	}))
}

// injectManagers has the lifecycle manager make a fault of its own.
func (s *Set) injectManagers(ctx context.Context, k *Active) (err error) {
	k.held, err = s.Manager.Inject(ctx, k.Name, lifecycle.Hop{Place: s.Place, From: s.From.Name, To: s.To.Name, Seen: s.Watcher, Undo: k.Undo.Push})
	return err
}

// killComponent ends a component of the cluster and waits until the API server answers again.
func (s *Set) killComponent(ctx context.Context, k *Active) error {
	killer, ok := s.Provider.(Killer)
	if !ok {
		return inapplicable("this kind of cluster cannot do it")
	}
	if err := killer.Kill(ctx, k.component); err != nil {
		return err
	}
	return s.Watcher.Until(ctx, s.Timeout, func() (bool, error) {
		return s.Client.Get(ctx, client.ObjectKey{Name: metav1.NamespaceDefault}, &corev1.Namespace{}) == nil, nil
	})
}

// delayImages has the cluster's registry answer late.
func (s *Set) delayImages(ctx context.Context, k *Active) error {
	registry, ok := s.Provider.(ImageDelayer)
	if !ok {
		return inapplicable("this kind of cluster has no registry")
	}
	k.Undo.Push(func(ctx context.Context) error { return registry.DelayImages(ctx, 0) })
	return registry.DelayImages(ctx, time.Second)
}

// forbid has the API server refuse what the operator's accounts write. A policy does so without taking a right away, which
// a lifecycle manager would notice and mend.
func (s *Set) forbid(ctx context.Context, k *Active) error {
	var accounts []string
	for _, r := range []*lifecycle.Release{s.From, s.To} {
		for _, name := range r.Accounts(s.Place.Namespace) {
			accounts = append(accounts, "'"+name+"'")
		}
	}
	all := []string{"*"}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: observe.FaultName, Labels: cluster.Labels(s.ID)},
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
		ObjectMeta: metav1.ObjectMeta{Name: observe.FaultName, Labels: cluster.Labels(s.ID)},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: observe.FaultName, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	k.Undo.Push(func(ctx context.Context) error {
		auditor, ok := s.Provider.(observe.Auditor)
		if !ok {
			return nil
		}
		log, err := auditor.Audit(ctx, k.Start)
		k.Note = fmt.Sprintf("%d writes were refused", forbidden(log, "olmkit forbids it"))
		return err
	})
	for _, o := range []client.Object{policy, binding} {
		k.Undo.Push(func(ctx context.Context) error { return client.IgnoreNotFound(s.Client.Delete(ctx, o)) })
		if err := s.Client.Create(ctx, o); err != nil {
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
func (s *Set) goOn(_ context.Context, k *Active) error {
	if s.next = s.After; s.next == nil {
		return inapplicable("the plan has no hop from " + s.To.Name)
	}
	k.Note = "on to " + s.next.Name
	return nil
}

// DownCatalog hides the catalog until k is undone.
func (s *Set) DownCatalog(ctx context.Context, k *Active) error {
	k.Undo.Push(func(ctx context.Context) error { return s.Walk.Hide(ctx, k, false) })
	return s.Walk.Hide(ctx, k, true)
}

// FlapCatalog hides the catalog and shows it again, five times.
func (s *Set) FlapCatalog(ctx context.Context, k *Active) error {
	k.Undo.Push(func(ctx context.Context) error { return s.Walk.Hide(ctx, k, false) })
	for range 5 {
		for _, hide := range []bool{true, false} {
			if err := s.Walk.Hide(ctx, k, hide); err != nil {
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

func (s *Set) changeCatalog(ctx context.Context, k *Active) error {
	k.Undo.Push(func(ctx context.Context) error { return s.Walk.Publish(ctx, s.Published()...) })
	return s.Walk.Publish(ctx, s.From.Name)
}

// Published are the bundles that the hop's catalog has.
func (s *Set) Published() []string {
	names := []string{s.From.Name, s.To.Name}
	if s.next != nil {
		names = append(names, s.next.Name)
	}
	return names
}

// Goal is the release that the hop ends at.
func (s *Set) Goal() *lifecycle.Release {
	if s.next != nil {
		return s.next
	}
	return s.To
}

// probeWith makes one more object of each kind, like the first, with annotations, for as long as the hop is judged.
func (s *Set) probeWith(ctx context.Context, k *Active, suffix string, annotations map[string]string) error {
	known := slices.Clone(s.Objects)
	if len(known) == 0 {
		return inapplicable("there are no objects")
	}
	var made []*observe.Object
	k.clear.Push(func(ctx context.Context) error {
		s.Walk.Forget(made)
		return s.forget(ctx, made)
	})
	kinds := map[string]bool{}
	for _, like := range known {
		d := s.From.CRD(like.CRD)
		if kinds[like.CRD] || d == nil || !slices.Contains(definition.ServedVersions(d), like.Version) {
			continue
		}
		kinds[like.CRD] = true
		sample := (&unstructured.Unstructured{Object: like.Author}).DeepCopy()
		sample.SetName(suffix)
		sample.SetAnnotations(annotations)
		more, refused, err := s.Walk.Add(ctx, s.From, d, like.Version, sample)
		made = append(made, more...)
		if err != nil {
			return err
		}
		k.Note = cmp.Or(refused, k.Note)
	}
	if len(made) == 0 {
		return inapplicable("the API server takes no such object: " + k.Note)
	}
	return nil
}

func (s *Set) oversize(ctx context.Context, k *Active) error {
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

func (s *Set) hostile(ctx context.Context, k *Active) error {
	annotations := map[string]string{}
	for name, text := range surprises {
		annotations["olmkit.dev/"+name] = text
	}
	return s.probeWith(ctx, k, "hostile", annotations)
}
