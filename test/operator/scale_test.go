//go:build linux

package operator_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
	"github.com/olmkit/olmkit/pkg/storagemigration"
	"github.com/olmkit/olmkit/test/support/wait"
)

// TestScale scales a Memcached of 0.6.0 by the scale subresource, as kubectl scale and a HorizontalPodAutoscaler do, and changes the ConfigMap
// that it names.
func TestScale(t *testing.T) {
	candidate := filepath.Join(root, "operator", "releases", "v0.6.0-rc.1", "config", "crd")
	objects := manifests(t, candidate)
	t.Cleanup(func() { remove(t, objects) })
	apply(t, objects...)
	eventually(t, "the CRD is established", established(t.Context()))
	ns := namespace(t)
	startProgram(t, filepath.Join(root, "bin", "memcached-operator", "v0.6.0-rc.1", "manager"), nil, "WATCH_NAMESPACE="+ns)
	args := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "args"}, Data: map[string]string{"args": "--slab-reassign"}}
	must(t, admin.Create(t.Context(), args))
	m := create(t, ns, "m", v1.MemcachedSpec{Replicas: 1, Cache: v1.Cache{ExtraArgsFrom: &v1.ConfigMapReference{Name: "args"}}})
	available(t, ns, m.Name)

	scale := &autoscalingv1.Scale{}
	must(t, admin.SubResource("scale").Get(t.Context(), m, scale))
	if scale.Spec.Replicas != 1 || scale.Status.Replicas != 1 || scale.Status.Selector != "app.kubernetes.io/instance=m,app.kubernetes.io/name=memcached" {
		t.Errorf("the scale is %+v", scale)
	}
	scale.Spec.Replicas = 2
	must(t, admin.SubResource("scale").Update(t.Context(), m, client.WithSubResourceBody(scale)))
	servers(t, m, 2)

	// size is not a field of v1: the API server prunes it.
	must(t, admin.Patch(t.Context(), m, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"size":5}}`))))
	// Fewer than the least are scaled up without any metrics.
	must(t, admin.Create(t.Context(), &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "m"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: v1.GroupVersion.String(), Kind: "Memcached", Name: m.Name},
			MinReplicas:    ptr.To[int32](3), MaxReplicas: 4,
		},
	}))
	servers(t, m, 3)

	args.Data["args"] = "--slab-reassign\n-v\n"
	must(t, admin.Update(t.Context(), args))
	wait.For(t, waitLimit, "the servers have the ConfigMap's arguments", func() error {
		var d appsv1.Deployment
		if err := admin.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "memcached-m"}, &d); err != nil {
			return err
		}
		if got := d.Spec.Template.Spec.Containers[0].Args; !slices.Equal(got[len(got)-2:], []string{"--slab-reassign", "-v"}) {
			return fmt.Errorf("arguments %v", got)
		}
		return nil
	})
	available(t, ns, m.Name)
}

// TestCRDMigrate migrates by the command what a CRD lists as stored in another version.
func TestCRDMigrate(t *testing.T) {
	install(t)
	ns := namespace(t)
	for i := range 3 {
		create(t, ns, fmt.Sprintf("m%d", i), v1.MemcachedSpec{Replicas: 1})
	}
	crd := &apiextensions.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crdName}}
	must(t, admin.Status().Patch(t.Context(), crd, client.RawPatch(types.MergePatchType, []byte(`{"status":{"storedVersions":["v1beta1","v1"]}}`))))
	migrate := func(want string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "olmkit"), append([]string{"crd", "migrate", crdName, "--kubeconfig", world.Kubeconfig()}, args...)...)
		out, err := cmd.Output()
		if err != nil || string(out) != crdName+": "+want+"\n" {
			t.Errorf("%v, said %s", err, out)
		}
	}
	migrate("all 3 objects can be stored as v1; status.storedVersions is v1beta1, v1", "--dry-run")
	migrate("3 objects are stored as v1; status.storedVersions was v1beta1, v1, and is v1")
	migrate("nothing to migrate: status.storedVersions is v1")
	must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(crd), crd))
	if !slices.Equal(crd.Status.StoredVersions, []string{"v1"}) || crd.Annotations[storagemigration.Annotation] != "" {
		t.Errorf("the CRD has %v, %v", crd.Status.StoredVersions, crd.Annotations)
	}
}

// servers waits until a Memcached asks for so many servers and has them.
func servers(t *testing.T, m *v1.Memcached, n int32) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d servers", n), func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
			return err
		}
		if m.Spec.Replicas != n || m.Status.ReadyReplicas != n {
			return fmt.Errorf("%d are asked for, %d ready", m.Spec.Replicas, m.Status.ReadyReplicas)
		}
		return nil
	})
}
