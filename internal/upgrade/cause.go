package upgrade

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/finding"
)

// ofOneCause says under which key a finding shares its cause with others, "" if it stands alone: fields of one kind's objects
// that are lost, in whatever version and by whoever reads or writes, and outages that have the same words for their cause.
func ofOneCause(f finding.Finding) string {
	kind, _, _ := strings.Cut(f.Subject.Object, "/")
	switch f.Code {
	case codeFieldLost, codeRoundTrip, codeManifestRefused:
		if len(f.Fields) > 0 {
			return strings.Join([]string{"fields", string(f.Severity), kind}, "\n")
		}
	case codeReadOutage, codeWriteOutage:
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

// withFields is f about the fields of d.
func withFields(f finding.Finding, d diffs) finding.Finding {
	f.Fields = append(f.Fields, d.fields()...)
	return f
}
