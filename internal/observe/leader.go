package observe

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// holderOf returns the identity that holds the lock o, and false if o is no lock: a Lease, an object with the annotation of
// client-go before v0.24 (ConfigMap, Endpoints), or a ConfigMap that a pod owns (leader for life).
func holderOf(o metav1.Object) (string, bool) {
	if lease, ok := o.(*coordinationv1.Lease); ok {
		return ptr.Deref(lease.Spec.HolderIdentity, ""), true
	}
	if record, ok := o.GetAnnotations()[resourcelock.LeaderElectionRecordAnnotationKey]; ok {
		var r resourcelock.LeaderElectionRecord
		return r.HolderIdentity, json.Unmarshal([]byte(record), &r) == nil
	}
	for _, owner := range o.GetOwnerReferences() {
		if owner.Kind == KindPod {
			return owner.Name, true
		}
	}
	return "", false
}

// maxHostName is how much of a pod's name is its host name, by which leaders call themselves.
const maxHostName = 63

// IsPod reports whether identity is that of the pod called name: its host name, and with controller-runtime and client-go
// "_" and a UUID.
func IsPod(identity, name string) bool {
	host, _, _ := strings.Cut(identity, "_")
	return host != "" && (host == name || host == name[:min(len(name), maxHostName)])
}

// Leadership is what a timeline tells of the leader election among an operator's pods.
type Leadership struct {
	Elects bool          // pods of the operator, also earlier ones, hold or held a lock
	Lock   string        // the lock that was taken last, Kind/name
	Holder string        // who holds it now; "" for nobody
	Leads  bool          // one of the pods asked about holds a lock
	Since  time.Time     // since when it does
	Gap    time.Duration // how long the lock was held by a pod that had ended before; 0 where it was released, or nobody knows
	Given  bool          // nobody held the lock any more when it took it, and somebody had
}

// Leads tells from timeline whether one of pods leads now. A pod that held a lock and is gone, or gave it up, leads no more.
func Leads(timeline []lifecycle.Event, pods []string) Leadership {
	var l Leadership
	holders := map[string]string{} // by lock
	free := map[string]time.Time{} // since when the holder of a lock is gone
	known := map[string]bool{}     // pods that there are or were
	for _, name := range pods {
		known[name] = true
	}
	for _, e := range timeline {
		switch {
		case e.Kind == KindPod && e.State == StateGone:
			l.Leads = l.Leads && !IsPod(l.Holder, e.Name)
			for lock, holder := range holders {
				if IsPod(holder, e.Name) && free[lock].IsZero() {
					free[lock] = e.At
				}
			}
		case e.Kind == KindPod:
			known[PodOf(e)] = true
		case e.State == StateHeld:
			lock := e.Kind + "/" + e.Name
			before, had := holders[lock]
			l.hold(lock, e, pods, known, free[lock])
			l.Given = l.Given && l.Lock != lock || l.Leads && l.Lock == lock && had && before == ""
			holders[lock] = e.For
			delete(free, lock)
		}
	}
	if l.Leads {
		return l
	}
	l.Holder = holders[l.Lock]
	return l
}

// hold takes down that a lock changed hands, of which the holder was gone since the given time, if it was.
func (l *Leadership) hold(lock string, e lifecycle.Event, pods []string, known map[string]bool, free time.Time) {
	if slices.ContainsFunc(pods, func(p string) bool { return IsPod(e.For, p) }) {
		l.Elects, l.Leads, l.Lock, l.Holder, l.Since, l.Gap = true, true, lock, e.For, e.At, 0
		if !free.IsZero() {
			l.Gap = e.At.Sub(free)
		}
		return
	}
	for name := range known {
		if IsPod(e.For, name) {
			l.Elects, l.Lock = true, lock
		}
	}
	if l.Lock == lock {
		l.Leads = false
	}
}

// electionSlack is how much longer than a lease lasts a new leader may take, at least: candidates look every few seconds, and the
// machine may be slow. Of long leases it is half: who has a lease of 137 s, as OpenShift has it, looks every 26 to 57 s.
const electionSlack = 15 * time.Second

// longestElection is how long an election may take at most, whatever the lease.
const longestElection = 5 * time.Minute

// leaseDuration is controller-runtime's and client-go's default.
const leaseDuration = 15 * time.Second

// awaitLeader waits until a pod of r leads, if the operator elects a leader at all, and tells how the election went. It
// gives up when the lease must have run out long since; the old leader goes on until the new pod is ready.
func (c *Cluster) awaitLeader(ctx context.Context, r *lifecycle.Release) (Leadership, error) {
	var l Leadership
	limit := leaseDuration
	err := c.Watcher.Until(ctx, longestElection, func() (bool, error) {
		pods, err := c.podsOf(ctx, r)
		if err != nil {
			return false, err
		}
		timeline := c.Watcher.Since(time.Time{})
		if l = Leads(timeline, pods); l.Leads || !l.Elects {
			return true, nil
		}
		if limit, err = c.leaseOf(ctx, l.Lock); err != nil {
			return false, err
		}
		return time.Since(electionBegan(timeline, pods, l.Lock)) > limit+max(electionSlack, limit/2), nil
	})
	if err != nil && !errors.Is(err, ErrTimeout) {
		return l, fmt.Errorf("wait for a pod of %s to lead: %w", r.Name, err)
	}
	return l, nil
}

// Leadership tells which of r's pods leads now.
func (c *Cluster) Leadership(ctx context.Context, r *lifecycle.Release) (Leadership, error) {
	pods, err := c.podsOf(ctx, r)
	return Leads(c.Watcher.Since(time.Time{}), pods), err
}

// electionBegan is since when one of pods may take a lock: the newest of them came, a pod went, or the lock changed hands.
func electionBegan(timeline []lifecycle.Event, pods []string, lock string) time.Time {
	at := newestPod(timeline, pods)
	for _, e := range timeline {
		if e.Kind == KindPod && e.State == StateGone || e.State == StateHeld && e.Kind+"/"+e.Name == lock {
			at = Latest(at, e.At)
		}
	}
	return at
}

// newestPod is when the first event of the newest of pods was seen.
func newestPod(timeline []lifecycle.Event, pods []string) time.Time {
	first := map[string]time.Time{}
	for _, e := range timeline {
		if e.Kind == KindPod && slices.Contains(pods, e.Name) && first[e.Name].IsZero() {
			first[e.Name] = e.At
		}
	}
	var newest time.Time
	for _, at := range first {
		newest = Latest(newest, at)
	}
	return newest
}

// leaseOf returns how long the lock called Kind/name lasts when nobody renews it, or lasted while somebody held it.
func (c *Cluster) leaseOf(ctx context.Context, lock string) (time.Duration, error) {
	kind, name, _ := strings.Cut(lock, "/")
	if kind != KindLease {
		return leaseDuration, nil
	}
	var lease coordinationv1.Lease
	if err := c.Watcher.Get(ctx, client.ObjectKey{Namespace: c.Place.Namespace, Name: name}, &lease); client.IgnoreNotFound(err) != nil {
		return 0, err
	}
	seconds := ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)
	if known, is := c.Watcher.lasting.Load(name); is && ptr.Deref(lease.Spec.HolderIdentity, "") == "" {
		seconds = known.(int32)
	}
	return time.Duration(cmp.Or(seconds, int32(leaseDuration.Seconds()))) * time.Second, nil
}

// Exits lists the containers of r's pods that ended since a moment, as Restarts does.
func (c *Cluster) Exits(ctx context.Context, r *lifecycle.Release, since time.Time) ([]lifecycle.Event, error) {
	pods, err := c.podsOf(ctx, r)
	return slices.DeleteFunc(Restarts(c.Watcher.Since(since), since), func(e lifecycle.Event) bool {
		return !slices.Contains(pods, PodOf(e))
	}), err
}

// freeGrace is how long an uninstalled operator has to end where nobody else is served by it.
const freeGrace = 2 * time.Second

// Free waits until no pod of releases, which were uninstalled, is left, but no longer than limit, and deletes the Leases that their pods
// hold: an operator whose rights went can't release its own, and the next to be installed would wait for it to run out. On a cluster
// that ends with the walk, pods have no longer than freeGrace.
func (c *Cluster) Free(ctx context.Context, releases []*lifecycle.Release, limit time.Duration) error {
	err := lifecycle.Poll(ctx, limit, func(ctx context.Context) (bool, error) {
		left, err := c.managers(ctx, releases)
		if err != nil || len(left) == 0 || !c.Provider.Disposable() {
			return len(left) == 0, err
		}
		for i := range left {
			if err := client.IgnoreNotFound(c.Client.Delete(ctx, &left[i], client.GracePeriodSeconds(freeGrace.Seconds()))); err != nil {
				return false, err
			}
		}
		return false, nil
	})
	if err != nil && !errors.Is(err, lifecycle.ErrTimeout) {
		return fmt.Errorf("wait for the operator's pods to end: %w", err)
	}
	left, err := c.managers(ctx, releases)
	if err != nil {
		return err
	}
	var leases coordinationv1.LeaseList
	if err := c.Watcher.List(ctx, &leases, client.InNamespace(c.Place.Namespace)); err != nil {
		return err
	}
	ended := c.Watcher.OperatorPods()
	maps.DeleteFunc(ended, func(name string, _ OperatorPod) bool {
		return !isManager(name, releases) || slices.ContainsFunc(left, func(p corev1.Pod) bool { return p.Name == name })
	})
	for i := range leases.Items {
		if _, err := c.freeLease(ctx, &leases.Items[i], slices.Collect(maps.Keys(ended))); err != nil {
			return err
		}
	}
	return nil
}

// freeLease deletes a Lease if one of pods holds it, and reports whether one does.
func (c *Cluster) freeLease(ctx context.Context, lease *coordinationv1.Lease, pods []string) (held bool, err error) {
	for _, name := range pods {
		if !IsPod(ptr.Deref(lease.Spec.HolderIdentity, ""), name) {
			continue
		}
		held = true
		err := c.Client.Delete(ctx, lease, client.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // somebody else holds it now
			return true, fmt.Errorf("delete Lease %s, which pod %s held: %w", lease.Name, name, err)
		}
	}
	return held, nil
}

// managers are the pods of the deployments of releases, also those that are on their way out.
func (c *Cluster) managers(ctx context.Context, releases []*lifecycle.Release) ([]corev1.Pod, error) {
	var pods corev1.PodList
	err := c.Watcher.List(ctx, &pods, client.InNamespace(c.Place.Namespace))
	return slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return !isManager(p.Name, releases) }), err
}

// podOfDeployment is a pod's name, as the controllers of Deployments and ReplicaSets make it.
var podOfDeployment = regexp.MustCompile(`^(.+)-[0-9a-z]+-[0-9a-z]{5}$`)

// DeploymentOf returns the name of the Deployment that a pod with this name is of, "" if it has none.
func DeploymentOf(pod string) string {
	if m := podOfDeployment.FindStringSubmatch(pod); m != nil {
		return m[1]
	}
	return ""
}

// isManager reports whether a pod with this name, in the operator's namespace, is of a deployment of releases.
func isManager(name string, releases []*lifecycle.Release) bool {
	of := DeploymentOf(name)
	return of != "" && slices.ContainsFunc(releases, func(r *lifecycle.Release) bool { return slices.Contains(r.Deployments(), of) })
}

// podsOf returns the names of the pods that run r's deployments and are not on their way out, sorted.
func (c *Cluster) podsOf(ctx context.Context, r *lifecycle.Release) ([]string, error) {
	var pods corev1.PodList
	if err := c.Watcher.List(ctx, &pods, client.InNamespace(c.Place.Namespace)); err != nil {
		return nil, err
	}
	images := r.Images()
	var names []string
	for i := range pods.Items {
		p := &pods.Items[i]
		ours := slices.ContainsFunc(p.Spec.Containers, func(container corev1.Container) bool { return slices.Contains(images, container.Image) })
		if ours && p.DeletionTimestamp == nil {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}
