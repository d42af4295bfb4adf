package check

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	strictjson "sigs.k8s.io/json"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/nearest"
)

const csvReference = "https://olm.operatorframework.io/docs/concepts/crds/clusterserviceversion/"

// csvChecks look at the ClusterServiceVersion and at what stands beside it.
var csvChecks = []Check{
	{
		Code: "CSV001", Severity: finding.Error,
		Title: "the bundle does not contain exactly one ClusterServiceVersion",
		Cause: "a bundle is one release, and OLM installs it from its only ClusterServiceVersion",
		Fix:   "keep one ClusterServiceVersion in manifests/",
		judge: checkOneCSV,
	},
	{
		Code: "CSV002", Severity: finding.Error,
		Title:      "the ClusterServiceVersion has a field of the wrong type",
		Cause:      "OLM cannot read the ClusterServiceVersion, and the InstallPlan fails",
		Fix:        "write the field with the type that the reference says",
		References: []string{csvReference},
		judge:      checkReadable,
	},
	{
		Code: "CSV003", Severity: finding.Warning,
		Title: "the ClusterServiceVersion has an unknown field",
		Cause: "the API server silently drops the field, so it has no effect",
		Fix:   "correct the spelling of the field, or remove it",
		judge: ofCSV(checkKnownFields),
	},
	{
		Code: "CSV004", Severity: finding.Warning,
		Title: "a YAML mapping contains a key twice",
		Cause: "only the last one has an effect, and a reader of the file can miss it",
		Fix:   "remove one of the two keys",
		judge: checkDuplicateKeys,
	},
	{
		Code: "CSV005", Severity: finding.Warning,
		Title: "a file in manifests/ contains more than one object",
		Cause: "opm reads only the first document of a file (operator-registry v1.74.0, pkg/registry/parse.go), so the other objects are missing from the catalog",
		Fix:   "move each object into its own file",
		judge: checkOneObjectPerFile,
	},
	{
		Code: "CSV006", Severity: finding.Warning,
		Title: "the name of the ClusterServiceVersion is not <package>.v<version>",
		Cause: "tools and users take the version from the name",
		Fix:   "name it after the package and spec.version; write '-' for the '+' of build metadata, which names cannot contain",
		judge: ofCSV(checkName),
	},
	{
		Code: "CSV007", Severity: finding.Error,
		Title: "spec.replaces or spec.skips names the bundle itself or a newer one, or is no name",
		Cause: "a channel that is built from the bundle has a cycle or a downgrade, or lacks the edge",
		Fix:   "name the previous release",
		judge: ofCSV(checkReplaces),
	},
	{
		Code: "CSV008", Severity: finding.Error,
		Title: "olm.skipRange is no valid version range",
		Cause: "OLM ignores the range, so the upgrades that it allows do not exist, and opm refuses a catalog with it. A range that covers the bundle's own version is GRA009",
		Fix:   "write it as '>=1.0.0 <1.2.0', with the bundle's own version as the upper bound",
		judge: ofCSV(checkSkipRange),
	},
	{
		Code: "CSV009", Severity: finding.Error,
		Title: "an owned CRD or version is missing from the bundle, or is not served",
		Cause: "OLM waits for the requirement forever: the ClusterServiceVersion stays Pending",
		Fix:   "list only versions that a CRD of the bundle serves in spec.customresourcedefinitions.owned",
		judge: ofCSV(checkOwnedCRDs),
	},
	{
		Code: "CSV010", Severity: finding.Error,
		Title: "the ClusterServiceVersion does not own a CRD of the bundle",
		Cause: "the InstallPlan applies the CRD, but OLM does not know that the operator provides it: it creates no roles for users, sets up no conversion and does not refuse a second owner",
		Fix:   "list it in spec.customresourcedefinitions.owned",
		judge: ofCSV(checkUnownedCRDs),
	},
	{
		Code: "CSV011", Severity: finding.Error,
		Title: "the bundle contains a kind that OLM does not support",
		Cause: "the InstallPlan fails: 'bundle object … is not supported' (operator-lifecycle-manager v0.46.0, pkg/controller/operators/catalog/operator.go)",
		Fix:   "create the object in the operator, or ship it separately from the bundle",
		judge: checkAcceptedKinds,
	},
	{
		Code: "CSV012", Severity: finding.Error,
		Title: "the ClusterServiceVersion supports no install mode",
		Cause: "OLM refuses the ClusterServiceVersion with every OperatorGroup",
		Fix:   "set supported: true for at least one mode in spec.installModes",
		judge: ofCSV(checkInstallModes),
	},
	{
		Code: "CSV013", Severity: finding.Error,
		Title: "spec.minKubeVersion is no semantic version",
		Cause: "OLM treats the requirement as not met: the ClusterServiceVersion stays Pending",
		Fix:   "write it as 1.28.0",
		judge: ofCSV(checkMinKubeVersion),
	},
	{
		Code: "CSV014", Severity: finding.Error,
		Title: "alm-examples is no JSON list of objects",
		Cause: "consoles offer no sample, and OperatorHub refuses the bundle",
		Fix:   "write a JSON list, for example with 'olmkit bundle generate' from the samples",
		judge: ofCSV(checkExamplesJSON),
	},
	{
		Code: "CSV015", Severity: finding.Warning,
		Title: "an alm-example is invalid under the schema or a CEL rule of its CRD",
		Cause: "the API server rejects the sample that consoles offer to users",
		Fix:   "correct the sample",
		judge: ofCSV(checkExamplesFit),
	},
	{
		Code: "CSV016", Severity: finding.Info,
		Title: "an owned kind has no alm-example",
		Cause: "consoles offer no sample for a new object",
		Fix:   "add a sample of the kind to alm-examples",
		judge: ofCSV(checkExamplesThere),
	},
	{
		Code: "CSV017", Severity: finding.Error,
		Title: "the selector of a Deployment does not match the labels of its pods",
		Cause: "the API server rejects the Deployment",
		Fix:   "add the labels of the selector to the pod template",
		judge: ofCSV(checkSelectors),
	},
	{
		Code: "CSV018", Severity: finding.Error,
		Title: "the ClusterServiceVersion has no Deployment",
		Cause: "OLM installs no operator without a Deployment",
		Fix:   "add the Deployment to spec.install.spec.deployments",
		judge: ofCSV(checkDeployments),
	},
	{
		Code: "CSV019", Severity: finding.Info,
		Title: "a container has no readiness probe",
		Cause: "OLM treats an operator as installed when its Deployment is available; without a probe it is available before the operator works",
		Fix:   "add a readinessProbe to the container",
		judge: ofCSV(checkProbes),
	},
	{
		Code: "CSV020", Severity: finding.Error,
		Title: "metadata/annotations.yaml lacks an annotation that a bundle needs",
		Cause: "opm cannot render the bundle, and OLM cannot unpack it",
		Fix:   "set the annotations, for example with 'olmkit bundle generate'",
		judge: checkAnnotations,
	},
	{
		Code: "CSV021", Severity: finding.Warning,
		Title: "the bundle is too large for a ConfigMap",
		Cause: "OLM unpacks a bundle image into a compressed ConfigMap, which holds at most 1 MiB",
		Fix:   "shorten the descriptions in the CRDs' schemas, or split the package",
		judge: checkSize,
	},
	{
		Code: "CSV022", Severity: finding.Warning,
		Title: "the bundle contains a ServiceAccount that OLM creates itself, and that no Deployment uses",
		Cause: "OLM creates every ServiceAccount that permissions name. With the bundle's ServiceAccount there are two sources of the object, and each sets its own owner references",
		Fix:   "remove the ServiceAccount from the bundle",
		judge: ofCSV(checkServiceAccounts),
	},
}

func checkOneCSV(s *single, found func(hit)) {
	if s.csv == nil {
		found(hit{at: finding.Location{File: s.bundle.Dir}, message: "manifests/ contains no ClusterServiceVersion"})
		return
	}
	for i := range s.bundle.Manifests {
		if m := &s.bundle.Manifests[i]; m.Kind == bundle.KindCSV && m.At != s.csv.At {
			found(inManifest(m, nil, "second ClusterServiceVersion %s, in addition to %s at %s", m.Name, s.csv.Name, s.csv.At))
		}
	}
}

func checkReadable(s *single, found func(hit)) {
	if s.csv == nil || s.failed == nil {
		return
	}
	path := []any{}
	var wrong *json.UnmarshalTypeError
	if errors.As(s.failed, &wrong) {
		path = pathOf(wrong.Field)
	}
	found(s.at(path, "ClusterServiceVersion %s cannot be read: %v", s.csv.Name, s.failed))
}

// fieldOfAPIService are fields that the description of an API service has and that of a CRD has not. They are written by
// mistake in many published bundles, and what they say of a CRD is of no use to anyone.
var fieldOfAPIService = regexp.MustCompile(`^spec\.customresourcedefinitions\.(owned|required)\[\d+\]\.(group|deploymentName|containerPort)$`)

func checkKnownFields(s *single, found func(hit)) {
	var into v1alpha1.ClusterServiceVersion
	problems, err := strictjson.UnmarshalStrict(s.csv.JSON, &into)
	if err != nil {
		return
	}
	for _, problem := range problems {
		field, ok := strings.CutPrefix(problem.Error(), "unknown field ")
		if !ok {
			continue
		}
		field = strings.Trim(field, `"`)
		if field == "status" || strings.HasPrefix(field, "status.") || fieldOfAPIService.MatchString(field) {
			continue
		}
		path := pathOf(field)
		h := s.at(path, "ClusterServiceVersion %s has the unknown field %s", s.csv.Name, field)
		if readInAnyCase(s.csv.JSON, path) {
			h.cause = "OLM v0 reads the field, since it does not tell capital letters from small ones; what does, such as kubectl and consoles, does not see it"
			h.fix = "write the name of the field with the letters that the reference has"
		}
		found(h)
	}
}

// readInAnyCase reports whether OLM v0 knows the field at path of a ClusterServiceVersion by its letters, small or capital: it reads manifests with encoding/json
// (operator-lifecycle-manager v0.46.0, pkg/controller/registry/resolver/steps.go).
func readInAnyCase(csv json.RawMessage, path []any) bool {
	var value any
	if json.Unmarshal(csv, &value) != nil {
		return false
	}
	value = onlyAt(value, path)
	written, err := json.Marshal(value)
	if err != nil {
		return false
	}
	decoder := json.NewDecoder(bytes.NewReader(written))
	decoder.DisallowUnknownFields()
	return decoder.Decode(&v1alpha1.ClusterServiceVersion{}) == nil
}

// onlyAt is value with nothing but what is at path, in lists of one item.
func onlyAt(value any, path []any) any {
	if len(path) == 0 {
		return value
	}
	switch inner := value.(type) {
	case map[string]any:
		if name, ok := path[0].(string); ok {
			return map[string]any{name: onlyAt(inner[name], path[1:])}
		}
	case []any:
		if i, ok := path[0].(int); ok && i < len(inner) {
			return []any{onlyAt(inner[i], path[1:])}
		}
	}
	return nil
}

func checkDuplicateKeys(s *single, found func(hit)) {
	for i := range s.bundle.Manifests {
		m := &s.bundle.Manifests[i]
		for _, twice := range m.Document.Duplicates() {
			h := inManifest(m, nil, "the mapping contains the key %q twice", twice.Key)
			h.at = twice.At
			found(h)
		}
	}
}

func checkOneObjectPerFile(s *single, found func(hit)) {
	for i := range s.bundle.Manifests {
		if m := &s.bundle.Manifests[i]; m.Index > 0 {
			found(inManifest(m, nil, "%s %s is document %d of %s", m.Kind, m.Name, m.Index+1, m.File))
		}
	}
}

// checkName leaves to GRA013 the names in a catalog that say another version, and to API001 those of bundles with a release.
func checkName(s *single, found func(hit)) {
	version, name := s.spec.Spec.Version.Version, s.csv.Name
	switch {
	case version.EQ(semver.Version{}):
		found(s.at([]any{"spec", "version"}, "spec.version is missing"))
	case len(s.spec.Spec.Release.Release) > 0:
	case namesAnother(name, version):
		if !s.inCatalog {
			found(s.at([]any{"metadata", "name"}, "the name %s does not say version %s", name, version))
		}
	case !saysVersion(name) && !strings.HasSuffix(name, versionForName(version)):
		found(s.at([]any{"metadata", "name"}, "the name %s does not say version %s", name, version))
	}
}

// saysVersion reports whether a semantic version can be read off a name.
func saysVersion(name string) bool {
	m := versionInName.FindStringSubmatch(name)
	if m == nil {
		return false
	}
	_, err := semver.Parse(m[2])
	return err == nil
}

// versionOf returns the version in a CSV's name.
func versionOf(name string) (semver.Version, bool) {
	_, version, ok := strings.Cut(name, ".")
	if !ok {
		return semver.Version{}, false
	}
	v, err := semver.Parse(strings.TrimPrefix(version, "v"))
	return v, err == nil
}

func checkReplaces(s *single, found func(hit)) {
	own := s.spec.Spec.Version.Version
	check := func(path []any, verb, name string) {
		if name == s.csv.Name {
			found(s.at(path, "%s %s itself", name, verb))
			return
		}
		if wrong := utilvalidation.IsDNS1123Subdomain(name); len(wrong) > 0 {
			found(s.at(path, "%s %s %q, which is no name of a ClusterServiceVersion", s.csv.Name, verb, name))
			return
		}
		if other, ok := versionOf(name); ok && other.GT(own) && verb == "replaces" {
			found(s.at(path, "%s %s %s, a newer version", s.csv.Name, verb, name))
		}
	}
	if name := s.spec.Spec.Replaces; name != "" {
		check([]any{"spec", "replaces"}, "replaces", name)
	}
	for i, name := range s.spec.Spec.Skips {
		check([]any{"spec", "skips", i}, "skips", name)
	}
}

var skipRangePath = []any{"metadata", "annotations", "olm.skipRange"}

func checkSkipRange(s *single, found func(hit)) {
	written := s.spec.Annotations["olm.skipRange"]
	if _, err := semver.ParseRange(written); err != nil && written != "" {
		found(s.at(skipRangePath, "olm.skipRange %q cannot be read: %v", written, err))
	}
}

// checkOwnRange is GRA009 of a bundle for itself. In a catalog the channels' ranges count, whatever the bundle says.
func checkOwnRange(s *single, found func(hit)) {
	own, written := s.spec.Spec.Version.Version, s.spec.Annotations["olm.skipRange"]
	if contains, err := semver.ParseRange(written); err == nil && written != "" && contains(own) {
		found(s.at(skipRangePath, "olm.skipRange %q covers the bundle's own version %s", written, own))
	}
}

func checkOwnedCRDs(s *single, found func(hit)) {
	for i, owned := range s.spec.Spec.CustomResourceDefinitions.Owned {
		path := []any{"spec", "customresourcedefinitions", "owned", i}
		c := s.crd(owned.Name)
		if c == nil {
			h := s.at(path, "the bundle owns CRD %s, but does not contain it", owned.Name)
			h.cause = "unless the cluster has the CRD already, as after an upgrade, OLM waits for it forever: the ClusterServiceVersion stays Pending"
			h.fix = "add the CRD to manifests/, or list under spec.customresourcedefinitions.required what another package brings"
			found(h)
			continue
		}
		at := slices.IndexFunc(c.spec.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == owned.Version })
		switch {
		case at < 0:
			found(s.at(path, "the bundle owns version %s of CRD %s, which does not have that version", owned.Version, owned.Name))
		case !c.spec.Spec.Versions[at].Served:
			found(s.at(path, "the bundle owns version %s of CRD %s, which does not serve that version", owned.Version, owned.Name))
		case c.spec.Spec.Names.Kind != owned.Kind:
			found(s.at(path, "the bundle owns CRD %s with kind %s, but the CRD has kind %s", owned.Name, owned.Kind, c.spec.Spec.Names.Kind))
		}
	}
}

func checkUnownedCRDs(s *single, found func(hit)) {
	for _, c := range s.crds {
		if !s.spec.OwnsCRD(c.Name) {
			found(inManifest(c.Manifest, nil, "CRD %s is not in spec.customresourcedefinitions.owned of %s", c.Name, s.csv.Name))
		}
	}
}

func checkAcceptedKinds(s *single, found func(hit)) {
	for i := range s.bundle.Manifests {
		m := &s.bundle.Manifests[i]
		if m.Kind != bundle.KindCSV && m.Kind != "CustomResourceDefinition" && !bundle.Accepts(m.Kind) {
			found(inManifest(m, []any{"kind"}, "OLM does not support kind %s in a bundle", m.Kind))
		}
	}
}

// installModes are those that OLM knows; it passes over others.
var installModes = []string{
	string(v1alpha1.InstallModeTypeAllNamespaces), string(v1alpha1.InstallModeTypeMultiNamespace),
	string(v1alpha1.InstallModeTypeOwnNamespace), string(v1alpha1.InstallModeTypeSingleNamespace),
}

func checkInstallModes(s *single, found func(hit)) {
	var unknown []string
	for _, m := range s.spec.Spec.InstallModes {
		known := slices.Contains(installModes, string(m.Type))
		switch {
		case m.Supported && known:
			return
		case m.Supported:
			unknown = append(unknown, string(m.Type))
		}
	}
	message := "spec.installModes supports no mode"
	if len(s.spec.Spec.InstallModes) == 0 {
		message = "spec.installModes is missing"
	}
	if len(unknown) > 0 {
		message += fmt.Sprintf(" that OLM knows; %s may mean %s", strings.Join(unknown, ", "), nearest.Names(unknown[0], installModes, 1)[0])
	}
	found(s.at([]any{"spec", "installModes"}, "%s", message))
}

func checkMinKubeVersion(s *single, found func(hit)) {
	if v := s.spec.Spec.MinKubeVersion; v != "" {
		// As operator-lifecycle-manager v0.46.0 reads it, pkg/controller/operators/olm/requirements.go.
		if _, err := semver.Parse(strings.TrimPrefix(v, "v")); err != nil {
			found(s.at([]any{"spec", "minKubeVersion"}, "minKubeVersion %q is no semantic version: %v", v, err))
		}
	}
}

var examplesPath = []any{"metadata", "annotations", "alm-examples"}

// examples are the objects of alm-examples; none if they cannot be read.
func (s *single) examples() ([]json.RawMessage, error) {
	written := strings.TrimSpace(s.spec.Annotations["alm-examples"])
	if written == "" {
		return nil, nil
	}
	var list []json.RawMessage
	err := json.Unmarshal([]byte(written), &list)
	return list, err
}

func checkExamplesJSON(s *single, found func(hit)) {
	list, err := s.examples()
	if err != nil {
		found(s.at(examplesPath, "alm-examples: %v", err))
		return
	}
	for i, raw := range list {
		var head metav1.TypeMeta
		if json.Unmarshal(raw, &head) != nil || head.Kind == "" || head.APIVersion == "" {
			found(s.at(examplesPath, "item %d of alm-examples is no Kubernetes object", i+1))
		}
	}
}

func checkExamplesFit(s *single, found func(hit)) {
	list, _ := s.examples()
	for _, raw := range list {
		var head metav1.PartialObjectMetadata
		if json.Unmarshal(raw, &head) != nil {
			continue
		}
		group, version, _ := strings.Cut(head.APIVersion, "/")
		for _, c := range s.crds {
			if c.spec.Spec.Group != group || c.spec.Spec.Names.Kind != head.Kind {
				continue
			}
			at := slices.IndexFunc(c.spec.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version && v.Served })
			if at < 0 {
				found(s.at(examplesPath, "the sample %s %s uses a version that CRD %s does not serve", head.APIVersion, head.Name, c.Name))
				continue
			}
			if problems := c.read.validate(raw, at); len(problems) > 0 {
				found(s.at(examplesPath, "the sample %s/%s %s is invalid: %s", head.Kind, head.Name, head.APIVersion, sentences(problems)))
			}
		}
	}
}

// validate returns what the API server has against the object under the version's schema, once it has filled in defaults
// and taken out nulls where the schema knows none, or what the CEL rules have against it where the schema has nothing
// (apiextensions-apiserver v0.36.3, pkg/apiserver/customresource_handler.go and pkg/registry/customresource/strategy.go).
func (c *crd) validate(raw json.RawMessage, version int) []string {
	object := c.defaulted(raw, version)
	if problems := c.misfits(object, version); len(problems) > 0 {
		return problems
	}
	return c.violations(object, nil, version)
}

// forms returns a schema in the forms in which the API server works with it, or nil where it would not: a schema with
// references, for one, would end the validation in a panic.
func forms(schema *apiextensionsv1.JSONSchemaProps) (*apiextensions.JSONSchemaProps, *structuralschema.Structural) {
	if schema == nil {
		return nil, nil
	}
	converted := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(schema, converted, nil); err != nil {
		return nil, nil
	}
	structural, err := structuralschema.NewStructural(converted)
	if err != nil {
		return nil, nil
	}
	return converted, structural
}

// defaulted returns what the API server makes of a new object before it validates it; nil for what is no JSON.
func (c *crd) defaulted(raw json.RawMessage, version int) any {
	var object any
	if err := strictjson.UnmarshalCaseSensitivePreserveInts(raw, &object); err != nil {
		return nil
	}
	subresources := c.Spec.Versions[version].Subresources
	if fields, ok := object.(map[string]any); ok && subresources != nil && subresources.Status != nil {
		delete(fields, "status")
	}
	if _, structural := forms(c.schemaFor(object, version)); structural != nil {
		defaulting.PruneNonNullableNullsWithoutDefaults(object, structural)
		defaulting.Default(object, structural)
	}
	return object
}

// misfits returns what keeps an object from fitting the schema of a version.
func (c *crd) misfits(object any, version int) []string {
	if object == nil {
		return nil
	}
	schema, _ := forms(c.schemaFor(object, version))
	if schema == nil {
		return nil
	}
	validator, _, err := validation.NewSchemaValidator(schema)
	if err != nil {
		return nil
	}
	var problems []string
	for _, problem := range validation.ValidateCustomResource(nil, object, validator) {
		problems = append(problems, problem.Error())
	}
	return problems
}

func checkExamplesThere(s *single, found func(hit)) {
	list, err := s.examples()
	if err != nil {
		return
	}
	shown := map[string]bool{}
	for _, raw := range list {
		var head metav1.TypeMeta
		if json.Unmarshal(raw, &head) == nil {
			group, _, _ := strings.Cut(head.APIVersion, "/")
			shown[group+"/"+head.Kind] = true
		}
	}
	for i, owned := range s.spec.Spec.CustomResourceDefinitions.Owned {
		_, group, _ := strings.Cut(owned.Name, ".")
		if key := group + "/" + owned.Kind; !shown[key] {
			shown[key] = true
			found(s.at([]any{"spec", "customresourcedefinitions", "owned", i}, "alm-examples has no sample of kind %s", owned.Kind))
		}
	}
}

var deploymentsPath = []any{"spec", "install", "spec", "deployments"}

func checkSelectors(s *single, found func(hit)) {
	for i, d := range s.spec.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
		if err != nil || selector.Empty() || !selector.Matches(labels.Set(d.Spec.Template.Labels)) {
			found(s.at(append(slices.Clone(deploymentsPath), i, "spec", "selector"), "the selector of Deployment %s does not match the labels of its pods", d.Name))
		}
	}
}

func checkDeployments(s *single, found func(hit)) {
	if len(s.spec.Spec.InstallStrategy.StrategySpec.DeploymentSpecs) == 0 {
		found(s.at([]any{"spec", "install"}, "ClusterServiceVersion %s has no Deployment", s.csv.Name))
	}
}

func checkProbes(s *single, found func(hit)) {
	for i, d := range s.spec.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		ready := slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return c.ReadinessProbe != nil })
		if !ready {
			found(s.at(append(slices.Clone(deploymentsPath), i), "no container of Deployment %s has a readiness probe", d.Name))
		}
	}
}

func checkAnnotations(s *single, found func(hit)) {
	at := s.bundle.AnnotationsAt
	if at.File == "" {
		found(hit{at: finding.Location{File: s.bundle.Dir + "/metadata"}, message: "no file in metadata/ has annotations"})
		return
	}
	for _, key := range []string{bundle.AnnotationPackage, bundle.AnnotationMediaType, bundle.AnnotationManifests, bundle.AnnotationMetadata} {
		if s.bundle.Annotations[key] == "" {
			found(hit{at: at, message: "the annotation " + key + " is missing"})
		}
	}
	if kind := s.bundle.Annotations[bundle.AnnotationMediaType]; kind != "" && kind != "registry+v1" {
		found(hit{at: at, message: fmt.Sprintf("the media type is %q, but OLM installs only registry+v1", kind)})
	}
}

func checkSize(s *single, found func(hit)) {
	const limit = 1 << 20 // what etcd and the API server take as one ConfigMap's data
	// What cannot be compressed grows, by 5 bytes in 16 KiB and by what frames it.
	atMost := 0
	for _, m := range s.bundle.Manifests {
		atMost += len(m.JSON) + len(m.JSON)/1024 + 64
	}
	if atMost*4/3 <= limit {
		return
	}
	size := counter(0)
	for _, m := range s.bundle.Manifests {
		// OLM compresses each manifest for itself (operator-lifecycle-manager v0.46.0, pkg/configmap/configmap_writer.go).
		packed := gzip.NewWriter(&size)
		if _, err := packed.Write(m.JSON); err != nil || packed.Close() != nil {
			return
		}
	}
	// The content is base64, a third more.
	if total := int(size) * 4 / 3; total > limit {
		found(hit{at: finding.Location{File: s.bundle.Dir}, message: fmt.Sprintf("the compressed manifests have a size of %d KiB", total>>10)})
	}
}

type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// checkServiceAccounts leaves to API001 the accounts that Deployments use: upstream's validators refuse those.
func checkServiceAccounts(s *single, found func(hit)) {
	strategy := s.spec.Spec.InstallStrategy.StrategySpec
	made := map[string]bool{}
	for _, p := range slices.Concat(strategy.Permissions, strategy.ClusterPermissions) {
		made[p.ServiceAccountName] = true
	}
	for _, d := range strategy.DeploymentSpecs {
		delete(made, d.Spec.Template.Spec.ServiceAccountName)
	}
	for i := range s.bundle.Manifests {
		if m := &s.bundle.Manifests[i]; m.Kind == "ServiceAccount" && made[m.Name] {
			found(inManifest(m, nil, "the bundle contains ServiceAccount %s, and permissions of the ClusterServiceVersion name it", m.Name))
		}
	}
}
