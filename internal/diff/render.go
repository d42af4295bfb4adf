package diff

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/safetext"
)

// look is how each kind of change begins, in text and in Markdown.
var look = map[Kind]struct{ mark, word string }{
	Added: {"+", "Added"}, Removed: {"-", "Removed"}, Changed: {"~", "Changed"}, Stricter: {"~", "Stricter"}, Looser: {"~", "Looser"},
}

// WriteText writes the changes between two bundles, a line each: + came, - went, ~ changed, and a ! before those by which
// what worked can fail. Nothing is written where nothing changes.
func (r Release) WriteText(w io.Writer) error {
	var b bytes.Buffer
	r.text(&b)
	_, err := w.Write(b.Bytes())
	return err
}

// WriteText writes the changes between two catalogs as catalog.WriteDiff does, and then what users of the channels get.
func (c Catalogs) WriteText(w io.Writer) error {
	var b bytes.Buffer
	if err := catalog.WriteDiff(&b, c.Changes); err != nil {
		return err
	}
	for _, r := range c.Releases {
		b.WriteString("\n")
		r.text(&b)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (r Release) text(b *bytes.Buffer) {
	line := func(format string, args ...any) { fmt.Fprintln(b, safetext.Line(fmt.Sprintf(format, args...))) }
	if len(r.Changes) == 0 {
		return
	}
	line("%s", r.title())
	for _, a := range areas {
		object := ""
		for i, c := range fold(r.Changes, a.area) {
			if i == 0 {
				line("%s:", a.title)
			}
			if c.Object != object {
				object = c.Object
				line("    %s", object)
			}
			breaking := " "
			if c.Breaking {
				breaking = "!"
			}
			line("%s %s %s", breaking, look[c.Kind].mark, c.sentence())
		}
	}
}

func (r Release) title() string {
	title := r.From + " → " + r.To
	if r.From == r.To {
		title = r.To + ", under the same name"
	}
	if r.Channel != "" {
		title += " (channel " + r.Channel + ")"
	}
	return title
}

// WriteMarkdown writes the changes between two bundles as release notes. Nothing is written where nothing changes.
func (r Release) WriteMarkdown(w io.Writer) error {
	var b bytes.Buffer
	r.markdown(&b)
	_, err := w.Write(b.Bytes())
	return err
}

// WriteMarkdown writes what users of each channel get as release notes, and then the changes of the catalog.
func (c Catalogs) WriteMarkdown(w io.Writer) error {
	var b, text bytes.Buffer
	for _, r := range c.Releases {
		r.markdown(&b)
	}
	if err := catalog.WriteDiff(&text, c.Changes); err != nil {
		return err
	}
	if text.Len() > 0 {
		heading(&b, "## Catalog")
		b.WriteString("```diff\n" + strings.ReplaceAll(text.String(), "`", "'") + "```\n")
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (r Release) markdown(b *bytes.Buffer) {
	if len(r.Changes) == 0 {
		return
	}
	item := func(c Change) {
		object := ""
		if c.Object != "" {
			object = safetext.Markdown(safetext.Line(c.Object)) + " "
		}
		fmt.Fprintf(b, "- %s: %s%s\n", look[c.Kind].word, object, safetext.Markdown(safetext.Line(c.sentence())))
	}
	breaking := slices.DeleteFunc(slices.Clone(r.Changes), func(c Change) bool { return !c.Breaking })
	rest := slices.DeleteFunc(slices.Clone(r.Changes), func(c Change) bool { return c.Breaking })
	heading(b, "## "+safetext.Markdown(safetext.Line(r.title())))
	if len(breaking) > 0 {
		heading(b, "### Before you upgrade")
		fmt.Fprintf(b, "What works with %s can fail after these changes.\n\n", safetext.Markdown(safetext.Line(r.From)))
	}
	for _, a := range areas {
		for _, c := range fold(breaking, a.area) {
			item(c)
		}
	}
	for _, a := range areas {
		for i, c := range fold(rest, a.area) {
			if i == 0 {
				heading(b, "### "+a.title)
			}
			item(c)
		}
	}
}

// heading writes a line between empty ones.
func heading(b *bytes.Buffer, text string) {
	if b.Len() > 0 && !bytes.HasSuffix(b.Bytes(), []byte("\n\n")) {
		b.WriteString("\n")
	}
	b.WriteString(text + "\n\n")
}

// maxDetail is how much of a description is shown, in bytes.
const maxDetail = 160

// digest matches a digest, of which the beginning tells it apart.
var digest = regexp.MustCompile(`(sha256:[0-9a-f]{12})[0-9a-f]{52}`)

// repository matches what a reference of an image has before its tag or digest.
var repository = regexp.MustCompile(`^[^ "]+/[^ "/:@]+[:@]`)

// sentence says what changes, with its values.
func (c Change) sentence() string {
	said := c.What
	switch {
	case c.Old != "" && c.New != "":
		said += ": " + c.Old + " → " + strings.TrimPrefix(c.New, repository.FindString(c.Old))
	case c.Old+c.New != "":
		said += " (" + c.Old + c.New + ")"
	}
	if len(c.Versions) > 0 {
		said = strings.Join(c.Versions, ", ") + ": " + said
	}
	if c.Detail != "" && len(c.Detail) <= maxDetail {
		said += ": " + c.Detail
	}
	return digest.ReplaceAllString(said, "$1…")
}

// fold returns the changes of an area for people: what changes alike in fields of one name is told once, of the shortest
// path, and what is asked of the status, which users do not write, is counted.
func fold(changes []Change, of Area) []Change {
	type likeness struct {
		kind                            Kind
		object, versions, what, old, to string
		status                          bool
	}
	groups := map[likeness][]Change{}
	var order []likeness
	for _, c := range changes {
		if c.Area != of {
			continue
		}
		key := likeness{kind: c.Kind, object: c.Object, versions: strings.Join(c.Versions, ","), what: c.What, old: c.Old, to: c.New}
		if c.Field != "" {
			key.what = strings.Replace(c.What, c.Field, c.Field[strings.LastIndexByte(c.Field, '.')+1:], 1)
		}
		if key.status = c.Field == "status" || strings.HasPrefix(c.Field, "status."); key.status && c.Kind != Added && c.Kind != Removed {
			key = likeness{kind: Changed, object: c.Object, versions: key.versions, status: true}
		}
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], c)
	}
	folded := make([]Change, 0, len(order))
	for _, key := range order {
		alike := groups[key]
		first := slices.MinFunc(alike, func(a, b Change) int { return len(a.Field) - len(b.Field) })
		switch {
		case key.what == "":
			first.Kind, first.Old, first.New, first.What = Changed, "", "", "what the status can hold"
		case len(alike) == 2:
			first.What += ", and one more of that name"
		case len(alike) > 2:
			first.What += fmt.Sprintf(", and %d more of that name", len(alike)-1)
		}
		folded = append(folded, first)
	}
	return folded
}
