package judge

import (
	"maps"
	"testing"

	"github.com/olmkit/olmkit/test/support/expect"
)

// A status counts what is a number, or a list, but what tells of pods.
func TestCountsOf(t *testing.T) {
	type m = map[string]any
	got := countsOf(m{"topics": int64(3), "readyReplicas": int64(2), "phase": "Ready", "conditions": []any{m{}}, "users": []any{"a", "b"}, "of": m{"queues": int64(1)}})
	if want := map[string]int64{"status.topics": 3, "status.users": 2, "status.of.queues": 1}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A count that surely followed what came and went has to do so still.
func TestRecounts(t *testing.T) {
	const count = "status.topics of Pot/n/a"
	of := func(times int) New { return New{Sample: "Pot/n/a", Recounts: map[string]int{count: times}} }
	told := "error U503 Pot/n/a: v2 does not tell in " + count + " of new objects of other kinds, or of these that they are gone; v1 did"
	for name, c := range map[string]struct {
		was, is New
		want    []string
	}{
		"both":                    {of(Surely), of(Surely), nil},
		"no more":                 {of(Surely), of(0), []string{told}},
		"not that they are gone":  {of(Surely), of(1), []string{told}},
		"never":                   {of(0), of(0), nil},
		"once, which may be luck": {of(1), of(0), nil},
		"more":                    {of(0), of(Surely), nil},
		"without the field":       {of(Surely), New{Sample: "Pot/n/a"}, nil},
	} {
		t.Run(name, func(t *testing.T) { expect.Findings(t, recounts("v1", "v2", c.was, c.is), c.want...) })
	}
}
