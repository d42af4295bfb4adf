package walk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/definition"
	"github.com/olmkit/olmkit/internal/fault"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/internal/report"
)

// hopBefore is what was known of the cluster before a hop.
type hopBefore struct {
	logged      logged // by the manager
	evidence    observe.Evidence
	operands    map[string]observe.Operand
	reached     map[observe.ServicePort]bool // ports of Services among these that took connections
	definitions map[string]*lifecycle.Definition
}

// course is how a hop went.
type course struct {
	from, to       *lifecycle.Release
	started        time.Time
	stalled        *stalled // or nil, if the hop came to its end
	faults         []*fault.Result
	shown          map[string]string // what the operator wrote by itself, by object
	election       observe.Leadership
	attempts, slow []observe.Attempt
	timeline       []lifecycle.Event
}

// runHop takes the cluster from from, which is installed, to to, under the given faults, and judges the way and where it led.
// What it measured goes into hop.
func (w *walk) runHop(ctx context.Context, from, to *lifecycle.Release, injections []fault.Injection, hop *report.Hop) (findings []finding.Finding, err error) {
	var before hopBefore
	w.verified.begin()
	if findings, err = w.prepare(ctx, from); err != nil {
		return findings, err
	}
	if before.logged, err = w.loggedBy(ctx, from); err != nil {
		return findings, err
	}
	if before.evidence, err = w.GatherEvidence(ctx, from, w.began[from.Name]); err != nil {
		return findings, err
	}
	w.verified.did("before")
	injected, err := fault.New(ctx, w.faulty(from, to), injections)
	defer func() { err = errors.Join(err, injected.UndoAll(ctx)) }()
	if err != nil {
		return findings, err
	}
	if before.operands, err = w.Operands(ctx); err != nil {
		return findings, err
	}
	if before.reached, err = w.reachedNow(ctx, before.operands); err != nil {
		return findings, err
	}
	w.Made = before.operands
	before.definitions = w.Watcher.Definitions()
	c, err := w.upgradeTo(ctx, injected)
	hop.Simulated = w.idleOf(c.from, c.to)
	for _, k := range c.faults {
		for _, lost := range k.Lost {
			findings = append(findings, code.Finding(code.WriteLost, "", "%s", lost))
		}
	}
	if err != nil {
		return findings, err
	}
	w.measure(c, hop)
	w.verified.resume()
	findings, err = w.judgeHop(ctx, c, before, findings, hop)
	hop.Verification = w.verified.parts
	return findings, err
}

// faulty is the hop between two releases for the faults that strike it.
func (w *walk) faulty(from, to *lifecycle.Release) fault.Hop {
	return fault.Hop{
		Cluster: w.Cluster, Walk: w, From: from, To: to, After: w.after[to.Name], ID: w.options.ID,
		Timeout: w.options.Timeout, Settle: w.options.Settle, Progress: w.options.Progress,
	}
}

// upgradeTo upgrades under injected faults, while observers read and write the objects.
func (w *walk) upgradeTo(ctx context.Context, injected *fault.Set) (c course, err error) {
	c.from, c.to = injected.From, injected.Goal()
	observer := observe.Start(ctx, w.Dynamic, observe.Probes(w.Objects, c.from, c.to))
	defer observer.Stop()
	w.Brings(c.to)
	c.started = w.Watcher.Mark(observe.StatePublished)
	injected.Begin(ctx, c.started)
	w.release = nil
	c.stalled, err = w.arrive(ctx, injected, c.started)
	faults, failed := injected.Finish()
	if err := errors.Join(err, failed); err != nil {
		return c, err
	}
	c.faults = faults
	if err := w.noteSimulated(ctx, c); err != nil {
		return c, err
	}
	limit := restartLimit
	if c.stalled == nil {
		w.release, limit = c.to, observe.RetryTimeout
		if c.shown, c.election, err = w.AwaitReconcile(ctx, c.to); err != nil {
			return c, err
		}
	}
	if err := w.AwaitSuccess(ctx, observer, limit); err != nil {
		return c, err
	}
	if c.stalled == nil {
		w.Watcher.Mark(observe.StateStable)
	}
	c.attempts, c.slow = judge.DropStalled(observer.Stop())
	c.timeline, err = w.Attributed(ctx, c.started, len(c.attempts) > 0)
	return c, err
}

// noteSimulated notes which images of the hop were simulated.
func (w *walk) noteSimulated(ctx context.Context, c course) (err error) {
	before := w.Simulated
	if w.Simulated, err = w.SimulatedOf(ctx, c.from, c.to); err != nil {
		return err
	}
	if c.stalled != nil && len(before) > 0 {
		// Pods of the new version may not have come so far as to show that their images cannot be had either.
		w.Simulated = append(w.Simulated, c.to.Images()...)
		slices.Sort(w.Simulated)
		w.Simulated = slices.Compact(w.Simulated)
	}
	return nil
}

// measure puts into hop what was measured of its course.
func (w *walk) measure(c course, hop *report.Hop) {
	found := w.Milestones(c.timeline, c.started, c.from.Name, c.to.Name)
	hop.Start, hop.Phases, hop.Events = c.started.UTC(), observe.Phases(found, c.started), observe.ReportEvents(c.timeline, c.started)
	hop.Seconds = observe.Seconds(time.Since(c.started))
	if len(found) > 0 && c.stalled == nil {
		hop.Seconds = observe.Seconds(found[len(found)-1].At.Sub(c.started))
		w.options.Progress.Say("   %6.1fs  %s", hop.Seconds, observe.StateStable)
	}
}

// judgeHop adds to findings, and to hop, what its course shows and what it has led to.
func (w *walk) judgeHop(ctx context.Context, c course, before hopBefore, findings []finding.Finding, hop *report.Hop) ([]finding.Finding, error) {
	if c.stalled != nil {
		why, logs := w.explain(ctx, c.to, c.started, c.stalled)
		findings, hop.Logs = append(findings, why), logs
	}
	if len(c.slow) > 0 {
		findings = append(findings, code.Finding(code.Slow, "", "for %.1fs of the upgrade the API server took a second and more for any answer, or the machine stood still", judge.Lasting(c.slow).Seconds()))
	}
	converter := func(crd string) string {
		return cmp.Or(w.SimulatedConverter(c.from, crd), w.SimulatedConverter(c.to, crd))
	}
	outages, seen := judge.Attempts(c.attempts, c.slow, c.timeline, before.definitions, converter, c.stalled == nil, c.faults)
	hop.Outages = outages
	findings = append(findings, seen...)
	findings = append(findings, judge.Process(w.Manager, c.timeline, w.Watcher.OperatorPods(), c.started, c.from, c.to)...)
	findings = append(findings, judge.Woken(w.Manager, c.timeline, c.to)...)
	warned, err := w.warnings(ctx, c.to, c.started)
	findings = append(findings, warned...)
	if err != nil {
		return findings, err
	}
	judged, err := w.judgeOutcome(ctx, c, before, hop)
	findings = append(findings, judged...)
	if err == nil {
		judged, err = w.judgeAccess(ctx, c.from, c.to, c.started, before.evidence, c.stalled == nil && len(c.faults) == 0)
		findings = judge.StillWrong(judge.ExplainEndpoints(append(findings, judged...), before.operands))
	}
	if err == nil {
		findings, err = w.judgeLogs(ctx, c.to, before.logged, findings, c.stalled == nil)
	}
	w.verified.did("requests and logs")
	if worst, any := finding.Worst(findings); err == nil && c.stalled == nil && len(c.faults) == 0 && (!any || worst != finding.Error) {
		judged, err = w.judgeRestart(ctx, c.from.Name, c.to, c.election)
		findings = append(findings, judged...)
	}
	findings = judge.AttributeToFaults(judge.WithoutConsequences(findings), c.faults)
	w.options.Grades.Apply(findings) // a fault breaks nothing by what is no error to the user
	var broke []finding.Finding
	hop.Faults, broke = judge.Faults(c.faults, findings, w.known[hop.From+" "+hop.To], c.started)
	return append(findings, broke...), err
}

// judgeOutcome judges what the hop has led to.
func (w *walk) judgeOutcome(ctx context.Context, c course, before hopBefore, hop *report.Hop) ([]finding.Finding, error) {
	if c.stalled != nil {
		return w.judgeAllStored(ctx) // whatever became of the upgrade, what it stored stays
	}
	findings := judge.Election(c.election)
	findings = append(findings, judge.Locks(w.Watcher.Since(time.Time{}), c.started, c.election)...)
	found, err := w.judgeAfter(ctx, c.from, c.to, &before, c.started)
	w.verified.did("objects")
	findings = append(findings, found...)
	if err != nil {
		return findings, err
	}
	unmet, err := w.judgeAssertions(ctx, c.to)
	findings = append(findings, unmet...)
	if err != nil {
		return findings, err
	}
	found, hop.NotVerified, err = w.judgeReconciling(ctx, c.from, c.to, c.shown, c.election)
	findings = append(findings, found...)
	if err != nil {
		return findings, err
	}
	if len(c.shown) > 0 || len(w.effects[c.to.Name]) > 0 { // it acts
		elected, err := w.Leadership(ctx, c.to) // which may have taken its time
		if err != nil {
			return findings, err
		}
		findings = append(findings, judge.Unelected(w.Watcher.Since(time.Time{}), c.started, c.from, c.to, elected)...)
	}
	found, err = w.judgeExits(ctx, c.from.Name, c.to)
	findings = append(findings, found...)
	if err != nil {
		return findings, err
	}
	unwell := func(f finding.Finding) bool { return f.Code == code.OperandWorse || f.Code == code.ConditionWorse }
	if !w.OperatorRuns(c.to) || slices.ContainsFunc(findings, unwell) { // nothing gets well by being waited for once more
		return findings, nil
	}
	found, err = w.judgeStillWell(ctx, before.operands)
	w.verified.did("health")
	return append(findings, found...), err
}

// judgeStillWell judges whether objects and what was made for them are still as well as before the hop, once users' changes were made
// and taken back.
func (w *walk) judgeStillWell(ctx context.Context, before map[string]observe.Operand) ([]finding.Finding, error) {
	after, err := w.awaitOperands(ctx, before)
	if err != nil {
		return nil, err
	}
	worse, err := w.judgeConditions(ctx)
	findings := append(judge.Health(before, after), worse...)
	for i := range findings {
		state := "well"
		if _, there := before[findings[i].Subject.Object]; !there && findings[i].Code == code.OperandWorse {
			state = "well, or not there,"
		}
		findings[i].Message += "; it was " + state + " when the upgrade was through, and not any more later, while the walk made changes as users do and took them back"
	}
	if err != nil {
		return findings, err
	}
	silent, err := w.judgeSilent(ctx)
	return append(findings, silent...), err
}

// judgeSilent tells what the objects' status says nothing of any more, and gives the operator time for that.
func (w *walk) judgeSilent(ctx context.Context) (findings []finding.Finding, err error) {
	err = lookUntil(ctx, observe.RetryTimeout, lookPause, func() (bool, error) {
		findings = nil
		for _, o := range w.Objects {
			d := w.Watcher.Definitions()[o.CRD]
			if d == nil || !slices.Contains(d.Served, o.Version) {
				continue
			}
			now, err := o.At(w.Dynamic, o.Version).Get(ctx, o.Name, metav1.GetOptions{})
			if err != nil {
				return false, ctx.Err() // told elsewhere
			}
			findings = append(findings, judge.StatusGone(o, now, d.Conversion != observe.ConversionNone)...)
			findings = append(findings, judge.StatusStays(o, now)...)
		}
		return len(findings) == 0, nil
	})
	return findings, err
}

// restartLimit is how long what cannot be read or written after a hop that failed may take until it can: a manager that goes on
// may be started again just then, by a kubelet that probed it while the machine was busy.
const restartLimit = 30 * time.Second

// arrive publishes the new catalog and waits until its goal stands, or will not.
func (w *walk) arrive(ctx context.Context, s *fault.Set, started time.Time) (*stalled, error) {
	if err := w.Publish(ctx, s.Published()...); err != nil {
		return nil, err
	}
	if err := w.Manager.Request(ctx, w.Place, s.Goal().Name); err != nil {
		return nil, err
	}
	return w.settle(ctx, started, s.From.Name, s.Goal(), s, nil)
}

// prepare makes the objects that are not there yet and notes what they and their operands are before the hop.
func (w *walk) prepare(ctx context.Context, from *lifecycle.Release) ([]finding.Finding, error) {
	var findings []finding.Finding
	if w.populated != from {
		var err error
		if findings, _, err = w.makeSamples(ctx, from); err != nil {
			return findings, err
		}
	}
	found, err := w.record(ctx, from)
	if findings = append(findings, found...); err != nil {
		return findings, err
	}
	return findings, w.noteDefaults(ctx)
}

// mostSettled is how long no more operands have to come at most, until there are all.
const mostSettled = time.Second

// reconciled waits, though not for ever, until r's operator has dealt with every object: no more operands come, all are
// ready, a status that tells its generation tells the newest, and one that tells health tells good. Operators that do
// nothing of this are not waited for any longer than it takes to see that, nor are others once ended, which may be nil, says that they will not.
func (w *walk) reconciled(ctx context.Context, r *lifecycle.Release, ended func() (bool, error)) error {
	if !w.OperatorRuns(r) || len(w.Objects) == 0 {
		return nil
	}
	same := sameFor(min(w.options.Settle, mostSettled))
	well := func() (bool, error) {
		operands, err := w.RecentOperands(ctx)
		if err != nil {
			return false, err
		}
		if !same(census(operands)) || !observe.AllReady(operands) {
			return false, nil
		}
		for _, o := range w.Objects {
			well, err := w.Well(ctx, o)
			if err != nil || !well {
				return false, err
			}
		}
		return true, nil
	}
	err := w.Watcher.Until(ctx, judge.HealthLimit, func() (bool, error) {
		if done, err := well(); done || err != nil || ended == nil {
			return done, err
		}
		return ended()
	})
	if ctx.Err() != nil || err != nil && !errors.Is(err, observe.ErrTimeout) {
		return fmt.Errorf("wait for the operator to act on its objects: %w", err)
	}
	return nil
}

// judgeAfter judges objects, definitions and operands after a hop that came to its end. It takes from before what was made for objects
// that are gone.
func (w *walk) judgeAfter(ctx context.Context, from, to *lifecycle.Release, before *hopBefore, started time.Time) ([]finding.Finding, error) {
	findings, err := w.judgeObjects(ctx, to)
	if err != nil {
		return findings, err
	}
	before.operands = w.forgetGone(before.operands)
	fuzzed, err := w.fuzz(ctx, from.Name, to)
	if !w.options.FuzzAll {
		fuzzed = unseen(fuzzed, findings)
	}
	findings = append(findings, fuzzed...)
	if err != nil {
		return findings, err
	}
	found, err := w.judgeManifests(ctx, to)
	findings = append(findings, found...)
	if err != nil {
		return findings, err
	}
	for _, d := range to.CRDs {
		var now apiextensionsv1.CustomResourceDefinition
		if err := w.Client.Get(ctx, client.ObjectKey{Name: d.Name}, &now); err != nil {
			return findings, fmt.Errorf("read CustomResourceDefinition %s: %w", d.Name, err)
		}
		if old := from.CRD(d.Name); old != nil {
			findings = append(findings, judge.Versions(old, &now, now.Status.StoredVersions)...)
		}
	}
	found, err = w.judgeStatus(ctx, to)
	findings = append(findings, found...)
	if err != nil {
		return findings, err
	}
	if w.OperatorRuns(to) {
		found, err = w.judgeOperands(ctx, *before, started)
		findings = append(findings, found...)
		if err != nil {
			return findings, err
		}
	}
	findings = append(findings, judge.Dropped(from, to, w.Watcher.Definitions())...)
	leftovers, err := w.Manager.Leftovers(ctx, w.Place)
	if err != nil {
		return findings, err
	}
	for _, name := range leftovers {
		findings = append(findings, code.Finding(code.LeftBehind, name, "it was made for a version that is not installed any more"))
	}
	return findings, nil
}

// judgeOperands judges what was made for the objects once it is as ready as before, or will not be.
func (w *walk) judgeOperands(ctx context.Context, before hopBefore, started time.Time) ([]finding.Finding, error) {
	after, err := w.awaitOperands(ctx, before.operands)
	if err != nil {
		return nil, err
	}
	before.operands = w.HideSecrets(before.operands) // a Secret may have been made since
	simulated, err := w.Provider.Simulated(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask which images were simulated: %w", err)
	}
	left, err := w.ClaimsLeft(ctx, before.operands, after)
	if err != nil {
		return nil, err
	}
	unreached, err := w.judgeReached(ctx, before, after, simulated)
	if err != nil {
		return nil, err
	}
	lost, err := w.judgeLost(ctx, before.operands, after)
	return slices.Concat(
		judge.Health(before.operands, after), judge.OperandImages(before.operands, after, simulated), judge.Operands(before.operands, after),
		judge.Named(before.operands, after, w.statuses(), w.statusesNow(ctx, w.Objects)), judge.Claims(before.operands, after, left),
		judge.Endpoints(w.Watcher.Since(started), before.operands), judge.PodSecurity(before.operands, after), judge.Leaks(before.operands, after), unreached, lost,
	), err
}

// judgeLost tells what workloads, selectors, routes and the fields of pods lost against before. Operands that are just being replaced are given time.
func (w *walk) judgeLost(ctx context.Context, before, after map[string]observe.Operand) ([]finding.Finding, error) {
	lost := func(now map[string]observe.Operand) ([]finding.Finding, error) {
		services, err := w.services(ctx)
		return slices.Concat(judge.Less(w.Objects, before, now), judge.Selected(before, now), judge.Detached(before, now), judge.Routes(before, now),
			judge.Addresses(before, now, services, w.statuses(), w.statusesNow(ctx, w.Objects)), judge.Unheeded(w.Objects, before, now, w.isDeprecated)), err
	}
	findings, err := lost(after)
	if err != nil || len(findings) == 0 {
		return nil, err
	}
	err = lookUntil(ctx, judge.HealthLimit, lookPause, func() (bool, error) {
		now, err := w.RecentOperands(ctx)
		if err == nil {
			findings, err = lost(now)
		}
		return len(findings) == 0, err
	})
	return findings, err
}

// isDeprecated reports whether the schema of the release that runs says that a field of o is deprecated.
func (w *walk) isDeprecated(o *observe.Object, path string) bool {
	if w.release == nil {
		return false
	}
	d := w.release.CRD(o.CRD)
	return d != nil && definition.Deprecated(definition.Schema(d, o.Version), path)
}

// statuses are what the objects said in their status before the hop, by object.
func (w *walk) statuses() map[string]any {
	all := map[string]any{}
	for _, o := range w.Objects {
		if view := o.Views[o.Version]; view != nil {
			all[o.String()] = view.Object["status"]
		}
	}
	return all
}

// judgeReached tells the ports that took connections before the hop and do not any more, though the Services are ready: they are given
// time for that.
func (w *walk) judgeReached(ctx context.Context, before hopBefore, after map[string]observe.Operand, simulated []string) (findings []finding.Finding, err error) {
	if !slices.Contains(slices.Collect(maps.Values(before.reached)), true) {
		return nil, nil
	}
	err = lookUntil(ctx, reachLimit, lookPause, func() (bool, error) {
		reached, err := w.reachedNow(ctx, after)
		findings = judge.Unreached(before.reached, reached, after, simulated)
		return len(findings) == 0, err
	})
	return findings, err
}

// reachedNow tells at which ports of Services among operands, and of the operator's own, something takes connections.
func (w *walk) reachedNow(ctx context.Context, operands map[string]observe.Operand) (map[observe.ServicePort]bool, error) {
	if len(w.Simulated) > 0 { // some may be the operator's
		return w.Reached(ctx, operands)
	}
	all, err := w.WithOwnServices(ctx, operands)
	if err != nil {
		return nil, err
	}
	return w.Reached(ctx, all)
}

// reachLimit is how long a server may take until it listens, once its pod is ready.
const reachLimit = 15 * time.Second

// forgetGone takes the objects that are gone out of the walk, and returns operands without what was made for them, which has to go
// with them.
func (w *walk) forgetGone(operands map[string]observe.Operand) map[string]observe.Operand {
	gone := slices.DeleteFunc(slices.Clone(w.Objects), func(o *observe.Object) bool { return !o.Gone })
	w.Forget(gone)
	w.lingering = append(w.lingering, gone...) // finalizers may keep them
	return withoutThose(operands, gone)
}

// judgeStatus asks whether r's operator reports on the objects, giving it a moment to get round to each.
func (w *walk) judgeStatus(ctx context.Context, r *lifecycle.Release) ([]finding.Finding, error) {
	if !w.OperatorRuns(r) {
		return nil, nil
	}
	var findings []finding.Finding
	err := w.Watcher.Until(ctx, observe.RetryTimeout, func() (bool, error) {
		findings = nil
		for _, o := range w.Objects {
			stale, err := w.Stale(ctx, o)
			if err != nil {
				return false, err
			}
			if stale != "" {
				findings = append(findings, code.Finding(code.StatusStale, o.String(), "%s", stale))
			}
		}
		return len(findings) == 0, nil
	})
	if ctx.Err() != nil || err != nil && !errors.Is(err, observe.ErrTimeout) {
		return findings, err
	}
	worse, err := w.judgeConditions(ctx)
	return append(findings, worse...), err
}

// judgeConditions asks whether the objects are by their own words as well as before, and gives them time for that.
func (w *walk) judgeConditions(ctx context.Context) (findings []finding.Finding, err error) {
	err = w.awaitHealth(ctx, func(map[string]observe.Operand) (bool, error) {
		findings = nil
		for _, o := range w.Objects {
			said, err := w.Worse(ctx, o)
			if err != nil {
				return false, err
			}
			if said != "" {
				findings = append(findings, code.Finding(code.ConditionWorse, o.String(), "%s", said))
			}
		}
		return len(findings) == 0, nil
	})
	return findings, err
}

// awaitOperands waits until all operands that were ready before are ready again, though not for ever, and returns those
// that there are then.
func (w *walk) awaitOperands(ctx context.Context, before map[string]observe.Operand) (after map[string]observe.Operand, err error) {
	err = w.awaitHealth(ctx, func(recent map[string]observe.Operand) (bool, error) {
		if after = recent; len(judge.Health(before, after)) > 0 {
			return false, nil
		}
		after, err = w.Operands(ctx)
		return err == nil && len(judge.Health(before, after)) == 0, err
	})
	return after, err
}

// healthLimits is how often what has judge.HealthLimit can begin anew.
const healthLimits = 4

// awaitHealth calls done with the operands that there are until it says so, or for judge.HealthLimit, and the delay that they ask for, no pod among
// them was replaced: what is rolled out one pod after the other takes its time.
func (w *walk) awaitHealth(ctx context.Context, done func(operands map[string]observe.Operand) (bool, error)) error {
	same, delay := sameFor(judge.HealthLimit), time.Duration(0)
	return w.Watcher.AtMost(ctx, healthLimits*judge.HealthLimit, func() (bool, error) {
		operands, err := w.RecentOperands(ctx)
		if err != nil {
			return false, err
		}
		if asked := judge.Delay(operands); asked > delay {
			same, delay = sameFor(judge.HealthLimit+asked), asked
		}
		if ok, err := done(operands); ok || err != nil {
			return ok, err
		}
		var pods strings.Builder
		for _, name := range slices.Sorted(maps.Keys(operands)) {
			if o := operands[name]; o.Kind == observe.KindPod {
				fmt.Fprintln(&pods, name, o.UID)
			}
		}
		return same(pods.String()), nil
	})
}
