package check

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/finding"
)

// sound is a bundle that no check has a warning or an error for.
const sound = "testdata/sound"

const (
	soundCSV = "manifests/cafe-operator.clusterserviceversion.yaml"
	soundCRD = "manifests/cafe.example.com_coffees.yaml"
)

func soundFiles(t *testing.T) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	err := fs.WalkDir(os.DirFS(sound), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(sound + "/" + name)
		files[name] = &fstest.MapFile{Data: data}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func judge(t *testing.T, files fs.FS) []finding.Finding {
	t.Helper()
	b, err := bundle.ReadFS(files, "cafe")
	if err != nil {
		t.Fatal(err)
	}
	b.Labels = soundLabels
	return Bundle(b, soundRegistry)
}

// soundLabels are of the sound bundle's image.
var soundLabels = map[string]string{
	bundle.AnnotationMediaType: "registry+v1", bundle.AnnotationManifests: "manifests/", bundle.AnnotationMetadata: "metadata/",
	bundle.AnnotationPackage: "cafe-operator", bundle.AnnotationChannels: "stable,alpha", bundle.AnnotationDefaultChannel: "stable",
}

// soundRegistry has the sound bundle's images, and is asked for one that it does not have.
var soundRegistry = Registry{
	"registry.example.com/cafe/prepare@sha256:" + strings.Repeat("1", 64):  {"linux/amd64"},
	"registry.example.com/cafe/operator@sha256:" + strings.Repeat("2", 64): {"linux/amd64"},
	"registry.example.com/cafe/cup@sha256:" + strings.Repeat("3", 64):      {"linux/amd64"},
	"registry.example.com/cafe/operator:1.2.0":                             nil,
}

func TestSoundBundle(t *testing.T) {
	for _, f := range judge(t, soundFiles(t)) {
		if f.Severity.AtLeast(finding.Warning) {
			t.Errorf("%s %s: %s", f.Code, f.Location, f.Message)
		}
	}
}

// TestSoundDependencies: what dependencies.yaml and properties.yaml may hold is no mistake.
func TestSoundDependencies(t *testing.T) {
	files := soundFiles(t)
	for _, c := range []change{
		inDependencies("{type: olm.package, value: {packageName: beans, version: '>=1.0.0 <2.0.0'}}\n- {type: olm.gvk, value: {group: beans.example.com, kind: Bean, version: v1}}\n" +
			"- {type: olm.constraint, value: {failureMessage: beans, all: {constraints: [{package: {packageName: beans, versionRange: '>1.0.0'}}]}}}"),
		add("metadata/properties.yaml", "properties:\n- {type: olm.maxOpenShiftVersion, value: '4.20'}\n- {type: example.com/roast, value: dark}\n"),
	} {
		c.apply(t, files)
	}
	for _, f := range judge(t, files) {
		if f.Severity.AtLeast(finding.Warning) {
			t.Errorf("%s %s: %s", f.Code, f.Location, f.Message)
		}
	}
}

// change is what an example changes of the sound bundle: in a file the text old to new; with an empty old new is a file, or
// follows what is in the file; with both empty the file is removed.
type change struct {
	file, old, new string
	also           *change
}

func inCSV(old, new string) change         { return change{soundCSV, old, new, nil} }
func inCRD(old, new string) change         { return change{soundCRD, old, new, nil} }
func inAnnotations(old, new string) change { return change{"metadata/annotations.yaml", old, new, nil} }
func add(file, content string) change      { return change{file, "", content, nil} }

func both(a, b change) change {
	if a.also != nil {
		inner := both(*a.also, b)
		a.also = &inner
		return a
	}
	a.also = &b
	return a
}

const dependencyFile = "metadata/dependencies.yaml"

// inDependencies is a bundle with one dependency.
func inDependencies(one string) change { return add(dependencyFile, "dependencies:\n- "+one+"\n") }

func (c change) apply(t *testing.T, files fstest.MapFS) {
	t.Helper()
	before := ""
	if old := files[c.file]; old != nil {
		before = string(old.Data)
	}
	switch {
	case c.old == "" && c.new == "":
		delete(files, c.file)
	case c.old == "":
		files[c.file] = &fstest.MapFile{Data: []byte(before + c.new)}
	default:
		after := strings.Replace(before, c.old, c.new, 1)
		if before == after {
			t.Fatalf("%s does not hold %q", c.file, c.old)
		}
		files[c.file] = &fstest.MapFile{Data: []byte(after)}
	}
	if c.also != nil {
		c.also.apply(t, files)
	}
}

// bundleExamples have for each check the smallest change to a sound bundle that it must find, and where.
var bundleExamples = []struct {
	code, name string
	change     change
	file       string // where it must be found; soundCSV when empty
}{
	{"API001", "a related image that is none", inCSV("image: registry.example.com/cafe/cup@sha256:3333333333333333333333333333333333333333333333333333333333333333", "image: Registry/cup@sha256:12"), ""},
	{"API002", "no lowest version of Kubernetes", inCSV("  minKubeVersion: 1.28.0\n", ""), ""},
	{"API003", "a level of capabilities that is none", inCSV("capabilities: Seamless Upgrades", "capabilities: Perfect"), ""},
	{"OLM002", "an owned APIService", inCSV("  customresourcedefinitions:\n", "  apiservicedefinitions:\n    owned:\n    - {name: cups, group: cafe.example.com, version: v1, kind: Cup}\n  customresourcedefinitions:\n"), ""},
	{"OLM003", "no AllNamespaces", inCSV("type: AllNamespaces\n    supported: true", "type: AllNamespaces\n    supported: false"), ""},
	{"OLM009", "a webhook for ClusterExtensions", inCSV("      apiGroups:\n      - cafe.example.com", "      apiGroups:\n      - olm.operatorframework.io"), ""},
	{"CSV001", "no CSV", change{file: soundCSV}, "."},
	{"CSV001", "two CSVs", add("manifests/z.yaml", "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: other}\n"), "manifests/z.yaml"},
	{"CSV002", "a list that is a string", inCSV("  installModes:\n", "  keywords: coffee\n  installModes:\n"), ""},
	{"CSV003", "a misspelt field", inCSV("  webhookdefinitions:", "  webhookDefinitons:"), ""},
	{"CSV003", "a misspelt field deep down", inCSV("                ports:", "                prots:"), ""},
	{"CSV004", "a key twice", inCSV("  maturity: alpha\n", "  maturity: alpha\n  maturity: beta\n"), ""},
	{"CSV005", "a second document", add("manifests/cafe-metrics_v1_service.yaml", "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: second}\n"), "manifests/cafe-metrics_v1_service.yaml"},
	{"CSV006", "a name of another version", inCSV("name: cafe-operator.v1.2.0", "name: cafe-operator.v1.3.0"), ""},
	{"CSV006", "no version", inCSV("  version: 1.2.0\n", ""), ""},
	{"CSV007", "replaces itself", inCSV("replaces: cafe-operator.v1.1.0", "replaces: cafe-operator.v1.2.0"), ""},
	{"CSV007", "replaces a newer one", inCSV("replaces: cafe-operator.v1.1.0", "replaces: cafe-operator.v2.0.0"), ""},
	{"CSV007", "skips itself", inCSV("- cafe-operator.v1.1.1", "- cafe-operator.v1.2.0"), ""},
	{"CSV008", "a range that is none", inCSV("'>=1.0.0 <1.2.0'", "<v1.2.0"), ""},
	{"GRA009", "a range over itself", inCSV("'>=1.0.0 <1.2.0'", "'>=1.0.0'"), ""},
	{"CSV009", "an owned CRD that is not there", inCSV("name: coffees.cafe.example.com\n      version: v1beta1", "name: teas.cafe.example.com\n      version: v1beta1"), ""},
	{"CSV009", "an owned version that is not served", inCSV("version: v1beta1\n", "version: v1alpha1\n"), ""},
	{"CSV010", "a CRD that is not owned", inCRD("name: coffees.cafe.example.com", "name: teas.cafe.example.com"), soundCRD},
	{"CSV011", "a kind that OLM refuses", add("manifests/p.yaml", "apiVersion: monitoring.coreos.com/v1\nkind: PodMonitor\nmetadata: {name: p}\n"), "manifests/p.yaml"},
	{"CSV012", "no install mode", inCSV("- type: AllNamespaces\n    supported: true", "- type: AllNamespaces\n    supported: false"), ""},
	{"CSV013", "a Kubernetes version that is none", inCSV("minKubeVersion: 1.28.0", "minKubeVersion: '1.28'"), ""},
	{"CSV014", "samples that are no JSON", inCSV("          \"kind\": \"Coffee\",", "          \"kind\": Coffee,"), ""},
	{"CSV014", "a sample that is no object", inCSV("          \"kind\": \"Coffee\",\n", ""), ""},
	{"CSV015", "a sample that violates the schema", inCSV(`"answer": "yes"`, `"answer": "maybe"`), ""},
	{"CSV015", "a sample of a version that is not served", inCSV(`"cafe.example.com/v1beta1"`, `"cafe.example.com/v1alpha1"`), ""},
	{"CSV016", "a kind without a sample", inCSV("      kind: Coffee\n      displayName: Coffee", "      kind: Tea\n      displayName: Coffee"), ""},
	{"CSV017", "a selector without a match", inCSV("                control-plane: controller-manager", "                control-plane: another"), ""},
	{"CSV018", "no deployment", inCSV("      deployments:", "      nothing:"), ""},
	{"CSV019", "no readiness probe", inCSV("                readinessProbe:", "                livenessProbe:"), ""},
	{"CSV020", "no package", inAnnotations(bundle.AnnotationPackage+": cafe-operator", "x: y"), "metadata/annotations.yaml"},
	{"CSV020", "another media type", inAnnotations("registry+v1", "helm"), "metadata/annotations.yaml"},
	{"CSV022", "a ServiceAccount that OLM makes", both(inCSV("          - delete\n        serviceAccountName: cafe-controller-manager", "          - delete\n        serviceAccountName: other"),
		add("manifests/sa.yaml", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: other}\n")), "manifests/sa.yaml"},
	{"API001", "a ServiceAccount that OLM makes for a Deployment", add("manifests/sa.yaml", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: cafe-controller-manager}\n"), "manifests/sa.yaml"},
	{"IMG001", "an image that is not listed", inCSV("operator@sha256:22", "operator@sha256:23"), ""},
	{"IMG002", "a tag", inCSV("operator@sha256:2222222222222222222222222222222222222222222222222222222222222222", "operator:1.2.0"), ""},
	{"IMG003", "no tag", inCSV("registry.example.com/cafe/operator@sha256:2222222222222222222222222222222222222222222222222222222222222222", "localhost:5000/operator"), ""},
	{"RBAC001", "an account that nobody makes", inCSV("serviceAccountName: cafe-controller-manager\n              securityContext", "serviceAccountName: nobody\n              securityContext"), ""},
	{"RBAC002", "an account that nobody uses", inCSV("          - delete\n        serviceAccountName: cafe-controller-manager", "          - delete\n        serviceAccountName: other"), ""},
	{"RBAC003", "an owned kind without a rule", inCSV("          - coffees\n", "          - teas\n"), ""},
	{"RBAC004", "everything", inCSV("        - apiGroups:\n          - apps\n          resources:\n          - deployments\n          verbs:", "        - apiGroups:\n          - '*'\n          resources:\n          - '*'\n          verbs:\n          - '*'"), ""},
	{"RBAC005", "rights to raise rights", inCSV("          - delete\n", "          - escalate\n"), ""},
	{"RBAC006", "all Secrets", inCSV("          - apps\n          resources:\n          - deployments", "          - ''\n          resources:\n          - secrets"), ""},
	{"RBAC007", "cluster-scoped in a namespace", both(inCSV("          - configmaps", "          - nodes"),
		inCSV("- type: OwnNamespace\n    supported: false", "- type: OwnNamespace\n    supported: true")), ""},
	{"WHK001", "a deployment there is not", inCSV("deploymentName: cafe-controller-manager", "deploymentName: other"), ""},
	{"WHK002", "a long name", inCSV("deploymentName: cafe-controller-manager", "deploymentName: "+strings.Repeat("a", 56)), ""},
	{"WHK003", "a port that no container has", inCSV("targetPort: 9443", "targetPort: https"), ""},
	{"WHK004", "a name twice", inCSV("generateName: coffee-2.kb.io", "generateName: coffee.kb.io"), ""},
	{"WHK005", "another install mode", inCSV("- type: OwnNamespace\n    supported: false", "- type: OwnNamespace\n    supported: true"), ""},
	{"WHK005", "a conversion for nobody", inCSV("    conversionCRDs:\n    - coffees.cafe.example.com\n", ""), ""},
	{"WHK005", "a conversion of what is not owned", inCSV("    conversionCRDs:\n    - coffees", "    conversionCRDs:\n    - teas"), ""},
	{"WHK005", "unknown fields are kept", inCRD("  scope: Namespaced", "  preserveUnknownFields: true\n  scope: Namespaced"), soundCRD},
	{"WHK006", "a conversion that is not defined", inCSV("type: ConversionWebhook", "type: ValidatingAdmissionWebhook"), soundCRD},
	{"WHK007", "a CRD without its conversion", inCRD("    strategy: Webhook", "    strategy: None"), soundCRD},
	{"WHK008", "a CRD with its conversion", inCRD("    strategy: Webhook", "    strategy: Webhook "), soundCRD},
	{"WHK009", "all groups", inCSV("      apiGroups:\n      - cafe.example.com", "      apiGroups:\n      - '*'"), ""},
	{"WHK010", "a name in two parts", inCSV("generateName: coffee-2.kb.io", "generateName: coffee.io"), ""},
	{"WHK010", "a name with capitals", inCSV("generateName: coffee-2.kb.io", "generateName: Coffee.kb.io"), ""},
	{"WHK010", "side effects", inCSV("    sideEffects: None\n    admissionReviewVersions:\n    - v1\n    webhookPath: /mutate", "    sideEffects: Some\n    admissionReviewVersions:\n    - v1\n    webhookPath: /mutate"), ""},
	{"WHK011", "two targets", inCSV("targetPort: 9443", "targetPort: 9444"), ""},
	{"CSV023", "no replicas", inCSV("replicas: 2", "replicas: 0"), ""},
	{"CSV024", "a recreated deployment", inCSV("          replicas: 2\n", "          replicas: 2\n          strategy: {type: Recreate}\n"), ""},
	{"CSV025", "a persistent volume", inCSV("              initContainers:", "              volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]\n              initContainers:"), ""},
	{"CSV026", "an API that is gone", add("manifests/pdb.yaml", "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: p}\n"), "manifests/pdb.yaml"},
	{"CSV027", "an API that may not be there", add("manifests/sm.yaml", "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: m}\n"), "manifests/sm.yaml"},
	{"CSV039", "an API that OpenShift has", both(inAnnotations("annotations:\n", "annotations:\n  com.redhat.openshift.versions: v4.14\n"), add("manifests/sm.yaml", "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: m}\n")), "manifests/sm.yaml"},
	{"CSV028", "a descriptor of nothing", inCSV("- path: cups", "- path: cup"), ""},
	{"CSV029", "no provider", inCSV("  provider:\n    name: Example\n", ""), ""},
	{"CSV030", "no requests", inCSV("cpu: 10m, ", ""), ""},
	{"CSV031", "root", inCSV("runAsNonRoot: true", "runAsNonRoot: false"), ""},
	{"CSV032", "no seccomp profile", inCSV(", seccompProfile: {type: RuntimeDefault}", ""), ""},
	{"CSV033", "a path of the node", inCSV("              initContainers:", "              volumes: [{name: data, hostPath: {path: /var}}]\n              initContainers:"), ""},
	{"CSV034", "a large integer", add("manifests/cafe-metrics_v1_service.yaml", "  healthCheckNodePort: 9007199254740993\n"), "manifests/cafe-metrics_v1_service.yaml"},
	{"CSV035", "a default channel that is none", inAnnotations("channel.default.v1: stable", "channel.default.v1: fast"), "metadata/annotations.yaml"},
	{"CSV036", "a name that YAML takes for true", add("manifests/cup.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\n"), "manifests/cup.yaml"},
	{"CSV037", "a misspelt field of a Service", add("manifests/cafe-metrics_v1_service.yaml", "  sesionAffinity: None\n"), "manifests/cafe-metrics_v1_service.yaml"},
	{"SCH001", "no structural schema", inCRD("              answer:\n                enum:", "              answers:\n                type: array\n              answer:\n                enum:"), soundCRD},
	{"SCH001", "two stored versions", inCRD("    storage: false", "    storage: true"), soundCRD},
	{"SCH001", "a CEL rule without bounds", inCRD("            type: object\n        type: object\n", "              list: {type: array, items: {type: array, items: {type: string}}}\n            type: object\n            x-kubernetes-validations: [{rule: 'self.list.all(a, self.list.all(b, a.all(c, b.all(d, c == d))))'}]\n        type: object\n"), soundCRD},
	{"SCH002", "a short name twice", both(inCRD("    singular: coffee\n", "    singular: coffee\n    shortNames: [c]\n"),
		add("manifests/cups.yaml", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: cups.cafe.example.com}\nspec: {group: cafe.example.com, names: {kind: Cup, plural: cups, shortNames: [c]}}\n")), "manifests/cups.yaml"},
	{"SCH003", "nothing is served", both(inCRD("    served: true\n    storage: true", "    served: false\n    storage: true"), inCRD("    served: true\n    storage: false", "    served: false\n    storage: false")), soundCRD},
	{"SCH005", "a misplaced field", inCRD("  scope: Namespaced", "  scope: Namespaced\n  validation: {}"), soundCRD},
	{"SCH006", "versions that differ", both(both(inCRD("    strategy: Webhook", "    strategy: None"), inCSV("type: ConversionWebhook", "type: ValidatingAdmissionWebhook")),
		inCRD("- name: v1beta1\n    schema:\n      openAPIV3Schema:\n        type: object", "- name: v1beta1\n    schema:\n      openAPIV3Schema:\n        properties: {spec: {type: object, properties: {milk: {type: string}}}}\n        type: object")), soundCRD},
	{"IMG004", "a related image by tag", inCSV("- name: prepare\n    image: registry.example.com/cafe/prepare@sha256:1111111111111111111111111111111111111111111111111111111111111111", "- name: prepare\n    image: registry.example.com/cafe/prepare:1"), ""},
	{"RBAC008", "an account twice", inCSV("      permissions:\n", "      permissions:\n      - serviceAccountName: cafe-controller-manager\n        rules: []\n"), ""},
	{"RBAC009", "a required kind without a rule", inCSV("  customresourcedefinitions:\n", "  customresourcedefinitions:\n    required:\n    - {name: mugs.example.com, kind: Mug, version: v1}\n"), ""},
	{"RBAC010", "all verbs", inCSV("          - coffees/status\n          verbs:\n          - get\n", "          - coffees/status\n          verbs:\n          - '*'\n"), ""},
	{"RBAC010", "all resources", inCSV("          - coffees\n", "          - '*'\n"), ""},
	{"WHK012", "a port that nobody declares", inCSV("containerPort: 9443", "containerPort: 9444"), ""},
	{"WHK013", "a path without its slash", inCSV("webhookPath: /mutate", "webhookPath: mutate"), ""},
	{"WHK014", "one pod", inCSV("replicas: 2", "replicas: 1"), ""},
	{"WHK015", "a webhook about pods", inCSV("      resources:\n      - coffees\n", "      resources:\n      - pods\n      apiGroups: ['']\n"), ""},
	{"WHK016", "a CA in the bundle", inCRD("      clientConfig:\n", "      clientConfig:\n        caBundle: eA==\n"), soundCRD},
	{"CSV038", "another channel than the label's", inAnnotations("bundle.channels.v1: stable,alpha", "bundle.channels.v1: stable"), "metadata/annotations.yaml"},
	{"IMG005", "an image that is not there", inCSV("operator@sha256:2222222222222222222222222222222222222222222222222222222222222222", "operator:1.2.0"), ""},
	{"IMG006", "a further platform", inCSV("metadata:\n", "metadata:\n  labels: {operatorframework.io/arch.arm64: supported}\n"), ""},
	{"WHK006", "a conversion without a clientConfig", both(inCSV("type: ConversionWebhook", "type: ValidatingAdmissionWebhook"),
		both(inCRD(otherVersions, ""), inCRD(clientConfig, ""))), soundCRD},
	{"WHK018", "a webhook that converts nothing", both(inCSV("type: ConversionWebhook", "type: ValidatingAdmissionWebhook"), inCRD(otherVersions, "")), soundCRD},
	{"CSV012", "a misspelt install mode", inCSV("type: AllNamespaces", "type: AllNamespace"), ""},
	{"CSV040", "a misspelt strategy", inCSV("strategy: deployment", "strategy: deploymnet"), ""},
	{"CSV041", "an APIService of a Deployment there is not", inCSV("  customresourcedefinitions:\n", "  apiservicedefinitions:\n    owned:\n    - {name: cups, group: cafe.example.com, version: v1, kind: Cup, deploymentName: other}\n  customresourcedefinitions:\n"), ""},
	{"WHK019", "a type that is none", inCSV("type: ValidatingAdmissionWebhook", "type: ValidatingWebhook"), ""},
	{"WHK019", "a policy in lower case", inCSV("failurePolicy: Fail", "failurePolicy: fail"), ""},
	{"WHK019", "another port than there are", inCSV("containerPort: 443", "containerPort: 70000"), ""},
	{"WHK019", "a target that is too high", inCSV("targetPort: 9443", "targetPort: 99999"), ""},
	{"WHK019", "too long a wait", inCSV("failurePolicy: Fail", "failurePolicy: Fail\n    timeoutSeconds: 60"), ""},
	{"CAT004", "a package whose name is none", inAnnotations("bundle.package.v1: cafe-operator", "bundle.package.v1: Cafe Operator"), "metadata/annotations.yaml"},
	{"CAT013", "a range that is none", inDependencies("{type: olm.package, value: {packageName: beans, version: ^1.0}}"), dependencyFile},
	{"CAT013", "a package without a range", inDependencies("{type: olm.package, value: {packageName: beans}}"), dependencyFile},
	{"CAT013", "no value", inDependencies("{type: olm.package, packageName: beans, version: '>=1.0.0'}"), dependencyFile},
	{"CAT013", "an API whose group is a list", inDependencies("{type: olm.gvk, value: {group: [beans.example.com], kind: Bean, version: v1}}"), dependencyFile},
	{"CAT023", "a misspelt type", inDependencies("{type: olm.pakage, value: {packageName: beans, version: '>=1.0.0'}}"), dependencyFile},
	{"CAT023", "a misspelt field", inDependencies("{type: olm.gvk, value: {groop: beans.example.com, kind: Bean, version: v1}}"), dependencyFile},
	{"DEP003", "a constraint on a range that is none", add("metadata/properties.yaml", "properties:\n- type: olm.constraint\n  value: {failureMessage: beans, package: {packageName: beans, versionRange: ^1}}\n"), "metadata/properties.yaml"},
	{"WHK017", "an exact version", inCSV("    failurePolicy: Fail\n", "    failurePolicy: Fail\n    matchPolicy: Exact\n"), ""},
}

// TestExactVersions: with matchPolicy Exact, all webhooks of one type together are to be asked about every served version.
func TestExactVersions(t *testing.T) {
	const validating = `
  - generateName: coffee-3.kb.io
    type: ValidatingAdmissionWebhook
    deploymentName: cafe-controller-manager
    containerPort: 443
    targetPort: 9443
    matchPolicy: POLICY
    rules:
    - {operations: [CREATE, UPDATE], apiGroups: [GROUP], apiVersions: [VERSION], resources: [RESOURCE]}
    failurePolicy: Fail
    sideEffects: None
    admissionReviewVersions: [v1]
    webhookPath: /validate-coffee
`
	const last = "    webhookPath: /validate-cafe-example-com-v1-coffee\n"
	exact := inCSV(last, last+"    matchPolicy: Exact\n")
	another := func(policy, group, version, resource string) change {
		text := strings.NewReplacer("POLICY", policy, "GROUP", group, "VERSION", version, "RESOURCE", resource).Replace(validating)
		return both(inCSV(last, last+strings.TrimPrefix(text, "\n")), exact)
	}
	const message = "no ValidatingAdmissionWebhook is called for version v1beta1 of CRD coffees.cafe.example.com"
	for _, test := range []struct {
		name   string
		change change
		want   string
	}{
		{"one version", exact, message},
		{"the other by a webhook of its own", another("Exact", "cafe.example.com", "v1beta1", "coffees"), ""},
		{"all by a webhook of its own", another("Exact", "cafe.example.com", "'*'", "'*/*'"), ""},
		{"by one that takes versions for equivalent", another("Equivalent", "cafe.example.com", "v1", "coffees"), ""},
		{"by one for a version that is not served", another("Equivalent", "cafe.example.com", "v1alpha1", "coffees"), message},
		{"by one of another resource", another("Exact", "cafe.example.com", "v1beta1", "teas"), message},
		{"by one of another group", another("Equivalent", "tea.example.com", "'*'", "'*'"), message},
		{"by another of its type that takes versions for equivalent", both(inCSV("type: ValidatingAdmissionWebhook", "type: MutatingAdmissionWebhook\n    matchPolicy: Exact"),
			inCSV("    webhookPath: /mutate-cafe-example-com-v1-coffee\n", "    webhookPath: /mutate-cafe-example-com-v1-coffee\n    matchPolicy: Equivalent\n")), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := soundFiles(t)
			test.change.apply(t, files)
			var got []string
			for _, f := range judge(t, files) {
				if f.Code == "WHK017" {
					got = append(got, f.Message)
				}
			}
			if strings.Join(got, "\n") != test.want {
				t.Errorf("%q, and it should be %q", got, test.want)
			}
		})
	}
}

// TestShippedAccountOnce: that the bundle ships a ServiceAccount which OLM creates is one finding of one code.
func TestShippedAccountOnce(t *testing.T) {
	account := func(name string) change {
		return add("manifests/sa.yaml", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: "+name+"}\n")
	}
	for name, c := range map[string]struct {
		change change
		want   string
	}{
		"one that a Deployment uses": {account("cafe-controller-manager"), "API001 error"},
		"one that permissions name alone": {both(inCSV("          - delete\n        serviceAccountName: cafe-controller-manager", "          - delete\n        serviceAccountName: other"),
			account("other")), "CSV022 warning"},
		"one of the operands": {account("other"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			files := soundFiles(t)
			c.change.apply(t, files)
			var got []string
			for _, f := range judge(t, files) {
				if f.Severity.AtLeast(finding.Warning) {
					got = append(got, f.Code+" "+string(f.Severity))
				}
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("%q, and it should be %q", got, c.want)
			}
		})
	}
}

// TestRemovedAPIs: a bundle that is only for clusters which still serve an API can use it. It says so in metadata/ or in an annotation of its CSV.
func TestRemovedAPIs(t *testing.T) {
	const manifest = "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: p}\n"
	for newest, want := range map[string]int{"4.11": 0, "4.12": 1, "4.20": 1, "next": 1, "": 1} {
		for where, says := range map[string]change{
			"metadata":   add("metadata/properties.yaml", fmt.Sprintf("properties: [{type: olm.maxOpenShiftVersion, value: %q}]\n", newest)),
			"annotation": inCSV("  annotations:\n", fmt.Sprintf("  annotations:\n    olm.properties: '[{\"type\": \"olm.maxOpenShiftVersion\", \"value\": %q}]'\n", newest)),
		} {
			files := soundFiles(t)
			add("manifests/pdb.yaml", manifest).apply(t, files)
			if newest != "" {
				says.apply(t, files)
			}
			got := 0
			for _, f := range judge(t, files) {
				if f.Code == "CSV026" {
					got++
				}
			}
			if got != want {
				t.Errorf("%q, said in %s: %d findings, and there should be %d", newest, where, got, want)
			}
		}
	}
}

// TestFieldInOtherLetters: of an unknown field that OLM v0 reads all the same, nobody says that it has no effect.
func TestFieldInOtherLetters(t *testing.T) {
	for _, test := range []struct{ old, new, want string }{
		{"minKubeVersion:", "MinKubeVersion:", "OLM v0 reads the field"},
		{"minKubeVersion:", "miniKubeVersion:", "so it has no effect"},
		{"                ports:", "                Ports:", "OLM v0 reads the field"},
		{"                ports:", "                prots:", "so it has no effect"},
	} {
		files := soundFiles(t)
		inCSV(test.old, test.new).apply(t, files)
		found := judge(t, files)
		if !slices.ContainsFunc(found, func(f finding.Finding) bool { return f.Code == "CSV003" && strings.Contains(f.Cause, test.want) }) {
			t.Errorf("%s: no CSV003 with %q in %v", test.new, test.want, found)
		}
	}
}

// TestNoInstallModes: what is missing is told once, at its place.
func TestNoInstallModes(t *testing.T) {
	files := soundFiles(t)
	inCSV("  installModes:\n", "  modes:\n").apply(t, files)
	var told []string
	for _, f := range judge(t, files) {
		if f.Severity == finding.Error {
			told = append(told, f.Code+" "+f.Message)
		}
	}
	if got := strings.Join(told, "\n"); got != "CSV012 spec.installModes is missing" {
		t.Errorf("got\n%s", got)
	}
}

// TestClusterScoped: a Role lets its account get the Namespace in which it is, and list, watch or create none.
func TestClusterScoped(t *testing.T) {
	for _, test := range []struct{ resource, verbs, want string }{
		{"nodes", "[get]", "permissions of ServiceAccount cafe-controller-manager contain nodes (get), which are cluster-scoped"},
		{"namespaces", "[get]", ""},
		{"namespaces", "[get, update, patch, delete]", ""},
		{"namespaces", "[get, list, watch]", "permissions of ServiceAccount cafe-controller-manager contain namespaces (list, watch), which are cluster-scoped"},
		{"namespaces", "[create]", "permissions of ServiceAccount cafe-controller-manager contain namespaces (create), which are cluster-scoped"},
		{"namespaces", "['*']", "permissions of ServiceAccount cafe-controller-manager contain namespaces (list, watch, create), which are cluster-scoped"},
		{"configmaps", "[list]", ""},
	} {
		t.Run(test.resource+test.verbs, func(t *testing.T) {
			files := soundFiles(t)
			both(inCSV("          - configmaps\n          verbs:\n          - get\n", "          - "+test.resource+"\n          verbs: "+test.verbs+"\n"),
				inCSV("- type: OwnNamespace\n    supported: false", "- type: OwnNamespace\n    supported: true")).apply(t, files)
			var got []string
			for _, f := range judge(t, files) {
				if f.Code == "RBAC007" {
					got = append(got, f.Message)
				}
			}
			if strings.Join(got, "\n") != test.want {
				t.Errorf("%q, and it should be %q", got, test.want)
			}
		})
	}
}

// What of the sound bundle's CRD is about more than one version.
const (
	otherVersions = `  - name: v1beta1
    schema:
      openAPIV3Schema:
        type: object
    served: true
    storage: false
  - name: v1alpha1
    schema:
      openAPIV3Schema:
        type: object
    served: false
    storage: false
`
	clientConfig = `      clientConfig:
        service:
          namespace: cafe-system
          name: cafe-controller-manager-service
          path: /convert
          port: 443
`
)

// TestConversionOfOneVersion: a CRD with one version is never converted, so that the missing webhook is no error.
func TestConversionOfOneVersion(t *testing.T) {
	undefined := inCSV("type: ConversionWebhook", "type: ValidatingAdmissionWebhook")
	annotated := func(annotation string) change {
		return inCRD("  annotations:\n", "  annotations:\n    "+annotation+"\n")
	}
	for _, test := range []struct {
		name   string
		change change
		want   []string
	}{
		{"two versions", undefined, []string{"WHK006 error"}},
		{"a CA of cert-manager", both(undefined, annotated("cert-manager.io/inject-ca-from: cafe-system/serving-cert")), nil},
		{"a CA of OpenShift", both(undefined, annotated("service.beta.openshift.io/inject-cabundle: 'true'")), nil},
		{"a CA that a template left out", both(undefined, annotated("cert-manager.io/inject-ca-from: $(CERTIFICATE_NAMESPACE)/$(CERTIFICATE_NAME)")), []string{"WHK006 error"}},
		{"a CA in the CRD", both(undefined, inCRD("      clientConfig:\n", "      clientConfig:\n        caBundle: Y2VydA==\n")), nil},
		{"an empty CA in the CRD", both(undefined, inCRD("      clientConfig:\n", "      clientConfig:\n        caBundle: Cg==\n")), []string{"WHK006 error"}},
		{"one version", both(undefined, inCRD(otherVersions, "")), []string{"WHK018 warning"}},
		{"one version with its webhook", inCRD(otherVersions, ""), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := soundFiles(t)
			test.change.apply(t, files)
			var got []string
			for _, f := range judge(t, files) {
				if f.Code == "WHK006" || f.Code == "WHK018" {
					got = append(got, f.Code+" "+string(f.Severity))
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%v, and it should be %v", got, test.want)
			}
		})
	}
}

func TestBundleChecks(t *testing.T) {
	// What is found in the sound bundle, too, shows no fault.
	sane := map[string]bool{}
	for _, f := range judge(t, soundFiles(t)) {
		sane[f.Code+f.Message] = true
	}
	covered := map[string]bool{"CSV021": true, "SCH004": true} // have a test of their own
	for _, test := range bundleExamples {
		covered[test.code] = true
		t.Run(test.code+" "+test.name, func(t *testing.T) {
			files := soundFiles(t)
			test.change.apply(t, files)
			file := test.file
			if file == "" {
				file = soundCSV
			}
			want := strings.TrimSuffix("cafe/"+file, "/.")
			findings := judge(t, files)
			if !slices.ContainsFunc(findings, func(f finding.Finding) bool {
				return f.Code == test.code && (!sane[f.Code+f.Message] || f.Code == "WHK008") && f.Location != nil && f.Location.File == want && f.Message != "" && f.Cause != "" && f.Fix != ""
			}) {
				t.Errorf("no %s at %s among:\n%s", test.code, want, render(findings))
			}
		})
	}
	for _, check := range bundleChecks() {
		if !covered[check.Code] {
			t.Errorf("%s has no test", check.Code)
		}
	}
}

func render(findings []finding.Finding) string {
	var b strings.Builder
	for _, f := range findings {
		b.WriteString("  " + f.Code + " " + f.Location.String() + " " + f.Message + "\n")
	}
	return b.String()
}

func TestBundleSize(t *testing.T) {
	files := soundFiles(t)
	wordy := "description: '" + strings.Repeat("wordy ", largeCRD/6) + "'\n            type: object\n        type: object\n"
	files[soundCRD] = &fstest.MapFile{Data: []byte(strings.Replace(string(files[soundCRD].Data), "type: object\n        type: object\n", wordy, 1))}
	if findings := judge(t, files); !slices.ContainsFunc(findings, func(f finding.Finding) bool { return f.Code == "SCH004" }) {
		t.Errorf("no SCH004 among:\n%s", render(findings))
	}
	// Text that does not compress well: 2 MiB of a counter's digits, hashed by position.
	var text strings.Builder
	text.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: large}\ndata:\n  content: ")
	for i := uint32(1); text.Len() < 2<<20; i++ {
		x := i * 2654435761
		text.WriteByte(byte('A' + x>>16%26))
		text.WriteByte(byte('a' + (x>>11^x>>23)%26))
	}
	text.WriteString("\n")
	files["manifests/large.yaml"] = &fstest.MapFile{Data: []byte(text.String())}
	if findings := judge(t, files); !slices.ContainsFunc(findings, func(f finding.Finding) bool { return f.Code == "CSV021" }) {
		t.Errorf("no CSV021 among:\n%s", render(findings))
	}
}
