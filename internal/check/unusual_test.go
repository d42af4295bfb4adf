package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/finding"
)

// worse returns the codes of the findings that are more than notes, each once.
func worse(findings []finding.Finding) []string {
	var codes []string
	for _, f := range findings {
		if f.Severity.AtLeast(finding.Warning) {
			codes = append(codes, f.Code)
		}
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// The parts of the sound CSV that the unusual bundles change.
const (
	csvRelatedImages = `  relatedImages:
  - name: cup
    image: registry.example.com/cafe/cup@sha256:3333333333333333333333333333333333333333333333333333333333333333
  - name: manager
    image: registry.example.com/cafe/operator@sha256:2222222222222222222222222222222222222222222222222222222222222222
  - name: prepare
    image: registry.example.com/cafe/prepare@sha256:1111111111111111111111111111111111111111111111111111111111111111
`
	csvVariable = `                - name: RELATED_IMAGE_COFFEE_CUP
                  value: registry.example.com/cafe/cup@sha256:3333333333333333333333333333333333333333333333333333333333333333
`
	csvCoffees = "          - cafe.example.com\n          resources:\n          - coffees\n          - coffees/status\n"
	csvRule    = "      - CREATE\n      - UPDATE\n      apiGroups:\n      - cafe.example.com\n      apiVersions:\n      - v1\n      resources:\n      - coffees\n"
	role       = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: cafe}\nrules: [{apiGroups: [cafe.example.com], resources: ['*'], verbs: ['*']}]\n"
	binding    = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: cafe}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cafe}\n" +
		"subjects: [{kind: ServiceAccount, name: ACCOUNT, namespace: cafe}]\n"
	monitor = "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: m}\n"
)

// TestUnusualBundles: what is sound though few do it is found no fault with, and what looks like it and is not sound still is.
func TestUnusualBundles(t *testing.T) {
	noRights := inCSV(csvCoffees, strings.ReplaceAll(csvCoffees, "coffees", "teas"))
	for _, test := range []struct {
		name   string
		change change
		want   []string // codes of warnings and errors
	}{
		{"only images of containers, which opm adds", both(inCSV(csvRelatedImages, ""), inCSV(csvVariable, "")), nil},
		{"an image in a variable, which opm does not add", inCSV(csvRelatedImages, ""), []string{"IMG001"}},
		{"a list of images that lacks one of a container", inCSV("  - name: prepare\n    image: registry.example.com/cafe/prepare@sha256:1111111111111111111111111111111111111111111111111111111111111111\n", ""), []string{"IMG001"}},
		{"a minKubeVersion that OLM reads and operator-sdk refuses", inCSV("minKubeVersion: 1.28.0", "minKubeVersion: v1.28.0"), []string{"API001"}},
		{"a minKubeVersion that nobody reads", inCSV("minKubeVersion: 1.28.0", "minKubeVersion: v1.28"), []string{"API001", "CSV013"}},
		{"a ServiceMonitor in a bundle for OpenShift", both(add("manifests/sm.yaml", monitor), inAnnotations("annotations:\n", "annotations:\n  com.redhat.openshift.versions: v4.14\n")), nil},
		{"a ServiceMonitor in a bundle for any cluster", add("manifests/sm.yaml", monitor), []string{"CSV027"}},
		{"a webhook for namespaces", inCSV(csvRule, strings.NewReplacer("cafe.example.com", "''", "coffees", "namespaces").Replace(csvRule)), []string{}},
		{"a webhook for updates of pods", inCSV(csvRule, strings.NewReplacer("cafe.example.com", "''", "coffees", "pods", "      - CREATE\n", "").Replace(csvRule)), []string{}},
		{"a webhook for new pods", inCSV(csvRule, strings.NewReplacer("cafe.example.com", "''", "coffees", "pods").Replace(csvRule)), []string{"WHK015"}},
		{"a webhook for all resources of the core group, and what is within", inCSV(csvRule, strings.NewReplacer("cafe.example.com", "''", "coffees", "'*/*'").Replace(csvRule)), []string{"WHK015"}},
		{"permissions by a ClusterRoleBinding", both(noRights, both(add("manifests/role.yaml", role), add("manifests/binding.yaml", strings.Replace(binding, "ACCOUNT", "cafe-controller-manager", 1)))), nil},
		{"permissions of somebody else", both(noRights, both(add("manifests/role.yaml", role), add("manifests/binding.yaml", strings.Replace(binding, "ACCOUNT", "other", 1)))), []string{"RBAC003"}},
		{"build metadata", both(inCSV("version: 1.2.0\n", "version: 1.2.0+5\n"), inCSV("name: cafe-operator.v1.2.0\n", "name: cafe-operator.v1.2.0-5\n")), nil},
		{"a pre-release", both(inCSV("version: 1.2.0\n", "version: 1.2.0-rc.1\n"), both(inCSV("name: cafe-operator.v1.2.0\n", "name: cafe-operator.v1.2.0-rc.1\n"), inCSV("<1.2.0'", "<1.2.0-rc.1'"))), nil},
		{"labels of several platforms", inCSV("metadata:\n", "metadata:\n  labels: {operatorframework.io/os.linux: supported, operatorframework.io/arch.amd64: supported, operatorframework.io/arch.s390x: unsupported}\n"), nil},
		{"a comment before the object", inCRD("apiVersion: apiextensions", "# Licence\n---\napiVersion: apiextensions"), nil},
		{"a separator behind the object", add("manifests/cafe-metrics_v1_service.yaml", "---\n"), nil},
		{"several namespaces, no conversion", both(both(inCSV("- type: MultiNamespace\n    supported: false", "- type: MultiNamespace\n    supported: true"), inCSV("- type: AllNamespaces\n    supported: true", "- type: AllNamespaces\n    supported: false")),
			both(both(inCRD("    strategy: Webhook", "    strategy: None"), inCRD(clientConfig, "")), both(inCSV("type: ConversionWebhook", "type: ValidatingAdmissionWebhook"), inCSV("    conversionCRDs:\n    - coffees.cafe.example.com\n", "")))), []string{}},
		{"an API that an APIService serves", inCSV("  customresourcedefinitions:\n", "  apiservicedefinitions:\n    owned:\n    - {name: cups, group: serve.example.com, version: v1, kind: Cup, deploymentName: cafe-controller-manager, containerPort: 443, displayName: Cup, description: A cup.}\n  customresourcedefinitions:\n"), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := soundFiles(t)
			test.change.apply(t, files)
			b, err := bundle.ReadFS(files, "cafe")
			if err != nil {
				t.Fatal(err)
			}
			findings := Bundle(b, nil)
			if diff := cmp.Diff(slices.Concat(test.want, []string{}), slices.Concat(worse(findings), []string{})); diff != "" {
				t.Errorf("(-want +got)\n%s%v", diff, findings)
			}
		})
	}
}

// TestBareBundles: a bundle may hold nothing but its CSV, and a webhook need not be about the bundle's own kinds.
func TestBareBundles(t *testing.T) {
	const csv = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: bare.v1.0.0
  annotations: {capabilities: Basic Install, alm-examples: '[]'}
spec:
  displayName: Bare
  description: Injects sidecars.
  version: 1.0.0
  minKubeVersion: 1.28.0
  provider: {name: Example}
  installModes: [{type: AllNamespaces, supported: true}]
WEBHOOK  install:
    strategy: deployment
    spec:
      deployments:
      - name: bare
        spec:
          selector: {matchLabels: {app: bare}}
          template:
            metadata: {labels: {app: bare}}
            spec: {containers: [{name: m, image: "example.com/bare@sha256:1111111111111111111111111111111111111111111111111111111111111111"}]}
`
	const webhook = `  webhookdefinitions:
  - generateName: inject.example.com
    type: MutatingAdmissionWebhook
    deploymentName: bare
    containerPort: 443
    sideEffects: None
    admissionReviewVersions: [v1]
    failurePolicy: Fail
    webhookPath: /inject
    objectSelector: {matchLabels: {inject: "yes"}}
    rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
`
	for _, text := range []string{"", webhook} {
		b, err := bundle.ReadFS(fstest.MapFS{
			"manifests/csv.yaml":        {Data: []byte(strings.Replace(csv, "WEBHOOK", text, 1))},
			"metadata/annotations.yaml": soundFiles(t)["metadata/annotations.yaml"],
		}, "bare")
		if err != nil {
			t.Fatal(err)
		}
		if findings := Bundle(b, nil); len(worse(findings)) > 0 {
			t.Error(findings)
		}
	}
}

// unusualPackage writes a package of bundles that stand by their images; metadata says of which the catalog has more.
func unusualPackage(channels map[string]string, defaultChannel string, versions []string, metadata ...string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "{schema: olm.package, name: tea, defaultChannel: %q}\n", defaultChannel)
	for name, entries := range channels {
		fmt.Fprintf(&out, "---\n{schema: olm.channel, package: tea, name: %q, entries: [%s]}\n", name, entries)
	}
	for _, v := range versions {
		properties := fmt.Sprintf("{type: olm.package, value: {packageName: tea, version: %s}}", v)
		if slices.Contains(metadata, v) {
			properties += ", {type: olm.csv.metadata, value: {}}"
		}
		name := "tea.v" + strings.ReplaceAll(v, "+", "-")
		fmt.Fprintf(&out, "---\n{schema: olm.bundle, package: tea, name: %s, image: 'example.com/tea:%s', properties: [%s]}\n", name, strings.ReplaceAll(v, "+", "-"), properties)
	}
	return out.String()
}

// TestUnusualPackages is TestUnusualBundles of graphs.
func TestUnusualPackages(t *testing.T) {
	type channels = map[string]string
	for _, test := range []struct {
		name     string
		text     string
		want     []string
		mentions string // what some finding says
	}{
		{"a channel for each minor version, with ranges over the one before", unusualPackage(channels{
			"stable-1.0": "{name: tea.v1.0.0}, {name: tea.v1.0.1, replaces: tea.v1.0.0, skipRange: '<1.0.1'}",
			"stable-1.1": "{name: tea.v1.1.0, skipRange: '>=1.0.0 <1.1.0'}, {name: tea.v1.1.1, replaces: tea.v1.1.0, skipRange: '>=1.0.0 <1.1.1'}",
		}, "stable-1.1", []string{"1.0.0", "1.0.1", "1.1.0", "1.1.1"}, "1.0.1", "1.1.1"), nil, ""},
		{"ranges alone, with the head alone in its channel", unusualPackage(channels{"stable": "{name: tea.v1.2.0, skipRange: '<1.2.0'}"}, "stable", []string{"1.2.0"}, "1.2.0"), nil, ""},
		{"a head that skips all before it", unusualPackage(channels{"stable": "{name: tea.v1.0.0}, {name: tea.v1.1.0}, {name: tea.v1.2.0, skips: [tea.v1.0.0, tea.v1.1.0]}"},
			"stable", []string{"1.0.0", "1.1.0", "1.2.0"}, "1.2.0"), nil, ""},
		{"pre-releases in a channel of their own", unusualPackage(channels{
			"candidate": "{name: tea.v1.0.0}, {name: tea.v2.0.0-rc.1, replaces: tea.v1.0.0}, {name: tea.v2.0.0-rc.2, replaces: tea.v2.0.0-rc.1}",
			"stable":    "{name: tea.v1.0.0}",
		}, "stable", []string{"1.0.0", "2.0.0-rc.1", "2.0.0-rc.2"}, "1.0.0", "2.0.0-rc.2"), nil, ""},
		{"build metadata", unusualPackage(channels{"stable": "{name: tea.v1.0.0-1}, {name: tea.v1.0.0-2, replaces: tea.v1.0.0-1}"}, "stable", []string{"1.0.0+1", "1.0.0+2"}, "1.0.0+2"), nil, ""},
		{"dates of builds as pre-releases", unusualPackage(channels{"4.10": "{name: tea.v4.10.0-202301010000}, {name: tea.v4.10.0-202302010000, replaces: tea.v4.10.0-202301010000, skipRange: '>=4.9.0-0 <4.10.0-202302010000'}"},
			"4.10", []string{"4.10.0-202301010000", "4.10.0-202302010000"}, "4.10.0-202302010000"), nil, ""},
		{"metadata of heads only, as a migrated database has it", unusualPackage(channels{"stable": "{name: tea.v1.0.0}, {name: tea.v1.1.0, replaces: tea.v1.0.0}"},
			"stable", []string{"1.0.0", "1.1.0"}, "1.1.0"), nil, ""},
		{"no metadata of the head", unusualPackage(channels{"stable": "{name: tea.v1.0.0}, {name: tea.v1.1.0, replaces: tea.v1.0.0}"},
			"stable", []string{"1.0.0", "1.1.0"}, "1.0.0"), []string{"CAT021"}, "bundle tea.v1.1.0, the head of channel stable"},
		{"a range over a newer release, from which OLM goes on", unusualPackage(channels{
			"stable": "{name: tea.v1.0.0}, {name: tea.v1.1.0, replaces: tea.v1.0.0, skipRange: '>=1.0.0 <1.1.0 || 1.2.0'}, {name: tea.v1.2.0, replaces: tea.v1.1.0}, {name: tea.v1.3.0, replaces: tea.v1.2.0}",
		}, "stable", []string{"1.0.0", "1.1.0", "1.2.0", "1.3.0"}, "1.3.0"), nil, ""},
		{"a range over the head", unusualPackage(channels{
			"stable": "{name: tea.v1.0.0}, {name: tea.v1.1.0, replaces: tea.v1.0.0, skipRange: '>=1.0.0 <1.1.0 || 1.2.0'}, {name: tea.v1.2.0, replaces: tea.v1.1.0}",
		}, "stable", []string{"1.0.0", "1.1.0", "1.2.0"}, "1.2.0"), []string{"GRA015"}, "OLM downgrades their users: tea.v1.2.0"},
		{"a first release that replaces one which has left the catalog", unusualPackage(channels{"stable": "{name: tea.v1.1.0, replaces: tea.v1.0.0}"}, "stable", []string{"1.1.0"}, "1.1.0"), nil, ""},
		{"twenty channels with one head", func() string {
			all := channels{}
			for i := range 20 {
				all[fmt.Sprintf("channel-%d", i)] = "{name: tea.v1.0.0}, {name: tea.v1.1.0, replaces: tea.v1.0.0}"
			}
			return unusualPackage(all, "channel-3", []string{"1.0.0", "1.1.0"}, "1.1.0")
		}(), nil, ""},
		{"a deprecated channel with a deprecated head", unusualPackage(channels{"old": "{name: tea.v1.0.0}", "stable": "{name: tea.v1.1.0, replaces: tea.v1.0.0}"}, "stable", []string{"1.0.0", "1.1.0"}, "1.0.0", "1.1.0") +
			"---\n{schema: olm.deprecations, package: tea, entries: [{reference: {schema: olm.channel, name: old}, message: m}, {reference: {schema: olm.bundle, name: tea.v1.0.0}, message: m}]}\n", nil, ""},
		{"a deprecated package", unusualPackage(channels{"stable": "{name: tea.v1.0.0}"}, "stable", []string{"1.0.0"}, "1.0.0") +
			"---\n{schema: olm.deprecations, package: tea, entries: [{reference: {schema: olm.package}, message: m}, {reference: {schema: olm.bundle, name: tea.v1.0.0}, message: m}]}\n", nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			findings, _ := Catalog(catalog.Parse("f", []byte(test.text)), Options{})
			if diff := cmp.Diff(slices.Concat(test.want, []string{}), slices.Concat(worse(findings), []string{})); diff != "" {
				t.Errorf("(-want +got)\n%s%v", diff, findings)
			}
			if !slices.ContainsFunc(findings, func(f finding.Finding) bool { return strings.Contains(f.Message, test.mentions) }) && test.mentions != "" {
				t.Errorf("no finding says %q: %v", test.mentions, findings)
			}
		})
	}
}
