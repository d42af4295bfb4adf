package check

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/finding"
)

const olmConversionIssue = "https://github.com/operator-framework/operator-lifecycle-manager/issues/3892"

// webhookChecks look at the ClusterServiceVersion's webhook definitions and at the conversion of CRDs. What OLM demands is
// in operator-lifecycle-manager v0.46.0, pkg/controller/install/webhook.go and pkg/controller/operators/olm/operator.go.
var webhookChecks = []Check{
	{
		Code: "WHK001", Severity: finding.Error,
		Title: "a webhook names a Deployment that the ClusterServiceVersion does not have",
		Cause: "OLM creates neither Service nor certificate for the webhook, and the ClusterServiceVersion never reaches Succeeded",
		Fix:   "set deploymentName to one of spec.install.spec.deployments",
		judge: ofCSV(checkWebhookDeployment),
	},
	{
		Code: "WHK002", Severity: finding.Error,
		Title: "the name of a Deployment with webhooks is too long",
		Cause: "OLM creates the Service <deployment>-service, and a Service name has at most 63 characters",
		Fix:   "shorten the name of the Deployment to 55 characters",
		judge: ofCSV(checkWebhookNameLength),
	},
	{
		Code: "WHK003", Severity: finding.Error,
		Title: "no container has the named port of a webhook's targetPort",
		Cause: "the Service that OLM creates has no endpoint for the port, so every call of the webhook fails",
		Fix:   "give a container port that name, or set targetPort to its number",
		judge: ofCSV(checkWebhookTarget),
	},
	{
		Code: "WHK004", Severity: finding.Error,
		Title: "two webhooks have the same generateName",
		Cause: "OLM refuses the ClusterServiceVersion: InvalidWebhookDescription",
		Fix:   "give each webhook its own generateName",
		judge: ofCSV(checkWebhookNames),
	},
	{
		Code: "WHK005", Severity: finding.Error,
		Title: "OLM cannot install the conversion webhook",
		Cause: "the ClusterServiceVersion fails when OLM sets up the conversion",
		Fix:   "support only AllNamespaces, list only owned CRDs in conversionCRDs, and keep preserveUnknownFields false",
		judge: ofCSV(checkConversion),
	},
	{
		Code: "WHK006", Severity: finding.Error,
		Title: "a CRD has a conversion webhook that the ClusterServiceVersion does not define",
		Cause: "OLM applies the bundle's CRD unchanged and sets no caBundle, so every conversion fails, also after an upgrade, unless the operator sets it; " +
			"without a clientConfig the API server rejects the CRD",
		Fix:   "add a ConversionWebhook with the CRD in its conversionCRDs to spec.webhookdefinitions",
		judge: ofCSV(checkConversionDefined),
	},
	{
		Code: "WHK007", Severity: finding.Warning,
		Title:      "during an upgrade a CRD has no conversion webhook for some time",
		Cause:      "OLM first replaces the cluster's CRD with the bundle's, and adds the conversion only when the new ClusterServiceVersion installs. In between, objects that are written in a version other than the storage version are stored without conversion: fields are silently lost",
		Fix:        "keep spec.conversion with strategy Webhook in the bundle's CRD, so that the API server refuses such requests instead",
		References: []string{olmConversionIssue},
		judge:      ofCSV(checkConversionKept),
	},
	{
		Code: "WHK008", Severity: finding.Info,
		Title:      "an upgrade interrupts requests that need conversion",
		Cause:      "OLM first replaces the cluster's CRD with the bundle's, which has no caBundle, and sets the caBundle only when the new ClusterServiceVersion installs. In between, the API server refuses requests that need conversion",
		Fix:        "restore the caBundle in the operator, or keep the version that users write as storage version",
		References: []string{olmConversionIssue},
		judge:      ofCSV(checkConversionOutage),
	},
	{
		Code: "WHK009", Severity: finding.Error,
		Title: "a webhook has a rule for API groups that OLM refuses",
		Cause: "OLM refuses the ClusterServiceVersion: InvalidWebhookDescription",
		Fix:   "name the API groups, without those of OLM",
		judge: ofCSV(checkWebhookRules),
	},
	{
		Code: "WHK010", Severity: finding.Error,
		Title: "the API server rejects an admission webhook",
		Cause: "OLM can never create the webhook configuration",
		Fix:   "set generateName to a domain name with three parts, and set admissionReviewVersions and sideEffects (None or NoneOnDryRun)",
		judge: ofCSV(checkAdmission),
	},
	{
		Code: "WHK011", Severity: finding.Error,
		Title: "webhooks of one Deployment have the same port and different targetPorts",
		Cause: "OLM creates one Service for all of them and names its ports by their number, so the API server rejects the Service",
		Fix:   "use one targetPort, or different containerPorts",
		judge: ofCSV(checkWebhookPorts),
	},
	{
		Code: "WHK012", Severity: finding.Info,
		Title: "no container declares the port of a webhook",
		Cause: "the declaration itself has no effect, but without it nobody notices a wrong number, with which every call of the webhook fails",
		Fix:   "declare the port in the container, or correct its number",
		judge: ofCSV(checkWebhookNumber),
	},
	{
		Code: "WHK013", Severity: finding.Error,
		Title: "the path of a webhook does not start with a slash",
		Cause: "the API server rejects the webhook configuration or the conversion that OLM creates from it",
		Fix:   "write webhookPath as /path",
		judge: ofCSV(func(s *single, found func(hit)) {
			for i, w := range s.spec.Spec.WebhookDefinitions {
				if w.WebhookPath != nil && *w.WebhookPath != "" && !strings.HasPrefix(*w.WebhookPath, "/") {
					found(s.at(webhookPath(i, "webhookPath"), "the path %[2]q of webhook %[1]s does not start with a slash", w.GenerateName, *w.WebhookPath))
				}
			}
		}),
	},
	{
		Code: "WHK014", Severity: finding.Info,
		Title: "a webhook with failurePolicy Fail has one pod, which can be evicted",
		Cause: "while the pod is moved to another node or restarted, the objects cannot be written",
		Fix:   "run two replicas, and add a PodDisruptionBudget to the bundle",
		judge: ofCSV(checkWebhookReplicas),
	},
	{
		Code: "WHK015", Severity: finding.Warning,
		Title:      "a webhook with failurePolicy Fail is called for objects that the operator needs to start",
		Cause:      "while no pod of the operator runs, none can be created: the API server calls the webhook for the objects that a new pod needs",
		Fix:        "set an objectSelector that excludes the operator's own objects, or failurePolicy Ignore",
		References: []string{"https://kubernetes.io/docs/concepts/cluster-administration/admission-webhooks-good-practices/"},
		judge:      ofCSV(checkDeadlock),
	},
	{
		Code: "WHK016", Severity: finding.Warning,
		Title: "a CRD of the bundle sets the url or caBundle of its conversion webhook",
		Cause: "OLM replaces them with its own Service and CA. Until then, after every upgrade, the API server calls the url of the bundle or trusts its CA",
		Fix:   "remove url and caBundle from spec.conversion.webhook.clientConfig",
		judge: ofCSV(func(s *single, found func(hit)) {
			for _, c := range s.crds {
				if conversion := c.spec.Spec.Conversion; s.conversionFor(c.Name) >= 0 && conversion != nil && conversion.Webhook != nil && conversion.Webhook.ClientConfig != nil {
					config := conversion.Webhook.ClientConfig
					if config.URL != nil || len(config.CABundle) > 0 {
						found(inManifest(c.Manifest, []any{"spec", "conversion", "webhook", "clientConfig"}, "the clientConfig of CRD %s has a url or a caBundle", c.Name))
					}
				}
			}
		}),
	},
	{
		Code: "WHK017", Severity: finding.Warning,
		Title: "no webhook of a type is called for some served versions",
		Cause: "with matchPolicy Exact, objects that are written in a version that no webhook names are neither defaulted nor validated",
		Fix:   "use matchPolicy Equivalent (the default), or name all served versions in apiVersions",
		judge: ofCSV(checkExactVersions),
	},
	{
		Code: "WHK018", Severity: finding.Warning,
		Title: "a CRD with one version has a conversion webhook that the ClusterServiceVersion does not define",
		Cause: "with one version nothing is converted. With the next release that adds one, every conversion fails, since OLM sets no caBundle",
		Fix:   "remove spec.conversion from the CRD, or add a ConversionWebhook with the CRD in its conversionCRDs",
		judge: ofCSV(checkConversionIdle),
	},
	{
		Code: "WHK019", Severity: finding.Error,
		Title: "a field of a webhook has a value that the API server refuses",
		Cause: "the API server refuses the ClusterServiceVersion, or what OLM creates from it: the Service, or the webhook configuration",
		Fix:   "write one of the values that the message names",
		judge: ofCSV(checkWebhookValues),
	},
}

// checkWebhookValues knows the values that the CRD of ClusterServiceVersions names (operator-framework/api v0.45.0, crds), and those of
// webhook configurations and Services (k8s.io/kubernetes v1.36.3, pkg/apis/admissionregistration/validation, pkg/apis/core/validation).
func checkWebhookValues(s *single, found func(hit)) {
	for i, w := range s.spec.Spec.WebhookDefinitions {
		one := func(field, value string, known ...string) {
			if !slices.Contains(known, value) {
				found(s.at(webhookPath(i, field), "webhook %s has %s %q, which is none of %s", w.GenerateName, field, value, strings.Join(known, ", ")))
			}
		}
		within := func(field string, value, least, most int32) {
			if value != 0 && (value < least || value > most) { // 0 is the default
				found(s.at(webhookPath(i, field), "webhook %s has %s %d, which is not from %d to %d", w.GenerateName, field, value, least, most))
			}
		}
		one("type", string(w.Type), string(v1alpha1.ValidatingAdmissionWebhook), string(v1alpha1.MutatingAdmissionWebhook), string(v1alpha1.ConversionWebhook))
		within("containerPort", w.ContainerPort, 1, 65535)
		if w.TargetPort != nil && w.TargetPort.Type == intstr.Int {
			within("targetPort", w.TargetPort.IntVal, 1, 65535)
		}
		if w.Type == v1alpha1.ConversionWebhook {
			continue // the rest is for admission
		}
		if w.FailurePolicy != nil {
			one("failurePolicy", string(*w.FailurePolicy), string(admissionv1.Fail), string(admissionv1.Ignore))
		}
		if w.MatchPolicy != nil {
			one("matchPolicy", string(*w.MatchPolicy), string(admissionv1.Equivalent), string(admissionv1.Exact))
		}
		if w.ReinvocationPolicy != nil && w.Type == v1alpha1.MutatingAdmissionWebhook {
			one("reinvocationPolicy", string(*w.ReinvocationPolicy), string(admissionv1.NeverReinvocationPolicy), string(admissionv1.IfNeededReinvocationPolicy))
		}
		if w.TimeoutSeconds != nil {
			within("timeoutSeconds", *w.TimeoutSeconds, 1, 30)
		}
	}
}

func checkWebhookNumber(s *single, found func(hit)) {
	for i, w := range s.spec.Spec.WebhookDefinitions {
		d := s.deployment(w.DeploymentName)
		if d == nil || w.TargetPort != nil && w.TargetPort.Type == intstr.String {
			continue
		}
		port := w.ContainerPort
		if port == 0 {
			port = 443
		}
		if w.TargetPort != nil {
			port = w.TargetPort.IntVal
		}
		if !slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
			return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.ContainerPort == port })
		}) {
			found(s.at(webhookPath(i), "webhook %s uses port %d, which no container of Deployment %s declares", w.GenerateName, port, d.Name))
		}
	}
}

// mustAnswer reports whether the API server refuses a request when the webhook does not answer, which is the default.
func mustAnswer(w v1alpha1.WebhookDescription) bool {
	return w.Type != v1alpha1.ConversionWebhook && (w.FailurePolicy == nil || *w.FailurePolicy == admissionv1.Fail)
}

func checkWebhookReplicas(s *single, found func(hit)) {
	guarded := slices.ContainsFunc(s.bundle.Manifests, func(m bundle.Manifest) bool { return m.Kind == "PodDisruptionBudget" })
	told := map[string]bool{}
	for i, w := range s.spec.Spec.WebhookDefinitions {
		d := s.deployment(w.DeploymentName)
		if d == nil || !mustAnswer(w) || guarded || told[d.Name] || or(d.Spec.Replicas, 1) > 1 {
			continue
		}
		told[d.Name] = true
		found(s.at(webhookPath(i), "webhook %s has failurePolicy Fail, and Deployment %s has one pod and no PodDisruptionBudget", w.GenerateName, d.Name))
	}
}

// startsWith are the resources that are written before a pod of an operator starts, by group: by OLM, by the controllers of
// Kubernetes, by the kubelet, or by the operator that elects its leader.
var startsWith = map[string][]string{
	"":                    {"pods", "services", "serviceaccounts", "secrets", "configmaps"},
	"apps":                {"deployments", "replicasets"},
	"coordination.k8s.io": {"leases"},
}

func checkDeadlock(s *single, found func(hit)) {
	for i, w := range s.spec.Spec.WebhookDefinitions {
		if !mustAnswer(w) || w.ObjectSelector != nil && len(w.ObjectSelector.MatchLabels)+len(w.ObjectSelector.MatchExpressions) > 0 {
			continue
		}
		for j, rule := range w.Rules {
			asked := func(operations ...admissionv1.OperationType) bool {
				return slices.ContainsFunc(rule.Operations, func(o admissionv1.OperationType) bool { return slices.Contains(operations, o) })
			}
			var needed []string
			within := slices.Contains(rule.Resources, "*/*") // all resources, and what is within
			for _, group := range rule.APIGroups {
				for _, resource := range startsWith[group] {
					// A pod that is there is only updated in its status and binding, which are resources of their own.
					updated := (resource != "pods" || within) && asked(admissionv1.Update)
					if (within || names(rule.Resources, resource)) && (updated || asked(admissionv1.Create, admissionv1.OperationAll)) {
						needed = append(needed, resource)
					}
				}
			}
			if len(needed) > 0 {
				found(s.at(webhookPath(i, "rules", j), "webhook %s has failurePolicy Fail and is called for %s", w.GenerateName, strings.Join(needed, ", ")))
			}
		}
	}
}

// checkExactVersions takes the webhooks of one type together, since with matchPolicy Exact each version may have its own.
func checkExactVersions(s *single, found func(hit)) {
	for _, c := range s.crds {
		for _, kind := range []v1alpha1.WebhookAdmissionType{v1alpha1.MutatingAdmissionWebhook, v1alpha1.ValidatingAdmissionWebhook} {
			asked, exact := s.askedAbout(c, kind)
			var missing []string
			for _, v := range c.spec.Spec.Versions {
				if v.Served && !asked[v.Name] {
					missing = append(missing, v.Name)
				}
			}
			if exact != nil && len(missing) > 0 {
				found(s.at(exact, "no %s is called for version %s of CRD %s", kind, strings.Join(missing, ", "), c.Name))
			}
		}
	}
}

// askedAbout returns the versions of c about which some webhook of the kind is asked, and the place of the first rule on c with
// matchPolicy Exact, nil without one. With Equivalent, the default, a webhook that is asked about one served version is asked
// about all (k8s.io/apiserver v0.36.3, pkg/admission/plugin/webhook/generic/webhook.go).
func (s *single) askedAbout(c ownedCRD, kind v1alpha1.WebhookAdmissionType) (versions map[string]bool, exact []any) {
	versions = map[string]bool{}
	for i, w := range s.spec.Spec.WebhookDefinitions {
		isExact := w.MatchPolicy != nil && *w.MatchPolicy == admissionv1.Exact
		for j, rule := range w.Rules {
			if w.Type != kind || !isAbout(rule, c.spec.Spec) {
				continue
			}
			if isExact && exact == nil {
				exact = webhookPath(i, "rules", j, "apiVersions")
			}
			all := !isExact && slices.ContainsFunc(c.spec.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
				return v.Served && names(rule.APIVersions, v.Name)
			})
			for _, v := range c.spec.Spec.Versions {
				versions[v.Name] = versions[v.Name] || all || names(rule.APIVersions, v.Name)
			}
		}
	}
	return versions, exact
}

// isAbout reports whether a webhook's rule is about the objects that a CRD defines, in whichever version.
func isAbout(rule admissionv1.RuleWithOperations, crd apiextensionsv1.CustomResourceDefinitionSpec) bool {
	return names(rule.APIGroups, crd.Group) && (names(rule.Resources, crd.Names.Plural) || slices.Contains(rule.Resources, "*/*"))
}

func webhookPath(i int, more ...any) []any {
	return append([]any{"spec", "webhookdefinitions", i}, more...)
}

func checkWebhookDeployment(s *single, found func(hit)) {
	for i, w := range s.spec.Spec.WebhookDefinitions {
		if s.deployment(w.DeploymentName) == nil {
			found(s.at(webhookPath(i, "deploymentName"), "webhook %s names Deployment %q, which does not exist", w.GenerateName, w.DeploymentName))
		}
	}
}

func checkWebhookNameLength(s *single, found func(hit)) {
	for i, w := range s.spec.Spec.WebhookDefinitions {
		if len(w.DeploymentName) > 63-len("-service") {
			found(s.at(webhookPath(i, "deploymentName"), "the name of Deployment %s has %d characters", w.DeploymentName, len(w.DeploymentName)))
		}
	}
}

func checkWebhookTarget(s *single, found func(hit)) {
	for i, w := range s.spec.Spec.WebhookDefinitions {
		d := s.deployment(w.DeploymentName)
		if d == nil || w.TargetPort == nil || w.TargetPort.Type != intstr.String {
			continue
		}
		named := slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
			return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == w.TargetPort.StrVal })
		})
		if !named {
			found(s.at(webhookPath(i, "targetPort"), "webhook %s has targetPort %q, but no container of Deployment %s has a port of that name", w.GenerateName, w.TargetPort.StrVal, d.Name))
		}
	}
}

func checkWebhookNames(s *single, found func(hit)) {
	seen := map[string]bool{}
	for i, w := range s.spec.Spec.WebhookDefinitions {
		if seen[w.GenerateName] {
			found(s.at(webhookPath(i, "generateName"), "another webhook has generateName %s", w.GenerateName))
		}
		seen[w.GenerateName] = true
	}
}

func checkConversion(s *single, found func(hit)) {
	for i, w := range s.spec.Spec.WebhookDefinitions {
		if w.Type != v1alpha1.ConversionWebhook {
			continue
		}
		if len(w.ConversionCRDs) == 0 {
			found(s.at(webhookPath(i), "conversion webhook %s has no conversionCRDs", w.GenerateName))
		}
		for j, mode := range s.spec.Spec.InstallModes {
			if mode.Supported != (mode.Type == v1alpha1.InstallModeTypeAllNamespaces) {
				found(s.at([]any{"spec", "installModes", j}, "with conversion webhook %s, install mode %s must have supported: %t", w.GenerateName, mode.Type, !mode.Supported))
			}
		}
		for j, name := range w.ConversionCRDs {
			path := webhookPath(i, "conversionCRDs", j)
			if !s.spec.OwnsCRD(name) {
				found(s.at(path, "conversion webhook %s names CRD %s, which the bundle does not own", w.GenerateName, name))
			}
			if c := s.crd(name); c != nil && c.spec.Spec.PreserveUnknownFields {
				found(inManifest(c.Manifest, []any{"spec", "preserveUnknownFields"}, "CRD %s has preserveUnknownFields: true, so it cannot be converted", name))
			}
		}
		if !slices.Contains(w.AdmissionReviewVersions, "v1") && !slices.Contains(w.AdmissionReviewVersions, "v1beta1") {
			found(s.at(webhookPath(i, "admissionReviewVersions"), "conversion webhook %s supports neither v1 nor v1beta1 of ConversionReview", w.GenerateName))
		}
	}
}

// conversionFor returns the index of the ConversionWebhook for a CRD, or -1.
func (s *single) conversionFor(name string) int {
	return slices.IndexFunc(s.spec.Spec.WebhookDefinitions, func(w v1alpha1.WebhookDescription) bool {
		return w.Type == v1alpha1.ConversionWebhook && slices.Contains(w.ConversionCRDs, name)
	})
}

func (c ownedCRD) convertedByWebhook() bool {
	return c.spec.Spec.Conversion != nil && c.spec.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
}

func checkConversionDefined(s *single, found func(hit)) {
	for _, c := range s.crds {
		if c.asksForUndefinedWebhook(s) && !c.needsNoConversion() && !c.trustsOthers() {
			found(inManifest(c.Manifest, []any{"spec", "conversion"}, "CRD %s has a conversion webhook, but no ConversionWebhook of %s names it", c.Name, s.csv.Name))
		}
	}
}

func checkConversionIdle(s *single, found func(hit)) {
	for _, c := range s.crds {
		if c.asksForUndefinedWebhook(s) && c.needsNoConversion() {
			found(inManifest(c.Manifest, []any{"spec", "conversion"},
				"CRD %s has only version %s and strategy Webhook, but no ConversionWebhook of %s names it", c.Name, c.spec.Spec.Versions[0].Name, s.csv.Name))
		}
	}
}

func (c ownedCRD) asksForUndefinedWebhook(s *single) bool {
	return c.convertedByWebhook() && s.conversionFor(c.Name) < 0
}

// needsNoConversion reports whether the API server takes a CRD with strategy Webhook, which it does not without a
// clientConfig, and never calls the webhook: objects are stored and asked for in one version.
func (c ownedCRD) needsNoConversion() bool {
	webhook := c.spec.Spec.Conversion.Webhook
	return len(c.spec.Spec.Versions) == 1 && webhook != nil && webhook.ClientConfig != nil
}

// caInjectors are the annotations by which cert-manager and OpenShift set the caBundle of a CRD.
var caInjectors = []string{"cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret", "service.beta.openshift.io/inject-cabundle"}

// trustsOthers reports whether the API server can call the CRD's conversion webhook without OLM: the CRD says whom to trust,
// or who sets it. A value that a template left, such as $(CERTIFICATE_NAME), and an empty caBundle say nothing.
func (c ownedCRD) trustsOthers() bool {
	for _, name := range caInjectors {
		if value := c.spec.Annotations[name]; value == "true" || strings.Contains(value, "/") && !strings.Contains(value, "$") {
			return true
		}
	}
	webhook := c.spec.Spec.Conversion.Webhook
	return webhook != nil && webhook.ClientConfig != nil && (webhook.ClientConfig.URL != nil || len(bytes.TrimSpace(webhook.ClientConfig.CABundle)) > 0)
}

func checkConversionKept(s *single, found func(hit)) {
	for _, c := range s.crds {
		if i := s.conversionFor(c.Name); i >= 0 && !c.convertedByWebhook() && len(c.spec.Spec.Versions) > 1 {
			found(inManifest(c.Manifest, []any{"spec"}, "CRD %s has a conversion webhook (%s), but no spec.conversion in the bundle", c.Name, s.spec.Spec.WebhookDefinitions[i].GenerateName))
		}
	}
}

func checkConversionOutage(s *single, found func(hit)) {
	for _, c := range s.crds {
		if s.conversionFor(c.Name) >= 0 && c.convertedByWebhook() && len(c.spec.Spec.Versions) > 1 {
			found(inManifest(c.Manifest, []any{"spec", "conversion"}, "an upgrade to %s interrupts requests for versions of CRD %s other than the storage version", s.csv.Name, c.Name))
		}
	}
}

func checkWebhookRules(s *single, found func(hit)) {
	for i, w := range s.spec.Spec.WebhookDefinitions {
		for j, rule := range w.Rules {
			switch {
			case slices.Contains(rule.APIGroups, "*"), slices.Contains(rule.APIGroups, v1alpha1.GroupName):
				found(s.at(webhookPath(i, "rules", j), "webhook %s has a rule for API groups %s", w.GenerateName, strings.Join(rule.APIGroups, ", ")))
			case slices.Contains(rule.APIGroups, admissionv1.GroupName) && slices.ContainsFunc(rule.Resources, func(r string) bool {
				return r == "*" || r == "MutatingWebhookConfiguration" || r == "ValidatingWebhookConfiguration"
			}):
				found(s.at(webhookPath(i, "rules", j), "webhook %s has a rule for webhook configurations", w.GenerateName))
			}
		}
	}
}

func checkAdmission(s *single, found func(hit)) {
	for i, w := range s.spec.Spec.WebhookDefinitions {
		if w.Type == v1alpha1.ConversionWebhook {
			continue
		}
		if strings.Count(w.GenerateName, ".") < 2 {
			found(s.at(webhookPath(i, "generateName"), "the generateName of webhook %q is no domain name with three parts", w.GenerateName))
		} else if problems := validation.IsDNS1123Subdomain(w.GenerateName); len(problems) > 0 {
			found(s.at(webhookPath(i, "generateName"), "the generateName of webhook %q is no domain name: %s", w.GenerateName, problems[0]))
		}
		if len(w.AdmissionReviewVersions) == 0 {
			found(s.at(webhookPath(i), "webhook %s has no admissionReviewVersions", w.GenerateName))
		}
		if w.SideEffects == nil || *w.SideEffects != admissionv1.SideEffectClassNone && *w.SideEffects != admissionv1.SideEffectClassNoneOnDryRun {
			found(s.at(webhookPath(i), "webhook %s does not set sideEffects to None or NoneOnDryRun", w.GenerateName))
		}
	}
}

func checkWebhookPorts(s *single, found func(hit)) {
	targets := map[string]string{}
	for i, w := range s.spec.Spec.WebhookDefinitions {
		port := w.ContainerPort
		if port == 0 {
			port = 443
		}
		target := intstr.FromInt32(port)
		if w.TargetPort != nil {
			target = *w.TargetPort
		}
		key := fmt.Sprintf("%s:%d", w.DeploymentName, port)
		if other, ok := targets[key]; ok && other != target.String() {
			found(s.at(webhookPath(i), "port %s has targetPort %s here and %s for another webhook", key, target.String(), other))
		}
		targets[key] = target.String()
	}
}
