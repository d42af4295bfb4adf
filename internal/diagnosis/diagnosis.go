package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
)

// Where a Subscription stands.
const (
	UpToDate  = "up to date"    // OLM has nothing to do
	Upgrading = "under way"     // OLM goes on by itself
	Waiting   = "waits for you" // an approval is missing
	Stuck     = "stuck"         // it does not go on by itself
)

// Diagnosis is where a Subscription stands.
type Diagnosis struct {
	Namespace    string  `json:"namespace"`
	Subscription string  `json:"subscription"`
	Package      string  `json:"package"`
	Channel      string  `json:"channel,omitempty"`
	Catalog      string  `json:"catalog"` // namespace/name
	Installed    string  `json:"installed,omitempty"`
	Next         string  `json:"next,omitempty"` // what OLM goes on to
	State        string  `json:"state"`
	WaitsFor     string  `json:"waitsFor,omitempty"` // what OLM says while it is under way
	Causes       []Cause `json:"causes,omitempty"`   // why it does not go on, what to mend first at the beginning
	// Unknown says why it is not known what OLM would do next.
	Unknown string `json:"unknown,omitempty"`
}

// Cause is a reason why a Subscription does not go on.
type Cause struct {
	Object string `json:"object"` // Kind/namespace/name of what says so, or is wrong
	Why    string `json:"why"`
	Fixes  []Fix  `json:"fixes"`

	waits bool // for the user's approval
}

// Fix is a way to mend a cause.
type Fix struct {
	Do      string `json:"do"`                // what it does
	Command string `json:"command,omitempty"` // "" if no one command does it
	Risk    string `json:"risk"`
}

// rule finds causes of one kind for a Subscription.
type rule func(s *State, sub *v1alpha1.Subscription) []Cause

// rules are all, in the order in which causes are to be mended: what stands first may be why of what follows.
var rules = []rule{olmUnwell, namespaceEnds, groups, duplicates, catalogUnread, unpacking, approval, failedPlan, installedGone, unreferenced, deadlock, versions, unservedNamespace}

// Diagnose says where the Subscriptions of s stand, to pkg only unless that is "". Of what catalogs hold, it asks OLM's resolver
// what comes next.
func Diagnose(ctx context.Context, s *State, pkg string, catalogs map[Key]*catalog.Catalog) []Diagnosis {
	resolved := map[string]next{}
	all := []Diagnosis{}
	for i := range s.Subscriptions {
		sub := &s.Subscriptions[i]
		if sub.Spec == nil || pkg != "" && sub.Spec.Package != pkg {
			continue
		}
		if _, known := resolved[sub.Namespace]; !known {
			resolved[sub.Namespace] = s.resolve(ctx, sub.Namespace, catalogs)
		}
		all = append(all, s.diagnose(sub, resolved[sub.Namespace]))
	}
	slices.SortFunc(all, func(a, b Diagnosis) int {
		return strings.Compare(a.Namespace+"/"+a.Subscription, b.Namespace+"/"+b.Subscription)
	})
	return all
}

func (s *State) diagnose(sub *v1alpha1.Subscription, n next) Diagnosis {
	d := Diagnosis{
		Namespace: sub.Namespace, Subscription: sub.Name, Package: sub.Spec.Package, Channel: sub.Spec.Channel,
		Catalog: sub.Spec.CatalogSourceNamespace + "/" + sub.Spec.CatalogSource, Installed: sub.Status.InstalledCSV, Next: n.to[sub.Name],
	}
	if d.Next == "" && sub.Status.CurrentCSV != sub.Status.InstalledCSV {
		d.Next = sub.Status.CurrentCSV
	}
	if old := before(s, sub); old != nil {
		d.Installed, d.Next = old.Name, sub.Status.CurrentCSV
	}
	for _, find := range rules {
		d.Causes = append(d.Causes, find(s, sub)...)
	}
	switch {
	case errors.Is(n.err, errUnread):
		d.Unknown = n.err.Error()
		if len(d.Causes) == 0 {
			d.Causes = append(d.Causes, s.told(sub)...)
		}
	case before(s, sub) != nil, s.settles(sub.Namespace):
		// While one version replaces another, both are there, and OLM waits until one is gone. Until a Subscription says that a version is
		// installed, the resolver takes it for one that no Subscription names.
	case n.err != nil && len(d.Causes) == 0:
		d.Causes = append(d.Causes, unresolved(sub, n.err.Error()))
	}
	if d.State = stateOf(s, sub, d); d.State == Upgrading {
		d.WaitsFor = waitsFor(s, sub)
	}
	return d
}

// waitsFor is what OLM says of what it is about to install.
func waitsFor(s *State, sub *v1alpha1.Subscription) string {
	csv := s.csv(sub.Namespace, sub.Status.CurrentCSV)
	plan := planOf(s, sub)
	var e lifecycle.Explanation
	switch {
	case csv != nil && csv.Status.Phase != v1alpha1.CSVPhaseSucceeded:
		e = olmv0.ExplainVersion(csv, s.Deployments, s.Pods)
	case csv == nil && plan != nil:
		e = olmv0.ExplainPlan(plan)
	default:
		return ""
	}
	return strings.TrimSuffix(e.Object+": "+e.Phase+": "+e.Why, ": ")
}

// stateOf says where sub stands, by what was found.
func stateOf(s *State, sub *v1alpha1.Subscription, d Diagnosis) string {
	if slices.ContainsFunc(d.Causes, func(c Cause) bool { return !c.waits }) {
		return Stuck
	}
	if len(d.Causes) > 0 {
		return Waiting
	}
	csv := s.csv(sub.Namespace, sub.Status.InstalledCSV)
	if d.Next != "" || csv == nil || csv.Status.Phase != v1alpha1.CSVPhaseSucceeded {
		return Upgrading
	}
	return UpToDate
}

// unresolved is the cause that OLM's resolver finds nothing that fits all Subscriptions of the namespace.
func unresolved(sub *v1alpha1.Subscription, why string) Cause {
	return Cause{
		Object: "Subscription/" + sub.Namespace + "/" + sub.Name,
		Why:    "OLM finds no set of bundles that satisfies all Subscriptions of the namespace: " + strings.TrimPrefix(why, "constraints not satisfiable: "),
		Fixes: []Fix{{
			Do:      "Change the Subscription that the message names: its package, channel or catalog, or what it depends on",
			Command: fmt.Sprintf("kubectl edit subscriptions.operators.coreos.com %s --namespace %s", sub.Name, sub.Namespace),
			Risk:    "as long as one Subscription of a namespace cannot be satisfied, none there is upgraded; deleting a Subscription leaves its operator running, without upgrades",
		}},
	}
}

// told are the causes that OLM itself notes in sub. It also notes what passes, while one version replaces another, and takes that
// back some time later.
func (s *State) told(sub *v1alpha1.Subscription) []Cause {
	c := sub.Status.GetCondition(v1alpha1.SubscriptionResolutionFailed)
	if c.Status != corev1.ConditionTrue || c.LastTransitionTime != nil && s.Now.Sub(c.LastTransitionTime.Time) < slowThreshold {
		return nil
	}
	return []Cause{unresolved(sub, c.Message)}
}
