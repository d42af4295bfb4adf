package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv1"
)

// TestUsageV1: what the command line gets wrong about OLM v1 it says before it starts a cluster or reaches one.
func TestUsageV1(t *testing.T) {
	bundle := "../../bundle/memcached-operator/0.5.0"
	for args, says := range map[string]string{
		"cluster up --olm v1":             "fix: write --olm=v1",
		"cluster up --olm=v2":             "--olm v2: must be v0 or v1",
		"cluster up --olm=v1 --kind kind": "--olm=v1 is for an embedded cluster",
		"cluster up extra":                "unknown command \"extra\"",
		"cluster up --catalog c":          "fix: add --olm",
		"olm install --olm v2":            "--olm v2: must be v0 or v1",
		"olm uninstall --olm v0,v1":       "--olm v0,v1: must be v0 or v1",
		"bundle run --olm v2 " + bundle:   "--olm v2: must be v0 or v1",
	} {
		var said bytes.Buffer
		if code := Run(t.Context(), Streams{In: strings.NewReader(""), Out: &said, Err: &said}, strings.Fields(args)); code != exitUsage || !strings.Contains(said.String(), says) {
			t.Errorf("%s: exit code %d\n%s", args, code, said.String())
		}
	}
}

// TestChooseOLM: without --olm the OLM that the cluster has installs; where it has both, v0 what v1 does not have.
func TestChooseOLM(t *testing.T) {
	v0 := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "olm-operator"}}
	v0.Spec.Template.Spec.Containers = []corev1.Container{{Image: olmv0.Image}}
	v1 := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "clusterextensions.olm.operatorframework.io"}}
	for name, test := range map[string]struct {
		asked string
		there []client.Object
		want  string
	}{
		"none":                {"", nil, olmV0},
		"v0":                  {"", []client.Object{v0}, olmV0},
		"v1":                  {"", []client.Object{v1}, olmV1},
		"both":                {"", []client.Object{v0, v1}, olmV0},
		"both, v1 has it":     {"", []client.Object{v0, v1, &olmv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: "tea"}}}, olmV1},
		"both, v1 has coffee": {"", []client.Object{v0, v1, &olmv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: "coffee"}}}, olmV0},
		"both, asked":         {olmV1, []client.Object{v0, v1}, olmV1},
		"v1, asked for v0":    {olmV0, []client.Object{v1}, olmV0},
	} {
		r := &bundleRun{olm: test.asked}
		there := fake.NewClientBuilder().WithScheme(olmv1.Scheme()).WithObjects(test.there...).Build()
		client0, client1 := &olmv0.Client{WithWatch: there}, &olmv1.Client{WithWatch: there}
		if got, err := r.chooseOLM(t.Context(), "tea", client0, client1); err != nil || got != test.want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// TestRegistry: for a cluster that pulls its images the bundle and its catalog land in the repository of --registry, and what
// names them does so by digest.
func TestRegistry(t *testing.T) {
	s := &session{}
	if _, err := s.pullable("").store(t.Context(), nil); !errors.As(err, &usageError{}) || !strings.Contains(hint.Of(err), "--registry ghcr.io/team/scratch") {
		t.Errorf("without --registry: %v; fix: %s", err, hint.Of(err))
	}
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	repository := strings.TrimPrefix(server.URL, "http://") + "/team/scratch"
	store, err := s.pullable(repository).store(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	offered, err := s.loadCatalog(t.Context(), "../../bundle/memcached-operator/0.5.0")
	if err != nil {
		t.Fatal(err)
	}
	fbc, err := catalog.Offer(offered, "olmkit")
	if err != nil {
		t.Fatal(err)
	}
	address, err := store.Catalog(t.Context(), "olmkit-run-memcached-operator", fbc)
	if err != nil {
		t.Fatal(err)
	}
	olm := &olmv1.Client{WithWatch: fake.NewClientBuilder().WithScheme(olmv1.Scheme()).Build()}
	if err := olm.Publish(t.Context(), lifecycle.Place{Catalog: "c"}, address); err != nil {
		t.Fatal(err)
	}
	var named olmv1.ClusterCatalog
	if err := olm.Get(t.Context(), client.ObjectKey{Name: "c"}, &named); err != nil || !strings.HasPrefix(named.Spec.Source.Image.Ref, repository+"@sha256:") {
		t.Fatalf("%v: the ClusterCatalog names %+v", err, named.Spec.Source.Image)
	}
	pulled, err := s.loadCatalog(t.Context(), named.Spec.Source.Image.Ref)
	if err != nil {
		t.Fatal(err)
	}
	bundle := pulled.Find("memcached-operator").Bundles[0]
	if !strings.HasPrefix(bundle.Image, repository+"@sha256:") || bundle.Image == named.Spec.Source.Image.Ref {
		t.Errorf("the catalog names the bundle %s", bundle.Image)
	}
	if content, err := s.readBundle(t.Context(), bundle.Image); err != nil || content == nil {
		t.Errorf("the bundle: %v", err)
	}
}

// TestElsewhere: on a cluster that is none of olmkit's OLM v1 is not installed in part, and a bundle needs a registry.
func TestElsewhere(t *testing.T) {
	var writes []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			writes = append(writes, r.Method+" "+r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"gitVersion": "v1.36.0"}`)
	}))
	t.Cleanup(server.Close)
	t.Setenv("OLMKIT_CACHE", t.TempDir()) // without kept clusters
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Config", "current-context": "far",
		"contexts": [{"name": "far", "context": {"cluster": "far"}}], "clusters": [{"name": "far", "cluster": {"server": %q}}]}`, server.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]struct {
		code int
		says []string
	}{
		"olm install --olm v1": {exitFailed, []string{"cluster far is no embedded cluster", "with cert-manager, by upstream's script: curl", "olmkit cluster up --olm=v1"}},
		"bundle run ../../bundle/memcached-operator/0.5.0 --olm v1": {exitUsage, []string{"--registry does not say where the cluster can pull them", "--registry ghcr.io/team/scratch"}},
	} {
		var said bytes.Buffer
		if code := Run(t.Context(), Streams{In: strings.NewReader(""), Out: &said, Err: &said}, append(strings.Fields(args), "--kubeconfig", kubeconfig)); code != want.code {
			t.Errorf("%s: exit code %d\n%s", args, code, said.String())
		}
		for _, w := range want.says {
			if !strings.Contains(said.String(), w) {
				t.Errorf("%s does not say %q\n%s", args, w, said.String())
			}
		}
	}
	if len(writes) > 0 {
		t.Errorf("it wrote: %q", writes)
	}
}
