package judge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
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
				"port %d took connections before the upgrade, and nothing takes them after it: no pod that it selects listens at its targetPort", at.Port))
		}
	}
	return findings
}

// selectors are the kinds that select pods: by which field of their spec, by which finding it is told that one selects pods of other objects, and what becomes of
// these.
var selectors = map[string]struct {
	field, code, then string
}{
	observe.KindService:   {"selector", code.PortGone, "its clients reach %s"},
	"PodDisruptionBudget": {"selector", code.OperandWorse, "it counts those of %s, and those that have a budget of their own as well cannot be evicted any more"},
	"NetworkPolicy":       {"podSelector", code.OperandWorse, "it applies to those of %s, too, and what it does not name reaches them no more"},
}

// Selected tells the operands whose selector picks pods that were made for other objects, too, and did not before.
func Selected(before, after map[string]observe.Operand) []finding.Finding {
	var findings []finding.Finding
	ran := map[string]bool{} // what had pods, so that it could have been picked
	for _, o := range before {
		ran[o.Of] = ran[o.Of] || o.Kind == observe.KindPod && !ofJob(before, o)
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		of, selects := selectors[before[name].Kind]
		was, is := selectedOf(before[name], before), selectedOf(after[name], after)
		if !selects || len(was) == 0 {
			continue
		}
		var others []string
		for _, of := range is {
			if of != after[name].Of && !slices.Contains(was, of) && ran[of] {
				others = append(others, of)
			}
		}
		if len(others) > 0 {
			findings = append(findings, code.Finding(of.code, name, "its selector picks pods of other objects, too, and did not before the upgrade: "+of.then, strings.Join(others, ", ")))
		}
		if before[name].Kind != observe.KindService {
			continue
		}
		if other := mixedWith(name, before, after); other != "" {
			findings = append(findings, code.Finding(code.PortGone, name, "its selector picks the pods that %s picks, and that picks its own, and before the upgrade each picked others: clients of either reach both", other))
		}
		if strangers := withoutPort(before[name], after[name], before, after); len(strangers) > 0 {
			findings = append(findings, code.Finding(code.PortGone, name, "its selector picks pods, too, that do not have its targetPort, and did not before the upgrade: its clients reach %s", strings.Join(strangers, ", ")))
		}
	}
	return findings
}

// mixedWith names a Service of the same object with which the one called name shares the pods of a workload of each after, and shared none before; "" for none. Both workloads were there.
func mixedWith(name string, before, after map[string]observe.Operand) string {
	mine, all := workloadsOf(before[name], before), workloadsOf(after[name], after)
	for _, other := range slices.Sorted(maps.Keys(before)) {
		o := before[other]
		if other == name || o.Kind != observe.KindService || o.Of != before[name].Of || after[other].Of != after[name].Of {
			continue
		}
		theirs, both := workloadsOf(o, before), workloadsOf(after[other], after)
		apart := len(mine) > 0 && len(theirs) > 0 && len(without(mine, theirs)) == len(mine)
		if apart && len(without(mine, all))+len(without(theirs, all))+len(without(mine, both)) == 0 {
			return other
		}
	}
	return ""
}

// workloadsOf names the workloads of whose pods a Service picks some, sorted.
func workloadsOf(service observe.Operand, operands map[string]observe.Operand) []string {
	names := map[string]bool{}
	for _, p := range podsOf(service, operands) {
		of := ""
		for name, o := range operands {
			if o.Of == p.Of && o.Namespace == p.Namespace && slices.Contains(Replicated, o.Kind) && strings.HasPrefix(p.Name, o.Name+"-") && len(name) > len(of) {
				of = name
			}
		}
		if of != "" {
			names[of] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Selects reports whether what is of a kind selects pods.
func Selects(kind string) bool { _, selects := selectors[kind]; return selects }

// OthersSelected are the objects, but for the one that o was made for, whose pods among operands it picks, sorted.
func OthersSelected(o observe.Operand, operands map[string]observe.Operand) []string {
	return slices.DeleteFunc(selectedOf(o, operands), func(of string) bool { return of == o.Of })
}

// withoutPort names the pods that a Service picks after and did not before, and that do not declare a port of it that all declared before, and
// some do after. Only numbers tell: pods without a port of a name are no endpoints of it.
func withoutPort(was, is observe.Operand, before, after map[string]observe.Operand) []string {
	lack, kept := map[string]bool{}, targetPorts(is)
	picked, now := podsOf(was, before), podsOf(is, after)
	for _, number := range targetPorts(was) {
		declares := func(pod observe.Operand) bool { return declaresPort(pod, number) }
		declared := len(picked) > 0 && !slices.ContainsFunc(picked, func(pod observe.Operand) bool { return !declares(pod) })
		if !declared || !slices.Contains(kept, number) || !slices.ContainsFunc(now, declares) {
			continue
		}
		for _, pod := range now {
			known := slices.ContainsFunc(picked, func(other observe.Operand) bool { return other.UID == pod.UID })
			if !declares(pod) && !known && !ofJob(after, pod) {
				lack[pod.String()] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(lack))
}

// targetPorts are the numbers of the ports of pods to which a Service leads.
func targetPorts(service observe.Operand) []int32 {
	var s corev1.Service
	if runtime.DefaultUnstructuredConverter.FromUnstructured(service.Content, &s) != nil {
		return nil
	}
	var numbers []int32
	for _, port := range s.Spec.Ports {
		if port.TargetPort.Type == intstr.Int {
			numbers = append(numbers, cmp.Or(port.TargetPort.IntVal, port.Port))
		}
	}
	return numbers
}

// declaresPort reports whether a container of pod declares a port of that number.
func declaresPort(pod observe.Operand, number int32) bool {
	var p corev1.Pod
	if runtime.DefaultUnstructuredConverter.FromUnstructured(pod.Content, &p) != nil {
		return false
	}
	return slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(has corev1.ContainerPort) bool { return has.ContainerPort == number })
	})
}

// Detached tells the PodDisruptionBudgets and NetworkPolicies that picked pods before and pick none of those that there are after, unless
// another one of the kind does, the budgets that let a pod be evicted before and let none after, those that are new and let none, and the HorizontalPodAutoscalers whose workload is
// not there any more.
func Detached(before, after map[string]observe.Operand) []finding.Finding {
	var findings []finding.Finding
	for _, name := range slices.Sorted(maps.Keys(before)) {
		was := before[name]
		is, there := after[name]
		instead := func(o observe.Operand) bool { return o.Kind == is.Kind && o.Of == is.Of && picks(o, after) }
		switch {
		case !there:
		case was.Kind == "HorizontalPodAutoscaler" && targetOf(was, before) && !targetOf(is, after):
			findings = append(findings, code.Finding(code.OperandWorse, name, "the workload that it names is not there any more: nothing is scaled"))
		case picks(was, before) && serves(after, is.Of, anyPod) && !slices.ContainsFunc(slices.Collect(maps.Values(after)), instead):
			findings = append(findings, code.Finding(code.OperandWorse, name, "it picked pods before the upgrade, and picks none of those of %s any more: its selector and their labels differ", is.Of))
		case mayEvict(was, before) && mayEvict(was, after) && picks(is, after) && !mayEvict(is, after):
			findings = append(findings, code.Finding(code.OperandWorse, name, "it let pods of %s be evicted before the upgrade, and lets none be any more: no node on which one runs can be drained", is.Of))
		}
	}
	return append(findings, undrainable(before, after)...)
}

// undrainable tells the PodDisruptionBudgets that are new and let no pod be evicted of an object that had pods, and no such budget, before.
func undrainable(before, after map[string]observe.Operand) []finding.Finding {
	keeps := func(o observe.Operand, operands map[string]observe.Operand) bool {
		return o.Kind == "PodDisruptionBudget" && picks(o, operands) && !mayEvict(o, operands)
	}
	var findings []finding.Finding
	for _, name := range slices.Sorted(maps.Keys(after)) {
		is := after[name]
		_, had := before[name]
		kept := func(o observe.Operand) bool { return o.Of == is.Of && keeps(o, before) }
		if !had && keeps(is, after) && serves(before, is.Of, anyPod) && !slices.ContainsFunc(slices.Collect(maps.Values(before)), kept) {
			findings = append(findings, code.Finding(code.OperandWorse, name, "it is new, and lets none of the pods of %s be evicted: no node on which one runs can be drained any more", is.Of))
		}
	}
	return findings
}

// targetOf reports whether the workload that a HorizontalPodAutoscaler names is one of operands. What it names of another kind, as a custom
// resource, may be there.
func targetOf(autoscaler observe.Operand, operands map[string]observe.Operand) bool {
	target, _, _ := unstructured.NestedStringMap(autoscaler.Content, "spec", "scaleTargetRef")
	_, there := operands[target["kind"]+"/"+autoscaler.Namespace+"/"+target["name"]]
	return there || !slices.Contains(WorkloadKinds, target["kind"])
}

// mayEvict reports whether o, a PodDisruptionBudget, lets one of the pods among operands that it picks be evicted when all are healthy
// (k8s.io/kubernetes v1.36.3, pkg/controller/disruption/disruption.go, getExpectedPodCount).
func mayEvict(o observe.Operand, operands map[string]observe.Operand) bool {
	var budget policyv1.PodDisruptionBudget
	if o.Kind != "PodDisruptionBudget" || runtime.DefaultUnstructuredConverter.FromUnstructured(o.Content, &budget) != nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil {
		return false
	}
	pods := len(selectedBy(selector, o.Namespace, operands))
	if most := budget.Spec.MaxUnavailable; most != nil {
		n, err := intstr.GetScaledValueFromIntOrPercent(most, pods, true)
		return err == nil && pods > 0 && n > 0
	}
	if budget.Spec.MinAvailable == nil {
		return false
	}
	least, err := intstr.GetScaledValueFromIntOrPercent(budget.Spec.MinAvailable, pods, true)
	return err == nil && pods > least
}

// picks reports whether the selector of o, a PodDisruptionBudget or a NetworkPolicy, picks pods among operands that are none of Jobs.
func picks(o observe.Operand, operands map[string]observe.Operand) bool {
	return o.Kind != observe.KindService && slices.ContainsFunc(podsOf(o, operands), func(p observe.Operand) bool { return !ofJob(operands, p) })
}

// selectedOf names the objects whose pods, but for those of Jobs, o selects among operands, sorted.
func selectedOf(o observe.Operand, operands map[string]observe.Operand) []string {
	objects := map[string]bool{}
	for _, p := range podsOf(o, operands) {
		if !ofJob(operands, p) {
			objects[p.Of] = true
		}
	}
	return slices.Sorted(maps.Keys(objects))
}

// podsOf returns the pods that o, of a kind in selectors, selects among operands.
func podsOf(o observe.Operand, operands map[string]observe.Operand) []observe.Operand {
	of, selects := selectors[o.Kind]
	wanted, set, _ := unstructured.NestedMap(o.Content, "spec", of.field)
	switch {
	case !selects, o.Kind == observe.KindService && len(wanted) == 0, o.Kind == "PodDisruptionBudget" && !set:
		return nil
	case o.Kind == observe.KindService:
		wanted = map[string]any{"matchLabels": wanted}
	}
	var parsed metav1.LabelSelector
	if runtime.DefaultUnstructuredConverter.FromUnstructured(wanted, &parsed) != nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(&parsed)
	if err != nil {
		return nil
	}
	return selectedBy(selector, o.Namespace, operands)
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

// holding matches keys of a status below which Secrets and ConfigMaps are named: others may have the same name.
var holding = observe.Compiled(`(?i)secret|config|cred|auth|pass|bind|cert|tls|user|key`)

// Named tells the Secrets and ConfigMaps that are gone although the status of the object that they were made for named them: who uses the
// object reads there where its credentials and settings are. statuses are those before the upgrade, by object, and now those after it: one that names
// another one leads there.
func Named(before, after map[string]observe.Operand, statuses map[string]any, now map[string]map[string]any) []finding.Finding {
	var findings []finding.Finding
	for _, name := range slices.Sorted(maps.Keys(before)) {
		was := before[name]
		if _, there := after[name]; there || was.Kind != "Secret" && was.Kind != "ConfigMap" {
			continue
		}
		if !Names(statuses[was.Of], was.Name, holding().MatchString) {
			continue
		}
		f := code.Finding(code.Credentials, name, "it was deleted during the upgrade, although the status of %s named it: who reads it finds nothing", was.Of)
		if other := instead(was, after, now[was.Of]); other != "" {
			f.Severity = finding.Warning
			f.Message = fmt.Sprintf("it was deleted during the upgrade, and the status of %s, which named it, names %s now: who goes on reading the old one finds nothing", was.Of, other)
			f.Fix = "keep the old one, with what the new one says, for a release or two, and say in the release notes that it goes"
		}
		findings = append(findings, f)
	}
	return findings
}

// instead is the name of what among after is of the kind and the object of was, and named by the status of that, "" for none.
func instead(was observe.Operand, after map[string]observe.Operand, status any) string {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if is := after[name]; is.Kind == was.Kind && is.Of == was.Of && Names(status, is.Name, holding().MatchString) {
			return is.Name
		}
	}
	return ""
}
