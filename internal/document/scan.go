package document

import (
	"encoding/binary"
	"math/bits"
)

// Here JSON is passed over as fast as its long texts can be searched. It is as strict as encoding/json, which has the word
// on what is wrong: a value that is not understood here is -1, and is left to it.

// deepest is how deep encoding/json reads.
const deepest = 10000

// Skip returns the end of the JSON value that begins at data[i], or -1 where encoding/json is to be asked.
func Skip(data []byte, i int) int { return skip(data, i, 0) }

// Members calls value with the key, in its quotes, and the start of each member of the JSON object that begins at data[i];
// value returns the member's end. It returns the object's end, or -1 where encoding/json is to be asked, value being one of
// those who may ask so.
func Members(data []byte, i int, value func(key []byte, at int) int) int {
	if byteAt(data, i) != '{' {
		return -1
	}
	return members(data, i, value)
}

// Items is Members for the array that begins at data[i].
func Items(data []byte, i int, value func(at int) int) int {
	if byteAt(data, i) != '[' {
		return -1
	}
	return items(data, i, value)
}

// skip returns the end of the JSON value that begins at data[i], or -1.
func skip(data []byte, i, depth int) int {
	if i >= len(data) || depth > deepest {
		return -1
	}
	switch data[i] {
	case '"':
		return skipString(data, i)
	case '{':
		return pairs(data, i, func(_, _, at int) int { return skip(data, at, depth+1) })
	case '[':
		return items(data, i, func(at int) int { return skip(data, at, depth+1) })
	case 't':
		return skipWord(data, i, "true")
	case 'f':
		return skipWord(data, i, "false")
	case 'n':
		return skipWord(data, i, "null")
	default:
		return skipNumber(data, i)
	}
}

// members calls value with the key, in its quotes, and the start of each member of the object at data[i]; value returns
// the member's end. It returns the object's end, or -1.
func members(data []byte, i int, value func(key []byte, at int) int) int {
	return pairs(data, i, func(start, end, at int) int { return value(data[start:end], at) })
}

// pairs is members for who wants to know where the key is.
func pairs(data []byte, i int, value func(start, end, at int) int) int {
	if i = space(data, i+1); byteAt(data, i) == '}' {
		return i + 1
	}
	for byteAt(data, i) == '"' {
		end := skipString(data, i)
		if end < 0 {
			return -1
		}
		colon := space(data, end)
		if byteAt(data, colon) != ':' {
			return -1
		}
		if i = value(i, end, space(data, colon+1)); i < 0 {
			return -1
		}
		switch i = space(data, i); byteAt(data, i) {
		case ',':
			i = space(data, i+1)
		case '}':
			return i + 1
		default:
			return -1
		}
	}
	return -1
}

// items is members for the array at data[i].
func items(data []byte, i int, value func(at int) int) int {
	if i = space(data, i+1); byteAt(data, i) == ']' {
		return i + 1
	}
	for {
		if i = value(i); i < 0 {
			return -1
		}
		switch i = space(data, i); byteAt(data, i) {
		case ',':
			i = space(data, i+1)
		case ']':
			return i + 1
		default:
			return -1
		}
	}
}

// byteAt returns data[i], and 0, which means nothing in JSON, behind its end.
func byteAt(data []byte, i int) byte {
	if i < len(data) {
		return data[i]
	}
	return 0
}

func space(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\t' || data[i] == '\r') {
		i++
	}
	return i
}

func skipWord(data []byte, i int, word string) int {
	if len(data)-i >= len(word) && string(data[i:i+len(word)]) == word {
		return i + len(word)
	}
	return -1
}

func skipString(data []byte, i int) int {
	for i = plain(data, i+1); i < len(data); i = plain(data, i) {
		switch data[i] {
		case '"':
			return i + 1
		case '\\':
			switch byteAt(data, i+1) {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
				i += 2
			case 'u':
				for n := range 4 {
					if !isHex(byteAt(data, i+2+n)) {
						return -1
					}
				}
				i += 6
			default:
				return -1
			}
		default:
			return -1
		}
	}
	return -1
}

func isHex(b byte) bool { return '0' <= b && b <= '9' || 'a' <= b|0x20 && b|0x20 <= 'f' }

// plain returns where in a string the next byte stands that is not itself: a quote, a backslash or a control character.
// It looks at eight bytes at once, and at thirty-two in long texts: most of a catalog is such.
func plain(data []byte, i int) int {
	for ; i+32 <= len(data); i += 32 {
		four := data[i : i+32 : i+32]
		found := special(four) | special(four[8:]) | special(four[16:]) | special(four[24:])
		if found != 0 {
			break
		}
	}
	for ; i+8 <= len(data); i += 8 {
		if found := special(data[i:]); found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for i < len(data) && data[i] >= ' ' && data[i] != '"' && data[i] != '\\' {
		i++
	}
	return i
}

const ones, highs = 0x0101010101010101, 0x8080808080808080

// control and equal find control characters and a character among the eight of word: of the highest bits of the bytes, the lowest that is set
// is that of the first one; what is above it means nothing.
func control(word uint64) uint64 { return (word - ' '*ones) &^ word }

func equal(word, character uint64) uint64 {
	other := word ^ character*ones
	return (other - ones) &^ other
}

// special finds what plain looks for; it returns 0 if there is nothing.
func special(data []byte) uint64 {
	word := binary.LittleEndian.Uint64(data)
	return (control(word) | equal(word, '"') | equal(word, '\\')) & highs
}

// unusual returns where in a text the next byte stands that is a control character, or none of ASCII.
func unusual(text []byte, i int) int {
	for ; i+8 <= len(text); i += 8 {
		word := binary.LittleEndian.Uint64(text[i:])
		if found := (control(word) | word | (word + ones)) & highs; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for i < len(text) && text[i] >= ' ' && text[i] < 0x7f {
		i++
	}
	return i
}

// ending returns where in a line the next byte stands that may end a plain scalar of YAML: a colon, a hash or a control character.
func ending(line []byte, i int) int {
	for ; i+8 <= len(line); i += 8 {
		word := binary.LittleEndian.Uint64(line[i:])
		if found := (control(word) | equal(word, ':') | equal(word, '#')) & highs; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for i < len(line) && line[i] >= ' ' && line[i] != ':' && line[i] != '#' {
		i++
	}
	return i
}

func skipNumber(data []byte, i int) int {
	if byteAt(data, i) == '-' {
		i++
	}
	digits := func() bool {
		start := i
		for '0' <= byteAt(data, i) && byteAt(data, i) <= '9' {
			i++
		}
		return i > start
	}
	if byteAt(data, i) == '0' {
		i++
	} else if !digits() {
		return -1
	}
	if byteAt(data, i) == '.' {
		if i++; !digits() {
			return -1
		}
	}
	if byteAt(data, i)|0x20 == 'e' {
		if i++; byteAt(data, i) == '+' || byteAt(data, i) == '-' {
			i++
		}
		if !digits() {
			return -1
		}
	}
	return i
}
