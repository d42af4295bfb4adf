package document

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Indent appends the JSON raw to out as json.Indent lays it out, four spaces deep at each level. It is an error if that is out of all proportion, as
// with a long list that is very deep.
func Indent(out []byte, raw json.RawMessage) ([]byte, error) {
	most := len(out) + perByte*len(raw) + maxGrown
	out = slices.Grow(out, len(raw)+len(raw)/8)
	depth := 0
	line := func() {
		out = append(out, '\n')
		for range depth {
			out = append(out, "    "...)
		}
	}
	for i := space(raw, 0); i < len(raw); i = space(raw, i) {
		if len(out) > most {
			return nil, fmt.Errorf("indented it is more than %d MB", most>>20)
		}
		switch c := raw[i]; c {
		case '{', '[':
			out = append(out, c)
			if i = space(raw, i+1); byteAt(raw, i) == c+2 { // the bracket that closes it, in ASCII
				out = append(out, c+2)
				i++
				continue
			}
			depth++
			line()
		case '}', ']':
			depth--
			line()
			out = append(out, c)
			i++
		case ',':
			out = append(out, c)
			line()
			i++
		case ':':
			out = append(out, c, ' ')
			i++
		default:
			end := skip(raw, i, 0)
			if end < 0 {
				return append(out, raw[i:]...), nil
			}
			out = append(out, raw[i:end]...)
			i = end
		}
	}
	return out, nil
}

// Valid reports whether raw is one JSON value, as json.Valid does.
func Valid(raw []byte) bool {
	end := skip(raw, space(raw, 0), 0)
	return end >= 0 && space(raw, end) == len(raw)
}
