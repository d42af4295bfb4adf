package cli

import (
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/fault"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
)

// TestExplainWords: each word of the glossary, and each phase, is explained by every spelling of its.
func TestExplainWords(t *testing.T) {
	t.Parallel()
	if n := len(terms()); n < 60 {
		t.Errorf("the glossary has only %d words", n)
	}
	for _, m := range terms() {
		for _, name := range m.names() {
			var out strings.Builder
			if err := explain(&out, []string{name}, false); err != nil || !strings.Contains(out.String(), m.meaning) || strings.Contains(m.meaning, "](") {
				t.Errorf("%s: %v\n%s", name, err, out.String())
			}
		}
	}
	for _, phase := range fault.Phases(&olmv0.Client{}) {
		if len(termsOf(phase)) == 0 {
			t.Errorf("phase %s is not in docs/glossary.md", phase)
		}
	}
	for _, phase := range []string{"Pending", "InstallReady", "installing", "Succeeded", "Failed", "Replacing", "Deleting", "csv", "install plan created", "HOT-LOOP"} {
		if len(termsOf(phase)) == 0 {
			t.Errorf("%s is not explained", phase)
		}
	}
	var out strings.Builder
	err := explain(&out, []string{"instalplan"}, false)
	if code := complain(&out, err, false); code != exitUsage || !strings.Contains(out.String(), "nearest: InstallPlan") {
		t.Errorf("exit code %d\n%s", code, out.String())
	}
}
