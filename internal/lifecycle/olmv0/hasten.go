package olmv0

import (
	"context"
	"fmt"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// UnpackedLabel is what Hasten writes: the UID of the Job that unpacked the bundle.
const UnpackedLabel = "olmkit.dev/unpacked"

// unpackLabel is on the Jobs that unpack bundles (operator-lifecycle-manager v0.46.0, pkg/controller/bundle, BundleUnpackRefLabel).
const unpackLabel = "operatorframework.io/bundle-unpack-ref"

// Hasten has OLM look at a bundle as soon as the Job that unpacks it from its image has ended, by a label on the Subscription. By itself
// OLM looks every five seconds (operator-lifecycle-manager v0.46.0, pkg/controller/operators/catalog/operator.go,
// syncResolvingNamespace).
func (c *Client) Hasten(ctx context.Context, p lifecycle.Place, seen client.Reader) error {
	var s v1alpha1.Subscription
	if err := seen.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: p.Package}, &s); err != nil {
		return client.IgnoreNotFound(err)
	}
	if s.Spec == nil || s.Status.GetCondition(v1alpha1.SubscriptionBundleUnpacking).Status != corev1.ConditionTrue {
		return nil
	}
	var jobs batchv1.JobList
	err := c.List(ctx, &jobs, client.InNamespace(s.Spec.CatalogSourceNamespace), client.HasLabels{unpackLabel})
	if apierrors.IsForbidden(err) {
		return nil // OLM looks by itself
	}
	if err != nil {
		return fmt.Errorf("list the Jobs that unpack bundles in %s: %w", s.Spec.CatalogSourceNamespace, err)
	}
	done := lastDone(jobs.Items)
	if done == nil || s.Labels[UnpackedLabel] == string(done.UID) {
		return nil
	}
	note := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, UnpackedLabel, done.UID))
	if err := client.IgnoreNotFound(c.Patch(ctx, &s, note)); err != nil {
		return fmt.Errorf("label %s: %w", Describe(&s), err)
	}
	return nil
}

// lastDone returns the job that was completed last, or nil.
func lastDone(jobs []batchv1.Job) *batchv1.Job {
	var last *batchv1.Job
	for i := range jobs {
		at := jobs[i].Status.CompletionTime
		if at != nil && (last == nil || last.Status.CompletionTime.Before(at)) {
			last = &jobs[i]
		}
	}
	return last
}
