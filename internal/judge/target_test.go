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
