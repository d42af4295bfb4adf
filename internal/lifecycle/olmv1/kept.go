package olmv1

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

// InstallKept installs OLM v1 to stay, or what is missing of it where an earlier call installed it. A cluster that has another
// OLM v1 it refuses. What it made is returned also when it fails.
func InstallKept(ctx context.Context, c *Client, h Host) (Installation, error) {
	s, err := c.Status(ctx)
	if err != nil {
		return nil, err
	}
	if s.Installed {
		own, err := c.InstalledKept(ctx)
		if err != nil {
			return nil, err
		}
		if len(own) == 0 {
			return nil, hint.With(fmt.Errorf("OLM v1 is on the cluster already, in namespace %s, and olmkit did not install it", s.Namespace),
				"use it as it is; 'olmkit olm status' tells how it is")
		}
		if s.Version != "" && s.Version != Version {
			return nil, hint.With(fmt.Errorf("OLM %s is on the cluster, and this olmkit installs %s", s.Version, Version), "run 'olmkit olm uninstall --olm v1' first")
		}
	}
	return install(ctx, c, h)
}

// InstalledKept returns, in the order of Install, those of OLM v1's parts on the cluster that InstallKept made.
func (c *Client) InstalledKept(ctx context.Context) (Installation, error) {
	definitions, others, err := objects(false)
	if err != nil {
		return nil, err
	}
	there, err := c.existing(ctx, slices.Concat(definitions, others))
	return slices.DeleteFunc(there, func(o *unstructured.Unstructured) bool {
		labels := o.GetLabels()
		return labels[cluster.ManagedByLabel] != cluster.ManagedBy || labels[cluster.WalkLabel] != ""
	}), err
}

// existing are those of objects that are on the cluster, as they are there.
func (c *Client) existing(ctx context.Context, objects Installation) (Installation, error) {
	var there Installation
	for _, o := range objects {
		now := &unstructured.Unstructured{}
		now.SetGroupVersionKind(o.GroupVersionKind())
		switch err := c.Get(ctx, client.ObjectKeyFromObject(o), now); {
		case err == nil:
			there = append(there, now)
		case ignoreMissing(err) != nil:
			return nil, fmt.Errorf("look for %s: %w", describe(o), err)
		}
	}
	return there, nil
}

// Users names what somebody has OLM v1 do, ClusterExtensions and ClusterCatalogs, and the Certificates that somebody has had
// issued besides.
func (c *Client) Users(ctx context.Context) ([]string, error) {
	var users []string
	for _, kind := range []schema.GroupVersionKind{
		GroupVersion.WithKind(KindExtension), GroupVersion.WithKind(KindCatalog), {Group: "cert-manager.io", Version: "v1", Kind: "Certificate"},
	} {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := c.List(ctx, &list); ignoreMissing(err) != nil {
			return nil, fmt.Errorf("list objects of kind %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			if o := &list.Items[i]; o.GetNamespace() != Namespace && len(o.GetOwnerReferences()) == 0 {
				users = append(users, describe(o))
			}
		}
	}
	return users, nil
}

// Remove removes made, what was made last first, and waits until it is gone. It returns DeletionTimeoutError if something stays for
// longer than limit.
func (c *Client) Remove(ctx context.Context, made Installation, limit time.Duration) error {
	for _, o := range slices.Backward(made) {
		o = o.DeepCopy()
		o.SetResourceVersion("")
		if err := c.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground)); ignoreMissing(err) != nil {
			return fmt.Errorf("remove %s: %w", describe(o), err)
		}
	}
	var left Installation
	err := lifecycle.Poll(ctx, limit, func(ctx context.Context) (gone bool, err error) {
		left, err = c.existing(ctx, made)
		return len(left) == 0, err
	})
	switch {
	case errors.Is(err, lifecycle.ErrTimeout):
		return lifecycle.DeletionTimeoutError{What: left.Names(), After: limit}
	case err != nil:
		return fmt.Errorf("wait until OLM v1 is gone: %w", err)
	}
	return nil
}

// RunCatalog is what the ClusterCatalog of 'bundle run' of pkg is called.
func RunCatalog(pkg string) string { return "olmkit-run-" + pkg }
