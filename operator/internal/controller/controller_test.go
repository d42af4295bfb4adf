package controller

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
	"github.com/olmkit/olmkit/operator/internal/admission"
	"github.com/olmkit/olmkit/operator/internal/operand"
)

func TestWishes(t *testing.T) {
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
			w := Wish(m, "docker.io/library/memcached:1.6.39")
			for kind, object := range map[string]any{"deployment": operand.Deployment(w), "service": operand.Service(w)} {
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

func TestChanged(t *testing.T) {
	t.Parallel()
	settled := v1.Memcached{
		ObjectMeta: metav1.ObjectMeta{Generation: 3, ResourceVersion: "1"},
		Spec:       v1.MemcachedSpec{Replicas: 2, Cache: v1.Cache{MemoryMegabytes: 128}},
		Status:     v1.MemcachedStatus{ObservedGeneration: 3, ReadyReplicas: 1},
	}
	now := metav1.Now()
	for name, test := range map[string]struct {
		change func(*v1.Memcached)
		want   bool
	}{
		"nothing":                               {func(*v1.Memcached) {}, false},
		"a label":                               {func(m *v1.Memcached) { m.Labels = map[string]string{"a": "b"} }, false},
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
			if got := Changed().Update(event.UpdateEvent{ObjectOld: settled.DeepCopy(), ObjectNew: after}); got != test.want {
				t.Errorf("passed: %v", got)
			}
		})
	}
}

// What nobody but the author can mend waits for the author; what time can mend is tried again.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	invalid := admission.Check(&v1.Memcached{Spec: v1.MemcachedSpec{Cache: v1.Cache{ExtraArgs: []string{"-p1"}}}})
	other := errors.New("connection refused")
	for name, test := range map[string]struct {
		trouble error
		result  reconcile.Result
		err     error
	}{
		"no trouble":     {nil, reconcile.Result{}, nil},
		"an invalid one": {invalid, reconcile.Result{}, nil},
		"a taken name":   {fmt.Errorf("x: %w", &operand.TakenError{}), reconcile.Result{RequeueAfter: takenRetry}, nil},
		"anything else":  {other, reconcile.Result{}, other},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, err := verdict(test.trouble)
			if result != test.result || !errors.Is(err, test.err) {
				t.Errorf("%+v %v", result, err)
			}
		})
	}
}
