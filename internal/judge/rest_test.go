package judge

import (
	"slices"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/finding"
)

// TestRestless: an operator that writes, or computes, in most moments in which there is nothing to do is found where the one before did not, and only there.
func TestRestless(t *testing.T) {
	moments := func(n, writes int, used float64) []Moment {
		return slices.Repeat([]Moment{{Seconds: 0.5, Writes: writes, Used: used}}, n)
	}
	rests := moments(6, 0, 0.01)
	for name, c := range map[string]struct {
		was, is []Moment
		says    string
	}{
		"it rests":                             {rests, rests, ""},
		"it writes all the time":               {rests, moments(6, 10, 0), "wrote what is there already 20 times a second, and that of v1 0"},
		"it writes little":                     {rests, moments(6, 2, 0), ""},
		"it computes":                          {rests, moments(6, 0, 0.4), "used 0.8 of a processor, and that of v1 0.02"},
		"it polls now and then":                {rests, slices.Concat(moments(4, 0, 0), moments(3, 20, 0.5)), ""},
		"both write":                           {moments(6, 4, 0), moments(6, 10, 0), ""},
		"both compute":                         {moments(6, 0, 0.2), moments(6, 0, 0.4), ""},
		"too few moments":                      {rests, moments(3, 20, 0.5), ""},
		"of the release before too few":        {moments(3, 0, 0), moments(6, 20, 0.5), ""},
		"nothing is known of the one before":   {nil, moments(6, 20, 0.5), ""},
		"a moment in which much goes on at it": {rests, slices.Concat(rests, moments(1, 1000, 0.5)), ""},
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
