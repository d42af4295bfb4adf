package check

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	"github.com/operator-framework/operator-registry/alpha/declcfg"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/finding"
)

// upstreamRule is a rule of a validator of others, and the checks that cover it; without any, the reason.
type upstreamRule struct {
	says  string // a regular expression of its messages; "" where these data cannot provoke it
	rule  string
	codes []string
	not   string
}

// coveredBy returns a rule that the checks with codes, separated by spaces, cover.
func coveredBy(says, rule, codes string) upstreamRule {
	return upstreamRule{says: says, rule: rule, codes: strings.Fields(codes)}
}

// leftOut returns a rule that no check covers.
func leftOut(says, rule, why string) upstreamRule {
	return upstreamRule{says: says, rule: rule, not: why}
}

const (
	callerOnly  = "about the caller's own use of the validator"
	onlyInQuay  = "about the size of an image on a registry; OLM's limit is CSV021"
	engineOnly  = "needs a container engine. `--images` asks the registries themselves (IMG006)"
	openShift   = "a rule of OpenShift's catalogs about com.redhat.openshift.versions. CSV026 reports the removed APIs themselves"
	notInFormat = "package manifests are an older format, which OLM no longer reads"
)

// upstreamTools are the validators of others. Where several rules fit a message, the first counts.
var upstreamTools = []struct {
	title, intro string
	rules        []upstreamRule
}{
	{"operator-sdk bundle validate: the default suite", "ClusterServiceVersionValidator, CustomResourceDefinitionValidator and BundleValidator of operator-framework/api v0.45.0, which every bundle must pass. API001 and API002 run them.", []upstreamRule{
		coveredBy(`metadata\.name .*is invalid|spec\.replaces .*is invalid`, "names that Kubernetes refuses", "API001 CSV006 CSV007"),
		coveredBy(`required field missing`, "required fields of the CSV", "API001"),
		coveredBy(`annotations not found`, "a CSV without annotations or alm-examples", "API002 CSV016"),
		coveredBy("both `alm-examples` and `olm.examples`", "both alm-examples and olm.examples", "API002"),
		coveredBy(`invalid example|error decoding example`, "alm-examples that are no JSON", "CSV014 API001"),
		coveredBy(`example must have a provided API`, "an example of a kind or version that the CSV does not own", "CSV009 CSV015 API001"),
		leftOut(`provided API should have an example`, "a version of an owned kind without an example", "one example for each kind is enough; CSV016 reports kinds without any"),
		coveredBy(`couldn't parse plural\.group`, "an owned CRD's name without a group", "API001 CSV009"),
		coveredBy(`install modes not found|none of InstallModeTypes are supported`, "no install mode", "CSV012 API001"),
		coveredBy(`duplicate install modes`, "an install mode twice", "API001"),
		coveredBy(`only AllNamespaces InstallModeType`, "conversion with other install modes than AllNamespaces", "WHK005 API001"),
		coveredBy(`'apiVersion' is missing|'kind' is missing`, "a CSV without apiVersion or kind", "CSV001 API001"),
		coveredBy(`MinKubeVersion has an invalid value`, "an invalid minKubeVersion", "CSV013 API001"),
		coveredBy(`(?i)minKubeVersion`, "no minKubeVersion", "API002"),
		coveredBy(`uses wrong case`, "annotations in the wrong case", "API001"),
		coveredBy(`olm\.properties|properties annotation`, "the annotation olm.properties instead of metadata/properties.yaml", "API002"),
		coveredBy(`bundle name with release versioning`, "the name of a bundle with a release", "API001 CAT012"),
		coveredBy(`relatedImages\[\d+\] has an`, "related images without a valid image", "API001"),
		coveredBy(`invalid service account found in bundle`, "a shipped ServiceAccount that a Deployment uses", "API001"),
		coveredBy(`duplicate CRD`, "a CRD twice", "SCH002 API001"),
		coveredBy(`owned CRD .* not found in bundle`, "an owned CRD that the bundle does not contain", "CSV009"),
		coveredBy(`present in bundle .* but not defined in CSV`, "a CRD that the CSV does not own", "CSV010"),
		leftOut(`unable to check the bundle( compressed)? size`, "the size of a bundle is unknown", callerOnly),
		leftOut(`maximum bundle compressed size|nearing maximum bundle`, "the bundle's compressed size", onlyInQuay),
		coveredBy(`spec\.validation|spec\.versions|spec\.version\b|spec\.(preserveUnknownFields|names|scope)`, "CRDs that the API server refuses", "SCH001 CSV026 API001"),
		leftOut(`error converting crd`, "a CRD that cannot be converted", "SCH001 and SCH005 report what cannot be read"),
	}},
	{"operator-sdk bundle validate: good-practices", "GoodPracticesValidator. API001 and API002 run it.", []upstreamRule{
		coveredBy(`unable to find a deployment to install`, "no Deployment", "CSV018 API001"),
		coveredBy(`unable to find the resource requests`, "containers without resource requests", "CSV030"),
		coveredBy(`not following the versioning convention|is not following the recommended`, "the CSV's name is not PACKAGE.vVERSION", "CSV006 API002"),
		coveredBy(`channel\(s\) .* are not following`, "names of channels", "API002"),
		coveredBy(`permissions to create CRD`, "permissions to create CRDs", "API002"),
		coveredBy(`has an empty description`, "owned and required CRDs without description", "API002"),
		coveredBy(`owned CRDs do not have resources specified`, "owned CRDs without resources", "CSV028 CSV029 API002"),
	}},
	{"operator-sdk bundle validate: alpha-deprecated-apis", "AlphaDeprecatedAPIsValidator. API001 and API002 run it, and CSV026 reports the same at the object.", []upstreamRule{
		coveredBy(`APIs which were deprecated and removed`, "objects of APIs that Kubernetes removed", "CSV026 API001 API002"),
		leftOut(`unable to use csv\.Spec\.MinKubeVersion|invalid value informed via the k8s key`, "a Kubernetes version that cannot be read", callerOnly),
	}},
	{"operator-sdk bundle validate: operatorhub, operatorhub/v2, standardcapabilities, standardcategories", "OperatorHubV2Validator, StandardCapabilitiesValidator and StandardCategoriesValidator; the validator operatorhub is deprecated and runs all three. API003 runs them: they are the house rules of OperatorHub.io.", []upstreamRule{
		coveredBy(`csv\.Spec\.Icon not specified|Provider\.Name not specified`, "no icon, no provider", "CSV029"),
		coveredBy(`csv\.Spec\.Version must be set`, "no version", "CSV006"),
		coveredBy(`csv\.Spec\.(Icon|Links|Maintainers)|Annotations\.Capabilities|Annotations\["categories"\]`, "icons, links, maintainers, capabilities and categories", "API003"),
		leftOut(`validator is deprecated`, "the validator operatorhub is deprecated", callerOnly),
		leftOut(`could not extract custom categories`, "the file with custom categories", callerOnly),
	}},
	{"operator-sdk bundle validate: community", "CommunityOperatorValidator, of the pipeline of community-operators-prod.", []upstreamRule{
		leftOut(`csv\.Annotations|index image in the path|inform the path of|unable to parse the value|invalid syntax|range informed`, "labels and annotations for versions of OpenShift", openShift),
		leftOut(`this bundle is using APIs which were`, "removed APIs without a highest version of OpenShift", openShift),
	}},
	{"operator-sdk bundle validate: multiarch", "MultipleArchitecturesValidator.", []upstreamRule{
		leftOut(`unable to inspect the image|check if the image|node affinity|image data indicates|label \(`, "labels for platforms against the platforms of the images", engineOnly),
		leftOut(`not all images specified are providing`, "labels for platforms against the platforms of all images", engineOnly),
		leftOut(`invalid value \(.*\) for`, "the name of the container engine", callerOnly),
	}},
	{"ObjectValidator, OperatorGroupValidator and PackageManifestValidator", "Of operator-framework/api as well. API001 and API002 run the first.", []upstreamRule{
		coveredBy(`maxUnavailable field|minAvailable field|globalDefault field|securitycontextconstraints`, "PodDisruptionBudgets and PriorityClasses that harm a cluster, permissions on default SecurityContextConstraints", "API001"),
		coveredBy(`create/update poddisruptionbudgets`, "permissions to change PodDisruptionBudgets", "API002"),
		coveredBy(`error (converting unstructured|unmarshaling)`, "objects that cannot be read", "API001"),
		leftOut("", "OperatorGroups", "bundles contain none (CSV011); the validator only looks at its annotations' spelling"),
		leftOut(`packageName empty|channels empty|default channel|channel \d+ name|currentCSV is empty|package manifest channel`, "package manifests", notInFormat),
	}},
	{"opm validate", "The model of operator-registry v1.74.0, alpha/model.", []upstreamRule{
		coveredBy(`package name must not be empty|unknown package`, "documents without a package", "CAT002 CAT003"),
		coveredBy(`default channel must be set|default channel .* not found`, "no default channel", "CAT006"),
		coveredBy(`must contain at least one channel`, "a package without channels", "CAT005"),
		coveredBy(`must contain at least one bundle`, "a channel without entries, or a default channel that is none", "CAT007 CAT006"),
		coveredBy(`channel name must not be empty`, "a channel without name", "CAT002"),
		coveredBy(`duplicate versions found`, "a version twice", "CAT015"),
		leftOut(`icon media type`, "an icon of another type than it says", "consoles show the icon as it is; opm checks it only in olm.package"),
		coveredBy(`no channel head found|multiple channel heads|detected cycle`, "not exactly one head", "GRA001"),
		coveredBy(`contains one or more stranded bundles`, "stranded entries", "GRA002"),
		coveredBy(`^name must be set|bundle name`, "a bundle without name", "CAT002"),
		coveredBy(`does not match normalized name`, "the name of a bundle with a release", "CAT012"),
		coveredBy(`skip\[\d+\] is empty`, "an empty name in skips", "GRA005"),
		coveredBy(`invalid skipRange`, "an invalid skipRange", "GRA004"),
		coveredBy(`exactly one property with type|parse property|olm\.package`, "the property olm.package", "CAT012 CAT013"),
		coveredBy(`bundle image must be set`, "a bundle without image or manifests", "CAT011"),
		coveredBy(`invalid image pull spec`, "invalid image references", "CAT014"),
		coveredBy(`invalid deprecation`, "deprecations", "CAT016"),
		coveredBy(`cannot use build metadata`, "build metadata in a version with a release", "CAT012"),
		coveredBy(`duplicate (package|channel|bundle)|more than one|multiple olm\.package`, "a document twice", "CAT001"),
		coveredBy(`no olm\.bundle blobs found|not found in any channel entries|not found in`, "entries without bundle, bundles without entry", "CAT008 CAT009"),
		leftOut(`invalid (index|package|channel|bundle|related image|icon)`, "the heading of what follows it", "no rule of its own"),
	}},
	{"opm alpha bundle validate", "pkg/lib/bundle of operator-registry v1.74.0. It needs an image, so it is not among what the test runs.", []upstreamRule{
		coveredBy("", "no manifests or metadata directory, no annotations file, missing or wrong annotations", "CSV020"),
		coveredBy("", "kinds that OLM does not support", "CSV011"),
		coveredBy("", "CRDs of an unsupported API version", "CSV026"),
		coveredBy("", "invalid dependencies", "CAT013 DEP003"),
		coveredBy("", "invalid metadata of objects", "API001 CSV036"),
	}},
}

// ruleFor returns the first rule that a message of a tool of others fits, or nil.
func ruleFor(message string) *upstreamRule {
	for _, tool := range upstreamTools {
		for i, r := range tool.rules {
			if r.says != "" && regexp.MustCompile(r.says).MatchString(message) {
				return &tool.rules[i]
			}
		}
	}
	return nil
}

// TestUpstreamPage holds docs/checks/upstream.md against the rules; -update writes it anew.
func TestUpstreamPage(t *testing.T) {
	var page strings.Builder
	page.WriteString("# Rules of other validators\n\nWhich checks cover the rules of the validators that catalog pipelines and operator-sdk run, and why the others are left out. " +
		"`make published` runs these validators on published bundles: each of their messages is in this table, and one of the codes is found on the same bundle.\n")
	for _, tool := range upstreamTools {
		fmt.Fprintf(&page, "\n## %s\n\n%s\n\n| rule | checks |\n|---|---|\n", tool.title, tool.intro)
		for _, r := range tool.rules {
			said := "none: " + r.not
			if r.not == "" {
				var links []string
				for _, code := range r.codes {
					if !slices.ContainsFunc(documented(), func(c Check) bool { return c.Code == code }) {
						t.Errorf("%q names %s, which is no check", r.rule, code)
					}
					links = append(links, fmt.Sprintf("[%s](%s.md#%s)", code, Family(code), strings.ToLower(code)))
				}
				said = strings.Join(links, " ")
			}
			fmt.Fprintf(&page, "| %s | %s |\n", cell(r.rule), said)
		}
	}
	golden(t, filepath.Join("..", "..", "docs", "checks", "upstream.md"), page.String())
}

// accounted compares what others say of something with what the checks say of it.
func accounted(t *testing.T, of string, messages []string, found []finding.Finding, unknown map[string]bool) {
	t.Helper()
	for _, message := range messages {
		r := ruleFor(message)
		switch {
		case r == nil:
			if short := message[:min(len(message), 200)]; !unknown[short] {
				unknown[short] = true
				t.Errorf("%s: docs/checks/upstream.md has no rule for %q", of, short)
			}
		case r.not == "" && !slices.ContainsFunc(found, func(f finding.Finding) bool { return slices.Contains(r.codes, f.Code) }):
			t.Errorf("%s: others say %q, and none of %v is found", of, message[:min(len(message), 300)], r.codes)
		}
	}
}

// TestPublishedUpstream runs the validators of others over every eighth published bundle, the first of each package, and the
// catalogs.
func TestPublishedUpstream(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // one of them has docker ask registries for each image, also when told to use no tool
	dirs, err := filepath.Glob(filepath.Join(published(t), "*", "*", "manifests"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no bundles: %v", err)
	}
	unknown, packages, count := map[string]bool{}, map[string]bool{}, 0
	for i, dir := range dirs {
		dir = filepath.Dir(dir)
		if packages[filepath.Dir(dir)] && i%8 > 0 { // releases of a package are much alike
			continue
		}
		packages[filepath.Dir(dir)] = true
		theirs, err := manifests.GetBundleFromDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var messages []string
		objects := append(theirs.ObjectsToValidate(), map[string]string{"container-tools": "none"})
		//nolint:staticcheck // the old one is what operator-sdk runs
		for _, result := range append(validation.AllValidators, validation.OperatorHubValidator).Validate(objects...) {
			for _, e := range slices.Concat(result.Errors, result.Warnings) {
				messages = append(messages, strings.Join(strings.Fields(e.Error()), " "))
			}
		}
		b, err := bundle.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		count += len(messages)
		accounted(t, dir, messages, Bundle(b, nil), unknown)
	}
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		c := publishedCatalog(t, dir)
		count += opmAccounted(t, dir, c, unknown)
	}
	t.Logf("%d messages of others on bundles and catalogs of %d packages", count, len(packages))
}

// opmAccounted compares with what opm validate says of a catalog.
func opmAccounted(t *testing.T, of string, c *catalog.Catalog, unknown map[string]bool) int {
	t.Helper()
	var text bytes.Buffer
	if err := catalog.Write(&text, "json", c.Sorted()); err != nil {
		t.Fatal(err)
	}
	config, err := declcfg.LoadReader(&text)
	if err == nil {
		_, err = declcfg.ConvertToModel(*config)
	}
	if err == nil {
		return 0
	}
	var messages []string
	for _, line := range strings.Split(err.Error(), "\n") {
		if line = strings.TrimLeft(line, " │├└─"); line != "" {
			messages = append(messages, line)
		}
	}
	found, _ := Catalog(c, Options{})
	accounted(t, of, messages, found, unknown)
	return len(messages)
}

// Each message of opm on a broken catalog has its rule as well.
func TestUpstreamOPM(t *testing.T) {
	for _, change := range []struct{ old, new string }{
		{"defaultChannel: stable", "defaultChannel: none"},
		{"  replaces: tea.v1.1.0\n", ""},
		{"version: 1.1.0}}", "version: 1.0.0}}"},
		{"- name: tea.v1.1.0\n  replaces: tea.v1.0.0\n", "- name: tea.v1.1.0\n  replaces: tea.v1.0.0\n  skips: ['']\n"},
		{"- name: tea.v1.1.0\n  replaces: tea.v1.0.0\n", "- name: tea.v1.1.0\n  replaces: tea.v1.0.0\n  skipRange: <v2\n"},
		{"name: candidate\n", "name: stable\n"},
		{"image: registry.example.com/tea:1.1.0\n", "image: ''\n"},
	} {
		broken := strings.Replace(sane, change.old, change.new, 1)
		if broken == sane {
			t.Fatalf("%q changes nothing", change.old)
		}
		if opmAccounted(t, change.old, catalog.Parse("f", []byte(broken)), map[string]bool{}) == 0 {
			t.Errorf("opm has nothing against %q", change.new)
		}
	}
}
