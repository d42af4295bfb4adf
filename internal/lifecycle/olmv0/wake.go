package olmv0

import (
	"context"
	"fmt"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// wokenLabel is what Wake writes: the time, in seconds.
const wokenLabel = "olmkit.dev/woken"

// Wake labels the Subscriptions, InstallPlans and ClusterServiceVersions in p's namespace. OLM looks at once at what changes; what
// failed it puts off for up to 1,000 s (client-go's DefaultTypedControllerRateLimiter), and what it missed it sees when it lists
// all again. An annotation would roll the operator out: OLM copies those of a ClusterServiceVersion to its pods.
func (c *Client) Wake(ctx context.Context, p lifecycle.Place) error {
	note := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:"%d"}}}`, wokenLabel, time.Now().Unix()))
	for _, list := range []client.ObjectList{&v1alpha1.SubscriptionList{}, &v1alpha1.InstallPlanList{}, &v1alpha1.ClusterServiceVersionList{}} {
		if err := c.List(ctx, list, client.InNamespace(p.Namespace)); err != nil {
			return fmt.Errorf("list %T in %s: %w", list, p.Namespace, err)
		}
		err := meta.EachListItem(list, func(o runtime.Object) error {
			object := o.(client.Object)
			if csv, ok := object.(*v1alpha1.ClusterServiceVersion); ok && csv.IsCopied() {
				return nil
			}
			if err := client.IgnoreNotFound(c.Patch(ctx, object, note)); err != nil {
				return fmt.Errorf("label %s: %w", Describe(object), err)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
