package judge

import (
	"maps"
	"slices"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
)

// Bystander is what admission made of a request to create an object that is not the operator's: the paths that somebody set in it besides the API server, and
// those of what its author said that somebody took out; or who refused it and why, "" for nobody.
type Bystander struct {
	Sets, Takes []string
	Refused     string
}

// Bystanders tells what admission webhooks of to's operator no longer do to objects that are not the operator's and those of from's did, and which of them they refuse. was and is tell what became of
// them, by what they are.
func Bystanders(from, to string, was, is map[string]Bystander) (findings []finding.Finding) {
	for _, name := range slices.Sorted(maps.Keys(is)) {
		before, known := was[name]
		now := is[name]
		lost, takes := without(before.Sets, now.Sets), without(now.Takes, before.Takes)
		switch {
		case !known:
		case before.Refused == "" && now.Refused != "":
			f := code.Finding(code.Narrowed, name, "under %s an admission webhook or a policy refuses to create it, which is not the operator's; %s did not", to, from)
			f.Severity, f.Cause, f.Fix = finding.Error, now.Refused, "let what the operator is not about pass: narrow the webhook's rules and its objectSelector"
			findings = append(findings, f)
		case before.Refused != "" && now.Refused == "":
			f := code.Finding(code.Unguarded, name, "under %s the API server creates it, which is not the operator's, and what a webhook or a policy of %s refused", to, from)
			f.Cause = before.Refused
			findings = append(findings, f)
		case len(takes) > 0:
			f := code.Finding(code.Narrowed, name, "under %s an admission webhook or a policy takes %s out of it when it is created, which is not the operator's; %s left it", to, atMost(mostFields, takes), from)
			f.Severity, f.Fix = finding.Error, "append to lists of what is not the operator's, rather than to set them"
			findings = append(findings, f)
		case len(lost) > 0:
			f := doesLess("see that the webhook's configuration still selects it, and that the handler answers with a patch", name, "no admission webhook of %s sets %s in it when it is created; one of %s did",
				to, atMost(mostFields, lost), from)
			if len(now.Sets) > 0 { // something else may do instead
				f.Severity = finding.Warning
			}
			findings = append(findings, f)
		}
	}
	return findings
}
