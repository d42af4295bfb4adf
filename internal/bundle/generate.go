package bundle

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"go.yaml.in/yaml/v3"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/hint"
)

// Conversion says what becomes of spec.conversion in the CRDs of a generated bundle.
type Conversion string

// The ways to treat spec.conversion. OLM's catalog operator writes the bundle's CRD over the cluster's as it is, and OLM's
// operator patches service and CA in only when the new CSV installs (operator-lifecycle-manager v0.46.0,
// pkg/controller/operators/catalog/step.go and pkg/controller/install/webhook.go). In between, with ConversionKeep the
// API server refuses what needs conversion; with ConversionStrip it relabels objects without converting them, and stores
// them so. Refused requests can be tried again and lost fields can't be had back: so ConversionKeep is the default.
const (
	ConversionKeep  Conversion = "keep"
	ConversionStrip Conversion = "strip"
)

// Options say what a bundle to generate is called and where it stands in the upgrade graph. What is empty is taken from
// the base CSV.
type Options struct {
	Package        string // default: the base CSV's name up to ".v"
	Version        semver.Version
	Channels       []string // default: alpha
	DefaultChannel string   // default: the first of Channels
	Replaces       string   // name of a CSV
	Skips          []string // names of CSVs
	SkipRange      string
	MinKubeVersion string
	Icon           []byte   // a picture, of the type IconType
	IconType       string   // a media type
	SkipKinds      []string // kinds that are left out knowingly
	Conversion     Conversion
	Created        string // value of the createdAt annotation, RFC 3339

	// Images are the references to put in the place of images, by their names without tag and digest, as in a
	// kustomization.
	Images map[string]string

	// Pin returns an image by its digest; nil to leave images as they are.
	Pin func(image string) (string, error)

	// Reduce returns the rules of clusterPermissions and of permissions that an account gets of those that the manifests give it,
	// and notes on what it does not get; nil to leave them as they are.
	Reduce func(account string, cluster, namespaced []rbacv1.PolicyRule) (leastCluster, leastNamespaced []rbacv1.PolicyRule, notes []string)

	// Describe returns what the Go sources of the API say of a kind, nil when they do not declare it. A nil Describe is
	// for an operator whose sources are not at hand.
	Describe func(schema.GroupVersionKind) (*Description, error)
}

// OptionError is in the error of Generate where one of the options is wrong, and not the manifests.
type OptionError struct{ error }

// Generated is a bundle that was made but not written.
type Generated struct {
	Name  string            // of the CSV
	Files map[string][]byte // by path in the bundle directory, with slashes
	Notes []string          // what the author should know: a sentence for everything that was left out or changed
}

// acceptedKinds are what OLM installs from a bundle beside CSV and CRD, by kind alone, as it does itself
// (operator-lifecycle-manager v0.46.0, pkg/controller/operators/catalog/{operator,supportedresources}.go). opm packs
// PodMonitor as well, which OLM then refuses.
var acceptedKinds = []string{
	"ClusterRole", "ClusterRoleBinding", "ConfigMap", "ConsoleCLIDownload", "ConsoleLink", "ConsolePlugin",
	"ConsoleQuickStart", "ConsoleYAMLSample", "NetworkPolicy", "PodDisruptionBudget", "PriorityClass", "PrometheusRule",
	"Role", "RoleBinding", "Secret", "Service", "ServiceAccount", "ServiceMonitor", "VerticalPodAutoscaler",
}

// Accepts reports whether OLM installs objects of the kind from a bundle, beside the CSV and CRDs.
func Accepts(kind string) bool { return slices.Contains(acceptedKinds, kind) }

// generator holds a bundle in the making.
type generator struct {
	Options
	csv *yaml.Node // the result, grown from the base
	at  Input      // the base, for messages; zero without one

	deployments []*deployment
	crds        []*crd
	defines     map[schema.GroupKind]bool // by all CRDs, also those that are refused
	accounts    []Input
	roles       []Input // Role and ClusterRole
	bindings    []Input // RoleBinding and ClusterRoleBinding
	services    []Input
	secrets     []Input
	webhooks    []Input // webhook configurations
	apis        []Input // APIService
	certs       []Input // what cert-manager is asked for
	scorecard   []Input
	customs     []Input // everything of a kind that is none of the above

	ranks    map[*yaml.Node]int // of owned CRDs that have one
	shipped  []shippedObject
	examples []Input
	defined  []v1alpha1.WebhookDescription // webhook definitions made from inputs
	files    map[string][]byte
	notes    []string
	problems []error
}

// shippedObject is an object that goes into manifests/ beside the CSV.
type shippedObject struct {
	Input
	file string
	node *yaml.Node
}

func (g *generator) fail(err error) {
	if err != nil {
		g.problems = append(g.problems, err)
	}
}

func (g *generator) note(format string, args ...any) {
	g.notes = append(g.notes, fmt.Sprintf(format, args...))
}

// Generate makes a bundle out of an operator's manifests. base, if not nil, is the CSV whose hand-written parts the result
// keeps; without it a ClusterServiceVersion among the inputs is the base. All that is wrong is reported at once.
//
// OLM makes a good part of a deployment itself, so the bundle must not bring these: the namespace (the Subscription's),
// service accounts and bindings of the CSV's permissions, webhook configurations, each webhook's Service and certificate,
// and the address and CA in a CRD's conversion. They are turned into the CSV's statements about them.
func Generate(inputs []Input, base *Input, o Options) (*Generated, error) {
	g := &generator{Options: o, files: map[string][]byte{}, ranks: map[*yaml.Node]int{}, defines: map[schema.GroupKind]bool{}}
	g.unskipped(inputs)
	g.sortOut(inputs, base)
	g.identity()
	g.customResourceDefinitions()
	g.webhookDefinitions()
	g.apiServiceDefinitions()
	g.certificates()
	g.permissions()
	g.images()
	g.installStrategy()
	g.supportingObjects()
	g.almExamples()
	g.relatedImages()
	g.installModes()
	g.metadata()
	if err := errors.Join(g.problems...); err != nil {
		return nil, err
	}
	g.write()
	slices.Sort(g.notes)
	return &Generated{Name: g.name(), Files: g.files, Notes: slices.Compact(g.notes)}, nil
}

// Names returns the package that Generate would make a bundle of, "" if it is nowhere to be seen, and what its CSV would be
// called.
func Names(o Options, inputs []Input, base *Input) (pkg, csv string) {
	if base == nil {
		for i := range inputs {
			if inputs[i].Kind == KindCSV {
				base = &inputs[i]
				break
			}
		}
	}
	stem := ""
	if base != nil {
		stem = stemOf(base.Name)
	}
	return cmp.Or(o.Package, stem), cmp.Or(stem, o.Package) + ".v" + o.Version.String()
}

// stemOf is a CSV's name without its version.
func stemOf(name string) string {
	stem, _, _ := strings.Cut(name, ".v")
	return stem
}

// name is what the CSV is called: after the base, which marketplaces have under packages of other names, or the package.
func (g *generator) name() string {
	return cmp.Or(stemOf(g.at.Name), g.Package) + ".v" + g.Version.String()
}

// unskipped notes which of the kinds that are to be left out no input has.
func (g *generator) unskipped(inputs []Input) {
	for _, kind := range g.SkipKinds {
		if !slices.ContainsFunc(inputs, func(i Input) bool { return i.Kind == kind }) {
			g.note("--skip-kind %s: the manifests hold no object of this kind", kind)
		}
	}
}

// sortOut tells the inputs apart by kind.
func (g *generator) sortOut(inputs []Input, base *Input) {
	seen := map[string]Input{}
	for _, input := range inputs {
		id := input.APIVersion + " " + input.ID() // samples of two versions may share a name
		if twin, twice := seen[id]; twice {
			if bytes.Equal(twin.JSON, input.JSON) || slices.Contains(g.SkipKinds, input.Kind) {
				continue // as when config/default and config/crd are both named
			}
			g.fail(input.errorf(nil, "the manifests hold it twice, and not the same, first at %s", twin.At))
			continue
		}
		seen[id] = input
		switch group := input.group(); {
		case slices.Contains(g.SkipKinds, input.Kind):
			g.note("%s: left out, as --skip-kind says", input.ID())
		case group == "operators.coreos.com" && input.Kind == KindCSV:
			g.takeCSV(input, base)
		case group == "apps" && input.Kind == "Deployment":
			d, err := newDeployment(input)
			g.fail(err)
			if err == nil {
				g.deployments = append(g.deployments, d)
			}
		case group == "apiextensions.k8s.io" && input.Kind == "CustomResourceDefinition":
			g.takeCRD(input)
		case group == "" && input.Kind == "ServiceAccount":
			g.accounts = append(g.accounts, input)
		case group == "rbac.authorization.k8s.io" && (input.Kind == "Role" || input.Kind == "ClusterRole"):
			g.roles = append(g.roles, input)
		case group == "rbac.authorization.k8s.io" && (input.Kind == "RoleBinding" || input.Kind == "ClusterRoleBinding"):
			g.bindings = append(g.bindings, input)
		case group == "" && input.Kind == "Service":
			g.services = append(g.services, input)
		case group == "" && input.Kind == "Secret":
			g.secrets = append(g.secrets, input)
		case group == "admissionregistration.k8s.io" && (input.Kind == "ValidatingWebhookConfiguration" || input.Kind == "MutatingWebhookConfiguration"):
			g.webhooks = append(g.webhooks, input)
		case group == "apiregistration.k8s.io" && input.Kind == "APIService":
			g.apis = append(g.apis, input)
		case group == "cert-manager.io":
			g.certs = append(g.certs, input)
		case group == "" && input.Kind == "Namespace":
			g.note("%s: left out, OLM installs into the namespace of the Subscription", input.ID())
		case group == "scorecard.operatorframework.io" && input.Kind == "Configuration":
			g.scorecard = append(g.scorecard, input)
		default:
			g.customs = append(g.customs, input)
		}
	}
	if base != nil {
		g.csv, g.at = base.node(), *base
	}
	if g.csv == nil {
		g.csv = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	}
}

// takeCSV builds on the ClusterServiceVersion among the manifests, unless base is one to build on.
func (g *generator) takeCSV(input Input, base *Input) {
	switch {
	case base != nil:
		g.note("%s among the manifests: not used, there is another base", input.ID())
	case g.csv != nil:
		g.fail(hint.With(input.errorf(nil, "there is another ClusterServiceVersion at %s", g.at.At), "name the one to build on with --base"))
	default:
		g.csv, g.at = input.node(), input
	}
}

// failOption notes an option that is wrong, with how to correct it.
func (g *generator) failOption(err error, fix string, args ...any) {
	g.fail(hint.With(OptionError{err}, fix, args...))
}

// checkVersions refuses ranges and versions that OLM cannot read.
func (g *generator) checkVersions() {
	if g.MinKubeVersion != "" {
		if _, err := semver.Parse(g.MinKubeVersion); err != nil {
			g.failOption(fmt.Errorf("minKubeVersion %q: %w", g.MinKubeVersion, err), "write it as 1.30.0")
		}
	}
	if g.SkipRange != "" {
		contains, err := semver.ParseRange(g.SkipRange)
		switch {
		case err != nil:
			g.failOption(fmt.Errorf("skipRange %q: %w", g.SkipRange, err), "write a range such as '>=1.0.0 <1.2.0'")
		case contains(g.Version):
			g.failOption(fmt.Errorf("skipRange %q covers the bundle's own version %s", g.SkipRange, g.Version), "end the range below it: '<%s'", g.Version)
		}
	}
}

// identity fills in the names of package and channels, the CSV's name and its place in the upgrade graph.
func (g *generator) identity() {
	g.Package = cmp.Or(g.Package, stemOf(g.at.Name))
	if g.Package == "" {
		g.failOption(errors.New("the package has no name: there is no base ClusterServiceVersion to take it from"), "name it with --package")
	}
	if len(g.Channels) == 0 {
		g.Channels = []string{"alpha"}
	}
	g.DefaultChannel = cmp.Or(g.DefaultChannel, g.Channels[0])
	if !slices.Contains(g.Channels, g.DefaultChannel) {
		// Legal: the package's default channel may be one that this bundle is not in.
		g.note("the default channel %s is not one of the bundle's own: %s", g.DefaultChannel, strings.Join(g.Channels, ", "))
	}
	if g.Replaces == g.name() || slices.Contains(g.Skips, g.name()) {
		g.failOption(fmt.Errorf("%s cannot replace or skip itself", g.name()), "name the release before it")
	}
	g.checkVersions()
	set(g.csv, text(v1alpha1.SchemeGroupVersion.String()), "apiVersion")
	set(g.csv, text(KindCSV), "kind")
	set(g.csv, text(g.name()), "metadata", "name")
	set(g.csv, text(g.Version.String()), "spec", "version")
	if g.Replaces != "" {
		set(g.csv, text(g.Replaces), "spec", "replaces")
	}
	if len(g.Skips) > 0 {
		set(g.csv, nodeOf(g.Skips), "spec", "skips")
	}
	if g.SkipRange != "" {
		set(g.csv, text(g.SkipRange), "metadata", "annotations", "olm.skipRange")
	}
	if g.MinKubeVersion != "" {
		set(g.csv, text(g.MinKubeVersion), "spec", "minKubeVersion")
	}
	if len(g.Icon) > 0 {
		icon := []v1alpha1.Icon{{Data: base64.StdEncoding.EncodeToString(g.Icon), MediaType: g.IconType}}
		set(g.csv, nodeOf(icon), "spec", "icon")
	}
	if g.Created != "" {
		set(g.csv, text(g.Created), "metadata", "annotations", "createdAt")
	}
	if textAt(g.csv, "metadata", "annotations", "capabilities") == "" {
		set(g.csv, text("Basic Install"), "metadata", "annotations", "capabilities")
	}
	if textAt(g.csv, "spec", "displayName") == "" {
		set(g.csv, text(displayName(g.Package)), "spec", "displayName")
	}
	remove(g.csv, "status")
	remove(g.csv, "metadata", "creationTimestamp")
	remove(g.csv, "metadata", "namespace")
}

// displayName makes words of a name in kebab-case or CamelCase: "memcached-operator" is "Memcached Operator".
func displayName(name string) string {
	var words []string
	for _, part := range strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' }) {
		runes := []rune(part)
		start := 0
		for i := 1; i < len(runes); i++ {
			endsAcronym := i+1 < len(runes) && unicode.IsUpper(runes[i-1]) && unicode.IsLower(runes[i+1])
			if unicode.IsUpper(runes[i]) && (unicode.IsLower(runes[i-1]) || endsAcronym) {
				words = append(words, string(runes[start:i]))
				start = i
			}
		}
		words = append(words, string(runes[start:]))
	}
	for i, word := range words {
		runes := []rune(word)
		runes[0] = unicode.ToUpper(runes[0])
		words[i] = string(runes)
	}
	return strings.Join(words, " ")
}

// crd is an owned CustomResourceDefinition.
type crd struct {
	Input
	apiextensionsv1.CustomResourceDefinition
	node *yaml.Node
}

func newCRD(input Input) (*crd, error) {
	if input.APIVersion != "apiextensions.k8s.io/v1" {
		return nil, hint.With(input.errorf([]any{"apiVersion"}, "%s is not served since Kubernetes 1.22", input.APIVersion), "write it as apiextensions.k8s.io/v1")
	}
	c := &crd{Input: input, node: nodeOfJSON(input.JSON)}
	if err := input.decode(&c.CustomResourceDefinition); err != nil {
		return nil, err
	}
	if len(c.Spec.Versions) == 0 {
		return nil, input.errorf([]any{"spec"}, "it has no versions")
	}
	return c, nil
}

func (g *generator) takeCRD(input Input) {
	g.defines[kindOf(input)] = true
	c, err := newCRD(input)
	if err != nil {
		g.fail(err)
		return
	}
	g.crds = append(g.crds, c)
}

// kindOf returns the kind that a CRD defines, also where that is not written as it should be.
func kindOf(input Input) (kind schema.GroupKind) {
	var c struct {
		Spec struct {
			Group string `json:"group"`
			Names struct {
				Kind string `json:"kind"`
			} `json:"names"`
		} `json:"spec"`
	}
	if document.Decode(input.JSON, &c) == nil {
		kind = schema.GroupKind{Group: c.Spec.Group, Kind: c.Spec.Names.Kind}
	}
	return kind
}

// customResourceDefinitions ships the CRDs and states in the CSV that it owns each served version of them. What the base
// lists stays in its order, which is that of consoles.
func (g *generator) customResourceDefinitions() {
	slices.SortStableFunc(g.crds, func(a, b *crd) int {
		return cmp.Compare(a.CustomResourceDefinition.Name, b.CustomResourceDefinition.Name)
	})
	for _, c := range g.crds {
		removeEmpty(c.node, "metadata", "annotations", "cert-manager.io/inject-ca-from")
		removeEmpty(c.node, "metadata", "annotations", "cert-manager.io/inject-ca-from-secret")
		g.ship(c.Input, c.Spec.Group+"_"+c.Spec.Names.Plural+".yaml", c.node)
		versions := slices.Clone(c.Spec.Versions)
		slices.SortStableFunc(versions, func(a, b apiextensionsv1.CustomResourceDefinitionVersion) int { return compareVersions(a.Name, b.Name) })
		for _, version := range versions {
			if version.Served {
				// A version that is not served would never meet OLM's requirements
				// (operator-lifecycle-manager v0.46.0, pkg/controller/operators/olm/requirements.go).
				g.own(c, version)
			}
		}
	}
	owned := field(g.csv, "spec", "customresourcedefinitions", "owned")
	if owned == nil || len(g.crds) == 0 {
		return
	}
	// The base may speak of versions that are no more; a CRD that is not among the manifests is the author's business.
	owned.Content = slices.DeleteFunc(owned.Content, func(n *yaml.Node) bool {
		for _, c := range g.crds {
			if c.CustomResourceDefinition.Name == textAt(n, "name") {
				gone := !slices.ContainsFunc(c.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
					return v.Served && v.Name == textAt(n, "version")
				})
				if gone {
					g.note("%s: the base CSV owns version %s, which it does not serve; left out", c.ID(), textAt(n, "version"))
				}
				return gone
			}
		}
		return false
	})
	byRank(owned.Content, g.ranks, "name")
}

// ship puts an object into manifests/. Fields that only a cluster sets are taken out, and so is the namespace: OLM
// overwrites it with the Subscription's.
func (g *generator) ship(input Input, file string, node *yaml.Node) {
	remove(node, "status")
	remove(node, "metadata", "creationTimestamp")
	remove(node, "metadata", "namespace")
	g.shipped = append(g.shipped, shippedObject{Input: input, file: file, node: node})
}

// shipPlain ships an object as it is, under the name that operator-sdk gives its file.
func (g *generator) shipPlain(input Input) {
	group, version, found := strings.Cut(input.APIVersion, "/")
	if !found {
		group, version = "", group
	}
	parts := []string{input.Name}
	if group != "" {
		parts = append(parts, group)
	}
	file := strings.ToLower(strings.Join(append(parts, version, input.Kind), "_")) + ".yaml"
	g.ship(input, strings.ReplaceAll(file, ":", "-"), nodeOfJSON(input.JSON))
}

// supportingObjects ships what OLM accepts beside the CSV, sets samples of owned kinds apart and refuses the rest.
func (g *generator) supportingObjects() {
	for _, input := range g.customs {
		switch {
		case g.owns(input):
			g.examples = append(g.examples, input)
		case Accepts(input.Kind):
			g.shipPlain(input)
		default:
			g.refuse(input)
		}
	}
}

func (g *generator) refuse(input Input) {
	g.fail(hint.With(input.errorf(nil, "OLM does not accept %s %s in a bundle", input.APIVersion, input.Kind),
		"let the operator create it, or leave it out with --skip-kind %s", input.Kind))
}

// owns reports whether the object is of a kind that the CSV owns.
func (g *generator) owns(input Input) bool {
	if g.defines[schema.GroupKind{Group: input.group(), Kind: input.Kind}] {
		return true
	}
	owned := field(g.csv, "spec", "customresourcedefinitions", "owned")
	if owned == nil {
		return false
	}
	return slices.ContainsFunc(owned.Content, func(n *yaml.Node) bool {
		_, group, _ := strings.Cut(textAt(n, "name"), ".")
		return group == input.group() && textAt(n, "kind") == input.Kind
	})
}

// almExamples writes the samples into the annotation that consoles offer them from. Those of the base stay unless a
// sample of the same kind, version and name takes their place.
func (g *generator) almExamples() {
	key := []string{"metadata", "annotations", "alm-examples"}
	type example struct {
		id  string
		raw json.RawMessage
	}
	var examples []example
	add := func(raw json.RawMessage, input Input) {
		e := example{id: input.APIVersion + " " + input.ID(), raw: raw}
		if i := slices.IndexFunc(examples, func(other example) bool { return other.id == e.id }); i >= 0 {
			examples[i] = e
			return
		}
		examples = append(examples, e)
	}
	if present := textAt(g.csv, key...); present != "" {
		var list []json.RawMessage
		if err := json.Unmarshal([]byte(present), &list); err != nil {
			g.fail(hint.With(g.at.errorf([]any{"metadata", "annotations", "alm-examples"}, "not a JSON list: %w", err), "correct the base CSV, or remove the annotation"))
			return
		}
		for _, raw := range list {
			input, err := inputOf(document.New(raw, g.at.At), nil)
			if err != nil {
				g.fail(g.at.errorf([]any{"metadata", "annotations", "alm-examples"}, "%w", err))
				return
			}
			add(raw, input)
		}
	}
	for _, input := range g.examples {
		add(input.JSON, input)
		if served, known := g.serves(input); known && !served {
			g.note("%s: a sample of %s, a version that is not served", input.ID(), input.APIVersion)
		}
	}
	slices.SortStableFunc(examples, func(a, b example) int { return cmp.Compare(a.id, b.id) })
	list := []byte("[")
	for i, e := range examples {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, e.raw...)
	}
	list = append(list, ']')
	if len(examples) == 0 {
		list = []byte("[]")
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: indented(list), Style: yaml.LiteralStyle}
	set(g.csv, n, key...)
}

// serves reports whether a CRD among the manifests serves the object's version; known is false if none defines its kind.
func (g *generator) serves(input Input) (served, known bool) {
	_, version, _ := strings.Cut(input.APIVersion, "/")
	for _, c := range g.crds {
		if c.Spec.Group != input.group() || c.Spec.Names.Kind != input.Kind {
			continue
		}
		known = true
		for _, v := range c.Spec.Versions {
			served = served || v.Served && v.Name == version
		}
	}
	return served, known
}

// installModes sets the modes where the base says nothing, and refuses what OLM will not install.
func (g *generator) installModes() {
	conversion := slices.ContainsFunc(g.defined, func(d v1alpha1.WebhookDescription) bool { return d.Type == v1alpha1.ConversionWebhook })
	modes := field(g.csv, "spec", "installModes")
	if modes == nil || len(modes.Content) == 0 {
		var defaults []v1alpha1.InstallMode
		for _, mode := range []v1alpha1.InstallModeType{
			v1alpha1.InstallModeTypeOwnNamespace, v1alpha1.InstallModeTypeSingleNamespace,
			v1alpha1.InstallModeTypeMultiNamespace, v1alpha1.InstallModeTypeAllNamespaces,
		} {
			defaults = append(defaults, v1alpha1.InstallMode{Type: mode, Supported: mode == v1alpha1.InstallModeTypeAllNamespaces})
		}
		set(g.csv, nodeOf(defaults), "spec", "installModes")
		g.note("no base CSV says which install modes the operator supports: AllNamespaces only")
		return
	}
	for i, mode := range modes.Content {
		name, supported := textAt(mode, "type"), textAt(mode, "supported") == "true"
		if conversion && supported != (name == string(v1alpha1.InstallModeTypeAllNamespaces)) {
			// operator-lifecycle-manager v0.46.0, pkg/controller/install/webhook.go, isSingletonOperator.
			g.fail(hint.With(g.at.errorf([]any{"spec", "installModes", i}, "install mode %s is supported: %t, but OLM installs a conversion webhook only where AllNamespaces is the one supported mode", name, supported),
				"a CRD is converted for the whole cluster: support AllNamespaces alone"))
		}
	}
}

// metadata writes annotations.yaml, the Dockerfile and the scorecard's configuration.
func (g *generator) metadata() {
	annotations := map[string]string{
		AnnotationMediaType: "registry+v1", AnnotationManifests: "manifests/", AnnotationMetadata: "metadata/",
		AnnotationPackage: g.Package, AnnotationChannels: strings.Join(g.Channels, ","), AnnotationDefaultChannel: g.DefaultChannel,
	}
	copied := []string{"manifests", "metadata"}
	if len(g.scorecard) > 0 {
		annotations["operators.operatorframework.io.test.config.v1"] = "tests/scorecard/"
		annotations["operators.operatorframework.io.test.mediatype.v1"] = "scorecard+v1"
		copied = append(copied, "tests/scorecard")
		if len(g.scorecard) > 1 {
			g.fail(g.scorecard[1].errorf(nil, "there is another scorecard configuration at %s", g.scorecard[0].At))
		}
		g.files["tests/scorecard/config.yaml"] = encode(nodeOfJSON(g.scorecard[0].JSON))
	}
	keys := []string{AnnotationMediaType, AnnotationManifests, AnnotationMetadata, AnnotationPackage, AnnotationChannels, AnnotationDefaultChannel,
		"operators.operatorframework.io.test.config.v1", "operators.operatorframework.io.test.mediatype.v1"}
	list := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	dockerfile := "FROM scratch\n\n"
	for _, key := range keys {
		if value, ok := annotations[key]; ok {
			list.Content = append(list.Content, text(key), text(value))
			dockerfile += fmt.Sprintf("LABEL %s=%s\n", key, value)
		}
	}
	dockerfile += "\n"
	for _, dir := range copied {
		dockerfile += fmt.Sprintf("COPY %s /%s/\n", dir, dir)
	}
	root := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{text("annotations"), list}}
	g.files["metadata/annotations.yaml"] = encode(root)
	g.files["bundle.Dockerfile"] = []byte(dockerfile)
}

// write lays out manifests/.
func (g *generator) write() {
	g.files["manifests/"+g.Package+".clusterserviceversion.yaml"] = encode(g.csv)
	for _, object := range g.shipped {
		file := path.Join("manifests", object.file)
		for n := 2; g.files[file] != nil; n++ {
			file = path.Join("manifests", fmt.Sprintf("%s_%d.yaml", strings.TrimSuffix(object.file, ".yaml"), n))
		}
		g.files[file] = encode(object.node)
	}
}

// indented lays JSON out over lines, as consoles show it.
func indented(raw []byte) string {
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		panic(fmt.Sprintf("indent JSON that was parsed before: %v", err))
	}
	return b.String()
}
