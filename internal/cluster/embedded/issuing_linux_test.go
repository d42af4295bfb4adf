package embedded

import (
	"context"
	"errors"
	"testing"
)

// TestCertificatesBeginAgain: who issues certificates begins once, and once more after its end; what did not begin is tried again.
func TestCertificatesBeginAgain(t *testing.T) {
	begun, running := 0, 0
	refusal := errors.New("no API server")
	c := issuing{start: func() (context.CancelFunc, error) {
		begun++
		if begun == 1 {
			return func() {}, refusal
		}
		running++
		return func() { running-- }, nil
	}}
	if err := c.provide(); !errors.Is(err, refusal) {
		t.Errorf("it begins without an API server: %v", err)
	}
	for _, step := range []struct {
		do             func() error
		begun, running int
	}{
		{c.provide, 2, 1},
		{c.provide, 2, 1},
		{func() error { c.end(); return nil }, 2, 0},
		{func() error { c.end(); return nil }, 2, 0},
		{c.provide, 3, 1},
	} {
		if err := step.do(); err != nil || begun != step.begun || running != step.running {
			t.Errorf("%v: it has begun %d times, want %d; %d run, want %d", err, begun, step.begun, running, step.running)
		}
	}
}
