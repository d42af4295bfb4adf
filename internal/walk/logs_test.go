package walk

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/managerlog"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/test/support/expect"
)

// What the walk had its copies and samples say may be no sense, and is over once they are gone, or say what they did.
func TestOfTrials(t *testing.T) {
	back := time.Date(2026, 11, 30, 4, 0, 0, 0, time.UTC)
	const said = `Reconciler error {"namespace": "olmkit-samples-x7k2p", "error": "it is being terminated"}`
	w := &walk{takenBack: back}
	early, late := map[string]time.Time{"n/a": back.Add(-time.Second)}, map[string]time.Time{"n/a": back.Add(time.Second)}
	for name, c := range map[string]struct {
		group managerlog.Group
		want  bool
	}{
		"of a copy":                  {managerlog.Group{Objects: []string{"n/a-new1"}}, true},
		"of other copies":            {managerlog.Group{Objects: []string{"n/a-own2", "n/a-alt3b", "n/a-alt3b-server-0", "n/a-alt3cxxx", "n/a-alt3ztwo", "n/a-again"}}, true},
		"of what it has":             {managerlog.Group{Objects: []string{"n/a-new1", "n/a-new1-x7k2p"}}, true},
		"of a sample, at some time":  {managerlog.Group{Objects: []string{"n/a"}}, false},
		"of a sample, before":        {managerlog.Group{Objects: []string{"n/a"}, LastOf: early}, true},
		"of a sample, also later":    {managerlog.Group{Objects: []string{"n/a"}, LastOf: late}, false},
		"of both":                    {managerlog.Group{Objects: []string{"n/a-new1", "n/a"}, LastOf: early}, true},
		"of both, of a sample later": {managerlog.Group{Objects: []string{"n/a-new1", "n/a"}, LastOf: late}, false},
		"also in another namespace":  {managerlog.Group{Objects: []string{"n/a-new1", "olmkit-samples-x7k2p/a-long"}}, true},
		"there":                      {managerlog.Group{Excerpt: said, Objects: []string{"olmkit-samples-x7k2p/a"}}, true},
		"there, of no object":        {managerlog.Group{Excerpt: said}, true},
		"there and elsewhere":        {managerlog.Group{Excerpt: said, Objects: []string{"olmkit-samples-x7k2p/a", "olmkit-samples/a"}}, false},
		"elsewhere":                  {managerlog.Group{Excerpt: "Reconciler error olmkit-samples/a", Objects: []string{"olmkit-samples/a"}}, false},
		"a panic there":              {managerlog.Group{Excerpt: said, Panic: true}, false},
		"of one that is newer":       {managerlog.Group{Objects: []string{"n/a-newer"}}, false},
		"of one that alternates":     {managerlog.Group{Objects: []string{"n/a-alt3"}}, false},
		"of nothing":                 {managerlog.Group{}, false},
		"a panic":                    {managerlog.Group{Panic: true, Objects: []string{"n/a-new1"}}, false},
	} {
		if got := w.ofTrials(c.group); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestCallsElsewhere(t *testing.T) {
	for said, want := range map[string]bool{
		"dial tcp: lookup example.com on 10.96.0.10:53: server misbehaving":                              true,
		"dial tcp: lookup example.com on [::1]:53: read udp [::1]:1->[::1]:53: read: connection refused": true,
		"dial tcp: lookup example.com on 127.0.0.1:53: read: connection refused":                         true,
		"<urlopen error [Errno -3] Temporary failure in name resolution>":                                true,
		"request to https://example.com failed, reason: getaddrinfo EAI_AGAIN example.com":               true,
		"dial tcp: lookup a.n.svc.cluster.local on 10.96.0.10:53: no such host":                          false,
		"dial tcp 127.0.0.1:53: connect: connection refused":                                             false,
	} {
		w := &walk{}
		for range 2 {
			if got := w.callsElsewhere(managerlog.Group{Message: "Reconciler error", Error: said}); got != want {
				t.Errorf("%s: %t", said, got)
			}
		}
		if noted := len(w.notes) == 1; noted != want {
			t.Errorf("%s: %q", said, w.notes)
		}
	}
}

// Two objects of a sample ask for the same Service: who comes late says so again and again.
func TestContends(t *testing.T) {
	object := func(sample, name string) *observe.Object {
		return &observe.Object{CRD: "pots", Kind: "Pot", Namespace: "n", Name: name, Sample: sample}
	}
	w := &walk{Cluster: &observe.Cluster{Objects: []*observe.Object{object("tea", "tea"), object("tea", "tea-v1-w"), object("milk", "milk")}}}
	operands := map[string]observe.Operand{
		"1": {Kind: "Service", Namespace: "n", Name: "extra-rw", Of: "Pot/n/tea"},
		"2": {Kind: "Service", Namespace: "n", Name: "tea", Of: "Pot/n/tea"},
	}
	for name, c := range map[string]struct {
		said    string
		objects []string
		want    bool
	}{
		"the other's":               {"refusing to reconcile service: extra-rw, not owned", []string{"n/tea-v1-w"}, true},
		"something else":            {"cannot reach extra-rwx", []string{"n/tea-v1-w"}, false},
		"what is called after that": {"service tea is not owned", []string{"n/tea-v1-w"}, false},
		"of another sample as well": {"extra-rw is not owned", []string{"n/tea-v1-w", "n/milk"}, false},
		"of who has it":             {"extra-rw is not owned", []string{"n/tea"}, false},
		"of nothing":                {"extra-rw is not owned", nil, false},
	} {
		if got := w.contends(managerlog.Group{Message: "Reconciler error", Error: c.said, Objects: c.objects}, operands); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// refusedBy is what Go says of a call to address that is refused.
func refusedBy(address string) string {
	return "dial tcp " + address + ":6379: connect: connection refused"
}

// Called in vain are pods in which nothing runs, and Services that have such pods alone, in whatever words.
func TestUnanswered(t *testing.T) {
	p, plan := thingsOf(t, lifecycle.AllNamespaces, `{"size":1}`, "v1", "v2")
	synctest.Test(t, func(t *testing.T) {
		w := newDisposable().with(t, idleAndBusy()...)
		walk := w.connect(t, p, plan, Options{})
		for name, c := range map[string]struct{ said, want string }{
			"a pod that is simulated":              {refusedBy("10.1.0.2"), "Pod/elsewhere/p10.1.0.2"},
			"a pod of a Deployment":                {refusedBy("10.1.0.6"), "Pod/elsewhere/web-…"},
			"a pod that runs":                      {refusedBy("10.1.0.3"), ""},
			"an address that nobody has":           {refusedBy("10.1.0.4"), ""},
			"a pod of which a half runs":           {refusedBy("10.1.0.5"), ""},
			"a simulated pod, which took":          {"read tcp 10.1.0.1:1->10.1.0.2:6379: i/o timeout", ""},
			"a Service of simulated pods":          {"Get http://idle.elsewhere.svc: " + refusedBy("10.96.0.2"), "Service/elsewhere/idle"},
			"a Service of pods that run":           {"Get http://idle.elsewhere.svc: " + refusedBy("10.96.0.3"), ""},
			"a Service of some that run":           {refusedBy("10.96.0.4"), ""},
			"a Service of nobody":                  {refusedBy("10.96.0.5"), ""},
			"a Service without a selector":         {refusedBy("10.96.0.6"), ""},
			"its name, in another language":        {"HTTPConnectionPool(host='idle.elsewhere.svc', port=80): [Errno 111] Connection refused", "Service/elsewhere/idle"},
			"another's name, in another language":  {"Failed to connect to busy.elsewhere.svc.cluster.local: Connection refused", ""},
			"an address, in another language":      {"connect ECONNREFUSED 10.96.0.2:80", "Service/elsewhere/idle"},
			"the name of one that cannot be found": {"dial tcp: lookup idle.elsewhere.svc on 10.96.0.10:53: no such host", ""},
		} {
			groups := []managerlog.Group{{Message: "Reconciler error", Error: c.said}}
			idle, err := walk.unanswered(t.Context(), groups)
			if got := strings.Join(calledIn(groups, idle), " "); err != nil || got != c.want {
				t.Errorf("%s: %q, want %q: %v", name, got, c.want, err)
			}
		}
	})
}

// What an operator does less is no error where it calls in vain, on this cluster, pods in which nothing runs, and the release before did not; to call somebody else
// excuses nothing.
func TestCalledInVain(t *testing.T) {
	p, plan := thingsOf(t, lifecycle.AllNamespaces, `{"size":60,"depth":1}`, "v1", "v2", "v3")
	for name, c := range map[string]struct {
		said   string
		before string // what the release before said
		want   finding.Severity
	}{
		"a pod that is simulated": {refusedBy("10.1.0.2"), "", finding.Warning},
		"a pod that runs":         {refusedBy("10.1.0.3"), "", finding.Error},
		"as the release before, which said it in other words": {refusedBy("10.96.0.2"), "cannot reach http://idle.elsewhere.svc: " + refusedBy("10.96.0.2"), finding.Error},
		"as the release before, of another replica":           {refusedBy("10.1.0.7"), refusedBy("10.1.0.6"), finding.Error},
		"another than the release before":                     {refusedBy("10.1.0.2"), refusedBy("10.96.0.2"), finding.Warning},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newDisposable().with(t, idleAndBusy()...)
				w.behaviour["v1"], w.behaviour["v2"] = paves, pavesOnce
				tell := func(said string) string { return `{"level":"error","msg":"Reconciler error","error":"` + said + `"}` }
				if w.tells = tell(c.said); c.before != "" {
					w.said = tell(c.before)
				}
				for _, f := range w.firstHop(t, p, plan).Findings {
					if f.Code == code.DriftStays && f.Severity == c.want {
						return
					}
				}
				t.Errorf("there is no %s about the Service that it does not make again", c.want)
			})
		})
	}
}

// A log that has come to have what a Secret holds is told of, without that.
func TestLogsLeak(t *testing.T) {
	p, plan := things(t, "v1", "v2", "v3")
	const info = `{"level":"info","msg":"made ` + sealedPassword + `"}`
	for name, c := range map[string]struct{ before, now, want string }{
		"it begins to":  {"", info, `v2 logs what a Secret holds, and the release before did not: whoever may read its log has that: "operators/v2/v2| {\"level\":\"info\",\"msg\":\"made (hidden) sha256:`},
		"it did before": {info, info, ""},
		"it does not":   {"", `{"level":"info","msg":"made a Secret"}`, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newDisposable()
			w.behaviour["v1"], w.behaviour["v2"] = seals, seals
			w.said, w.tells = c.before, c.now
			found := strings.Join(expect.Said(w.firstHop(t, p, plan).Findings), "\n")
			if strings.Contains(found, sealedPassword) || c.want != "" && !strings.Contains(found, c.want) || c.want == "" && strings.Contains(found, code.Credentials) {
				t.Errorf("%s: %s", name, found)
			}
		})
	}
}

// with adds objects to the world.
func (w *world) with(t *testing.T, objects ...runtime.Object) *world {
	t.Helper()
	for _, o := range objects {
		if err := w.tracker.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// idleAndBusy are pods in which nothing runs, all or some of them, and Services of these.
func idleAndBusy() (all []runtime.Object) {
	for ip, ids := range map[string][]string{"10.1.0.2": {"simulated://1/a"}, "10.1.0.3": {"process://2/b"}, "10.1.0.5": {"simulated://3/c", "process://3/d"}} {
		app := map[bool]string{true: "idle", false: "busy"}[ip == "10.1.0.2"]
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "p" + ip, Labels: map[string]string{"app": app, "tier": "any"}}, Status: corev1.PodStatus{PodIP: ip}}
		for _, id := range ids {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{ContainerID: id})
		}
		all = append(all, pod)
	}
	for i, ip := range []string{"10.1.0.6", "10.1.0.7"} {
		hash := fmt.Sprint("hash", i)
		all = append(all, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "web-" + hash + "-a", GenerateName: "web-" + hash + "-", Labels: map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: hash}},
			Status:     corev1.PodStatus{PodIP: ip, ContainerStatuses: []corev1.ContainerStatus{{ContainerID: "simulated://4/e"}}},
		})
	}
	for name, s := range map[string]corev1.ServiceSpec{
		"idle":    {ClusterIP: "10.96.0.2", Selector: map[string]string{"app": "idle"}},
		"busy":    {ClusterIP: "10.96.0.3", Selector: map[string]string{"app": "busy"}},
		"mixed":   {ClusterIP: "10.96.0.4", Selector: map[string]string{"tier": "any"}},
		"nobody":  {ClusterIP: "10.96.0.5", Selector: map[string]string{"app": "nobody"}},
		"unaimed": {ClusterIP: "10.96.0.6"},
	} {
		all = append(all, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: name}, Spec: s})
	}
	return all
}
