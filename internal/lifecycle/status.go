package lifecycle

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Part is a part of OLM on a cluster, or a catalog that it reads.
type Part struct {
	Object string `json:"object"`        // Kind/namespace/name
	Why    string `json:"why,omitempty"` // what is wrong with it; "" if it is well
}

// Status is how OLM is on a cluster.
type Status struct {
	Installed bool   `json:"installed"`
	Version   string `json:"version,omitempty"`   // by the image that its operators run
	Namespace string `json:"namespace,omitempty"` // of its operators
	Parts     []Part `json:"parts"`               // all of them, by Object
}

// Unwell are the parts that are not well.
func (s Status) Unwell() []Part {
	return slices.DeleteFunc(slices.Clone(s.Parts), func(p Part) bool { return p.Why == "" })
}

// Missing is why a part is not well that is not there.
const Missing = "it is missing"

// DefinitionPart says whether the CustomResourceDefinition called name is there and served.
func DefinitionPart(ctx context.Context, c client.Reader, name string) (Part, error) {
	p := Part{Object: KindCRD + "/" + name}
	var d apiextensionsv1.CustomResourceDefinition
	err := c.Get(ctx, client.ObjectKey{Name: name}, &d)
	switch {
	case apierrors.IsNotFound(err):
		p.Why = Missing
	case err != nil:
		return p, fmt.Errorf("look for %s: %w", p.Object, err)
	case d.DeletionTimestamp != nil:
		p.Why = "it is being deleted: objects of it with finalizers hold it"
	case !apihelpers.IsCRDConditionTrue(&d, apiextensionsv1.Established):
		p.Why = "it is not established"
	}
	return p, nil
}

// ProgramTrouble says why d, a Deployment of OLM's own, does not do what it is for, or "".
func ProgramTrouble(d *appsv1.Deployment, pods []corev1.Pod) string {
	switch {
	case d.Spec.Replicas != nil && *d.Spec.Replicas == 0:
		return "it is scaled to 0"
	case d.Status.ObservedGeneration == d.Generation && d.Status.AvailableReplicas > 0:
		return ""
	}
	if t, ok := DeploymentTrouble(d, pods); ok {
		return t.Object + ": " + t.Why
	}
	return "no pod of it is available"
}
