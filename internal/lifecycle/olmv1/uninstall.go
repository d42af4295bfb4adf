package olmv1

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// Uninstall removes the ClusterExtension, with which OLM v1 deletes all that it made for it, definitions and their objects included,
// then what of the definitions is left, the ServiceAccount with its rights, and the catalog. It waits until all of it is gone,
// and returns DeletionTimeoutError if something stays for longer than limit. Finalizers that nobody serves any more are taken
// away.
func (c *Client) Uninstall(ctx context.Context, p lifecycle.Place, crds []string, limit time.Duration) error {
	extension := &ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: p.Package}}
	if err := c.remove(ctx, extension, limit); err != nil {
		return err
	}
	for _, name := range crds {
		if err := lifecycle.RemoveDefinition(ctx, c.WithWatch, name, limit, nil); err != nil {
			return err
		}
	}
	for _, o := range append(Rights{}.Objects(p.Package, p.Namespace),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: Installer(p.Package)}},
		&ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: p.Catalog}},
	) {
		if err := c.remove(ctx, o, limit); err != nil {
			return err
		}
	}
	return nil
}

// BeginUninstall deletes the ClusterExtension.
func (c *Client) BeginUninstall(ctx context.Context, p lifecycle.Place) error {
	extension := &ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: p.Package}}
	if err := client.IgnoreNotFound(c.Delete(ctx, extension)); err != nil {
		return fmt.Errorf("delete %s: %w", describe(extension), err)
	}
	return nil
}

// remove deletes o and waits until it is gone.
func (c *Client) remove(ctx context.Context, o client.Object, limit time.Duration) error {
	if err := client.IgnoreNotFound(c.Delete(ctx, o)); err != nil {
		return fmt.Errorf("delete %s: %w", describe(o), err)
	}
	err := lifecycle.Poll(ctx, limit, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(o), o)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	switch {
	case errors.Is(err, lifecycle.ErrTimeout):
		return lifecycle.DeletionTimeoutError{What: []string{describe(o)}, After: limit}
	case err != nil:
		return fmt.Errorf("wait until %s is gone: %w", describe(o), err)
	}
	return nil
}

// DeleteOrphans removes nothing: with a ClusterExtension goes all that OLM v1 made for it.
func (c *Client) DeleteOrphans(context.Context, lifecycle.Place, []string) ([]string, error) {
	return nil, nil
}
