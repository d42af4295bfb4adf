package graph

import (
	"fmt"
	"slices"
	"testing"

	"github.com/olmkit/olmkit/internal/catalog"
)

// TestSwitch: users of another channel's head, and of what the channel does not have, take the hop that OLM takes for them.
func TestSwitch(t *testing.T) {
	t.Parallel()
	text := `{"schema":"olm.package","name":"tea","defaultChannel":"stable"}
{"schema":"olm.channel","package":"tea","name":"stable","entries":[{"name":"tea.v1"},{"name":"tea.v2","replaces":"tea.v1"},{"name":"tea.v4","replaces":"tea.v2","skipRange":"<4.0.0"}]}
{"schema":"olm.channel","package":"tea","name":"fast","entries":[{"name":"tea.v2"},{"name":"tea.v3","replaces":"tea.v2"},{"name":"tea.v4","replaces":"tea.v3"},{"name":"tea.v5","replaces":"tea.v4"}]}
{"schema":"olm.channel","package":"tea","name":"old","entries":[{"name":"tea.v1"},{"name":"tea.v3"},{"name":"tea.v2","replaces":"tea.v1","skips":["tea.v3"]}]}
`
	for i := range 5 {
		text += fmt.Sprintf(`{"schema":"olm.bundle","package":"tea","name":"tea.v%d","image":"x/y","properties":[{"type":"olm.package","value":{"packageName":"tea","version":"%[1]d.0.0"}}]}`+"\n", i+1)
	}
	p := catalog.Parse("catalog.json", []byte(text)).Find("tea")
	for name, test := range map[string]struct {
		options Options
		want    []string
	}{
		"to the default channel":     {Options{}, []string{"fast: tea.v3 → tea.v4 skipRange", "old: tea.v2 → tea.v4 replaces"}},
		"to one that goes on":        {Options{Channel: "fast"}, []string{"old: tea.v2 → tea.v3 replaces", "stable: tea.v4 → tea.v5 replaces"}},
		"from there":                 {Options{From: "3.0.0"}, []string{"fast: tea.v3 → tea.v4 skipRange"}},
		"to there":                   {Options{Channel: "fast", To: "tea.v3"}, []string{"old: tea.v2 → tea.v3 replaces"}},
		"the newest":                 {Options{Channel: "fast", MaxHops: 1}, []string{"stable: tea.v4 → tea.v5 replaces"}},
		"to one that nobody goes to": {Options{Channel: "old"}, nil},
	} {
		test.options.Mode = Switch
		plan, err := NewPlan(p, test.options)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []string
		for _, e := range plan.Hops {
			got = append(got, fmt.Sprintf("%s: %s → %s %s", e.Switch, e.From, e.To, e.Kind))
			if !e.Effective || e.Channel != plan.Channel {
				t.Errorf("%s: %+v", name, e)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: the hops are %q, not %q", name, got, test.want)
		}
		if len(got) == 0 && plan.First() != "" {
			t.Errorf("%s: there is nothing to walk, and the walk begins with %s", name, plan.First())
		}
	}
	if _, err := NewPlan(p, Options{Mode: Switch, From: "9.0.0"}); err == nil {
		t.Error("a version that there is not is taken")
	}
}
