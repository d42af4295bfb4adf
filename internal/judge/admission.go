package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/managerlog"
)

// Verdict is what the API server says of a request.
type Verdict int

// What it may say.
const (
	Unanswered     Verdict = iota // somebody who is to be asked does not answer, or it does something else
	Taken                         // it does what it is asked for
	RefusedByRules                // the schema or a rule of it refuses
	RefusedByGuard                // a webhook or a policy does
	Overridden                    // a webhook or a policy sets something else
)

// Asked is a request to make an object of a kind, or to change one, that says what few objects say.
type Asked struct {
	Update       bool
	Field, Value string // the path of what is unusual, and what it says in JSON; "" for none
	Lenient      bool   // a new version may well allow it: another one of few values, or to leave a field out
	Usual        bool   // many objects say such a thing: one more or less, another choice, or nothing
	None         bool   // it asks for none of what there are some of
	Verdict      Verdict
	Guard        string // the webhook or policy that refuses
	Said         string // by it, or what is set
}

func (a Asked) String() string {
	switch {
	case a.Update && a.Value == "":
		return "a change that removes " + a.Field
	case a.Update:
		return fmt.Sprintf("a change to %s = %s", a.Field, managerlog.Cut(a.Value, mostShown))
	case a.Value == "":
		return "the creation of one without " + a.Field
	}
	return fmt.Sprintf("the creation of one with %s = %s", a.Field, managerlog.Cut(a.Value, mostShown))
}

// mostShown is how many bytes of a value a finding shows.
const mostShown = 60

// Admitted tells what webhooks and policies of the release called from refused that nobody refuses under to. was and is are the same requests, in
// the same order; guarded says that a validating webhook or a policy is still asked about objects like sample. That all is let through of what one
// of them refused of more than one field, or of new objects although somebody is still asked, is no decision of an author's. What only updates may
// not say is often allowed later, and so is what is lenient.
func Admitted(from, to, sample string, guarded bool, was, is []Asked) []finding.Finding {
	var open []Asked
	severe := false
	for _, guard := range guardsOf(was) {
		taken, fields, all := opened(was, is, func(a Asked) bool { return a.Guard == guard && !a.Update })
		severe = severe || all && (fields > 1 || fields == 1 && guarded)
		open = append(open, taken...)
		taken, fields, all = opened(was, is, func(a Asked) bool { return a.Guard == guard && a.Update && createdAlike(was, a) })
		severe = severe || all && fields > 1
		open = append(open, taken...)
		taken, _, _ = opened(was, is, func(a Asked) bool { return a.Guard == guard && a.Update && !createdAlike(was, a) })
		open = append(open, taken...)
	}
	if len(open) == 0 {
		return nil
	}
	f := code.Finding(code.Unguarded, sample, "under %s the API server takes for an object like it what a webhook or a policy of %s refused: %s", to, from, listed(open))
	f.Cause = fmt.Sprintf("%s said: %s", from, open[0].Said)
	if !severe {
		f.Severity = finding.Warning
	}
	return []finding.Finding{f}
}

// Narrowed tells what usual requests the schema, a webhook or a policy refuses under to that the API server took under the release called from. was and is
// are the same requests, in the same order. That all changes are refused is told elsewhere.
func Narrowed(from, to, sample string, was, is []Asked) []finding.Finding {
	var refused []Asked
	by := map[Verdict]string{RefusedByRules: "the schema", RefusedByGuard: "a webhook or a policy"}
	who := map[string]bool{}
	changes := slices.ContainsFunc(is, func(a Asked) bool { return a.Update && a.Verdict == Taken })
	for i, before := range was {
		if name, refuses := by[is[i].Verdict]; refuses && before.Usual && before.Verdict == Taken && (changes || !before.Update) {
			refused, who[name] = append(refused, is[i]), true
		}
	}
	if len(refused) == 0 {
		return nil
	}
	f := code.Finding(code.Narrowed, sample, "under %s %s refuses for an object like it what the API server took under %s: %s",
		to, strings.Join(slices.Sorted(maps.Keys(who)), ", or "), from, listed(refused))
	f.Cause = fmt.Sprintf("%s said: %s", to, refused[0].Said)
	return []finding.Finding{f}
}

// Replaced tells of what requests that the API server took under the release called from somebody sets something else under to. was and is are the same
// requests, in the same order. Who makes some out of none takes users the way to stop what runs.
func Replaced(from, to, sample string, was, is []Asked) []finding.Finding {
	var replaced []Asked
	none := false
	for i, before := range was {
		if before.Verdict == Taken && is[i].Verdict == Overridden {
			replaced = append(replaced, is[i])
			none = none || before.None
		}
	}
	if len(replaced) == 0 {
		return nil
	}
	f := code.Finding(code.Narrowed, sample, "under %s an admission webhook or policy sets another value for what an object like it asks for, and the API server took as it was under %s: %s",
		to, from, listed(replaced))
	f.Cause = fmt.Sprintf("%s is set to %s", replaced[0].Field, managerlog.Cut(replaced[0].Said, mostShown))
	f.Fix = "set a default only where nothing is said: a pointer in Go's type tells 0 and false from what is left out; refuse what cannot work"
	if none {
		f.Severity = finding.Error
	}
	return []finding.Finding{f}
}

func guardsOf(requests []Asked) []string {
	guards := map[string]bool{}
	for _, a := range requests {
		guards[a.Guard] = true
	}
	return slices.Sorted(maps.Keys(guards))
}

// createdAlike reports whether an object with what the update a asks for was refused, too.
func createdAlike(requests []Asked, a Asked) bool {
	return slices.ContainsFunc(requests, func(o Asked) bool {
		return !o.Update && o.Verdict == RefusedByGuard && o.Field == a.Field && o.Value == a.Value
	})
}

// opened are those of the refused requests in was that are wanted and taken now, of fields of which nothing is refused any more. fields are how many
// fields there were, without lenient requests, of which something was refused, and all reports whether all of any kind are taken.
func opened(was, is []Asked, wanted func(Asked) bool) (taken []Asked, fields int, all bool) {
	open, strict := map[string]bool{}, map[string]bool{}
	counts := func(i int) bool {
		return was[i].Verdict == RefusedByGuard && is[i].Verdict != Unanswered && is[i].Verdict != Overridden && wanted(was[i])
	}
	for i, before := range was {
		if counts(i) {
			known, tried := open[before.Field]
			open[before.Field] = is[i].Verdict == Taken && (known || !tried)
			strict[before.Field] = strict[before.Field] || !before.Lenient
		}
	}
	for i, before := range was {
		if counts(i) && open[before.Field] {
			taken = append(taken, before)
		}
	}
	still := namesOf(open, func(field string) bool { return !open[field] })
	return taken, len(namesOf(strict, func(field string) bool { return strict[field] })), len(taken) > 0 && len(still) == 0
}

// listed names the first request of each field, up to three.
func listed(requests []Asked) string {
	var names, fields []string
	for _, a := range requests {
		if key := fmt.Sprint(a.Update, a.Field); !slices.Contains(fields, key) {
			fields, names = append(fields, key), append(names, a.String())
		}
	}
	return firstOf(names)
}

// firstOf lists the first three of names, and how many more there are.
func firstOf(names []string) string { return atMost(3, names) }

// mostFields is how many of its fields a finding about an object that is not the operator's lists.
const mostFields = 5

// atMost lists the first of names, at most so many, and how many more there are.
func atMost(most int, names []string) string {
	if more := len(names) - most; more > 0 {
		names = append(slices.Clone(names[:most]), fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}
