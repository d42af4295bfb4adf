package bundle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"go.yaml.in/yaml/v3"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/version"

	"github.com/olmkit/olmkit/internal/hint"
)

// Where OLM mounts the certificate that it makes for a deployment with webhooks, and what the Service and Secret are called
// (operator-lifecycle-manager v0.46.0, pkg/controller/install/certresources.go).
const (
	certMountPath    = "/tmp/k8s-webhook-server/serving-certs"
	apiCertMountPath = "/apiserver.local.config/certificates"
	maxWebhookHost   = 63 - len("-service") // characters of a deployment's name, so that its Service can be named after it
)

func compareVersions(a, b string) int { return version.CompareKubeAwareVersionStrings(a, b) }

// serviceFor returns the name of the Service that OLM makes for a deployment with webhooks.
func serviceFor(deployment string) string {
	d := v1alpha1.WebhookDescription{DeploymentName: deployment}
	return d.DomainName() + "-service"
}

// endpoint is where a webhook is served: what OLM needs to know of it in place of a Service.
type endpoint struct {
	deployment *deployment
	service    *corev1.Service
	port       int32 // of the Service
	target     intstr.IntOrString
}

// webhookDefinitions turns webhook configurations and the conversion of CRDs into the CSV's webhookdefinitions, from which
// OLM makes the configurations, with their Service and certificate.
func (g *generator) webhookDefinitions() {
	for _, input := range g.webhooks {
		if input.Kind == "ValidatingWebhookConfiguration" {
			var configuration admissionv1.ValidatingWebhookConfiguration
			if err := input.decode(&configuration); err != nil {
				g.fail(err)
				continue
			}
			for i, hook := range configuration.Webhooks {
				g.admission(input, i, v1alpha1.WebhookDescription{
					GenerateName: hook.Name, Type: v1alpha1.ValidatingAdmissionWebhook, Rules: hook.Rules, FailurePolicy: hook.FailurePolicy,
					MatchPolicy: hook.MatchPolicy, ObjectSelector: hook.ObjectSelector, SideEffects: hook.SideEffects,
					TimeoutSeconds: hook.TimeoutSeconds, AdmissionReviewVersions: hook.AdmissionReviewVersions,
				}, hook.ClientConfig, hook.NamespaceSelector, hook.MatchConditions)
			}
			continue
		}
		var configuration admissionv1.MutatingWebhookConfiguration
		if err := input.decode(&configuration); err != nil {
			g.fail(err)
			continue
		}
		for i, hook := range configuration.Webhooks {
			g.admission(input, i, v1alpha1.WebhookDescription{
				GenerateName: hook.Name, Type: v1alpha1.MutatingAdmissionWebhook, Rules: hook.Rules, FailurePolicy: hook.FailurePolicy,
				MatchPolicy: hook.MatchPolicy, ObjectSelector: hook.ObjectSelector, SideEffects: hook.SideEffects,
				TimeoutSeconds: hook.TimeoutSeconds, AdmissionReviewVersions: hook.AdmissionReviewVersions, ReinvocationPolicy: hook.ReinvocationPolicy,
			}, hook.ClientConfig, hook.NamespaceSelector, hook.MatchConditions)
		}
	}
	for _, c := range g.crds {
		g.conversion(c)
	}
	slices.SortStableFunc(g.defined, func(a, b v1alpha1.WebhookDescription) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.GenerateName, b.GenerateName))
	})
	g.distinctNames()
	g.onePortOneTarget()
	g.mergeDefinitions()
}

// admission adds the definition of an admission webhook, which is the i-th of input's.
func (g *generator) admission(input Input, i int, d v1alpha1.WebhookDescription, client admissionv1.WebhookClientConfig, namespaces *metav1.LabelSelector, conditions []admissionv1.MatchCondition) {
	at := []any{"webhooks", i}
	if client.Service == nil {
		g.fail(hint.With(input.errorf(append(at, "clientConfig"), "webhook %s is not called through a Service, as OLM requires", d.GenerateName),
			"serve it from one of the operator's deployments, behind a Service"))
		return
	}
	if len(conditions) > 0 {
		g.fail(hint.With(input.errorf(append(at, "matchConditions"), "webhook %s has matchConditions, which a CSV cannot say", d.GenerateName),
			"test the conditions in the webhook's handler"))
	}
	if namespaces != nil && len(namespaces.MatchLabels)+len(namespaces.MatchExpressions) > 0 {
		g.note("%s: OLM puts the OperatorGroup's namespaces in place of the namespaceSelector of webhook %s", input.ID(), d.GenerateName)
	}
	for _, rule := range d.Rules {
		// operator-lifecycle-manager v0.46.0, pkg/controller/install/webhook.go, ValidWebhookRules.
		if slices.Contains(rule.APIGroups, "*") || slices.Contains(rule.APIGroups, v1alpha1.GroupName) {
			g.fail(hint.With(input.errorf(append(at, "rules"), "webhook %s asks for all API groups or for OLM's own, which OLM refuses", d.GenerateName),
				"name the groups"))
		}
	}
	e, err := g.endpoint(client.Service.Namespace, client.Service.Name, client.Service.Port)
	if err != nil {
		g.fail(input.errorf(append(at, "clientConfig", "service"), "webhook %s: %w", d.GenerateName, err))
		return
	}
	d.WebhookPath = client.Service.Path
	g.define(d, e)
}

// conversion adds the definition of c's conversion webhook and treats the stanza in the CRD as the options say.
func (g *generator) conversion(c *crd) {
	conversion := c.Spec.Conversion
	if conversion == nil || conversion.Strategy != apiextensionsv1.WebhookConverter {
		return
	}
	at := []any{"spec", "conversion", "webhook", "clientConfig"}
	if conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil || conversion.Webhook.ClientConfig.Service == nil {
		g.fail(hint.With(c.errorf(at, "the conversion webhook is not called through a Service, as OLM requires"),
			"serve it from one of the operator's deployments, behind a Service"))
		return
	}
	if c.Spec.PreserveUnknownFields {
		// operator-lifecycle-manager v0.46.0, pkg/controller/install/webhook.go, createOrUpdateConversionWebhook.
		g.fail(hint.With(c.errorf([]any{"spec", "preserveUnknownFields"}, "OLM and the API server convert only where preserveUnknownFields is false"), "set it to false"))
	}
	service := conversion.Webhook.ClientConfig.Service
	e, err := g.endpoint(service.Namespace, service.Name, service.Port)
	if err != nil {
		g.fail(c.errorf(append(at, "service"), "the conversion webhook: %w", err))
		return
	}
	none := admissionv1.SideEffectClassNone
	g.define(v1alpha1.WebhookDescription{
		GenerateName: "c" + c.CustomResourceDefinition.Name, Type: v1alpha1.ConversionWebhook, SideEffects: &none,
		AdmissionReviewVersions: conversion.Webhook.ConversionReviewVersions, WebhookPath: service.Path,
		ConversionCRDs: []string{c.CustomResourceDefinition.Name},
	}, e)
	if g.Conversion == ConversionStrip {
		remove(c.node, "spec", "conversion")
		return
	}
	// What OLM will write there, but for the namespace, which only the cluster knows, and the CA.
	client := apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{
		Name: serviceFor(e.deployment.Name()), Namespace: cmp.Or(service.Namespace, "default"), Path: service.Path, Port: &e.port,
	}}
	set(c.node, nodeOf(client), "spec", "conversion", "webhook", "clientConfig")
}

func (g *generator) define(d v1alpha1.WebhookDescription, e endpoint) {
	d.DeploymentName, d.ContainerPort, d.TargetPort = e.deployment.Name(), e.port, &e.target
	e.deployment.webhooks = true
	g.defined = append(g.defined, d)
}

// endpoint finds the deployment behind a port of a Service by the Service's selector.
func (g *generator) endpoint(namespace, name string, port *int32) (endpoint, error) {
	e := endpoint{port: 443}
	if port != nil {
		e.port = *port
	}
	for _, input := range g.services {
		if input.Name == name && (input.Namespace == namespace || input.Namespace == "" || namespace == "") {
			e.service = &corev1.Service{}
			if err := input.decode(e.service); err != nil {
				return e, err
			}
		}
	}
	if e.service == nil {
		return e, hint.With(fmt.Errorf("there is no Service %s among the manifests", name), "add it: its selector says which deployment serves the webhook")
	}
	selector := labels.SelectorFromSet(e.service.Spec.Selector)
	var names []string
	for _, d := range g.deployments {
		if len(e.service.Spec.Selector) > 0 && selector.Matches(labels.Set(d.Spec.Template.Labels)) {
			e.deployment = d
			names = append(names, d.Name())
		}
	}
	if len(names) != 1 {
		return e, hint.With(fmt.Errorf("the Service %s selects the pods of %s, not of one deployment", name, cmp.Or(strings.Join(names, " and "), "none of the deployments")),
			"make the Service's selector match the pod labels of the one deployment that serves the webhook")
	}
	if len(names[0]) > maxWebhookHost {
		return e, hint.With(fmt.Errorf("the name of deployment %s is longer than %d characters, too long for the Service that OLM names after it", names[0], maxWebhookHost), "shorten it")
	}
	i := slices.IndexFunc(e.service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == e.port })
	if i < 0 {
		return e, hint.With(fmt.Errorf("the Service %s has no port %d", name, e.port), "name the Service's port in the webhook's clientConfig")
	}
	e.target = e.service.Spec.Ports[i].TargetPort
	if e.target == (intstr.IntOrString{}) {
		e.target = intstr.FromInt32(e.port)
	}
	if e.target.Type == intstr.String && !e.deployment.hasPort(e.target.StrVal) {
		return e, hint.With(fmt.Errorf("no container of deployment %s has a port called %q, which is the Service's target", names[0], e.target.StrVal), "name one of the container's ports %s", e.target.StrVal)
	}
	e.deployment.served = append(e.deployment.served, servedPort{service: name, port: e.port, target: e.target})
	return e, nil
}

// distinctNames makes generateName unique: OLM finds the configuration that it made by this name, and refuses a CSV that
// holds one twice (operator-lifecycle-manager v0.46.0, pkg/controller/operators/olm/operator.go, transitionCSVState).
func (g *generator) distinctNames() {
	used := map[string]bool{}
	for i := range g.defined {
		name := g.defined[i].GenerateName
		for n := 2; used[g.defined[i].GenerateName]; n++ {
			first, rest, _ := strings.Cut(name, ".")
			g.defined[i].GenerateName = fmt.Sprintf("%s-%d.%s", first, n, rest)
		}
		if name != g.defined[i].GenerateName {
			g.note("two webhooks are called %s: one is now %s", name, g.defined[i].GenerateName)
		}
		used[g.defined[i].GenerateName] = true
	}
}

// onePortOneTarget refuses two targets for one port: OLM makes one Service for all webhooks of a deployment, and names its
// ports by their number.
func (g *generator) onePortOneTarget() {
	type port struct {
		deployment string
		number     int32
	}
	targets := map[port]intstr.IntOrString{}
	for _, d := range g.defined {
		p := port{d.DeploymentName, d.ContainerPort}
		if other, ok := targets[p]; ok && other != *d.TargetPort {
			g.fail(hint.With(fmt.Errorf("webhooks of deployment %s reach port %d by way of targets %s and %s, and OLM makes one Service for both", p.deployment, p.number, other.String(), d.TargetPort.String()),
				"give the second Service another port"))
		}
		targets[p] = *d.TargetPort
	}
}

// mergeDefinitions puts the definitions into the CSV. What the base defines beside them stays.
func (g *generator) mergeDefinitions() {
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	made := slices.Clone(g.defined)
	if base := field(g.csv, "spec", "webhookdefinitions"); base != nil {
		for i, n := range base.Content {
			replaced := slices.ContainsFunc(made, func(d v1alpha1.WebhookDescription) bool {
				return string(d.Type) == textAt(n, "type") && (d.GenerateName == textAt(n, "generateName") || sharesCRD(d, n))
			})
			if !replaced {
				list.Content = append(list.Content, n)
				g.baseDefinition(i, n)
			}
		}
	}
	for _, d := range made {
		list.Content = append(list.Content, nodeOf(d))
	}
	if len(list.Content) > 0 {
		set(g.csv, list, "spec", "webhookdefinitions")
	}
}

func sharesCRD(d v1alpha1.WebhookDescription, n *yaml.Node) bool {
	names := field(n, "conversionCRDs")
	return names != nil && slices.ContainsFunc(names.Content, func(name *yaml.Node) bool { return slices.Contains(d.ConversionCRDs, name.Value) })
}

// baseDefinition makes the i-th of the base's own definitions known to the steps that follow.
func (g *generator) baseDefinition(i int, n *yaml.Node) {
	d := v1alpha1.WebhookDescription{
		Type: v1alpha1.WebhookAdmissionType(textAt(n, "type")), GenerateName: textAt(n, "generateName"), DeploymentName: textAt(n, "deploymentName"),
	}
	g.defined = append(g.defined, d)
	known := len(g.deployments) == 0
	for _, deployment := range g.deployments {
		if deployment.Name() == d.DeploymentName {
			deployment.webhooks, known = true, true
		}
	}
	if !known {
		g.fail(hint.With(g.at.errorf([]any{"spec", "webhookdefinitions", i, "deploymentName"}, "webhook %s is served by %s, and no deployment is called so", d.GenerateName, d.DeploymentName),
			"name one of the deployments"))
	}
}

// certificates leaves out what OLM puts its own in place of: the Services through which webhooks are called, and what
// cert-manager is asked for on their behalf. Their Secrets would never come to be, so nothing may mount them.
func (g *generator) certificates() {
	replaced := map[string]bool{} // Services
	for _, d := range g.deployments {
		for _, served := range d.served {
			replaced[served.service] = true
		}
	}
	g.shipServices(replaced)
	secrets, issuers := g.webhookSecrets(replaced)
	for _, input := range g.certs {
		if input.Kind == "Certificate" {
			continue
		}
		if needed, used := issuers[input.Kind+"/"+input.Name]; used && !needed {
			g.note("%s: left out, it issues only certificates that are left out", input.ID())
			continue
		}
		g.refuse(input)
	}
	for _, d := range g.deployments {
		if d.webhooks {
			d.useOLMCertificate(secrets)
		}
	}
	for _, input := range g.secrets {
		if secrets[input.Name] {
			g.note("%s: left out, OLM makes the certificates of webhooks itself", input.ID())
			continue
		}
		g.shipPlain(input)
	}
}

// shipServices ships the Services but those that OLM makes itself.
func (g *generator) shipServices(replaced map[string]bool) {
	for _, input := range g.services {
		if !replaced[input.Name] {
			g.shipPlain(input)
			continue
		}
		if g.onlyForWebhooks(input) {
			g.note("%s: left out, OLM makes a Service for webhooks itself", input.ID())
			continue
		}
		g.shipPlain(input)
	}
}

// webhookSecrets returns the Secrets of certificates for webhooks, which OLM makes itself, and by kind and name the issuers of all
// certificates: whether one that is not left out needs it.
func (g *generator) webhookSecrets(replaced map[string]bool) (secrets, issuers map[string]bool) {
	secrets, issuers = map[string]bool{}, map[string]bool{}
	for _, input := range g.certs {
		if input.Kind != "Certificate" {
			continue
		}
		var certificate struct {
			Spec struct {
				SecretName string   `json:"secretName"`
				DNSNames   []string `json:"dnsNames"`
				IssuerRef  struct {
					Kind string `json:"kind"`
					Name string `json:"name"`
				} `json:"issuerRef"`
			} `json:"spec"`
		}
		if err := input.decode(&certificate); err != nil {
			g.fail(err)
			continue
		}
		issuer := cmp.Or(certificate.Spec.IssuerRef.Kind, "Issuer") + "/" + certificate.Spec.IssuerRef.Name
		forWebhook := slices.ContainsFunc(certificate.Spec.DNSNames, func(name string) bool {
			host, _, _ := strings.Cut(name, ".")
			return replaced[host]
		})
		issuers[issuer] = issuers[issuer] || false
		if !forWebhook {
			d := g.user(certificate.Spec.SecretName)
			if d == nil {
				g.note("%s: left out, no deployment names its Secret %s", input.ID(), certificate.Spec.SecretName)
				continue
			}
			issuers[issuer] = true
			g.fail(hint.With(input.errorf(nil, "OLM does not accept a cert-manager.io Certificate in a bundle, and deployment %s would wait for ever for its Secret %s", d.Name(), certificate.Spec.SecretName),
				"leave Certificate and Secret out of the manifests for OLM; in a kubebuilder project, comment out [METRICS-WITH-CERTS] in config/default, and the manager makes a certificate itself"))
			continue
		}
		secrets[certificate.Spec.SecretName] = true
		g.note("%s: left out, OLM makes the certificates of webhooks itself", input.ID())
	}
	return secrets, issuers
}

// user returns a deployment whose pods name the Secret, or nil.
func (g *generator) user(secret string) *deployment {
	for _, d := range g.deployments {
		if d.names(secret) {
			return d
		}
	}
	return nil
}

// onlyForWebhooks reports whether webhooks are called through each port of the Service.
func (g *generator) onlyForWebhooks(input Input) bool {
	var service corev1.Service
	if err := input.decode(&service); err != nil {
		g.fail(err)
		return false
	}
	for _, port := range service.Spec.Ports {
		used := slices.ContainsFunc(g.deployments, func(d *deployment) bool {
			return slices.ContainsFunc(d.served, func(s servedPort) bool { return s.service == input.Name && s.port == port.Port })
		})
		if !used {
			return false
		}
	}
	return true
}
