//go:build linux

package operator_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
	"github.com/olmkit/olmkit/operator/api/v1alpha1"
)

// makeCommand is a make of the repository's root, as somebody types it whose kubeconfig is the cluster's.
func makeCommand(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command("make", append([]string{"--no-print-directory", "-C", dir, "KUBECTL=bin/kubectl"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+world.Kubeconfig(), "MAKEFLAGS=")
	return cmd
}

// runMake makes targets and returns what they printed.
func runMake(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := makeCommand(dir, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("make %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// objects names all objects of the cluster but events, which time removes, and what Kubernetes' own controllers make for
// themselves and in every namespace.
func objects(t *testing.T) map[string]bool {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(world.Config())
	must(t, err)
	found := map[string]bool{}
	eventually(t, "all objects can be listed", func() error {
		clear(found)
		lists, err := d.ServerPreferredResources()
		if err != nil {
			return err
		}
		for _, list := range lists {
			for _, resource := range list.APIResources {
				if resource.Kind == "Event" || !slices.Contains(resource.Verbs, "list") {
					continue
				}
				of := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: list.GroupVersion, Kind: resource.Kind + "List"}}
				if err := admin.List(t.Context(), of); err != nil {
					return fmt.Errorf("%s %s: %w", list.GroupVersion, resource.Kind, err)
				}
				for _, o := range of.Items {
					if resource.Kind == "ServiceAccount" && (o.Namespace == "kube-system" || o.Name == "default") || o.Name == "kube-root-ca.crt" {
						continue
					}
					found[fmt.Sprintf("%s %s %s/%s", list.GroupVersion, resource.Kind, o.Namespace, o.Name)] = true
				}
			}
		}
		return nil
	})
	return found
}

// nothingNew waits until the cluster holds no object that it did not hold before.
func nothingNew(t *testing.T, before map[string]bool) {
	t.Helper()
	eventually(t, "what was made is gone", func() error {
		var left []string
		for name := range objects(t) {
			if !before[name] {
				left = append(left, name)
			}
		}
		slices.Sort(left)
		if len(left) > 0 {
			return fmt.Errorf("there is still %s", strings.Join(left, ", "))
		}
		return nil
	})
}

// sample reads a sample into a namespace.
func sample(t *testing.T, ns, version string) *unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(config("samples"), "cache_"+version+"_memcached.yaml"))
	must(t, err)
	object := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal(data, object))
	if got := object.GroupVersionKind().Version; got != version {
		t.Fatalf("the sample of %s is one of %s", version, got)
	}
	object.SetNamespace(ns)
	return object
}

// What 'make deploy' brings works, for every kind of user, and 'make undeploy' takes all of it away.
func TestDeployAndUndeploy(t *testing.T) {
	ns := namespace(t)
	for role := range users {
		must(t, admin.Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: userWho(role)}},
		}))
	}
	before := objects(t)
	all := manifests(t, config("default"))
	t.Cleanup(func() { remove(t, all) }) // when something is left that the test complained of

	runMake(t, root, "deploy")
	served(t)
	runMake(t, root, "deploy") // as after a change

	for _, version := range []string{"v1", "v1beta1"} {
		s := sample(t, ns, version)
		must(t, admin.Create(t.Context(), s))
		available(t, ns, s.GetName())
	}
	// The client may know the version, from an older release in an earlier test.
	if err := admin.Create(t.Context(), sample(t, ns, "v1alpha1")); !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		t.Errorf("a version that is not served any more: %v", err)
	}
	userRights(t, ns)

	out := runMake(t, root, "undeploy")
	if first, then := strings.Index(out, `"memcached-v1beta1"`), strings.Index(out, "deployment.apps"); first < 0 || first > then {
		t.Errorf("the operator went before what only it can let go:\n%s", out)
	}
	nothingNew(t, before)
	runMake(t, root, "undeploy") // of what is not there
}

var (
	read  = []string{"get", "list", "watch"}
	write = []string{"create", "update", "patch", "delete", "deletecollection"}

	// users is what who has one of Kubernetes' own roles for users may do with Memcacheds and their status.
	users = map[string]struct{ object, status []string }{
		"view":  {read, []string{"get"}},
		"edit":  {slices.Concat(read, write), []string{"get"}},
		"admin": {slices.Concat(read, write), []string{"get", "update", "patch"}},
	}
)

// userWho is the name of a user who has a role.
func userWho(role string) string { return "somebody-who-may-" + role }

// userRights asks the API server for what users may do in a namespace where they have their roles.
func userRights(t *testing.T, ns string) {
	t.Helper()
	for role, want := range users {
		eventually(t, role+" includes Memcacheds", func() error {
			for _, subresource := range []string{"", "status"} {
				may := want.object
				if subresource != "" {
					may = want.status
				}
				for _, verb := range slices.Concat(read, write, []string{"escalate"}) {
					review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: userWho(role), ResourceAttributes: &authorizationv1.ResourceAttributes{
						Namespace: ns, Group: v1.GroupVersion.Group, Resource: "memcacheds", Subresource: subresource, Verb: verb,
					}}}
					if err := admin.Create(t.Context(), review); err != nil {
						return err
					}
					if want := slices.Contains(may, verb); review.Status.Allowed != want {
						return fmt.Errorf("%s may %s memcacheds/%s: %t", userWho(role), verb, subresource, review.Status.Allowed)
					}
				}
			}
			return nil
		})
	}
	// And not only in theory.
	as := *world.Config()
	as.Impersonate.UserName = userWho("view")
	viewer, err := client.New(&as, client.Options{Scheme: admin.Scheme()})
	must(t, err)
	var list v1.MemcachedList
	if err := viewer.List(t.Context(), &list, client.InNamespace(ns)); err != nil || len(list.Items) != 2 {
		t.Errorf("a viewer sees %d Memcacheds, %v", len(list.Items), err)
	}
	if err := viewer.DeleteAllOf(t.Context(), &v1.Memcached{}, client.InNamespace(ns)); err == nil {
		t.Error("a viewer deleted Memcacheds")
	}
}

// 'make install run' is enough for the stored version of the API; 'make uninstall' wants the operator to be there.
func TestInstallAndRun(t *testing.T) {
	ns := namespace(t)
	before := objects(t)
	all := manifests(t, config("crd"))
	t.Cleanup(func() { remove(t, all) })

	runMake(t, root, "install")
	eventually(t, "the CRD is established", established(t.Context()))
	end := runOperator(t)
	s := sample(t, ns, "v1")
	must(t, admin.Create(t.Context(), s))
	available(t, ns, s.GetName())

	end()
	out, err := makeCommand(root, "uninstall", "DELETE_TIMEOUT=2s").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "only while the operator runs") {
		t.Errorf("without the operator: %v\n%s", err, out)
	}
	must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(s), s))

	runOperator(t)
	runMake(t, root, "uninstall")
	nothingNew(t, before)
}

// runOperator runs 'make run' until the function that it returns is called, or the test ends.
func runOperator(t *testing.T) func() {
	t.Helper()
	cmd := makeCommand(root, "run", "RUN_FLAGS=--health-probe-bind-address=0")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	over := false
	end := func() {
		if over {
			return
		}
		over = true
		// go run ends only with its program, and that is somewhere below make.
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		<-ended
		if t.Failed() {
			t.Logf("make run said\n%s", tail(out.String(), 40))
		}
	}
	t.Cleanup(end)
	return end
}

// The sample of the first version is one for the first release.
func TestSampleOfTheFirstRelease(t *testing.T) {
	ns := namespace(t)
	all := manifests(t, filepath.Join(root, "operator", "releases", "v0.1.0", "config", "crd"))
	t.Cleanup(func() { remove(t, all) })
	apply(t, all...)
	startProgram(t, filepath.Join(root, "bin", "memcached-operator", "v0.1.0", "manager"), nil)
	s := sample(t, ns, "v1alpha1")
	eventually(t, "v1alpha1 is served", func() error { return client.IgnoreAlreadyExists(admin.Create(t.Context(), s.DeepCopy())) })
	eventually(t, "its pods are there", func() error {
		var m v1alpha1.Memcached
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(s), &m); err != nil {
			return err
		}
		if len(m.Status.Nodes) != int(m.Spec.Size) {
			return fmt.Errorf("status %+v", m.Status)
		}
		return nil
	})
}
