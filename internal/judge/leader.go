package judge

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// noticeableGap is from when on a time without a leader is worth telling.
const noticeableGap = 3 * time.Second

// Election tells how long nobody led in a hop, if that was long.
func Election(l observe.Leadership) []finding.Finding {
	if !l.Leads || l.Gap < noticeableGap {
		return nil
	}
	return []finding.Finding{code.Finding(code.NobodyLed, l.Lock, "no pod of the operator led for %.1fs: the old leader ended without releasing the lock, and the new one waited until it ran out",
		l.Gap.Seconds())}
}

// Locks tells whether the new leader took another lock than the leader before started, and for how long both led.
func Locks(timeline []lifecycle.Event, started time.Time, l observe.Leadership) []finding.Finding {
	if !l.Leads {
		return nil
	}
	pods, taken := map[string]bool{}, map[string]string{}
	isNew := true
	for _, e := range timeline {
		lock := e.Kind + "/" + e.Name
		switch {
		case e.Kind == observe.KindPod:
			pods[observe.PodOf(e)] = true
		case e.State != observe.StateHeld:
		case e.At.Before(started):
			taken[lock], isNew = e.For, isNew && lock != l.Lock
		case e.For != "":
			delete(taken, lock) // the new release uses it, too
		}
	}
	if !isNew {
		return nil
	}
	for _, lock := range slices.Sorted(maps.Keys(taken)) {
		for pod := range pods {
			if observe.IsPod(taken[lock], pod) {
				return []finding.Finding{lockFinding(timeline, lock, pod, l)}
			}
		}
	}
	return nil
}

func lockFinding(timeline []lifecycle.Event, lock, pod string, l observe.Leadership) finding.Finding {
	f := code.Finding(code.TwoLocks, l.Lock, "the new version elects its leader with %s, the old version with %s: neither waits for the other", l.Lock, lock)
	for _, e := range timeline {
		if e.Kind == observe.KindPod && e.Name == pod && e.State == observe.StateGone && e.At.After(l.Since) {
			f.Message += fmt.Sprintf("; both led for %.1fs", e.At.Sub(l.Since).Seconds())
		}
	}
	return f
}

// Unelected tells that to's operator elects no leader although that of from did, a pod of which led when the hop started: it acts, and
// nobody has taken the lock since. A lock in another namespace is not seen.
func Unelected(timeline []lifecycle.Event, started time.Time, from, to *lifecycle.Release, l observe.Leadership) []finding.Finding {
	if !l.Elects || l.Leads {
		return nil
	}
	before := slices.DeleteFunc(slices.Clone(timeline), func(e lifecycle.Event) bool { return !e.At.Before(started) })
	var pods []string
	for _, e := range before {
		if slices.Contains(from.Deployments(), deploymentOf(e)) {
			pods = append(pods, observe.PodOf(e))
		}
	}
	was := observe.Leads(before, pods)
	if !was.Leads || was.Lock != l.Lock || l.Holder != "" && l.Holder != was.Holder {
		return nil
	}
	led := slices.IndexFunc(pods, func(pod string) bool { return observe.IsPod(was.Holder, pod) })
	of := observe.DeploymentOf(pods[led])
	f := code.Finding(code.NotElected, l.Lock, "%s reconciles without being leader: none of its pods takes this lock, with which the old version led, or another", to.Name)
	for _, d := range to.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		if n := ptr.Deref(d.Spec.Replicas, 1); n > 1 && d.Name == of {
			f.Message += fmt.Sprintf("; the %d pods of Deployment %s all reconcile at the same time", n, d.Name)
		}
	}
	return []finding.Finding{f}
}
