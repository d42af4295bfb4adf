// Package upgrade walks upgrades on a cluster: for each hop of a plan it lets OLM replace one bundle by the next, on a
// catalog that holds nothing else, watches what users would notice, and judges it.
//
// Use it to prove what a static check cannot see: that conversion keeps every field, that the new manager really starts,
// how long objects cannot be read or written.
package upgrade

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/assert"
	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/graph"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/progress"
	"github.com/olmkit/olmkit/internal/report"
)

// Options of a walk.
type Options struct {
	Samples []*unstructured.Unstructured // objects to make instead of the bundles' alm-examples, and what those need
	// Restore, unless nil, is what the walk restores of another cluster, in place of making samples. It ends with the first hop
	// after which the release is not there, and with the last it leaves all as it is.
	Restore *Restored
	// Assertions are what objects have to say after the installation and after each hop.
	Assertions []assert.Assertion
	Namespace  string        // where what serves all namespaces is installed
	Timeout    time.Duration // for each installation and each hop
	// ID labels what the walk makes on a cluster that stays, with cluster.WalkLabel.
	ID       string
	Settle   time.Duration // how long everything has to stay as it is before it counts as stable
	Progress *progress.Printer
	Verbose  bool // print every change that the walk sees

	// Strict makes errors of the warnings about what users notice; see strict.
	Strict bool
	// Grades are the severities that findings of some codes are to have, also over Strict.
	Grades finding.Grades
	// RequireImages makes an error of it that the operator's pods were simulated.
	RequireImages bool
	// Rollback has the walk go back to the version before after each hop that failed.
	Rollback bool
	// Fresh has the walk install the last release afresh at its end, and compare.
	Fresh bool
	// Faults are what the plan is walked under, once for each element; an empty element is a walk without faults.
	Faults [][]Injection
	// Connect returns the lifecycle manager to walk under, which must have been installed.
	Connect lifecycle.Connect
	// AfterHop is called after each hop that came to its end; it may be nil.
	AfterHop AfterHop
}

// AfterHop checks a cluster on which hop.To runs. Its error fails the hop.
type AfterHop func(ctx context.Context, config *rest.Config, hop report.Hop) error

// catalogName is what the walk's catalog is called.
const catalogName = "olmkit"

// release is what the walk needs to know of a bundle.
type release = lifecycle.Release

// walk is a walk under way.
type walk struct {
	cluster  cluster.Cluster
	pkg      *catalog.Package
	channel  string
	options  Options
	manager  lifecycle.Manager
	client   client.WithWatch
	dynamic  dynamic.Interface
	follow   func(ctx context.Context, namespace string) (*watcher, error)
	releases map[string]*release

	// What stands on the cluster; release is nil when nothing of the package does, or not surely in one piece.
	release                   *release
	place                     lifecycle.Place
	watcher                   *watcher
	unwatch                   context.CancelFunc
	crds                      []string // definitions that the walk brought
	fresh                     []string // releases that were installed without those that users come from
	objects                   []*object
	simulated                 []string
	restored                  []*object                    // of another cluster
	restoredKinds, restoredIn map[string]bool              // definitions whose objects were restored, and namespaces with restored objects
	lastHop                   bool                         // no hop follows
	notes                     []string                     // limitations that the walk met
	populated                 *release                     // whose samples were made last
	survived                  map[string]bool              // what was told to survive uninstalling
	looped                    map[string]bool              // objects that an earlier release kept writing
	responds                  map[string]bool              // objects of which it was seen that an operator acts on a change
	effects                   map[string]map[string]effect // by release and object, what its operator did about a change
	reverts                   map[string]map[string]bool   // by release and workload, whether its operator puts back what others change
	told                      map[string]bool              // findings of installations that were told

	publication publication

	installations []report.Installation // for the report

	freshSince time.Time            // when the package was last installed where nothing of it stood
	began      map[string]time.Time // by the name of a release, when OLM was last asked for it

	after map[string]*release        // by the name of a release, the one that the plan goes on to from it
	known map[string]map[string]bool // by hop, the codes of the errors that it has without faults
}

// Walk walks the hops of plan, in their order, on c, into which the lifecycle manager must have been installed, and returns what
// it found. A hop that fails ends only itself. An error means that the walk itself could not go on; the report then holds the
// hops until there, the others skipped, and the error as a finding, unless nothing was walked at all.
func Walk(ctx context.Context, c cluster.Cluster, p *catalog.Package, plan graph.Plan, options Options) (*report.Report, error) {
	w, err := newWalk(c, p, plan, options)
	if err != nil {
		return nil, err
	}
	if err := w.connect(); err != nil {
		return nil, err
	}
	return w.run(ctx, plan)
}

func newWalk(c cluster.Cluster, p *catalog.Package, plan graph.Plan, options Options) (*walk, error) {
	w := &walk{
		survived: map[string]bool{}, responds: map[string]bool{}, effects: map[string]map[string]effect{}, reverts: map[string]map[string]bool{}, told: map[string]bool{}, looped: map[string]bool{}, after: map[string]*release{}, known: map[string]map[string]bool{},
		cluster: c, pkg: p, channel: plan.Channel, options: options,
		began: map[string]time.Time{},
	}
	if len(w.options.Faults) == 0 {
		w.options.Faults = [][]Injection{nil}
	}
	if options.Restore != nil {
		w.restoredKinds, w.restoredIn = map[string]bool{}, map[string]bool{}
		w.place.Mode, w.notes = options.Restore.Mode, options.Restore.Notes
	}
	var err error
	if w.releases, err = readReleases(p, plan); err != nil {
		return nil, err
	}
	for _, hop := range plan.Hops {
		if w.after[hop.From] == nil {
			w.after[hop.From] = w.releases[hop.To]
		}
	}
	return w, nil
}

// run walks plan on what connect has connected to.
func (w *walk) run(ctx context.Context, plan graph.Plan) (_ *report.Report, walked error) {
	start := time.Now()
	r := w.newReport(plan, len(w.options.Faults))
	defer func() {
		r.Seconds = seconds(time.Since(start))
		r.Installations = w.installations
		r.Cluster.Limitations = slices.Concat(notRun(r), w.notes, r.Cluster.Limitations)
	}()
	var err error
	if r.Cluster.OLM, err = w.manager.Version(ctx); err != nil {
		return nil, err
	}
	if err := w.preflight(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if left := w.cleanup(ctx); left != nil {
			walked = errors.Join(walked, left)
		}
		if w.unwatch != nil {
			w.unwatch()
		}
	}()
	if len(plan.Hops) > 0 {
		err = w.hops(ctx, plan, r)
	} else if first := w.releases[plan.First()]; first != nil {
		err = w.installFirst(ctx, first)
	}
	found, err := w.finish(ctx, r, err)
	w.grade(found, nil)
	r.Findings = append(r.Findings, collapse(w.about(found, finding.Subject{}))...)
	finding.Sort(r.Findings)
	return r, err
}

// finish ends a walk that err ended, or nothing: it judges what is about no hop, and removes the package.
func (w *walk) finish(ctx context.Context, r *report.Report, err error) ([]finding.Finding, error) {
	if len(w.fresh) > 0 && w.options.Restore == nil {
		slices.Sort(w.fresh)
		r.Cluster.Limitations = append(slices.Clone(r.Cluster.Limitations), fmt.Sprintf(
			"%s: installed afresh to upgrade from, so what older releases have stored, and in which versions, was not there", strings.Join(slices.Compact(w.fresh), ", ")))
	}
	found := w.judgeImages(r)
	if n := len(r.Hops); err == nil && w.options.Fresh && n > 0 && r.Hops[n-1].Result == report.Passed {
		differences, failed := w.compareFresh(ctx)
		found, err = append(found, differences...), failed
	}
	if err == nil && w.options.Restore == nil {
		cleaned, failed := w.clean(ctx)
		found = append(found, cleaned...)
		if failed != nil {
			err = fmt.Errorf("uninstall %s at the end: %w", w.pkg.Name, failed)
		}
	}
	ends, err := w.end(err)
	return append(found, ends...), err
}

// hops walks every round of plan into r, until one keeps the walk from going on.
func (w *walk) hops(ctx context.Context, plan graph.Plan, r *report.Report) error {
	for round, injections := range w.options.Faults {
		for i, edge := range plan.Hops {
			if w.options.Restore != nil && i > 0 && w.release == nil {
				return nil // what follows would not be about the restored objects
			}
			w.lastHop = i == len(plan.Hops)-1
			hop, err := w.hop(ctx, edge, injections)
			hop.Findings = collapse(hop.Findings)
			finding.Sort(hop.Findings)
			r.Hops[round*len(plan.Hops)+i] = hop
			if err != nil {
				return err
			}
			w.tell(hop)
			if len(injections) == 0 {
				w.known[edge.From+" "+edge.To] = errorsIn(hop.Findings)
			}
		}
	}
	return nil
}

// end turns what ended the walk into a finding: what stays of an uninstalled package is the package's, and no error of the
// walk, though nothing can be installed after it.
func (w *walk) end(err error) ([]finding.Finding, error) {
	var remains lifecycle.DeletionTimeoutError
	switch {
	case err == nil:
		return nil, nil
	case errors.As(err, &remains):
		var findings []finding.Finding
		for _, name := range remains.What {
			findings = append(findings, find(codeLeftovers, name, "it was deleted %s ago and is still there, so the walk ended here", remains.After))
		}
		return findings, nil
	}
	return []finding.Finding{find(codeWalkEnded, "", "%v", err)}, err
}

// errorsIn returns the codes of the errors in findings.
func errorsIn(findings []finding.Finding) map[string]bool {
	codes := map[string]bool{}
	for _, f := range findings {
		if f.Severity == finding.Error {
			codes[f.Code] = true
			for _, code := range f.Also {
				codes[code] = true
			}
		}
	}
	return codes
}

// newReport returns the report in which none of the rounds of plan is walked yet.
func (w *walk) newReport(plan graph.Plan, rounds int) *report.Report {
	proof := w.cluster.Describe()
	r := &report.Report{
		APIVersion: report.APIVersion, Kind: report.KindUpgrade,
		Cluster: &report.Cluster{Kind: proof.Kind, Kubernetes: proof.Kubernetes, Limitations: proof.Limitations},
	}
	for range rounds {
		for _, e := range plan.Hops {
			h := newHop(e)
			h.Result = report.Skipped
			r.Hops = append(r.Hops, h)
		}
	}
	for _, e := range plan.LeftOut {
		r.LeftOut = append(r.LeftOut, newHop(e))
	}
	r.LeftOutCount = len(plan.LeftOut) + plan.MoreLeftOut
	return r
}

func newHop(e graph.Edge) report.Hop {
	return report.Hop{Package: e.Package, Channel: e.Channel, From: e.From, To: e.To, Edge: string(e.Kind), Effective: e.Effective}
}

// Check reads every bundle that plan needs, so that one that cannot be walked is told before a cluster is up.
func Check(p *catalog.Package, plan graph.Plan) error {
	_, err := readReleases(p, plan)
	return err
}

func readReleases(p *catalog.Package, plan graph.Plan) (map[string]*release, error) {
	names := []string{plan.First()}
	for _, hop := range plan.Hops {
		names = append(names, hop.From, hop.To)
	}
	releases := map[string]*release{}
	for _, name := range names {
		if releases[name] != nil || name == "" {
			continue
		}
		b := p.Bundle(name)
		if b == nil {
			return nil, hint.With(catalog.Flaw{Err: fmt.Errorf("package %s: channel %s names the bundle %s, which the catalog does not have", p.Name, plan.Channel, name)},
				"add the bundle to the catalog, or cut the plan with --from")
		}
		r, err := lifecycle.ReadRelease(b)
		if err != nil {
			return nil, err
		}
		releases[name] = r
	}
	return releases, nil
}

// connect connects to the cluster and its lifecycle manager.
func (w *walk) connect() error {
	config := rest.CopyConfig(w.cluster.Config())
	config.QPS = -1
	var err error
	if w.manager, err = w.options.Connect(config, w.options.ID, w.brings()); err != nil {
		return err
	}
	w.client = w.manager.Client()
	if w.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return fmt.Errorf("connect to the API server: %w", err)
	}
	w.follow = func(ctx context.Context, namespace string) (*watcher, error) {
		return watch(ctx, config, w.manager, namespace)
	}
	return nil
}

// brings names what of the cluster's scope the releases bring, each Kind/name.
func (w *walk) brings() []string {
	var names []string
	for _, r := range w.releases {
		for _, name := range r.Shipped {
			kind, _, _ := strings.Cut(name, "/")
			if slices.Contains([]string{kindCRD, "ClusterRole", "ClusterRoleBinding", "PriorityClass"}, kind) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// preflight makes sure that nothing of the package is on the cluster: the walk would take it for its own.
func (w *walk) preflight(ctx context.Context) error {
	var crds []string
	for _, r := range w.releases {
		for _, d := range r.CRDs {
			crds = append(crds, d.Name)
		}
	}
	slices.Sort(crds)
	namespaces := []string{w.options.Namespace}
	for _, r := range w.releases {
		if !slices.Contains(w.manager.Modes(r), lifecycle.AllNamespaces) && len(namespaces) == 1 {
			namespaces = append(namespaces, w.pkg.Name)
		}
	}
	there, err := w.manager.Present(ctx, w.pkg.Name, slices.Compact(crds), namespaces...)
	if err != nil {
		return fmt.Errorf("look for package %s on cluster %s: %w", w.pkg.Name, w.cluster.Name(), err)
	}
	if len(there) > 0 {
		return hint.With(fmt.Errorf("package %s is on cluster %s already: %s", w.pkg.Name, w.cluster.Name(), strings.Join(there, ", ")),
			"walk on a cluster without it: what belongs to somebody is not touched")
	}
	return nil
}

// cleanup uninstalls the package from a cluster that stays, however the walk ended, and removes what OLM leaves of it. What the
// walk itself made it leaves to who finds that by its label.
func (w *walk) cleanup(ctx context.Context) error {
	if w.cluster.Disposable() || len(w.crds) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.options.Timeout)
	defer cancel()
	_, err := w.tryClean(ctx)
	return err
}

// hop walks one edge. Its error is only what keeps the walk from going on.
func (w *walk) hop(ctx context.Context, edge graph.Edge, injections []Injection) (hop report.Hop, err error) {
	hop = newHop(edge)
	hop.Result = report.Failed
	from, to := w.releases[edge.From], w.releases[edge.To]
	w.options.Progress.Say("%s → %s (%s)", edge.From, edge.To, edge.Kind)
	w.options.Progress.Status("%s → %s", edge.From, edge.To)
	subject := finding.Subject{Package: edge.Package, Channel: edge.Channel, From: edge.From, To: edge.To}
	add := func(found ...finding.Finding) { hop.Findings = append(hop.Findings, w.about(found, subject)...) }

	mode, ok := w.sharedMode(from, to)
	if w.release != from || mode != w.place.Mode {
		found, err := w.clean(ctx)
		add(found...)
		if err != nil {
			hop.Result = report.Skipped
			return hop, fmt.Errorf("clean up before %s → %s: %w", edge.From, edge.To, err)
		}
		w.place.Mode = mode
		if c := w.pkg.Channel(w.channel); c != nil && c.Entry(from.Name) != nil && c.Entry(from.Name).Replaces != "" {
			w.fresh = append(w.fresh, from.Name)
		}
		found, err = w.installBase(ctx, from)
		add(found...)
		if err != nil || w.release == nil {
			hop.Simulated = w.simulated
			hop.Logs = w.failedLogs(ctx, from, from, nil)
			return hop, err
		}
	}
	if !ok {
		add(find(codeNotChosen, "", "no install mode of %s is one of %s, so whoever has the one cannot get the other", edge.From, edge.To))
	}
	found, err := w.runHop(ctx, from, to, injections, &hop)
	add(found...)
	if err != nil {
		hop.Logs = w.failedLogs(ctx, to, from, hop.Logs)
		return hop, err
	}
	if w.options.AfterHop != nil && w.release == to {
		if failed := w.options.AfterHop(ctx, w.cluster.Config(), hop); failed != nil {
			add(find(codeAfterHop, "", "%v", failed))
		}
	}
	w.grade(hop.Findings, hop.Outages)
	if worst, any := finding.Worst(hop.Findings); !any || worst != finding.Error {
		hop.Result = report.Passed
	}
	if hop.Result == report.Failed {
		hop.Logs = w.failedLogs(ctx, to, from, hop.Logs)
	}
	if hop.Result == report.Failed && w.options.Rollback {
		hop.Rollback, err = w.rollback(ctx, from, subject)
	}
	return hop, err
}

// tell prints what came out of a hop.
func (w *walk) tell(hop report.Hop) {
	w.options.Progress.Status("")
	w.tellFindings(hop.All())
	for _, f := range hop.Faults {
		w.options.Progress.Say("            %s", f)
	}
	w.options.Progress.Say("   %6.1fs  %s", hop.Seconds, hop.Result)
}

// tellFindings prints what of findings matters to users.
func (w *walk) tellFindings(findings []finding.Finding) {
	for _, f := range findings {
		if f.Severity.AtLeast(finding.Warning) {
			w.options.Progress.Say("            %s %s: %s", f.Severity, f.Code, f.Message)
		}
	}
}

// about completes findings with their subject, and with the word that they rest on simulated pods where they do.
func (w *walk) about(found []finding.Finding, subject finding.Subject) []finding.Finding {
	for i := range found {
		object := found[i].Subject.Object
		found[i].Subject = subject
		found[i].Subject.Package = w.pkg.Name
		found[i].Subject.Channel = w.channel
		found[i].Subject.Object = object
		if len(w.simulated) > 0 && w.restsOnPods(found[i]) {
			found[i].Cause = strings.TrimPrefix(found[i].Cause+"; with the operator's own program it may be otherwise: its pods were simulated", "; ")
		}
	}
	return found
}

// restsOnPods reports whether f is about what the operator's process did.
func (w *walk) restsOnPods(f finding.Finding) bool {
	switch f.Code {
	case codeNotSucceeded, codeNotStable, codeBaseFailed:
		// What the manager or the API server refuses they refuse whatever runs.
		return !w.manager.Decides(f.Subject.Object)
	case codeReadOutage, codeWriteOutage, codeOutageStays, codeStatusStale, codeConditionWorse, codeUninstall:
		return true
	}
	return false
}

// simulatedIn returns the images whose pods were simulated in the installations and hops.
func simulatedIn(installations []report.Installation, hops []report.Hop) []string {
	var images []string
	for _, i := range installations {
		images = append(images, i.Simulated...)
	}
	for _, h := range hops {
		images = append(images, h.Simulated...)
	}
	slices.Sort(images)
	return slices.Compact(images)
}

// judgeImages finds, where the operator itself is required to run, that its pods were simulated.
func (w *walk) judgeImages(r *report.Report) []finding.Finding {
	images := simulatedIn(w.installations, r.Hops)
	if !w.options.RequireImages || len(images) == 0 {
		return nil
	}
	return []finding.Finding{find(codeNotRun, "", "the operator was not run: the pods of these images were simulated: %s", strings.Join(images, ", "))}
}

// notRun says of how many images the pods were simulated in r, if any were.
func notRun(r *report.Report) []string {
	images := simulatedIn(r.Installations, r.Hops)
	if len(images) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("pods were simulated because their images could not be had (%d): no program of theirs started, converted or reconciled anything", len(images))}
}

// sharedMode returns the install mode to walk from from to to in, and whether both support it.
func (w *walk) sharedMode(from, to *release) (lifecycle.Mode, bool) {
	return sharedMode(w.manager.Modes(from), w.manager.Modes(to), w.place.Mode)
}

// sharedMode returns now if both releases support it, else the widest of from that to has, too; else, and false, the widest of
// from.
func sharedMode(from, to []lifecycle.Mode, now lifecycle.Mode) (lifecycle.Mode, bool) {
	if slices.Contains(from, now) && slices.Contains(to, now) {
		return now, true
	}
	for _, m := range from {
		if slices.Contains(to, m) {
			return m, true
		}
	}
	if len(from) > 0 {
		return from[0], false
	}
	return lifecycle.AllNamespaces, false
}

// placeFor is where the package is installed in mode.
func (w *walk) placeFor(mode lifecycle.Mode) lifecycle.Place {
	p := lifecycle.Place{Package: w.pkg.Name, Channel: w.channel, Catalog: catalogName, Namespace: w.pkg.Name, Mode: mode}
	switch mode {
	case lifecycle.AllNamespaces:
		p.Namespace = w.options.Namespace
	case lifecycle.SingleNamespace:
		p.Targets = []string{p.Namespace + "-served"}
	case lifecycle.MultiNamespace:
		p.Targets = []string{p.Namespace + "-served", p.Namespace + "-served-2"}
	}
	if r := w.options.Restore; r != nil {
		p.Namespace, p.Targets = w.options.Namespace, r.Targets
	}
	return p
}

// prepareAt makes the place for the walk's install mode ready and watches it.
func (w *walk) prepareAt(ctx context.Context) error {
	there := w.place.Namespace
	p := w.placeFor(w.place.Mode)
	if err := w.manager.Prepare(ctx, p); err != nil {
		return err
	}
	w.place = p
	if w.watcher != nil && there == p.Namespace {
		return nil
	}
	if w.unwatch != nil {
		w.unwatch()
	}
	ctx, w.unwatch = context.WithCancel(ctx)
	var err error
	if w.watcher, err = w.follow(ctx, p.Namespace); err != nil {
		return err
	}
	if w.options.Verbose {
		began := time.Now()
		w.watcher.tell(func(e event) { w.options.Progress.Say("   %6.1fs    %s", e.At.Sub(began).Seconds(), e) })
	}
	return nil
}

// objectNamespaces are where a sample goes that names the namespace wanted, or none: one each into all that the operator serves,
// or into the one wanted if it serves every namespace.
func (w *walk) objectNamespaces(wanted string) []string {
	switch {
	case len(w.place.Targets) > 0:
		return w.place.Targets
	case w.place.Mode != lifecycle.AllNamespaces:
		return []string{w.place.Namespace}
	}
	return []string{cmp.Or(wanted, "olmkit-samples")}
}

// publication is where the manager is to find the walk's catalog, and which faults hide it. Faults act at the same time: were each to
// put back the address that it found, it might be another's.
type publication struct {
	mu     sync.Mutex
	at     cluster.CatalogAddress
	hiding map[*activeFault]bool
}

// nowhere is an address at which nothing listens.
var nowhere = cluster.CatalogAddress{Address: "127.0.0.1:9"}

// publish serves a catalog with exactly the bundles names, and then has the manager read it.
func (w *walk) publish(ctx context.Context, names ...string) error {
	fbc, err := catalog.Trim(w.pkg, w.channel, names...)
	if err != nil {
		return err
	}
	at, err := w.cluster.Catalog(ctx, catalogName, fbc)
	if err != nil {
		return fmt.Errorf("serve the catalog of %s: %w", strings.Join(names, ", "), err)
	}
	w.publication.mu.Lock()
	defer w.publication.mu.Unlock()
	w.publication.at = at
	return w.point(ctx)
}

// hideCatalog has the manager look for the catalog where nothing is, on behalf of k, or ends that.
func (w *walk) hideCatalog(ctx context.Context, k *activeFault, hide bool) error {
	w.publication.mu.Lock()
	defer w.publication.mu.Unlock()
	if w.publication.hiding == nil {
		w.publication.hiding = map[*activeFault]bool{}
	}
	w.publication.hiding[k] = hide
	return w.point(ctx)
}

// point has the manager look for the catalog where it is, or nowhere while a fault hides it.
func (w *walk) point(ctx context.Context) error {
	at := w.publication.at
	for _, hides := range w.publication.hiding {
		if hides {
			at = nowhere
		}
	}
	return w.manager.Publish(ctx, w.place, at)
}

// simulatedOf returns those of r's images that could not be had.
func (w *walk) simulatedOf(ctx context.Context, releases ...*release) ([]string, error) {
	all, err := w.cluster.Simulated(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask which images were simulated: %w", err)
	}
	var ours []string
	for _, r := range releases {
		for _, image := range r.Images() {
			if slices.Contains(all, image) {
				ours = append(ours, image)
			}
		}
	}
	slices.Sort(ours)
	return slices.Compact(ours), nil
}

// applyExtraSamples applies what the user's samples need besides the package's own kinds: Secrets and the like.
func (w *walk) applyExtraSamples(ctx context.Context, r *release) error {
	for _, s := range w.options.Samples {
		kind := s.GroupVersionKind()
		if r.Owns(kind.Group, kind.Kind) {
			continue
		}
		mapping, err := w.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return hint.With(fmt.Errorf("apply the sample %s %s: %w", kind.Kind, s.GetName(), err), "give samples of the package's kinds, or of kinds that Kubernetes has")
		}
		namespaces := []string{""}
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			namespaces = w.objectNamespaces(s.GetNamespace())
		}
		for _, namespace := range namespaces {
			o := s.DeepCopy()
			o.SetNamespace(namespace)
			if namespace != "" {
				if err := w.manager.EnsureNamespace(ctx, namespace); err != nil {
					return err
				}
			}
			if err := w.applyExtra(ctx, o); err != nil {
				return fmt.Errorf("apply the sample %s %s: %w", kind.Kind, s.GetName(), err)
			}
		}
	}
	return nil
}

// applyExtra applies o. On a cluster that stays it leaves an object alone that is somebody else's.
func (w *walk) applyExtra(ctx context.Context, o *unstructured.Unstructured) error {
	if w.options.ID != "" {
		w.label(o)
		there := &unstructured.Unstructured{}
		there.SetGroupVersionKind(o.GroupVersionKind())
		err := w.client.Get(ctx, client.ObjectKeyFromObject(o), there)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil && there.GetLabels()[cluster.WalkLabel] != w.options.ID {
			return hint.With(fmt.Errorf("it is on cluster %s already, and the walk did not create it", w.cluster.Name()), "rename the sample, or put it into another namespace")
		}
	}
	return w.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("olmkit"), client.ForceOwnership)
}

// label marks an object that the walk makes of somebody's manifest. Its other labels may mean something to others, so they stay.
func (w *walk) label(o *unstructured.Unstructured) {
	if w.options.ID == "" {
		return
	}
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[cluster.WalkLabel] = w.options.ID
	o.SetLabels(labels)
}

// clean removes all that the walk brought, so that the next installation finds a cluster without a trace of the package.
func (w *walk) clean(ctx context.Context) ([]finding.Finding, error) {
	if w.watcher == nil {
		return nil, nil
	}
	step := w.options.Progress.Start("  uninstall")
	found, err := w.tryClean(ctx)
	return found, step.End(err)
}

func (w *walk) tryClean(ctx context.Context) ([]finding.Finding, error) {
	var findings []finding.Finding
	finalizers := deletionLimit
	if w.release == nil || !w.operatorRuns(w.release) {
		finalizers = 0
	}
	stay, err := w.remove(ctx, finalizers)
	if err != nil {
		return nil, err
	}
	if finalizers > 0 {
		for _, o := range stay {
			findings = append(findings, find(codeUninstall, o.String(), "it was deleted %s ago and is still there: %s does not remove its finalizers%s",
				finalizers, w.release.Name, w.finalizersOf(ctx, o)))
		}
	}
	slices.Sort(w.crds)
	if err := w.manager.Uninstall(ctx, w.place, slices.Compact(w.crds), w.options.Timeout); err != nil {
		return findings, err
	}
	orphans, err := w.deleteLeftovers(ctx)
	for _, name := range orphans {
		if !w.survived[name] {
			w.survived[name] = true
			findings = append(findings, find(codeOrphans, name, "it is still there after %s was uninstalled", w.pkg.Name))
		}
	}
	if err != nil {
		return findings, err
	}
	w.release, w.populated, w.crds, w.simulated = nil, nil, nil, nil
	return findings, nil
}

// deletionLimit is how long the operator has to remove its finalizers from an object that was deleted.
const deletionLimit = 30 * time.Second

// finalizersOf says which finalizers o has, where they can be read.
func (w *walk) finalizersOf(ctx context.Context, o *object) string {
	now, err := w.current(ctx, o)
	if err != nil || len(now.GetFinalizers()) == 0 {
		return ""
	}
	return " (" + strings.Join(now.GetFinalizers(), ", ") + ")"
}

// deleteLeftovers removes what the manager leaves of uninstalled releases, and says what that was.
func (w *walk) deleteLeftovers(ctx context.Context) ([]string, error) {
	var shipped []string
	for _, r := range w.releases {
		shipped = append(shipped, r.Shipped...)
	}
	return w.manager.DeleteOrphans(ctx, w.place, shipped)
}
