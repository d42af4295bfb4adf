//go:build linux

package operator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
	"github.com/olmkit/olmkit/operator/api/v1alpha1"
	"github.com/olmkit/olmkit/operator/api/v1beta1"
)

// TestChaos has one manager, built with the race detector, go through one trouble after the other, and asks after each
// whether all objects came to be as their specs ask. In the end nothing may be left of it all.
//
// Its webhooks are another manager's, in a pod of the cluster, which works for no namespace: the API server could not
// reach those of a manager outside.
func TestChaos(t *testing.T) {
	deploy(t, func(d *appsv1.Deployment) {
		for i := range d.Spec.Template.Spec.Containers[0].Env {
			if e := &d.Spec.Template.Spec.Containers[0].Env[i]; e.Name == "WATCH_NAMESPACE" {
				*e = corev1.EnvVar{Name: e.Name, Value: "none-of-them"}
			}
		}
	})
	serveAlpha(t)
	c := &chaos{
		test:    t,
		program: raceManager(t),
		way:     newFaults(t, 1),
		profile: "127.0.0.1:" + strconv.Itoa(freePort(t)),
	}
	c.start()

	ns := namespace(t)
	must(t, admin.Create(t.Context(), &v1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "first"}}))
	c.converges(t, ns)
	c.dissolves(t, ns)
	goroutines, heap := c.size(t)

	for _, trouble := range []struct {
		name string
		run  func(*testing.T, *chaos, string)
	}{
		{"versions at once", versionsAtOnce},
		{"hostile specs", hostileSpecs},
		{"a rival", rival},
		{"deleted in the middle", deletedInTheMiddle},
		{"faults on the way", faultsOnTheWay},
		{"the control plane killed", controlPlaneKilled},
	} {
		t.Run(trouble.name, func(t *testing.T) {
			ns := namespace(t)
			trouble.run(t, c, ns)
			c.converges(t, ns)
			c.quiet(t)
			c.dissolves(t, ns)
		})
	}
	t.Logf("faults: %v", c.way.done)

	t.Run("no leak", func(t *testing.T) {
		eventually(t, "the manager is as small as it was", func() error {
			g, h := c.size(t)
			t.Logf("goroutines %d, then %d; heap %d KiB, then %d KiB", goroutines, g, heap>>10, h>>10)
			if g > goroutines+10 || h > heap+heap/2+8<<20 {
				return fmt.Errorf("goroutines %d, then %d; heap %d bytes, then %d", goroutines, g, heap, h)
			}
			return nil
		})
	})
	t.Run("the manager killed", func(t *testing.T) {
		ns := namespace(t)
		managerKilled(t, c, ns)
		c.converges(t, ns)
		c.dissolves(t, ns)
	})
	c.manager.stop(t)
	c.sound(t)
}

// chaos is what the troubles share: a manager, and the way by which it reaches the API server.
type chaos struct {
	test    *testing.T
	program string
	way     *faults
	profile string // address of the manager's profiles
	manager *process
}

// raceManager builds the manager with the race detector.
func raceManager(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manager")
	cmd := exec.Command("go", "build", "-race", "-o", path, "./operator")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the manager with the race detector: %v\n%s", err, out)
	}
	return path
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// serveAlpha has the API server serve v1alpha1 again, as before release 0.5.0.
func serveAlpha(t *testing.T) {
	t.Helper()
	var crd apiextensions.CustomResourceDefinition
	must(t, admin.Get(t.Context(), client.ObjectKey{Name: crdName}, &crd))
	before := crd.DeepCopy()
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Served = true
	}
	must(t, admin.Patch(t.Context(), &crd, client.MergeFrom(before)))
	eventually(t, "v1alpha1 is served", func() error {
		return admin.List(t.Context(), &v1alpha1.MemcachedList{})
	})
}

// start starts the manager, which reaches the API server by the way with faults.
func (c *chaos) start() {
	c.test.Helper()
	c.manager = startProgram(c.test, c.program, []string{"--pprof-bind-address=" + c.profile}, "KUBECONFIG="+c.way.kubeconfig)
}

// sound looks for what no manager may say.
func (c *chaos) sound(t *testing.T) {
	t.Helper()
	log := c.manager.log()
	for _, word := range []string{"DATA RACE", "panic"} {
		if i := strings.Index(log, word); i >= 0 {
			t.Errorf("the manager's log says %q: %s", word, log[max(0, i-200):min(len(log), i+3000)])
		}
	}
}

// size is how many goroutines the manager has, and how many bytes of its heap are in use after a collection.
func (c *chaos) size(t *testing.T) (goroutines, heap int) {
	t.Helper()
	number := func(path, pattern string) int {
		response, err := http.Get("http://" + c.profile + "/debug/pprof/" + path)
		must(t, err)
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		must(t, err)
		found := regexp.MustCompile(pattern).FindSubmatch(body)
		if found == nil {
			t.Fatalf("%s says nothing of %s:\n%s", path, pattern, body[:min(len(body), 1000)])
		}
		n, err := strconv.Atoi(string(found[1]))
		must(t, err)
		return n
	}
	return number("goroutine?debug=1", `goroutine profile: total (\d+)`), number("heap?debug=1&gc=1", `# HeapAlloc = (\d+)`)
}

// converges waits until every Memcached of the namespace is as its spec asks, and says so.
func (c *chaos) converges(t *testing.T, ns string) {
	t.Helper()
	var count int
	eventually(t, "all objects are as their specs ask", func() error {
		var list v1.MemcachedList
		if err := admin.List(t.Context(), &list, client.InNamespace(ns)); err != nil {
			return err
		}
		count = len(list.Items)
		var wrong []error
		for i := range list.Items {
			if err := fits(t.Context(), &list.Items[i]); err != nil {
				wrong = append(wrong, fmt.Errorf("%.40s: %w", list.Items[i].Name, err))
			}
		}
		return errors.Join(wrong...)
	})
	t.Logf("%d objects converged", count)
	c.sound(t)
}

// fits says what of a Memcached is not as its spec asks.
func fits(ctx context.Context, m *v1.Memcached) error {
	if !m.DeletionTimestamp.IsZero() {
		return errors.New("it is being deleted")
	}
	s := m.Status
	if s.ObservedGeneration != m.Generation || s.ReadyReplicas != m.Spec.Replicas || len(s.Nodes) != int(m.Spec.Replicas) ||
		!meta.IsStatusConditionTrue(s.Conditions, v1.ConditionAvailable) ||
		!meta.IsStatusConditionFalse(s.Conditions, v1.ConditionProgressing) ||
		!meta.IsStatusConditionFalse(s.Conditions, v1.ConditionDegraded) {
		return fmt.Errorf("generation %d of %d replicas, status %+v", m.Generation, m.Spec.Replicas, s)
	}
	var deployments appsv1.DeploymentList
	if err := admin.List(ctx, &deployments, client.InNamespace(m.Namespace)); err != nil {
		return err
	}
	owned := slices.DeleteFunc(deployments.Items, func(d appsv1.Deployment) bool { return !metav1.IsControlledBy(&d, m) })
	if len(owned) != 1 {
		return fmt.Errorf("it has %d Deployments", len(owned))
	}
	d := owned[0]
	container := d.Spec.Template.Spec.Containers[0]
	wanted := []string{fmt.Sprintf("--port=%d", m.Spec.Service.Port), fmt.Sprintf("--memory-limit=%d", m.Spec.Cache.MemoryMegabytes), fmt.Sprintf("--conn-limit=%d", m.Spec.Cache.MaxConnections)}
	if *d.Spec.Replicas != m.Spec.Replicas || container.Image != imageOf(m) || !slices.Equal(container.Args, append(wanted, m.Spec.Cache.ExtraArgs...)) {
		return fmt.Errorf("its Deployment has %d of %s with %q", *d.Spec.Replicas, container.Image, container.Args)
	}
	key := client.ObjectKeyFromObject(&d)
	var (
		service corev1.Service
		budget  policyv1.PodDisruptionBudget
		network networkingv1.NetworkPolicy
	)
	for _, object := range []client.Object{&service, &budget, &network} {
		err := admin.Get(ctx, key, object)
		if object == &budget && m.Spec.Replicas == 1 && apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		if object == &budget && m.Spec.Replicas == 1 {
			return errors.New("it has one server, and a PodDisruptionBudget")
		}
		if !metav1.IsControlledBy(object, m) {
			return fmt.Errorf("%T %s is not its own", object, key)
		}
	}
	if len(service.Spec.Ports) != 1 || service.Spec.Ports[0].Port != m.Spec.Service.Port || !maps.Equal(service.Spec.Selector, d.Spec.Selector.MatchLabels) {
		return fmt.Errorf("its Service is %+v", service.Spec)
	}
	if n := budget.Spec.MaxUnavailable; m.Spec.Replicas > 1 && (n == nil || n.IntValue() != 1) {
		return fmt.Errorf("its PodDisruptionBudget is %+v", budget.Spec)
	}
	if in := network.Spec.Ingress; len(in) != 1 || len(in[0].Ports) != 1 || in[0].Ports[0].Port.String() != "memcached" {
		return fmt.Errorf("its NetworkPolicy is %+v", network.Spec)
	}
	var pods corev1.PodList
	if err := admin.List(ctx, &pods, client.InNamespace(m.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels)); err != nil {
		return err
	}
	for _, pod := range pods.Items {
		if _, known := s.Nodes[pod.Name]; !known && pod.DeletionTimestamp.IsZero() {
			return fmt.Errorf("its status does not know of %s", pod.Name)
		}
	}
	return nil
}

// imageOf is the image that a Memcached asks for.
func imageOf(m *v1.Memcached) string {
	asked := m.Spec.Image
	if asked == nil || asked.Repository == "" && asked.Tag == "" && asked.Digest == "" {
		return "docker.io/library/memcached:1.6.39"
	}
	reference := asked.Repository
	if reference == "" {
		reference = "docker.io/library/memcached"
	}
	if asked.Tag != "" {
		reference += ":" + asked.Tag
	}
	if asked.Digest != "" {
		reference += "@" + asked.Digest
	}
	return reference
}

// quietFor is long enough to see a manager that never comes to rest.
const quietFor = 3 * time.Second

// quiet watches for a while that the manager, which has nothing to do, writes nothing.
func (c *chaos) quiet(t *testing.T) {
	t.Helper()
	var writes []string
	eventually(t, "the manager comes to rest", func() error {
		since := time.Now()
		time.Sleep(quietFor)
		writes = nil
		for _, e := range audited(t, "admin", since) {
			if strings.HasPrefix(e.UserAgent, "manager/") && slices.Contains([]string{"create", "update", "patch", "delete"}, e.Verb) {
				writes = append(writes, e.Verb+" "+e.RequestURI)
			}
		}
		if len(writes) > 0 {
			return fmt.Errorf("it writes: %s", strings.Join(writes, ", "))
		}
		return nil
	})
}

// dissolves deletes all Memcacheds of the namespace and waits until nothing is left of them.
func (c *chaos) dissolves(t *testing.T, ns string) {
	t.Helper()
	must(t, admin.DeleteAllOf(t.Context(), &v1.Memcached{}, client.InNamespace(ns)))
	eventually(t, "nothing is left", func() error {
		for _, list := range []client.ObjectList{&v1.MemcachedList{}, &appsv1.DeploymentList{}, &corev1.ServiceList{}, &policyv1.PodDisruptionBudgetList{}, &networkingv1.NetworkPolicyList{}, &corev1.PodList{}} {
			if err := admin.List(t.Context(), list, client.InNamespace(ns)); err != nil {
				return err
			}
			if n := meta.LenList(list); n > 0 {
				return fmt.Errorf("there are %d in the %T", n, list)
			}
		}
		return nil
	})
}

// patch patches a Memcached until it is there to be patched and the API server answers.
func patch(t *testing.T, ns, name, patch string) {
	t.Helper()
	eventually(t, "patch "+name, func() error {
		return admin.Patch(t.Context(), &v1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}, client.RawPatch(types.MergePatchType, []byte(patch)))
	})
}

// writeObjects creates objects and changes each of them several times, whatever happens meanwhile.
func writeObjects(t *testing.T, ns string, objects, changes int) {
	t.Helper()
	var writers sync.WaitGroup
	for i := range objects {
		writers.Go(func() {
			name := fmt.Sprintf("m%d", i)
			eventually(t, "create "+name, func() error {
				err := admin.Create(t.Context(), &v1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}})
				if apierrors.IsAlreadyExists(err) {
					return nil // by a request whose answer was lost
				}
				return err
			})
			for change := range changes {
				patch(t, ns, name, fmt.Sprintf(`{"spec":{"replicas":%d,"service":{"port":%d},"cache":{"extraArgs":["--max-item-size=%dm"]}}}`, 1+(i+change)%3, 11211+change, 1+change))
			}
		})
	}
	writers.Wait()
}

func faultsOnTheWay(t *testing.T, c *chaos, ns string) {
	c.way.on.Store(true)
	defer c.way.on.Store(false)
	writeObjects(t, ns, 8, 6)
	for i := range 2 {
		name := fmt.Sprintf("m%d", i)
		must(t, admin.Delete(t.Context(), &v1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}))
	}
	c.converges(t, ns) // all the same
}

// controlPlaneKilled kills what the cluster itself is made of, while objects are written.
func controlPlaneKilled(t *testing.T, _ *chaos, ns string) {
	var done sync.WaitGroup
	done.Go(func() { writeObjects(t, ns, 8, 6) })
	for _, component := range []string{"kube-apiserver", "etcd", "kube-controller-manager", "kube-apiserver"} {
		must(t, world.Kill(t.Context(), component))
		eventually(t, "the API server is back", func() error {
			return admin.Get(t.Context(), client.ObjectKey{Name: ns}, &corev1.Namespace{})
		})
	}
	done.Wait()
	served(t)
}

// rival has somebody else write what the operator owns, and what it says, for a while.
func rival(t *testing.T, c *chaos, ns string) {
	writeObjects(t, ns, 4, 1)
	var rivals sync.WaitGroup
	until := time.Now().Add(5 * time.Second)
	for i := range 4 {
		m := client.ObjectKey{Namespace: ns, Name: fmt.Sprintf("m%d", i)}
		operand := metav1.ObjectMeta{Namespace: ns, Name: "memcached-" + m.Name}
		writes := []struct {
			object client.Object
			status bool
			patch  string
		}{
			{&appsv1.Deployment{ObjectMeta: operand}, false, `{"metadata":{"labels":{"app.kubernetes.io/name":"mine"}},"spec":{"replicas":0,"template":{"metadata":{"annotations":{"mine":"%d"}},"spec":{"terminationGracePeriodSeconds":1}}}}`},
			{&corev1.Service{ObjectMeta: operand}, false, `{"spec":{"selector":{"mine":"%d"}}}`},
			{&policyv1.PodDisruptionBudget{ObjectMeta: operand}, false, `{"spec":{"maxUnavailable":%d}}`},
			{&networkingv1.NetworkPolicy{ObjectMeta: operand}, false, `{"spec":{"ingress":[{"ports":[{"port":%d}]}]}}`},
			{&v1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: m.Name}}, true, `{"status":{"readyReplicas":%d,"nodes":{"mine":{"ready":true}},"conditions":[]}}`},
			{&v1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: m.Name}}, false, `{"metadata":{"annotations":{"mine":"%d"},"finalizers":[]}}`},
		}
		for _, w := range writes {
			rivals.Go(func() {
				for n := 1; time.Now().Before(until); n++ {
					p := client.RawPatch(types.MergePatchType, []byte(strings.Replace(w.patch, "%d", strconv.Itoa(n), 1)))
					var err error
					if w.status {
						err = admin.Status().Patch(t.Context(), w.object, p, client.FieldOwner("rival"))
					} else {
						err = admin.Patch(t.Context(), w.object, p, client.FieldOwner("rival"))
					}
					if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
						t.Errorf("the rival's write of %T: %v", w.object, err)
						return
					}
					time.Sleep(20 * time.Millisecond)
				}
			})
		}
	}
	rivals.Wait()
	c.converges(t, ns)
	// One last word, about an object that nothing happens to any more.
	must(t, admin.Status().Patch(t.Context(), &v1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "m0"}},
		client.RawPatch(types.MergePatchType, []byte(`{"status":{"readyReplicas":4,"nodes":{"mine":{"ready":true}},"conditions":[]}}`)), client.FieldOwner("rival")))
}

// deletedInTheMiddle deletes objects, and what belongs to them, and makes them again, at any moment.
func deletedInTheMiddle(t *testing.T, _ *chaos, ns string) {
	var writers sync.WaitGroup
	for i := range 6 {
		random := rand.New(rand.NewPCG(uint64(i), 0))
		writers.Go(func() {
			m := &v1.Memcached{}
			operand := metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("memcached-m%d", i)}
			for round := range 6 {
				m = &v1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("m%d", i)}, Spec: v1.MemcachedSpec{Replicas: int32(1 + round%3)}}
				eventually(t, "create "+m.Name, func() error { return admin.Create(t.Context(), m) })
				time.Sleep(time.Duration(random.IntN(int(400 * time.Millisecond))))
				part := []client.Object{&appsv1.Deployment{ObjectMeta: operand}, &corev1.Service{ObjectMeta: operand}, &policyv1.PodDisruptionBudget{ObjectMeta: operand}, &networkingv1.NetworkPolicy{ObjectMeta: operand}}[random.IntN(4)]
				if err := admin.Delete(t.Context(), part); client.IgnoreNotFound(err) != nil {
					t.Error(err)
				}
				if round == 5 {
					return
				}
				propagation := []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground}[random.IntN(2)]
				if err := admin.Delete(t.Context(), m, client.PropagationPolicy(propagation)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	// A whole namespace at once.
	other := namespace(t)
	writeObjects(t, other, 3, 1)
	must(t, admin.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other}}))
	eventually(t, "the namespace is gone", func() error {
		err := admin.Get(t.Context(), client.ObjectKey{Name: other}, &corev1.Namespace{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	writers.Wait()
}

// hostileSpecs are at the bounds of what the schema lets pass, and beyond those of what Kubernetes does. They are written
// past the webhooks' judgement too, which may be out of service.
func hostileSpecs(t *testing.T, _ *chaos, ns string) {
	quantity := func(s string) *resource.Quantity { q := resource.MustParse(s); return &q }
	label := strings.Repeat("l", 63)
	specs := map[string]v1.MemcachedSpec{
		strings.Repeat(label+".", 3) + strings.Repeat("l", 61): {},
		strings.Repeat("a.", 126) + "a":                        {},
		"1.2.3.4":                                              {},
		"0":                                                    {},
		"x-0123456789abcdef":                                   {},
		strings.Repeat("x", 54):                                {},
		"bounds":                                               {Replicas: 5, Service: v1.Service{Port: 65535}, Cache: v1.Cache{MemoryMegabytes: 8, MaxConnections: 1000000}},
		"port-one":                                             {Replicas: 1, Service: v1.Service{Port: 1}},
		"huge-memory":                                          {Replicas: 1, Cache: v1.Cache{MemoryMegabytes: 1048576}, Resources: &v1.Resources{Requests: v1.ResourceList{Memory: quantity("1")}}},
		"no-tag":                                               {Replicas: 1, Image: &v1.Image{Repository: "example.com/memcached"}},
		"registry-port":                                        {Replicas: 1, Image: &v1.Image{Repository: "localhost:5000/memcached"}},
		"registry-port-tag":                                    {Replicas: 1, Image: &v1.Image{Repository: "localhost:5000/a/b/memcached", Tag: "1.6_x-y.z"}},
		"digest":                                               {Replicas: 1, Image: &v1.Image{Repository: "example.com:80/memcached", Digest: "sha256:" + strings.Repeat("0", 64)}},
		"tag-and-digest":                                       {Replicas: 1, Image: &v1.Image{Repository: "memcached", Tag: "1", Digest: "sha256:" + strings.Repeat("f", 64)}},
		"tag-alone":                                            {Replicas: 1, Image: &v1.Image{Tag: "1.6.40"}},
		"unicode":                                              {Replicas: 1, Cache: v1.Cache{ExtraArgs: []string{"--größe=☃", "", " ", "\n", "$(PATH)", "$$(PATH)", "\u202e", "\U0001F600"}}},
		"args": {Replicas: 1, Cache: v1.Cache{ExtraArgs: slices.Collect(func(yield func(string) bool) {
			for i := range 16 {
				if !yield(strings.Repeat(string(rune('\U0001F600'+i)), 256)) {
					return
				}
			}
		})}},
		"tiny-resources": {Replicas: 1, Resources: &v1.Resources{Requests: v1.ResourceList{CPU: quantity("1m")}, Limits: v1.ResourceList{CPU: quantity("0.001"), Memory: quantity("1e9")}}},
	}
	for name, spec := range specs {
		must(t, admin.Create(t.Context(), &v1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: spec}))
	}
	big := &v1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "big", Annotations: map[string]string{"big": strings.Repeat("b", 200<<10)}}}
	must(t, admin.Create(t.Context(), big))

	// What can't run is refused, and where nobody is asked it is said in the status, and mended.
	wrong := map[string]v1.MemcachedSpec{
		"image-upper":   {Replicas: 1, Image: &v1.Image{Repository: "EXAMPLE/Memcached"}},
		"image-space":   {Replicas: 1, Image: &v1.Image{Repository: "a b"}},
		"image-scheme":  {Replicas: 1, Image: &v1.Image{Repository: "https://example.com/memcached"}},
		"arg-port":      {Replicas: 1, Cache: v1.Cache{ExtraArgs: []string{"-p1"}}},
		"limit-crossed": {Replicas: 1, Resources: &v1.Resources{Requests: v1.ResourceList{CPU: quantity("2")}, Limits: v1.ResourceList{CPU: quantity("1")}}},
		"negative":      {Replicas: 1, Resources: &v1.Resources{Requests: v1.ResourceList{Memory: quantity("-1")}}},
	}
	for name, spec := range wrong {
		err := admin.Create(t.Context(), &v1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: spec})
		if !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v, wanted invalid", name, err)
		}
	}
	withoutValidation(t, func() {
		for name, spec := range wrong {
			eventually(t, "write "+name+" past the webhook", func() error {
				return admin.Create(t.Context(), &v1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: spec})
			})
		}
	})
	for name := range wrong {
		eventually(t, name+" is degraded", func() error {
			var m v1.Memcached
			if err := admin.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, &m); err != nil {
				return err
			}
			condition := meta.FindStatusCondition(m.Status.Conditions, v1.ConditionDegraded)
			if condition == nil || condition.Status != metav1.ConditionTrue || condition.Reason != "InvalidSpec" {
				return fmt.Errorf("its condition is %+v", condition)
			}
			return nil
		})
		patch(t, ns, name, `{"spec":{"image":null,"resources":null,"cache":{"extraArgs":null}}}`)
	}
}

// withoutValidation runs f while no webhook judges Memcacheds.
func withoutValidation(t *testing.T, f func()) {
	t.Helper()
	for _, object := range manifests(t, config("default")) {
		if object.GetKind() == "ValidatingWebhookConfiguration" {
			must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(object), object))
			must(t, admin.Delete(t.Context(), object.DeepCopy()))
			defer func() {
				object.SetResourceVersion("")
				object.SetUID("")
				must(t, admin.Create(t.Context(), object))
			}()
		}
	}
	f()
}

// versionsAtOnce has writers of all three versions change the same objects.
func versionsAtOnce(t *testing.T, _ *chaos, ns string) {
	writeObjects(t, ns, 3, 0)
	var writers sync.WaitGroup
	for i := range 3 {
		about := metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("m%d", i)}
		for _, w := range []struct {
			object client.Object
			change func(client.Object, int)
		}{
			{&v1alpha1.Memcached{ObjectMeta: about}, func(o client.Object, n int) { o.(*v1alpha1.Memcached).Spec.Size = int32(1 + n%3) }},
			{&v1beta1.Memcached{ObjectMeta: about}, func(o client.Object, n int) {
				o.(*v1beta1.Memcached).Spec.ContainerPort = int32(11300 + n)
				o.(*v1beta1.Memcached).Spec.Image = fmt.Sprintf("localhost:5000/memcached:%d", n)
			}},
			{&v1.Memcached{ObjectMeta: about}, func(o client.Object, n int) { o.(*v1.Memcached).Spec.Cache.MaxConnections = int32(1000 + n) }},
		} {
			writers.Go(func() {
				for n := range 5 {
					eventually(t, fmt.Sprintf("update %T", w.object), func() error {
						if err := admin.Get(t.Context(), client.ObjectKeyFromObject(w.object), w.object); err != nil {
							return err
						}
						w.change(w.object, n)
						return admin.Update(t.Context(), w.object)
					})
				}
			})
		}
	}
	writers.Wait()
	// Nobody's last word was lost.
	for i := range 3 {
		var m v1.Memcached
		must(t, admin.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: fmt.Sprintf("m%d", i)}, &m))
		if m.Spec.Replicas != 2 || m.Spec.Service.Port != 11304 || imageOf(&m) != "localhost:5000/memcached:4" || m.Spec.Cache.MaxConnections != 1004 {
			t.Errorf("%s: %+v", m.Name, m.Spec)
		}
	}
}

// managerKilled kills the manager the hard way, and starts another, while objects are written and deleted.
func managerKilled(t *testing.T, c *chaos, ns string) {
	var done sync.WaitGroup
	done.Go(func() {
		writeObjects(t, ns, 6, 4)
		must(t, admin.Delete(t.Context(), &v1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "m0"}}))
	})
	for range 3 {
		time.Sleep(700 * time.Millisecond)
		c.manager.kill()
		c.sound(t)
		c.start()
	}
	done.Wait()
}
