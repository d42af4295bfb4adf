package scenario_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/graph"
	"github.com/olmkit/olmkit/internal/report"
)

// difference is something that OLM v0 and OLM v1 do not do alike, with releases that show it.
type difference struct {
	packaged
	Name  string   `json:"name"`
	About string   `json:"about"` // what is done differently
	V0    verdict  `json:"v0"`
	V1    verdict  `json:"v1"`
	Flags []string `json:"flags"` // of 'olmkit upgrade test'
}

// verdict is what olmkit has to say under one version of OLM.
type verdict struct {
	Says  string                 `json:"says"`  // what that version does
	Takes map[string]graph.Taken `json:"takes"` // when it takes each upgrade that 'upgrade plan' lays side by side, as "1.0.0 → 1.1.0"
	// Errors are the codes of all errors of 'catalog validate', and Notes some of 'upgrade plan' for this version and for no channel.
	Errors []string `json:"errors"`
	Notes  []string `json:"notes"`

	Hops     []expectedHop   `json:"hops"`     // all of 'upgrade test'; where neither version has any nothing is walked
	Findings []expectedFound `json:"findings"` // of the walk, among others; but no error that is not expected here
	Either   []string        `json:"either"`   // codes of which the walk finds one: which of them is a matter of the moment
	May      []string        `json:"may"`      // codes of errors that there may be besides
}

// walked reports whether a walk shows d.
func (d difference) walked() bool { return len(d.V0.Hops)+len(d.V1.Hops) > 0 }

// differences reads differences.yaml.
func differences(t *testing.T) []difference {
	t.Helper()
	data, err := os.ReadFile("differences.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var list []difference
	if err := yaml.UnmarshalStrict(data, &list); err != nil {
		t.Fatal(err)
	}
	for i := range list {
		if list[i].Operator == "" {
			list[i].Operator = tea
		}
	}
	return list
}

// written returns the folder of d's catalog.
func (d difference) written(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "catalog.yaml"), d.catalog(t, d.Channels), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestStaticDifferences holds what is said of each difference without a cluster against what has to be said, under either version.
func TestStaticDifferences(t *testing.T) {
	for _, d := range differences(t) {
		t.Run(d.Name, func(t *testing.T) {
			dir := d.written(t)
			plan := reportOf(t, "upgrade", "plan", dir, "--olm", "v0,v1", "--edges", "all")
			for version, want := range map[string]verdict{"v0": d.V0, "v1": d.V1} {
				if want.Takes != nil {
					if diff := cmp.Diff(want.Takes, takes(plan, version)); diff != "" {
						t.Errorf("upgrades under OLM %s (-want +got):\n%s", version, diff)
					}
				}
				judged := reportOf(t, "catalog", "validate", dir, "--olm", version)
				if diff := cmp.Diff(want.Errors, codes(judged.Findings, finding.Error)); diff != "" {
					t.Errorf("errors under OLM %s (-want +got):\n%s\n%v", version, diff, judged.Findings)
				}
				notes := codes(reportOf(t, "upgrade", "plan", dir, "--olm", version).Findings, finding.Info)
				for _, code := range want.Notes {
					if !slices.Contains(notes, code) {
						t.Errorf("the plan under OLM %s has no %s: %v", version, code, notes)
					}
				}
			}
		})
	}
}

// takes says when a version of OLM takes each upgrade of a plan for both.
func takes(plan report.Report, version string) map[string]graph.Taken {
	said := map[string]graph.Taken{}
	for _, c := range plan.Compared {
		for _, s := range c.Sides {
			if s.OLM == version {
				said[versionOf(c.From)+" → "+versionOf(c.To)] = s.Takes
			}
		}
	}
	return said
}

// codes returns each code once of the findings that are at least so severe, sorted; nil for none.
func codes(findings []finding.Finding, least finding.Severity) []string {
	seen := map[string]bool{}
	for _, f := range findings {
		if f.Severity.AtLeast(least) {
			seen[f.Code] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// reportOf returns the report of a command that judges, whatever it judges.
func reportOf(t *testing.T, args ...string) report.Report {
	t.Helper()
	out, errOut, code := olmkit(t, "", append(args, "-o", "json")...)
	var r report.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v: exit code %d: %v\n%s", args, code, err, errOut)
	}
	return r
}

// The table of the differences stands in docs/olm-v1.md between these.
const (
	tableBegins = "## What differs from OLM v0\n\n"
	tableEnds   = "\nBesides,"
)

// TestDocsOfDifferences holds the table of differences in docs/olm-v1.md against differences.yaml; -update writes it anew.
func TestDocsOfDifferences(t *testing.T) {
	file := filepath.Join(root, "docs", "olm-v1.md")
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(page), tableBegins)
	was, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		t.Fatalf("%s has no table between %q and %q", file, tableBegins, tableEnds)
	}
	table := differencesTable(differences(t))
	if *update {
		if err := os.WriteFile(file, []byte(before+tableBegins+table+tableEnds+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(was, table); diff != "" {
		t.Errorf("%s (-want +got; write it anew with -update):\n%s", file, diff)
	}
}

// differencesTable has a line for each difference, with what olmkit says of it and the tests that show it.
func differencesTable(list []difference) string {
	table := "[Releases](../test/scenario/differences.yaml) show each of these: a plan or the checks without a cluster, or a *walk* under both versions.\n\n" +
		"| | OLM v0 | OLM v1 | olmkit says | shown by |\n|---|---|---|---|---|\n"
	for _, d := range list {
		by := "`" + d.Name + "`"
		if d.walked() {
			by += ", walk"
		}
		table += fmt.Sprintf("| %s | %s | %s | %s | %s |\n", d.About, d.V0.Says, d.V1.Says, d.said(), by)
	}
	return table
}

// said names the codes by which olmkit tells d, or the command that draws it.
func (d difference) said() string {
	var found []expectedFound
	for _, v := range []verdict{d.V0, d.V1} {
		for _, code := range slices.Concat(v.Errors, v.Notes, v.Either) {
			found = append(found, expectedFound{Code: code})
		}
		found = append(found, v.Findings...)
	}
	if len(found) == 0 {
		return "`upgrade plan --olm v0,v1`"
	}
	return links(found)
}
