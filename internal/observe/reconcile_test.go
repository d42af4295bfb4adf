package observe

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/olmkit/olmkit/internal/lifecycle"
)

// TestSigns takes writes of the new pods to an object, its operands and its events for signs, and nothing else.
func TestSigns(t *testing.T) {
	const account = "system:serviceaccount:operators:manager"
	who := actors{Accounts: []string{account}, Pods: []string{"new"}}
	targets := map[resource]string{
		{"cache.example.com", "memcacheds", "n", "a"}: "Memcached/n/a",
		{"apps", "deployments", "n", "a-server"}:      "Memcached/n/a",
	}
	request := func(user, pod, verb, of string, code int32) auditv1.Event {
		parts := strings.Split(of, "/")
		e := auditv1.Event{
			Verb: verb, User: authenticationv1.UserInfo{Username: user}, ResponseStatus: &metav1.Status{Code: code},
			ObjectRef: &auditv1.ObjectReference{APIGroup: parts[0], Resource: parts[1], Namespace: "n", Name: parts[2], Subresource: parts[3]},
		}
		if pod != "" {
			e.User.Extra = map[string]authenticationv1.ExtraValue{podNameKey: {pod}}
		}
		return e
	}
	const sample = "cache.example.com/memcacheds/a/"
	for _, test := range []struct {
		name string
		e    auditv1.Event
		want string
	}{
		{"its status", request(account, "new", "patch", sample+"status", 200), "patch of memcacheds/a status"},
		{"its operand", request(account, "new", "create", "apps/deployments/a-server/", 201), "create of deployments/a-server"},
		{"an event about it", request(account, "new", "create", "/events/a.18a/", 201), "create of events/a.18a"},
		{"a token of no pod", request(account, "", "update", sample, 200), "update of memcacheds/a"},
		{"the old pod", request(account, "old", "update", sample, 200), ""},
		{"somebody else", request("system:admin", "", "update", sample, 200), ""},
		{"refused", request(account, "new", "update", sample, 403), ""},
		{"only read", request(account, "new", "get", sample, 200), ""},
		{"of something else", request(account, "new", "update", "apps/deployments/b/", 200), ""},
		{"an event about another", request(account, "new", "create", "/events/ab.18a/", 201), ""},
	} {
		if got := signs([]auditv1.Event{test.e, {}}, who, targets)["Memcached/n/a"]; got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestUnready(t *testing.T) {
	object := func(generation int64, spec, status map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"namespace": "n", "name": "a", "generation": generation}, "spec": spec, "status": status,
		}}
	}
	type m = map[string]any
	served := map[string]bool{"n/a": true}
	for _, test := range []struct {
		name, kind string
		o          *unstructured.Unstructured
		served     map[string]bool
		want       string
	}{
		{"all replicas", "StatefulSet", object(1, m{"replicas": int64(2)}, m{"readyReplicas": int64(2), "observedGeneration": int64(1)}), nil, ""},
		{"one is missing", "StatefulSet", object(1, m{"replicas": int64(2)}, m{"readyReplicas": int64(1), "observedGeneration": int64(1)}), nil, "1 of 2 replicas are ready"},
		{"one by default", "Deployment", object(1, m{}, m{"observedGeneration": int64(1)}), nil, "0 of 1 replicas are ready"},
		{"not seen yet", "Deployment", object(2, m{}, m{"readyReplicas": int64(1), "observedGeneration": int64(1)}), nil, "its controller has not seen generation 2"},
		{"a rollout that makes no pod", "Deployment", object(1, m{}, m{"replicas": int64(1), "readyReplicas": int64(1), "observedGeneration": int64(1)}), nil, "0 of 1 replicas are of its newest template"},
		{"a stuck rollout", "Deployment", object(1, m{}, m{"replicas": int64(2), "readyReplicas": int64(1), "updatedReplicas": int64(1), "observedGeneration": int64(1)}), nil, "1 replicas of an older template are still there"},
		{"a paused rollout", "Deployment", object(1, m{"paused": true}, m{"replicas": int64(1), "readyReplicas": int64(1), "observedGeneration": int64(1)}), nil, ""},
		{"rolled out", "Deployment", object(1, m{}, m{"replicas": int64(1), "readyReplicas": int64(1), "updatedReplicas": int64(1), "observedGeneration": int64(1)}), nil, ""},
		{"scaled to nothing", "Deployment", object(1, m{"replicas": int64(0)}, m{"observedGeneration": int64(1)}), nil, ""},
		{"a daemon", "DaemonSet", object(0, m{}, m{"desiredNumberScheduled": int64(1)}), nil, "0 of 1 replicas are ready"},
		{"a failed job", "Job", object(0, m{}, m{"conditions": []any{m{"type": "Failed", "status": "True", "reason": "R", "message": "M"}}}), nil, "it failed: R: M"},
		{"a claim", "PersistentVolumeClaim", object(0, m{}, m{"phase": "Pending"}), nil, "it is Pending"},
		{"a bound claim", "PersistentVolumeClaim", object(0, m{}, m{"phase": "Bound"}), nil, ""},
		{"a Service", "Service", object(0, m{"selector": m{"a": "b"}}, nil), served, ""},
		{"a Service of nobody", "Service", object(0, m{"selector": m{"a": "b"}}, nil), nil, "it has no ready endpoint"},
		{"a Service that selects nothing", "Service", object(0, m{}, nil), nil, ""},
		{"what has no health", "ConfigMap", object(0, nil, nil), nil, ""},
	} {
		if got := unready(test.kind, test.o, test.served); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestWorse quotes why an object does not serve any more by its own words, and believes what it never said otherwise.
func TestWorse(t *testing.T) {
	object := func(phase string, conditions ...string) *unstructured.Unstructured {
		var list []any
		for _, c := range conditions {
			name, status, _ := strings.Cut(c, "=")
			list = append(list, map[string]any{"type": name, "status": status, "reason": "Broken", "message": "no server"})
		}
		status := map[string]any{"conditions": append(list, "hostile")}
		if phase != "" {
			status["phase"] = phase
		}
		return &unstructured.Unstructured{Object: map[string]any{"status": status}}
	}
	until := func(o *unstructured.Unstructured, at string) *unstructured.Unstructured {
		o.Object["status"].(map[string]any)["expiresAt"] = at
		return o
	}
	for _, test := range []struct {
		was, now     *unstructured.Unstructured
		want, unwell string
	}{
		{object("", "Available=True", "Ready=False"), object("", "Available=True"), "", ""},
		{object("", "Available=True"), object("", "Available=False"), "condition Available was True and is False: Broken: no server", "condition Available is False: Broken: no server"},
		{until(object("", "Ready=True"), "2020-01-01T00:00:00Z"), object("", "Ready=False"), "", "condition Ready is False: Broken: no server"},
		{until(object("", "Ready=True"), "2999-01-01T00:00:00Z"), object("", "Ready=False"), "condition Ready was True and is False: Broken: no server", "condition Ready is False: Broken: no server"},
		{object("", "Available=True"), object(""), "condition Available was True and is not there any more", ""},
		{object("", "Degraded=False"), object("", "Degraded=True"), "condition Degraded was not True and is True: Broken: no server", "condition Degraded is True: Broken: no server"},
		{object("", "Ready=True"), object("", "Ready=True", "Stalled=True"), "condition Stalled was not True and is True: Broken: no server", "condition Stalled is True: Broken: no server"},
		{object("", "Degraded=True"), object("", "Degraded=True"), "", "condition Degraded is True: Broken: no server"},
		{object(""), object("", "Degraded=True"), "", "condition Degraded is True: Broken: no server"},
		{object("Running"), object("Failed"), "status.phase was Running and is Failed", "status.phase is Failed"},
		{object("Running"), object(""), "", ""},
		{object("Running"), object("Updating"), "status.phase was Running and stays Updating", ""},
		{object("Updating"), object("Reconciling"), "", ""},
		{object("Creating"), object("Updating"), "", ""},
		{object("", "Progressing=False"), object("", "Progressing=True"), "condition Progressing was False and stays True: Broken: no server", ""},
		{object("", "Progressing=True"), object("", "Progressing=True"), "", ""},
		{object(""), object("", "Progressing=True"), "", ""},
		{object("", "PodsReady=True"), object("", "PodsReady=False"), "condition PodsReady was True and is False: Broken: no server", ""},
		{object("", "PodsReady=True"), object("", "PodsReady=Unknown"), "condition PodsReady was True and is Unknown: Broken: no server", ""},
		{object("", "PodsReady=True"), object(""), "", ""},
		{object("", "PodsNotReady=True"), object("", "PodsNotReady=False"), "", ""},
		{object("", "PodsNotReady=False"), object("", "PodsNotReady=True"), "condition PodsNotReady was not True and is True: Broken: no server", ""},
		{object("", "Initialized=True"), object("", "Initialized=False"), "", ""},
		{object("Running", "ReplicaFailure=False"), object("Running", "ReplicaFailure=True"), "condition ReplicaFailure was not True and is True: Broken: no server", ""},
		{object("Running"), object("Running", "ServiceMonitorError=True"), "", ""},
		{object("", "Successful=True"), object("", "Successful=False"), "", ""},
		{object("", "ReconcileSuccess=True"), object("", "ReconcileSuccess=False"), "condition ReconcileSuccess was True and is False: Broken: no server", ""},
		{object("", "HasErrors=False"), object("", "HasErrors=True"), "condition HasErrors was not True and is True: Broken: no server", ""},
		{object("", "UpdateAvailable=True"), object("", "UpdateAvailable=False"), "", ""},
		{object("", "NotDegraded=False"), object("", "NotDegraded=True"), "", ""},
		{object("", "NotSynced=True"), object("", "NotSynced=False"), "", ""},
		{object("Running"), object("Pending"), "status.phase was Running and is Pending", ""},
		{object("Ready"), object("NotReady"), "status.phase was Ready and is NotReady", ""},
		{object("Pending"), object("Unknown"), "", ""},
		{object("Updating"), object("Updating", "Degraded=True"), "condition Degraded was not True and is True: Broken: no server", "condition Degraded is True: Broken: no server"},
		{object("Error"), object("ERROR"), "", "status.phase is ERROR"},
		{object(""), object("Failed"), "", "status.phase is Failed"},
	} {
		if got := worse(test.was, test.now); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
		if got := unwell(test.now); got != test.unwell {
			t.Errorf("unwell: %q, want %q", got, test.unwell)
		}
	}
}

// A StatefulSet is not ready as long as pods are of an older template, unless nobody is to replace them.
func TestUnreadyStatefulSet(t *testing.T) {
	type m = map[string]any
	for name, test := range map[string]struct {
		strategy m
		revision string
		unready  bool
	}{
		"rolled out":       {m{"type": "RollingUpdate"}, "b", false},
		"being rolled out": {m{"type": "RollingUpdate"}, "a", true},
		"by default":       {nil, "a", true},
		"on delete":        {m{"type": "OnDelete"}, "a", false},
		"in part":          {m{"type": "RollingUpdate", "rollingUpdate": m{"partition": int64(1)}}, "a", false},
	} {
		o := &unstructured.Unstructured{Object: m{
			"spec":   m{"replicas": int64(2), "updateStrategy": test.strategy},
			"status": m{"readyReplicas": int64(2), "currentRevision": test.revision, "updateRevision": "b"},
		}}
		if got := unready("StatefulSet", o, nil); (got != "") != test.unready {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestAwaitActed waits for those objects for which nothing was written until somebody says that nothing will be, or for all of the time.
func TestAwaitActed(t *testing.T) {
	for _, test := range []struct {
		name  string
		ended func(late []string) bool
		want  time.Duration
	}{
		{"nobody says", nil, NudgeLimit},
		{"it may come", func([]string) bool { return false }, NudgeLimit},
		{"it does not come", func(late []string) bool { return slices.Equal(late, []string{"Pot/n/b"}) }, 2 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &lifecycle.Release{CSV: &v1alpha1.ClusterServiceVersion{}}
				r.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []v1alpha1.StrategyDeploymentSpec{{}}
				began := time.Now()
				objects := []*Object{{Kind: "Pot", Namespace: "n", Name: "a"}, {Kind: "Pot", Namespace: "n", Name: "b"}}
				for _, o := range objects {
					o.Resource = schema.GroupResource{Group: "example.com", Resource: "pots"}
				}
				log := &fakeLog{events: []auditv1.Event{{
					Verb: "patch", User: authenticationv1.UserInfo{Username: "system:serviceaccount:operators:default"}, ResponseStatus: &metav1.Status{Code: 200},
					ObjectRef:                &auditv1.ObjectReference{APIGroup: "example.com", Resource: "pots", Namespace: "n", Name: "a", Subresource: "status"},
					RequestReceivedTimestamp: metav1.NewMicroTime(began.Add(2 * time.Second)),
				}}}
				c := &Cluster{Dynamic: dynamicfake.NewSimpleDynamicClient(scheme.Scheme), Provider: log, Place: lifecycle.Place{Namespace: "operators"}, Objects: objects, Watcher: &Watcher{
					Reader: fake.NewClientBuilder().WithScheme(scheme.Scheme).Build(), changed: make(chan struct{}),
				}}
				found, err := c.AwaitActed(t.Context(), r, began, nil, []string{"Pot/n/a", "Pot/n/b"}, NudgeLimit, test.ended)
				if took := time.Since(began); err != nil || len(found) != 1 || took < test.want || took > test.want+time.Second {
					t.Errorf("after %s, want %s: %v, %v", took, test.want, found, err)
				}
			})
		})
	}
}
