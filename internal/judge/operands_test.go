package judge

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/olmkit/olmkit/internal/code"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/lifecycle"
	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/test/support/expect"
)

type fields = map[string]any

// byName puts operands of one object under their names.
func byName(list ...observe.Operand) map[string]observe.Operand {
	all := map[string]observe.Operand{}
	for _, o := range list {
		o.Namespace, o.Of = "n", "Pot/n/a"
		all[o.String()] = o
	}
	return all
}

// TestClaimsOfScaled: who begins to delete the claims of pods that there are no more is told of, and who did so already or goes over to keeping them is not.
func TestClaimsOfScaled(t *testing.T) {
	set := func(when any) map[string]observe.Operand {
		return map[string]observe.Operand{"StatefulSet/n/a": {Kind: "StatefulSet", Namespace: "n", Name: "a", Content: map[string]any{"spec": map[string]any{"persistentVolumeClaimRetentionPolicy": map[string]any{"whenScaled": when}}}}}
	}
	told := "error U515 StatefulSet/n/a: who scales it down loses data: it deletes the claims of the pods that it has no more (persistentVolumeClaimRetentionPolicy.whenScaled), and kept them before"
	for name, c := range map[string]struct {
		was, is any
		want    []string
	}{
		"begins": {"Retain", "Delete", []string{told}}, "begins, not said before": {nil, "Delete", []string{told}}, "did already": {"Delete", "Delete", nil}, "keeps now": {"Delete", "Retain", nil},
	} {
		t.Run(name, func(t *testing.T) { expect.Findings(t, Claims(set(c.was), set(c.is), nil), c.want...) })
	}
}

// TestImmutable: a Secret that nobody can change any more is told of where it was another before.
func TestImmutable(t *testing.T) {
	secret := func(is any) map[string]observe.Operand {
		return map[string]observe.Operand{"Secret/n/a": {Kind: "Secret", Namespace: "n", Name: "a", UID: "u", Content: map[string]any{"immutable": is}}}
	}
	expect.Findings(t, Operands(secret(nil), secret(true)), "warning U505 Secret/n/a: the new version made it immutable: neither a user nor the operator can change it any more, as to rotate a password")
	expect.Findings(t, Operands(secret(true), secret(true)))
}

// TestJudgeClaims tells volumes whose data is gone or not read any more, and is silent where fewer pods are wanted.
func TestJudgeClaims(t *testing.T) {
	there := map[string]bool{"PersistentVolumeClaim/n/data-a-0": true}
	gone := map[string]bool{}
	claim := func(name, volume string) observe.Operand {
		return observe.Operand{Kind: observe.KindClaim, Name: name, Content: fields{"spec": fields{"volumeName": volume}}}
	}
	set := func(name string) observe.Operand { return observe.Operand{Kind: "StatefulSet", Name: name} }
	pod := func(name string) observe.Operand { return observe.Operand{Kind: "Pod", Name: name} }
	before := byName(set("a"), pod("a-0"), pod("a-1"), claim("data-a-0", "v0"))
	user := func(name string, claims ...string) observe.Operand {
		p := pod(name)
		for _, c := range claims {
			p.Claims = append(p.Claims, "PersistentVolumeClaim/n/"+c)
		}
		return p
	}
	used := byName(set("a"), user("a-0", "data-a-0"), claim("data-a-0", "v0"))
	backedUp := byName(set("a"), user("a-0"), observe.Operand{Kind: "Job", Name: "dump"}, user("dump-x1y2z", "data-a-0"), claim("data-a-0", "v0"))
	ephemeral := claim("tmp", "v9")
	ephemeral.OfPod = true
	for _, test := range []struct {
		name   string
		left   map[string]bool
		before map[string]observe.Operand
		after  map[string]observe.Operand
		want   []string
	}{
		{"kept", there, before, before, nil},
		{"another volume", there, before, byName(set("a"), pod("a-0"), pod("a-1"), claim("data-a-0", "v1")),
			[]string{"error U515 PersistentVolumeClaim/n/data-a-0: it was deleted and made anew during the upgrade: it has another volume"}},
		{"gone", gone, before, byName(set("a"), pod("a-0"), pod("a-1")),
			[]string{"error U515 PersistentVolumeClaim/n/data-a-0: it was deleted during the upgrade"}},
		{"left behind by workloads of other names", there, before, byName(set("b"), pod("b-0")),
			[]string{"error U515 PersistentVolumeClaim/n/data-a-0: it is still there, and no pod of Pot/n/a mounts it any more"}},
		{"left behind by other claims", there, before, byName(set("a"), pod("a-0"), pod("a-1"), claim("disk-a-0", "v1")),
			[]string{"error U515 PersistentVolumeClaim/n/data-a-0: it is still there, and no pod of Pot/n/a mounts it any more"}},
		{"scaled down", there, before, byName(set("a"), pod("a-1")), nil},
		{"mounted", there, used, used, nil},
		{"no pod mounts it any more", there, used, byName(set("a"), user("a-0", "disk"), claim("data-a-0", "v0"), claim("disk", "v1")),
			[]string{"error U515 PersistentVolumeClaim/n/data-a-0: it is still there, and no pod of Pot/n/a mounts it any more"}},
		{"only a Job mounts it any more", there, used, backedUp,
			[]string{"error U515 PersistentVolumeClaim/n/data-a-0: it is still there, and no pod of Pot/n/a mounts it any more"}},
		{"a Job has copied it", there, used, byName(set("a"), user("a-0", "disk"), observe.Operand{Kind: "Job", Name: "move"}, user("move-x1y2z", "data-a-0", "disk"), claim("data-a-0", "v0"), claim("disk", "v1")),
			[]string{"warning U515 PersistentVolumeClaim/n/data-a-0: it is still there, and no pod of Pot/n/a mounts it any more"}},
		{"a Job backs it up, as before", there, byName(set("a"), user("a-0", "data-a-0"), observe.Operand{Kind: "Job", Name: "dump"}, user("dump-x1y2z", "data-a-0", "backup"), claim("data-a-0", "v0"), claim("backup", "v2")),
			byName(set("a"), user("a-0", "disk"), observe.Operand{Kind: "Job", Name: "dump"}, user("dump-x1y2z", "data-a-0", "backup"), claim("data-a-0", "v0"), claim("backup", "v2"), claim("disk", "v1")),
			[]string{"error U515 PersistentVolumeClaim/n/data-a-0: it is still there, and no pod of Pot/n/a mounts it any more"}},
		{"a Job of the same name", there, byName(set("a"), user("a-0", "data-a-0"), observe.Operand{Kind: "Job", Name: "a"}, claim("data-a-0", "v0")), byName(set("a"), user("a-0"), claim("data-a-0", "v0")),
			[]string{"error U515 PersistentVolumeClaim/n/data-a-0: it is still there, and no pod of Pot/n/a mounts it any more"}},
		{"only a Job ever did", there, backedUp, byName(set("a"), user("a-0"), claim("data-a-0", "v0")), nil},
		{"no pod is left", there, used, byName(set("a"), claim("data-a-0", "v0")), nil},
		{"of a pod", gone, byName(ephemeral), nil, nil},
		{"never bound", gone, byName(claim("data-a-0", "")), nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			expect.Findings(t, Claims(test.before, test.after, test.left), test.want...)
		})
	}
}

// TestCredentials tells passwords that an upgrade changed, and leaves certificates and configuration to a warning.
func TestCredentials(t *testing.T) {
	secret := func(data fields) map[string]observe.Operand {
		return byName(observe.Operand{Kind: "Secret", Name: "a", UID: "1", Content: fields{"data": data}})
	}
	expect.Findings(t, Operands(secret(fields{"root-password": "1", "tls.crt": "1", "conf": "1"}), secret(fields{"root-password": "2", "tls.crt": "2", "conf": "1"})),
		"error U516 Secret/n/a: data.root-password changed although nobody changed the object it was made for",
		`warning U505 Secret/n/a: the new version changed it although nobody changed the object it was made for: data.tls.crt was "1" and is "2"`)
	expect.Findings(t, Operands(secret(fields{"users.htpasswd": "salt 1"}), secret(fields{"users.htpasswd": "salt 2"})),
		`warning U505 Secret/n/a: the new version changed it although nobody changed the object it was made for: data.users.htpasswd was "salt 1" and is "salt 2"`)
	expect.Findings(t, Operands(secret(fields{"ADMIN_PASSWORD": "1"}), secret(fields{"ADMIN_PASSWORD": "1", "other-password": "2"})))
	expect.Findings(t, Operands(secret(fields{".erlang.cookie": "1", "client-secret": "1"}), secret(fields{".erlang.cookie": "2", "client-secret": "2"})),
		"error U516 Secret/n/a: data..erlang.cookie, data.client-secret changed although nobody changed the object it was made for")
	expect.Findings(t, Operands(secret(fields{"apiKey": "1"}), secret(fields{})),
		"error U516 Secret/n/a: data.apiKey changed although nobody changed the object it was made for")
}

// TestIdle tells an object for which nothing runs any more, not one that runs by another workload.
func TestIdle(t *testing.T) {
	before := byName(observe.Operand{Kind: "Deployment", Name: "a", UID: "1"}, observe.Operand{Kind: "Job", Name: "j", UID: "2"})
	expect.Findings(t, Health(before, nil), "error U511 Deployment/n/a: it was deleted during the upgrade, and nothing runs for Pot/n/a any more")
	expect.Findings(t, Operands(before, nil), "warning U501 Job/n/j: it was deleted during the upgrade")
	other := byName(observe.Operand{Kind: "StatefulSet", Name: "a", UID: "3"})
	expect.Findings(t, Health(before, other))
	expect.Findings(t, Operands(before, other), "warning U501 Deployment/n/a: it was deleted during the upgrade", "warning U501 Job/n/j: it was deleted during the upgrade")
}

// TestFollowedJob tells no Job that has ended and that another one came after, only one that still ran.
func TestFollowedJob(t *testing.T) {
	next := byName(observe.Operand{Kind: "Job", Name: "k", UID: "2"})
	expect.Findings(t, Operands(byName(observe.Operand{Kind: "Job", Name: "j", UID: "1"}), next))
	pod := observe.Operand{Kind: "Pod", Name: "j-x7k2p", UID: "3"}
	expect.Findings(t, Operands(byName(observe.Operand{Kind: "Job", Name: "j", UID: "1"}, pod), next))
	expect.Findings(t, Operands(byName(pod), next), "info U502 : the upgrade replaced 1 pods that were made for objects: n/j-x7k2p")
	expect.Findings(t, Operands(byName(observe.Operand{Kind: "Job", Name: "j", UID: "1", Unready: "0 of 1 completed"}), next), "warning U501 Job/n/j: it was deleted during the upgrade")
}

// TestAdmissionIsNotConversion gives the trouble of an admission webhook its own code, and does not blame the definition.
func TestAdmissionIsNotConversion(t *testing.T) {
	at := time.Unix(100, 0)
	list := []outage{{
		CRD: "c", Version: "v1", Operation: observe.Write, Start: at.Add(5 * time.Second), End: at.Add(8 * time.Second), Errors: 3,
		First: `Internal error occurred: failed calling webhook "v.example.com": failed to call webhook: Post "https://s.n.svc:443/v": no endpoints available for service "s"`,
	}}
	timeline := []lifecycle.Event{
		{At: at.Add(5 * time.Second), Kind: observe.KindCRD, Name: "c", State: "written", CRD: &lifecycle.Definition{Generation: 2, Served: []string{"v1"}, Conversion: "n/s/convert"}},
	}
	before := map[string]*lifecycle.Definition{"c": {Generation: 1, Served: []string{"v1"}, Conversion: "n/s/convert", CA: "x"}}
	got := outageFindings(list, before, timeline, true)
	if len(got) != 1 || got[0].Code != code.AdmissionOutage || got[0].Cause != "" {
		t.Errorf("%+v", got)
	}
	list[0].First = "conversion webhook for example.com/v1, Kind=Thing failed: x509"
	if got := outageFindings(list, before, timeline, true); got[0].Code != code.WriteOutage || got[0].Cause == "" {
		t.Errorf("%+v", got)
	}
}

func TestJudgeEndpoints(t *testing.T) {
	at := time.Unix(100, 0)
	event := func(after int, name, state string) lifecycle.Event {
		return lifecycle.Event{At: at.Add(time.Duration(after) * time.Second), Kind: observe.KindService, Name: name, State: state}
	}
	operands := map[string]observe.Operand{"Service/n/a": {Kind: "Service", Namespace: "n", Name: "a"}, "ConfigMap/n/a": {Kind: "ConfigMap", Namespace: "n", Name: "a"}}
	expect.Findings(t, Endpoints(nil, operands))
	expect.Findings(t, Endpoints([]eventType{event(1, "n/other", observe.StateUnready)}, operands))
	expect.Findings(t, Endpoints([]eventType{event(1, "n/a", observe.StateUnready), event(3, "n/a", observe.StateReady), event(5, "n/a", observe.StateGone), event(6, "n/a", observe.StateReady)}, operands),
		"warning U507 Service/n/a: it had no ready endpoint for 3.0s during the upgrade")
	expect.Findings(t, Endpoints([]eventType{event(1, "n/a", observe.StateUnready)}, operands)) // judgeHealth tells it
}

// A Service that lost its endpoints because its StatefulSet was refused is not mended by its pods' end.
func TestExplainEndpoints(t *testing.T) {
	operands := map[string]observe.Operand{
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
		{"its StatefulSet was made anew", code.OperandReplaced, "StatefulSet/n/a", true},
		{"its StatefulSet is less ready", code.OperandWorse, "StatefulSet/n/a", true},
		{"its StatefulSet was only changed", code.OperandChanged, "StatefulSet/n/a", false},
		{"another object's", "U214", "statefulsets.apps/n/b", false},
		{"no workload", "U214", "configmaps/n/a", false},
	} {
		outage := code.Finding(code.OperandOutage, "Service/n/a", "it had no ready endpoint for 3.0s during the upgrade")
		other := finding.Finding{Code: test.code, Subject: finding.Subject{Object: test.subject}, Message: "spec is immutable", Fix: "keep the field"}
		got := ExplainEndpoints([]finding.Finding{outage, other}, operands)[0]
		if explained := got.Fix == "keep the field" && got.Cause != ""; explained != test.explains || !explained && got.Fix != outage.Fix {
			t.Errorf("%s: %+v", test.name, got)
		}
	}
}

// eventType is event where a test's function has that name.
type eventType = lifecycle.Event

func TestJudgeDropped(t *testing.T) {
	d := crd("v1", "v1")
	from, to := &lifecycle.Release{Name: "a"}, &lifecycle.Release{Name: "b"}
	from.CRDs = append(from.CRDs, d)
	there := map[string]*lifecycle.Definition{d.Name: {}}
	expect.Findings(t, Dropped(from, from, there))
	const deleted = "error U610 CustomResourceDefinition/things.example.com: a owned it and b does not: the upgrade deleted it, and with it all of its objects"
	expect.Findings(t, Dropped(from, to, nil), deleted)
	expect.Findings(t, Dropped(from, to, map[string]*lifecycle.Definition{d.Name: {Deleting: true}}), deleted)
	expect.Findings(t, Dropped(from, to, there), "warning U605 CustomResourceDefinition/things.example.com: a owned it and b does not: OLM leaves it, with its objects, to nobody")
}

// TestRoleTaken: a user who has a role no more is told of, and an account that pods have another one instead of is not.
func TestRoleTaken(t *testing.T) {
	binding := func(subjects ...any) map[string]observe.Operand {
		return map[string]observe.Operand{"RoleBinding/n/a": {Kind: "RoleBinding", Namespace: "n", Name: "a", UID: "u", Content: map[string]any{"subjects": subjects}}}
	}
	subject := func(kind, name string) any { return map[string]any{"kind": kind, "name": name} }
	ann, team, pods := subject("User", "ann"), subject("Group", "team"), subject("ServiceAccount", "a")
	told := Operands(binding(ann, team, pods), binding(team, pods))
	expect.Findings(t, told[:1], "error U511 RoleBinding/n/a: the new version takes the role from User ann, though nobody changed the object that it was made for")
	expect.Findings(t, Operands(binding(team), binding(team, subject("Group", "system:authenticated")))[:1], "error U511 RoleBinding/n/a: the new version gives the role to everybody, though nobody changed the object that it was made for")
	for _, kept := range []map[string]observe.Operand{binding(pods, team, ann), binding(ann, team, subject("ServiceAccount", "b"))} {
		for _, f := range Operands(binding(ann, team, pods), kept) {
			if f.Severity == finding.Error {
				t.Errorf("%v", f)
			}
		}
	}
}

// TestNamespaceGone: who deletes a namespace deletes all that is in it, also where it is made anew.
func TestNamespaceGone(t *testing.T) {
	namespace := func(uid types.UID) map[string]observe.Operand {
		return map[string]observe.Operand{"Namespace//a": {Kind: observe.KindNamespace, Name: "a", UID: uid}}
	}
	in := func(uid types.UID) map[string]observe.Operand {
		return map[string]observe.Operand{"RoleBinding/a/b": {Kind: "RoleBinding", Namespace: "a", Name: "b", UID: uid, Within: uid}}
	}
	told := "error U515 Namespace/a: it was deleted during the upgrade, with all that was in it"
	expect.Findings(t, Operands(namespace("1"), namespace("2")), told)
	expect.Findings(t, Operands(namespace("1"), nil), told)
	expect.Findings(t, Operands(namespace("1"), namespace("1")))
	expect.Findings(t, Operands(in("1"), in("2"))[:1], told)
	expect.Findings(t, Operands(in("1"), in("1")))
}
