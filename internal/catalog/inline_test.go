package catalog

import (
	"strings"
	"testing"
)

// TestInline: what an image holds besides is not asked for, and without manifests a bundle can't be inline.
func TestInline(t *testing.T) {
	const rest = `{"schema":"olm.package","name":"tea","defaultChannel":"stable"}
{"schema":"olm.channel","package":"tea","name":"stable","entries":[{"name":"tea.v1"}]}
`
	held := `{"schema":"olm.bundle","package":"tea","name":"tea.v1","image":"example.com/tea:v1","properties":[{"type":"olm.package","value":{"packageName":"tea","version":"1.0.0"}},{"type":"olm.bundle.object","value":{"data":"e30="}}]}`
	out, err := Inline(Parse("c", []byte(rest+held)))
	if want := strings.Replace(rest+held+"\n", "example.com/tea:v1", "", 1); err != nil || string(out) != want {
		t.Errorf("%v: %s", err, out)
	}
	bare := strings.Replace(held, `,{"type":"olm.bundle.object","value":{"data":"e30="}}`, "", 1)
	if _, err := Inline(Parse("c", []byte(rest+bare))); err == nil || !strings.Contains(err.Error(), "bundle tea.v1 (c:3") {
		t.Errorf("a bundle without manifests: %v", err)
	}
}
