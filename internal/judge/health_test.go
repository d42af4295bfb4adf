package judge

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/test/support/expect"
)

func TestJudgeHealth(t *testing.T) {
	before := map[string]observe.Operand{"StatefulSet/n/a": {}, "Service/n/a": {}, "Deployment/n/b": {Unready: "0 of 1 replicas are ready"}, "Pod/n/a-0": {Kind: "Pod"}}
	after := map[string]observe.Operand{
		"StatefulSet/n/a": {Unready: "1 of 2 replicas are ready"}, "Service/n/a": {}, "Deployment/n/b": {Unready: "0 of 1 replicas are ready"}, "Pod/n/a-0": {Kind: "Pod", Unready: "x"},
	}
	expect.Findings(t, Health(before, after),
		"error U511 StatefulSet/n/a: it was ready before the upgrade and has not been again for 45s: 1 of 2 replicas are ready")
}

// TestJudgeNotHere: what cannot be ready on this cluster, and would on another one, is no error.
func TestJudgeNotHere(t *testing.T) {
	before := map[string]observe.Operand{"Deployment/n/a": {Kind: "Deployment", Of: "A/n/a"}}
	stuck := observe.Operand{Kind: "Deployment", Of: "A/n/a", Unready: "1 replicas of an older template are still there"}
	crowded := map[string]observe.Operand{"Deployment/n/a": stuck, "Pod/n/a-2": {Kind: "Pod", Of: "A/n/a", Crowded: "0/1 nodes are available: 1 node(s) didn't have free ports"}}
	got := Health(before, crowded)
	expect.Findings(t, got, "warning U511 Deployment/n/a: it was ready before the upgrade and has not been again for 45s: 1 replicas of an older template are still there")
	if !strings.HasPrefix(got[0].Cause, "Pod/n/a-2 would run on another node") {
		t.Errorf("the cause is %q", got[0].Cause)
	}
	stuck.Content = map[string]any{"spec": map[string]any{"volumes": []any{map[string]any{"secret": map[string]any{"secretName": "a-tls"}}}}}
	service := observe.Operand{Kind: "Service", Of: "A/n/a", Marks: map[string]any{"annotations": map[string]any{servingCertificate: "a-tls"}}}
	expect.Findings(t, Health(before, map[string]observe.Operand{"Deployment/n/a": stuck, "Service/n/a": service}))
	stuck.Namespace = "n"
	expect.Findings(t, Health(before, map[string]observe.Operand{"Deployment/n/a": stuck, "Service/n/a": service, "Secret/n/a-tls": {Kind: "Secret"}}),
		"error U511 Deployment/n/a: it was ready before the upgrade and has not been again for 45s: 1 replicas of an older template are still there")
}

// TestJudgeAddedOperand: what a new version adds has to get ready, where what there was was.
func TestJudgeAddedOperand(t *testing.T) {
	const why = "0 of 1 replicas are ready"
	ready := observe.Operand{Kind: "StatefulSet", Of: "A/n/a", Direct: true}
	unready, failed, done := ready, ready, ready
	unready.Unready = why
	failed.Kind, failed.Unready = "Job", "it failed: BackoffLimitExceeded: x"
	done.Kind = "Job"
	other, indirect, claim := unready, unready, unready
	other.Of, indirect.Direct, claim.Kind = "A/n/b", false, "PersistentVolumeClaim"
	secured, serving := unready, observe.Operand{Kind: "Service", Of: "A/n/a", Marks: map[string]any{"annotations": map[string]any{servingCertificate: "x-tls"}}}
	secured.Content = map[string]any{"spec": map[string]any{"volumes": []any{map[string]any{"secret": map[string]any{"secretName": "x-tls"}}}}}
	const added = "error U511 StatefulSet/n/x: the new version added it for A/n/a, and for 45s it has not been ready: " + why
	for name, c := range map[string]struct {
		before, after observe.Operand
		also          map[string]observe.Operand // new, too
		want          []string
	}{
		"not ready":             {ready, unready, nil, []string{added}},
		"ready":                 {ready, ready, nil, nil},
		"nothing was ready":     {unready, unready, nil, nil},
		"of another object":     {ready, other, nil, nil},
		"made by an operand":    {ready, indirect, nil, nil},
		"waits for OpenShift":   {ready, secured, map[string]observe.Operand{"Service/n/x": serving}, nil},
		"waits for nobody":      {ready, secured, nil, []string{added}},
		"no workload":           {ready, claim, nil, nil},
		"failed":                {ready, failed, nil, []string{"error U511 StatefulSet/n/x: the new version added it for A/n/a, and for 45s it has not been ready: it failed: BackoffLimitExceeded: x"}},
		"failed, and then well": {ready, failed, map[string]observe.Operand{"Job/n/y": done}, nil},
		"failed before, too":    {failed, failed, nil, nil},
	} {
		after := map[string]observe.Operand{"StatefulSet/n/a": c.before, "StatefulSet/n/x": c.after}
		maps.Copy(after, c.also)
		t.Run(name, func(t *testing.T) {
			after["Job/n/before"] = done // one that was there is none that tries again
			expect.Findings(t, Health(map[string]observe.Operand{"StatefulSet/n/a": c.before, "Job/n/before": done}, after), c.want...)
		})
	}
}

// TestJudgeRefusedOperand: a finding on an operand whose pod the cluster refuses says what the pod asks for, and no other does.
func TestJudgeRefusedOperand(t *testing.T) {
	before := map[string]observe.Operand{"StatefulSet/n/a": {Of: "A/n/a"}, "StatefulSet/n/b": {Of: "A/n/b"}}
	after := map[string]observe.Operand{
		"StatefulSet/n/a": {Of: "A/n/a", Unready: "0 of 1 replicas are ready"}, "Pod/n/a-0": {Kind: "Pod", Of: "A/n/a", Refused: "PodRefused: hostPID"},
		"StatefulSet/n/b": {Of: "A/n/b", Unready: "0 of 1 replicas are ready"},
	}
	got := Health(before, after)
	if len(got) != 2 || got[0].Cause != "Pod/n/a-0 is not run: PodRefused: hostPID" || !strings.Contains(got[0].Fix, "--cluster kind") || got[1].Cause == got[0].Cause || got[1].Fix == got[0].Fix {
		t.Errorf("got %+v", got)
	}
}

// TestJudgeOperandImages tells an image that cannot be had where others ran, and is silent where nothing ran before.
func TestJudgeOperandImages(t *testing.T) {
	pod := func(of, image string) observe.Operand {
		return observe.Operand{Kind: "Pod", Of: of, Images: []string{image}}
	}
	before := map[string]observe.Operand{"Pod/n/a": pod("A/n/a", "redis:7"), "Pod/n/b": pod("A/n/b", "other:1")}
	after := map[string]observe.Operand{"Pod/n/a2": pod("A/n/a", "redis:8"), "Pod/n/b2": pod("A/n/b", "other:2")}
	expect.Findings(t, OperandImages(before, after, []string{"other:1", "other:2", "redis:8"}),
		"error U513 Pod/n/a2: its image redis:8 cannot be had, so the pod is simulated; the pods made for A/n/a ran before the upgrade")
	expect.Findings(t, OperandImages(before, after, []string{"other:1"}))
}

// A workload that runs less for an object that nobody changed is told, unless something else scales it or runs in its place.
func TestLess(t *testing.T) {
	type m = map[string]any
	made := func(kind, name string, spec m) observe.Operand {
		return observe.Operand{Kind: kind, Namespace: "n", Name: name, Of: "Pot/n/a", Content: m{"spec": spec}}
	}
	operands := func(list ...observe.Operand) map[string]observe.Operand {
		all := map[string]observe.Operand{}
		for _, o := range list {
			all[o.String()] = o
		}
		return all
	}
	three, two := made("Deployment", "a", m{"replicas": int64(3)}), made("Deployment", "a", m{"replicas": int64(2)})
	fewer := "error U511 Deployment/n/a: the new version runs 2 replicas of it, and the old one ran 3, though nobody changed Pot/n/a"
	expect.Findings(t, Less(nil, operands(three), operands(three)))
	expect.Findings(t, Less(nil, operands(two), operands(three)))
	expect.Findings(t, Less(nil, operands(three), operands(two)), fewer)
	expect.Findings(t, Less(nil, operands(three), operands(two, made("HorizontalPodAutoscaler", "a", m{"scaleTargetRef": m{"kind": "Deployment", "name": "b"}}))), fewer)
	expect.Findings(t, Less(nil, operands(three), operands(two, made("HorizontalPodAutoscaler", "a", m{"scaleTargetRef": m{"kind": "Deployment", "name": "a"}}))))
	expect.Findings(t, Less(nil, operands(three), operands(two, made("StatefulSet", "a", m{"replicas": int64(1)}))))
	expect.Findings(t, Less(nil, operands(three), operands()))
	asks := &observe.Object{Kind: "Pot", Namespace: "n", Name: "a", Author: m{"spec": m{"port": int64(2), "server": m{"replicas": int64(2)}}}}
	expect.Findings(t, Less([]*observe.Object{asks}, operands(three), operands(two))) // it was scaled meanwhile
	asks.Author = m{"spec": m{"port": int64(2), "server": m{"replicas": int64(3)}}}
	expect.Findings(t, Less([]*observe.Object{asks}, operands(three), operands(two)), fewer)
	runs, rests := made("CronJob", "a", m{"suspend": false}), made("CronJob", "a", m{"suspend": true})
	expect.Findings(t, Less(nil, operands(runs), operands(rests)), "error U511 CronJob/n/a: the new version sets its spec.suspend, though nobody changed Pot/n/a")
	expect.Findings(t, Less(nil, operands(rests), operands(rests)))
	expect.Findings(t, Less(nil, operands(rests), operands(runs)))
	expect.Findings(t, Less(nil, operands(made("Deployment", "a", nil)), operands(made("Deployment", "a", m{"paused": true}))),
		"error U511 Deployment/n/a: the new version sets its spec.paused, though nobody changed Pot/n/a")
}

// TestDelay: the longest of what is asked for counts, and only of what runs pods.
func TestDelay(t *testing.T) {
	type m = map[string]any
	workload := func(kind string, stable int64, containers ...any) observe.Operand {
		return observe.Operand{Kind: kind, Direct: true, Content: m{"spec": m{"minReadySeconds": stable, "template": m{"spec": m{"containers": containers}}}}}
	}
	probe := func(kind string, seconds int64) any { return m{kind: m{"initialDelaySeconds": seconds}} }
	for name, c := range map[string]struct {
		operand observe.Operand
		want    time.Duration
	}{
		"nothing":                  {workload("Deployment", 0), 0},
		"a readiness probe":        {workload("Deployment", 0, probe("readinessProbe", 60), probe("readinessProbe", 5)), time.Minute},
		"a startup probe":          {workload("StatefulSet", 10, probe("startupProbe", 20)), 30 * time.Second},
		"a liveness probe is none": {workload("Deployment", 0, probe("livenessProbe", 60)), 0},
		"no workload":              {workload("Service", 60), 0},
	} {
		if got := Delay(map[string]observe.Operand{"a": c.operand, "b": workload("Deployment", 0)}); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestScaled: a workload is scaled by what names it in its namespace, for whatever object that was made.
func TestScaled(t *testing.T) {
	target := map[string]any{"spec": map[string]any{"scaleTargetRef": map[string]any{"kind": "Deployment", "name": "a"}}}
	operands := map[string]observe.Operand{
		"h": {Kind: "HorizontalPodAutoscaler", Namespace: "n", Name: "h", Content: target}, "rule": {Kind: "ConfigMap", Namespace: "m", Name: "h", Content: target},
	}
	for name, c := range map[string]struct {
		workload observe.Operand
		want     bool
	}{
		"what it names":        {observe.Operand{Kind: "Deployment", Namespace: "n", Name: "a"}, true},
		"another":              {observe.Operand{Kind: "Deployment", Namespace: "n", Name: "b"}, false},
		"of another kind":      {observe.Operand{Kind: "StatefulSet", Namespace: "n", Name: "a"}, false},
		"in another namespace": {observe.Operand{Kind: "Deployment", Namespace: "m", Name: "a"}, false},
	} {
		if got := Scaled(c.workload, operands); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
