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
		{[]string{"cluster", "up", "--kubernetes", "1.33,1.34"}, []string{"it is one version here"}},
		{[]string{"cluster", "build", "--kubernetes", "1.33,v1.33.13"}, []string{"v1.33.13 is named twice"}},
		{[]string{"cluster", "build", "--olm", "none,v1"}, []string{"it is v0, v1, both, or none"}},
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

func TestKubernetesCompletion(t *testing.T) {
	for begun, want := range map[string]string{"1.3": "1.30\n1.31\n", "1.33,1.36": "1.33,1.36\n", "2": ":4\n"} {
		var out bytes.Buffer
		Run(t.Context(), Streams{In: strings.NewReader(""), Out: &out, Err: &out}, []string{"__complete", "upgrade", "test", "--kubernetes", begun})
		if !strings.HasPrefix(out.String(), want) {
			t.Errorf("%q completes to\n%s", begun, out.String())
		}
	}
}
