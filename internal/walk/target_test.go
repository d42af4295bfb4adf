package walk

import (
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

// Who scales what is the user's has to follow the object that asks for it, and to give it back.
func TestTargets(t *testing.T) {
	const sample = `[{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"size":3,"deploymentName":"shop"}}]`
	p, plan := packageOf(t, lifecycle.AllNamespaces, sample, []string{"v1", "v2", "v3"}, definitionWith("deploymentName"))
	for _, c := range []struct{ v1, v2, code, says string }{
		{scales, scales, "", ""},
		{scalesOnce, scalesOnce, "", ""},
		{scalesLeaves, scalesLeaves, "", ""},
		{scales, scalesOnce, code.DoesLess, "nothing that is made for it follows a change of its spec.size"},
		{scales, scalesMore, code.OperandChanged + " " + code.DoesLess, "v2 makes something else than v1 of what a new object like it names: Deployment shop spec.replicas is set to 4 and was to 3"},
		{scales, scalesLeaves, code.DoesLess, "when it is deleted, what was changed for it stays in Deployment shop "},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newDisposable()
			w.samples = []*unstructured.Unstructured{shop()}
			w.expect(t, p, plan, c.v1, c.v2, c.code, c.says)
		})
	}
}
