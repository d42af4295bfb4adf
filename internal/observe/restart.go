package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// Comeback is how an operator came back after its pods had been deleted.
type Comeback struct {
	Back  bool          // as many pods are ready, and one leads if they elect a leader
	Held  string        // the Lease that a pod held still when it was gone, "" for none
	Lease time.Duration // for how long that keeps others from leading
}

// comebackLimit is how long an operator has to end, and how long to be ready again.
const comebackLimit = 2 * time.Minute

// Restart deletes the pods of r's operator, as who drains a node does, and waits until others run in their place. The Lease that one holds still is deleted, so that nobody has
// to wait until it runs out.
func (c *Cluster) Restart(ctx context.Context, r *lifecycle.Release) (back Comeback, err error) {
	pods, err := c.podsOf(ctx, r)
	if err != nil {
		return back, err
	}
	for _, name := range pods {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: c.Place.Namespace, Name: name}}
		if err := client.IgnoreNotFound(c.Client.Delete(ctx, pod)); err != nil {
			return back, fmt.Errorf("delete pod %s to have the operator start again: %w", name, err)
		}
	}
	if err := c.awaitPods(ctx, func(there []corev1.Pod) bool {
		return !slices.ContainsFunc(there, func(p corev1.Pod) bool { return slices.Contains(pods, p.Name) })
	}); err != nil {
		return back, err
	}
	if err := c.freeLeases(ctx, pods, &back); err != nil {
		return back, err
	}
	if err := c.awaitPods(ctx, func(there []corev1.Pod) bool {
		ready := slices.DeleteFunc(slices.Clone(there), func(p corev1.Pod) bool {
			return !isManager(p.Name, []*lifecycle.Release{r}) || p.DeletionTimestamp != nil || !podReady(&p)
		})
		back.Back = len(ready) >= len(pods)
		return back.Back
	}); err != nil || !back.Back {
		return back, err
	}
	leads, err := c.awaitLeader(ctx, r)
	back.Back = leads.Leads || !leads.Elects
	return back, err
}

// freeLeases notes in back which Lease one of pods, which are gone, holds still, and deletes it.
func (c *Cluster) freeLeases(ctx context.Context, pods []string, back *Comeback) error {
	var leases coordinationv1.LeaseList
	if err := c.Client.List(ctx, &leases, client.InNamespace(c.Place.Namespace)); err != nil {
		return fmt.Errorf("list Leases of the operator: %w", err)
	}
	for i := range leases.Items {
		lasting, err := c.leaseOf(ctx, KindLease+"/"+leases.Items[i].Name)
		if err != nil {
			return err
		}
		held, err := c.freeLease(ctx, &leases.Items[i], pods)
		if err != nil {
			return err
		}
		if held && lasting > back.Lease {
			back.Held, back.Lease = KindLease+"/"+leases.Items[i].Name, lasting
		}
	}
	return nil
}

// awaitPods waits, though not for ever, until the pods in the operator's namespace are as wanted.
func (c *Cluster) awaitPods(ctx context.Context, wanted func([]corev1.Pod) bool) error {
	err := lifecycle.Poll(ctx, comebackLimit, func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		err := c.Client.List(ctx, &pods, client.InNamespace(c.Place.Namespace))
		return err == nil && wanted(pods.Items), err
	})
	if err != nil && !errors.Is(err, lifecycle.ErrTimeout) {
		return fmt.Errorf("wait for the operator's pods to start again: %w", err)
	}
	return nil
}
