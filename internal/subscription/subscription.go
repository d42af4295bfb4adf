// Package subscription writes what a user applies to install an operator through OLM: Namespace, OperatorGroup,
// CatalogSource and Subscription.
package subscription

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/safetext"
)

// Source is where the catalog comes from. Exactly one of Image, Address and Existing is set.
type Source struct {
	Name      string // of the CatalogSource
	Namespace string // of an existing CatalogSource; a new one is put beside the Subscription
	Image     string // catalog image, served by OLM's own opm
	Address   string // host:port of a registry gRPC server
	Existing  bool   // the cluster has the CatalogSource already

	CatalogDir string // where an Image holds the catalog
	CacheDir   string // where an Image holds a cache made beforehand; "" if it has none

	// Poll is how often OLM looks whether an Image that a tag names is another one; never if 0. An image that a digest names
	// is always the same.
	Poll        time.Duration
	PullSecrets []string // of type kubernetes.io/dockerconfigjson, beside the CatalogSource, for an Image
}

// Options say what to install, and how.
type Options struct {
	Package     string
	Channel     string // the package's default channel when empty
	StartingCSV string
	Approval    v1alpha1.Approval
	Namespace   string // where the operator is installed
	Name        string // of the Subscription; the package's name when empty
	Source      Source
	Mode        v1alpha1.InstallModeType
	Targets     []string // namespaces to watch, for SingleNamespace and MultiNamespace
	Config      *v1alpha1.SubscriptionConfig

	// GroupExists leaves out the OperatorGroup, and its Namespace: OLM installs nothing where there are two groups. Mode is not
	// asked for then.
	GroupExists bool

	// Supported are the install modes of the CSV that will be installed; nil if they are not known.
	Supported []v1alpha1.InstallMode
}

// Generate returns the manifests, in the order in which they are applied. What OLM would refuse is an error.
func Generate(o Options) ([]byte, error) {
	if o.Name == "" {
		o.Name = o.Package
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	var objects []any
	if !o.GroupExists {
		group, err := o.operatorGroup()
		if err != nil {
			return nil, err
		}
		objects = append(objects, &corev1.Namespace{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: o.Namespace},
		}, group)
	}
	source := o.Source
	if !source.Existing {
		source.Namespace = o.Namespace
		objects = append(objects, o.catalogSource())
	}
	objects = append(objects, &v1alpha1.Subscription{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SubscriptionCRDAPIVersion, Kind: v1alpha1.SubscriptionKind},
		ObjectMeta: metav1.ObjectMeta{Name: o.Name, Namespace: o.Namespace},
		Spec: &v1alpha1.SubscriptionSpec{
			CatalogSource: source.Name, CatalogSourceNamespace: source.Namespace,
			Package: o.Package, Channel: o.Channel, StartingCSV: o.StartingCSV, InstallPlanApproval: o.Approval, Config: o.Config,
		},
	})
	return Write(objects...)
}

// Write writes objects as YAML documents, without what nobody said of them.
func Write(objects ...any) ([]byte, error) {
	var out bytes.Buffer
	for i, object := range objects {
		if i > 0 {
			out.WriteString("---\n")
		}
		written, err := manifest(object)
		if err != nil {
			return nil, err
		}
		out.Write(written)
	}
	return out.Bytes(), nil
}

func (o Options) check() error {
	var problems []error
	for what, name := range map[string]string{"namespace": o.Namespace, "Subscription's name": o.Name, "CatalogSource's name": o.Source.Name} {
		problems = append(problems, checkName(what, name))
	}
	for _, target := range o.Targets {
		problems = append(problems, checkName("namespace to watch", target))
	}
	for what, text := range map[string]string{
		"package": o.Package, "channel": o.Channel, "starting CSV": o.StartingCSV, "image": o.Source.Image, "address": o.Source.Address,
	} {
		if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
			problems = append(problems, hint.With(fmt.Errorf("%s %q holds a control character, or is not UTF-8", what, text), "write it with letters, digits and punctuation"))
		}
	}
	if strings.ContainsFunc(o.Source.Image, unicode.IsSpace) {
		problems = append(problems, hint.With(fmt.Errorf("the image %q holds a space", o.Source.Image), "write it as registry/repository:tag"))
	}
	if _, port, err := net.SplitHostPort(o.Source.Address); o.Source.Address != "" && (err != nil || port == "") {
		problems = append(problems, hint.With(fmt.Errorf("the address %q has no port", o.Source.Address), "write it as host:port, for example catalog.operators.svc:50051"))
	}
	if o.Package == "" {
		problems = append(problems, hint.With(errors.New("no package is named"), "name it with --package"))
	}
	if o.Approval != v1alpha1.ApprovalAutomatic && o.Approval != v1alpha1.ApprovalManual {
		problems = append(problems, hint.With(fmt.Errorf("there is no approval %q", o.Approval), "choose Automatic or Manual"))
	}
	if o.Source.Poll < 0 {
		problems = append(problems, hint.With(fmt.Errorf("the poll interval %s is negative", o.Source.Poll), "write it as 10m, or 0 for never"))
	}
	for _, secret := range o.Source.PullSecrets {
		if len(validation.IsDNS1123Subdomain(secret)) > 0 {
			problems = append(problems, wrongName("pull secret", secret))
		}
	}
	if len(o.Source.PullSecrets) > 0 && o.Source.Image == "" {
		problems = append(problems, hint.With(errors.New("a pull secret is for a catalog image, and no image is named"), "name it with --image, or leave out --pull-secret"))
	}
	given := 0
	for _, set := range []bool{o.Source.Image != "", o.Source.Address != "", o.Source.Existing} {
		if set {
			given++
		}
	}
	if given != 1 {
		problems = append(problems, hint.With(fmt.Errorf("a catalog has one source, and %d are named", given),
			"name one with --image, --address or --catalog-source"))
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return errors.Join(problems...)
}

func checkName(what, name string) error {
	if len(validation.IsDNS1123Label(name)) > 0 {
		return wrongName(what, name)
	}
	return nil
}

func wrongName(what, name string) error {
	return hint.With(fmt.Errorf("%s %q: it is no name of an object", what, name), "use at most 63 lower case letters, digits and dashes")
}

// DefaultMode returns the install mode that a user most likely wants of those that a CSV supports: AllNamespaces, else
// OwnNamespace. It returns AllNamespaces when nothing is known, and "" when the CSV supports neither.
func DefaultMode(supported []v1alpha1.InstallMode) v1alpha1.InstallModeType {
	if supported == nil {
		return v1alpha1.InstallModeTypeAllNamespaces
	}
	for _, mode := range []v1alpha1.InstallModeType{v1alpha1.InstallModeTypeAllNamespaces, v1alpha1.InstallModeTypeOwnNamespace} {
		if slices.Contains(supported, v1alpha1.InstallMode{Type: mode, Supported: true}) {
			return mode
		}
	}
	return ""
}

// operatorGroup selects the namespaces that the install mode asks for, if the CSV supports that.
func (o Options) operatorGroup() (*operatorsv1.OperatorGroup, error) {
	var targets []string
	switch o.Mode {
	case v1alpha1.InstallModeTypeAllNamespaces:
	case v1alpha1.InstallModeTypeOwnNamespace:
		targets = []string{o.Namespace}
	case v1alpha1.InstallModeTypeSingleNamespace, v1alpha1.InstallModeTypeMultiNamespace:
		targets = slices.Compact(slices.Sorted(slices.Values(o.Targets)))
		if single := o.Mode == v1alpha1.InstallModeTypeSingleNamespace; single && len(targets) != 1 || !single && len(targets) < 2 {
			return nil, hint.With(fmt.Errorf("install mode %s does not fit %d namespaces to watch", o.Mode, len(targets)),
				"name them: --install-mode SingleNamespace=one or MultiNamespace=one,two")
		}
	default:
		return nil, hint.With(fmt.Errorf("there is no install mode %q", o.Mode), "name one of AllNamespaces, OwnNamespace, SingleNamespace=NS and MultiNamespace=NS,NS")
	}
	if (o.Mode == v1alpha1.InstallModeTypeAllNamespaces || o.Mode == v1alpha1.InstallModeTypeOwnNamespace) && len(o.Targets) > 0 {
		return nil, hint.With(fmt.Errorf("install mode %s takes no namespaces", o.Mode), "use SingleNamespace or MultiNamespace")
	}
	if o.Supported != nil {
		modes, err := v1alpha1.NewInstallModeSet(o.Supported)
		if err != nil {
			return nil, fmt.Errorf("the install modes of the ClusterServiceVersion: %w", err)
		}
		watched := targets
		if len(watched) == 0 {
			watched = []string{metav1.NamespaceAll}
		}
		if err := modes.Supports(o.Namespace, watched); err != nil {
			return nil, hint.With(fmt.Errorf("OLM would refuse to install %s: %w", o.Package, err), "choose with --install-mode one that it supports: %s", supportedText(modes))
		}
	}
	return &operatorsv1.OperatorGroup{
		TypeMeta:   metav1.TypeMeta{APIVersion: operatorsv1.GroupVersion.String(), Kind: operatorsv1.OperatorGroupKind},
		ObjectMeta: metav1.ObjectMeta{Name: o.Name, Namespace: o.Namespace},
		Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: targets},
	}, nil
}

func supportedText(modes v1alpha1.InstallModeSet) string {
	var names []string
	for mode, supported := range modes {
		if supported {
			names = append(names, string(mode))
		}
	}
	if len(names) == 0 {
		return "none"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func (o Options) catalogSource() *v1alpha1.CatalogSource {
	source := &v1alpha1.CatalogSource{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.CatalogSourceKind},
		ObjectMeta: metav1.ObjectMeta{Name: o.Source.Name, Namespace: o.Namespace},
		Spec:       v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Address: o.Source.Address, Image: o.Source.Image},
	}
	if o.Source.Image != "" {
		// The image holds data only; OLM takes it out and serves it with the opm that it brings itself.
		source.Spec.GrpcPodConfig = &v1alpha1.GrpcPodConfig{
			SecurityContextConfig: v1alpha1.Restricted,
			ExtractContent:        &v1alpha1.ExtractContentConfig{CatalogDir: o.Source.CatalogDir, CacheDir: o.Source.CacheDir},
		}
		source.Spec.Secrets = o.Source.PullSecrets
		if o.Source.Poll > 0 && !strings.Contains(o.Source.Image, "@") {
			source.Spec.UpdateStrategy = &v1alpha1.UpdateStrategy{RegistryPoll: &v1alpha1.RegistryPoll{RawInterval: o.Source.Poll.String()}}
		}
	}
	return source
}

// manifest writes an object without the empty fields that its Go type always has.
func manifest(object any) ([]byte, error) {
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("write a %T: %w", object, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var fields map[string]any
	if err := decoder.Decode(&fields); err != nil {
		return nil, fmt.Errorf("write a %T: %w", object, err)
	}
	delete(fields, "status")
	for _, key := range []string{"metadata", "spec"} {
		inner, ok := fields[key].(map[string]any)
		if !ok {
			continue
		}
		for name, value := range inner {
			if empty, ok := value.(map[string]any); value == nil || ok && len(empty) == 0 || ok && name == "icon" {
				delete(inner, name)
			}
		}
		if len(inner) == 0 && fields["kind"] != operatorsv1.OperatorGroupKind {
			delete(fields, key)
		}
	}
	written, err := yaml.Marshal(fields)
	if err == nil {
		written, err = safetext.YAML(written)
	}
	if err != nil {
		return nil, fmt.Errorf("write a %T: %w", object, err)
	}
	return written, nil
}
