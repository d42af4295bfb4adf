package judge

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/observe"
)

// Unreached tells the ports of ready Services among operands that took connections before and do not after. Pods of simulated images take
// none.
func Unreached(before, after map[observe.ServicePort]bool, operands map[string]observe.Operand, simulated []string) []finding.Finding {
	isSimulated := func(p observe.Operand) bool {
		return slices.ContainsFunc(p.Images, func(image string) bool { return slices.Contains(simulated, image) })
	}
	byName := func(a, b observe.ServicePort) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Port, b.Port))
	}
	var findings []finding.Finding
	for _, at := range slices.SortedFunc(maps.Keys(after), byName) {
		service := operands[at.Service]
		switch {
		case !before[at], after[at]:
		case service.Unready != "": // Health tells
		case slices.ContainsFunc(podsOf(service, operands), isSimulated): // OperandImages tells
		default:
			findings = append(findings, code.Finding(code.PortGone, at.Service,
				"port %d took connections before the upgrade, and nothing takes them after it: its targetPort is none at which its pods listen", at.Port))
		}
	}
	return findings
}

// Selected tells the Services whose selector picks pods that were made for other objects, too, and did not before.
func Selected(before, after map[string]observe.Operand) []finding.Finding {
	var findings []finding.Finding
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if before[name].Kind != observe.KindService {
			continue
		}
		was, is := selectedOf(before[name], before), selectedOf(after[name], after)
		if len(was) == 0 {
			continue
		}
		var others []string
		for _, of := range is {
			if of != after[name].Of && !slices.Contains(was, of) {
				others = append(others, of)
			}
		}
		if len(others) > 0 {
			findings = append(findings, code.Finding(code.PortGone, name, "its selector picks pods of other objects, too, and did not before the upgrade: its clients reach %s", strings.Join(others, ", ")))
		}
	}
	return findings
}

// selectedOf names the objects whose pods service selects among operands, sorted.
func selectedOf(service observe.Operand, operands map[string]observe.Operand) []string {
	objects := map[string]bool{}
	for _, p := range podsOf(service, operands) {
		objects[p.Of] = true
	}
	return slices.Sorted(maps.Keys(objects))
}

// podsOf returns the pods that service selects among operands.
func podsOf(service observe.Operand, operands map[string]observe.Operand) []observe.Operand {
	wanted, _, _ := unstructured.NestedStringMap(service.Content, "spec", "selector")
	if len(wanted) == 0 {
		return nil
	}
	selector := labels.SelectorFromSet(wanted)
	var pods []observe.Operand
	for _, o := range operands {
		has, _, _ := unstructured.NestedStringMap(o.Marks, "labels")
		if o.Kind == observe.KindPod && o.Namespace == service.Namespace && selector.Matches(labels.Set(has)) {
			pods = append(pods, o)
		}
	}
	return pods
}

// Named tells the Secrets and ConfigMaps that are gone although the status of the object that they were made for named them: who uses the
// object reads there where its credentials and settings are. statuses are those before the upgrade, by object.
func Named(before, after map[string]observe.Operand, statuses map[string]any) []finding.Finding {
	var findings []finding.Finding
	for _, name := range slices.Sorted(maps.Keys(before)) {
		was := before[name]
		if _, there := after[name]; there || was.Kind != "Secret" && was.Kind != "ConfigMap" {
			continue
		}
		if says(statuses[was.Of], was.Name) {
			findings = append(findings, code.Finding(code.Credentials, name, "it was deleted during the upgrade, although the status of %s named it: who reads it finds nothing", was.Of))
		}
	}
	return findings
}

// says reports whether a text in value is word.
func says(value any, word string) bool {
	switch v := value.(type) {
	case string:
		return v == word
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), func(member any) bool { return says(member, word) })
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return says(item, word) })
	}
	return false
}
