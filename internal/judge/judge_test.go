package judge

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
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

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/test/support/expect"
)

var update = flag.Bool("update", false, "write golden files anew")

// TestDocs holds docs/checks/U.md against code.All, and the checks that it names against their pages; -update writes it.
func TestDocs(t *testing.T) {
	root := filepath.Join("..", "..", "docs", "checks")
	var page strings.Builder
	page.WriteString("# U: While upgrading\n\nWhat `olmkit upgrade test` sees while OLM upgrades, and afterwards. A code never changes its meaning.\n\n" +
		fmt.Sprintf("With `--strict` the warnings are errors, but for those about samples (U311, U314) and for outages (U401, U402, U404) of\nup to %g s: a client that tries again once does not notice these. Faults (U701, U702) are on [a page of their own](../faults.md).\n\n"+
			"With `--rollback` a hop that failed is followed by what an administrator can do: the Subscription and the\nClusterServiceVersions are deleted, "+
			"and the version before is subscribed to again, with `startingCSV` and approval by hand, so\nthat OLM does not upgrade at once. Definitions and objects stay. "+
			"What comes of it are U801 to U804.\n", strictOutage))
	for _, c := range code.All {
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
		t.Run(test.name, func(t *testing.T) { expect.Findings(t, Versions(test.before, test.now, test.stored), test.want...) })
	}
}

func TestFieldFindings(t *testing.T) {
	view := func(text string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: expect.Object(t, text)}
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
			o := &observe.Object{Kind: "Thing", Name: "a", Version: "v1", Author: expect.Object(t, wrote), Views: map[string]*unstructured.Unstructured{}}
			if test.before != "" {
				o.Views[test.version] = view(test.before)
			}
			expect.Findings(t, FieldFindings(o, crd("v2", "v1", "v2"), test.version, view(test.now), "v2"), test.want...)
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
		o := &observe.Object{Kind: "Thing", Name: "a", Version: "v1", Views: map[string]*unstructured.Unstructured{"v2": {Object: expect.Object(t, before)}}}
		got := FieldFindings(o, d, "v2", &unstructured.Unstructured{Object: expect.Object(t, now)}, "v2")
		if len(got) != 1 || got[0].Code != code.DefaultChanged {
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
		return map[string]*unstructured.Unstructured{"v1": {Object: expect.Object(t, "metadata: {annotations: {olmkit.dev/writes: '"+n+"'}}")}}
	}
	o := &observe.Object{Kind: "Thing", Name: "a", Version: "v1"}
	expect.Findings(t, WriteFindings(o, view("")))
	o.Acked.Store(7)
	expect.Findings(t, WriteFindings(o, view("7")))
	expect.Findings(t, WriteFindings(o, view("8"))) // got through, although the answer did not
	o.Late.Store(int64(5), true)                    // carried out after those that followed it
	expect.Findings(t, WriteFindings(o, view("5")))
	expect.Findings(t, WriteFindings(o, view("6")), "error U305 Thing/a: write number 7 through v1 was acknowledged, but the object has number 6")
}

func TestJudgeOperands(t *testing.T) {
	operands := func(list ...observe.Operand) map[string]observe.Operand {
		m := map[string]observe.Operand{}
		for _, o := range list {
			m[o.String()] = o
		}
		return m
	}
	made := func(kind, uid string, port int64, restarts int32) observe.Operand {
		return observe.Operand{
			Kind: kind, Namespace: "n", Name: "a", UID: types.UID(uid), Restarts: restarts, Of: "Pot/n/a",
			Content: map[string]any{"spec": map[string]any{"port": port}},
		}
	}
	service := func(kind string, ports ...int64) observe.Operand {
		o := made("Service", "1", 1, 0)
		var list []any
		for _, p := range ports {
			list = append(list, map[string]any{"port": p, "protocol": "TCP"})
		}
		o.Content = map[string]any{"spec": map[string]any{"type": kind, "ports": list}}
		return o
	}
	marked := func(marks map[string]any) observe.Operand {
		o := made("Service", "1", 1, 0)
		o.Marks = marks
		return o
	}
	pods := func(containers ...any) observe.Operand {
		return observe.Operand{Kind: "Deployment", Namespace: "n", Name: "a", UID: "1", Content: map[string]any{"spec": map[string]any{"containers": containers}}}
	}
	container := func(name, image string, env ...any) any {
		return map[string]any{"name": name, "image": image, "env": env}
	}
	env := func(name, value string) any { return map[string]any{"name": name, "value": value} }
	runs := func(image string) observe.Operand { return pods(container("main", image)) }
	for _, test := range []struct {
		name          string
		before, after map[string]observe.Operand
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
				`spec.type was "ClusterIP" and is "NodePort"`}},
		{"no longer from outside", operands(service("LoadBalancer", 80)), operands(service("ClusterIP", 80)),
			[]string{"error U510 Service/n/a: clients that the old version served fail: type was LoadBalancer and is ClusterIP"}},
		{"made anew", operands(made("Service", "1", 1, 0)), operands(made("Service", "2", 1, 0)),
			[]string{"warning U501 Service/n/a: it was deleted and made anew during the upgrade: its UID is another"}},
		{"changed", operands(made("Service", "1", 1, 0)), operands(made("Service", "1", 2, 0)),
			[]string{"warning U505 Service/n/a: the new version changed it although nobody changed the object it was made for: spec.port was 1 and is 2"}},
		{"a newer image", operands(runs("example.com:5000/a:v1.2")), operands(runs("example.com:5000/a:v1.3@sha256:0")),
			[]string{`info U505 Deployment/n/a: the new version changed it although nobody changed the object it was made for: spec.containers[main].image was "example.com:5000/a:v1.2" and is "example.com:5000/a:v1.3@sha256:0"`}},
		{"the next major version", operands(runs("a:13.1")), operands(runs("a:16.0")),
			[]string{`warning U505 Deployment/n/a: the new version changed it although nobody changed the object it was made for: spec.containers[main].image was "a:13.1" and is "a:16.0"`}},
		{"another image", operands(runs("example.com:5000/a:1")), operands(runs("example.com:5000/b:1")),
			[]string{`warning U505 Deployment/n/a: the new version changed it although nobody changed the object it was made for: spec.containers[main].image was "example.com:5000/a:1" and is "example.com:5000/b:1"`}},
		{"containers and variables more", operands(pods(container("main", "a:1", env("A", "1"), env("B", "2")))),
			operands(pods(container("side", "b:1", env("A", "1")), container("main", "a:1", env("B", "2"), env("C", "3"), env("A", "1")))),
			[]string{"info U505 Deployment/n/a: the new version added to it spec.containers[main].env[C], spec.containers[side]"}},
		{"the first variable", operands(runs("a:1")), operands(pods(container("main", "a:1", env("A", "1")))),
			[]string{"info U505 Deployment/n/a: the new version added to it spec.containers[main].env[A]"}},
		{"a variable changed, and one gone", operands(pods(container("main", "a:1", env("A", "1"), env("B", "2")))), operands(pods(container("main", "a:1", env("B", "3")))),
			[]string{"warning U505 Deployment/n/a: the new version changed it although nobody changed the object it was made for: " +
				`spec.containers[main].env[A] was {"name":"A","value":"1"} and is gone; spec.containers[main].env[B].value was "2" and is "3"`}},
		{"restarted", operands(made("Pod", "1", 1, 0)), operands(made("Pod", "1", 1, 2)),
			[]string{"warning U506 Pod/n/a: its containers were restarted 2 times during the upgrade"}},
		{"rolled", operands(made("Pod", "1", 1, 0), made("ReplicaSet", "2", 1, 0)), nil,
			[]string{"info U502 : the upgrade replaced 1 pods that were made for objects: n/a"}},
		{"disowned", operands(made("Secret", "1", 1, 0)), operands(observe.Operand{
			Kind: "Secret", Namespace: "n", Name: "a", UID: "1", Disowned: true, Content: map[string]any{"spec": map[string]any{"port": int64(1)}},
		}), []string{"warning U505 Secret/n/a: the new version took its owner reference to Pot/n/a away: when that is deleted, Kubernetes leaves it, and only the operator can delete it"}},
		{"labels and annotations", operands(marked(map[string]any{"labels": map[string]any{"app": "a", "team": "t"}, "annotations": map[string]any{"scrape": "yes", "olmkit.dev/x": "1"}})),
			operands(marked(map[string]any{"labels": map[string]any{"app": "b", "new": "n"}})),
			[]string{"warning U505 Service/n/a: the new version took from it what others may select it or be configured by: label team, annotation scrape"}},
		{"new ones do not matter", nil, operands(made("Service", "1", 1, 0)), nil},
	} {
		t.Run(test.name, func(t *testing.T) { expect.Findings(t, Operands(test.before, test.after), test.want...) })
	}
}

func TestJudgeOutages(t *testing.T) {
	o := func(version, operation string, start, end float64, open bool) outage {
		return outage{CRD: "c", Version: version, Operation: operation, Start: at(start), End: at(end), Errors: 3, First: "no endpoints available", Last: "no endpoints available", Open: open}
	}
	other := o("v1", observe.Write, 1, 2, true)
	other.Last, other.Object = "x509: certificate has expired", "Thing/n/a"
	before := map[string]*lifecycle.Definition{"c": {Served: []string{"v1", "v2"}}}
	for _, test := range []struct {
		name string
		list []outage
		done bool
		want []string
	}{
		{"none", nil, true, nil},
		{"all versions in one", []outage{o("v1", observe.Read, 1, 2, false), o("v1", observe.Read, 3, 5, false), o("v2", observe.Read, 1, 2, false), o("v1", observe.Write, 1, 2, false)}, true, []string{
			"warning U401 CustomResourceDefinition/c: no read through v1 for 3.0s in all, 2 times for up to 2.0s, no read through v2 for 1.0s; the longest began with: no endpoints available",
			"warning U402 CustomResourceDefinition/c: no write through v1 for 1.0s; the longest began with: no endpoints available",
		}},
		{"a new version is worth a note", []outage{o("v3", observe.Read, 1, 2, false)}, true, []string{
			"info U401 CustomResourceDefinition/c: no read through v3 for 1.0s; the longest began with: no endpoints available; the version is new, so nobody used it yet"}},
		{"what stays is an error", []outage{o("v1", observe.Read, 1, 2, true), o("v1", observe.Write, 1, 2, true)}, true, []string{
			"error U403 CustomResourceDefinition/c: no read through v1 for 1.0s, no write through v1 for 1.0s; the longest began with: no endpoints available"}},
		{"a new version that never works is an error", []outage{o("v3", observe.Read, 1, 2, true)}, true, []string{
			"error U403 CustomResourceDefinition/c: no read through v3 for 1.0s; the longest began with: no endpoints available"}},
		{"its last error may be another than its first", []outage{other}, true, []string{
			"error U403 CustomResourceDefinition/c: no write through v1 for 1.0s; the longest began with: no endpoints available; the last, of Thing/n/a: x509: certificate has expired"}},
		{"unless the upgrade failed anyway", []outage{o("v3", observe.Read, 1, 2, true)}, false, []string{
			"info U403 CustomResourceDefinition/c: no read through v3 for 1.0s; the longest began with: no endpoints available; the version is new, so nobody used it yet"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			expect.Findings(t, outageFindings(test.list, before, nil, test.done), test.want...)
		})
	}
}

func TestCollapse(t *testing.T) {
	got := Collapse([]finding.Finding{
		code.Finding(code.FieldLost, "Thing/a", "spec.size is gone"), code.Finding(code.FieldLost, "Thing/b", "spec.size is gone"),
		code.Finding(code.FieldLost, "Thing/c", "spec.port is gone"), code.Finding(code.FieldLost, "Thing/a", "spec.size is gone"),
	})
	expect.Findings(t, got, "error U302 Thing/a: spec.size is gone; the same of 1 more: Thing/b", "error U302 Thing/c: spec.port is gone")

	// A Job that is gone is another matter than a ConfigMap.
	got = Collapse([]finding.Finding{code.Finding(code.OperandReplaced, "ConfigMap/n/a", "it was deleted"), code.Finding(code.OperandReplaced, "Job/n/a", "it was deleted"), code.Finding(code.OperandReplaced, "ConfigMap/n/b", "it was deleted")})
	expect.Findings(t, got, "warning U501 ConfigMap/n/a: it was deleted; the same of 1 more: ConfigMap/n/b", "warning U501 Job/n/a: it was deleted")

	// What is made for an object is called as it.
	got = Collapse([]finding.Finding{
		code.Finding(code.DoesLess, "Thing/n/a", "it does not change StatefulSet/n/a-db"), code.Finding(code.DoesLess, "Thing/n/b", "it does not change StatefulSet/n/b-db"),
		code.Finding(code.DoesLess, "Thing/n/c", "it does not change StatefulSet/n/c"), code.Finding(code.DoesLess, "Thing/d", "it does not change StatefulSet/d"),
	})
	expect.Findings(t, got, "error U514 Thing/n/a: it does not change StatefulSet/n/a-db; the same of 1 more: Thing/n/b", "error U514 Thing/n/c: it does not change StatefulSet/n/c",
		"error U514 Thing/d: it does not change StatefulSet/d")

	// Of many objects some are named.
	var many []finding.Finding
	for i := range 10_000 {
		many = append(many, code.Finding(code.FieldLost, fmt.Sprintf("Thing/%d", i), "spec.size is gone"))
	}
	expect.Findings(t, Collapse(many), "error U302 Thing/0: spec.size is gone; the same of 9999 more: Thing/1, Thing/2, Thing/3, Thing/4, Thing/5, …")
}

// v0 is OLM v0, not connected: it tells what it knows of itself.
var v0 = &olmv0.Client{}

func testRelease(name string) *lifecycle.Release {
	r := &lifecycle.Release{Name: name, CSV: &v1alpha1.ClusterServiceVersion{}}
	var d appsv1.DeploymentSpec
	d.Template.Spec.Containers = []corev1.Container{{Image: "example.com/op:" + name}}
	r.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []v1alpha1.StrategyDeploymentSpec{{Name: "op", Spec: d}}
	return r
}

func TestJudgeProcess(t *testing.T) {
	from, to := testRelease("a.v1"), testRelease("a.v2")
	rollout := func(s float64, name string) lifecycle.Event {
		return lifecycle.Event{At: at(s), Kind: observe.KindRollout, Name: name, State: observe.StateCreated, For: "op"}
	}
	restart := func(s float64, pod, reason string) lifecycle.Event {
		return lifecycle.Event{At: at(s), Kind: observe.KindPod, Name: pod, State: observe.StateRestarted, Reason: reason}
	}
	pods := map[string]observe.OperatorPod{"p": {Deployment: "op"}, "q": {Deployment: "op"}, "server-0": {}, "cache": {Deployment: "cache"}}
	for _, test := range []struct {
		name     string
		timeline []lifecycle.Event
		want     []string
	}{
		{"one rollout is as it should be", []lifecycle.Event{rollout(-1, "op-0"), rollout(1, "op-1")}, nil},
		{"two rollouts", []lifecycle.Event{rollout(1, "op-1"), rollout(4, "op-2"), rollout(4, "op-1")},
			[]string{"warning U202 Deployment/op: it was rolled out 2 times during the upgrade to a.v2"}},
		{"OLM's own second rollout", []lifecycle.Event{rollout(1, "op-1"), {At: at(2), Kind: "ClusterServiceVersion", Name: "a.v2", State: "Pending", Reason: "NeedsCertRotation: x"}, rollout(4, "op-2")},
			[]string{"info U202 Deployment/op: it was rolled out 2 times during the upgrade to a.v2"}},
		{"restarts", []lifecycle.Event{restart(1, "p/m", "1 times"), restart(2, "q/m", "1 times"), restart(3, "p/m", "2 times, last with exit code 1")},
			[]string{"warning U201 Pod/p/m: the operator's containers ended and were started again during the upgrade to a.v2, " +
				"the last 2 times, last with exit code 1, and those of 1 other pods"}},
		{"restarts of what the operator made beside itself", []lifecycle.Event{restart(1, "server-0/m", "1 times"), restart(1, "cache/m", "1 times")}, nil},
		{"the old version was installed again", []lifecycle.Event{
			{At: at(1), Kind: "ClusterServiceVersion", Name: "a.v1", State: "Pending", Reason: "NeedsReinstall: x"},
			{At: at(2), Kind: "ClusterServiceVersion", Name: "a.v1", State: "Installing"},
		}, []string{"info U203 ClusterServiceVersion/a.v1: it was installed again before it was replaced (1)"}},
	} {
		t.Run(test.name, func(t *testing.T) { expect.Findings(t, Process(v0, test.timeline, pods, zero, from, to), test.want...) })
	}
}
