package controller

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	redisv1beta1 "github.com/olmkit/olmkit/examples/redis-operator/api/v1beta1"
	"github.com/olmkit/olmkit/examples/redis-operator/internal/backup"
	"github.com/olmkit/olmkit/examples/redis-operator/internal/redis"
	"github.com/olmkit/olmkit/examples/redis-operator/internal/resources"
)

var key = client.ObjectKey{Namespace: "shop", Name: "cart"}

// fixture is a reconciler on a cluster in memory, which counts the writes.
type fixture struct {
	*RedisClusterReconciler
	writes int
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, redisv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	f := &fixture{}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&redisv1beta1.RedisCluster{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				f.writes++
				return c.Create(ctx, o, opts...)
			},
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				f.writes++
				return c.Update(ctx, o, opts...)
			},
			SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
				f.writes++
				return c.SubResource(sub).Update(ctx, o, opts...)
			},
		}).Build()
	f.RedisClusterReconciler = &RedisClusterReconciler{Client: c, Scheme: scheme, Recorder: events.NewFakeRecorder(20), Image: "redis:test"}
	return f
}

func (f *fixture) reconcile(t *testing.T) {
	t.Helper()
	if _, err := f.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) get(t *testing.T, o client.Object) {
	t.Helper()
	if err := f.Get(t.Context(), key, o); err != nil {
		t.Fatal(err)
	}
}

func cart() *redisv1beta1.RedisCluster {
	return &redisv1beta1.RedisCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "0123456789", Generation: 3},
		Spec: redisv1beta1.RedisClusterSpec{
			Replicas: 1, Config: map[string]string{"maxmemory": "1mb"},
			Storage: redisv1beta1.StorageSpec{Size: resource.MustParse("1Gi")},
		},
	}
}

func TestReconcile(t *testing.T) {
	f := newFixture(t, cart())
	f.reconcile(t)

	var rc redisv1beta1.RedisCluster
	f.get(t, &rc)
	if !controllerutil.ContainsFinalizer(&rc, finalizer) {
		t.Error("it has no finalizer")
	}
	if c := meta.FindStatusCondition(rc.Status.Conditions, conditionAvailable); c == nil || c.Status != metav1.ConditionFalse || rc.Status.ObservedGeneration != 3 {
		t.Errorf("the status is %+v", rc.Status)
	}
	var configMap corev1.ConfigMap
	var statefulSet appsv1.StatefulSet
	for _, o := range []client.Object{&configMap, &corev1.Service{}, &policyv1.PodDisruptionBudget{}, &statefulSet} {
		f.get(t, o)
		if !metav1.IsControlledBy(o, &rc) {
			t.Errorf("%T is not owned", o)
		}
	}
	if conf := configMap.Data["redis.conf"]; !strings.Contains(conf, "maxmemory 1mb\n") {
		t.Errorf("redis.conf is\n%s", conf)
	}
	if image := statefulSet.Spec.Template.Spec.Containers[0].Image; image != "redis:test" {
		t.Errorf("the image is %s", image)
	}

	f.writes = 0
	f.reconcile(t)
	if f.writes != 0 {
		t.Errorf("%d writes, and there was nothing to do", f.writes)
	}
}

func TestStatusFollowsTheServers(t *testing.T) {
	f := newFixture(t, cart())
	f.reconcile(t)
	var statefulSet appsv1.StatefulSet
	f.get(t, &statefulSet)
	statefulSet.Status.ReadyReplicas = 1
	if err := f.Status().Update(t.Context(), &statefulSet); err != nil {
		t.Fatal(err)
	}
	f.reconcile(t)
	var rc redisv1beta1.RedisCluster
	f.get(t, &rc)
	if rc.Status.ReadyReplicas != 1 || !meta.IsStatusConditionTrue(rc.Status.Conditions, conditionAvailable) {
		t.Errorf("the status is %+v", rc.Status)
	}
}

func TestDeletionWithoutServers(t *testing.T) {
	rc := cart()
	controllerutil.AddFinalizer(rc, finalizer)
	f := newFixture(t, rc)
	f.delete(t)
	if secret := f.backup(t); secret != nil {
		t.Errorf("there is a backup: %v", secret.Name)
	}
}

func TestBackupAndRestore(t *testing.T) {
	pod := server(t, map[string]string{"a": "1"})
	rc := cart()
	controllerutil.AddFinalizer(rc, finalizer)
	f := newFixture(t, rc, pod)
	f.delete(t)
	secret := f.backup(t)
	if secret == nil {
		t.Fatal("there is no backup")
	}
	var keys []redis.Key
	if err := json.Unmarshal(secret.Data["0"], &keys); err != nil || len(keys) != 1 || string(keys[0].Name) != "a" {
		t.Errorf("the backup holds %s", secret.Data["0"])
	}

	written := map[string]string{}
	pod = server(t, written)
	restored := cart()
	restored.Spec.RestoreFrom = &redisv1beta1.BackupReference{SecretName: secret.Name}
	statefulSet := resources.StatefulSet(restored, "redis:test")
	statefulSet.Status.ReadyReplicas = 1
	secret.ResourceVersion = ""
	f = newFixture(t, restored, pod, statefulSet, secret)
	f.reconcile(t)
	f.get(t, restored)
	if written["a"] != "1" || restored.Status.RestoredFrom != secret.Name {
		t.Errorf("the server has %v, the status is %+v", written, restored.Status)
	}
}

// delete deletes the RedisCluster, which has to go when it is reconciled.
func (f *fixture) delete(t *testing.T) {
	t.Helper()
	if err := f.Delete(t.Context(), cart()); err != nil {
		t.Fatal(err)
	}
	f.reconcile(t)
	if err := f.Get(t.Context(), key, &redisv1beta1.RedisCluster{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
}

func (f *fixture) backup(t *testing.T) *corev1.Secret {
	t.Helper()
	var secrets corev1.SecretList
	if err := f.List(t.Context(), &secrets); err != nil {
		t.Fatal(err)
	}
	if len(secrets.Items) == 0 {
		return nil
	}
	if name := backup.SecretName(key.Name, "0123456789"); secrets.Items[0].Name != name {
		t.Errorf("the backup is %s, not %s", secrets.Items[0].Name, name)
	}
	return &secrets.Items[0]
}

// server is a ready pod with a Redis server that holds keys, as far as backups need it. It listens on an address of this
// machine's loopback network that is its own.
func server(t *testing.T, keys map[string]string) *corev1.Pod {
	t.Helper()
	var listener net.Listener
	for i := 2; listener == nil && i < 250; i++ {
		listener, _ = net.Listen("tcp", fmt.Sprintf("127.0.77.%d:%d", i, resources.Port))
	}
	if listener == nil {
		t.Skip("this machine has one loopback address only")
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			answer(conn, keys)
		}
	}()
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name + "-0", Labels: resources.Labels(key.Name)},
		Status: corev1.PodStatus{
			PodIP:      listener.Addr().(*net.TCPAddr).IP.String(),
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

// answer answers the commands of one connection.
func answer(conn net.Conn, keys map[string]string) {
	defer conn.Close()
	bulk := func(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }
	for r := bufio.NewReader(conn); ; {
		var n int
		if _, err := fmt.Fscanf(r, "*%d\r\n", &n); err != nil {
			return
		}
		command := make([]string, n)
		for i := range command {
			var size int
			if _, err := fmt.Fscanf(r, "$%d\r\n", &size); err != nil {
				return
			}
			data := make([]byte, size+2)
			if _, err := io.ReadFull(r, data); err != nil {
				return
			}
			command[i] = string(data[:size])
		}
		switch command[0] {
		case "SCAN":
			var names string
			for name := range keys {
				names += bulk(name)
			}
			fmt.Fprintf(conn, "*2\r\n%s*%d\r\n%s", bulk("0"), len(keys), names)
		case "DUMP":
			io.WriteString(conn, bulk(keys[command[1]]))
		case "PTTL":
			io.WriteString(conn, ":-1\r\n")
		case "RESTORE":
			keys[command[1]] = command[3]
			io.WriteString(conn, "+OK\r\n")
		}
	}
}
