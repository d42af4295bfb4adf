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
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/report"
)

// hopBefore is what was known of the cluster before a hop.
type hopBefore struct {
	known       map[string]bool // errors that the manager logged
	evidence    evidence
	operands    map[string]operand
	definitions map[string]*definition
}

// course is how a hop went.
type course struct {
	from, to       *release
	started        time.Time
	stalled        *stalled // or nil, if the hop came to its end
	faults         []*faultResult
	shown          map[string]string // what the operator wrote by itself, by object
	election       leadership
	attempts, slow []attempt
	timeline       []event
}

// runHop takes the cluster from from, which is installed, to to, under the given faults, and judges the way and where it led.
// What it measured goes into hop.
func (w *walk) runHop(ctx context.Context, from, to *release, injections []Injection, hop *report.Hop) (findings []finding.Finding, err error) {
	var before hopBefore
	if findings, err = w.prepare(ctx, from); err != nil {
		return findings, err
	}
	if before.known, err = w.errorKeys(ctx, from); err != nil {
		return findings, err
	}
	if before.evidence, err = w.gatherEvidence(ctx, from, w.began[from.Name]); err != nil {
		return findings, err
	}
	injected, err := w.newHopFaults(ctx, from, to, injections)
	defer func() { err = errors.Join(err, injected.undoAll(ctx)) }()
	if err != nil {
		return findings, err
	}
	if before.operands, err = w.operands(ctx); err != nil {
		return findings, err
	}
	before.definitions = w.watcher.definitions()
	c, err := w.upgradeTo(ctx, injected)
	hop.Simulated = w.simulated
	for _, k := range c.faults {
		for _, lost := range k.Lost {
			findings = append(findings, find(codeWriteLost, "", "%s", lost))
		}
	}
	if err != nil {
		return findings, err
	}
	w.measure(c, hop)
	return w.judgeHop(ctx, c, before, findings, hop)
}

// upgradeTo upgrades under injected faults, while observers read and write the objects.
func (w *walk) upgradeTo(ctx context.Context, injected *hopFaults) (c course, err error) {
	c.from, c.to = injected.from, injected.goal()
	observer := observe(ctx, w.dynamic, probes(w.objects, c.from, c.to))
	defer observer.stop()
	for _, d := range c.to.CRDs {
		w.crds = append(w.crds, d.Name)
	}
	c.started = w.watcher.mark(statePublished)
	injected.begin(ctx, c.started)
	w.release = nil
	c.stalled, err = w.arrive(ctx, injected, c.started)
	faults, failed := injected.finish()
	if err := errors.Join(err, failed); err != nil {
		return c, err
	}
	c.faults = faults
	if err := w.noteSimulated(ctx, c); err != nil {
		return c, err
	}
	limit := restartLimit
	if c.stalled == nil {
		w.release, limit = c.to, retryTimeout
		if c.shown, c.election, err = w.awaitReconcile(ctx, c.to); err != nil {
			return c, err
		}
	}
	if err := w.awaitSuccess(ctx, observer, limit); err != nil {
		return c, err
	}
	if c.stalled == nil {
		w.watcher.mark(stateStable)
	}
	c.attempts, c.slow = dropStalled(observer.stop())
	c.timeline, err = w.attributed(ctx, c.started, len(c.attempts) > 0)
	return c, err
}

// noteSimulated notes which images of the hop were simulated.
func (w *walk) noteSimulated(ctx context.Context, c course) (err error) {
	before := w.simulated
	if w.simulated, err = w.simulatedOf(ctx, c.from, c.to); err != nil {
		return err
	}
	if c.stalled != nil && len(before) > 0 {
		// Pods of the new version may not have come so far as to show that their images cannot be had either.
		w.simulated = append(w.simulated, c.to.Images()...)
		slices.Sort(w.simulated)
		w.simulated = slices.Compact(w.simulated)
	}
	return nil
}

// measure puts into hop what was measured of its course.
func (w *walk) measure(c course, hop *report.Hop) {
	found := w.milestones(c.timeline, c.started, c.from.Name, c.to.Name)
	hop.Start, hop.Phases, hop.Events = c.started.UTC(), phases(found, c.started), reportEvents(c.timeline, c.started)
	hop.Seconds = seconds(time.Since(c.started))
	if len(found) > 0 && c.stalled == nil {
		hop.Seconds = seconds(found[len(found)-1].At.Sub(c.started))
		w.options.Progress.Say("   %6.1fs  %s", hop.Seconds, stateStable)
	}
}

// judgeHop adds to findings, and to hop, what its course shows and what it has led to.
func (w *walk) judgeHop(ctx context.Context, c course, before hopBefore, findings []finding.Finding, hop *report.Hop) ([]finding.Finding, error) {
	if c.stalled != nil {
		why, logs := w.explain(ctx, c.to, c.started, c.stalled)
		findings, hop.Logs = append(findings, why), logs
	}
	if len(c.slow) > 0 {
		findings = append(findings, find(codeSlow, "", "for %.1fs of the upgrade the API server took a second and more for any answer, or the machine stood still", lasting(c.slow).Seconds()))
	}
	outages, seen := w.judgeAttempts(c.attempts, c.slow, c.timeline, before.definitions, c.from, c.to, c.stalled == nil, c.faults)
	hop.Outages = outages
	findings = append(findings, seen...)
	findings = append(findings, judgeProcess(w.manager, c.timeline, c.started, c.from, c.to)...)
	warned, err := w.warnings(ctx, c.to, c.started)
	findings = append(findings, warned...)
	if err != nil {
		return findings, err
	}
	judged, err := w.judgeOutcome(ctx, c, before.operands, hop)
	findings = append(findings, judged...)
	if err == nil {
		judged, err = w.judgeAccess(ctx, c.from, c.to, c.started, before.evidence, c.stalled == nil)
		findings = explainEndpoints(append(findings, judged...), before.operands)
	}
	if err == nil {
		findings, err = w.judgeLogs(ctx, c.to, before.known, findings, c.stalled == nil)
	}
	findings = attributeToFaults(withoutConsequences(findings), c.faults)
	w.options.Grades.Apply(findings) // a fault breaks nothing by what is no error to the user
	var broke []finding.Finding
	hop.Faults, broke = judgeFaults(c.faults, findings, w.known[hop.From+" "+hop.To], c.started)
	return append(findings, broke...), err
}

// judgeOutcome judges what the hop has led to.
func (w *walk) judgeOutcome(ctx context.Context, c course, before map[string]operand, hop *report.Hop) ([]finding.Finding, error) {
	if c.stalled != nil {
		return w.judgeAllStored(ctx) // whatever became of the upgrade, what it stored stays
	}
	findings := judgeElection(c.election)
	findings = append(findings, judgeLocks(w.watcher.since(time.Time{}), c.started, c.election)...)
	found, err := w.judgeAfter(ctx, c.from, c.to, before, c.started)
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
	return append(findings, found...), err
}

// restartLimit is how long what cannot be read or written after a hop that failed may take until it can: a manager that goes on
// may be started again just then, by a kubelet that probed it while the machine was busy.
const restartLimit = 30 * time.Second

// awaitSuccess waits, though no longer than limit, until what observer tries works: an outage counts as over with a success.
func (w *walk) awaitSuccess(ctx context.Context, observer *observer, limit time.Duration) error {
	return w.watcher.atMost(ctx, limit, func() (bool, error) { return len(observer.failing(w.isServed)) == 0, nil })
}

// arrive publishes the new catalog and waits until its goal stands, or will not.
func (w *walk) arrive(ctx context.Context, s *hopFaults, started time.Time) (*stalled, error) {
	if err := w.publish(ctx, s.published()...); err != nil {
		return nil, err
	}
	if err := w.manager.Request(ctx, w.place, s.goal().Name); err != nil {
		return nil, err
	}
	return w.settle(ctx, started, s.from.Name, s.goal(), s, nil)
}

// isServed tells whether the cluster serves version of crd now.
func (w *walk) isServed(crd, version string) bool {
	d := w.watcher.definitions()[crd]
	return d != nil && slices.Contains(d.Served, version)
}

// prepare makes the objects that are not there yet and notes what they and their operands are before the hop.
func (w *walk) prepare(ctx context.Context, from *release) ([]finding.Finding, error) {
	var findings []finding.Finding
	if w.populated != from {
		var err error
		if findings, _, err = w.makeSamples(ctx, from); err != nil {
			return findings, err
		}
	}
	found, err := w.record(ctx, from)
	return append(findings, found...), err
}

// reconciled waits, though not for ever, until r's operator has dealt with every object: no more operands come, all are
// ready, a status that tells its generation tells the newest, and one that tells health tells good. Operators that do
// nothing of this are not waited for any longer than it takes to see that.
func (w *walk) reconciled(ctx context.Context, r *release) error {
	if !w.operatorRuns(r) || len(w.objects) == 0 {
		return nil
	}
	known, since := -1, time.Now()
	err := w.watcher.until(ctx, healthLimit, func() (bool, error) {
		operands, err := w.operands(ctx)
		if err != nil {
			return false, err
		}
		if len(operands) != known {
			known, since = len(operands), time.Now()
		}
		if time.Since(since) < w.options.Settle || !allReady(operands) {
			return false, nil
		}
		for _, o := range w.objects {
			well, err := w.well(ctx, o)
			if err != nil || !well {
				return false, err
			}
		}
		return true, nil
	})
	if ctx.Err() != nil || err != nil && !errors.Is(err, errTimeout) {
		return fmt.Errorf("wait for the operator to act on its objects: %w", err)
	}
	return nil
}

// well reports whether o's status tells of its newest generation and, where it tells health, good.
func (w *walk) well(ctx context.Context, o *object) (bool, error) {
	stale, err := w.stale(ctx, o)
	if err != nil || stale != "" {
		return false, err
	}
	now, err := w.current(ctx, o)
	if err != nil {
		return false, ctx.Err()
	}
	return !slices.ContainsFunc(healthConditions, func(t string) bool {
		c := conditionOf(now, t)
		return c.Status != "" && c.Status != corev1.ConditionTrue
	}), nil
}

// stale says how o's status stays behind its generation, or "".
func (w *walk) stale(ctx context.Context, o *object) (string, error) {
	d := w.watcher.definitions()[o.CRD]
	if d == nil {
		return "", nil
	}
	now, err := o.at(w.dynamic, d.Storage).Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return err.Error(), ctx.Err()
	}
	observed, has, _ := unstructured.NestedInt64(now.Object, "status", "observedGeneration")
	if has && observed < now.GetGeneration() {
		return fmt.Sprintf("status.observedGeneration is %d, the generation %d", observed, now.GetGeneration()), nil
	}
	return "", nil
}

// judgeAttempts turns what the observers met into outages and findings.
func (w *walk) judgeAttempts(attempts, slow []attempt, timeline []event, before map[string]*definition, from, to *release, done bool, faults []*faultResult) ([]report.Outage, []finding.Finding) {
	var all []outage
	var wrong []window
	unprovable := map[string]string{}
	for _, list := range series(attempts) {
		a := list[0]
		by := ""
		for _, r := range []*release{from, to} {
			if by == "" {
				by = w.simulatedConverter(r, a.CRD)
			}
		}
		var initial []string
		if d := before[a.CRD]; d != nil {
			initial = d.Served
		}
		found := outages(list, servedAt(timeline, a.CRD, a.Version, initial))
		if len(found) > 0 && by != "" {
			unprovable[a.CRD] = by
			continue
		}
		all = append(all, found...)
		wrong = append(wrong, windows(list)...)
	}
	var findings []finding.Finding
	for _, crd := range slices.Sorted(maps.Keys(unprovable)) {
		findings = append(findings, find(codeNotProvable, "CustomResourceDefinition/"+crd,
			"whether its objects stay readable and writable is not proved: its conversion webhook runs in a simulated pod (%s)", unprovable[crd]))
	}
	merged := merge(all)
	var told []report.Outage
	for i, o := range merged {
		merged[i].By, merged[i].Slow = causedBy(faults, outageCode(o), o.Start, o.Failed, o.First), slowed(o, slow)
		outage := report.Outage{
			CRD: o.CRD, Version: o.Version, Operation: o.Operation, Seconds: seconds(o.End.Sub(o.Start)), Errors: o.Errors, First: o.First,
			Start: o.Start.UTC(), Cause: cause(timeline, before[o.CRD], merged[i]),
		}
		if by := merged[i].By; by != nil {
			outage.Fault = by.String()
		}
		told = append(told, outage)
	}
	findings = append(findings, judgeOutages(merged, before, timeline, done)...)
	for _, x := range wrong {
		if x.Open && done {
			continue // what is still wrong after the upgrade is judged object by object
		}
		f := find(codeServedWrong, "CustomResourceDefinition/"+x.CRD, "for %.1fs a %s through %s answered with what nobody wrote (%d times): %s",
			x.End.Sub(x.Start).Seconds(), x.Operation, x.Version, x.Count, x.First)
		f.Cause = cause(timeline, before[x.CRD], outage{CRD: x.CRD, Version: x.Version, Start: x.Start, End: x.End})
		findings = append(findings, f)
	}
	return told, findings
}

// collapse makes one finding of those that say the same of several objects, and of those that have one cause.
func collapse(findings []finding.Finding) []finding.Finding {
	var kept []finding.Finding
	others := map[int][]string{}
	for _, f := range findings {
		i := slices.IndexFunc(kept, func(k finding.Finding) bool {
			return k.Code == f.Code && k.Severity == f.Severity && k.Message == f.Message && k.Cause == f.Cause
		})
		if i < 0 {
			kept = append(kept, f)
		} else if f.Subject.Object != kept[i].Subject.Object {
			others[i] = append(others[i], f.Subject.Object)
		}
	}
	for i, objects := range others {
		kept[i].Message += "; the same of " + strings.Join(objects, ", ")
	}
	return onePerCause(kept)
}

// judgeOutages judges outages: what OLM makes and unmakes is a warning with what shortens it, what stays an error. All
// outages of one kind of object and one operation are one finding, for they have one cause. done says that the upgrade
// itself came to its end.
func judgeOutages(list []outage, before map[string]*definition, timeline []event, done bool) []finding.Finding {
	type key struct {
		code, crd   string
		isNew, slow bool
		by          *faultResult
	}
	groups := map[key][]outage{}
	var order []key
	for _, o := range list {
		k := key{code: outageCode(o), crd: o.CRD, by: o.By, slow: o.Slow}
		d := before[o.CRD]
		k.isNew = d != nil && !slices.Contains(d.Served, o.Version)
		if o.Open {
			k.code, k.by = codeOutageStays, nil
			// After a hop that failed anyway nobody misses a version that only the new release brings.
			k.isNew = k.isNew && !done
		}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], o)
	}
	var findings []finding.Finding
	for _, k := range order {
		group := groups[k]
		longest := slices.MaxFunc(group, func(a, b outage) int { return cmp.Compare(a.End.Sub(a.Start), b.End.Sub(b.Start)) })
		f := find(k.code, "CustomResourceDefinition/"+k.crd, "%s; the longest began with: %s", lengths(group), longest.First)
		f.Cause = cause(timeline, before[k.crd], longest)
		f.Fix = outageFix(longest, before[k.crd], timeline, f.Fix)
		if k.slow {
			f.Severity, f.Fix = finding.Info, "give the walk more of the machine"
		}
		if k.isNew {
			f.Severity, f.Fix = finding.Info, ""
			f.Message += "; the version is new, so nobody used it yet"
		}
		if k.by != nil {
			f = attributeToFault(f, k.by)
		}
		findings = append(findings, f)
	}
	return findings
}

// outageCode tells what did not work. The API server says of admission webhooks that it was "calling" them
// (k8s.io/apiserver v0.36.3 pkg/util/webhook/error.go), and of conversion it speaks otherwise.
func outageCode(o outage) string {
	switch {
	case o.Operation == write && strings.Contains(o.First, "failed calling webhook"):
		return codeAdmissionOutage
	case o.Operation == write:
		return codeWriteOutage
	}
	return codeReadOutage
}

// lengths says for how long which operation failed through which versions.
func lengths(group []outage) string {
	var parts []string
	for _, operation := range []string{read, write} {
		byVersion := map[string][]outage{}
		for _, o := range group {
			if o.Operation == operation {
				byVersion[o.Version] = append(byVersion[o.Version], o)
			}
		}
		for _, version := range slices.Sorted(maps.Keys(byVersion)) {
			var total, longest time.Duration
			for _, o := range byVersion[version] {
				total += o.End.Sub(o.Start)
				longest = max(longest, o.End.Sub(o.Start))
			}
			part := fmt.Sprintf("no %s through %s for %.1fs", operation, version, total.Seconds())
			if n := len(byVersion[version]); n > 1 {
				part += fmt.Sprintf(" in all, %d times for up to %.1fs", n, longest.Seconds())
			}
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ", ")
}

// outageFix says what an author can do about o, by the API server's own words. before is the definition before timeline.
func outageFix(o outage, before *definition, timeline []event, otherwise string) string {
	admission := outageCode(o) == codeAdmissionOutage
	switch {
	case !admission && introduces(o, before, timeline):
		return fmt.Sprintf("keep %s the storage version in the release that brings conversion, and change it in the next one: "+
			"until the new webhook answers nothing converts, and only the version that is stored needs no conversion", before.Storage)
	case untrusted(o.First) && admission:
		return "let the manager read its certificate again whenever the mounted Secret changes: OLM renews it, with its CA, when it installs a release"
	case noService(o.First) && admission:
		return "keep the name of the Deployment that serves the webhook: OLM names the Service after it"
	case untrusted(o.First), noService(o.First):
		return "let the running manager watch its own CRD and put the webhook's service and CA back whenever OLM overwrites them, " +
			"which OLM does several times in an upgrade; clients that use the storage version are not hit"
	case strings.Contains(o.First, "is registered for version"):
		return "add a version in one release and make it the storage version in the next: while OLM upgrades, the old manager still converts, " +
			"and does not know the new version"
	case unanswered(o.First):
		return "let the manager serve on for some seconds after it was asked to end, and be ready only once its webhook server listens; run two replicas"
	case strings.Contains(o.First, "the server could not find the requested resource"), strings.Contains(o.First, "404"):
		return "let the version before already serve the webhook's path"
	}
	return otherwise
}

// introduces reports whether o comes of conversion where there was none: the release brings a webhook and stores another
// version at once.
func introduces(o outage, before *definition, timeline []event) bool {
	return before != nil && before.Conversion == conversionNone && strings.Contains(o.First, "conversion webhook") &&
		slices.ContainsFunc(timeline, func(e event) bool {
			return e.Kind == kindCRD && e.Name == o.CRD && e.CRD != nil && e.CRD.Conversion != conversionNone && e.CRD.Storage != before.Storage
		})
}

// judgeProcess judges how the operator's own pods went through the hop.
func judgeProcess(m lifecycle.Manager, timeline []event, started time.Time, from, to *release) []finding.Finding {
	var findings []finding.Finding
	counts := rollouts(timeline, started)
	for _, name := range to.Deployments() {
		if counts[name] > 1 {
			f := find(codeRollouts, "Deployment/"+name, "it was rolled out %d times during the upgrade to %s", counts[name], to.Name)
			if _, why := m.Setbacks(timeline, to.Name); len(why) > 0 {
				f.Severity, f.Fix = finding.Info, ""
				f.Cause = "OLM installed the new version again by itself, with new certificates if it has webhooks: " + strings.Join(why, "; ")
			}
			findings = append(findings, f)
		}
	}
	if list := restarts(timeline, started); len(list) > 0 {
		last := list[len(list)-1]
		f := find(codeRestarted, "Pod/"+last.Name, "the operator's containers ended and were started again during the upgrade to %s, the last %s", to.Name, last.Reason)
		if len(list) > 1 {
			f.Message += fmt.Sprintf(", and those of %d other pods", len(list)-1)
		}
		findings = append(findings, f)
	}
	if again, why := m.Setbacks(timeline, from.Name); again > 0 {
		f := find(codeReinstalls, m.ObjectOf(from.Name), "OLM installed the old version again before it replaced it (%d)", again)
		f.Cause = strings.Join(why, "; ")
		findings = append(findings, f)
	}
	return findings
}

// judgeAfter judges objects, definitions and operands after a hop that came to its end.
func (w *walk) judgeAfter(ctx context.Context, from, to *release, before map[string]operand, started time.Time) ([]finding.Finding, error) {
	findings, err := w.judgeObjects(ctx, to)
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
		if err := w.client.Get(ctx, client.ObjectKey{Name: d.Name}, &now); err != nil {
			return findings, fmt.Errorf("read CustomResourceDefinition %s: %w", d.Name, err)
		}
		if old := from.CRD(d.Name); old != nil {
			findings = append(findings, judgeVersions(old, &now, now.Status.StoredVersions)...)
		}
	}
	found, err = w.judgeStatus(ctx, to)
	findings = append(findings, found...)
	if err != nil {
		return findings, err
	}
	if w.operatorRuns(to) {
		after, err := w.awaitOperands(ctx, before)
		if err != nil {
			return findings, err
		}
		simulated, err := w.cluster.Simulated(ctx)
		if err != nil {
			return findings, fmt.Errorf("ask which images were simulated: %w", err)
		}
		findings = append(findings, judgeHealth(before, after)...)
		findings = append(findings, judgeOperandImages(before, after, simulated)...)
		findings = append(findings, judgeOperands(before, after)...)
		lost, err := w.judgeClaims(ctx, before, after)
		if err != nil {
			return findings, err
		}
		findings = append(findings, lost...)
		findings = append(findings, judgeEndpoints(w.watcher.since(started), before)...)
	}
	findings = append(findings, judgeDropped(from, to, w.watcher.definitions())...)
	leftovers, err := w.manager.Leftovers(ctx, w.place)
	if err != nil {
		return findings, err
	}
	for _, name := range leftovers {
		findings = append(findings, find(codeLeftBehind, name, "it was made for a version that is not installed any more"))
	}
	return findings, nil
}

// judgeStatus asks whether r's operator reports on the objects, giving it a moment to get round to each.
func (w *walk) judgeStatus(ctx context.Context, r *release) ([]finding.Finding, error) {
	if !w.operatorRuns(r) {
		return nil, nil
	}
	var findings []finding.Finding
	err := w.watcher.until(ctx, retryTimeout, func() (bool, error) {
		findings = nil
		for _, o := range w.objects {
			stale, err := w.stale(ctx, o)
			if err != nil {
				return false, err
			}
			if stale != "" {
				findings = append(findings, find(codeStatusStale, o.String(), "%s", stale))
			}
		}
		return len(findings) == 0, nil
	})
	if ctx.Err() != nil || err != nil && !errors.Is(err, errTimeout) {
		return findings, err
	}
	worse, err := w.judgeConditions(ctx)
	return append(findings, worse...), err
}

// judgeConditions asks whether the objects are as Available and Ready as before, and gives them time for that.
func (w *walk) judgeConditions(ctx context.Context) (findings []finding.Finding, err error) {
	err = w.watcher.atMost(ctx, healthLimit, func() (bool, error) {
		findings = nil
		for _, o := range w.objects {
			said, err := w.worse(ctx, o)
			if err != nil {
				return false, err
			}
			if said != "" {
				findings = append(findings, find(codeConditionWorse, o.String(), "%s", said))
			}
		}
		return len(findings) == 0, nil
	})
	return findings, err
}

// awaitOperands waits until all operands that were ready before are ready again, though not for ever, and returns those
// that there are then.
func (w *walk) awaitOperands(ctx context.Context, before map[string]operand) (after map[string]operand, err error) {
	err = w.watcher.atMost(ctx, healthLimit, func() (bool, error) {
		after, err = w.operands(ctx)
		return err == nil && len(judgeHealth(before, after)) == 0, err
	})
	return after, err
}

// worse says which of o's health conditions was True before the hop and is not any more, or "".
func (w *walk) worse(ctx context.Context, o *object) (string, error) {
	before := o.Views[o.Version]
	if before == nil || !w.isServed(o.CRD, o.Version) {
		return "", nil
	}
	now, err := o.at(w.dynamic, o.Version).Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return "", ctx.Err()
	}
	return worse(before, now), nil
}
