package safetext

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

func TestText(t *testing.T) {
	for _, test := range []struct{ in, text, line string }{
		{"plain, über\tall\nlines", "plain, über\tall\nlines", `plain, über` + "\t" + `all\nlines`},
		{"\x1b[31mred\a\r\x7f\u009b", `\x1b[31mred\x07\x0d\x7f\u009b`, ""},
		{"pay\u200bload\u2060 so\u00adft \ufeff\u3164\u115f", `pay\u200bload\u2060 so\u00adft \ufeff\u3164\u115f`, ""},
		{"a\xffb", `a\xffb`, ""},
		{"\u202egnp.exe\u2066", `\u202egnp.exe\u2066`, ""},
		{"x\n::error::y", "x\n\\::error::y", `x\n\::error::y`},
		{"a  ::set-output name=x::y ::1 b::c", `a  \::set-output name=x::y ::1 b::c`, ""},
		{"a ##[error]b ##vso[task.x] ###[", `a #\#[error]b #\#vso[task.x] ##\#[`, ""},
		{"\U000e0041", `\U000e0041`, ""},
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

// unseen are characters that nobody sees.
const unseen = "\u00ad\u180e\u200b\u200c\u200d\u2060\u2061\u2062\u2063\u2064\ufeff\u115f\u3164\uffa0\ufff9\ufffa\ufffb\U000e0001\U000e0041"

// harmful returns what of s a terminal or a CI server would obey.
func harmful(s string) string {
	for _, r := range s {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || strings.ContainsRune(unseen, r)) {
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
	for _, s := range []string{"", "\x1b]0;x\a", " ::error::x", "\u2028::error::", "##vso[", "\xff\n\r::warning::", "\U000e0001", "a\u200b ::error::\U000e0041", "b\n  ::error::c\nd", "\u202e: \\ \" ' # ##[x]", strings.Repeat("long words ", 40) + " ::error::x"} {
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
		checkYAML(t, s)
	})
}

// checkYAML fails the test if a tree with the text s everywhere is written as YAML that says another or is obeyed.
func checkYAML(t *testing.T, s string) {
	t.Helper()
	if !utf8.ValidString(s) {
		return // nobody reads such text as YAML or JSON
	}
	scalar := func(style yaml.Style) *yaml.Node {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Style: style}
	}
	styles := []yaml.Style{0, yaml.LiteralStyle, yaml.FoldedStyle, yaml.SingleQuotedStyle, yaml.DoubleQuotedStyle}
	for _, style := range styles {
		if style != yaml.DoubleQuotedStyle && strings.ContainsAny(s, "\t\n ") && Text(s) == s {
			continue // what stays as its author has it may be what yaml.v3 itself writes wrongly
		}
		tree := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{
			scalar(style), scalar(style), {Kind: yaml.ScalarNode, Value: "list"}, {Kind: yaml.SequenceNode, Content: []*yaml.Node{scalar(style)}},
		}}
		if s == "list" {
			return
		}
		for _, compact := range []bool{false, true} {
			written, err := EncodeYAML(tree, compact)
			if err != nil {
				t.Fatal(err)
			}
			if got := harmful(string(written)); got != "" {
				t.Errorf("YAML of %q holds %q:\n%s", s, got, written)
			}
			var got map[string]any
			if err := yaml.Unmarshal(written, &got); err != nil || !reflect.DeepEqual(got, map[string]any{s: s, "list": []any{s}}) {
				t.Fatalf("%q became %q, %v:\n%s", s, got, err, written)
			}
			again, err := YAML(written)
			if err != nil || harmful(string(again)) != "" {
				t.Errorf("%v:\n%s", err, again)
			}
		}
	}
}

// TestYAMLComments: comments show what they hold.
func TestYAMLComments(t *testing.T) {
	t.Parallel()
	got, err := YAML([]byte("# a \u202eb ##[error]c\nkey: v # \u200bd\n"))
	if want := "# a \\u202eb #\\x23[error]c\nkey: v # \\u200bd\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	for _, same := range []string{"key: v # ## d\n", "a: |\n  über\n  ## b\n"} {
		if got, err := YAML([]byte(same)); err != nil || string(got) != same {
			t.Errorf("%q became %q, %v", same, got, err)
		}
	}
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
