package walk

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/judge"
	"github.com/olmkit/olmkit/internal/observe"
)

const (
	// fullFor is how long a new namespace has no room for what operators make: controller-runtime has tried seven times by then, and does so once more within two seconds.
	fullFor = 700 * time.Millisecond
	// roomLimit is how long an operator of which it is not known has to make it once there is room.
	roomLimit = 5 * time.Second
	// fillLimit is how long the cluster has to notice a new quota.
	fillLimit = 3 * time.Second
)

// refusable are the kinds for which a namespace may have no room, those first without which an object does nothing.
var refusable = []string{
	"Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "Service", "Ingress", "PodDisruptionBudget", "NetworkPolicy", "HorizontalPodAutoscaler", "Role", "RoleBinding",
}

// refusedKinds are, by definition, the first of refusable that is made directly for each of copies, unless before knows that it is not made once it was refused.
func refusedKinds(copies []*newObject, before map[string]judge.New) map[string]string {
	kinds := map[string]string{}
	for _, o := range copies {
		for _, kind := range refusable {
			direct := slices.ContainsFunc(slices.Collect(maps.Values(o.first)), func(made observe.Operand) bool { return made.Direct && made.Kind == kind })
			if !direct {
				continue
			}
			if retries, known := before[o.CRD].Retries[kind]; retries || !known {
				kinds[o.CRD] = kind
			}
			break
		}
	}
	return kinds
}

// fill has a namespace have no room for kinds, and reports whether that is so.
func (w *walk) fill(ctx context.Context, namespace string, kinds map[string]string) (bool, error) {
	if len(kinds) == 0 {
		return false, nil
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: observe.Quota, Namespace: namespace}, Spec: corev1.ResourceQuotaSpec{Hard: roomFor(kinds, "0")}}
	if err := w.Client.Create(ctx, quota); err != nil {
		return false, fmt.Errorf("create ResourceQuota %s/%s: %w", namespace, observe.Quota, err)
	}
	noticed := false
	err := lookUntil(ctx, fillLimit, quickPause, func() (bool, error) {
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(quota), quota); err != nil {
			return false, fmt.Errorf("read ResourceQuota %s/%s: %w", namespace, observe.Quota, err)
		}
		noticed = len(quota.Status.Hard) == len(quota.Spec.Hard)
		return noticed, nil
	})
	if err != nil || noticed {
		return noticed, err
	}
	if err := w.Client.Delete(ctx, quota); err != nil { // it would hold later
		return false, fmt.Errorf("delete ResourceQuota %s/%s: %w", namespace, observe.Quota, err)
	}
	return false, nil
}

// roomFor is the quota of so many of each of kinds.
func roomFor(kinds map[string]string, count string) corev1.ResourceList {
	room := corev1.ResourceList{}
	for _, kind := range kinds {
		room[corev1.ResourceName("count/"+observe.OperandResource(kind).GroupResource().String())] = resource.MustParse(count)
	}
	return room
}

// makeRoom waits until the operator has met the quota, has there be room, and notes in created whether what was refused is made then. before says how long that is
// waited for. It reports whether all of it is.
func (w *walk) makeRoom(ctx context.Context, namespace string, there []*newObject, kinds map[string]string, before, created map[string]judge.New) (goesOn bool, err error) {
	if err := sleep(ctx, fullFor); err != nil {
		return false, err
	}
	view := w.viewOf(objectsOf(there)...)
	early, err := view.RecentOperands(ctx)
	if err != nil {
		return false, err
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: observe.Quota, Namespace: namespace}}
	room := client.MergeFrom(quota.DeepCopy())
	quota.Spec.Hard = roomFor(kinds, "1000")
	if err := w.Client.Patch(ctx, quota, room); err != nil {
		return false, fmt.Errorf("patch ResourceQuota %s/%s: %w", namespace, observe.Quota, err)
	}
	began := time.Now()
	err = lookUntil(ctx, judge.EffectLimit, quickPause, func() (bool, error) {
		operands, err := view.RecentOperands(ctx)
		if err != nil {
			return false, err
		}
		goesOn = true
		waits := false
		for _, o := range there {
			kind := kinds[o.CRD]
			if kind == "" || has(o, kind, early) { // nobody refused it
				continue
			}
			is, made := created[o.CRD], has(o, kind, operands)
			is.Retries = map[string]bool{kind: made}
			created[o.CRD] = is
			goesOn = goesOn && made
			waits = waits || !made && (before[o.CRD].Retries[kind] || time.Since(began) < roomLimit)
		}
		return !waits, nil
	})
	return goesOn, err
}

// has reports whether one of operands is of kind and was made for a copy.
func has(o *newObject, kind string, operands map[string]observe.Operand) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(operands)), func(made observe.Operand) bool { return made.Of == o.String() && made.Kind == kind })
}
