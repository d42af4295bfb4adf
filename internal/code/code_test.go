package code

import (
	"regexp"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/finding"
)

func TestCodesAreSound(t *testing.T) {
	form := regexp.MustCompile(`^U\d{3}$`)
	last := ""
	for _, c := range All {
		if !form.MatchString(c.Code) || c.Doc == "" {
			t.Errorf("code %q: its form or its text is not as it should be", c.Code)
		}
		if c.Severity != finding.Info && c.Fix == "" {
			t.Errorf("code %s is a %s without a fix", c.Code, c.Severity)
		}
		if strings.Compare(last, c.Code) >= 0 {
			t.Errorf("code %s comes after %s", c.Code, last)
		}
		last = c.Code
	}
}
