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
		{"live", true, " • first … Ns\r\x1b[K • first … Ns halfway\r\x1b[K ✓ first (Ns)\n • second … Ns\r\x1b[Ksaid\n • second … Ns\r\x1b[K ✗ second (Ns)\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			p := New(&out)
			if c.live {
				p = Live(&out, func() int { return 80 })
			}
			defer p.Close()
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
	var none *Step
	none.Note("halfway")
	if err := s.End(nil); err != nil {
		t.Error(err)
	}
}

func TestParts(t *testing.T) {
	var out strings.Builder
	whole := New(&out)
	for _, name := range []string{"1/2", "2/2"} {
		p := whole.Part(name)
		p.Say("100%% of %s", name)
		_ = p.Start("step").End(nil)
	}
	want := "[1/2] 100% of 1/2\n[1/2]  ✓ step (Ns)\n[2/2] 100% of 2/2\n[2/2]  ✓ step (Ns)\n"
	if got := seconds.ReplaceAllString(out.String(), "Ns"); got != want {
		t.Errorf("got %q", got)
	}
	if p := (*Printer)(nil).Part("1/2"); p != nil {
		t.Error("who prints nothing prints parts")
	}
}

// What is being done stands below all that was, in lines that fit, and is taken away at the end.
func TestStatus(t *testing.T) {
	var out strings.Builder
	p := Live(&out, func() int { return 30 })
	p.Status("tea 1.0.0 → 1.1.0, after catalog noticed")
	_ = p.Start("install")
	p.Status("tea\x1b[2J")
	p.Close()
	p.Close()
	want := " • tea 1.0.0 → 1.1.0, a… … Ns" +
		"\r\x1b[K • tea 1.0.0 → 1.1.0, a… … Ns\n • install … Ns" +
		"\r\x1b[K\x1b[A\r\x1b[K • install … Ns" +
		"\r\x1b[K • install … Ns\n • tea\\x1b[2J … Ns" +
		"\r\x1b[K\x1b[A\r\x1b[K"
	if got := seconds.ReplaceAllString(out.String(), "Ns"); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	out.Reset()
	New(&out).Status("nothing of it where lines stay")
	if out.Len() > 0 {
		t.Errorf("got %q", out.String())
	}
}
