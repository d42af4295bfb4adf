package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
)

// RefusalFindings makes of what to was refused a finding for each account and resource. before is what the release before was
// refused while it ran; local says which namespaces the CSV's permissions reach.
func RefusalFindings(list, before []observe.Refusal, to *lifecycle.Release, started time.Time, local func(namespace string) bool) []finding.Finding {
	type key struct{ code, account, resource string }
	groups := map[key][]observe.Refusal{}
	var order []key
	for _, r := range list {
		k := key{r.Code, r.Account, r.FullResource()}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], r)
	}
	var findings []finding.Finding
	for _, k := range order {
		group := groups[k]
		f := code.Finding(k.code, group[0].Object(), "%s", tellRefusals(group, to, started))
		if k.code == code.Forbidden {
			f.Subject.Object = "ServiceAccount/" + k.account
			if rule := missingRules(group, local); rule != "" {
				f.Fix = rule
			}
		}
		if k.code == code.Invalid && !slices.ContainsFunc(group, func(r observe.Refusal) bool { return fixed().MatchString(r.Why) }) {
			f.Fix = "write what the API server accepts in the fields that it names; what an update leaves out, an object may have already"
		}
		f.Cause = group[0].Why
		if !slices.ContainsFunc(group, func(r observe.Refusal) bool { return !r.In(before) }) {
			f.Severity = finding.Warning
			f.Cause += "; the version before was refused the same"
		}
		findings = append(findings, f)
	}
	return findings
}

// fixed matches what the API server says of a field that nobody can change (k8s.io/kubernetes v1.36.3, pkg/apis/*/validation).
var fixed = observe.Compiled(`immutable|updates to .* are forbidden|(may not|cannot) (be )?changed?|can only be`)

// RefusedBase makes warnings of errors that say what the API server refused a release from which the walk goes on: that it does not take what that
// release writes says nothing of an upgrade. What its account may not do, or does not find, an upgrade may need as well.
func RefusedBase(findings []finding.Finding) {
	for i, f := range findings {
		if slices.Contains([]string{code.Invalid, code.Denied, code.Conflicts}, f.Code) {
			findings[i].Severity = finding.Warning
			findings[i].Cause += "; this release is out, and the upgrade is judged by what comes after it"
		}
	}
}

// tellRefusals says what was refused, where, how often and when.
func tellRefusals(group []observe.Refusal, to *lifecycle.Release, started time.Time) string {
	var where []string
	count := 0
	first, last := group[0].First, group[0].Last
	for _, r := range group {
		place := "in namespace " + r.Namespace
		if r.Namespace == "" {
			place = "at the cluster scope"
		}
		if where = append(where, place); r.Count == 0 {
			continue
		}
		count += r.Count
		if first.IsZero() || r.First.Before(first) {
			first = r.First
		}
		if r.Last.After(last) {
			last = r.Last
		}
	}
	slices.Sort(where)
	where = slices.Compact(where)
	if more := len(where) - 3; more > 0 {
		where = append(where[:3], fmt.Sprintf("%d other namespaces", more))
	}
	what := fmt.Sprintf("%s %s %s", strings.Join(verbsOf(group), ", "), group[0].FullResource(), strings.Join(where, ", "))
	if count == 0 {
		return fmt.Sprintf("%s: ServiceAccount %s may not %s", to.Name, group[0].Account, what)
	}
	often := "once"
	if count > 1 {
		often = fmt.Sprintf("%d times", count)
	}
	switch {
	case first.IsZero(): // a log may tell no time
	case count > 1:
		often += fmt.Sprintf(", %.1fs to %.1fs after the start", first.Sub(started).Seconds(), last.Sub(started).Seconds())
	default:
		often += fmt.Sprintf(", %.1fs after the start", first.Sub(started).Seconds())
	}
	said := fmt.Sprintf("%s: the API server refuses ServiceAccount %s: %s (%s)", to.Name, group[0].Account, what, often)
	var fields []string
	for _, r := range group {
		fields = append(fields, r.Fields...)
	}
	slices.Sort(fields)
	if fields = slices.Compact(fields); len(fields) > 0 {
		said += "; it would change " + strings.Join(fields, ", ")
	}
	return said
}

func verbsOf(group []observe.Refusal) []string {
	var verbs []string
	for _, r := range group {
		verbs = append(verbs, r.Verb)
	}
	slices.Sort(verbs)
	return slices.Compact(verbs)
}

// missingRules says which rules to add to the ClusterServiceVersion so that what was forbidden is allowed, as YAML; "" if it was
// not RBAC that forbade it.
func missingRules(group []observe.Refusal, local func(namespace string) bool) string {
	lists := map[string][]observe.Refusal{}
	for _, r := range group {
		switch {
		case r.Count > 0 && !observe.RefusedVerb().MatchString(r.Why):
		case r.Namespace != "" && local(r.Namespace) && r.Resource != "namespaces":
			lists["permissions"] = append(lists["permissions"], r)
		default:
			lists["clusterPermissions"] = append(lists["clusterPermissions"], r)
		}
	}
	var rules []string
	for _, key := range []string{"clusterPermissions", "permissions"} {
		if missing := lists[key]; len(missing) > 0 {
			_, account, _ := strings.Cut(missing[0].Account, "/")
			rules = append(rules, fmt.Sprintf("add to the rules of serviceAccountName %s in spec.install.spec.%s of the ClusterServiceVersion: "+
				"- {apiGroups: [%s], resources: [%s], verbs: [%s]}", account, key, cmp.Or(missing[0].Group, `""`), missing[0].Resource, strings.Join(verbsOf(missing), ", ")))
		}
	}
	return strings.Join(rules, "; ")
}
