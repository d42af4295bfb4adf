package upgrade

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/graph"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
)

// said renders findings as "severity code object: message".
func said(findings []finding.Finding) []string {
	var lines []string
	for _, f := range findings {
		lines = append(lines, fmt.Sprintf("%s %s %s: %s", f.Severity, f.Code, f.Subject.Object, f.Message))
	}
	return lines
}

func expect(t *testing.T, got []finding.Finding, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, said(got)); diff != "" {
		t.Error(diff)
	}
}

func TestCodesAreSound(t *testing.T) {
	form := regexp.MustCompile(`^U\d{3}$`)
	last := ""
	for _, c := range Codes {
		if !form.MatchString(c.Code) || c.Doc == "" {
			t.Errorf("code %q: its form or its text is not as it should be", c.Code)
		}
		if c.Severity != finding.Info && c.Fix == "" {
			t.Errorf("code %s is a %s without a fix", c.Code, c.Severity)
		}
		if strings.Compare(last, c.Code) >= 0 {
			t.Errorf("code %s comes after %s", c.Code, last)
		}
		last = c.Code
	}
}

var update = flag.Bool("update", false, "write golden files anew")

// TestDocs holds docs/checks/U.md against Codes, and the checks that Codes names against their pages; -update writes it.
func TestDocs(t *testing.T) {
	root := filepath.Join("..", "..", "docs", "checks")
	var page strings.Builder
	page.WriteString("# U: While upgrading\n\nWhat `olmkit upgrade test` sees while OLM upgrades, and afterwards. A code never changes its meaning.\n\n" +
		fmt.Sprintf("With `--strict` the warnings are errors, but for those about samples (U311, U314) and for outages (U401, U402, U404) of\nup to %g s: a client that tries again once does not notice these. Faults (U701, U702) are on [a page of their own](../faults.md).\n\n"+
			"With `--rollback` a hop that failed is followed by what an administrator can do: the Subscription and the\nClusterServiceVersions are deleted, "+
			"and the version before is subscribed to again, with `startingCSV` and approval by hand, so\nthat OLM does not upgrade at once. Definitions and objects stay. "+
			"What comes of it are U801 to U804.\n", StrictOutage))
	for _, c := range Codes {
		fmt.Fprintf(&page, "\n## %s\n\n%s (%s)\n", c.Code, c.Doc, c.Severity)
		if c.Fix != "" {
			fmt.Fprintf(&page, "\nFix: %s.\n", c.Fix)
		}
		var links []string
		for _, code := range c.Static {
			family := strings.TrimRight(code, "0123456789")
			text, err := os.ReadFile(filepath.Join(root, family+".md"))
			if err != nil || !strings.Contains(string(text), "\n## "+code+"\n") {
				t.Errorf("%s names the check %s, which has no page", c.Code, code)
			}
			links = append(links, fmt.Sprintf("[%s](%s.md#%s)", code, family, strings.ToLower(code)))
		}
		if len(links) > 0 {
			fmt.Fprintf(&page, "\nBeforehand: %s\n", strings.Join(links, ", "))
		}
	}
	file := filepath.Join(root, "U.md")
	if *update {
		if err := os.WriteFile(file, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got), page.String()); diff != "" {
		t.Errorf("%s is not up to date, run this test with -update: %s", file, diff)
	}
}

func crd(stored string, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	d := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "things.example.com"}}
	d.Spec.Names.Kind = "Thing"
	for _, v := range versions {
		name, deprecated := strings.CutSuffix(v, "!")
		d.Spec.Versions = append(d.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: name == stored, Deprecated: deprecated,
		})
	}
	return d
}

func TestJudgeVersions(t *testing.T) {
	for _, test := range []struct {
		name        string
		before, now *apiextensionsv1.CustomResourceDefinition
		stored      []string
		want        []string
	}{
		{"nothing changed", crd("v1", "v1"), crd("v1", "v1"), []string{"v1"}, nil},
		{"gone without a word", crd("v1", "v1", "v2"), crd("v2", "v2"), []string{"v2"},
			[]string{"warning U310 CustomResourceDefinition/things.example.com: Thing is not served as v1 any more"}},
		{"gone after it was deprecated", crd("v1", "v1!", "v2"), crd("v2", "v2"), []string{"v2"},
			[]string{"info U310 CustomResourceDefinition/things.example.com: Thing is not served as v1 any more"}},
		{"old stored versions", crd("v1", "v1"), crd("v2", "v1", "v2"), []string{"v1", "v2"},
			[]string{"info U601 CustomResourceDefinition/things.example.com: status.storedVersions is v1, v2, stored now as v2: " +
				"no later release may drop v1 before the objects are migrated"}},
	} {
		t.Run(test.name, func(t *testing.T) { expect(t, judgeVersions(test.before, test.now, test.stored), test.want...) })
	}
}

func TestFieldFindings(t *testing.T) {
	view := func(text string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: decode(t, text)}
	}
	const wrote = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a, labels: {l: x}}\nspec: {size: 3}"
	for _, test := range []struct {
		name, version, before, now string
		want                       []string
	}{
		{"as it was", "v1", wrote, wrote, nil},
		{"the author's field is gone", "v1", wrote, "metadata: {labels: {l: x}}\nspec: {}",
			[]string{"error U302 Thing/a: read as v1 (stored as v2): spec.size was 3 and is gone"}},
		{"the author's label is gone", "v1", wrote, "spec: {size: 3}",
			[]string{`error U302 Thing/a: read as v1 (stored as v2): metadata.labels.l was "x" and is gone`}},
		{"annotations of others do not matter", "v1", wrote, "metadata: {labels: {l: x, m: y}, annotations: {a: b}}\nspec: {size: 3}", nil},
		{"a default changed", "v1", wrote + "\ndata: {port: 1}", wrote + "\ndata: {port: 2}",
			[]string{"warning U307 Thing/a: read as v1 (stored as v2), compared with before: data.port was 1 and is 2"}},
		{"another version's default changed", "v2", "spec: {replicas: 3, port: 1}", "spec: {replicas: 3, port: 2}",
			[]string{"warning U307 Thing/a: read as v2 (stored as v2), compared with before: spec.port was 1 and is 2"}},
		{"another version lost a field", "v2", "spec: {replicas: 3}", "spec: {}",
			[]string{"error U302 Thing/a: written as v1, read as v2 (stored as v2), compared with before: spec.replicas was 3 and is gone"}},
		{"nothing known from before", "v3", "", "spec: {}", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := &object{Kind: "Thing", Name: "a", Version: "v1", Author: decode(t, wrote), Views: map[string]*unstructured.Unstructured{}}
			if test.before != "" {
				o.Views[test.version] = view(test.before)
			}
			expect(t, fieldFindings(o, crd("v2", "v1", "v2"), test.version, view(test.now), "v2"), test.want...)
		})
	}
}

// A value that conversion changed is not mended by keeping defaults.
func TestChangedByDefaultOrConversion(t *testing.T) {
	d := crd("v2", "v1", "v2")
	d.Spec.Versions[1].Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"spec": {Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"port": {Default: &apiextensionsv1.JSON{Raw: []byte("2")}},
			"ports": {Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
				Properties: map[string]apiextensionsv1.JSONSchemaProps{"name": {Default: &apiextensionsv1.JSON{Raw: []byte(`"b"`)}}},
			}}},
		}},
	}}}
	fix := func(strategy apiextensionsv1.ConversionStrategyType, before, now string) string {
		d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: strategy}
		o := &object{Kind: "Thing", Name: "a", Version: "v1", Views: map[string]*unstructured.Unstructured{"v2": {Object: decode(t, before)}}}
		got := fieldFindings(o, d, "v2", &unstructured.Unstructured{Object: decode(t, now)}, "v2")
		if len(got) != 1 || got[0].Code != codeDefaultChanged {
			t.Fatalf("%+v", got)
		}
		return got[0].Fix
	}
	const webhook, none = apiextensionsv1.WebhookConverter, apiextensionsv1.NoneConverter
	for _, test := range []struct {
		name, before, now string
		strategy          apiextensionsv1.ConversionStrategyType
		want              string
	}{
		{"the default", "spec: {port: 1}", "spec: {port: 2}", webhook, "keep the defaults"},
		{"the default of items", "spec: {ports: [{name: a}]}", "spec: {ports: [{name: b}]}", webhook, "keep the defaults"},
		{"another value", "spec: {port: 1}", "spec: {port: 3}", webhook, "convert what was stored"},
		{"nothing converts", "spec: {port: 1}", "spec: {port: 3}", none, "keep the defaults"},
	} {
		if got := fix(test.strategy, test.before, test.now); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %s", test.name, got)
		}
	}
}

func TestWriteFindings(t *testing.T) {
	view := func(n string) map[string]*unstructured.Unstructured {
		return map[string]*unstructured.Unstructured{"v1": {Object: decode(t, "metadata: {annotations: {olmkit.dev/writes: '"+n+"'}}")}}
	}
	o := &object{Kind: "Thing", Name: "a", Version: "v1"}
	expect(t, writeFindings(o, view("")))
	o.acked.Store(7)
	expect(t, writeFindings(o, view("7")))
	expect(t, writeFindings(o, view("8"))) // got through, although the answer did not
	o.late.Store(int64(5), true)           // carried out after those that followed it
	expect(t, writeFindings(o, view("5")))
	expect(t, writeFindings(o, view("6")), "error U305 Thing/a: write number 7 through v1 was acknowledged, but the object has number 6")
}

func TestJudgeOperands(t *testing.T) {
	operands := func(list ...operand) map[string]operand {
		m := map[string]operand{}
		for _, o := range list {
			m[o.String()] = o
		}
		return m
	}
	made := func(kind, uid string, port int64, restarts int32) operand {
		return operand{
			Kind: kind, Namespace: "n", Name: "a", UID: types.UID(uid), Restarts: restarts,
			Content: map[string]any{"spec": map[string]any{"port": port}},
		}
	}
	service := func(kind string, ports ...int64) operand {
		o := made("Service", "1", 1, 0)
		var list []any
		for _, p := range ports {
			list = append(list, map[string]any{"port": p, "protocol": "TCP"})
		}
		o.Content = map[string]any{"spec": map[string]any{"type": kind, "ports": list}}
		return o
	}
	for _, test := range []struct {
		name          string
		before, after map[string]operand
		want          []string
	}{
		{"kept", operands(made("Service", "1", 1, 0)), operands(made("Service", "1", 1, 0)), nil},
		{"deleted", operands(made("ConfigMap", "1", 1, 0)), nil, []string{"warning U501 ConfigMap/n/a: it was deleted during the upgrade"}},
		{"a Service deleted", operands(made("Service", "1", 1, 0)), nil,
			[]string{"error U510 Service/n/a: it was deleted during the upgrade, and its clients find nothing under its name"}},
		{"other ports", operands(service("LoadBalancer", 80, 443)), operands(service("LoadBalancer", 443, 8080)),
			[]string{"error U510 Service/n/a: clients that the old version served fail: port 80/TCP is gone"}},
		{"one port more", operands(service("ClusterIP", 80)), operands(service("NodePort", 80, 443)),
			[]string{"warning U505 Service/n/a: the new version changed it although nobody changed the object it was made for: " +
				`spec.ports was [{"port":80,"protocol":"TCP"}] and is [{"port":80,"protocol":"TCP"},{"port":443,"protocol":"TCP"}]; spec.type was "ClusterIP" and is "NodePort"`}},
		{"no longer from outside", operands(service("LoadBalancer", 80)), operands(service("ClusterIP", 80)),
			[]string{"error U510 Service/n/a: clients that the old version served fail: type was LoadBalancer and is ClusterIP"}},
		{"made anew", operands(made("Service", "1", 1, 0)), operands(made("Service", "2", 1, 0)),
			[]string{"warning U501 Service/n/a: it was deleted and made anew during the upgrade: its UID is another"}},
		{"changed", operands(made("Service", "1", 1, 0)), operands(made("Service", "1", 2, 0)),
			[]string{"warning U505 Service/n/a: the new version changed it although nobody changed the object it was made for: spec.port was 1 and is 2"}},
		{"restarted", operands(made("Pod", "1", 1, 0)), operands(made("Pod", "1", 1, 2)),
			[]string{"warning U506 Pod/n/a: its containers were restarted 2 times during the upgrade"}},
		{"rolled", operands(made("Pod", "1", 1, 0), made("ReplicaSet", "2", 1, 0)), nil,
			[]string{"info U502 : the upgrade replaced 1 pods that were made for objects: n/a"}},
		{"new ones do not matter", nil, operands(made("Service", "1", 1, 0)), nil},
	} {
		t.Run(test.name, func(t *testing.T) { expect(t, judgeOperands(test.before, test.after), test.want...) })
	}
}

func TestJudgeOutages(t *testing.T) {
	o := func(version, operation string, start, end float64, open bool) outage {
		return outage{CRD: "c", Version: version, Operation: operation, Start: at(start), End: at(end), Errors: 3, First: "no endpoints available", Open: open}
	}
	before := map[string]*definition{"c": {Served: []string{"v1", "v2"}}}
	for _, test := range []struct {
		name string
		list []outage
		done bool
		want []string
	}{
		{"none", nil, true, nil},
		{"all versions in one", []outage{o("v1", read, 1, 2, false), o("v1", read, 3, 5, false), o("v2", read, 1, 2, false), o("v1", write, 1, 2, false)}, true, []string{
			"warning U401 CustomResourceDefinition/c: no read through v1 for 3.0s in all, 2 times for up to 2.0s, no read through v2 for 1.0s; the longest began with: no endpoints available",
			"warning U402 CustomResourceDefinition/c: no write through v1 for 1.0s; the longest began with: no endpoints available",
		}},
		{"a new version is worth a note", []outage{o("v3", read, 1, 2, false)}, true, []string{
			"info U401 CustomResourceDefinition/c: no read through v3 for 1.0s; the longest began with: no endpoints available; the version is new, so nobody used it yet"}},
		{"what stays is an error", []outage{o("v1", read, 1, 2, true), o("v1", write, 1, 2, true)}, true, []string{
			"error U403 CustomResourceDefinition/c: no read through v1 for 1.0s, no write through v1 for 1.0s; the longest began with: no endpoints available"}},
		{"a new version that never works is an error", []outage{o("v3", read, 1, 2, true)}, true, []string{
			"error U403 CustomResourceDefinition/c: no read through v3 for 1.0s; the longest began with: no endpoints available"}},
		{"unless the upgrade failed anyway", []outage{o("v3", read, 1, 2, true)}, false, []string{
			"info U403 CustomResourceDefinition/c: no read through v3 for 1.0s; the longest began with: no endpoints available; the version is new, so nobody used it yet"}},
	} {
		t.Run(test.name, func(t *testing.T) { expect(t, judgeOutages(test.list, before, nil, test.done), test.want...) })
	}
}

func TestCollapse(t *testing.T) {
	got := collapse([]finding.Finding{
		find(codeFieldLost, "Thing/a", "spec.size is gone"), find(codeFieldLost, "Thing/b", "spec.size is gone"),
		find(codeFieldLost, "Thing/c", "spec.port is gone"), find(codeFieldLost, "Thing/a", "spec.size is gone"),
	})
	expect(t, got, "error U302 Thing/a: spec.size is gone; the same of Thing/b", "error U302 Thing/c: spec.port is gone")
}

// v0 is OLM v0, not connected: it tells what it knows of itself.
var v0 = &olmv0.Client{}

func testRelease(name string) *release {
	r := &release{Name: name, CSV: &v1alpha1.ClusterServiceVersion{}}
	var d appsv1.DeploymentSpec
	d.Template.Spec.Containers = []corev1.Container{{Image: "example.com/op:" + name}}
	r.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []v1alpha1.StrategyDeploymentSpec{{Name: "op", Spec: d}}
	return r
}

func TestJudgeProcess(t *testing.T) {
	from, to := testRelease("a.v1"), testRelease("a.v2")
	rollout := func(s float64, name string) event {
		return event{At: at(s), Kind: kindRollout, Name: name, State: stateCreated, For: "op"}
	}
	restart := func(s float64, pod, reason string) event {
		return event{At: at(s), Kind: kindPod, Name: pod, State: stateRestarted, Reason: reason}
	}
	for _, test := range []struct {
		name     string
		timeline []event
		want     []string
	}{
		{"one rollout is as it should be", []event{rollout(-1, "op-0"), rollout(1, "op-1")}, nil},
		{"two rollouts", []event{rollout(1, "op-1"), rollout(4, "op-2"), rollout(4, "op-1")},
			[]string{"warning U202 Deployment/op: it was rolled out 2 times during the upgrade to a.v2"}},
		{"OLM's own second rollout", []event{rollout(1, "op-1"), {At: at(2), Kind: "ClusterServiceVersion", Name: "a.v2", State: "Pending", Reason: "NeedsCertRotation: x"}, rollout(4, "op-2")},
			[]string{"info U202 Deployment/op: it was rolled out 2 times during the upgrade to a.v2"}},
		{"restarts", []event{restart(1, "p/m", "1 times"), restart(2, "q/m", "1 times"), restart(3, "p/m", "2 times, last with exit code 1")},
			[]string{"warning U201 Pod/p/m: the operator's containers ended and were started again during the upgrade to a.v2, " +
				"the last 2 times, last with exit code 1, and those of 1 other pods"}},
		{"the old version was installed again", []event{
			{At: at(1), Kind: "ClusterServiceVersion", Name: "a.v1", State: "Pending", Reason: "NeedsReinstall: x"},
			{At: at(2), Kind: "ClusterServiceVersion", Name: "a.v1", State: "Installing"},
		}, []string{"info U203 ClusterServiceVersion/a.v1: OLM installed the old version again before it replaced it (1)"}},
	} {
		t.Run(test.name, func(t *testing.T) { expect(t, judgeProcess(v0, test.timeline, zero, from, to), test.want...) })
	}
}

func TestSharedMode(t *testing.T) {
	const all, own, single = lifecycle.AllNamespaces, lifecycle.OwnNamespace, lifecycle.SingleNamespace
	for _, test := range []struct {
		name     string
		from, to []lifecycle.Mode
		now      lifecycle.Mode
		want     lifecycle.Mode
		shared   bool
	}{
		{"the widest", []lifecycle.Mode{all, own}, []lifecycle.Mode{all, own}, "", all, true},
		{"the widest of both", []lifecycle.Mode{all, own, single}, []lifecycle.Mode{own, single}, "", own, true},
		{"what is there stays", []lifecycle.Mode{all, own}, []lifecycle.Mode{all, own}, own, own, true},
		{"nothing in common", []lifecycle.Mode{own}, []lifecycle.Mode{all}, "", own, false},
		{"nothing at all", nil, nil, "", all, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, shared := sharedMode(test.from, test.to, test.now)
			if got != test.want || shared != test.shared {
				t.Errorf("got %s, %t", got, shared)
			}
		})
	}
}

func TestShard(t *testing.T) {
	plan := graph.Plan{LeftOut: []graph.Edge{{To: "x"}}}
	for _, to := range []string{"a", "b", "c", "d", "e"} {
		plan.Hops = append(plan.Hops, graph.Edge{To: to})
	}
	names := func(edges []graph.Edge) string {
		var s string
		for _, e := range edges {
			s += e.To
		}
		return s
	}
	for _, test := range []struct{ shard, hops, leftOut string }{
		{"0/1", "abcde", "x"}, {"0/2", "ab", "xcde"}, {"1/2", "cde", "xab"}, {"7/9", "d", "xabce"}, {"0/9", "", "xabcde"},
	} {
		s, err := ParseShard(test.shard, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := s.Take(plan)
		if names(got.Hops) != test.hops || names(got.LeftOut) != test.leftOut {
			t.Errorf("shard %s: hops %s, left out %s", test.shard, names(got.Hops), names(got.LeftOut))
		}
	}
	for _, wrong := range []string{"", "1", "2/2", "-1/2", "a/b", "1/2/3"} {
		if _, err := ParseShard(wrong, nil); err == nil {
			t.Errorf("shard %q is taken", wrong)
		}
	}
}

func TestShardOfTheEnvironment(t *testing.T) {
	for _, test := range []struct {
		shard string
		env   map[string]string
		want  Shard
		wrong string
	}{
		{"auto/4", map[string]string{"JOB_COMPLETION_INDEX": "3"}, Shard{3, 4}, ""},
		{"auto", map[string]string{"CI_NODE_INDEX": "1", "CI_NODE_TOTAL": "3"}, Shard{0, 3}, ""},
		{"auto", map[string]string{"CIRCLE_NODE_INDEX": "1", "CIRCLE_NODE_TOTAL": "3"}, Shard{1, 3}, ""},
		{"auto", map[string]string{"BUILDKITE_PARALLEL_JOB": "2", "BUILDKITE_PARALLEL_JOB_COUNT": "3"}, Shard{2, 3}, ""},
		{"auto/2", map[string]string{"CI_NODE_INDEX": "2", "CI_NODE_TOTAL": "3"}, Shard{1, 2}, ""},
		{"auto", map[string]string{"JOB_COMPLETION_INDEX": "3"}, Shard{}, "none of how many: write auto/N"},
		{"auto/3", map[string]string{"JOB_COMPLETION_INDEX": "3"}, Shard{}, "0 <= INDEX < OF"},
		{"auto", map[string]string{"CI_NODE_INDEX": "one", "CI_NODE_TOTAL": "3"}, Shard{}, `CI_NODE_INDEX is "one"`},
		{"auto", nil, Shard{}, "JOB_COMPLETION_INDEX, CI_NODE_INDEX"},
	} {
		got, err := ParseShard(test.shard, func(name string) string { return test.env[name] })
		if got != test.want || (err == nil) != (test.wrong == "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
			t.Errorf("shard %s with %v: %v, %v", test.shard, test.env, got, err)
		}
	}
}

func TestLastLines(t *testing.T) {
	if got := lastLines("a\n\nb\nc\n", 2); got != "b\nc" {
		t.Errorf("got %q", got)
	}
	if got := lastLines("started\npanic: no luck\n\ngoroutine 1 [running]:\nmain.main()\n\tmain.go:3 +0x1\n", 3); got != "panic: no luck\ngoroutine 1 [running]:\nmain.main()" {
		t.Errorf("%q", got)
	}
	if got := lastLines("", 2); got != "" {
		t.Errorf("got %q", got)
	}
}
