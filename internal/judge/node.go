package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
)

// NodeLabels tells which labels of nodes are others with to's operator than with from's, was and is, by the node and the label. Those of first were there before any release was installed: to
// take one away is an error.
func NodeLabels(from, to string, first, was, is map[string]string) (findings []finding.Finding) {
	taken, others := map[string][]string{}, map[string][]string{}
	all := maps.Clone(was)
	maps.Copy(all, is)
	for _, at := range slices.Sorted(maps.Keys(all)) {
		node, label, _ := strings.Cut(at, " ")
		before, had := was[at]
		now, has := is[at]
		_, foreign := first[at]
		switch {
		case had && !has && foreign:
			taken[node] = append(taken[node], label)
		case had && !has:
			others[node] = append(others[node], fmt.Sprintf("%s was %s and is gone", label, before))
		case !had:
			others[node] = append(others[node], fmt.Sprintf("%s is set to %s", label, now))
		case before != now:
			others[node] = append(others[node], fmt.Sprintf("%s was %s and is %s", label, before, now))
		}
	}
	for _, node := range slices.Sorted(maps.Keys(taken)) {
		f := code.Finding(code.OperandChanged, "Node/"+node, "%s takes labels from it that were there before any release was installed, and %s did not: %s", to, from, some(taken[node]))
		f.Severity, f.Fix = finding.Error, "patch the labels that are the operator's own, rather than to set all"
		findings = append(findings, f)
	}
	for _, node := range slices.Sorted(maps.Keys(others)) {
		findings = append(findings, code.Finding(code.OperandChanged, "Node/"+node, "%s labels it otherwise than %s, though nobody changed any object for that: %s", to, from, some(others[node])))
	}
	return findings
}
