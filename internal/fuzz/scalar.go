package fuzz

import (
	"encoding/base64"
	"fmt"
	"math"
	"regexp"
	"strings"
	"unicode/utf8"
)

// integer returns a whole number: often a bound, often a small one, sometimes a large one.
func (g *generator) integer(n node) any {
	low, high, step := g.bounds(n)
	if low == math.Ceil(low) && high == math.Floor(high) && low > high {
		return int64(low)
	}
	choices := []float64{low, high, low + 1, high - 1, 0, 1, math.Floor(g.random.Float64() * 100), math.Floor(g.random.Float64() * 100), math.Floor(g.random.Float64() * 10000)}
	if g.chance(0.05) {
		choices = append(choices, -1-math.Floor(g.random.Float64()*100))
	}
	if number, ok := g.literal().(int64); ok {
		return number
	}
	for range 20 {
		x := choices[g.random.IntN(len(choices))]
		if x >= low && x <= high {
			return toStep(int64(x), step, int64(low))
		}
	}
	return toStep(int64(low+math.Floor(g.random.Float64()*(min(high-low, 1<<31)+1))), step, int64(low))
}

// toStep returns the multiple of step at or below x, unless that is below low.
func toStep(x int64, step float64, low int64) int64 {
	s := int64(step)
	if s <= 1 {
		return x
	}
	if down := x / s * s; down >= low {
		return down
	}
	return (x/s + 1) * s
}

// bounds returns from where to where a number of n goes, and of what it is a multiple, or 0.
func (g *generator) bounds(n node) (low, high, step float64) {
	low, high = math.MinInt32, math.MaxInt32
	if n.kind == "integer" && n.ValueValidation != nil && n.ValueValidation.Format == "int64" && g.chance(0.1) {
		high = 1<<53 + 1<<20
	}
	least := 1.0
	if n.kind == "number" {
		least = 0.5
	}
	for _, l := range n.layers {
		if l.Minimum != nil {
			bound := *l.Minimum
			if l.ExclusiveMinimum {
				bound += least
			}
			low = max(low, bound)
			high = max(high, low)
		}
		if l.MultipleOf != nil {
			step = max(step, *l.MultipleOf)
		}
	}
	for _, l := range n.layers {
		if l.Maximum != nil {
			bound := *l.Maximum
			if l.ExclusiveMaximum {
				bound -= least
			}
			high = min(high, bound)
			low = min(low, high)
		}
	}
	return low, high, step
}

// number returns a number that JSON and every programming language tell alike.
func (g *generator) number(n node) any {
	low, high, step := g.bounds(n)
	if step > 0 {
		return whole(math.Ceil(max(low, 0)/step) * step)
	}
	x := []float64{low, high, 0, 0.5, 1, math.Floor(g.random.Float64()*100) + 0.25}[g.random.IntN(6)]
	if x < low || x > high {
		x = low + math.Floor(g.random.Float64()*(min(high-low, 1<<20)+1)*4)/4
	}
	return whole(min(max(x, low), high))
}

// whole returns x as JSON is read: a whole number as an int64.
func whole(x float64) any {
	if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
		return int64(x)
	}
	return x
}

// literal returns, now and then, a value that a CEL rule compares with.
func (g *generator) literal() any {
	if len(g.literals) == 0 || !g.learned && !g.chance(0.1) || g.chance(0.5) {
		return nil
	}
	return g.literals[g.random.IntN(len(g.literals))]
}

// quantity is the pattern of resource.Quantity, of which converters write only one of many forms
// (sigs.k8s.io/controller-tools v0.21.0, pkg/crd/known_types.go).
const quantity = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`

// text returns a string of n.
func (g *generator) text(n node) any {
	var patterns []string
	format := ""
	for _, l := range n.layers {
		if l.Pattern != "" {
			patterns = append(patterns, l.Pattern)
		}
		if l.Format != "" {
			format = l.Format
		}
	}
	least := int(min(n.least(0, func(l *layer) *int64 { return l.MinLength }), longest))
	most := int(n.most(int64(least+40), func(l *layer) *int64 { return l.MaxLength }))
	if said, ok := g.literal().(string); ok {
		return said
	}
	var made string
	for try := range 40 {
		made = g.oneText(patterns, format, least, most, try)
		if try%2 == 1 && utf8.RuneCountInString(made) < least {
			made += g.longer(least) // a pattern need not reach the end
		}
		if size := utf8.RuneCountInString(made); size >= least && size <= most && matches(made, patterns) {
			return made
		}
	}
	return made
}

func (g *generator) oneText(patterns []string, format string, least, most, try int) string {
	switch {
	case len(patterns) > 0 && patterns[0] == quantity:
		return []string{"100m", "1", "2", "250m", "1500m", "64Mi", "1Gi", "10Gi"}[g.random.IntN(8)]
	case len(patterns) > 0 && try < 4 && format == "":
		if word := g.word(); g.chance(0.5) && matches(word, patterns) {
			return word
		}
		return g.match(patterns[0], 2+try)
	case len(patterns) > 0 && format == "":
		return g.match(patterns[try%len(patterns)], max(least, 2)+try%7)
	case makers[strings.ReplaceAll(format, "-", "")] != nil:
		return makers[strings.ReplaceAll(format, "-", "")](g)
	case least == 0 && g.chance(0.04):
		return ""
	case most >= 12 && g.chance(0.04):
		return "Größe  \"1\" \\ "
	}
	word := g.longer(least)
	return word[:max(least, min(len(word), most))]
}

func matches(text string, patterns []string) bool {
	for _, pattern := range patterns {
		if compiled, err := regexp.Compile(pattern); err != nil || !compiled.MatchString(text) {
			return false
		}
	}
	return true
}

// word returns a short name, as objects, labels and fields have them.
func (g *generator) word() string {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	var b strings.Builder
	for range 2 + g.random.IntN(5) {
		b.WriteByte(letters[g.random.IntN(len(letters))])
	}
	return b.String()
}

// longer returns a word of at least so many letters.
func (g *generator) longer(least int) string {
	word := g.word()
	for len(word) < least {
		word += g.word()
	}
	return word
}

// hex returns n hexadecimal digits.
func (g *generator) hex(n int) string {
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, "%x", g.random.IntN(16))
	}
	return b.String()
}

// makers make strings of the formats that the API server knows (apiextensions-apiserver v0.36.3, pkg/apiserver/validation/formats.go),
// each in the form in which typed programs write it again.
var makers = map[string]func(*generator) string{
	"bsonobjectid": func(g *generator) string { return g.hex(24) },
	"uri":          func(g *generator) string { return "https://" + g.word() + ".example.com/" + g.word() },
	"email":        func(g *generator) string { return g.word() + "@example.com" },
	"hostname":     func(g *generator) string { return g.word() + ".example.com" },
	"ipv4": func(g *generator) string {
		return fmt.Sprintf("10.%d.%d.%d", g.random.IntN(256), g.random.IntN(256), g.random.IntN(256))
	},
	"ipv6": func(g *generator) string { return fmt.Sprintf("2001:db8::%x", 1+g.random.IntN(0xfff)) },
	"cidr": func(g *generator) string { return fmt.Sprintf("10.%d.0.0/16", g.random.IntN(256)) },
	"mac": func(g *generator) string {
		return strings.Join([]string{"02", g.hex(2), g.hex(2), g.hex(2), g.hex(2), g.hex(2)}, ":")
	},
	"uuid":       func(g *generator) string { return g.uuid("4") },
	"uuid3":      func(g *generator) string { return g.uuid("3") },
	"uuid4":      func(g *generator) string { return g.uuid("4") },
	"uuid5":      func(g *generator) string { return g.uuid("5") },
	"isbn":       func(*generator) string { return "978-0321751041" },
	"isbn10":     func(*generator) string { return "0321751043" },
	"isbn13":     func(*generator) string { return "978-0321751041" },
	"creditcard": func(*generator) string { return "4111111111111111" },
	"ssn":        func(g *generator) string { return fmt.Sprintf("%03d-45-6789", 100+g.random.IntN(500)) },
	"hexcolor":   func(g *generator) string { return "#" + g.hex(6) },
	"rgbcolor":   func(g *generator) string { return fmt.Sprintf("rgb(%d,0,255)", g.random.IntN(256)) },
	"byte":       func(g *generator) string { return base64.StdEncoding.EncodeToString([]byte(g.word())) },
	"date": func(g *generator) string {
		return fmt.Sprintf("2024-%02d-%02d", 1+g.random.IntN(12), 1+g.random.IntN(28))
	},
	"duration":     func(g *generator) string { return fmt.Sprintf("%dm0s", 1+g.random.IntN(59)) },
	"datetime":     func(g *generator) string { return fmt.Sprintf("2024-%02d-01T12:00:00Z", 1+g.random.IntN(12)) },
	"k8sshortname": (*generator).word,
	"k8slongname":  func(g *generator) string { return g.word() + "." + g.word() },
}

// uuid returns a UUID of a version.
func (g *generator) uuid(version string) string {
	return fmt.Sprintf("%s-%s-%s%s-8%s-%s", g.hex(8), g.hex(4), version, g.hex(3), g.hex(3), g.hex(12))
}
