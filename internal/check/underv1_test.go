package check

import (
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/catalog"
)

// A plan under OLM v1 says where its users end up without a channel, and where with SelfCertified: past CRD upgrade safety nowhere.
func TestPlannedUnderV1(t *testing.T) {
	fast := "---\nschema: olm.channel\npackage: tea\nname: fast\nentries: [{name: tea.v2.0.0}, {name: tea.v3.0.0}]\n"
	stable := "{name: tea.v3.0.0, replaces: tea.v2.0.0}, "
	larger := strings.Replace(teaRelease, "maximum: 10", "maximum: 11", 1)
	for name, c := range map[string]struct {
		texts []string
		edit  func(string) string
		want  string
	}{
		"definitions that stay": {[]string{teaRelease, teaRelease, teaRelease}, nil,
			"OLM007 without an edge, and not refused by CRD upgrade safety, it goes up to tea.v3.0.0 from tea.v1.0.0, and from tea.v3.0.0 down to tea.v2.0.0, tea.v1.0.0\n"},
		"a definition that only grows": {[]string{teaRelease, larger, larger}, nil,
			"OLM007 without an edge, and not refused by CRD upgrade safety, it goes up to tea.v3.0.0 from tea.v1.0.0, and from tea.v3.0.0 down to tea.v2.0.0\n"},
		"one release": {[]string{teaRelease}, nil, ""},
		"another channel has more": {[]string{teaRelease, larger, larger}, func(text string) string { return strings.Replace(text, stable, "", 1) + fast },
			"OLM006 it gets tea.v3.0.0; one that names the default channel stable gets tea.v2.0.0\n"},
	} {
		t.Run(name, func(t *testing.T) {
			text := releasesText(t, c.texts...)
			if c.edit != nil {
				text = c.edit(text)
			}
			loaded := catalog.Parse("f", []byte(text))
			said := ""
			for _, f := range PlannedUnderV1(loaded, loaded.Packages[0], "stable") {
				said += f.Code + " " + f.Message + "\n"
			}
			if !strings.HasPrefix(said, c.want) || c.want == "" && said != "" {
				t.Errorf("want %q:\n%s", c.want, said)
			}
		})
	}
}
