package upgrade

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"

	"github.com/olmkit/olmkit/internal/managerlog"
)

const manager = "operators/manager"

// forbiddenMessage is what the API server's own code says to account that may not do what attributes say.
func forbiddenMessage(account string, attributes authorizer.AttributesRecord) string {
	attributes.User = &user.DefaultInfo{Name: "system:serviceaccount:" + strings.Replace(account, "/", ":", 1)}
	attributes.ResourceRequest = true
	return responsewriters.ForbiddenStatusError(attributes, "").Error()
}

func TestForbiddenIn(t *testing.T) {
	t.Parallel()
	list := forbiddenMessage(manager, authorizer.AttributesRecord{Verb: "list", APIGroup: "apps", Resource: "deployments"})
	create := forbiddenMessage(manager, authorizer.AttributesRecord{Verb: "create", Resource: "pods", Namespace: "n"})
	status := forbiddenMessage(manager, authorizer.AttributesRecord{Verb: "patch", APIGroup: "example.com", Resource: "teas", Subresource: "status", Namespace: "n", Name: "a.b"})
	for _, test := range []struct {
		name, text string
		want       string
	}{
		{"at the cluster scope", list, "list deployments.apps in []"},
		{"of the core group, in a namespace", create, "create pods in [n]"},
		{"a subresource of a named object", status, "patch teas.example.com/status in [n]"},
		{"wrapped, with what follows", "failed to list *v1.Deployment: " + list + `: RBAC: role "a" not found`, "list deployments.apps in []"},
		{"two in one", "cannot reconcile: [" + create + ", " + status + "]", "create pods in [n], patch teas.example.com/status in [n]"},
		{"the same twice", list + "\n" + list, "list deployments.apps in []"},
		{"another's", forbiddenMessage("kube-system/job-controller", authorizer.AttributesRecord{Verb: "create", Resource: "pods"}), ""},
		{"no resource", `forbidden: User "system:serviceaccount:operators:manager" cannot get path "/metrics"`, ""},
		{"a quota", `pods "a" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1`, ""},
	} {
		var got []string
		for _, r := range forbiddenIn([]statement{{Text: test.text, Where: "the manager's log", Count: 2}}, []string{manager}) {
			got = append(got, fmt.Sprintf("%s %s in [%s]", r.Verb, r.resource(), r.Namespace))
			if r.Code != codeForbidden || r.Count != 2 || r.Account != manager || !refusedVerb.MatchString(r.Why) || !strings.HasSuffix(r.Why, "(quoted by the manager's log)") {
				t.Errorf("%s: %+v", test.name, r)
			}
		}
		if strings.Join(got, ", ") != test.want {
			t.Errorf("%s: %q, want %q\n%s", test.name, got, test.want, test.text)
		}
	}
}

// TestLogStatements reads lines as client-go's reflectors and controller-runtime v0.24 write them.
func TestLogStatements(t *testing.T) {
	t.Parallel()
	mayNot := forbiddenMessage(manager, authorizer.AttributesRecord{Verb: "list", APIGroup: "apps", Resource: "deployments"})
	for name, line := range map[string]string{
		"klog, structured": fmt.Sprintf(`E1121 06:30:00.000000       1 reflector.go:227] "Failed to watch" err=%q logger="UnhandledError" reflector="pkg/mod/k8s.io/client-go@v0.36.3/tools/cache/reflector.go:289" type="*v1.Deployment"`, "failed to list *v1.Deployment: "+mayNot),
		"klog, text":       `E1121 06:30:00.000000       1 reflector.go:150] pkg/reflector.go:229: Failed to watch *v1.Deployment: failed to list *v1.Deployment: ` + mayNot,
		"zap":              fmt.Sprintf(`{"level":"error","ts":"2026-11-21T06:30:00Z","msg":"Reconciler error","controller":"tea","namespace":"n","name":"a","error":%q,"stacktrace":"a"}`, "list: "+mayNot),
		"zap's console":    fmt.Sprintf("2026-11-21T06:30:00Z\tERROR\tReconciler error\t{\"controller\": \"tea\", \"error\": %q}", "list: "+mayNot),
	} {
		log := managerlog.New()
		reader := log.Reader("")
		_, _ = reader.Write([]byte(line + "\n" + line + "\n"))
		_ = reader.Close()
		got := forbiddenIn(logStatements(log.Groups()), []string{manager})
		if len(got) != 1 || got[0].Count != 2 || got[0].resource() != "deployments.apps" || got[0].First.IsZero() || !strings.Contains(got[0].Why, mayNot) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestForbiddenFindings makes of what is told the findings that an audit log leads to.
func TestForbiddenFindings(t *testing.T) {
	t.Parallel()
	started := time.Date(2026, 1, 2, 3, 4, 10, 0, time.UTC)
	mayNot := func(verb string) string {
		return forbiddenMessage(manager, authorizer.AttributesRecord{Verb: verb, APIGroup: "apps", Resource: "deployments"})
	}
	list := forbiddenIn([]statement{
		{Text: mayNot("list"), Where: "the manager's log", Count: 3, First: started.Add(2 * time.Second), Last: started.Add(4 * time.Second)},
		{Text: mayNot("watch"), Where: "condition Ready of Tea/n/a"},
	}, []string{manager})
	local := func(namespace string) bool { return namespace == "operators" }
	got := refusalFindings(list, nil, newRelease("v2"), started, local)
	expect(t, got, "error U211 ServiceAccount/operators/manager: v2: the API server refuses ServiceAccount operators/manager: list, watch deployments.apps "+
		"at the cluster scope (3 times, 2.0s to 4.0s after the start)")
	const rule = "add to the rules of serviceAccountName manager in spec.install.spec.clusterPermissions of the ClusterServiceVersion: " +
		"- {apiGroups: [apps], resources: [deployments], verbs: [list, watch]}"
	if got[0].Fix != rule || !strings.HasPrefix(got[0].Cause, "the API server says: deployments.apps is forbidden") {
		t.Errorf("fix %q, cause %q", got[0].Fix, got[0].Cause)
	}
	if before := refusalFindings(list, list, newRelease("v2"), started, local); before[0].Severity != "warning" {
		t.Errorf("the version before was refused the same: %+v", before[0])
	}
	untimed := forbiddenIn([]statement{{Text: mayNot("list"), Where: "the manager's log", Count: 3}}, []string{manager})
	if got := refusalFindings(untimed, nil, newRelease("v2"), started, local); !strings.HasSuffix(got[0].Message, "at the cluster scope (3 times)") {
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
	operands := map[string]operand{"StatefulSet/n/a": {Kind: "StatefulSet", Namespace: "n", Name: "a"}}
	said := func(text string) statement {
		return statement{Text: "Reconciler error: update: " + text, Where: "the manager's log", Count: 4}
	}
	var got []string
	for _, f := range refusalFindings(invalidIn([]statement{said(immutable), said(two), said(immutable), said("the name is invalid: x")}, manager, operands), nil, newRelease("v2"), time.Time{}, nil) {
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

// TestEventStatement reads events of both kinds: client-go's own, and those of the API group events.k8s.io.
func TestEventStatement(t *testing.T) {
	t.Parallel()
	first, last := time.Unix(100, 0), time.Unix(200, 0)
	on := corev1.ObjectReference{Kind: "Tea", Namespace: "n", Name: "a"}
	for _, e := range []corev1.Event{
		{Count: 3, FirstTimestamp: metav1.NewTime(first), LastTimestamp: metav1.NewTime(last)},
		{EventTime: metav1.NewMicroTime(first), Series: &corev1.EventSeries{Count: 3, LastObservedTime: metav1.NewMicroTime(last)}},
	} {
		e.InvolvedObject, e.Reason, e.Message = on, "Failed", "why"
		if got, want := eventStatement(&e), (statement{Text: "why", Where: "event Failed of Tea/n/a", Count: 3, First: first, Last: last}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	once := corev1.Event{EventTime: metav1.NewMicroTime(first), InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "a"}}
	if got := eventStatement(&once); got.Count != 1 || !got.Last.Equal(first) || got.Where != "event  of Node/a" {
		t.Errorf("%+v", got)
	}
}

// TestEventsShowActs takes an event about an object, new or repeated, for a sign that somebody deals with it.
func TestEventsShowActs(t *testing.T) {
	t.Parallel()
	o := &object{Namespace: "n", Name: "a", UID: types.UID("1")}
	about := func(uid, name string, count int32) corev1.Event {
		return corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}, InvolvedObject: corev1.ObjectReference{UID: types.UID(uid)}, Count: count}
	}
	state := func(events ...corev1.Event) seen {
		s := seen{snapshot: snapshot{}, of: map[string]string{}}
		s.addEvents(events, []*object{o})
		return s
	}
	before := state(about("1", "a.1", 1), about("2", "b.1", 1))
	for name, test := range map[string]struct {
		after seen
		want  int
	}{
		"nothing new": {state(about("1", "a.1", 1), about("2", "b.1", 2), about("2", "b.2", 1)), 0},
		"repeated":    {state(about("1", "a.1", 2)), 1},
		"new":         {state(about("1", "a.1", 1), about("1", "a.2", 1)), 1},
	} {
		if got := test.after.since(before.snapshot); len(got) != test.want || test.want > 0 && got[o.String()] == "" {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestReplaced(t *testing.T) {
	t.Parallel()
	started := time.Unix(100, 0)
	w := &walk{watcher: &watcher{pods: map[string]operatorPod{"old": {Release: "v1"}, "new": {Release: "v2"}}, timeline: []event{
		{At: started.Add(-time.Second), Kind: kindPod, Name: "old", State: stateGone},
		{At: started.Add(2 * time.Second), Kind: kindPod, Name: "old", State: stateGone},
		{At: started.Add(3 * time.Second), Kind: kindPod, Name: "new", State: stateGone},
	}}}
	if got := w.replaced("v1", started); !got.Equal(started.Add(2 * time.Second)) {
		t.Errorf("%s", got)
	}
	if got := w.replaced("v0", started); !got.Equal(started) {
		t.Errorf("of no pods: %s", got)
	}
}
