package observe

import (
	"slices"
	"strings"
	"time"

	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/report"
)

// Kinds of event that a timeline tells apart, besides those of the lifecycle manager.
const (
	KindCRD        = lifecycle.KindCRD
	kindDeployment = "Deployment"
	KindRollout    = "ReplicaSet"
	KindPod        = "Pod"
	KindService    = "Service" // by its endpoints; the only one that is named with its namespace
	KindLease      = "Lease"   // as other locks (ConfigMap, Endpoints) by who holds it
	KindWalk       = "walk"    // what the walk itself did
)

// States that a timeline gives besides those that objects have of their own.
const (
	StateCreated   = "created"
	StateGone      = lifecycle.StateGone
	StatePublished = "published"
	StateReady     = lifecycle.StateReady
	StateUnready   = "not ready"
	StateRestarted = "restarted"
	StateStable    = "stable"
	StateWoken     = "woken" // the manager, see lifecycle.Waker
	StateHeld      = "held"  // a lock, by the identity in For, or by nobody
	stateLeading   = "leading"
)

// ConversionNone is the Conversion of a definition whose objects only get another apiVersion.
const ConversionNone = lifecycle.ConversionNone

// ReportEvents returns timeline as reports have it.
func ReportEvents(timeline []lifecycle.Event, started time.Time) []report.Event {
	events := make([]report.Event, len(timeline))
	for i, e := range timeline {
		detail := strings.TrimSpace(strings.TrimPrefix(e.String(), strings.TrimSpace(e.Kind+" "+e.Name+" "+e.State)))
		events[i] = report.Event{At: Seconds(e.At.Sub(started)), Kind: e.Kind, Name: e.Name, State: e.State, Detail: detail}
	}
	return events
}

// Milestone is a moment of a hop that ends a phase.
type Milestone struct {
	Name string
	At   time.Time
}

// Milestones finds the moments of a hop in timeline, in the order in which they came about: those of list, and those of the
// walk itself. What happened before published is left out.
func Milestones(list []lifecycle.Milestone, timeline []lifecycle.Event, published time.Time) []Milestone {
	var found []Milestone
	for _, m := range slices.Concat(list, walkMilestones) {
		at := time.Time{}
		for _, e := range timeline {
			if !e.At.Before(published) && m.Is(e) && (m.Last || at.IsZero()) {
				at = e.At
			}
		}
		if !at.IsZero() {
			found = append(found, Milestone{m.Name, at})
		}
	}
	slices.SortStableFunc(found, func(a, b Milestone) int { return a.At.Compare(b.At) })
	return found
}

// walkMilestones are those that the walk itself marks.
var walkMilestones = []lifecycle.Milestone{markOf(stateLeading), markOf(StateStable)}

func markOf(state string) lifecycle.Milestone {
	return lifecycle.Milestone{Name: state, Last: true, Is: func(e lifecycle.Event) bool { return e.Kind == KindWalk && e.State == state }}
}

// Phases are the stretches between milestones, each named by the milestone that ends it.
func Phases(found []Milestone, published time.Time) []report.Phase {
	var stretches []report.Phase
	for _, m := range found {
		stretches = append(stretches, report.Phase{Name: m.Name, Seconds: Seconds(m.At.Sub(published))})
		published = m.At
	}
	return stretches
}

// Seconds rounds d to milliseconds, which is finer than anything here is measured.
func Seconds(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }

// WatchSkew is how far apart the moment in which something happens on the API server and the moment in which a watch tells of
// it may lie.
const WatchSkew = 500 * time.Millisecond

// Rollouts counts, by deployment, the ReplicaSets that were made in timeline since start.
func Rollouts(timeline []lifecycle.Event, since time.Time) map[string]int {
	n := map[string]int{}
	seen := map[string]bool{}
	for _, e := range timeline {
		if e.Kind == KindRollout && e.State != StateGone && !e.At.Before(since) && !seen[e.Name] {
			seen[e.Name] = true
			n[e.For]++
		}
	}
	return n
}

// PodOf names the pod that an event of a pod, or of a container of one, is of.
func PodOf(e lifecycle.Event) string {
	pod, _, _ := strings.Cut(e.Name, "/")
	return pod
}

// Restarts lists the containers of pods that ended in timeline since start, each with the newest reason, the newest last.
func Restarts(timeline []lifecycle.Event, since time.Time) []lifecycle.Event {
	var list []lifecycle.Event
	for _, e := range timeline {
		if e.Kind == KindPod && e.State == StateRestarted && !e.At.Before(since) {
			list = append(slices.DeleteFunc(list, func(o lifecycle.Event) bool { return o.Name == e.Name }), e)
		}
	}
	return list
}
