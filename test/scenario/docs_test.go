package scenario_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olmkit/olmkit/internal/check"
)

var update = flag.Bool("update", false, "write docs/failures.md anew")

const intro = `# Failures that happened

Upgrades and bundles of real operators that failed, with public reports. [test/scenario](../test/scenario) reproduces each as a
small chain of the memcached operator, and checks that the same chain without the defect passes. *Before* is what
` + "`olmkit catalog validate`" + ` finds before the installation, *during the upgrade* what ` + "`olmkit upgrade test`" + ` finds on a cluster. An
empty cell means that only the other one finds it, or that the walk is not run.

| failure | what happened | before | during the upgrade | scenario |
|---|---|---|---|---|
`

const introDefects = `
## Defects of a release

Releases of the memcached operator and of the [Redis operator](../examples/redis-operator) with one defect each, run with the
default flags unless the scenario sets others. The same upgrade without the defect passes.

| defect | before | during the upgrade | scenario |
|---|---|---|---|
`

const introCommands = `
## Failures of generators

Failures of tools that package operators. [A test](../test/scenario/commands_test.go) checks what olmkit does instead.

| failure | what happened | olmkit |
|---|---|---|
`

// TestDocs holds docs/failures.md against the scenarios; -update writes it anew.
func TestDocs(t *testing.T) {
	var rows, defects []string
	for _, s := range scenarios(t) {
		if s.Operator != pkg || len(s.Failures) == 0 {
			seen := links(s.Expect.Findings)
			if s.Expect.Pending != "" {
				seen = "not yet: " + s.Expect.Pending
			}
			defects = append(defects, fmt.Sprintf("| %s | %s | %s | [%s](../test/scenario/testdata/%[4]s/scenario.yaml) |\n",
				strings.Join(strings.Fields(s.About), " "), links(s.Expect.Static), seen, s.name()))
		}
		for _, f := range s.Failures {
			rows = append(rows, fmt.Sprintf("| [%s](%s) | %s | %s | %s | [%s](../test/scenario/testdata/%[6]s/scenario.yaml) |\n",
				f.Name, f.URL, f.What, links(s.Expect.Static), links(s.Expect.Findings), s.name()))
		}
	}
	slices.SortFunc(rows, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	text := intro + strings.Join(rows, "") + introDefects + strings.Join(defects, "") + introCommands
	for _, f := range commandFailures {
		text += fmt.Sprintf("| [%s](%s) | %s | %s |\n", f.Name, f.URL, f.What, f.Instead)
	}

	file := filepath.Join(root, "docs", "failures.md")
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s (-want +got; write it anew with -update):\n%s", file, diff)
	}
}

// links names each code once, with a link to its page.
func links(found []expectedFound) string {
	var list []string
	for _, f := range found {
		page := check.Family(f.Code)
		list = append(list, fmt.Sprintf("[%s](checks/%s.md#%s)", f.Code, page, strings.ToLower(f.Code)))
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), ", ")
}
