package judge

import (
	"testing"

	"github.com/olmkit/olmkit/test/support/expect"
)

func TestContest(t *testing.T) {
	contested := func(beside, after bool) New {
		return New{Sample: "Pot/n/a", Contest: &Contest{Says: []string{"spec.host", "spec.path"}, Beside: beside, After: after}}
	}
	two := "error U514 Pot/n/a: v2 serves two objects like it that say the same in spec.host and spec.path, of which v1 served the first one alone"
	for name, c := range map[string]struct {
		was, is New
		want    []string
	}{
		"as before":                 {contested(false, true), contested(false, true), nil},
		"both always were served":   {contested(true, false), contested(true, false), nil},
		"one alone is served now":   {contested(true, false), contested(false, false), nil},
		"never was":                 {contested(false, false), contested(false, false), nil},
		"is now":                    {contested(false, false), contested(false, true), nil},
		"is not any more":           {contested(false, true), contested(false, false), []string{"error U514 Pot/n/a: v2 does not serve an object like it that says in spec.host and spec.path the same as one that was there before it, once that is deleted, not within 30s; v1 did"}},
		"both are served now":       {contested(false, true), contested(true, false), []string{two}},
		"both are, and none waited": {contested(false, false), contested(true, false), []string{two}},
		"nothing is known":          {contested(false, true), New{Sample: "Pot/n/a"}, nil},
		"nothing was known":         {New{}, contested(true, false), nil},
	} {
		t.Run(name, func(t *testing.T) { expect.Findings(t, contest("v1", "v2", c.was, c.is), c.want...) })
	}
}
