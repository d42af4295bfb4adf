package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/finding"
)

// versionChecks compare what an upgrade changes with what its version says.
var versionChecks = []Check{
	{
		Code: "EDG013", Severity: finding.Info,
		Title: "the version of an upgrade increases by less than its changes ask for",
		Cause: "users read from the version what an upgrade can break, and approve it accordingly. Removed or stricter APIs and dropped install modes ask for a new major version, " +
			"additions and more permissions for a new minor one. Before 1.0.0 the minor and the patch version stand for these. Alpha versions of an API may change like additions",
		Fix:        "release these changes under the version that the message names, or a higher one",
		References: []string{"https://semver.org/", "https://kubernetes.io/docs/reference/using-api/deprecation-policy/"},
		edge:       versionTooLow,
	},
}

// versionTooLow leaves published upgrades alone: a version is the first thing that nobody can change.
func versionTooLow(s *subject, u upgrade, found func(hit)) {
	from, to := u.from.Version, u.to.Version
	if u.published || !to.GT(from) || from.FinalizeVersion() == to.FinalizeVersion() || to.Major > from.Major {
		return
	}
	say := func(version string, why []string) {
		found(hit{path: []any{"spec", "version"}, message: fmt.Sprintf("the changes from %s to %s ask for version %s: %s", u.From, u.To, version, abridge(why))})
	}
	patch := from.Major > 0 && to.Minor == from.Minor // others may add what they like
	broken, added := changesOf(s, u, patch)
	switch {
	case len(broken) > 0 && from.Major > 0:
		say(fmt.Sprintf("%d.0.0", from.Major+1), broken)
	case to.Minor > from.Minor:
	case len(broken) > 0:
		say(fmt.Sprintf("0.%d.0", from.Minor+1), broken)
	case len(added) > 0 && patch:
		say(fmt.Sprintf("%d.%d.0", from.Major, from.Minor+1), added)
	}
}

// changesOf says what an upgrade breaks, which asks for a new major version, and what it adds, which asks for a new minor one;
// the latter as a whole only where additions matter.
func changesOf(s *subject, u upgrade, additions bool) (broken, added []string) {
	for _, change := range []struct {
		text   string
		breaks bool
		look   func(*subject, upgrade, func(hit))
	}{
		{"drops an install mode", true, modeGone},
		{"drops a CRD", true, crdGone},
		{"adds permissions", false, rightsGained},
		{"needs a newer Kubernetes", false, kubernetesRaised},
		{"adds a validating webhook for existing objects", false, newlyJudged},
		{"drops a webhook", false, webhookGone},
		{"changes the failurePolicy of a webhook to Fail", false, failurePolicyRaised},
	} {
		if !change.breaks && !additions {
			continue
		}
		seen := false
		change.look(s, u, func(hit) { seen = true })
		switch {
		case seen && change.breaks:
			broken = append(broken, change.text)
		case seen:
			added = append(added, change.text)
		}
	}
	for _, c := range u.to.crds {
		if u.from.crd(c.Name) == nil {
			added = append(added, "adds CRD "+c.Name)
		}
	}
	ofCRDs, more := changesOfCRDs(s, u)
	return append(broken, ofCRDs...), append(added, more...)
}

func changesOfCRDs(s *subject, u upgrade) (broken, added []string) {
	breaks := func(version, format string, args ...any) {
		if text := fmt.Sprintf(format, args...); strings.Contains(version, "alpha") {
			added = append(added, text)
		} else {
			broken = append(broken, text)
		}
	}
	perPair(u, func(before, after *crd) {
		for _, v := range before.Spec.Versions {
			if v.Served && after.served(v.Name) < 0 {
				breaks(v.Name, "stops serving version %s of CRD %s", v.Name, before.Name)
			}
		}
		for _, v := range after.Spec.Versions {
			if v.Served && before.served(v.Name) < 0 {
				added = append(added, fmt.Sprintf("serves version %s of CRD %s", v.Name, before.Name))
			}
		}
	})
	perVersion(s, u, func(before, after *crd, version string, c changes) {
		if len(slices.DeleteFunc(slices.Clone(c.removed), inStatus)) > 0 {
			breaks(version, "removes fields from version %s of CRD %s", version, before.Name)
		}
		if len(slices.DeleteFunc(slices.Concat(c.tighter, c.rules), inStatus)) > 0 {
			breaks(version, "makes version %s of CRD %s stricter", version, before.Name)
		}
		if len(c.defaults) > 0 {
			added = append(added, fmt.Sprintf("changes defaults in version %s of CRD %s", version, before.Name))
		}
		if addsFields(before.schemas[before.served(version)], after.schemas[after.served(version)]) {
			added = append(added, fmt.Sprintf("adds fields to version %s of CRD %s", version, before.Name))
		}
	})
	return broken, added
}

// addsFields reports whether a schema has a field, at any depth, that before lacks; schemas that are written alike are one.
func addsFields(before, after *sharedSchema) bool {
	if before == nil || after == nil || before == after {
		return false
	}
	known := make(map[string]*sharedSchema, len(before.inner))
	for _, i := range before.inner {
		known[i.property] = i.sharedSchema
	}
	return slices.ContainsFunc(after.inner, func(i inner) bool {
		was, there := known[i.property]
		return !there && i.property != "" || addsFields(was, i.sharedSchema)
	})
}
