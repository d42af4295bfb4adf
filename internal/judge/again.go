package judge

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/observe"
)

// DownLimit is how long an operator has to tell that the pods of an object are gone, if that of the release before did.
const DownLimit = 10 * time.Second

// LateLimit is how long an operator has to deal with an object once what that needs is there: it may ask for it now and then.
const LateLimit = 90 * time.Second

// Deletion is what came of an object that was deleted.
type Deletion int

// What may come of it.
const (
	_     Deletion = iota
	Gone           // it went
	Stays          // it did not, for as long as was waited
)

// LacksAgain says what was done for the copy, and not for another object of its name once the copy was gone, in the words of a finding. Nothing is
// known without such an object. Whether it runs does not count: it may meet the data that the copy left.
func (n New) LacksAgain() string {
	switch {
	case n.Again == nil:
		return ""
	case n.Again.Refused:
		return "the API server refuses it"
	case n.Copy.Made && !n.Again.Made:
		return "nothing is made that belongs to it"
	}
	return noneOf(slices.DeleteFunc(slices.Clone(n.Copy.Kinds), func(kind string) bool { return slices.Contains(n.Again.Kinds, kind) }))
}

// LessAgain are the words of LacksAgain, if the release before lacked nothing; "" where that is not known, or the object came about in another way.
func (n New) LessAgain(was New) string {
	if was.Again != nil && slices.Equal(was.Late, n.Late) && was.LacksAgain() == "" {
		return n.LacksAgain()
	}
	return ""
}

// Tells reports whether words, of a status, tell that an object is well as soon as its pods run, as far as they tell at all. What is told of each pod
// by its name is not to be found there.
func (h Readiness) Tells(words map[string]string) bool {
	told := namesOf(h.Then, func(path string) bool { _, says := words[path]; return says && h.waited(path) })
	return !h.Waits() || len(told) > 0 && !slices.ContainsFunc(told, func(path string) bool { return words[path] != h.Then[path] })
}

// TakenBack tells, of the fields that in running say that an object is well, which say something else in down: once its pods do not run any more.
func (h Readiness) TakenBack(running, down map[string]string) map[string]bool {
	taken := map[string]bool{}
	for path, then := range h.Then {
		if h.Prompt && h.waited(path) && running[path] == then {
			taken[path] = down[path] != then
		}
	}
	return taken
}

// Unsaid tells, of the words of a status that said in before plainly that an object is well, whether they say something else in now.
func Unsaid(before, now map[string]string) map[string]bool {
	unsaid := map[string]bool{}
	for path, word := range before {
		if plainly().MatchString(path) && strings.EqualFold(word, "true") {
			unsaid[path] = now[path] != word
		}
	}
	return unsaid
}

// stale are the keys of Secrets that say the same for another object of the copy's name, and did not in was, if nothing in the Secret is the object's own any
// more.
func (n New) stale(was New) []string {
	return namesOf(n.Fresh, func(key string) bool {
		secret, _, _ := strings.Cut(key, " ")
		own := namesOf(n.Fresh, func(other string) bool { return n.Fresh[other] && strings.HasPrefix(other, secret+" ") })
		return was.Fresh[key] && !n.Fresh[key] && len(own) == 0 && observe.IsCredential(key[len(secret):])
	})
}

// again tells what is not done for an object of the name of one that is gone, and for one of which the pods are gone, and was with from.
func again(from, to string, was, is New) []finding.Finding {
	var findings []finding.Finding
	if missing := is.LessAgain(was); missing != "" {
		object, limit := "an object that has the name of one that was deleted before", HealthLimit
		if len(is.Late) > 0 {
			limit = LateLimit
			object += ", and that is there before the " + strings.Join(is.Late, " and ") + " that it names"
		}
		findings = append(findings, code.Finding(code.NewIgnored, is.Sample, "%s does less for %s: within %s %s; with %s it was as for the first", to, object, limit, missing, from))
	}
	if same := is.stale(was); len(same) > 0 {
		findings = append(findings, code.Finding(code.Credentials, is.Sample, "%s gives another object of the same name what it gave the first, which is gone: Secret %s; with %s each had its own",
			to, strings.Join(same, ", "), from))
	}
	honest := slices.Contains(slices.Collect(maps.Values(is.TakesBack)), true)
	renewed := slices.ContainsFunc(slices.Collect(maps.Keys(is.TakesBack)), func(path string) bool {
		_, known := was.TakesBack[path]
		return !known && is.TakesBack[path] && plainly().MatchString(path)
	})
	stale := namesOf(is.TakesBack, func(path string) bool {
		return was.TakesBack[path] && !is.TakesBack[path] && (!honest || plainly().MatchString(path))
	})
	if len(stale) > 0 {
		f := code.Finding(code.ReadyEarly, is.Sample, "with %s the status of a new object like it goes on to say %s when none of its pods runs any more, for %s; with %s it did not",
			to, is.Readiness.quote(stale), DownLimit, from)
		if renewed { // what the others say may be meant
			f.Severity = finding.Warning
		}
		findings = append(findings, f)
	}
	if was.Down == Gone && is.Down == Stays {
		f := doesLess("let go an object of which no pod runs: give up after a while on what needs one, and remove the finalizer then", is.Sample, "%s does less for a new object like it than %s: while none of its pods runs it cannot be deleted, and is still there after %s", to, from, EffectLimit)
		if !slices.Equal(was.Finalizers, is.Finalizers) { // what is cleaned up now may need what runs
			f.Severity = finding.Warning
		}
		findings = append(findings, f)
	}
	return findings
}
