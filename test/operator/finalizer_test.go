//go:build linux

package operator_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
)

// blocker is a finalizer that nobody takes off a pod but the test: the pod is one of a node that is lost.
const blocker = "example.com/lost-node"

// podsOf is the pods of a Memcached.
func podsOf(t *testing.T, m *v1.Memcached) []corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	must(t, admin.List(t.Context(), &pods, client.InNamespace(m.Namespace)))
	return slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.Annotations[ownerAnnotation] != m.Name })
}

// uids is the identities of a Memcached's operand and its pods.
func uids(t *testing.T, m *v1.Memcached) map[types.UID]string {
	t.Helper()
	out := map[types.UID]string{}
	for kind, part := range operandOf(t, m) {
		out[part.GetUID()] = kind
	}
	for _, pod := range podsOf(t, m) {
		out[pod.UID] = "Pod " + pod.Name
	}
	return out
}

// absent waits until there is no such object.
func absent(t *testing.T, object client.Object) {
	t.Helper()
	eventually(t, object.GetName()+" is gone", func() error {
		switch err := admin.Get(t.Context(), client.ObjectKeyFromObject(object), object); {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("it has the finalizers %v", object.GetFinalizers())
	})
}

func TestDeletion(t *testing.T) {
	share(t)

	t.Run("the Service goes first", func(t *testing.T) {
		t.Parallel()
		ns := namespace(t)
		start(t, nil, "WATCH_NAMESPACE="+ns)
		m := create(t, ns, "m", v1.MemcachedSpec{})
		m = available(t, ns, m.Name)
		watches := map[string]watch.Interface{}
		for name, list := range map[string]client.ObjectList{"service": &corev1.ServiceList{}, "endpoints": &discoveryv1.EndpointSliceList{}, "pod": &corev1.PodList{}} {
			w, err := admin.Watch(t.Context(), list, client.InNamespace(ns))
			must(t, err)
			defer w.Stop()
			watches[name] = w
		}
		must(t, admin.Delete(t.Context(), m))
		gone(t, ns)
		pod := until(t, watches["pod"], func(o runtime.Object) bool { return o.(*corev1.Pod).DeletionTimestamp != nil })
		for _, name := range []string{"service", "endpoints"} {
			for e := range watches[name].ResultChan() {
				if e.Type != watch.Deleted {
					continue
				}
				if went := revision(t, e.Object.(client.Object)); went > pod {
					t.Errorf("the %s went in revision %d, the first pod in %d", name, went, pod)
				}
				break
			}
		}
		dissolved(t, m)
	})

	t.Run("in the foreground and in the background", func(t *testing.T) {
		t.Parallel()
		ns := namespace(t)
		start(t, nil, "WATCH_NAMESPACE="+ns)
		for i, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationForeground, metav1.DeletePropagationBackground} {
			m := create(t, ns, fmt.Sprintf("m.%d", i), v1.MemcachedSpec{Replicas: 1})
			m = available(t, ns, m.Name)
			must(t, admin.Delete(t.Context(), m, client.PropagationPolicy(policy)))
			gone(t, ns)
		}
	})

	t.Run("the status says what it waits for", func(t *testing.T) {
		t.Parallel()
		ns := namespace(t)
		start(t, nil, "WATCH_NAMESPACE="+ns)
		m := create(t, ns, "m", v1.MemcachedSpec{Replicas: 1})
		m = available(t, ns, m.Name)
		pod := podsOf(t, m)[0]
		edit(t, &pod, func(p *corev1.Pod) { p.Finalizers = []string{blocker} })
		must(t, admin.Delete(t.Context(), m))
		condition(t, m, v1.ConditionProgressing, "True/Dissolving")
		condition(t, m, v1.ConditionDegraded, "False/AsExpected")
		edit(t, &pod, func(p *corev1.Pod) { p.Finalizers = nil })
		gone(t, ns)
	})

	// Without a server that runs, only its ReplicaSet could still bring one about.
	t.Run("no server runs", func(t *testing.T) {
		t.Parallel()
		ns := namespace(t)
		start(t, nil, "WATCH_NAMESPACE="+ns)
		must(t, admin.Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}}))
		m := create(t, ns, "m", v1.MemcachedSpec{Replicas: 1})
		condition(t, m, v1.ConditionDegraded, "True/DeploymentFailing")
		var sets appsv1.ReplicaSetList
		must(t, admin.List(t.Context(), &sets, client.InNamespace(ns)))
		set := &sets.Items[0]
		edit(t, set, func(s *appsv1.ReplicaSet) { s.Finalizers = append(s.Finalizers, blocker) })
		must(t, admin.Delete(t.Context(), m))
		eventually(t, "the ReplicaSet is told to go", func() error {
			if err := admin.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
				return err
			}
			if set.DeletionTimestamp == nil {
				return errors.New("not yet")
			}
			return nil
		})
		must(t, admin.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "memcached-m"}, &appsv1.Deployment{}))
		must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(m), m))
		edit(t, set, func(s *appsv1.ReplicaSet) {
			s.Finalizers = slices.DeleteFunc(s.Finalizers, func(f string) bool { return f == blocker })
		})
		gone(t, ns)
		dissolved(t, m)
	})

	t.Run("made again at once", func(t *testing.T) {
		t.Parallel()
		ns := namespace(t)
		start(t, nil, "WATCH_NAMESPACE="+ns)
		m := create(t, ns, "m", v1.MemcachedSpec{Replicas: 2})
		m = available(t, ns, m.Name)
		before := uids(t, m)
		must(t, admin.Delete(t.Context(), m))
		again := &v1.Memcached{}
		eventually(t, "the name is free", func() error {
			again = &v1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: m.Name}, Spec: v1.MemcachedSpec{Replicas: 2}}
			return admin.Create(t.Context(), again)
		})
		again = available(t, ns, again.Name)
		for uid := range uids(t, again) {
			if what := before[uid]; what != "" {
				t.Errorf("the old one's %s is there", what)
			}
		}
		if n := len(podsOf(t, again)); n != 2 || len(again.Status.Nodes) != 2 {
			t.Errorf("%d pods, nodes %v", n, again.Status.Nodes)
		}
		must(t, admin.Delete(t.Context(), again))
		gone(t, ns)
	})

	t.Run("the servers are to stay", func(t *testing.T) {
		t.Parallel()
		ns := namespace(t)
		start(t, nil, "WATCH_NAMESPACE="+ns)
		m := create(t, ns, "m", v1.MemcachedSpec{})
		m = available(t, ns, m.Name)
		stays(t, m, func() {})
	})

	t.Run("the servers are to stay, and the operator is down", func(t *testing.T) {
		t.Parallel()
		ns := namespace(t)
		manager := start(t, nil, "WATCH_NAMESPACE="+ns)
		m := create(t, ns, "m", v1.MemcachedSpec{})
		m = available(t, ns, m.Name)
		manager.kill()
		stays(t, m, func() {
			// The garbage collector has done its part, and the deletion looks like any other.
			eventually(t, "the servers have no owner", func() error {
				if err := admin.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
					return err
				}
				if !slices.Equal(m.Finalizers, []string{finalizer}) {
					return fmt.Errorf("the finalizers are %v", m.Finalizers)
				}
				return nil
			})
			start(t, nil, "WATCH_NAMESPACE="+ns)
		})
	})

	t.Run("the operator is down", func(t *testing.T) {
		t.Parallel()
		ns := namespace(t)
		manager := start(t, nil, "WATCH_NAMESPACE="+ns)
		m := create(t, ns, "m", v1.MemcachedSpec{})
		m = available(t, ns, m.Name)
		manager.stop(t)
		must(t, admin.Delete(t.Context(), m))
		must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(m), m))
		if len(podsOf(t, m)) != 2 {
			t.Error("there are not two pods any more")
		}
		start(t, nil, "WATCH_NAMESPACE="+ns)
		gone(t, ns)
		dissolved(t, m)
	})

	t.Run("with its namespace", func(t *testing.T) {
		t.Parallel()
		ns := namespace(t)
		start(t, nil, "WATCH_NAMESPACE="+ns)
		for _, name := range []string{"a", "b.c"} {
			create(t, ns, name, v1.MemcachedSpec{})
			available(t, ns, name)
		}
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}
		must(t, admin.Delete(t.Context(), n))
		absent(t, n)
	})
}

// dissolved waits until the operator has said, once, that all is gone.
func dissolved(t *testing.T, m *v1.Memcached) {
	t.Helper()
	ended(t, m, 1, 0)
}

// ended waits until there have been so many events that m is dissolved, and that it is not. The operator's recorder sends
// an event when it can: m may be gone by then.
func ended(t *testing.T, m *v1.Memcached, dissolved, not int) {
	t.Helper()
	eventually(t, "the operator says how "+m.Namespace+"/"+m.Name+" ended", func() error {
		if got := happened(t, m); got["Normal Dissolved"] != dissolved || got["Warning NotDissolved"] != not {
			return fmt.Errorf("the events are %v", got)
		}
		return nil
	})
}

// stays deletes m without what it owns, calls meanwhile, and then expects that all of it is there still, and that the
// next Memcached of this name takes it over as it is.
func stays(t *testing.T, m *v1.Memcached, meanwhile func()) {
	t.Helper()
	before := uids(t, m)
	must(t, admin.Delete(t.Context(), m, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	meanwhile()
	old := m.DeepCopy()
	absent(t, old)
	again := create(t, m.Namespace, m.Name, v1.MemcachedSpec{})
	again = available(t, m.Namespace, again.Name)
	if diff := gocmp.Diff(before, uids(t, again)); diff != "" {
		t.Error(diff)
	}
	if got := happened(t, m); got["Warning NotDissolved"] != 0 {
		t.Errorf("events: %v", got)
	}
}

// as is the variable of the environment by which a manager has these rights and no others.
func as(t *testing.T, name string, rules ...rbacv1.PolicyRule) string {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}}
	for _, object := range []client.Object{role, binding} {
		must(t, admin.Create(t.Context(), object))
		t.Cleanup(func() { _ = admin.Delete(context.Background(), object) })
	}
	config, err := clientcmd.LoadFromFile(world.Kubeconfig())
	must(t, err)
	for _, user := range config.AuthInfos {
		user.Impersonate = name
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, clientcmd.WriteToFile(*config, path))
	return "KUBECONFIG=" + path
}

// ruled is the rules of the cluster role in a folder of the operator's configuration, each after without was made of it.
func ruled(t *testing.T, folder string, without func(*rbacv1.PolicyRule)) []rbacv1.PolicyRule {
	t.Helper()
	for _, object := range manifests(t, folder) {
		if object.GetKind() != "ClusterRole" || !strings.HasSuffix(object.GetName(), "manager-role") {
			continue
		}
		var role rbacv1.ClusterRole
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role))
		for i := range role.Rules {
			without(&role.Rules[i])
		}
		return role.Rules
	}
	t.Fatalf("no role in %s", folder)
	return nil
}

// no takes a verb on a resource out of rules.
func no(verb, resource string) func(*rbacv1.PolicyRule) {
	return func(r *rbacv1.PolicyRule) {
		if slices.Contains(r.Resources, resource) {
			r.Verbs = slices.DeleteFunc(r.Verbs, func(v string) bool { return v == verb })
		}
	}
}

// Whatever keeps an operand from going keeps the Memcached for a minute, not for ever. This is the one test that takes
// as long.
func TestDeletionIsBounded(t *testing.T) {
	share(t)
	lost, forbidden, unattended := namespace(t), namespace(t), namespace(t)
	start(t, nil, "WATCH_NAMESPACE="+lost)
	start(t, nil, "WATCH_NAMESPACE="+forbidden, as(t, "no-deleter", ruled(t, config("rbac"), no("delete", "services"))...))

	brief := start(t, nil, "WATCH_NAMESPACE="+unattended)
	waiting := create(t, unattended, "m", v1.MemcachedSpec{Replicas: 1})
	waiting = available(t, unattended, waiting.Name)
	brief.stop(t)
	must(t, admin.Delete(t.Context(), waiting))

	stuck := create(t, lost, "m", v1.MemcachedSpec{Replicas: 1})
	stuck = available(t, lost, stuck.Name)
	pod := podsOf(t, stuck)[0]
	edit(t, &pod, func(p *corev1.Pod) { p.Finalizers = []string{blocker} })
	t.Cleanup(func() {
		_ = admin.Patch(context.Background(), &pod, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	})
	kept := create(t, forbidden, "m", v1.MemcachedSpec{Replicas: 1})
	kept = available(t, forbidden, kept.Name)
	must(t, admin.Delete(t.Context(), stuck))
	must(t, admin.Delete(t.Context(), kept))

	if message := condition(t, kept, v1.ConditionDegraded, "True/ApplyFailed"); !strings.Contains(message, `cannot delete resource "services"`) {
		t.Errorf("says %s", message)
	}
	absent(t, stuck.DeepCopy())
	absent(t, kept.DeepCopy())
	for _, m := range []*v1.Memcached{stuck, kept} {
		ended(t, m, 0, 1)
	}
	gone(t, forbidden) // the garbage collector took over

	// An operator that comes when the minute is over has one of its own.
	start(t, nil, "WATCH_NAMESPACE="+unattended)
	gone(t, unattended)
	dissolved(t, waiting)
}

func TestWithoutTheFinalizersRight(t *testing.T) {
	share(t)
	ns := namespace(t)
	start(t, nil, "WATCH_NAMESPACE="+ns, as(t, "no-patcher", ruled(t, config("rbac"), no("patch", "memcacheds"))...))
	m := create(t, ns, "m", v1.MemcachedSpec{})
	message := condition(t, m, v1.ConditionDegraded, "True/ApplyFailed")
	if !strings.Contains(message, "adding the finalizer to memcached "+ns+"/m") || !strings.Contains(message, `cannot patch resource "memcacheds"`) {
		t.Errorf("says %s", message)
	}
}

// Who goes back to 0.4.0, which does not use the finalizer and has no right to write Memcacheds, is told in the status
// of a deleted one that it waits; with the finalizer taken off by hand it goes.
func TestEarlierReleaseAndTheFinalizer(t *testing.T) {
	share(t)
	ns := namespace(t)
	manager := start(t, nil, "WATCH_NAMESPACE="+ns)
	m := create(t, ns, "m", v1.MemcachedSpec{})
	m = available(t, ns, m.Name)
	before := uids(t, m)
	manager.stop(t)

	earlier := filepath.Join(root, "bin", "memcached-operator", "v0.4.0", "manager")
	startProgram(t, earlier, nil, "WATCH_NAMESPACE="+ns, as(t, "earlier", ruled(t, filepath.Join(root, "operator", "releases", "v0.4.0", "config", "operator"), func(*rbacv1.PolicyRule) {})...))
	edit(t, m, func(m *v1.Memcached) { m.Spec.Replicas = 3 })
	m = available(t, ns, m.Name)
	after := uids(t, m)
	for uid, what := range before {
		if after[uid] != what {
			t.Errorf("%s is not there any more", what)
		}
	}
	must(t, admin.Delete(t.Context(), m))
	if message := condition(t, m, v1.ConditionDegraded, "True/ApplyFailed"); !strings.Contains(message, `cannot delete resource "services"`) {
		t.Errorf("says %s", message)
	}
	eventually(t, "the servers stay until then", func() error {
		if len(podsOf(t, m)) != 3 {
			return errors.New("there are not 3 pods")
		}
		return nil
	})
	edit(t, m, func(m *v1.Memcached) { m.Finalizers = nil })
	gone(t, ns)
}
