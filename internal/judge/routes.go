package judge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/observe"
)

// route is from where an Ingress leads to a Service.
type route struct {
	host, path, service string
	exact               bool
}

func (r route) String() string { return r.host + r.path }

// Routes tells the hosts and paths from which Ingresses led to Services among operands and do not any more.
func Routes(before, after map[string]observe.Operand) []finding.Finding {
	var lead []route
	for _, o := range after {
		lead = append(lead, routesOf(o, after)...)
	}
	var findings []finding.Finding
	for _, name := range slices.Sorted(maps.Keys(before)) {
		var gone []string
		for _, r := range routesOf(before[name], before) {
			if !slices.ContainsFunc(lead, func(now route) bool { return now.covers(r) }) {
				gone = append(gone, r.String())
			}
		}
		if len(gone) > 0 {
			findings = append(findings, code.Finding(code.PortGone, name, "clients that the old version served fail: no Ingress leads from %s to a Service any more", strings.Join(gone, ", ")))
		}
	}
	return findings
}

// covers reports whether who is led by other is led by r: from the same place, or by what leads from more to the same Service.
func (r route) covers(other route) bool {
	host := r.host == other.host || r.host == ""
	within := !r.exact && strings.HasPrefix(other.path+"/", strings.TrimSuffix(r.path, "/")+"/")
	return host && (r.path == other.path && (!r.exact || other.exact) || within && r.service == other.service)
}

// routesOf are the routes of an Ingress to Services among operands that have the port.
func routesOf(o observe.Operand, operands map[string]observe.Operand) []route {
	var ingress networkingv1.Ingress
	if o.Kind != "Ingress" || runtime.DefaultUnstructuredConverter.FromUnstructured(o.Content, &ingress) != nil {
		return nil
	}
	var routes []route
	for _, rule := range ingress.Spec.Rules {
		for _, path := range ptr.Deref(rule.HTTP, networkingv1.HTTPIngressRuleValue{}).Paths {
			if to := path.Backend.Service; to != nil && hasPort(operands[fmt.Sprintf("Service/%s/%s", o.Namespace, to.Name)], to.Port) {
				exact := ptr.Deref(path.PathType, "") == networkingv1.PathTypeExact
				routes = append(routes, route{rule.Host, plainPath(path.Path), to.Name, exact})
			}
		}
	}
	return routes
}

// hasPort reports whether service, which may be none, has the port that an Ingress names.
func hasPort(service observe.Operand, port networkingv1.ServiceBackendPort) bool {
	var s corev1.Service
	if service.Kind == "" || runtime.DefaultUnstructuredConverter.FromUnstructured(service.Content, &s) != nil {
		return false
	}
	return slices.ContainsFunc(s.Spec.Ports, func(has corev1.ServicePort) bool {
		return port.Name != "" && has.Name == port.Name || port.Number != 0 && has.Port == port.Number
	})
}

// pattern matches what controllers of Ingresses take at the end of a path for any rest: /*, /(.*) and the like.
var pattern = observe.Compiled(`[*(^$].*$`)

// plainPath is path without what says that more may follow, and without a slash at its end.
func plainPath(path string) string {
	return cmp.Or(strings.TrimRight(pattern().ReplaceAllString(path, ""), "/"), "/")
}
