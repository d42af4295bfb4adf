package controller

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
	"github.com/olmkit/olmkit/operator/internal/operand"
)

// informers are fake ones, of metadata, too.
type informers struct {
	informertest.FakeInformers
	mu sync.Mutex
}

func (i *informers) GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	gvk, err := apiutil.GVKForObject(object, i.Scheme)
	if err != nil {
		return nil, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, err := i.GetInformerForKind(ctx, gvk, options...); err != nil {
		return nil, err
	}
	return i.guarded(ctx, gvk)
}

func (i *informers) guarded(ctx context.Context, kind schema.GroupVersionKind) (*informer, error) {
	made, err := i.FakeInformerForKind(ctx, kind)
	return &informer{made, &i.mu}, err
}

// informer bears that events come while handlers are added.
type informer struct {
	*controllertest.FakeInformer
	mu *sync.Mutex
}

func (i *informer) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.FakeInformer.AddEventHandlerWithOptions(handler, options)
}

func (i *informer) Add(object metav1.Object) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.FakeInformer.Add(object)
}

func (i *informer) Update(old, object metav1.Object) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.FakeInformer.Update(old, object)
}

// of is the informer of a kind.
func (i *informers) of(t *testing.T, kind schema.GroupVersionKind) *informer {
	t.Helper()
	i.mu.Lock()
	defer i.mu.Unlock()
	made, err := i.guarded(t.Context(), kind)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// watching starts the controller on fake informers, and returns them and the names of the Memcacheds that are reconciled.
func watching(t *testing.T, memcacheds ...client.Object) (watched *informers, reconciled <-chan string) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1.AddToScheme, clientgoscheme.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	names := make(chan string, 100)
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(memcacheds...).WithIndex(&v1.Memcached{}, configMapIndex, configMapOf).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
			names <- key.Name
			return fmt.Errorf("%T is not to be had", object)
		},
	}).Build()
	watched = &informers{FakeInformers: informertest.FakeInformers{Scheme: scheme}}
	mgr, err := ctrl.NewManager(&rest.Config{}, ctrl.Options{
		Scheme: scheme, Logger: logr.Discard(), Metrics: metrics.Options{BindAddress: "0"}, Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
		NewCache:  func(*rest.Config, cache.Options) (cache.Cache, error) { return watched, nil },
		NewClient: func(*rest.Config, client.Options) (client.Client, error) { return c, nil },
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(v1.GroupVersion.WithKind("Memcached"), meta.RESTScopeNamespace)
			return mapper, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &MemcachedReconciler{Client: c, APIReader: c, Recorder: events.NewFakeRecorder(10), ConfigMaps: true}
	if err := r.SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	// When it works, it watches all that it will.
	for {
		watched.of(t, v1.GroupVersion.WithKind("Memcached")).Add(&v1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "first"}})
		select {
		case <-names:
			return watched, names
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Each event leads to the reconciliation of the Memcached that it concerns: by the owner, by the annotation of a pod, by the name in the
// spec (EnqueueRequestsFromMapFunc). Events that show nowhere lead to none.
func TestWatches(t *testing.T) {
	owned := metav1.ObjectMeta{Namespace: "ns", Name: "memcached-m", ResourceVersion: "1", Generation: 1, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: v1.GroupVersion.String(), Kind: "Memcached", Name: "m", Controller: new(true)}}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", Annotations: map[string]string{operand.OwnerAnnotation: "m"}}}
	stranger := pod.DeepCopy()
	stranger.Annotations = nil
	labelled, ready := pod.DeepCopy(), pod.DeepCopy()
	labelled.Labels = map[string]string{"a": "b"}
	ready.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	configMap := func(name, version string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: version}}
	}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: owned}
	counted := budget.DeepCopy()
	counted.ResourceVersion, counted.Status.CurrentHealthy = "2", 1
	named := &v1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}, Spec: v1.MemcachedSpec{Cache: v1.Cache{ExtraArgsFrom: &v1.ConfigMapReference{Name: "args"}}}}
	for name, test := range map[string]struct {
		kind        schema.GroupVersionKind
		old, object client.Object // old is nil if the object is new
		none        bool
	}{
		"a Memcached":                     {kind: v1.GroupVersion.WithKind("Memcached"), object: named},
		"its Deployment":                  {kind: appsv1.SchemeGroupVersion.WithKind("Deployment"), object: &appsv1.Deployment{ObjectMeta: owned}},
		"its Service":                     {kind: corev1.SchemeGroupVersion.WithKind("Service"), object: &corev1.Service{ObjectMeta: owned}},
		"its NetworkPolicy":               {kind: networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"), object: &networkingv1.NetworkPolicy{ObjectMeta: owned}},
		"its PodDisruptionBudget":         {kind: policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), object: budget},
		"its PodDisruptionBudget's count": {kind: policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), old: budget, object: counted, none: true},
		"its pod":                         {kind: corev1.SchemeGroupVersion.WithKind("Pod"), object: pod},
		"its pod, ready":                  {kind: corev1.SchemeGroupVersion.WithKind("Pod"), old: pod, object: ready},
		"its pod, with a label":           {kind: corev1.SchemeGroupVersion.WithKind("Pod"), old: pod, object: labelled, none: true},
		"another's pod":                   {kind: corev1.SchemeGroupVersion.WithKind("Pod"), object: stranger, none: true},
		"the ConfigMap that it names":     {kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), object: configMap("args", "1")},
		"that ConfigMap, changed":         {kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), old: configMap("args", "1"), object: configMap("args", "2")},
		"that ConfigMap, listed again":    {kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), old: configMap("args", "1"), object: configMap("args", "1"), none: true},
		"another ConfigMap":               {kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), object: configMap("other", "1"), none: true},
	} {
		t.Run(name, func(t *testing.T) {
			watched, reconciled := watching(t, named)
			informer := watched.of(t, test.kind)
			if test.old == nil {
				informer.Add(test.object)
			} else {
				informer.Update(test.old, test.object)
			}
			wait := 10 * time.Second
			if test.none {
				wait = 100 * time.Millisecond
			}
			for ended := time.After(wait); ; {
				select {
				case got := <-reconciled:
					if got == "first" {
						continue
					}
					if test.none || got != "m" {
						t.Errorf("%s is reconciled", got)
					}
				case <-ended:
					if !test.none {
						t.Error("nothing is reconciled")
					}
				}
				break
			}
		})
	}
}

// The arguments of the ConfigMap follow the Memcached's own.
func TestConfigMap(t *testing.T) {
	t.Parallel()
	m := &v1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}, Spec: v1.MemcachedSpec{Cache: v1.Cache{ExtraArgs: []string{"-v"}, ExtraArgsFrom: &v1.ConfigMapReference{Name: "args"}}}}
	for name, test := range map[string]struct {
		on   bool
		data map[string]string
		want string
	}{
		"two":           {true, map[string]string{"args": "-I 2m\n\n  --slab-reassign \n"}, "[-v -I 2m --slab-reassign]"},
		"another key":   {true, map[string]string{"conf": "-v"}, "[-v]"},
		"before 0.6.0":  {false, map[string]string{"args": "-I 2m"}, "[-v]"},
		"no ConfigMap":  {true, nil, ""},
		"a bad option ": {true, map[string]string{"args": "--port=1"}, "[-v --port=1]"},
	} {
		t.Run(name, func(t *testing.T) {
			one := newReconciler(t, m.DeepCopy(), func(context.Context) error { return nil })
			one.ConfigMaps = test.on
			if test.data != nil {
				if err := one.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "args"}, Data: test.data}); err != nil {
					t.Fatal(err)
				}
			}
			got, err := one.withConfigMap(t.Context(), m)
			if test.want == "" {
				if err == nil {
					t.Error("no error")
				}
				return
			}
			if err != nil || fmt.Sprint(got.Spec.Cache.ExtraArgs) != test.want || len(m.Spec.Cache.ExtraArgs) != 1 {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}
