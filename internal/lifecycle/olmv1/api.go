package olmv1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is of OLM v1's kinds.
var GroupVersion = schema.GroupVersion{Group: "olm.operatorframework.io", Version: "v1"}

// Names of OLM v1's kinds.
const (
	KindCatalog   = "ClusterCatalog"
	KindExtension = "ClusterExtension"
)

// Types, reasons and other words of the API (operator-controller v1.10.0, api/v1).
const (
	conditionInstalled   = "Installed"
	conditionProgressing = "Progressing"
	conditionServing     = "Serving"
	conditionDeprecated  = "Deprecated"
	reasonSucceeded      = "Succeeded"
	reasonRollingOut     = "RollingOut"
	reasonSwitchedOff    = "UserSpecifiedUnavailable"

	sourceCatalog   = "Catalog"
	sourceImage     = "Image"
	catalogProvided = "CatalogProvided"
	selfCertified   = "SelfCertified"
)

// ClusterCatalog is what a walk needs of the kind. Its module cannot be imported without all that operator-controller is built
// from.
type ClusterCatalog struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   ClusterCatalogSpec   `json:"spec"`
	Status ClusterCatalogStatus `json:"status,omitempty"`
}

// ClusterCatalogSpec is where a catalog is read from.
type ClusterCatalogSpec struct {
	Source CatalogSource `json:"source"`
}

// CatalogSource is an image.
type CatalogSource struct {
	Type  string       `json:"type"`
	Image *ImageSource `json:"image,omitempty"`
}

// ImageSource is a reference, and how often it is looked at again.
type ImageSource struct {
	Ref                 string `json:"ref"`
	PollIntervalMinutes *int   `json:"pollIntervalMinutes,omitempty"`
}

// ClusterCatalogStatus is which content is served.
type ClusterCatalogStatus struct {
	Conditions     []metav1.Condition `json:"conditions,omitempty"`
	ResolvedSource *CatalogSource     `json:"resolvedSource,omitempty"`
}

// ClusterCatalogList is a list.
type ClusterCatalogList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []ClusterCatalog `json:"items"`
}

// ClusterExtension is what a walk needs of the kind.
type ClusterExtension struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   ClusterExtensionSpec   `json:"spec"`
	Status ClusterExtensionStatus `json:"status,omitempty"`
}

// ClusterExtensionSpec is what is to be installed, where, and by whom.
type ClusterExtensionSpec struct {
	Namespace      string          `json:"namespace"`
	ServiceAccount ServiceAccount  `json:"serviceAccount"`
	Source         ExtensionSource `json:"source"`
}

// ServiceAccount is the one that installs.
type ServiceAccount struct {
	Name string `json:"name"`
}

// ExtensionSource is a choice from catalogs.
type ExtensionSource struct {
	SourceType string         `json:"sourceType"`
	Catalog    *CatalogFilter `json:"catalog,omitempty"`
}

// CatalogFilter is what is chosen from.
type CatalogFilter struct {
	PackageName             string                `json:"packageName"`
	Version                 string                `json:"version,omitempty"`
	Channels                []string              `json:"channels,omitempty"`
	Selector                *metav1.LabelSelector `json:"selector,omitempty"`
	UpgradeConstraintPolicy string                `json:"upgradeConstraintPolicy,omitempty"`
}

// ClusterExtensionStatus is what is installed.
type ClusterExtensionStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	Install    *InstallStatus     `json:"install,omitempty"`
}

// InstallStatus is what is installed.
type InstallStatus struct {
	Bundle BundleMetadata `json:"bundle"`
}

// BundleMetadata names a bundle.
type BundleMetadata struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// ClusterExtensionList is a list.
type ClusterExtensionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []ClusterExtension `json:"items"`
}

func addToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &ClusterCatalog{}, &ClusterCatalogList{}, &ClusterExtension{}, &ClusterExtensionList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

func (s CatalogSource) copy() CatalogSource {
	if s.Image != nil {
		image := *s.Image
		s.Image = &image
	}
	return s
}

func (c *ClusterCatalog) copy() *ClusterCatalog {
	n := *c
	c.DeepCopyInto(&n.ObjectMeta)
	n.Spec.Source = c.Spec.Source.copy()
	n.Status.Conditions = slices.Clone(c.Status.Conditions)
	if c.Status.ResolvedSource != nil {
		resolved := c.Status.ResolvedSource.copy()
		n.Status.ResolvedSource = &resolved
	}
	return &n
}

// DeepCopyObject returns a copy.
func (c *ClusterCatalog) DeepCopyObject() runtime.Object { return c.copy() }

// DeepCopyObject returns a copy.
func (l *ClusterCatalogList) DeepCopyObject() runtime.Object {
	n := *l
	l.DeepCopyInto(&n.ListMeta)
	n.Items = make([]ClusterCatalog, len(l.Items))
	for i := range l.Items {
		n.Items[i] = *l.Items[i].copy()
	}
	return &n
}

func (e *ClusterExtension) copy() *ClusterExtension {
	n := *e
	e.DeepCopyInto(&n.ObjectMeta)
	if e.Spec.Source.Catalog != nil {
		filter := *e.Spec.Source.Catalog
		filter.Channels = slices.Clone(filter.Channels)
		filter.Selector = filter.Selector.DeepCopy()
		n.Spec.Source.Catalog = &filter
	}
	n.Status.Conditions = slices.Clone(e.Status.Conditions)
	if e.Status.Install != nil {
		install := *e.Status.Install
		n.Status.Install = &install
	}
	return &n
}

// DeepCopyObject returns a copy.
func (e *ClusterExtension) DeepCopyObject() runtime.Object { return e.copy() }

// DeepCopyObject returns a copy.
func (l *ClusterExtensionList) DeepCopyObject() runtime.Object {
	n := *l
	l.DeepCopyInto(&n.ListMeta)
	n.Items = make([]ClusterExtension, len(l.Items))
	for i := range l.Items {
		n.Items[i] = *l.Items[i].copy()
	}
	return &n
}
