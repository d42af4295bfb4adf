package walk

import (
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmkit/olmkit/internal/code"
)

// Nodes keep the labels of others, and are labelled as before.
func TestNodesInTheWorld(t *testing.T) {
	p, plan := things(t, "v1", "v2", "v3")
	for _, c := range []struct{ v1, v2, code, says string }{
		{labelsNodes, labelsNodes, "", ""},
		{stripsNodes, stripsNodes, "", ""},
		{labelsNodes, stripsNodes, code.OperandChanged, "error U505 Node/here: v2 takes labels from it that were there before any release was installed, and v1 did not: os"},
		{"", labelsNodes, code.OperandChanged, "warning U505 Node/here: v2 labels it otherwise than v1, though nobody changed any object for that: pool is set to 1"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newDisposable()
			if err := w.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "here", Labels: map[string]string{"os": "linux"}}}); err != nil {
				t.Fatal(err)
			}
			w.expect(t, p, plan, c.v1, c.v2, c.code, c.says)
		})
	}
}
