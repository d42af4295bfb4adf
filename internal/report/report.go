// Package report is the outcome of a judging command, and its renderings: text, JSON, JUnit, SARIF, Markdown and HTML. The JSON
// shape is an interface that users' scripts rely on: fields are added, never changed.
package report

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/graph"
)

// APIVersion of every report.
const APIVersion = "olmkit/v1"

// The kinds of report.
const (
	KindValidate = "ValidateReport"
	KindPlan     = "UpgradePlan"
	KindUpgrade  = "UpgradeReport"
	KindGraph    = "Graph" // of channels that nothing judged
)

// Result is a verdict.
type Result string

// Verdicts. Skipped is a hop's only: it was planned, and not walked because the walk ended before it.
const (
	Passed  Result = "passed"
	Failed  Result = "failed"
	Skipped Result = "skipped"
)

// Report is what a judging command found.
type Report struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Result     Result            `json:"result"`
	Verdict    string            `json:"verdict,omitempty"` // the result in words, with what nobody verified; JSON sets it
	Findings   []finding.Finding `json:"findings"`
	History    []finding.Finding `json:"history,omitzero"` // of releases that users have, which nobody can change: they fail nothing; [] for none
	// NotRead is of how many bundles the manifests were not checked, since only their images have them.
	NotRead int      `json:"bundlesNotRead,omitempty"`
	Checks  []string `json:"checks,omitempty"` // codes of the static checks that ran, whether or not they found anything

	Installations []Installation  `json:"installations,omitempty"` // that hops went on from, or that were all there was to test
	Hops          []Hop           `json:"hops,omitempty"`
	LeftOut       []Hop           `json:"leftOut,omitempty"`      // the first hops that a cut of the plan (--from, --to, --max-hops, --shard) left out
	LeftOutCount  int             `json:"leftOutCount,omitempty"` // how many it left out in all
	Resolved      []Resolution    `json:"resolved,omitempty"`     // what OLM's own resolver takes, where it was asked
	Cluster       *Cluster        `json:"cluster,omitempty"`
	Walks         []Walk          `json:"walks,omitempty"`    // one under each version of OLM and of Kubernetes, where several are compared; Cluster is none then
	Compared      []Compared      `json:"compared,omitempty"` // upgrades under each of them; JSON sets it
	Shard         *Shard          `json:"shard,omitempty"`    // which part of the plan was walked, if it was one of several
	Seconds       float64         `json:"seconds,omitempty"`
	Access        []Access        `json:"access,omitempty"` // of each release's ServiceAccounts, in the order in which they were walked
	Graph         []graph.Drawing `json:"graph,omitempty"`  // of the channels that it is about

	// Of a plan with too many hops to hold: how many there are besides Hops, and all of these, which text and JSON list.
	MoreHops int           `json:"-"`
	Rest     iter.Seq[Hop] `json:"-"` // nil for none

	Page   string            `json:"-"` // file that the report was written to as a page, "" if it was not
	Titles map[string]string `json:"-"` // what the codes of findings and checks mean
	Files  []string          `json:"-"` // that were judged, also those that nothing was found in

	// For the rendering as text: the lines of the files that findings stand in, false for one that is not at hand, and
	// whether everything is told.
	Source  func(file string, line int) (string, bool) `json:"-"`
	Verbose bool                                       `json:"-"`
}

// Shard is one of several parts of a plan.
type Shard struct {
	Index int `json:"index"` // from 0
	Of    int `json:"of"`
}

// Hop is one upgrade of one package, from one bundle to another.
type Hop struct {
	Package string `json:"package"`
	Channel string `json:"channel"`
	From    string `json:"from"`
	To      string `json:"to"`

	FromChannel string `json:"fromChannel,omitempty"` // of the Subscription before it is changed to Channel
	OLM         string `json:"olm,omitempty"`         // v0 or v1, or the release of OLM v0, where several walks are compared
	Kubernetes  string `json:"kubernetes,omitempty"`  // the release, where several are compared

	Edge      string `json:"edge"`      // replaces, skips or skipRange
	Effective bool   `json:"effective"` // OLM would take it, were To the only release to choose
	// PassedOver tells that OLM takes another upgrade from From as long as the catalog offers the whole channel.
	PassedOver bool      `json:"passedOver,omitempty"`
	Result     Result    `json:"result,omitempty"`
	Start      time.Time `json:"start,omitzero"` // when the catalog with To was published; phases and events count from it
	Seconds    float64   `json:"seconds,omitempty"`
	Phases     []Phase   `json:"phases,omitempty"`
	// Verification is what olmkit did besides: before the catalog was published, and after all was stable.
	Verification []Phase           `json:"verification,omitempty"`
	Findings     []finding.Finding `json:"findings,omitempty"`
	Outages      []Outage          `json:"outages,omitempty"`
	Events       []Event           `json:"events,omitempty"`
	Logs         []Log             `json:"logs,omitempty"`      // of a hop that failed: the last lines of its containers
	Faults       []Fault           `json:"faults,omitempty"`    // that were made on purpose
	Simulated    []string          `json:"simulated,omitempty"` // images whose pods did not really run

	NotVerified []string  `json:"notVerified,omitempty"` // objects of which nothing shows whether To's operator reconciles them
	NoSample    []string  `json:"noSample,omitempty"`    // definitions of which there is no sample in a served version
	Rollback    *Rollback `json:"rollback,omitempty"`    // what came of going back after the hop failed, where that was asked for
}

// Resolution is what OLM's resolver takes for a Subscription to the channel of a plan.
type Resolution struct {
	From    string   `json:"from,omitempty"`    // the installed bundle; of a new Subscription none
	To      string   `json:"to,omitempty"`      // the bundle that OLM takes; "" for none
	Along   []Change `json:"along,omitempty"`   // bundles of other packages that OLM takes with it
	Planned string   `json:"planned,omitempty"` // the bundle that the channel's edges lead to; "" for none
	Differs bool     `json:"differs"`           // To is not Planned
	Why     string   `json:"why,omitempty"`     // OLM does not take Planned
	Missing string   `json:"missing,omitempty"` // why OLM does not install From today: without its dependencies, To is what OLM takes
}

// Change is a bundle that OLM installs, or upgrades to, together with another.
type Change struct {
	Package string `json:"package"`
	From    string `json:"from,omitempty"` // of what is not installed before, none
	To      string `json:"to"`
}

// Title names the hop for people. One without From is an installation.
func (h Hop) Title() string {
	if h.From == "" {
		return "install " + h.To
	}
	return h.From + " → " + h.To
}

// Installation is the installation of one bundle on a cluster that has nothing of its package.
type Installation struct {
	Package      string            `json:"package"`
	Channel      string            `json:"channel"`
	Name         string            `json:"name"`                 // of the bundle
	OLM          string            `json:"olm,omitempty"`        // v0 or v1, or the release of OLM v0, where several walks are compared
	Kubernetes   string            `json:"kubernetes,omitempty"` // the release, where several are compared
	Result       Result            `json:"result,omitempty"`
	Start        time.Time         `json:"start,omitzero"` // when the Subscription was made; phases and events count from it
	Seconds      float64           `json:"seconds,omitempty"`
	Phases       []Phase           `json:"phases,omitempty"`
	Verification []Phase           `json:"verification,omitempty"` // what olmkit did after all was stable
	Findings     []finding.Finding `json:"findings,omitempty"`     // of a release that is installed several times only what is new
	Events       []Event           `json:"events,omitempty"`
	Logs         []Log             `json:"logs,omitempty"`        // of an installation that failed
	Simulated    []string          `json:"simulated,omitempty"`   // images whose pods did not really run
	NotVerified  []string          `json:"notVerified,omitempty"` // objects that nothing showed the operator to have reconciled
	NoSample     []string          `json:"noSample,omitempty"`    // definitions of which there is no sample in a served version
}

// subject is what a finding about object, or about all of the hop, is about.
func (h Hop) subject(object string) finding.Subject {
	s := finding.Subject{Package: h.Package, Channel: h.Channel, From: h.From, To: h.To, Object: object, OLM: h.OLM, Kubernetes: h.Kubernetes}
	if h.From == "" {
		s.From, s.To = h.To, ""
	}
	return s
}

// hop is the installation as a hop from nothing, so that both are rendered alike.
func (i Installation) hop() Hop {
	return Hop{
		Package: i.Package, Channel: i.Channel, OLM: i.OLM, Kubernetes: i.Kubernetes, To: i.Name, Effective: true, Result: i.Result, Start: i.Start, Seconds: i.Seconds,
		Phases: i.Phases, Verification: i.Verification, Findings: i.Findings, Events: i.Events, Logs: i.Logs, Simulated: i.Simulated, NotVerified: i.NotVerified, NoSample: i.NoSample,
	}
}

// leftOut returns how many hops were left out; a report of a part of them may only name them.
func (r *Report) leftOut() int { return max(r.LeftOutCount, len(r.LeftOut)) }

// Steps returns the installations of r, as hops without From, and then its hops.
func (r *Report) Steps() []Hop {
	steps := make([]Hop, 0, len(r.Installations)+len(r.Hops))
	for _, i := range r.Installations {
		steps = append(steps, i.hop())
	}
	return append(steps, r.Hops...)
}

// All returns the findings of the hop and of the rollback from it.
func (h Hop) All() []finding.Finding {
	if h.Rollback == nil {
		return h.Findings
	}
	return slices.Concat(h.Findings, h.Rollback.Findings)
}

// Rollback is the rollback to a failed hop's From: its reinstallation with CRDs and objects in place.
type Rollback struct {
	To       string            `json:"to"`
	Result   Result            `json:"result"`
	Seconds  float64           `json:"seconds"` // until To was stable again, or surely would not be
	Objects  int               `json:"objects"` // whose content was compared with what it was before the hop
	Findings []finding.Finding `json:"findings,omitempty"`
}

// Phase is a named stretch of a hop.
type Phase struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// Event is something that changed on the cluster during a hop.
type Event struct {
	At     float64 `json:"at"` // seconds from the hop's start
	Kind   string  `json:"kind"`
	Name   string  `json:"name,omitempty"`
	State  string  `json:"state,omitempty"`  // what it became
	Detail string  `json:"detail,omitempty"` // in the words of the object
}

// Log is the end of what one process wrote.
type Log struct {
	Source string `json:"source"` // the container
	Text   string `json:"text"`
}

// Fault is a trouble that was made on purpose during a hop, and what became of the upgrade.
type Fault struct {
	Name     string   `json:"name"`
	Phase    string   `json:"phase"`           // at which it was to strike
	At       float64  `json:"at"`              // seconds from the hop's start; negative before it
	Seconds  float64  `json:"seconds"`         // how long it was in force
	Expected string   `json:"expected"`        // the worst result that passes: survived, blocked or degraded
	Outcome  string   `json:"outcome"`         // survived, blocked, degraded, broken; or skipped
	Codes    []string `json:"codes,omitempty"` // of the findings that show it
	Why      string   `json:"why,omitempty"`   // it was not made, or how it was
	Result   Result   `json:"result"`          // whether the outcome is no worse than expected
}

// Outage is a stretch of time in which one operation on one API version did not work.
type Outage struct {
	CRD       string    `json:"crd,omitempty"` // name of the objects' definition
	Version   string    `json:"version"`       // API version of the objects, for example v1beta1
	Operation string    `json:"operation"`     // read or write
	Seconds   float64   `json:"seconds"`       // from the last success before to the first success after
	Errors    int       `json:"errors"`        // failed attempts in between
	First     string    `json:"first"`         // the first error's text
	Start     time.Time `json:"start"`
	Cause     string    `json:"cause,omitempty"`
	Fault     string    `json:"fault,omitempty"` // the injected fault that is to blame
}

// Of names the objects that were out of reach: their version and, where it is known, their definition.
func (o Outage) Of() string {
	if o.CRD == "" {
		return o.Version
	}
	return o.Version + " of " + o.CRD
}

// String tells in a line what the fault came to.
func (f Fault) String() string {
	s := fmt.Sprintf("fault %s@%s: %s, expected %s", f.Name, f.Phase, f.Outcome, f.Expected)
	if f.Why != "" {
		s += " (" + f.Why + ")"
	}
	return s
}

// Cluster says where a walk ran, and what a pass there does not show.
type Cluster struct {
	Kind        string   `json:"kind"`
	Kubernetes  string   `json:"kubernetes"`
	OLM         string   `json:"olm"`
	Limitations []string `json:"limitations"`
}
