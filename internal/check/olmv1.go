package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/finding"
)

// FamilyOLM are the letters of the checks of what OLM v1 alone refuses.
const FamilyOLM = "OLM"

const olmV1Reference = "https://github.com/operator-framework/operator-controller/tree/v1.10.0/internal/operator-controller"

// olmV1Checks find what OLM v1 (operator-controller v1.10.0) refuses and OLM v0 accepts. What both refuse has other codes.
var olmV1Checks = []Check{
	{
		Code: "OLM001", Severity: finding.Info,
		Title:      "OLM v1 refuses the bundle: it has dependencies",
		Cause:      "OLM v1 resolves no dependencies, and refuses bundles that declare them (resolve/validation.go)",
		Fix:        "let the operator work without the dependency, or tell users to install it first, and remove it from the bundle",
		References: []string{olmV1Reference},
		run:        headsWithDependencies,
		alone: func(s *single, found func(hit)) {
			var types []string
			for _, p := range s.bundle.Properties {
				types = append(types, p.Type)
			}
			for _, d := range s.bundle.Dependencies {
				types = append(types, strings.TrimSuffix(d.Type, ".required")+".required", d.Type) // as opm renders them
			}
			if len(s.spec.Spec.CustomResourceDefinitions.Required)+len(s.spec.Spec.APIServiceDefinitions.Required) > 0 {
				types = append(types, catalog.PropertyGVKRequired) // opm and OLM render them so
			}
			if types = dependencies(types); len(types) > 0 {
				found(hit{at: s.bundle.AnnotationsAt, message: "the bundle has dependencies: " + strings.Join(types, ", ")})
			}
		},
	},
	{
		Code: "OLM004", Severity: finding.Info,
		Title:      "a ClusterExtension of OLM v1 cannot name the channel",
		Cause:      "its spec.source.catalog.channels must be DNS-1123 subdomains (api/v1/clusterextension_types.go); CAT004 reports names of packages",
		Fix:        "use small letters, digits, '-' and '.' in the name",
		References: []string{"https://github.com/operator-framework/operator-controller/blob/v1.10.0/api/v1/clusterextension_types.go"},
		run: perPackage(func(p *catalog.Package, found func(hit)) {
			for _, c := range p.Channels {
				for _, problem := range validation.IsDNS1123Subdomain(c.Name) {
					found(hit{Subject: finding.Subject{Channel: c.Name}, at: c.At, message: fmt.Sprintf("channel %s: %s", c.Name, problem)})
				}
			}
		}),
	},
	{
		Code: "OLM005", Severity: finding.Info,
		Title: "OLM v1 refuses an upgrade: the change of a CRD is not safe",
		Cause: "before an upgrade OLM v1 compares the CRDs (sigs.k8s.io/crdify): it refuses removed fields, stricter schemas, changed defaults, and every change that it cannot judge, such as of CEL " +
			"rules and formats. Whoever wants the upgrade must set spec.install.preflight.crdUpgradeSafety.enforcement: None",
		Fix:        "keep the CRD compatible, and put the change into a new version",
		References: []string{olmV1Reference + "/rukpak/preflights/crdupgradesafety/crdupgradesafety.go", "https://github.com/kubernetes-sigs/crdify"},
		edge:       crdUnsafe,
	},
	{
		Code: "OLM008", Severity: finding.Info,
		Title: "OLM v1 deletes a CRD in an upgrade, and with it all of the users' objects",
		Cause: "OLM v1 applies a bundle as a release of Helm, which deletes what the release before contained and this one does not (applier/helm.go). CRD upgrade safety looks only at " +
			"CRDs that stay. OLM v0 leaves the CRD and its objects",
		Fix:        "keep the CRD in the bundle until its users have saved or moved their objects",
		References: []string{olmV1Reference + "/applier/helm.go"},
		edge:       crdDeleted,
	},
}

// olmV1BundleChecks are those of single bundles.
var olmV1BundleChecks = []Check{
	{
		Code: "OLM002", Severity: finding.Info,
		Title:      "OLM v1 refuses the bundle: it owns APIServices",
		Cause:      "OLM v1 does not support bundles with owned APIServices (applier/provider.go)",
		Fix:        "serve the API by a CRD",
		References: []string{olmV1Reference},
		judge: ofCSV(func(s *single, found func(hit)) {
			for i, owned := range s.spec.Spec.APIServiceDefinitions.Owned {
				found(s.at([]any{"spec", "apiservicedefinitions", "owned", i}, "ClusterServiceVersion %s owns the APIService %s", s.csv.Name, owned.Name))
			}
		}),
	},
	{
		Code: "OLM003", Severity: finding.Info,
		Title:      "OLM v1 refuses the bundle: it does not support the install mode AllNamespaces",
		Cause:      "OLM v1 installs an extension once in a cluster, for all namespaces (applier/provider.go)",
		Fix:        "let the operator watch all namespaces, and set supported: true for AllNamespaces in spec.installModes",
		References: []string{olmV1Reference},
		judge: ofCSV(func(s *single, found func(hit)) {
			if !slices.ContainsFunc(s.spec.Spec.InstallModes, func(m v1alpha1.InstallMode) bool {
				return m.Type == v1alpha1.InstallModeTypeAllNamespaces && m.Supported
			}) {
				found(s.at([]any{"spec", "installModes"}, "ClusterServiceVersion %s does not support AllNamespaces", s.csv.Name))
			}
		}),
	},
	{
		Code: "OLM009", Severity: finding.Info,
		Title: "OLM v1 refuses the bundle: a webhook is not as it wants it",
		Cause: "OLM v1 refuses webhooks for its own API group and for webhook configurations, two conversion webhooks of one CRD, and names that are no DNS-1123 subdomain " +
			"(rukpak/render/registryv1/validators). OLM v0 refuses other rules: WHK009",
		Fix:        "leave the API group or resource out of the rules, have one conversion webhook for each CRD, and use small letters, digits, '-' and '.' in its name",
		References: []string{olmV1Reference + "/rukpak/render/registryv1/validators/validator.go"},
		judge:      ofCSV(webhooksOfV1),
	},
}

// olmV1Group is the API group of ClusterExtensions.
const olmV1Group = "olm.operatorframework.io"

// webhooksOfV1 reports the webhooks that OLM v1 alone refuses.
func webhooksOfV1(s *single, found func(hit)) {
	converts := map[string]string{}
	for i, w := range s.spec.Spec.WebhookDefinitions {
		if w.Type != v1alpha1.ConversionWebhook {
			for j, rule := range w.Rules {
				if what := ruleOfV1(rule.Rule); what != "" {
					found(s.at(webhookPath(i, "rules", j), "webhook %s has a rule for %s", w.GenerateName, what))
				}
			}
			continue
		}
		for _, problem := range validation.IsDNS1123Subdomain(w.GenerateName) {
			found(s.at(webhookPath(i, "generateName"), "the name of conversion webhook %s: %s", w.GenerateName, problem))
		}
		for _, name := range w.ConversionCRDs {
			if other, known := converts[name]; known {
				found(s.at(webhookPath(i, "conversionCRDs"), "conversion webhooks %s and %s convert the same CRD %s", other, w.GenerateName, name))
			}
			converts[name] = w.GenerateName
		}
	}
}

// ruleOfV1 returns what OLM v1 alone lets no webhook have a rule for; "" if there is nothing.
func ruleOfV1(rule admissionv1.Rule) string {
	if slices.Contains(rule.APIGroups, olmV1Group) {
		return "API group " + olmV1Group
	}
	if !slices.Contains(rule.APIGroups, admissionv1.GroupName) {
		return ""
	}
	kinds := []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} // OLM v0 refuses these words alone
	for _, r := range rule.Resources {
		if !slices.Contains(kinds, r) && slices.ContainsFunc(kinds, func(k string) bool { return strings.EqualFold(k, r) || strings.EqualFold(k+"s", r) }) {
			return r
		}
	}
	return ""
}

// dependencies returns those of types of properties that are dependencies, each once.
func dependencies(types []string) []string {
	list := slices.DeleteFunc(types, func(t string) bool {
		return t != catalog.PropertyPackageRequired && t != catalog.PropertyGVKRequired && t != catalog.PropertyConstraint
	})
	slices.Sort(list)
	return slices.Compact(list)
}

// headsWithDependencies looks at the heads of channels: users of OLM v1 can get older releases, but nobody can change them.
func headsWithDependencies(s *subject, found func(hit)) {
	for _, p := range s.packages {
		seen := map[*catalog.Bundle]bool{}
		for _, c := range p.Channels {
			b := p.Bundle(s.graph(p, c).Head())
			if b == nil || seen[b] {
				continue
			}
			seen[b] = true
			var types []string
			for _, property := range b.Properties {
				types = append(types, property.Type)
			}
			if types = dependencies(types); len(types) > 0 {
				found(hit{
					Subject: finding.Subject{Package: p.Name, From: b.Name}, at: b.At, published: s.published(p).bundle(b.Name),
					message: fmt.Sprintf("bundle %s has dependencies: %s", b.Name, strings.Join(types, ", ")),
				})
			}
		}
	}
}

// crdDeleted reports the CRDs that a bundle does not contain any more.
func crdDeleted(s *subject, u upgrade, found func(hit)) {
	if u.published {
		return
	}
	crdGone(s, u, func(h hit) {
		h.message = fmt.Sprintf("OLM v1 deletes %s, with all of its objects, when it upgrades from %s to %s, which does not contain it any more", h.Object, u.From, u.To)
		found(h)
	})
}

// crdUnsafe asks OLM v1's own preflight. Of published upgrades the CRD family says what matters to users of OLM v0.
func crdUnsafe(s *subject, u upgrade, found func(hit)) {
	if u.published {
		return
	}
	perPair(u, func(before, after *crd) {
		for _, r := range s.refusalsOfV1(before, after, after.converted(u.to)) {
			found(hit{
				Subject: before.object(), path: r.path,
				message: fmt.Sprintf("OLM v1 refuses %sCRD %s of %s after that of %s: %s", r.of, before.Name, u.To, u.From, abridge(r.changes)),
			})
		}
	})
}
