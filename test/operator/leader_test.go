//go:build linux

package operator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
	"github.com/olmkit/olmkit/operator/api/v1beta1"
)

// lockName is the name of the lease, and of the ConfigMap that is the lock for life.
const lockName = "memcached-operator.cache.example.com"

// wire is a way to the API server that can fail.
type wire struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	mute  bool
	conns map[net.Conn]bool
}

func newWire(t *testing.T) *wire {
	t.Helper()
	target, err := url.Parse(world.Config().Host)
	must(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	w := &wire{listener: listener, target: target.Host, conns: map[net.Conn]bool{}}
	t.Cleanup(func() {
		listener.Close()
		w.heal()
	})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go w.carry(conn)
		}
	}()
	return w
}

func (w *wire) carry(near net.Conn) {
	far, err := net.Dial("tcp", w.target)
	if err != nil {
		near.Close()
		return
	}
	w.mu.Lock()
	w.conns[near], w.conns[far] = true, true
	w.mu.Unlock()
	defer func() {
		near.Close()
		far.Close()
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.conns, near)
		delete(w.conns, far)
	}()
	go func() {
		_, _ = io.Copy(far, near)
		far.Close()
	}()
	buffer := make([]byte, 32<<10)
	for {
		n, err := far.Read(buffer)
		w.mu.Lock()
		mute := w.mute
		w.mu.Unlock()
		if !mute && n > 0 {
			if _, err := near.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// silence loses the API server's answers, and nothing of what is asked.
func (w *wire) silence() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mute = true
}

// heal ends silence, and connections, on which something is missing now.
func (w *wire) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mute = false
	for conn := range w.conns {
		conn.Close()
	}
}

// member is a pod, on a node that nobody runs, whose manager runs on this machine: the test is its kubelet.
type member struct {
	pod  *corev1.Pod
	wire *wire
	runs int
	*process
}

// user is who the API server takes the manager for that runs now: another after every restart.
func (m *member) user() string { return fmt.Sprintf("%s/%s#%d", m.pod.Namespace, m.pod.Name, m.runs) }

// term is the time for which one process leads.
type term struct {
	after string
	at    time.Time
	user  string
}

// party is managers among whom one leads, in a namespace of their own with a Memcached, one of whose objects is deleted
// again and again: only the leader makes it anew.
type party struct {
	t       *testing.T
	ns      string
	lock    string // the namespace of the lock
	kind    string
	who     func(auditv1.Event) string // "" for who is no manager of the party
	since   time.Time
	nodes   []string // that are well
	members []*member
	terms   []term
	pods    int
}

func newParty(t *testing.T, kind string) *party {
	t.Helper()
	p := &party{t: t, ns: namespace(t), kind: kind, since: time.Now()}
	p.lock = p.ns
	p.who = func(e auditv1.Event) string {
		if e.ImpersonatedUser != nil && strings.HasPrefix(e.ImpersonatedUser.Username, p.ns+"/") {
			return e.ImpersonatedUser.Username
		}
		return ""
	}
	p.stir()
	for i := range 3 {
		node := fmt.Sprintf("%s-%d", p.ns, i)
		p.newNode(node)
		p.nodes = append(p.nodes, node)
		p.members = append(p.members, p.newMember(node))
	}
	return p
}

// stir gives the leader work until the test ends.
func (p *party) stir() {
	p.t.Helper()
	must(p.t, admin.Create(p.t.Context(), &v1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: "cache"}, Spec: v1.MemcachedSpec{Replicas: 1}}))
	ctx, stop := context.WithCancel(context.Background())
	p.t.Cleanup(stop)
	go func() {
		for ctx.Err() == nil {
			_ = admin.Delete(ctx, p.policy())
			time.Sleep(200 * time.Millisecond)
		}
	}()
}

func (p *party) policy() *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: "memcached-cache"}}
}

// newNode makes a node that is ready until stopped is called.
func (p *party) newNode(name string) (stopped func()) {
	p.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Unschedulable: true}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}
	must(p.t, admin.Create(p.t.Context(), node))
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: ptr.To[int32](40), RenewTime: ptr.To(metav1.NowMicro())},
	}
	must(p.t, admin.Create(p.t.Context(), lease))
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		for ctx.Err() == nil {
			renewed := lease.DeepCopy()
			renewed.Spec.RenewTime = ptr.To(metav1.NowMicro())
			_ = admin.Patch(ctx, renewed, client.MergeFrom(lease))
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Second):
			}
		}
	}()
	p.t.Cleanup(func() {
		stop()
		for _, object := range []client.Object{node, lease} {
			if err := admin.Delete(context.Background(), object); client.IgnoreNotFound(err) != nil {
				p.t.Error(err)
			}
		}
	})
	return stop
}

// newMember makes a pod on the node and runs its manager.
func (p *party) newMember(node string) *member {
	p.t.Helper()
	p.pods++
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: fmt.Sprintf("manager-%d", p.pods)},
		Spec: corev1.PodSpec{
			NodeName: node, AutomountServiceAccountToken: ptr.To(false),
			Containers: []corev1.Container{{Name: "manager", Image: image}},
		},
	}
	eventually(p.t, "make a pod", func() error { return admin.Create(p.t.Context(), pod) })
	p.phase(pod, corev1.PodRunning, "")
	p.t.Cleanup(func() {
		if err := admin.Delete(context.Background(), pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			p.t.Error(err)
		}
	})
	m := &member{pod: pod, wire: newWire(p.t)}
	p.run(m)
	return m
}

func (p *party) phase(pod *corev1.Pod, phase corev1.PodPhase, reason string) {
	p.t.Helper()
	status := fmt.Sprintf(`{"status":{"phase":%q,"reason":%q}}`, phase, reason)
	must(p.t, admin.Status().Patch(p.t.Context(), pod.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(status))))
}

// run starts the manager in the member's pod, again if it ran before.
func (p *party) run(m *member) {
	p.t.Helper()
	m.runs++
	access, err := clientcmd.LoadFromFile(world.Kubeconfig())
	must(p.t, err)
	for _, cluster := range access.Clusters {
		cluster.Server = "https://" + m.wire.listener.Addr().String()
	}
	for _, user := range access.AuthInfos {
		user.Impersonate, user.ImpersonateGroups = m.user(), []string{"system:masters"}
	}
	path := filepath.Join(p.t.TempDir(), "kubeconfig")
	must(p.t, clientcmd.WriteToFile(*access, path))
	m.process = start(p.t, []string{"--leader-elect", "--leader-election-kind=" + p.kind}, "KUBECONFIG="+path, "WATCH_NAMESPACE="+p.ns,
		"POD_NAMESPACE="+p.ns, "POD_NAME="+m.pod.Name, "POD_UID="+string(m.pod.UID))
}

// replace ends what is left of a member, as a kubelet does at last, and puts another in its place, as a ReplicaSet does.
func (p *party) replace(m *member) {
	p.t.Helper()
	m.kill()
	if err := admin.Delete(p.t.Context(), m.pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
		p.t.Fatal(err)
	}
	p.members[slices.Index(p.members, m)] = p.newMember(p.nodes[p.pods%len(p.nodes)])
}

func running(p *process) bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// working is the members whose managers have started to work, and not ended.
func (p *party) working() []*member {
	var out []*member
	for _, m := range p.members {
		if running(m.process) && strings.Contains(m.log(), `"Starting workers"`) {
			out = append(out, m)
		}
	}
	return out
}

// hand does something, at says when, and waits for a leader that did not lead before.
func (p *party) hand(after string, do func()) *member {
	p.t.Helper()
	begun := term{after: after, at: time.Now()}
	processes := map[*process]bool{}
	if len(p.terms) > 0 { // who is there at the first start leads by it, even if the others are not up yet
		for _, m := range p.working() {
			processes[m.process] = true
		}
	}
	do()
	var leader *member
	eventually(p.t, "a leader after "+after, func() error {
		for _, m := range p.working() {
			if !processes[m.process] {
				leader = m
				return nil
			}
		}
		return errors.New("there is none")
	})
	begun.user = leader.user()
	p.terms = append(p.terms, begun)
	p.repaired()
	return leader
}

// repaired waits until the leader has made the object that is deleted again and again, and restarts the managers that end
// meanwhile if it is asked to.
func (p *party) repaired(restart ...*member) {
	p.t.Helper()
	since := time.Now()
	eventually(p.t, "the leader works", func() error {
		for _, m := range restart {
			if !running(m.process) {
				p.run(m)
			}
		}
		policy := p.policy()
		if err := admin.Get(p.t.Context(), client.ObjectKeyFromObject(policy), policy); err != nil {
			return err
		}
		if !policy.CreationTimestamp.After(since) { // it is in whole seconds
			return errors.New("the network policy is an old one")
		}
		return nil
	})
}

// span is from the first to the last of a process's writes, as the API server tells.
type span struct {
	user        string
	first, last time.Time
	writes      int
}

// judge looks at who wrote in the namespace: each process for a time, and never two at a time.
func (p *party) judge() {
	p.t.Helper()
	spans := p.spans()
	var latest span
	for _, s := range spans {
		if latest.last.After(s.first) {
			p.t.Errorf("%s wrote until %s, and %s since %s", latest.user, latest.last.Format(time.StampMicro), s.user, s.first.Format(time.StampMicro))
		}
		if s.last.After(latest.last) {
			latest = s
		}
	}
	for _, term := range p.terms {
		i := slices.IndexFunc(spans, func(s span) bool { return s.user == term.user })
		if i < 0 {
			p.t.Errorf("%s led after %s and wrote nothing", term.user, term.after)
			continue
		}
		p.t.Logf("%s: after %s, %.1f s until the next leader's first write (%d writes)", p.kind, term.after, spans[i].first.Sub(term.at).Seconds(), spans[i].writes)
	}
}

func (p *party) spans() []span {
	p.t.Helper()
	events, err := world.Audit(p.t.Context(), p.since)
	must(p.t, err)
	byUser := map[string]*span{}
	for _, e := range events {
		user := p.who(e)
		if user == "" || e.ObjectRef == nil || e.ObjectRef.Namespace != p.ns ||
			slices.Contains([]string{"get", "list", "watch"}, e.Verb) || slices.Contains([]string{"leases", "configmaps", "events"}, e.ObjectRef.Resource) {
			continue
		}
		s := byUser[user]
		if s == nil {
			s = &span{user: user, first: e.RequestReceivedTimestamp.Time}
			byUser[user] = s
		}
		s.writes++
		if e.StageTimestamp.After(s.last) {
			s.last = e.StageTimestamp.Time
		}
	}
	var spans []span
	for _, s := range byUser {
		spans = append(spans, *s)
	}
	slices.SortFunc(spans, func(a, b span) int { return a.first.Compare(b.first) })
	return spans
}

// same fails the test unless the leader's pod is the one that led before.
func (p *party) same(leader, before *member) {
	p.t.Helper()
	if leader != before {
		p.t.Errorf("%s leads instead of %s", leader.pod.Name, before.pod.Name)
	}
}

// evict asks the API server to evict the member's pod, and ends its manager as a kubelet does then.
func (p *party) evict(m *member) {
	p.t.Helper()
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: m.pod.Name}}
	must(p.t, admin.SubResource("eviction").Create(p.t.Context(), m.pod.DeepCopy(), eviction))
	var pod corev1.Pod
	must(p.t, admin.Get(p.t.Context(), client.ObjectKeyFromObject(m.pod), &pod))
	if pod.DeletionTimestamp == nil {
		p.t.Fatal("the pod is not evicted")
	}
	m.stop(p.t)
}

// TestLeaderElection runs three managers at a time and ends, one after the other, those that lead, in every way that
// there is. Who wrote when is taken from the API server's audit log.
func TestLeaderElection(t *testing.T) {
	share(t)
	t.Run("lease", func(t *testing.T) {
		t.Parallel()
		first := time.Now()
		p := newParty(t, "lease")
		leader := p.hand("the first start", func() {})
		p.terms[0].at = first
		former := leader
		leader = p.hand("the pod's eviction", func() { p.evict(former) })
		p.replace(former)
		former = leader
		leader = p.hand("a crash", func() { former.kill() })
		p.run(former)
		former = leader
		p.hand("a time without answers", func() { former.wire.silence() })
		p.gone(former)
		former.wire.heal()
		p.run(former)
		p.judge()
	})
	t.Run("life", func(t *testing.T) {
		t.Parallel()
		first := time.Now()
		p := newParty(t, "life")
		leader := p.hand("the first start", func() {})
		p.terms[0].at = first

		p.same(p.hand("a crash, and a restart in the same pod", func() {
			leader.kill()
			p.run(leader)
		}), leader)

		former := leader
		leader = p.hand("the pod's eviction", func() { p.evict(former) })
		p.replace(former)

		former = leader
		leader = p.hand("the pod's deletion by force", func() {
			must(t, admin.Delete(t.Context(), former.pod, client.GracePeriodSeconds(0)))
		})
		p.gone(former)
		p.replace(former)

		former = leader
		leader = p.hand("the pod's failure", func() { p.phase(former.pod, corev1.PodFailed, "Evicted") })
		p.gone(former)
		p.replace(former)

		must(t, admin.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: lockName}}))
		// The leader makes it again, or stops before another, which was quicker, leads.
		former = leader
		leader = p.settled("the lock's deletion")
		if !running(former.process) {
			p.run(former)
		}

		p.same(p.hand("a time without answers", func() {
			leader.wire.silence()
			p.gone(leader)
			leader.wire.heal()
			p.run(leader)
		}), leader)

		// For longer than any lease, and than a claim would take.
		must(t, leader.cmd.Process.Signal(syscall.SIGSTOP))
		for until := time.Now().Add(25 * time.Second); time.Now().Before(until); time.Sleep(time.Second) {
			if owner := p.owner(); owner != leader.pod.UID {
				t.Fatalf("while the leader is halted, %s takes its lock", owner)
			}
		}
		must(t, leader.cmd.Process.Signal(syscall.SIGCONT))
		p.repaired(leader) // it goes on, or ends and is started again
		p.same(p.settled("a halt"), leader)
		p.judge()
	})
	t.Run("life on lost nodes", func(t *testing.T) {
		t.Parallel()
		p := newParty(t, "life")
		leader := p.hand("the first start", func() {})
		// A pod is to lead whose node will be lost, while its manager can reach the API server all the time.
		lost := p.ns + "-lost"
		silence := p.newNode(lost)
		former := leader
		for i, m := range p.members {
			if m != former {
				m.kill()
				must(t, admin.Delete(t.Context(), m.pod, client.GracePeriodSeconds(0)))
				p.members[i] = p.newMember(lost)
			}
		}
		leader = p.hand("the pod's eviction", func() { p.evict(former) })
		p.replace(former)
		for _, m := range slices.Clone(p.members) {
			if m != leader && m.pod.Spec.NodeName == lost {
				p.replace(m)
			}
		}
		former = leader
		leader = p.hand("a node went silent", silence)
		p.gone(former)
		p.replace(former)
		former = leader
		leader = p.hand("a node was deleted", func() {
			must(t, admin.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: former.pod.Spec.NodeName}}))
		})
		p.gone(former)
		p.same(p.settled("a node's deletion"), leader)
		p.judge()
	})
	t.Run("life outside of a pod", func(t *testing.T) {
		t.Parallel()
		m := start(t, []string{"--leader-elect", "--leader-election-kind=life"}, "POD_NAMESPACE=default")
		eventually(t, "the manager ends", func() error {
			if running(m) {
				return errors.New("it runs")
			}
			return nil
		})
		if want := "--leader-election-kind life: which pod this is, is not known: open"; !strings.Contains(m.log(), want) || m.cmd.ProcessState.ExitCode() != 1 {
			t.Errorf("exit code %d, said\n%s", m.cmd.ProcessState.ExitCode(), m.log())
		}
	})
}

// The API server is everybody's, so this is by itself.
func TestLeaderElectionWithoutTheAPIServer(t *testing.T) {
	install(t)
	var parties []*party
	for _, kind := range []string{"lease", "life"} {
		p := newParty(t, kind)
		p.hand("the first start", func() {})
		parties = append(parties, p)
	}
	must(t, world.Kill(t.Context(), "kube-apiserver"))
	for _, p := range parties {
		// Leaders may go on or end, but there is one again.
		p.repaired(p.members...)
		p.judge()
	}
}

// gone waits until the member's manager has ended by itself.
func (p *party) gone(m *member) {
	p.t.Helper()
	eventually(p.t, m.pod.Name+" stops leading", func() error {
		if running(m.process) {
			return errors.New("its manager runs")
		}
		return nil
	})
}

// owner is the UID of the pod that leads by the lock, or something that says why there is none.
func (p *party) owner() any {
	if p.kind == "lease" {
		var lease coordinationv1.Lease
		if err := admin.Get(p.t.Context(), client.ObjectKey{Namespace: p.lock, Name: lockName}, &lease); err != nil {
			return err
		}
		name, _, _ := strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
		var pod corev1.Pod
		if err := admin.Get(p.t.Context(), client.ObjectKey{Namespace: p.lock, Name: name}, &pod); err != nil {
			return err
		}
		return pod.UID
	}
	var lock corev1.ConfigMap
	if err := admin.Get(p.t.Context(), client.ObjectKey{Namespace: p.lock, Name: lockName}, &lock); err != nil {
		return err
	}
	if len(lock.OwnerReferences) != 1 || lock.Data["state"] != "held" {
		return fmt.Sprintf("%v, %v", lock.OwnerReferences, lock.Data)
	}
	return lock.OwnerReferences[0].UID
}

// settled waits until one member has the lock and works, and nobody else does.
func (p *party) settled(after string) *member {
	p.t.Helper()
	var leader *member
	eventually(p.t, "one leads after "+after, func() error {
		owner, working := p.owner(), p.working()
		if len(working) != 1 || owner != working[0].pod.UID {
			return fmt.Errorf("the lock is of %v, and %d members work", owner, len(working))
		}
		leader = working[0]
		return nil
	})
	p.repaired()
	return leader
}

// TestLeaderInPods deploys three managers, with the rights of their account alone, and asks their webhooks all the time.
func TestLeaderInPods(t *testing.T) {
	three := func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](3) }
	t.Run("lease", func(t *testing.T) {
		p := deployed(t, "lease")
		deploy(t, three)
		p.stir()
		leader := p.next("the first start", "", func() {})
		p.evictedAndRolledOut(leader)
		p.judge()
	})
	t.Run("life", func(t *testing.T) {
		folder, err := filepath.Abs(config(""))
		must(t, err)
		overlay := t.TempDir()
		up, err := filepath.Rel(overlay, folder)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), fmt.Appendf(nil, `resources: [%s/default]
components: [%s/leader-for-life]
`, up, up), 0o600))
		p := deployed(t, "life")
		deployFrom(t, overlay, three)
		p.stir()
		leader := p.next("the first start", "", func() {})
		pod := p.podOf(leader)
		must(t, syscall.Kill(processOf(t, leader), syscall.SIGKILL))
		eventually(t, "the container is started again", func() error {
			if err := admin.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
				return err
			}
			if s := pod.Status.ContainerStatuses; len(s) != 1 || s[0].RestartCount != 1 || !s[0].Ready {
				return fmt.Errorf("its containers are %+v", s)
			}
			return nil
		})
		p.repaired()
		if owner := p.owner(); owner != leader {
			t.Errorf("after a crash the lock is of %v instead of %s", owner, leader)
		}
		p.evictedAndRolledOut(leader)
		p.judge()
	})
}

// deployed is a party of deployed managers.
func deployed(t *testing.T, kind string) *party {
	t.Helper()
	p := &party{t: t, ns: namespace(t), lock: system, kind: kind, since: time.Now()}
	p.who = func(e auditv1.Event) string {
		if e.User.Username != account {
			return ""
		}
		return strings.Join(e.User.Extra["authentication.kubernetes.io/pod-uid"], "")
	}
	return p
}

// next does something, and waits for another pod that leads and works. In a rollout one that is about to end may lead for
// a moment, and do no work.
func (p *party) next(after string, former types.UID, do func()) types.UID {
	p.t.Helper()
	begun := term{after: after, at: time.Now()}
	do()
	leader := p.otherThan(former, after)
	for p.repaired(); p.owner() != leader; p.repaired() {
		leader = p.otherThan(former, after)
	}
	begun.user = string(leader)
	p.terms = append(p.terms, begun)
	return leader
}

// otherThan waits until a pod leads that is not the former.
func (p *party) otherThan(former types.UID, after string) types.UID {
	p.t.Helper()
	var leader types.UID
	eventually(p.t, "a leader after "+after, func() error {
		owner, ok := p.owner().(types.UID)
		if !ok || owner == former {
			return fmt.Errorf("the lock is of %v, formerly of %s", p.owner(), former)
		}
		leader = owner
		return nil
	})
	return leader
}

// evictedAndRolledOut has the leader evicted, and then all managers replaced. Nothing that asks a webhook may fail.
func (p *party) evictedAndRolledOut(leader types.UID) {
	p.t.Helper()
	asked := p.ask()
	leader = p.next("the pod's eviction", leader, func() {
		pod := p.podOf(leader)
		must(p.t, admin.SubResource("eviction").Create(p.t.Context(), pod, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: pod.Name}}))
	})
	served(p.t)
	p.next("a rollout", leader, func() {
		patch := []byte(`{"spec":{"template":{"metadata":{"annotations":{"cache.example.com/restarted":"once"}}}}}`)
		must(p.t, admin.Patch(p.t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: manager}}, client.RawPatch(types.MergePatchType, patch)))
		served(p.t)
	})
	if failures := asked(); len(failures) > 0 {
		p.t.Errorf("%d requests to webhooks failed while managers were evicted and rolled out, the first: %v", len(failures), failures[0])
	}
	for _, e := range audited(p.t, account, p.since) {
		if e.ResponseStatus != nil && e.ResponseStatus.Code == 403 {
			p.t.Errorf("forbidden: %s %s", e.Verb, e.RequestURI)
		}
	}
}

// podOf is the deployed manager's pod with this UID.
func (p *party) podOf(uid types.UID) *corev1.Pod {
	p.t.Helper()
	for _, pod := range operatorPods(p.t) {
		if pod.UID == uid {
			return &pod
		}
	}
	p.t.Fatalf("no pod has the UID %s", uid)
	return nil
}

// ask asks the webhooks all the time, until the function that it returns is called for what failed.
func (p *party) ask() (stop func() []error) {
	ctx, cancel := context.WithCancel(context.Background())
	p.t.Cleanup(cancel)
	failed := make(chan []error, 1)
	go func() {
		var failures []error
		for i := 0; ctx.Err() == nil; i++ {
			probe := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: "probe-" + strconv.Itoa(i)}}
			if err := admin.Create(ctx, probe, client.DryRunAll); err != nil && ctx.Err() == nil {
				failures = append(failures, fmt.Errorf("%s: %w", time.Now().Format(time.StampMilli), err))
			}
			time.Sleep(50 * time.Millisecond)
		}
		failed <- failures
	}()
	return func() []error {
		cancel()
		return <-failed
	}
}

// processOf is the process of the manager in a pod, as this machine knows it.
func processOf(t *testing.T, pod types.UID) int {
	t.Helper()
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	must(t, err)
	for _, path := range environments {
		// What has ended meanwhile, or is another user's, is none.
		data, _ := os.ReadFile(path)
		if slices.Contains(strings.Split(string(data), "\x00"), "POD_UID="+string(pod)) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			must(t, err)
			return pid
		}
	}
	t.Fatalf("no process runs in the pod %s", pod)
	return 0
}
