// Package arrows_test holds the tree to its architecture: which package may import which.
package arrows_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/olmkit/olmkit/"

// allowed lists, for every package of the product, the packages of the product that it may import. Data flows one way:
// load (document, bundle, catalog), model (graph), judge (check; for walks: observe, judge), report.
var allowed = map[string][]string{
	"internal/hint":                               {},
	"internal/finding":                            {},
	"internal/progress":                           {"internal/safetext"},
	"internal/safetext":                           {},
	"internal/nearest":                            {},
	"internal/project":                            {"internal/document", "internal/finding", "internal/hint", "internal/nearest"},
	"internal/output":                             {"internal/hint"},
	"internal/document":                           {"internal/hint", "internal/finding"},
	"internal/report":                             {"internal/finding", "internal/graph", "internal/safetext"},
	"internal/scaffold":                           {"internal/hint", "internal/output", "internal/project"},
	"internal/assert":                             {"internal/document", "internal/finding"},
	"internal/suppress":                           {"internal/document", "internal/finding"},
	"internal/diff":                               {"internal/catalog", "internal/safetext"},
	"internal/bundle":                             {"internal/hint", "internal/document", "internal/finding", "internal/output", "internal/safetext"},
	"internal/cache":                              {"internal/hint"},
	"internal/catalog":                            {"internal/hint", "internal/cache", "internal/document", "internal/finding", "internal/bundle", "internal/image", "internal/safetext"},
	"internal/catalog/registry":                   {"internal/catalog", "internal/document"},
	"internal/image":                              {"internal/hint", "internal/bundle", "internal/output"},
	"internal/subscription":                       {"internal/hint", "internal/bundle", "internal/catalog", "internal/safetext"},
	"internal/revision":                           {"internal/hint"},
	"internal/fuzz":                               {},
	"internal/start":                              {},
	"internal/graph":                              {"internal/hint", "internal/finding", "internal/catalog", "internal/safetext"},
	"internal/check":                              {"internal/hint", "internal/document", "internal/finding", "internal/bundle", "internal/catalog", "internal/diff", "internal/graph", "internal/nearest"},
	"internal/cluster":                            {"internal/hint"},
	"internal/cluster/certificates":               {},
	"internal/cluster/embedded":                   {"internal/hint", "internal/cache", "internal/progress", "internal/catalog", "internal/catalog/registry", "internal/cluster", "internal/cluster/certificates", "internal/image", "internal/cluster/embedded/node", "internal/cluster/embedded/relay", "internal/cluster/embedded/sandbox", "internal/cluster/embedded/services"},
	"internal/cluster/existing":                   {"internal/hint", "internal/catalog", "internal/catalog/registry", "internal/cluster", "internal/image"},
	"internal/cluster/kind":                       {"internal/hint", "internal/cache", "internal/progress", "internal/bundle", "internal/catalog", "internal/catalog/registry", "internal/cluster", "internal/cluster/certificates", "internal/image"},
	"internal/cluster/kind/internal/guest":        {},
	"internal/cluster/kind/internal/node":         {"internal/cache", "internal/progress", "internal/cluster/embedded"},
	"internal/cluster/embedded/node":              {"internal/cluster", "internal/cluster/embedded/sandbox", "internal/cluster/embedded/services"},
	"internal/cluster/embedded/relay":             {},
	"internal/cluster/embedded/services":          {"internal/cluster/embedded/relay"},
	"internal/cluster/embedded/sandbox":           {"internal/hint"},
	"internal/cluster/embedded/internal/artifact": {"internal/hint", "internal/image", "internal/progress", "internal/cluster/embedded", "internal/cluster/embedded/sandbox"},
	"internal/cluster/embedded/internal/pack":     {},
	"internal/cluster/embedded/internal/pins":     {},
	"internal/diagnosis":                          {"internal/catalog", "internal/definition", "internal/lifecycle", "internal/lifecycle/olmv0", "internal/lifecycle/olmv1", "internal/resolver"},
	"internal/resolver":                           {"internal/catalog", "internal/catalog/registry"},
	"internal/installation":                       {"internal/lifecycle/olmv1", "internal/catalog", "internal/cluster", "internal/hint", "internal/lifecycle", "internal/lifecycle/olmv0", "internal/progress"},
	"internal/rbac":                               {"internal/report"},
	"internal/rehearsal":                          {"internal/catalog", "internal/diagnosis", "internal/graph", "internal/hint", "internal/lifecycle", "internal/lifecycle/olmv0", "internal/progress", "internal/definition", "internal/walk"},
	"internal/leftover":                           {"internal/lifecycle/olmv1", "internal/cluster", "internal/document", "internal/hint", "internal/lifecycle", "internal/lifecycle/olmv0"},
	"internal/managerlog":                         {},
	"internal/marker":                             {"internal/hint", "internal/bundle", "internal/finding"},
	"internal/lifecycle":                          {"internal/catalog", "internal/cluster"},
	"internal/lifecycle/olmv0":                    {"internal/hint", "internal/catalog", "internal/cluster", "internal/lifecycle"},
	"internal/lifecycle/olmv1":                    {"internal/hint", "internal/catalog", "internal/cluster", "internal/image", "internal/lifecycle"},
	"internal/code":                               {"internal/finding"},
	"internal/compare":                            {},
	"internal/definition":                         {"internal/compare"},
	"internal/undo":                               {},
	"internal/observe":                            {"internal/cluster", "internal/code", "internal/compare", "internal/definition", "internal/lifecycle", "internal/managerlog", "internal/report"},
	"internal/fault":                              {"internal/cluster", "internal/code", "internal/definition", "internal/lifecycle", "internal/observe", "internal/progress", "internal/undo"},
	"internal/judge":                              {"internal/code", "internal/compare", "internal/definition", "internal/fault", "internal/finding", "internal/lifecycle", "internal/managerlog", "internal/observe", "internal/report"},
	"internal/walk":                               {"internal/assert", "internal/catalog", "internal/cluster", "internal/code", "internal/compare", "internal/definition", "internal/fault", "internal/finding", "internal/fuzz", "internal/graph", "internal/hint", "internal/judge", "internal/lifecycle", "internal/managerlog", "internal/observe", "internal/progress", "internal/rbac", "internal/report", "internal/undo"},
}

// imports returns what each package below dir imports, by import path.
func imports(t *testing.T, patterns ...string) map[string][]string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list", "-f", `{{.ImportPath}} {{join .Imports " "}}`}, patterns...)...).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	found := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		found[words[0]] = words[1:]
	}
	return found
}

func TestArrows(t *testing.T) {
	seen := map[string]bool{}
	for path, imported := range imports(t, module+"internal/...") {
		name := strings.TrimPrefix(path, module)
		seen[name] = true
		if name == "internal/cli" {
			continue // the outermost: it may import all others
		}
		arrows, known := allowed[name]
		if !known {
			t.Errorf("%s is not in the list of packages: say what it may import", name)
			continue
		}
		for _, target := range imported {
			if own, ok := strings.CutPrefix(target, module); ok && !slices.Contains(arrows, own) {
				t.Errorf("%s imports %s, which is no arrow of the architecture", name, own)
			}
		}
	}
	for name := range allowed {
		if !seen[name] {
			t.Errorf("%s is in the list of packages and not in the tree", name)
		}
	}
}

func TestCobraStaysInTheCLI(t *testing.T) {
	for path, imported := range imports(t, module+"...") {
		if path != module+"internal/cli" && slices.Contains(imported, "github.com/spf13/cobra") {
			t.Errorf("%s imports cobra", path)
		}
	}
}

func TestToolAndOperatorStayApart(t *testing.T) {
	for path, imported := range imports(t, module+"operator/...") {
		for _, target := range imported {
			if strings.HasPrefix(target, module) && !strings.HasPrefix(target, module+"operator/") && target != module+"pkg/leader" && target != module+"pkg/storagemigration" {
				t.Errorf("the operator's package %s imports the tool's %s", path, target)
			}
		}
	}
}

// TestLeaderStandsAlone: an operator that imports pkg/leader gets nothing of the tool, and only client-go.
func TestLeaderStandsAlone(t *testing.T) {
	for _, target := range imports(t, module+"pkg/leader")[module+"pkg/leader"] {
		if strings.HasPrefix(target, module) || strings.HasPrefix(target, "sigs.k8s.io/controller-runtime") {
			t.Errorf("pkg/leader imports %s", target)
		}
	}
}

// TestLeftOut: what makes the binary larger and its start slower, and is needed for nothing that olmkit does, stays out of it.
func TestLeftOut(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "../../cmd/olmkit").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for _, path := range []string{
		"k8s.io/client-go/kubernetes/fake", // with all of Kubernetes' kinds once more
		"github.com/operator-framework/operator-lifecycle-manager/pkg/api/client/clientset/versioned/fake",
	} {
		if slices.Contains(strings.Fields(string(out)), path) {
			t.Errorf("cmd/olmkit depends on %s", path)
		}
	}
}
