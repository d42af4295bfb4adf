package upgrade

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/finding"
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
		if owner.Kind == kindPod {
			return owner.Name, true
		}
	}
	return "", false
}

// maxHostName is how much of a pod's name is its host name, by which leaders call themselves.
const maxHostName = 63

// isPod reports whether identity is that of the pod called name: its host name, and with controller-runtime and client-go
// "_" and a UUID.
func isPod(identity, name string) bool {
	host, _, _ := strings.Cut(identity, "_")
	return host != "" && (host == name || host == name[:min(len(name), maxHostName)])
}

// leadership is what a timeline tells of the leader election among an operator's pods.
type leadership struct {
	Elects bool          // pods of the operator, also earlier ones, hold or held a lock
	Lock   string        // the lock that was taken last, Kind/name
	Holder string        // who holds it now; "" for nobody
	Leads  bool          // one of the pods asked about holds a lock
	Since  time.Time     // since when it does
	Gap    time.Duration // how long the lock was held by a pod that had ended before; 0 where it was released, or nobody knows
}

// leads tells from timeline whether one of pods leads now. A pod that held a lock and is gone, or gave it up, leads no more.
func leads(timeline []event, pods []string) leadership {
	var l leadership
	holders := map[string]string{} // by lock
	free := map[string]time.Time{} // since when the holder of a lock is gone
	known := map[string]bool{}     // pods that there are or were
	for _, name := range pods {
		known[name] = true
	}
	for _, e := range timeline {
		switch {
		case e.Kind == kindPod && e.State == stateGone:
			l.Leads = l.Leads && !isPod(l.Holder, e.Name)
			for lock, holder := range holders {
				if isPod(holder, e.Name) && free[lock].IsZero() {
					free[lock] = e.At
				}
			}
		case e.Kind == kindPod:
			name, _, _ := strings.Cut(e.Name, "/") // of a container
			known[name] = true
		case e.State == stateHeld:
			lock := e.Kind + "/" + e.Name
			l.hold(lock, e, pods, known, free[lock])
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
func (l *leadership) hold(lock string, e event, pods []string, known map[string]bool, free time.Time) {
	if slices.ContainsFunc(pods, func(p string) bool { return isPod(e.For, p) }) {
		l.Elects, l.Leads, l.Lock, l.Holder, l.Since, l.Gap = true, true, lock, e.For, e.At, 0
		if !free.IsZero() {
			l.Gap = e.At.Sub(free)
		}
		return
	}
	for name := range known {
		if isPod(e.For, name) {
			l.Elects, l.Lock = true, lock
		}
	}
	if l.Lock == lock {
		l.Leads = false
	}
}

// electionSlack is how much longer than a lease lasts a new leader may take: candidates look every few seconds, and the
// machine may be slow.
const electionSlack = 15 * time.Second

// leaseDuration is controller-runtime's and client-go's default.
const leaseDuration = 15 * time.Second

// awaitLeader waits until a pod of r leads, if the operator elects a leader at all, and tells how the election went. It
// gives up when the lease must have run out long since.
func (w *walk) awaitLeader(ctx context.Context, r *release) (leadership, error) {
	var l leadership
	limit := leaseDuration
	err := w.watcher.until(ctx, 10*leaseDuration, func() (bool, error) {
		pods, err := w.podsOf(ctx, r)
		if err != nil {
			return false, err
		}
		timeline := w.watcher.since(time.Time{})
		if l = leads(timeline, pods); l.Leads || !l.Elects {
			return true, nil
		}
		if limit, err = w.leaseOf(ctx, l.Lock); err != nil {
			return false, err
		}
		return time.Since(newestPod(timeline, pods)) > limit+electionSlack, nil
	})
	if err != nil && !errors.Is(err, errTimeout) {
		return l, fmt.Errorf("wait for a pod of %s to lead: %w", r.Name, err)
	}
	return l, nil
}

// newestPod is when the first event of the newest of pods was seen.
func newestPod(timeline []event, pods []string) time.Time {
	first := map[string]time.Time{}
	for _, e := range timeline {
		if e.Kind == kindPod && slices.Contains(pods, e.Name) && first[e.Name].IsZero() {
			first[e.Name] = e.At
		}
	}
	var newest time.Time
	for _, at := range first {
		newest = latest(newest, at)
	}
	return newest
}

// leaseOf returns how long the lock called Kind/name lasts when nobody renews it.
func (w *walk) leaseOf(ctx context.Context, lock string) (time.Duration, error) {
	kind, name, _ := strings.Cut(lock, "/")
	if kind != kindLease {
		return leaseDuration, nil
	}
	var lease coordinationv1.Lease
	if err := w.watcher.Get(ctx, client.ObjectKey{Namespace: w.place.Namespace, Name: name}, &lease); client.IgnoreNotFound(err) != nil {
		return 0, err
	}
	return time.Duration(cmp.Or(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0), int32(leaseDuration.Seconds()))) * time.Second, nil
}

// podsOf returns the names of the pods that run r's deployments and are not on their way out, sorted.
func (w *walk) podsOf(ctx context.Context, r *release) ([]string, error) {
	var pods corev1.PodList
	if err := w.watcher.List(ctx, &pods, client.InNamespace(w.place.Namespace)); err != nil {
		return nil, err
	}
	images := r.Images()
	var names []string
	for i := range pods.Items {
		p := &pods.Items[i]
		ours := slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool { return slices.Contains(images, c.Image) })
		if ours && p.DeletionTimestamp == nil {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// noticeableGap is from when on a time without a leader is worth telling.
const noticeableGap = 3 * time.Second

// judgeElection tells how long nobody led in a hop, if that was long.
func judgeElection(l leadership) []finding.Finding {
	if !l.Leads || l.Gap < noticeableGap {
		return nil
	}
	return []finding.Finding{find(codeNobodyLed, l.Lock, "no pod of the operator led for %.1fs: the old leader ended without releasing the lock, and the new one waited until it ran out",
		l.Gap.Seconds())}
}

// judgeLocks tells whether the new leader took another lock than the leader before started, and for how long both led.
func judgeLocks(timeline []event, started time.Time, l leadership) []finding.Finding {
	if !l.Leads {
		return nil
	}
	pods, taken := map[string]bool{}, map[string]string{}
	isNew := true
	for _, e := range timeline {
		lock := e.Kind + "/" + e.Name
		switch {
		case e.Kind == kindPod:
			name, _, _ := strings.Cut(e.Name, "/")
			pods[name] = true
		case e.State != stateHeld:
		case e.At.Before(started):
			taken[lock], isNew = e.For, isNew && lock != l.Lock
		case e.For != "":
			delete(taken, lock) // the new release uses it, too
		}
	}
	if !isNew {
		return nil
	}
	for _, lock := range slices.Sorted(maps.Keys(taken)) {
		for pod := range pods {
			if isPod(taken[lock], pod) {
				return []finding.Finding{lockFinding(timeline, lock, pod, l)}
			}
		}
	}
	return nil
}

func lockFinding(timeline []event, lock, pod string, l leadership) finding.Finding {
	f := find(codeTwoLocks, l.Lock, "the new version elects its leader with %s, the old version with %s: neither waits for the other", l.Lock, lock)
	for _, e := range timeline {
		if e.Kind == kindPod && e.Name == pod && e.State == stateGone && e.At.After(l.Since) {
			f.Message += fmt.Sprintf("; both led for %.1fs", e.At.Sub(l.Since).Seconds())
		}
	}
	return f
}
