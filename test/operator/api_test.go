//go:build linux

package operator_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// refusals is documents that must be refused, each by the version of the API in which it is written.
var refusals = []struct{ name, version, spec string }{
	{"no servers", "v1", "replicas: 0"},
	{"too many servers", "v1", "replicas: 6"},
	{"a size that is no number", "v1", "replicas: three"},
	{"no port", "v1", "service: {port: 0}"},
	{"too high a port", "v1", "service: {port: 65536}"},
	{"too little memory", "v1", "cache: {memoryMegabytes: 7}"},
	{"too much memory", "v1", "cache: {memoryMegabytes: 1048577}"},
	{"no connections", "v1", "cache: {maxConnections: 0}"},
	{"too many arguments", "v1", "cache: {extraArgs: [" + strings.Repeat("-v, ", 16) + "-v]}"},
	{"too long an argument", "v1", "cache: {extraArgs: [" + strings.Repeat("x", 257) + "]}"},
	{"arguments that the operator sets", "v1", `cache: {extraArgs: ["-v", "-p1", "--port=2", "--mem=1", "-d", "-l", "127.0.0.1"]}`},
	{"no image reference", "v1", "image: {repository: Not An Image}"},
	{"a tag with a slash", "v1", "image: {repository: m, tag: a/b}"},
	{"a digest without its algorithm", "v1", "image: {repository: m, digest: abc}"},
	{"a digest that is too short", "v1", "image: {repository: m, digest: 'sha256:abc'}"},
	{"an unknown pull policy", "v1", "image: {pullPolicy: Sometimes}"},
	{"too long an image", "v1", "image: {repository: " + strings.Repeat("x", 1000) + ", tag: " + strings.Repeat("y", 100) + "}"},
	{"no room beside the cache", "v1", "cache: {memoryMegabytes: 128}\nresources: {limits: {memory: 128Mi}}"},
	{"requests over limits", "v1", "resources: {requests: {cpu: 2, memory: 2Gi}, limits: {cpu: 1, memory: 1Gi}}"},
	{"less than nothing", "v1", "resources: {requests: {cpu: -1}}"},
	{"no quantity", "v1", "resources: {limits: {memory: plenty}}"},
	{"a list where a word belongs", "v1", "image: {tag: [a, b]}"},
	{"no servers", "v1beta1", "size: 0"},
	{"too many servers", "v1beta1", "size: 6"},
	{"too high a port", "v1beta1", "containerPort: 70000"},
	{"no image reference", "v1beta1", "image: 'Not An Image'"},
	{"too long an image", "v1beta1", "image: " + strings.Repeat("x", 1025)},
}

func document(t *testing.T, ns, name, version, spec string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(fmt.Sprintf("apiVersion: %s/%s\nkind: Memcached\nmetadata: {namespace: %s, name: %s}\nspec:\n  %s\n", apiGroup, version, ns, name, strings.ReplaceAll(spec, "\n", "\n  "))))
	must(t, err)
	object := &unstructured.Unstructured{}
	must(t, object.UnmarshalJSON(data))
	return object
}

func TestAPI(t *testing.T) {
	deploy(t)
	ns := namespace(t)

	t.Run("what is refused, and what is said of it", func(t *testing.T) {
		var said strings.Builder
		for _, test := range refusals {
			err := admin.Create(t.Context(), document(t, ns, "m", test.version, test.spec))
			if err == nil {
				t.Errorf("%s: taken", test.name)
				continue
			}
			message := strings.ReplaceAll(err.Error(), strings.Repeat("x", 200), "xxx…")
			fmt.Fprintf(&said, "%s, in %s\n    %s\n", test.name, test.version, strings.ReplaceAll(message, "\n", "\n    "))
		}
		golden(t, "refusals.txt", said.String())
	})

	t.Run("what is filled in", func(t *testing.T) {
		for _, test := range []struct{ version, spec, want string }{
			{"v1", "{}", `{"cache":{"maxConnections":1024,"memoryMegabytes":64},"replicas":2,"service":{"port":11211}}`},
			{"v1beta1", "{}", `{"containerPort":11211,"size":1}`},
			{"v1", "image: {repository: ' docker://r:5000/m:1.6@sha256:" + strings.Repeat("0", 64) + "'}",
				`{"cache":{"maxConnections":1024,"memoryMegabytes":64},"image":{"digest":"sha256:` + strings.Repeat("0", 64) + `","repository":"r:5000/m","tag":"1.6"},"replicas":2,"service":{"port":11211}}`},
			{"v1", "image: {tag: '1.5'}", `{"cache":{"maxConnections":1024,"memoryMegabytes":64},"image":{"repository":"docker.io/library/memcached","tag":"1.5"},"replicas":2,"service":{"port":11211}}`},
		} {
			object := document(t, ns, "defaulted", test.version, test.spec)
			must(t, admin.Create(t.Context(), object, client.DryRunAll))
			got, err := json.Marshal(object.Object["spec"])
			must(t, err)
			if string(got) != test.want {
				t.Errorf("%s in %s became %s", test.spec, test.version, got)
			}
		}
	})

	t.Run("what is warned of", func(t *testing.T) {
		heard := &hearer{}
		c := rest.CopyConfig(world.Config())
		c.WarningHandler = heard
		warned, err := client.New(c, client.Options{Scheme: admin.Scheme(), Mapper: admin.RESTMapper()})
		must(t, err)
		must(t, warned.Create(t.Context(), document(t, ns, "latest", "v1", "image: {repository: memcached, tag: latest}"), client.DryRunAll))
		want := []string{"spec.image names no fixed version: servers that start later may run another one"}
		if got := heard.said(); !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
	})

	t.Run("what is printed", func(t *testing.T) {
		must(t, admin.Create(t.Context(), document(t, ns, "m", "v1", "replicas: 1\nimage: {repository: example.com/memcached, tag: '1'}")))
		available(t, ns, "m")
		for version, want := range map[string]string{
			"v1":      "Name=m Replicas=1 Ready=1 Available=True (Degraded=False) Age=",
			"v1beta1": "Name=m Size=1 Available=True (Image=example.com/memcached:1) Age=",
		} {
			if got := printed(t, ns, version); !strings.HasPrefix(got, want) {
				t.Errorf("%s: %s", version, got)
			}
		}
	})

	t.Run("how it is called", func(t *testing.T) {
		d, err := discovery.NewDiscoveryClientForConfig(world.Config())
		must(t, err)
		for _, version := range []string{"v1", "v1beta1"} {
			list, err := d.ServerResourcesForGroupVersion(apiGroup + "/" + version)
			must(t, err)
			i := slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == "memcacheds" })
			if i < 0 {
				t.Fatalf("%s has %v", version, list.APIResources)
			}
			if r := list.APIResources[i]; r.SingularName != "memcached" || !slices.Equal(r.ShortNames, []string{"mc"}) || !slices.Equal(r.Categories, []string{"cache"}) || !r.Namespaced {
				t.Errorf("%s: %+v", version, r)
			}
		}
		if _, err := d.ServerResourcesForGroupVersion(apiGroup + "/v1alpha1"); err == nil {
			t.Error("v1alpha1 is served")
		}
	})
}

// printed is what kubectl get prints of the only Memcached in a namespace, as it asks the API server for it; in brackets
// what it prints with -o wide.
func printed(t *testing.T, ns, version string) string {
	t.Helper()
	c, err := discovery.NewDiscoveryClientForConfig(world.Config())
	must(t, err)
	data, err := c.RESTClient().Get().AbsPath("/apis/"+apiGroup+"/"+version+"/namespaces/"+ns+"/memcacheds").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	must(t, err)
	var table metav1.Table
	must(t, json.Unmarshal(data, &table))
	if len(table.Rows) != 1 {
		t.Fatalf("%d rows", len(table.Rows))
	}
	var out []string
	for i, column := range table.ColumnDefinitions {
		cell := fmt.Sprintf("%s=%v", column.Name, table.Rows[0].Cells[i])
		if column.Priority > 0 {
			cell = "(" + cell + ")"
		}
		out = append(out, cell)
	}
	return strings.Join(out, " ")
}
