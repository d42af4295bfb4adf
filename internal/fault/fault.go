// Package fault makes faults during a hop, and undoes them: the operator is killed, the catalog is away, conversion fails.
package fault

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/lifecycle"
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
	images    bool   // the cluster has to have a registry of its own
	shared    bool   // it affects what others on the cluster need as well
	InTrust   bool   // it brings about what otherwise comes of certificates and converters that do not fit

	hold       time.Duration // how long it is in force; 0 for what is over at once, or ends by itself
	throughout bool          // it is in force as long as the hop goes on
	inject     func(*Set, context.Context, *Active) error
}

// BeforeHop is the phase before the new catalog is published.
const BeforeHop = lifecycle.BeforeHop

// Phases are the moments at which a fault can be injected under m, in the order in which most hops come to them.
func Phases(m lifecycle.Manager) []string {
	list := []string{BeforeHop}
	for _, milestone := range m.Milestones("old", "new") {
		list = append(list, slug(milestone.Name))
	}
	return list
}

// slug is a milestone's name as a phase.
func slug(milestone string) string { return strings.ReplaceAll(strings.ToLower(milestone), " ", "-") }

// What kills and a certificate's or converter's troubles bring about by themselves. A lifecycle manager's programs answer no user's request.
var (
	OutageHarms   = []string{code.ReadOutage, code.WriteOutage, code.AdmissionOutage}
	managerHarms  = []string{code.Restarted, code.Rollouts, code.Reinstalls}
	operatorHarms = slices.Concat(managerHarms, OutageHarms)
	clusterHarms  = append([]string{code.Slow, code.OperandOutage, code.OperandRestarted}, operatorHarms...)
)

// Faults lists every fault, in the order of their effects' distance from the operator: those that can be made under any
// lifecycle manager, and those of m.
func Faults(m lifecycle.Manager) []Fault {
	all := under(m, operatorFaults)
	for _, f := range m.Faults() {
		made := Fault{Name: f.Name, Doc: f.Doc, Phase: f.Phase, Fixed: f.Fixed, Expect: Survived, Harms: managerHarms, shared: f.Shared, inject: (*Set).injectManagers}
		if f.Blocks {
			made.Expect, made.Harms = Blocked, nil
		}
		all = append(all, made)
	}
	return append(all, under(m, clusterFaults)...)
}

// under are those of faults that can be made under m, each at the phase that it has there.
func under(m lifecycle.Manager, faults []Fault) []Fault {
	var list []Fault
	for _, f := range faults {
		if f.Phase = m.FaultPhase(f.Name, f.Phase); f.Phase != "" {
			list = append(list, f)
		}
	}
	return list
}

var operatorFaults = []Fault{
	{Name: "kill-operator", Phase: "installing", Expect: Degraded, Harms: operatorHarms, inject: (*Set).killOperator,
		Doc: "the operator's pods, old and new, are deleted without a grace period"},
	{Name: "forbidden", Phase: "installing", Expect: Degraded, Harms: operatorHarms, inject: (*Set).forbid, hold: 4 * time.Second,
		Doc: "every write by the operator's service accounts is refused with 403, for 4 s"},
	{Name: "cert-missing", Phase: "succeeded", Expect: Degraded, Harms: operatorHarms, InTrust: true, inject: (*Set).loseCertificates, hold: 3 * time.Second,
		Doc: "the Secrets with the webhooks' certificates are deleted; those that have not been created again after 3 s are restored"},
	{Name: "cert-expired", Phase: "succeeded", Expect: Degraded, Harms: operatorHarms, InTrust: true, inject: (*Set).expireCertificates, hold: 8 * time.Second,
		Doc: "the webhooks' certificates are replaced by expired ones, with matching CA bundles, for 8 s"},
	{Name: "cert-rotated", Phase: "succeeded", Expect: Degraded, Harms: operatorHarms, InTrust: true, inject: (*Set).rotateCertificates, hold: 8 * time.Second,
		Doc: "the webhooks' certificates and CA bundles are replaced by new ones, and restored after 8 s"},
	{Name: "convert-slow", Phase: "succeeded", Expect: Degraded, Harms: operatorHarms, InTrust: true, converter: "slow", inject: (*Set).convertFaultily, hold: 4 * time.Second,
		Doc: "conversion requests are answered after 10 s, with an error, for 4 s"},
	{Name: "convert-500", Phase: "succeeded", Expect: Degraded, Harms: operatorHarms, InTrust: true, converter: "500", inject: (*Set).convertFaultily, hold: 3 * time.Second,
		Doc: "conversion requests are answered with status 500, for 3 s"},
	{Name: "convert-wrong", Phase: "succeeded", Expect: Degraded, Harms: operatorHarms, InTrust: true, converter: "wrong", inject: (*Set).convertFaultily, hold: 3 * time.Second,
		Doc: "conversion requests are answered with a wrong object, for 3 s"},
	{Name: "convert-absent", Phase: "succeeded", Expect: Degraded, Harms: operatorHarms, InTrust: true, inject: (*Set).unconvert, hold: 3 * time.Second,
		Doc: "the CRDs name a conversion Service that does not exist, for 3 s"},
	{Name: "oversize", Phase: BeforeHop, Fixed: true, Expect: Survived, inject: (*Set).oversize,
		Doc: "one of the custom resources has 200 KiB of annotations"},
	{Name: "hostile", Phase: BeforeHop, Fixed: true, Expect: Survived, inject: (*Set).hostile,
		Doc: "one of the custom resources has annotations with unusual Unicode, quotes, markup and deeply nested JSON"},
	{Name: "two-writers", Phase: BeforeHop, Fixed: true, Expect: Survived, throughout: true, inject: (*Set).writeToo,
		Doc: "during the whole hop, a second client reads and updates each object, in another version where there is one"},
	{Name: "two-hops", Phase: BeforeHop, Fixed: true, Expect: Survived, Harms: operatorHarms, inject: (*Set).goOn,
		Doc: "the version after the new one is published at the same time, and the walk waits until it is installed"},
	{Name: "catalog-down", Phase: "catalog-noticed", Expect: Survived, inject: (*Set).DownCatalog, hold: 3 * time.Second,
		Doc: "the catalog is at an address where nothing listens, for 3 s"},
	{Name: "catalog-flapping", Phase: "catalog-noticed", Expect: Survived, inject: (*Set).FlapCatalog,
		Doc: "the catalog is at an address where nothing listens, and back, five times in 3 s"},
	{Name: "catalog-changed", Phase: "install-plan-created", Expect: Survived, inject: (*Set).changeCatalog, hold: 3 * time.Second,
		Doc: "the catalog is replaced by one without the new version, for 3 s"},
}

var clusterFaults = []Fault{
	{Name: "kill-apiserver", Phase: "crds-written", Expect: Degraded, shared: true, Harms: clusterHarms, component: "kube-apiserver", inject: (*Set).killComponent,
		Doc: "kube-apiserver is killed, and restarts at once"},
	{Name: "kill-etcd", Phase: "crds-written", Expect: Degraded, shared: true, Harms: clusterHarms, component: "etcd", inject: (*Set).killComponent,
		Doc: "etcd is killed, and restarts at once"},
	{Name: "kill-controller-manager", Phase: "installing", Expect: Survived, shared: true, Harms: clusterHarms, component: "kube-controller-manager", inject: (*Set).killComponent,
		Doc: "kube-controller-manager is killed, and restarts at once"},
	{Name: "registry-slow", Phase: BeforeHop, Expect: Survived, images: true, inject: (*Set).delayImages, hold: 10 * time.Second,
		Doc: "the registry with the catalog's and the bundles' images answers each request after 1 s, for 10 s"},
	{Name: "restart-node", Phase: "installing", Expect: Degraded, shared: true, Harms: clusterHarms, component: "node", inject: (*Set).killComponent,
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

// ImageDelayer is a cluster with a registry of its own.
type ImageDelayer interface {
	// DelayImages has the registry answer each request so much later; 0 ends that.
	DelayImages(ctx context.Context, by time.Duration) error
}

// Possible reports whether f can be made on c, of which only the kind matters.
func (f Fault) Possible(c cluster.Cluster) bool {
	_, kills := c.(Killer)
	_, converts := c.(FaultyConverter)
	_, delays := c.(ImageDelayer)
	switch {
	case f.component != "":
		return kills && c.Disposable()
	case f.converter != "":
		return converts
	case f.images:
		return delays
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

// Result is an injection in one hop, and how it went.
type Result struct {
	Injection
	Start, End time.Time // while it was in force
	Why        string    // why it was not made; "" if it was
	Note       string    // what is worth saying of how it was made
	Held       bool      // the upgrade stood still as long as it was in force
	Lost       []string  // what the fault itself wrote, and what was lost of it
}

// Recovery is how long after a fault its effects may last: the time in which a killed program starts, acquires its lease
// and reads what it caches, and a changed certificate gets to where it is read.
const Recovery = 20 * time.Second

// inapplicable is why a fault cannot be made on a hop.
type inapplicable = lifecycle.Inapplicable
