package judge

import (
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/test/support/expect"
)

// Hosts and paths must go on leading to a Service, by whatever Ingress.
func TestRoutes(t *testing.T) {
	type m = map[string]any
	service := func(name string) observe.Operand {
		return observe.Operand{Kind: "Service", Namespace: "n", Name: name, Content: m{"spec": m{"ports": []any{m{"name": "web", "port": int64(80)}}}}}
	}
	// Each route is [=]PATH:SERVICE:PORT, where = stands for an exact path.
	operands := func(ingress string, routes ...string) map[string]observe.Operand {
		var paths []any
		for _, r := range routes {
			path, exact := strings.CutPrefix(r, "=")
			parts := strings.Split(path, ":")
			port := m{"name": parts[2]}
			if parts[2] == "80" {
				port = m{"number": int64(80)}
			}
			kind := "Prefix"
			if exact {
				kind = "Exact"
			}
			paths = append(paths, m{"path": parts[0], "pathType": kind, "backend": m{"service": m{"name": parts[1], "port": port}}})
		}
		host, _, _ := strings.Cut(ingress, "-")
		spec := m{"rules": []any{m{"host": strings.TrimPrefix(host, "any"), "http": m{"paths": paths}}, m{"host": "none"}}}
		all := map[string]observe.Operand{}
		for _, o := range []observe.Operand{service("a"), service("b"), {Kind: "Ingress", Namespace: "n", Name: ingress, Content: m{"spec": spec}}} {
			all[o.String()] = o
		}
		return all
	}
	gone := func(places string) string {
		return "error U510 Ingress/n/host: clients that the old version served fail: no Ingress leads from " + places + " to a Service any more"
	}
	before := operands("host", "/api:a:80", "/:a:web")
	for _, c := range []struct {
		name          string
		before, after map[string]observe.Operand
		want          []string
	}{
		{"as before", before, before, nil},
		{"by another Ingress", before, operands("host-other", "/more:b:80", "/:b:80", "/api:b:80"), nil},
		{"by what leads from more to the same Service", before, operands("host", "/:a:80"), nil},
		{"of any host", before, operands("any", "/:a:80"), nil},
		{"by what leads from more to another Service", before, operands("host", "/:b:80"), []string{gone("host/api")}},
		{"of another host", before, operands("home", "/:a:80"), []string{gone("host/api, host/")}},
		{"exactly", before, operands("host", "/api:a:80", "=/:a:80"), []string{gone("host/")}},
		{"to no Service", before, operands("host", "/api:c:80", "/:a:80"), nil},
		{"to no Service at all", before, operands("host", "/api:c:80", "/:c:80"), []string{gone("host/api, host/")}},
		{"to no port", before, operands("host", "/api:a:http", "/:a:http"), []string{gone("host/api, host/")}},
		{"to what never was an operand", operands("host", "/:c:80"), operands("host"), nil},
		{"without patterns", operands("host", "/*:a:80", "/b(/|$)(.*):b:80", "/c/:a:80"), operands("host", "/:a:80", "/b:b:80", "/c:b:80"), nil},
		{"no Ingress", before, nil, []string{gone("host/api, host/")}},
	} {
		t.Run(c.name, func(t *testing.T) { expect.Findings(t, Routes(c.before, c.after), c.want...) })
	}
}
