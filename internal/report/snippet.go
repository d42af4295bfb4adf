package report

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/safetext"
)

const (
	tabWidth = 4  // of tabs in source lines
	before   = 40 // columns of a long line that are shown before the place
)

// serverCommand takes what CI servers obey anywhere in a line out of one of a source, and keeps its columns.
var serverCommand = strings.NewReplacer("##[", "#·[", "##vso[", "#·vso[")

// within names the field of an encoded object that f is about: the path, the object, and the bundle that holds it. It is ""
// where f stands in a file itself.
func within(f finding.Finding) string {
	at := f.Location
	if at == nil || at.Path == "" && at.Object == "" {
		return ""
	}
	s := "in " + at.Object
	if at.Path != "" {
		s = "at " + at.Path + " of " + cmp.Or(at.Object, "the object")
	}
	if bundle := cmp.Or(f.Subject.To, f.Subject.From); bundle != "" {
		s += " in bundle " + bundle
	}
	return s
}

// snippet prints the source line of a finding with a caret under the field, as far as the source is at hand. A field of an
// encoded object has no line: it is named instead, with the lines that it has as YAML.
func (t *text) snippet(f finding.Finding, indent string) {
	if f.Location == nil {
		return
	}
	if at := within(f); at != "" {
		t.paragraph(indent, at)
		for line := range strings.Lines(f.Location.Excerpt) {
			field := strings.TrimLeft(line, " ")
			deep := line[:len(line)-len(field)] // a line that is cut keeps its place among the others
			shown, _ := excerpt(field, 0, max(width/2, width-len(indent)-2-len(deep)))
			t.line("%s%s %s%s", indent, t.paint(dim, "|"), deep, shown)
		}
		return
	}
	if t.source == nil || f.Location.Line == 0 {
		return
	}
	line, ok := t.source(f.Location.File, f.Location.Line)
	if !ok || strings.TrimSpace(line) == "" {
		return
	}
	number := fmt.Sprint(f.Location.Line)
	shown, caret := excerpt(line, f.Location.Column, width-len(indent)-len(number)-3)
	t.line("%s%s %s", indent, t.paint(dim, number+" |"), shown)
	if caret != "" {
		t.line("%s%s %s", indent, t.paint(dim, strings.Repeat(" ", len(number))+" |"), t.paint(red+bold, caret))
	}
}

// excerpt returns what of a source line is shown in at most limit columns, and the line below that points at the field which
// begins at column, a count of characters from 1; column 0 points at nothing.
func excerpt(line string, column, limit int) (shown, caret string) {
	runes, at, headless := around(strings.TrimRight(line, "\r\n"), column, windows*limit)
	end, start := at, 0
	if at >= 0 {
		end = at + fieldLength(runes[at:])
	}
	if at >= 0 && (headless || columns(runes[:end]) > limit) {
		start = at
		for w := 0; start > 0; start-- {
			if w += columns(runes[start-1 : start]); w > before {
				break
			}
		}
	}
	var out strings.Builder
	lead, mark, used := 0, 0, 0
	if start > 0 {
		out.WriteString("…")
		lead, used = 1, 1
	} else if columns(runes) > limit {
		// Without the indentation, which says nothing when the line is cut.
		for at != start && start < len(runes) && unicode.IsSpace(runes[start]) {
			start++
		}
	}
	for i := start; i < len(runes); i++ {
		w := columns(runes[i : i+1])
		if used+w > limit-1 && columns(runes[i:]) > limit-used {
			out.WriteString("…")
			break
		}
		used += w
		switch {
		case i < at:
			lead += w
		case i < end:
			mark += w
		}
		switch r := runes[i]; {
		case r == '\t':
			out.WriteString(strings.Repeat(" ", tabWidth))
		case safetext.Shown(r) && (unicode.IsPrint(r) || unicode.Is(unicode.M, r)):
			out.WriteRune(r)
		case w > 0:
			out.WriteRune('·') // what would move the cursor or colour the terminal
		}
	}
	shown = serverCommand.Replace(strings.TrimRight(out.String(), " "))
	if at < 0 {
		return shown, ""
	}
	return shown, strings.Repeat(" ", lead) + strings.Repeat("^", max(mark, 1))
}

// windows is how many times what is shown is looked at, before and after the place: there are characters without a width.
const windows = 4

// around returns the characters of line around column, at most so many before and after, and which of them is at column: -1 if that is
// none. headless says that the line begins before. A line can be as long as a file, and have many findings.
func around(line string, column, most int) (runes []rune, at int, headless bool) {
	at = column - 1
	rest, skipped := line, 0
	for at > most { // by pieces, since counting is faster than decoding
		piece := wholeRunes(rest, min(4096, at-most))
		n := utf8.RuneCountInString(piece)
		if n == 0 {
			break
		}
		rest, skipped, at = rest[len(piece):], skipped+n, at-n
	}
	for i := range rest {
		if len(runes) == 2*most {
			break
		}
		r, _ := utf8.DecodeRuneInString(rest[i:])
		runes = append(runes, r)
	}
	if column < 1 || at >= len(runes) {
		if skipped > 0 { // there is no such column
			runes, _, _ = around(line, 0, most)
		}
		return runes, -1, false
	}
	return runes, at, skipped > 0
}

// wholeRunes is the beginning of s, of at most n bytes, that ends with a character.
func wholeRunes(s string, n int) string {
	if n >= len(s) {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// fieldLength is the number of characters of the key or value that text begins with.
func fieldLength(text []rune) int {
	if text[0] == '"' || text[0] == '\'' {
		for i := 1; i < len(text); i++ {
			switch {
			case text[i] == '\\' && text[0] == '"':
				i++
			case text[i] == text[0]:
				return i + 1
			}
		}
		return len(text)
	}
	if text[0] == '{' || text[0] == '[' {
		return 1
	}
	for i, r := range text {
		if i > 0 && (r == ' ' || r == '\t' || r == ',' || r == '}' || r == ']' || r == ':' && (i+1 == len(text) || unicode.IsSpace(text[i+1]))) {
			return i
		}
	}
	return len(text)
}

// columns is how wide runes are on a terminal.
func columns(runes []rune) int {
	n := 0
	for _, r := range runes {
		switch {
		case r == '\t':
			n += tabWidth
		case unicode.Is(unicode.Mn, r), unicode.Is(unicode.Me, r), unicode.Is(unicode.Cf, r):
		case wide(r):
			n += 2
		default:
			n++
		}
	}
	return n
}

// wide reports whether terminals give r two columns: https://www.unicode.org/reports/tr11/.
func wide(r rune) bool {
	switch {
	case r < 0x1100:
		return false
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Yi):
		return r < 0xff61 || r > 0xffdc // half-width forms
	}
	return r >= 0x3000 && r <= 0x303e || r >= 0xff01 && r <= 0xff60 || r >= 0xffe0 && r <= 0xffe6 || r >= 0x1f300 && r <= 0x1f64f || r >= 0x1f680 && r <= 0x1f6ff || r >= 0x1f900 && r <= 0x1faff
}
