// Package progress prints what a long job is doing: a line for each step with the time it took, and, on a terminal, below
// them what is being done now and for how long.
package progress

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/olmkit/olmkit/internal/safetext"
)

// Printer prints steps. A nil one prints nothing. But for Status it is safe for concurrent use.
type Printer struct {
	screen *screen
	prefix string // of the lines of one of several jobs
	status *task
}

// screen is what the Printers of one job share.
type screen struct {
	mu      sync.Mutex
	out     io.Writer
	width   func() int // columns of the terminal; nil where lines cannot be written anew
	tasks   []*task    // what is being done, each a line below all others
	drawn   int        // lines of tasks on the terminal
	ticking bool
}

// task is something that is being done.
type task struct {
	text, note string
	started    time.Time
}

// New returns a Printer to out that prints a step once, when it has ended.
func New(out io.Writer) *Printer { return &Printer{screen: &screen{out: out}} }

// Live returns a Printer to out, a terminal with as many columns as width says, that also shows what is being done now, and
// for how long. Close takes that away again.
func Live(out io.Writer, width func() int) *Printer {
	return &Printer{screen: &screen{out: out, width: width}}
}

// Part returns a Printer for one of several jobs that run at the same time: each of its lines stands after name.
func (p *Printer) Part(name string) *Printer {
	if p == nil {
		return nil
	}
	return &Printer{screen: p.screen, prefix: p.prefix + "[" + name + "] "}
}

// Close takes from the terminal what was being done.
func (p *Printer) Close() {
	if p == nil {
		return
	}
	s := p.screen
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	s.tasks = nil
}

// Step is one running stretch of work.
type Step struct {
	printer *Printer
	task    *task
	noted   time.Time
	once    sync.Once
}

// notePeriod is how often a step's notes are printed where lines can't be written anew.
const notePeriod = 30 * time.Second

// Note tells how far the step is: at once on a live terminal, now and then elsewhere. One of no step is dropped.
func (s *Step) Note(text string) {
	if s == nil || s.printer == nil {
		return
	}
	on := s.printer.screen
	on.mu.Lock()
	defer on.mu.Unlock()
	s.task.note = safetext.Line(text)
	switch {
	case on.width != nil:
		on.draw()
	case time.Since(s.noted) >= notePeriod:
		s.noted = time.Now()
		fmt.Fprintf(on.out, "%s\n", s.task.line(0))
	}
}

// Start announces a step.
func (p *Printer) Start(format string, args ...any) *Step {
	now := time.Now()
	s := &Step{printer: p, noted: now, task: &task{text: safetext.Line(fmt.Sprintf(format, args...)), started: now}}
	if p == nil {
		return s
	}
	s.task.text = p.prefix + s.task.text
	p.screen.begin(s.task)
	return s
}

// End closes the step, as failed if err is not nil, and returns err. Only the first call counts.
func (s *Step) End(err error) error {
	s.once.Do(func() {
		if s.printer == nil {
			return
		}
		mark := "✓"
		if err != nil {
			mark = "✗"
		}
		text := strings.TrimPrefix(s.task.text, s.printer.prefix)
		s.printer.screen.end(s.task)
		s.printer.Say(" %s %s (%.1fs)", mark, text, time.Since(s.task.started).Seconds())
	})
	return err
}

// Status shows, on a terminal, what is being done beside any step, and for how long; nothing if format is "". Elsewhere it
// prints nothing.
func (p *Printer) Status(format string, args ...any) {
	if p == nil {
		return
	}
	if p.status != nil {
		p.screen.end(p.status)
		p.status = nil
	}
	if format != "" {
		p.status = &task{text: p.prefix + safetext.Line(fmt.Sprintf(format, args...)), started: time.Now()}
		p.screen.begin(p.status)
	}
}

// Say prints a line of its own.
func (p *Printer) Say(format string, args ...any) {
	if p == nil {
		return
	}
	s := p.screen
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	fmt.Fprintf(s.out, "%s%s\n", p.prefix, safetext.Text(fmt.Sprintf(format, args...)))
	s.draw()
}

// Doing returns what is being done, each with the time since it began, the oldest first.
func (p *Printer) Doing() []string {
	if p == nil {
		return nil
	}
	p.screen.mu.Lock()
	defer p.screen.mu.Unlock()
	var all []string
	for _, t := range p.screen.tasks {
		all = append(all, fmt.Sprintf("%s (%.0fs)", t.text, time.Since(t.started).Seconds()))
	}
	return all
}

func (s *screen) begin(t *task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tasks = append(s.tasks, t)
	s.draw()
	if s.width != nil && !s.ticking {
		s.ticking = true
		go s.tick()
	}
}

func (s *screen) end(t *task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tasks = slices.DeleteFunc(s.tasks, func(o *task) bool { return o == t })
	s.draw()
}

// tick draws the passing of time as long as something is being done.
func (s *screen) tick() {
	for range time.Tick(time.Second) {
		s.mu.Lock()
		if len(s.tasks) == 0 {
			s.ticking = false
			s.mu.Unlock()
			return
		}
		s.draw()
		s.mu.Unlock()
	}
}

// mostTasks is how many tasks are shown at a time, the newest.
const mostTasks = 6

// draw draws the tasks anew, on a terminal.
func (s *screen) draw() {
	if s.width == nil {
		return
	}
	s.clear()
	shown := s.tasks[max(0, len(s.tasks)-mostTasks):]
	for i, t := range shown {
		if i > 0 {
			fmt.Fprintln(s.out)
		}
		fmt.Fprint(s.out, t.line(s.width()-1))
	}
	s.drawn = len(shown)
}

// clear wipes the lines of tasks.
func (s *screen) clear() {
	for ; s.drawn > 0; s.drawn-- {
		fmt.Fprint(s.out, "\r\x1b[K")
		if s.drawn > 1 {
			fmt.Fprint(s.out, "\x1b[A")
		}
	}
}

// line tells of t in so many columns, if there are any: of a long text the end goes, and not the time.
func (t *task) line(columns int) string {
	elapsed := fmt.Sprintf(" … %.0fs", time.Since(t.started).Seconds())
	line := cut(" • "+t.text, columns-len([]rune(elapsed))) + elapsed
	if t.note != "" {
		line += " " + t.note
	}
	return cut(line, columns)
}

// cut returns of s what fits into so many columns, all of it for none, and nothing that would move the cursor.
func cut(s string, columns int) string {
	runes := []rune(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s))
	if columns < 1 || len(runes) <= columns {
		return string(runes)
	}
	return string(runes[:columns-1]) + "…"
}
