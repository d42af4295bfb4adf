package cli

import (
	"strings"
	"testing"
)

// TestExamples: the help of each command shows how it is typed, and what it shows can be typed.
func TestExamples(t *testing.T) {
	for name, c := range leaves(t) {
		if !strings.Contains(c.Example, "olmkit "+name) {
			t.Errorf("olmkit %s has no example of itself", name)
		}
		for line := range strings.Lines(strings.ReplaceAll(c.Example, "\\\n", " ")) {
			for part := range strings.SplitSeq(line, "|") {
				words := strings.Fields(strings.TrimSpace(part))
				if len(words) == 0 || words[0] != "olmkit" {
					continue
				}
				found, rest, err := newRoot(&session{}).Find(words[1:])
				if err != nil {
					t.Errorf("olmkit %s: %s: %v", name, line, err)
					continue
				}
				for _, word := range rest {
					flag, _, _ := strings.Cut(word, "=")
					if long, ok := strings.CutPrefix(flag, "--"); ok && found.Flag(long) == nil {
						t.Errorf("olmkit %s: %s: there is no flag %s", name, line, flag)
					}
				}
			}
		}
	}
}
