package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// streamed is what Stream says of text that r gives, with all documents cloned.
func streamed(t *testing.T, r io.Reader, text []byte) (documents []*Document, ok bool) {
	t.Helper()
	ok, err := Stream("f", r, func(d *Document, part []byte, offset int64) {
		if !bytes.HasPrefix(text[offset:], part) {
			t.Errorf("%.20s… does not begin at %d", part, offset)
		}
		documents = append(documents, d.Clone())
	})
	if err != nil {
		t.Fatal(err)
	}
	return documents, ok
}

// same fails unless the documents are the same, at the same places.
func same(t *testing.T, got, want []*Document) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d documents, not %d", len(got), len(want))
	}
	for i, d := range got {
		if !bytes.Equal(d.JSON, want[i].JSON) || d.At != want[i].At || d.Place("a") != want[i].Place("a") {
			t.Errorf("document %d: %.20s… at %s, not %.20s… at %s", i, d.JSON, d.At, want[i].JSON, want[i].At)
		}
	}
}

func TestStream(t *testing.T) {
	t.Parallel()
	large := func(size int) string { return fmt.Sprintf("{\"é\": %q,\n \"a\": 1}", strings.Repeat("x", size)) }
	var many strings.Builder
	for i := range 40 {
		many.WriteString(large(i*4000) + strings.Repeat("\n", i%3) + strings.Repeat(" ", i%2))
	}
	for name, text := range map[string]string{
		"nothing":                   "",
		"space":                     " \n",
		"two":                       "{\"a\": 1}\n\n  {\"b\": {}}\n",
		"together":                  `{"a":1}{"a":2}`,
		"many":                      many.String(),
		"a document of its part":    large(streamPart - 20),
		"larger than its part":      large(3*streamPart) + large(10) + large(2*streamPart),
		"YAML":                      "# of two\n---\na: 1\n---\n# next\n\nb:\n- é\n- c: |\n    ---\n    text\n",
		"YAML without a marker":     "a: 1\n",
		"YAML with empty documents": "---\n---\na: 1\n---\n# none\n---\n",
		"much YAML":                 strings.Repeat("---\na:\n  é: "+strings.Repeat("x", 3000)+"\n", 1000),
		"one large YAML":            "a:\n" + strings.Repeat("- "+strings.Repeat("x", 3000)+"\n", 1000) + "--- \nb: 1\n---",
		"what is quoted looks like": `{"a": "} { \" \\"} {"a": ["}"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, err := Parse("f", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range []io.Reader{strings.NewReader(text), iotest.HalfReader(strings.NewReader(text)), iotest.DataErrReader(strings.NewReader(text))} {
				got, ok := streamed(t, r, []byte(text))
				if !ok {
					t.Fatal("it is not read to its end")
				}
				same(t, got, want)
			}
		})
	}
}

// What is no stream of JSON objects is left to Parse.
func TestStreamRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"\t", "---#\n", "--- \t\n", strings.Repeat("\n", 2*streamPart) + "{}", "a: [1", "a: {b: 1}", "a: &x 1", "%YAML 1.2\n---\na: 1\n", "a: 1\n...\n", "a: 1\r\n", "a: 1\n---\na: 'x\n", "[{}]", "{} []", "{} 1", "{", `{"a": 1`, "{} }", "{}\n---\n{}", "{a: 1}", "\xef\xbb\xbf{}", "{\"a\": \"\xff\"}", "{} # no", `{"a": 01}`,
		"{}" + strings.Repeat(" ", streamPart) + "{", "{" + strings.Repeat(" ", 2*streamPart),
	} {
		if _, ok := streamed(t, strings.NewReader(text), []byte(text)); ok {
			t.Errorf("%.20q is read", text)
		}
	}
	broken := errors.New("broken")
	if ok, err := Stream("f", io.MultiReader(strings.NewReader("{}"), iotest.ErrReader(broken)), func(*Document, []byte, int64) {}); ok || !errors.Is(err, broken) {
		t.Errorf("of a reader that breaks: %t, %v", ok, err)
	}
}

func FuzzStream(f *testing.F) {
	f.Add([]byte("{\"a\": 1}\n {}"), uint8(0))
	f.Add([]byte("a: 1\n---\n# x\nb:\n- c: |\n    ---\n"), uint8(0))
	f.Add([]byte(`{"a": "\u00e9"} {"b": [1, {}]}`), uint8(3))
	f.Fuzz(func(t *testing.T, text []byte, more uint8) {
		text = append(text, bytes.Repeat([]byte("{\"a\": \"é\"}\n"), int(more)*100)...)
		got, ok := streamed(t, bytes.NewReader(text), text)
		if !ok {
			return
		}
		want, err := Parse("f", text)
		if err != nil {
			t.Fatalf("Stream reads what Parse does not: %v", err)
		}
		same(t, got, want)
	})
}

// What Detach leaves is found where it was, in the text that is read again.
func TestDetach(t *testing.T) {
	t.Parallel()
	text := []byte(`{"a": [1,` + "\n" + `{"b": "long"}]}`)
	whole, err := Parse("f", text)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	d := whole[0].Detach([]byte(`{"a": [1,{"b": ""}]}`), func() []byte { asked++; return text })
	for range 2 * fewPlaces {
		if got, want := d.Place("a", 1, "b"), whole[0].Place("a", 1, "b"); got != want {
			t.Errorf("it is at %s, not %s", got, want)
		}
	}
	if asked == 0 || d.Duplicates() != nil {
		t.Errorf("the text was asked for %d times; duplicates: %v", asked, d.Duplicates())
	}
	lost := whole[0].Detach(whole[0].JSON, func() []byte { return nil })
	for range 2 * fewPlaces {
		if at := lost.Place("a", 1, "b"); at != lost.At {
			t.Errorf("what is lost is at %s", at)
		}
	}
	twice, err := Parse("f", []byte(`{"a": {"b": 1, "b": 2}}`))
	if err != nil || twice[0].Detach(twice[0].JSON, nil) != nil {
		t.Errorf("a document with a key twice is detached (%v)", err)
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	raw := []byte(` {"a": [{"b": {"c": 1}}, 2], "d": "x"}`)
	var got []string
	Values(raw, 3, func(keys []string, begin, end int) {
		got = append(got, strings.Join(keys, "/")+" "+string(raw[begin:end]))
	})
	want := []string{`a//b {"c": 1}`, `a/ {"b": {"c": 1}}`, `a/ 2`, `a [{"b": {"c": 1}}, 2]`, `d "x"`}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q", got)
	}
}

// The text that several documents were parsed from is that of none.
func TestTextOfOneDocument(t *testing.T) {
	for text, held := range map[string]bool{"a: 1\n": true, "a: !!str 1\n": true, "a: !!str 1\r---\rb: 2\r": false} {
		documents, err := Parse("tea.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range documents {
			if (d.Text() != nil) != held {
				t.Errorf("%q has %d documents, and the text of one is %q", text, len(documents), d.Text())
			}
		}
	}
}
