package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/finding"
)

// templateExamples are changes of the sane catalog by hand, whose template makes it as it was.
var templateExamples = []example{
	{"TPL001", "  replaces: tea.v1.1.0\n", "  replaces: tea.v1.1.0\n  skipRange: <1.2.0\n", "f:5:1", "channel stable differs from the template: tea.v1.2.0 has skipRange <1.2.0 instead of nothing"},
	{"TPL001", "- name: tea.v1.0.0\n- name: tea.v1.1.0\n  replaces: tea.v1.0.0\n", "- name: tea.v1.1.0\n", "f:5:1", "tea.v1.0.0 is missing, tea.v1.1.0 has replaces nothing instead of tea.v1.0.0"},
	{"TPL001", "name: candidate\nentries:\n", "name: candidate\nentries:\n- name: tea.v1.1.0\n", "f:15:1", "tea.v1.1.0 is not in the template"},
	{"TPL001", "name: candidate\n", "name: preview\n", "f:1:1", "channel candidate differs from the template: the channel is missing"},
	{"TPL001", "name: candidate\n", "name: preview\n", "f:15:1", "channel preview differs from the template: the channel is not in the template"},
	{"TPL001", "defaultChannel: stable", "defaultChannel: candidate", "f:1:1", "the default channel is candidate instead of stable"},
}

func TestTemplate(t *testing.T) {
	template := catalog.Parse("t", []byte(sane))
	judge := func(text string, o Options) []finding.Finding {
		o.Only = []string{"TPL"}
		findings, codes := Catalog(catalog.Parse("f", []byte(text)), o)
		if ran := slices.Contains(codes, "TPL001"); ran != (o.Template != nil) {
			t.Errorf("the check ran: %t", ran)
		}
		return findings
	}
	for name, text := range map[string]string{
		"itself":          sane,
		"what is no edge": strings.Replace(sane, "registry.example.com/tea:1.0.0", "registry.example.com/tea@sha256:"+strings.Repeat("1", 64), 1),
		"another package": sane + "---\n{schema: olm.package, name: milk, defaultChannel: a}\n---\n{schema: olm.channel, package: milk, name: a, entries: [{name: milk.v1}]}\n",
	} {
		if findings := judge(text, Options{Template: template}); len(findings) > 0 {
			t.Errorf("%s: %v", name, findings)
		}
	}
	for _, e := range templateExamples {
		changed := strings.Replace(sane, e.old, e.new, 1)
		findings := judge(changed, Options{Template: template})
		if !slices.ContainsFunc(findings, func(f finding.Finding) bool {
			return f.Code == e.code && f.Location.String() == e.place && strings.Contains(f.Message, e.message)
		}) {
			t.Errorf("not found at %s: %s; only %v", e.place, e.message, findings)
		}
		if findings := judge(changed, Options{}); len(findings) > 0 {
			t.Errorf("without a template: %v", findings)
		}
		if findings := judge(changed, Options{Template: template, Packages: []string{"milk"}}); len(findings) > 0 {
			t.Errorf("another package is to be judged: %v", findings)
		}
	}
}
