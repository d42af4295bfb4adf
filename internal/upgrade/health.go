package upgrade

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmkit/olmkit/internal/finding"
)

// healthLimit is how long objects and operands have to become as ready as they were before a hop: a StatefulSet replaces
// its pods one after the other.
const healthLimit = 45 * time.Second

// unready says how the operand o of kind does not do what it is for, "" if it does. served names the Services, as
// namespace/name, that have a ready endpoint.
func unready(kind string, o *unstructured.Unstructured, served map[string]bool) string {
	switch kind {
	case "Deployment", "StatefulSet":
		wanted := int64(1)
		if n, set, _ := unstructured.NestedInt64(o.Object, "spec", "replicas"); set {
			wanted = n
		}
		return unreadyReplicas(o, kind, wanted, "readyReplicas")
	case "DaemonSet":
		wanted, _, _ := unstructured.NestedInt64(o.Object, "status", "desiredNumberScheduled")
		return unreadyReplicas(o, kind, wanted, "numberReady")
	case "Job":
		if c := conditionOf(o, "Failed"); c.Status == corev1.ConditionTrue {
			return "it failed: " + c.Reason + ": " + c.Message
		}
	case kindClaim:
		phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
		if phase != string(corev1.ClaimBound) {
			return "it is " + cmp.Or(phase, "not bound")
		}
	case kindService:
		selector, _, _ := unstructured.NestedMap(o.Object, "spec", "selector")
		if len(selector) > 0 && !served[o.GetNamespace()+"/"+o.GetName()] {
			return "it has no ready endpoint"
		}
	}
	return ""
}

func unreadyReplicas(o *unstructured.Unstructured, kind string, wanted int64, field string) string {
	ready, _, _ := unstructured.NestedInt64(o.Object, "status", field)
	observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	updated, counts, _ := unstructured.NestedInt64(o.Object, "status", "updatedReplicas")
	switch {
	case observed < o.GetGeneration():
		return fmt.Sprintf("its controller has not seen generation %d", o.GetGeneration())
	case ready < wanted:
		return fmt.Sprintf("%d of %d replicas are ready", ready, wanted)
	case counts && kind == "Deployment" && updated < wanted:
		return fmt.Sprintf("%d of %d replicas are of its newest template", updated, wanted)
	}
	return ""
}

// allReady reports whether operands do what they are for, pods apart, which what makes them tells of.
func allReady(operands map[string]operand) bool {
	for _, o := range operands {
		if !o.transient() && o.Unready != "" {
			return false
		}
	}
	return true
}

// condition is one of an object's status.conditions.
type condition struct {
	Status          corev1.ConditionStatus
	Reason, Message string
}

// conditionOf returns o's condition of type t, the zero one if there is none.
func conditionOf(o *unstructured.Unstructured, t string) condition {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range list {
		m, ok := c.(map[string]any)
		if !ok || m["type"] != t {
			continue
		}
		text := func(k string) string { s, _ := m[k].(string); return s }
		return condition{corev1.ConditionStatus(text("status")), text("reason"), text("message")}
	}
	return condition{}
}

// healthConditions are the conditions by which objects commonly say that they serve.
var healthConditions = []string{"Available", "Ready"}

// worse says which of an object's health conditions was True before and is not any more, with the reason that it gives, or "".
func worse(before, now *unstructured.Unstructured) string {
	for _, t := range healthConditions {
		if conditionOf(before, t).Status != corev1.ConditionTrue {
			continue
		}
		switch c := conditionOf(now, t); {
		case c.Status == "":
			return fmt.Sprintf("condition %s was True and is not there any more", t)
		case c.Status != corev1.ConditionTrue:
			return fmt.Sprintf("condition %s was True and is %s: %s: %s", t, c.Status, c.Reason, c.Message)
		}
	}
	return ""
}

// judgeHealth tells the operands that were ready before and are not any more. Pods and ReplicaSets are told by what makes
// them.
func judgeHealth(before, after map[string]operand) []finding.Finding {
	var findings []finding.Finding
	for _, name := range slices.Sorted(maps.Keys(before)) {
		was, is := before[name], after[name]
		if idle(was, after) {
			findings = append(findings, find(codeOperandWorse, name, "it was deleted during the upgrade, and nothing runs for %s any more", was.Of))
			continue
		}
		if was.transient() || was.Unready != "" || is.Unready == "" {
			continue
		}
		f := find(codeOperandWorse, name, "it was ready before the upgrade and is not %s after it: %s", healthLimit, is.Unready)
		if pod, why := refusedPod(after, is.Of); why != "" {
			f.Cause = pod + " is not run: " + why
			f.Fix = "take out of the pod what the cluster refuses, or test on one that gives it, with --cluster kind"
		}
		findings = append(findings, f)
	}
	return findings
}

// idle reports whether was ran something for its object, and nothing does after.
func idle(was operand, after map[string]operand) bool {
	runs := func(o operand) bool {
		return o.Of == was.Of && o.Kind != "Job" && slices.Contains(workloadKinds, o.Kind)
	}
	return runs(was) && !slices.ContainsFunc(slices.Collect(maps.Values(after)), runs)
}

// refusedPod names a pod made for the object of that the cluster refuses to run, and why.
func refusedPod(operands map[string]operand, of string) (name, why string) {
	for _, name := range slices.Sorted(maps.Keys(operands)) {
		if o := operands[name]; o.Of == of && o.Refused != "" {
			return name, o.Refused
		}
	}
	return "", ""
}

// judgeOperandImages tells images that the new version runs for an object whose pods really ran before, and that cannot be
// had: on a cluster that pulls them they may not be there.
func judgeOperandImages(before, after map[string]operand, simulated []string) []finding.Finding {
	ran, known := map[string]bool{}, map[string]bool{}
	for _, o := range before {
		for _, image := range o.Images {
			known[image] = true
			ran[o.Of] = ran[o.Of] || !slices.Contains(simulated, image)
		}
	}
	var findings []finding.Finding
	for _, name := range slices.Sorted(maps.Keys(after)) {
		for _, image := range after[name].Images {
			if ran[after[name].Of] && !known[image] && slices.Contains(simulated, image) {
				findings = append(findings, find(codeOperandImage, name, "its image %s cannot be had, so the pod is simulated; the pods made for %s ran before the upgrade", image, after[name].Of))
			}
		}
	}
	return findings
}
