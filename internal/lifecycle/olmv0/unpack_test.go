package olmv0

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/operator-framework/operator-registry/pkg/configmap"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/olmkit/olmkit/internal/catalog"
)

// OLM's own loader finds the manifests of a bundle that is too large for a catalog in the ConfigMap of its image, where images are
// simulated; elsewhere, and of other bundles, nothing changes.
func TestUnpack(t *testing.T) {
	manifest := func(name string, size int) string {
		noise := make([]byte, size) // a text that gains little by compression
		for i := range noise {
			noise[i] = "0123456789abcdef"[rand.IntN(16)]
		}
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"text":%q}}`, name, noise)
	}
	csv := `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"tea.v1"},"spec":{"version":"1.0.0"}}`
	bundle := func(name, version string, manifests ...string) string {
		properties := fmt.Sprintf(`{"type":"olm.package","value":{"packageName":"tea","version":%q}}`, version)
		for _, m := range manifests {
			properties += fmt.Sprintf(`,{"type":"olm.bundle.object","value":{"data":%q}}`, base64.StdEncoding.EncodeToString([]byte(m)))
		}
		return fmt.Sprintf(`{"schema":"olm.bundle","package":"tea","name":%q,"image":"","properties":[%s]}`+"\n", name, properties)
	}
	small := bundle("tea.v0", "0.1.0", manifest("few", 1000))
	large := bundle("tea.v1", "1.0.0", csv, manifest("one", 600<<10), manifest("two", 600<<10))
	node := &corev1.Node{}
	node.Name = "n"
	node.Status.NodeInfo.ContainerRuntimeVersion = "containerd://2.1"
	c := &Client{WithWatch: fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(node).Build()}
	if got, err := c.Unpack(t.Context(), "operators", []byte(small+large)); err != nil || string(got) != small+large {
		t.Errorf("where images are pulled, the catalog is changed: %v", err)
	}
	node.Status.NodeInfo.ContainerRuntimeVersion = "process://1"
	c = &Client{WithWatch: fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(node).Build()}
	if got, err := c.Unpack(t.Context(), "operators", []byte(small)); err != nil || string(got) != small {
		t.Errorf("the catalog of a small bundle is changed: %v", err)
	}
	for range 2 { // the second time, all is there
		got, err := c.Unpack(t.Context(), "operators", []byte(small+large))
		if err != nil {
			t.Fatal(err)
		}
		bundles := catalog.Parse("", got).Packages[0].Bundles
		if bundles[0].Image != "" || bundles[1].Image == "" {
			t.Fatalf("the images are %q and %q", bundles[0].Image, bundles[1].Image)
		}
		var m corev1.ConfigMap
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "operators", Name: hash(bundles[1].Image)}, &m); err != nil {
			t.Fatal(err)
		}
		if m.Labels["olm.managed"] != "true" {
			t.Errorf("OLM does not see it, with the labels %v", m.Labels)
		}
		loaded, err := configmap.NewBundleLoader().Load(&m)
		if err != nil || loaded.CsvName != "tea.v1" || len(loaded.Object) != 3 {
			t.Errorf("OLM loads %s with %d manifests: %v", loaded.GetCsvName(), len(loaded.GetObject()), err)
		}
	}
}

// Jobs that unpack bundles run an image that is not there, if images are simulated.
func TestSimulatedJobs(t *testing.T) {
	for simulated, want := range map[bool]string{false: "--util-image=" + Image, true: "--util-image=simulated/" + Image} {
		_, objects, err := Release{simulated: simulated}.parts()
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(objects)
		if err != nil || strings.Count(string(text), `"`+want+`"`) != 1 {
			t.Errorf("there is no %s: %v", want, err)
		}
	}
}
