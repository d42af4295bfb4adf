//go:build linux

package operator_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	becomeImage = "example.com/leader-for-life:v1"
	becomeLock  = "my-operator-lock"
)

// TestBecome deploys examples/leader-for-life, which calls leader.Become: without permissions, and with them in two pods, of
// which one leads, through a crash, and the other after the first pod's eviction.
func TestBecome(t *testing.T) {
	share(t)
	binary := filepath.Join(t.TempDir(), "leader-for-life")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../../examples/leader-for-life").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	must(t, world.LoadImage(t.Context(), becomeImage, binary))
	forbidden := namespace(t)
	deployBecome(t, forbidden)
	ns := namespace(t)
	permit(t, ns)
	deployBecome(t, ns)
	eventually(t, "the program says which permission is missing", func() error {
		for _, pod := range becomePods(t, forbidden) {
			if log := podLog(t, pod); strings.Contains(log, `becoming the leader by configmap `+forbidden+`/`+becomeLock) && strings.Contains(log, "forbidden") {
				return nil
			} else if log != "" {
				return fmt.Errorf("it says\n%s", log)
			}
		}
		return errors.New("it says nothing")
	})

	leader := becomeLeader(t, ns, "")
	after := func(event string, since time.Time) {
		t.Logf("life: after %s, %.1f s until the next leader (leader.Become)", event, time.Since(since).Seconds())
	}
	since := time.Now()
	must(t, syscall.Kill(processOf(t, leader.UID), syscall.SIGKILL))
	eventually(t, "the same pod leads after a crash", func() error {
		var pod corev1.Pod
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(leader), &pod); err != nil {
			return err
		}
		if s := pod.Status.ContainerStatuses; len(s) != 1 || s[0].RestartCount != 1 || strings.Count(podLog(t, pod), "leading\n") != 2 {
			return fmt.Errorf("its containers are %+v, and it says\n%s", s, podLog(t, pod))
		}
		return nil
	})
	after("a crash", since)
	if again := becomeLeader(t, ns, ""); again.UID != leader.UID {
		t.Errorf("after a crash %s leads instead of %s", again.Name, leader.Name)
	}
	since = time.Now()
	must(t, admin.SubResource("eviction").Create(t.Context(), leader, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: leader.Name}}))
	becomeLeader(t, ns, leader.UID)
	after("the pod's eviction", since)
}

// deployBecome runs the program in two pods, which may do nothing.
func deployBecome(t *testing.T, ns string) {
	t.Helper()
	labels := map[string]string{"app": "leader-for-life"}
	uid := corev1.EnvVar{Name: "POD_UID", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.uid"}}} // for processOf
	must(t, admin.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "leader-for-life"}}))
	must(t, admin.Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "leader-for-life"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				ServiceAccountName: "leader-for-life", TerminationGracePeriodSeconds: ptr.To[int64](5),
				Containers: []corev1.Container{{Name: "manager", Image: becomeImage, Env: []corev1.EnvVar{uid}}},
			}},
		},
	}))
}

// permit gives the program the permissions that the documentation of pkg/leader names.
func permit(t *testing.T, ns string) {
	t.Helper()
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: "leader-for-life"}}
	role := metav1.ObjectMeta{Namespace: ns, Name: "leader-for-life"}
	cluster := metav1.ObjectMeta{Name: ns}
	objects := []client.Object{
		&rbacv1.Role{ObjectMeta: role, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "update", "delete"}},
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}},
		}},
		&rbacv1.RoleBinding{ObjectMeta: role, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}, Subjects: subjects},
		&rbacv1.ClusterRole{ObjectMeta: cluster, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: cluster, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: cluster.Name}, Subjects: subjects},
	}
	for _, object := range objects {
		must(t, admin.Create(t.Context(), object))
	}
	t.Cleanup(func() {
		for _, object := range objects[2:] {
			if err := admin.Delete(context.Background(), object); err != nil {
				t.Error(err)
			}
		}
	})
}

func becomePods(t *testing.T, ns string) []corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	must(t, admin.List(t.Context(), &pods, client.InNamespace(ns)))
	return pods.Items
}

func podLog(t *testing.T, pod corev1.Pod) string {
	t.Helper()
	var log bytes.Buffer
	_ = world.Logs(t.Context(), &log, pod.Namespace+"/"+pod.Name+"/manager") // none yet is an empty one
	return log.String()
}

// becomeLeader waits until another pod than former has the lock, says so, and is the only one that does.
func becomeLeader(t *testing.T, ns string, former types.UID) *corev1.Pod {
	t.Helper()
	var leader *corev1.Pod
	eventually(t, "a pod leads", func() error {
		var lock corev1.ConfigMap
		if err := admin.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: becomeLock}, &lock); err != nil {
			return err
		}
		leading := slices.DeleteFunc(becomePods(t, ns), func(pod corev1.Pod) bool {
			return pod.UID == former || !strings.Contains(podLog(t, pod), "leading\n")
		})
		if owners := lock.OwnerReferences; lock.Data["state"] != "held" || len(owners) != 1 || len(leading) != 1 || owners[0].UID != leading[0].UID {
			return fmt.Errorf("the lock is of %v, %v, and %d pods lead", lock.OwnerReferences, lock.Data, len(leading))
		}
		leader = &leading[0]
		return nil
	})
	return leader
}
