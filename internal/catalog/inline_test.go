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

// TestOffer: OLM upgrades to the bundle from what is lower, and a package has no two.
func TestOffer(t *testing.T) {
	bundle := func(v string) string {
		return `{"schema":"olm.bundle","package":"tea","name":"tea.v` + v + `","image":"example.com/tea:v1","properties":[{"type":"olm.package","value":{"packageName":"tea","version":"` + v + `"}},{"type":"olm.bundle.object","value":{"data":"e30="}}]}` + "\n"
	}
	out, err := Offer(Parse("c", []byte(bundle("1.2.0"))), "c1")
	if err != nil {
		t.Fatal(err)
	}
	p := Parse("c", out).Find("tea")
	if p.DefaultChannel != "c1" || len(p.Channels) != 1 || len(p.Channels[0].Entries) != 1 || p.Channels[0].Entries[0].SkipRange != "<1.2.0" || p.Bundles[0].Image != "" {
		t.Errorf("%s", out)
	}
	if _, err := Offer(Parse("c", []byte(bundle("1.2.0")+bundle("1.3.0"))), "c1"); err == nil || !strings.Contains(err.Error(), "package tea has 2 bundles") {
		t.Errorf("two bundles: %v", err)
	}
}
