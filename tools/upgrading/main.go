// Command upgrading writes what users must know before they upgrade, from a changelog in the format of Keep a Changelog: of each
// release what it changed, deprecated and removed.
package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "upgrading:", err)
		os.Exit(1)
	}
}

func run(changelog io.Reader, page io.Writer) error {
	text, err := io.ReadAll(changelog)
	if err != nil {
		return err
	}
	releases, err := parse(string(text))
	if err != nil {
		return err
	}
	_, err = io.WriteString(page, render(releases))
	return err
}

// release is a section of the changelog.
type release struct {
	version  string
	intro    string
	sections map[string]string // by heading
}

// kinds are the headings of Keep a Changelog. The first ones matter to who upgrades, in this order.
var (
	kinds     = []string{"Removed", "Deprecated", "Changed", "Added", "Fixed", "Security"}
	upgrading = kinds[:3]
)

var title = regexp.MustCompile(`^\[([^\]]+)\](?: - \d{4}-\d{2}-\d{2})?$`)

// parse returns the releases of a changelog, in its order. Every heading must be one of the format's.
func parse(text string) ([]release, error) {
	var releases []release
	for _, part := range strings.Split("\n"+text, "\n## ")[1:] {
		head, body, _ := strings.Cut(part, "\n")
		name := title.FindStringSubmatch(head)
		if name == nil {
			return nil, fmt.Errorf("the heading %q is no release: write it as ## [1.2.3]", head)
		}
		intro, rest, _ := strings.Cut("\n"+body, "\n### ")
		r := release{name[1], strings.TrimSpace(intro), map[string]string{}}
		for _, section := range strings.Split("\n"+rest, "\n### ") {
			kind, entries, _ := strings.Cut(strings.TrimPrefix(section, "\n"), "\n")
			if kind == "" {
				continue
			}
			if !slices.Contains(kinds, kind) {
				return nil, fmt.Errorf("release %s has a section %q: the sections are %s", r.version, kind, strings.Join(kinds, ", "))
			}
			r.sections[kind] = strings.TrimSpace(entries)
		}
		releases = append(releases, r)
	}
	if len(releases) == 0 {
		return nil, fmt.Errorf("the changelog has no release")
	}
	return releases, nil
}

// render returns the page.
func render(releases []release) string {
	var page strings.Builder
	page.WriteString(`# Upgrading

Made from [CHANGELOG.md](CHANGELOG.md) by 'make generate': what each release of the memcached operator removed, deprecated and
changed. [docs/support.md](docs/support.md#upgrades) lists the upgrades, and the steps before and after each.
`)
	for i, r := range releases {
		if i == len(releases)-1 {
			break // nothing upgrades to the first release
		}
		fmt.Fprintf(&page, "\n## To %s\n", r.version)
		if r.intro != "" {
			fmt.Fprintf(&page, "\n%s\n", r.intro)
		}
		known := false
		for _, kind := range upgrading {
			if entries := r.sections[kind]; entries != "" {
				fmt.Fprintf(&page, "\n### %s in %s\n\n%s\n", kind, r.version, entries)
				known = true
			}
		}
		if !known {
			page.WriteString("\nNothing is removed, deprecated or changed.\n")
		}
	}
	return page.String()
}
