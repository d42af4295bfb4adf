package node

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// claimName returns the name of the PersistentVolumeClaim that a volume of the pod is made from, "" for other volumes.
func (p *pod) claimName(v *corev1.Volume) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		return p.current().Name + "-" + v.Name
	}
	return ""
}

// claimedDir returns the directory of the PersistentVolume that the claim of v is bound to. It refuses what the kubelet
// refuses (k8s.io/kubernetes v1.36.3, pkg/kubelet/volumemanager/populator).
func (p *pod) claimedDir(ctx context.Context, v *corev1.Volume) (string, error) {
	core, name := p.node.config.Client.CoreV1(), p.claimName(v)
	claim, err := core.PersistentVolumeClaims(p.current().Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case err != nil:
		return "", err
	case v.Ephemeral != nil && !metav1.IsControlledBy(claim, p.current()):
		return "", fmt.Errorf("PersistentVolumeClaim %s was not made for this pod", name)
	case claim.DeletionTimestamp != nil:
		return "", fmt.Errorf("PersistentVolumeClaim %s is being deleted", name)
	case claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "":
		return "", fmt.Errorf("PersistentVolumeClaim %s is not bound", name)
	}
	volume, err := core.PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	if volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.UID != claim.UID {
		return "", fmt.Errorf("PersistentVolume %s is bound to another claim than PersistentVolumeClaim %s", volume.Name, name)
	}
	return volumeDir(p.node.config.Volumes, volume)
}

// refuseDevices refuses containers that want a block device.
func (p *pod) refuseDevices() (err error) {
	p.eachContainer(func(c *corev1.Container) {
		if len(c.VolumeDevices) > 0 {
			err = errors.New("container " + c.Name + " has volumeDevices: this node has no block devices")
		}
	})
	return err
}
