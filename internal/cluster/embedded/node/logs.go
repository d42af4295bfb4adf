package node

import (
	"bytes"
	"context"
	"io"
	"sync"
	"time"
)

// maxLog bounds the bytes that are kept of the output of one run of a container; the oldest go first. Each line counts for
// lineCost more: an empty one takes memory too.
const (
	maxLog   = 8 << 20
	lineCost = 64
)

// maxLine bounds the bytes of one line; a longer one is broken.
const maxLine = 64 << 10

// runLog keeps the output of one run of a container, each line with its time. It is safe for concurrent use.
type runLog struct {
	mu      sync.Mutex
	changed chan struct{} // closed at each change
	lines   []logLine
	first   int // number of the first kept line
	size    int
	partial []byte
	closed  bool
}

type logLine struct {
	at   time.Time
	text []byte // with its newline
}

func newRunLog() *runLog { return &runLog{changed: make(chan struct{})} }

// Write takes the container's output.
func (l *runLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.partial = append(l.partial, p...)
	for len(l.partial) > 0 {
		end := bytes.IndexByte(l.partial, '\n') + 1
		if end == 0 && len(l.partial) < maxLine {
			break
		}
		if end == 0 {
			end = maxLine
		}
		l.add(now, bytes.Clone(l.partial[:end]))
		l.partial = l.partial[end:]
	}
	l.wake()
	return len(p), nil
}

func (l *runLog) add(at time.Time, line []byte) {
	l.lines = append(l.lines, logLine{at, line})
	l.size += len(line) + lineCost
	for l.size > maxLog {
		l.size -= len(l.lines[0].text) + lineCost
		l.lines = l.lines[1:]
		l.first++
	}
}

// Close ends the log.
func (l *runLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.partial) > 0 {
		l.add(time.Now(), append(l.partial, '\n'))
		l.partial = nil
	}
	l.closed = true
	l.wake()
	return nil
}

func (l *runLog) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// logOptions choose what of a log is copied.
type logOptions struct {
	tail       *int64 // last lines; nil for all
	since      time.Time
	follow     bool
	timestamps bool
}

// copy writes the log to w as options say; with follow until the container ends or ctx does.
func (l *runLog) copy(ctx context.Context, w io.Writer, options logOptions) error {
	next := -1
	for {
		l.mu.Lock()
		if next < 0 && options.tail != nil {
			next = l.first + len(l.lines) - int(*options.tail)
		}
		next = max(next, l.first)
		pending := append([]logLine(nil), l.lines[next-l.first:]...)
		closed, changed := l.closed, l.changed
		l.mu.Unlock()
		next += len(pending)
		for _, line := range pending {
			if line.at.Before(options.since) {
				continue
			}
			if options.timestamps {
				if _, err := io.WriteString(w, line.at.UTC().Format(time.RFC3339Nano)+" "); err != nil {
					return err
				}
			}
			if _, err := w.Write(line.text); err != nil {
				return err
			}
		}
		if !options.follow || closed {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}
