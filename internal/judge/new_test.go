package judge

import (
	"testing"

	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/test/support/expect"
)

func TestNewObjects(t *testing.T) {
	sound, alone := Dealt{Made: true, Runs: true, Well: true}, Dealt{}
	both := New{Sample: "Pot/n/a", Copy: sound, Original: sound}
	for name, c := range map[string]struct {
		was, is New
		want    []string
	}{
		"as before":            {both, both, nil},
		"ignored":              {both, New{Sample: "Pot/n/a", Copy: alone, Original: sound}, []string{"error U517 Pot/n/a: v2 does less for a new object like it: within 45s nothing is made that belongs to it, nothing runs for it, its status does not say that it is well; with v1 it was as for this one"}},
		"never ready":          {both, New{Sample: "Pot/n/a", Copy: Dealt{Made: true, Well: true}, Original: sound}, []string{"error U517 Pot/n/a: v2 does less for a new object like it: within 45s nothing runs for it; with v1 it was as for this one"}},
		"nor the sample":       {both, New{Sample: "Pot/n/a", Copy: alone, Original: alone}, nil},
		"nor before":           {New{Copy: alone, Original: sound}, New{Copy: alone, Original: sound}, nil},
		"half of it before":    {New{Copy: Dealt{Made: true}, Original: sound}, New{Sample: "Pot/n/a", Copy: alone, Original: sound}, []string{"error U517 Pot/n/a: v2 does less for a new object like it: within 45s nothing is made that belongs to it; with v1 it was as for this one"}},
		"belongs to nobody":    {both, New{Sample: "Pot/n/a", Copy: alone, Original: sound, Unowned: []string{"Deployment a"}}, []string{"error U518 Pot/n/a: of a new object like it, what v2 makes as Deployment a has no owner reference, and stayed when the object was deleted; with v1 it did not"}},
		"belonged to nobody":   {New{Copy: sound, Original: sound, Unowned: []string{"Secret a"}}, New{Copy: sound, Original: sound, Unowned: []string{"Secret a"}}, nil},
		"more than the sample": {both, New{Sample: "Pot/n/a", Copy: sound, Original: alone}, nil},
	} {
		t.Run(name, func(t *testing.T) { expect.Findings(t, NewObjects("v1", "v2", c.was, c.is), c.want...) })
	}
}

// A Job that is done runs nothing, and what another operand made belongs to the object less directly.
func TestDealtWith(t *testing.T) {
	operands := map[string]observe.Operand{
		"Deployment/n/a": {Kind: "Deployment", Of: "Pot/n/a", Direct: true},
		"Job/n/b":        {Kind: "Job", Of: "Pot/n/b", Direct: true},
		"Pod/n/c":        {Kind: "Pod", Of: "Pot/n/c"},
		"DaemonSet/n/d":  {Kind: "DaemonSet", Of: "Pot/n/d", Direct: true, Unready: "0 of 1 pods are ready"},
	}
	for name, want := range map[string]Dealt{
		"Pot/n/a": {Made: true, Runs: true}, "Pot/n/b": {Made: true}, "Pot/n/c": {}, "Pot/n/d": {Made: true}, "Pot/n/e": {},
	} {
		if got := DealtWith(name, operands, false); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}
