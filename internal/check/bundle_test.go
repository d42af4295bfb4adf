package check

import (
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
const sound = "../bundle/testdata/cafe/bundle"

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
	return Bundle(b)
}

func TestSoundBundle(t *testing.T) {
	for _, f := range judge(t, soundFiles(t)) {
		if f.Severity.AtLeast(finding.Warning) {
			t.Errorf("%s %s: %s", f.Code, f.Location, f.Message)
		}
	}
}

// TestBundleChecks has for each check the smallest change to a sound bundle that it must find, and where.
func TestBundleChecks(t *testing.T) {
	replace := func(file, old, new string) func(*testing.T, fstest.MapFS) {
		return func(t *testing.T, files fstest.MapFS) {
			t.Helper()
			before := string(files[file].Data)
			after := strings.Replace(before, old, new, 1)
			if before == after {
				t.Fatalf("%s does not hold %q", file, old)
			}
			files[file] = &fstest.MapFile{Data: []byte(after)}
		}
	}
	add := func(file, content string) func(*testing.T, fstest.MapFS) {
		return func(_ *testing.T, files fstest.MapFS) {
			if old := files[file]; old != nil {
				content = string(old.Data) + content
			}
			files[file] = &fstest.MapFile{Data: []byte(content)}
		}
	}
	csv := func(old, new string) func(*testing.T, fstest.MapFS) { return replace(soundCSV, old, new) }
	crd := func(old, new string) func(*testing.T, fstest.MapFS) { return replace(soundCRD, old, new) }
	annotations := func(old, new string) func(*testing.T, fstest.MapFS) {
		return replace("metadata/annotations.yaml", old, new)
	}
	tests := []struct {
		code, name string
		change     func(*testing.T, fstest.MapFS)
		file       string // where it must be found; soundCSV when empty
	}{
		{"API001", "a related image that is none", csv("image: registry.example.com/cafe/cup:3", "image: Registry/cup@sha256:12"), ""},
		{"API002", "no lowest version of Kubernetes", csv("  minKubeVersion: 1.28.0\n", ""), ""},
		{"CSV001", "no CSV", func(_ *testing.T, files fstest.MapFS) { delete(files, soundCSV) }, "."},
		{"CSV001", "two CSVs", add("manifests/z.yaml", "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: other}\n"), "manifests/z.yaml"},
		{"CSV002", "a list that is a string", csv("  installModes:\n", "  keywords: coffee\n  installModes:\n"), ""},
		{"CSV003", "a misspelt field", csv("  webhookdefinitions:", "  webhookDefinitons:"), ""},
		{"CSV003", "a misspelt field deep down", csv("                ports:", "                prots:"), ""},
		{"CSV004", "a key twice", csv("  maturity: alpha\n", "  maturity: alpha\n  maturity: beta\n"), ""},
		{"CSV005", "a second document", add("manifests/cafe-metrics_v1_service.yaml", "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: second}\n"), "manifests/cafe-metrics_v1_service.yaml"},
		{"CSV006", "a name of another version", csv("name: cafe-operator.v1.2.0", "name: cafe-operator.v1.3.0"), ""},
		{"CSV006", "no version", csv("  version: 1.2.0\n", ""), ""},
		{"CSV007", "replaces itself", csv("replaces: cafe-operator.v1.1.0", "replaces: cafe-operator.v1.2.0"), ""},
		{"CSV007", "replaces a newer one", csv("replaces: cafe-operator.v1.1.0", "replaces: cafe-operator.v2.0.0"), ""},
		{"CSV007", "skips itself", csv("- cafe-operator.v1.1.1", "- cafe-operator.v1.2.0"), ""},
		{"CSV008", "a range that is none", csv("'>=1.0.0 <1.2.0'", "<v1.2.0"), ""},
		{"CSV008", "a range over itself", csv("'>=1.0.0 <1.2.0'", "'>=1.0.0'"), ""},
		{"CSV009", "an owned CRD that is not there", csv("name: coffees.cafe.example.com\n      version: v1beta1", "name: teas.cafe.example.com\n      version: v1beta1"), ""},
		{"CSV009", "an owned version that is not served", csv("version: v1beta1\n", "version: v1alpha1\n"), ""},
		{"CSV010", "a CRD that is not owned", crd("name: coffees.cafe.example.com", "name: teas.cafe.example.com"), soundCRD},
		{"CSV011", "a kind that OLM refuses", add("manifests/p.yaml", "apiVersion: monitoring.coreos.com/v1\nkind: PodMonitor\nmetadata: {name: p}\n"), "manifests/p.yaml"},
		{"CSV012", "no install mode", csv("- type: AllNamespaces\n    supported: true", "- type: AllNamespaces\n    supported: false"), ""},
		{"CSV013", "a Kubernetes version that is none", csv("minKubeVersion: 1.28.0", "minKubeVersion: '1.28'"), ""},
		{"CSV014", "samples that are no JSON", csv("          \"kind\": \"Coffee\",", "          \"kind\": Coffee,"), ""},
		{"CSV014", "a sample that is no object", csv("          \"kind\": \"Coffee\",\n", ""), ""},
		{"CSV015", "a sample that violates the schema", csv(`"answer": "yes"`, `"answer": "maybe"`), ""},
		{"CSV015", "a sample of a version that is not served", csv(`"cafe.example.com/v1beta1"`, `"cafe.example.com/v1alpha1"`), ""},
		{"CSV016", "a kind without a sample", csv("      kind: Coffee\n      displayName: Coffee", "      kind: Tea\n      displayName: Coffee"), ""},
		{"CSV017", "a selector without a match", csv("                control-plane: controller-manager", "                control-plane: another"), ""},
		{"CSV018", "no deployment", csv("      deployments:", "      nothing:"), ""},
		{"CSV019", "no readiness probe", csv("                readinessProbe:", "                livenessProbe:"), ""},
		{"CSV020", "no package", annotations(bundle.AnnotationPackage+": cafe-operator", "x: y"), "metadata/annotations.yaml"},
		{"CSV020", "another media type", annotations("registry+v1", "helm"), "metadata/annotations.yaml"},
		{"CSV022", "a ServiceAccount that OLM makes", add("manifests/sa.yaml", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: cafe-controller-manager}\n"), "manifests/sa.yaml"},
		{"IMG001", "an image that is not listed", csv("image: registry.example.com/cafe/operator:1.2.0", "image: registry.example.com/cafe/operator:1.2.1"), ""},
		{"IMG002", "a tag", csv("image: registry.example.com/cafe/operator:1.2.0", "image: registry.example.com/cafe/operator:1.2.0"+" "), ""},
		{"IMG003", "no tag", csv("image: registry.example.com/cafe/operator:1.2.0", "image: localhost:5000/operator"), ""},
		{"RBAC001", "an account that nobody makes", csv("serviceAccountName: cafe-controller-manager\n              initContainers", "serviceAccountName: nobody\n              initContainers"), ""},
		{"RBAC002", "an account that nobody uses", csv("          - delete\n        serviceAccountName: cafe-controller-manager", "          - delete\n        serviceAccountName: other"), ""},
		{"RBAC003", "an owned kind without a rule", csv("          - coffees\n", "          - teas\n"), ""},
		{"RBAC004", "everything", csv("        - apiGroups:\n          - apps\n          resources:\n          - deployments\n          verbs:", "        - apiGroups:\n          - '*'\n          resources:\n          - '*'\n          verbs:\n          - '*'"), ""},
		{"RBAC005", "rights to raise rights", csv("          - delete\n", "          - escalate\n"), ""},
		{"RBAC006", "all Secrets", csv("          - apps\n          resources:\n          - deployments", "          - ''\n          resources:\n          - secrets"), ""},
		{"RBAC007", "cluster-scoped in a namespace", func(t *testing.T, files fstest.MapFS) {
			csv("          - configmaps", "          - nodes")(t, files)
			csv("- type: OwnNamespace\n    supported: false", "- type: OwnNamespace\n    supported: true")(t, files)
		}, ""},
		{"WHK001", "a deployment there is not", csv("deploymentName: cafe-controller-manager", "deploymentName: other"), ""},
		{"WHK002", "a long name", csv("deploymentName: cafe-controller-manager", "deploymentName: "+strings.Repeat("a", 56)), ""},
		{"WHK003", "a port that no container has", csv("targetPort: 9443", "targetPort: https"), ""},
		{"WHK004", "a name twice", csv("generateName: coffee-2.kb.io", "generateName: coffee.kb.io"), ""},
		{"WHK005", "another install mode", csv("- type: OwnNamespace\n    supported: false", "- type: OwnNamespace\n    supported: true"), ""},
		{"WHK005", "a conversion for nobody", csv("    conversionCRDs:\n    - coffees.cafe.example.com\n", ""), ""},
		{"WHK005", "a conversion of what is not owned", csv("    conversionCRDs:\n    - coffees", "    conversionCRDs:\n    - teas"), ""},
		{"WHK005", "unknown fields are kept", crd("  scope: Namespaced", "  preserveUnknownFields: true\n  scope: Namespaced"), soundCRD},
		{"WHK006", "a conversion that is not defined", csv("type: ConversionWebhook", "type: ValidatingAdmissionWebhook"), soundCRD},
		{"WHK007", "a CRD without its conversion", crd("    strategy: Webhook", "    strategy: None"), soundCRD},
		{"WHK008", "a CRD with its conversion", crd("    strategy: Webhook", "    strategy: Webhook "), soundCRD},
		{"WHK009", "all groups", csv("      apiGroups:\n      - cafe.example.com", "      apiGroups:\n      - '*'"), ""},
		{"WHK010", "a name in two parts", csv("generateName: coffee-2.kb.io", "generateName: coffee.io"), ""},
		{"WHK010", "side effects", csv("    sideEffects: None\n    admissionReviewVersions:\n    - v1\n    webhookPath: /mutate", "    sideEffects: Some\n    admissionReviewVersions:\n    - v1\n    webhookPath: /mutate"), ""},
		{"WHK011", "two targets", csv("targetPort: 9443", "targetPort: 9444"), ""},
	}
	covered := map[string]bool{"CSV021": true} // has a test of its own
	for _, test := range tests {
		covered[test.code] = true
		t.Run(test.code+" "+test.name, func(t *testing.T) {
			files := soundFiles(t)
			test.change(t, files)
			file := test.file
			if file == "" {
				file = soundCSV
			}
			want := strings.TrimSuffix("cafe/"+file, "/.")
			findings := judge(t, files)
			if !slices.ContainsFunc(findings, func(f finding.Finding) bool {
				return f.Code == test.code && f.Location != nil && f.Location.File == want && f.Message != "" && f.Cause != "" && f.Cure != ""
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
