package olmv0

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// WokenLabel is what Wake writes: the time, in seconds.
const WokenLabel = "olmkit.dev/woken"

// Wake labels the Subscriptions, InstallPlans and ClusterServiceVersions in p's namespace. OLM looks at once at what changes; what
// failed it puts off for up to 1,000 s (client-go's DefaultTypedControllerRateLimiter), and what it missed it sees when it lists
// all again. An annotation would roll the operator out: OLM copies those of a ClusterServiceVersion to its pods.
func (c *Client) Wake(ctx context.Context, p lifecycle.Place) (mended string, err error) {
	note := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:"%d"}}}`, WokenLabel, time.Now().Unix()))
	var versions v1alpha1.ClusterServiceVersionList
	for _, list := range []client.ObjectList{&v1alpha1.SubscriptionList{}, &v1alpha1.InstallPlanList{}, &versions} {
		if err := c.List(ctx, list, client.InNamespace(p.Namespace)); err != nil {
			return "", fmt.Errorf("list %T in %s: %w", list, p.Namespace, err)
		}
		err := meta.EachListItem(list, func(o runtime.Object) error {
			object := o.(client.Object)
			if csv, ok := object.(*v1alpha1.ClusterServiceVersion); ok {
				if csv.IsCopied() {
					return nil
				}
				said, err := c.rightsToMend(ctx, csv)
				if err != nil {
					return err
				}
				mended = cmp.Or(mended, said)
			}
			if err := client.IgnoreNotFound(c.Patch(ctx, object, note)); err != nil {
				return fmt.Errorf("label %s: %w", Describe(object), err)
			}
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	old, next := Deadlock(versions.Items)
	if old == nil {
		return mended, nil
	}
	phase := client.RawPatch(types.MergePatchType, []byte(DeadlockPatch))
	if err := c.WithWatch.Status().Patch(ctx, old, phase); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("set the phase of %s: %w", Describe(old), err)
	}
	return fmt.Sprintf("%s and %s waited for each other for ever: %s. The walk set the phase of the old one to Succeeded, by which OLM replaces it",
		old.Name, next.Name, DeadlockOf(old)), nil
}

// lostRights are the words in which rightsToMend says what it found.
const lostRights = "was left without its rights"

// rightsToMend says of a version that is installed that it lacks rights which OLM gives it once it looks again, or "".
func (c *Client) rightsToMend(ctx context.Context, csv *v1alpha1.ClusterServiceVersion) (string, error) {
	namespace, err := c.WithoutRights(ctx, csv)
	if namespace == "" || err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %s in namespace %s until the walk labelled its ClusterServiceVersion", csv.Name, lostRights, namespace), nil
}

// WhyMended returns why what Wake or Remind says that it mended was so, and what to do.
func (c *Client) WhyMended(mended string) (cause, fix string) {
	switch {
	case strings.Contains(mended, lostStatus):
		return "two workers of OLM look at a namespace at the same time, and each writes the Subscription's whole status as it has read it; the resolver then refuses what \"exists and is not referenced by a subscription\"",
			"nothing to fix in the bundle; 'olmkit upgrade diagnose' prints the command that ends it"
	case strings.Contains(mended, lostRights):
		return "OLM copies Roles to the namespaces that an OperatorGroup names, but not while the old version's copies still give the ServiceAccount the rights; then they go with the old version, and OLM looks again only when the ClusterServiceVersion changes",
			"nothing to fix in the bundle; whoever meets it can put a label on the ClusterServiceVersion, so that OLM looks again"
	}
	return "the lifecycle manager looked at the old version after the new one's CRDs were written, and before it had noticed the new one; a slow cluster makes that likely",
		"in an earlier release, stop naming in spec.customresourcedefinitions.owned the version that this one stops serving; 'olmkit upgrade diagnose' prints the command that ends it"
}

// DeadlockPatch is the patch of the old version's status that ends a deadlock: OLM looks for what replaces a version that
// succeeded, before anything else.
const DeadlockPatch = `{"status": {"phase": "Succeeded"}}`

// Deadlock returns two of versions of which OLM installs neither: it replaces a version only once it is in the phase Replacing,
// into which none comes from Pending, and next has taken away what old requires, for example a served version of a CRD
// (transitionCSVState in pkg/controller/operators/olm/operator.go of operator-lifecycle-manager v0.46.0). OLM gets there when it
// looks at the old version after the new CRDs were written, and before it has noticed the new version.
func Deadlock(versions []v1alpha1.ClusterServiceVersion) (old, next *v1alpha1.ClusterServiceVersion) {
	for i := range versions {
		next := &versions[i]
		if next.IsCopied() || next.Spec.Replaces == "" || next.Status.Phase != v1alpha1.CSVPhasePending {
			continue
		}
		for j := range versions {
			old := &versions[j]
			if old.Name == next.Spec.Replaces && old.Namespace == next.Namespace && old.Status.Phase == v1alpha1.CSVPhasePending &&
				old.Status.Reason == v1alpha1.CSVReasonRequirementsNotMet {
				return old, next
			}
		}
	}
	return nil, nil
}

// DeadlockOf says what old misses that the version that replaces it has taken away.
func DeadlockOf(old *v1alpha1.ClusterServiceVersion) string {
	return "the old one misses " + strings.Join(MissingRequirements(old), ", ") + ", and OLM replaces no version that waits"
}
