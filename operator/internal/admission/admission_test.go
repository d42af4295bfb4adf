package admission

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
)

func TestDefaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ in, want *v1.Image }{
		"no image":             {nil, nil},
		"complete":             {&v1.Image{Repository: "r/m", Tag: "1"}, &v1.Image{Repository: "r/m", Tag: "1"}},
		"a tag alone":          {&v1.Image{Tag: "1.5"}, &v1.Image{Repository: "docker.io/library/memcached", Tag: "1.5"}},
		"a digest alone":       {&v1.Image{Digest: "sha256:00"}, &v1.Image{Repository: "docker.io/library/memcached", Digest: "sha256:00"}},
		"all in one":           {&v1.Image{Repository: " docker://r:5000/m:1@sha256:00 "}, &v1.Image{Repository: "r:5000/m", Tag: "1", Digest: "sha256:00"}},
		"a port is no tag":     {&v1.Image{Repository: "r:5000/m"}, &v1.Image{Repository: "r:5000/m"}},
		"the pull policy only": {&v1.Image{PullPolicy: "Always"}, &v1.Image{PullPolicy: "Always"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := Defaulter{Image: "docker.io/library/memcached:1.6.39"}
			m := &v1.Memcached{Spec: v1.MemcachedSpec{Image: test.in}}
			for range 2 { // a second time changes nothing
				if err := d.Default(t.Context(), m); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want, m.Spec.Image); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestValidation(t *testing.T) {
	t.Parallel()
	quantity := func(s string) *resource.Quantity { q := resource.MustParse(s); return &q }
	for name, test := range map[string]struct {
		spec v1.MemcachedSpec
		want []string // each a field and a part of what is said about it; none if the spec is valid
	}{
		"empty":           {v1.MemcachedSpec{}, nil},
		"image":           {v1.MemcachedSpec{Image: &v1.Image{Repository: "localhost:5000/a/m", Tag: "1"}}, nil},
		"bad image":       {v1.MemcachedSpec{Image: &v1.Image{Repository: "Not An Image"}}, []string{"spec.image", "not an image reference"}},
		"free options":    {v1.MemcachedSpec{Cache: v1.Cache{ExtraArgs: []string{"-v", "--max-item-size=2m", "-o", "modern", "-I", "2m"}}}, nil},
		"managed options": {v1.MemcachedSpec{Cache: v1.Cache{ExtraArgs: []string{"-v", "-p1", "--port", "--mem=1", "-d"}}}, []string{"extraArgs[1]", "sets -p", "extraArgs[2]", "extraArgs[3]", "--memory-limit", "extraArgs[4]"}},
		"resources": {v1.MemcachedSpec{
			Cache:     v1.Cache{MemoryMegabytes: 64},
			Resources: &v1.Resources{Requests: v1.ResourceList{CPU: quantity("1"), Memory: quantity("100Mi")}, Limits: v1.ResourceList{CPU: quantity("1"), Memory: quantity("128Mi")}},
		}, nil},
		"no room": {v1.MemcachedSpec{
			Cache:     v1.Cache{MemoryMegabytes: 128},
			Resources: &v1.Resources{Limits: v1.ResourceList{Memory: quantity("128Mi")}},
		}, []string{"spec.resources.limits.memory", "must exceed spec.cache.memoryMegabytes (128)"}},
		"request over limit, and less than nothing": {v1.MemcachedSpec{
			Resources: &v1.Resources{Requests: v1.ResourceList{CPU: quantity("2"), Memory: quantity("-1")}, Limits: v1.ResourceList{CPU: quantity("1")}},
		}, []string{"spec.resources.requests.cpu", "must not exceed the limit of 1", "spec.resources.requests.memory", "must not be negative"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &v1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: test.spec}
			_, err := Validator{}.ValidateCreate(t.Context(), m)
			if (err == nil) != (test.want == nil) {
				t.Fatalf("got %v", err)
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in: %v", part, err)
				}
			}
			if _, onUpdate := (Validator{}).ValidateUpdate(t.Context(), m, m); (onUpdate == nil) != (err == nil) {
				t.Errorf("an update is judged otherwise: %v", onUpdate)
			}
			leaving := m.DeepCopy()
			now := metav1.Now()
			leaving.DeletionTimestamp = &now
			if _, err := (Validator{}).ValidateUpdate(t.Context(), m, leaving); err != nil {
				t.Errorf("cannot leave: %v", err)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	for reference, warned := range map[string]bool{"": false, "m": true, "m:latest": true, "r:5000/m": true, "m:1": false, "m@sha256:00": false} {
		if got := ImageWarnings("spec.image", reference); (len(got) > 0) != warned {
			t.Errorf("%s: %v", reference, got)
		}
	}
}
