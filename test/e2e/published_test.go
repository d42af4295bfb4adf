//go:build linux

package e2e_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/test/support/trace"
)

// unpackPublished unpacks folders of the published bundles, or all of them, and returns where they are.
func unpackPublished(t *testing.T, folders ...string) string {
	t.Helper()
	dir := t.TempDir()
	unpackArchive(t, dir, "real-bundles.tar.xz", folders...)
	return dir
}

// unpackArchive unpacks folders of an archive of what others published, which lies beside the repository where its own CI
// runs, into dir.
func unpackArchive(t *testing.T, dir, name string, folders ...string) {
	t.Helper()
	archive := filepath.Join(root, "..", "shared", "data", name)
	if _, err := os.Stat(archive); errors.Is(err, fs.ErrNotExist) {
		if os.Getenv("CI") != "" {
			t.Fatalf("%s is missing: what is published is tested in CI", archive)
		}
		t.Skipf("there is no %s", archive)
	}
	if out, err := exec.Command("tar", append([]string{"xJf", archive, "-C", dir}, folders...)...).CombinedOutput(); err != nil {
		t.Fatalf("unpack %s: %v\n%s", archive, err, out)
	}
}

// found is a finding; its code and message are regular expressions.
type found struct{ code, severity, message string }

func (w found) fits(f jsonFinding) bool {
	return w.has(f.Code) && w.severity == f.Severity && regexp.MustCompile(w.message).MatchString(f.Message)
}

func (w found) has(code string) bool {
	return regexp.MustCompile("^(" + w.code + ")$").MatchString(code)
}

// TestPublished walks upgrades of operators that others made. Their images cannot be had here, so their pods are
// simulated; what OLM and the API server make of their bundles is real.
func TestPublished(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pkg     string
		bundles []string // folders
		channel []any    // entries
		code    int
		hops    []string // result of each
		found   []found
	}{
		{
			pkg: "couchbase-enterprise-certified-rhmp", bundles: []string{"2.9.0-1", "2.9.1-1", "2.9.2-2"},
			channel: []any{"2.9.0-1", "2.9.1-1", "2.9.2-2"}, // as their CSVs say
			code:    0, hops: []string{"passed", "passed"},
			found: []found{
				{"U311", "warning", `spec\.compressionType: Unsupported value: "Snappy"`},
				{"U314", "warning", `spec\.logRetentionCount`},
				{"U312", "info", "CouchbaseEncryptionKey has no sample"},
			},
		},
		{
			// 1.0.2 brought the conversion webhook, and another selector for the Deployment: it is a matter of the moment which of
			// them OLM meets first. Its skipRange covers 0.8.1; what stands at the end of a channel has to replace something, too.
			pkg: "datadog-operator-certified-rhmp", bundles: []string{"0.8.1", "1.0.2"},
			channel: []any{"0.8.1", map[string]any{"version": "1.0.2", "skipRange": "<1.0.2"}},
			code:    3, hops: []string{"failed"},
			found: []found{
				{"U103|U111", "error", `Deployment\.apps "datadog-operator-manager" is invalid: spec\.selector|conversion webhook for .* failed`},
				{"U901", "warning", "its conversion webhook runs in a simulated pod"},
			},
		},
	} {
		if testing.Short() && len(test.hops) > 1 { // the second shows nothing that the first does not
			test.bundles, test.channel, test.hops = test.bundles[:2], test.channel[:2], test.hops[:1]
		}
		t.Run(test.pkg, func(t *testing.T) {
			t.Parallel()
			var folders []string
			for _, b := range test.bundles {
				folders = append(folders, test.pkg+"/"+b)
			}
			dir := unpackPublished(t, folders...)
			template, err := json.Marshal(map[string]any{
				"schema": "olmkit.template", "package": test.pkg, "defaultChannel": "stable",
				"bundles": folders, "channels": map[string]any{"stable": test.channel},
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "template.yaml"), template, 0o600); err != nil {
				t.Fatal(err)
			}
			must(t, "catalog", "build", filepath.Join(dir, "template.yaml"), "--output-file", filepath.Join(dir, "catalog", "catalog.yaml"))

			before := trace.New(t)
			file := filepath.Join(dir, "report.json")
			said := run(t, []string{before.Env()}, "upgrade", "test", filepath.Join(dir, "catalog"), "--timeout", "8m", "--report", "json="+file)
			t.Logf("%s\n%s", said.errOut, said.out)
			if said.code != test.code {
				t.Errorf("exit code %d, want %d", said.code, test.code)
			}
			before.Check(t)
			r := readReport(t, file)
			var results []string
			all := r.Findings
			for _, i := range r.Installations {
				all = append(all, i.Findings...)
			}
			for _, h := range r.Hops {
				results = append(results, h.Result)
				all = append(all, h.Findings...)
				if len(h.Simulated) == 0 {
					t.Errorf("the hop to %s does not say whose pods were simulated", h.To)
				}
			}
			if !slices.Equal(results, test.hops) {
				t.Errorf("the hops' results are %v, want %v", results, test.hops)
			}
			if !slices.ContainsFunc(r.Cluster.Limitations, func(s string) bool { return strings.Contains(s, "simulated") }) {
				t.Errorf("what the walk did not prove names no simulated pods: %q", r.Cluster.Limitations)
			}
			verdict := regexp.MustCompile(`(?m)^(passed|failed)[^:\n]*: .*$`).FindString(said.out)
			if !strings.Contains(verdict, "simulated") || test.code == 0 && !strings.HasPrefix(verdict, "passed, operator not run") {
				t.Errorf("the verdict says nothing of simulated pods: %q", verdict)
			}
			for _, want := range test.found {
				if !slices.ContainsFunc(all, want.fits) {
					t.Errorf("nothing says %+v", want)
				}
			}
			for _, f := range all {
				if f.Severity == "error" && !slices.ContainsFunc(test.found, func(w found) bool { return w.has(f.Code) }) {
					t.Errorf("an error that is not expected: %+v", f)
				}
			}
		})
	}
}
