package cli

import (
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
)

func TestOLMUsage(t *testing.T) {
	for args, code := range map[string]int{
		"upgrade diagnose tea":                        exitUsage,
		"upgrade diagnose --catalog tea=c":            exitUsage,
		"upgrade diagnose --catalog n/tea":            exitUsage,
		"bundle run testdata/no-such":                 exitFailed,
		"olm install tea":                             exitUsage,
		"olm status -o yaml":                          exitUsage,
		"olm uninstall --kubeconfig testdata/no-such": exitFailed,
		"olm status --kubeconfig testdata/no-such -q": exitFailed,
		"cluster up --catalog testdata":               exitUsage,
		"cluster up --olm --catalog testdata/no-such": exitFailed,
	} {
		var out, errOut strings.Builder
		if got := Run(t.Context(), Streams{In: strings.NewReader(""), Out: &out, Err: &errOut}, strings.Fields(args)); got != code || out.Len() > 0 || errOut.Len() == 0 {
			t.Errorf("%s: exit code %d\n%s%s", args, got, out.String(), errOut.String())
		}
	}
}

func TestOLMStatusText(t *testing.T) {
	for want, r := range map[string]olmStatus{
		"OLM is not installed on cluster c; 'olmkit olm install' installs it\n": {Cluster: "c"},
		"OLM v1 on cluster c, namespace olm: 1 of 2 parts are well\n  Pod/b  it is missing\n": {Cluster: "c", Status: olmv0.Status{
			Installed: true, Version: "v1", Namespace: "olm", Parts: []olmv0.Part{{Object: "Pod/a"}, {Object: "Pod/b", Why: "it is missing"}},
		}},
	} {
		var out strings.Builder
		if err := r.print(&out, false); err != nil || out.String() != want {
			t.Errorf("%v: %q", err, out.String())
		}
	}
}
