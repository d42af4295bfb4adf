//go:build linux

package node

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
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

// TestAttachIsTriedAgain has a pod's network fail twice in one way and once in another.
func TestAttachIsTriedAgain(t *testing.T) {
	network := &Network{prefix: netip.MustParsePrefix("10.244.0.0/16"), used: map[netip.Addr]bool{}}
	object := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n", UID: "u"},
		Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{Name: "c", Image: "example.com/none:v1"}}},
	}
	n := New(Config{Network: network, Images: NewImages(), Dir: t.TempDir(), Client: fake.NewClientset(object)})
	events := record.NewFakeRecorder(10)
	n.recorder = events
	failures := []error{errors.New("full"), errors.New("full"), errors.New("busy")}
	n.attach = func(bool) (*endpoint, error) {
		if len(failures) > 0 {
			err := failures[0]
			failures = failures[1:]
			return nil, err
		}
		return &endpoint{network: network, handle: netns.None(), address: netip.MustParseAddr("10.244.0.9")}, nil
	}
	running := make(chan struct{}, 100)
	n.NotifyPods(t.Context(), func(p *corev1.Pod) {
		if p.Status.Phase == corev1.PodRunning && p.Status.PodIP == "10.244.0.9" {
			running <- struct{}{}
		}
	})
	if err := n.CreatePod(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	p, err := n.find("n", "p")
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-running:
	case <-time.After(time.Minute):
		t.Errorf("the pod does not run: %+v", p.snapshot().Status)
	}
	p.end(0)
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
	object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n", UID: "u"}}
	n := New(Config{Network: &Network{prefix: netip.MustParsePrefix("10.244.0.0/16")}, Dir: t.TempDir(), Client: fake.NewClientset(object)})
	n.recorder = record.NewFakeRecorder(10)
	n.attach = func(bool) (*endpoint, error) { return nil, errors.New("full") }
	p := n.newPod(object)
	p.end(0)
	if pods, err := n.config.Client.CoreV1().Pods("n").List(context.Background(), metav1.ListOptions{}); err != nil || len(pods.Items) > 0 {
		t.Errorf("%v %v", pods, err)
	}
}

// TestSnapshotIsACopy has the status go on changing that virtual-kubelet was given.
func TestSnapshotIsACopy(t *testing.T) {
	p := testPod(t)
	p.current().Spec.Containers = []corev1.Container{{Name: "c"}}
	state := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
	p.containers = map[string]*container{"c": {pod: p, spec: &p.current().Spec.Containers[0], state: state, last: state}}
	given := p.snapshot().Status.ContainerStatuses[0]
	state.Waiting.Reason = "ContainerCreating"
	for _, s := range []corev1.ContainerState{given.State, given.LastTerminationState} {
		if s.Waiting.Reason != "PodInitializing" {
			t.Errorf("it changed to %s", s.Waiting.Reason)
		}
	}
}
