package installation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/blang/semver/v4"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv1"
)

// RunV1 is Run under OLM v1. That installs nothing that a bundle depends on: offered has one bundle.
func RunV1(ctx context.Context, c *olmv1.Client, offered *catalog.Catalog, pkg string, options Options) (*Result, error) {
	if len(offered.Packages) > 1 {
		return nil, hint.With(fmt.Errorf("%d packages are to be run, and OLM v1 installs nothing that a bundle depends on", len(offered.Packages)), "run one bundle after the other")
	}
	fbc, err := catalog.Offer(offered, channel)
	if err != nil {
		return nil, err
	}
	p := offered.Find(pkg)
	release, err := lifecycle.ReadRelease(p.Bundles[0])
	if err != nil {
		return nil, err
	}
	r := newResult(p.Bundles[0], pkg, "v1", lifecycle.AllNamespaces, release.CSV)
	r.Namespace = cmp.Or(options.Namespace, pkg)
	place := lifecycle.Place{Package: pkg, Channel: channel, Catalog: olmv1.RunCatalog(pkg), Mode: lifecycle.AllNamespaces}
	wanted := olmv1.Wanted{Package: p, Bundle: p.Bundles[0], Namespace: r.Namespace, Name: pkg, Catalog: place.Catalog}
	if err := wanted.Check(); err != nil {
		return nil, err
	}
	c.Package = p
	if err := r.preflightV1(ctx, c, p.Bundles[0].Version, release, options.Namespace); err != nil || r.Unchanged {
		return r, err
	}
	if err := noneOfOthers(ctx, c, pkg, release); err != nil {
		return r, err
	}
	c.Run, place.Namespace = pkg, r.Namespace
	if err := c.Prepare(ctx, place); err != nil {
		return r, err
	}
	step := options.Progress.Start("ClusterCatalog %s", place.Catalog)
	if err := step.End(options.Publish(ctx, "", place.Catalog, nil, fbc)); err != nil {
		return r, err
	}
	if err := c.Request(ctx, place, r.Bundle); err != nil {
		return r, err
	}
	step = options.Progress.Start("%s", r.verb())
	if err := step.End(r.waitV1(ctx, c, place, release, options)); err != nil {
		return r, err
	}
	return r, c.Restrict(ctx, place, r.Bundle)
}

// preflightV1 is preflight under OLM v1.
func (r *Result) preflightV1(ctx context.Context, c *olmv1.Client, version semver.Version, release *lifecycle.Release, namespace string) error {
	s, err := c.Status(ctx)
	if err != nil {
		return err
	}
	if !s.Installed {
		return hint.With(errors.New("OLM v1 is not on the cluster"), "install it with 'olmkit olm install --olm v1'")
	}
	extensions, err := c.Extensions(ctx, r.Package)
	if err != nil {
		return err
	}
	for _, e := range extensions {
		if e.Labels[cluster.RunLabel] != r.Package {
			return hint.With(fmt.Errorf("package %s is on the cluster already: ClusterExtension/%s, which 'olmkit bundle run' did not make", r.Package, e.Name),
				"use another cluster, or delete that installation first")
		}
	}
	if len(extensions) == 0 {
		return nil
	}
	ours := extensions[0]
	if err := r.stay(namespace, ours.Spec.Namespace); err != nil || ours.Status.Install == nil {
		return err
	}
	before := ours.Status.Install.Bundle
	if before.Name == r.Bundle {
		state, err := c.State(ctx, lifecycle.Place{Package: r.Package, Namespace: r.Namespace}, release, lifecycle.View{Reader: c})
		r.Unchanged = err == nil && state.Stage == lifecycle.Installed
		return err
	}
	old, err := semver.Parse(before.Version)
	if err != nil {
		return fmt.Errorf("read the version of %s, which ClusterExtension/%s has installed: %w", before.Name, ours.Name, err)
	}
	if err := r.replaces(version, before.Name, old); err != nil {
		return err
	}
	return keepsObjects(ctx, c, &ours, release)
}

// noneOfOthers is an error if what is to be made is there, and somebody else made it: a ClusterCatalog would be overwritten, and OLM v1
// takes over no definitions.
func noneOfOthers(ctx context.Context, c *olmv1.Client, pkg string, release *lifecycle.Release) error {
	offering := &olmv1.ClusterCatalog{}
	switch err := c.Get(ctx, client.ObjectKey{Name: olmv1.RunCatalog(pkg)}, offering); {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("look for ClusterCatalog/%s: %w", olmv1.RunCatalog(pkg), err)
	case err == nil && offering.Labels[cluster.RunLabel] != pkg:
		return hint.With(fmt.Errorf("there is a ClusterCatalog/%s, which 'olmkit bundle run' did not make", offering.Name), "delete it, or give it another name")
	}
	extensions, err := c.Extensions(ctx, pkg)
	if err != nil {
		return err
	}
	for _, d := range release.CRDs {
		there := &metav1.PartialObjectMetadata{}
		there.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		err := c.Get(ctx, client.ObjectKey{Name: d.Name}, there)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("look for CustomResourceDefinition/%s: %w", d.Name, err)
		}
		if !slices.ContainsFunc(extensions, func(e olmv1.ClusterExtension) bool { return ownedBy(there, &e) }) {
			return hint.With(fmt.Errorf("CustomResourceDefinition/%s is there already, and OLM v1 takes over nothing that it did not make", d.Name),
				"if OLM v0 runs %s there, run the bundle with --olm v0, or on another cluster", pkg)
		}
	}
	return nil
}

// ownedBy reports whether OLM v1 made o for e.
func ownedBy(o client.Object, e *olmv1.ClusterExtension) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == e.UID })
}

// keepsObjects is an error if the release lacks a definition of e that has objects: OLM v1 deletes it with them.
func keepsObjects(ctx context.Context, c *olmv1.Client, e *olmv1.ClusterExtension, release *lifecycle.Release) error {
	var definitions apiextensionsv1.CustomResourceDefinitionList
	if err := c.List(ctx, &definitions); err != nil {
		return fmt.Errorf("list CustomResourceDefinitions: %w", err)
	}
	for i := range definitions.Items {
		d := &definitions.Items[i]
		if !ownedBy(d, e) || slices.Contains(release.Shipped, lifecycle.KindCRD+"/"+d.Name) {
			continue
		}
		objects, err := lifecycle.ObjectsOf(ctx, c.WithWatch, d)
		if err != nil {
			return fmt.Errorf("look for objects that OLM v1 would delete: %w", err)
		}
		if len(objects) > 0 {
			return hint.With(fmt.Errorf("%s has no CustomResourceDefinition %s, and OLM v1 would delete that with its %d objects", release.Name, d.Name, len(objects)),
				"if nobody needs them, delete them while the operator runs: 'kubectl delete %s --all --all-namespaces'", d.Name)
		}
	}
	return nil
}

// waitV1 is wait under OLM v1, which is done before the Deployments are rolled out.
func (r *Result) waitV1(ctx context.Context, c *olmv1.Client, p lifecycle.Place, release *lifecycle.Release, options Options) error {
	start, refused := time.Now(), time.Time{}
	note := r.noter(start, options.Progress)
	defer options.Progress.Status("")
	var stop error
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, options.Timeout, true, func(ctx context.Context) (bool, error) {
		state, err := c.State(ctx, p, release, lifecycle.View{Reader: c})
		if err != nil {
			return false, err
		}
		switch {
		case state.Stall == nil:
			refused = time.Time{}
		case refused.IsZero():
			refused = time.Now()
		}
		if stalled(state.Stall, refused) {
			stop = errors.New("it will not be")
		}
		if state.Stage >= lifecycle.Installing {
			note("objects applied")
		}
		if state.Stage == lifecycle.Installed {
			note("Deployments rolled out")
		}
		return state.Stage == lifecycle.Installed, stop
	})
	if err == nil || ctx.Err() != nil {
		return err
	}
	return r.notInstalled(ctx, c, p, start, err)
}

// stalled reports whether OLM v1 has refused a bundle, since then, for so long that it counts.
func stalled(s *lifecycle.Stall, since time.Time) bool {
	return s != nil && (s.Grace == 0 || time.Since(since) > unresolvedLimit)
}
