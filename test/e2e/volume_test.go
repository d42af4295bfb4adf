//go:build linux

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/olmkit/olmkit/test/support/wait"
)

// database is a cluster on which box stands for a database, in the namespace default.
type database struct {
	client     *kubernetes.Clientset
	kubeconfig string
}

func claimSpec(mode corev1.PersistentVolumeAccessMode) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{mode},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
}

func boxWithVolume() corev1.PodSpec {
	return corev1.PodSpec{
		TerminationGracePeriodSeconds: ptr.To[int64](5),
		Containers: []corev1.Container{{
			Name: "box", Image: boxImage, Command: []string{"/box"},
			VolumeMounts:    []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
			ReadinessProbe:  &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}}},
			SecurityContext: &corev1.SecurityContext{RunAsNonRoot: ptr.To(true)},
		}},
	}
}

func (d database) createSet(t *testing.T) {
	t.Helper()
	labels := map[string]string{"app": "box"}
	_, err := d.client.AppsV1().StatefulSets("default").Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "box"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](2), ServiceName: "box", Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template:             corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: boxWithVolume()},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: claimSpec(corev1.ReadWriteOnce)}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func (d database) deleteSet(t *testing.T) {
	t.Helper()
	if err := d.client.AppsV1().StatefulSets("default").Delete(t.Context(), "box", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the StatefulSet is gone, and its pods before it", func() error {
		if _, err := d.client.AppsV1().StatefulSets("default").Get(t.Context(), "box", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}

// createPod creates a pod with box, and the volume data from the claim.
func (d database) createPod(t *testing.T, name, claim string, change func(*corev1.PodSpec)) {
	t.Helper()
	spec := boxWithVolume()
	spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
	change(&spec)
	if _, err := d.client.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func asItIs(*corev1.PodSpec) {}

func (d database) createClaim(t *testing.T, name string, spec corev1.PersistentVolumeClaimSpec) {
	t.Helper()
	if _, err := d.client.CoreV1().PersistentVolumeClaims("default").Create(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// waitPod waits until the pod is ready and fits, and returns it.
func (d database) waitPod(t *testing.T, name string, fits func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	eventually(t, "pod "+name+" is ready", func() (err error) {
		if pod, err = d.client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil && fits(pod) {
				return nil
			}
		}
		return fmt.Errorf("it is %s: %+v", pod.Status.Phase, pod.Status.ContainerStatuses)
	})
	return pod
}

// ask sends a request to box in the pod.
func (d database) ask(t *testing.T, pod, path string, parameters ...string) (string, error) {
	t.Helper()
	return ask(t, d.client, pod, path, parameters...)
}

// checkData looks for the file that each pod of the StatefulSet has written.
func (d database) checkData(t *testing.T, fits func(*corev1.Pod) bool) {
	t.Helper()
	for _, name := range []string{"box-0", "box-1"} {
		d.waitPod(t, name, fits)
		if got, err := d.ask(t, name, "file", "path", "/data/name"); err != nil || got != name {
			t.Errorf("the file of %s holds %q, %v", name, got, err)
		}
	}
}

// directories returns the directories of volumes, which are seen from inside of the cluster's mount namespace only.
func (d database) directories(t *testing.T) []string {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, process := range processes {
		words, _ := os.ReadFile(process + "/cmdline")
		state := filepath.Join(process, "root", filepath.Dir(d.kubeconfig), "state")
		if _, err := os.Stat(filepath.Join(state, "etcd")); err != nil || !strings.Contains(string(words), "olmkit-cluster-host") {
			continue
		}
		entries, err := os.ReadDir(filepath.Join(state, "volumes"))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	t.Fatal("the cluster's process is not found")
	return nil
}

func TestVolumes(t *testing.T) {
	t.Parallel()
	kubeconfig, config := up(t, "e2e-volumes")
	load(t, kubeconfig, boxImage, buildBox(t))
	testVolumes(t, database{client(t, config), kubeconfig})
}

// TestVolumesOfAnOrdinaryUser has one user ID for all that runs in pods.
func TestVolumesOfAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return // TestVolumes is this one
	}
	home, command := ordinaryUser(t, buildBox(t))
	out, err := command("cluster", "up", "--name", "e2e-volumes").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if out, err := command("cluster", "down", "--name", "e2e-volumes").CombinedOutput(); err != nil {
			t.Errorf("end the cluster: %v: %s", err, out)
		}
	})
	kubeconfig := strings.TrimPrefix(strings.TrimSpace(string(out)), "export KUBECONFIG=")
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	load(t, kubeconfig, boxImage, home+"/bin/box")
	testVolumes(t, database{client(t, config), kubeconfig})
}

func testVolumes(t *testing.T, d database) {
	core := d.client.CoreV1()
	d.createSet(t)
	for _, name := range []string{"box-0", "box-1"} {
		d.waitPod(t, name, whichever)
		if _, err := d.ask(t, name, "write", "path", "/data/name", "text", name); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("data outlive a container", func(t *testing.T) {
		_, _ = d.ask(t, "box-0", "exit")
		d.checkData(t, func(p *corev1.Pod) bool { return p.Name != "box-0" || p.Status.ContainerStatuses[0].RestartCount == 1 })
	})
	t.Run("data outlive a pod", func(t *testing.T) {
		old := d.waitPod(t, "box-0", whichever)
		if err := core.Pods("default").Delete(t.Context(), "box-0", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		d.checkData(t, func(p *corev1.Pod) bool { return p.UID != old.UID })
	})
	t.Run("data outlive a rolling update", func(t *testing.T) {
		if _, err := d.client.AppsV1().StatefulSets("default").Patch(t.Context(), "box", types.StrategicMergePatchType,
			[]byte(`{"spec":{"template":{"metadata":{"annotations":{"colour":"blue"}}}}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		d.checkData(t, func(p *corev1.Pod) bool { return p.Annotations["colour"] == "blue" })
	})
	t.Run("two pods of a node share ReadWriteOnce", func(t *testing.T) {
		d.createPod(t, "reader", "data-box-1", func(s *corev1.PodSpec) { s.Volumes[0].PersistentVolumeClaim.ReadOnly = true })
		d.waitPod(t, "reader", whichever)
		if got, err := d.ask(t, "reader", "file", "path", "/data/name"); err != nil || got != "box-1" {
			t.Errorf("it reads %q, %v", got, err)
		}
		if _, err := d.ask(t, "reader", "write", "path", "/data/name"); err == nil {
			t.Error("a claim that is mounted read-only can be written to")
		}
		if err := core.Pods("default").Delete(t.Context(), "reader", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("data outlive the StatefulSet", func(t *testing.T) {
		d.deleteSet(t)
		d.createSet(t)
		d.checkData(t, whichever)
		d.deleteSet(t)
	})
	t.Run("the volume goes with its claim", func(t *testing.T) {
		volumes, err := core.PersistentVolumes().List(t.Context(), metav1.ListOptions{})
		if made := d.directories(t); err != nil || len(volumes.Items) != 2 || len(made) != 2 {
			t.Errorf("two claims have %d volumes in %q, %v", len(volumes.Items), made, err)
		}
		for _, name := range []string{"data-box-0", "data-box-1"} {
			if err := core.PersistentVolumeClaims("default").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "the volumes are gone", func() error {
			volumes, err := core.PersistentVolumes().List(t.Context(), metav1.ListOptions{})
			if left := d.directories(t); err == nil && len(volumes.Items)+len(left) > 0 {
				err = fmt.Errorf("%d volumes, %q", len(volumes.Items), left)
			}
			return err
		})
	})
	t.Run("one pod alone has ReadWriteOncePod", func(t *testing.T) {
		d.createClaim(t, "alone", claimSpec(corev1.ReadWriteOncePod))
		d.createPod(t, "first", "alone", asItIs)
		d.waitPod(t, "first", whichever)
		d.createPod(t, "second", "alone", asItIs)
		wait.ForEvent(t, waitLimit, d.client, "second", "FailedScheduling", "ReadWriteOncePod")
	})
	t.Run("block devices are refused", func(t *testing.T) {
		spec := claimSpec(corev1.ReadWriteOnce)
		spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
		d.createClaim(t, "device", spec)
		d.createPod(t, "device", "device", func(s *corev1.PodSpec) {
			s.Containers[0].VolumeMounts, s.Containers[0].VolumeDevices = nil, []corev1.VolumeDevice{{Name: "data", DevicePath: "/dev/data"}}
		})
		wait.ForEvent(t, waitLimit, d.client, "device", "ProvisioningFailed", "no volumes of volumeMode Block")
		wait.ForEvent(t, waitLimit, d.client, "device", "FailedScheduling", "PVC")
	})
	t.Run("an ephemeral volume goes with its pod", func(t *testing.T) {
		d.createPod(t, "passing", "", func(s *corev1.PodSpec) {
			s.Volumes[0].VolumeSource = corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
				VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claimSpec(corev1.ReadWriteOnce)}}}
		})
		d.waitPod(t, "passing", whichever)
		if err := core.Pods("default").Delete(t.Context(), "passing", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "its claim is gone", func() error {
			if _, err := core.PersistentVolumeClaims("default").Get(t.Context(), "passing-data", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is there: %w", err)
			}
			return nil
		})
	})
	t.Run("links lead out of no volume", func(t *testing.T) {
		d.createClaim(t, "hostile", claimSpec(corev1.ReadWriteOnce))
		d.createPod(t, "hostile", "hostile", func(s *corev1.PodSpec) {
			link := *s.Containers[0].DeepCopy()
			link.Name, link.Args, link.ReadinessProbe = "link", []string{"link", "/", "/data/out"}, nil
			s.InitContainers = []corev1.Container{link}
			s.Containers[0].VolumeMounts[0].SubPath = "out"
		})
		wait.ForEvent(t, waitLimit, d.client, "hostile", "Failed", "path escapes from parent")
	})
}
