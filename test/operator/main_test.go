//go:build linux

// Package operator_test runs the memcached operator without OLM on an embedded cluster, and looks at it from outside: at
// what it does to the cluster, says in its log, and asks of the API server. 'make test-e2e' builds what it needs.
//
// There is one cluster for the package and one CRD in it. Tests that install it, or deploy the operator with it, run one
// after the other; when they have ended, those that share it run together, each in namespaces of its own.
package operator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/olmkit/olmkit/internal/cluster/embedded"
	v1 "github.com/olmkit/olmkit/operator/api/v1"
	"github.com/olmkit/olmkit/operator/api/v1alpha1"
	"github.com/olmkit/olmkit/operator/api/v1beta1"
	"github.com/olmkit/olmkit/test/support/wait"
)

const (
	release = "v0.5.0"
	image   = "ghcr.io/olmkit/memcached-operator:" + release
	// The operator's own namespace, Deployment and account, as operator/config/default has them.
	system  = "memcached-operator-system"
	manager = "memcached-operator-controller-manager"
	account = "system:serviceaccount:" + system + ":" + manager
	crdName = "memcacheds.cache.example.com"

	// waitLimit bounds every wait for something that is to happen; reaching it is a failure.
	waitLimit = 2 * time.Minute
)

var (
	// root is the repository's root.
	root = filepath.Join("..", "..")
	// program is the manager of the newest stable release.
	program = filepath.Join(root, "bin", "memcached-operator", release, "manager")

	// world is the package's cluster, and admin a client with all rights on it. The operand's image is simulated there
	// until a test loads it.
	world *embedded.Cluster
	admin client.WithWatch
)

func TestMain(m *testing.M) {
	embedded.Main()
	if len(os.Args) > 1 && os.Args[1] == boxArgument {
		box(os.Args[2:])
	}
	if len(os.Args) > 3 && os.Args[1] == talkArgument {
		if err := talk(os.Stdout, os.Args[2], os.Args[3:]...); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	ctx := context.Background()
	if _, err := os.Stat(program); err != nil {
		return 0, fmt.Errorf("%w: build it with 'make managers'", err)
	}
	// The plugin, which OpenShift turns on, asks for rights that other clusters never ask for.
	world, err = embedded.Start(ctx, embedded.Options{Audit: true, OLM: embedded.OLMVersion, Admission: []string{"OwnerReferencesPermissionEnforcement"}})
	if err != nil {
		return 0, err
	}
	defer func() { _ = world.Down(ctx) }()
	if err := world.LoadImage(ctx, image, program); err != nil {
		return 0, err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensions.AddToScheme, v1alpha1.AddToScheme, v1beta1.AddToScheme, v1.AddToScheme} {
		if err := add(scheme); err != nil {
			return 0, err
		}
	}
	if admin, err = client.NewWithWatch(world.Config(), client.Options{Scheme: scheme}); err != nil {
		return 0, err
	}
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		if err := parallel.Value.Set(sharing); err != nil {
			return 0, err
		}
	}
	return m.Run(), nil
}

// eventually waits until f returns nil.
func eventually(t *testing.T, what string, f func() error) {
	t.Helper()
	wait.For(t, waitLimit, what, f)
}

// must fails the test if err is one.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var (
	namespaces atomic.Int32
	notInName  = regexp.MustCompile(`[^a-z0-9]+`)
)

// namespace makes a namespace for the test, which is deleted with it.
func namespace(t *testing.T) string {
	t.Helper()
	name := strings.Trim(notInName.ReplaceAllString(strings.ToLower(t.Name()), "-"), "-")
	name = fmt.Sprintf("%s-%d", strings.TrimRight(name[:min(len(name), 40)], "-"), namespaces.Add(1))
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	must(t, admin.Create(t.Context(), n))
	t.Cleanup(func() {
		if err := admin.Delete(context.Background(), n); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	return name
}

// config is a folder of the newest release's configuration.
func config(folder string) string { return filepath.Join(root, "operator", "config", folder) }

// manifests is what kustomize makes of a folder, in the order in which kubectl applies it.
func manifests(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy
	resources, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), folder)
	must(t, err)
	var objects []*unstructured.Unstructured
	for _, r := range resources.Resources() {
		fields, err := r.Map()
		must(t, err)
		// Numbers as the API machinery has them.
		data, err := json.Marshal(fields)
		must(t, err)
		object := &unstructured.Unstructured{}
		must(t, object.UnmarshalJSON(data))
		objects = append(objects, object)
	}
	return objects
}

// apply applies objects as 'kubectl apply --server-side' does, in their order.
func apply(t *testing.T, objects ...*unstructured.Unstructured) {
	t.Helper()
	for _, object := range objects {
		must(t, admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.FieldOwner("kubectl"), client.ForceOwnership))
	}
}

// install installs the CRD alone, as for managers that run outside of the cluster: nobody converts, the stored version
// works. It is removed, with all Memcacheds, at the end of the test.
func install(t *testing.T) {
	t.Helper()
	objects := manifests(t, config("crd"))
	t.Cleanup(func() { remove(t, objects) })
	apply(t, objects...)
	eventually(t, "the CRD is established", established(t.Context()))
}

// sharing is how many tests run together. They wait for one another's work less than for clocks.
const sharing = "8"

var shared sync.Once

// share has the test run together with others, after all that don't, with the CRD alone, which stays. Its managers have to
// be told its namespaces.
func share(t *testing.T) {
	t.Helper()
	t.Parallel()
	shared.Do(func() { apply(t, manifests(t, config("crd"))...) })
	eventually(t, "the CRD is established", established(t.Context()))
}

func established(ctx context.Context) func() error {
	return func() error {
		var crd apiextensions.CustomResourceDefinition
		if err := admin.Get(ctx, client.ObjectKey{Name: crdName}, &crd); err != nil {
			return err
		}
		if !apihelpers.IsCRDConditionTrue(&crd, apiextensions.Established) {
			return fmt.Errorf("its conditions are %v", crd.Status.Conditions)
		}
		return admin.List(ctx, &v1.MemcachedList{})
	}
}

// deploy deploys the operator as 'make deploy' does, after each change was made to the manager's Deployment, and waits
// until it serves. It is removed, with its CRD and all Memcacheds, at the end of the test.
func deploy(t *testing.T, changes ...func(*appsv1.Deployment)) {
	t.Helper()
	deployFrom(t, config("default"), changes...)
}

// deployFrom deploys what kustomize makes of a folder that has the default configuration in it.
func deployFrom(t *testing.T, folder string, changes ...func(*appsv1.Deployment)) {
	t.Helper()
	objects := manifests(t, folder)
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}
		var d appsv1.Deployment
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &d))
		for _, change := range changes {
			change(&d)
		}
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&d)
		must(t, err)
		delete(fields, "status")
		object.Object = fields
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the operator's log ends\n%s", tail(operatorLog(t), 60))
		}
		remove(t, objects)
	})
	apply(t, objects...)
	served(t)
}

// served waits until the operator is rolled out and converts.
func served(t *testing.T) {
	t.Helper()
	eventually(t, "the operator is ready", func() error {
		var d appsv1.Deployment
		if err := admin.Get(t.Context(), client.ObjectKey{Namespace: system, Name: manager}, &d); err != nil {
			return err
		}
		if s := d.Status; s.ObservedGeneration != d.Generation || s.Replicas != *d.Spec.Replicas || s.UpdatedReplicas != *d.Spec.Replicas || s.AvailableReplicas != *d.Spec.Replicas {
			return fmt.Errorf("its Deployment's status is %+v", s)
		}
		probe := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "probe"}}
		return admin.Create(t.Context(), probe, client.DryRunAll)
	})
}

// remove deletes objects, in the opposite order, and waits until they are gone; Memcacheds first, with the operator if it
// is there to say goodbye, else without.
func remove(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	ctx := context.Background()
	gone := func(timeout time.Duration) bool {
		for deadline := time.Now().Add(timeout); ; time.Sleep(50 * time.Millisecond) {
			var list v1.MemcachedList
			err := admin.List(ctx, &list)
			if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || err == nil && len(list.Items) == 0 {
				return true
			}
			for i := range list.Items {
				if list.Items[i].DeletionTimestamp == nil {
					_ = admin.Delete(ctx, &list.Items[i])
				}
			}
			if time.Now().After(deadline) {
				return false
			}
		}
	}
	if !gone(10 * time.Second) {
		none := []byte(`{"spec":{"conversion":{"strategy":"None","webhook":null}}}`)
		_ = admin.Patch(ctx, &apiextensions.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crdName}}, client.RawPatch(types.MergePatchType, none))
		unbind(ctx)
		if !gone(10 * time.Second) {
			t.Error("there are Memcacheds that do not go away")
		}
	}
	for i := len(objects) - 1; i >= 0; i-- {
		if err := admin.Delete(ctx, objects[i].DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationBackground)); client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
			t.Errorf("remove %s %s: %v", objects[i].GetKind(), objects[i].GetName(), err)
		}
	}
	for deadline := time.Now().Add(waitLimit); ; time.Sleep(50 * time.Millisecond) {
		var left []string
		for _, object := range objects {
			if err := admin.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopy()); !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
				left = append(left, object.GetKind()+" "+object.GetName())
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("not removed: %s", strings.Join(left, ", "))
			return
		}
	}
}

// unbind takes the finalizers off all Memcacheds. One whose namespace is gone, since the API server did not serve them when
// that was emptied, can't be written before the namespace is there again.
func unbind(ctx context.Context) {
	var list v1.MemcachedList
	_ = admin.List(ctx, &list)
	for i := range list.Items {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: list.Items[i].Namespace}}
		if admin.Create(ctx, n) == nil {
			defer func() { _ = admin.Delete(ctx, n) }()
		}
		_ = admin.Patch(ctx, &list.Items[i], client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	}
}

// operatorPods is the deployed operator's pods.
func operatorPods(t *testing.T) []corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	if err := admin.List(context.Background(), &pods, client.InNamespace(system), client.MatchingLabels{"control-plane": "controller-manager"}); err != nil {
		t.Error(err)
	}
	return pods.Items
}

// operatorLog is what the deployed operator's pods said.
func operatorLog(t *testing.T) string {
	t.Helper()
	var log bytes.Buffer
	for _, pod := range operatorPods(t) {
		if err := world.Logs(context.Background(), &log, pod.Namespace+"/"+pod.Name+"/manager"); err != nil {
			t.Error(err)
		}
	}
	return log.String()
}

// audited is what user asked of the API server since then, and was answered by now.
func audited(t *testing.T, user string, since time.Time) []auditv1.Event {
	t.Helper()
	// The log is written in the order of the answers: when the mark is in it, all that came before is.
	mark := fmt.Sprintf("mark-%d", time.Now().UnixNano())
	_ = admin.Get(t.Context(), client.ObjectKey{Name: mark}, &corev1.Namespace{})
	var events []auditv1.Event
	eventually(t, "the audit log is written", func() (err error) {
		if events, err = world.Audit(t.Context(), since); err != nil {
			return err
		}
		for i := range events {
			if ref := events[i].ObjectRef; ref != nil && ref.Name == mark {
				return nil
			}
		}
		return errors.New("it has not come to this request")
	})
	var own []auditv1.Event
	for _, e := range events {
		if e.User.Username == user {
			own = append(own, e)
		}
	}
	return own
}

// process is a manager that runs on this machine, outside of the cluster.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}

	mu  sync.Mutex
	out bytes.Buffer
}

// Write keeps what the manager says.
func (p *process) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(data)
}

// start runs the newest release's manager with the administrator's credentials, without webhooks and probes unless args
// say otherwise; the later of two equal flags or variables counts. It ends with the test.
func start(t *testing.T, args []string, env ...string) *process {
	t.Helper()
	return startProgram(t, program, args, env...)
}

// startProgram runs another build of the manager.
func startProgram(t *testing.T, path string, args []string, env ...string) *process {
	t.Helper()
	p := &process{ended: make(chan struct{})}
	p.cmd = exec.Command(path, append([]string{"--webhooks=false", "--health-probe-bind-address=0"}, args...)...)
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "KUBECONFIG=" + world.Kubeconfig()}, env...)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("the log of manager %d ends\n%s", p.cmd.Process.Pid, tail(p.log(), 60))
		}
	})
	return p
}

// log is what the manager said so far.
func (p *process) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// entries is what of the manager's log is JSON, line by line.
func (p *process) entries() []map[string]any { return entries(p.log()) }

// kill ends the manager the hard way and returns when it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// stop asks the manager to end, and returns when it is gone.
func (p *process) stop(t *testing.T) {
	t.Helper()
	must(t, p.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-p.ended:
	case <-time.After(waitLimit):
		t.Fatal("the manager does not stop")
	}
}

// entries is what of a log is JSON, line by line.
func entries(log string) []map[string]any {
	var out []map[string]any
	for line := range strings.Lines(log) {
		_, line, _ = strings.Cut("{"+line, "{")
		var entry map[string]any
		if json.Unmarshal([]byte(line), &entry) == nil {
			out = append(out, entry)
		}
	}
	return out
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// available waits until the Memcached says that it is as its spec asks, and returns it.
func available(t *testing.T, ns, name string) *v1.Memcached {
	t.Helper()
	m := &v1.Memcached{}
	eventually(t, ns+"/"+name+" is available", func() error {
		if err := admin.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, m); err != nil {
			return err
		}
		s := m.Status
		if s.ObservedGeneration != m.Generation || s.ReadyReplicas != m.Spec.Replicas ||
			!meta.IsStatusConditionTrue(s.Conditions, v1.ConditionAvailable) ||
			!meta.IsStatusConditionFalse(s.Conditions, v1.ConditionProgressing) ||
			!meta.IsStatusConditionFalse(s.Conditions, v1.ConditionDegraded) {
			return fmt.Errorf("generation %d, status %+v", m.Generation, s)
		}
		return nil
	})
	return m
}
