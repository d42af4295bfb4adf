package walk

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// audited is a cluster with an audit log.
type audited struct {
	cluster.Cluster
	log []auditv1.Event
}

func (a audited) Audit(context.Context, time.Time) ([]auditv1.Event, error) { return a.log, nil }

// TestJudgeCalm: what an operator writes in moments in which nothing changes is compared with the release before, also on a later hop to the same.
func TestJudgeCalm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &lifecycle.Release{Name: "tea.v2", CSV: &v1alpha1.ClusterServiceVersion{}}
		r.CSV.Spec.InstallStrategy.StrategySpec.ClusterPermissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "tea"}}
		w := &walk{memory: newMemory(), Cluster: &observe.Cluster{Watcher: &observe.Watcher{}, Place: lifecycle.Place{Namespace: "n"}}}
		w.release = r
		for range 5 {
			w.moments["tea.v1"] = append(w.moments["tea.v1"], judge.Moment{Seconds: 1})
		}
		var of audited
		for range 5 {
			c := w.calmAt(t.Context(), "1")
			for range 10 {
				time.Sleep(50 * time.Millisecond)
				e := auditv1.Event{RequestReceivedTimestamp: metav1.NewMicroTime(time.Now()), Verb: "update", ObjectRef: &auditv1.ObjectReference{Resource: "services"}}
				e.User.Username = "system:serviceaccount:n:tea"
				of.log = append(of.log, e)
			}
			time.Sleep(50 * time.Millisecond)
			w.noteCalm(t.Context(), c)
		}
		calms := w.calms
		if found, err := w.judgeCalm(t.Context(), "tea.v1", r); err != nil || len(found) != 0 || len(w.calms) != 0 {
			t.Errorf("the cluster keeps no audit log: %v %v", found, err)
		}
		w.Provider, w.calms = of, calms
		for range 2 {
			found, err := w.judgeCalm(t.Context(), "tea.v1", r)
			if err != nil || len(found) != 1 || !strings.Contains(found[0].Message, "18 times a second") {
				t.Errorf("%v %v", found, err)
			}
		}
		if found, err := w.judgeCalm(t.Context(), "tea.v3", r); err != nil || len(found) != 0 {
			t.Errorf("of the release before nothing is known: %v %v", found, err)
		}
	})
}
