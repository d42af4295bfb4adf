package judge

import (
	"testing"

	"github.com/olmkit/olmkit/test/support/expect"
)

// TestGiven tells what of a workload of the user's is another; not what is new.
func TestGiven(t *testing.T) {
	was := map[string]string{"Deployment shop spec.replicas": "3", "Deployment shop annotations.a b": "1", "Deployment tea spec.replicas": "1"}
	with := func(path, value string) map[string]string {
		is := map[string]string{"Deployment shop labels.new": "1"}
		for k, v := range was {
			is[k] = v
		}
		if is[path] = value; value == "" {
			delete(is, path)
		}
		return is
	}
	says := "the operator of v2 makes something else of it than that of v1, though nobody changed what it is named by: "
	expect.Findings(t, Given("v1", "v2", was, with("Deployment tea spec.replicas", "1")))
	expect.Findings(t, Given("v1", "v2", was, with("Deployment shop spec.replicas", "1")), "warning U505 Deployment/shop: "+says+"spec.replicas was 3 and is 1")
	expect.Findings(t, Given("v1", "v2", was, with("Deployment tea spec.replicas", "")), "warning U505 Deployment/tea: "+says+"spec.replicas was 1 and is gone")
	expect.Findings(t, Given("v1", "v2", was, with("Deployment shop annotations.a b", "")))
}

// TestActsOtherwise tells what is made otherwise of a target, or not at all; not what is new, nor where nothing is known.
func TestActsOtherwise(t *testing.T) {
	with := func(acted map[string]string) New { return New{Sample: "Pot/n/a", Acted: acted} }
	const at = "Deployment shop spec.replicas"
	was, says := with(map[string]string{at: "3"}), "error U514 Pot/n/a: v2 makes something else than v1 of what a new object like it names: Deployment shop spec.replicas is "
	expect.Findings(t, actsOtherwise("v1", "v2", was, with(map[string]string{at: "3", "Deployment shop spec.paused": "true"})))
	expect.Findings(t, actsOtherwise("v1", "v2", was, with(nil)))
	expect.Findings(t, actsOtherwise("v1", "v2", with(nil), was))
	expect.Findings(t, actsOtherwise("v1", "v2", was, with(map[string]string{at: "2"})), says+"set to 2 and was to 3")
	expect.Findings(t, actsOtherwise("v1", "v2", was, with(map[string]string{})), says+"not changed and was set to 3")
}
