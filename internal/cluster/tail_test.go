package cluster

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// Of a log the newest lines are read, as whole lines, however much there is.
func TestTail(t *testing.T) {
	line := strings.Repeat("x", 99) + "\n"
	for _, lines := range []int{0, 1, logSize / 100, 5 * logSize / 100} {
		text := strings.Repeat(line, lines) + "the last"
		got, err := Tail(io.NopCloser(strings.NewReader(text)))
		if err != nil || len(got) > logSize || !strings.HasSuffix(text, string(got)) || !bytes.HasSuffix(got, []byte("the last")) {
			t.Fatalf("of %d lines: %d bytes, %v", lines, len(got), err)
		}
		if len(text) > logSize && len(got) < logSize-2*len(line) || len(text) <= logSize && len(got) != len(text) || len(got) > 100 && got[99] != '\n' {
			t.Errorf("of %d lines: %d bytes", lines, len(got))
		}
	}
	if got, err := Tail(io.NopCloser(strings.NewReader(strings.Repeat("x", 3*logSize)))); err != nil || len(got) > logSize {
		t.Errorf("of one long line: %d bytes, %v", len(got), err)
	}
}
