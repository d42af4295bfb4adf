package safetext

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for _, test := range []struct{ in, text, line string }{
		{"plain, über\tall\nlines", "plain, über\tall\nlines", `plain, über` + "\t" + `all\nlines`},
		{"\x1b[31mred\a\r\x7f\u009b", `\x1b[31mred\x07\x0d\x7f\u009b`, ""},
		{"a\xffb", `a\xffb`, ""},
		{"\u202egnp.exe\u2066", `\u202egnp.exe\u2066`, ""},
		{"x\n::error::y", "x\n\\::error::y", `x\n\::error::y`},
		{"a  ::set-output name=x::y ::1 b::c", `a  \::set-output name=x::y ::1 b::c`, ""},
		{"a ##[error]b ##vso[task.x] ###[", `a #\#[error]b #\#vso[task.x] ##\#[`, ""},
		{"\U000e0041", `\ue0041`, ""},
	} {
		if got := Text(test.in); got != test.text {
			t.Errorf("Text(%q) = %q, want %q", test.in, got, test.text)
		}
		if test.line == "" {
			test.line = test.text
		}
		if got := Line(test.in); got != test.line {
			t.Errorf("Line(%q) = %q, want %q", test.in, got, test.line)
		}
	}
}

func TestClean(t *testing.T) {
	type inner struct{ Name, Message string }
	type outer struct {
		Inner  *inner
		List   []inner
		Map    map[string]any
		Call   func() string
		When   time.Time
		hidden string
		Any    any
		None   *inner
	}
	when := time.Unix(1, 2)
	before := outer{Inner: &inner{"a\x1b", "b\n\x1b"}, List: []inner{{"c\n", "d\n"}}, Map: map[string]any{"k\a": "v\a"}, Call: func() string { return "x" }, When: when, hidden: "h\x1b", Any: []string{"\a"}}
	after := Clean(&before, "Message")
	if before.Inner.Name != "a\x1b" || before.List[0].Name != "c\n" {
		t.Error("the original changed")
	}
	if after.Inner.Name != `a\x1b` || after.Inner.Message != "b\n\\x1b" || after.List[0] != (inner{`c\n`, "d\n"}) || after.hidden != "h\x1b" || after.Call() != "x" || !after.When.Equal(when) ||
		!reflect.DeepEqual(after.Map, map[string]any{`k\x07`: `v\x07`}) || !reflect.DeepEqual(after.Any, []string{`\x07`}) {
		t.Errorf("got %+v", after)
	}
}

// harmful returns what of s a terminal or a CI server would obey.
func harmful(s string) string {
	for _, r := range s {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return string(r)
		}
	}
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); len(line) > 2 && strings.HasPrefix(line, "::") && unicode.IsLetter(rune(line[2])) || strings.Contains(line, "##[") || strings.Contains(line, "##vso[") {
			return line
		}
	}
	return ""
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"", "\x1b]0;x\a", " ::error::x", "\u2028::error::", "##vso[", "\xff\n\r::warning::", "\U000e0001"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := harmful(Text(s)); got != "" || !utf8.ValidString(Text(s)) {
			t.Errorf("Text(%q) holds %q", s, got)
		}
		if strings.Contains(Line(s), "\n") {
			t.Errorf("Line(%q) has several lines", s)
		}
		document, err := json.Marshal(map[string]string{s: s})
		if err != nil {
			t.Fatal(err)
		}
		var before, after any
		safe := JSON(document)
		if err := json.Unmarshal(safe, &after); err != nil {
			t.Fatalf("%q: %v", safe, err)
		}
		if err := json.Unmarshal(document, &before); err != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("%q became %q", before, after)
		}
		if got := harmful(string(safe)); got != "" {
			t.Errorf("JSON(%q) holds %q", document, got)
		}
	})
}

// TestLines: what arrives in pieces is cleaned as whole lines, a last one without an end too, and one that never ends in parts.
func TestLines(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	lines := &Lines{W: &out}
	for _, piece := range []string{"etcd| a\x1b[2", "J\n:", ":error::x\nlast \a"} {
		if n, err := lines.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
	}
	if err := lines.Flush(); err != nil || strings.ContainsFunc(out.String(), obeyed) || strings.Contains(out.String(), "\n::error") || !strings.Contains(out.String(), "last") {
		t.Errorf("%q, %v", out.String(), err)
	}
	out.Reset()
	long := strings.Repeat("x", 3*maxLine)
	if _, err := lines.Write([]byte(long)); err != nil || out.Len() == 0 {
		t.Errorf("%d bytes of a line without an end were written: %v", out.Len(), err)
	}
	if err := lines.Flush(); err != nil || out.String() != long {
		t.Errorf("%d bytes, %v", out.Len(), err)
	}
}
