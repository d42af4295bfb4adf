package observe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
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

// running is how many pods of o are ready, by its status.
func running(o *unstructured.Unstructured) int64 {
	replicas, _, _ := unstructured.NestedInt64(o.Object, "status", "readyReplicas")
	scheduled, _, _ := unstructured.NestedInt64(o.Object, "status", "numberReady")
	return replicas + scheduled
}

func unreadyReplicas(o *unstructured.Unstructured, kind string, wanted int64, field string) string {
	ready, _, _ := unstructured.NestedInt64(o.Object, "status", field)
	observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	updated, _, _ := unstructured.NestedInt64(o.Object, "status", "updatedReplicas")
	there, _, _ := unstructured.NestedInt64(o.Object, "status", "replicas")
	paused, _, _ := unstructured.NestedBool(o.Object, "spec", "paused")
	replaces := kind == "Deployment" && !paused
	switch {
	case observed < o.GetGeneration():
		return fmt.Sprintf("its controller has not seen generation %d", o.GetGeneration())
	case ready < wanted:
		return fmt.Sprintf("%d of %d replicas are ready", ready, wanted)
	case kind == "StatefulSet" && rollsOut(o):
		return "its pods are not all of its newest template"
	case replaces && updated < wanted:
		return fmt.Sprintf("%d of %d replicas are of its newest template", updated, wanted)
	case replaces && there > updated: // as kubectl rollout status has it
		return fmt.Sprintf("%d replicas of an older template are still there", there-updated)
	}
	return ""
}

// rollsOut reports whether the StatefulSet o has yet to replace pods by itself, as its template changed. (k8s.io/kubernetes v1.36.3
// pkg/controller/statefulset/stateful_set_utils.go, completeRollingUpdate, makes the two revisions one.)
func rollsOut(o *unstructured.Unstructured) bool {
	strategy, _, _ := unstructured.NestedString(o.Object, "spec", "updateStrategy", "type")
	partition, _, _ := unstructured.NestedInt64(o.Object, "spec", "updateStrategy", "rollingUpdate", "partition")
	current, _, _ := unstructured.NestedString(o.Object, "status", "currentRevision")
	update, _, _ := unstructured.NestedString(o.Object, "status", "updateRevision")
	return strategy != string(appsv1.OnDeleteStatefulSetStrategyType) && partition == 0 && current != update
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

func (c condition) String() string { return fmt.Sprintf("%s: %s: %s", c.Status, c.Reason, c.Message) }

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

// How objects commonly say that they serve, or do not: in conditions that are True then, and in fields of their status. (Available and
// Degraded: OpenShift's conventions for operators; Ready and Stalled: kstatus; phases: what Pods and claims have.)
var (
	healthConditions  = []string{"Available", "Ready"}
	troubleConditions = []string{"Degraded", "Failed", "Stalled"}
	phaseFields       = []string{"phase", "state"}
	troublePhases     = []string{"failed", "error", "degraded"} // in lower case
	// earlyPhases are those of what does not serve yet. What serves, and is brought to another version, says something else.
	earlyPhases = []string{"pending", "waiting", "creating", "initializing", "provisioning", "installing", "starting", "unknown", "notready", "unavailable"}
	// busyPhases are those of what is being changed, which ends.
	busyPhases = []string{"updating", "upgrading", "progressing", "reconciling", "reconfiguring", "migrating", "modifying", "rolling", "restarting", "processing"}
	// busyConditions are True as long as something is being changed. A Deployment's Progressing stays True, with a reason of its own, so what
	// counts is that one was False.
	busyConditions = []string{"Progressing", "Reconciling", "Updating", "Upgrading"}
	// goodCondition and badCondition match how the types of other conditions end that are True, or not True, of what serves. A condition of
	// a run that is under way, as Ansible operators' Successful, says nothing until that ends; nor is it bad if no update is available any more.
	goodCondition = Compiled(`(Ready|Available|Healthy|Reconciled|ReconcileSuccess|Synced|Synchronized|Succeeded|Deployed|Established|Accepted|Admitted|Programmed|ResolvedRefs|Attached|Valid|Validated|Provisioned|Configured|Connected)$`)
	badCondition  = Compiled(`(?i)(degraded|failed|failure|stalled|errors?|irreconcilable)$`)
	notGood       = Compiled(`(?i)(not.?(ready|available|healthy|reconciled|synced|synchronized)|unready|unavailable|unhealthy|unsynced)$`)
	otherwise     = Compiled(`^(Not|No|Without)[A-Z]|(Update|Upgrade|Version)s?Available$`)
)

// unwell says how o's status tells that o does not serve, or "".
func unwell(o *unstructured.Unstructured) string {
	for _, t := range healthConditions {
		if c := conditionOf(o, t); c.Status != "" && c.Status != corev1.ConditionTrue {
			return fmt.Sprintf("condition %s is %s", t, c)
		}
	}
	for _, t := range troubleConditions {
		if c := conditionOf(o, t); c.Status == corev1.ConditionTrue {
			return fmt.Sprintf("condition %s is %s", t, c)
		}
	}
	for _, field := range phaseFields {
		if phase := phaseOf(o, field); inTrouble(phase) {
			return fmt.Sprintf("status.%s is %s", field, phase)
		}
	}
	return ""
}

// worse says what an object's status told of its health before and does not tell any more, with the reason that it gives, or "".
func worse(before, now *unstructured.Unstructured) string {
	if isOver(before, time.Now()) {
		return ""
	}
	said := false // that it serves
	for _, t := range healthConditions {
		if conditionOf(before, t).Status != corev1.ConditionTrue {
			continue
		}
		said = true
		switch c := conditionOf(now, t); {
		case c.Status == "":
			return fmt.Sprintf("condition %s was True and is not there any more", t)
		case c.Status != corev1.ConditionTrue:
			return fmt.Sprintf("condition %s was True and is %s", t, c)
		}
	}
	for _, field := range phaseFields {
		was, is := phaseOf(before, field), phaseOf(now, field)
		if was == "" || inTrouble(was) {
			continue
		}
		said = true
		switch {
		case inTrouble(is) || isEarly(is) && !isEarly(was):
			return fmt.Sprintf("status.%s was %s and is %s", field, was, is)
		case isBusy(is) && !isBusy(was) && !isEarly(was):
			return fmt.Sprintf("status.%s was %s and stays %s", field, was, is)
		}
	}
	return worseCondition(before, now, said)
}

// ending matches the names of fields that say when an object's time is over; not notAfter of certificates, which are renewed before.
var ending = Compiled(`(?i)(expir|until|deadline|end(s|ed)?(At|Time)$)`)

// isOver reports whether an object's time was over at at, as its spec or its status says: that it does not serve then is its purpose.
func isOver(o *unstructured.Unstructured, at time.Time) bool {
	var over func(value any) bool
	over = func(value any) bool {
		fields, _ := value.(map[string]any)
		for name, inner := range fields {
			text, _ := inner.(string)
			when, err := time.Parse(time.RFC3339, text)
			if err == nil && ending().MatchString(name) && when.Before(at) || over(inner) {
				return true
			}
		}
		return false
	}
	return over(o.Object["spec"]) || over(o.Object["status"])
}

// worseCondition is what worse says of conditions of any type. Of an object that told nothing of its health before, which said tells, the new
// version may be the first to say what it always was; so it may be in a condition that is nobody's convention.
func worseCondition(before, now *unstructured.Unstructured, said bool) string {
	for _, t := range conditionTypes(now) {
		was, is := conditionOf(before, t), conditionOf(now, t)
		known := was.Status != "" || said && slices.Contains(troubleConditions, t)
		switch {
		case isBad(t) && known && was.Status != corev1.ConditionTrue && is.Status == corev1.ConditionTrue:
			return fmt.Sprintf("condition %s was not True and is %s", t, is)
		case isGood(t) && was.Status == corev1.ConditionTrue && is.Status != corev1.ConditionTrue:
			return fmt.Sprintf("condition %s was True and is %s", t, is)
		case slices.Contains(busyConditions, t) && is.Reason != "NewReplicaSetAvailable" && was.Status == corev1.ConditionFalse && is.Status == corev1.ConditionTrue:
			return fmt.Sprintf("condition %s was False and stays %s", t, is)
		}
	}
	return ""
}

// isGood reports whether a condition of type t is True of what serves.
func isGood(t string) bool {
	return goodCondition().MatchString(t) && !notGood().MatchString(t) && !otherwise().MatchString(t)
}

// isBad reports whether a condition of type t is not True of what serves.
func isBad(t string) bool {
	return notGood().MatchString(t) || badCondition().MatchString(t) && !otherwise().MatchString(t)
}

// ConditionsGone are the types of the conditions that said of before that it serves, and that now does not have; others than Ready and
// Available, whose absence is a worse health.
func ConditionsGone(before, now *unstructured.Unstructured) []string {
	there := append(conditionTypes(now), healthConditions...)
	return slices.DeleteFunc(conditionTypes(before), func(t string) bool {
		return !isGood(t) || conditionOf(before, t).Status != corev1.ConditionTrue || slices.Contains(there, t)
	})
}

// conditionTypes are the types of o's conditions, in order.
func conditionTypes(o *unstructured.Unstructured) []string {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	var types []string
	for _, c := range list {
		m, _ := c.(map[string]any)
		if t, ok := m["type"].(string); ok {
			types = append(types, t)
		}
	}
	return types
}

// phaseOf returns what the field of o's status says, "" if it is no text.
func phaseOf(o *unstructured.Unstructured, field string) string {
	phase, _, _ := unstructured.NestedString(o.Object, "status", field)
	return phase
}

func inTrouble(phase string) bool { return slices.Contains(troublePhases, strings.ToLower(phase)) }

func isEarly(phase string) bool { return slices.Contains(earlyPhases, strings.ToLower(phase)) }

func isBusy(phase string) bool { return slices.Contains(busyPhases, strings.ToLower(phase)) }
