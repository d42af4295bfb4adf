package observe

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/lifecycle"
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
		for _, r := range ForbiddenIn([]Statement{{Text: test.text, Where: "the manager's log", Count: 2}}, []string{manager}) {
			got = append(got, fmt.Sprintf("%s %s in [%s]", r.Verb, r.FullResource(), r.Namespace))
			if r.Code != code.Forbidden || r.Count != 2 || r.Account != manager || !RefusedVerb().MatchString(r.Why) || !strings.HasSuffix(r.Why, "(quoted by the manager's log)") {
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
		got := ForbiddenIn(logStatements(log.Groups()), []string{manager})
		if len(got) != 1 || got[0].Count != 2 || got[0].FullResource() != "deployments.apps" || got[0].First.IsZero() || !strings.Contains(got[0].Why, mayNot) {
			t.Errorf("%s: %+v", name, got)
		}
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
		if got, want := eventStatement(&e), (Statement{Text: "why", Where: "event Failed of Tea/n/a", Count: 3, First: first, Last: last}); got != want {
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
	o := &Object{Namespace: "n", Name: "a", UID: types.UID("1")}
	about := func(uid, name string, count int32) corev1.Event {
		return corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}, InvolvedObject: corev1.ObjectReference{UID: types.UID(uid)}, Count: count}
	}
	state := func(events ...corev1.Event) Seen {
		s := Seen{Snapshot: Snapshot{}, Of: map[string]string{}}
		s.addEvents(events, []*Object{o})
		return s
	}
	before := state(about("1", "a.1", 1), about("2", "b.1", 1))
	for name, test := range map[string]struct {
		after Seen
		want  int
	}{
		"nothing new": {state(about("1", "a.1", 1), about("2", "b.1", 2), about("2", "b.2", 1)), 0},
		"repeated":    {state(about("1", "a.1", 2)), 1},
		"new":         {state(about("1", "a.1", 1), about("1", "a.2", 1)), 1},
	} {
		if got := test.after.since(before.Snapshot); len(got) != test.want || test.want > 0 && got[o.String()] == "" {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestReplaced(t *testing.T) {
	t.Parallel()
	started := time.Unix(100, 0)
	w := &Cluster{Watcher: &Watcher{pods: map[string]OperatorPod{"old": {Release: "v1"}, "new": {Release: "v2"}}, Timeline: []lifecycle.Event{
		{At: started.Add(-time.Second), Kind: KindPod, Name: "old", State: StateGone},
		{At: started.Add(2 * time.Second), Kind: KindPod, Name: "old", State: StateGone},
		{At: started.Add(3 * time.Second), Kind: KindPod, Name: "new", State: StateGone},
	}}}
	if got := w.replaced("v1", started); !got.Equal(started.Add(2 * time.Second)) {
		t.Errorf("%s", got)
	}
	if got := w.replaced("v0", started); !got.Equal(started) {
		t.Errorf("of no pods: %s", got)
	}
}
