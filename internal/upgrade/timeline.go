package upgrade

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/report"
)

// Kinds of event that a timeline tells apart, besides those of the lifecycle manager.
const (
	kindCRD        = lifecycle.KindCRD
	kindDeployment = "Deployment"
	kindRollout    = "ReplicaSet"
	kindPod        = "Pod"
	kindService    = "Service" // by its endpoints; the only one that is named with its namespace
	kindLease      = "Lease"   // as other locks (ConfigMap, Endpoints) by who holds it
	kindWalk       = "walk"    // what the walk itself did
)

// States that a timeline gives besides those that objects have of their own.
const (
	stateCreated   = "created"
	stateGone      = lifecycle.StateGone
	statePublished = "published"
	stateReady     = lifecycle.StateReady
	stateUnready   = "not ready"
	stateRestarted = "restarted"
	stateStable    = "stable"
	stateHeld      = "held" // a lock, by the identity in For, or by nobody
	stateLeading   = "leading"
)

// event is something that changed on the cluster while the walk watched.
type event = lifecycle.Event

// definition is what of a CustomResourceDefinition decides how its objects are served.
type definition = lifecycle.Definition

// conversionNone is the Conversion of a definition whose objects only get another apiVersion.
const conversionNone = lifecycle.ConversionNone

// reportEvents returns timeline as reports have it.
func reportEvents(timeline []event, started time.Time) []report.Event {
	events := make([]report.Event, len(timeline))
	for i, e := range timeline {
		detail := strings.TrimSpace(strings.TrimPrefix(e.String(), strings.TrimSpace(e.Kind+" "+e.Name+" "+e.State)))
		events[i] = report.Event{At: seconds(e.At.Sub(started)), Kind: e.Kind, Name: e.Name, State: e.State, Detail: detail}
	}
	return events
}

// milestone is a moment of a hop that ends a phase.
type milestone struct {
	Name string
	At   time.Time
}

// milestones finds the moments of a hop in timeline, in the order in which they came about: those of list, and those of the
// walk itself. What happened before published is left out.
func milestones(list []lifecycle.Milestone, timeline []event, published time.Time) []milestone {
	var found []milestone
	for _, m := range slices.Concat(list, walkMilestones) {
		at := time.Time{}
		for _, e := range timeline {
			if !e.At.Before(published) && m.Is(e) && (m.Last || at.IsZero()) {
				at = e.At
			}
		}
		if !at.IsZero() {
			found = append(found, milestone{m.Name, at})
		}
	}
	slices.SortStableFunc(found, func(a, b milestone) int { return a.At.Compare(b.At) })
	return found
}

// walkMilestones are those that the walk itself marks.
var walkMilestones = []lifecycle.Milestone{markOf(stateLeading), markOf(stateStable)}

func markOf(state string) lifecycle.Milestone {
	return lifecycle.Milestone{Name: state, Last: true, Is: func(e event) bool { return e.Kind == kindWalk && e.State == state }}
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

// cause tells what happened on the cluster that bears on an outage, given the definition before timeline begins: what
// began it and what ended it.
func cause(timeline []event, before *definition, o outage) string {
	if o.Slow {
		return "the API server took a second and more for any answer then, or the machine stood still"
	}
	var began, ended string
	// A changed CRD is likelier to blame than a pod, which may have had others beside it, unless nobody answered.
	likely, byLikely := kindCRD, false
	if unanswered(o.First) {
		likely = kindPod
	}
	for _, e := range timeline {
		if e.At.After(o.End.Add(watchSkew)) {
			break
		}
		harm, said := causeOf(e, before, o)
		if e.Kind == kindCRD && outageCode(o) == codeAdmissionOutage {
			said = "" // the definition has no part in admission
		}
		if e.Kind == kindCRD && e.Name == o.CRD {
			before = e.CRD
		}
		early := !e.At.After(o.Start.Add(watchSkew))
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
func causeOf(e event, before *definition, o outage) (harm bool, said string) {
	crd := o.CRD
	switch {
	case e.Kind == kindCRD && e.Name == crd && e.CRD == nil:
		return true, "the CRD was deleted"
	case e.Kind == kindCRD && e.Name == crd && before != nil && e.CRD.Generation == before.Generation:
		return false, ""
	case e.Kind == kindCRD && e.Name == crd && !e.CRD.Converts():
		return true, cmp.Or(e.By, "OLM's catalog operator") + " wrote the bundle's CRD, " + unfit(e.CRD, o.First)
	case e.Kind == kindCRD && e.Name == crd && e.CRD.CA != "":
		return false, fmt.Sprintf("the CRD got its webhook's service (%s) and CA%s", e.CRD.Conversion, by(e))
	case e.Kind == kindCRD && e.Name == crd:
		return true, cmp.Or(e.By, "OLM's catalog operator") + " wrote the bundle's CRD, " + servedAnew
	case e.Kind == kindPod && e.State == stateReady:
		return false, fmt.Sprintf("pod %s became ready", e.Name)
	case e.Kind == kindPod && e.State != stateCreated:
		return true, fmt.Sprintf("pod %s was %s%s", e.Name, e.State, by(e))
	}
	return false, ""
}

// servedAnew is what the API server does upon a changed definition, whose requests wait meanwhile.
const servedAnew = "upon which the API server starts serving the kind anew"

// unfit says what is wrong with d, a definition whose webhook OLM has not completed, as far as the error first shows it.
func unfit(d *definition, first string) string {
	switch {
	case untrusted(first):
		return fmt.Sprintf("whose conversion webhook (%s) has no CA", d.Conversion)
	case noService(first):
		return fmt.Sprintf("whose conversion webhook (%s) is at a Service that does not exist", d.Conversion)
	case outOfTime(first) && !strings.Contains(first, "webhook"):
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

// outOfTime reports whether all that is known is that the time was up.
func outOfTime(said string) bool { return strings.Contains(said, "context deadline exceeded") }

// by names who did e, where that is known.
func by(e event) string {
	if e.By == "" {
		return ""
	}
	return ", by " + e.By
}

// watchSkew is how far apart the moment in which something happens on the API server and the moment in which a watch tells of
// it may lie.
const watchSkew = 500 * time.Millisecond

// lookBack is how long before its first failed attempt a change may lie that an outage is put down to: the API server
// takes a moment to act on a changed CRD.
const lookBack = 2 * time.Second

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

// restarts lists the containers of pods that ended in timeline since start, each with the newest reason, the newest last.
func restarts(timeline []event, since time.Time) []event {
	var list []event
	for _, e := range timeline {
		if e.Kind == kindPod && e.State == stateRestarted && !e.At.Before(since) {
			list = append(slices.DeleteFunc(list, func(o event) bool { return o.Name == e.Name }), e)
		}
	}
	return list
}
