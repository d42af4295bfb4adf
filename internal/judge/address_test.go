package judge

import (
	"maps"
	"testing"

	"github.com/olmkit/olmkit/internal/observe"
	"github.com/olmkit/olmkit/test/support/expect"
)

func serviceWith(name string, spec map[string]any) observe.Operand {
	return observe.Operand{Kind: observe.KindService, Namespace: "n", Name: name, Of: "Cache/n/a", Content: map[string]any{"spec": spec}}
}

func portOf(number int64) map[string]any {
	return map[string]any{"ports": []any{map[string]any{"port": number}}}
}

func operandsOf(list ...observe.Operand) map[string]observe.Operand {
	all := map[string]observe.Operand{}
	for _, o := range list {
		all[o.String()] = o
	}
	return all
}

func TestAddresses(t *testing.T) {
	secret := func(uri ...string) observe.Operand {
		return observe.Operand{Kind: "Secret", Namespace: "n", Name: "a", Of: "Cache/n/a", Addresses: map[string][]string{"data.uri": uri}}
	}
	config := func(text string) observe.Operand {
		return observe.Operand{Kind: "ConfigMap", Namespace: "n", Name: "a", Of: "Cache/n/a", Content: map[string]any{"data": map[string]any{"servers": text}}}
	}
	service := serviceWith("a", portOf(6379))
	before := operandsOf(service, secret("a.n.svc:6379"), config("a:6379 port:80"))
	statuses := map[string]any{"Cache/n/a": map[string]any{"endpoint": "a.n:6379"}}
	status := func(endpoint string) map[string]map[string]any {
		return map[string]map[string]any{"Cache/n/a": {"endpoint": endpoint}}
	}
	for _, c := range []struct {
		name     string
		after    map[string]observe.Operand
		services map[string]observe.Operand
		now      map[string]map[string]any
		want     []string
	}{
		{"as before", before, operandsOf(service), status("a.n:6379"), nil},
		{"in other words", operandsOf(service, secret("a:6379"), config("a-0.a.n.svc.cluster.local:6379")), operandsOf(service), status("a:6379"), nil},
		{"to another Service", operandsOf(service, secret("b.n.svc:80"), config("b:80")), operandsOf(service, serviceWith("b", portOf(80))), status("b.n.svc:80"), nil},
		{
			"to a Service without an address",
			operandsOf(service, secret("b-0.b:7000"), config("b:7000")), operandsOf(service, serviceWith("b", map[string]any{"clusterIP": "None"})), status("a:6379"), nil,
		},
		{"outside", operandsOf(service, secret("cache.example.com:6379"), config("none")), operandsOf(service), status("cache.example.com:443"), nil},
		{"to one of two", operandsOf(service, secret("c:1", "a:6379"), config("c:1,a:6379")), operandsOf(service), status("a:6379"), nil},
		{"by an address outside", operandsOf(service, secret("a:6379"), config("10.0.0.1:6379 port:80")), operandsOf(service), status("a:6379"), nil},
		{"as before, though the Service is gone", before, nil, status("a.n:6379"), nil},
		{
			"astray", operandsOf(service, secret("a.n.svc:6380"), config("b:6379")), operandsOf(service), status("b.n.svc:6379"),
			[]string{
				"error U510 ConfigMap/n/a: its data.servers leads to b:6379, where there is no Service; before the upgrade it led to one, at a:6379",
				"error U510 Secret/n/a: its data.uri leads to a.n.svc:6380, where there is no Service; before the upgrade it led to one, at a.n.svc:6379",
				"error U510 Cache/n/a: its status.endpoint leads to b.n.svc:6379, where there is no Service; before the upgrade it led to one, at a.n:6379",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.Findings(t, Addresses(before, c.after, c.services, statuses, c.now), c.want...)
		})
	}
}

func TestAddressesOfSeveral(t *testing.T) {
	before, after := map[string]observe.Operand{}, map[string]observe.Operand{}
	for _, name := range []string{"a", "b"} {
		for host, operands := range map[string]map[string]observe.Operand{name: before, "old-" + name: after} {
			config := observe.Operand{Kind: "ConfigMap", Namespace: "n", Name: name, Content: map[string]any{"data": map[string]any{"server": host + ":6379"}}}
			maps.Copy(operands, operandsOf(config, serviceWith(name, portOf(6379))))
		}
	}
	expect.Findings(t, Addresses(before, after, after, nil, nil),
		"error U510 ConfigMap/n/a: its data.server leads to old-a:6379, where there is no Service; before the upgrade it led to one, at a:6379; the same of 1 more: ConfigMap/n/b")
}

func TestAstray(t *testing.T) {
	leads := func(address string) New {
		operands := operandsOf(observe.Operand{Kind: "ConfigMap", Namespace: "n", Name: "a", Content: map[string]any{"data": map[string]any{"servers": address}}})
		called := func(o observe.Operand) string { return o.Kind }
		return New{Sample: "Cache/n/a", Leads: Leads(operands, operandsOf(serviceWith("a", portOf(6379))), "n", map[string]any{"url": "http://" + address}, called)}
	}
	for _, c := range []struct {
		name    string
		was, is New
		want    []string
	}{
		{"both lead there", leads("a:6379"), leads("a.n:6379"), nil},
		{"none did", leads("a:1"), leads("a:2"), nil},
		{"outside now", leads("a:6379"), leads("a.example.com:6379"), nil},
		{"nothing was said", New{}, leads("a:1"), nil},
		{
			"astray", leads("a:6379"), leads("a:6380"), []string{
				"error U510 Cache/n/a: the ConfigMap data.servers of a new object like it leads to a:6380 with v2, where there is no Service; with v1 it led to one",
				"error U510 Cache/n/a: the status.url of a new object like it leads to a:6380 with v2, where there is no Service; with v1 it led to one",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) { expect.Findings(t, astray("v1", "v2", c.was, c.is), c.want...) })
	}
}
