package judge

import (
	"testing"

	"github.com/olmkit/olmkit/internal/finding"
)

// TestAgain: what is done less for an object of the name of one that is gone, or for one of which the pods are gone, than with the old version.
func TestAgain(t *testing.T) {
	const available, count = "status.conditions[Available]", "status.readyReplicas"
	type taken = map[string]bool
	full := Dealt{Made: true, Kinds: []string{"Service", "StatefulSet"}, Ready: 1, Well: true}
	again := func(d Dealt) New { return New{Sample: "Tea/a", Copy: full, Again: &d} }
	takes := func(t taken) New {
		return New{Sample: "Tea/a", TakesBack: t, Readiness: Readiness{Then: map[string]string{available: "True", count: "1"}}}
	}
	down := func(d Deletion, finalizers ...string) New {
		return New{Sample: "Tea/a", Down: d, Finalizers: finalizers}
	}
	late := func(d Dealt, needs ...string) New {
		n := again(d)
		n.Late = needs
		return n
	}
	for name, c := range map[string]struct {
		was, is New
		says    string
		warning bool
	}{
		"as before":                    {was: again(full), is: again(full)},
		"nothing is made":              {was: again(full), is: again(Dealt{}), says: "v2 does less for an object that has the name of one that was deleted before: within 45s nothing is made that belongs to it; with v1 it was as for the first"},
		"a kind is not made":           {was: again(full), is: again(Dealt{Made: true, Kinds: []string{"StatefulSet"}, Ready: 1, Well: true}), says: "v2 does less for an object that has the name of one that was deleted before: within 45s no Service is made for it; with v1 it was as for the first"},
		"what it needs comes after it": {was: late(full, "Secret users"), is: late(Dealt{}, "Secret users"), says: "v2 does less for an object that has the name of one that was deleted before, and that is there before the Secret users that it names: within 1m30s nothing is made that belongs to it; with v1 it was as for the first"},
		"what it needs came before it": {was: again(full), is: late(Dealt{}, "Secret users")},
		"it has its own password":      {was: New{Fresh: taken{"… password": true}}, is: New{Sample: "Tea/a", Fresh: taken{"… password": true}}},
		"it has the first's password":  {was: New{Fresh: taken{"… password": true, "… user": false}}, is: New{Sample: "Tea/a", Fresh: taken{"… password": false, "… user": false}}, says: "v2 gives another object of the same name what it gave the first, which is gone: Secret … password; with v1 each had its own"},
		"it has the same authority":    {was: New{Fresh: taken{"… ca.crt": true, "… tls.key": true}}, is: New{Sample: "Tea/a", Fresh: taken{"… ca.crt": false, "… tls.key": true}}},
		"it has the same settings":     {was: New{Fresh: taken{"… config": true}}, is: New{Sample: "Tea/a", Fresh: taken{"… config": false}}},
		"more is made than before":     {was: again(Dealt{}), is: again(Dealt{Made: true, Kinds: []string{"StatefulSet"}})},
		"it is new that it has one":    {was: New{}, is: New{Sample: "Tea/a", Fresh: taken{"… password": false}}},
		"it does not run":              {was: again(full), is: again(Dealt{Made: true, Kinds: full.Kinds})},
		"nor was anything made before": {was: again(Dealt{}), is: again(Dealt{})},
		"it is refused":                {was: again(full), is: again(Dealt{Refused: true}), says: "v2 does less for an object that has the name of one that was deleted before: within 45s the API server refuses it; with v1 it was as for the first"},
		"it is not known":              {was: again(full), is: New{Copy: full}},
		"it was not known":             {was: New{Copy: full}, is: again(Dealt{})},
		"its status stays":             {was: takes(taken{available: true, count: true}), is: takes(taken{available: false, count: false}), says: "with v2 the status of a new object like it goes on to say status.conditions[Available] True, status.readyReplicas 1 when none of its pods runs any more, for 10s; with v1 it did not"},
		"the condition stays":          {was: takes(taken{available: true, count: true}), is: takes(taken{available: false, count: true}), says: "with v2 the status of a new object like it goes on to say status.conditions[Available] True when none of its pods runs any more, for 10s; with v1 it did not"},
		"a new condition tells":        {was: takes(taken{available: true}), is: takes(taken{available: false, "status.conditions[Ready]": true}), says: "with v2 the status of a new object like it goes on to say status.conditions[Available] True when none of its pods runs any more, for 10s; with v1 it did not", warning: true},
		"it stayed before":             {was: takes(taken{available: false}), is: takes(taken{available: false})},
		"it says nothing any more":     {was: takes(taken{available: true}), is: takes(nil)},
		"it cannot be deleted":         {was: down(Gone, "a"), is: down(Stays, "a"), says: "v2 does less for a new object like it than v1: while none of its pods runs it cannot be deleted, and is still there after 30s"},
		"another finalizer keeps it":   {was: down(Gone, "a"), is: down(Stays, "a", "b"), says: "v2 does less for a new object like it than v1: while none of its pods runs it cannot be deleted, and is still there after 30s", warning: true},
		"it could not be before":       {was: down(Stays), is: down(Stays)},
		"it was not tried before":      {was: New{}, is: down(Stays)},
	} {
		found := forsaken("v1", "v2", c.was, c.is)
		if c.says == "" {
			if len(found) > 0 {
				t.Errorf("%s: %s", name, found[0].Message)
			}
			continue
		}
		severity := finding.Error
		if c.warning {
			severity = finding.Warning
		}
		if len(found) != 1 || found[0].Message != c.says || found[0].Severity != severity {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// TestTakenBack: only what said that an object is well while its pods ran, and did not before, can take that back.
func TestTakenBack(t *testing.T) {
	type words = map[string]string
	const ready, count, phase = "status.conditions[Ready]", "status.readyReplicas", "status.phase"
	told := Readiness{Unready: true, Before: words{ready: "False", phase: "Running"}, Then: words{ready: "True", count: "2", phase: "Running"}, Prompt: true}
	if got := told.TakenBack(words{ready: "True", phase: "Running"}, words{ready: "False"}); len(got) != 1 || !got[ready] {
		t.Errorf("%v", got)
	}
	if got := told.TakenBack(told.Then, words{ready: "True"}); len(got) != 2 || got[ready] || !got[count] {
		t.Errorf("%v", got)
	}
	late := told
	late.Prompt = false
	if got := late.TakenBack(told.Then, nil); len(got) > 0 {
		t.Errorf("%v", got)
	}
	if !told.Tells(words{ready: "True"}) || told.Tells(words{ready: "True", count: "1"}) || told.Tells(nil) || !late.Tells(nil) {
		t.Error("what is not told at all does not count, and something must be")
	}
}
