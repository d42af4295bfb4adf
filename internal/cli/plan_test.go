package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/graph"
	"github.com/olmkit/olmkit/internal/report"
)

// TestDensePlan: of a channel whose entries all reach each other 'upgrade plan' lists every hop, as text and as JSON, or says
// how many it leaves out; 'upgrade test' says that there are too many to walk before it starts anything.
func TestDensePlan(t *testing.T) {
	t.Parallel()
	const entries, hops = 102, 102 * 101
	var b strings.Builder
	b.WriteString("schema: olm.package\nname: tea\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: tea\nname: stable\nentries:\n")
	for i := range entries {
		fmt.Fprintf(&b, "- {name: tea.v1.%d.0, replaces: tea.v1.%d.0, skipRange: \">=1.0.0 <2.0.0\"}\n", i, i-1)
	}
	for i := range entries {
		fmt.Fprintf(&b, "---\nschema: olm.bundle\npackage: tea\nname: tea.v1.%d.0\nimage: example.com/tea:v1.%d.0\nproperties:\n- type: olm.package\n  value: {packageName: tea, version: 1.%d.0}\n", i, i, i)
	}
	catalog := filepath.Join(t.TempDir(), "catalog.yaml")
	if err := os.WriteFile(catalog, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(want int, args ...string) (out, err string) {
		t.Helper()
		var stdout, stderr strings.Builder
		if code := Run(t.Context(), Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr}, append(args, catalog)); code != want {
			t.Fatalf("%v: exit code %d: %s", args, code, &stderr)
		}
		return stdout.String(), stderr.String()
	}
	text, _ := run(exitPassed, "upgrade", "plan", "--edges", "all")
	if n := strings.Count(text, " → "); n < hops || !strings.Contains(text, fmt.Sprintf("%d hops", hops)) {
		t.Errorf("text lists %d hops, not %d", n, hops)
	}
	printed, _ := run(exitPassed, "upgrade", "plan", "--edges", "all", "-o", "json")
	var r report.Report
	if err := json.Unmarshal([]byte(printed), &r); err != nil || len(r.Hops) != hops {
		t.Errorf("JSON lists %d hops, not %d (%v)", len(r.Hops), hops, err)
	}
	for _, format := range []string{"markdown", "html", "junit"} {
		page, _ := run(exitPassed, "upgrade", "plan", "--edges", "all", "-o", format)
		if more := fmt.Sprint(hops - graph.MostHops); !strings.Contains(page, more+" hops more") && !strings.Contains(page, more+" more") && !strings.Contains(page, fmt.Sprintf("%d hops", hops)) {
			t.Errorf("%s does not say that there are %s more hops", format, more)
		}
	}
	_, complaint := run(exitUsage, "upgrade", "test", "--edges", "all")
	if !strings.Contains(complaint, fmt.Sprintf("%d hops", hops)) || !strings.Contains(complaint, "at least 2 shards") {
		t.Errorf("the walk is refused so: %s", complaint)
	}
	cut, _ := run(exitPassed, "upgrade", "plan", "--edges", "all", "--max-hops", "3")
	if !strings.Contains(cut, fmt.Sprintf("left out: %d hops", hops-3)) || !strings.Contains(cut, fmt.Sprintf("and %d more", hops-3-graph.MostLeftOut)) {
		t.Errorf("the plan of 3 hops is %s", cut)
	}
}
