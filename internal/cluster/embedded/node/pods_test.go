//go:build linux

package node

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netns"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
)

// testNode returns a node with a fake API, whose pods get addresses that lead nowhere.
func testNode(t *testing.T, objects ...runtime.Object) *Node {
	t.Helper()
	network := &Network{prefix: netip.MustParsePrefix("10.244.0.0/16"), used: map[netip.Addr]bool{}}
	client := fake.NewClientset(objects...)
	refuseConflicts(client)
	n := New(Config{Name: "embedded", Network: network, Images: NewImages(), Dir: t.TempDir(), Client: client})
	n.recorder = &record.FakeRecorder{}
	n.attach = func(bool) (*endpoint, error) {
		return &endpoint{network: network, handle: netns.None(), address: netip.MustParseAddr("10.244.0.9")}, nil
	}
	return n
}

// refuseConflicts has a fake API count resource versions of pods and refuse a write to another than the current one, as the API server
// does. Otherwise a write of the node would undo a test's.
func refuseConflicts(client *fake.Clientset) {
	var mu sync.Mutex
	last := 0
	next := func() string {
		last++
		return strconv.Itoa(last)
	}
	client.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		a.(clienttesting.CreateAction).GetObject().(*corev1.Pod).ResourceVersion = next()
		return false, nil, nil
	})
	client.PrependReactor("update", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		object := a.(clienttesting.UpdateAction).GetObject().(*corev1.Pod)
		resource := a.GetResource()
		stored, err := client.Tracker().Get(resource, object.Namespace, object.Name)
		if err != nil {
			return true, nil, err
		}
		if stored.(*corev1.Pod).ResourceVersion != object.ResourceVersion {
			return true, nil, apierrors.NewConflict(resource.GroupResource(), object.Name, errors.New("it has changed"))
		}
		object.ResourceVersion = next()
		return true, object, client.Tracker().Update(resource, object, object.Namespace)
	})
}

// run has the node run its pods until the test ends.
func run(t *testing.T, n *Node) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.runPods(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func podObject(name string, uid types.UID) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "n", UID: uid},
		Spec:       corev1.PodSpec{NodeName: "embedded", RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{Name: "c", Image: "example.com/none:v1"}}},
	}
}

func create(t *testing.T, n *Node, object *corev1.Pod) {
	t.Helper()
	if _, err := n.config.Client.CoreV1().Pods(object.Namespace).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// change changes a pod in the API as others do.
func change(t *testing.T, n *Node, name string, f func(*corev1.Pod)) {
	t.Helper()
	pods := n.config.Client.CoreV1().Pods("n")
	err := retry.RetryOnConflict(wait.Backoff{Steps: 100, Duration: 10 * time.Millisecond}, func() error {
		object, err := pods.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		f(object)
		_, err = pods.Update(t.Context(), object, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// markDeleted does to a pod what the API server does when somebody deletes it.
func markDeleted(t *testing.T, n *Node, name string, grace int64) {
	t.Helper()
	change(t, n, name, func(p *corev1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = ptr.To(metav1.NewTime(time.Now().Add(time.Duration(grace)*time.Second))), &grace
	})
}

func statusOf(t *testing.T, n *Node, name string) corev1.PodStatus {
	t.Helper()
	object, err := n.config.Client.CoreV1().Pods("n").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return object.Status
}

func gone(t *testing.T, n *Node, name string) bool {
	t.Helper()
	_, err := n.config.Client.CoreV1().Pods("n").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err != nil
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out after 1m waiting until %s", what)
		}
	}
}

// settle waits long enough for a node to do what it should not.
func settle() { time.Sleep(100 * time.Millisecond) }

// hold has the node's pods neither start nor end until release is called.
func hold(n *Node) (release func()) {
	attach, released := n.attach, make(chan struct{})
	n.attach = func(idle bool) (*endpoint, error) {
		<-released
		return attach(idle)
	}
	return sync.OnceFunc(func() { close(released) })
}

// writes lists what the node did to pods in the API, in order.
func writes(n *Node) (written []string, statuses []corev1.PodStatus) {
	for _, a := range n.config.Client.(*fake.Clientset).Actions() {
		switch a := a.(type) {
		case clienttesting.UpdateAction:
			if a.GetSubresource() == "status" {
				written = append(written, "status")
				statuses = append(statuses, a.GetObject().(*corev1.Pod).Status)
			}
		case clienttesting.DeleteActionImpl:
			written = append(written, fmt.Sprintf("delete %d %s", *a.DeleteOptions.GracePeriodSeconds, *a.DeleteOptions.Preconditions.UID))
		}
	}
	return written, statuses
}

func TestPodLives(t *testing.T) {
	n := testNode(t)
	release := hold(n)
	defer release()
	run(t, n)
	create(t, n, podObject("p", "u"))
	waitFor(t, "the API has the pod's first status", func() bool { return len(statusOf(t, n, "p").ContainerStatuses) == 1 })
	p := n.find("n/p")
	change(t, n, "p", func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} })
	waitFor(t, "the pod has its label", func() bool { return p.current().Labels["a"] == "b" })

	markDeleted(t, n, "p", 3600)
	waitFor(t, "the pod is to end", func() bool { return !p.ends().IsZero() })
	if left := time.Until(p.ends()); left < 59*time.Minute {
		t.Errorf("it has %s to end, and was given an hour", left)
	}
	markDeleted(t, n, "p", 1)
	waitFor(t, "the pod is to end sooner", func() bool { return time.Until(p.ends()) < time.Minute })
	markDeleted(t, n, "p", 3600)
	settle()
	if left := time.Until(p.ends()); left > time.Minute || gone(t, n, "p") {
		t.Errorf("it has %s to end again, gone: %t", left, gone(t, n, "p"))
	}
	release()
	waitFor(t, "the pod is gone", func() bool { return gone(t, n, "p") && n.find("n/p") == nil })
	settle()
	written, statuses := writes(n)
	if got := written[len(written)-2:]; !slices.Equal(got, []string{"status", "delete 0 u"}) {
		t.Errorf("at last the node wrote %q", got)
	}
	if last := statuses[len(statuses)-1].ContainerStatuses[0].State; last.Terminated == nil {
		t.Errorf("in its last status, its container is %+v", last)
	}
}

// TestPodDeletedByForce has a pod vanish from the API, and another appear under its name before its processes have ended.
func TestPodDeletedByForce(t *testing.T) {
	for _, next := range []bool{false, true} {
		t.Run(fmt.Sprintf("next=%t", next), func(t *testing.T) {
			n := testNode(t)
			release := hold(n)
			defer release()
			run(t, n)
			create(t, n, podObject("p", "u"))
			waitFor(t, "the node has the pod", func() bool { return n.find("n/p") != nil })
			p := n.find("n/p")
			if err := n.config.Client.CoreV1().Pods("n").Delete(t.Context(), "p", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			if next {
				create(t, n, podObject("p", "v"))
			}
			waitFor(t, "the pod is to end", func() bool { return !p.ends().IsZero() })
			settle()
			if n.find("n/p") != p || p.current().UID != "u" {
				t.Error("another pod took its place before it had ended")
			}
			release()
			if !next {
				waitFor(t, "the node has forgotten the pod", func() bool { return n.find("n/p") == nil })
				return
			}
			waitFor(t, "the next pod runs", func() bool { return statusOf(t, n, "p").Phase == corev1.PodRunning })
			if got := n.find("n/p").current().UID; got != "v" {
				t.Errorf("the pod that runs is %s", got)
			}
		})
	}
}

// TestPodsOfBefore has pods in the API that this node has not started: those that have ended or are deleted are not started.
func TestPodsOfBefore(t *testing.T) {
	ended, deleted, running := podObject("ended", "1"), podObject("deleted", "2"), podObject("running", "3")
	ended.Status.Phase = corev1.PodFailed
	deleted.DeletionTimestamp, deleted.DeletionGracePeriodSeconds = ptr.To(metav1.Now()), ptr.To[int64](30)
	running.Status.Phase = corev1.PodRunning
	n := testNode(t, ended, deleted, running)
	run(t, n)
	waitFor(t, "what is deleted is gone and the other pod runs", func() bool {
		return gone(t, n, "deleted") && len(statusOf(t, n, "running").ContainerStatuses) == 1
	})
	settle()
	if n.find("n/ended") != nil || n.find("n/deleted") != nil || n.find("n/running") == nil {
		t.Error("the node started other pods than the one that is to run")
	}
}

// TestTerminalPhaseStays: a pod that others or we call failed or succeeded never runs again, and is not deleted unasked.
func TestTerminalPhaseStays(t *testing.T) {
	n := testNode(t)
	run(t, n)
	job := podObject("job", "1")
	job.Spec.RestartPolicy = corev1.RestartPolicyNever // simulated, it succeeds at once
	create(t, n, job)
	create(t, n, podObject("evicted", "2"))
	waitFor(t, "one pod runs and the other has ended", func() bool {
		return statusOf(t, n, "evicted").Phase == corev1.PodRunning && statusOf(t, n, "job").Phase == corev1.PodSucceeded
	})
	change(t, n, "evicted", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
	waitFor(t, "the evicted pod has ended", func() bool {
		select {
		case <-n.find("n/evicted").stopped:
			return true
		default:
			return false
		}
	})
	settle()
	if got := statusOf(t, n, "evicted").Phase; got != corev1.PodFailed {
		t.Errorf("the evicted pod is %s", got)
	}
	markDeleted(t, n, "job", 30)
	markDeleted(t, n, "evicted", 30)
	waitFor(t, "both are gone", func() bool { return gone(t, n, "job") && gone(t, n, "evicted") })
}

// TestStatusIsWrittenAgain has the API refuse a status in ways that pass, and in one that does not.
func TestStatusIsWrittenAgain(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	n := testNode(t)
	var mu sync.Mutex
	failures := []error{apierrors.NewConflict(pods, "p", errors.New("it has changed")), apierrors.NewInternalError(errors.New("no leader"))}
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "q", nil)
	n.config.Client.(*fake.Clientset).PrependReactor("update", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		switch object := a.(clienttesting.UpdateAction).GetObject().(*corev1.Pod); {
		case a.GetSubresource() != "status":
		case object.Name == "q":
			return true, nil, invalid
		case len(failures) > 0:
			err := failures[0]
			failures = failures[1:]
			return true, nil, err
		}
		return false, nil, nil
	})
	run(t, n)
	create(t, n, podObject("p", "1"))
	create(t, n, podObject("q", "2"))
	waitFor(t, "the API has the status", func() bool { return statusOf(t, n, "p").Phase == corev1.PodRunning })
	waitFor(t, "the node has the other pod", func() bool { return n.find("n/q") != nil })
	markDeleted(t, n, "q", 0)
	waitFor(t, "the other pod is gone, whatever its status", func() bool { return gone(t, n, "q") })
}

// TestStatusIsWrittenInOrder changes a status often while the watch lags behind.
func TestStatusIsWrittenInOrder(t *testing.T) {
	n := testNode(t)
	run(t, n)
	create(t, n, podObject("p", "u"))
	waitFor(t, "the pod runs", func() bool { return statusOf(t, n, "p").Phase == corev1.PodRunning })
	c := n.find("n/p").containers["c"]
	for i := range 1000 {
		c.set(func() { c.restarts, c.ready = int32(i), i%2 == 0 })
	}
	waitFor(t, "the API has the last status", func() bool { return statusOf(t, n, "p").ContainerStatuses[0].RestartCount == 999 })
	_, statuses := writes(n)
	last := int32(0)
	for _, s := range statuses {
		if got := s.ContainerStatuses[0].RestartCount; got < last {
			t.Fatalf("restart %d was written after restart %d", got, last)
		} else {
			last = got
		}
	}
	settle()
	before, _ := writes(n)
	change(t, n, "p", func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} })
	settle()
	if after, _ := writes(n); len(after) != len(before) {
		t.Errorf("a status that had not changed was written %d times", len(after)-len(before))
	}
}

// TestReadinessGates: a pod is ready while its containers are and all conditions that it waits for are true, which others write.
func TestReadinessGates(t *testing.T) {
	n := testNode(t)
	run(t, n)
	object := podObject("p", "u")
	object.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/in"}, {ConditionType: "example.com/warm"}}
	create(t, n, object)
	ready := func() corev1.PodCondition {
		for _, c := range statusOf(t, n, "p").Conditions {
			if c.Type == corev1.PodReady {
				return c
			}
		}
		return corev1.PodCondition{}
	}
	write := func(kind corev1.PodConditionType, is corev1.ConditionStatus) {
		t.Helper()
		change(t, n, "p", func(p *corev1.Pod) {
			p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: is})
		})
	}
	waitFor(t, "the containers are ready", func() bool { return n.find("n/p") != nil && statusOf(t, n, "p").Phase == corev1.PodRunning })
	n.find("n/p").containers["c"].set(func() { n.find("n/p").containers["c"].ready = true })
	waitFor(t, "a gate is closed", func() bool { return strings.Contains(ready().Message, "example.com/in") })
	since := ready().LastTransitionTime
	write("example.com/in", corev1.ConditionTrue)
	waitFor(t, "the other gate is closed", func() bool { return strings.Contains(ready().Message, "example.com/warm") })
	if now := ready(); now.Status != corev1.ConditionFalse || !now.LastTransitionTime.Equal(&since) {
		t.Errorf("%+v, was held back since %s", now, since)
	}
	write("example.com/warm", corev1.ConditionTrue)
	waitFor(t, "it is ready", func() bool { return ready().Status == corev1.ConditionTrue })
	write("example.com/in", corev1.ConditionFalse)
	waitFor(t, "it is not ready any more", func() bool { return ready().Status == corev1.ConditionFalse })
	for _, c := range statusOf(t, n, "p").Conditions {
		if c.Type == corev1.ContainersReady && c.Status != corev1.ConditionTrue {
			t.Errorf("the containers are %+v", c)
		}
	}
}

// TestPodsDoNotWaitForEachOther has 500 pods that start only when all of them are about to.
func TestPodsDoNotWaitForEachOther(t *testing.T) {
	const many = 150 // more than there are workers
	n := testNode(t)
	attach := n.attach
	var begun sync.WaitGroup
	begun.Add(many)
	n.attach = func(idle bool) (*endpoint, error) {
		begun.Done()
		begun.Wait()
		return attach(idle)
	}
	run(t, n)
	for i := range many {
		create(t, n, podObject(fmt.Sprintf("p%d", i), types.UID(fmt.Sprint(i))))
	}
	for i := range many {
		name := fmt.Sprintf("p%d", i)
		waitFor(t, name+" runs", func() bool { return statusOf(t, n, name).Phase == corev1.PodRunning })
	}
}

func TestMergeStatus(t *testing.T) {
	api := &corev1.PodStatus{
		Phase: corev1.PodPending, QOSClass: corev1.PodQOSBurstable, NominatedNodeName: "other",
		Conditions: []corev1.PodCondition{{Type: "example.com/gate", Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionFalse}},
	}
	own := &corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.244.0.9", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	want := &corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: "10.244.0.9", QOSClass: corev1.PodQOSBurstable, NominatedNodeName: "other",
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: "example.com/gate", Status: corev1.ConditionTrue}},
	}
	for range 2 {
		api = mergeStatus(api, own)
		if diff := cmp.Diff(want, api); diff != "" {
			t.Error(diff)
		}
	}
}

func TestNewer(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{"10", "9", true}, {"9", "10", false}, {"9", "9", false}, {"", "9", false}, {"x", "9", false}} {
		a, b := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: c.a}}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: c.b}}
		if got := newer(a, b); got != c.want {
			t.Errorf("%q is newer than %q: %t", c.a, c.b, got)
		}
	}
}
