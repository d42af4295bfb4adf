package olmv1

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

// catalogNameLabel is on each ClusterCatalog; without it a webhook of catalogd's sets it.
const catalogNameLabel = "olm.operatorframework.io/metadata.name"

// Present names the ClusterExtension of pkg, and those of crds that are on the cluster.
func (c *Client) Present(ctx context.Context, pkg string, crds []string, _ ...string) ([]string, error) {
	var there []string
	extensions, err := c.Extensions(ctx, pkg)
	if err != nil {
		return nil, err
	}
	for i := range extensions {
		there = append(there, describe(&extensions[i]))
	}
	for _, name := range crds {
		err := c.Get(ctx, client.ObjectKey{Name: name}, &apiextensionsv1.CustomResourceDefinition{})
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("look for CustomResourceDefinition %s: %w", name, err)
		}
		if err == nil {
			there = append(there, lifecycle.KindCRD+"/"+name)
		}
	}
	return there, nil
}

// Extensions lists the ClusterExtensions that install pkg.
func (c *Client) Extensions(ctx context.Context, pkg string) ([]ClusterExtension, error) {
	var list ClusterExtensionList
	if err := c.List(ctx, &list); ignoreMissing(err) != nil {
		return nil, fmt.Errorf("list ClusterExtensions: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(e ClusterExtension) bool {
		return e.Name != pkg && (e.Spec.Source.Catalog == nil || e.Spec.Source.Catalog.PackageName != pkg)
	}), nil
}

// EnsureNamespace makes sure that a namespace exists.
func (c *Client) EnsureNamespace(ctx context.Context, name string) error {
	err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: c.labels()}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	return nil
}

// Prepare makes sure that the place's namespace exists and has the ServiceAccount that installs. Request gives it its rights.
func (c *Client) Prepare(ctx context.Context, p lifecycle.Place) error {
	if err := c.EnsureNamespace(ctx, p.Namespace); err != nil {
		return err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: Installer(p.Package), Labels: c.labels()}}
	if err := c.Create(ctx, account); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create ServiceAccount %s/%s: %w", p.Namespace, account.Name, err)
	}
	return nil
}

// Catalog returns all of p: a ClusterExtension pins the bundle that it wants, and OLM v1 itself refuses what does not follow.
func (c *Client) Catalog(_ context.Context, _ lifecycle.Place, p *catalog.Package, _, _ string, _ ...string) ([]byte, error) {
	return catalog.Whole(p)
}

// Publish has catalogd serve the image at the given address. What is there before an address has an image is an address at
// which nothing listens, and a reference to it is one that cannot be pulled.
func (c *Client) Publish(ctx context.Context, p lifecycle.Place, at cluster.CatalogAddress) error {
	ref := at.Image
	if ref == "" {
		ref = at.Address + "/nothing:latest"
	}
	o := &ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: p.Catalog}}
	_, err := controllerutil.CreateOrPatch(ctx, c.WithWatch, o, func() error {
		c.label(o)
		o.Labels[catalogNameLabel] = p.Catalog
		o.Spec.Source = CatalogSource{Type: sourceImage, Image: &ImageSource{Ref: ref}}
		return nil
	})
	if err != nil {
		return fmt.Errorf("publish ClusterCatalog %s at %s: %w", p.Catalog, ref, err)
	}
	return nil
}

// serving reports whether catalogd serves what c names now.
func serving(c *ClusterCatalog) bool {
	resolved := c.Status.ResolvedSource
	return meta.IsStatusConditionTrue(c.Status.Conditions, conditionServing) &&
		resolved != nil && resolved.Image != nil && c.Spec.Source.Image != nil && resolved.Image.Ref == c.Spec.Source.Image.Ref
}

// WaitPublished waits until catalogd serves the place's catalog.
func (c *Client) WaitPublished(ctx context.Context, p lifecycle.Place, limit time.Duration) error {
	var o ClusterCatalog
	err := lifecycle.Poll(ctx, limit, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKey{Name: p.Catalog}, &o)
		return err == nil && serving(&o), err
	})
	if err != nil {
		return fmt.Errorf("wait until catalogd serves ClusterCatalog %s: %w: %s", p.Catalog, err, progressOf(o.Status.Conditions))
	}
	return nil
}

// Request has the ClusterExtension install exactly the bundle, which must follow what is installed, with the rights that this
// takes.
func (c *Client) Request(ctx context.Context, p lifecycle.Place, bundle string) error {
	return c.request(ctx, p, bundle, catalogProvided)
}

func (c *Client) request(ctx context.Context, p lifecycle.Place, bundle, policy string) error {
	version, err := c.versionOf(bundle)
	if err != nil {
		return err
	}
	o := &ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: p.Package}}
	if err := client.IgnoreNotFound(c.Get(ctx, client.ObjectKeyFromObject(o), o)); err != nil {
		return fmt.Errorf("read ClusterExtension %s: %w", o.Name, err)
	}
	bundles := []string{bundle}
	if o.Status.Install != nil {
		bundles = append(bundles, o.Status.Install.Bundle.Name)
	}
	if err := c.grant(ctx, p, bundles...); err != nil {
		return err
	}
	_, err = controllerutil.CreateOrPatch(ctx, c.WithWatch, o, func() error {
		c.label(o)
		o.Spec = ClusterExtensionSpec{
			Namespace: p.Namespace, ServiceAccount: ServiceAccount{Name: Installer(p.Package)},
			Source: ExtensionSource{SourceType: sourceCatalog, Catalog: &CatalogFilter{
				PackageName: p.Package, Version: version, UpgradeConstraintPolicy: policy,
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{catalogNameLabel: p.Catalog}},
			}},
		}
		if p.Channel != "" {
			o.Spec.Source.Catalog.Channels = []string{p.Channel}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("request %s by ClusterExtension %s: %w", bundle, o.Name, err)
	}
	return nil
}

// Rollback has the ClusterExtension go back to bundle, which OLM v1 does if it is told that somebody certifies it, and if the CRDs
// of the bundle are safe to go back to.
func (c *Client) Rollback(ctx context.Context, p lifecycle.Place, bundle string, _ time.Duration) (func(context.Context) error, error) {
	return func(context.Context) error { return nil }, c.request(ctx, p, bundle, selfCertified)
}

// Restrict leaves the ServiceAccount of the place only the rights to install the bundle, which is installed.
func (c *Client) Restrict(ctx context.Context, p lifecycle.Place, bundle string) error {
	return c.grant(ctx, p, bundle)
}

// grant gives the ServiceAccount of the place the rights to install bundles, and no others. Of a bundle that the package does not
// have, the ServiceAccount has the rights already, and keeps them.
func (c *Client) grant(ctx context.Context, p lifecycle.Place, bundles ...string) error {
	var all Rights
	var had bool
	for _, name := range bundles {
		b := c.Package.Bundle(name)
		if b == nil {
			had = true // installed from another catalog
			continue
		}
		rights, err := RightsOf(p.Package, b)
		if err != nil {
			return err
		}
		all = all.Add(rights)
	}
	for _, o := range all.Objects(p.Package, p.Namespace) {
		wanted := o.DeepCopyObject()
		_, err := controllerutil.CreateOrPatch(ctx, c.WithWatch, o, func() error {
			c.label(o)
			switch now := o.(type) {
			case *rbacv1.ClusterRole:
				now.Rules = rulesWith(now.Rules, had, wanted.(*rbacv1.ClusterRole).Rules)
			case *rbacv1.Role:
				now.Rules = rulesWith(now.Rules, had, wanted.(*rbacv1.Role).Rules)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("grant the rights to install %s: %s: %w", p.Package, describe(o), err)
		}
	}
	return nil
}

// rulesWith are the wanted rules, and those of now if they are to be kept.
func rulesWith(now []rbacv1.PolicyRule, keep bool, wanted []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	if !keep {
		return wanted
	}
	return unique(slices.Concat(now, wanted))
}

// label labels o as what c makes.
func (c *Client) label(o client.Object) {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	for key, value := range c.labels() {
		labels[key] = value
	}
	o.SetLabels(labels)
}
