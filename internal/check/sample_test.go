package check

import (
	"strings"
	"testing"
)

const modeSchema = "{type: string, enum: [fast, slow]}"

// A rule is evaluated on the previous release's sample: it says something only of one that the previous release accepts.
func TestSamplesUnderRules(t *testing.T) {
	rule := func(text string) string {
		return strings.Replace(modeSchema, "}", ", x-kubernetes-validations: [{rule: \""+text+"\"}]}", 1)
	}
	release := func(mode, sample string) string {
		return strings.NewReplacer(modeSchema, mode, `"mode": "slow"`, sample).Replace(teaRelease)
	}
	const slow, fast = `"mode": "slow"`, `"mode": "fast"`
	for name, c := range map[string]struct{ before, after, want string }{
		"a rule that the sample violates": {teaRelease, release(rule("self == 'fast'"), fast), "CRD020"},
		"a rule that it satisfies":        {teaRelease, release(rule("self != 'fast'"), slow), ""},
		"a rule of a field that it lacks": {release(modeSchema, `"x": 1`), release(rule("self == 'fast'"), fast), ""},
		"a sample that was invalid":       {release(rule("self == 'fast'"), slow), release(rule("self == 'fast' && true"), fast), ""},
		"a field that is gone":            {teaRelease, strings.Replace(release(rule("self == 'fast'"), fast), "  - name: v1\n    served: true", "  - name: v1\n    served: false", 1), ""},
		"a rule that does not compile":    {teaRelease, release(rule("self == 1"), slow), ""},
		"a rule without end":              {teaRelease, release(rule("[1,2,3].all(a, [1,2,3].all(b, a != b || self == 'fast'))"), fast), "CRD020"},
		"a transition that it forbids":    {teaRelease, release(rule("self == oldSelf"), fast), "CRD021"},
		"a transition that it allows":     {teaRelease, release(rule("self == oldSelf"), slow), ""},
		"a transition to what is invalid": {teaRelease, release(rule("self == oldSelf"), `"mode": "none"`), ""},
		"a rule of the object": {teaRelease, strings.Replace(teaRelease, "        type: object\n        properties:\n          spec:",
			"        type: object\n        x-kubernetes-validations: [{rule: self.metadata.name == 'other'}]\n        properties:\n          spec:", 1), "CRD020"},
	} {
		t.Run(name, func(t *testing.T) {
			findings, _ := Catalog(releases(t, c.before, c.after), Options{Only: []string{"CRD020", "CRD021"}})
			switch {
			case c.want == "" && len(findings) > 0:
				t.Errorf("a false alarm: %s %s", findings[0].Code, findings[0].Message)
			case c.want != "" && (len(findings) != 1 || findings[0].Code != c.want):
				t.Errorf("want %s: %v", c.want, findings)
			}
		})
	}
}

// A release's own samples are held to its own rules.
func TestOwnSampleViolatesRule(t *testing.T) {
	for rule, want := range map[string]int{"self == 'yes'": 0, "self != 'yes'": 1} {
		files := soundFiles(t)
		inCRD("answer:\n", "answer:\n                x-kubernetes-validations: [{rule: \""+rule+"\"}]\n").apply(t, files)
		count := 0
		for _, f := range judge(t, files) {
			if f.Code == "CSV015" {
				count++
			}
		}
		if count != want {
			t.Errorf("%s: %d findings, want %d", rule, count, want)
		}
	}
}
