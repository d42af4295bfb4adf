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

var (
	errTaken   = errors.New("the lock is another's")
	errClaimed = errors.New("the pod's own claim is too young")
	// errForeign says that the ConfigMap is something else.
	errForeign = errors.New("is no leader's lock: it has other owners than one pod; use another name for the lock")
)

// New is the view that pod has of the lock with this name in its namespace. It asks the cluster for nothing yet; its error is one of config.
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

// claimant is the pod as a holder that does not lead yet.
func (l *Lock) claimant() string { return "claimed by " + l.Identity() }

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
		return fmt.Errorf("%s: %w", l.Describe(), errTaken)
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
		return nil, nil, fmt.Errorf("%s %w", l.Describe(), errForeign)
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
		return l.answer(l.claimant())
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
	return l.answer(l.claimant())
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
	ctx, cancel := context.WithTimeout(ctx, request)
	defer cancel()
	lock, err := l.client.ConfigMaps(l.pod.Namespace).Get(ctx, l.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	l.seen = lock
	if !l.own(lock) {
		l.lose()
		return fmt.Errorf("%s: %w", l.Describe(), errTaken)
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
	ctx, cancel := context.WithTimeout(ctx, request)
	defer cancel()
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
