package olmv0

import (
	"context"
	"fmt"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// forgottenAfter is for how long a Subscription's status must not have named what is installed, and not have been written: by itself OLM writes that
// within a second.
const forgottenAfter = 10 * time.Second

// forgets reports whether OLM has lost, for good, that csv is installed for s. Two of its workers look at a namespace at the same time, and each
// writes the whole status as it has read it (updateSubscriptionStatuses in pkg/controller/operators/catalog/operator.go of
// operator-lifecycle-manager v0.46.0). The resolver then says that csv "exists and is not referenced by a subscription", and installs nothing in the
// namespace.
func (c *Client) forgets(s *v1alpha1.Subscription, csv *v1alpha1.ClusterServiceVersion) bool {
	if csv == nil || csv.Status.Phase != v1alpha1.CSVPhaseSucceeded || s.Status.InstalledCSV == csv.Name {
		return false
	}
	if state := fmt.Sprint(s.UID, csv.Name, s.Status.LastUpdated); state != c.forgotten {
		c.forgotten, c.since = state, time.Now()
	}
	return time.Since(c.since) >= forgottenAfter
}

// Naming is the patch of a Subscription's status by which OLM takes the ClusterServiceVersion called csv for installed, or, with "", resolves anew.
func Naming(csv string) string {
	value := "null"
	if csv != "" {
		value = `"` + csv + `"`
	}
	return fmt.Sprintf(`{"status": {"currentCSV": %s, "installedCSV": %s, "installPlanRef": null, "installplan": null, "state": null}}`, value, value)
}

// Remind names the bundle, which is installed, in the status of its Subscription if OLM has lost that, and says what it found and did.
func (c *Client) Remind(ctx context.Context, p lifecycle.Place, bundle string, seen client.Reader) (string, error) {
	now, err := readInstallation(ctx, seen, p, bundle)
	if err != nil || now.subscription.Name == "" || !c.forgets(&now.subscription, now.csv) {
		return "", err
	}
	s := &now.subscription
	naming := client.RawPatch(types.MergePatchType, []byte(Naming(bundle)))
	err = c.WithWatch.Status().Patch(ctx, s, naming)
	c.since = time.Now() // what is seen of it may be late
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err): // it is told what OLM waits for
		return "", nil
	case err != nil:
		return "", fmt.Errorf("name %s in the status of %s: %w", bundle, Describe(s), err)
	}
	return fmt.Sprintf("%s is installed, and OLM %s, until its status was written by hand", bundle, lostStatus), nil
}

// lostStatus are the words in which Remind says what it found.
const lostStatus = "no longer said so in the Subscription"
