package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/finding"
)

// folder is a report on n bundles of each of two packages, all with the same warning and note.
func folder(n int) *Report {
	r := &Report{APIVersion: APIVersion, Kind: KindValidate, Result: Passed, Titles: map[string]string{"CSV031": "a container may run as root"}}
	for _, pkg := range []string{"tea", "cup"} {
		for i := range n {
			name := fmt.Sprintf("%s.v%d", pkg, i+1)
			about := finding.Subject{Package: pkg, From: name, Object: "ClusterServiceVersion/" + name}
			r.Findings = append(r.Findings,
				finding.Finding{Code: "CSV003", Severity: finding.Warning, Subject: about, Location: &finding.Location{File: name + "/csv.yaml", Line: 3}, Message: name + " has no icon", Cause: "why", Fix: "what"},
				finding.Finding{Code: "CSV031", Severity: finding.Info, Subject: about, Message: name + " may run as root"})
		}
	}
	r.Findings = append(r.Findings, finding.Finding{Code: "CSV001", Severity: finding.Error, Subject: finding.Subject{Package: "tea", From: "tea.v2"}, Message: "tea.v2 is broken"})
	return r
}

// Bundles that have the same read as one finding with a count, the worst first, whatever the package.
func TestGroups(t *testing.T) {
	t.Parallel()
	for verbose, want := range map[bool]string{
		false: `passed: 1 error, 16 warnings, 16 notes

package tea
  error CSV001 (tea.v2)
    tea.v2 is broken

package cup
  warning CSV003 cup.v1/csv.yaml:3 (cup.v1, ClusterServiceVersion/cup.v1)
    cup.v1 has no icon
    the same in 7 more bundles: cup.v2, cup.v3, cup.v4, cup.v5, cup.v6, and 2 more
    cause: why
    fix:   what

package tea
  warning CSV003 tea.v1/csv.yaml:3 (tea.v1, ClusterServiceVersion/tea.v1)
    tea.v1 has no icon
    the same in 7 more bundles: tea.v2, tea.v3, tea.v4, tea.v5, tea.v6, and 2 more
    cause: why
    fix:   what

notes (-v shows them)
  CSV031: 16 in 2 packages (a container may run as root)
`,
		true: `
    cup.v1 may run as root
    the same in 7 more bundles: cup.v2, cup.v3, cup.v4, cup.v5, cup.v6, cup.v7, cup.v8
`,
	} {
		r := folder(8)
		r.Verbose = verbose
		var b bytes.Buffer
		if err := Text(&b, r, false); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); !verbose && got != want || verbose && !strings.Contains(got, want) {
			t.Errorf("verbose %t:\n%s", verbose, got)
		}
	}
}

func TestGroupEqual(t *testing.T) {
	t.Parallel()
	one := finding.Finding{Code: "EDG006", Severity: finding.Warning, Subject: finding.Subject{Package: "tea", From: "tea.v1", To: "tea.v2"}, Message: "tea.v2 has no webhook, which tea.v1 has"}
	change := func(change func(*finding.Finding)) finding.Finding {
		f := one
		f.Subject.From, f.Subject.To, f.Message = "tea.v2", "tea.v3", "tea.v3 has no webhook, which tea.v2 has"
		change(&f)
		return f
	}
	for what, test := range map[string]struct {
		change func(*finding.Finding)
		same   string
	}{
		"the same":             {func(*finding.Finding) {}, "the same in 1 more upgrade: tea.v2 → tea.v3"},
		"the same place":       {func(f *finding.Finding) { *f = one }, "the same in 1 more upgrade: tea.v1 → tea.v2"},
		"of a bundle":          {func(f *finding.Finding) { f.Subject.To = "" }, ""},
		"another package":      {func(f *finding.Finding) { f.Subject.Package = "cup" }, ""},
		"another channel":      {func(f *finding.Finding) { f.Subject.Channel = "beta" }, ""},
		"another object":       {func(f *finding.Finding) { f.Subject.Object = "Deployment/tea" }, ""},
		"another message":      {func(f *finding.Finding) { f.Message += "s" }, ""},
		"the names swapped":    {func(f *finding.Finding) { f.Message = "tea.v2 has no webhook, which tea.v3 has" }, ""},
		"another cause":        {func(f *finding.Finding) { f.Cause = "so" }, ""},
		"another fix":          {func(f *finding.Finding) { f.Fix = "so" }, ""},
		"another severity":     {func(f *finding.Finding) { f.Severity = finding.Error }, ""},
		"suppressed":           {func(f *finding.Finding) { f.Suppressed = &finding.Suppression{Reason: "so", Until: "2027-01-31"} }, ""},
		"of the catalog alone": {func(f *finding.Finding) { f.Subject, f.Message = finding.Subject{Package: "tea"}, one.Message }, ""},
	} {
		groups := groupEqual([]finding.Finding{one, change(test.change)})
		if got := groups[0].same(false); got != test.same || test.same == "" && len(groups) != 2 {
			t.Errorf("%s: %d groups, %q", what, len(groups), got)
		}
	}
	catalog := finding.Finding{Code: "CAT018", Severity: finding.Warning, Subject: finding.Subject{Package: "tea"}, Message: "a field is unknown"}
	if groups := groupEqual([]finding.Finding{catalog, catalog}); len(groups) != 2 {
		t.Errorf("two places of a catalog are %d group", len(groups))
	}
}

// A validation that is longer than a screen ends with its verdict and the first failure; a short one does not repeat them.
func TestVerdictAtEnd(t *testing.T) {
	t.Parallel()
	for long, want := range map[bool]int{false: 1, true: 2} {
		r := folder(1)
		r.Result = Failed
		if long {
			for i := range screen {
				r.Findings = append(r.Findings, finding.Finding{Code: "CSV004", Severity: finding.Warning, Message: fmt.Sprint("number ", i)})
			}
		}
		var b bytes.Buffer
		if err := Text(&b, r, false); err != nil {
			t.Fatal(err)
		}
		got := b.String()
		if !strings.HasPrefix(got, "failed: 1 error") || strings.Count(got, "failed: 1 error") != want || strings.Contains(got, "\nfirst failure: tea.v2\n") != long {
			t.Errorf("long %t:\n%s", long, got)
		}
	}
}

// Every format for people tells of those that say the same once, with a count, and of notes a line for each code; with
// everything told, each note too.
func TestGroupsInEveryFormat(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]struct{ same, note, told string }{
		"markdown": {"tea.v1 has no icon<br>the same in 7 more bundles: tea.v2, tea.v3, tea.v4, tea.v5, tea.v6, and 2 more", "\n- CSV031: 16 in 2 packages (a container may run as root)\n", "tea.v1 may run as root"},
		"junit":    {"tea.v1 has no icon&#xA;  the same in 7 more bundles: tea.v2, tea.v3, tea.v4, tea.v5, tea.v6, tea.v7, tea.v8&#xA;", "CSV031: 16 in 2 packages (a container may run as root)&#xA;", "tea.v1 may run as root"},
		"html":     {"<details><summary>the same in 7 more bundles</summary><ul class=\"plain\"><li>tea.v2</li>", `<span class="says">tea.v1 may run as root</span>`, "tea.v1 may run as root"},
	} {
		for _, verbose := range []bool{false, true} {
			r := folder(8)
			r.Verbose = verbose
			var b bytes.Buffer
			if err := Write(&b, format, r, false); err != nil {
				t.Fatal(err)
			}
			got := b.String()
			if !strings.Contains(got, want.same) || strings.Contains(got, "tea.v2 has no icon") {
				t.Errorf("%s does not say %q:\n%s", format, want.same, got)
			}
			if strings.Contains(got, want.note) == (verbose && format != "html") {
				t.Errorf("%s, verbose %t: %q:\n%s", format, verbose, want.note, got)
			}
			if strings.Contains(got, want.told) != (verbose || format == "html") {
				t.Errorf("%s, verbose %t: %q:\n%s", format, verbose, want.told, got)
			}
		}
	}
}

// What is found in an encoded manifest is shown as its lines, and where in which object they are.
func TestEncodedInEveryFormat(t *testing.T) {
	t.Parallel()
	r := &Report{APIVersion: APIVersion, Kind: KindValidate, Result: Failed, Findings: []finding.Finding{{
		Code: "CSV001", Severity: finding.Error, Subject: finding.Subject{Package: "tea", From: "tea.v1"}, Message: "broken",
		Location: &finding.Location{File: "tea.yaml", Line: 7, Path: "spec.version", Object: "ClusterServiceVersion/tea.v1", Excerpt: "  version: 1\n  icon: <b>\n"},
	}}}
	for format, want := range map[string][]string{
		"markdown": {"at spec.version of ClusterServiceVersion/tea.v1 in bundle tea.v1<br><code>&nbsp;&nbsp;version: 1</code><br><code>&nbsp;&nbsp;icon: &lt;b&gt;</code>"},
		"junit":    {"at spec.version of ClusterServiceVersion/tea.v1 in bundle tea.v1", "|   icon: &lt;b&gt;"},
		"html":     {"at spec.version of ClusterServiceVersion/tea.v1 in bundle tea.v1", "  icon: &lt;b&gt;\n"},
	} {
		var b bytes.Buffer
		if err := Write(&b, format, r, false); err != nil {
			t.Fatal(err)
		}
		for _, part := range want {
			if !strings.Contains(b.String(), part) {
				t.Errorf("%s does not have %q:\n%s", format, part, b.String())
			}
		}
	}
}
