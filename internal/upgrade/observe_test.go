package upgrade

import (
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/report"
)

func TestAttribute(t *testing.T) {
	at := time.Unix(100, 0)
	request := func(after time.Duration, user, agent, verb, resource, name string, code int32) auditv1.Event {
		return auditv1.Event{
			Verb: verb, UserAgent: agent, User: authenticationv1.UserInfo{Username: user}, StageTimestamp: metav1.NewMicroTime(at.Add(after)),
			ObjectRef: &auditv1.ObjectReference{Resource: resource, Name: name}, ResponseStatus: &metav1.Status{Code: code},
		}
	}
	const olmAccount = "system:serviceaccount:olm:olm-operator-serviceaccount"
	log := []auditv1.Event{
		request(1*time.Second, olmAccount, "catalog/v0.0.0", "update", "customresourcedefinitions", "c", 200),
		request(2*time.Second, "system:serviceaccount:operators:manager", "manager/1", "update", "customresourcedefinitions", "c", 409),
		request(3*time.Second, olmAccount, "olm/v0.0.0", "patch", "customresourcedefinitions", "c", 200),
		request(3*time.Second, "system:serviceaccount:operators:manager", "manager/1", "get", "customresourcedefinitions", "c", 200),
		request(4*time.Second, "system:serviceaccount:kube-system:replicaset-controller", "kube-controller-manager/1", "delete", "pods", "p", 200),
		request(5*time.Second, "system:node:embedded", "olmkit/1", "delete", "pods", "p", 200),
	}
	for _, test := range []struct {
		name string
		e    event
		want string
	}{
		{"the catalog operator wrote it", event{Kind: kindCRD, Name: "c", At: at.Add(1100 * time.Millisecond)}, "OLM's catalog operator"},
		{"who was refused did not", event{Kind: kindCRD, Name: "c", At: at.Add(2100 * time.Millisecond)}, "OLM's catalog operator"},
		{"olm-operator repaired it", event{Kind: kindCRD, Name: "c", At: at.Add(3100 * time.Millisecond)}, "OLM's olm-operator"},
		{"who asked for the end of a pod", event{Kind: kindPod, Name: "p", State: stateGone, At: at.Add(5100 * time.Millisecond)}, "Kubernetes' replicaset-controller"},
		{"nobody is known", event{Kind: kindCRD, Name: "other", At: at.Add(time.Minute)}, ""},
		{"of other kinds nobody asks", event{Kind: "ClusterServiceVersion", Name: "c", At: at.Add(time.Minute)}, ""},
	} {
		if got := attribute(v0, []event{test.e}, log)[0].By; got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestAdmissionIsNotConversion gives the trouble of an admission webhook its own code, and does not blame the definition.
func TestAdmissionIsNotConversion(t *testing.T) {
	at := time.Unix(100, 0)
	list := []outage{{
		CRD: "c", Version: "v1", Operation: write, Start: at.Add(5 * time.Second), End: at.Add(8 * time.Second), Errors: 3,
		First: `Internal error occurred: failed calling webhook "v.example.com": failed to call webhook: Post "https://s.n.svc:443/v": no endpoints available for service "s"`,
	}}
	timeline := []event{
		{At: at.Add(5 * time.Second), Kind: kindCRD, Name: "c", State: "written", CRD: &definition{Generation: 2, Served: []string{"v1"}, Conversion: "n/s/convert"}},
	}
	before := map[string]*definition{"c": {Generation: 1, Served: []string{"v1"}, Conversion: "n/s/convert", CA: "x"}}
	got := judgeOutages(list, before, timeline, true)
	if len(got) != 1 || got[0].Code != codeAdmissionOutage || got[0].Cause != "" {
		t.Errorf("%+v", got)
	}
	list[0].First = "conversion webhook for example.com/v1, Kind=Thing failed: x509"
	if got := judgeOutages(list, before, timeline, true); got[0].Code != codeWriteOutage || got[0].Cause == "" {
		t.Errorf("%+v", got)
	}
}

func TestJudgeEndpoints(t *testing.T) {
	at := time.Unix(100, 0)
	event := func(after int, name, state string) event {
		return event{At: at.Add(time.Duration(after) * time.Second), Kind: kindService, Name: name, State: state}
	}
	operands := map[string]operand{"Service/n/a": {Kind: "Service", Namespace: "n", Name: "a"}, "ConfigMap/n/a": {Kind: "ConfigMap", Namespace: "n", Name: "a"}}
	expect(t, judgeEndpoints(nil, operands))
	expect(t, judgeEndpoints([]eventType{event(1, "n/other", stateUnready)}, operands))
	expect(t, judgeEndpoints([]eventType{event(1, "n/a", stateUnready), event(3, "n/a", stateReady), event(5, "n/a", stateGone), event(6, "n/a", stateReady)}, operands),
		"warning U507 Service/n/a: it had no ready endpoint for 3.0s during the upgrade")
	expect(t, judgeEndpoints([]eventType{event(1, "n/a", stateUnready)}, operands)) // judgeHealth tells it
}

// A Service that lost its endpoints because its StatefulSet was refused is not mended by its pods' end.
func TestExplainEndpoints(t *testing.T) {
	operands := map[string]operand{
		"Service/n/a":     {Kind: "Service", Namespace: "n", Name: "a", Of: "Thing/n/a"},
		"StatefulSet/n/a": {Kind: "StatefulSet", Namespace: "n", Name: "a", Of: "Thing/n/a"},
		"StatefulSet/n/b": {Kind: "StatefulSet", Namespace: "n", Name: "b", Of: "Thing/n/b"},
		"ConfigMap/n/a":   {Kind: "ConfigMap", Namespace: "n", Name: "a", Of: "Thing/n/a"},
	}
	for _, test := range []struct {
		name, code, subject string
		explains            bool
	}{
		{"its StatefulSet was refused", "U214", "statefulsets.apps/n/a", true},
		{"its StatefulSet was made anew", codeOperandReplaced, "StatefulSet/n/a", true},
		{"its StatefulSet is less ready", codeOperandWorse, "StatefulSet/n/a", true},
		{"its StatefulSet was only changed", codeOperandChanged, "StatefulSet/n/a", false},
		{"another object's", "U214", "statefulsets.apps/n/b", false},
		{"no workload", "U214", "configmaps/n/a", false},
	} {
		outage := find(codeOperandOutage, "Service/n/a", "it had no ready endpoint for 3.0s during the upgrade")
		other := finding.Finding{Code: test.code, Subject: finding.Subject{Object: test.subject}, Message: "spec is immutable", Fix: "keep the field"}
		got := explainEndpoints([]finding.Finding{outage, other}, operands)[0]
		if explained := got.Fix == "keep the field" && got.Cause != ""; explained != test.explains || !explained && got.Fix != outage.Fix {
			t.Errorf("%s: %+v", test.name, got)
		}
	}
}

// eventType is event where a test's function has that name.
type eventType = event

func TestChangesOfEndpoints(t *testing.T) {
	slice := func(ready ...bool) *discoveryv1.EndpointSlice {
		s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a-x", Labels: map[string]string{discoveryv1.LabelServiceName: "a"}}}
		for _, r := range ready {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(r)}})
		}
		return s
	}
	if got := changes(slice(true, true), slice(false, true), false); len(got) != 0 {
		t.Errorf("one of two endpoints is left, and it says %v", got)
	}
	if got := changes(slice(true), slice(false), false); len(got) != 1 || got[0].State != stateUnready || got[0].Name != "n/a" {
		t.Errorf("the last endpoint is gone, and it says %v", got)
	}
	if got := changes(slice(true), slice(true), true); len(got) != 1 || got[0].State != stateGone {
		t.Errorf("the slice is gone, and it says %v", got)
	}
}

// A Service is without endpoints when none of its slices has one.
func TestServiceOfSeveralSlices(t *testing.T) {
	slice := func(name string, ready bool) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: "a"}},
			Endpoints:  []discoveryv1.Endpoint{{Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
		}
	}
	w := newWatcher(nil, v0, "n")
	for _, step := range []struct {
		before, now *discoveryv1.EndpointSlice
		gone        bool
		want        string // the event's state
	}{
		{nil, slice("four", true), false, stateReady},
		{nil, slice("six", false), false, ""},
		{slice("six", false), slice("six", true), false, ""},
		{slice("four", true), slice("four", false), false, ""},
		{slice("six", true), slice("six", false), false, stateUnready},
		{slice("four", false), slice("four", true), false, stateReady},
		{nil, slice("six", false), true, ""},
		{nil, slice("four", true), true, stateGone},
		{nil, slice("six", true), false, stateReady},
	} {
		known := len(w.timeline)
		if step.before == nil {
			w.see(nil, step.now, step.gone)
		} else {
			w.see(step.before, step.now, step.gone)
		}
		got := ""
		for _, e := range w.timeline[known:] {
			got += e.State
			if e.Kind != kindService || e.Name != "n/a" || e.For != "" {
				t.Errorf("%+v", e)
			}
		}
		if got != step.want {
			t.Errorf("%s, ready %v, gone %v: %q, wanted %q", step.now.Name, *step.now.Endpoints[0].Conditions.Ready, step.gone, got, step.want)
		}
	}
}

func TestJudgeDropped(t *testing.T) {
	d := crd("v1", "v1")
	from, to := &release{Name: "a"}, &release{Name: "b"}
	from.CRDs = append(from.CRDs, d)
	there := map[string]*definition{d.Name: {}}
	expect(t, judgeDropped(from, from, there))
	expect(t, judgeDropped(from, to, nil))
	expect(t, judgeDropped(from, to, there), "warning U605 CustomResourceDefinition/things.example.com: a owned it and b does not: OLM leaves it, with its objects, to nobody")
}

func TestStrict(t *testing.T) {
	outage := func(operation string, seconds float64, fault string) report.Outage {
		return report.Outage{CRD: "c", Version: "v1", Operation: operation, Seconds: seconds, Fault: fault}
	}
	const object = "CustomResourceDefinition/c"
	for _, test := range []struct {
		name    string
		f       finding.Finding
		outages []report.Outage
		want    finding.Severity
	}{
		{"a note", find(codeOperandRolled, "", ""), nil, finding.Info},
		{"harm", find(codeRestarted, "", ""), nil, finding.Error},
		{"a sample", find(codeSampleRefused, "", ""), nil, finding.Warning},
		{"a short outage", find(codeWriteOutage, object, ""), []report.Outage{outage(write, 0.9, "")}, finding.Warning},
		{"a long outage", find(codeWriteOutage, object, ""), []report.Outage{outage(write, 0.9, ""), outage(write, 1.1, "")}, finding.Error},
		{"a long outage of the other operation", find(codeWriteOutage, object, ""), []report.Outage{outage(write, 0.9, ""), outage(read, 1.1, "")}, finding.Warning},
		{"a long outage by a fault", find(codeReadOutage, object, ""), []report.Outage{outage(read, 0.5, ""), outage(read, 5, "kill-operator@installing")}, finding.Warning},
	} {
		w := &walk{options: Options{Strict: true}}
		findings := []finding.Finding{test.f}
		if w.grade(findings, test.outages); findings[0].Severity != test.want {
			t.Errorf("%s: %s, want %s", test.name, findings[0].Severity, test.want)
		}
		w.options.Grades = finding.Grades{test.f.Code: {Usual: test.f.Severity, Wanted: finding.Info}}
		if w.grade(findings, test.outages); findings[0].Severity != finding.Info {
			t.Errorf("%s: %s with a grade of its own, want %s", test.name, findings[0].Severity, finding.Info)
		}
	}
}
