package managerlog

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// parse returns the error that line tells, or nil. now tells the year of lines that leave it out.
func parse(line string, now time.Time) *entry {
	trimmed := strings.TrimSpace(line)
	var e *entry
	switch {
	case trimmed == "":
		return nil
	case strings.HasPrefix(trimmed, "{"):
		e = parseJSON(trimmed)
	case strings.HasPrefix(line, "panic: "), strings.HasPrefix(line, "fatal error: "):
		e = &entry{Message: line, Panic: true, Line: line, crash: true}
	case klogLine().MatchString(line):
		e = parseKlog(line, now)
	case strings.Contains(line, "\t"):
		e = parseConsole(line)
	case levelPair.MatchString(line):
		e = parsePairs(line)
	default:
		e = parsePlain(line)
	}
	if e == nil {
		return nil
	}
	if strings.Contains(e.Message, "Observed a panic") || strings.HasPrefix(e.Error, "panic: ") && strings.HasSuffix(e.Error, "[recovered]") {
		e.Panic = true
		if v := e.Fields["panic"]; v != "" {
			e.Error = v
		}
	}
	e.Message, e.Error = Cut(e.Message, maxExcerpt/2), Cut(e.Error, maxExcerpt)
	return e
}

// bad reports whether a level is one of errors.
func bad(level string) bool {
	switch strings.ToLower(strings.Trim(level, "[]: ")) {
	case "error", "err", "fatal", "panic", "dpanic", "critical", "crit", "severe", "emergency", "alert":
		return true
	}
	return false
}

// parseJSON reads zap, zerolog, logrus, slog, funcr and klog's JSON.
func parseJSON(line string) *entry {
	var raw map[string]any
	if json.Unmarshal([]byte(line), &raw) != nil {
		return nil
	}
	e := entryOf(raw)
	if e == nil {
		return nil
	}
	level := firstField(e.Fields, "level", "severity", "lvl")
	// funcr and klog tell an error by having one, and no verbosity: their levels are numbers.
	if _, err := strconv.Atoi(level); err == nil {
		level = ""
	}
	if _, verbose := raw["v"]; level == "" && (e.Error == "" || verbose) || level != "" && !bad(level) {
		return nil
	}
	return e
}

// entryOf makes an entry of the fields of a record.
func entryOf(raw map[string]any) *entry {
	e := &entry{Fields: flatten(raw)}
	e.Message = firstField(e.Fields, "msg", "message")
	e.Error = firstField(e.Fields, "error", "err")
	if e.Error == "<nil>" || e.Error == "null" {
		e.Error = ""
	}
	if stack := firstField(e.Fields, "stacktrace", "stack", "errorVerbose"); stack != "" {
		for line := range strings.Lines(stack) {
			if len(e.Trace) < maxTrace {
				e.Trace = append(e.Trace, strings.TrimRight(line, "\n"))
			}
		}
	}
	e.At = timeOf(firstField(e.Fields, "ts", "time", "timestamp"))
	if e.Message == "" && e.Error == "" {
		return nil
	}
	return e
}

func firstField(fields map[string]string, keys ...string) string {
	for _, key := range keys {
		if v := fields[key]; v != "" {
			return v
		}
	}
	return ""
}

// flatten makes texts of the values. The object that a controller is at is named "object", whatever the kind's key is.
func flatten(raw map[string]any) map[string]string {
	fields := map[string]string{}
	for key, value := range raw {
		switch v := value.(type) {
		case string:
			fields[key] = v
		case float64:
			fields[key] = strconv.FormatFloat(v, 'f', -1, 64)
		case nil:
		case map[string]any:
			name, _ := v["name"].(string)
			namespace, _ := v["namespace"].(string)
			if name != "" && len(v) <= 2 {
				fields[key] = strings.TrimPrefix(namespace+"/"+name, "/")
				fields["object.name"], fields["object.namespace"] = name, namespace
				continue
			}
			data, _ := json.Marshal(v)
			fields[key] = Cut(string(data), maxExcerpt)
		default:
			fields[key] = Cut(fmt.Sprint(v), maxExcerpt)
		}
	}
	return fields
}

// timeOf reads seconds since 1970, or a time as text; zero if it is none.
func timeOf(s string) time.Time {
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		switch {
		case f > 1e17:
			return time.Unix(0, int64(min(f, 9e18)))
		case f > 1e11:
			return time.UnixMilli(int64(f))
		case f > 1e8:
			return time.UnixMicro(int64(f * 1e6))
		}
		return time.Time{}
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999Z0700", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999", "2006/01/02 15:04:05.999999999"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t
		}
	}
	return time.Time{}
}

var klogLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([IWEF])(\d{4} \d\d:\d\d:\d\d\.\d+)\s+\d+ ([^\]]+)\] (.*)$`)
})

func parseKlog(line string, now time.Time) *entry {
	m := klogLine().FindStringSubmatch(line)
	if m[1] != "E" && m[1] != "F" {
		return nil
	}
	e := &entry{Message: m[4], Line: line, console: true}
	if strings.HasPrefix(m[4], `"`) {
		e = pairs("msg=" + m[4])
		e.Line, e.console = line, true
	}
	if t, err := time.Parse("2006 0102 15:04:05.999999999", strconv.Itoa(now.UTC().Year())+" "+m[2]); err == nil {
		e.At = t
	}
	return e
}

// parseConsole reads zap's console format: time, level, name, caller, message and fields behind tabs. Some are left out.
func parseConsole(line string) *entry {
	parts := strings.Split(line, "\t")
	level := 0
	for level < 2 && level < len(parts) && !bad(parts[level]) {
		level++
	}
	if level == 2 || level+1 >= len(parts) {
		return nil
	}
	rest := parts[level+1:]
	raw := map[string]any{}
	if last := rest[len(rest)-1]; len(rest) > 1 && strings.HasPrefix(last, "{") && json.Unmarshal([]byte(last), &raw) == nil {
		rest = rest[:len(rest)-1]
	}
	raw["msg"] = rest[len(rest)-1]
	e := entryOf(raw)
	if e == nil {
		return nil
	}
	e.console = true
	e.At = timeOf(parts[0])
	return e
}

var (
	levelPair = regexp.MustCompile(`(^|\s)(level|lvl|severity)="?[a-zA-Z]+"?(\s|$)`)
	pair      = regexp.MustCompile(`([\w.-]+)=("(?:[^"\\]|\\.)*"|\S*)`)
)

// parsePairs reads logfmt, as slog's text and logrus write it.
func parsePairs(line string) *entry {
	e := pairs(line)
	if e == nil || !bad(firstField(e.Fields, "level", "lvl", "severity")) {
		return nil
	}
	return e
}

// pairs makes an entry of a line of key=value.
func pairs(line string) *entry {
	raw := map[string]any{}
	for _, m := range pair.FindAllStringSubmatch(line, 64) {
		value := m[2]
		if unquoted, err := strconv.Unquote(value); err == nil {
			value = unquoted
		}
		raw[m[1]] = value
	}
	e := entryOf(raw)
	if e == nil {
		return &entry{Message: line, Fields: flatten(raw)}
	}
	e.Line = line
	return e
}

var (
	plainTime = regexp.MustCompile(`^\[?(\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)\]?\s*`)
	plainBad  = regexp.MustCompile(`(^|[\s\[(|])(ERROR|FATAL|CRITICAL|SEVERE|PANIC)([\s\]):|]|$)|^[Ee]rror[: ]|^[\w./-]+: [Ee]rror[: ]|^failed to \w+|: error: `)
)

// plainWithin is where in a line of plain text the word that makes it an error stands.
const plainWithin = 100

// parsePlain reads lines of text: an error is one that says so at its beginning, in the words that loggers use.
func parsePlain(line string) *entry {
	e := &entry{Line: line, Message: line}
	if m := plainTime.FindStringSubmatch(line); m != nil {
		e.At = timeOf(m[1])
		e.Message = line[len(m[0]):]
	}
	at := plainBad.FindStringIndex(e.Message)
	if at == nil || at[0] > plainWithin {
		return nil
	}
	return e
}
