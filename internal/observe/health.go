package observe

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

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
	case KindClaim:
		phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
		if phase != string(corev1.ClaimBound) {
			return "it is " + cmp.Or(phase, "not bound")
		}
	case KindService:
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

// AllReady reports whether operands do what they are for, pods apart, which what makes them tells of.
func AllReady(operands map[string]Operand) bool {
	for _, o := range operands {
		if !o.Transient() && o.Unready != "" {
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

// worseConditions says which of an object's health conditions was True before and is not any more, with the reason that it gives, or "".
func worseConditions(before, now *unstructured.Unstructured) string {
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
