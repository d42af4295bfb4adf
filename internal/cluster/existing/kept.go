package existing

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmkit/olmkit/internal/cluster"
)

// KeptCatalog returns what KeepCatalog serves for the CatalogSource called name in namespace, as archives; none if it serves
// nothing.
func (c *Cluster) KeptCatalog(ctx context.Context, namespace, name string) ([][]byte, error) {
	list, err := c.client.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{
		LabelSelector: cluster.ManagedByLabel + "=" + cluster.ManagedBy + "," + CatalogLabel + "=" + name,
	})
	if err != nil {
		return nil, fmt.Errorf("read the content of catalog %s/%s: %w", namespace, name, err)
	}
	var archives [][]byte
	for _, m := range list.Items {
		for _, archive := range m.BinaryData {
			archives = append(archives, archive)
		}
	}
	return archives, nil
}
