package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	strictjson "sigs.k8s.io/json"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/finding"
)

// deploymentChecks look at how the operator runs, and at the objects beside it.
var deploymentChecks = []Check{
	{
		Code: "CSV023", Severity: finding.Warning,
		Title: "a Deployment has 0 replicas",
		Cause: "OLM treats the ClusterServiceVersion as installed as soon as the Deployment is there, but no operator runs",
		Fix:   "set replicas to 1 or more, or remove the field",
		judge: perDeployment(func(s *single, d deployment, found func(hit)) {
			if d.Spec.Replicas != nil && *d.Spec.Replicas == 0 {
				found(s.at(d.path("replicas"), "Deployment %s has 0 replicas", d.Name))
			}
		}),
	},
	{
		Code: "CSV024", Severity: finding.Info,
		Title: "a Deployment has strategy Recreate",
		Cause: "during an upgrade, from the end of the old pod until the new one is ready, no pod answers webhooks and conversions, and nothing is reconciled",
		Fix:   "use strategy RollingUpdate with leader election, unless two pods must not run at the same time",
		judge: perDeployment(func(s *single, d deployment, found func(hit)) {
			if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
				found(s.at(d.path("strategy"), "Deployment %s has strategy Recreate", d.Name))
			}
		}),
	},
	{
		Code: "CSV025", Severity: finding.Warning,
		Title:      "a Deployment with a PersistentVolumeClaim has strategy RollingUpdate",
		Cause:      "the new pod starts while the old one still uses the volume. Unless the volume is ReadWriteMany, a pod on another node waits forever, and the upgrade with it",
		Fix:        "use strategy Recreate, or a volume with access mode ReadWriteMany",
		References: []string{"https://kubernetes.io/docs/concepts/storage/persistent-volumes/#access-modes"},
		judge: perDeployment(func(s *single, d deployment, found func(hit)) {
			for i, v := range d.Spec.Template.Spec.Volumes {
				if v.PersistentVolumeClaim != nil && d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
					found(s.at(d.path("template", "spec", "volumes", i), "Deployment %s mounts PersistentVolumeClaim %s and has strategy RollingUpdate", d.Name, v.PersistentVolumeClaim.ClaimName))
				}
			}
		}),
	},
	{
		Code: "CSV026", Severity: finding.Warning,
		Title:      "an object uses an API version that Kubernetes no longer serves",
		Cause:      "the InstallPlan fails on every cluster of that version or a later one",
		Fix:        "use the API version that replaced it",
		References: []string{"https://kubernetes.io/docs/reference/using-api/deprecation-guide/"},
		judge:      checkRemovedAPIs,
	},
	{
		Code: "CSV027", Severity: finding.Warning,
		Title:      "an object has a kind that some clusters do not have",
		Cause:      "the InstallPlan fails in clusters without the kind, even if the operator does not need it",
		Fix:        "create the object in the operator where the kind exists, or, if a package of the catalog provides the kind, require that with olm.gvk.required",
		References: []string{"https://github.com/jaegertracing/jaeger-operator/issues/1683"},
		judge:      checkOptionalAPIs(false),
	},
	{
		Code: "CSV028", Severity: finding.Info,
		Title: "descriptors of an owned CRD name fields that the schema does not have",
		Cause: "consoles show nothing for the descriptor, or an empty input",
		Fix:   "correct the path, which starts below spec or status",
		judge: ofCSV(checkDescriptors),
	},
	{
		Code: "CSV029", Severity: finding.Info,
		Title: "the ClusterServiceVersion lacks fields that catalogs show",
		Cause: "users see an entry without them, and OperatorHub requires them",
		Fix:   "add the fields to the base ClusterServiceVersion",
		judge: ofCSV(func(s *single, found func(hit)) {
			var missing []string
			for _, field := range []struct {
				name string
				set  bool
			}{
				{"displayName", s.spec.Spec.DisplayName != ""},
				{"description", s.spec.Spec.Description != ""},
				{"icon", len(s.spec.Spec.Icon) > 0},
				{"maintainers", len(s.spec.Spec.Maintainers) > 0},
				{"provider", s.spec.Spec.Provider.Name != ""},
			} {
				if !field.set {
					missing = append(missing, "spec."+field.name)
				}
			}
			if s.spec.Annotations["createdAt"] == "" {
				missing = append(missing, "metadata.annotations.createdAt")
			}
			if len(missing) > 0 {
				found(s.at([]any{"spec"}, "ClusterServiceVersion %s has no %s", s.csv.Name, strings.Join(missing, ", ")))
			}
		}),
	},
	{
		Code: "CSV030", Severity: finding.Info,
		Title: "a container has no CPU or memory request",
		Cause: "when memory is short, the node ends the container first, and a ResourceQuota can reject the pod",
		Fix:   "set resources.requests",
		judge: perContainer(func(s *single, d deployment, c corev1.Container, path []any, found func(hit)) {
			if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() {
				found(s.at(path, "container %s of Deployment %s has no requests for CPU and memory", c.Name, d.Name))
			}
		}),
	},
	{
		Code: "CSV031", Severity: finding.Info,
		Title: "a container can run as root",
		Cause: "namespaces with the restricted Pod Security Standard reject the pod",
		Fix:   "set runAsNonRoot: true in the securityContext",
		judge: perContainer(func(s *single, d deployment, c corev1.Container, path []any, found func(hit)) {
			user, nonRoot := int64(-1), false
			if pod := d.Spec.Template.Spec.SecurityContext; pod != nil {
				user, nonRoot = or(pod.RunAsUser, user), or(pod.RunAsNonRoot, nonRoot)
			}
			if own := c.SecurityContext; own != nil {
				user, nonRoot = or(own.RunAsUser, user), or(own.RunAsNonRoot, nonRoot)
			}
			if user == 0 || !nonRoot {
				found(s.at(path, "container %s of Deployment %s does not set runAsNonRoot", c.Name, d.Name))
			}
		}),
	},
	{
		Code: "CSV032", Severity: finding.Info,
		Title: "a container has no seccomp profile",
		Cause: "namespaces with the restricted Pod Security Standard reject the pod",
		Fix:   "set seccompProfile: {type: RuntimeDefault} in the securityContext",
		judge: perContainer(func(s *single, d deployment, c corev1.Container, path []any, found func(hit)) {
			pod, own := d.Spec.Template.Spec.SecurityContext, c.SecurityContext
			if (pod == nil || pod.SeccompProfile == nil) && (own == nil || own.SeccompProfile == nil) {
				found(s.at(path, "container %s of Deployment %s has no seccomp profile", c.Name, d.Name))
			}
		}),
	},
	{
		Code: "CSV033", Severity: finding.Info,
		Title: "a Deployment mounts a hostPath volume",
		Cause: "whoever controls the pod can read or write files of the node, and namespaces with the baseline Pod Security Standard reject the pod",
		Fix:   "use another type of volume",
		judge: perDeployment(func(s *single, d deployment, found func(hit)) {
			for i, v := range d.Spec.Template.Spec.Volumes {
				if v.HostPath != nil {
					found(s.at(d.path("template", "spec", "volumes", i), "Deployment %s mounts %s of the node (hostPath)", d.Name, v.HostPath.Path))
				}
			}
		}),
	},
	{
		Code: "CSV034", Severity: finding.Info,
		Title: "an integer is too large for many JSON readers",
		Cause: "tools and consoles that read numbers as floating point silently round it: they cannot represent every integer above 2^53",
		Fix:   "write a smaller number, or a string where the field allows it",
		judge: checkLargeIntegers,
	},
	{
		Code: "CSV035", Severity: finding.Info,
		Title: "the default channel of the bundle's annotations is not one of its channels",
		Cause: "a catalog that is built from this bundle alone has a package whose default channel does not exist. If other releases of the package are in that channel, nothing is wrong",
		Fix:   "nothing to do if another release is in the default channel; else add the default channel to the channels, or choose one of them",
		judge: func(s *single, found func(hit)) {
			byDefault := s.bundle.Annotations[bundle.AnnotationDefaultChannel]
			channels := strings.Split(strings.ReplaceAll(s.bundle.Annotations[bundle.AnnotationChannels], " ", ""), ",")
			if byDefault != "" && channels[0] != "" && !slices.Contains(channels, byDefault) {
				found(hit{at: s.bundle.AnnotationsAt, message: fmt.Sprintf("the default channel is %s, but the channels are %s", byDefault, strings.Join(channels, ", "))})
			}
		},
	},
	{
		Code: "CSV036", Severity: finding.Warning,
		Title: "a document in manifests/ is no Kubernetes object",
		Cause: "opm and OLM silently skip the document, so its object is not installed. An unquoted name such as y or no, which YAML reads as true or false, is enough",
		Fix:   "set apiVersion, kind and a name, in quotes if YAML reads it as something else, or move the document out of manifests/",
		judge: func(s *single, found func(hit)) {
			for _, at := range s.bundle.Ignored {
				if at.Line > 0 { // files of other kinds, such as notes, do no harm
					found(hit{at: at, message: "the document is no Kubernetes object: it has no kind, or its name is no string"})
				}
			}
		},
	},
	{
		Code: "CSV037", Severity: finding.Warning,
		Title: "an object in the bundle has an unknown field",
		Cause: "OLM applies the object unchanged, and the API server silently drops the field, so it has no effect",
		Fix:   "correct the spelling or the place of the field, or remove it",
		judge: checkObjectFields,
	},
	{
		Code: "CSV039", Severity: finding.Info,
		Title: "a bundle for OpenShift contains an object of a kind that other clusters may not have",
		Cause: "OpenShift has the kind. On another cluster without it the InstallPlan fails",
		Fix:   "nothing to do if the bundle is only for OpenShift; else create the object in the operator where the kind exists",
		judge: checkOptionalAPIs(true),
	},
	{
		Code: "CSV040", Severity: finding.Error,
		Title: "the install strategy is none that OLM knows",
		Cause: "OLM cannot resolve the bundle: the Subscription gets ResolutionFailed (operator-lifecycle-manager v0.46.0, pkg/controller/install/resolver.go)",
		Fix:   "set spec.install.strategy to " + v1alpha1.InstallStrategyNameDeployment,
		judge: ofCSV(func(s *single, found func(hit)) {
			if name := s.spec.Spec.InstallStrategy.StrategyName; name != v1alpha1.InstallStrategyNameDeployment {
				found(s.at([]any{"spec", "install", "strategy"}, "the install strategy is %q", name))
			}
		}),
	},
	{
		Code: "CSV041", Severity: finding.Error,
		Title:      "an owned APIService names a Deployment that the ClusterServiceVersion does not have",
		Cause:      "OLM searches the install strategy for the Deployment, and installs nothing until it is there",
		Fix:        "set deploymentName to the name of the Deployment that serves the API",
		References: []string{"https://olm.operatorframework.io/docs/advanced-tasks/adding-apiservices/"},
		judge: ofCSV(func(s *single, found func(hit)) {
			for i, owned := range s.spec.Spec.APIServiceDefinitions.Owned {
				if s.deployment(owned.DeploymentName) == nil {
					found(s.at([]any{"spec", "apiservicedefinitions", "owned", i, "deploymentName"}, "APIService %s names Deployment %q, which does not exist", owned.Name, owned.DeploymentName))
				}
			}
		}),
	},
}

func or[T any](p *T, otherwise T) T {
	if p != nil {
		return *p
	}
	return otherwise
}

// deployment is one of the CSV's deployments with its place.
type deployment struct {
	v1alpha1.StrategyDeploymentSpec
	index int
}

// path is that of a field of the deployment's spec.
func (d deployment) path(steps ...any) []any {
	return slices.Concat(deploymentsPath, []any{d.index, "spec"}, steps)
}

func perDeployment(look func(*single, deployment, func(hit))) func(*single, func(hit)) {
	return ofCSV(func(s *single, found func(hit)) {
		for i, d := range s.spec.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
			look(s, deployment{d, i}, found)
		}
	})
}

// perContainer is a check of each container that goes on running.
func perContainer(look func(s *single, d deployment, c corev1.Container, path []any, found func(hit))) func(*single, func(hit)) {
	return perDeployment(func(s *single, d deployment, found func(hit)) {
		for i, c := range d.Spec.Template.Spec.Containers {
			look(s, d, c, d.path("template", "spec", "containers", i), found)
		}
	})
}

// removedAPIs are the versions of kinds that OLM accepts in bundles and Kubernetes has given up, and since which release, as
// https://kubernetes.io/docs/reference/using-api/deprecation-guide/ lists them.
var removedAPIs = map[string]string{
	"apiextensions.k8s.io/v1beta1 CustomResourceDefinition": "1.22",
	"rbac.authorization.k8s.io/v1beta1 ClusterRole":         "1.22",
	"rbac.authorization.k8s.io/v1beta1 ClusterRoleBinding":  "1.22",
	"rbac.authorization.k8s.io/v1beta1 Role":                "1.22",
	"rbac.authorization.k8s.io/v1beta1 RoleBinding":         "1.22",
	"rbac.authorization.k8s.io/v1alpha1 ClusterRole":        "1.23",
	"rbac.authorization.k8s.io/v1alpha1 ClusterRoleBinding": "1.23",
	"rbac.authorization.k8s.io/v1alpha1 Role":               "1.23",
	"rbac.authorization.k8s.io/v1alpha1 RoleBinding":        "1.23",
	"scheduling.k8s.io/v1beta1 PriorityClass":               "1.22",
	"scheduling.k8s.io/v1alpha1 PriorityClass":              "1.22",
	"policy/v1beta1 PodDisruptionBudget":                    "1.25",
	"extensions/v1beta1 NetworkPolicy":                      "1.16",
	"autoscaling.k8s.io/v1beta1 VerticalPodAutoscaler":      "1.22",
}

// checkRemovedAPIs leaves alone bundles that are not installed on clusters without the API: OpenShift 4.N is Kubernetes
// 1.(N+13).
func checkRemovedAPIs(s *single, found func(hit)) {
	newest := math.MaxInt
	for _, p := range s.declared {
		if p.Type == "olm.maxOpenShiftVersion" {
			if _, minor, ok := strings.Cut(strings.Trim(string(p.Value), `"`), "."); ok {
				if n, err := strconv.Atoi(minor); err == nil {
					newest = n + 13
				}
			}
		}
	}
	for i := range s.bundle.Manifests {
		m := &s.bundle.Manifests[i]
		since, ok := removedAPIs[m.APIVersion+" "+m.Kind]
		if minor, err := strconv.Atoi(strings.TrimPrefix(since, "1.")); ok && err == nil && minor <= newest {
			found(inManifest(m, []any{"apiVersion"}, "%s %s uses %s, which Kubernetes %s and later do not serve", m.Kind, m.Name, m.APIVersion, since))
		}
	}
}

// optionalGroups are the API groups of kinds that OLM accepts and Kubernetes does not bring along.
var optionalGroups = []string{"monitoring.coreos.com", "console.openshift.io", "autoscaling.k8s.io"}

// forOpenShift reports whether the bundle says that it goes to catalogs of OpenShift, which has the kinds of optionalGroups.
func (s *single) forOpenShift() bool {
	return s.bundle.Annotations["com.redhat.openshift.versions"] != "" || s.spec.Annotations["operators.openshift.io/valid-subscription"] != "" ||
		slices.ContainsFunc(s.declared, func(p bundle.Property) bool { return p.Type == "olm.maxOpenShiftVersion" })
}

// checkOptionalAPIs looks at bundles for OpenShift or at others.
func checkOptionalAPIs(openShift bool) func(*single, func(hit)) {
	return func(s *single, found func(hit)) {
		if s.forOpenShift() == openShift {
			tellOptionalAPIs(s, found)
		}
	}
}

func tellOptionalAPIs(s *single, found func(hit)) {
	required := map[string]bool{}
	for _, p := range s.declared {
		var v apiVersion
		if json.Unmarshal(p.Value, &v) == nil {
			required[v.Group+"/"+v.Kind] = true
		}
	}
	if s.csv != nil && s.failed == nil {
		for _, c := range s.spec.Spec.CustomResourceDefinitions.Required {
			_, group, _ := strings.Cut(c.Name, ".")
			required[group+"/"+c.Kind] = true
		}
	}
	for i := range s.bundle.Manifests {
		m := &s.bundle.Manifests[i]
		group, _, _ := strings.Cut(m.APIVersion, "/")
		if slices.Contains(optionalGroups, group) && bundle.Accepts(m.Kind) && !required[group+"/"+m.Kind] {
			found(inManifest(m, []any{"kind"}, "%s %s has API group %s, which the bundle does not require", m.Kind, m.Name, group))
		}
	}
}

func checkDescriptors(s *single, found func(hit)) {
	for i, owned := range s.spec.Spec.CustomResourceDefinitions.Owned {
		c := s.crd(owned.Name)
		if c == nil || c.spec.Spec.PreserveUnknownFields {
			continue
		}
		schema := c.schema(owned.Version)
		if schema == nil {
			continue
		}
		var missing []string
		var first []any
		look := func(field, root, path string, j int) {
			if !schemaHas(schema, append([]any{root}, pathOf(path)...)) {
				if missing = append(missing, root+"."+path); first == nil {
					first = []any{"spec", "customresourcedefinitions", "owned", i, field, j}
				}
			}
		}
		for j, d := range owned.SpecDescriptors {
			look("specDescriptors", "spec", d.Path, j)
		}
		for j, d := range owned.StatusDescriptors {
			look("statusDescriptors", "status", d.Path, j)
		}
		if len(missing) > 0 {
			found(s.at(first, "descriptors of %s %s name fields that the schema does not have (%d): %s", owned.Kind, owned.Version, len(missing), abridge(missing)))
		}
	}
}

func checkLargeIntegers(s *single, found func(hit)) {
	limit := new(big.Int).Lsh(big.NewInt(1), 53)
	for i := range s.bundle.Manifests {
		m := &s.bundle.Manifests[i]
		walkNumbers(m.JSON, func(path []any, n json.Number) {
			if v, ok := new(big.Int).SetString(n.String(), 10); ok && v.CmpAbs(limit) > 0 {
				found(inManifest(m, path, "the integer %s is above 2^53", n))
			}
		})
	}
}

// walkNumbers calls look with each number of a document that is as long as one beyond 2^53.
func walkNumbers(raw json.RawMessage, look func([]any, json.Number)) {
	if !longNumber(raw) {
		return
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var v any
	if decoder.Decode(&v) != nil {
		return
	}
	var walk func(path []any, v any)
	walk = func(path []any, v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				walk(append(slices.Clip(path), k), v[k])
			}
		case []any:
			for i, item := range v {
				walk(append(slices.Clip(path), i), item)
			}
		case json.Number:
			look(path, v)
		}
	}
	walk(nil, v)
}

// longNumber reports whether raw holds sixteen digits in a row, without which it needs not be read.
func longNumber(raw []byte) bool {
	run := 0
	for _, b := range raw {
		if b < '0' || b > '9' {
			run = 0
			continue
		}
		if run++; run >= 16 {
			return true
		}
	}
	return false
}

// checkObjectFields reads the objects of Kubernetes' own kinds as the API server does; the ClusterServiceVersion and CRDs
// have checks of their own.
func checkObjectFields(s *single, found func(hit)) {
	for i := range s.bundle.Manifests {
		m := &s.bundle.Manifests[i]
		into, err := scheme.Scheme.New(schema.FromAPIVersionAndKind(m.APIVersion, m.Kind))
		if err != nil {
			continue
		}
		problems, err := strictjson.UnmarshalStrict(m.JSON, into)
		if err != nil {
			continue
		}
		for _, problem := range problems {
			if field, ok := strings.CutPrefix(problem.Error(), "unknown field "); ok {
				field = strings.Trim(field, `"`)
				found(inManifest(m, pathOf(field), "%s %s has the unknown field %s", m.Kind, m.Name, field))
			}
		}
	}
}
