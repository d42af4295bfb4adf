package upgrade

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmkit/olmkit/internal/report"
)

// Kinds of event that a timeline tells apart.
const (
	kindCatalog    = "CatalogSource"
	kindPlan       = "InstallPlan"
	kindCSV        = "ClusterServiceVersion"
	kindCRD        = "CustomResourceDefinition"
	kindDeployment = "Deployment"
	kindRollout    = "ReplicaSet"
	kindPod        = "Pod"
	kindWalk       = "walk" // what the walk itself did
)

// States that a timeline gives besides those that objects have of their own.
const (
	stateGone      = "gone"
	statePublished = "published"
	stateReady     = "ready"
	stateUnready   = "not ready"
	stateRestarted = "restarted"
	stateStable    = "stable"
)

// event is something that changed on the cluster while the walk watched. Times are those of the watching process, which
// also times the observers, so that both can be laid side by side.
type event struct {
	At     time.Time
	Kind   string
	Name   string // without namespace
	State  string // what it is now; of an InstallPlan and a CSV its phase
	Reason string // why, in the words of the object
	For    string // of an InstallPlan and a CatalogSource: the bundle it installs, the address it reads
	CRD    *definition
}

// String tells the event in one line.
func (e event) String() string {
	s := strings.TrimSpace(e.Kind + " " + e.Name + " " + e.State)
	if e.For != "" {
		s += " for " + e.For
	}
	if e.Reason != "" {
		s += " (" + e.Reason + ")"
	}
	if e.CRD != nil {
		s += fmt.Sprintf(": serves %s, stores %s, conversion %s", strings.Join(e.CRD.Served, ", "), e.CRD.Storage, e.CRD.conversion())
	}
	return s
}

// definition is what of a CustomResourceDefinition decides how its objects are served.
type definition struct {
	Generation int64 // of its spec
	Served     []string
	Storage    string
	Stored     []string // status.storedVersions
	Conversion string   // what converts: None, or the webhook's service and path
	CA         string   // short fingerprint of the caBundle; "" for none
}

// describe names what changed from d to n, in the words of a cause.
func (n *definition) describe(d *definition) string {
	if d == nil {
		return "created with conversion " + n.conversion()
	}
	var changes []string
	if d.Conversion != n.Conversion || d.CA != n.CA {
		changes = append(changes, "conversion went from "+d.conversion()+" to "+n.conversion())
	}
	if !slices.Equal(d.Served, n.Served) {
		changes = append(changes, fmt.Sprintf("served versions went from %s to %s", strings.Join(d.Served, ", "), strings.Join(n.Served, ", ")))
	}
	if d.Storage != n.Storage {
		changes = append(changes, fmt.Sprintf("the storage version went from %s to %s", d.Storage, n.Storage))
	}
	if len(changes) == 0 && d.Generation != n.Generation {
		return "with the same versions and conversion; the API server starts serving the kind anew on any change"
	}
	return strings.Join(changes, " and ")
}

func (n *definition) conversion() string {
	switch {
	case n.Conversion == string(apiextensionsv1.NoneConverter):
		return "None"
	case n.CA == "":
		return "webhook " + n.Conversion + " without a CA"
	}
	return "webhook " + n.Conversion + " with CA " + n.CA
}

// milestone is a moment of a hop that ends a phase.
type milestone struct {
	Name string
	At   time.Time
}

// milestones finds the moments of the hop to the bundle called to, from the bundle called from, in timeline, in the order
// in which they came about. What happened before published is left out.
func milestones(timeline []event, published time.Time, from, to string) []milestone {
	var found []milestone
	first := func(name string, is func(event) bool) {
		if i := slices.IndexFunc(timeline, func(e event) bool { return !e.At.Before(published) && is(e) }); i >= 0 {
			found = append(found, milestone{name, timeline[i].At})
		}
	}
	last := func(name string, is func(event) bool) {
		for _, e := range slices.Backward(timeline) {
			if !e.At.Before(published) && is(e) {
				found = append(found, milestone{name, e.At})
				return
			}
		}
	}
	csv := func(name string, phase v1alpha1.ClusterServiceVersionPhase) func(event) bool {
		return func(e event) bool { return e.Kind == kindCSV && e.Name == name && e.State == string(phase) }
	}
	first("catalog noticed", func(e event) bool { return e.Kind == kindCatalog && e.State == stateReady })
	first("install plan created", func(e event) bool { return e.Kind == kindPlan && e.For == to })
	first("CSV created", func(e event) bool { return e.Kind == kindCSV && e.Name == to && e.State != stateGone })
	first("CRDs written", func(e event) bool { return e.Kind == kindCRD })
	first("install plan complete", func(e event) bool {
		return e.Kind == kindPlan && e.For == to && e.State == string(v1alpha1.InstallPlanPhaseComplete)
	})
	first("requirements met", csv(to, v1alpha1.CSVPhaseInstallReady))
	first("installing", csv(to, v1alpha1.CSVPhaseInstalling))
	last("succeeded", csv(to, v1alpha1.CSVPhaseSucceeded))
	if from != "" {
		first("old CSV gone", func(e event) bool { return e.Kind == kindCSV && e.Name == from && e.State == stateGone })
	}
	last("stable", func(e event) bool { return e.Kind == kindWalk && e.State == stateStable })
	slices.SortStableFunc(found, func(a, b milestone) int { return a.At.Compare(b.At) })
	return found
}

// phases are the stretches between milestones, each named by the milestone that ends it.
func phases(found []milestone, published time.Time) []report.Phase {
	var stretches []report.Phase
	for _, m := range found {
		stretches = append(stretches, report.Phase{Name: m.Name, Seconds: seconds(m.At.Sub(published))})
		published = m.At
	}
	return stretches
}

// seconds rounds d to milliseconds, which is finer than anything here is measured.
func seconds(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }

// cause tells what happened on the cluster that bears on an outage of crd from start to end, given the definition before
// timeline begins: how the outage began, and what ended it.
func cause(timeline []event, before *definition, o outage, to string) string {
	var began, ended string
	for i, e := range timeline {
		if e.At.After(o.End.Add(slack)) {
			break
		}
		if e.Kind != kindCRD || e.Name != o.CRD || e.CRD == nil {
			continue
		}
		change := e.CRD.describe(before)
		conversionChanged := before == nil || before.conversion() != e.CRD.conversion()
		before = e.CRD
		said := fmt.Sprintf("%s %s", writer(timeline[:i+1], e, to), change)
		switch {
		case change == "" || e.At.Before(o.Start.Add(-lookBack)):
		case began == "" || e.At.Before(o.Start):
			began = said
		case conversionChanged:
			ended = said
		}
	}
	for _, e := range timeline {
		if e.Kind != kindPod || e.At.Before(o.Start.Add(-slack)) || e.At.After(o.End.Add(slack)) {
			continue
		}
		switch {
		case began == "" && (e.State == stateGone || e.State == stateUnready || e.State == stateRestarted):
			began = fmt.Sprintf("pod %s is %s", e.Name, e.State)
		case e.State == stateReady:
			ended = strings.TrimPrefix(ended+", then pod "+e.Name+" became ready", ", then ")
		}
	}
	switch {
	case o.Open:
		return began
	case began != "" && ended != "":
		return began + "; it ended when " + ended
	case ended != "":
		return "it ended when " + ended
	}
	return began
}

// lookBack is how long before its first failed attempt a change may lie that an outage is put down to: the API server
// takes a moment to act on a changed CRD.
const lookBack = 2 * time.Second

// slack is how far apart the moment in which something happens on the API server and the moment in which a watch tells of
// it may lie.
const slack = 500 * time.Millisecond

// writer says which of OLM's operators made the change e of a CRD: the catalog operator writes a bundle's CRD while it
// carries out the InstallPlan, without a CA; the OLM operator only ever adds service and CA.
func writer(until []event, e event, to string) string {
	if e.CRD != nil && e.CRD.CA != "" {
		return "OLM's operator repaired the CRD:"
	}
	for _, earlier := range slices.Backward(until) {
		if earlier.Kind == kindPlan && earlier.For == to {
			return "OLM's catalog operator wrote the CRD as the bundle has it:"
		}
	}
	return "the CRD was changed:"
}

// rollouts counts, by deployment, the ReplicaSets that were made in timeline since start.
func rollouts(timeline []event, since time.Time) map[string]int {
	n := map[string]int{}
	seen := map[string]bool{}
	for _, e := range timeline {
		if e.Kind == kindRollout && e.State != stateGone && !e.At.Before(since) && !seen[e.Name] {
			seen[e.Name] = true
			n[e.For]++
		}
	}
	return n
}

// restarts lists the pods' containers that ended in timeline since start, once each, with the newest reason.
func restarts(timeline []event, since time.Time) []event {
	newest := map[string]event{}
	for _, e := range timeline {
		if e.Kind == kindPod && e.State == stateRestarted && !e.At.Before(since) {
			newest[e.Name] = e
		}
	}
	var list []event
	for _, e := range newest {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b event) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
