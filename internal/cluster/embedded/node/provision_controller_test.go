//go:build linux

package node

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"
)

// TestProvisionController gives a claim to the controller as the scheduler and the volume binder do.
func TestProvisionController(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	claim := testClaim()
	claim.Spec.VolumeName, claim.Spec.StorageClassName, claim.Status.Phase = "", ptr.To(storageClass), corev1.ClaimPending
	claim.Annotations = map[string]string{"volume.kubernetes.io/storage-provisioner": provisionerName, "volume.kubernetes.io/selected-node": "embedded"}
	config := Config{Name: "embedded", Client: fake.NewClientset(claim), Volumes: t.TempDir()}
	if err := createStorageClass(ctx, config.Client); err != nil {
		t.Fatal(err)
	}
	go newProvisionController(ctx, config).Run(ctx)
	for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		volume, err := config.Client.CoreV1().PersistentVolumes().Get(ctx, "pvc-claim", metav1.GetOptions{})
		if err != nil {
			continue
		}
		if volume.Spec.ClaimRef.UID != claim.UID || volume.Spec.StorageClassName != storageClass {
			t.Errorf("the volume is %+v", volume.Spec)
		}
		return
	}
	t.Error("no volume was made for the claim within a minute")
}
