// Package report is the outcome of a judging command, and its renderings: text, JSON, JUnit, SARIF and Markdown. The JSON
// shape is an interface that users' scripts rely on: fields are added, never changed.
package report

import (
	"time"

	"github.com/olmkit/olmkit/internal/finding"
)

// APIVersion of every report.
const APIVersion = "olmkit/v1"

// The kinds of report.
const (
	KindValidate = "ValidateReport"
	KindPlan     = "UpgradePlan"
	KindUpgrade  = "UpgradeReport"
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
	Findings   []finding.Finding `json:"findings"`
	Checks     []string          `json:"checks,omitempty"` // codes of the static checks that ran, whether or not they found anything
	Hops       []Hop             `json:"hops,omitempty"`
	LeftOut    []Hop             `json:"leftOut,omitempty"` // hops that a cut of the plan (--from, --to, --max-hops, --shard) left out
	Cluster    *Cluster          `json:"cluster,omitempty"`
	Seconds    float64           `json:"seconds,omitempty"`
}

// Hop is one upgrade of one package, from one bundle to another.
type Hop struct {
	Package   string            `json:"package"`
	Channel   string            `json:"channel"`
	From      string            `json:"from"`
	To        string            `json:"to"`
	Edge      string            `json:"edge"` // replaces, skips or skipRange
	Effective bool              `json:"effective"`
	Result    Result            `json:"result,omitempty"`
	Seconds   float64           `json:"seconds,omitempty"`
	Phases    []Phase           `json:"phases,omitempty"`
	Findings  []finding.Finding `json:"findings,omitempty"`
	Outages   []Outage          `json:"outages,omitempty"`
	Simulated []string          `json:"simulated,omitempty"` // images whose pods did not really run
}

// Phase is a named stretch of a hop.
type Phase struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// Outage is a stretch of time in which one operation on one API version did not work.
type Outage struct {
	Version   string    `json:"version"`   // API version of the objects, for example v1beta1
	Operation string    `json:"operation"` // read or write
	Seconds   float64   `json:"seconds"`   // from the last success before to the first success after
	Errors    int       `json:"errors"`    // failed attempts in between
	First     string    `json:"first"`     // the first error's text
	Start     time.Time `json:"start"`
	Cause     string    `json:"cause,omitempty"`
}

// Cluster says where a walk ran, and what a pass there does not show.
type Cluster struct {
	Kind       string   `json:"kind"`
	Kubernetes string   `json:"kubernetes"`
	OLM        string   `json:"olm"`
	NotProven  []string `json:"notProven"`
}
