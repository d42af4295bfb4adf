package bundle

import (
	"cmp"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/olmkit/olmkit/internal/hint"
)

// apiServiceDefinitions turns APIServices into what the CSV says of the API services that the operator owns: which
// deployment serves them, and on which port. OLM makes the APIService, its Service and its certificate from that
// (operator-lifecycle-manager v0.46.0, pkg/controller/install/apiservice.go). What kinds an API has no APIService tells, so
// the base must.
func (g *generator) apiServiceDefinitions() {
	for _, input := range g.apis {
		var content struct {
			Spec struct {
				Group   string `json:"group"`
				Version string `json:"version"`
				Service *struct {
					Name      string `json:"name"`
					Namespace string `json:"namespace"`
					Port      *int32 `json:"port"`
				} `json:"service"`
			} `json:"spec"`
		}
		if err := input.decode(&content); err != nil {
			g.fail(err)
			continue
		}
		api := content.Spec
		if api.Service == nil {
			g.fail(hint.With(input.errorf([]any{"spec"}, "the API is not served through a Service, as OLM requires"), "serve it from one of the operator's deployments, behind a Service"))
			continue
		}
		e, err := g.endpoint(api.Service.Namespace, api.Service.Name, api.Service.Port)
		if err != nil {
			g.fail(input.errorf([]any{"spec", "service"}, "the API service: %w", err))
			continue
		}
		// OLM's Service for an API has one number for its port and the container's.
		port, found := e.deployment.containerPort(e.target), false
		if owned := field(g.csv, "spec", "apiservicedefinitions", "owned"); owned != nil {
			for _, n := range owned.Content {
				if textAt(n, "group") == api.Group && textAt(n, "version") == api.Version {
					found = true
					set(n, text(e.deployment.Name()), "deploymentName")
					set(n, nodeOf(port), "containerPort")
				}
			}
		}
		if !found {
			g.fail(hint.With(input.errorf(nil, "the base CSV does not say which kinds are in %s/%s", api.Group, api.Version),
				"list each in spec.apiservicedefinitions.owned of the base, with group, version, kind and name"))
			continue
		}
		e.deployment.webhooks = true // its certificate is OLM's too
		g.note("%s: left out, OLM makes it from the CSV's apiservicedefinitions", input.ID())
	}
}

// containerPort returns the number of the port.
func (d *deployment) containerPort(port intstr.IntOrString) int32 {
	if port.Type == intstr.Int {
		return port.IntVal
	}
	var number int32
	for _, c := range d.Spec.Template.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == port.StrVal {
				number = cmp.Or(number, p.ContainerPort)
			}
		}
	}
	return number
}
