package fuzz

import (
	"regexp/syntax"
	"strings"
	"unicode"
)

// match returns a string that the pattern matches, as far as it does not look around; what may repeat does so at most loops times
// more than it must.
func (g *generator) match(pattern string, loops int) string {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return ""
	}
	b := &text{left: mostSteps}
	g.write(b, parsed.Simplify(), loops)
	return b.String()
}

// mostSteps is how many parts of a pattern are looked at for one text: loops in loops need not write anything.
const mostSteps = 16 * longest

// text is one that comes about in so many steps at most.
type text struct {
	strings.Builder
	left int
}

func (g *generator) write(b *text, r *syntax.Regexp, loops int) {
	if b.left--; b.left < 0 || b.Len() > longest {
		return
	}
	switch r.Op {
	case syntax.OpLiteral:
		b.WriteString(string(r.Rune))
	case syntax.OpCharClass:
		b.WriteRune(g.char(r.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteRune(rune('a' + g.random.IntN(26)))
	case syntax.OpCapture, syntax.OpConcat:
		for _, part := range r.Sub {
			g.write(b, part, loops)
		}
	case syntax.OpAlternate:
		g.write(b, r.Sub[g.random.IntN(len(r.Sub))], loops)
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		for n := g.times(r, loops); n > 0 && b.left > 0; n-- {
			g.write(b, r.Sub[0], loops)
		}
	}
}

// times returns how often r repeats.
func (g *generator) times(r *syntax.Regexp, loops int) int {
	low, high := r.Min, r.Max
	switch r.Op {
	case syntax.OpStar:
		low, high = 0, -1
	case syntax.OpPlus:
		low, high = 1, -1
	case syntax.OpQuest:
		low, high = 0, 1
	}
	if high < 0 || high > low+loops {
		high = low + loops
	}
	return low + g.random.IntN(high-low+1)
}

// char returns a character of a class, one that can be typed if it has any.
func (g *generator) char(ranges []rune) rune {
	var typed []rune
	for i := 0; i+1 < len(ranges); i += 2 {
		for r := max(ranges[i], ' '); r <= min(ranges[i+1], '~'); r++ {
			typed = append(typed, r)
		}
	}
	if len(typed) > 0 {
		return typed[g.random.IntN(len(typed))]
	}
	if len(ranges) < 2 || !unicode.IsPrint(ranges[0]) {
		return 'a'
	}
	return ranges[0]
}
