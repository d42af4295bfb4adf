package bundle

import (
	"bytes"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"
	apimanifests "github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	"go.yaml.in/yaml/v3"

	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/hint"
)

var update = flag.Bool("update", false, "write the golden files anew")

func cafe() Options {
	return Options{
		Version:    semver.MustParse("1.2.0"),
		Channels:   []string{"stable", "alpha"},
		Replaces:   "cafe-operator.v1.1.0",
		Skips:      []string{"cafe-operator.v1.1.1"},
		SkipRange:  ">=1.0.0 <1.2.0",
		Conversion: ConversionKeep,
	}
}

func load(t *testing.T, source string) []Input {
	t.Helper()
	inputs, err := Inputs(source, nil)
	if err != nil {
		t.Fatal(err)
	}
	return inputs
}

func generate(t *testing.T, inputs []Input, o Options) *Generated {
	t.Helper()
	made, err := Generate(inputs, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestGenerateCafe pins, byte by byte, what is made of a project in kubebuilder's layout that has everything OLM makes
// itself: webhooks with cert-manager, conversion, a namespace, bindings.
func TestGenerateCafe(t *testing.T) {
	made := generate(t, load(t, "testdata/cafe/config/manifests"), cafe())
	golden := "testdata/cafe/bundle"
	if *update {
		if err := os.RemoveAll(golden); err != nil {
			t.Fatal(err)
		}
		if _, err := made.Write(t.Context(), golden); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("testdata/cafe/notes.txt", []byte(strings.Join(made.Notes, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := filesBelow(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(asText(want), asText(made.Files)); diff != "" {
		t.Errorf("bundle (-want +got):\n%s", diff)
	}
	notes, err := os.ReadFile("testdata/cafe/notes.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(notes), strings.Join(made.Notes, "\n")+"\n"); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

// TestGenerateValid shows that OLM's own validators have nothing against the result.
func TestGenerateValid(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bundle")
	if _, err := generate(t, load(t, "testdata/cafe/config/manifests"), cafe()).Write(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	b, err := apimanifests.GetBundleFromDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range validation.DefaultBundleValidators.Validate(b.ObjectsToValidate()...) {
		for _, e := range result.Errors {
			t.Errorf("%s: %s", result.Name, e.Error())
		}
	}
}

func asText(files map[string][]byte) map[string]string {
	out := map[string]string{}
	for name, data := range files {
		out[name] = string(data)
	}
	return out
}

// TestGenerateSources shows that it does not matter in which form the manifests come.
func TestGenerateSources(t *testing.T) {
	inputs := load(t, "testdata/cafe/config/manifests")
	want := generate(t, inputs, cafe())
	dir := t.TempDir()
	var stream bytes.Buffer
	for i, input := range inputs {
		data := encode(nodeOfJSON(input.JSON))
		if input.Kind == KindCSV {
			data = encode(input.node())
		}
		stream.WriteString("---\n")
		stream.Write(data)
		name := filepath.Join(dir, string(rune('a'+i/26))+string(rune('a'+i%26)))
		if i%2 == 1 {
			name = filepath.Join(name, "deeper")
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(name+".yaml", data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "all.yaml")
	if err := os.WriteFile(file, stream.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	list := []byte(`{"apiVersion": "v1", "kind": "List", "items": [`)
	for i, input := range inputs {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, input.JSON...)
	}
	list = append(list, "]}"...)
	for name, read := range map[string]func() ([]Input, error){
		"a file":      func() ([]Input, error) { return Inputs(file, nil) },
		"a directory": func() ([]Input, error) { return Inputs(dir, nil) },
		"stdin":       func() ([]Input, error) { return Inputs("-", bytes.NewReader(stream.Bytes())) },
	} {
		t.Run(name, func(t *testing.T) {
			found, err := read()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(asText(want.Files), asText(generate(t, found, cafe()).Files)); diff != "" {
				t.Errorf("bundle (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a List", func(t *testing.T) {
		found, err := Inputs("-", bytes.NewReader(list))
		if err != nil {
			t.Fatal(err)
		}
		got := generate(t, found, cafe())
		// Comments have no place in JSON, nor the base's order of quotes: compare the objects.
		if !maps.EqualFunc(want.Files, got.Files, func(a, b []byte) bool { return sameYAML(t, a, b) }) {
			t.Error("the bundle made of a List differs")
		}
	})
}

func sameYAML(t *testing.T, a, b []byte) bool {
	t.Helper()
	if bytes.HasPrefix(a, []byte("FROM ")) {
		return bytes.Equal(a, b)
	}
	var x, y any
	if err := yaml.Unmarshal(a, &x); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, &y); err != nil {
		t.Fatal(err)
	}
	return cmp.Equal(x, y)
}

func TestGenerateStripsConversion(t *testing.T) {
	o := cafe()
	o.Conversion = ConversionStrip
	made := generate(t, load(t, "testdata/cafe/config/manifests"), o)
	crd := string(made.Files["manifests/cafe.example.com_coffees.yaml"])
	if strings.Contains(crd, "conversion") {
		t.Errorf("the CRD still has its conversion:\n%s", crd)
	}
	if csv := string(made.Files["manifests/cafe-operator.clusterserviceversion.yaml"]); !strings.Contains(csv, "ConversionWebhook") {
		t.Error("the CSV defines no conversion webhook")
	}
}

// TestGenerateRefuses shows each thing that would come to grief under OLM, by what is changed in the manifests.
func TestGenerateRefuses(t *testing.T) {
	read := func(old, new string) func(t *testing.T) []Input {
		return func(t *testing.T) []Input {
			t.Helper()
			var stream bytes.Buffer
			for _, input := range load(t, "testdata/cafe/config/manifests") {
				stream.WriteString("---\n")
				stream.Write(encode(nodeOfJSON(input.JSON)))
			}
			changed := strings.Replace(stream.String(), old, new, 1)
			if changed == stream.String() {
				t.Fatalf("the manifests do not hold %q", old)
			}
			inputs, err := Inputs("-", strings.NewReader(changed))
			if err != nil {
				t.Fatal(err)
			}
			return inputs
		}
	}
	add := func(object string) func(t *testing.T) []Input {
		return read("---\n", object+"---\n")
	}
	same := func(t *testing.T) []Input { return load(t, "testdata/cafe/config/manifests") }
	for name, test := range map[string]struct {
		inputs  func(t *testing.T) []Input
		options func(*Options)
		want    string
	}{
		"a kind that OLM does not accept": {
			inputs: add("apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent}\n"),
			want:   "OLM does not accept apps/v1 DaemonSet in a bundle",
		},
		"a PodMonitor, which opm accepts and OLM does not": {
			inputs: add("apiVersion: monitoring.coreos.com/v1\nkind: PodMonitor\nmetadata: {name: p}\n"),
			want:   "OLM does not accept monitoring.coreos.com/v1 PodMonitor in a bundle",
		},
		"a webhook whose Service is missing":                                   {inputs: read("name: cafe-webhook-service\n  namespace", "name: other\n  namespace"), want: "there is no Service cafe-webhook-service among the manifests"},
		"a Service that selects no deployment":                                 {inputs: read("    targetPort: 9443\n  selector:\n    control-plane: controller-manager", "    targetPort: 9443\n  selector:\n    control-plane: nobody"), want: "selects the pods of none of the deployments"},
		"a Service whose target nobody calls so":                               {inputs: read("targetPort: 9443", "targetPort: https"), want: `has a port called "https"`},
		"a webhook without a Service":                                          {inputs: read("- name: coffee.kb.io\n  admissionReviewVersions:\n  - v1\n  clientConfig:\n    service:", "- name: coffee.kb.io\n  admissionReviewVersions:\n  - v1\n  clientConfig:\n    url: https://example.com\n    was:"), want: "is not called through a Service"},
		"a webhook for all groups":                                             {inputs: read("rules:\n  - apiGroups:\n    - cafe.example.com", "rules:\n  - apiGroups:\n    - '*'"), want: "asks for all API groups"},
		"conversion where others than AllNamespaces are supported":             {inputs: read("- type: OwnNamespace\n    supported: false", "- type: OwnNamespace\n    supported: true"), want: "OLM installs a conversion webhook only where AllNamespaces is the one supported mode"},
		"conversion with preserveUnknownFields":                                {inputs: read("  scope: Namespaced", "  preserveUnknownFields: true\n  scope: Namespaced"), want: "preserveUnknownFields"},
		"a binding of a role that is not there, to an account of no namespace": {inputs: add("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: v}\nroleRef: {kind: ClusterRole, name: view}\nsubjects: [{kind: ServiceAccount, name: cafe-controller-manager}]\n"), want: "binds ClusterRole view, which is not among the manifests"},
		"an object twice":                                                      {inputs: add("apiVersion: v1\nkind: Namespace\nmetadata: {name: cafe-system, labels: {a: b}}\n"), want: "the manifests hold it twice"},
		"no deployment": {inputs: func(t *testing.T) []Input {
			return slices.DeleteFunc(same(t), func(i Input) bool { return i.Kind == "Deployment" })
		}, want: "the manifests hold no Deployment"},
		"no name": {inputs: func(t *testing.T) []Input {
			return slices.DeleteFunc(same(t), func(i Input) bool { return i.Kind == KindCSV })
		}, options: func(o *Options) { o.Package = "" }, want: "the package has no name"},
		"a bundle that replaces itself":           {inputs: same, options: func(o *Options) { o.Replaces = "cafe-operator.v1.2.0" }, want: "cannot replace or skip itself"},
		"a version of Kubernetes without a patch": {inputs: same, options: func(o *Options) { o.MinKubeVersion = "1.30" }, want: `minKubeVersion "1.30"`},
		"a skipRange that is none":                {inputs: same, options: func(o *Options) { o.SkipRange = "until tomorrow" }, want: `skipRange "until tomorrow"`},
		"a skipRange over the own version":        {inputs: same, options: func(o *Options) { o.SkipRange = ">=1.0.0" }, want: "covers the bundle's own version 1.2.0"},
		"alm-examples that are no JSON":           {inputs: read("capabilities: Seamless Upgrades", "alm-examples: nothing"), want: "not a JSON list"},
		"a CRD of an API that is gone":            {inputs: read("apiVersion: apiextensions.k8s.io/v1\n", "apiVersion: apiextensions.k8s.io/v1beta1\n"), want: "not served since Kubernetes 1.22"},
		"a certificate that is not for a webhook": {inputs: read("cafe-webhook-service.cafe-system.svc", "cafe-metrics.cafe-system.svc"), want: "deployment cafe-controller-manager would wait for ever for its Secret"},
	} {
		t.Run(name, func(t *testing.T) {
			o := cafe()
			if test.options != nil {
				test.options(&o)
			}
			_, err := Generate(test.inputs(t), nil, o)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want an error with %q", err, test.want)
			}
			if hint.Of(err) == "" && !strings.Contains(test.want, "twice") {
				t.Errorf("no fix for: %v", err)
			}
			if wrong := errors.As(err, &OptionError{}); wrong != (test.options != nil) {
				t.Errorf("that it is of an option is %t: %v", wrong, err)
			}
		})
	}
}

// TestGenerateCertificateElsewhere shows that a webhook's certificate that is mounted where OLM mounts none comes from
// OLM's Secret.
func TestGenerateCertificateElsewhere(t *testing.T) {
	inputs := load(t, "testdata/cafe/config/manifests")
	for i, input := range inputs {
		if input.Kind == "Deployment" {
			changed := strings.Replace(string(input.JSON), certMountPath, "/certificates", 1)
			inputs[i].Document = document.New([]byte(changed), input.At)
		}
	}
	csv := string(generate(t, inputs, cafe()).Files["manifests/cafe-operator.clusterserviceversion.yaml"])
	for _, want := range []string{"mountPath: /certificates\n", "secretName: cafe-controller-manager-service-cert\n"} {
		if !strings.Contains(csv, want) {
			t.Errorf("the CSV lacks %q:\n%s", want, csv)
		}
	}
}

// TestGeneratePinsImages shows that no tag is left anywhere, and that the base's list of images follows.
func TestGeneratePinsImages(t *testing.T) {
	o := cafe()
	o.Pin = func(image string) (string, error) {
		repository, _, _ := strings.Cut(strings.TrimPrefix(image, "registry.example.com/"), ":")
		if strings.Contains(image, "@") {
			return image, nil
		}
		return "registry.example.com/" + repository + "@sha256:" + strings.Repeat("2", 64), nil
	}
	csv := string(generate(t, load(t, "testdata/cafe/config/manifests"), o).Files["manifests/cafe-operator.clusterserviceversion.yaml"])
	if strings.Contains(csv, "cafe/operator:1.2.0") || strings.Contains(csv, "cafe/cup:3") {
		t.Errorf("a tag is left:\n%s", csv)
	}
	for image, want := range map[string]int{"operator@sha256:2222": 3, "cup@sha256:2222": 2, "prepare@sha256:1111": 2} {
		if got := strings.Count(csv, image); got != want {
			t.Errorf("%s stands there %d times, want %d:\n%s", image, got, want, csv)
		}
	}
	o.Pin = func(string) (string, error) { return "", errors.New("no such image") }
	if _, err := Generate(load(t, "testdata/cafe/config/manifests"), nil, o); err == nil || !strings.Contains(err.Error(), "no such image") {
		t.Errorf("got %v", err)
	}
}

// TestGenerateAPIService shows that an APIService becomes what the CSV says of it, with the base's word for its kinds, and
// that its Service and certificate are left to OLM.
func TestGenerateAPIService(t *testing.T) {
	const operator = `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.cups.example.com}
spec:
  group: cups.example.com
  version: v1
  service: {name: cups, namespace: system}
---
apiVersion: v1
kind: Service
metadata: {name: cups, namespace: system}
spec:
  ports: [{port: 443, targetPort: https}]
  selector: {app: cups}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: cups, namespace: system}
spec:
  selector: {matchLabels: {app: cups}}
  template:
    metadata: {labels: {app: cups}}
    spec:
      containers:
      - name: server
        image: example.com/cups:1
        ports: [{name: https, containerPort: 8443}]
        volumeMounts: [{name: cert, mountPath: /apiserver.local.config/certificates}]
      volumes:
      - name: cert
        secret: {secretName: cups-cert}
`
	const base = `---
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: cups.v0.0.0}
spec:
  apiservicedefinitions:
    owned:
    - group: cups.example.com
      version: v1
      kind: Cup
      name: cups # by hand
    required:
    - {group: metrics.k8s.io, version: v1beta1, kind: PodMetrics, name: pods}
  customresourcedefinitions:
    required:
    - {name: teas.example.com, version: v1, kind: Tea}
`
	inputs, err := Inputs("-", strings.NewReader(operator+base))
	if err != nil {
		t.Fatal(err)
	}
	made := generate(t, inputs, cafe())
	if len(made.Files) != 3 {
		t.Errorf("files: %v", slices.Sorted(maps.Keys(made.Files)))
	}
	csv := string(made.Files["manifests/cups.clusterserviceversion.yaml"])
	for _, want := range []string{"deploymentName: cups\n", "containerPort: 8443\n", "name: cups # by hand\n", "group: metrics.k8s.io", "name: teas.example.com"} {
		if !strings.Contains(csv, want) {
			t.Errorf("the CSV lacks %q:\n%s", want, csv)
		}
	}
	if strings.Contains(csv, "cups-cert") {
		t.Errorf("the certificate is still the author's:\n%s", csv)
	}
	if inputs, err = Inputs("-", strings.NewReader(operator)); err != nil {
		t.Fatal(err)
	}
	o := cafe()
	o.Package = "cups"
	if _, err = Generate(inputs, nil, o); err == nil || !strings.Contains(err.Error(), "does not say which kinds are in cups.example.com/v1") || hint.Of(err) == "" {
		t.Errorf("got %v", err)
	}
}

// TestGenerateImages shows that an image is replaced wherever it stands, whatever its tag, and that a name that nothing
// runs is an error.
func TestGenerateImages(t *testing.T) {
	o := cafe()
	o.Images = map[string]string{"registry.example.com/cafe/operator": "ghcr.io/cafe/operator:v9", "registry.example.com/cafe/prepare": "ghcr.io/cafe/prepare:v9"}
	csv := string(generate(t, load(t, "testdata/cafe/config/manifests"), o).Files["manifests/cafe-operator.clusterserviceversion.yaml"])
	for image, want := range map[string]int{"image: ghcr.io/cafe/operator:v9\n": 2, "value: ghcr.io/cafe/operator:v9\n": 1, "image: ghcr.io/cafe/prepare:v9\n": 2, "cafe/operator:1.2.0": 0, "cafe/prepare@": 0, "cafe/cup:3": 2} {
		if got := strings.Count(csv, image); got != want {
			t.Errorf("%q stands there %d times, want %d:\n%s", image, got, want, csv)
		}
	}
	o.Images = map[string]string{"controller": "ghcr.io/cafe/operator:v9"} // which kustomize replaced
	csv = string(generate(t, load(t, "testdata/cafe/config/manifests"), o).Files["manifests/cafe-operator.clusterserviceversion.yaml"])
	if got := strings.Count(csv, "image: ghcr.io/cafe/operator:v9\n"); got != 2 {
		t.Errorf("the manager's image stands there %d times:\n%s", got, csv)
	}
	o.Images = map[string]string{"nobodys": "x"}
	_, err := Generate(load(t, "testdata/cafe/config/manifests"), nil, o)
	if !errors.As(err, &OptionError{}) || err.Error() != "no deployment runs an image nobodys" || !strings.Contains(hint.Of(err), "registry.example.com/cafe/cup, registry.example.com/cafe/operator") {
		t.Errorf("got %v, fix %q", err, hint.Of(err))
	}
}

func TestNamesImage(t *testing.T) {
	run := map[string]bool{"controller": true, "ghcr.io/cafe/operator:v1": true}
	for variable, want := range map[[2]string]bool{
		{"RELATED_IMAGE_CUP", "cup"}:                   true,
		{"OPERATOR_IMAGE", "ghcr.io/cafe/operator:v1"}: true,
		{"OPERATOR_IMAGE", "controller:latest"}:        true,
		{"COMPONENT", "controller"}:                    false,
		{"OTHER_IMAGE", "ghcr.io/cafe/operator:v2"}:    false,
	} {
		if got := namesImage(variable[0], variable[1], run); got != want {
			t.Errorf("%s: %t", variable, got)
		}
	}
}

func TestRepository(t *testing.T) {
	for image, want := range map[string]string{
		"controller": "controller", "controller:latest": "controller", "localhost:5000/a/b": "localhost:5000/a/b", "localhost:5000/a/b:1": "localhost:5000/a/b",
		"a/b:1@sha256:0": "a/b", "a/b@sha256:0": "a/b",
	} {
		if got := repository(image); got != want {
			t.Errorf("%s: %s, want %s", image, got, want)
		}
	}
}

// TestGenerateForeignRole shows that a binding of a role of the cluster's own goes along, with a warning that it works in
// one namespace only.
func TestGenerateForeignRole(t *testing.T) {
	inputs, err := Inputs("-", strings.NewReader("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: v}\nroleRef: {kind: ClusterRole, name: view}\nsubjects: [{kind: ServiceAccount, name: cafe-controller-manager, namespace: cafe-system}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	made := generate(t, append(inputs, load(t, "testdata/cafe/config/manifests")...), cafe())
	if made.Files["manifests/v_rbac.authorization.k8s.io_v1_clusterrolebinding.yaml"] == nil {
		t.Errorf("the binding is not shipped: %v", slices.Sorted(maps.Keys(made.Files)))
	}
	if !strings.Contains(string(made.Files["manifests/cafe-operator.clusterserviceversion.yaml"]), "operatorframework.io/suggested-namespace: cafe-system\n") {
		t.Error("no namespace is suggested")
	}
	if !slices.ContainsFunc(made.Notes, func(n string) bool {
		return strings.Contains(n, "works only where the operator is installed to cafe-system")
	}) {
		t.Errorf("no note says so: %q", made.Notes)
	}
}

// TestGenerateSkipKind shows that a kind is left out when that is asked for, also where it would be no input.
func TestGenerateSkipKind(t *testing.T) {
	inputs, err := Inputs("-", strings.NewReader("apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent}\n---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent, labels: {a: b}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	o := cafe()
	o.SkipKinds = []string{"DaemonSet", "Deamonset"}
	made := generate(t, append(inputs, load(t, "testdata/cafe/config/manifests")...), o)
	for _, note := range []string{"DaemonSet/agent: left out, as --skip-kind says", "--skip-kind Deamonset: the manifests hold no object of this kind"} {
		if !slices.Contains(made.Notes, note) {
			t.Errorf("%q is not among the notes: %q", note, made.Notes)
		}
	}
}

// TestWrite shows that a bundle is replaced as a whole, that what is not the generator's stays, and that the same bundle
// again touches nothing.
func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bundle")
	made := generate(t, load(t, "testdata/cafe/config/manifests"), cafe())
	write := func(want bool) {
		t.Helper()
		changed, err := made.Write(t.Context(), dir)
		if err != nil || changed != want {
			t.Fatalf("changed %t, error %v; want changed %t", changed, err, want)
		}
	}
	put := func(name, content string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(true)
	before, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	write(false)
	if after, err := os.Stat(dir); err != nil || !os.SameFile(before, after) {
		t.Errorf("an unchanged bundle was written anew (%v)", err)
	}
	put("manifests/stale.yaml", "kind: ConfigMap\n")
	put("metadata/dependencies.yaml", "dependencies: []\n")
	put("metadata/annotations.yaml", "# ours\nannotations:\n  com.example.versions: v4.12 # for the certified hub\n  "+AnnotationChannels+": old\n")
	write(true)
	files, err := filesBelow(dir)
	if err != nil {
		t.Fatal(err)
	}
	if files["manifests/stale.yaml"] != nil || files["metadata/dependencies.yaml"] == nil {
		t.Errorf("files: %v", slices.Sorted(maps.Keys(files)))
	}
	annotations := string(files["metadata/annotations.yaml"])
	for _, want := range []string{"# ours\n", "  com.example.versions: v4.12 # for the certified hub\n", "  " + AnnotationPackage + ": cafe-operator\n", AnnotationChannels + ": stable,alpha\n"} {
		if !strings.Contains(annotations, want) {
			t.Errorf("annotations.yaml lacks %q:\n%s", want, annotations)
		}
	}
	write(false)
	if entries, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(entries) != 1 {
		t.Errorf("left beside the bundle: %v (%v)", entries, err)
	}
	put("metadata/annotations.yaml", "annotations:\n  "+AnnotationPackage+": tea-operator\n")
	if changed, err := made.Write(t.Context(), dir); err == nil || changed || !strings.Contains(err.Error(), "holds a bundle of package tea-operator") {
		t.Errorf("another package's bundle: changed %t, error %v", changed, err)
	}
}

func TestWriteRefusesWhatIsNoBundle(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := generate(t, load(t, "testdata/cafe/config/manifests"), cafe()).Write(t.Context(), dir)
	if err == nil || !strings.Contains(err.Error(), "holds no bundle") {
		t.Errorf("got %v", err)
	}
}

func TestDisplayName(t *testing.T) {
	for name, want := range map[string]string{
		"memcached-operator": "Memcached Operator", "Memcached": "Memcached", "RedisCluster": "Redis Cluster",
		"HTTPRoute": "HTTP Route", "etcd": "Etcd", "K8sCluster": "K8s Cluster",
	} {
		if got := displayName(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A CRD that is refused defines a kind nevertheless: its samples are no objects that OLM does not accept.
func TestSamplesOfRefusedCRDs(t *testing.T) {
	var inputs []Input
	for _, input := range load(t, "testdata/cafe/config/manifests") {
		switch input.Kind {
		case KindCSV:
			continue
		case "CustomResourceDefinition":
			input.APIVersion = "apiextensions.k8s.io/v1beta1"
		}
		inputs = append(inputs, input)
	}
	o := cafe()
	o.Package = "cafe-operator"
	_, err := Generate(inputs, nil, o)
	if err == nil || !strings.Contains(err.Error(), "not served since Kubernetes 1.22") || strings.Contains(err.Error(), "does not accept") {
		t.Errorf("got %v", err)
	}
}
