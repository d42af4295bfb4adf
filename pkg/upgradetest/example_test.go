package upgradetest_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/pkg/upgradetest"
)

// TestMain and the test of a package that tests the upgrades of an operator.
func Example() {
	_ = func(m *testing.M) { upgradetest.Main(m) } // TestMain

	_ = func(t *testing.T) { // TestUpgrades
		upgradetest.Run(t, "catalog",
			upgradetest.Image("ghcr.io/me/redis:v0.2.0", "bin/v0.2.0/manager"),
			upgradetest.Image("ghcr.io/me/redis:v0.3.0", "bin/v0.3.0/manager"),
			upgradetest.Samples("config/samples"),
		)
	}
}

// A check of the cluster after each hop.
func ExampleAfterHop() {
	option := upgradetest.AfterHop(func(ctx context.Context, c client.Client, hop upgradetest.Hop) error {
		var pods corev1.PodList
		if err := c.List(ctx, &pods, client.MatchingLabels{"app": "redis"}); err != nil {
			return err
		}
		if len(pods.Items) == 0 {
			return fmt.Errorf("%s runs no pods", hop.To)
		}
		return nil
	})
	_ = func(t *testing.T) { upgradetest.Run(t, "catalog", option) }
}
