package judge

import (
	"testing"

	"github.com/olmkit/olmkit/test/support/expect"
)

func TestAlong(t *testing.T) {
	const claim, service = "PersistentVolumeClaim/n/data-a-0", "Service/n/a"
	for name, c := range map[string]struct {
		was, is, want []string
	}{
		"nothing": {[]string{}, []string{}, nil}, "as before": {[]string{service}, []string{service}, nil}, "not known before": {nil, []string{service}, nil}, "not known now": {[]string{}, nil, nil},
		"a claim": {[]string{}, []string{claim, service}, []string{
			"error U515 Pot/n/a: when a new object is deleted, v2 deletes what belongs to this one or to others like it, with the data, once no pod mounts it: " + claim + ", " + service + "; v1 left it",
		}},
		"a Service": {[]string{claim}, []string{claim, service}, []string{"error U514 Pot/n/a: when a new object is deleted, v2 deletes what belongs to this one or to others like it: " + service + "; v1 left it"}},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Findings(t, along("v1", "v2", New{Sample: "Pot/n/a", Along: c.was}, New{Sample: "Pot/n/a", Along: c.is}), c.want...)
		})
	}
}
