package observe

import (
	"bytes"
	"io"
	"strings"
)

// longestLine is how long a line is at most of which all is looked at at once, and longestLeak how much of it is quoted.
const (
	longestLine = 1 << 20
	longestLeak = 300
)

// maskedLog writes on what is written to it, line by line, without the credentials that are known, and notes the first line that had one.
type maskedLog struct {
	to    io.Writer
	known *strings.Replacer // nil for none
	rest  []byte            // of a line that has not ended
	leak  string            // the first line that had a credential, without that
}

func (m *maskedLog) Write(p []byte) (int, error) {
	m.rest = append(m.rest, p...)
	for {
		end := bytes.IndexByte(m.rest, '\n') + 1
		if end == 0 && len(m.rest) < longestLine {
			return len(p), nil
		}
		if end == 0 {
			end = len(m.rest)
		}
		line := m.rest[:end]
		m.rest = m.rest[end:]
		if err := m.pass(line); err != nil {
			return 0, err
		}
	}
}

// end writes on what is left of the last line.
func (m *maskedLog) end() error {
	rest := m.rest
	m.rest = nil
	return m.pass(rest)
}

// pass writes a line on.
func (m *maskedLog) pass(line []byte) error {
	text := string(line)
	if m.known != nil {
		text = m.known.Replace(text)
	}
	if m.leak == "" && text != string(line) {
		m.leak = strings.TrimSpace(text)
		m.leak = strings.ToValidUTF8(m.leak[:min(len(m.leak), longestLeak)], "")
	}
	_, err := io.WriteString(m.to, text)
	return err
}
