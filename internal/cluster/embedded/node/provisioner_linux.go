package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

const (
	storageClass    = "standard" // as kind calls its own
	provisionerName = "olmkit.dev/local"
	// volumesPath is where PersistentVolumes say that their directories are. On the node that is Config.Volumes.
	volumesPath = "/volumes"
)

// provisioner makes PersistentVolumes for claims: directories of this node.
type provisioner struct {
	dir  string // of the volumes' directories
	node string
}

// newProvisionController returns the controller that provisions and deletes volumes of the StorageClass. It must be
// called before anything else uses client-go's scheme, to which it adds types.
func newProvisionController(ctx context.Context, config Config) *controller.ProvisionController {
	return controller.NewProvisionController(ctx, config.Client, provisionerName, &provisioner{config.Volumes, config.Name},
		controller.LeaderElection(false),                                            // there is one
		controller.AddFinalizer(true),                                               // the directory goes also if the PersistentVolume is deleted before its claim
		controller.FailedProvisionThreshold(0), controller.FailedDeleteThreshold(0), // try for ever
		controller.RateLimiter(workqueue.NewTypedItemExponentialFailureRateLimiter[string](200*time.Millisecond, 10*time.Second)))
}

// createStorageClass makes the default StorageClass. Volumes are provisioned when a pod that uses them is scheduled, as
// those of most real clusters are.
func createStorageClass(ctx context.Context, client kubernetes.Interface) error {
	_, err := client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta:        metav1.ObjectMeta{Name: storageClass, Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		Provisioner:       provisionerName,
		ReclaimPolicy:     ptr.To(corev1.PersistentVolumeReclaimDelete),
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer),
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the StorageClass %s: %w", storageClass, err)
	}
	return nil
}

// SupportsBlock is true so that Provision is asked for volumes of this mode too, and can refuse them.
func (*provisioner) SupportsBlock(context.Context) bool { return true }

// Provision makes the directory of a volume. What it can't make it gives back to the scheduler, whose events then tell
// the pod's user; those on the claim say why.
func (p *provisioner) Provision(_ context.Context, options controller.ProvisionOptions) (*corev1.PersistentVolume, controller.ProvisioningState, error) {
	if err := unsupported(&options.PVC.Spec); err != nil {
		return nil, controller.ProvisioningReschedule, err
	}
	dir := filepath.Join(p.dir, options.PVName)
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, controller.ProvisioningFinished, err
	}
	if err := os.Chmod(dir, 0o777); err != nil { // like an emptyDir: any user of a pod may write to it
		return nil, controller.ProvisioningFinished, err
	}
	return p.volume(options), controller.ProvisioningFinished, nil
}

// unsupported returns why a directory can't be what a claim asks for.
func unsupported(claim *corev1.PersistentVolumeClaimSpec) error {
	switch {
	case ptr.Deref(claim.VolumeMode, corev1.PersistentVolumeFilesystem) == corev1.PersistentVolumeBlock:
		return errors.New("this cluster has no volumes of volumeMode Block: ask for Filesystem")
	case claim.DataSource != nil || claim.DataSourceRef != nil:
		return errors.New("this cluster makes empty volumes only: it knows no data source")
	case claim.Selector != nil:
		return errors.New("a volume that is provisioned has no labels for the claim's selector: remove the selector, or the claim's StorageClass")
	}
	return nil
}

// volume returns the PersistentVolume for a claim.
func (p *provisioner) volume(options controller.ProvisionOptions) *corev1.PersistentVolume {
	claim := options.PVC.Spec
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: options.PVName},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   claim.AccessModes,
			VolumeMode:                    claim.VolumeMode,
			PersistentVolumeReclaimPolicy: ptr.Deref(options.StorageClass.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete),
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path.Join(volumesPath, options.PVName)}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{p.node}}},
			}}}},
		},
	}
}

// Delete removes the directory of a volume with all that is in it.
func (p *provisioner) Delete(_ context.Context, volume *corev1.PersistentVolume) error {
	dir, err := volumeDir(p.dir, volume)
	if err != nil {
		return err
	}
	return removeAll(dir)
}

// volumeDir returns the directory of a volume, which is always an entry of dir: anybody who may make PersistentVolumes
// can write any path into one.
func volumeDir(dir string, volume *corev1.PersistentVolume) (string, error) {
	if ptr.Deref(volume.Spec.VolumeMode, corev1.PersistentVolumeFilesystem) == corev1.PersistentVolumeBlock {
		return "", fmt.Errorf("PersistentVolume %s has volumeMode Block: this node mounts file systems only", volume.Name)
	}
	if volume.Spec.Local != nil {
		if parent, name := path.Split(volume.Spec.Local.Path); parent == volumesPath+"/" && name != "" && name != "." && name != ".." {
			return filepath.Join(dir, name), nil
		}
	}
	return "", fmt.Errorf("PersistentVolume %s is not one that this node can mount: it knows local volumes in %s, as the StorageClass %s provisions them", volume.Name, volumesPath, storageClass)
}
