package olmv1

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/lifecycle"
)

// Registry has images for a cluster.
type Registry interface {
	// PushImage keeps an image where pods can pull it, and returns its reference by digest.
	PushImage(ctx context.Context, repository string, image v1.Image) (string, error)
}

// Host is what a cluster without cert-manager and without a registry that pods reach does in their place.
type Host interface {
	Registry
	// ProvideCertificates issues what cert-manager would.
	ProvideCertificates(ctx context.Context) error
	// Describe tells whether images are simulated: then their programs are given to the cluster, and they alone are in a container.
	Describe() cluster.Description
}

// manifests are manifests/standard.yaml of operator-controller v1.10.0.
//
//go:embed manifests.yaml
var manifests []byte

//go:embed cert-manager.yaml
var certManager []byte

// Kinds of the manifests that are left out: where olmkit issues certificates, and besides where images are simulated.
var (
	left          = []string{"ClusterIssuer", "Issuer"}
	leftSimulated = []string{"NetworkPolicy", "PodDisruptionBudget"}
)

// parts are the objects of the manifests, as they are to be applied on a cluster; simulated, where images are simulated.
func parts(simulated bool) ([]*unstructured.Unstructured, error) {
	all, err := lifecycle.Decode(manifests)
	if err != nil {
		return nil, fmt.Errorf("read the manifests of OLM v1: %w", err)
	}
	all = slices.DeleteFunc(all, func(o *unstructured.Unstructured) bool {
		return slices.Contains(left, o.GetKind()) || o.GetNamespace() == "cert-manager" || simulated && slices.Contains(leftSimulated, o.GetKind())
	})
	for _, o := range all {
		if o.GetKind() != "Deployment" {
			continue
		}
		if err := adapt(o, simulated); err != nil {
			return nil, fmt.Errorf("adapt %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return all, nil
}

// adapt has a Deployment of OLM v1 run the release, and where images are simulated in the way that such a cluster can.
func adapt(o *unstructured.Unstructured, simulated bool) error {
	var d appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d); err != nil {
		return err
	}
	name := d.Labels["app.kubernetes.io/name"]
	for i := range d.Spec.Template.Spec.Containers {
		d.Spec.Template.Spec.Containers[i].Image = Images[name]
	}
	if simulated {
		hasten(&d.Spec, name)
	}
	var err error
	o.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(&d)
	return err
}

// hasten has the program called name elect no leader, whose lock a killed pod would hold for two minutes, and be probed each second.
func hasten(d *appsv1.DeploymentSpec, name string) {
	d.MinReadySeconds = 0
	for i := range d.Template.Spec.Containers {
		container := &d.Template.Spec.Containers[i]
		container.Command = []string{"/" + name}
		container.Args = slices.DeleteFunc(container.Args, func(a string) bool { return a == "--leader-elect" })
		for _, probe := range []*corev1.Probe{container.ReadinessProbe, container.LivenessProbe} {
			probe.HTTPGet.Port = intstr.FromInt32(probe.HTTPGet.Port.IntVal)
			probe.InitialDelaySeconds, probe.PeriodSeconds = 0, 1
		}
		container.LivenessProbe.FailureThreshold = 20 // as long as the released one
	}
}

// Installation is what of OLM v1 is made, in that order.
type Installation []*unstructured.Unstructured

// Names name the objects, each Kind/namespace/name.
func (i Installation) Names() []string {
	names := make([]string, len(i))
	for n, o := range i {
		names[n] = describe(o)
	}
	return names
}

// Install applies OLM v1 on the cluster of h, and waits until both programs are ready.
func Install(ctx context.Context, c *Client, h Host) error {
	_, err := install(ctx, c, h)
	return err
}

// install is Install. It returns what it made also when it fails.
func install(ctx context.Context, c *Client, h Host) (made Installation, err error) {
	definitions, others, err := objects(h.Describe().Simulates)
	if err != nil {
		return nil, err
	}
	if err := c.createAll(ctx, definitions, &made); err != nil {
		return made, err
	}
	for _, o := range definitions {
		if err := lifecycle.WaitEstablished(ctx, c, o.GetName()); err != nil {
			return made, err
		}
	}
	if err := h.ProvideCertificates(ctx); err != nil {
		return made, fmt.Errorf("provide certificates: %w", err)
	}
	if err := c.createAll(ctx, others, &made); err != nil {
		return made, err
	}
	for _, name := range operators {
		if err := lifecycle.WaitAvailable(ctx, c, Namespace, name); err != nil {
			return made, hint.With(err, "look at the logs of the Deployment %s/%s", Namespace, name)
		}
	}
	return made, nil
}

// objects are the definitions that OLM v1 needs, its own and cert-manager's, and its other objects; simulated, where
// images are simulated.
func objects(simulated bool) (definitions, others Installation, err error) {
	if definitions, err = lifecycle.Decode(certManager); err != nil {
		return nil, nil, fmt.Errorf("read the definitions of cert-manager: %w", err)
	}
	all, err := parts(simulated)
	if err != nil {
		return nil, nil, err
	}
	for _, o := range all {
		if o.GetKind() == lifecycle.KindCRD {
			definitions = append(definitions, o)
		} else {
			others = append(others, o)
		}
	}
	return definitions, others, nil
}

// createAll creates those of objects that are not there, and adds them to made.
func (c *Client) createAll(ctx context.Context, objects Installation, made *Installation) error {
	for _, o := range objects {
		created, err := c.create(ctx, o)
		if created {
			*made = append(*made, o)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// create creates o, unless it is there, and says whether it did.
func (c *Client) create(ctx context.Context, o *unstructured.Unstructured) (created bool, err error) {
	own := o.GetLabels()[cluster.ManagedByLabel]
	c.label(o)
	if own != "" { // the name that OLM v1's own manifests give has a meaning there
		labels := o.GetLabels()
		labels[cluster.ManagedByLabel] = own
		o.SetLabels(labels)
	}
	// A kind is served some moments after its definition is established.
	err = lifecycle.Poll(ctx, 30*time.Second, func(ctx context.Context) (bool, error) {
		err := c.Create(ctx, o)
		switch {
		case err == nil, apierrors.IsAlreadyExists(err):
			created = err == nil
			return true, nil
		case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
			return false, nil
		}
		return false, fmt.Errorf("create %s %s: %w", o.GetKind(), client.ObjectKeyFromObject(o), err)
	})
	return created, err
}
