package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/catalog"
)

// TestStrandedOnce: each break of a graph is one finding, of the newest release that it strands.
func TestStrandedOnce(t *testing.T) {
	for _, e := range []struct {
		name    string
		entries []string // what each says beside its name; tea.v1.0.0 and so on
		want    []string
	}{
		{"one release", []string{"", "replaces: tea.v1.0.0", "skips: [tea.v1.1.0]"}, []string{
			"from tea.v1.0.0 no upgrade path leads to tea.v1.2.0, the head of channel stable: its users stay on it forever"}},
		{"a chain", []string{"", "replaces: tea.v1.0.0", "replaces: tea.v1.1.0", "replaces: tea.v1.2.0", "skips: [tea.v1.3.0]"}, []string{
			"from tea.v1.2.0 and 2 releases before it no upgrade path leads to tea.v1.4.0, the head of channel stable: " +
				"OLM offers their users no upgrade"}},
		{"two breaks", []string{"", "replaces: tea.v1.0.0", "replaces: tea.v1.1.0", "replaces: tea.v1.2.0", "skips: [tea.v1.1.0, tea.v1.3.0]"}, []string{
			"from tea.v1.0.0 no upgrade path leads to tea.v1.4.0, the head of channel stable: its users stay on it forever",
			"from tea.v1.2.0 no upgrade path leads to tea.v1.4.0, the head of channel stable: its users stay on it forever"}},
	} {
		t.Run(e.name, func(t *testing.T) {
			findings, _ := Catalog(channelOf(e.entries), Options{Only: []string{"GRA003"}})
			var got []string
			for _, f := range findings {
				got = append(got, f.Message)
			}
			if !slices.Equal(got, e.want) {
				t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(e.want, "\n"))
			}
		})
	}
}

// channelOf makes a catalog of one channel.
func channelOf(entries []string) *catalog.Catalog {
	var out, channel strings.Builder
	out.WriteString("{schema: olm.package, name: tea, defaultChannel: stable}\n---\n")
	channel.WriteString("schema: olm.channel\npackage: tea\nname: stable\nentries:\n")
	for i, e := range entries {
		name := fmt.Sprintf("tea.v1.%d.0", i)
		fmt.Fprintf(&channel, "- {name: %s, %s}\n", name, e)
		fmt.Fprintf(&out, "schema: olm.bundle\npackage: tea\nname: %s\nimage: i\nproperties:\n- {type: olm.package, value: {packageName: tea, version: 1.%d.0}}\n---\n", name, i)
	}
	return catalog.Parse("f", []byte(out.String()+channel.String()))
}
