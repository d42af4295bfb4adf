package check

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/diff"
	"github.com/olmkit/olmkit/internal/graph"
)

// CompareBundles returns what users get who go from one bundle to another. Both must carry their manifests; the error names
// the one that does not, or whose ClusterServiceVersion cannot be read. The catalog in, which can be nil, says which of them is deprecated.
func CompareBundles(from, to *catalog.Bundle, in *catalog.Catalog) (diff.Release, error) {
	return (&subject{schemas: &schemaReader{described: true}, catalog: in}).compareBundles(from, to)
}

// CompareCatalogs returns what differs between two catalogs, and for each channel whose head is another one what its users
// get. A channel that is new is compared from the newest of its releases that before has. Bundles of one name that differ are
// compared too.
func CompareCatalogs(before, after *catalog.Catalog) diff.Catalogs {
	all := diff.Catalogs{Changes: catalog.Diff(before, after), Releases: []diff.Release{}}
	s := &subject{schemas: &schemaReader{described: true}}
	for _, pair := range s.pairs(before, after) {
		r, err := s.compareBundles(pair.from, pair.to)
		if err != nil {
			all.Unread = append(all.Unread, fmt.Sprintf("%s → %s: %v", pair.from.Name, pair.to.Name, err))
			continue
		}
		r.Channel = pair.channel
		all.Releases = append(all.Releases, r)
	}
	return all
}

// Compared returns the bundles whose manifests CompareCatalogs compares.
func Compared(before, after *catalog.Catalog) []*catalog.Bundle {
	var list []*catalog.Bundle
	for _, pair := range (&subject{}).pairs(before, after) {
		list = append(list, pair.from, pair.to)
	}
	return list
}

// pair is two bundles to compare.
type pair struct {
	from, to *catalog.Bundle
	channel  string // whose users go from one to the other; "" where they have one name
}

func (s *subject) pairs(before, after *catalog.Catalog) []pair {
	var list []pair
	add := func(p pair) {
		if p.from != nil && !slices.ContainsFunc(list, func(o pair) bool { return o.from == p.from && o.to == p.to }) {
			list = append(list, p)
		}
	}
	for _, p := range after.Packages {
		old := before.Find(p.Name)
		if old == nil {
			continue
		}
		for _, c := range p.Channels {
			if head := headOf(p, c); head != nil && old.Bundle(head.Name) == nil {
				add(pair{baseOf(old, c), head, c.Name})
			}
		}
		for _, b := range p.Bundles {
			if was := old.Bundle(b.Name); was != nil && len(s.changed(was, b)) > 0 {
				add(pair{from: was, to: b})
			}
		}
	}
	return list
}

// baseOf returns the release from which users of the channel c come: its head in the old package, or else the newest of its
// entries that the old package has.
func baseOf(old *catalog.Package, c *catalog.Channel) *catalog.Bundle {
	if was := old.Channel(c.Name); was != nil {
		return headOf(old, was)
	}
	var newest *catalog.Bundle
	for _, e := range c.Entries {
		if b := old.Bundle(e.Name); b != nil && (newest == nil || b.Version.GT(newest.Version)) {
			newest = b
		}
	}
	return newest
}

func (s *subject) compareBundles(from, to *catalog.Bundle) (diff.Release, error) {
	c := &comparer{subject: s, upgrade: upgrade{hop: hop{Edge: graph.Edge{Package: to.Package, From: from.Name, To: to.Name}}}}
	for _, side := range []struct {
		b *catalog.Bundle
		r **release
	}{{from, &c.from}, {to, &c.to}} {
		if *side.r = s.release(side.b); *side.r != nil {
			continue
		}
		if _, err := side.b.CSV(); err != nil {
			return diff.Release{}, err
		}
		return diff.Release{}, fmt.Errorf("the manifests of bundle %s (%s) cannot be read", side.b.Name, side.b.At)
	}
	c.requirements()
	c.deprecations()
	c.apis()
	c.permissions()
	c.webhooks()
	c.images()
	if err := c.objects(); err != nil {
		return diff.Release{}, err
	}
	return diff.NewRelease(to.Package, from.Name, to.Name, c.changes), nil
}

// comparer gathers what an upgrade changes for users.
type comparer struct {
	*subject
	upgrade
	changes []diff.Change
}

func (c *comparer) add(change diff.Change) { c.changes = append(c.changes, change) }

// values tells how named values differ: those that went, came, and are others.
func (c *comparer) values(like diff.Change, old, next map[string]string, what func(name string) string) {
	all := maps.Clone(old)
	maps.Copy(all, next)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		was, had := old[name]
		is, has := next[name]
		change := like
		change.What, change.Old, change.New, change.Kind = what(name), was, is, diff.Changed
		switch {
		case !has:
			change.Kind = diff.Removed
		case !had:
			change.Kind = diff.Added
		case was == is:
			continue
		}
		c.add(change)
	}
}

func (c *comparer) requirements() {
	old, next := c.from.csv.Spec.MinKubeVersion, c.to.csv.Spec.MinKubeVersion
	if old != next {
		kind := diff.Looser
		before, _ := c.from.minKube()
		if after, _ := c.to.minKube(); after.GT(before) {
			kind = diff.Stricter
		}
		c.add(diff.Change{Area: diff.Requirements, Kind: kind, What: "oldest Kubernetes", Old: cmp.Or(old, "any"), New: cmp.Or(next, "any"), Breaking: kind == diff.Stricter})
	}
	for _, mode := range without(c.from.modes(), c.to.modes()) {
		c.add(diff.Change{Area: diff.Requirements, Kind: diff.Removed, What: "install mode " + mode, Breaking: true})
	}
	for _, mode := range without(c.to.modes(), c.from.modes()) {
		c.add(diff.Change{Area: diff.Requirements, Kind: diff.Added, What: "install mode " + mode})
	}
	had := c.from.requires()
	c.values(diff.Change{Area: diff.Requirements}, had, c.to.requires(), func(name string) string { return name })
	for i := range c.changes {
		change := &c.changes[i]
		_, known := had[change.What]
		change.Breaking = change.Breaking || strings.HasPrefix(change.What, dependency) && (!known || change.Kind == diff.Changed)
	}
}

// deprecations tells what the catalog, as far as there is one, says of the two bundles.
func (c *comparer) deprecations() {
	if c.catalog == nil {
		return
	}
	if p := c.catalog.Find(c.Package); p != nil {
		of := func(bundle string) map[string]string {
			if message := p.Deprecation(catalog.SchemaBundle, bundle); message != "" {
				return map[string]string{"deprecation": message}
			}
			return map[string]string{}
		}
		c.values(diff.Change{Area: diff.Requirements}, of(c.From), of(c.To), func(name string) string { return name })
	}
}

// dependency begins how dependencies are told of.
const dependency = "dependency on "

// requires returns what the release asks of the cluster by its properties, with the versions that it takes.
func (r *release) requires() map[string]string {
	all := map[string]string{}
	for _, p := range r.Properties {
		var v struct {
			Package string `json:"packageName"`
			Range   string `json:"versionRange"`
			Group   string `json:"group"`
			Version string `json:"version"`
			Kind    string `json:"kind"`
			Message string `json:"failureMessage"`
		}
		ok := json.Unmarshal(p.Value, &v) == nil
		switch p.Type {
		case catalog.PropertyPackageRequired:
			if ok {
				all[dependency+"package "+v.Package] = v.Range
			}
		case catalog.PropertyGVKRequired:
			if ok {
				all[fmt.Sprintf("%sAPI %s/%s %s", dependency, v.Group, v.Version, v.Kind)] = ""
			}
		case catalog.PropertyConstraint:
			all[dependency+cmp.Or(v.Message, canonical(p.Value))] = ""
		case "olm.maxOpenShiftVersion":
			all["newest OpenShift"] = strings.Trim(string(p.Value), `"`)
		}
	}
	return all
}

func (c *comparer) permissions() {
	_, global := c.to.global()
	has := c.to.allRights(global)
	// What is left of a right that is lost on all objects is one on those of some names.
	left := map[right][]string{}
	for r := range has {
		if name := r.name; name != "" {
			r.name = ""
			left[r] = append(left[r], name)
		}
	}
	lost, narrowed := map[right]bool{}, map[string]map[right]bool{}
	for r := range missing(c.from.expanded(c.from.allRights(global)), has) {
		names := left[r]
		if slices.Sort(names); len(names) == 0 {
			lost[r] = true
			continue
		}
		to := strings.Join(slices.Compact(names), ", ")
		if narrowed[to] == nil {
			narrowed[to] = map[right]bool{}
		}
		narrowed[to][r] = true
	}
	for _, what := range rightsList(lost) {
		c.add(diff.Change{Area: diff.Permissions, Kind: diff.Removed, What: what})
	}
	for _, names := range slices.Sorted(maps.Keys(narrowed)) {
		for _, what := range rightsList(narrowed[names]) {
			c.add(diff.Change{Area: diff.Permissions, Kind: diff.Changed, What: what, Old: "all", New: "only " + names})
		}
	}
	_, global = c.from.global()
	for _, what := range rightsList(missing(c.to.allRights(global), c.from.allRights(global))) {
		c.add(diff.Change{Area: diff.Permissions, Kind: diff.Added, What: what})
	}
}

func (c *comparer) webhooks() {
	next := c.to.csv.Spec.WebhookDefinitions
	for _, w := range c.from.csv.Spec.WebhookDefinitions {
		i := c.to.successor(w)
		if i < 0 {
			c.add(diff.Change{Area: diff.Webhooks, Kind: diff.Removed, Object: w.GenerateName, What: string(w.Type), Old: webhookText(w)})
			continue
		}
		first := len(c.changes)
		c.values(diff.Change{Area: diff.Webhooks, Object: w.GenerateName}, webhookValues(w), webhookValues(next[i]), func(name string) string { return name })
		for j := range c.changes[first:] {
			change := &c.changes[first+j]
			change.Breaking = change.What == "failurePolicy" && change.New == string(admissionv1.Fail)
		}
	}
	for _, w := range next {
		if c.from.successor(w) < 0 {
			c.add(diff.Change{Area: diff.Webhooks, Kind: diff.Added, Object: w.GenerateName, What: string(w.Type), New: webhookText(w)})
		}
	}
}

func webhookText(w v1alpha1.WebhookDescription) string {
	values := webhookValues(w)
	list := make([]string, 0, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		list = append(list, name+": "+values[name])
	}
	return strings.Join(list, "; ")
}

// webhookValues returns what of a webhook matters to those whose requests it is asked about.
func webhookValues(w v1alpha1.WebhookDescription) map[string]string {
	all := map[string]string{}
	for i, rule := range w.Rules {
		operations := make([]string, 0, len(rule.Operations))
		for _, o := range rule.Operations {
			operations = append(operations, string(o))
		}
		all[strings.TrimSuffix(fmt.Sprintf("rule %d", i+1), " 1")] = fmt.Sprintf("%s %s of %s %s",
			strings.Join(operations, ","), strings.Join(rule.Resources, ","), strings.Join(rule.APIGroups, ","), strings.Join(rule.APIVersions, ","))
	}
	if len(w.ConversionCRDs) > 0 {
		all["conversionCRDs"] = strings.Join(slices.Sorted(slices.Values(w.ConversionCRDs)), ", ")
	}
	if w.Type == v1alpha1.ConversionWebhook {
		return all
	}
	all["failurePolicy"] = string(failurePolicy(w))
	all["matchPolicy"] = string(ptr.Deref(w.MatchPolicy, admissionv1.Equivalent))
	all["timeoutSeconds"] = fmt.Sprint(ptr.Deref(w.TimeoutSeconds, 10))
	if w.ObjectSelector != nil {
		all["objectSelector"] = asJSON(w.ObjectSelector)
	}
	return all
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (c *comparer) images() {
	names := func(r *release) map[string]string {
		all := map[string]string{}
		for _, d := range r.csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
			all[d.Name] = ""
		}
		return all
	}
	c.values(diff.Change{Area: diff.Images}, names(c.from), names(c.to), func(name string) string { return "Deployment " + name })
	c.eachSelectorChange(func(name string, was, is *metav1.LabelSelector, _ []any) {
		c.add(diff.Change{
			Area: diff.Images, Kind: diff.Changed, What: "selector of Deployment " + name + ", which the API server lets nobody change",
			Old: selectorText(was), New: selectorText(is), Breaking: true,
		})
	})
	old, next := c.from.images(), c.to.images()
	dropAliases(old, next)
	dropAliases(next, old)
	type change struct{ old, next string }
	users := map[change][]string{}
	var order []change
	all := maps.Clone(old)
	maps.Copy(all, next)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		one := change{old[name], next[name]}
		if one.old == one.next {
			continue
		}
		if users[one] == nil {
			order = append(order, one)
		}
		if _, user, _ := strings.Cut(name, ": "); !slices.Contains(users[one], user) {
			users[one] = append(users[one], user)
		}
	}
	for _, one := range order {
		what := diff.Change{Area: diff.Images, Kind: diff.Changed, What: "image " + strings.Join(users[one], ", "), Old: one.old, New: one.next}
		switch {
		case one.old == "":
			what.Kind = diff.Added
		case one.next == "":
			what.Kind = diff.Removed
		}
		c.add(what)
	}
}

// dropAliases deletes from images those that only one side has by their name, if another name that both have stands for the
// same image, or the other side has the image by another name.
func dropAliases(images, others map[string]string) {
	known := map[string]bool{}
	for name, ref := range others {
		known[ref] = true
		if same, both := images[name]; both {
			known[same] = true
		}
	}
	maps.DeleteFunc(images, func(name, ref string) bool { _, both := others[name]; return !both && known[ref] })
}

// images returns the references of the images that the release names, by who uses them, a colon, and their name.
func (r *release) images() map[string]string {
	all := map[string]string{}
	for _, u := range (&single{spec: *r.csv}).images() {
		deployment, _ := u.path[len(deploymentsPath)].(int)
		all[fmt.Sprintf("%d: %s", deployment, u.by[strings.LastIndexByte(u.by, ' ')+1:])] = u.image
	}
	for _, i := range r.csv.Spec.RelatedImages {
		all["related: "+i.Name] = i.Image
	}
	return all
}

// objects compares what else the bundles ship.
func (c *comparer) objects() error {
	read := func(b *catalog.Bundle) (map[string]string, error) {
		objects, err := b.Objects()
		all := map[string]string{}
		for _, o := range objects {
			head := bundle.Manifest{JSON: o}
			if head.Identify() && head.Kind != v1alpha1.ClusterServiceVersionKind && !isCRD(head.APIVersion, head.Kind) {
				all[head.Kind+" "+head.Name] = canonical(o)
			}
		}
		return all, err
	}
	old, err := read(c.from.Bundle)
	if err != nil {
		return err
	}
	next, err := read(c.to.Bundle)
	if err != nil {
		return err
	}
	first := len(c.changes)
	c.values(diff.Change{Area: diff.Objects}, old, next, func(name string) string { return name })
	for i := range c.changes[first:] {
		change := &c.changes[first+i]
		change.Old, change.New = "", "" // whole manifests
		key := strings.Replace(change.What, " ", "/", 1)
		if was, is := c.from.fixed[key], c.to.fixed[key]; was != nil && is != nil {
			if paths := was.changed(is); len(paths) > 0 {
				change.What, change.Breaking = change.What+", of which the API server lets nobody change "+strings.Join(paths, ", "), true
			}
		}
	}
	return nil
}

func (c *comparer) apis() {
	for _, before := range c.from.crds {
		if c.to.crd(before.Name) == nil {
			c.add(diff.Change{Area: diff.APIs, Kind: diff.Removed, Object: before.Name, What: "CRD of " + before.Spec.Names.Kind, Breaking: true})
		}
	}
	for _, after := range c.to.crds {
		if c.from.crd(after.Name) == nil {
			c.add(diff.Change{Area: diff.APIs, Kind: diff.Added, Object: after.Name, What: "CRD of " + after.Spec.Names.Kind, Versions: after.servedVersions(), Detail: description(after.description())})
		}
	}
	perPair(c.upgrade, func(before, after *crd) {
		c.crdVersions(before, after)
		for _, name := range without(before.otherNames(), after.otherNames()) {
			c.add(diff.Change{Area: diff.APIs, Kind: diff.Removed, Object: before.Name, What: name, Breaking: true})
		}
		for _, name := range without(after.otherNames(), before.otherNames()) {
			c.add(diff.Change{Area: diff.APIs, Kind: diff.Added, Object: before.Name, What: name})
		}
		if was, is := string(before.Spec.Scope), string(after.Spec.Scope); was != is {
			c.add(diff.Change{Area: diff.APIs, Kind: diff.Changed, Object: before.Name, What: "scope", Old: was, New: is, Breaking: true})
		}
		conversion := map[bool]string{true: "Webhook", false: "None"}
		if was, is := before.converted(c.from), after.converted(c.to); was != is {
			c.add(diff.Change{Area: diff.APIs, Kind: diff.Changed, Object: before.Name, What: "conversion", Old: conversion[was], New: conversion[is]})
		}
	})
	perServed(c.upgrade, c.subresources)
	perVersion(c.subject, c.upgrade, c.fields)
}

func (c *crd) servedVersions() []string {
	var names []string
	for _, v := range c.Spec.Versions {
		if v.Served {
			names = append(names, v.Name)
		}
	}
	return names
}

// description returns that of the newest stored schema, "" where there is none.
func (c *crd) description() string {
	if v := c.stored(); v != nil && v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
		return v.Schema.OpenAPIV3Schema.Description
	}
	return ""
}

func (c *comparer) crdVersions(before, after *crd) {
	state := func(v *apiextensionsv1.CustomResourceDefinitionVersion) string {
		switch {
		case !v.Served:
			return "not served"
		case v.Deprecated:
			return "deprecated"
		}
		return "served"
	}
	states := func(c *crd) map[string]string {
		all := map[string]string{}
		for i := range c.Spec.Versions {
			all[c.Spec.Versions[i].Name] = state(&c.Spec.Versions[i])
		}
		return all
	}
	first := len(c.changes)
	c.values(diff.Change{Area: diff.APIs, Object: before.Name}, states(before), states(after), func(name string) string { return "version " + name })
	for i := range c.changes[first:] {
		change := &c.changes[first+i]
		change.Breaking = change.Old != "" && change.Old != "not served" && (change.New == "" || change.New == "not served")
	}
	if old, next := before.stored(), after.stored(); old != nil && next != nil && old.Name != next.Name {
		c.add(diff.Change{Area: diff.APIs, Kind: diff.Changed, Object: before.Name, What: "stored version", Old: old.Name, New: next.Name})
	}
}

func (c *comparer) subresources(before, _ *crd, old, next *apiextensionsv1.CustomResourceDefinitionVersion) {
	has := func(v *apiextensionsv1.CustomResourceDefinitionVersion) map[string]string {
		all := map[string]string{}
		if hasStatus(v) {
			all["subresource status"] = ""
		}
		if v.Subresources != nil && v.Subresources.Scale != nil {
			all["subresource scale"] = asJSON(v.Subresources.Scale)
		}
		for _, name := range columns(v) {
			all["printer column "+name] = ""
		}
		return all
	}
	first := len(c.changes)
	c.values(diff.Change{Area: diff.APIs, Object: before.Name, Versions: []string{old.Name}}, has(old), has(next), func(name string) string { return name })
	for i := range c.changes[first:] {
		change := &c.changes[first+i]
		change.Breaking = change.Kind != diff.Added && strings.HasPrefix(change.What, "subresource ")
	}
}

// fields tells what changes in the schema of a version: with what the checks find in one direction, and in the other.
func (c *comparer) fields(before, after *crd, version string, found changes) {
	old, next := before.version(version).Schema.OpenAPIV3Schema, after.version(version).Schema.OpenAPIV3Schema
	back := compare(next, old)
	tell := func(kind diff.Kind, list []string, by changes, what func(string) string) {
		for _, said := range list {
			field := by.paths[said]
			c.add(diff.Change{
				Area: diff.APIs, Kind: kind, Object: before.Name, Versions: []string{version}, Field: field, What: what(said),
				Breaking: !inStatus(field) && (kind == diff.Removed || kind == diff.Stricter),
			})
		}
	}
	as := func(said string) string { return said }
	tell(diff.Removed, found.removed, found, func(said string) string { return "field " + said })
	tell(diff.Stricter, slices.Concat(found.tighter, found.rules), found, as)
	tell(diff.Changed, found.merges, found, func(said string) string { return "merging of " + said })
	for _, said := range found.defaults {
		field := found.paths[said]
		c.add(diff.Change{
			Area: diff.APIs, Kind: diff.Changed, Object: before.Name, Versions: []string{version}, Field: field, What: "default of " + field,
			Old: defaultAt(old, field), New: defaultAt(next, field),
		})
	}
	tell(diff.Looser, slices.DeleteFunc(slices.Concat(back.tighter, back.rules), func(said string) bool {
		_, field, is := strings.Cut(said, " requires the field ")
		path := strings.TrimPrefix(back.paths[said]+"."+field, wholeObject+".")
		return is && slices.Contains(found.removed, path) || strings.Contains(said, " must be of type ")
	}), back, func(said string) string { return noLonger(said, back.paths[said]) })
	for _, said := range back.removed {
		change := diff.Change{Area: diff.APIs, Kind: diff.Added, Object: before.Name, Versions: []string{version}, Field: back.paths[said], What: "field " + said}
		if schema := schemaAt(next, inSchema(change.Field)); said == change.Field && schema != nil {
			change.New, change.Detail = schema.Type, description(schema.Description)
		}
		c.add(change)
	}
}

// noLonger turns what was asked of a field around.
func noLonger(said, field string) string {
	rest := strings.TrimPrefix(said, field)
	for _, pair := range [][2]string{
		{" must not ", " may "}, {" must ", " need no longer "}, {" requires ", " no longer requires "}, {" has ", " no longer has "}, {" can change only as ", " can change otherwise than "},
	} {
		if after, is := strings.CutPrefix(rest, pair[0]); is {
			return field + pair[1] + after
		}
	}
	return "no longer: " + said
}

// defaultAt returns the default of a field as JSON.
func defaultAt(schema *apiextensionsv1.JSONSchemaProps, field string) string {
	var path []any
	if field != wholeObject {
		path = inSchema(field)
	}
	if at := schemaAt(schema, path); at != nil && at.Default != nil {
		return string(at.Default.Raw)
	}
	return "none"
}

// schemaAt returns the schema at a path that inSchema made, or nil.
func schemaAt(schema *apiextensionsv1.JSONSchemaProps, path []any) *apiextensionsv1.JSONSchemaProps {
	for i := 0; i < len(path); i++ {
		switch path[i] {
		case "items":
			if schema.Items == nil || schema.Items.Schema == nil {
				return nil
			}
			schema = schema.Items.Schema
		case "additionalProperties":
			if schema.AdditionalProperties == nil || schema.AdditionalProperties.Schema == nil {
				return nil
			}
			schema = schema.AdditionalProperties.Schema
		default: // properties, and a name
			i++
			name, _ := path[i].(string)
			inner, ok := schema.Properties[name]
			if !ok {
				return nil
			}
			schema = &inner
		}
	}
	return schema
}

// description returns the first sentence of the description of a field.
func description(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if i := strings.Index(text, ". "); i >= 0 {
		text = text[:i+1]
	}
	return text
}
