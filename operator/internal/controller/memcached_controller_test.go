package controller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
	"github.com/olmkit/olmkit/operator/internal/admission"
	"github.com/olmkit/olmkit/operator/internal/operand"
)

func TestDesired(t *testing.T) {
	t.Parallel()
	quantity := func(s string) *resource.Quantity { q := resource.MustParse(s); return &q }
	for name, test := range map[string]struct {
		spec   v1.MemcachedSpec
		golden string
	}{
		"what the schema defaults": {v1.MemcachedSpec{
			Replicas: v1.DefaultReplicas,
			Service:  v1.Service{Port: v1.DefaultPort},
			Cache:    v1.Cache{MemoryMegabytes: v1.DefaultMemoryMegabytes, MaxConnections: v1.DefaultMaxConnections},
		}, "small"},
		"nothing":                 {v1.MemcachedSpec{}, "small"},
		"the default image, said": {v1.MemcachedSpec{Image: &v1.Image{Repository: "docker.io/library/memcached", Tag: "1.6.39"}}, "small"},
		"a tag alone":             {v1.MemcachedSpec{Image: &v1.Image{Tag: "1.6.39"}}, "small"},
		"everything": {v1.MemcachedSpec{
			Replicas: 2,
			Image:    &v1.Image{Tag: "1.6.39", PullPolicy: "Always"},
			Service:  v1.Service{Port: 11300},
			Cache:    v1.Cache{MemoryMegabytes: 1000, MaxConnections: 5000, ExtraArgs: []string{"--max-item-size=2m", "-v"}},
			Resources: &v1.Resources{
				Requests: v1.ResourceList{CPU: quantity("250m")},
				Limits:   v1.ResourceList{Memory: quantity("2Gi")},
			},
		}, "full"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &v1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "m", Namespace: "ns", UID: "uid"}, Spec: test.spec}
			d := Desired(m, "docker.io/library/memcached:1.6.39")
			for kind, object := range map[string]any{"deployment": operand.Deployment(d), "service": operand.Service(d)} {
				got, err := yaml.Marshal(object)
				if err != nil {
					t.Fatal(err)
				}
				want, err := os.ReadFile("../operand/testdata/" + test.golden + "-" + kind + ".yaml")
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), string(got)); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestMemcachedChanged(t *testing.T) {
	t.Parallel()
	settled := v1.Memcached{
		ObjectMeta: metav1.ObjectMeta{Generation: 3, ResourceVersion: "1", Finalizers: []string{Finalizer}},
		Spec:       v1.MemcachedSpec{Replicas: 2, Cache: v1.Cache{MemoryMegabytes: 128}},
		Status:     v1.MemcachedStatus{ObservedGeneration: 3, ReadyReplicas: 1},
	}
	now := metav1.Now()
	for name, test := range map[string]struct {
		change func(*v1.Memcached)
		want   bool
	}{
		"nothing":                               {func(*v1.Memcached) {}, false},
		"an annotation":                         {func(m *v1.Memcached) { m.Annotations = map[string]string{"a": "b"} }, false},
		"a label, which a selector may ask for": {func(m *v1.Memcached) { m.Labels = map[string]string{"a": "b"} }, true},
		"its finalizer, taken away":             {func(m *v1.Memcached) { m.Finalizers = nil }, true},
		"the status that was written":           {func(m *v1.Memcached) { m.Status.ReadyReplicas = 2 }, false},
		"the spec":                              {func(m *v1.Memcached) { m.Generation, m.Spec.Replicas = 4, 3 }, true},
		"what an older version forgot":          {func(m *v1.Memcached) { m.Spec.Cache.MemoryMegabytes = 64 }, true},
		"a status that an older version forgot": {func(m *v1.Memcached) { m.Status = v1.MemcachedStatus{} }, true},
		"its deletion":                          {func(m *v1.Memcached) { m.DeletionTimestamp = &now }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after := settled.DeepCopy()
			after.ResourceVersion = "2"
			test.change(after)
			if got := memcachedChanged().Update(event.UpdateEvent{ObjectOld: settled.DeepCopy(), ObjectNew: after}); got != test.want {
				t.Errorf("passed: %v", got)
			}
		})
	}
}

// What nobody but the author can mend waits for the author; what time can mend is tried again.
func TestStatusOverwritten(t *testing.T) {
	t.Parallel()
	at := func(version string, ready int32, replicas int32) *v1.Memcached {
		return &v1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", ResourceVersion: version},
			Spec: v1.MemcachedSpec{Replicas: replicas}, Status: v1.MemcachedStatus{ReadyReplicas: ready}}
	}
	r := &MemcachedReconciler{}
	wrote(&r.written, client.ObjectKey{Namespace: "ns", Name: "m"}, "2")
	for name, test := range map[string]struct {
		before, after *v1.Memcached
		want          bool
	}{
		"the operator's own write": {at("1", 0, 1), at("2", 1, 1), false},
		"somebody else's":          {at("2", 1, 1), at("3", 4, 1), true},
		"another spec":             {at("2", 1, 1), at("3", 1, 2), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := r.statusOverwritten().Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}); got != test.want {
				t.Errorf("passes: %v", got)
			}
		})
	}
}

// Of what fails because the manager ends nothing is told; of what fails because the API server is too slow it is.
func TestEnd(t *testing.T) {
	t.Parallel()
	m := &v1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "m", Namespace: "ns"}}
	for name, test := range map[string]struct {
		context func() (context.Context, context.CancelFunc)
		want    error
	}{
		"the manager ends": {func() (context.Context, context.CancelFunc) { return context.WithCancel(t.Context()) }, nil},
		"the time is over": {func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), 0) }, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := test.context()
			defer cancel()
			r := newReconciler(t, m, func(ctx context.Context) error {
				cancel()
				<-ctx.Done()
				return ctx.Err()
			})
			if _, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(m)}); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

func TestResultFor(t *testing.T) {
	t.Parallel()
	var (
		invalid    = admission.Check(&v1.Memcached{Spec: v1.MemcachedSpec{Cache: v1.Cache{ExtraArgs: []string{"-p1"}}}})
		other      = errors.New("connection refused")
		forbidden  = apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "m", other)
		conflict   = apierrors.NewConflict(schema.GroupResource{Resource: "memcacheds"}, "m", other)
		terminated = apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "m", other)
	)
	terminated.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, test := range map[string]struct {
		of     error
		result reconcile.Result
		err    error
	}{
		"no error":                     {nil, reconcile.Result{}, nil},
		"an invalid one":               {invalid, reconcile.Result{}, nil},
		"a taken name":                 {fmt.Errorf("x: %w", &operand.TakenError{}), reconcile.Result{RequeueAfter: takenRetry}, nil},
		"a namespace that goes":        {fmt.Errorf("x: %w", terminated), reconcile.Result{}, nil},
		"an object that is gone":       {fmt.Errorf("x: %w", apierrors.NewNotFound(schema.GroupResource{}, "m")), reconcile.Result{}, nil},
		"somebody was faster":          {fmt.Errorf("x: %w", conflict), reconcile.Result{RequeueAfter: conflictRetry}, nil},
		"too many requests":            {fmt.Errorf("x: %w", apierrors.NewTooManyRequests("later", 7)), reconcile.Result{RequeueAfter: 7 * time.Second}, nil},
		"a server that times out":      {apierrors.NewServerTimeout(schema.GroupResource{}, "patch", 3), reconcile.Result{RequeueAfter: 3 * time.Second}, nil},
		"a right that is missing":      {forbidden, reconcile.Result{}, forbidden},
		"too many, until no one knows": {apierrors.NewTooManyRequests("later", 0), reconcile.Result{}, apierrors.NewTooManyRequests("later", 0)},
		"a server that breaks":         {apierrors.NewInternalError(other), reconcile.Result{}, apierrors.NewInternalError(other)},
		"anything else":                {other, reconcile.Result{}, other},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, err := resultFor(test.of)
			if result != test.result || (err == nil) != (test.err == nil) || err != nil && err.Error() != test.err.Error() {
				t.Errorf("%+v %v", result, err)
			}
		})
	}
}

// A cache that does not know the operator's own write is given time, but not for ever: etcd may have been restored from
// before the write.
func TestCacheBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &v1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "m", Namespace: "ns", ResourceVersion: "5"}}
		runs := 0
		r := newReconciler(t, m, func(context.Context) error {
			runs++
			return nil
		})
		request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(m)}
		later := m.DeepCopy()
		later.ResourceVersion = "100"
		wrote(&r.written, client.ObjectKeyFromObject(later), later.ResourceVersion)
		looks := 0
		for ; runs == 0 && looks < 20; looks++ {
			result, err := r.Reconcile(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			if looks == 0 && (runs > 0 || result.RequeueAfter == 0) {
				t.Error("the cache is given no time")
			}
			time.Sleep(result.RequeueAfter)
		}
		if runs == 0 {
			t.Fatalf("after %d looks it still waits for its write", looks)
		}
	})
}

// newReconciler returns one of a cluster that has m alone, in which applying an object is f.
func newReconciler(t *testing.T, m *v1.Memcached, f func(context.Context) error) *MemcachedReconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1.AddToScheme, clientgoscheme.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(m).WithStatusSubresource(m).WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(ctx context.Context, _ client.WithWatch, _ runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			return f(ctx)
		},
	}).Build()
	return &MemcachedReconciler{Client: c, APIReader: c, Recorder: events.NewFakeRecorder(10)}
}

// The last transition of the condition of a deleted Memcached is when its deletion began.
func TestSetDeleting(t *testing.T) {
	t.Parallel()
	long := metav1.NewTime(time.Now().Add(-time.Hour))
	m := &v1.Memcached{}
	m.Status.Conditions = []metav1.Condition{{Type: v1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: "RollingOut", LastTransitionTime: long}}
	setDeleting(m)
	began := deletingCondition(m)
	if began == nil || !began.LastTransitionTime.After(long.Time) {
		t.Fatalf("%+v", m.Status.Conditions)
	}
	began.LastTransitionTime = long
	setDeleting(m)
	if got := deletingCondition(m); got == nil || !got.LastTransitionTime.Equal(&long) || len(m.Status.Conditions) != 1 {
		t.Errorf("set again: %+v", m.Status.Conditions)
	}
}

// A step of a rollout waits for what comes next, for a second; its end, and what goes wrong, do not.
func TestRolloutSteps(t *testing.T) {
	t.Parallel()
	const (
		available, degraded, progressing = 1, 2, 4
		none                             = -1
	)
	status := func(is int) v1.MemcachedStatus {
		if is == none {
			return v1.MemcachedStatus{}
		}
		var s v1.MemcachedStatus
		for kind, bit := range map[string]int{v1.ConditionAvailable: available, v1.ConditionDegraded: degraded, v1.ConditionProgressing: progressing} {
			condition := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: "R"}
			if is&bit != 0 {
				condition.Status = metav1.ConditionTrue
			}
			meta.SetStatusCondition(&s.Conditions, condition)
		}
		return s
	}
	now := metav1.Now()
	for name, test := range map[string]struct {
		before, after int
		deleted, want bool
	}{
		"it begins":                   {none, progressing, false, true},
		"it begins again":             {available, available | progressing, false, true},
		"the first servers are ready": {progressing, progressing | available, false, true},
		"it ends":                     {progressing | available, available, false, false},
		"it ends at once":             {none, available, false, false},
		"no server is ready any more": {available, progressing, false, false},
		"it fails":                    {progressing, progressing | degraded, false, false},
		"it fails at once":            {none, progressing | degraded, false, false},
		"it does not fail any more":   {progressing | degraded, progressing, false, false},
		"it is being deleted":         {available, available | progressing, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after := &v1.Memcached{Status: status(test.before)}, &v1.Memcached{Status: status(test.after)}
			if test.deleted {
				after.DeletionTimestamp = &now
			}
			if got := rollsOut(before, after); got != test.want {
				t.Errorf("waits: %v", got)
			}
		})
	}

	m := &v1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "u"}, Spec: v1.MemcachedSpec{Replicas: 1}}
	r := newReconciler(t, m, func(context.Context) error { return nil })
	look := func() (time.Duration, int) {
		t.Helper()
		var read v1.Memcached
		key := client.ObjectKeyFromObject(m)
		if err := r.Get(t.Context(), key, &read); err != nil {
			t.Fatal(err)
		}
		wait, err := r.updateStatus(t.Context(), &read, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Get(t.Context(), key, &read); err != nil {
			t.Fatal(err)
		}
		return wait, len(read.Status.Conditions)
	}
	for range 2 {
		if wait, told := look(); wait <= 0 || wait > rolloutStep || told != 0 {
			t.Errorf("waits %s, and tells %d conditions", wait, told)
		}
	}
	r.postponed.Store(client.ObjectKeyFromObject(m), time.Now().Add(-rolloutStep))
	for range 2 { // there is nothing new the second time
		if wait, told := look(); wait != 0 || told != 3 {
			t.Errorf("after a second it waits %s, and tells %d conditions", wait, told)
		}
	}
}

// A Deployment of another size is told of once: not again while the cache does not know that it was mended.
func TestMismatched(t *testing.T) {
	t.Parallel()
	m := &v1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "u"}, Spec: v1.MemcachedSpec{Replicas: 2}}
	r := newReconciler(t, m, func(context.Context) error { return nil })
	told := 0
	r.Mismatched = func(string, string) { told++ }
	live := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: operand.Name("m"), OwnerReferences: []metav1.OwnerReference{{UID: "u", Controller: new(true)}}}}
	live.Spec.Replicas = new(int32(5))
	if err := r.Create(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	for i, test := range []struct {
		mended string // the version that the operator's write led to
		told   int
	}{{"", 1}, {"1000", 1}, {live.ResourceVersion, 2}} {
		if test.mended != "" {
			wrote(&r.applied, client.ObjectKeyFromObject(live), test.mended)
		}
		if _, err := r.reconcileDeployment(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		if told != test.told {
			t.Errorf("look %d: told %d times", i, told)
		}
	}
	r.forget(client.ObjectKeyFromObject(m))
	if _, there := r.applied.Load(client.ObjectKeyFromObject(live)); there {
		t.Error("what is gone is remembered")
	}
}
