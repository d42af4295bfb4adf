package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
)

// becomes says what, which was and is have as at, says in is, if that is not what it says in was; else "".
func becomes(what, at string, was, is map[string]string) string {
	before, had := was[at]
	now, has := is[at]
	switch {
	case had && !has:
		return fmt.Sprintf("%s was %s and is gone", what, before)
	case has && !had:
		return fmt.Sprintf("%s is set to %s", what, now)
	case before != now:
		return fmt.Sprintf("%s was %s and is %s", what, before, now)
	}
	return ""
}

// NodeLabels tells which labels of nodes are others with to's operator than with from's, was, which is nil if that is not known, and is, by the node and the label. Those of first were there
// before any release was installed: to take one away is an error.
func NodeLabels(from, to string, first, was, is map[string]string) (findings []finding.Finding) {
	taken, others := map[string][]string{}, map[string][]string{}
	if was == nil {
		return nil
	}
	all := maps.Clone(was)
	maps.Copy(all, is)
	for _, at := range slices.Sorted(maps.Keys(all)) {
		node, label, _ := strings.Cut(at, " ")
		_, stays := is[at]
		_, foreign := first[at]
		if how := becomes(label, at, was, is); !stays && foreign {
			taken[node] = append(taken[node], label)
		} else if how != "" {
			others[node] = append(others[node], how)
		}
	}
	for _, node := range slices.Sorted(maps.Keys(taken)) {
		f := code.Finding(code.OperandChanged, "Node/"+node, "%s takes labels from it that were there before any release was installed, and %s did not: %s", to, from, atMost(mostFields, taken[node]))
		f.Severity, f.Fix = finding.Error, "patch the labels that are the operator's own, rather than to set all"
		findings = append(findings, f)
	}
	for _, node := range slices.Sorted(maps.Keys(others)) {
		findings = append(findings, code.Finding(code.OperandChanged, "Node/"+node, "%s labels it otherwise than %s, though nobody changed any object for that: %s", to, from, atMost(mostFields, others[node])))
	}
	return findings
}
