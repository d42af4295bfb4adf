package lifecycle

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// KillPods deletes pods without a grace period. One that is gone by then is no error.
func KillPods(ctx context.Context, c client.Client, pods []corev1.Pod) error {
	for i := range pods {
		if err := c.Delete(ctx, &pods[i], client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("kill pod %s: %w", client.ObjectKeyFromObject(&pods[i]), err)
		}
	}
	return nil
}

// KillProgram kills the pods that options choose, those of a lifecycle manager's program. That there are none is an error.
func KillProgram(ctx context.Context, c client.Client, program string, options ...client.ListOption) error {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, options...); err != nil {
		return fmt.Errorf("list pods of %s: %w", program, err)
	}
	if len(pods.Items) == 0 {
		return fmt.Errorf("there is no pod of %s", program)
	}
	return KillPods(ctx, c, pods.Items)
}
