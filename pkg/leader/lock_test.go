package leader

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	gocmp "github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	m.Run()
}

// server is as much of an API server as a lock needs.
type server struct {
	mu      sync.Mutex
	version int
	objects map[string]runtime.Object // by path
}

func newServer() *server { return &server{objects: map[string]runtime.Object{}} }

func pathOf(kind, name string) string {
	switch kind {
	case "nodes":
		return "/api/v1/nodes/" + name
	case "leases":
		return "/apis/coordination.k8s.io/v1/namespaces/system/leases/" + name
	}
	return "/api/v1/namespaces/system/" + kind + "/" + name
}

func (s *server) put(kind, name string, object runtime.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[pathOf(kind, name)] = object
}

func (s *server) remove(kind, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, pathOf(kind, name))
}

func (s *server) lock() *corev1.ConfigMap {
	s.mu.Lock()
	defer s.mu.Unlock()
	lock, ok := s.objects[pathOf("configmaps", "lock")].(*corev1.ConfigMap)
	if !ok {
		return &corev1.ConfigMap{}
	}
	return lock.DeepCopy()
}

func (s *server) pod(pod Pod, node string, phase corev1.PodPhase) {
	s.put("pods", pod.Name, &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase},
	})
}

func (s *server) node(name string, ready corev1.ConditionStatus) {
	node := &corev1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
	}
	if ready == corev1.ConditionUnknown {
		node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}}
	}
	s.put("nodes", name, node)
}

// serve answers a request at once.
func (s *server) serve(method, path string, body []byte) (int, any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fail := func(err *apierrors.StatusError) (int, any) { return int(err.ErrStatus.Code), err.ErrStatus }
	_, rest, _ := strings.Cut(path, "/namespaces/system/")
	resource := schema.GroupResource{Resource: strings.Split(rest, "/")[0]}
	if method == http.MethodGet {
		object, ok := s.objects[path]
		if !ok {
			return fail(apierrors.NewNotFound(resource, path))
		}
		return http.StatusOK, object
	}
	var lock interface {
		runtime.Object
		metav1.Object
	} = &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
	if resource.Resource == "leases" {
		lock = &coordinationv1.Lease{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}}
	}
	if err := json.Unmarshal(body, lock); err != nil {
		return fail(apierrors.NewBadRequest(err.Error()))
	}
	path = pathOf(resource.Resource, lock.GetName())
	old, ok := s.objects[path].(metav1.Object)
	switch {
	case method == http.MethodPost && ok:
		return fail(apierrors.NewAlreadyExists(resource, path))
	case method == http.MethodPut && !ok:
		return fail(apierrors.NewNotFound(resource, path))
	case method == http.MethodPut && lock.GetResourceVersion() != old.GetResourceVersion():
		return fail(apierrors.NewConflict(resource, path, fmt.Errorf("it has changed")))
	}
	s.version++
	lock.SetResourceVersion(strconv.Itoa(s.version))
	s.objects[path] = lock
	return http.StatusOK, lock
}

// link is one machine's way to the server.
type link struct {
	server *server

	mu   sync.Mutex
	slow time.Duration // the longest that a request or an answer is on its way
	cut  bool
}

func (l *link) set(slow time.Duration, cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slow, l.cut = slow, cut
}

// travel takes as long as the link needs, or for ever if it is cut.
func (l *link) travel(ctx context.Context) error {
	l.mu.Lock()
	took := time.NewTimer(rand.N(l.slow + 1))
	if l.cut {
		took.Stop()
	}
	l.mu.Unlock()
	select {
	case <-took.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// RoundTrip brings a request to the server and the answer back.
func (l *link) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		r.Body.Close()
	}
	if err := l.travel(r.Context()); err != nil {
		return nil, err
	}
	code, answer := l.server.serve(r.Method, r.URL.Path, body)
	data, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	if err := l.travel(r.Context()); err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(data))), Request: r,
	}, nil
}

// view is a pod's view of the lock.
func view(t *testing.T, l *link, pod Pod) *Lock {
	t.Helper()
	client, err := corev1client.NewForConfig(&rest.Config{
		Host: "http://server", Transport: l, Timeout: request, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON},
	})
	if err != nil {
		t.Fatal(err)
	}
	return newLock(client, pod, "lock", logr.Discard(), time.Now)
}

func podNamed(name string) Pod {
	return Pod{Namespace: "system", Name: name, UID: types.UID(name + "-uid")}
}

func ownedBy(owners ...Pod) *corev1.ConfigMap {
	lock := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "lock", ResourceVersion: "0"},
	}
	for _, pod := range owners {
		lock.OwnerReferences = append(lock.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID})
	}
	return lock
}

// What a candidate makes of the lock that it finds.
func TestFound(t *testing.T) {
	t.Parallel()
	me, other := podNamed("me"), podNamed("other")
	state := func(lock *corev1.ConfigMap, state string) *corev1.ConfigMap {
		lock.Data = map[string]string{stateKey: state}
		return lock
	}
	const waits = "claimed by me-uid"
	for name, test := range map[string]struct {
		lock   *corev1.ConfigMap
		phase  corev1.PodPhase // of the other's pod; none if it is gone
		node   corev1.ConditionStatus
		mine   corev1.ConditionStatus // of the candidate's own node, if it is not ready
		holder string
		fails  string
	}{
		"nothing":                             {holder: waits},
		"free":                                {lock: state(ownedBy(), free)},
		"of nobody":                           {lock: ownedBy(), holder: waits},
		"its own, from before a restart":      {lock: state(ownedBy(me), held), holder: "me-uid"},
		"its own, of operator-lib":            {lock: ownedBy(me), holder: "me-uid"},
		"its own claim of before a restart":   {lock: state(ownedBy(me), claimed), holder: waits},
		"another's":                           {lock: state(ownedBy(other), held), phase: corev1.PodRunning, node: corev1.ConditionTrue, holder: "other-uid"},
		"another's, of operator-lib":          {lock: ownedBy(other), phase: corev1.PodRunning, node: corev1.ConditionTrue, holder: "other-uid"},
		"another's claim":                     {lock: state(ownedBy(other), claimed), phase: corev1.PodRunning, node: corev1.ConditionTrue, holder: "other-uid"},
		"of a pod that starts":                {lock: ownedBy(other), phase: corev1.PodPending, node: corev1.ConditionTrue, holder: "other-uid"},
		"of a pod that is gone":               {lock: ownedBy(other), holder: waits},
		"of a pod whose name another has":     {lock: ownedBy(Pod{"system", "other", "former-uid"}), phase: corev1.PodRunning, node: corev1.ConditionTrue, holder: waits},
		"of an evicted pod":                   {lock: ownedBy(other), phase: corev1.PodFailed, node: corev1.ConditionTrue, holder: waits},
		"of a finished pod":                   {lock: ownedBy(other), phase: corev1.PodSucceeded, node: corev1.ConditionTrue, holder: waits},
		"on a node that is not ready":         {lock: ownedBy(other), phase: corev1.PodRunning, node: corev1.ConditionFalse, holder: "other-uid"},
		"on an unreachable node":              {lock: ownedBy(other), phase: corev1.PodRunning, node: corev1.ConditionUnknown, holder: waits},
		"on a node that is gone":              {lock: ownedBy(other), phase: corev1.PodRunning, holder: waits},
		"of a dead pod, found on a lost node": {lock: ownedBy(other), mine: corev1.ConditionUnknown, holder: "another candidate"},
		"nothing, found on a lost node":       {mine: corev1.ConditionUnknown, holder: "another candidate"},
		"of two pods":                         {lock: ownedBy(me, other), fails: "configmap system/lock is no leader's lock: it has other owners than one pod; use another name for the lock"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer()
			if test.lock != nil {
				s.put("configmaps", "lock", test.lock)
			}
			s.pod(me, "mine", corev1.PodRunning)
			s.node("mine", cmp.Or(test.mine, corev1.ConditionTrue))
			if test.phase != "" {
				s.pod(other, "node", test.phase)
			}
			if test.node != "" {
				s.node("node", test.node)
			}
			record, _, err := view(t, &link{server: s}, me).Get(t.Context())
			if err != nil || test.fails != "" {
				if fmt.Sprint(err) != test.fails {
					t.Error(err)
				}
				return
			}
			if record.HolderIdentity != test.holder {
				t.Errorf("holder %q, want %q", record.HolderIdentity, test.holder)
			}
			want := test.lock
			if test.holder == waits {
				want = ownedBy(me)
			}
			if want == nil {
				want = &corev1.ConfigMap{}
			}
			if diff := gocmp.Diff(want.OwnerReferences, s.lock().OwnerReferences); diff != "" {
				t.Errorf("the lock's owners: %s", diff)
			}
		})
	}
}

// candidate is a process in a pod.
type candidate struct {
	pod    Pod
	node   string
	link   *link
	killed context.CancelFunc // ends it at once
	asked  context.CancelFunc // asks it to end
	ended  chan struct{}
	runs   int
}

// How candidates elect.
const (
	electsByLease = "lease"
	electsForLife = "life"
	callsBecome   = "become"
)

// world is candidates in virtual time.
type world struct {
	t *testing.T
	*server
	mu      sync.Mutex
	leaders map[string]bool // pods by UID
	terms   int
	history []string
	next    int
	kind    string
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history = append(w.history, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

func (w *world) leading(pod Pod, leads bool) {
	w.note("%s leads: %t", pod.Name, leads)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !leads {
		delete(w.leaders, string(pod.UID))
		return
	}
	w.terms++
	w.leaders[string(pod.UID)] = true
	if len(w.leaders) > 1 {
		w.t.Errorf("leaders: %v\n%s", slices.Sorted(maps.Keys(w.leaders)), strings.Join(w.history[max(0, len(w.history)-30):], "\n"))
	}
}

func (w *world) leads(pod Pod) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.leaders[string(pod.UID)]
}

// collectGarbage removes the lock if its owner is gone.
func (w *world) collectGarbage() {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	lock, ok := w.objects[pathOf("configmaps", "lock")].(*corev1.ConfigMap)
	if !ok || len(lock.OwnerReferences) == 0 {
		return
	}
	if pod, ok := w.objects[pathOf("pods", lock.OwnerReferences[0].Name)].(*corev1.Pod); !ok || pod.UID != lock.OwnerReferences[0].UID {
		delete(w.objects, pathOf("configmaps", "lock"))
	}
}

// swift is how long a request or an answer takes when nothing is wrong.
const swift = 50 * time.Millisecond

// newPod is a pod that was just started on the node.
func (w *world) newPod(node string) *candidate {
	w.next++
	c := &candidate{pod: podNamed("pod" + strconv.Itoa(w.next)), node: node, link: &link{server: w.server, slow: swift}}
	w.pod(c.pod, node, corev1.PodRunning)
	w.start(c)
	return c
}

// start starts the pod's process: after it was told to stop, or has lost the lock, it takes up to a second until all that it
// does has ended.
func (w *world) start(c *candidate) {
	switch w.kind {
	case callsBecome:
		w.startBecome(c)
	case electsForLife:
		w.startElector(c)
	case electsByLease:
		w.startLeaseElector(c)
	}
}

// startBecome starts a process that calls Become.
func (w *world) startBecome(c *candidate) {
	life, killed := context.WithCancel(w.t.Context())
	ctx, asked := context.WithCancel(life)
	c.killed, c.asked, c.ended = killed, asked, make(chan struct{})
	ended, lost := c.ended, make(chan struct{})
	s := settings{longest: 16 * time.Second, log: logr.Discard(), lost: func(error) { close(lost) }}
	lock := view(w.t, c.link, c.pod)
	go func() {
		defer close(ended)
		defer killed()
		if err := s.become(ctx, life, lock); err != nil {
			return
		}
		w.leading(c.pod, true)
		select {
		case <-ctx.Done():
		case <-lost:
		}
		select {
		case <-life.Done(): // a killed process does nothing any more
		case <-time.After(rand.N(time.Second)):
		}
		w.leading(c.pod, false)
	}()
}

// startElector starts a process with client-go's elector, as a manager runs it.
func (w *world) startElector(c *candidate) {
	life, killed := context.WithCancel(w.t.Context())
	ctx, asked := context.WithCancel(life)
	c.killed, c.asked, c.ended = killed, asked, make(chan struct{})
	ended := c.ended
	lock := view(w.t, c.link, c.pod)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: Duration, RenewDeadline: Deadline, RetryPeriod: Period, Name: "lock",
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { w.leading(c.pod, true) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	go func() {
		defer close(ended)
		elected, lost := context.WithCancel(ctx)
		stopped := make(chan struct{})
		go func() { elector.Run(elected); close(stopped) }()
		other := make(chan error, 1)
		go func() { other <- lock.Start(elected) }()
		select {
		case <-stopped:
		case <-other:
		}
		select {
		case <-life.Done(): // a killed process does nothing any more
		case <-time.After(rand.N(time.Second)):
		}
		w.leading(c.pod, false)
		clean := ctx.Err() != nil && life.Err() == nil
		lost()
		<-stopped
		if clean {
			_ = lock.Release(life)
		}
		killed()
	}()
}

// TestNeverTwo lets pods, nodes and the network fail in many ways, in virtual time, with client-go's own elector and with
// Become.
func TestNeverTwo(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{electsForLife, callsBecome} {
		for seed := range uint64(8) {
			t.Run(fmt.Sprintf("%d/%s", seed, kind), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { chaos(t, kind, rand.New(rand.NewPCG(seed, 1))) })
			})
		}
	}
}

func chaos(t *testing.T, kind string, random *rand.Rand) {
	w := &world{t: t, server: newServer(), leaders: map[string]bool{}, kind: kind}
	nodes := []string{"node0", "node1", "node2"}
	pods := make([]*candidate, 3)
	for i, node := range nodes {
		w.node(node, corev1.ConditionTrue)
		pods[i] = w.newPod(node)
	}
	var forgotten []*candidate // of which Kubernetes knows nothing any more
	sleep := func(longest time.Duration) { time.Sleep(time.Duration(random.Int64N(int64(longest)))) }
	for range 120 {
		sleep(15 * time.Second)
		// What has ended in a pod is started again.
		for _, c := range pods {
			select {
			case <-c.ended:
				w.start(c)
			default:
			}
		}
		i := random.IntN(len(pods))
		if leader := slices.IndexFunc(pods, func(c *candidate) bool { return w.leads(c.pod) }); leader >= 0 && random.IntN(4) > 0 {
			i = leader
		}
		c := pods[i]
		switch network := random.IntN(6); network {
		case 0, 1: // it is cut off for a while
			w.note("%s is cut off", c.pod.Name)
			c.link.set(0, true)
			sleep(3 * time.Second)
			time.AfterFunc(time.Duration(random.Int64N(int64(40*time.Second))), func() { c.link.set(swift, false) })
		case 2: // the API server is slow
			w.note("the server is slow")
			for _, c := range pods {
				c.link.set(2900*time.Millisecond, false)
				time.AfterFunc(30*time.Second, func() { c.link.set(swift, false) })
			}
			sleep(10 * time.Second)
		}
		fault := random.IntN(9)
		w.note("fault %d at %s", fault, c.pod.Name)
		switch fault {
		case 0: // its process crashes
			c.killed()
			<-c.ended
			w.start(c)
		case 1: // it is deleted
			c.asked()
			<-c.ended
			w.remove("pods", c.pod.Name)
			pods[i] = w.newPod(c.node)
		case 2: // it is deleted by force, and goes on
			w.remove("pods", c.pod.Name)
			forgotten = append(forgotten, c)
			pods[i] = w.newPod(c.node)
		case 3: // it is said to have failed, and goes on
			w.pod(c.pod, c.node, corev1.PodFailed)
			forgotten = append(forgotten, c)
			pods[i] = w.newPod(c.node)
		case 4: // nothing is heard of its node for a while
			w.node(c.node, corev1.ConditionUnknown)
			sleep(40 * time.Second)
			w.node(c.node, corev1.ConditionTrue)
		case 5:
			w.remove("configmaps", "lock")
		case 6: // somebody takes the owner out of the lock
			if lock := w.lock(); lock.Name != "" && lock.Data[stateKey] != free {
				lock.OwnerReferences = nil
				w.serve(http.MethodPut, pathOf("configmaps", "lock"), encode(t, lock))
			}
		case 7:
			w.collectGarbage()
		case 8: // what was forgotten ends at last
			for _, c := range forgotten {
				c.killed()
			}
			forgotten = nil
		}
	}
	for _, c := range forgotten {
		c.killed()
	}
	for range 30 {
		time.Sleep(3 * time.Second)
		for _, c := range pods {
			select {
			case <-c.ended:
				w.start(c)
			default:
			}
		}
	}
	w.mu.Lock()
	if len(w.leaders) != 1 || w.terms < 10 {
		t.Errorf("after all that there is no leader, or there were only %d terms: %v\n%s", w.terms, w.leaders, strings.Join(w.history[max(0, len(w.history)-30):], "\n"))
	}
	t.Logf("%d terms", w.terms)
	w.mu.Unlock()
	for _, c := range pods {
		c.killed()
	}
	for _, c := range pods {
		<-c.ended
	}
}

func encode(t *testing.T, object any) []byte {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A leader's end, and what the next one finds.
func TestRelease(t *testing.T) {
	t.Parallel()
	s := newServer()
	me, next := view(t, &link{server: s}, podNamed("me")), view(t, &link{server: s}, podNamed("next"))
	s.put("configmaps", "lock", func() *corev1.ConfigMap {
		lock := ownedBy()
		lock.Data = map[string]string{stateKey: free, transitionsKey: "6"}
		return lock
	}())
	take := func(l *Lock) error {
		record, _, err := l.Get(t.Context())
		if err != nil || record.HolderIdentity != "" {
			return fmt.Errorf("%v, %w", record, err)
		}
		return l.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: l.Identity(), LeaderTransitions: record.LeaderTransitions + 1})
	}
	if err := next.Release(t.Context()); err != nil {
		t.Errorf("a candidate that never led: %v", err)
	}
	if err := take(me); err != nil {
		t.Fatal(err)
	}
	if err := me.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := take(next); err != nil {
		t.Fatal(err)
	}
	if got := s.lock().Data[transitionsKey]; got != "8" {
		t.Errorf("%s transitions, want 8", got)
	}
	// Of two that found it free, one has it.
	if err := next.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	late := view(t, &link{server: s}, podNamed("late"))
	if _, _, err := late.Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := take(me); err != nil {
		t.Fatal(err)
	}
	if err := late.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: late.Identity()}); !apierrors.IsConflict(err) {
		t.Errorf("the second gets %v", err)
	}
}
