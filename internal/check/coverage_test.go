package check

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mistake is a way in which packages and upgrades break, and the checks that see it; without any, why none does.
type mistake struct {
	what  string
	codes []string
	not   string
}

// see is a mistake that the checks with codes, separated by spaces, see.
func see(what, codes string) mistake { return mistake{what: what, codes: strings.Fields(codes)} }

// mistakes are all that is known to break packages and upgrades, by what they are in.
var mistakes = []struct {
	title string
	list  []mistake
}{
	{"The upgrade graph", []mistake{
		see("more than one head, none, a cycle; a stranded entry; no default channel; a version twice", "GRA001 GRA002 CAT006 CAT015"),
		see("a tail that replaces what has left the catalog; replaces or skips of what never was", "GRA006 GRA007"),
		see("an entry that replaces or skips itself, or skips nothing", "GRA005"),
		see("versions that go backwards along an edge; a name that says another version", "GRA008 GRA013"),
		see("a skipRange that cannot be read, is empty, covers its own version or newer ones", "GRA004 GRA014 GRA009 GRA015"),
		see("skipped entries that skip one another; a skip that strands the users of what is skipped", "GRA016 GRA003"),
		see("an entry from which OLM finds no way to the head", "GRA003"),
		see("edges that OLM never takes, and edges that it takes undeclared", "GRA010 GRA011"),
		see("many upgrades to the head", "GRA017"),
		see("channels that contradict one another; a default channel that is older; a switch without an edge, or to an older release", "GRA020 GRA012 GRA018 GRA019"),
		see("a deprecated head", "GRA021 CMP008"),
		see("a ClusterServiceVersion that says other edges than the channels", "GRA022"),
		see("channels that are not what the template, a semver one for example, makes of the bundles", "TPL001"),
	}},
	{"The catalog before (`--against`)", []mistake{
		see("packages, channels or releases gone that users have; edges gone", "CMP001 CMP002 CMP003 CMP007"),
		see("a head that went back; another default channel", "CMP004 CMP006"),
		see("another content under the same name", "CMP005"),
	}},
	{"The catalog's documents", []mistake{
		see("what cannot be read: syntax, schema, types", "FBC001 FBC002 FBC003"),
		see("unknown, misspelt and doubled fields; unknown schemas; properties that cannot be read or are misspelt", "CAT017 CAT018 CAT019 CAT020 CAT013 CAT023"),
		see("doubled, nameless and orphaned documents; no package, channel, entry", "CAT001 CAT002 CAT003 CAT005 CAT007 CAT009 CAT010"),
		see("names of packages and bundles that are too long, or no names", "CAT004 CAT022 CAT024"),
		see("entries of bundles that are not there; deprecations of what is not there", "CAT008 CAT016"),
		see("bundles without content, with it twice, or without olm.csv.metadata", "CAT011 CAT021 CAT027"),
		see("name and version of bundle, olm.package and ClusterServiceVersion apart", "CAT012 CAT025 CAT026"),
		see("image references that cannot be read; a catalog too large for a message", "CAT014 CAT028"),
		{what: "a cache that opm made and that is not of this catalog", not: "its digest is of the files as they lie in the catalog's image, their modes included, and of what the opm there makes of them: that opm alone can tell, with `opm serve --cache-enforce-integrity`"},
	}},
	{"Dependencies", []mistake{
		see("a requirement that nothing satisfies, or not at every hop", "DEP001 DEP002 DEP005"),
		see("new requirements", "DEP006"),
		see("an API of two packages, dropped or handed over", "DEP004 DEP007 DEP008"),
		see("constraints that cannot be read", "DEP003"),
	}},
	{"CRDs, from release to release", []mistake{
		see("a version that is not served any more, or removed", "CRD003 CRD012 CRD001 CRD002"),
		see("another stored version without a conversion", "CRD004 CRD013"),
		see("a further version that objects do not fit", "CRD018"),
		see("a stricter schema; samples of the release before that do not fit", "CRD006 CRD008"),
		see("a new CEL rule", "CRD019"),
		see("fields gone; other defaults; other ways to merge", "CRD007 CRD010 CRD016"),
		see("updates that the API server refuses: scope, group, kind, plural, CEL", "CRD005"),
		see("other short names, categories, list kind; columns gone", "CRD014 CRD017"),
		see("a CRD gone", "CRD009"),
		see("the status or scale subresource removed or changed", "CRD011 CRD015"),
	}},
	{"CRDs of one release", []mistake{
		see("what the API server refuses: structure, storage versions, CEL and its cost, columns", "SCH001"),
		see("nothing served; names that collide; unknown fields", "SCH003 SCH002 SCH005"),
		see("too large for etcd or an InstallPlan", "SCH004"),
		see("served versions that differ, without a conversion", "SCH006"),
		see("spec.conversion in the CRD and not in the ClusterServiceVersion, or the reverse: which window an update has", "WHK006 WHK018 WHK007 WHK008"),
		see("what OLM asks of a conversion webhook", "WHK005"),
		see("an address or CA in the bundle's conversion", "WHK016"),
	}},
	{"The ClusterServiceVersion and what is beside it", []mistake{
		see("none, or several; fields of the wrong type, unknown, doubled; integers beyond 2^53", "CSV001 CSV002 CSV003 CSV004 CSV034"),
		see("unknown fields of other objects", "CSV037"),
		see("a second document in a file; a document that is no object", "CSV005 CSV036"),
		see("name, version, replaces, skips, skipRange", "CSV006 CSV007 CSV008"),
		see("owned CRDs that are not there; CRDs that are not owned", "CSV009 CSV010"),
		see("kinds that OLM refuses, APIs that are gone, APIs that not every cluster has", "CSV011 CSV026 CSV027"),
		see("install modes: none, fewer than before", "CSV012 EDG003"),
		see("the lowest version of Kubernetes: none that can be read, a higher one than before", "CSV013 EDG007"),
		see("alm-examples: no JSON, not fitting their schema, of an unserved version, missing", "CSV014 CSV015 CSV016"),
		see("descriptors of what is not there; no createdAt, icon, provider", "CSV028 CSV029"),
		see("annotations.yaml missing or wrong; a default channel that is none", "CSV020 CSV035"),
		see("a bundle larger than a ConfigMap", "CSV021"),
		see("what the validators of operator-framework/api say", "API001 API002"),
		see("labels of the bundle's image that contradict annotations.yaml", "CSV038"),
	}},
	{"Deployments", []mistake{
		see("another selector under the same name; a Deployment renamed", "EDG001 EDG002"),
		see("no Deployment; a selector that its pods do not match; no replicas; Recreate; a volume that is rolled", "CSV018 CSV017 CSV023 CSV024 CSV025"),
		see("no probe, no requests, root, no seccomp profile, hostPath", "CSV019 CSV030 CSV031 CSV032 CSV033"),
	}},
	{"Permissions", []mistake{
		see("rights lost from release to release; rights gained", "EDG004 EDG008 EDG005"),
		see("no rule for what is owned or required", "RBAC003 RBAC009"),
		see("all verbs or resources; rights to raise rights; all Secrets", "RBAC004 RBAC010 RBAC005 RBAC006"),
		see("cluster-scoped resources in namespaced permissions", "RBAC007"),
		see("service accounts: absent, unused, twice, shipped and made", "RBAC001 RBAC002 RBAC008 CSV022"),
	}},
	{"Webhooks", []mistake{
		see("deployment, port or path that are not there; names too long or twice", "WHK001 WHK002 WHK003 WHK012 WHK013 WHK004 WHK011"),
		see("what the API server or OLM refuses: admissionReviewVersions, sideEffects, groups", "WHK010 WHK009"),
		see("must answer with one pod, or for what the operator itself needs; some versions only", "WHK014 WHK015 WHK017"),
		see("a webhook gone from release to release", "EDG006"),
		see("a validating webhook for objects that none judged before", "EDG009"),
		{what: "a validating webhook that refuses objects of an older version", not: "what it refuses is the operator's code, which only answers when it runs: `olmkit upgrade test` writes such objects"},
	}},
	{"Images", []mistake{
		see("not among the related images; by tag, by latest", "IMG001 IMG002 IMG004 IMG003"),
		see("digests that the registry does not have, platforms that an image lacks", "IMG005 IMG006"),
	}},
	{"Suppressions", []mistake{
		see("of no check, incomplete, past their day, of nothing", "ACC001 ACC002 ACC003 ACC004"),
	}},
}

// TestDocsCoverage holds docs/checks/mistakes.md, which says of each mistake which check sees it, against the checks: each
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
	text.WriteString("# Which check sees what\n\nWhat is known to break packages and upgrades, and the checks that see it before anything is installed.\n")
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
