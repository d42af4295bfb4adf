package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/compare"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/observe"
)

// addressFix is what to do about an address at which there is nothing.
const addressFix = "write the name and the port of the Service where its clients read them, from the same constants as the Service itself"

// Addresses tells where what was made for objects, or their statuses, said an address at which there was a Service that was made for one, and says another now at which there is none
// among services, all that there are: who reads it there reaches nothing. statuses are those before the upgrade, by object, and now those after it.
func Addresses(before, after, services map[string]observe.Operand, statuses map[string]any, now map[string]map[string]any) []finding.Finding {
	var findings []finding.Finding
	tell := func(name, namespace string, was, is map[string][]string) {
		for _, path := range slices.Sorted(maps.Keys(was)) {
			led, _ := leads(was[path], namespace, before)
			leading, _ := leads(is[path], namespace, services)
			_, astray := leads(slices.DeleteFunc(slices.Clone(is[path]), func(address string) bool { return slices.Contains(was[path], address) }), namespace, services)
			if led != "" && leading == "" && astray != "" {
				f := code.Finding(code.PortGone, name, "its %s leads to %s, where there is no Service; before the upgrade it led to one, at %s", path, astray, led)
				f.Fix, f.Fields = addressFix, []string{path}
				findings = append(findings, f)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if is, there := after[name]; there {
			tell(name, is.Namespace, addressesOf(before[name]), addressesOf(is))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(statuses)) {
		said, _ := statuses[name].(map[string]any)
		parts := strings.Split(name, "/")
		tell(name, parts[max(0, len(parts)-2)], addressesIn("status", said), addressesIn("status", now[name]))
	}
	return Summarize(findings)
}

// Leads tells of each place in operands, which called names, and in the status of their object, where there is an address in the cluster, what that is if there is no Service of its
// host and port among services, else "".
func Leads(operands, services map[string]observe.Operand, namespace string, status map[string]any, called func(observe.Operand) string) map[string]string {
	all := map[string]string{}
	note := func(who string, addresses map[string][]string) {
		for path, found := range addresses {
			if leading, astray := leads(found, namespace, services); leading != "" || astray != "" {
				all[strings.TrimSpace(who+" "+path)] = astray
			}
		}
	}
	for _, o := range operands {
		note(called(o), addressesOf(o))
	}
	note("", addressesIn("status", status))
	return all
}

// astray tells what of that which is made for a new object leads nowhere, and led to a Service with from.
func astray(from, to string, was, is New) (findings []finding.Finding) {
	for _, place := range slices.Sorted(maps.Keys(is.Leads)) {
		if led, known := was.Leads[place]; known && led == "" && is.Leads[place] != "" {
			f := code.Finding(code.PortGone, is.Sample, "the %s of a new object like it leads to %s with %s, where there is no Service; with %s it led to one", place, is.Leads[place], to, from)
			f.Fix = addressFix
			findings = append(findings, f)
		}
	}
	return findings
}

// addressesOf are the addresses that o says, by path. What others make from it says the same.
func addressesOf(o observe.Operand) map[string][]string {
	switch {
	case o.Transient():
		return nil
	case o.Kind == observe.KindSecret:
		return o.Addresses
	}
	return addressesIn("", o.Content)
}

// addressesIn are the addresses in content, which is at a path, by path.
func addressesIn(at string, content map[string]any) map[string][]string {
	all := map[string][]string{}
	for path, value := range compare.Values(content) {
		if found := observe.Addresses(value); len(found) > 0 {
			all[compare.Join(at, path)] = found
		}
	}
	return all
}

// leads returns the first of addresses, which something in a namespace says, at which there is a Service among services, or else, as astray, the first that must be in the cluster
// by its form.
func leads(addresses []string, namespace string, services map[string]observe.Operand) (leading, astray string) {
	for _, address := range addresses {
		host, port, _ := strings.Cut(address, ":")
		service := serviceAt(host, namespace, services)
		inside := service.Kind != "" || !strings.Contains(host, ".") || strings.HasSuffix(host, ".svc") || strings.HasSuffix(host, ".svc.cluster.local")
		switch {
		case takes(service, port):
			return address, ""
		case inside && astray == "":
			astray = address
		}
	}
	return "", astray
}

// serviceAt is the Service among services that a host names, from a namespace: by its name, by that of a pod before it, and with or without its namespace
// (https://kubernetes.io/docs/concepts/services-networking/dns-pod-service).
func serviceAt(host, namespace string, services map[string]observe.Operand) observe.Operand {
	labels := strings.Split(strings.TrimSuffix(strings.TrimSuffix(host, ".cluster.local"), ".svc"), ".")
	for i, name := range labels[:min(2, len(labels))] {
		at := namespace
		if i+1 < len(labels) {
			at = labels[i+1]
		}
		for _, in := range []string{at, namespace} {
			if service, there := services[fmt.Sprintf("%s/%s/%s", observe.KindService, in, name)]; there {
				return service
			}
		}
	}
	return observe.Operand{}
}

// takes reports whether a Service, which may be none, has a port. One without an address of its own leads to whatever ports pods have.
func takes(service observe.Operand, port string) bool {
	var s corev1.Service
	if service.Kind == "" || runtime.DefaultUnstructuredConverter.FromUnstructured(service.Content, &s) != nil {
		return false
	}
	return s.Spec.ClusterIP == corev1.ClusterIPNone || s.Spec.Type == corev1.ServiceTypeExternalName ||
		slices.ContainsFunc(s.Spec.Ports, func(has corev1.ServicePort) bool { return fmt.Sprint(has.Port) == port })
}
