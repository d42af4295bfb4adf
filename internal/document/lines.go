package document

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// linesWithin is the most lines that lines returns.
const linesWithin = 6

// lines returns the first lines of the field at path of a JSON text, as YAML: "name: value", and below it what is within,
// indented by two spaces. Where the path leads further than the text does, they are those of the last step that exists. Of a
// mapping that is longer they are what says most of it: an outline. Of other longer ones the last line is "…".
func lines(raw json.RawMessage, path []any) []string {
	start, key := space(raw, 0), ""
	for _, step := range path {
		next, name := memberAt(raw, start, step)
		if next < 0 {
			break
		}
		start, key = next, name
	}
	if key != "" {
		key = keyText(key)
	}
	w := lineWriter{data: raw}
	w.value(start, key, "")
	if n := len(w.lines); n == linesWithin && w.lines[n-1] == more && byteAt(raw, start) == '{' {
		return outline(raw, start, key)
	}
	return w.lines
}

// more is the last line where there are more.
const more = "…"

// outline returns lines of the mapping at data[i]: first its members that take a line, but for a description, then the names of
// the others.
func outline(data []byte, i int, head string) []string {
	var list, short, long []string
	indent := ""
	if head != "" {
		list, indent = append(list, head), "  "
	}
	described := false
	Members(data, i, func(key []byte, at int) int {
		end := Skip(data, at)
		if end < 0 {
			return -1
		}
		name := unquote(key)
		text, fits := inline(data, at, end)
		switch {
		case name == "description":
			described = true
		case fits:
			short = append(short, indent+keyText(name)+" "+text)
		default:
			long = append(long, indent+keyText(name)+" "+more)
		}
		return end
	})
	all := slices.Concat(short, long)
	if room := linesWithin - len(list); len(all) > room || described && len(all) == room {
		return append(append(list, all[:room-1]...), more)
	}
	if list = append(list, all...); described {
		list = append(list, more)
	}
	return list
}

// inline returns a scalar or a list of scalars in one line, if it fits.
func inline(data []byte, at, end int) (text string, fits bool) {
	switch {
	case data[at] == '{':
		return "{}", byteAt(data, space(data, at+1)) == '}'
	case data[at] != '[':
		return scalarText(data[at:end]), !strings.Contains(unquoteText(data[at:end]), "\n")
	}
	var items []string
	fits = true
	Items(data, at, func(begin int) int {
		next := Skip(data, begin)
		if next < 0 || data[begin] == '{' || data[begin] == '[' {
			fits = false
			return -1
		}
		items = append(items, scalarText(data[begin:next]))
		return next
	})
	text = "[" + strings.Join(items, ", ") + "]"
	return text, fits && len(text) <= longestLine
}

// memberAt returns where the value at one step into the value at data[i] begins, and its key, which is "" for an item; or -1.
func memberAt(data []byte, i int, step any) (at int, key string) {
	at = -1
	switch step := step.(type) {
	case string:
		Members(data, i, func(k []byte, begin int) int {
			if name := unquote(k); name == step {
				at, key = begin, name
				return -1
			}
			return Skip(data, begin)
		})
	case int:
		n := 0
		Items(data, i, func(begin int) int {
			if n == step {
				at = begin
				return -1
			}
			n++
			return Skip(data, begin)
		})
	}
	return at, key
}

// named returns Kind/name of a Kubernetes object in JSON.
func named(raw json.RawMessage) string {
	var head struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if Decode(raw, &head) != nil || head.Kind == "" {
		return ""
	}
	return head.Kind + "/" + head.Metadata.Name
}

// lineWriter writes JSON as YAML until it has enough lines.
type lineWriter struct {
	data  []byte
	lines []string
}

// value writes the value at data[i], the first line behind head, which is "" or ends in a colon or a dash, the others behind
// indent. It returns the value's end, or -1 where there are enough lines.
func (w *lineWriter) value(i int, head, indent string) int {
	end := Skip(w.data, i)
	item := strings.HasSuffix(head, "-")
	switch {
	case end < 0:
		return -1
	case byteAt(w.data, i) == '{' && byteAt(w.data, space(w.data, i+1)) != '}':
		if head != "" {
			indent += "  "
		}
		first := indent
		if item {
			first = head + " "
		} else if head != "" && !w.add(head) {
			return -1
		}
		return Members(w.data, i, func(key []byte, at int) int {
			head := first + keyText(unquote(key))
			first = indent
			return w.value(at, head, indent)
		})
	case byteAt(w.data, i) == '[' && byteAt(w.data, space(w.data, i+1)) != ']':
		if head != "" && !w.add(head) {
			return -1
		}
		if item {
			indent += "  "
		}
		return Items(w.data, i, func(at int) int { return w.value(at, indent+"-", indent) })
	}
	if text := unquoteText(w.data[i:end]); strings.Contains(strings.TrimRight(text, "\n"), "\n") && head != "" && utf8.ValidString(text) {
		return w.block(text, head, indent+"  ", end)
	}
	text := scalarText(w.data[i:end])
	if head != "" {
		text = head + " " + text
	}
	if !w.add(text) {
		return -1
	}
	return end
}

// block writes a text of several lines, which ends at end.
func (w *lineWriter) block(text, head, indent string, end int) int {
	if !w.add(head + " |") {
		return -1
	}
	for line := range strings.Lines(text) {
		if !w.add(indent + cut(strings.TrimRight(line, "\r\n"))) {
			return -1
		}
	}
	return end
}

// unquoteText is the text that raw is, and "" if it is something else.
func unquoteText(raw []byte) string {
	if raw[0] != '"' {
		return ""
	}
	return unquote(raw)
}

// cut shortens a line that nobody reads to the end.
func cut(line string) string {
	if runes := []rune(line); len(runes) > longestLine {
		return string(runes[:longestLine]) + "…"
	}
	return line
}

// keyText is a key with its colon.
func keyText(key string) string {
	if isUnquoted(key) {
		return key + ":"
	}
	return strconv.Quote(key) + ":"
}

// scalarText is a JSON value without anything in it, as YAML, and not longer than a line.
func scalarText(raw []byte) string {
	text := string(raw)
	if raw[0] == '"' {
		if s := unquote(raw); isUnquoted(s) {
			text = s
		}
	}
	return cut(text)
}

// longestLine is how many characters of a text stand in a line.
const longestLine = 160

// unquotedText matches texts that YAML takes for texts without quotes.
var unquotedText = regexp.MustCompile(`^(--)?[A-Za-z_/$]([^\x00-\x1f:"'{}\[\]#&,]|:[^\x00-\x20:"'{}\[\]#&,])*$`)

// otherText are those that it takes for something else all the same.
var otherText = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}

// isUnquoted reports whether YAML takes s for a text without quotes.
func isUnquoted(s string) bool {
	return unquotedText.MatchString(s) && !strings.HasSuffix(s, " ") && !slices.Contains(otherText, strings.ToLower(s))
}

// add adds a line, or says that there are enough.
func (w *lineWriter) add(line string) bool {
	if len(w.lines) == linesWithin {
		w.lines[linesWithin-1] = more
		return false
	}
	w.lines = append(w.lines, line)
	return true
}
