package walk

import (
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/observe"
)

func TestLongestName(t *testing.T) {
	o := &newObject{Object: &observe.Object{Name: "abc"}}
	made := func(kind, name string, content map[string]any) observe.Operand {
		return observe.Operand{Kind: kind, Name: name, Direct: true, Content: content}
	}
	for name, c := range map[string]struct {
		made observe.Operand
		want int
	}{
		"a Service":               {made("Service", "abc-headless", nil), 63 - len("-headless")},
		"a StatefulSet":           {made("StatefulSet", "abc-x", nil), 50},
		"a label":                 {made("ConfigMap", "abc", map[string]any{"labels": map[string]any{"instance": "pool-abc"}}), 58},
		"twice":                   {made("ConfigMap", "other", map[string]any{"label": "abc-abc"}), 31},
		"an address is no label":  {made("ConfigMap", "abc", map[string]any{"host": "abc-with-a-port.default.svc"}), 63},
		"nothing says it":         {made("ConfigMap", "other", nil), 0},
		"what belongs to another": {observe.Operand{Kind: "ReplicaSet", Name: "abc-" + strings.Repeat("f", 10)}, 0},
	} {
		if got := o.longestName(map[string]observe.Operand{"x": c.made}); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestLongNames(t *testing.T) {
	p, plan := things(t, "v1", "v2", "v3")
	expectAll(t, p, plan, []pairing{
		{"", fitsShort, code.NewIgnored, "this is so with a name of 63 characters"},
		{fitsShort, fitsShort, "", ""},
		{"", bansLong, code.NewIgnored, "v2 refuses a new object like it with a name of 63 characters; v1 took it"},
		{bansLong, bansLong, "", ""},
		{bansLong, "", "", ""},
	})
}
