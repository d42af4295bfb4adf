// Package progress prints what a long job is doing: a line for each step, with the time it took.
package progress

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Printer prints steps. The zero value, and a nil one, print nothing. It is safe for concurrent use.
type Printer struct {
	mu    sync.Mutex
	out   io.Writer
	live  bool // the terminal can overwrite its last line
	open  *Step
	drawn bool
}

// New returns a Printer to out. With live set the running step's line is rewritten in place when it ends; else a step
// is printed once, when it has ended.
func New(out io.Writer, live bool) *Printer { return &Printer{out: out, live: live} }

// Step is one running stretch of work.
type Step struct {
	printer *Printer
	text    string
	started time.Time
	noted   time.Time
	once    sync.Once
}

// notePeriod is how often a step's notes are printed where the last line can't be overwritten.
const notePeriod = 30 * time.Second

// Note tells how far the step is: at once on a live terminal, now and then elsewhere.
func (s *Step) Note(text string) {
	p := s.printer
	if p == nil || p.out == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.noted.IsZero() {
		s.noted = s.started
	}
	switch {
	case p.live && p.open == s:
		p.clear()
		fmt.Fprintf(p.out, " • %s … %.0fs %.40s", s.text, time.Since(s.started).Seconds(), text)
		p.drawn = true
	case !p.live && time.Since(s.noted) >= notePeriod:
		s.noted = time.Now()
		fmt.Fprintf(p.out, " • %s … %.0fs %s\n", s.text, time.Since(s.started).Seconds(), text)
	}
}

// Start announces a step.
func (p *Printer) Start(format string, args ...any) *Step {
	s := &Step{printer: p, text: fmt.Sprintf(format, args...), started: time.Now()}
	if p == nil || p.out == nil {
		return s
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live {
		p.clear()
		p.open = s
		fmt.Fprintf(p.out, " • %s …", s.text)
		p.drawn = true
	}
	return s
}

// End closes the step, as failed if err is not nil, and returns err. Only the first call counts.
func (s *Step) End(err error) error {
	s.once.Do(func() {
		mark := "✓"
		if err != nil {
			mark = "✗"
		}
		s.printer.line(s, " %s %s (%.1fs)", mark, s.text, time.Since(s.started).Seconds())
	})
	return err
}

// Say prints a line of its own.
func (p *Printer) Say(format string, args ...any) { p.line(nil, format, args...) }

func (p *Printer) line(s *Step, format string, args ...any) {
	if p == nil || p.out == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	fmt.Fprintf(p.out, format+"\n", args...)
	if p.open == s {
		p.open = nil
	}
	if p.live && p.open != nil {
		fmt.Fprintf(p.out, " • %s …", p.open.text)
		p.drawn = true
	}
}

// clear wipes a running step's line.
func (p *Printer) clear() {
	if p.drawn {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.drawn = false
	}
}
