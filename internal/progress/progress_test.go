package progress

import (
	"errors"
	"regexp"
	"strings"
	"testing"
)

// seconds stands for the times of steps, which differ from run to run.
var seconds = regexp.MustCompile(`\d+(\.\d)?s`)

func TestPrinter(t *testing.T) {
	for _, c := range []struct {
		name string
		live bool
		want string
	}{
		{"plain", false, " ✓ first (Ns)\nsaid\n ✗ second (Ns)\n"},
		{"live", true, " • first …\r\x1b[K • first … Ns halfway\r\x1b[K ✓ first (Ns)\n • second …\r\x1b[Ksaid\n • second …\r\x1b[K ✗ second (Ns)\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			p := New(&out, c.live)
			s := p.Start("first")
			s.Note("halfway")
			if err := s.End(nil); err != nil {
				t.Error(err)
			}
			s = p.Start("second")
			p.Say("said")
			failure := errors.New("no")
			if err := s.End(failure); !errors.Is(err, failure) {
				t.Errorf("got %v", err)
			}
			_ = s.End(nil) // only the first end counts
			if got := seconds.ReplaceAllString(out.String(), "Ns"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestNoPrinter(t *testing.T) {
	var p *Printer
	s := p.Start("first")
	s.Note("halfway")
	p.Say("said")
	if err := s.End(nil); err != nil {
		t.Error(err)
	}
}
