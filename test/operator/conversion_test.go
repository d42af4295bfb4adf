//go:build linux

package operator_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
	"github.com/olmkit/olmkit/operator/api/v1alpha1"
	"github.com/olmkit/olmkit/operator/api/v1beta1"
)

const apiGroup = "cache.example.com"

// releaseFolder is a folder from which another release is deployed as config/default deploys the newest one.
func releaseFolder(t *testing.T, version string) string {
	t.Helper()
	folder := t.TempDir()
	from, err := filepath.Abs(filepath.Join(root, "operator"))
	must(t, err)
	relative, err := filepath.Rel(folder, filepath.Join(from, "releases", version, "config", "operator"))
	must(t, err)
	var kustomization map[string]any
	data, err := os.ReadFile(filepath.Join(from, "config", "default", "kustomization.yaml"))
	must(t, err)
	must(t, yaml.Unmarshal(data, &kustomization))
	kustomization["resources"] = []string{relative, "authority.yaml"}
	data, err = yaml.Marshal(kustomization)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(folder, "kustomization.yaml"), data, 0o644))
	data, err = os.ReadFile(filepath.Join(from, "config", "default", "authority.yaml"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(folder, "authority.yaml"), data, 0o644))
	return folder
}

// watches has a manager watch one namespace.
func watches(namespace string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		c := &d.Spec.Template.Spec.Containers[0]
		for i := range c.Env {
			if c.Env[i].Name == "WATCH_NAMESPACE" {
				c.Env[i] = corev1.EnvVar{Name: "WATCH_NAMESPACE", Value: namespace}
			}
		}
	}
}

// Objects with every field set, and with few, go into the API server in each version that a release serves. Whoever then
// reads and writes them in the other versions changes nothing, and etcd holds them in the version of the release. In short,
// one release of each set of versions does it.
func TestConversionByTheAPIServer(t *testing.T) {
	for _, test := range []struct {
		release, stored string
		served          []string
		warned          bool // whether readers of v1alpha1 are warned
	}{
		{"v0.2.0", "v1alpha1", []string{"v1alpha1", "v1beta1"}, false},
		{"v0.3.0", "v1", []string{"v1alpha1", "v1beta1", "v1"}, false},
		{"v0.3.1", "v1", []string{"v1alpha1", "v1beta1", "v1"}, false},
		{"v0.4.0", "v1", []string{"v1alpha1", "v1beta1", "v1"}, true},
		{"v0.5.0", "v1", []string{"v1beta1", "v1"}, false},
		{"v0.6.0-rc.1", "v1", []string{"v1beta1", "v1"}, false},
	} {
		if testing.Short() && slices.Contains([]string{"v0.3.0", "v0.3.1", "v0.6.0-rc.1"}, test.release) {
			continue
		}
		t.Run(test.release, func(t *testing.T) {
			folder := config("default")
			if test.release != release {
				folder = releaseFolder(t, test.release)
				must(t, world.LoadImage(t.Context(), "ghcr.io/olmkit/memcached-operator:"+test.release, filepath.Join(root, "bin", "memcached-operator", test.release, "manager")))
			}
			// Nobody but the test writes the objects.
			deployFrom(t, folder, watches("elsewhere"))
			ns := namespace(t)
			random := rand.New(rand.NewPCG(1, 2))
			for _, written := range test.served {
				for i := range 12 {
					full := i%2 == 0
					name := fmt.Sprintf("%s-%d", written, i)
					object := randomMemcached(random, written, full)
					object.SetNamespace(ns)
					object.SetName(name)
					status := object.Object["status"]
					must(t, admin.Create(t.Context(), object))
					if full {
						object.Object["status"] = status
						must(t, admin.Status().Update(t.Context(), object))
					}
					stored(t, ns, name, test.stored)
					for _, other := range test.served {
						if other == written {
							continue
						}
						shown := readIn(t, ns, name, other)
						must(t, admin.Update(t.Context(), shown))
						must(t, admin.Status().Update(t.Context(), shown))
						stored(t, ns, name, test.stored)
						if diff := gocmp.Diff(said(t, object), said(t, readIn(t, ns, name, written))); diff != "" {
							t.Errorf("%s by way of %s: %s", written, other, diff)
						}
					}
				}
			}
			if got := warnings(t, ns, test.served[0]); slices.Contains(got, "cache.example.com/v1alpha1 Memcached is deprecated and not served from release 0.5.0 on; write cache.example.com/v1") != test.warned {
				t.Errorf("readers of %s are warned: %q", test.served[0], got)
			}
		})
	}
}

// The first release has one version, and no webhook.
func TestTheFirstReleaseStoresWhatItServes(t *testing.T) {
	objects := manifests(t, filepath.Join(root, "operator", "releases", "v0.1.0", "config", "crd"))
	t.Cleanup(func() { remove(t, objects) })
	apply(t, objects...)
	ns := namespace(t)
	object := randomMemcached(rand.New(rand.NewPCG(1, 2)), "v1alpha1", true)
	object.SetNamespace(ns)
	object.SetName("m")
	eventually(t, "it is stored", func() error { return admin.Create(t.Context(), object) })
	stored(t, ns, "m", "v1alpha1")
	must(t, admin.Delete(t.Context(), object))
}

func readIn(t *testing.T, ns, name, version string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(apiGroup + "/" + version)
	object.SetKind("Memcached")
	must(t, admin.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, object))
	return object
}

// stored checks in which version etcd holds a Memcached.
func stored(t *testing.T, ns, name, version string) {
	t.Helper()
	data, err := world.Stored(t.Context(), apiGroup, "memcacheds", ns, name)
	must(t, err)
	var kind metav1.TypeMeta
	must(t, json.Unmarshal(data, &kind))
	if kind.APIVersion != apiGroup+"/"+version {
		t.Errorf("%s is stored in %s, not %s", name, kind.APIVersion, version)
	}
}

// said is what of an object its author says, without what each write changes, and as Go's types have it: one way to write
// a quantity, and no difference between nothing and an empty object.
func said(t *testing.T, object *unstructured.Unstructured) client.Object {
	t.Helper()
	typed := map[string]client.Object{"v1alpha1": &v1alpha1.Memcached{}, "v1beta1": &v1beta1.Memcached{}, "v1": &v1.Memcached{}}[object.GroupVersionKind().Version]
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true))
	typed.SetResourceVersion("")
	typed.SetManagedFields(nil)
	typed.SetGeneration(0)
	return typed
}

// warnings is what the API server warns readers of a version of.
func warnings(t *testing.T, ns, version string) []string {
	t.Helper()
	heard := &hearer{}
	c := rest.CopyConfig(world.Config())
	c.WarningHandler = heard
	asked, err := client.New(c, client.Options{Scheme: admin.Scheme(), Mapper: admin.RESTMapper()})
	must(t, err)
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(apiGroup + "/" + version)
	list.SetKind("MemcachedList")
	must(t, asked.List(t.Context(), list, client.InNamespace(ns)))
	return heard.said()
}

type hearer struct {
	mu    sync.Mutex
	texts []string
}

func (h *hearer) HandleWarningHeader(code int, _, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if code == 299 && text != "" {
		h.texts = append(h.texts, text)
	}
}

func (h *hearer) said() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.texts)
}

// randomMemcached is a valid object of a version: with every field set, or with a few.
func randomMemcached(r *rand.Rand, version string, full bool) *unstructured.Unstructured {
	some := func() bool { return full || r.IntN(3) == 0 }
	text := func() string {
		letters := []rune(`abc XYZ 0189 äß日本 "quoted" \ {}[]:,'=-_/.`)
		out := make([]rune, r.IntN(20))
		for i := range out {
			out[i] = letters[r.IntN(len(letters))]
		}
		return string(out)
	}
	one := func(texts ...string) string { return texts[r.IntN(len(texts))] }
	digest := "sha256:" + strings.Repeat("0a", 32)
	spec, status := map[string]any{}, map[string]any{}
	metadata := map[string]any{"labels": map[string]any{"example.com/label": "x"}, "annotations": map[string]any{"example.com/text": text()}}
	set := func(in map[string]any, name string, v any) {
		if some() {
			in[name] = v
		}
	}
	size := int64(1 + r.IntN(5))
	var nodes []any
	for range 1 + r.IntN(4) {
		nodes = append(nodes, fmt.Sprintf("pod-%d", r.IntN(100)))
	}
	conditions := []any{map[string]any{
		"type": "Available", "status": one("True", "False", "Unknown"), "reason": "Because", "message": text(),
		"lastTransitionTime": "2024-01-02T03:04:05Z", "observedGeneration": int64(r.IntN(9)),
	}}
	switch version {
	case "v1alpha1":
		spec["size"] = size
		set(status, "nodes", nodes)
	case "v1beta1":
		set(spec, "size", size)
		set(spec, "containerPort", int64(1+r.IntN(65535)))
		set(spec, "image", one("memcached", "memcached:1.6", "localhost:5000/a/memcached", "r.example.com:5000/memcached:1@"+digest, "memcached@"+digest))
		set(status, "nodes", nodes)
		set(status, "conditions", conditions)
	case "v1":
		set(spec, "replicas", size)
		image := map[string]any{}
		set(image, "repository", one("memcached", "localhost:5000/a/memcached", "r.example.com:5000/memcached"))
		set(image, "tag", one("1.6", "latest", "_x.y-z"))
		set(image, "digest", digest)
		set(image, "pullPolicy", one("Always", "IfNotPresent", "Never"))
		set(spec, "image", image)
		set(spec, "service", map[string]any{"port": int64(1 + r.IntN(65535))})
		cache := map[string]any{}
		set(cache, "memoryMegabytes", int64(8+r.IntN(100)))
		set(cache, "maxConnections", int64(1+r.IntN(1000)))
		set(cache, "extraArgs", []any{"-v", "--x=" + text(), "-o", "modern"})
		set(spec, "cache", cache)
		resources := map[string]any{}
		set(resources, "requests", map[string]any{"cpu": one("10m", "0.5", "2"), "memory": "512Mi"})
		set(resources, "limits", map[string]any{"cpu": "3", "memory": one("1Gi", "1024Mi", "2e9")})
		set(spec, "resources", resources)
		byName := map[string]any{}
		for _, n := range nodes {
			byName[n.(string)] = map[string]any{"ready": r.IntN(2) == 0}
		}
		set(status, "nodes", byName)
		set(status, "readyReplicas", size)
		set(status, "observedGeneration", int64(1))
		set(status, "conditions", conditions)
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiGroup + "/" + version, "kind": "Memcached", "metadata": metadata, "spec": spec, "status": status}}
}
