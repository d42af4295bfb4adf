//go:build linux

package node

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/olmkit/olmkit/internal/cluster/embedded/sandbox"
)

// TestUpdateWhileContainersStart has the race detector watch what containers read of their pod while the API changes it.
func TestUpdateWhileContainersStart(t *testing.T) {
	p := testPod(t)
	p.node.config.Images = NewImages()
	spec := &corev1.Container{Name: "c", Image: "example.com/none:v1"}
	changed, done := p.current().DeepCopy(), make(chan struct{})
	go func() {
		defer close(done)
		for range 100 {
			p.update(changed)
		}
	}()
	for range 100 {
		if _, err := p.environment(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		c := newContainer(p, spec, false)
		c.identity(&sandbox.Container{})
		p.mounts(spec, nil)
		p.resourceField(spec, &corev1.ResourceFieldSelector{Resource: "limits.cpu", ContainerName: "c"})
		if why, err := p.refusal(), p.refuseDevices(); why != "" || err != nil {
			t.Fatal(why, err)
		}
	}
	<-done
}

// TestExecSimulated has a command run in a container that is simulated, and in one that is not started.
func TestExecSimulated(t *testing.T) {
	n := testNode(t)
	n.config.Images = NewImages()
	run(t, n)
	create(t, n, podObject("p", "u"))
	waitFor(t, "the pod runs", func() bool { return statusOf(t, n, "p").Phase == corev1.PodRunning })
	n.mu.Lock()
	p := n.pods["n/p"]
	n.mu.Unlock()
	if len(p.containers) == 0 {
		t.Fatal("the pod has no container")
	}
	for name, c := range p.containers {
		var out strings.Builder
		if code, err := c.exec(t.Context(), []string{"tool"}, nil, &out, &out); code != 0 || err != nil || out.Len() > 0 {
			t.Errorf("%s: %d %q %v", name, code, out.String(), err)
		}
	}
	waiting := newContainer(p, &corev1.Container{Name: "c"}, false)
	if _, err := waiting.exec(t.Context(), []string{"tool"}, nil, nil, nil); !errors.Is(err, errNotRunning) {
		t.Errorf("a container that was not started: %v", err)
	}
}

// TestAttachIsTriedAgain has a pod's network fail twice in one way and once in another.
func TestAttachIsTriedAgain(t *testing.T) {
	n := testNode(t)
	events := record.NewFakeRecorder(10)
	n.recorder = events
	attach, failures := n.attach, []error{errors.New("full"), errors.New("full"), errors.New("busy")}
	n.attach = func(idle bool) (*endpoint, error) {
		if len(failures) > 0 {
			err := failures[0]
			failures = failures[1:]
			return nil, err
		}
		return attach(idle)
	}
	run(t, n)
	create(t, n, podObject("p", "u"))
	waitFor(t, "the pod runs", func() bool { return statusOf(t, n, "p").Phase == corev1.PodRunning && statusOf(t, n, "p").PodIP != "" })
	close(events.Events)
	var told []string
	for e := range events.Events {
		told = append(told, strings.TrimPrefix(e, "Warning FailedCreatePodSandBox "))
	}
	if got := strings.Join(told, ", "); got != "full, busy" {
		t.Errorf("the events tell %q", got)
	}
}

// TestPodWithoutNetworkEnds has a pod deleted whose network never comes.
func TestPodWithoutNetworkEnds(t *testing.T) {
	n := testNode(t)
	n.attach = func(bool) (*endpoint, error) { return nil, errors.New("full") }
	run(t, n)
	create(t, n, podObject("p", "u"))
	waitFor(t, "the node has the pod", func() bool { return n.find("n/p") != nil })
	markDeleted(t, n, "p", 30)
	waitFor(t, "the pod is gone", func() bool { return gone(t, n, "p") && n.find("n/p") == nil })
}

// TestSnapshotIsACopy has the status go on changing after it was read.
func TestSnapshotIsACopy(t *testing.T) {
	p := testPod(t)
	p.current().Spec.Containers = []corev1.Container{{Name: "c"}}
	state := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
	p.containers = map[string]*container{"c": {pod: p, spec: &p.current().Spec.Containers[0], state: state, last: state}}
	given := p.snapshot().ContainerStatuses[0]
	state.Waiting.Reason = "ContainerCreating"
	for _, s := range []corev1.ContainerState{given.State, given.LastTerminationState} {
		if s.Waiting.Reason != "PodInitializing" {
			t.Errorf("it changed to %s", s.Waiting.Reason)
		}
	}
}
