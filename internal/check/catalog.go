package check

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/operator-registry/alpha/model"
	"go.podman.io/image/v5/docker/reference"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/nearest"
)

const formatReference = "https://olm.operatorframework.io/docs/reference/file-based-catalogs/"

// catalogChecks look at a catalog's documents; the upgrade graph is graphChecks' matter.
var catalogChecks = []Check{
	{
		Code: "CAT001", Severity: finding.Error,
		Title:      "two documents define the same package, channel or bundle",
		Cause:      "opm and OLM refuse a catalog that defines a name twice",
		Fix:        "remove one of the two documents",
		References: []string{formatReference},
		run:        duplicateDocuments,
		whole:      true,
	},
	{
		Code: "CAT002", Severity: finding.Error,
		Title:      "a document has no package or no name",
		Cause:      "opm and OLM refuse a catalog with a channel or bundle without package or name",
		Fix:        "set name, and package in channels, bundles and deprecations",
		References: []string{formatReference},
		run:        namelessDocuments,
		whole:      true,
	},
	{
		Code: "CAT003", Severity: finding.Error,
		Title:      "a package has channels or bundles, but no " + catalog.SchemaPackage,
		Cause:      "opm and OLM refuse a catalog that uses a package without defining it",
		Fix:        "add a document of schema " + catalog.SchemaPackage + ", or correct the package's name in the document",
		References: []string{formatReference},
		run: perPackage(func(p *catalog.Package, found func(hit)) {
			if p.Document == nil {
				found(hit{at: p.At, message: fmt.Sprintf("no document defines package %q", p.Name)})
			}
		}),
	},
	{
		Code: "CAT004", Severity: finding.Error,
		Title: "the name of a package is no DNS label",
		Cause: "OLM uses the name in names and labels of Kubernetes objects, and opm refuses other names",
		Fix:   "use lower case letters, digits and '-', at most 63 characters",
		run: perPackage(func(p *catalog.Package, found func(hit)) {
			if wrong := wrongPackageName(p.Name); wrong != "" && p.Document != nil {
				found(hit{at: p.Document.Place("name"), message: wrong})
			}
		}),
		alone: func(s *single, found func(hit)) {
			if wrong := wrongPackageName(s.bundle.Package()); wrong != "" && s.bundle.Package() != "" {
				found(hit{at: s.bundle.AnnotationsAt, message: wrong})
			}
		},
	},
	{
		Code: "CAT005", Severity: finding.Error,
		Title:      "a package has no channel",
		Cause:      "opm and OLM refuse a catalog with a package that nobody can subscribe to",
		Fix:        "add a document of schema " + catalog.SchemaChannel,
		References: []string{formatReference},
		run: perPackage(func(p *catalog.Package, found func(hit)) {
			if len(p.Channels) == 0 {
				found(hit{at: p.At, message: fmt.Sprintf("package %s has no channel", p.Name)})
			}
		}),
	},
	{
		Code: "CAT006", Severity: finding.Error,
		Title:      "the default channel is missing, or is no channel of the package",
		Cause:      "opm and OLM refuse the catalog; a Subscription that names no channel uses the default channel",
		Fix:        "set defaultChannel to one of the package's channels",
		References: []string{formatReference},
		run:        defaultChannel,
	},
	{
		Code: "CAT007", Severity: finding.Error,
		Title:      "a channel has no entries",
		Cause:      "opm and OLM refuse a catalog with an empty channel",
		Fix:        "add entries, or remove the channel",
		References: []string{formatReference},
		run: perChannel(func(_ *catalog.Package, c *catalog.Channel, found func(hit)) {
			if len(c.Entries) == 0 {
				found(hit{at: c.At, message: fmt.Sprintf("channel %s has no entries", c.Name)})
			}
		}),
	},
	{
		Code: "CAT008", Severity: finding.Error,
		Title:      "a channel names a bundle that the catalog does not contain",
		Cause:      "opm and OLM refuse the catalog: the entry has no bundle to install",
		Fix:        "add the bundle to the catalog, or remove the entry from the channel",
		References: []string{formatReference},
		run:        absentBundles,
	},
	{
		Code: "CAT009", Severity: finding.Error,
		Title:      "a bundle is in no channel",
		Cause:      "opm and OLM refuse the catalog: the bundle can never be installed",
		Fix:        "add the bundle to a channel, or remove it from the catalog",
		References: []string{formatReference},
		run: perPackage(func(p *catalog.Package, found func(hit)) {
			for _, b := range p.Bundles {
				if !slices.ContainsFunc(p.Channels, func(c *catalog.Channel) bool { return c.Entry(b.Name) != nil }) {
					found(hit{Subject: finding.Subject{From: b.Name}, at: b.At, message: fmt.Sprintf("bundle %s is in no channel of package %s", b.Name, p.Name)})
				}
			}
		}),
	},
	{
		Code: "CAT010", Severity: finding.Error,
		Title:      "a channel has an entry twice, or an entry without name",
		Cause:      "opm and OLM refuse the catalog: all edges of an entry must be in one place",
		Fix:        "merge the entries into one",
		References: []string{formatReference},
		run:        duplicateEntries,
	},
	{
		Code: "CAT011", Severity: finding.Error,
		Title:      "a bundle has neither an image nor manifests",
		Cause:      "opm and OLM refuse the catalog: the bundle has nothing to install",
		Fix:        "set image to the bundle's image, or render the bundle from its directory",
		References: []string{formatReference},
		run: perBundle(func(_ *catalog.Package, b *catalog.Bundle, found func(hit)) {
			if b.Image == "" && !b.Has(catalog.PropertyObject) {
				found(hit{at: b.Document.Place("image"), message: fmt.Sprintf("bundle %s has no image and carries no manifests", b.Name)})
			}
		}),
	},
	{
		Code: "CAT012", Severity: finding.Error,
		Title:      "a bundle's " + catalog.PropertyPackage + " property is missing, duplicate or wrong",
		Cause:      "OLM reads a bundle's package and version from this property; opm and OLM refuse the catalog unless the bundle has exactly one, with its own package",
		Fix:        "write one property of type " + catalog.PropertyPackage + " with the bundle's packageName and version",
		References: []string{formatReference},
		run:        packageProperty,
	},
	{
		Code: "CAT013", Severity: finding.Error,
		Title:      "the value of a property is invalid",
		Cause:      "opm and OLM refuse a catalog with a property whose value does not have the form of its type",
		Fix:        "write the value as the format requires",
		References: []string{formatReference + "#properties"},
		run:        perBundle(unreadableProperties),
		alone:      ofDeclared(func(p declared) []propertyProblem { return problemOf(unreadable(p.rendered)) }),
	},
	{
		Code: "CAT014", Severity: finding.Error,
		Title: "an image reference is invalid",
		Cause: "opm refuses the catalog, and the image cannot be pulled",
		Fix:   "write registry/repository:tag or registry/repository@sha256:digest",
		run:   imageReferences,
	},
	{
		Code: "CAT015", Severity: finding.Error,
		Title: "two bundles of a package have the same version",
		Cause: "opm refuses the catalog: OLM cannot decide which of the two is newer",
		Fix:   "give each release its own version",
		run:   duplicateVersions,
	},
	{
		Code: "CAT016", Severity: finding.Error,
		Title:      "a deprecation is incomplete, or names something that the catalog does not contain",
		Cause:      "opm and OLM refuse the catalog",
		Fix:        "set reference to the schema and name of what is deprecated (no name for the package), and write in message what users should do",
		References: []string{formatReference},
		run:        deprecations,
	},
	{
		Code: "CAT017", Severity: finding.Error,
		Title:      "a field is misspelt",
		Cause:      "OLM and opm silently ignore unknown fields, so the field has no effect",
		Fix:        "correct the field's name",
		References: []string{formatReference},
		run:        misspeltFields,
		whole:      true,
	},
	{
		Code: "CAT018", Severity: finding.Warning,
		Title:      "a field is unknown",
		Cause:      "unknown fields are silently ignored, and lost when opm rewrites the catalog",
		Fix:        "remove the field, or move its content into a property",
		References: []string{formatReference},
		run:        unknownFields,
		whole:      true,
	},
	{
		Code: "CAT019", Severity: finding.Warning,
		Title:      "a document has an unknown schema that looks like one of OLM's",
		Cause:      "documents of unknown schemas are silently ignored",
		Fix:        "correct the schema; start your own schemas with another word than olm",
		References: []string{formatReference},
		run:        unknownSchemas,
		whole:      true,
	},
	{
		Code: "CAT020", Severity: finding.Warning,
		Title: "a YAML mapping contains a key twice",
		Cause: "only the last one has an effect; the first is silently lost",
		Fix:   "remove one of the two keys",
		run:   duplicateKeys,
		whole: true,
	},
	{
		Code: "CAT021", Severity: finding.Warning,
		Title:      "the head of a channel has neither its manifests nor " + catalog.PropertyCSVMetadata,
		Cause:      "OLM's package server shows the heads of channels, and without them has no description, icon and examples; other releases do not need them",
		Fix:        "render the bundle with a current opm or olmkit, which adds " + catalog.PropertyCSVMetadata,
		References: []string{formatReference},
		run:        headWithoutMetadata,
	},
	{
		Code: "CAT022", Severity: finding.Warning,
		Title: "the name of a bundle is too long for a label",
		Cause: "OLM writes the name of the ClusterServiceVersion into labels of the objects that it creates (operator-lifecycle-manager v0.46.0, pkg/lib/ownerutil); a label value has at most 63 characters",
		Fix:   "shorten the name to at most 63 characters",
		run: perContent(perBundle(func(_ *catalog.Package, b *catalog.Bundle, found func(hit)) {
			if len(b.Name) > validation.LabelValueMaxLength {
				found(hit{at: b.Document.Place("name"), message: fmt.Sprintf("the name of bundle %s has %d characters", b.Name, len(b.Name))})
			}
		})),
	},
	{
		Code: "CAT023", Severity: finding.Warning,
		Title:      "the type or a field of a property is misspelt",
		Cause:      "OLM silently ignores properties and fields that it does not know, so the dependency, API or constraint has no effect",
		Fix:        "correct the name",
		References: []string{formatReference + "#properties"},
		run:        perContent(perBundle(misspeltProperties)),
		alone:      ofDeclared(func(p declared) []propertyProblem { return misspelt(p.written) }),
	},
	{
		Code: "CAT024", Severity: finding.Error,
		Title: "the name of a bundle is no valid name of a Kubernetes object",
		Cause: "OLM creates the ClusterServiceVersion with this name, and the API server rejects it: the bundle is never installed",
		Fix:   "use lower case letters, digits, '-' and '.', at most 253 characters",
		run: perContent(perBundle(func(_ *catalog.Package, b *catalog.Bundle, found func(hit)) {
			if errs := validation.IsDNS1123Subdomain(b.Name); b.Name != "" && len(errs) > 0 {
				found(hit{at: b.Document.Place("name"), message: fmt.Sprintf("bundle name %q: %s", b.Name, strings.Join(errs, ", "))})
			}
		})),
	},
	{
		Code: "CAT025", Severity: finding.Error,
		Title: "a bundle's ClusterServiceVersion has another name than the bundle",
		Cause: "OLM resolves upgrades by the bundle's name, but installs the ClusterServiceVersion under its own name: the Subscription never finds the installed release",
		Fix:   "render the bundle again, so that it has the name of its ClusterServiceVersion",
		each: func(r *release, found func(hit)) {
			if r.csv.Name != r.Name {
				found(hit{at: r.place(""), message: fmt.Sprintf("the ClusterServiceVersion of bundle %s has the name %s", r.Name, r.csv.Name)})
			}
		},
	},
	{
		Code: "CAT026", Severity: finding.Warning,
		Title: "a bundle's ClusterServiceVersion has another version than the bundle",
		Cause: "OLM's resolver reads the " + catalog.PropertyPackage + " property, users and consoles read spec.version",
		Fix:   "render the bundle again, so that the property has the version of spec.version",
		each: func(r *release, found func(hit)) {
			if v := r.csv.Spec.Version.Version; v.String() != r.Version.String() && v.String() != "0.0.0" {
				found(hit{at: r.place(""), message: fmt.Sprintf("bundle %s has version %s, but its ClusterServiceVersion has %s", r.Name, r.Version, v)})
			}
		},
	},
	{
		Code: "CAT027", Severity: finding.Info,
		Title:      "bundles have both an image and their manifests",
		Cause:      "catalogs for OpenShift 4.17 and later must not contain " + catalog.PropertyObject + ", which makes them large and slow; to install the bundle OLM needs only the image",
		Fix:        "migrate them to " + catalog.PropertyCSVMetadata + ", for example with 'olmkit catalog render --migrate-level " + catalog.MigrationCSVMetadata + "'",
		References: []string{formatReference},
		run: perPackage(func(p *catalog.Package, found func(hit)) {
			var list []string
			var first *catalog.Bundle
			for _, b := range p.Bundles {
				if b.Image != "" && b.Has(catalog.PropertyObject) {
					list, first = append(list, b.Name), cmp.Or(first, b)
				}
			}
			if first != nil {
				found(hit{Subject: finding.Subject{From: first.Name}, at: first.At, message: fmt.Sprintf("%d bundles of package %s have both an image and manifests: %s", len(list), p.Name, abridge(list))})
			}
		}),
	},
	{
		Code: "CAT028", Severity: finding.Info,
		Title: fmt.Sprintf("the catalog is larger than %d MiB", largeCatalog>>20),
		Cause: "the catalog pod keeps it in memory or on disk, and OLM lists all of it for every resolution",
		Fix:   "remove releases that nobody upgrades from any more, and render bundles that have an image with " + catalog.PropertyCSVMetadata,
		run:   size,
		whole: true,
	},
}

// wrongPackageName says what is wrong with the name of a package, or "".
func wrongPackageName(name string) string {
	errs := validation.IsDNS1123Label(name)
	if len(errs) == 0 {
		return ""
	}
	return fmt.Sprintf("package name %q: %s", name, strings.Join(errs, ", "))
}

// largeCatalog is from how many bytes CAT028 tells what they are.
const largeCatalog = 4 << 20

func size(s *subject, found func(hit)) {
	total, waste := 0, 0
	by := map[string]int{}
	seen := map[catalog.Text]bool{}
	for _, d := range s.catalog.Documents {
		total += d.Size()
		by[d.Package] += d.Size()
	}
	if total < largeCatalog || len(s.catalog.Packages) == 0 {
		return
	}
	for _, p := range s.catalog.Packages {
		for _, b := range p.Bundles {
			for _, text := range b.Texts() {
				if seen[text] {
					waste += text.Size
				}
				seen[text] = true
			}
		}
	}
	names := slices.SortedFunc(maps.Keys(by), func(a, b string) int { return cmp.Or(cmp.Compare(by[b], by[a]), strings.Compare(a, b)) })
	list := make([]string, 0, 3)
	for _, name := range names[:min(3, len(names))] {
		list = append(list, fmt.Sprintf("%s %s", name, mebibytes(by[name])))
	}
	found(hit{
		at: finding.Location{File: s.catalog.Documents[0].At.File},
		message: fmt.Sprintf("the catalog has a size of %s in %d documents; largest packages: %s; duplicate manifests: %s",
			mebibytes(total), len(s.catalog.Documents), strings.Join(list, ", "), mebibytes(waste)),
	})
}

func mebibytes(n int) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// judged reports whether a document is of one of the packages that are judged; those of no package are.
func (s *subject) judged(d *catalog.Document) bool {
	return d.Package == "" || s.catalog.Find(d.Package) != nil && (len(s.wanted) == 0 || slices.Contains(s.wanted, d.Package))
}

func duplicateDocuments(s *subject, found func(hit)) {
	first := map[string]*catalog.Document{}
	for _, d := range s.catalog.Documents {
		key := d.Schema + "\x00" + d.Package + "\x00" + d.Name
		switch d.Schema {
		case catalog.SchemaDeprecations:
			key = d.Schema + "\x00" + d.Package
		case catalog.SchemaPackage, catalog.SchemaChannel, catalog.SchemaBundle:
		default:
			continue
		}
		if d.Package == "" || !s.judged(d) {
			continue
		}
		if other := first[key]; other != nil {
			what := strings.TrimPrefix(d.Schema, "olm.") + " " + d.Name
			if d.Name == "" {
				what = strings.TrimPrefix(d.Schema, "olm.") + " of package " + d.Package
			}
			found(hit{Subject: finding.Subject{Package: d.Package}, at: d.At, message: fmt.Sprintf("%s is defined a second time; the first is at %s", what, other.At)})
			continue
		}
		first[key] = d
	}
}

func namelessDocuments(s *subject, found func(hit)) {
	for _, d := range s.catalog.Documents {
		var missing []string
		switch d.Schema {
		case catalog.SchemaPackage, catalog.SchemaChannel, catalog.SchemaBundle, catalog.SchemaDeprecations:
		default:
			continue
		}
		if d.Name == "" && d.Schema != catalog.SchemaDeprecations {
			missing = append(missing, "name")
		}
		if d.Package == "" && d.Schema != catalog.SchemaPackage {
			missing = append(missing, "package")
		}
		if len(missing) > 0 && s.judged(d) {
			found(hit{Subject: finding.Subject{Package: d.Package}, at: d.At, message: fmt.Sprintf("this %s has no %s", d.Schema, strings.Join(missing, " and no "))})
		}
	}
}

// headWithoutMetadata leaves other releases alone: catalogs that were migrated from opm's databases have the metadata of heads only.
func headWithoutMetadata(s *subject, found func(hit)) {
	for _, p := range s.packages {
		told := map[string]bool{}
		for _, c := range p.Channels {
			b := p.Bundle(s.graph(p, c).Head())
			if b == nil || told[b.Name] || b.Image == "" || b.Has(catalog.PropertyObject) || b.Has(catalog.PropertyCSVMetadata) {
				continue
			}
			told[b.Name] = true
			found(hit{
				Subject: finding.Subject{Package: p.Name, From: b.Name}, at: b.At,
				message: fmt.Sprintf("bundle %s, the head of channel %s, has only an image, and no metadata", b.Name, c.Name),
			})
		}
	}
}

func channelNames(p *catalog.Package) string {
	names := make([]string, len(p.Channels))
	for i, c := range p.Channels {
		names[i] = c.Name
	}
	return strings.Join(names, ", ")
}

var defaultChannel = perPackage(func(p *catalog.Package, found func(hit)) {
	switch {
	case p.Document == nil || len(p.Channels) == 0:
	case p.DefaultChannel == "":
		found(hit{at: p.At, message: fmt.Sprintf("package %s has no default channel; its channels are %s", p.Name, channelNames(p))})
	case p.Channel(p.DefaultChannel) == nil:
		found(hit{
			Subject: finding.Subject{Channel: p.DefaultChannel}, at: p.Document.Place("defaultChannel"),
			message: fmt.Sprintf("the default channel %s of package %s is not one of its channels: %s", p.DefaultChannel, p.Name, channelNames(p)),
		})
	}
})

var absentBundles = perChannel(func(p *catalog.Package, c *catalog.Channel, found func(hit)) {
	for _, e := range c.Entries {
		if e.Name != "" && p.Bundle(e.Name) == nil {
			found(hit{Subject: finding.Subject{From: e.Name}, at: e.At, message: fmt.Sprintf("the catalog contains no bundle %s of package %s", e.Name, p.Name)})
		}
	}
})

var duplicateEntries = perChannel(func(_ *catalog.Package, c *catalog.Channel, found func(hit)) {
	first := map[string]finding.Location{}
	for _, e := range c.Entries {
		at, twice := first[e.Name]
		switch {
		case e.Name == "":
			found(hit{at: e.At, message: fmt.Sprintf("an entry of channel %s has no name", c.Name), fix: "set name to the name of a bundle"})
		case twice:
			found(hit{Subject: finding.Subject{From: e.Name}, at: e.At, message: fmt.Sprintf("channel %[2]s has entry %[1]s a second time; the first is at %[3]s", e.Name, c.Name, at)})
		default:
			first[e.Name] = e.At
		}
	}
})

var packageProperty = perBundle(func(_ *catalog.Package, b *catalog.Bundle, found func(hit)) {
	count := 0
	for i, p := range b.Properties {
		if p.Type != catalog.PropertyPackage {
			continue
		}
		count++
		var v struct {
			PackageName string `json:"packageName"`
			Version     string `json:"version"`
			Release     string `json:"release"`
		}
		if document.Decode(p.Value, &v) != nil {
			continue // CAT013
		}
		at := func() finding.Location { return b.Document.Place("properties", i, "value") }
		if v.PackageName != b.Package {
			found(hit{at: at(), message: fmt.Sprintf("bundle %s of package %s has a property with package %q", b.Name, b.Package, v.PackageName)})
		}
		version, err := semver.Parse(v.Version)
		if err != nil {
			found(hit{at: at(), message: fmt.Sprintf("the version %q of bundle %s is no semantic version: %v", v.Version, b.Name, err), fix: "write major.minor.patch, see https://semver.org"})
		}
		if v.Release == "" {
			continue
		}
		release, err := model.NewRelease(v.Release)
		switch {
		case err != nil:
			found(hit{at: at(), message: fmt.Sprintf("the release %q of bundle %s is invalid: %v", v.Release, b.Name, err)})
		case len(version.Build) > 0:
			found(hit{at: at(), message: fmt.Sprintf("bundle %s has both a release and build metadata in its version %s", b.Name, version), fix: "remove the build metadata from the version"})
		case b.Name != fmt.Sprintf("%s-v%s-%s", b.Package, version, releaseText(release)):
			found(hit{at: at(), message: fmt.Sprintf("bundle %s has a release, so its name must be %s-v%s-%s", b.Name, b.Package, version, releaseText(release))})
		}
	}
	if count != 1 {
		found(hit{at: b.Document.Place("properties"), message: fmt.Sprintf("bundle %s has %d properties of type %s", b.Name, count, catalog.PropertyPackage)})
	}
})

func releaseText(r model.Release) string {
	parts := make([]string, len(r))
	for i, p := range r {
		parts[i] = p.String()
	}
	return strings.Join(parts, ".")
}

var imageReferences = perBundle(func(_ *catalog.Package, b *catalog.Bundle, found func(hit)) {
	if _, err := reference.ParseNormalizedNamed(b.Image); err != nil && b.Image != "" {
		found(hit{at: b.Document.Place("image"), message: fmt.Sprintf("the image %q of bundle %s: %v", b.Image, b.Name, err)})
	}
	var wrong []string
	first := 0
	for i, related := range b.RelatedImages {
		if _, err := reference.ParseNormalizedNamed(related.Image); err != nil && related.Image != "" {
			if wrong = append(wrong, fmt.Sprintf("%q (%v)", related.Image, err)); len(wrong) == 1 {
				first = i
			}
		}
	}
	if len(wrong) > 0 {
		found(hit{at: b.Document.Place("relatedImages", first, "image"), message: fmt.Sprintf("bundle %s has invalid related images (%d): %s", b.Name, len(wrong), sentences(wrong))})
	}
})

var duplicateVersions = perPackage(func(p *catalog.Package, found func(hit)) {
	first := map[string]*catalog.Bundle{}
	for _, b := range p.Bundles {
		if b.Version.String() == "0.0.0" && !b.Has(catalog.PropertyPackage) {
			continue
		}
		version := b.Version.String() + releaseOf(b)
		if other := first[version]; other != nil {
			found(hit{Subject: finding.Subject{From: b.Name}, at: b.At, message: fmt.Sprintf("bundles %s (%s) and %s both have version %s", other.Name, other.At, b.Name, version)})
			continue
		}
		first[version] = b
	}
})

func releaseOf(b *catalog.Bundle) string {
	for _, p := range b.Properties {
		var v struct {
			Release string `json:"release"`
		}
		if p.Type == catalog.PropertyPackage && json.Unmarshal(p.Value, &v) == nil && v.Release != "" {
			return "-" + v.Release
		}
	}
	return ""
}

var deprecations = perPackage(func(p *catalog.Package, found func(hit)) {
	type key struct{ schema, name string }
	seen := map[key]bool{}
	for _, d := range p.Deprecations {
		var wrong string
		switch {
		case d.Schema == "":
			wrong = "reference has no schema"
		case seen[key{d.Schema, d.Name}]:
			wrong = fmt.Sprintf("%s %s is deprecated a second time", strings.TrimPrefix(d.Schema, "olm."), d.Name)
		case d.Schema == catalog.SchemaBundle && p.Bundle(d.Name) == nil:
			wrong = fmt.Sprintf("the package has no bundle %q", d.Name)
		case d.Schema == catalog.SchemaChannel && p.Channel(d.Name) == nil:
			wrong = fmt.Sprintf("the package has no channel %q", d.Name)
		case d.Schema == catalog.SchemaPackage && d.Name != "":
			wrong = fmt.Sprintf("a deprecation of the package must have no name, but this one has %q", d.Name)
		case !slices.Contains([]string{catalog.SchemaBundle, catalog.SchemaChannel, catalog.SchemaPackage}, d.Schema):
			wrong = fmt.Sprintf("documents of schema %q cannot be deprecated", d.Schema)
		case d.Message == "":
			wrong = "the message is missing"
		}
		seen[key{d.Schema, d.Name}] = true
		if wrong != "" {
			found(hit{at: d.At, message: "deprecation: " + wrong})
		}
	}
})

// knownFields are the fields of each schema; those of entries are named below the channel's.
var knownFields = map[string][]string{
	catalog.SchemaPackage:      {"schema", "name", "defaultChannel", "icon", "description", "properties"},
	catalog.SchemaChannel:      {"schema", "name", "package", "entries", "properties"},
	catalog.SchemaBundle:       {"schema", "name", "package", "image", "properties", "relatedImages"},
	catalog.SchemaDeprecations: {"schema", "name", "package", "entries"},
	"entry":                    {"name", "replaces", "skips", "skipRange"},
}

// strangeField is a field of a document that OLM does not know.
type strangeField struct {
	document *catalog.Document
	name     string
	meant    string // the known field that it is a slip of the pen for, or ""
	path     []any
}

func (s *subject) strangeFields() []strangeField {
	return s.strange.get(s, s.findStrangeFields)
}

func (s *subject) findStrangeFields() (list []strangeField) {
	look := func(d *catalog.Document, raw json.RawMessage, known []string, path ...any) {
		fields := document.Fields(raw)
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) }) {
				continue
			}
			meant := ""
			for _, k := range known {
				if !fields[k] && nearest.Distance(strings.ToLower(name), strings.ToLower(k)) <= 2 {
					meant = k
				}
			}
			list = append(list, strangeField{d, name, meant, append(slices.Clone(path), name)})
		}
	}
	for _, d := range s.catalog.Documents {
		known, ok := knownFields[d.Schema]
		if !ok || !s.judged(d) {
			continue
		}
		look(d, d.JSON, known)
		if d.Schema != catalog.SchemaChannel {
			continue
		}
		var channel struct {
			Entries []json.RawMessage `json:"entries"`
		}
		if document.Decode(d.JSON, &channel) != nil {
			continue
		}
		for i, e := range channel.Entries {
			look(d, e, knownFields["entry"], "entries", i)
		}
	}
	return list
}

func subjectOf(d *catalog.Document) finding.Subject {
	s := finding.Subject{Package: d.Package}
	switch d.Schema {
	case catalog.SchemaChannel:
		s.Channel = d.Name
	case catalog.SchemaBundle:
		s.From = d.Name
	}
	return s
}

func misspeltFields(s *subject, found func(hit)) {
	for _, f := range s.strangeFields() {
		if f.meant != "" {
			found(hit{
				Subject: subjectOf(f.document), at: f.document.Place(f.path...),
				message: fmt.Sprintf("field %q of this %s is unknown; %q is known", f.name, f.document.Schema, f.meant),
				fix:     "write " + f.meant,
			})
		}
	}
}

func unknownFields(s *subject, found func(hit)) {
	for _, f := range s.strangeFields() {
		if f.meant == "" {
			found(hit{
				Subject: subjectOf(f.document), at: f.document.Place(f.path...),
				message: fmt.Sprintf("field %q of this %s is unknown", f.name, f.document.Schema),
			})
		}
	}
}

func unknownSchemas(s *subject, found func(hit)) {
	for _, d := range s.catalog.Documents {
		if _, known := knownFields[d.Schema]; !known && strings.HasPrefix(d.Schema, "olm.") && s.judged(d) {
			found(hit{Subject: finding.Subject{Package: d.Package}, at: d.Place("schema"), message: fmt.Sprintf("%q is no schema of OLM", d.Schema)})
		}
	}
}

func duplicateKeys(s *subject, found func(hit)) {
	for _, d := range s.catalog.Documents {
		if d.Source == nil || !s.judged(d) {
			continue
		}
		for _, twice := range d.Source.Duplicates() {
			found(hit{Subject: subjectOf(d), at: twice.At, message: fmt.Sprintf("the mapping contains the key %q a second time", twice.Key)})
		}
	}
}
