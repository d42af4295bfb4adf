package judge

import (
	"strings"
	"testing"

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
