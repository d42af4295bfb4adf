package check

import (
	"fmt"
	"slices"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/finding"
)

// templateChecks hold a catalog to the template that it is made of.
var templateChecks = []Check{
	{
		Code: "TPL001", Severity: finding.Warning,
		Title: "a channel differs from the catalog's template",
		Cause: "the next build from the template changes the upgrades that users get, and loses manual changes",
		Fix:   "build the catalog again with 'olmkit catalog build', or change the template",
		run:   differsFromTemplate,
		whole: true,
		asked: func(o Options) bool { return o.Template != nil },
	},
}

// differsFromTemplate tells of each channel, and of the default channel, once. Packages that the template does not speak of
// come from elsewhere.
func differsFromTemplate(s *subject, found func(hit)) {
	type place struct{ pkg, channel string }
	differences := map[place][]string{}
	var order []place
	for _, c := range catalog.Diff(s.template, s.catalog) {
		if s.template.Find(c.Package) == nil || len(s.wanted) > 0 && !slices.Contains(s.wanted, c.Package) {
			continue
		}
		text := templateChange(c)
		if text == "" {
			continue
		}
		at := place{c.Package, c.Channel}
		if differences[at] == nil {
			order = append(order, at)
		}
		differences[at] = append(differences[at], text)
	}
	for _, where := range order {
		h := hit{Subject: finding.Subject{Package: where.pkg, Channel: where.channel}}
		name := "package " + where.pkg
		if where.channel != "" {
			name = "channel " + where.channel
		}
		h.message = fmt.Sprintf("%s differs from the template: %s", name, abridge(differences[where]))
		if p := s.catalog.Find(where.pkg); p != nil {
			h.at = p.At
			if channel := p.Channel(where.channel); channel != nil {
				h.at = channel.At
			}
		}
		found(h)
	}
}

// templateChange says what c is of upgrades, "" for what has no part in them.
func templateChange(c catalog.Change) string {
	what := "the package"
	switch {
	case c.Channel != "" && c.Bundle != "":
		what = c.Bundle
	case c.Channel != "":
		what = "the channel"
	case c.Bundle != "" || c.Field != "" && c.Field != "defaultChannel":
		return ""
	}
	switch {
	case c.Kind == catalog.ChangeAdded:
		return what + " is not in the template"
	case c.Kind == catalog.ChangeRemoved:
		return what + " is missing"
	case c.Field == "deprecation":
		return ""
	case c.Field == "defaultChannel":
		return fmt.Sprintf("the default channel is %s instead of %s", orNothing(c.New), orNothing(c.Old))
	default:
		return fmt.Sprintf("%s has %s %s instead of %s", what, c.Field, orNothing(c.New), orNothing(c.Old))
	}
}

func orNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}
