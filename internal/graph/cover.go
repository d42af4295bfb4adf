package graph

import (
	"iter"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/olmkit/olmkit/internal/catalog"
)

// cover answers which of several version ranges, in order, is the first to hold a version, without asking each of them:
// the versions that the ranges name cut the line of all versions into pieces, on each of which no range changes its mind.
type cover struct {
	bounds []semver.Version // ascending, each once
	first  []int            // by piece, see piece: the index of the first range that holds it, or -1
	others []indexedRange   // ranges that are not read piece by piece, by rising index
}

type indexedRange struct {
	index int
	holds semver.Range
}

// piece is the number of the piece of the line that v is in: 2i+1 for the bound i itself, 2i for what is just below it.
func piece(bounds []semver.Version, v semver.Version) int {
	i, found := slices.BinarySearchFunc(bounds, v, semver.Version.Compare)
	if found {
		return 2*i + 1
	}
	return 2 * i
}

// newCover reads the skipRanges of list. Of equal texts the first counts.
func newCover(list []*node) *cover {
	type reading struct {
		index int
		spans []span
	}
	c := &cover{}
	var read []reading
	known := map[string]bool{}
	for i, n := range list {
		if n.skipRange == nil || n.forbidden || known[n.SkipRange] {
			continue
		}
		known[n.SkipRange] = true
		spans := spansOf(n.SkipRange, n.skipRange)
		if spans == nil {
			c.others = append(c.others, indexedRange{i, n.skipRange})
			continue
		}
		read = append(read, reading{i, spans})
		for _, s := range spans {
			for _, end := range []*limit{s.low, s.high} {
				if end != nil {
					c.bounds = append(c.bounds, end.version)
				}
			}
			c.bounds = append(c.bounds, s.without...)
		}
	}
	slices.SortFunc(c.bounds, semver.Version.Compare)
	c.bounds = slices.CompactFunc(c.bounds, semver.Version.EQ)
	pieces := 2*len(c.bounds) + 1
	c.first = make([]int, pieces)
	open := newOpen(pieces + 1)
	for i := range c.first {
		c.first[i] = -1
	}
	for _, r := range read {
		for _, s := range r.spans {
			low, high := s.pieces(c.bounds)
			for at := open.next(low); at <= high; at = open.next(at + 1) {
				if !slices.ContainsFunc(s.without, func(v semver.Version) bool { return piece(c.bounds, v) == at }) {
					c.first[at], open[at] = r.index, at+1
				}
			}
		}
	}
	return c
}

// open says of each piece which one, from there on, is the next that no range holds yet, as far as known.
type open []int

func newOpen(pieces int) open {
	o := make(open, pieces)
	for i := range o {
		o[i] = i
	}
	return o
}

// next is the next piece from i on that no range holds yet.
func (o open) next(i int) int {
	root := i
	for o[root] != root {
		root = o[root]
	}
	for o[i] != root {
		i, o[i] = o[i], root
	}
	return root
}

// of returns the index of the first range that holds v, or -1.
func (c *cover) of(v semver.Version) int {
	best := c.first[piece(c.bounds, v)]
	for _, o := range c.others {
		if best >= 0 && o.index > best {
			break
		}
		if o.holds(v) {
			return o.index
		}
	}
	return best
}

// span is the versions between two limits, nil for none, but for some single ones.
type span struct {
	low, high *limit
	without   []semver.Version
}

type limit struct {
	version  semver.Version
	included bool
}

// pieces returns the first and the last piece of s; of an empty span the last is before the first.
func (s span) pieces(bounds []semver.Version) (low, high int) {
	high = 2 * len(bounds)
	if s.low != nil {
		if low = piece(bounds, s.low.version); !s.low.included {
			low++
		}
	}
	if s.high != nil {
		if high = piece(bounds, s.high.version); !s.high.included {
			high--
		}
	}
	return low, high
}

// holds reports whether v is in s.
func (s span) holds(v semver.Version) bool {
	if s.low != nil && (v.LT(s.low.version) || !s.low.included && v.EQ(s.low.version)) {
		return false
	}
	if s.high != nil && (v.GT(s.high.version) || !s.high.included && v.EQ(s.high.version)) {
		return false
	}
	return !slices.ContainsFunc(s.without, v.EQ)
}

// comparison is a part of a range as nearly everybody writes it: a full version behind an operator.
const comparison = `(?:(?:[<>]=?|==?|!=) *|!)?\d+\.\d+\.\d+(?:[-+][-+.0-9A-Za-wyz]*)?`

var (
	plainRange      = regexp.MustCompile(`^ *` + comparison + `(?: +(?:\|\| +)?` + comparison + `)* *$`)
	comparisonParts = regexp.MustCompile(`([<>=!]*) *(\d[-+.0-9A-Za-z]*)`)
)

// spansOf returns the spans that the range in text is the union of; nil for those with wildcards, and where r, which is
// text as github.com/blang/semver/v4 v4.0.0, range.go, reads it, has another opinion.
func spansOf(text string, r semver.Range) []span {
	if !plainRange.MatchString(text) {
		return nil
	}
	var spans []span
	var named []semver.Version
	for alternative := range strings.SplitSeq(text, "||") {
		var s span
		for _, part := range comparisonParts.FindAllStringSubmatch(alternative, -1) {
			v, err := semver.Parse(part[2])
			if err != nil {
				return nil
			}
			named = append(named, v)
			s.narrow(part[1], v)
		}
		spans = append(spans, s)
	}
	for _, v := range named {
		if r(v) != slices.ContainsFunc(spans, func(s span) bool { return s.holds(v) }) {
			return nil
		}
	}
	return spans
}

// narrow leaves of s what compares so with v.
func (s *span) narrow(operator string, v semver.Version) {
	switch operator {
	case "!", "!=":
		s.without = append(s.without, v)
	case ">", ">=":
		s.raise(limit{v, operator == ">="})
	case "<", "<=":
		s.lower(limit{v, operator == "<="})
	default:
		s.raise(limit{v, true})
		s.lower(limit{v, true})
	}
}

func (s *span) raise(to limit) {
	if s.low == nil || to.version.GT(s.low.version) || to.version.EQ(s.low.version) && !to.included {
		s.low = &to
	}
}

func (s *span) lower(to limit) {
	if s.high == nil || to.version.LT(s.high.version) || to.version.EQ(s.high.version) && !to.included {
		s.high = &to
	}
}

// Covered returns those of bundles, which are sorted by version, whose version the range in text covers: the first most of
// them, and how many there are. Of a range that cannot be read it is none.
func Covered(text string, bundles []*catalog.Bundle, most int) (first []*catalog.Bundle, count int) {
	r, err := semver.ParseRange(text)
	if err != nil {
		return nil, 0
	}
	add := func(b *catalog.Bundle) {
		if count++; len(first) < most {
			first = append(first, b)
		}
	}
	spans := spansOf(text, r)
	if spans == nil {
		for _, b := range bundles {
			if r(b.Version) {
				add(b)
			}
		}
		return first, count
	}
	for _, s := range stretchesOf(spans, bundles, bundleVersion) {
		for i := s[0]; i < s[1] && len(first) < most; i++ {
			first = append(first, bundles[i])
		}
		count += s[1] - s[0]
	}
	return first, count
}

func bundleVersion(b *catalog.Bundle) semver.Version { return b.Version }

// covered are the entries by version, each with those whose skipRange holds its version, by version too; that list is good
// until the next. What it takes grows with what it yields.
func (g *Channel) covered() iter.Seq2[*node, []*node] {
	return func(yield func(*node, []*node) bool) {
		begin, end := make([][]*node, len(g.byVersion)+1), make([][]*node, len(g.byVersion)+1)
		var others []*node // with ranges that are not read piece by piece
		for _, to := range g.ranged {
			spans := spansOf(to.SkipRange, to.skipRange)
			if spans == nil {
				others = append(others, to)
			}
			for _, s := range stretchesOf(spans, g.byVersion, func(n *node) semver.Version { return n.version }) {
				begin[s[0]], end[s[1]] = append(begin[s[0]], to), append(end[s[1]], to)
			}
		}
		var open, all []*node
		for i, from := range g.byVersion {
			for _, to := range end[i] {
				at, _ := slices.BinarySearchFunc(open, to, byRank)
				open = slices.Delete(open, at, at+1)
			}
			for _, to := range begin[i] {
				at, _ := slices.BinarySearchFunc(open, to, byRank)
				open = slices.Insert(open, at, to)
			}
			all = open
			if len(others) > 0 {
				all = slices.Clone(open)
				for _, to := range others {
					if to.skipRange(from.version) {
						all = append(all, to)
					}
				}
				slices.SortFunc(all, byRank)
			}
			if !yield(from, all) {
				return
			}
		}
	}
}

func byRank(a, b *node) int { return a.rank - b.rank }

// stretchesOf are where the versions that any of spans holds stand in a list sorted by version: from one index to before
// another, ascending, none empty and none over another.
func stretchesOf[T any](spans []span, list []T, version func(T) semver.Version) [][2]int {
	var all, apart [][2]int
	for _, s := range spans {
		all = append(all, stretches(s, list, version)...)
	}
	slices.SortFunc(all, func(a, b [2]int) int { return a[0] - b[0] })
	done := 0
	for _, s := range all {
		if from := max(done, s[0]); from < s[1] {
			apart = append(apart, [2]int{from, s[1]})
			done = s[1]
		}
	}
	return apart
}

// stretches are where the versions of s stand in a sorted list.
func stretches[T any](s span, list []T, version func(T) semver.Version) [][2]int {
	below := func(v semver.Version, orAt bool) int {
		return sort.Search(len(list), func(i int) bool {
			n := version(list[i]).Compare(v)
			return n > 0 || n == 0 && !orAt
		})
	}
	low, high := 0, len(list)
	if s.low != nil {
		low = below(s.low.version, !s.low.included)
	}
	if s.high != nil {
		high = below(s.high.version, s.high.included)
	}
	without := slices.SortedFunc(slices.Values(s.without), semver.Version.Compare)
	var parts [][2]int
	for _, v := range without {
		if from, to := below(v, false), below(v, true); from >= low && to <= high {
			parts = append(parts, [2]int{low, from})
			low = to
		}
	}
	return append(parts, [2]int{low, high})
}
