package judge

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/test/support/expect"
)

// pod is one that was made for an object, with labels.
func pod(name, of string, labels map[string]any) observe.Operand {
	return observe.Operand{Kind: "Pod", Namespace: "n", Name: name, Of: of, Marks: map[string]any{"labels": labels}}
}

func selecting(of string, selector map[string]any) observe.Operand {
	return observe.Operand{Kind: "Service", Namespace: "n", Name: "a", Of: of, Content: map[string]any{"spec": map[string]any{"selector": selector}}}
}

// A Service that picks the pods of other objects is told where it did not before.
func TestSelected(t *testing.T) {
	type m = map[string]any
	operands := func(selector m) map[string]observe.Operand {
		return map[string]observe.Operand{
			"Service/n/a": selecting("Pot/n/a", selector),
			"Pod/n/a-0":   pod("a-0", "Pot/n/a", m{"app": "pot", "of": "a"}), "Pod/n/b-0": pod("b-0", "Pot/n/b", m{"app": "pot", "of": "b"}),
		}
	}
	narrow, wide := operands(m{"app": "pot", "of": "a"}), operands(m{"app": "pot"})
	expect.Findings(t, Selected(narrow, wide),
		"error U510 Service/n/a: its selector picks pods of other objects, too, and did not before the upgrade: its clients reach Pot/n/b")
	expect.Findings(t, Selected(narrow, narrow))
	expect.Findings(t, Selected(wide, wide))
	expect.Findings(t, Selected(wide, narrow))
	expect.Findings(t, Selected(operands(nil), wide))
	for kind, c := range map[string]struct{ field, want string }{
		"PodDisruptionBudget": {"selector", "it counts those of Pot/n/b, and those that have a budget of their own as well cannot be evicted any more"},
		"NetworkPolicy":       {"podSelector", "it applies to those of Pot/n/b, too, and what it does not name reaches them no more"},
	} {
		with := func(selector m) map[string]observe.Operand {
			all := operands(nil)
			all[kind+"/n/a"] = observe.Operand{Kind: kind, Namespace: "n", Name: "a", Of: "Pot/n/a", Content: m{"spec": m{c.field: selector}}}
			return all
		}
		one, both := with(m{"matchLabels": m{"of": "a"}}), with(m{"matchLabels": m{"app": "pot"}})
		want := "error U511 " + kind + "/n/a: its selector picks pods of other objects, too, and did not before the upgrade: " + c.want
		expect.Findings(t, Selected(one, both), want)
		expect.Findings(t, Selected(one, one))
		expect.Findings(t, Selected(both, both))
		expect.Findings(t, Selected(one, with(m{})), want)
		late := with(m{"matchLabels": m{"of": "a"}})
		delete(late, "Pod/n/b-0")
		expect.Findings(t, Selected(late, both)) // b had none to be picked
	}
	expect.Findings(t, Selected(narrow, nil))
}

// Services of one object that led to a workload each must not lead to both.
func TestMixed(t *testing.T) {
	type m = map[string]any
	with := func(first, second m) map[string]observe.Operand {
		all := map[string]observe.Operand{
			"Service/n/a-0": selecting("Pot/n/a", first), "Service/n/a-1": selecting("Pot/n/a", second),
			"Pod/n/a-0-x": pod("a-0-x", "Pot/n/a", m{"app": "pot", "of": "a-0"}), "Pod/n/a-1-y": pod("a-1-y", "Pot/n/a", m{"app": "pot", "of": "a-1"}),
		}
		for _, name := range []string{"a-0", "a-1"} {
			all["Deployment/n/"+name] = observe.Operand{Kind: "Deployment", Namespace: "n", Name: name, Of: "Pot/n/a"}
		}
		return all
	}
	apart, wide := with(m{"of": "a-0"}, m{"of": "a-1"}), with(m{"app": "pot"}, m{"app": "pot"})
	said := " picks, and that picks its own, and before the upgrade each picked others: clients of either reach both"
	expect.Findings(t, Selected(apart, wide),
		"error U510 Service/n/a-0: its selector picks the pods that Service/n/a-1"+said, "error U510 Service/n/a-1: its selector picks the pods that Service/n/a-0"+said)
	expect.Findings(t, Selected(apart, apart))
	expect.Findings(t, Selected(wide, wide))
	expect.Findings(t, Selected(wide, apart))
	expect.Findings(t, Selected(apart, with(m{"app": "pot"}, m{"of": "a-1"}))) // one for all beside one for some
	expect.Findings(t, Selected(apart, with(m{"of": "a-1"}, m{"of": "a-0"})))  // changed about
}

// A port that took connections and takes none is told, unless its Service is gone or not ready, which others tell.
func TestUnreached(t *testing.T) {
	at := func(service string, port int32) observe.ServicePort {
		return observe.ServicePort{Service: service, Port: port}
	}
	before := map[observe.ServicePort]bool{at("Service/n/a", 80): true, at("Service/n/a", 81): false, at("Service/n/b", 80): true, at("Service/n/gone", 80): true}
	after := map[observe.ServicePort]bool{at("Service/n/a", 80): false, at("Service/n/a", 81): false, at("Service/n/b", 80): false, at("Service/n/new", 80): false}
	operands := map[string]observe.Operand{"Service/n/a": {}, "Service/n/b": {Unready: "it has no ready endpoint"}}
	expect.Findings(t, Unreached(before, after, operands, nil),
		"error U510 Service/n/a: port 80 took connections before the upgrade, and nothing takes them after it: no pod that it selects listens at its targetPort")
	p := pod("a-0", "Pot/n/a", map[string]any{"app": "a"})
	p.Images = []string{"example.com/a:1"}
	operands["Service/n/a"], operands["Pod/n/a-0"] = selecting("Pot/n/a", map[string]any{"app": "a"}), p
	expect.Findings(t, Unreached(before, after, operands, p.Images))
}

// A Secret that the status named must not go; one that nobody was told of may.
func TestNamed(t *testing.T) {
	type m = map[string]any
	before := map[string]observe.Operand{
		"Secret/n/a-auth": {Kind: "Secret", Name: "a-auth", Of: "Pot/n/a"}, "Secret/n/a-tls": {Kind: "Secret", Name: "a-tls", Of: "Pot/n/a"},
		"Service/n/a": {Kind: "Service", Name: "a", Of: "Pot/n/a"},
	}
	statuses := map[string]any{"Pot/n/a": m{"binding": []any{m{"name": "a-auth"}}, "service": "a", "instance": "a-tls", "phase": "Ready"}}
	expect.Findings(t, Named(before, nil, statuses, nil),
		"error U516 Secret/n/a-auth: it was deleted during the upgrade, although the status of Pot/n/a named it: who reads it finds nothing")
	expect.Findings(t, Named(before, before, statuses, nil))
	renamed := map[string]observe.Operand{"Secret/n/a-credentials": {Kind: "Secret", Name: "a-credentials", Of: "Pot/n/a"}}
	expect.Findings(t, Named(before, renamed, statuses, map[string]m{"Pot/n/a": {"binding": []any{m{"name": "a-credentials"}}}}),
		"warning U516 Secret/n/a-auth: it was deleted during the upgrade, and the status of Pot/n/a, which named it, names a-credentials now: who goes on reading the old one finds nothing")
	expect.Findings(t, Named(before, renamed, statuses, map[string]m{"Pot/n/a": {"phase": "Ready"}}),
		"error U516 Secret/n/a-auth: it was deleted during the upgrade, although the status of Pot/n/a named it: who reads it finds nothing")
	expect.Findings(t, Named(before, nil, nil, nil))
}

// A Service that was made anew is compared as one that was changed.
func TestMadeAnewWithAnotherPort(t *testing.T) {
	type m = map[string]any
	service := func(uid string, port int64) map[string]observe.Operand {
		return map[string]observe.Operand{"Service/n/a": {Kind: "Service", UID: types.UID(uid), Content: m{"spec": m{"ports": []any{m{"port": port, "protocol": "TCP"}}}}}}
	}
	expect.Findings(t, Operands(service("1", 80), service("2", 8080)),
		"warning U501 Service/n/a: it was deleted and made anew during the upgrade: its UID is another",
		"error U510 Service/n/a: clients that the old version served fail: port 80/TCP is gone")
	expect.Findings(t, Operands(service("1", 80), service("2", 80)), "warning U501 Service/n/a: it was deleted and made anew during the upgrade: its UID is another")
}

// A Service that picks pods without the port to which it leads is told where those it picked before have it.
func TestSelectedPorts(t *testing.T) {
	type m = map[string]any
	service := func(port m) observe.Operand {
		s := selecting("Pot/n/a", m{"app": "pot"})
		s.Content["spec"].(m)["ports"] = []any{port}
		return s
	}
	with := func(name string, port int64, labels m) observe.Operand {
		p := pod(name, "Pot/n/a", labels)
		p.UID = types.UID(fmt.Sprint(name, port, labels))
		p.Content = m{"spec": m{"containers": []any{m{"name": "c", "ports": []any{m{"name": "tcp", "containerPort": port}}}}}}
		if port == 0 {
			p.Content = m{"spec": m{"containers": []any{m{"name": "c"}}}}
		}
		return p
	}
	operands := func(s observe.Operand, pods ...observe.Operand) map[string]observe.Operand {
		all := map[string]observe.Operand{"Service/n/a": s}
		for _, p := range pods {
			all[p.String()] = p
		}
		return all
	}
	app, other := m{"app": "pot"}, m{"app": "guard"}
	number, name := service(m{"port": int64(6379)}), service(m{"port": int64(80), "targetPort": "tcp"})
	before := operands(number, with("a-0", 6379, app), with("guard-0", 26379, other))
	found := "error U510 Service/n/a: its selector picks pods, too, that do not have its targetPort, and did not before the upgrade: its clients reach Pod/n/guard-0"
	expect.Findings(t, Selected(before, before))
	expect.Findings(t, Selected(before, operands(number, with("a-0", 6379, app), with("guard-0", 26379, app))), found)
	expect.Findings(t, Selected(before, operands(number, with("a-0", 6379, app), with("guard-0", 0, app))), found)
	expect.Findings(t, Selected(before, operands(number, with("a-0", 6379, app), with("a-1", 6379, app))))
	expect.Findings(t, Selected(before, operands(number, with("a-0", 0, app)))) // it only does not say so any more
	expect.Findings(t, Selected(before, operands(number, with("a-0", 6379, app), with("a-migrate-x7k2p", 0, app), observe.Operand{Kind: "Job", Namespace: "n", Name: "a-migrate", Of: "Pot/n/a"})))
	two := service(m{"port": int64(6379)})
	two.Content["spec"].(m)["ports"] = []any{m{"port": int64(6379)}, m{"port": int64(9187)}}
	expect.Findings(t, Selected(before, operands(two, with("a-0", 6379, app))))
	expect.Findings(t, Selected(operands(name, with("a-0", 6379, app)), operands(name, with("a-0", 6379, app), with("guard-0", 0, app))))
}

// What guards pods, and what scales a workload, must go on finding them.
func TestDetached(t *testing.T) {
	type m = map[string]any
	made := func(kind string, spec m) observe.Operand {
		return observe.Operand{Kind: kind, Namespace: "n", Name: "a", Of: "Pot/n/a", Content: m{"spec": spec}}
	}
	labels := func(app string) m { return m{"matchLabels": m{"app": app}} }
	scaled := func(name string) m { return m{"scaleTargetRef": m{"kind": "Deployment", "name": name}} }
	operands := func(app, budget, policy, target string) map[string]observe.Operand {
		return map[string]observe.Operand{
			"Deployment/n/a": {Kind: "Deployment", Namespace: "n", Name: "a", Of: "Pot/n/a"}, "Pod/n/a-0": pod("a-0", "Pot/n/a", m{"app": app}),
			"PodDisruptionBudget/n/a":     made("PodDisruptionBudget", m{"selector": labels(budget)}),
			"NetworkPolicy/n/a":           made("NetworkPolicy", m{"podSelector": labels(policy)}),
			"HorizontalPodAutoscaler/n/a": made("HorizontalPodAutoscaler", scaled(target)),
		}
	}
	before := operands("pot", "pot", "pot", "a")
	expect.Findings(t, Detached(before, before))
	expect.Findings(t, Detached(before, operands("pan", "pan", "pan", "a")))
	expect.Findings(t, Detached(before, operands("pot", "pan", "pot", "a")),
		"error U511 PodDisruptionBudget/n/a: it picked pods before the upgrade, and picks none of those of Pot/n/a any more: its selector and their labels differ")
	expect.Findings(t, Detached(before, operands("pan", "pan", "pot", "b")),
		"error U511 HorizontalPodAutoscaler/n/a: the workload that it names is not there any more: nothing is scaled",
		"error U511 NetworkPolicy/n/a: it picked pods before the upgrade, and picks none of those of Pot/n/a any more: its selector and their labels differ")
	other := operands("pot", "pan", "pan", "a")
	for _, kind := range []string{"PodDisruptionBudget", "NetworkPolicy"} {
		instead := before[kind+"/n/a"]
		instead.Name = "b"
		other[instead.String()] = instead
	}
	custom := other["HorizontalPodAutoscaler/n/a"]
	custom.Content = m{"spec": m{"scaleTargetRef": m{"kind": "Pot", "name": "a"}}}
	other["HorizontalPodAutoscaler/n/a"] = custom
	expect.Findings(t, Detached(before, other))
	expect.Findings(t, Detached(operands("pot", "pan", "pan", "b"), operands("pot", "pan", "pan", "b")))
	scaledDown := operands("pot", "pot", "pot", "a")
	delete(scaledDown, "Pod/n/a-0")
	expect.Findings(t, Detached(before, scaledDown))
}

// A budget that lets no pod be evicted where one could be keeps nodes from being drained. That nobody has more pods than it keeps is no matter of
// an upgrade.
func TestMayEvict(t *testing.T) {
	type m = map[string]any
	operands := func(pods int, spec m) map[string]observe.Operand {
		spec["selector"] = m{"matchLabels": m{"app": "pot"}}
		all := map[string]observe.Operand{"PodDisruptionBudget/n/a": {Kind: "PodDisruptionBudget", Namespace: "n", Name: "a", Of: "Pot/n/a", Content: m{"spec": spec}}}
		for i := range pods {
			p := pod(fmt.Sprint("a-", i), "Pot/n/a", m{"app": "pot"})
			all[p.String()] = p
		}
		return all
	}
	drains := "error U511 PodDisruptionBudget/n/a: it let pods of Pot/n/a be evicted before the upgrade, and lets none be any more: no node on which one runs can be drained"
	for _, c := range []struct {
		pods, after int
		was, is     m
		want        []string
	}{
		{3, 3, m{"minAvailable": int64(2)}, m{"minAvailable": int64(2)}, nil},
		{3, 3, m{"minAvailable": int64(2)}, m{"minAvailable": int64(3)}, []string{drains}},
		{3, 3, m{"minAvailable": int64(2)}, m{"minAvailable": "90%"}, []string{drains}},
		{3, 3, m{"minAvailable": int64(2)}, m{"minAvailable": "50%"}, nil},
		{3, 3, m{"maxUnavailable": int64(1)}, m{"maxUnavailable": int64(0)}, []string{drains}},
		{3, 3, m{"maxUnavailable": int64(1)}, m{"maxUnavailable": "10%"}, nil},
		{3, 3, m{"minAvailable": int64(2)}, m{}, []string{drains}},
		{3, 3, m{}, m{"maxUnavailable": int64(0)}, nil},
		{2, 2, m{"minAvailable": int64(2)}, m{"minAvailable": int64(3)}, nil},
		{3, 2, m{"minAvailable": int64(2)}, m{"minAvailable": int64(2)}, nil},
		{0, 0, m{"maxUnavailable": int64(1)}, m{"maxUnavailable": int64(0)}, nil},
	} {
		expect.Findings(t, Detached(operands(c.pods, c.was), operands(c.after, c.is)), c.want...)
	}
	without := func(all map[string]observe.Operand) map[string]observe.Operand {
		delete(all, "PodDisruptionBudget/n/a")
		return all
	}
	isNew := "error U511 PodDisruptionBudget/n/a: it is new, and lets none of the pods of Pot/n/a be evicted: no node on which one runs can be drained any more"
	expect.Findings(t, Detached(without(operands(1, m{})), operands(1, m{"minAvailable": int64(1)})), isNew)
	expect.Findings(t, Detached(without(operands(1, m{})), operands(1, m{"maxUnavailable": int64(1)})))
	expect.Findings(t, Detached(without(operands(0, m{})), operands(1, m{"minAvailable": int64(1)})))
	renamed := operands(1, m{"minAvailable": int64(1)})
	renamed["PodDisruptionBudget/n/old"] = renamed["PodDisruptionBudget/n/a"]
	expect.Findings(t, Detached(without(renamed), operands(1, m{"minAvailable": int64(1)})))
}
