//go:build linux

// Package upgrades_test tests the memcached operator's newest upgrade, as any operator's tests can. 'make build managers'
// builds what it runs.
package upgrades_test

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
	"github.com/olmkit/olmkit/pkg/upgradetest"
)

func TestMain(m *testing.M) { upgradetest.Main(m) }

func TestUpgrade(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	hops := 0
	upgradetest.Run(t, "../../catalog",
		upgradetest.Package("memcached-operator"),
		upgradetest.From("0.4.0"),
		upgradetest.Image("ghcr.io/olmkit/memcached-operator:v0.4.0", "../../bin/memcached-operator/v0.4.0/manager"),
		upgradetest.Image("ghcr.io/olmkit/memcached-operator:v0.5.0", "../../bin/memcached-operator/v0.5.0/manager"),
		upgradetest.Scheme(scheme),
		upgradetest.AfterHop(func(ctx context.Context, c client.Client, hop upgradetest.Hop) error {
			hops++
			var list v1.MemcachedList
			if err := c.List(ctx, &list); err != nil {
				return err
			}
			if len(list.Items) == 0 {
				return fmt.Errorf("%s has no Memcacheds", hop.To)
			}
			for _, m := range list.Items {
				if m.Spec.Replicas == 0 {
					return fmt.Errorf("after %s, Memcached %s/%s has no replicas", hop.To, m.Namespace, m.Name)
				}
			}
			return nil
		}),
	)
	if hops != 1 {
		t.Errorf("AfterHop was called %d times", hops)
	}
}
