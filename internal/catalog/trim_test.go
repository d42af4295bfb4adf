package catalog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/operator-registry/alpha/declcfg"

	"github.com/olmkit/olmkit/internal/finding"
)

func chainCatalog(t *testing.T) *Package {
	t.Helper()
	var b strings.Builder
	b.WriteString(`{"schema":"olm.package","name":"p","defaultChannel":"other","description":"kept","x":12345678901234567890}` + "\n")
	b.WriteString(`{"schema":"olm.channel","package":"p","name":"c","entries":[
		{"name":"p.v1","replaces":"p.v0"},
		{"name":"p.v2","replaces":"p.v1"},
		{"name":"p.v3","replaces":"p.v1","skips":["p.v2","p.gone"]},
		{"name":"p.v4","replaces":"p.v3","skipRange":"<4.0.0"}]}` + "\n")
	for i := 1; i <= 4; i++ {
		fmt.Fprintf(&b, `{"schema":"olm.bundle","package":"p","name":"p.v%d","image":"i","properties":[
			{"type":"olm.package","value":{"packageName":"p","version":"%d.0.0"}},
			{"type":"olm.bundle.object","value":{"data":"e30="}}]}`+"\n", i, i)
	}
	c := Parse("f", []byte(b.String()))
	if err := c.Err(); err != nil {
		t.Fatal(err)
	}
	return c.Find("p")
}

func TestTrim(t *testing.T) {
	p := chainCatalog(t)
	for _, test := range []struct {
		name  string
		names []string
		want  string // entries
	}{
		{"one", []string{"p.v2"}, `p.v2`},
		{"by replaces", []string{"p.v1", "p.v2"}, `p.v1; p.v2 replaces p.v1`},
		{"by skips", []string{"p.v2", "p.v3"}, `p.v2; p.v3 skips [p.v2]`},
		{"by skipRange, whose tail is left out", []string{"p.v1", "p.v4"}, `p.v4 range <4.0.0`},
		{"a chain", []string{"p.v1", "p.v3", "p.v4"}, `p.v1; p.v3 replaces p.v1; p.v4 replaces p.v3 range <4.0.0`},
		{"the same twice", []string{"p.v2", "p.v2"}, `p.v2`},
		{"a downgrade", []string{"p.v4", "p.v1"}, `p.v1`},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, err := Trim(p, "c", test.names...)
			if err != nil {
				t.Fatal(err)
			}
			c := Parse("trimmed", out)
			if err := c.Err(); err != nil {
				t.Fatal(err)
			}
			trimmed := c.Find("p")
			var entries []string
			for _, e := range trimmed.Channel("c").Entries {
				s := e.Name
				if e.Replaces != "" {
					s += " replaces " + e.Replaces
				}
				if len(e.Skips) > 0 {
					s += fmt.Sprintf(" skips %v", e.Skips)
				}
				if e.SkipRange != "" {
					s += " range " + e.SkipRange
				}
				entries = append(entries, s)
			}
			if diff := cmp.Diff(test.want, strings.Join(entries, "; ")); diff != "" {
				t.Error(diff)
			}
			if trimmed.DefaultChannel != "c" || len(trimmed.Channels) != 1 || len(trimmed.Bundles) != len(entries) || trimmed.Bundles[0].Image != "" {
				t.Errorf("package: %+v", trimmed)
			}
			if !strings.Contains(string(trimmed.Document.JSON), `"x":12345678901234567890`) {
				t.Errorf("the package lost a field: %s", trimmed.Document.JSON)
			}
			config, err := declcfg.LoadReader(strings.NewReader(string(out)))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := declcfg.ConvertToModel(*config); err != nil {
				t.Errorf("opm refuses it: %v", err)
			}
		})
	}
}

func TestTrimErrors(t *testing.T) {
	p := chainCatalog(t)
	p.Bundle("p.v3").Properties = nil
	for _, test := range []struct {
		channel string
		names   []string
		want    string
	}{
		{"none", []string{"p.v1"}, "it has no channel none"},
		{"c", nil, "no bundles named"},
		{"c", []string{"p.v9"}, "has no entry p.v9"},
		{"c", []string{"p.v3"}, "bundle p.v3 (f:13:1) carries no manifests, only the image i"},
	} {
		if _, err := Trim(p, test.channel, test.names...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %v: got %v, want %s", test.channel, test.names, err, test.want)
		}
	}
	p.Bundles = p.Bundles[1:]
	if _, err := Trim(p, "c", "p.v1"); err == nil || !strings.Contains(err.Error(), "the catalog has no bundle p.v1") {
		t.Errorf("absent bundle: %v", err)
	}
}

// TestTrimSwitch: the new channel leads from what the other one has, also where it has that not itself.
func TestTrimSwitch(t *testing.T) {
	p := chainCatalog(t)
	p.Channels = append(p.Channels, &Channel{Name: "new", Entries: []Entry{{Name: "p.v3", Replaces: "p.v1", Skips: []string{"p.v2"}}, {Name: "p.v4", Replaces: "p.v3"}}})
	for name, test := range map[string]struct {
		names []string
		want  []Entry
	}{
		"what the new channel has, too": {[]string{"p.v3", "p.v4"}, []Entry{{Name: "p.v3"}, {Name: "p.v4", Replaces: "p.v3"}}},
		"what it only replaces":         {[]string{"p.v1", "p.v3"}, []Entry{{Name: "p.v3", Replaces: "p.v1"}}},
		"what it only skips":            {[]string{"p.v2", "p.v3"}, []Entry{{Name: "p.v3", Skips: []string{"p.v2"}}}},
	} {
		out, err := TrimSwitch(p, "c", "new", test.names...)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		c := Parse("trimmed", out)
		if err := c.Err(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		trimmed := c.Find("p")
		got := trimmed.Channel("new").Entries
		for i := range got {
			got[i].At, got[i].Index = finding.Location{}, 0
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if was := trimmed.Channel("c").Entries; len(was) != 1 || was[0].Name != test.names[0] || trimmed.DefaultChannel != "new" || len(trimmed.Bundles) != 2 {
			t.Errorf("%s: %s", name, out)
		}
	}
	if _, err := TrimSwitch(p, "c", "new", "p.v1", "p.v2"); err == nil || !strings.Contains(err.Error(), "channel new has no entry p.v2") {
		t.Errorf("to what the channel does not have: %v", err)
	}
}
