package check

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mistake is a mistake in a package or an upgrade, and the checks that find it; without any, the reason.
type mistake struct {
	what  string
	codes []string
	not   string
}

// see returns a mistake that the checks with codes, separated by spaces, find.
func see(what, codes string) mistake { return mistake{what: what, codes: strings.Fields(codes)} }

// mistakes lists all known mistakes that break packages and upgrades, by section.
var mistakes = []struct {
	title string
	list  []mistake
}{
	{"The upgrade graph", []mistake{
		see("several heads, no head, or a cycle; a stranded entry; no default channel; the same version twice", "GRA001 GRA002 CAT006 CAT015"),
		see("a tail that replaces an entry that left the catalog; replaces or skips of an entry that never existed", "GRA006 GRA007"),
		see("an entry that replaces or skips itself, or skips nothing", "GRA005"),
		see("an edge to a lower version; a name with another version", "GRA008 GRA013"),
		see("a skipRange that is invalid or empty, or that covers its own version or newer ones", "GRA004 GRA014 GRA009 GRA015"),
		see("skipped entries that skip each other; a skip that strands users of the skipped entry", "GRA016 GRA003"),
		see("an entry from which OLM finds no upgrade to the head", "GRA003"),
		see("edges that OLM never takes, and edges that it takes although no channel declares them", "GRA010 GRA011"),
		see("an entry that needs many upgrades to reach the head", "GRA017"),
		see("channels that contradict each other; a default channel with an older head; a change of channel without an edge, or to an older release", "GRA020 GRA012 GRA018 GRA019"),
		see("a deprecated head", "GRA021 CMP008"),
		see("a ClusterServiceVersion with other edges than the channels", "GRA022"),
		see("channels that differ from the template's result, for example a semver template's", "TPL001"),
	}},
	{"Compared with the published catalog (`--against`)", []mistake{
		see("removed packages, channels or releases that users have; removed edges", "CMP001 CMP002 CMP003 CMP007"),
		see("a lower head; another default channel", "CMP004 CMP006"),
		see("other content under the same name", "CMP005"),
	}},
	{"The catalog's documents", []mistake{
		see("invalid documents: syntax, schema, types", "FBC001 FBC002 FBC003"),
		see("unknown, misspelt and duplicate fields; unknown schemas; invalid or misspelt properties", "CAT017 CAT018 CAT019 CAT020 CAT013 CAT023"),
		see("duplicate, nameless and orphaned documents; no package, channel or entry", "CAT001 CAT002 CAT003 CAT005 CAT007 CAT009 CAT010"),
		see("invalid or too long names of packages and bundles", "CAT004 CAT022 CAT024"),
		see("entries without a bundle; deprecations of missing objects", "CAT008 CAT016"),
		see("bundles without content, with duplicate content, or without olm.csv.metadata", "CAT011 CAT021 CAT027"),
		see("different names or versions in bundle, olm.package and ClusterServiceVersion", "CAT012 CAT025 CAT026"),
		see("invalid image references; a catalog too large for a message", "CAT014 CAT028"),
		{what: "a cache of opm that does not fit the catalog", not: "the cache's digest covers the files in the catalog's image, their modes, and the result of that image's opm. Only that opm can check it, with `opm serve --cache-enforce-integrity`"},
	}},
	{"Dependencies", []mistake{
		see("a requirement that no package satisfies, or not at every hop", "DEP001 DEP002 DEP005"),
		see("new requirements", "DEP006"),
		see("an API that two packages provide, or that is removed or moved to another package", "DEP004 DEP007 DEP008"),
		see("invalid constraints", "DEP003"),
		see("requirements and constraints that together keep OLM from an upgrade, found by OLM's resolver", "DEP009"),
	}},
	{"CRDs, compared with the previous release", []mistake{
		see("a version that is removed or no longer served", "CRD003 CRD012 CRD001 CRD002"),
		see("a version that is no longer served, and that the previous ClusterServiceVersion owns", "CRD022"),
		see("another storage version without conversion", "CRD004 CRD013"),
		see("a new version in which existing objects are invalid", "CRD018"),
		see("a stricter schema; samples of the previous release that are invalid", "CRD006 CRD008"),
		see("a new CEL rule; samples that violate it, or that cannot be applied over the previous release's", "CRD019 CRD020 CRD021"),
		see("removed fields; changed defaults; changed merge strategies", "CRD007 CRD010 CRD016"),
		see("updates that the API server refuses: scope, group, kind, plural name, CEL", "CRD005"),
		see("changed short names, categories or list kind; removed columns", "CRD014 CRD017"),
		see("a removed CRD", "CRD009"),
		see("a removed or changed status or scale subresource", "CRD011 CRD015"),
	}},
	{"CRDs of one release", []mistake{
		see("CRDs that the API server refuses: structure, storage versions, CEL and its cost, columns", "SCH001"),
		see("no served version; name conflicts; unknown fields", "SCH003 SCH002 SCH005"),
		see("CRDs that are too large for etcd or an InstallPlan", "SCH004"),
		see("served versions with different schemas, without conversion", "SCH006"),
		see("spec.conversion only in the CRD, or only in the ClusterServiceVersion, and the outage that follows", "WHK006 WHK018 WHK007 WHK008"),
		see("OLM's requirements for a conversion webhook", "WHK005"),
		see("an address or CA in the bundle's spec.conversion", "WHK016"),
	}},
	{"The ClusterServiceVersion and the rest of the bundle", []mistake{
		see("no ClusterServiceVersion, or several; fields with the wrong type, unknown and duplicate fields; integers above 2^53", "CSV001 CSV002 CSV003 CSV004 CSV034"),
		see("unknown fields of other objects", "CSV037"),
		see("changed immutable fields of other objects: roleRef, the value of a PriorityClass, clusterIP, an immutable Secret or ConfigMap", "EDG010"),
		see("a version that increases by less than the changes ask for", "EDG013"),
		see("a second document in a file; a document that is not an object", "CSV005 CSV036"),
		see("invalid name, version, replaces, skips or skipRange", "CSV006 CSV007 CSV008"),
		see("owned CRDs that are missing; CRDs that are not owned", "CSV009 CSV010"),
		see("kinds that OLM refuses, removed APIs, APIs that only some clusters have", "CSV011 CSV026 CSV027 CSV039"),
		see("no install mode, or fewer than before; an unknown install strategy", "CSV012 EDG003 CSV040"),
		see("an owned APIService of a missing Deployment", "CSV041"),
		see("an invalid minimum Kubernetes version, or a higher one than before", "CSV013 EDG007"),
		see("alm-examples that are missing, not JSON, invalid under the schema or its CEL rules, or of a version that is not served", "CSV014 CSV015 CSV016"),
		see("descriptors of missing fields; no createdAt, icon or provider", "CSV028 CSV029"),
		see("a missing or wrong annotations.yaml; a default channel that does not exist", "CSV020 CSV035"),
		see("a bundle larger than a ConfigMap", "CSV021"),
		see("findings of the validators of operator-framework/api", "API001 API002 API003"),
		see("labels of the bundle's image that contradict annotations.yaml", "CSV038"),
	}},
	{"Deployments", []mistake{
		see("a changed selector of a Deployment; a renamed Deployment", "EDG001 EDG002"),
		see("no Deployment; a selector that does not match the pods; no replicas; the strategy Recreate; a volume with a rolling update", "CSV018 CSV017 CSV023 CSV024 CSV025"),
		see("no probe, no resource requests, root, no seccomp profile, hostPath", "CSV019 CSV030 CSV031 CSV032 CSV033"),
	}},
	{"Permissions", []mistake{
		see("permissions lost from release to release; permissions gained", "EDG004 EDG008 EDG005"),
		see("no rule for owned or required kinds", "RBAC003 RBAC009"),
		see("all verbs or resources; permissions to escalate privileges; all Secrets", "RBAC004 RBAC010 RBAC005 RBAC006"),
		see("cluster-scoped resources in namespaced permissions", "RBAC007"),
		see("service accounts that are missing, unused, duplicate, or both shipped and created by OLM", "RBAC001 RBAC002 RBAC008 CSV022"),
	}},
	{"Webhooks", []mistake{
		see("a missing Deployment, port or path; names that are too long or duplicate", "WHK001 WHK002 WHK003 WHK012 WHK013 WHK004 WHK011"),
		see("fields that the API server or OLM refuses: admissionReviewVersions, sideEffects, groups", "WHK010 WHK009"),
		see("values that the API server refuses: types, policies, ports, timeouts", "WHK019"),
		see("failurePolicy Fail with one pod, or for objects that the operator itself needs; rules for some versions only", "WHK014 WHK015 WHK017"),
		see("a webhook that the next release removes", "EDG006"),
		see("a new validating webhook for existing objects", "EDG009"),
		see("failurePolicy Fail instead of Ignore; a wider objectSelector or matchPolicy, a shorter timeout", "EDG011 EDG012"),
		{what: "a validating webhook that refuses objects of an older version", not: "only the running operator shows what its code refuses: `olmkit upgrade test` writes such objects"},
	}},
	{"Images", []mistake{
		see("images that are not in relatedImages, or are named by tag or by latest", "IMG001 IMG002 IMG004 IMG003"),
		see("digests that the registry does not have; platforms that an image lacks", "IMG005 IMG006"),
	}},
	{"Only under OLM v1", []mistake{
		see("dependencies, owned APIServices, no install mode AllNamespaces", "OLM001 OLM002 OLM003"),
		see("webhooks for OLM v1's own API or webhook configurations; two conversion webhooks of a CRD; their names", "OLM009"),
		see("names of channels that a ClusterExtension cannot have", "OLM004"),
		see("changes of CRDs that OLM v1 refuses before it touches the cluster", "OLM005"),
		see("CRDs that OLM v1 deletes, with their objects, as a release does not contain them any more", "OLM008"),
		see("what a ClusterExtension without a channel gets; where one that is SelfCertified goes without an edge, by a plan under OLM v1", "OLM006 OLM007"),
	}},
	{"Suppressions", []mistake{
		see("suppressions of an unknown code, incomplete, expired, or unused", "ACC001 ACC002 ACC003 ACC004"),
	}},
}

// TestDocsCoverage compares docs/checks/mistakes.md, which lists the checks of each mistake, with the checks: each
// is there, and there is no other. -update writes it anew.
func TestDocsCoverage(t *testing.T) {
	unplaced := map[string]bool{}
	for _, c := range documented() {
		unplaced[c.Code] = true
	}
	known := func(code string) bool {
		return slices.ContainsFunc(documented(), func(c Check) bool { return c.Code == code })
	}
	var text strings.Builder
	text.WriteString("# Known mistakes and their checks\n\nMistakes that break packages and upgrades, and the checks that find them without a cluster.\n")
	for _, part := range mistakes {
		fmt.Fprintf(&text, "\n## %s\n\n| mistake | checks |\n|---|---|\n", part.title)
		for _, m := range part.list {
			var links []string
			for _, code := range m.codes {
				if !known(code) {
					t.Errorf("%q names %s, which is no check", m.what, code)
				}
				delete(unplaced, code)
				links = append(links, fmt.Sprintf("[%s](%s.md#%s)", code, Family(code), strings.ToLower(code)))
			}
			said := strings.Join(links, " ")
			if m.not != "" {
				said = "none: " + m.not
			}
			fmt.Fprintf(&text, "| %s | %s |\n", cell(m.what), said)
		}
	}
	for code := range unplaced {
		t.Errorf("%s is named by no mistake: say in mistakes what it sees", code)
	}
	golden(t, filepath.Join("..", "..", "docs", "checks", "mistakes.md"), text.String())
}
