package check

import "testing"

func TestImplies(t *testing.T) {
	const (
		seconds = `^([0-9]+(\.[0-9]+)?(ms|s|m))+$`
		hours   = `^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
		label   = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
		domain  = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	)
	for _, c := range []struct {
		name, was, is   string
		atLeast, atMost int64
		want            bool
	}{
		{"the same", label, label, 0, -1, true},
		{"one unit more", seconds, hours, 0, -1, true},
		{"one unit less", hours, seconds, 0, -1, false},
		{"a label in place of a name", domain, label, 0, -1, false},
		{"a name in place of a label", label, domain, 0, -1, true},
		{"a value more", `^(a|b)$`, `^(a|b|c)$`, 0, -1, true},
		{"a value less", `^(a|b|c)$`, `^(a|b)$`, 0, -1, false},
		{"an end that is no longer fixed", `^ab$`, `^ab`, 0, -1, true},
		{"an end that becomes fixed", `^ab`, `^ab$`, 0, -1, false},
		{"a begin that is no longer fixed", `^ab$`, `ab`, 0, -1, true},
		{"a begin that becomes fixed", `ab`, `^ab`, 0, -1, false},
		{"the length within the bound", `^[a-z]+$`, `^[a-z]{1,100}$`, 0, 100, true},
		{"the length beyond the bound", `^[a-z]+$`, `^[a-z]{1,99}$`, 0, 100, false},
		{"the length without bound", `^[a-z]+$`, `^[a-z]{1,100}$`, 0, -1, false},
		{"nothing, which is too short", `^[a-z]*$`, `^[a-z]+$`, 1, -1, true},
		{"nothing", `^[a-z]*$`, `^[a-z]+$`, 0, -1, false},
		{"no pattern before", ``, `^[a-z]*$`, 0, -1, false},
		{"a pattern that all match", ``, `^(.|\n)*$`, 0, -1, true},
		{"a point, which is no line break", ``, `^.*$`, 0, -1, false},
		{"case", `(?i)^ab$`, `^[aA][bB]$`, 0, -1, true},
		{"case, which matters now", `(?i)^ab$`, `^ab$`, 0, -1, false},
		{"bounds of words, which are not compared", `^ab$`, `\bab\b`, 0, -1, false},
		{"no pattern", `(`, `a`, 0, -1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := patternImplies(c.was, c.is, c.atLeast, c.atMost); got != c.want {
				t.Errorf("%q to %q: %v", c.was, c.is, got)
			}
		})
	}
}
