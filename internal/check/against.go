package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/graph"
)

// againstChecks compare the catalog with the one that users have now.
var againstChecks = []Check{
	{
		Code: "CMP001", Severity: finding.Error,
		Title:      "a package of the previous catalog is missing",
		Cause:      "OLM can resolve no Subscription in a namespace that has a Subscription to it",
		Fix:        "keep the package and deprecate it",
		References: []string{formatReference},
		run:        againstPackages,
		whole:      true,
	},
	{
		Code: "CMP002", Severity: finding.Error,
		Title:      "a channel of the previous catalog is missing",
		Cause:      "OLM can resolve no Subscription in a namespace that has a Subscription to it",
		Fix:        "keep the channel and deprecate it",
		References: []string{formatReference},
		run: againstChannels(func(before, after *catalog.Package, c *catalog.Channel, found func(hit)) {
			if after.Channel(c.Name) == nil {
				found(hit{at: after.At, message: fmt.Sprintf("package %s no longer has channel %s", after.Name, c.Name)})
			}
		}),
	},
	{
		Code: "CMP003", Severity: finding.Error,
		Title:      "a channel dropped a release and has no upgrade from it",
		Cause:      "no entry of the channel replaces or skips the release or covers its version: the Subscription silently stays at it",
		Fix:        "keep the entry, or let the head skip it or cover its version by skipRange",
		References: []string{graphReference},
		run:        againstChannels(leftBehind),
	},
	{
		Code: "CMP004", Severity: finding.Warning,
		Title: "a channel's head has a lower version than before",
		Cause: "users of the newer release stay on it, unless an edge leads back; new users get an older release than existing users have",
		Fix:   "publish a release with a higher version instead",
		run:   againstChannels(headBack),
	},
	{
		Code: "CMP005", Severity: finding.Error,
		Title: "a published bundle changed under the same name",
		Cause: "OLM never reads an installed release again: existing users keep the old content, new users get the new one, and nobody can tell them apart",
		Fix:   "publish the change as a new release",
		run: func(s *subject, found func(hit)) {
			againstEach(func(before, after *catalog.Package, found func(hit)) { contentChanged(s, before, after, found) })(s, found)
		},
	},
	{
		Code: "CMP006", Severity: finding.Info,
		Title: "the default channel changed",
		Cause: "new Subscriptions that name no channel use the new default channel; existing ones stay in the old one",
		Fix:   "check whether this is intended",
		run: againstEach(func(before, after *catalog.Package, found func(hit)) {
			if before.DefaultChannel != after.DefaultChannel {
				found(hit{at: after.Document.Place("defaultChannel"), message: fmt.Sprintf("the default channel is %s; before it was %s", after.DefaultChannel, before.DefaultChannel)})
			}
		}),
	},
	{
		Code: "CMP007", Severity: finding.Info,
		Title:      "a channel dropped edges",
		Cause:      "users of these releases now get other upgrades, which must work too",
		Fix:        "keep the edges, or test the other upgrades with 'olmkit upgrade test'",
		References: []string{graphReference},
		run:        againstChannels(edgesGone),
	},
	{
		Code: "CMP008", Severity: finding.Warning,
		Title:      "the head of a channel was deprecated without a successor",
		Cause:      "its users are told not to use the release, but there is no upgrade from it",
		Fix:        "publish a successor together with the deprecation, or also deprecate the channel",
		References: []string{formatReference},
		run: againstChannels(func(before, after *catalog.Package, c *catalog.Channel, found func(hit)) {
			now := after.Channel(c.Name)
			if now == nil {
				return
			}
			head := headOf(after, now)
			if head == nil || !deprecated(after, catalog.SchemaBundle, head.Name) || deprecated(before, catalog.SchemaBundle, head.Name) ||
				deprecated(after, catalog.SchemaChannel, c.Name) || deprecated(after, catalog.SchemaPackage, "") {
				return
			}
			found(hit{Subject: finding.Subject{From: head.Name}, at: now.Document.Place("entries"), message: fmt.Sprintf("%s, the head of channel %s, is now deprecated", head.Name, c.Name)})
		}),
	},
}

func edgesGone(before, after *catalog.Package, c *catalog.Channel, found func(hit)) {
	now := after.Channel(c.Name)
	if now == nil {
		return
	}
	kept := graph.New(after, now)
	var gone []string
	for e := range graph.New(before, c).Main() {
		if e.Declared && now.Entry(e.From) != nil && now.Entry(e.To) != nil && !kept.Has(e.From, e.To) {
			gone = append(gone, e.From+" → "+e.To)
		}
	}
	if len(gone) > 0 {
		found(hit{at: now.Document.Place("entries"), message: fmt.Sprintf("channel %s no longer declares: %s", c.Name, abridge(gone))})
	}
}

func againstPackages(s *subject, found func(hit)) {
	if s.previous == nil {
		return
	}
	for _, p := range s.previous.Packages {
		if s.catalog.Find(p.Name) == nil && (len(s.wanted) == 0 || slices.Contains(s.wanted, p.Name)) {
			found(hit{Subject: finding.Subject{Package: p.Name}, at: p.At, message: fmt.Sprintf("the catalog no longer has package %s", p.Name)})
		}
	}
}

// againstEach is a check of each package that was there before and still is.
func againstEach(look func(before, after *catalog.Package, found func(hit))) func(*subject, func(hit)) {
	return func(s *subject, found func(hit)) {
		if s.previous == nil {
			return
		}
		for _, after := range s.packages {
			if before := s.previous.Find(after.Name); before != nil {
				look(before, after, func(h hit) {
					h.Package = after.Name
					found(h)
				})
			}
		}
	}
}

// againstChannels is a check of each channel that was there before.
func againstChannels(look func(before, after *catalog.Package, c *catalog.Channel, found func(hit))) func(*subject, func(hit)) {
	return againstEach(func(before, after *catalog.Package, found func(hit)) {
		for _, c := range before.Channels {
			look(before, after, c, func(h hit) {
				h.Channel = c.Name
				found(h)
			})
		}
	})
}

func leftBehind(before, after *catalog.Package, c *catalog.Channel, found func(hit)) {
	now := after.Channel(c.Name)
	if now == nil {
		return
	}
	g := graph.New(after, now)
	for _, e := range c.Entries {
		b := before.Bundle(e.Name)
		if b == nil || now.Entry(e.Name) != nil || g.Next(e.Name, b.Version) != "" {
			continue
		}
		found(hit{
			Subject: finding.Subject{From: e.Name}, at: now.Document.Place("entries"),
			message: fmt.Sprintf("channel %[2]s dropped %[1]s, and no entry upgrades it", e.Name, c.Name),
		})
	}
}

func headBack(before, after *catalog.Package, c *catalog.Channel, found func(hit)) {
	now := after.Channel(c.Name)
	if now == nil {
		return
	}
	was, is := headOf(before, c), headOf(after, now)
	if was != nil && is != nil && is.Version.LT(was.Version) {
		found(hit{
			Subject: finding.Subject{From: was.Name, To: is.Name}, at: now.Document.Place("entries"),
			message: fmt.Sprintf("the head of channel %s is lower than before: it was %s and is %s", c.Name, was.Name, is.Name),
		})
	}
}

func contentChanged(s *subject, before, after *catalog.Package, found func(hit)) {
	for _, was := range before.Bundles {
		is := after.Bundle(was.Name)
		if is == nil {
			continue
		}
		if changed := s.changed(was, is); len(changed) > 0 {
			found(hit{
				Subject: finding.Subject{From: is.Name}, at: is.At,
				message: fmt.Sprintf("bundle %s changed: %s", is.Name, strings.Join(changed, ", ")),
			})
		}
	}
}

// changed returns what of a bundle is not what it was: its image, and types of its properties.
func (s *subject) changed(was, is *catalog.Bundle) []string {
	return s.differ.get(is, func() []string {
		var changed []string
		if was.Image != is.Image && was.Image != "" && is.Image != "" {
			changed = append(changed, "image")
		}
		if difference := propertyTypes(was, is); difference != "" {
			changed = append(changed, difference)
		}
		return changed
	})
}

// propertyTypes lists the types of the properties in which two bundles differ. A catalog that carries manifests is not held
// against one that carries their digest only.
func propertyTypes(a, b *catalog.Bundle) string {
	values := func(c *catalog.Bundle) map[string][]string {
		by := map[string][]string{}
		for _, p := range c.Properties {
			by[p.Type] = append(by[p.Type], canonical(p.Value))
		}
		for _, list := range by {
			slices.Sort(list)
		}
		return by
	}
	x, y := values(a), values(b)
	var types []string
	for kind := range x {
		if !slices.Equal(x[kind], y[kind]) && (y[kind] != nil || !contentKind(kind)) {
			types = append(types, kind)
		}
	}
	for kind := range y {
		if x[kind] == nil && !contentKind(kind) {
			types = append(types, kind)
		}
	}
	slices.Sort(types)
	return strings.Join(types, ", ")
}

func contentKind(kind string) bool {
	return kind == catalog.PropertyObject || kind == catalog.PropertyCSVMetadata
}

// canonical is JSON with sorted keys and without spaces, numbers as they stand.
func canonical(raw json.RawMessage) string {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var v any
	if decoder.Decode(&v) != nil {
		return string(raw)
	}
	out, err := json.Marshal(v)
	if err != nil {
		return string(raw)
	}
	return string(out)
}
