package observe

import (
	"strings"
	"testing"
)

// TestMaskedLog: a log goes on without credentials, also where it comes in pieces, and the first line that had one is known.
func TestMaskedLog(t *testing.T) {
	for name, c := range map[string]struct {
		pieces     []string
		said, leak string
	}{
		"none":               {[]string{"a\n", "b\n"}, "a\nb\n", ""},
		"one":                {[]string{"a\n", "made pw=s3cret-1 for x\nand s3cret-1\n"}, "a\nmade pw=(hidden) for x\nand (hidden)\n", "made pw=(hidden) for x"},
		"in pieces":          {[]string{"made s3c", "ret", "-1\n", "b"}, "made (hidden)\nb", "made (hidden)"},
		"in what ends early": {[]string{"made s3cret-1"}, "made (hidden)", "made (hidden)"},
		"a long line":        {[]string{strings.Repeat("x", longestLine) + "s3cret-1\n"}, strings.Repeat("x", longestLine) + "(hidden)\n", strings.Repeat("x", longestLeak)},
		"nothing at all":     {nil, "", ""},
	} {
		var said strings.Builder
		log := &maskedLog{to: &said, known: strings.NewReplacer("s3cret-1", "(hidden)")}
		for _, piece := range c.pieces {
			if _, err := log.Write([]byte(piece)); err != nil {
				t.Fatal(err)
			}
		}
		if err := log.end(); err != nil || said.String() != c.said || log.leak != c.leak {
			t.Errorf("%s: %.80q, leaks %.80q, %v", name, said.String(), log.leak, err)
		}
	}
	var said strings.Builder
	log := &maskedLog{to: &said}
	if _, err := log.Write([]byte("s3cret-1\n")); err != nil || said.String() != "s3cret-1\n" || log.leak != "" {
		t.Errorf("where none is known: %q, %q, %v", said.String(), log.leak, err)
	}
}
