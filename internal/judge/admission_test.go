package judge

import (
	"strings"
	"testing"

	"github.com/olmkit/olmkit/test/support/expect"
)

// What one webhook lets through of several fields, it lets through by mistake; what it lets through of one may be meant.
func TestAdmitted(t *testing.T) {
	const two = "things"
	refused := func(update bool, guard, field string) Asked {
		return Asked{Update: update, Guard: guard, Field: field, Value: "0", Verdict: RefusedByGuard, Said: guard + " denied the request"}
	}
	lenient := func(field string) Asked {
		a := refused(false, two, field)
		a.Lenient = true
		return a
	}
	now := func(v Verdict) Asked { return Asked{Verdict: v} }
	a, b, changed, other := refused(false, two, "spec.a"), refused(false, two, "spec.b"), refused(true, two, "spec.a"), refused(false, "defaults", "spec.c")
	for name, c := range map[string]struct {
		guarded bool
		was, is []Asked
		want    []string
	}{
		"refused still":       {true, []Asked{a, b}, []Asked{now(RefusedByGuard), now(RefusedByGuard)}, nil},
		"by the schema":       {true, []Asked{a}, []Asked{now(RefusedByRules)}, nil},
		"nobody answers":      {true, []Asked{a}, []Asked{now(Unanswered)}, nil},
		"all taken":           {true, []Asked{a, b}, []Asked{now(Taken), now(Taken)}, []string{"error U521 Pot/n/a: under v2 the API server takes for an object like it what a webhook or a policy of v1 refused: the creation of one with spec.a = 0, the creation of one with spec.b = 0"}},
		"the only field":      {true, []Asked{a}, []Asked{now(Taken)}, []string{"error U521 Pot/n/a: under v2 the API server takes for an object like it what a webhook or a policy of v1 refused: the creation of one with spec.a = 0"}},
		"no webhook any more": {false, []Asked{a}, []Asked{now(Taken)}, []string{"warning U521 Pot/n/a: under v2 the API server takes for an object like it what a webhook or a policy of v1 refused: the creation of one with spec.a = 0"}},
		"nor for two fields":  {false, []Asked{a, b}, []Asked{now(Taken), now(Taken)}, []string{"error U521 Pot/n/a: under v2 the API server takes for an object like it what a webhook or a policy of v1 refused: the creation of one with spec.a = 0, the creation of one with spec.b = 0"}},
		"one of two":          {true, []Asked{a, b}, []Asked{now(Taken), now(RefusedByGuard)}, []string{"warning U521 Pot/n/a: under v2 the API server takes for an object like it what a webhook or a policy of v1 refused: the creation of one with spec.a = 0"}},
		"another limit":       {true, []Asked{a, a}, []Asked{now(Taken), now(RefusedByGuard)}, nil},
		"it may be changed":   {true, []Asked{b, changed}, []Asked{now(RefusedByGuard), now(Taken)}, []string{"warning U521 Pot/n/a: under v2 the API server takes for an object like it what a webhook or a policy of v1 refused: a change to spec.a = 0"}},
		"another one refuses": {true, []Asked{a, b, other}, []Asked{now(Taken), now(Taken), now(RefusedByGuard)}, []string{"error U521 Pot/n/a: under v2 the API server takes for an object like it what a webhook or a policy of v1 refused: the creation of one with spec.a = 0, the creation of one with spec.b = 0"}},
		"none can be changed": {true, []Asked{changed, refused(true, two, "spec.d")}, []Asked{now(Taken), now(Taken)}, []string{"warning U521 Pot/n/a: under v2 the API server takes for an object like it what a webhook or a policy of v1 refused: a change to spec.a = 0, a change to spec.d = 0"}},
		"lenient":             {true, []Asked{lenient("spec.a"), lenient("spec.b")}, []Asked{now(Taken), now(Taken)}, []string{"warning U521 Pot/n/a: under v2 the API server takes for an object like it what a webhook or a policy of v1 refused: the creation of one with spec.a = 0, the creation of one with spec.b = 0"}},
		"nothing was refused": {true, []Asked{{Field: "spec.a", Verdict: Taken}}, []Asked{now(Taken)}, nil},
		"the schema refused":  {true, []Asked{{Field: "spec.a", Verdict: RefusedByRules}}, []Asked{now(Taken)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Findings(t, Admitted("v1", "v2", "Pot/n/a", c.guarded, c.was, c.is), c.want...)
		})
	}
}

// What many objects say must not be refused because somebody asks a new webhook.
func TestNarrowed(t *testing.T) {
	asked := func(v Verdict, usual bool) Asked {
		return Asked{Update: true, Field: "spec.a", Value: "4", Usual: usual, Verdict: v, Said: "there must be an odd number"}
	}
	told := "warning U526 Pot/n/a: under v2 a webhook or a policy refuses for an object like it what the API server took under v1: a change to spec.a = 4"
	for name, c := range map[string]struct {
		was, is Asked
		want    []string
	}{
		"refused":            {asked(Taken, true), asked(RefusedByGuard, true), []string{told}},
		"as all changes are": {asked(Taken, true), asked(RefusedByGuard, true), nil},
		"taken still":        {asked(Taken, true), asked(Taken, true), nil},
		"refused before":     {asked(RefusedByGuard, true), asked(RefusedByGuard, true), nil},
		"nothing usual":      {asked(Taken, false), asked(RefusedByGuard, false), nil},
		"nobody answers":     {asked(Taken, true), asked(Unanswered, true), nil},
		"the schema refuses": {asked(Taken, true), asked(RefusedByRules, true), []string{strings.Replace(told, "a webhook or a policy", "the schema", 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			was, is := []Asked{c.was}, []Asked{c.is}
			if other := asked(Taken, true); name != "as all changes are" {
				was, is = append(was, other), append(is, other)
			}
			expect.Findings(t, Narrowed("v1", "v2", "Pot/n/a", was, is), c.want...)
		})
	}
}

// What users ask for must not become something else on the way.
func TestReplaced(t *testing.T) {
	asked := func(v Verdict, none bool) Asked {
		return Asked{Field: "spec.a", Value: "0", None: none, Verdict: v, Said: "1"}
	}
	told := " U526 Pot/n/a: under v2 an admission webhook or policy sets another value for what an object like it asks for, and the API server took as it was under v1: the creation of one with spec.a = 0"
	for name, c := range map[string]struct {
		was, is Asked
		want    []string
	}{
		"a number":        {asked(Taken, false), asked(Overridden, false), []string{"warning" + told}},
		"none":            {asked(Taken, true), asked(Overridden, true), []string{"error" + told}},
		"taken still":     {asked(Taken, true), asked(Taken, true), nil},
		"replaced before": {asked(Overridden, true), asked(Overridden, true), nil},
		"refused":         {asked(Taken, true), asked(RefusedByGuard, true), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := Replaced("v1", "v2", "Pot/n/a", []Asked{c.was}, []Asked{c.is})
			expect.Findings(t, got, c.want...)
			if len(got) > 0 && got[0].Cause != "spec.a is set to 1" {
				t.Error(got[0].Cause)
			}
		})
	}
}
