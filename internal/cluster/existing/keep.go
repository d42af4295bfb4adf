package existing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmkit/olmkit/internal/cluster"
)

// CatalogLabel is on what serves a catalog that stays when the command has ended. Its value is the CatalogSource's name.
const CatalogLabel = "olmkit.dev/catalog"

// KeepCatalog has a pod in namespace serve the catalog fbc (a stream of JSON documents) for the CatalogSource called name, and
// returns the pod's address, which is the same as long as that pod is. The pod outlives this process. What served other
// contents stays until DropCatalogs. If it fails it removes what it made.
func (c *Cluster) KeepCatalog(ctx context.Context, namespace, name string, labels map[string]string, fbc []byte) (string, error) {
	digest := sha256.Sum256(slices.Concat(fbc, []byte(c.server)))
	s := &served{namespace: namespace, pod: name + "-" + hex.EncodeToString(digest[:5]), labels: maps.Clone(labels)}
	s.labels[CatalogLabel] = name
	pods := c.client.CoreV1().Pods(namespace)
	if pod, err := pods.Get(ctx, s.pod, metav1.GetOptions{}); err == nil && pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning {
		return c.ready(ctx, s)
	}
	if err := c.DropCatalogs(ctx, namespace, name, func(p *corev1.Pod) bool { return p.Name != s.pod }); err != nil {
		return "", err
	}
	err := c.start(ctx, s, fbc)
	var address string
	if err == nil {
		address, err = c.ready(ctx, s)
	}
	if err != nil {
		return "", errors.Join(err, c.remove(context.WithoutCancel(ctx), s))
	}
	return address, nil
}

// At returns whether a pod serves at the given address.
func At(address string) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool { return net.JoinHostPort(p.Status.PodIP, fmt.Sprint(port)) == address }
}

// DropCatalogs removes the pods that serve catalogs in namespace for the CatalogSource called name, with their ConfigMaps, but
// those that keep wants.
func (c *Cluster) DropCatalogs(ctx context.Context, namespace, name string, keep func(*corev1.Pod) bool) error {
	of := metav1.ListOptions{LabelSelector: cluster.ManagedByLabel + "=" + cluster.ManagedBy + "," + CatalogLabel + "=" + name}
	pods, err := c.client.CoreV1().Pods(namespace).List(ctx, of)
	if err != nil {
		return fmt.Errorf("list the pods that serve catalog %s/%s: %w", namespace, name, err)
	}
	used := map[string]bool{}
	var errs []error
	for i := range pods.Items {
		p := &pods.Items[i]
		if !keep(p) {
			errs = append(errs, c.client.CoreV1().Pods(namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
			continue
		}
		for _, v := range p.Spec.Volumes {
			if v.Projected == nil {
				continue
			}
			for _, source := range v.Projected.Sources {
				if source.ConfigMap != nil {
					used[source.ConfigMap.Name] = true
				}
			}
		}
	}
	contents, err := c.client.CoreV1().ConfigMaps(namespace).List(ctx, of)
	if err != nil {
		return fmt.Errorf("list the ConfigMaps of catalog %s/%s: %w", namespace, name, err)
	}
	for _, content := range contents.Items {
		if !used[content.Name] {
			errs = append(errs, c.client.CoreV1().ConfigMaps(namespace).Delete(ctx, content.Name, metav1.DeleteOptions{}))
		}
	}
	for _, err := range errs {
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("remove what served catalog %s/%s: %w", namespace, name, err)
		}
	}
	return nil
}
