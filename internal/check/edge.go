package check

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/graph"
)

// edgeChecks compare the two ends of each upgrade that users take.
var edgeChecks = []Check{
	{
		Code: "EDG001", Severity: finding.Error,
		Title:      "an upgrade changes the selector of a Deployment",
		Cause:      "the selector of a Deployment is immutable: the API server rejects OLM's update, and the new release is never installed",
		Fix:        "keep the selector, or rename the Deployment",
		References: []string{"https://github.com/operator-framework/operator-lifecycle-manager/issues/952"},
		edge:       selectorChanged,
	},
	{
		Code: "EDG002", Severity: finding.Info,
		Title: "an upgrade drops or renames a Deployment",
		Cause: "OLM deletes the old Deployment when the new release is installed: there is no rolling update, and in between the pods of both or of none run",
		Fix:   "keep the name, unless the selector must change",
		edge:  deploymentGone,
	},
	{
		Code: "EDG003", Severity: finding.Warning,
		Title: "an upgrade drops an install mode",
		Cause: "users who installed the operator in that mode get a release that OLM refuses: UnsupportedOperatorGroup",
		Fix:   "keep supporting the install mode, or tell users how to change it before they upgrade",
		edge:  modeGone,
	},
	{
		Code: "EDG004", Severity: finding.Warning,
		Title: "an upgrade drops permissions on a kind that the operator still owns, requires or has a webhook for",
		Cause: "the API server refuses requests of the operator that it allowed the previous release",
		Fix:   "grant the verbs again if the operator still needs them",
		edge:  rightsLost,
	},
	{
		Code: "EDG005", Severity: finding.Info,
		Title: "an upgrade adds permissions",
		Cause: "whoever approves the upgrade also approves these permissions",
		Fix:   "check that the operator needs each of them",
		edge:  rightsGained,
	},
	{
		Code: "EDG006", Severity: finding.Info,
		Title: "an upgrade drops a webhook",
		Cause: "after the upgrade objects are stored without the webhook's defaults and validation; without a conversion webhook only their apiVersion changes",
		Fix:   "check whether this is intended; keep a conversion webhook as long as objects are stored or read in more than one version",
		edge:  webhookGone,
	},
	{
		Code: "EDG007", Severity: finding.Info,
		Title: "an upgrade needs a newer Kubernetes",
		Cause: "on an older cluster OLM refuses the release, and the Subscription stops at it",
		Fix:   "tell users, and keep a channel for older clusters as long as you support them",
		edge:  kubernetesRaised,
	},
	{
		Code: "EDG008", Severity: finding.Info,
		Title: "an upgrade drops permissions",
		Cause: "if the new release still uses these permissions, the API server refuses its requests; the manifests do not show whether it does. For kinds that the " +
			"operator owns or names, only deletecollection and subresources that operators do not use are reported here",
		Fix:        "check whether the operator still needs them; 'olmkit upgrade test' reports every request that is refused during the test, but cannot show requests that the operator does not make there",
		References: []string{"https://github.com/NVIDIA/gpu-operator/issues/883"},
		edge:       otherRightsLost,
	},
}

// release is a bundle's manifests, read.
type release struct {
	*catalog.Bundle
	csv    *v1alpha1.ClusterServiceVersion
	crds   []*crd // by name
	bound  []boundRule
	fixed  map[string]*fixed                    // manifests with immutable fields, by Kind/name
	stands map[string]func() *document.Document // manifests, by Kind/name; the CSV also by ""
	spread memo[bool, map[right]bool]           // its rights, in a global OperatorGroup and in others
	shown  memo[bool, []sample]                 // of alm-examples; there is only true
}

// place returns where the field at path of the manifest called object (Kind/name) stands, or of the CSV when the bundle has
// no such.
func (r *release) place(object string, path ...any) finding.Location {
	if d, ok := r.stands[object]; ok {
		return d().Place(path...)
	}
	return r.stands[""]().Place(path...)
}

// crd is a CustomResourceDefinition; bundles that hold the same bytes share it.
type crd struct {
	*apiextensionsv1.CustomResourceDefinition
	schemas []*sharedSchema // of the versions; nil where that is none
	reader  *schemaReader
	v1beta1 bool              // it was one of v1beta1, to which not all rules of v1 applied
	spec    [sha256.Size]byte // digest of what the API server serves by, which leaves out most of the metadata

	compiled memo[int, *ruleSet] // of the versions
}

func (r *release) crd(name string) *crd {
	for _, c := range r.crds {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// release reads the bundle's manifests once. It is nil for a bundle whose CSV cannot be read or is not inline.
func (s *subject) release(b *catalog.Bundle) *release {
	return s.releases.get(b, func() *release { return s.read(b) })
}

func (s *subject) read(b *catalog.Bundle) *release {
	r := &release{Bundle: b, fixed: map[string]*fixed{}, stands: map[string]func() *document.Document{}}
	var roles []json.RawMessage
	next := inlined{of: b}
	err := b.EachValue(func(value []byte, objects func() ([]json.RawMessage, error)) error {
		all, err := s.readValue(value, objects)
		for _, m := range all {
			is := next
			next.index, next.nth = next.index+1, next.nth+1
			if m.crd == nil && !m.Identify() {
				continue
			}
			if binds(m.Kind) {
				roles = append(roles, m.JSON)
			}
			at := func() *document.Document { return s.manifest(is, next.index) }
			if !r.add(m, at) {
				return errNoCSV
			}
		}
		next.number, next.nth = next.number+1, 0
		return err
	})
	if err != nil || r.csv == nil {
		return nil
	}
	r.bound = boundRules(roles, r.csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs)
	slices.SortFunc(r.crds, func(a, b *crd) int { return strings.Compare(a.Name, b.Name) })
	return r
}

// manifest is a manifest of a bundle. A CustomResourceDefinition that could be read has nothing else.
type manifest struct {
	bundle.Manifest
	crd *crd
}

// readValue returns the manifests that the value of a property holds. Most of a bundle is CustomResourceDefinitions, many of which the
// next release has again: they are decoded once.
func (s *subject) readValue(value []byte, objects func() ([]json.RawMessage, error)) ([]manifest, error) {
	var list []manifest
	var err error
	decode := func() *crd {
		var found []json.RawMessage
		found, err = objects()
		for _, o := range found {
			list = append(list, manifest{Manifest: bundle.Manifest{JSON: o}})
		}
		if len(list) == 1 && list[0].Identify() && isCRD(list[0].APIVersion, list[0].Kind) {
			return s.schemas.crd(list[0].APIVersion, list[0].JSON)
		}
		return nil
	}
	if c := s.crds.get(sha256.Sum256(value), decode); c != nil {
		return []manifest{{crd: c}}, nil
	}
	if list == nil && err == nil {
		decode()
	}
	for i := range list {
		if m := &list[i]; len(list) > 1 && m.Identify() && isCRD(m.APIVersion, m.Kind) {
			m.crd = s.schemas.crd(m.APIVersion, m.JSON)
		}
	}
	return list, err
}

var errNoCSV = errors.New("the ClusterServiceVersion cannot be read")

// add adds a manifest, whose document at returns, and reports whether it could be read.
func (r *release) add(m manifest, at func() *document.Document) bool {
	switch {
	case m.crd != nil:
		r.crds = append(r.crds, m.crd)
		r.stands["CustomResourceDefinition/"+m.crd.Name] = at
	case m.Kind == v1alpha1.ClusterServiceVersionKind && r.csv == nil:
		csv := &v1alpha1.ClusterServiceVersion{}
		if json.Unmarshal(m.JSON, csv) != nil {
			return false
		}
		r.csv, r.stands[""] = csv, at
	case isCRD(m.APIVersion, m.Kind): // one that cannot be read
	default:
		if f := fixedOf(m.APIVersion, m.Kind, m.JSON); f != nil {
			r.fixed[m.Kind+"/"+m.Name] = f
			r.stands[m.Kind+"/"+m.Name] = at
		}
	}
	return true
}

// hop is an edge that is judged, with the bundles at its ends.
type hop struct {
	graph.Edge
	tail, head *catalog.Bundle
	published  bool // users have the upgrade
}

// upgrade is a hop with what stands at its ends.
type upgrade struct {
	hop
	from, to *release
}

// hops returns the edges of p that OLM takes, and those of replaces chains, each pair of bundles once: the default channel
// speaks for the others.
func (s *subject) hops(p *catalog.Package) []graph.Edge {
	if s.whole != nil {
		return s.whole.hops(p)
	}
	return s.ways.get(p, func() []graph.Edge { return s.findHops(p) })
}

func (s *subject) findHops(p *catalog.Package) []graph.Edge {
	type pair struct{ from, to string }
	seen := map[pair]bool{}
	var list []graph.Edge
	channels := slices.Clone(p.Channels)
	slices.SortStableFunc(channels, func(a, b *catalog.Channel) int {
		switch p.DefaultChannel {
		case a.Name:
			return -1
		case b.Name:
			return 1
		}
		return 0
	})
	for i, c := range channels {
		for e := range s.graph(p, c).Main() {
			if !e.Effective || e.Kind != graph.Replaces && !e.Next || seen[pair{e.From, e.To}] {
				continue
			}
			list = append(list, e)
			if i < len(channels)-1 { // a channel has each edge once
				seen[pair{e.From, e.To}] = true
			}
		}
	}
	return list
}

// upgrades returns the edges of p that OLM takes, and those of replaces chains, which users took while each release was the
// newest: each pair of bundles once, ordered by the versions of their ends.
func (s *subject) upgrades(p *catalog.Package) []hop {
	return s.edges.get(p, func() []hop { return s.follow(p) })
}

func (s *subject) follow(p *catalog.Package) []hop {
	var list []hop
	for _, e := range s.hops(p) {
		from, to := p.Bundle(e.From), p.Bundle(e.To)
		if from == nil || to == nil {
			continue
		}
		list = append(list, hop{Edge: e, tail: from, head: to, published: s.published(p).edge(e.From, e.To)})
	}
	slices.SortStableFunc(list, func(a, b hop) int {
		return cmp.Or(a.head.Version.Compare(b.head.Version), a.tail.Version.Compare(b.tail.Version), strings.Compare(a.To, b.To), strings.Compare(a.From, b.From))
	})
	return list
}

// perTarget calls look with each bundle that upgrades lead to, and these, in the order of upgrades.
func (s *subject) perTarget(look func(to *catalog.Bundle, hops []hop)) {
	for _, p := range s.packages {
		leading := map[*catalog.Bundle][]hop{}
		for _, h := range s.upgrades(p) {
			leading[h.head] = append(leading[h.head], h)
		}
		for _, b := range p.Bundles {
			if hops := leading[b]; len(hops) > 0 {
				look(b, hops)
			}
		}
	}
}

// judgeUpgrades runs the checks of one upgrade on those that lead to one bundle.
func (s *subject) judgeUpgrades(checks []Check, to *catalog.Bundle, hops []hop, tell func(Check) func(hit)) {
	part := Part{What: "upgrades", Bundles: []*catalog.Bundle{to}}
	type asked struct {
		graph.Edge
		Published bool
	}
	var about []asked
	for _, h := range hops {
		about = append(about, asked{h.Edge, h.published})
		part.Bundles = append(part.Bundles, h.tail)
	}
	part.Asked = about
	read := sync.OnceValue(func() (list []upgrade) {
		for _, h := range hops {
			if u := (upgrade{h, s.release(h.tail), s.release(h.head)}); u.from != nil && u.to != nil {
				list = append(list, u)
			}
		}
		return list
	})
	s.judgePart(checks, part, to, func(check Check, found func(hit)) {
		var alike gathering
		for _, u := range read() {
			check.edge(s, u, func(h hit) { alike.add(u.hop, h) })
		}
		alike.tell(s, found)
	}, tell)
}

// gathering holds the hits of one check on upgrades. What it finds alike on upgrades from several releases to one is said once, of the
// newest of them.
type gathering struct {
	order []string
	hits  map[string][]hit
	ends  map[string]*catalog.Bundle // where each hit stands
}

func (g *gathering) add(u hop, h hit) {
	h.Package, h.Channel, h.From, h.To, h.published = u.Package, u.Channel, u.From, u.To, u.published
	key := strconv.FormatBool(u.published) + "\x00" + u.To + "\x00" + h.Object + "\x00" + strings.ReplaceAll(h.message, u.From, "\x00")
	if g.hits == nil {
		g.hits, g.ends = map[string][]hit{}, map[string]*catalog.Bundle{}
	}
	if g.hits[key] == nil {
		g.order = append(g.order, key)
		g.ends[key] = u.head
	}
	g.hits[key] = append(g.hits[key], h)
}

func (g *gathering) tell(s *subject, found func(hit)) {
	for _, key := range g.order {
		hits := g.hits[key]
		last := hits[len(hits)-1]
		last.at = s.release(g.ends[key]).place(last.Object, last.path...)
		for _, h := range hits[:len(hits)-1] {
			last.alike = append(last.alike, h.From)
		}
		found(last)
	}
}

// deployments is the path of the Deployments in a CSV.
var deployments = []any{"spec", "install", "spec", "deployments"}

// deployment returns the spec of the Deployment called name and its path in the CSV, or nil.
func (r *release) deployment(name string) (*appsv1.DeploymentSpec, []any) {
	for i, d := range r.csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		if d.Name == name {
			return &r.csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[i].Spec, append(slices.Clone(deployments), i)
		}
	}
	return nil, nil
}

func selectorChanged(_ *subject, u upgrade, found func(hit)) {
	u.eachSelectorChange(func(name string, was, is *metav1.LabelSelector, at []any) {
		found(hit{
			Subject: finding.Subject{Object: "Deployment/" + name}, path: append(at, "spec", "selector"),
			message: fmt.Sprintf("%s changes the selector of Deployment %s from %s in %s to %s", u.To, name, selectorText(was), u.From, selectorText(is)),
		})
	})
}

// eachSelectorChange calls changed with each Deployment whose selector the upgrade changes, and with its path in the CSV.
func (u upgrade) eachSelectorChange(changed func(name string, was, is *metav1.LabelSelector, at []any)) {
	for _, d := range u.from.csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		if next, at := u.to.deployment(d.Name); next != nil && !reflect.DeepEqual(d.Spec.Selector, next.Selector) {
			changed(d.Name, d.Spec.Selector, next.Selector, at)
		}
	}
}

// selectorText is a selector as kubectl writes it.
func selectorText(s *metav1.LabelSelector) string {
	if s == nil {
		return "nothing"
	}
	return metav1.FormatLabelSelector(s)
}

func deploymentGone(_ *subject, u upgrade, found func(hit)) {
	for _, d := range u.from.csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		if next, _ := u.to.deployment(d.Name); next == nil {
			found(hit{Subject: finding.Subject{Object: "Deployment/" + d.Name}, path: deployments, message: fmt.Sprintf("%s drops Deployment %s, which %s has", u.To, d.Name, u.From)})
		}
	}
}

// modes returns the install modes that the release supports, in order.
func (r *release) modes() []string {
	supported := map[string]bool{}
	for _, m := range r.csv.Spec.InstallModes {
		supported[string(m.Type)] = m.Supported
	}
	maps.DeleteFunc(supported, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(supported))
}

// without returns what of list is not in other.
func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(one string) bool { return slices.Contains(other, one) })
}

func modeGone(_ *subject, u upgrade, found func(hit)) {
	if gone := without(u.from.modes(), u.to.modes()); len(gone) > 0 {
		found(hit{path: []any{"spec", "installModes"}, message: fmt.Sprintf("%s drops install mode %s, which %s supports", u.To, strings.Join(gone, ", "), u.From)})
	}
}

// successor returns the index of the webhook of r that is w in a later release, or -1. A webhook on other versions of the same
// resource is the same: the API server asks it about all.
func (r *release) successor(w v1alpha1.WebhookDescription) int {
	resources := func(w v1alpha1.WebhookDescription) []string {
		var list []string
		for _, rule := range w.Rules {
			for _, g := range rule.APIGroups {
				for _, r := range rule.Resources {
					list = append(list, r+"."+g)
				}
			}
		}
		return append(list, w.ConversionCRDs...)
	}
	all := r.csv.Spec.WebhookDefinitions
	if i := slices.IndexFunc(all, func(o v1alpha1.WebhookDescription) bool { return o.Type == w.Type && o.GenerateName == w.GenerateName }); i >= 0 {
		return i
	}
	return slices.IndexFunc(all, func(o v1alpha1.WebhookDescription) bool {
		return o.Type == w.Type && len(w.Rules) > 0 && len(without(resources(w), resources(o))) == 0
	})
}

func webhookGone(_ *subject, u upgrade, found func(hit)) {
	for _, w := range u.from.csv.Spec.WebhookDefinitions {
		if u.to.successor(w) < 0 {
			h := hit{path: []any{"spec", "webhookdefinitions"}, message: fmt.Sprintf("%s drops %s %s, which %s has", u.To, w.Type, w.GenerateName, u.From)}
			if w.Type == v1alpha1.ConversionWebhook {
				h.cause = "without the webhook the API server changes only the apiVersion of objects, so fields that differ between the versions are lost or misplaced"
				h.fix = fmt.Sprintf("keep the webhook for %s; drop it, with strategy None, when all objects are migrated to one version and no other is served",
					strings.Join(w.ConversionCRDs, ", "))
			}
			found(h)
		}
	}
}

// minKube returns the oldest Kubernetes that the release runs on, the zero version where any will do, and whether it can be
// read.
func (r *release) minKube() (semver.Version, bool) {
	v, err := semver.ParseTolerant(cmp.Or(r.csv.Spec.MinKubeVersion, "0.0.0"))
	return v, err == nil
}

func kubernetesRaised(_ *subject, u upgrade, found func(hit)) {
	before, known := u.from.minKube()
	after, readable := u.to.minKube()
	if known && readable && after.GT(before) {
		found(hit{path: []any{"spec", "minKubeVersion"}, message: fmt.Sprintf("%s needs Kubernetes %s; %s needs %s", u.To, after, u.From, cmp.Or(u.from.csv.Spec.MinKubeVersion, "any version"))})
	}
}
