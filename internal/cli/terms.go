package cli

import (
	"regexp"
	"strings"

	"github.com/olmkit/olmkit/docs"
)

// glossaryTerm is a word of the glossary.
type glossaryTerm struct {
	word, meaning, section string
}

var (
	row     = regexp.MustCompile(`^\| ([^|]+) \| (.+) \|$`)
	link    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	aliased = regexp.MustCompile(`^(.*) \((.*)\)$`)
)

// terms are the words of the glossary, in its order.
func terms() []glossaryTerm {
	var all []glossaryTerm
	section := ""
	for line := range strings.Lines(docs.Glossary) {
		line = strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = title
		}
		m := row.FindStringSubmatch(line)
		if m == nil || m[2] == "meaning" {
			continue
		}
		meaning := link.ReplaceAllString(m[2], "docs/$1")
		all = append(all, glossaryTerm{m[1], strings.NewReplacer("`", "", "*", "").Replace(meaning), section})
	}
	return all
}

// names are what users may call the term: the word, and its short form.
func (t glossaryTerm) names() []string {
	if m := aliased.FindStringSubmatch(t.word); m != nil {
		return m[1:]
	}
	return []string{t.word}
}

// termsOf are the terms called name, whatever its case, with spaces or dashes.
func termsOf(name string) []glossaryTerm {
	var found []glossaryTerm
	for _, t := range terms() {
		for _, n := range t.names() {
			if sameWord(n) == sameWord(name) {
				found = append(found, t)
				break
			}
		}
	}
	return found
}

// sameWord is the form that spellings of a word share.
func sameWord(name string) string {
	return strings.NewReplacer(" ", "", "-", "", "_", "").Replace(strings.ToLower(name))
}

// explicable are all names that 'olmkit explain' knows.
func explicable() []string {
	var all []string
	for _, e := range explanations() {
		all = append(all, e.Code)
	}
	for _, t := range terms() {
		all = append(all, t.names()...)
	}
	return all
}
