// Package walk walks upgrades on a cluster: for each hop of a plan it lets the lifecycle manager replace one bundle by the next, on
// a catalog that holds nothing else, has it observed what users would notice, and has that judged.
//
// Use it to prove what a static check cannot see: that conversion keeps every field, that the new manager really starts,
// how long objects cannot be read or written.
package walk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/olmkit/olmkit/internal/assert"
	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/fault"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/graph"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/internal/progress"
	"github.com/olmkit/olmkit/internal/report"
)

// Options of a walk.
type Options struct {
	Samples []*unstructured.Unstructured // objects to make instead of the bundles' alm-examples of the same kinds and versions, and what those need
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

	// Fuzz is how many objects of each served version are made of its schema and sent through conversion; FuzzSeed makes the first. FuzzAll tells of all that
	// they lose on the way; without, it is an error only where a webhook loses what that of the release before did not, and a note where both do.
	Fuzz     int
	FuzzSeed uint64
	FuzzAll  bool

	// Strict makes errors of the warnings about what users notice; see judge.Strict.
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
	Faults [][]fault.Injection
	// Connect returns the lifecycle manager to walk under, which must have been installed.
	Connect lifecycle.Connect
	// AfterHop is called after each hop that came to its end; it may be nil.
	AfterHop AfterHop
}

// AfterHop checks a cluster on which hop.To runs. Its error fails the hop.
type AfterHop func(ctx context.Context, config *rest.Config, hop report.Hop) error

// walk is a walk under way.
type walk struct {
	*observe.Cluster

	pkg      *catalog.Package
	channel  string
	options  Options
	releases map[string]*lifecycle.Release
	after    map[string]*lifecycle.Release // by the name of a release, the one that the plan goes on to from it
	follow   func(ctx context.Context, namespace string) (*observe.Watcher, error)

	publication publication
	was         string // the channel that the hop under way comes from, "" if that is its own
	installed
	restoration
	memory

	verified      verification
	trying        *progress.Step // of new objects, which was begun last
	calms         []calm         // in which nothing changed while new objects were tried
	copyNames     []string       // of the copies that were tried last
	takenBack     time.Time      // when the walk's last changes of samples, and of what was made for them, were
	lastHop       bool           // no hop follows
	fresh         []string       // releases that were installed without those that users come from
	notes         []string       // limitations that the walk met
	installations []report.Installation
}

// installed is what of the package is on the cluster.
type installed struct {
	release    *lifecycle.Release // nil when nothing of the package stands, or not surely in one piece
	populated  *lifecycle.Release // whose samples were made last
	lingering  []*observe.Object  // that were deleted, and were not gone in time
	copied     int                // for how many new objects it was asked what they need
	refused    string             // why the API server took no new object the last time, "" if it took it
	unwatch    context.CancelFunc
	freshSince time.Time            // when the package was last installed where nothing of it stood
	began      map[string]time.Time // by the name of a release, when the manager was last asked for it
}

// restoration is what the walk restored of another cluster.
type restoration struct {
	restored      []*observe.Object
	restoredKinds map[string]bool // definitions whose objects were restored
	restoredIn    map[string]bool // namespaces with restored objects
}

// memory is what earlier hops showed, for later ones to be compared with.
type memory struct {
	survived map[string]bool                       // what was told to survive uninstalling
	tells    map[string][]string                   // the Events that a release sent whenever it looked at an object, by both
	looped   map[string][]string                   // fields that an earlier release kept writing, by object
	acted    time.Duration                         // how long an operator took last to act on a change
	asked    map[types.UID]string                  // the release that an object was changed under last
	responds map[string]bool                       // objects of which it was seen that an operator acts on a change
	took     map[string]map[string]string          // by release and object, the field of which the API server took a change
	effects  map[string]map[string]judge.Effect    // by release and object, what its operator did about a change
	reverts  map[string]map[string]bool            // by release and workload, whether its operator puts back what others change
	created  map[string]map[string]judge.New       // by release and definition, what its operator did for an object that was created while it ran
	cleared  map[string][]cleared                  // by release, what its operator deleted with copies
	uniques  map[string][]string                   // by definition and version, the fields of which no two objects may have the same text
	alone    map[string]bool                       // definitions of whose objects the operator can take care of one alone
	makes    map[string]bool                       // of these, by definition, version and path, those that name what an operator makes
	foreign  map[string]foreignObject              // by name, what somebody else has
	left     map[string]map[string]judge.Foreign   // by release and name, what became of these
	admitted map[string]map[string]admission       // by release and sample, what webhooks and policies refused
	plain    map[string]map[string]string          // by what they are, what the API server alone makes of bystanders; nil if that is not known
	bystood  map[string]map[string]judge.Bystander // by release, what became of them
	labelled map[string]map[string]string          // by release, the labels of nodes; those before any by ""
	given    map[string]map[string]string          // by release, what the user's workloads said that samples name
	runs     map[string]map[string]judge.Runs      // by release and sample, what was seen of Jobs that are made from time to time
	worked   map[string]judge.Work                 // by release, what its operator did while new objects were tried
	idled    map[string][]judge.Work               // by release, what its operator did when it was left alone, if it seemed not to come to rest
	metrics  map[string]observe.Metrics            // by release, what its operator reports
	exits    map[string]bool                       // releases whose operator ended while it was verified
	told     map[string]bool                       // findings of installations that were told
	known    map[string]map[string]bool            // by hop, the codes of the errors that it has without faults
	fuzzed   map[string]map[losing]bool            // by release, what fuzzing showed that its conversion loses
	sampled  map[string]askedFor                   // by definition
	calls    map[string]calls                      // by the name of a release
	measured []*lifecycle.Release                  // whose calls are noted
}

func newMemory() memory {
	return memory{
		survived: map[string]bool{}, asked: map[types.UID]string{}, looped: map[string][]string{}, tells: map[string][]string{}, responds: map[string]bool{}, effects: map[string]map[string]judge.Effect{}, took: map[string]map[string]string{},
		reverts: map[string]map[string]bool{}, created: map[string]map[string]judge.New{}, cleared: map[string][]cleared{}, foreign: map[string]foreignObject{}, uniques: map[string][]string{}, makes: map[string]bool{}, alone: map[string]bool{}, left: map[string]map[string]judge.Foreign{}, admitted: map[string]map[string]admission{}, bystood: map[string]map[string]judge.Bystander{}, runs: map[string]map[string]judge.Runs{}, given: map[string]map[string]string{}, labelled: map[string]map[string]string{}, worked: map[string]judge.Work{}, idled: map[string][]judge.Work{}, metrics: map[string]observe.Metrics{}, exits: map[string]bool{}, told: map[string]bool{}, known: map[string]map[string]bool{}, fuzzed: map[string]map[losing]bool{}, sampled: map[string]askedFor{}, calls: map[string]calls{},
	}
}

// Run walks the hops of plan, in their order, on c, into which the lifecycle manager must have been installed, and returns what
// it found. A hop that fails ends only itself. An error means that the walk itself could not go on; the report then holds the
// hops until there, the others skipped, and the error as a finding, unless nothing was walked at all.
func Run(ctx context.Context, c cluster.Cluster, p *catalog.Package, plan graph.Plan, options Options) (*report.Report, error) {
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
		Cluster: &observe.Cluster{Provider: c}, pkg: p, channel: plan.Channel, options: options, after: map[string]*lifecycle.Release{},
		installed: installed{began: map[string]time.Time{}}, memory: newMemory(),
	}
	if len(w.options.Faults) == 0 {
		w.options.Faults = [][]fault.Injection{nil}
	}
	if options.Restore != nil {
		w.restoration = restoration{restoredKinds: map[string]bool{}, restoredIn: map[string]bool{}}
		w.Place.Mode, w.notes = options.Restore.Mode, options.Restore.Notes
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
		r.Seconds = observe.Seconds(time.Since(start))
		r.Installations, r.Access = w.installations, w.access()
		r.Cluster.Limitations = slices.Concat(notRun(r), w.notes, r.Cluster.Limitations, w.untried())
	}()
	var err error
	if r.Cluster.OLM, err = w.Manager.Version(ctx); err != nil {
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
	r.Findings = append(r.Findings, judge.Collapse(w.about(found, finding.Subject{}))...)
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
		taken, failed := w.takenAlong(ctx)
		found = append(found, taken...)
		if failed == nil {
			taken, failed = w.clean(ctx)
			found = append(found, taken...)
		}
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
			hop.NoSample = withoutSample(hop.Findings)
			hop.Findings = judge.Collapse(hop.Findings)
			finding.Sort(hop.Findings)
			if errors.Is(err, context.Canceled) { // nothing is known of it yet
				hop.Result = report.Skipped
			}
			r.Hops[round*len(plan.Hops)+i] = hop
			if err != nil {
				return err
			}
			w.tell(hop)
			if len(injections) == 0 {
				w.known[edge.From+" "+edge.To] = judge.ErrorsIn(hop.Findings)
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
		text := fmt.Sprintf("it was deleted %s ago and is still there, so the walk ended here", remains.After)
		if remains.Why != "" {
			text += ": " + remains.Why
		}
		var findings []finding.Finding
		for _, name := range remains.What {
			findings = append(findings, code.Finding(code.Leftovers, name, "%s", text))
		}
		return findings, nil
	}
	if errors.Is(err, context.Canceled) {
		return []finding.Finding{code.Finding(code.WalkEnded, "", "it was interrupted")}, err
	}
	return []finding.Finding{code.Finding(code.WalkEnded, "", "%v", err)}, err
}

// newReport returns the report in which none of the rounds of plan is walked yet.
func (w *walk) newReport(plan graph.Plan, rounds int) *report.Report {
	proof := w.Provider.Describe()
	r := NotWalked(plan, rounds)
	r.Cluster = &report.Cluster{Kind: proof.Kind, Kubernetes: proof.Kubernetes, Limitations: proof.Limitations}
	return r
}

// NotWalked returns the report of so many rounds of plan of which no hop was walked.
func NotWalked(plan graph.Plan, rounds int) *report.Report {
	r := &report.Report{APIVersion: report.APIVersion, Kind: report.KindUpgrade}
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
	return report.Hop{Package: e.Package, Channel: e.Channel, FromChannel: e.Switch, From: e.From, To: e.To, Edge: string(e.Kind), Effective: e.Effective}
}

// Check reads every bundle that plan needs, so that one that cannot be walked is told before a cluster is up.
func Check(p *catalog.Package, plan graph.Plan) error {
	_, err := readReleases(p, plan)
	return err
}

func readReleases(p *catalog.Package, plan graph.Plan) (map[string]*lifecycle.Release, error) {
	names := []string{plan.First()}
	for _, hop := range plan.Hops {
		names = append(names, hop.From, hop.To)
	}
	releases := map[string]*lifecycle.Release{}
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
	config := rest.CopyConfig(w.Provider.Config())
	config.QPS = -1
	var err error
	if w.Manager, err = w.options.Connect(config, w.options.ID, w.brings()); err != nil {
		return err
	}
	w.Client = w.Manager.Client()
	if w.Dynamic, err = dynamic.NewForConfig(config); err != nil {
		return fmt.Errorf("connect to the API server: %w", err)
	}
	w.follow = func(ctx context.Context, namespace string) (*observe.Watcher, error) {
		return observe.Watch(ctx, config, w.Manager, namespace)
	}
	return nil
}

// brings names what of the cluster's scope the releases bring, each Kind/name.
func (w *walk) brings() []string {
	var names []string
	for _, r := range w.releases {
		for _, name := range r.Shipped {
			kind, _, _ := strings.Cut(name, "/")
			if slices.Contains([]string{observe.KindCRD, "ClusterRole", "ClusterRoleBinding", "PriorityClass"}, kind) {
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
		if !slices.Contains(w.Manager.Modes(r), lifecycle.AllNamespaces) && len(namespaces) == 1 {
			namespaces = append(namespaces, w.pkg.Name)
		}
	}
	there, err := w.Manager.Present(ctx, w.pkg.Name, slices.Compact(crds), namespaces...)
	if err != nil {
		return fmt.Errorf("look for package %s on cluster %s: %w", w.pkg.Name, w.Provider.Name(), err)
	}
	if len(there) > 0 {
		return hint.With(fmt.Errorf("package %s is on cluster %s already: %s", w.pkg.Name, w.Provider.Name(), strings.Join(there, ", ")),
			"walk on a cluster without it: what belongs to somebody is not touched")
	}
	return nil
}

// hop walks one edge. Its error is only what keeps the walk from going on.
func (w *walk) hop(ctx context.Context, edge graph.Edge, injections []fault.Injection) (hop report.Hop, err error) {
	hop = newHop(edge)
	hop.Result = report.Failed
	from, to := w.releases[edge.From], w.releases[edge.To]
	w.options.Progress.Say("%s → %s (%s)", edge.From, edge.To, edge.Kind)
	w.options.Progress.Status("%s → %s", edge.From, edge.To)
	subject := finding.Subject{Package: edge.Package, Channel: edge.Channel, From: edge.From, To: edge.To}
	add := func(found ...finding.Finding) { hop.Findings = append(hop.Findings, w.about(found, subject)...) }

	mode, ok := w.sharedMode(from, to)
	if w.release != from || mode != w.Place.Mode || edge.Switch != "" {
		found, err := w.clean(ctx)
		add(found...)
		if err != nil {
			hop.Result = report.Skipped
			return hop, fmt.Errorf("clean up before %s → %s: %w", edge.From, edge.To, err)
		}
		w.Place.Mode, w.channel = mode, cmp.Or(edge.Switch, edge.Channel)
		if c := w.pkg.Channel(w.channel); c != nil && c.Entry(from.Name) != nil && c.Entry(from.Name).Replaces != "" {
			w.fresh = append(w.fresh, from.Name)
		}
		found, err = w.installBase(ctx, from)
		add(found...)
		if err != nil || w.release == nil {
			hop.Simulated = w.Simulated
			hop.Logs = w.FailedLogs(ctx, from, from, nil)
			return hop, err
		}
	}
	if !ok {
		add(code.Finding(code.NotChosen, "", "no install mode of %s is one of %s, so whoever has the one cannot get the other", edge.From, edge.To))
	}
	defer w.switchChannel(edge)()
	found, err := w.runHop(ctx, from, to, injections, &hop)
	add(found...)
	if err != nil {
		hop.Logs = w.FailedLogs(ctx, to, from, hop.Logs)
		return hop, err
	}
	if w.options.AfterHop != nil && w.release == to {
		if failed := w.options.AfterHop(ctx, w.Provider.Config(), hop); failed != nil {
			add(code.Finding(code.AfterHop, "", "%v", failed))
		}
	}
	w.grade(hop.Findings, hop.Outages)
	if worst, any := finding.Worst(hop.Findings); !any || worst != finding.Error {
		hop.Result = report.Passed
	}
	if hop.Result == report.Failed {
		hop.Logs = w.FailedLogs(ctx, to, from, hop.Logs)
	}
	if hop.Result == report.Failed && w.options.Rollback {
		w.channel, w.Place.Channel, w.was = cmp.Or(edge.Switch, edge.Channel), cmp.Or(edge.Switch, edge.Channel), ""
		hop.Rollback, err = w.rollback(ctx, from, subject)
	}
	return hop, err
}
