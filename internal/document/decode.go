package document

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/olmkit/olmkit/internal/finding"
)

// Decode is json.Unmarshal for those who want little of a large document: fields that v lacks are passed over quickly,
// and each json.RawMessage is a part of raw, not a copy. What is unusual, and every error, is json.Unmarshal's.
func Decode(raw json.RawMessage, v any) error {
	into := reflect.ValueOf(v).Elem()
	before := reflect.New(into.Type()).Elem()
	before.Set(into)
	if end := decode(raw, space(raw, 0), into, 0); end >= 0 && space(raw, end) == len(raw) {
		return nil
	}
	into.Set(before)
	return json.Unmarshal(raw, v)
}

// Mismatch says in plain words what is wrong with the content of d by an error of Decode, and where. prefix leads to what was
// decoded.
func (d *Document) Mismatch(err error, prefix ...any) (finding.Location, string) {
	path := slices.Clone(prefix)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		for step := range strings.SplitSeq(wrong.Field, ".") {
			if step != "" {
				path = append(path, step)
			}
		}
	}
	return d.Place(path...), Plain(err)
}

// Plain is an error of Decode in plain words.
func Plain(err error) string {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return strings.TrimPrefix(err.Error(), "json: ")
	}
	what := cmp.Or(wrong.Field, "the document")
	return fmt.Sprintf("%s is %s where %s belongs", what, article(wrong.Value), article(wrong.Type.Kind().String()))
}

// article is a Go kind, or a type of JSON, in the words of YAML, with its article.
func article(kind string) string {
	switch kind {
	case "slice", "array":
		return "a list"
	case "struct", "map", "object":
		return "a mapping"
	case "null":
		return kind
	}
	if strings.HasPrefix(kind, "int") {
		return "an integer"
	}
	return "a " + kind
}

// Fields returns the names of an object's fields; nil for what is no object.
func Fields(raw json.RawMessage) map[string]bool {
	names := map[string]bool{}
	start := space(raw, 0)
	if end := Members(raw, start, func(key []byte, at int) int {
		names[unquote(key)] = true
		return skip(raw, at, 1)
	}); end >= 0 && space(raw, end) == len(raw) {
		return names
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	clear(names)
	for name := range fields {
		names[name] = true
	}
	return names
}

// Values calls visit with the values in raw down to a depth, each after what is in it: the keys that lead there, "" for each list, and
// where in raw it begins and ends. keys is overwritten after that.
func Values(raw json.RawMessage, depth int, visit func(keys []string, begin, end int)) {
	keys := make([]string, 0, depth)
	var value func(i int) int
	inside := func(key string, i int) int {
		keys = append(keys, key)
		end := value(i)
		if end >= 0 {
			visit(keys, i, end)
		}
		keys = keys[:len(keys)-1]
		return end
	}
	value = func(i int) int {
		switch c := byteAt(raw, i); {
		case c == '{' && len(keys) < depth:
			return pairs(raw, i, func(start, end, at int) int { return inside(unquote(raw[start:end]), at) })
		case c == '[' && len(keys) < depth:
			return items(raw, i, func(at int) int { return inside("", at) })
		}
		return skip(raw, i, len(keys))
	}
	value(space(raw, 0))
}

// IsBase64 reports whether all of text can be decoded. It keeps nothing of that: most of a catalog is such text.
func IsBase64(text []byte) bool {
	if len(text)%4 == 0 && inAlphabet(bytes.TrimRight(text[max(0, len(text)-2):], "=")) && inAlphabet(text[:max(0, len(text)-2)]) {
		return true
	}
	const chunk = 4 << 10
	var decoded [chunk / 4 * 3]byte
	for len(text) > 0 {
		part := text[:min(chunk, len(text))]
		text = text[len(part):]
		_, err := base64.StdEncoding.Decode(decoded[:], part)
		if err != nil || len(text) > 0 && part[len(part)-1] == '=' {
			return false
		}
	}
	return true
}

// base64Alphabet has 0 for the letters of base64, and 1 for all else.
var base64Alphabet = func() (not [256]byte) {
	for i := range not {
		not[i] = 1
	}
	for _, letter := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		not[letter] = 0
	}
	return not
}()

// inAlphabet reports whether text holds nothing but the letters of base64.
func inAlphabet(text []byte) bool {
	var strange byte
	for ; len(text) >= 8; text = text[8:] {
		eight := text[:8]
		strange |= base64Alphabet[eight[0]] | base64Alphabet[eight[1]] | base64Alphabet[eight[2]] | base64Alphabet[eight[3]] |
			base64Alphabet[eight[4]] | base64Alphabet[eight[5]] | base64Alphabet[eight[6]] | base64Alphabet[eight[7]]
	}
	for _, letter := range text {
		strange |= base64Alphabet[letter]
	}
	return strange == 0
}

// decode reads the value at data[i] and returns its end, or -1 where json.Unmarshal is to be asked.
func decode(data []byte, i int, into reflect.Value, depth int) int {
	if depth > deepest {
		return -1
	}
	t := into.Type()
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		end := skip(data, i, depth)
		if end >= 0 {
			into.SetBytes(data[i:end:end])
		}
		return end
	case isOwnReader(t):
	case t.Kind() == reflect.Struct && byteAt(data, i) == '{':
		if fields := fieldsOf(t); fields != nil {
			return decodeStruct(data, i, into, fields, depth)
		}
	case t.Kind() == reflect.Slice && byteAt(data, i) == '[' && t.Elem().Kind() != reflect.Uint8:
		into.Set(reflect.MakeSlice(t, 0, 0))
		return items(data, i, func(at int) int {
			into.Set(reflect.Append(into, reflect.Zero(t.Elem())))
			return decode(data, at, into.Index(into.Len()-1), depth+1)
		})
	case t == reflect.TypeFor[[]byte]() && byteAt(data, i) == '"':
		end := skipString(data, i)
		if end >= 0 {
			decoded, err := base64.StdEncoding.AppendDecode(nil, data[i+1:end-1])
			if err == nil {
				into.SetBytes(decoded)
				return end
			}
		}
	case t.Kind() == reflect.String && byteAt(data, i) == '"':
		end := skipString(data, i)
		if end >= 0 && bytes.IndexByte(data[i:end], '\\') < 0 && utf8.Valid(data[i:end]) {
			into.SetString(string(data[i+1 : end-1]))
			return end
		}
	}
	end := skip(data, i, depth)
	if end < 0 || json.Unmarshal(data[i:end], into.Addr().Interface()) != nil {
		return -1
	}
	return end
}

func decodeStruct(data []byte, i int, into reflect.Value, fields map[string]int, depth int) int {
	var seen uint64
	return members(data, i, func(key []byte, at int) int {
		name := key[1 : len(key)-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			return -1
		}
		field, known := fields[string(name)]
		if !known {
			for other, index := range fields {
				if strings.EqualFold(other, string(name)) {
					field, known = index, true
				}
			}
		}
		if !known {
			return skip(data, at, depth+1)
		}
		if seen&(1<<field) != 0 {
			return -1 // how two of a name become one is for encoding/json to say
		}
		seen |= 1 << field
		return decode(data, at, into.Field(field), depth+1)
	})
}

// isOwnReader reports whether values of t know how to read themselves.
func isOwnReader(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

var fieldsByType sync.Map // of reflect.Type, to map[string]int

// fieldsOf returns the indexes of a struct's fields by their names in JSON; nil for structs that are more than a list of
// named fields.
func fieldsOf(t reflect.Type) map[string]int {
	if known, ok := fieldsByType.Load(t); ok {
		return known.(map[string]int)
	}
	fields := make(map[string]int, t.NumField())
	for i := range t.NumField() {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if t.Field(i).Anonymous || !t.Field(i).IsExported() || name == "" || name == "-" || strings.Contains(options, "string") || i == 64 {
			fields = nil
			break
		}
		fields[name] = i
	}
	fieldsByType.Store(t, fields)
	return fields
}
