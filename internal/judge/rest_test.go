package judge

import (
	"slices"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/finding"
)

func works(n, writes int, used float64) []Work {
	return slices.Repeat([]Work{{Seconds: 0.5, Writes: writes, Used: used, Metered: true}}, n)
}

// TestSuspected: who works in most moments in which there is nothing to do may not come to rest.
func TestSuspected(t *testing.T) {
	for name, c := range map[string]struct {
		moments []Work
		want    bool
	}{
		"it rests":              {works(6, 0, 0.01), false},
		"it writes":             {works(6, 3, 0), true},
		"it writes little":      {works(6, 2, 0), false},
		"it computes":           {works(6, 0, 0.1), true},
		"it polls now and then": {slices.Concat(works(4, 0, 0), works(3, 20, 0.5)), false},
		"too few moments":       {works(3, 20, 0.5), false},
		"it is not measured":    {slices.Repeat([]Work{{Seconds: 0.5, Used: 0.5}}, 6), false},
	} {
		if got := Suspected(c.moments); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestRestless: an operator that goes on in all of the time is found if the one before did much less while it had work, and only then.
func TestRestless(t *testing.T) {
	work := Work{Seconds: 10, Writes: 20, Used: 0.5, Metered: true}
	for name, c := range map[string]struct {
		was  Work
		is   []Work
		says string
	}{
		"it rests":                           {work, works(3, 0, 0), ""},
		"it writes all the time":             {work, works(3, 10, 0), "goes on writing, with 20 requests a second; that of v1 had 2 requests while it had work"},
		"it computes all the time":           {work, works(3, 0, 0.4), "goes on using a processor, with 0.80 s a second; that of v1 had 0.05 s while it had work"},
		"what it began ends":                 {work, slices.Concat(works(2, 20, 0.5), works(1, 0, 0)), ""},
		"it looks around as the one before":  {Work{Seconds: 10, Writes: 100}, works(3, 5, 0), ""},
		"it computes as the one before":      {Work{Seconds: 10, Used: 3, Metered: true}, works(3, 0, 0.4), ""},
		"nothing is known of the one before": {Work{}, works(3, 20, 0.5), ""},
		"the one before was not measured":    {Work{Seconds: 10}, works(3, 0, 0.4), ""},
		"nothing is known of it":             {work, nil, ""},
	} {
		var said string
		for _, f := range Restless("v1", "v2", c.was, c.is) {
			if said += f.Message; f.Severity != finding.Error {
				t.Errorf("%s: %v", name, f.Severity)
			}
		}
		if c.says == "" && said != "" || !strings.Contains(said, c.says) {
			t.Errorf("%s: %s", name, said)
		}
	}
}
