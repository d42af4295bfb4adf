//go:build linux

package node

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"

	"github.com/olmkit/olmkit/internal/cluster/embedded/sandbox"
)

func localVolume(path string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv"},
		Spec:       corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}}},
	}
}

func TestVolumeDir(t *testing.T) {
	block := localVolume("/volumes/pvc-1")
	block.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
	host := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/volumes/pvc-1"}}}}
	for _, c := range []struct {
		name       string
		volume     *corev1.PersistentVolume
		want, says string
	}{
		{"provisioned", localVolume("/volumes/pvc-1"), "/state/pvc-1", ""},
		{"elsewhere", localVolume("/etc"), "", "not one that this node can mount"},
		{"all of them", localVolume("/volumes/"), "", "not one that this node can mount"},
		{"their parent", localVolume("/volumes/.."), "", "not one that this node can mount"},
		{"out by the parent", localVolume("/volumes/../etc"), "", "not one that this node can mount"},
		{"within another", localVolume("/volumes/pvc-1/link"), "", "not one that this node can mount"},
		{"of another kind", host, "", "not one that this node can mount"},
		{"a device", block, "", "volumeMode Block"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := volumeDir("/state", c.volume)
			if got != c.want || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func testClaim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "n", UID: "claim"},
		Spec: corev1.PersistentVolumeClaimSpec{
			VolumeName:  "pv",
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
}

func TestProvision(t *testing.T) {
	p := &provisioner{dir: t.TempDir(), node: "embedded"}
	options := controller.ProvisionOptions{StorageClass: &storagev1.StorageClass{}, PVName: "pvc-1", PVC: testClaim()}
	volume, state, err := p.Provision(context.Background(), options)
	if err != nil || state != controller.ProvisioningFinished {
		t.Fatal(state, err)
	}
	dir := filepath.Join(p.dir, "pvc-1")
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("the directory is %v, %v", info, err)
	}
	if got, err := volumeDir(p.dir, volume); err != nil || got != dir {
		t.Errorf("the volume is found in %q, %v", got, err)
	}
	if diff := cmp.Diff(options.PVC.Spec.Resources.Requests, volume.Spec.Capacity); diff != "" {
		t.Error(diff)
	}
	if _, _, err := p.Provision(context.Background(), options); err != nil {
		t.Errorf("provisioning it again, as after a crash: %v", err)
	}

	outside := filepath.Join(t.TempDir(), "kept")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := p.Delete(context.Background(), volume); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the deleted volume's directory: %v", err)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("what a link in the volume led to: %v", err)
	}
	volume.Spec.Local.Path = filepath.Dir(outside)
	if err := p.Delete(context.Background(), volume); err == nil {
		t.Error("a directory that is no volume was deleted")
	}
}

func TestProvisionRefuses(t *testing.T) {
	p := &provisioner{dir: t.TempDir(), node: "embedded"}
	for says, change := range map[string]func(*corev1.PersistentVolumeClaimSpec){
		"volumeMode Block": func(s *corev1.PersistentVolumeClaimSpec) { s.VolumeMode = ptr.To(corev1.PersistentVolumeBlock) },
		"data source": func(s *corev1.PersistentVolumeClaimSpec) {
			s.DataSourceRef = &corev1.TypedObjectReference{Kind: "VolumeSnapshot", Name: "before"}
		},
		"selector": func(s *corev1.PersistentVolumeClaimSpec) { s.Selector = &metav1.LabelSelector{} },
	} {
		claim := testClaim()
		change(&claim.Spec)
		_, state, err := p.Provision(context.Background(), controller.ProvisionOptions{PVName: "pvc-1", PVC: claim})
		if err == nil || !strings.Contains(err.Error(), says) || state != controller.ProvisioningReschedule {
			t.Errorf("%s: got %s, %v", says, state, err)
		}
	}
	if entries, err := os.ReadDir(p.dir); err != nil || len(entries) > 0 {
		t.Errorf("refused volumes have directories: %v, %v", entries, err)
	}
}

func TestClaimedDir(t *testing.T) {
	source := corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}
	ephemeral := corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}
	owned := []metav1.OwnerReference{{UID: "u", Controller: ptr.To(true)}}
	for _, c := range []struct {
		name   string
		source corev1.Volume
		change func(*corev1.PersistentVolumeClaim, *corev1.PersistentVolume)
		says   string // "" if it is mounted
	}{
		{"bound", source, func(*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {}, ""},
		{"no claim", source, func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) { c.Name = "other" }, `"data" not found`},
		{"pending", source, func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			c.Status.Phase = corev1.ClaimPending
		}, "is not bound"},
		{"lost", source, func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) { c.Spec.VolumeName = "gone" }, `"gone" not found`},
		{"deleted", source, func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			c.DeletionTimestamp, c.Finalizers = ptr.To(metav1.Now()), []string{"kubernetes.io/pvc-protection"}
		}, "is being deleted"},
		{"another's volume", source, func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID = "other" }, "is bound to another claim"},
		{"ephemeral", ephemeral, func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			c.Name, c.OwnerReferences = "p-v", owned
		}, ""},
		{"ephemeral of another pod", ephemeral, func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) { c.Name = "p-v" }, "was not made for this pod"},
	} {
		t.Run(c.name, func(t *testing.T) {
			claim, volume := testClaim(), localVolume("/volumes/pvc-1")
			volume.Spec.ClaimRef = &corev1.ObjectReference{UID: claim.UID}
			c.change(claim, volume)
			p := testPod(t)
			p.node.config.Client, p.node.config.Volumes = fake.NewClientset(claim, volume), "/state"
			got, err := p.claimedDir(context.Background(), &c.source)
			if c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) || c.says == "" && got != "/state/pvc-1" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestMounts(t *testing.T) {
	p := testPod(t)
	p.current().Spec.Volumes = []corev1.Volume{
		{Name: "kept", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data", ReadOnly: true}}},
		{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "a", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}},
		{Name: "b", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}},
		{Name: "c", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{}}},
		{Name: "d", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}},
	}
	p.volumes = map[string]string{"kept": "/state/pvc-1", "scratch": "/pod/scratch", "a": "/pod/a", "b": "/pod/b", "c": "/pod/c", "d": "/pod/d"}
	got := p.mounts(&corev1.Container{VolumeMounts: []corev1.VolumeMount{
		{Name: "scratch", MountPath: "/tmp", SubPathExpr: "of-$(POD)"},
		{Name: "kept", MountPath: "/data", SubPath: "db"},
		{Name: "a", MountPath: "/x/a"},
		{Name: "b", MountPath: "/x/b"},
		{Name: "c", MountPath: "/x/c"},
		{Name: "d", MountPath: "/x/d"},
	}}, func(string) (string, bool) { return "p", true })
	want := []sandbox.Mount{
		{Source: "/state/pvc-1", SubPath: "db", Target: "/data", ReadOnly: true},
		{Source: "/pod/scratch", SubPath: "of-p", Target: "/tmp"},
		{Source: "/pod/a", Target: "/x/a", ReadOnly: true}, // this node changes it
		{Source: "/pod/b", Target: "/x/b", ReadOnly: true},
		{Source: "/pod/c", Target: "/x/c", ReadOnly: true},
		{Source: "/pod/d", Target: "/x/d", ReadOnly: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDevicesAreRefused(t *testing.T) {
	p := testPod(t)
	p.current().Spec.Containers = []corev1.Container{{Name: "db", VolumeDevices: []corev1.VolumeDevice{{Name: "disk", DevicePath: "/dev/xvda"}}}}
	if err := p.mountVolumes(context.Background()); err == nil || !strings.Contains(err.Error(), "container db has volumeDevices") {
		t.Errorf("got %v", err)
	}
}
