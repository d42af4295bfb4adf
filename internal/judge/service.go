package judge

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

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
		known, unknown := offering(before[name], before)
		offer, lack := offering(after[name], after)
		if len(known) > 0 && len(unknown) == 0 && len(offer) > 0 && len(lack) > 0 {
			findings = append(findings, code.Finding(code.PortGone, name, "its selector picks pods, too, that do not have its targetPort, and did not before the upgrade: its clients reach %s", strings.Join(lack, ", ")))
		}
	}
	return findings
}

// offering names the pods that service selects among operands: those that declare all numbers of ports to which it leads, and the others. Pods
// without a port of a name are no endpoints of it.
func offering(service observe.Operand, operands map[string]observe.Operand) (offer, lack []string) {
	var s corev1.Service
	if runtime.DefaultUnstructuredConverter.FromUnstructured(service.Content, &s) != nil {
		return nil, nil
	}
	for _, o := range podsOf(service, operands) {
		var p corev1.Pod
		if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Content, &p) != nil {
			continue
		}
		declares := func(number int32) bool {
			return slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool {
				return slices.ContainsFunc(c.Ports, func(has corev1.ContainerPort) bool { return has.ContainerPort == number })
			})
		}
		lacks := slices.ContainsFunc(s.Spec.Ports, func(port corev1.ServicePort) bool {
			return port.TargetPort.Type == intstr.Int && !declares(cmp.Or(port.TargetPort.IntVal, port.Port))
		})
		if lacks {
			lack = append(lack, o.String())
		} else {
			offer = append(offer, o.String())
		}
	}
	slices.Sort(lack)
	return offer, lack
}

// Detached tells the PodDisruptionBudgets and NetworkPolicies that picked pods before and pick none of those that there are after, and the
// HorizontalPodAutoscalers whose workload is not there any more.
func Detached(before, after map[string]observe.Operand) []finding.Finding {
	var findings []finding.Finding
	for _, name := range slices.Sorted(maps.Keys(before)) {
		was := before[name]
		is, there := after[name]
		switch {
		case !there:
		case was.Kind == "HorizontalPodAutoscaler" && scales(was, before) && !scales(is, after):
			findings = append(findings, code.Finding(code.OperandWorse, name, "the workload that it names is not there any more: nothing is scaled"))
		case picks(was, before) && serves(after, is.Of, anyPod) && !picks(is, after):
			findings = append(findings, code.Finding(code.OperandWorse, name, "it picked pods before the upgrade, and picks none of those of %s any more: its selector and their labels differ", is.Of))
		}
	}
	return findings
}

// scales reports whether the workload that a HorizontalPodAutoscaler names is one of operands.
func scales(autoscaler observe.Operand, operands map[string]observe.Operand) bool {
	target, _, _ := unstructured.NestedStringMap(autoscaler.Content, "spec", "scaleTargetRef")
	_, there := operands[target["kind"]+"/"+autoscaler.Namespace+"/"+target["name"]]
	return there
}

// picks reports whether the selector of o, a PodDisruptionBudget or a NetworkPolicy, picks pods among operands that are none of Jobs.
func picks(o observe.Operand, operands map[string]observe.Operand) bool {
	field, ok := map[string]string{"PodDisruptionBudget": "selector", "NetworkPolicy": "podSelector"}[o.Kind]
	wanted, _, _ := unstructured.NestedMap(o.Content, "spec", field)
	var parsed metav1.LabelSelector
	if !ok || runtime.DefaultUnstructuredConverter.FromUnstructured(wanted, &parsed) != nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(&parsed)
	return err == nil && slices.ContainsFunc(selectedBy(selector, o.Namespace, operands), func(p observe.Operand) bool { return !ofJob(operands, p) })
}

// Routes tells the hosts and paths of Ingresses that lead nowhere any more.
func Routes(before, after map[string]observe.Operand) []finding.Finding {
	lead := map[string]bool{}
	for _, o := range after {
		for _, route := range routesOf(o) {
			lead[route] = true
		}
	}
	var findings []finding.Finding
	for _, name := range slices.Sorted(maps.Keys(before)) {
		gone := slices.DeleteFunc(routesOf(before[name]), func(route string) bool { return lead[route] })
		if len(gone) > 0 {
			findings = append(findings, code.Finding(code.PortGone, name, "clients that the old version served fail: no Ingress leads from %s any more", strings.Join(gone, ", ")))
		}
	}
	return findings
}

// routesOf are the hosts and paths from which an Ingress leads somewhere.
func routesOf(o observe.Operand) []string {
	var ingress networkingv1.Ingress
	if o.Kind != "Ingress" || runtime.DefaultUnstructuredConverter.FromUnstructured(o.Content, &ingress) != nil {
		return nil
	}
	var routes []string
	for _, rule := range ingress.Spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		for _, path := range rule.HTTP.Paths {
			routes = append(routes, rule.Host+cmp.Or(path.Path, "/"))
		}
	}
	return routes
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
	return selectedBy(labels.SelectorFromSet(wanted), service.Namespace, operands)
}

// selectedBy returns the pods in a namespace that selector selects among operands.
func selectedBy(selector labels.Selector, namespace string, operands map[string]observe.Operand) []observe.Operand {
	var pods []observe.Operand
	for _, o := range operands {
		has, _, _ := unstructured.NestedStringMap(o.Marks, "labels")
		if o.Kind == observe.KindPod && o.Namespace == namespace && selector.Matches(labels.Set(has)) {
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
