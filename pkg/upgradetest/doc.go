// Package upgradetest tests an operator's upgrades from go test. A test creates an embedded cluster (no Docker, no root),
// installs OLM, and runs the upgrades of a catalog, as 'olmkit upgrade test' does. Each installation and each hop is a
// subtest: errors among its findings fail it, other findings are logged.
//
// # Set up
//
// The embedded cluster runs the test program again for its own processes, so TestMain has to call [Main]:
//
//	func TestMain(m *testing.M) { upgradetest.Main(m) }
//
//	func TestUpgrades(t *testing.T) {
//		upgradetest.Run(t, "catalog",
//			upgradetest.Image("ghcr.io/me/redis:v0.2.0", "bin/v0.2.0/manager"),
//			upgradetest.Image("ghcr.io/me/redis:v0.3.0", "bin/v0.3.0/manager"),
//			upgradetest.Samples("config/samples"),
//		)
//	}
//
// Build the managers before the test, with CGO_ENABLED=0. The first run on a machine builds etcd, Kubernetes and OLM from
// pinned modules, for 5 to 10 minutes on two cores; 'olmkit cluster build' does so beforehand. A hop takes some 10 seconds:
// give 'go test' a -timeout that fits.
//
// [Kubernetes] and [OLM] choose other versions than the default ones.
//
// # Own checks
//
// [AfterHop] calls a function after each hop, with a client of the cluster. [Assert] checks objects against files.
package upgradetest
