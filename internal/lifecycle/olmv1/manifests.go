package olmv1

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

// Wanted is what a user wants installed.
type Wanted struct {
	Package   *catalog.Package
	Bundle    *catalog.Bundle // whose installation the rights are for
	Channel   string          // "" for all
	Version   string          // or range of versions; "" for any
	Namespace string
	Name      string // of the ClusterExtension
	Catalog   string // name of the ClusterCatalog
	Image     string // of the ClusterCatalog; "" for one that the cluster has
	Poll      int    // minutes after which a tag is looked at again; 0 for never
}

// Manifests are the objects that have OLM v1 install what is wanted, with no more rights than that takes, in the order in which
// they are applied.
func (w Wanted) Manifests() ([]client.Object, error) {
	if err := w.Check(); err != nil {
		return nil, err
	}
	rights, err := RightsOf(w.Name, w.Bundle)
	if err != nil {
		return nil, err
	}
	core := func(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind} }
	own := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: GroupVersion.String(), Kind: kind}
	}
	objects := []client.Object{
		&corev1.Namespace{TypeMeta: core("Namespace"), ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}},
		&corev1.ServiceAccount{TypeMeta: core("ServiceAccount"), ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: Installer(w.Name)}},
	}
	objects = append(objects, rights.Objects(w.Name, w.Namespace)...)
	if w.Image != "" {
		source := &ImageSource{Ref: w.Image}
		if w.Poll > 0 && !strings.Contains(w.Image, "@") {
			source.PollIntervalMinutes = &w.Poll
		}
		objects = append(objects, &ClusterCatalog{
			TypeMeta: own(KindCatalog), ObjectMeta: metav1.ObjectMeta{Name: w.Catalog},
			Spec: ClusterCatalogSpec{Source: CatalogSource{Type: sourceImage, Image: source}},
		})
	}
	filter := &CatalogFilter{
		PackageName: w.Package.Name, Version: w.Version, UpgradeConstraintPolicy: catalogProvided,
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{catalogNameLabel: w.Catalog}},
	}
	if w.Channel != "" {
		filter.Channels = []string{w.Channel}
	}
	return append(objects, &ClusterExtension{
		TypeMeta: own(KindExtension), ObjectMeta: metav1.ObjectMeta{Name: w.Name},
		Spec: ClusterExtensionSpec{
			Namespace: w.Namespace, ServiceAccount: ServiceAccount{Name: Installer(w.Name)},
			Source: ExtensionSource{SourceType: sourceCatalog, Catalog: filter},
		},
	}), nil
}

// Check refuses what OLM v1, or the API server, would refuse.
func (w Wanted) Check() error {
	var problems []error
	for _, n := range []struct{ what, name string }{
		{"namespace", w.Namespace}, {"ClusterExtension's name", w.Name}, {"ClusterCatalog's name", w.Catalog},
	} {
		if wrong := validation.IsDNS1123Label(n.name); len(wrong) > 0 {
			problems = append(problems, fmt.Errorf("%s %q: %s", n.what, n.name, wrong[0]))
		}
	}
	csv, err := w.Bundle.CSV()
	if err != nil {
		return err
	}
	if !slices.Contains(lifecycle.ModesOf(csv), lifecycle.AllNamespaces) {
		problems = append(problems, hint.With(fmt.Errorf("OLM v1 would refuse to install %s: it does not support the install mode AllNamespaces", w.Bundle.Name), "'olmkit bundle validate --olm v1' tells what else it refuses"))
	}
	return errors.Join(problems...)
}
