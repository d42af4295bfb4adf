// Package leader is leader election for life: the lock belongs to a pod and stays that pod's until it has ended, whatever
// the API server, the network or the process go through meanwhile. It is a lock for client-go's elector, so the manager
// starts, serves webhooks and is ready before it leads, which operator-lib's leader.Become does not let it (it blocks
// before there is a manager: a rollout with maxUnavailable 0 would wait for ever). The lock is the ConfigMap that
// operator-lib makes: its one owner reference names the pod that leads.
//
// # Why there are never two leaders
//
// Whoever takes the lock writes it under the condition that it is as it was read (resourceVersion), so one of several
// wins. A lock is free only when its holder wrote that into it, after its controllers had stopped (Release). Any other
// lock, because its pod is gone, has failed or is on a lost node, or because somebody deleted it, is first claimed, and
// the claimant leads no sooner than Wait after its claim was written.
//
// A leader writes nothing, but reads the lock again every Period, and stops when it is another's. Such a read is answered
// from etcd's quorum (no resourceVersion is asked for), so one that still shows the lock as the leader's own was made
// before the claim. Say that the claim is written at t. The last such read is answered by t + request, since the client
// waits no longer; the next round begins Period later and is tried for Deadline (client-go v0.36.3,
// tools/leaderelection/leaderelection.go, renew). So by t + request + Period + Deadline, 15 s, the elector has ended
// whether the former leader can reach the API server or not, and the manager returns at once (controller-runtime v0.24.1,
// pkg/manager/internal.go, OnStoppedLeading takes the grace period away) and the process with it. Wait is 3 s more.
//
// Clocks need not agree, only run about equally fast. And the claimant need not be right about the former leader: its pod
// may have been deleted by force, its node's kubelet be dead while the containers run on, its phase be somebody's
// invention. With a lost node there is more time still: Kubernetes calls it unreachable 40 s (50 s since 1.32) after its
// last sign of life (kube-controller-manager's --node-monitor-grace-period), when a leader cut off with it has long
// stopped.
//
// What no lock can do is fence (client-go says so of its own in the package's comment): a process that was halted, with
// its machine, for longer than all that writes what it was about to write when it goes on, up to its next read; and a
// request that is on its way arrives.
//
// # What is different from operator-lib
//
// In operator-lib (leader/leader.go) a leader never looks at the lock again: when it is taken from it, by hand or because
// its node counted as lost for a moment, there are two. It deletes the pods of the dead, which takes the right to delete
// pods; here the lock is rewritten. It never gives the lock up, and the next leader waits for the garbage collector; here
// a leader that ends properly frees it. It knows a pod by its name; here the UID decides.
package leader

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// What the elector must be given, for both kinds of election: client-go's usual values.
const (
	// Duration is how long a lease is another's after it was last renewed. For life it means nothing.
	Duration = 15 * time.Second
	// Deadline is how long a leader tries to renew before it gives up.
	Deadline = 10 * time.Second
	// Period is the time between two renewals, and the least between two looks of a candidate.
	Period = 2 * time.Second
)

const (
	// request bounds every request about the lock.
	request = 3 * time.Second
	// Wait is the time between a claim and its claimant's leadership.
	Wait = Deadline + Period + request + 3*time.Second
)

// Keys of the ConfigMap's data, and the values of the first.
const (
	stateKey       = "state"
	sinceKey       = "since"
	transitionsKey = "transitions"

	claimed = "claimed"
	held    = "held" // so is a lock of operator-lib, which has no data
	free    = "free"
)

// Pod is a pod that may lead.
type Pod struct {
	Namespace, Name string
	UID             types.UID
}

// PodOf is the pod that the process runs in, from the variables POD_NAMESPACE, POD_NAME and POD_UID. The UID is not asked
// of the API server, which may know another pod under the name by now.
func PodOf(getenv func(string) string) (Pod, error) {
	for _, name := range []string{"POD_NAMESPACE", "POD_NAME", "POD_UID"} {
		if getenv(name) == "" {
			return Pod{}, fmt.Errorf("leading for life is for pods: %s is not set, which the downward API sets from metadata; outside of a cluster elect with a lease, or not at all", name)
		}
	}
	return Pod{Namespace: getenv("POD_NAMESPACE"), Name: getenv("POD_NAME"), UID: types.UID(getenv("POD_UID"))}, nil
}

// Lock is a pod's view of the lock. The manager's elector calls it, then Release, one after the other.
type Lock struct {
	// Events takes what happens to the lock, if it is set.
	Events events.EventRecorder

	client corev1client.CoreV1Interface
	pod    Pod
	name   string
	log    logr.Logger
	now    func() time.Time

	leads bool
	seen  *corev1.ConfigMap
	looks int // makes every answer of Get a new one, as a renewal would be
	lost  chan struct{}

	// The pod's own claim: its resourceVersion, and since when it is known to be written.
	claim   string
	claimed time.Time
}

var _ resourcelock.Interface = (*Lock)(nil)

// New is the view that pod has of the lock with this name in its namespace.
func New(config *rest.Config, pod Pod, name string, log logr.Logger) (*Lock, error) {
	config = rest.AddUserAgent(config, "leader-election")
	config.Timeout = request
	client, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the leader's lock: %w", err)
	}
	return newLock(client, pod, name, log, time.Now), nil
}

func newLock(client corev1client.CoreV1Interface, pod Pod, name string, log logr.Logger, now func() time.Time) *Lock {
	return &Lock{client: client, pod: pod, name: name, log: log, now: now, lost: make(chan struct{})}
}

// Identity is the pod's UID: containers that restart in the pod are the same leader.
func (l *Lock) Identity() string { return string(l.pod.UID) }

// Describe names the lock.
func (l *Lock) Describe() string { return "configmap " + l.pod.Namespace + "/" + l.name }

// RecordEvent tells of the pod's leadership. What is told is the event's action, too, or the end of it would be counted as
// its beginning once more.
func (l *Lock) RecordEvent(what string) {
	if l.Events != nil && l.seen != nil {
		subject := l.seen.DeepCopy()
		subject.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		l.Events.Eventf(subject, nil, corev1.EventTypeNormal, "LeaderElection", what, "%s %s", l.pod.Name, what)
	}
}

// Start returns an error as soon as the lock turns out to be another's. The elector knows it then, too, but goes on for
// Deadline.
func (l *Lock) Start(ctx context.Context) error {
	select {
	case <-l.lost:
		return fmt.Errorf("the lock %s is another's", l.Describe())
	case <-ctx.Done():
		return nil
	}
}

// Get answers with a record that was renewed just now as long as the lock is another's or the pod's own claim is too
// young, and with one without a holder when Update may take the lock. It claims the lock of a holder that has ended.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	lock, err := l.client.ConfigMaps(l.pod.Namespace).Get(ctx, l.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && l.leads:
		return nil, nil, err // and the elector makes it again
	case apierrors.IsNotFound(err):
		return l.take(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: l.pod.Namespace, Name: l.name}}, "there was no lock")
	case err != nil:
		return nil, nil, err
	}
	l.seen = lock
	owners := lock.OwnerReferences
	if l.leads && !l.own(lock) {
		l.lose()
	}
	switch {
	case len(owners) == 0 && lock.Data[stateKey] == free:
		return l.answer("")
	case len(owners) == 0:
		return l.take(ctx, lock, "it had no owner")
	case len(owners) > 1 || owners[0].Kind != "Pod" || owners[0].APIVersion != "v1":
		return nil, nil, fmt.Errorf("%s is no leader's lock: it has other owners than one pod", l.Describe())
	case owners[0].UID != l.pod.UID:
		why, err := l.ended(ctx, owners[0])
		if err != nil {
			return nil, nil, err
		}
		if why != "" {
			return l.take(ctx, lock, why)
		}
		return l.answer(string(owners[0].UID))
	case lock.Data[stateKey] != claimed:
		return l.answer(l.Identity())
	}
	if l.claim != lock.ResourceVersion {
		l.claim, l.claimed = lock.ResourceVersion, l.now()
	}
	if l.now().Sub(l.claimed) < Wait {
		return l.answer("claimed by " + l.Identity())
	}
	return l.answer("")
}

// take claims the lock, if it is still as it was seen. A pod that others would take for dead leaves it to them: two such,
// when nothing is heard of any node, would claim it from each other for ever, and the leader could not go on.
func (l *Lock) take(ctx context.Context, lock *corev1.ConfigMap, why string) (*resourcelock.LeaderElectionRecord, []byte, error) {
	doomed, err := l.ended(ctx, l.owner())
	if err != nil {
		return nil, nil, err
	}
	if doomed != "" {
		l.log.Info("not claiming the leader's lock", "lock", l.Describe(), "because", doomed)
		return l.answer("another candidate")
	}
	err = l.write(ctx, lock, claimed, transitions(lock))
	switch {
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err):
		return l.answer("another candidate")
	case err != nil:
		return nil, nil, fmt.Errorf("claiming the lock %s: %w", l.Describe(), err)
	}
	l.claim, l.claimed = l.seen.ResourceVersion, l.now()
	l.log.Info("claimed the leader's lock", "lock", l.Describe(), "because", why, "leading in", Wait.String())
	return l.answer("claimed by " + l.Identity())
}

// answer is a record about the lock that was seen last.
func (l *Lock) answer(holder string) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.looks++
	now := metav1.NewTime(l.now())
	record := &resourcelock.LeaderElectionRecord{HolderIdentity: holder, LeaseDurationSeconds: int(Duration / time.Second), RenewTime: now, AcquireTime: now}
	if l.seen != nil {
		record.LeaderTransitions = transitions(l.seen)
		if since, err := time.Parse(time.RFC3339, l.seen.Data[sinceKey]); err == nil {
			record.AcquireTime = metav1.NewTime(since)
		}
	}
	return record, []byte(strconv.Itoa(l.looks)), nil
}

// Create makes the lock of a leader again that somebody has deleted. Others claim what they do not find, so none leads
// before this leader has noticed.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if !l.leads {
		return fmt.Errorf("making the lock %s: it is claimed first", l.Describe())
	}
	return l.write(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: l.pod.Namespace, Name: l.name}}, held, record.LeaderTransitions)
}

// Update takes the lock that Get found free, claimed or already the pod's own. Of a leader it is the renewal, and reads
// the lock.
func (l *Lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity != l.Identity() || l.seen == nil {
		return fmt.Errorf("taking the lock %s: it is taken for the pod itself after Get, and given up by Release", l.Describe())
	}
	if l.leads {
		return l.renew(ctx)
	}
	if !l.own(l.seen) {
		if err := l.write(ctx, l.seen, held, record.LeaderTransitions); err != nil {
			return err
		}
	}
	l.leads = true
	return nil
}

func (l *Lock) renew(ctx context.Context) error {
	lock, err := l.client.ConfigMaps(l.pod.Namespace).Get(ctx, l.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	l.seen = lock
	if !l.own(lock) {
		l.lose()
		return fmt.Errorf("the lock %s is another's", l.Describe())
	}
	return nil
}

// Release gives the lock up, so that the next leader need not wait. It is called when the elector has ended and so has
// everything that only a leader does; the elector's own release is not used, since it comes before that when the elector
// ends because it could not renew. It takes 3 s at most.
func (l *Lock) Release(ctx context.Context) error {
	if !l.leads {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, request)
	defer cancel()
	if err := l.renew(ctx); err != nil {
		return fmt.Errorf("giving up the lock %s: %w", l.Describe(), err)
	}
	l.leads = false
	if err := l.write(ctx, l.seen, free, transitions(l.seen)); err != nil {
		return fmt.Errorf("giving up the lock %s: %w", l.Describe(), err)
	}
	return nil
}

// owner refers to the pod.
func (l *Lock) owner() metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: l.pod.Name, UID: l.pod.UID}
}

// own says whether the pod leads by this lock.
func (l *Lock) own(lock *corev1.ConfigMap) bool {
	owners := lock.OwnerReferences
	return len(owners) == 1 && owners[0].UID == l.pod.UID && lock.Data[stateKey] != claimed
}

func (l *Lock) lose() {
	select {
	case <-l.lost:
	default:
		close(l.lost)
	}
}

// write makes the lock, or replaces it if it is still the one that was read.
func (l *Lock) write(ctx context.Context, lock *corev1.ConfigMap, state string, transitions int) error {
	lock = lock.DeepCopy()
	lock.OwnerReferences = nil
	if state != free {
		lock.OwnerReferences = []metav1.OwnerReference{l.owner()}
	}
	lock.Data = map[string]string{
		stateKey: state, sinceKey: l.now().UTC().Format(time.RFC3339), transitionsKey: strconv.Itoa(transitions),
	}
	var err error
	if lock.ResourceVersion == "" {
		lock, err = l.client.ConfigMaps(l.pod.Namespace).Create(ctx, lock, metav1.CreateOptions{})
	} else {
		lock, err = l.client.ConfigMaps(l.pod.Namespace).Update(ctx, lock, metav1.UpdateOptions{})
	}
	if err == nil {
		l.seen = lock
	}
	return err
}

func transitions(lock *corev1.ConfigMap) int {
	n, err := strconv.Atoi(lock.Data[transitionsKey])
	if err != nil {
		return 0
	}
	return n
}

// ended says why the pod will not lead any more, and nothing as long as it may. A pod that is being deleted may: it
// runs until it is gone. So may one whose containers crash: they are started again in it.
func (l *Lock) ended(ctx context.Context, holder metav1.OwnerReference) (string, error) {
	pod, err := l.client.Pods(l.pod.Namespace).Get(ctx, holder.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && pod.UID != holder.UID:
		return "pod " + holder.Name + " is gone", nil
	case err != nil:
		return "", fmt.Errorf("reading a leader's pod: %w", err)
	case pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded:
		// Evicted by the kubelet, preempted, or its node shut down: all of them are failures.
		return fmt.Sprintf("pod %s has ended: %s %s", holder.Name, pod.Status.Phase, pod.Status.Reason), nil
	case pod.Spec.NodeName == "":
		return "", nil
	}
	node, err := l.client.Nodes().Get(ctx, pod.Spec.NodeName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("the node %s of pod %s is gone", pod.Spec.NodeName, holder.Name), nil
	case err != nil:
		return "", fmt.Errorf("reading a leader's node: %w", err)
	case unreachable(node):
		return fmt.Sprintf("the node %s of pod %s is unreachable", pod.Spec.NodeName, holder.Name), nil
	}
	return "", nil
}

// unreachable says whether nothing was heard of the node for long: then its Ready condition is Unknown, and it has the
// taint (Kubernetes v1.36.3, pkg/controller/nodelifecycle/node_lifecycle_controller.go). A node that says itself that it
// is not ready lives, and so may its pods.
func unreachable(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return false
		}
	}
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeUnreachable {
			return true
		}
	}
	return false
}

// Kind is a kind of leader election.
type Kind string

// The kinds of leader election.
const (
	Lease Kind = "lease"
	Life  Kind = "life"
)

// UnmarshalText reads a kind from a flag.
func (k *Kind) UnmarshalText(text []byte) error {
	switch kind := Kind(text); kind {
	case Lease, Life:
		*k = kind
		return nil
	}
	return errors.New("it is lease or life")
}

// MarshalText is the kind as a flag has it.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k), nil }
