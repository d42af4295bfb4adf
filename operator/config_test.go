package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/resid"

	"github.com/olmkit/olmkit/operator/internal/crdconversion"
)

// releases is each release with the folder of its configuration.
func releases(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{"v0.5.0": "config"}
	folders, err := filepath.Glob("releases/v*")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		out[filepath.Base(folder)] = filepath.Join(folder, "config")
	}
	if len(out) != 7 {
		t.Fatalf("%d releases", len(out))
	}
	return out
}

func build(t *testing.T, folder string) resmap.ResMap {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatal(err)
	}
	return resources
}

// What a release says about the API's versions: served, stored (!) and deprecated (~), in the order of the file.
func TestVersionsByRelease(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"v0.1.0":      "v1alpha1!",
		"v0.2.0":      "v1alpha1! v1beta1",
		"v0.3.0":      "v1! v1alpha1 v1beta1",
		"v0.3.1":      "v1! v1alpha1 v1beta1",
		"v0.4.0":      "v1! v1alpha1~ v1beta1",
		"v0.5.0":      "v1! (v1alpha1~) v1beta1",
		"v0.6.0-rc.1": "v1! v1beta1",
	}
	for release, folder := range releases(t) {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			resources := build(t, filepath.Join(folder, "manifests"))
			crd := one(t, resources, "CustomResourceDefinition", "memcacheds.cache.example.com")
			var got []string
			for _, v := range slice(crd, "spec", "versions") {
				version := v.(map[string]any)
				name := version["name"].(string)
				if version["storage"] == true {
					name += "!"
				}
				if version["deprecated"] == true {
					name += "~"
				}
				if version["served"] != true {
					name = "(" + name + ")"
				}
				got = append(got, name)
			}
			if diff := cmp.Diff(want[release], strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
			service := value(crd, "spec", "conversion", "webhook", "clientConfig", "service")
			if release == "v0.1.0" {
				if service != nil {
					t.Error("converts with one version")
				}
			} else if label := value(crd, "metadata", "labels", "cache.example.com/conversion"); label != "kept" {
				t.Errorf("label %v, by which the webhook that keeps the conversion finds the CRD", label)
			} else if diff := cmp.Diff(map[string]any{"name": "memcached-operator-webhook-service", "namespace": "memcached-operator-system", "path": "/convert"}, service); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The parts that an upgrade relies on are the same in all releases.
func TestManagerDeployment(t *testing.T) {
	t.Parallel()
	for release, folder := range releases(t) {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			resources := build(t, filepath.Join(folder, "manifests"))
			deployment := one(t, resources, "Deployment", "memcached-operator-controller-manager")
			pod := value(deployment, "spec", "template", "spec").(map[string]any)
			container := slice(pod, "containers")[0].(map[string]any)
			if diff := cmp.Diff("ghcr.io/olmkit/memcached-operator:"+release, container["image"]); diff != "" {
				t.Error(diff)
			}
			if pod["serviceAccountName"] != "memcached-operator-controller-manager" || pod["volumes"] != nil {
				t.Errorf("account %v, volumes %v", pod["serviceAccountName"], pod["volumes"])
			}
			for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
				for _, r := range resources.Resources() {
					if r.GetKind() != kind {
						continue
					}
					configuration, err := r.Map()
					if err != nil {
						t.Fatal(err)
					}
					for _, hook := range slice(configuration, "webhooks") {
						service := value(hook, "clientConfig", "service").(map[string]any)
						if service["name"] != "memcached-operator-webhook-service" || service["namespace"] != "memcached-operator-system" {
							t.Errorf("%s calls %v", r.CurId(), service)
						}
					}
				}
			}
			// A sample for each served version, unprefixed, for the bundle's examples.
			samples := 0
			for _, r := range resources.Resources() {
				if r.GetKind() == "Memcached" {
					samples++
					if !strings.HasPrefix(r.GetName(), "memcached-v1") {
						t.Errorf("sample %s", r.CurId())
					}
				}
			}
			owned := slice(one(t, resources, "ClusterServiceVersion", "memcached-operator.v0.0.0"), "spec", "customresourcedefinitions", "owned")
			if samples == 0 || samples != len(owned) {
				t.Errorf("%d samples for %d owned versions", samples, len(owned))
			}
		})
	}
}

// Every release that converts keeps its conversion: it is asked about its own CRD, and no other, and stands in nobody's
// way when it does not answer.
func TestConversionIsKept(t *testing.T) {
	t.Parallel()
	for release, folder := range releases(t) {
		if release == "v0.1.0" {
			continue
		}
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			configuration := one(t, build(t, filepath.Join(folder, "manifests")), "MutatingWebhookConfiguration", "memcached-operator-mutating-webhook-configuration")
			var got []any
			for _, hook := range slice(configuration, "webhooks") {
				if value(hook, "clientConfig", "service", "path") == crdconversion.Path {
					got = append(got, value(hook, "objectSelector"), value(hook, "failurePolicy"), value(hook, "rules"))
				}
			}
			if diff := cmp.Diff([]any{
				map[string]any{"matchLabels": map[string]any{"cache.example.com/conversion": "kept"}}, "Ignore",
				[]any{map[string]any{"apiGroups": []any{"apiextensions.k8s.io"}, "apiVersions": []any{"v1"}, "operations": []any{"UPDATE"}, "resources": []any{"customresourcedefinitions"}}},
			}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Without OLM the manager is its own authority, may be it, and finds its Service and configurations by their names.
func TestDeploymentWithoutOLM(t *testing.T) {
	t.Parallel()
	resources := build(t, "config/default")
	deployment := one(t, resources, "Deployment", "memcached-operator-controller-manager")
	container := slice(deployment, "spec", "template", "spec", "containers")[0]
	if args := slice(container, "args"); !slices.Contains(args, any("--self-signed-certificate")) {
		t.Errorf("arguments %v", args)
	}
	one(t, resources, "Service", "memcached-operator-webhook-service")
	one(t, resources, "MutatingWebhookConfiguration", "memcached-operator-mutating-webhook-configuration")
	one(t, resources, "ValidatingWebhookConfiguration", "memcached-operator-validating-webhook-configuration")
	for _, kind := range []string{"Role", "ClusterRole"} {
		one(t, resources, kind, "memcached-operator-authority")
		one(t, resources, kind+"Binding", "memcached-operator-authority")
	}
	for release, folder := range releases(t) {
		for _, r := range build(t, filepath.Join(folder, "manifests")).Resources() {
			if strings.HasSuffix(r.GetName(), "-authority") {
				t.Errorf("%s is in the bundle of %s", r.CurId(), release)
			}
		}
	}
}

// The operator for one namespace may do there what the operator for all may do everywhere, and elsewhere nothing with objects in
// namespaces.
func TestNamespaceScope(t *testing.T) {
	t.Parallel()
	resources := build(t, "config/namespaced")
	role := one(t, resources, "Role", "memcached-operator-watched")
	cluster := one(t, resources, "ClusterRole", "memcached-operator-manager-role")
	both := slices.Concat(rights(role), rights(cluster))
	all := rights(one(t, build(t, "config/default"), "ClusterRole", "memcached-operator-manager-role"))
	// The storage migration is about the whole cluster.
	all = slices.DeleteFunc(all, func(right string) bool {
		return right == "patch customresourcedefinitions/status.apiextensions.k8s.io [memcacheds.cache.example.com]"
	})
	slices.Sort(both)
	slices.Sort(all)
	if diff := cmp.Diff(all, both); diff != "" {
		t.Error(diff)
	}
	for _, right := range rights(cluster) {
		for _, namespaced := range []string{"memcacheds.cache.example.com []", "pods", "services", "deployments", "events", "policies", "budgets"} {
			if strings.Contains(right, namespaced) {
				t.Errorf("the ClusterRole grants %s", right)
			}
		}
	}
	args := slice(slice(one(t, resources, "Deployment", "memcached-operator-controller-manager"), "spec", "template", "spec", "containers")[0], "args")
	if want := "--watch-namespace=" + value(role, "metadata", "namespace").(string); !slices.Contains(args, any(want)) {
		t.Errorf("arguments %v lack %s", args, want)
	}
}

// rights is what a role grants, one verb on one resource each.
func rights(role map[string]any) []string {
	var out []string
	for _, rule := range slice(role, "rules") {
		for _, group := range slice(rule, "apiGroups") {
			for _, resource := range slice(rule, "resources") {
				for _, verb := range slice(rule, "verbs") {
					out = append(out, fmt.Sprintf("%s %s.%s %v", verb, resource, group, slice(rule, "resourceNames")))
				}
			}
		}
	}
	return out
}

// The current release's version is said in its code and in its configuration.
func TestVersion(t *testing.T) {
	t.Parallel()
	code, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(code), `Version:     "0.5.0"`) {
		t.Error("main.go is of another release than config/manager")
	}
}

func one(t *testing.T, resources resmap.ResMap, kind, name string) map[string]any {
	t.Helper()
	found := resources.GetMatchingResourcesByAnyId(func(id resid.ResId) bool { return id.Kind == kind && id.Name == name })
	if len(found) != 1 {
		t.Fatalf("%d of %s %s", len(found), kind, name)
	}
	object, err := found[0].Map()
	if err != nil {
		t.Fatal(err)
	}
	return object
}

func value(object any, path ...string) any {
	for _, key := range path {
		fields, _ := object.(map[string]any)
		object = fields[key]
	}
	return object
}

func slice(object any, path ...string) []any {
	out, _ := value(object, path...).([]any)
	return out
}
