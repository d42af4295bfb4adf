package upgrade

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/report"
)

// Outcome is the result of an upgrade under a fault, from the best to the worst.
type Outcome string

// Outcomes.
const (
	Survived Outcome = "survived" // the fault has no effect
	Blocked  Outcome = "blocked"  // the upgrade waits while the fault is in force, and then passes
	Degraded Outcome = "degraded" // the upgrade passes; users notice the fault for a while
	Broken   Outcome = "broken"   // the upgrade fails, or data are lost
	// Skipped is no outcome: the fault could not be injected into this hop.
	Skipped Outcome = "skipped"
)

// Fault is a trouble that a walk makes on purpose during a hop. It is bounded, and undone.
type Fault struct {
	Name   string
	Doc    string  // what is done, and until when
	Phase  string  // at which it is injected unless another is asked for
	Fixed  bool    // it is injected at Phase only
	Expect Outcome // the worst that an upgrade may come to under it
	// Harms are the codes of warnings that the fault itself brings about. It never explains errors.
	Harms []string

	component string // of the control plane or the node, that the cluster has to be able to kill
	converter string // how a converter that the cluster has to provide misbehaves
	shared    bool   // it affects what others on the cluster need as well
	inTrust   bool   // it brings about what otherwise comes of certificates and converters that do not fit

	hold       time.Duration // how long it is in force; 0 for what is over at once, or ends by itself
	throughout bool          // it is in force as long as the hop goes on
	inject     func(*hopFaults, context.Context, *activeFault) error
}

const beforeHop = lifecycle.BeforeHop

// Phases are the moments at which a fault can be injected under m, in the order in which most hops come to them.
func Phases(m lifecycle.Manager) []string {
	list := []string{beforeHop}
	for _, milestone := range m.Milestones("old", "new") {
		list = append(list, slug(milestone.Name))
	}
	return list
}

// slug is a milestone's name as a phase.
func slug(milestone string) string { return strings.ReplaceAll(strings.ToLower(milestone), " ", "-") }

// What kills and a certificate's or converter's troubles bring about by themselves.
var (
	outageHarms   = []string{codeReadOutage, codeWriteOutage, codeAdmissionOutage}
	operatorHarms = append([]string{codeRestarted, codeRollouts, codeReinstalls}, outageHarms...)
	clusterHarms  = append([]string{codeSlow, codeOperandOutage, codeOperandRestarted}, operatorHarms...)
)

// Faults lists every fault, in the order of their effects' distance from the operator: those that can be made under any
// lifecycle manager, and those of m.
func Faults(m lifecycle.Manager) []Fault {
	all := slices.Clone(operatorFaults)
	for _, f := range m.Faults() {
		made := Fault{Name: f.Name, Doc: f.Doc, Phase: f.Phase, Fixed: f.Fixed, Expect: Survived, Harms: operatorHarms, shared: f.Shared, inject: (*hopFaults).injectManagers}
		if f.Blocks {
			made.Expect, made.Harms = Blocked, nil
		}
		all = append(all, made)
	}
	return append(all, clusterFaults...)
}

var operatorFaults = []Fault{
	{Name: "kill-operator", Phase: "installing", Expect: Degraded, Harms: operatorHarms, inject: (*hopFaults).killOperator,
		Doc: "the operator's pods, old and new, are deleted without a grace period"},
	{Name: "forbidden", Phase: "installing", Expect: Degraded, Harms: operatorHarms, inject: (*hopFaults).forbid, hold: 4 * time.Second,
		Doc: "every write by the operator's service accounts is refused with 403, for 4 s"},
	{Name: "cert-missing", Phase: "succeeded", Expect: Degraded, Harms: operatorHarms, inTrust: true, inject: (*hopFaults).loseCertificates, hold: 3 * time.Second,
		Doc: "the Secrets with the webhooks' certificates are deleted; those that have not been created again after 3 s are restored"},
	{Name: "cert-expired", Phase: "succeeded", Expect: Degraded, Harms: operatorHarms, inTrust: true, inject: (*hopFaults).expireCertificates, hold: 8 * time.Second,
		Doc: "the webhooks' certificates are replaced by expired ones, with matching CA bundles, for 8 s"},
	{Name: "cert-rotated", Phase: "succeeded", Expect: Degraded, Harms: operatorHarms, inTrust: true, inject: (*hopFaults).rotateCertificates, hold: 8 * time.Second,
		Doc: "the webhooks' certificates and CA bundles are replaced by new ones, and restored after 8 s"},
	{Name: "convert-slow", Phase: "succeeded", Expect: Degraded, Harms: operatorHarms, inTrust: true, converter: "slow", inject: (*hopFaults).convertFaultily, hold: 4 * time.Second,
		Doc: "conversion requests are answered after 10 s, with an error, for 4 s"},
	{Name: "convert-500", Phase: "succeeded", Expect: Degraded, Harms: operatorHarms, inTrust: true, converter: "500", inject: (*hopFaults).convertFaultily, hold: 3 * time.Second,
		Doc: "conversion requests are answered with status 500, for 3 s"},
	{Name: "convert-wrong", Phase: "succeeded", Expect: Degraded, Harms: operatorHarms, inTrust: true, converter: "wrong", inject: (*hopFaults).convertFaultily, hold: 3 * time.Second,
		Doc: "conversion requests are answered with a wrong object, for 3 s"},
	{Name: "convert-absent", Phase: "succeeded", Expect: Degraded, Harms: operatorHarms, inTrust: true, inject: (*hopFaults).unconvert, hold: 3 * time.Second,
		Doc: "the CRDs name a conversion Service that does not exist, for 3 s"},
	{Name: "oversize", Phase: beforeHop, Fixed: true, Expect: Survived, inject: (*hopFaults).oversize,
		Doc: "one of the custom resources has 200 KiB of annotations"},
	{Name: "hostile", Phase: beforeHop, Fixed: true, Expect: Survived, inject: (*hopFaults).hostile,
		Doc: "one of the custom resources has annotations with unusual Unicode, quotes, markup and deeply nested JSON"},
	{Name: "two-writers", Phase: beforeHop, Fixed: true, Expect: Survived, throughout: true, inject: (*hopFaults).writeToo,
		Doc: "during the whole hop, a second client reads and updates each object, in another version where there is one"},
	{Name: "two-hops", Phase: beforeHop, Fixed: true, Expect: Survived, Harms: operatorHarms, inject: (*hopFaults).goOn,
		Doc: "the version after the new one is published at the same time, and the walk waits until it is installed"},
	{Name: "catalog-down", Phase: "catalog-noticed", Expect: Survived, inject: (*hopFaults).downCatalog, hold: 3 * time.Second,
		Doc: "the catalog is at an address where nothing listens, for 3 s"},
	{Name: "catalog-flapping", Phase: "catalog-noticed", Expect: Survived, inject: (*hopFaults).flapCatalog,
		Doc: "the catalog is at an address where nothing listens, and back, five times in 3 s"},
	{Name: "catalog-changed", Phase: "install-plan-created", Expect: Survived, inject: (*hopFaults).changeCatalog, hold: 3 * time.Second,
		Doc: "the catalog is replaced by one without the new version, for 3 s"},
}

var clusterFaults = []Fault{
	{Name: "kill-apiserver", Phase: "crds-written", Expect: Degraded, shared: true, Harms: clusterHarms, component: "kube-apiserver", inject: (*hopFaults).killComponent,
		Doc: "kube-apiserver is killed, and restarts at once"},
	{Name: "kill-etcd", Phase: "crds-written", Expect: Degraded, shared: true, Harms: clusterHarms, component: "etcd", inject: (*hopFaults).killComponent,
		Doc: "etcd is killed, and restarts at once"},
	{Name: "kill-controller-manager", Phase: "installing", Expect: Survived, shared: true, Harms: clusterHarms, component: "kube-controller-manager", inject: (*hopFaults).killComponent,
		Doc: "kube-controller-manager is killed, and restarts at once"},
	{Name: "restart-node", Phase: "installing", Expect: Degraded, shared: true, Harms: clusterHarms, component: "node", inject: (*hopFaults).killComponent,
		Doc: "all containers of the node stop at once and restart: the operator's, OLM's and the operands'"},
}

// Injection is a fault and the phase at which it is injected.
type Injection struct {
	Fault
	At string
}

// String is the injection as the command line has it.
func (i Injection) String() string { return i.Name + "@" + i.At }

// ParseInjections reads the faults of one hop: NAME or NAME@PHASE, separated by commas. Its errors list what there
// is.
func ParseInjections(m lifecycle.Manager, s string) ([]Injection, error) {
	var list []Injection
	faults, phases := Faults(m), Phases(m)
	for part := range strings.SplitSeq(s, ",") {
		name, phase, asked := strings.Cut(strings.TrimSpace(part), "@")
		n := slices.IndexFunc(faults, func(f Fault) bool { return f.Name == name })
		if n < 0 {
			return nil, fmt.Errorf("there is no fault %q; there are %s", name, strings.Join(faultNames(faults), ", "))
		}
		i := Injection{Fault: faults[n], At: faults[n].Phase}
		switch {
		case asked && !slices.Contains(phases, phase):
			return nil, fmt.Errorf("there is no phase %q; there are %s", phase, strings.Join(phases, ", "))
		case asked && i.Fixed && phase != i.Phase:
			return nil, fmt.Errorf("the fault %s is injected at %s only, not at %s", name, i.Phase, phase)
		case asked:
			i.At = phase
		}
		list = append(list, i)
	}
	return list, nil
}

func faultNames(faults []Fault) []string {
	names := make([]string, len(faults))
	for i, f := range faults {
		names[i] = f.Name
	}
	return names
}

// Killer is a cluster that can end its own components.
type Killer interface {
	// Kill ends kube-apiserver, etcd, kube-controller-manager or kube-scheduler, or with "node" all containers at once. It
	// returns when they are gone; they are started again at once.
	Kill(ctx context.Context, component string) error
}

// FaultyConverter is a cluster that can serve a conversion webhook that misbehaves.
type FaultyConverter interface {
	// FaultyConverter returns the URL and the CA of a webhook that answers as mode says: slow, 500 or wrong.
	FaultyConverter(ctx context.Context, mode string) (url string, ca []byte, err error)
}

// Possible reports whether f can be made on c, of which only the kind matters.
func (f Fault) Possible(c cluster.Cluster) bool {
	_, kills := c.(Killer)
	_, converts := c.(FaultyConverter)
	switch {
	case f.component != "":
		return kills && c.Disposable()
	case f.converter != "":
		return converts
	case f.shared:
		return c.Disposable()
	}
	return true
}

// PossibleFaults names the faults that can be made under m on c.
func PossibleFaults(m lifecycle.Manager, c cluster.Cluster) []string {
	var names []string
	for _, f := range Faults(m) {
		if f.Possible(c) {
			names = append(names, f.Name)
		}
	}
	return names
}

// faultResult is an injection in one hop, and how it went.
type faultResult struct {
	Injection
	Start, End time.Time // while it was in force
	Why        string    // why it was not made; "" if it was
	Note       string    // what is worth saying of how it was made
	Held       bool      // the upgrade stood still as long as it was in force
	Lost       []string  // what the fault itself wrote, and what was lost of it
}

// recovery is how long after a fault its effects may last: the time in which a killed program starts, acquires its lease
// and reads what it caches, and a changed certificate gets to where it is read.
const recovery = 20 * time.Second

// causedBy returns the one of list that explains what is told by code, began between two moments (the zero time is any) and began
// with an error of the given text, or nil. If more do, it is one that users may notice, and of those the last.
func causedBy(list []*faultResult, code string, from, to time.Time, text string) *faultResult {
	var best *faultResult
	for _, s := range list {
		during := from.IsZero() || !to.Before(s.Start.Add(-watchSkew)) && !from.After(s.End.Add(recovery))
		trusted := s.inTrust || !slices.ContainsFunc(ownTroubles, func(t string) bool { return strings.Contains(text, t) })
		if s.Why == "" && slices.Contains(s.Harms, code) && during && trusted && (best == nil || s.likelier(best)) {
			best = s
		}
	}
	return best
}

// likelier reports whether s is more likely to be what users notice than another fault is.
func (s *faultResult) likelier(than *faultResult) bool {
	if (s.Expect == Survived) != (than.Expect == Survived) {
		return than.Expect == Survived
	}
	return s.Start.After(than.Start)
}

// ownTroubles are parts of errors that come of how releases and the manager's steps fit together, and of no fault but those that
// meddle with certificates and converters.
var ownTroubles = []string{"x509", "is registered for version", "the server could not find the requested resource"}

// attributeToFault turns f into a note that s caused it.
func attributeToFault(f finding.Finding, s *faultResult) finding.Finding {
	f.Severity, f.Fix, f.Fault = finding.Info, "", s.String()
	f.Cause = strings.TrimSuffix(fmt.Sprintf("the injected fault %s did it, and not the operator; %s", s.Injection, f.Cause), "; ")
	return f
}

// attributeToFaults returns what findings of a hop under faults are: those that a fault explains are none of the operator's.
func attributeToFaults(findings []finding.Finding, list []*faultResult) []finding.Finding {
	for i, f := range findings {
		if timed(f.Code) || f.Severity == finding.Error {
			continue // these are told apart by their time, or are never excused
		}
		if s := causedBy(list, f.Code, time.Time{}, time.Time{}, ""); s != nil {
			findings[i] = attributeToFault(f, s)
		}
	}
	return findings
}

// timed reports whether findings of code are about a stretch of time.
func timed(code string) bool { return slices.Contains(outageHarms, code) }

// judgeFaults says what became of a hop under each of list, by all that was found; known are the codes of errors that the
// hop also has without a fault.
func judgeFaults(list []*faultResult, findings []finding.Finding, known map[string]bool, hopStart time.Time) ([]report.Fault, []finding.Finding) {
	var told []report.Fault
	var judged []finding.Finding
	for _, s := range list {
		outcome, codes := s.outcome(findings, known)
		right := outcome == Skipped || outcome == s.Expect || s.Expect == Degraded && (outcome == Survived || outcome == Blocked)
		t := report.Fault{
			Name: s.Name, Phase: s.At, Seconds: seconds(s.End.Sub(s.Start)), Expected: string(s.Expect), Outcome: string(outcome),
			Codes: codes, Why: cmp.Or(s.Why, s.Note), Result: report.Passed,
		}
		if outcome != Skipped {
			t.At = seconds(s.Start.Sub(hopStart))
		}
		if !right {
			t.Result = report.Failed
			judged = append(judged, s.wrong(outcome, codes))
		}
		told = append(told, t)
	}
	return told, judged
}

// outcome is what became of the hop, with the codes that show it.
func (s *faultResult) outcome(findings []finding.Finding, known map[string]bool) (Outcome, []string) {
	if s.Why != "" {
		return Skipped, nil
	}
	var lost, harmed []string
	for _, f := range findings {
		switch {
		case f.Severity == finding.Error && !known[f.Code]:
			lost = append(lost, f.Code)
		case f.Fault == s.String():
			harmed = append(harmed, f.Code)
		}
	}
	unique := func(codes []string) []string {
		slices.Sort(codes)
		return slices.Compact(codes)
	}
	switch {
	case len(lost) > 0:
		return Broken, unique(lost)
	case s.Expect == Blocked && s.Held:
		return Blocked, unique(harmed)
	// A restart that nobody noticed is no harm.
	case slices.ContainsFunc(harmed, func(code string) bool { return slices.Contains(noticed, code) }):
		return Degraded, unique(harmed)
	}
	return Survived, unique(harmed)
}

// noticed are the codes of what users notice of a fault.
var noticed = []string{codeReadOutage, codeWriteOutage, codeAdmissionOutage, codeOperandOutage, codeConditionWorse}

// wrong is the finding that the hop came to something worse than it should.
func (s *faultResult) wrong(outcome Outcome, codes []string) finding.Finding {
	if s.Expect == Blocked {
		return find(codeFaultIgnored, "", "the fault %s should have held the upgrade up as long as it was in force, and did not: the upgrade %s", s, outcome)
	}
	f := find(codeFaultBroke, "", "under the fault %s the upgrade was %s (%s); at worst it should have been %s", s, outcome, strings.Join(codes, ", "), s.Expect)
	f.Cause = s.Doc
	return f
}

// inapplicable is why a fault cannot be made on a hop.
type inapplicable = lifecycle.Inapplicable
