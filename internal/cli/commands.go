package cli

import "github.com/spf13/cobra"

// commands returns olmkit's commands; each group has a file of its own.
func commands(s *session) []*cobra.Command {
	return []*cobra.Command{
		newBundle(s),
		newSubscription(s),
		newCluster(s),
		newCRD(s),
		newOLM(s),
		newCatalog(s),
		newImage(s),
		reaching(s, group("upgrade", "Plan, test and rehearse upgrades, and show why one is stuck", newUpgradePlan(s), newUpgradeTest(s), newUpgradeRehearse(s), newUpgradeDiagnose(s))),
		newCleanup(s),
		newInit(s),
		newReport(s),
		newExplain(s),
		newVersion(s),
	}
}
