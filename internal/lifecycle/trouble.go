package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// DeploymentTrouble says what is wrong with a pod of d, or with d itself.
func DeploymentTrouble(d *appsv1.Deployment, pods []corev1.Pod) (Explanation, bool) {
	for _, p := range podsOf(d, pods) {
		if t, ok := Trouble(p); ok {
			return t, true
		}
	}
	for _, c := range d.Status.Conditions {
		if c.Status == corev1.ConditionFalse || c.Type == appsv1.DeploymentReplicaFailure {
			if t, ok := Restarted(d, pods); ok {
				return t, true
			}
			return Explanation{Object: "Deployment/" + d.Namespace + "/" + d.Name, Why: c.Reason + ": " + c.Message}, true
		}
	}
	return Explanation{}, false
}

// Restarted says which container of a pod of d ended and runs again: one that soon ends each time is well for moments.
func Restarted(d *appsv1.Deployment, pods []corev1.Pod) (Explanation, bool) {
	for _, p := range podsOf(d, pods) {
		for _, s := range p.Status.ContainerStatuses {
			if ended := s.LastTerminationState.Terminated; ended != nil && s.RestartCount > 0 {
				return Explanation{
					Object:    "Pod/" + p.Namespace + "/" + p.Name,
					Why:       fmt.Sprintf("container %s was restarted %d times, last ended with exit code %d", s.Name, s.RestartCount, ended.ExitCode),
					Container: p.Namespace + "/" + p.Name + "/" + s.Name, Ended: true, Running: s.State.Running != nil,
				}, true
			}
		}
	}
	return Explanation{}, false
}

// podsOf returns those of pods that d's selector matches; none if it has no valid one.
func podsOf(d *appsv1.Deployment, pods []corev1.Pod) []*corev1.Pod {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return nil
	}
	var own []*corev1.Pod
	for i := range pods {
		if p := &pods[i]; p.Namespace == d.Namespace && selector.Matches(labels.Set(p.Labels)) {
			own = append(own, p)
		}
	}
	return own
}

// Trouble says why a container of p does not run, and false if all do.
func Trouble(p *corev1.Pod) (Explanation, bool) {
	object := "Pod/" + p.Namespace + "/" + p.Name
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		ended := s.State.Terminated
		if ended == nil {
			ended = s.LastTerminationState.Terminated
		}
		container := p.Namespace + "/" + p.Name + "/" + s.Name
		switch {
		case s.State.Waiting != nil && s.State.Waiting.Reason != "" && s.State.Waiting.Reason != "ContainerCreating" && s.State.Waiting.Reason != "PodInitializing":
			why := fmt.Sprintf("container %s waits: %s %s", s.Name, s.State.Waiting.Reason, s.State.Waiting.Message)
			if ended != nil {
				why += fmt.Sprintf(", restarted %d times, last ended with exit code %d", s.RestartCount, ended.ExitCode)
			}
			return Explanation{Object: object, Why: strings.TrimSpace(why), Container: container, Ended: ended != nil}, true
		case ended != nil && !s.Ready && (ended.ExitCode != 0 || s.State.Terminated != nil && p.Spec.RestartPolicy == corev1.RestartPolicyAlways):
			return Explanation{
				Object:    object,
				Why:       fmt.Sprintf("container %s ended with exit code %d (%s), restarted %d times", s.Name, ended.ExitCode, ended.Reason, s.RestartCount),
				Container: container, Ended: true, Running: s.State.Running != nil,
			}, true
		case s.State.Running != nil && !s.Ready:
			return Explanation{Object: object, Why: fmt.Sprintf("container %s runs and is not ready", s.Name), Container: container, Running: true, Ended: ended != nil}, true
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return Explanation{Object: object, Why: c.Reason + ": " + c.Message}, true
		}
	}
	if p.Status.Phase == corev1.PodPending {
		return Explanation{Object: object, Why: "its containers are not created yet"}, true
	}
	return Explanation{}, false
}

// NewestWarning returns the text of the newest warning event about e's object or the bundle called name.
func NewestWarning(events []corev1.Event, e Explanation, name string, since time.Time) string {
	var newest *corev1.Event
	for i := range events {
		v := &events[i]
		about := v.InvolvedObject.Kind + "/" + v.InvolvedObject.Namespace + "/" + v.InvolvedObject.Name
		if v.Type != corev1.EventTypeWarning || about != e.Object && v.InvolvedObject.Name != name || eventTime(v).Before(since) {
			continue
		}
		if newest == nil || eventTime(newest).Before(eventTime(v)) {
			newest = v
		}
	}
	if newest == nil {
		return ""
	}
	return newest.Reason + ": " + newest.Message
}

func eventTime(e *corev1.Event) time.Time {
	if !e.LastTimestamp.IsZero() {
		return e.LastTimestamp.Time
	}
	if !e.EventTime.IsZero() {
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}
