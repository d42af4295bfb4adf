package judge

import (
	"testing"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/test/support/expect"
)

// TestLeftAlone: what the release before left alone is told, and nothing else.
func TestLeftAlone(t *testing.T) {
	const name = "ConfigMap/shop/olmkit-foreign"
	left, gone, changed := Foreign{Of: "Cup/shop/tea"}, Foreign{Of: "Cup/shop/tea", Gone: true}, Foreign{Of: "Cup/shop/tea", Changed: true}
	says := " an object that is not the operator's: it has no labels and no owner, in a namespace where the operator makes others of its kind for Cup/shop/tea; tea.v1 left it"
	for _, test := range []struct {
		name    string
		was, is map[string]Foreign
		want    []string
	}{
		{"both leave it", map[string]Foreign{name: left}, map[string]Foreign{name: left}, nil},
		{"the new one deletes it", map[string]Foreign{name: left}, map[string]Foreign{name: gone}, []string{"error " + code.DataLost + " " + name + ": tea.v2 deletes" + says}},
		{"the new one changes it", map[string]Foreign{name: left}, map[string]Foreign{name: changed}, []string{"error " + code.OperandChanged + " " + name + ": tea.v2 changes" + says}},
		{"both delete it", map[string]Foreign{name: gone}, map[string]Foreign{name: gone}, nil},
		{"the old one changed it", map[string]Foreign{name: changed}, map[string]Foreign{name: gone}, nil},
		{"nothing is known of the old one", nil, map[string]Foreign{name: gone}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			expect.Findings(t, LeftAlone("tea.v1", "tea.v2", test.was, test.is), test.want...)
		})
	}
}
