package crdconversion

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// OLM names the webhooks' Service and the Secret with their certificate after the Deployment. The certificate is of the
// Service's host, <Service>.<namespace>.svc.
const (
	Service = "memcached-operator-controller-manager-service"
	Secret  = Service + "-cert"
	// AuthorityKey is the Secret's key with the authority that signed the certificate (operator-lifecycle-manager v0.46.0,
	// pkg/controller/install/certresources.go:38).
	AuthorityKey = "olmCAKey"
)

const fieldOwner = "memcached-operator-keeper"

// Deletion is never asked for. It is the right that OwnerReferencesPermissionEnforcement, an admission plugin that
// OpenShift turns on, wants of whoever changes an object's owners.
//
// +kubebuilder:rbac:groups="",resources=secrets,resourceNames=memcached-operator-controller-manager-service-cert,verbs=patch;delete,namespace=system

// KeepCertificate makes the CSV that this manager belongs to an owner of the Secret with its certificate.
//
// OLM v0.46.0 uses a valid certificate again when it upgrades, but leaves the Secret to the replaced CSV alone
// (pkg/controller/install/certresources.go:382-386). With that CSV the Secret is deleted, and OLM makes a new authority
// and rolls the Deployment out once more, while the manager still serves the certificate of the old one. The CSV is
// deleted when this manager's pods are ready, so this must be done before. The Service is OLM's newest word on whose
// they are (certresources.go:325-332).
func KeepCertificate(ctx context.Context, api client.Reader, c client.Client, namespace string) error {
	var s corev1.Service
	key := client.ObjectKey{Namespace: namespace, Name: Service}
	if err := api.Get(ctx, key, &s); err != nil {
		return fmt.Errorf("reading service %s, whose owner is to own its certificate: %w", key, err)
	}
	var owners []metav1.OwnerReference
	for _, owner := range s.OwnerReferences {
		if owner.Kind == "ClusterServiceVersion" {
			owner.Controller, owner.BlockOwnerDeletion = ptr.To(false), ptr.To(false)
			owners = append(owners, owner)
		}
	}
	if len(owners) == 0 {
		return fmt.Errorf("service %s belongs to no CSV", key)
	}
	// Owners are merged by their UID. Server-side apply would create a Secret that is not there, which nobody but OLM can.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": owners}})
	if err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Secret}}
	if err := c.Patch(ctx, secret, client.RawPatch(types.StrategicMergePatchType, patch), client.FieldOwner(fieldOwner)); err != nil {
		return fmt.Errorf("becoming an owner of secret %s/%s: %w", namespace, Secret, err)
	}
	return nil
}
