package walk

import (
	"strings"
	"testing"
	"time"
)

func TestHeld(t *testing.T) {
	var h held
	start := time.Now()
	for _, step := range []struct {
		said string
		at   time.Duration
		want time.Duration
	}{{"", 0, 0}, {"a", 1, 0}, {"a", 3, 2}, {"b", 4, 0}, {"b", 9, 5}, {"", 10, 0}, {"", 20, 0}} {
		if got := h.lasts(step.said, start.Add(step.at)); got != step.want {
			t.Errorf("%q at %d: %d, want %d", step.said, step.at, got, step.want)
		}
	}
}

func TestVersionFix(t *testing.T) {
	if got := versionFix("1.99.0", "v1.36.3"); !strings.Contains(got, "to 1.36.0 or less") || !strings.Contains(got, "1.99.0 or newer") {
		t.Error(got)
	}
	for _, other := range []string{"", "1.36.3", "nonsense"} {
		if got := versionFix(other, "v1.36.3"); got != "" {
			t.Errorf("%q: %s", other, got)
		}
	}
}
