package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmkit/olmkit/internal/diagnosis"
	"github.com/olmkit/olmkit/internal/lifecycle"
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
		"OLM v1 on cluster c, namespace olm: 1 of 2 parts are well\n  Pod/b  it is missing\n": {Cluster: "c", Status: lifecycle.Status{
			Installed: true, Version: "v1", Namespace: "olm", Parts: []lifecycle.Part{{Object: "Pod/a"}, {Object: "Pod/b", Why: "it is missing"}},
		}},
		"OLM v1 of an unknown version on cluster c, namespace olmv1-system: 1 of 1 parts are well\n": {Cluster: "c", V1: wellV1()},
		"OLM v0.46.0 on cluster c, namespace olm: 0 of 0 parts are well\nOLM v1 of an unknown version on cluster c, namespace olmv1-system: 1 of 1 parts are well\n": {
			Cluster: "c", V1: wellV1(), Status: lifecycle.Status{Installed: true, Version: "v0.46.0", Namespace: "olm"},
		},
	} {
		var out strings.Builder
		if err := r.print(&out, false); err != nil || out.String() != want {
			t.Errorf("%v: %q", err, out.String())
		}
	}
}

func wellV1() *lifecycle.Status {
	return &lifecycle.Status{Installed: true, Namespace: "olmv1-system", Parts: []lifecycle.Part{{Object: "Pod/c"}}}
}

// TestOLMIsWell: each OLM that a cluster has must be well, and it must have one.
func TestOLMIsWell(t *testing.T) {
	broken := []lifecycle.Part{{Object: "Pod/b", Why: "it is missing"}}
	for name, test := range map[string]struct {
		status olmStatus
		well   bool
	}{
		"none":              {olmStatus{}, false},
		"v0":                {olmStatus{Status: lifecycle.Status{Installed: true}}, true},
		"v1":                {olmStatus{V1: wellV1()}, true},
		"a broken v0":       {olmStatus{Status: lifecycle.Status{Installed: true, Parts: broken}, V1: wellV1()}, false},
		"a broken v1":       {olmStatus{Status: lifecycle.Status{Installed: true}, V1: &lifecycle.Status{Installed: true, Parts: broken}}, false},
		"both":              {olmStatus{Status: lifecycle.Status{Installed: true}, V1: wellV1()}, true},
		"a broken v1 alone": {olmStatus{V1: &lifecycle.Status{Installed: true, Parts: broken}}, false},
	} {
		if test.status.judge(); test.status.Well != test.well {
			t.Errorf("%s: well %t", name, test.status.Well)
		}
	}
}

// TestDiagnoseText: both OLMs are told, and what the cluster does not have is named as far as it has the kinds.
func TestDiagnoseText(t *testing.T) {
	extension := diagnosis.Extension{
		Extension: "tea", Package: "tea", Channels: []string{"stable", "fast"}, Catalogs: []string{"c"}, Installed: "tea.v1", Next: "tea.v2", State: diagnosis.Stuck,
		Conditions: []metav1.Condition{{Type: "Installed", Status: "True", Reason: "Succeeded"}, {Type: "Deprecated", Status: "True"}, {Type: "Progressing", Status: "True", Reason: "Retrying"}},
		Deprecated: "drink coffee", Causes: []diagnosis.Cause{{Object: "ClusterExtension/tea", Why: "no", Fixes: []diagnosis.Fix{{Do: "do", Command: "run", Risk: "none"}}}},
	}
	subscription := diagnosis.Diagnosis{Namespace: "n", Subscription: "tea", Package: "tea", Catalog: "n/c", State: diagnosis.UpToDate}
	underWay := diagnosis.Diagnosis{Namespace: "n", Subscription: "tea", Package: "tea", Catalog: "n/c", State: diagnosis.Upgrading, Next: "tea.v2", WaitsFor: "CSV Installing"}
	v0 := "n/tea: up to date\n  package    tea, channel of the package, from catalog n/c\n  installed  nothing\n  next       nothing\n"
	v1 := "ClusterExtension tea: stuck\n  package    tea, version any, channels stable fast, from catalogs c\n  installed  tea.v1\n  next       tea.v2\n" +
		"  conditions Installed True (Succeeded), Progressing True (Retrying)\n  deprecated drink coffee\n  ClusterExtension/tea: no\n    fix:  do\n          run\n    risk: none\n"
	for want, r := range map[string]diagnoseReport{
		"cluster c has no Subscription to package tea\n":                     {Cluster: "c"},
		"cluster c has no Subscription or ClusterExtension to package tea\n": {Cluster: "c", v1: true},
		"n/tea: under way\n  package    tea, channel of the package, from catalog n/c\n  installed  nothing\n  next       tea.v2\n  waits for  CSV Installing\n": {
			Subscriptions: []diagnosis.Diagnosis{underWay},
		},
		v0:             {Subscriptions: []diagnosis.Diagnosis{subscription}},
		v1:             {Extensions: []diagnosis.Extension{extension}, v1: true},
		v0 + "\n" + v1: {Subscriptions: []diagnosis.Diagnosis{subscription}, Extensions: []diagnosis.Extension{extension}, v1: true},
		v0 + "\nOLM v1 is left out: no right\n  fix: use an account that may read ClusterExtensions, ClusterCatalogs and what they install\n": {
			Subscriptions: []diagnosis.Diagnosis{subscription}, NotRead: "no right",
		},
	} {
		var out strings.Builder
		if err := r.print(&out, "tea", ""); err != nil || out.String() != want {
			t.Errorf("%v: %q, want %q", err, out.String(), want)
		}
		if stuck := len(r.Extensions) > 0; r.needsSomebody() != stuck {
			t.Errorf("somebody has to do something: %t", !stuck)
		}
	}
}

// TestNotAllowed: who may not read OLM v1 is told of OLM v0; any other trouble with OLM v1 is an error.
func TestNotAllowed(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "olm.operatorframework.io", Resource: "clusterextensions"}, "", errors.New("no right"))
	if why, err := notAllowed(fmt.Errorf("list: %w", forbidden)); err != nil || !strings.Contains(why, "clusterextensions") {
		t.Errorf("%q, %v", why, err)
	}
	for _, other := range []error{nil, errors.New("connection refused")} {
		if why, err := notAllowed(other); why != "" || !errors.Is(err, other) {
			t.Errorf("%q, %v", why, err)
		}
	}
}

// With a namespace, the command tells of what is there, or that nothing is.
func TestDiagnoseNamespace(t *testing.T) {
	all := diagnoseReport{
		Cluster: "c", Subscriptions: []diagnosis.Diagnosis{{Namespace: "n", Subscription: "tea"}, {Namespace: "m", Subscription: "pot"}},
		Extensions: []diagnosis.Extension{{Namespace: "n", Extension: "tea"}},
	}
	for namespace, want := range map[string]int{"": 3, "n": 2, "m": 1, "other": 0} {
		r := all
		r.Subscriptions, r.Extensions = slices.Clone(all.Subscriptions), slices.Clone(all.Extensions)
		r.only(namespace)
		if got := len(r.Subscriptions) + len(r.Extensions); got != want {
			t.Errorf("%q: %d, want %d", namespace, got, want)
		}
		var out strings.Builder
		if err := r.print(&out, "tea", namespace); err != nil || want == 0 && out.String() != "cluster c has no Subscription to package tea in namespace other\n" {
			t.Errorf("%q: %v", &out, err)
		}
	}
}
