package check

import (
	"strings"
	"testing"
)

func TestWebhookStricter(t *testing.T) {
	const webhook = "failurePolicy: Ignore, matchPolicy: Exact"
	for name, c := range map[string]struct{ before, after, code, want string }{
		"Fail by default":             {webhook, "matchPolicy: Exact", "EDG011", "from Ignore to Fail"},
		"Fail as before":              {"matchPolicy: Exact", "matchPolicy: Exact, failurePolicy: Fail", "", ""},
		"Ignore instead of Fail":      {"failurePolicy: Fail", "failurePolicy: Ignore", "", ""},
		"Equivalent by default":       {"matchPolicy: Exact", "sideEffects: None", "EDG012", "matchPolicy Equivalent instead of Exact"},
		"Exact instead of Equivalent": {"matchPolicy: Equivalent", "matchPolicy: Exact", "", ""},
		"no selector":                 {"objectSelector: {matchLabels: {a: b}}", "failurePolicy: Fail", "EDG012", "no longer in objectSelector: a=b"},
		"a narrower selector":         {"objectSelector: {matchLabels: {a: b}}", "objectSelector: {matchLabels: {a: b, c: d}}", "", ""},
		"a selector of more values":   {"objectSelector: {matchExpressions: [{key: a, operator: In, values: [b]}]}", "objectSelector: {matchExpressions: [{key: a, operator: In, values: [b, c]}]}", "EDG012", "a in (b)"},
		"a selector of fewer values":  {"objectSelector: {matchExpressions: [{key: a, operator: In, values: [b, c]}]}", "objectSelector: {matchLabels: {a: b}}", "", ""},
		"fewer values left out":       {"objectSelector: {matchExpressions: [{key: a, operator: NotIn, values: [b, c]}]}", "objectSelector: {matchExpressions: [{key: a, operator: NotIn, values: [b]}]}", "EDG012", "a notin (b,c)"},
		"more values left out":        {"objectSelector: {matchExpressions: [{key: a, operator: NotIn, values: [b]}]}", "objectSelector: {matchExpressions: [{key: a, operator: NotIn, values: [b, c]}]}", "", ""},
		"a label that must be there":  {"objectSelector: {matchExpressions: [{key: a, operator: Exists}]}", "objectSelector: {matchLabels: {a: b}}", "", ""},
		"a selector that is none":     {"objectSelector: {matchExpressions: [{key: a, operator: Near}]}", "objectSelector: {}", "", ""},
		"a shorter timeout":           {"timeoutSeconds: 10", "timeoutSeconds: 5", "EDG012", "timeoutSeconds 5 instead of 10"},
		"a timeout by default":        {"timeoutSeconds: 30", "failurePolicy: Fail", "EDG012", "timeoutSeconds 10 instead of 30"},
		"a shorter timeout, ignored":  {"failurePolicy: Ignore, timeoutSeconds: 10", "failurePolicy: Ignore, timeoutSeconds: 5", "", ""},
		"a longer timeout":            {"timeoutSeconds: 5", "timeoutSeconds: 10", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			release := func(text string) string { return strings.Replace(teaRelease, webhook, text, 1) }
			findings, _ := Catalog(releases(t, release(c.before), release(c.after)), Options{Only: []string{"EDG011", "EDG012"}})
			switch {
			case c.code == "" && len(findings) > 0:
				t.Errorf("a false alarm: %s %s", findings[0].Code, findings[0].Message)
			case c.code != "" && (len(findings) != 1 || findings[0].Code != c.code || !strings.Contains(findings[0].Message, c.want)):
				t.Errorf("not found: %v", findings)
			}
		})
	}
}

// A webhook with another name for the same resources is the same webhook; a conversion webhook has no failurePolicy.
func TestWebhookRenamed(t *testing.T) {
	const webhook, rules = "{type: ValidatingAdmissionWebhook, generateName: check.example.com, failurePolicy: Ignore", ", rules: [{apiGroups: [example.com], resources: [pots]}]"
	before := strings.Replace(teaRelease, webhook, webhook+rules, 1)
	for after, want := range map[string]int{
		"{type: ValidatingAdmissionWebhook, generateName: other.example.com, failurePolicy: Fail" + rules: 1,
		"{type: ValidatingAdmissionWebhook, generateName: other.example.com, failurePolicy: Fail":         0,
		"{type: MutatingAdmissionWebhook, generateName: check.example.com, failurePolicy: Fail" + rules:   0,
		"{type: ConversionWebhook, generateName: check.example.com, failurePolicy: Fail" + rules:          0,
	} {
		findings, _ := Catalog(releases(t, before, strings.Replace(teaRelease, webhook, after, 1)), Options{Only: []string{"EDG011"}})
		if len(findings) != want {
			t.Errorf("%s: %v", after, findings)
		}
	}
}
