package check

import (
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/catalog"
)

func TestVersionTooLow(t *testing.T) {
	const (
		fieldGone  = "              tags: {type: array, items: {type: string}}\n"
		alphaField = ", properties: {spec: {type: object, properties: {size: {type: integer, maximum: 5}}}}"
		moreRights = "resources: [pots, cups]"
	)
	more := strings.Replace(teaRelease, "resources: [pots]", moreRights, 1)
	less := strings.Replace(teaRelease, fieldGone, "", 1)
	added := strings.Replace(teaRelease, fieldGone, fieldGone+"              cups: {type: integer}\n", 1)
	for name, c := range map[string]struct{ from, to, after, want string }{
		"a field removed in a patch":       {"1.2.3", "1.2.4", less, "ask for version 2.0.0: removes fields from version v1 of CRD pots.example.com"},
		"a field removed in a minor":       {"1.2.3", "1.3.0", less, "ask for version 2.0.0"},
		"a field removed in a major":       {"1.2.3", "2.0.0", less, ""},
		"a field removed before 1.0.0":     {"0.2.3", "0.2.4", less, "ask for version 0.3.0"},
		"a field removed in a 0's minor":   {"0.2.3", "0.3.0", less, ""},
		"a field removed of alpha":         {"1.2.3", "1.3.0", strings.Replace(teaRelease, alphaField, "", 1), ""},
		"a field removed of alpha, patch":  {"1.2.3", "1.2.4", strings.Replace(teaRelease, alphaField, "", 1), "ask for version 1.3.0"},
		"permissions added in a patch":     {"1.2.3", "1.2.4", more, "ask for version 1.3.0: adds permissions"},
		"permissions added in a minor":     {"1.2.3", "1.3.0", more, ""},
		"permissions added in a 0's patch": {"0.2.3", "0.2.4", more, ""},
		"a field added in a patch":         {"1.2.3", "1.2.4", added, "ask for version 1.3.0: adds fields to version v1 of CRD pots.example.com"},
		"nothing in a patch":               {"1.2.3", "1.2.4", teaRelease, ""},
		"a prerelease made final":          {"1.3.0-rc.1", "1.3.0", less, ""},
		"a lower version":                  {"1.3.0", "1.2.0", less, ""},
		"a prerelease of a major":          {"1.3.0", "2.0.0-rc.1", less, ""},
		"a CRD dropped":                    {"1.2.3", "1.3.0", strings.Replace(teaRelease, crdText, "", 1), "ask for version 2.0.0: drops a CRD"},
		"a version no longer served":       {"1.2.3", "1.3.0", strings.Replace(teaRelease, "    deprecated: true\n    served: true", "    deprecated: true\n    served: false", 1), "ask for version 2.0.0: stops serving version v1beta1"},
		"an install mode dropped":          {"1.2.3", "1.3.0", strings.Replace(teaRelease, "{type: OwnNamespace, supported: true}", "{type: OwnNamespace, supported: false}", 1), "drops an install mode"},
	} {
		t.Run(name, func(t *testing.T) {
			text := releasesText(t, strings.ReplaceAll(teaRelease, "VERSION", c.from), strings.ReplaceAll(c.after, "VERSION", c.to))
			first, second, _ := strings.Cut(text, "name: tea.v2.0.0\nimage")
			first = strings.Replace(first, "version: 1.0.0}", "version: "+c.from+"}", 1)
			second = strings.Replace(second, "version: 2.0.0}", "version: "+c.to+"}", 1)
			findings, _ := Catalog(catalog.Parse("f", []byte(first+"name: tea.v2.0.0\nimage"+second)), Options{Only: []string{"EDG013"}})
			switch {
			case c.want == "" && len(findings) > 0:
				t.Errorf("a false alarm: %s", findings[0].Message)
			case c.want != "" && (len(findings) != 1 || !strings.Contains(findings[0].Message, c.want)):
				t.Errorf("not found: %v", findings)
			}
		})
	}
}
