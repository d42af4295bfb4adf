package olmv0

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/operator-framework/operator-registry/pkg/lib/encoding"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/hint"
)

// Unpack returns fbc, a catalog that OLM is to read in a namespace, with images of the bundles that are Large, and makes the ConfigMaps
// in which OLM finds what it unpacks from these: the Job that does so has no image to read on a cluster that simulates images, where it
// is complete at once. On others it returns fbc as it is.
func (c *Client) Unpack(ctx context.Context, namespace string, fbc []byte) ([]byte, error) {
	if len(fbc) <= catalog.MostInline {
		return fbc, nil
	}
	var large []*catalog.Bundle
	for _, p := range catalog.Parse("", fbc).Packages {
		for _, b := range p.Bundles {
			if b.Large() {
				large = append(large, b)
			}
		}
	}
	if len(large) == 0 {
		return fbc, nil
	}
	if simulates, err := c.simulates(ctx); err != nil || !simulates {
		return fbc, err
	}
	images := map[string]string{}
	for _, b := range large {
		unpacked, err := c.unpacked(namespace, b)
		if err != nil {
			return nil, err
		}
		if err := client.IgnoreAlreadyExists(c.Create(ctx, unpacked)); err != nil {
			return nil, hint.With(fmt.Errorf("store the manifests of bundle %s, as OLM does: %w", b.Name, err),
				"if they are too large, shorten the descriptions in its definitions: OLM has room for 1 MiB, compressed")
		}
		images[b.Document.Package+"/"+b.Name] = unpacked.Annotations[sourceImage]
	}
	return catalog.WithImages(fbc, images)
}

// simulates reports whether nodes of the cluster simulate images that they do not have.
func (c *Client) simulates(ctx context.Context) (bool, error) {
	var nodes corev1.NodeList
	if err := c.List(ctx, &nodes); apierrors.IsForbidden(err) {
		return false, nil // on the clusters that do, olmkit may do all
	} else if err != nil {
		return false, fmt.Errorf("list nodes: %w", err)
	}
	for _, n := range nodes.Items {
		if strings.HasPrefix(n.Status.NodeInfo.ContainerRuntimeVersion, cluster.SimulatingRuntime) {
			return true, nil
		}
	}
	return false, nil
}

// sourceImage is the annotation of a ConfigMap that names the image from which its content was unpacked.
const sourceImage = "olm.sourceImage"

// unpacked returns the ConfigMap that OLM's Job fills from a bundle's image, which is named by its content (operator-registry v1.74.0,
// pkg/configmap).
func (c *Client) unpacked(namespace string, b *catalog.Bundle) (*corev1.ConfigMap, error) {
	objects, err := b.Objects()
	if err != nil {
		return nil, err
	}
	m := &corev1.ConfigMap{BinaryData: map[string][]byte{}}
	content := sha256.New()
	for i, o := range objects {
		content.Write(o)
		if m.BinaryData[fmt.Sprintf("%04d.json", i)], err = encoding.GzipBase64Encode(o); err != nil {
			return nil, fmt.Errorf("compress manifest %d of bundle %s: %w", i, b.Name, err)
		}
	}
	image := fmt.Sprintf("bundle.olmkit.invalid/%s@sha256:%x", b.Document.Package, content.Sum(nil))
	m.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: hash(image), Labels: c.labels(),
		Annotations: map[string]string{sourceImage: image, "olm.contentEncoding": "gzip+base64"}}
	m.Labels["olm.managed"] = "true" // OLM looks at no others
	return m, nil
}

// hash names what OLM makes to unpack an image (operator-lifecycle-manager v0.46.0, pkg/controller/bundle, hash).
func hash(image string) string {
	sum := sha256.Sum256([]byte(image))
	return hex.EncodeToString(sum[:])[:63]
}
