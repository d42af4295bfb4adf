package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/fault"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// slowThreshold is how long the control's answer may take before the cluster itself counts as too slow to judge by.
const slowThreshold = time.Second

// DropStalled drops the attempts that ran out of time while the control did too, or nearly, or was not even made because the
// machine stood still: they say something about the machine and nothing about the upgrade. It drops the control's attempts
// as well, and returns those during which the cluster was that slow.
func DropStalled(attempts []observe.Attempt) (kept, slow []observe.Attempt) {
	var last time.Time
	for _, a := range attempts {
		if a.Operation != observe.Control {
			continue
		}
		if !last.IsZero() && a.Start.Sub(last) >= observe.Pace+slowThreshold {
			a.Start = last
		}
		last = a.End
		if a.Err != "" || a.End.Sub(a.Start) >= slowThreshold {
			slow = append(slow, a)
		}
	}
	for _, a := range attempts {
		outOfTime := a.Err != "" && a.End.Sub(a.Start) >= slowThreshold
		if a.Operation == observe.Control || outOfTime && slices.ContainsFunc(slow, func(s observe.Attempt) bool {
			return !s.End.Before(a.Start) && !a.End.Before(s.Start)
		}) {
			continue
		}
		if others := unhurried(a, attempts); others > 0 {
			a.Err = fmt.Sprintf("it took %.1fs, and a read that needs no webhook %s", a.End.Sub(a.Start).Seconds(), others.Round(time.Millisecond))
		}
		kept = append(kept, a)
	}
	return kept, slow
}

// starved is how many times as long as the control an attempt takes at most whose only trouble is a machine with much to do.
const starved = 100

// unhurried returns how long the control took on average while a, which came late, was under way, if that shows that the machine
// is not to blame; else 0.
func unhurried(a observe.Attempt, attempts []observe.Attempt) time.Duration {
	if !a.Late {
		return 0
	}
	var meanwhile []observe.Attempt
	for _, c := range attempts {
		if c.Operation == observe.Control && !c.End.Before(a.Start) && !a.End.Before(c.Start) {
			meanwhile = append(meanwhile, c)
		}
	}
	if len(meanwhile) == 0 {
		return 0
	}
	mean := Lasting(meanwhile) / time.Duration(len(meanwhile))
	if a.End.Sub(a.Start) < starved*mean {
		return 0
	}
	return mean
}

// Lasting returns how long attempts took in all.
func Lasting(attempts []observe.Attempt) time.Duration {
	var total time.Duration
	for _, a := range attempts {
		total += a.End.Sub(a.Start)
	}
	return total
}

// slowed reports whether o is but the slowness of the cluster: all its errors say that the time was up, and the control was
// slow then, too, or shortly before or after.
func slowed(o outage, slow []observe.Attempt) bool {
	return !o.Open && observe.OutOfTime(o.First) && slices.ContainsFunc(slow, func(s observe.Attempt) bool {
		return !s.End.Before(o.Start.Add(-lookBack)) && !s.Start.After(o.End.Add(lookBack))
	})
}

// outage is a stretch of time in which every attempt of one operation on one version failed.
type outage struct {
	CRD, Version, Operation string
	Start, End              time.Time // of the last success before, or the first failure if there is none; the first success after
	Errors                  int
	First                   string        // the first error's text that says more than that the time was up, if there is one
	Failed                  time.Time     // when it was told
	Last, Object            string        // the last error's text, and what was read or written then
	Open                    bool          // it had not ended with the last attempt
	By                      *fault.Result // the fault that is to blame, if one is
	Slow                    bool          // it is but the slowness of the cluster
}

// outages finds the outages in attempts of one CRD, version and operation, which must be in the order of their starts.
// Failures at times when the version was not served are no outage; served says so.
func outages(attempts []observe.Attempt, served func(time.Time) bool) []outage {
	var found []outage
	var open *outage
	var success time.Time
	for _, a := range attempts {
		switch {
		case a.Err == "":
			if open != nil {
				open.End, open.Open = a.End, false
				found = append(found, *open)
				open = nil
			}
			success = a.End
		case !served(a.Start):
			// Nobody can expect an answer; what was open before ended with the version.
			if open != nil {
				open.End, open.Open = a.Start, false
				found = append(found, *open)
				open = nil
			}
			success = time.Time{}
		case open == nil:
			open = &outage{CRD: a.CRD, Version: a.Version, Operation: a.Operation, Start: success, End: a.End, Failed: a.End, Errors: 1, First: a.Err, Last: a.Err, Object: a.Object, Open: true}
			if success.IsZero() {
				open.Start = a.Start
			}
		default:
			open.Errors++
			open.End, open.Last, open.Object = a.End, a.Err, a.Object
			open.tells(a.Err, a.End)
		}
	}
	if open != nil {
		found = append(found, *open)
	}
	return found
}

// tells notes an error that was told at a time, if it says more than what was told first.
func (o *outage) tells(what string, at time.Time) {
	if observe.OutOfTime(o.First) && !observe.OutOfTime(what) {
		o.First, o.Failed = what, at
	}
}

// merge unites outages of one CRD, version and operation that overlap, of whatever objects, and sorts by start.
func merge(list []outage) []outage {
	slices.SortStableFunc(list, func(a, b outage) int { return a.Start.Compare(b.Start) })
	var merged []outage
next:
	for _, o := range list {
		for i := range merged {
			m := &merged[i]
			if m.CRD == o.CRD && m.Version == o.Version && m.Operation == o.Operation && !o.Start.After(m.End) {
				if o.Open && (!m.Open || o.End.After(m.End)) {
					m.Last, m.Object = o.Last, o.Object
				}
				m.End = observe.Latest(m.End, o.End)
				m.Errors += o.Errors
				m.tells(o.First, o.Failed)
				m.Open = m.Open || o.Open
				continue next
			}
		}
		merged = append(merged, o)
	}
	return merged
}

// window is a stretch of time in which reads or writes came back with other content than was written.
type window struct {
	CRD, Version, Operation string
	Start, End              time.Time
	Count                   int
	First                   string
	Open                    bool // it had not ended with the last attempt
}

// windows finds the stretches of wrong answers in attempts of one CRD, version and operation, in the order of their
// starts; each ends with the first right answer.
func windows(attempts []observe.Attempt) []window {
	var found []window
	var open *window
	for _, a := range attempts {
		switch {
		case a.Err != "":
		case a.Wrong == "" && open != nil:
			open.End, open.Open = a.End, false
			found = append(found, *open)
			open = nil
		case a.Wrong != "" && open == nil:
			open = &window{CRD: a.CRD, Version: a.Version, Operation: a.Operation, Start: a.Start, End: a.End, Count: 1, First: a.Wrong, Open: true}
		case a.Wrong != "":
			open.Count++
			open.End = a.End
		}
	}
	if open != nil {
		found = append(found, *open)
	}
	return found
}

// series splits attempts by CRD, version, operation and object, in a fixed order, each in the order of its starts. Objects
// are kept apart because one that is stored in the version asked for is read without conversion, while others fail.
func series(attempts []observe.Attempt) [][]observe.Attempt {
	sorted := slices.Clone(attempts)
	slices.SortStableFunc(sorted, func(a, b observe.Attempt) int {
		if c := a.Order(b); c != 0 {
			return c
		}
		return a.Start.Compare(b.Start)
	})
	var list [][]observe.Attempt
	for start := 0; start < len(sorted); {
		end := start + 1
		for end < len(sorted) && sorted[start].Order(sorted[end]) == 0 {
			end++
		}
		list = append(list, sorted[start:end])
		start = end
	}
	return list
}

// servedAt tells from timeline when crd served version. initial are the versions served before the timeline begins. A
// watch tells of a change somewhat after the API server acts on it, so a version that is taken away counts as not served
// from WatchSkew before the event, and one that is added only from WatchSkew after it.
func servedAt(timeline []lifecycle.Event, crd, version string, initial []string) func(time.Time) bool {
	type change struct {
		at     time.Time
		served bool
	}
	now := slices.Contains(initial, version)
	changes := []change{{served: now}}
	for _, e := range timeline {
		if e.Kind != observe.KindCRD || e.Name != crd {
			continue
		}
		is := e.CRD != nil && slices.Contains(e.CRD.Served, version)
		if is == now {
			continue
		}
		at := e.At.Add(observe.WatchSkew)
		if !is {
			at = e.At.Add(-observe.WatchSkew)
		}
		changes = append(changes, change{at, is})
		now = is
	}
	return func(t time.Time) bool {
		is := false
		for _, c := range changes {
			if t.Before(c.at) {
				break
			}
			is = c.served
		}
		return is
	}
}

// cause tells what happened on the cluster that bears on an outage, given the definition before timeline begins: what
// began it and what ended it.
func cause(timeline []lifecycle.Event, before *lifecycle.Definition, o outage) string {
	if o.Slow {
		return "the API server took a second and more for any answer then, or the machine stood still"
	}
	var began, ended string
	// A changed CRD is likelier to blame than a pod, which may have had others beside it, unless nobody answered.
	likely, byLikely := observe.KindCRD, false
	if unanswered(o.First) {
		likely = observe.KindPod
	}
	server := serverOf(timeline, o.First)
	for _, e := range timeline {
		if e.At.After(o.End.Add(observe.WatchSkew)) {
			break
		}
		harm, said := causeOf(e, before, o)
		if of := deploymentOf(e); server != "" && of != "" && of != server {
			said = "" // the pod of another webhook, or of none
		}
		if e.Kind == observe.KindCRD && outageCode(o) == code.AdmissionOutage {
			said = "" // the definition has no part in admission
		}
		if e.Kind == observe.KindCRD && e.Name == o.CRD {
			before = e.CRD
		}
		early := !e.At.After(o.Start.Add(observe.WatchSkew))
		switch {
		case said == "" || e.At.Before(o.Start.Add(-lookBack)):
		case harm && (early && (e.Kind == likely || !byLikely) || began == ""):
			began, ended, byLikely = said, "", e.Kind == likely
		case !harm && !early:
			ended = said
		}
	}
	switch {
	case o.Open || ended == "":
		return began
	case began == "":
		return "it ended when " + ended
	}
	return began + "; it ended when " + ended
}

// causeOf says in which words e bears on whether objects of o's CRD can be converted, "" if it does not, and whether it does
// harm. before is the definition until e.
func causeOf(e lifecycle.Event, before *lifecycle.Definition, o outage) (harm bool, said string) {
	crd := o.CRD
	switch {
	case e.Kind == observe.KindCRD && e.Name == crd && e.CRD == nil:
		return true, "the CRD was deleted"
	case e.Kind == observe.KindCRD && e.Name == crd && before != nil && e.CRD.Generation == before.Generation:
		return false, ""
	case e.Kind == observe.KindCRD && e.Name == crd && !e.CRD.Converts():
		return true, cmp.Or(e.By, "OLM's catalog operator") + " wrote the bundle's CRD, " + unfit(e.CRD, o.First)
	case e.Kind == observe.KindCRD && e.Name == crd && e.CRD.CA != "":
		return false, fmt.Sprintf("the CRD got its webhook's service (%s) and CA%s", e.CRD.Conversion, by(e))
	case e.Kind == observe.KindCRD && e.Name == crd:
		return true, cmp.Or(e.By, "OLM's catalog operator") + " wrote the bundle's CRD, " + servedAnew
	case e.Kind == observe.KindPod && e.State == observe.StateReady:
		return false, fmt.Sprintf("pod %s became ready", e.Name)
	case e.Kind == observe.KindPod && e.State != observe.StateCreated:
		return true, fmt.Sprintf("pod %s was %s%s", e.Name, e.State, by(e))
	}
	return false, ""
}

// calledService finds the Service that OLM makes for a deployment with webhooks in what the API server says of a call that failed.
var calledService = observe.Compiled(`https://([a-z0-9-]{1,63})-service\.`)

// serverOf names the deployment whose webhook was called without success as first says, if timeline has pods of it: OLM calls its Service
// as the deployment (install.ServiceName in pkg/controller/install/certresources.go).
func serverOf(timeline []lifecycle.Event, first string) string {
	m := calledService().FindStringSubmatch(first)
	if m == nil || !slices.ContainsFunc(timeline, func(e lifecycle.Event) bool { return deploymentOf(e) == m[1] }) {
		return ""
	}
	return m[1]
}

// deploymentOf names the deployment of the pod that e is of, or "".
func deploymentOf(e lifecycle.Event) string {
	if e.Kind != observe.KindPod {
		return ""
	}
	return observe.DeploymentOf(observe.PodOf(e))
}

// servedAnew is what the API server does upon a changed definition, whose requests wait meanwhile.
const servedAnew = "upon which the API server starts serving the kind anew"

// unfit says what is wrong with d, a definition whose webhook OLM has not completed, as far as the error first shows it.
func unfit(d *lifecycle.Definition, first string) string {
	switch {
	case untrusted(first):
		return fmt.Sprintf("whose conversion webhook (%s) has no CA", d.Conversion)
	case noService(first):
		return fmt.Sprintf("whose conversion webhook (%s) is at a Service that does not exist", d.Conversion)
	case observe.OutOfTime(first) && !strings.Contains(first, "webhook"):
		return servedAnew
	}
	return fmt.Sprintf("with the conversion webhook %s", d.Conversion)
}

// What the API server says when it cannot call a webhook (k8s.io/apiserver v0.36.3 pkg/util/webhook, net/http, crypto/x509).

// untrusted reports whether the webhook's certificate was refused.
func untrusted(said string) bool { return strings.Contains(said, "x509") }

// noService reports whether the webhook's Service does not exist.
func noService(said string) bool {
	return strings.Contains(said, "service \"") && strings.Contains(said, "not found")
}

// unanswered reports whether nobody answered at the webhook's address.
func unanswered(said string) bool {
	return slices.ContainsFunc([]string{"no endpoints", "connection refused", "no route to host", "broken pipe", "EOF"}, func(words string) bool {
		return strings.Contains(said, words)
	})
}

// by names who did e, where that is known.
func by(e lifecycle.Event) string {
	if e.By == "" {
		return ""
	}
	return ", by " + e.By
}

// lookBack is how long before its first failed attempt a change may lie that an outage is put down to: the API server
// takes a moment to act on a changed CRD.
const lookBack = 2 * time.Second
