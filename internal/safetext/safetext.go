// Package safetext makes text of others fit to be shown: names, messages, logs and answers of registries can hold sequences
// that a terminal, or a CI server that reads the output, would obey.
package safetext

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns s, of several lines, with nothing in it that a terminal or a CI server obeys; what was, is shown instead.
func Text(s string) string {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, obeyed) {
		s = visible(s)
	}
	if strings.Contains(s, "::") || strings.Contains(s, "##") {
		s = serverCommand.ReplaceAllString(s, `$1$3\$2$4`)
	}
	return s
}

// Line returns s as Text does, in one line.
func Line(s string) string {
	s = Text(s)
	if strings.Contains(s, "\n") {
		s = strings.ReplaceAll(s, "\n", `\n`)
	}
	return s
}

// maxLine is how much of a line Lines holds back before it writes it in parts (bytes).
const maxLine = 64 << 10

// Lines writes to W what it is written, a line at a time as Text returns it.
type Lines struct {
	W    io.Writer
	rest []byte
}

// Write is io.Writer's.
func (l *Lines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		end := bytes.IndexByte(l.rest, '\n') + 1
		if end == 0 && len(l.rest) < maxLine {
			return len(p), nil
		}
		if end == 0 {
			end = len(l.rest)
		}
		line := string(l.rest[:end])
		l.rest = l.rest[end:]
		if _, err := io.WriteString(l.W, Text(line)); err != nil {
			return 0, err
		}
	}
}

// Flush writes the last line if it has no end.
func (l *Lines) Flush() error {
	_, err := io.WriteString(l.W, Text(string(l.rest)))
	l.rest = nil
	return err
}

// serverCommand matches how commands begin that CI servers take from output: at the beginning of a line for GitHub
// (https://github.com/actions/runner, src/Runner.Common/ActionCommand.cs), where a word may come to stand when lines are
// broken, and anywhere in it for its older form and that of Azure Pipelines.
var serverCommand = regexp.MustCompile(`(^|\s)(::[A-Za-z])|(#)(#(?:vso)?\[)`)

// Shown reports whether a terminal does nothing with r but to show it.
func Shown(r rune) bool { return !obeyed(r) }

// obeyed reports whether r is no character to be shown: a control character, one that changes the direction or the lines of
// what stands around it, or one that nobody sees.
func obeyed(r rune) bool {
	switch {
	case r == '\n' || r == '\t', ' ' <= r && r <= '~': // nearly all there is
		return false
	case unicode.IsControl(r), r == '\u2028', r == '\u2029', unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return true
	}
	return unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r) // those marks are seen
}

func visible(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1, r < utf8.RuneSelf && obeyed(r):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case obeyed(r):
			b.WriteString(escape(r))
		default:
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String()
}

// escape returns r as Go and YAML write it in quotes.
func escape(r rune) string {
	if r > 0xffff {
		return fmt.Sprintf(`\U%08x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// Clean returns a copy of v, to any depth, with the strings in it as Line returns them; those of the fields called severalLines
// as Text does. What is not exported stays shared.
func Clean[T any](v T, severalLines ...string) T {
	several := map[string]bool{}
	for _, name := range severalLines {
		several[name] = true
	}
	cleaned, ok := clean(reflect.ValueOf(&v).Elem(), Line, several).Interface().(T)
	if !ok {
		return v // a nil interface
	}
	return cleaned
}

func clean(v reflect.Value, fit func(string) string, several map[string]bool) reflect.Value {
	into := reflect.New(v.Type()).Elem()
	into.Set(v)
	switch v.Kind() {
	case reflect.String:
		into.SetString(fit(v.String()))
	case reflect.Pointer:
		if !v.IsNil() {
			into.Set(reflect.New(v.Type().Elem()))
			into.Elem().Set(clean(v.Elem(), fit, several))
		}
	case reflect.Interface:
		if !v.IsNil() {
			into.Set(clean(v.Elem(), fit, several))
		}
	case reflect.Slice:
		if !v.IsNil() {
			into.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		}
		for i := range v.Len() {
			into.Index(i).Set(clean(v.Index(i), fit, several))
		}
	case reflect.Array:
		for i := range v.Len() {
			into.Index(i).Set(clean(v.Index(i), fit, several))
		}
	case reflect.Map:
		if !v.IsNil() {
			into.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
		}
		for _, key := range v.MapKeys() {
			into.SetMapIndex(clean(key, fit, several), clean(v.MapIndex(key), fit, several))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if !field.IsExported() {
				continue
			}
			fits := fit
			if several[field.Name] {
				fits = Text
			}
			into.Field(i).Set(clean(v.Field(i), fits, several))
		}
	}
	return into
}
