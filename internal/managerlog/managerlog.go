// Package managerlog reads what the processes of an operator logged: which errors they repeat, where they panicked, and what
// came last. It knows the formats that Go operators log in: zap (JSON and console), logr and slog (JSON and text), klog, plain
// text, and the traces of panics. What it reads is not trusted: it keeps a bounded part of any input, without control characters.
package managerlog

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"
)

// How much of a log is kept.
const (
	maxLine    = 64 << 10 // bytes of a line that are read
	maxGroups  = 100
	maxObjects = 20 // of a group
	maxExcerpt = 1200
	maxFrame   = 150 // bytes of a frame in an excerpt
	maxTrace   = 200 // lines of a stack trace
	tailLines  = 200
	tailLine   = 2 << 10 // bytes of a line of the tail
)

// Group is an error, or a panic, that was logged once or more often, whatever names and numbers were in it.
type Group struct {
	Key     string // the same for the same error in another log
	Panic   bool
	Message string
	Error   string // "" where the line tells none besides its message
	Count   int
	First   time.Time     // zero where lines tell no time
	Last    time.Time     // as First
	Gap     time.Duration // the longest between two in a row
	Excerpt string        // the first occurrence, with the first frames of the user's own code
	Objects []string      // namespace/name, or name, of the first objects that it was logged for

	LastOf map[string]time.Time // when it was last logged for each of them
}

// Log gathers the errors in the logs of one operator.
type Log struct {
	groups map[string]*Group
	panics map[string]string // the key of the last panic that said the same

	// Aside is what no line of a Tail says; "" leaves all.
	Aside string
}

// New returns a Log without errors.
func New() *Log { return &Log{groups: map[string]*Group{}, panics: map[string]string{}} }

// Groups returns the panics and then the errors, the most frequent first.
func (l *Log) Groups() []Group {
	groups := make([]Group, 0, len(l.groups))
	for _, g := range l.groups {
		groups = append(groups, *g)
	}
	slices.SortFunc(groups, func(a, b Group) int {
		if a.Panic != b.Panic {
			if a.Panic {
				return -1
			}
			return 1
		}
		return cmp.Or(b.Count-a.Count, strings.Compare(a.Key, b.Key))
	})
	return groups
}

func (l *Log) add(e *entry) {
	if !e.Panic && harmless(e) {
		return
	}
	key := l.keyOf(e)
	g := l.groups[key]
	if g == nil {
		if len(l.groups) >= maxGroups {
			return
		}
		g = &Group{LastOf: map[string]time.Time{}, Key: key, Panic: e.Panic, Message: e.Message, Error: e.Error, First: e.At, Last: e.At, Excerpt: e.excerpt()}
		l.groups[key] = g
	}
	g.note(e.object(), e.At)
	// A panic is logged when it is observed, and again as the error that the reconciler returned.
	if g.Panic && g.Message != e.Message {
		return
	}
	g.Count++
	if e.At.IsZero() || g.Last.IsZero() {
		return
	}
	g.Gap = max(g.Gap, e.At.Sub(g.Last))
	if e.At.After(g.Last) {
		g.Last = e.At
	}
}

// note notes that g was logged at a time for object, unless that is "" or there are enough others.
func (g *Group) note(object string, at time.Time) {
	known := slices.Contains(g.Objects, object)
	if object == "" || !known && len(g.Objects) >= maxObjects {
		return
	}
	if !known {
		g.Objects = append(g.Objects, object)
	}
	if at.After(g.LastOf[object]) {
		g.LastOf[object] = at
	}
}

// keyOf is the same for the same error, and for panics in the same function of the user's own. What comes without such a function is of the last panic
// that said the same.
func (l *Log) keyOf(e *entry) string {
	said := e.key()
	if !e.Panic {
		return said
	}
	if frames := ownFrames(e.Trace); len(frames) > 0 {
		function, _, _ := strings.Cut(frames[0], " (")
		l.panics[said] = said + " in " + function
	}
	return cmp.Or(l.panics[said], said)
}

// harmless reports whether e is what managers log when they are told to stop, or when another was quicker to write: they try
// again by themselves.
func harmless(e *entry) bool {
	said := e.Message + " " + e.Error
	return slices.ContainsFunc([]string{
		"context canceled", "http: Server closed", "use of closed network connection", "leader election lost", "TLS handshake error",
		"the object has been modified", "failed waiting for all runnables to end",
	}, func(s string) bool { return strings.Contains(said, s) })
}

// Reader takes the log of one container line by line. Close ends it.
type Reader struct {
	log     *Log
	prefix  []byte
	line    []byte
	skip    bool // the rest of a line that is too long
	pending *entry
	lines   []string // the last, without empty ones
}

// Reader returns a Reader of one container's log. prefix is taken off the lines that have it.
func (l *Log) Reader(prefix string) *Reader { return &Reader{log: l, prefix: []byte(prefix)} }

// Write never fails.
func (r *Reader) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		part, rest, ended := bytes.Cut(p, []byte("\n"))
		if room := maxLine - len(r.line); !r.skip {
			r.line = append(r.line, part[:min(len(part), room)]...)
			r.skip = len(part) > room
		}
		if p = rest; ended {
			r.end()
		}
	}
	return n, nil
}

// Close takes what was written for the whole log.
func (r *Reader) Close() error {
	if len(r.line) > 0 {
		r.end()
	}
	r.flush()
	return nil
}

// Tail returns the last lines that were read, besides those that say what is Aside.
func (r *Reader) Tail() string { return strings.Join(r.lines, "\n") }

// end takes the line that was read.
func (r *Reader) end() {
	line := Clean(bytes.TrimPrefix(r.line, r.prefix))
	r.line, r.skip = r.line[:0], false
	if strings.TrimSpace(line) != "" && (r.log.Aside == "" || !strings.Contains(line, r.log.Aside)) {
		r.lines = append(r.lines, Cut(line, tailLine))
		r.lines = r.lines[max(0, len(r.lines)-tailLines):]
	}
	if r.pending != nil && r.pending.continues(line) {
		if len(r.pending.Trace) < maxTrace {
			r.pending.Trace = append(r.pending.Trace, Cut(line, tailLine))
		}
		return
	}
	r.flush()
	r.pending = parse(line, time.Now())
}

func (r *Reader) flush() {
	if r.pending != nil {
		r.log.add(r.pending)
	}
	r.pending = nil
}

// Clean returns what was logged as text: valid, without the sequences by which terminals are coloured and other control
// characters, but for tabs and the ends of lines.
func Clean(logged []byte) string {
	s := strings.ToValidUTF8(string(logged), "\uFFFD")
	if strings.ContainsRune(s, '\x1b') {
		s = escapes.ReplaceAllString(s, "")
	}
	return strings.Map(func(c rune) rune {
		if c < ' ' && c != '\t' && c != '\n' || c >= 0x7f && c < 0xa0 {
			return -1
		}
		return c
	}, s)
}

// Cut returns s, or as much of it as n bytes hold.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
