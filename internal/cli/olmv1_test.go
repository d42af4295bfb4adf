package cli

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"

	"github.com/olmkit/olmkit/internal/cluster/embedded"
	"github.com/olmkit/olmkit/internal/cluster/kind"
	"github.com/olmkit/olmkit/internal/image"
)

// TestWhyNotPulled asks a registry that has one of two images.
func TestWhyNotPulled(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	there, missing := host+"/catalogd:v1", host+"/operator-controller:v1"
	made, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (image.Client{}).Push(t.Context(), there, made); err != nil {
		t.Fatal(err)
	}
	if because := whyNotPulled(t.Context(), image.Client{}, there); because != "" {
		t.Errorf("an image that is there: %s", because)
	}
	if because := whyNotPulled(t.Context(), image.Client{}, there, missing); !strings.Contains(because, missing) {
		t.Errorf("an image that is missing: %q", because)
	}
}

// TestOLMv1OnKindSaysWhatRan holds the limitations of a kind cluster with OLM v1.
func TestOLMv1OnKindSaysWhatRan(t *testing.T) {
	for because, want := range map[string]string{"": "released images", "no route to quay.io": "olmkit's build of v1.10.0, since its released images could not be pulled: no route to quay.io"} {
		limits := strings.Join((&olmV1OnKind{Cluster: &kind.Cluster{}, because: because}).Describe().Limitations, "\n")
		if !strings.Contains(limits, want) || !strings.Contains(limits, "in cert-manager's place") || strings.Contains(limits, "package server") {
			t.Errorf("because of %q:\n%s", because, limits)
		}
		if strings.Contains(limits, embedded.LimitBoxcutter) != (because != "") {
			t.Errorf("because of %q, of Boxcutter:\n%s", because, limits)
		}
	}
}

// TestOLMv1 holds what the command line does for OLM v1 without a cluster.
func TestOLMv1(t *testing.T) {
	const catalog = "../../catalog"
	generate := []string{"subscription", "generate", "--olm", "v1", "--package", "memcached-operator", "--image", "registry.example.com/c:1"}
	for _, c := range []struct {
		args      []string
		code      int
		says, not []string
	}{
		{[]string{"upgrade", "plan", catalog, "--package", "memcached-operator", "--channel", "candidate", "--edges", "all", "--olm", "v1"}, exitPassed,
			[]string{"memcached-operator.v0.2.0 → memcached-operator.v0.3.0", "8 hops"}, []string{"GRA"}},
		// Under OLM v0 nobody ever gets to 0.3.0.
		{[]string{"upgrade", "plan", catalog, "--package", "memcached-operator", "--channel", "candidate"}, exitPassed,
			nil, []string{"memcached-operator.v0.2.0 → memcached-operator.v0.3.0"}},
		{[]string{"upgrade", "plan", catalog, "--package", "memcached-operator", "--olm", "v2"}, exitUsage, []string{"--olm v2: must be v0, v1, or v0,v1 for both"}, nil},
		{[]string{"upgrade", "plan", catalog, "--package", "memcached-operator", "--channel", "candidate", "--edges", "all", "--olm", "v0,v1"}, exitPassed,
			[]string{"channel candidate, OLM v1", "v0.1.0 → memcached-operator.v0.2.0: both taken", "OLM v0: not taken while there is something newer\n    OLM v1: taken if pinned"}, nil},
		{[]string{"upgrade", "plan", catalog, "--package", "memcached-operator", "--olm", "v0,v1"}, exitPassed, []string{"channel stable, OLM v0", "channel stable, OLM v1"}, nil},
		{[]string{"upgrade", "plan", catalog, "--package", "memcached-operator", "--olm", "v0,v1", "--resolver", "olm"}, exitUsage, []string{"leave out --olm v0,v1"}, nil},
		{[]string{"upgrade", "test", catalog, "--package", "memcached-operator", "--olm", "v0,v1", "--shard", "0/2"}, exitUsage, []string{"--shard is of the plan for one version"}, nil},
		{[]string{"upgrade", "test", catalog, "--package", "memcached-operator", "--olm", "v0,v1", "--cluster", "existing"}, exitUsage, []string{"--olm v0,v1", "one walk at a time", "under OLM v0 first"}, nil},
		{[]string{"catalog", "graph", catalog, "--channel", "candidate", "--olm", "v0,v1"}, exitPassed, []string{"OLM v1: the same, if pinned 0.3.0 (replaces)"}, nil},
		{[]string{"catalog", "graph", catalog, "--channel", "candidate", "--olm", "v1", "-o", "html"}, exitPassed, []string{"taken by OLM v1 if its version is pinned"}, nil},
		{[]string{"catalog", "graph", catalog, "--olm", "v3"}, exitUsage, []string{"--olm v3: must be v0, v1"}, nil},
		{[]string{"upgrade", "test", catalog, "--package", "memcached-operator", "--olm", "v1", "--cluster", "existing", "--install-olm"}, exitUsage, []string{"--install-olm installs OLM v0", "upstream's script"}, nil},
		{[]string{"upgrade", "test", catalog, "--package", "memcached-operator", "--olm", "v1", "--registry", "example.com/r"}, exitUsage, []string{"--registry is for an existing cluster with OLM v1", "--cluster existing --olm v1"}, nil},
		{[]string{"upgrade", "test", catalog, "--package", "memcached-operator", "--registry", "example.com/r", "--cluster", "existing"}, exitUsage, []string{"--registry is for an existing cluster with OLM v1"}, nil},
		{[]string{"upgrade", "test", catalog, "--package", "memcached-operator", "--olm", "v1", "--cluster", "kind", "--fault", "registry-slow"}, exitUsage,
			[]string{"this kind of cluster cannot make the fault registry-slow", "kill-catalogd"}, []string{"kill-node"}},
		{[]string{"upgrade", "test", catalog, "--package", "memcached-operator", "--olm", "v1", "--fault", "two-hops"}, exitUsage, []string{"--fault two-hops"}, nil},
		{[]string{"upgrade", "test", catalog, "--package", "memcached-operator", "--olm", "v0,v1", "--fault", "kill-catalogd"}, exitUsage, []string{"--fault kill-catalogd"}, nil},
		{append(generate, "--catalog", catalog, "--channel", "stable"), exitPassed,
			[]string{"kind: ClusterExtension", "kind: ClusterCatalog", "pollIntervalMinutes: 10", "serviceAccount:\n    name: memcached-operator-installer", "- stable"},
			[]string{"version: 0", "kind: Subscription", "status:", "cluster-admin"}},
		{append(generate, "--catalog", catalog, "--starting-csv", "memcached-operator.v0.4.0"), exitPassed, []string{"version: 0.4.0"}, []string{"channels:"}},
		{append(generate, "--catalog", catalog, "--channel", "nightly"), exitUsage, []string{`has no channel "nightly"`}, nil},
		{append(generate, "--catalog", catalog, "--approval", "Manual"), exitUsage, []string{"--approval has no meaning under OLM v1"}, nil},
		{append(generate, "--catalog", catalog, "--name", "Not_A_Name"), exitUsage, []string{`ClusterExtension's name "Not_A_Name"`}, nil},
		{generate, exitUsage, []string{"--olm v1 without --catalog"}, nil},
	} {
		var out bytes.Buffer
		code := Run(t.Context(), Streams{In: strings.NewReader(""), Out: &out, Err: &out}, c.args)
		if code != c.code {
			t.Errorf("%v: exit code %d, want %d\n%s", c.args, code, c.code, out.String())
			continue
		}
		for _, want := range c.says {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%v does not say %q\n%s", c.args, want, out.String())
			}
		}
		for _, unwanted := range c.not {
			if strings.Contains(out.String(), unwanted) {
				t.Errorf("%v says %q\n%s", c.args, unwanted, out.String())
			}
		}
	}
}
