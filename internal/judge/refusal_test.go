package judge

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/test/support/expect"
)

// Events as Kubernetes 1.36 writes them, shortened: seconds, pod, verb, resource, namespace, object, answer.
const (
	auditEvent = `{"kind":"Event","level":"Metadata","auditID":"%[1]v","stage":"%[9]s","verb":"%[3]s",` +
		`"user":{"username":"system:serviceaccount:operators:manager","groups":["system:serviceaccounts"],` +
		`"extra":{"authentication.kubernetes.io/pod-name":["%[2]s"]}},"sourceIPs":["10.1.0.7"],` +
		`"objectRef":{"resource":"%[4]s","namespace":"%[5]s","name":"%[6]s","apiGroup":"apps","apiVersion":"v1"%[8]s},` +
		`"responseStatus":%[7]s,"requestReceivedTimestamp":"2026-01-02T03:04:%09.6[1]fZ"}` + "\n"

	mayNotList = `{"status":"Failure","message":"deployments.apps is forbidden: User \"system:serviceaccount:operators:manager\" cannot list ` +
		`resource \"deployments\" in API group \"apps\" at the cluster scope","reason":"Forbidden","details":{"group":"apps","kind":"deployments"},"code":403}`
	mayNotWatch = `{"status":"Failure","message":"deployments.apps is forbidden: User \"system:serviceaccount:operators:manager\" cannot watch ` +
		`resource \"deployments\" in API group \"apps\" at the cluster scope","reason":"Forbidden","code":403}`
	mayNotCreate = `{"status":"Failure","message":"deployments.apps \"a\" is forbidden: User \"system:serviceaccount:operators:manager\" cannot create ` +
		`resource \"deployments\" in API group \"apps\" in the namespace \"n\"","reason":"Forbidden","code":403}`
	terminates = `{"status":"Failure","message":"deployments.apps \"a\" is forbidden: unable to create new content in namespace n because it is being terminated",` +
		`"reason":"Forbidden","details":{"causes":[{"reason":"NamespaceTerminating","field":"metadata.namespace"}]},"code":403}`
	injected = `{"status":"Failure","message":"deployments.apps \"a\" is forbidden: ValidatingAdmissionPolicy 'olmkit-fault' with binding ` +
		`'olmkit-fault' denied request: olmkit forbids it for a while","reason":"Forbidden","code":403}`
	notThere  = `{"status":"Failure","message":"the server could not find the requested resource","reason":"NotFound","code":404}`
	noObject  = `{"status":"Failure","message":"deployments.apps \"a\" not found","reason":"NotFound","details":{"name":"a"},"code":404}`
	conflicts = `{"status":"Failure","message":"Operation cannot be fulfilled on deployments.apps \"a\": the object has been modified","reason":"Conflict","code":409}`
	exists    = `{"status":"Failure","message":"deployments.apps \"a\" already exists","reason":"AlreadyExists","code":409}`
	immutable = `{"status":"Failure","message":"StatefulSet.apps \"a\" is invalid: spec: Forbidden: updates to statefulset spec for fields other than 'replicas', ` +
		`'template' are forbidden","reason":"Invalid","details":{"name":"a","kind":"StatefulSet","causes":[{"reason":"FieldValueForbidden",` +
		`"message":"Forbidden: …","field":"spec"}]},"code":422}`
	patchTest = `{"status":"Failure","message":"the server rejected our request due to an error in our request","reason":"Invalid","details":{},"code":422}`
	denied    = `{"status":"Failure","message":"admission webhook \"v.example.com\" denied the request: size is over the quota","reason":"Forbidden","code":403}`
	okay      = `{"code":200}`
	created   = `{"code":201}`
	unknownTo = `{"code":401,"status":"Failure","message":"Authentication failed, attempted: bearer"}`
)

type asked struct {
	at                          float64
	pod, verb, resource, answer string
}

func (a asked) event() string {
	resource, sub, _ := strings.Cut(a.resource, "/")
	namespace, name, extra, stage := "n", "a", "", "ResponseComplete"
	if a.verb == "list" || a.verb == "watch" {
		namespace, name = "", ""
	}
	if sub != "" {
		extra = `,"subresource":"` + sub + `"`
	}
	if a.verb == "watch" && a.answer == okay {
		stage = "ResponseStarted"
	}
	return fmt.Sprintf(auditEvent, a.at, a.pod, a.verb, resource, namespace, name, a.answer, extra, stage)
}

func auditLog(t *testing.T, list []asked) []auditv1.Event {
	t.Helper()
	var log strings.Builder
	for _, a := range list {
		log.WriteString(a.event())
	}
	events := cluster.ParseAudit([]byte(log.String()), time.Time{})
	if len(events) != len(list) {
		t.Fatalf("%d of %d events can be read:\n%s", len(events), len(list), log.String())
	}
	return events
}

func times(n int, a asked) []asked {
	var list []asked
	for i := range n {
		b := a
		b.at += float64(i) / 10
		list = append(list, b)
	}
	return list
}

func newRelease(name string) *lifecycle.Release {
	csv := &v1alpha1.ClusterServiceVersion{}
	csv.Spec.InstallStrategy.StrategySpec.ClusterPermissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "manager"}}
	return &lifecycle.Release{Name: name, CSV: csv}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	const list, create = "list", "create"
	const rule = "add to the rules of serviceAccountName manager in spec.install.spec.clusterPermissions of the ClusterServiceVersion: "
	started := time.Date(2026, 1, 2, 3, 4, 10, 0, time.UTC)
	pods := map[string]observe.OperatorPod{"old": {Release: "v1"}, "new": {Release: "v2", IP: "10.1.0.7"}}
	for _, test := range []struct {
		name string
		log  []asked
		want []string // findings
		fix  string
	}{
		{"list and watch are one finding with the rule",
			[]asked{{12, "new", list, "deployments", mayNotList}, {13, "new", "watch", "deployments", mayNotWatch}, {14.5, "new", list, "deployments", mayNotList}},
			[]string{"error U211 ServiceAccount/operators/manager: v2: the API server refuses ServiceAccount operators/manager: list, watch deployments.apps " +
				"at the cluster scope (3 times, 2.0s to 4.5s after the start)"},
			rule + "- {apiGroups: [apps], resources: [deployments], verbs: [list, watch]}"},
		{"a patch that may not create lacks create", []asked{{12, "new", "patch", "deployments", mayNotCreate}},
			[]string{"error U211 ServiceAccount/operators/manager: v2: the API server refuses ServiceAccount operators/manager: create deployments.apps " +
				"in namespace n (once, 2.0s after the start)"},
			rule + "- {apiGroups: [apps], resources: [deployments], verbs: [create]}"},
		{"what is allowed later is none", []asked{{12, "new", list, "deployments", mayNotList}, {13, "new", list, "deployments", okay}}, nil, ""},
		{"a patch that created shows that create is allowed",
			[]asked{{12, "new", "patch", "deployments", mayNotCreate}, {13, "new", "patch", "deployments", created}}, nil, ""},
		{"the old manager on its way out", []asked{{12, "old", list, "deployments", mayNotList}}, nil, ""},
		{"the version before was refused the same",
			[]asked{{5, "old", list, "deployments", mayNotList}, {12, "new", list, "deployments", mayNotList}},
			[]string{"warning U211 ServiceAccount/operators/manager: v2: the API server refuses ServiceAccount operators/manager: list deployments.apps " +
				"at the cluster scope (once, 2.0s after the start)"}, ""},
		{"the version before was refused the other verb of an informer",
			[]asked{{5, "old", list, "deployments", mayNotList}, {12, "new", "watch", "deployments", mayNotWatch}},
			[]string{"warning U211 ServiceAccount/operators/manager: v2: the API server refuses ServiceAccount operators/manager: watch deployments.apps " +
				"at the cluster scope (once, 2.0s after the start)"}, ""},
		{"a namespace that goes", []asked{{12, "new", create, "deployments", terminates}}, nil, ""},
		{"a fault of the walk's own", []asked{{12, "new", create, "deployments", injected}}, nil, ""},
		{"an optional API is asked for twice", times(2, asked{12, "new", list, "deployments", notThere}), nil, ""},
		{"an API that is needed is not there", times(3, asked{12, "new", list, "deployments", notThere}),
			[]string{"error U212 deployments.apps: v2: the API server refuses ServiceAccount operators/manager: list deployments.apps at the cluster scope " +
				"(3 times, 2.0s to 2.2s after the start)"}, ""},
		{"an object that is not there", times(9, asked{12, "new", "get", "deployments", noObject}), nil, ""},
		{"conflicts that end", append(times(9, asked{12, "new", "update", "deployments", conflicts}), asked{14, "new", "update", "deployments", okay}), nil, ""},
		{"conflicts without end", times(9, asked{12, "new", "update", "deployments", conflicts}),
			[]string{"error U213 deployments.apps/n/a: v2: the API server refuses ServiceAccount operators/manager: update deployments.apps in namespace n " +
				"(9 times, 2.0s to 2.8s after the start)"}, ""},
		{"who leads is fought for", times(9, asked{12, "new", "update", "leases", conflicts}), nil, ""},
		{"what is there already", times(9, asked{12, "new", create, "deployments", exists}), nil, ""},
		{"a patch that tests first", times(9, asked{12, "new", "patch", "deployments", patchTest}), nil, ""},
		{"an immutable field", []asked{{12, "new", "update", "statefulsets", immutable}},
			[]string{"error U214 statefulsets.apps/n/a: v2: the API server refuses ServiceAccount operators/manager: update statefulsets.apps in namespace n " +
				"(once, 2.0s after the start); it would change spec"}, ""},
		{"an immutable field of what is then made anew",
			[]asked{{12, "new", "update", "statefulsets", immutable}, {13, "new", create, "statefulsets", created}}, nil, ""},
		{"a webhook denies", []asked{{12, "new", "patch", "deployments/status", denied}},
			[]string{"error U215 deployments.apps/status/n/a: v2: the API server refuses ServiceAccount operators/manager: patch deployments.apps/status " +
				"in namespace n (once, 2.0s after the start)"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			log := auditLog(t, test.log)
			before := observe.Refusals(log, observe.Asker(newRelease("v1"), "operators", pods, time.Time{}, started))
			now := observe.Refusals(log, observe.Asker(newRelease("v2"), "operators", pods, started, time.Time{}))
			got := RefusalFindings(now, before, newRelease("v2"), started, func(namespace string) bool { return namespace == "operators" })
			expect.Findings(t, got, test.want...)
			if test.fix != "" && got[0].Fix != test.fix {
				t.Errorf("fix %q, want %q", got[0].Fix, test.fix)
			}
		})
	}
}

// TestUnauthorized knows by its address who sent a token that the API server does not know.
func TestUnauthorized(t *testing.T) {
	t.Parallel()
	pods := map[string]observe.OperatorPod{"new": {Release: "v2", IP: "10.1.0.7"}}
	log := auditLog(t, []asked{{12, "", "list", "deployments", unknownTo}})
	log[0].User.Username = ""
	if got := observe.Refusals(log, observe.Asker(newRelease("v2"), "operators", pods, time.Time{}, time.Time{})); len(got) != 1 || got[0].Account != "operators/manager" || got[0].Code != code.Forbidden {
		t.Errorf("%+v", got)
	}
	// Nor does a pod's token outlive its ServiceAccount, which OLM makes anew when it starts over.
	if got := observe.Refusals(log, observe.Known(observe.Asker(newRelease("v2"), "operators", pods, time.Time{}, time.Time{}))); len(got) > 0 {
		t.Errorf("of an installation that did not come to its end: %+v", got)
	}
	log[0].SourceIPs = []string{"10.1.0.9"}
	if got := observe.Refusals(log, observe.Asker(newRelease("v2"), "operators", pods, time.Time{}, time.Time{})); len(got) > 0 {
		t.Errorf("of another pod: %+v", got)
	}
}

// TestLapsed tells what was not asked for since it is forbidden as such.
func TestLapsed(t *testing.T) {
	t.Parallel()
	var list []observe.Refusal
	for _, verb := range []string{"watch", "list"} {
		list = append(list, observe.Refusal{Access: observe.Access{Account: "operators/manager", Verb: verb, Resource: "pods", Namespace: "operators"}, Code: code.Forbidden, Why: "it was allowed"})
	}
	got := RefusalFindings(list, nil, newRelease("v2"), time.Now(), func(namespace string) bool { return namespace == "operators" })
	expect.Findings(t, got, "error U211 ServiceAccount/operators/manager: v2: ServiceAccount operators/manager may not list, watch pods in namespace operators")
	want := `add to the rules of serviceAccountName manager in spec.install.spec.permissions of the ClusterServiceVersion: - {apiGroups: [""], resources: [pods], verbs: [list, watch]}`
	if got[0].Severity != finding.Error || got[0].Fix != want {
		t.Errorf("fix %q, want %q", got[0].Fix, want)
	}
}

// TestWithInformers names both verbs of an informer where only one was asked for.
func TestWithInformers(t *testing.T) {
	t.Parallel()
	pods := observe.Access{Account: "operators/manager", Verb: "watch", Resource: "pods"}
	for name, test := range map[string]struct {
		verbs   []string
		allowed bool
		want    string // finding
	}{
		"watch was asked for":           {[]string{"watch"}, false, "may not list, watch pods"},
		"list was asked for":            {[]string{"list"}, false, "may not list, watch pods"},
		"both were asked for":           {[]string{"list", "watch"}, false, "may not list, watch pods"},
		"the other is allowed":          {[]string{"watch"}, true, "may not watch pods"},
		"no informer's verb is refused": {[]string{"create"}, false, "may not create pods"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var list []observe.Refusal
			for _, verb := range test.verbs {
				a := pods
				a.Verb = verb
				list = append(list, observe.Refusal{Access: a, Code: code.Forbidden})
			}
			list, err := observe.WithInformers(list, func(observe.Access) (bool, error) { return test.allowed, nil })
			if err != nil {
				t.Fatal(err)
			}
			got := RefusalFindings(list, nil, newRelease("v2"), time.Now(), func(string) bool { return false })
			expect.Findings(t, got, "error U211 ServiceAccount/operators/manager: v2: ServiceAccount operators/manager "+test.want+" at the cluster scope")
		})
	}
}

const manager = "operators/manager"

// forbiddenMessage is what the API server's own code says to account that may not do what attributes say.
func forbiddenMessage(account string, attributes authorizer.AttributesRecord) string {
	attributes.User = &user.DefaultInfo{Name: "system:serviceaccount:" + strings.Replace(account, "/", ":", 1)}
	attributes.ResourceRequest = true
	return responsewriters.ForbiddenStatusError(attributes, "").Error()
}

// TestForbiddenFindings makes of what is told the findings that an audit log leads to.
func TestForbiddenFindings(t *testing.T) {
	t.Parallel()
	started := time.Date(2026, 1, 2, 3, 4, 10, 0, time.UTC)
	mayNot := func(verb string) string {
		return forbiddenMessage(manager, authorizer.AttributesRecord{Verb: verb, APIGroup: "apps", Resource: "deployments"})
	}
	list := observe.ForbiddenIn([]observe.Statement{
		{Text: mayNot("list"), Where: "the manager's log", Count: 3, First: started.Add(2 * time.Second), Last: started.Add(4 * time.Second)},
		{Text: mayNot("watch"), Where: "condition Ready of Tea/n/a"},
	}, []string{manager})
	local := func(namespace string) bool { return namespace == "operators" }
	got := RefusalFindings(list, nil, newRelease("v2"), started, local)
	expect.Findings(t, got, "error U211 ServiceAccount/operators/manager: v2: the API server refuses ServiceAccount operators/manager: list, watch deployments.apps "+
		"at the cluster scope (3 times, 2.0s to 4.0s after the start)")
	const rule = "add to the rules of serviceAccountName manager in spec.install.spec.clusterPermissions of the ClusterServiceVersion: " +
		"- {apiGroups: [apps], resources: [deployments], verbs: [list, watch]}"
	if got[0].Fix != rule || !strings.HasPrefix(got[0].Cause, "the API server says: deployments.apps is forbidden") {
		t.Errorf("fix %q, cause %q", got[0].Fix, got[0].Cause)
	}
	if before := RefusalFindings(list, list, newRelease("v2"), started, local); before[0].Severity != "warning" {
		t.Errorf("the version before was refused the same: %+v", before[0])
	}
	untimed := observe.ForbiddenIn([]observe.Statement{{Text: mayNot("list"), Where: "the manager's log", Count: 3}}, []string{manager})
	if got := RefusalFindings(untimed, nil, newRelease("v2"), started, local); !strings.HasSuffix(got[0].Message, "at the cluster scope (3 times)") {
		t.Errorf("where no time is known: %s", got[0].Message)
	}
}

func TestInvalidIn(t *testing.T) {
	t.Parallel()
	spec := field.NewPath("spec")
	immutable := apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("StatefulSet").GroupKind(), "a",
		field.ErrorList{field.Forbidden(spec, "updates to statefulset spec for fields other than 'replicas', 'template' are forbidden")}).Error()
	two := apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), "b",
		field.ErrorList{field.Invalid(spec.Child("clusterIPs").Index(0), "", "may not change once set"), field.Required(spec.Child("ports"), "")}).Error()
	operands := map[string]observe.Operand{"StatefulSet/n/a": {Kind: "StatefulSet", Namespace: "n", Name: "a"}}
	said := func(text string) observe.Statement {
		return observe.Statement{Text: "Reconciler error: update: " + text, Where: "the manager's log", Count: 4}
	}
	var got []string
	for _, f := range RefusalFindings(observe.InvalidIn([]observe.Statement{said(immutable), said(two), said(immutable), said("the name is invalid: x")}, manager, operands), nil, newRelease("v2"), time.Time{}, nil) {
		got = append(got, f.Code+" "+f.Subject.Object+": "+f.Message)
	}
	want := []string{
		"U214 statefulsets.apps/n/a: v2: the API server refuses ServiceAccount operators/manager: write statefulsets.apps in namespace n (4 times); it would change spec",
		"U214 services/b: v2: the API server refuses ServiceAccount operators/manager: write services at the cluster scope (4 times); it would change spec.clusterIPs[0], spec.ports",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestRefusedBase is mild about what a release that is out writes, not about what it may not do.
func TestRefusedBase(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]finding.Severity{
		code.Invalid: finding.Warning, code.Denied: finding.Warning, code.Conflicts: finding.Warning, code.Forbidden: finding.Error, code.NoResource: finding.Error,
	} {
		findings := []finding.Finding{code.Finding(kind, "x", "refused")}
		if RefusedBase(findings); findings[0].Severity != want {
			t.Errorf("%s is %s, want %s", kind, findings[0].Severity, want)
		}
	}
}

// TestFixOfInvalid tells a field that nobody can change from a value that nobody can have.
func TestFixOfInvalid(t *testing.T) {
	t.Parallel()
	for why, keeps := range map[string]bool{
		"StatefulSet.apps \"a\" is invalid: spec: Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden":    true,
		"Job.batch \"a\" is invalid: spec.template: Invalid value: {}: field is immutable":                                                  true,
		"Service \"a\" is invalid: spec.clusterIPs[0]: Invalid value: []: may not change once set":                                          true,
		"PersistentVolumeClaim \"a\" is invalid: spec.resources.requests.storage: Forbidden: field can not be less than status.capacity":    false,
		"Deployment.apps \"a\" is invalid: spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'": false,
	} {
		f := RefusalFindings([]observe.Refusal{{Access: observe.Access{Resource: "x"}, Code: code.Invalid, Count: 1, Why: why}}, nil, newRelease("v2"), time.Time{}, nil)[0]
		if got := strings.Contains(f.Fix, "immutable"); got != keeps {
			t.Errorf("%s: fix %q", why, f.Fix)
		}
	}
}
