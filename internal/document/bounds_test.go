package document

import (
	"fmt"
	"strings"
	"testing"
)

// What is small when it is read stays so when it is written: indentation is bounded.
func TestIndentBounded(t *testing.T) {
	const deep = 9_000
	text := strings.Repeat("[", deep) + strings.Repeat("1,", 20_000) + "1" + strings.Repeat("]", deep)
	if out, err := Indent(nil, []byte(text)); err == nil {
		t.Errorf("%d bytes of %d", len(out), len(text))
	}
}

// What is long takes time in proportion: a comparison of each key with each, or of each digit with each, would take hours here.
func TestLongIsQuick(t *testing.T) {
	var keys strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&keys, "key%d: 1\n", i)
	}
	digits := strings.Repeat("1", 10_000_000)
	for name, text := range map[string]string{
		"keys": keys.String(), "digits with a sign": "a: +" + digits, "digits in groups": "a: 1_" + digits, "octal digits": "a: 0" + digits,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse("f.yaml", []byte(text)); err != nil {
				t.Error(err)
			}
		})
	}
}
