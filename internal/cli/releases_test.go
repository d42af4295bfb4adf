package cli

import (
	"bytes"
	"strings"
	"testing"
)

// TestKubernetes holds what --kubernetes says before anything is built.
func TestKubernetes(t *testing.T) {
	test := []string{"upgrade", "test", "../../catalog", "--package", "memcached-operator", "--kubernetes"}
	for _, c := range []struct {
		args []string
		says []string
	}{
		{append(test, "1.29"), []string{"no Kubernetes 1.29", "choose one of 1.30, 1.31, 1.32, 1.33, 1.34, 1.35, 1.36"}},
		{append(test, "1.33.2"), []string{"there is v1.33.13: write 1.33"}},
		{append(test, "1.33", "--cluster", "kind"), []string{"is for the embedded cluster: the version of a kind cluster", "--node-image"}},
		{append(test, "1.33,1.36", "--shard", "0/2"), []string{"--shard is of the plan on one version"}},
		{append(test, "1.33", "--cluster", "existing"), []string{"is for the embedded cluster: an existing cluster", "leave --kubernetes out"}},
		{[]string{"cluster", "up", "--kubernetes", "1.33", "--kind", "kind"}, []string{"--node-image"}},
		{[]string{"cluster", "up", "--kubernetes", "1.33,1.34"}, []string{"must be one version here"}},
		{[]string{"cluster", "build", "--kubernetes", "1.33,v1.33.13"}, []string{"v1.33.13 is named twice"}},
		{[]string{"cluster", "build", "--olm", "none,v1"}, []string{"must be v0, v1, both, or none"}},
		{[]string{"upgrade", "rehearse", "--from", "saved.json", "--kubernetes", "1.2"}, []string{"no Kubernetes 1.2"}},
	} {
		var out bytes.Buffer
		if code := Run(t.Context(), Streams{In: strings.NewReader(""), Out: &out, Err: &out}, c.args); code != exitUsage {
			t.Errorf("%v: exit code %d\n%s", c.args, code, out.String())
		}
		for _, want := range c.says {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%v does not say %q\n%s", c.args, want, out.String())
			}
		}
	}
}

// TestOLMVersion holds what --olm-version says before anything is built.
func TestOLMVersion(t *testing.T) {
	test := []string{"upgrade", "test", "../../catalog", "--package", "memcached-operator", "--olm-version"}
	for _, c := range []struct {
		args []string
		says []string
	}{
		{append(test, "0.1"), []string{"embedded clusters have no OLM 0.1", "choose one of 0.", "--cluster existing"}},
		{append(test, "0.38.1"), []string{"there is v0.38.0: write 0.38"}},
		{append(test, "0.38", "--cluster", "kind"), []string{"is for the embedded cluster: on a kind cluster OLM v0.", "leave --olm-version out"}},
		{append(test, "0.38", "--cluster", "existing"), []string{"is for the embedded cluster: an existing cluster", "leave --olm-version out"}},
		{append(test, "0.38", "--olm", "v1"), []string{"--olm-version is of OLM v0", "without --olm v1"}},
		{append(test, "0.38", "--olm", "v0,v1"), []string{"--olm-version is of OLM v0", "without --olm v0,v1"}},
		{append(test, "0.38,0.46", "--shard", "0/2"), []string{"--shard is of the plan on one version"}},
		{append(test, "0.38,v0.38.0"), []string{"v0.38.0 is named twice"}},
		{[]string{"cluster", "up", "--olm-version", "0.38"}, []string{"add --olm"}},
		{[]string{"cluster", "up", "--olm", "--olm-version", "0.38", "--kind", "kind"}, []string{"is for the embedded cluster"}},
		{[]string{"cluster", "up", "--olm", "--olm-version", "0.38,0.46"}, []string{"must be one version here"}},
		{[]string{"cluster", "build", "--olm-version", "0.38", "--olm", "v1"}, []string{"--olm-version is of OLM v0", "add v0 to --olm v1"}},
		{[]string{"cluster", "build", "--olm-version", "0.1"}, []string{"no OLM 0.1"}},
		{[]string{"upgrade", "rehearse", "--from", "saved.json", "--olm-version", "0.1"}, []string{"no OLM 0.1"}},
	} {
		var out bytes.Buffer
		if code := Run(t.Context(), Streams{In: strings.NewReader(""), Out: &out, Err: &out}, c.args); code != exitUsage {
			t.Errorf("%v: exit code %d\n%s", c.args, code, out.String())
		}
		for _, want := range c.says {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%v does not say %q\n%s", c.args, want, out.String())
			}
		}
	}
}

// TestEachOLM: several releases of OLM are as many walks, which the report names by them.
func TestEachOLM(t *testing.T) {
	var none faultFlags
	test := &upgradeTest{plan: &planFlags{olm: olmV0}, faults: &none, cluster: kindEmbedded, kubernetes: []string{"1.36"}}
	for versions, want := range map[string]string{"": "OLM v0", "0.38": "OLM v0", "0.38,0.46": "OLM v0.38.0; OLM v0.46.0"} {
		test.olmVersions = nil
		if versions != "" {
			test.olmVersions = strings.Split(versions, ",")
		}
		each, err := test.each(nil)
		if err != nil {
			t.Fatal(err)
		}
		var labels []string
		for _, one := range each {
			labels = append(labels, one.label().Label())
		}
		if got := strings.Join(labels, "; "); got != want {
			t.Errorf("--olm-version %s: %s; want %s", versions, got, want)
		}
		if versions == "0.38" && each[0].olmRelease != "v0.38.0" {
			t.Errorf("--olm-version 0.38 walks under %s", each[0].olmRelease)
		}
	}
}

func TestKubernetesCompletion(t *testing.T) {
	for begun, want := range map[string]string{"1.3": "1.30\n1.31\n", "1.33,1.36": "1.33,1.36\n", "2": ":4\n"} {
		var out bytes.Buffer
		Run(t.Context(), Streams{In: strings.NewReader(""), Out: &out, Err: &out}, []string{"__complete", "upgrade", "test", "--kubernetes", begun})
		if !strings.HasPrefix(out.String(), want) {
			t.Errorf("%q completes to\n%s", begun, out.String())
		}
	}
}
