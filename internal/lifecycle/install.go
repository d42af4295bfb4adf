package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Decode reads the objects in a manager's manifests: YAML documents, of which empty ones are none.
func Decode(documents []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(documents), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
}

// WaitEstablished waits 30 s at most until the CustomResourceDefinition called name, which is there, is established.
func WaitEstablished(ctx context.Context, c client.Reader, name string) error {
	err := Poll(ctx, 30*time.Second, func(ctx context.Context) (bool, error) {
		var d apiextensionsv1.CustomResourceDefinition
		if err := c.Get(ctx, client.ObjectKey{Name: name}, &d); err != nil {
			return false, err
		}
		return apihelpers.IsCRDConditionTrue(&d, apiextensionsv1.Established), nil
	})
	if err != nil {
		return fmt.Errorf("wait until CustomResourceDefinition %s is established: %w", name, err)
	}
	return nil
}

// WaitAvailable waits two minutes at most until a Deployment, which is there, has a pod that is available.
func WaitAvailable(ctx context.Context, c client.Reader, namespace, name string) error {
	err := Poll(ctx, 2*time.Minute, func(ctx context.Context) (bool, error) {
		var d appsv1.Deployment
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &d); err != nil {
			return false, err
		}
		return d.Status.ObservedGeneration == d.Generation && d.Status.AvailableReplicas > 0, nil
	})
	if err != nil {
		return fmt.Errorf("wait until deployment %s/%s is available: %w", namespace, name, err)
	}
	return nil
}
