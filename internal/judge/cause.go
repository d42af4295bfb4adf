package judge

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/compare"
	"github.com/olmkit/olmkit/internal/finding"
)

// ofOneCause says under which key a finding shares its cause with others, "" if it stands alone: fields of one kind's objects
// that are lost, in whatever version and by whoever reads or writes, and outages that have the same words for their cause.
func ofOneCause(f finding.Finding) string {
	switch f.Code {
	case code.FieldLost, code.RoundTrip, code.ManifestRefused:
		if len(f.Fields) > 0 {
			return strings.Join([]string{"fields", string(f.Severity), kindOf(f)}, "\n")
		}
	case code.ReadOutage, code.WriteOutage:
		if f.Cause != "" {
			return strings.Join([]string{"outage", string(f.Severity), f.Subject.Object, f.Cause}, "\n")
		}
	}
	return ""
}

// maxTold is how many findings of one cause are told in the words of the first.
const maxTold = 12

// onePerCause makes one finding of those that share a cause: that of the first code, which names the codes of the others and
// quotes them.
func onePerCause(findings []finding.Finding) []finding.Finding {
	groups := map[string][]finding.Finding{}
	for _, f := range findings {
		if key := ofOneCause(f); key != "" {
			groups[key] = append(groups[key], f)
		}
	}
	var kept []finding.Finding
	for _, f := range findings {
		key := ofOneCause(f)
		switch {
		case key == "":
			kept = append(kept, f)
		case groups[key] != nil:
			kept = append(kept, united(groups[key]))
			groups[key] = nil
		}
	}
	return kept
}

// united is group, in which there is at least one finding, as one.
func united(group []finding.Finding) finding.Finding {
	slices.SortStableFunc(group, func(a, b finding.Finding) int { return cmp.Compare(a.Code, b.Code) })
	f := group[0]
	var others []string
	for _, o := range group[1:] {
		if o.Code != f.Code {
			f.Also = append(f.Also, o.Code)
		}
		f.Fields = append(slices.Clone(f.Fields), o.Fields...)
		others = append(others, strings.TrimSpace(fmt.Sprintf("%s %s: %s", o.Code, o.Subject.Object, o.Message)))
	}
	f.Also = slices.Compact(f.Also)
	slices.Sort(f.Fields)
	f.Fields = slices.Compact(f.Fields)
	if n := len(others) - maxTold; n > 0 {
		others = append(others[:maxTold], fmt.Sprintf("and %d more", n))
	}
	if len(others) > 0 {
		f.Cause = strings.TrimPrefix(f.Cause+"\nthe same cause shows as:\n"+strings.Join(others, "\n"), "\n")
	}
	return f
}

// WithFields is f about the fields of d.
func WithFields(f finding.Finding, d compare.Diffs) finding.Finding {
	f.Fields = append(f.Fields, d.Fields()...)
	return f
}

// Summarize makes one finding of those that are about the same fields of several objects, whatever their values are, or that say the
// same of several objects.
func Summarize(findings []finding.Finding) []finding.Finding {
	return gather(findings, func(f finding.Finding) string {
		same := strings.Join(f.Fields, "\n")
		if len(f.Fields) == 0 {
			same = strings.ReplaceAll(f.Message, `"`+path.Base(f.Subject.Object)+`"`, "…")
		}
		return strings.Join([]string{f.Code, string(f.Severity), kindOf(f), f.Cause, same}, "\n")
	})
}

// gather keeps the first of the findings that have one key, which says of how many other objects the same is true, and names some.
func gather(findings []finding.Finding, key func(finding.Finding) string) []finding.Finding {
	const named = 5
	var kept []finding.Finding
	at, others := map[string]int{}, map[int][]string{}
	for _, f := range findings {
		k := key(f)
		i, known := at[k]
		switch {
		case !known:
			at[k] = len(kept)
			kept = append(kept, f)
		case f.Subject.Object != kept[i].Subject.Object:
			others[i] = append(others[i], f.Subject.Object)
		}
	}
	for i, objects := range others {
		kept[i].Message += fmt.Sprintf("; the same of %d more: %s", len(objects), strings.Join(objects[:min(named, len(objects))], ", "))
		if len(objects) > named {
			kept[i].Message += ", …"
		}
	}
	return kept
}

// WithoutConsequences is findings without those that an operator does less, for an old object or a new one, or corrects nothing,
// where something else that was found keeps it from writing. One that does less corrects nothing for the same reason, and one that
// corrects nothing does not see when what it made for a new object is ready. Nor does the status of any of these stay up to date. What a webhook that cannot be called for good refuses is told once.
func WithoutConsequences(findings []finding.Finding) []finding.Finding {
	findings = withoutUncalled(findings)
	causes := append([]string{code.NotReconciled, code.Panics}, refusals...)
	for _, consequence := range []string{code.DoesLess, code.DriftStays, code.NewIgnored, code.StatusStale} {
		found := slices.DeleteFunc(slices.Clone(findings), func(f finding.Finding) bool { return f.Severity != finding.Error || !slices.Contains(causes, f.Code) })
		findings = slices.DeleteFunc(findings, func(f finding.Finding) bool {
			return f.Code == consequence && f.Severity == finding.Error && slices.ContainsFunc(found, func(cause finding.Finding) bool { return mayFollow(f, cause) })
		})
		causes = append(causes, consequence)
	}
	return findings
}

// mayFollow reports whether f may be a consequence of cause. What an operator does for objects of one kind is a matter of that kind's controller.
func mayFollow(f, cause finding.Finding) bool {
	ofOneKind := slices.Contains([]string{code.NotReconciled, code.DoesLess}, cause.Code)
	return !ofOneKind || kindOf(f) == kindOf(cause) || slices.Contains(Replicated, kindOf(f)) // which may be of any kind's controller
}

// kindOf is the kind of the object that f is about.
func kindOf(f finding.Finding) string {
	kind, _, _ := strings.Cut(f.Subject.Object, "/")
	return kind
}

// uncalled finds the webhook that the API server could not call (k8s.io/apiserver v0.36.3 pkg/util/webhook/error.go).
var uncalled = regexp.MustCompile(`failed calling webhook "([^"]+)"`)

// withoutUncalled is findings without those of what was refused because a webhook could not be called of which another tells that it stays so.
func withoutUncalled(findings []finding.Finding) []finding.Finding {
	stays := map[string]bool{}
	for _, f := range findings {
		if f.Code == code.OutageStays {
			for _, webhook := range uncalled.FindAllStringSubmatch(f.Message, -1) {
				stays[webhook[1]] = true
			}
		}
	}
	return slices.DeleteFunc(findings, func(f finding.Finding) bool {
		webhook := uncalled.FindStringSubmatch(f.Message)
		return f.Code != code.OutageStays && webhook != nil && stays[webhook[1]]
	})
}
