package main

import (
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/report"
)

func TestPage(t *testing.T) {
	hop := func(from, to string, faults ...report.Fault) report.Hop {
		return report.Hop{Package: "p", From: "p." + from, To: "p." + to, Faults: faults}
	}
	good := report.Fault{Name: "kill-operator", Phase: "installing", Outcome: "degraded", Expected: "degraded", Result: report.Passed}
	bad := report.Fault{Name: "kill-operator", Phase: "installing", Outcome: "broken", Expected: "degraded", Codes: []string{"U302"}, Result: report.Failed}
	text := page([]report.Hop{hop("v2", "v3", bad), hop("v1", "v2"), hop("v1", "v2", good)})
	for _, want := range []string{
		"| fault | expected | v1 → v2 | v2 → v3 |\n|---|---|---|---|\n",
		"| `kill-operator@installing` | degraded | degraded | **broken** (U302) |\n",
		"\n## Under OLM v1\n", "| `kill-catalogd` | before |", "| `kill-operator` | applied |",
		"\n2 hops under faults, 1 of them worse than expected.\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "`kill-etcd@") {
		t.Error("it has a line for a fault that no hop was walked under")
	}
}
