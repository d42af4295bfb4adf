package leader

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// TestKills kills a process or a pod a thousand times for each kind of election, at random moments of virtual time: there are never
// two leaders, and there is one again in time. OLMKIT_LEADER_KILLS is how many times.
func TestKills(t *testing.T) {
	t.Parallel()
	kills, err := strconv.Atoi(cmp.Or(os.Getenv("OLMKIT_LEADER_KILLS"), "1000"))
	if err != nil {
		t.Fatalf("OLMKIT_LEADER_KILLS: %v", err)
	}
	for _, kind := range []string{electsByLease, electsForLife, callsBecome} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { kill(t, kind, kills, rand.New(rand.NewPCG(1, 2))) })
		})
	}
}

// kill kills the process or the pod of one of three candidates, mostly of the leader.
func kill(t *testing.T, kind string, kills int, random *rand.Rand) {
	w := &world{t: t, server: newServer(), leaders: map[string]bool{}, kind: kind}
	pods := make([]*candidate, 3)
	for i := range pods {
		node := "node" + strconv.Itoa(i)
		w.node(node, corev1.ConditionTrue)
		pods[i] = w.newPod(node)
	}
	for range kills {
		time.Sleep(time.Duration(random.Int64N(int64(40 * time.Second))))
		i := random.IntN(len(pods))
		for j, c := range pods {
			if w.leads(c.pod) && random.IntN(8) > 0 {
				i = j
			}
		}
		c := pods[i]
		w.note("kill %s", c.pod.Name)
		c.killed()
		<-c.ended
		if random.IntN(2) == 0 {
			w.start(c) // the kubelet restarts the container
			continue
		}
		w.remove("pods", c.pod.Name) // the node is gone with it, and a ReplicaSet makes another pod
		w.collectGarbage()
		pods[i] = w.newPod(c.node)
	}
	// Candidates that wait call again after 16 s at most, and a claim ripens for 18 s.
	time.Sleep(time.Minute)
	w.mu.Lock()
	if len(w.leaders) != 1 || w.terms < kills/4 {
		t.Errorf("leaders after %d kills: %v; terms: %d", kills, w.leaders, w.terms)
	}
	t.Logf("%d kills, %d terms", kills, w.terms)
	w.mu.Unlock()
	for _, c := range pods {
		c.killed()
		<-c.ended
	}
}

// startLeaseElector starts a process with client-go's elector and a Lease, with a manager's settings. A killed process writes nothing.
func (w *world) startLeaseElector(c *candidate) {
	life, killed := context.WithCancel(w.t.Context())
	c.killed, c.asked, c.ended = killed, killed, make(chan struct{})
	c.runs++
	client, err := coordinationv1client.NewForConfig(&rest.Config{
		Host: "http://server", Transport: c.link, Timeout: request, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: c.pod.Namespace, Name: "lock"}, Client: client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: fmt.Sprintf("%s_%d", c.pod.Name, c.runs)},
		},
		LeaseDuration: Duration, RenewDeadline: Deadline, RetryPeriod: Period, Name: "lock",
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { w.leading(c.pod, true) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	go func() {
		defer close(c.ended)
		elector.Run(life)
		w.leading(c.pod, false)
		killed()
	}()
}

// A pod takes over in bounded time, whatever ended the leader's.
func TestTakeover(t *testing.T) {
	for name, end := range map[string]func(s *server, leader Pod){
		"the pod is deleted": func(s *server, leader Pod) { s.remove("pods", leader.Name) },
		"the pod is evicted": func(s *server, leader Pod) { s.pod(leader, "one", corev1.PodFailed) },
		"the node is lost":   func(s *server, _ Pod) { s.node("one", corev1.ConditionUnknown) },
		"the node is gone":   func(s *server, _ Pod) { s.remove("nodes", "one") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				s.node("one", corev1.ConditionTrue)
				s.node("two", corev1.ConditionTrue)
				first, second := podNamed("first"), podNamed("second")
				s.pod(first, "one", corev1.PodRunning)
				s.pod(second, "two", corev1.PodRunning)
				life, kill := context.WithCancel(t.Context())
				if err := discard(func(error) {}).become(life, life, view(t, &link{server: s}, first)); err != nil {
					t.Fatal(err)
				}
				became := make(chan error, 1)
				go func() {
					became <- (&settings{longest: 4 * time.Second, log: logr.Discard()}).become(t.Context(), t.Context(), view(t, &link{server: s}, second))
				}()
				time.Sleep(time.Minute)
				kill()
				ended := time.Now()
				end(s, first)
				if err := <-became; err != nil {
					t.Fatal(err)
				}
				if took := time.Since(ended); took < Wait || took > Wait+4*time.Second+2*time.Second {
					t.Errorf("a takeover lasts %s with looks 4 s apart", took)
				}
			})
		})
	}
}
