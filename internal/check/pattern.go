package check

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"unicode"
)

// The bounds within which patterns are compared: larger ones take too long, and count as different.
const (
	maxPatternStates = 4000
	maxPatternRunes  = 300
)

// patternImplies reports whether every string that matches the pattern was, and has from atLeast to atMost characters (negative:
// any number), matches the pattern is too. It is false where that takes too long to find out. Patterns are those of
// Go's regexp, as in the API server (k8s.io/kube-openapi, pkg/validation/validate), and match anywhere in a string.
func patternImplies(was, is string, atLeast, atMost int64) bool {
	a, b := newMatcher(was), newMatcher(is)
	if a == nil || b == nil {
		return false
	}
	runes := representatives(a, b)
	if len(runes) > maxPatternRunes {
		return false
	}
	type node struct {
		a, b  []uint32
		depth int64
	}
	queue := []node{{a.start(), b.start(), 0}}
	seen := map[string]bool{}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		key := fmt.Sprint(n.a, n.b, min(n.depth, max(atLeast, 1)))
		if seen[key] {
			continue
		}
		seen[key] = true
		if len(seen) > maxPatternStates {
			return false
		}
		if n.depth >= atLeast && a.accepts(n.a, n.depth == 0) && !b.accepts(n.b, n.depth == 0) {
			return false
		}
		if atMost >= 0 && n.depth >= atMost {
			continue
		}
		for _, r := range runes {
			queue = append(queue, node{a.step(n.a, n.depth == 0, r), b.step(n.b, n.depth == 0, r), n.depth + 1})
		}
	}
	return true
}

// matcher follows all ways of a pattern through a string at the same time. Where it has matched, whatever comes, its state
// is matched.
type matcher struct{ *syntax.Prog }

var matched = []uint32{0} // instruction 0 fails in every program, so that no other state has it

// newMatcher returns nil for what is no pattern, or looks at more of a string than its begin and end.
func newMatcher(pattern string) *matcher {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil
	}
	for _, i := range program.Inst {
		if i.Op == syntax.InstEmptyWidth && syntax.EmptyOp(i.Arg)&^(syntax.EmptyBeginText|syntax.EmptyEndText) != 0 {
			return nil
		}
	}
	return &matcher{program}
}

func (m *matcher) start() []uint32 { return []uint32{uint32(m.Start)} }

// follow returns the instructions for a character that a state leads to, and whether the pattern has matched by then.
func (m *matcher) follow(state []uint32, begin, end bool) (list []uint32, done bool) {
	visited := map[uint32]bool{}
	var visit func(uint32)
	visit = func(pc uint32) {
		if visited[pc] {
			return
		}
		visited[pc] = true
		switch i := m.Inst[pc]; i.Op {
		case syntax.InstMatch:
			done = true
		case syntax.InstAlt, syntax.InstAltMatch:
			visit(i.Out)
			visit(i.Arg)
		case syntax.InstCapture, syntax.InstNop:
			visit(i.Out)
		case syntax.InstEmptyWidth:
			wants := syntax.EmptyOp(i.Arg)
			if (begin || wants&syntax.EmptyBeginText == 0) && (end || wants&syntax.EmptyEndText == 0) {
				visit(i.Out)
			}
		case syntax.InstFail:
		default:
			list = append(list, pc)
		}
	}
	for _, pc := range state {
		visit(pc)
	}
	return list, done
}

// accepts reports whether a string that ends in the state matches.
func (m *matcher) accepts(state []uint32, begin bool) bool {
	if slices.Equal(state, matched) {
		return true
	}
	_, done := m.follow(state, begin, true)
	return done
}

// step returns the state after one more character.
func (m *matcher) step(state []uint32, begin bool, r rune) []uint32 {
	if slices.Equal(state, matched) {
		return matched
	}
	list, done := m.follow(state, begin, false)
	if done {
		return matched
	}
	next := m.start() // a match can begin anywhere
	for _, pc := range list {
		if m.Inst[pc].MatchRune(r) {
			next = append(next, m.Inst[pc].Out)
		}
	}
	slices.Sort(next)
	return slices.Compact(next)
}

// representatives returns one character of each set that no instruction of the patterns tells apart.
func representatives(list ...*matcher) []rune {
	first := map[rune]bool{0: true, '\n': true, '\n' + 1: true}
	for _, m := range list {
		for _, i := range m.Inst {
			if i.Op != syntax.InstRune && i.Op != syntax.InstRune1 {
				continue
			}
			for n, r := range i.Rune {
				if len(i.Rune) > 1 && n%2 == 1 { // the end of a range
					first[r+1] = true
					continue
				}
				first[r] = true
				if len(i.Rune) == 1 {
					first[r+1] = true
					for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
						first[f], first[f+1] = true, true
					}
				}
			}
		}
	}
	runes := make([]rune, 0, len(first))
	for r := range first {
		if r <= unicode.MaxRune {
			runes = append(runes, r)
		}
	}
	slices.Sort(runes)
	return runes
}
