package walk

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/judge"
)

// audited is a cluster with an audit log.
type audited struct {
	cluster.Cluster
	log []auditv1.Event
}

func (a audited) Audit(context.Context, time.Time) ([]auditv1.Event, error) { return a.log, nil }

// writing is an operator's log of a time: it writes n times in each second until it ends.
func writing(from time.Time, lasting time.Duration, n int) (log []auditv1.Event) {
	for at := time.Duration(0); at < lasting; at += time.Second / time.Duration(n) {
		e := asked("patch", 200, auditv1.ObjectReference{Resource: "services"})
		e.RequestReceivedTimestamp = metav1.NewMicroTime(from.Add(at))
		log = append(log, e)
	}
	return log
}

// TestJudgeCalm: an operator that writes when nothing changes is left alone, and found if it goes on, also on a later hop to the same release; what
// nobody can see, what ends, and what the release before did as well is not.
func TestJudgeCalm(t *testing.T) {
	const hour = time.Hour
	for name, c := range map[string]struct {
		lasting time.Duration
		rate    int
		was     judge.Work
		found   bool
	}{
		"a loop":                  {hour, 20, judge.Work{Seconds: 8, Writes: 16}, true},
		"the tail of a reconcile": {4 * time.Second, 20, judge.Work{Seconds: 8, Writes: 16}, false},
		"it writes little":        {hour, 2, judge.Work{Seconds: 8, Writes: 1}, false},
		"as the one before":       {hour, 20, judge.Work{Seconds: 8, Writes: 100}, false},
		"nothing to compare with": {hour, 20, judge.Work{}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := teaWalk()
			w.worked["tea.v1"] = c.was
			w.Provider = audited{log: writing(time.Now(), c.lasting, c.rate)}
			for range 5 {
				began := w.usageNow(t.Context())
				time.Sleep(500 * time.Millisecond)
				w.calms = append(w.calms, calm{began: began, over: w.usageNow(t.Context())})
			}
			for range 2 {
				found, err := w.judgeCalm(t.Context(), "tea.v1", w.release)
				if err != nil || c.found != (len(found) == 1) || c.found && !strings.Contains(found[0].Message, "goes on writing, with 20 requests a second") {
					t.Errorf("%s: %v %v", name, found, err)
				}
			}
			if found, err := w.judgeCalm(t.Context(), "tea.v2", w.release); err != nil || len(found) != 0 {
				t.Errorf("%s: it was installed: %v %v", name, found, err)
			}
		})
	}
	w := teaWalk()
	w.calms = []calm{{}}
	if found, err := w.judgeCalm(t.Context(), "tea.v1", w.release); err != nil || len(found) != 0 || len(w.calms) != 0 {
		t.Errorf("the cluster keeps no audit log: %v %v", found, err)
	}
}

// TestCalmLasted: what is at rest is left alone for a while, and only for a moment where an operator that is quick surely did nothing; one that may have looked at an
// object, or of which nobody knows, is waited for.
func TestCalmLasted(t *testing.T) {
	const look = 50 * time.Millisecond
	for name, c := range map[string]struct {
		quick   bool
		version func(looks int) string
		used    func(looks int) time.Duration
		metered bool
		lasted  time.Duration
	}{
		"it does nothing":       {true, func(int) string { return "1" }, func(int) time.Duration { return 0 }, true, 150 * time.Millisecond},
		"it is slow":            {false, func(int) string { return "1" }, func(int) time.Duration { return 0 }, true, idleFor},
		"nobody knows":          {true, func(int) string { return "1" }, func(int) time.Duration { return 0 }, false, idleFor},
		"it works":              {true, func(int) string { return "1" }, func(n int) time.Duration { return time.Duration(n) * time.Millisecond }, true, idleFor},
		"it looks a while":      {true, func(int) string { return "1" }, func(n int) time.Duration { return time.Duration(min(n, 3)) * time.Millisecond }, true, 300 * time.Millisecond},
		"it began anew":         {true, func(int) string { return "1" }, func(n int) time.Duration { return time.Hour - time.Duration(n)*time.Minute }, true, idleFor},
		"somebody else writes":  {true, func(n int) string { return strings.Repeat("1", min(n, 4)+1) }, func(int) time.Duration { return 0 }, true, 350 * time.Millisecond},
		"it writes as it works": {true, func(n int) string { return strings.Repeat("1", min(n, 4)+1) }, func(n int) time.Duration { return time.Duration(min(n, 4)) * time.Millisecond }, true, 350 * time.Millisecond},
	} {
		var rest calm
		began := time.Now()
		for n := 0; ; n++ {
			at := time.Duration(n) * look
			rest.goesOn(c.version(n), usage{began.Add(at), c.used(n), c.metered})
			if rest.lasted(idleFor, c.quick) || at > time.Minute {
				if at != c.lasted {
					t.Errorf("%s: at rest after %s, not %s", name, at, c.lasted)
				}
				break
			}
		}
	}
}
