// Package nearest finds the names that somebody who mistyped one may have meant.
package nearest

import (
	"cmp"
	"slices"
)

// Names returns at most n of known, those that are most like name first.
func Names(name string, known []string, n int) []string {
	sorted := slices.Clone(known)
	slices.SortStableFunc(sorted, func(a, b string) int { return cmp.Compare(Distance(name, a), Distance(name, b)) })
	return sorted[:min(len(sorted), n)]
}

// Meant returns the one of known that somebody who wrote name most likely meant, or "" if none is like it.
func Meant(name string, known []string) string {
	if near := Names(name, known, 1); len(near) > 0 && Distance(name, near[0]) <= (len(name)+2)/3 {
		return near[0]
	}
	return ""
}

// Distance is the number of insertions, deletions, changes and swaps of neighbours that make b of a.
func Distance(a, b string) int {
	before, row := []int(nil), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			change := row[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			next[j] = min(row[j]+1, next[j-1]+1, change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
