package services

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	discoveryv1listers "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// known is a directory of objects: Services and EndpointSlices.
func known(t *testing.T, objects ...any) directory {
	t.Helper()
	services, slices := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}), cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, o := range objects {
		into := services
		if _, ok := o.(*discoveryv1.EndpointSlice); ok {
			into = slices
		}
		if err := into.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	return directory{corev1listers.NewServiceLister(services), discoveryv1listers.NewEndpointSliceLister(slices)}
}

func service(name, address string, ports ...int32) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}, Spec: corev1.ServiceSpec{ClusterIP: address}}
	for _, p := range ports {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: fmt.Sprint("p", p), Port: p, Protocol: corev1.ProtocolTCP})
	}
	return s
}

func alias(name, of string) *corev1.Service {
	s := service(name, "")
	s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeExternalName, of
	return s
}

// slice says that endpoints answer for a Service at ports, which are 8000 higher there.
func slice(of string, ports []int32, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "n", Name: fmt.Sprint(of, len(endpoints)), Labels: map[string]string{discoveryv1.LabelServiceName: of}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: endpoints,
	}
	for _, p := range ports {
		s.Ports = append(s.Ports, discoveryv1.EndpointPort{Name: ptr.To(fmt.Sprint("p", p)), Port: ptr.To(p + 8000), Protocol: ptr.To(corev1.ProtocolTCP)})
	}
	return s
}

func at(address string) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}
}

func named(address, hostname string) discoveryv1.Endpoint {
	e := at(address)
	e.Hostname = &hostname
	return e
}

func in(e discoveryv1.Endpoint, ready, serving, terminating bool) discoveryv1.Endpoint {
	e.Conditions = discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating}
	return e
}

func TestAnswer(t *testing.T) {
	d := known(t,
		service("a", "10.96.1.1", 80), slice("a", []int32{80}, at("10.244.0.2")),
		service("set", corev1.ClusterIPNone, 80, 81),
		slice("set", []int32{80, 81}, named("10.244.0.4", "set-1"), at("10.244.0.3"), in(named("10.244.0.5", "set-2"), false, false, false)),
		service("portless", corev1.ClusterIPNone), slice("portless", nil, at("10.244.0.9")),
		service("none", corev1.ClusterIPNone, 80),
		alias("alias", "A.n.svc.cluster.local"), alias("out", "example.com"), alias("round", "round.n.svc.cluster.local"),
	)
	const svc = ".n.svc.cluster.local."
	for question, want := range map[string]string{
		"a" + svc + " A":                             "NOERROR 10.96.1.1",
		"A.N.SVC.Cluster.Local. A":                   "NOERROR 10.96.1.1",
		"a" + svc + " AAAA":                          "NOERROR",
		"set" + svc + " A":                           "NOERROR 10.244.0.3 10.244.0.4",
		"set-1.set" + svc + " A":                     "NOERROR 10.244.0.4",
		"10-244-0-3.set" + svc + " A":                "NOERROR 10.244.0.3",
		"set-2.set" + svc + " A":                     "NXDOMAIN",
		"portless" + svc + " A":                      "NOERROR 10.244.0.9",
		"none" + svc + " A":                          "NXDOMAIN",
		"b" + svc + " A":                             "NXDOMAIN",
		"x.y.z" + svc + " A":                         "NXDOMAIN",
		"cluster.local. A":                           "NXDOMAIN",
		". A":                                        "NXDOMAIN",
		"alias" + svc + " A":                         "NOERROR A.n.svc.cluster.local. 10.96.1.1",
		"alias" + svc + " CNAME":                     "NOERROR A.n.svc.cluster.local.",
		"out" + svc + " A":                           "SERVFAIL example.com.",
		"round" + svc + " A":                         "SERVFAIL" + strings.Repeat(" round.n.svc.cluster.local.", maxHops),
		"10-244-0-3.n.pod.cluster.local. A":          "NOERROR 10.244.0.3",
		"nonsense.n.pod.cluster.local. A":            "NXDOMAIN",
		"_p80._tcp.a" + svc + " SRV":                 "NOERROR 80:a.n.svc.cluster.local.",
		"_p80._udp.a" + svc + " SRV":                 "NXDOMAIN",
		"_p81._TCP.set" + svc + " SRV":               "NOERROR 8081:10-244-0-3.set.n.svc.cluster.local. 8081:set-1.set.n.svc.cluster.local.",
		"_p82._tcp.set" + svc + " SRV":               "NXDOMAIN",
		"_p82._tcp.b" + svc + " SRV":                 "NXDOMAIN",
		"example.com. A":                             "SERVFAIL",
		"registry.example.co.uk. A":                  "SERVFAIL",
		"a.n.svc. A":                                 "NXDOMAIN",
		"a. A":                                       "NXDOMAIN",
		"1.1.96.10.in-addr.arpa. PTR":                "SERVFAIL",
		"notcluster.local.a.n.svc.xcluster.local. A": "NXDOMAIN",
	} {
		name, kind, _ := strings.Cut(question, " ")
		found, rcode := d.answer(dns.Question{Name: name, Qtype: dns.StringToType[kind], Qclass: dns.ClassINET})
		if diff := cmp.Diff(want, strings.TrimSpace(dns.RcodeToString[rcode]+" "+strings.Join(texts(found), " "))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", question, diff)
		}
	}
}

func texts(records []dns.RR) (all []string) {
	for _, r := range records {
		switch r := r.(type) {
		case *dns.A:
			all = append(all, r.A.String())
		case *dns.CNAME:
			all = append(all, r.Target)
		case *dns.SRV:
			all = append(all, fmt.Sprintf("%d:%s", r.Port, r.Target))
		}
	}
	return all
}

// asker is who asks by a network, and gets an answer.
type asker struct {
	dns.ResponseWriter
	network string
	answer  *dns.Msg
}

func (a *asker) WriteMsg(m *dns.Msg) error { a.answer = m; return nil }
func (a *asker) LocalAddr() net.Addr {
	if a.network == "tcp" {
		return &net.TCPAddr{}
	}
	return &net.UDPAddr{}
}

// TestAnswersFit: who asks by UDP for more than it has room for is told to ask by TCP.
func TestAnswersFit(t *testing.T) {
	var endpoints []discoveryv1.Endpoint
	for i := range 100 {
		endpoints = append(endpoints, at(fmt.Sprintf("10.244.0.%d", i+2)))
	}
	n := names{known(t, service("set", corev1.ClusterIPNone, 80), slice("set", []int32{80}, endpoints...)), semaphore.NewWeighted(1)}
	question := new(dns.Msg).SetQuestion("set.n.svc.cluster.local.", dns.TypeA)
	roomy := question.Copy().SetEdns0(4096, false)
	for _, test := range []struct {
		network string
		asked   *dns.Msg
		whole   bool
	}{{"udp", question, false}, {"udp", roomy, true}, {"tcp", question, true}} {
		a := &asker{network: test.network}
		n.ServeDNS(a, test.asked)
		if got := len(a.answer.Answer) == 100; got != test.whole || a.answer.Truncated == test.whole || a.answer.Id != question.Id {
			t.Errorf("by %s with room for %v: %d addresses, truncated: %t", test.network, test.asked.IsEdns0(), len(a.answer.Answer), a.answer.Truncated)
		}
	}
	a := &asker{network: "udp"}
	n.ServeDNS(a, &dns.Msg{Question: slices.Repeat(question.Question, 2)})
	if a.answer.Rcode != dns.RcodeFormatError {
		t.Errorf("two questions at once are answered with %v", a.answer)
	}
	chaos := question.Copy()
	chaos.Question[0].Qclass = dns.ClassCHAOS
	if n.ServeDNS(a, chaos); a.answer.Rcode != dns.RcodeRefused {
		t.Errorf("another class is answered with %v", a.answer)
	}
	a.answer = nil
	if !n.places.TryAcquire(1) {
		t.Fatal("places are not given back")
	}
	if n.ServeDNS(a, question); a.answer != nil {
		t.Errorf("more than can be looked up are answered with %v", a.answer)
	}
}

func TestWanted(t *testing.T) {
	const x, y, z = "10.244.0.2", "10.244.0.3", "10.244.0.4"
	udp := service("udp", "10.96.1.1", 80)
	udp.Spec.Ports[0].Protocol = corev1.ProtocolUDP
	for what, test := range map[string]struct {
		objects []any
		want    string
	}{
		"no Service":            {nil, ""},
		"nobody":                {[]any{service("a", "10.96.1.1", 80)}, ""},
		"without an address":    {[]any{service("a", corev1.ClusterIPNone, 80), slice("a", []int32{80}, at(x))}, ""},
		"an alias":              {[]any{alias("a", "b")}, ""},
		"UDP":                   {[]any{udp, slice("udp", []int32{80}, at(x))}, ""},
		"two ports, two pods":   {[]any{service("a", "10.96.1.1", 80, 81), slice("a", []int32{80, 81}, at(y), at(x))}, "80: 10.244.0.2:8080 10.244.0.3:8080, 81: 10.244.0.2:8081 10.244.0.3:8081"},
		"two slices":            {[]any{service("a", "10.96.1.1", 80, 81), slice("a", []int32{80}, at(x)), slice("a", []int32{81}, at(x), at(y))}, "80: 10.244.0.2:8080, 81: 10.244.0.2:8081 10.244.0.3:8081"},
		"one is not ready":      {[]any{service("a", "10.96.1.1", 80), slice("a", []int32{80}, at(x), in(at(y), false, false, false))}, "80: 10.244.0.2:8080"},
		"one ends":              {[]any{service("a", "10.96.1.1", 80), slice("a", []int32{80}, at(x), in(at(y), false, true, true))}, "80: 10.244.0.2:8080"},
		"all end":               {[]any{service("a", "10.96.1.1", 80), slice("a", []int32{80}, in(at(x), false, true, true), in(at(y), false, false, true))}, "80: 10.244.0.2:8080"},
		"nothing runs in one":   {[]any{service("a", "10.96.1.1", 80), slice("a", []int32{80}, at(x), at(z))}, "80: 10.244.0.2:8080"},
		"the machine's address": {[]any{service("a", "10.96.1.1", 80), slice("a", []int32{80}, at(x), at("127.0.0.1"), at("192.168.0.1"))}, "80: 10.244.0.2:8080"},
	} {
		t.Run(what, func(t *testing.T) {
			name := "a"
			if what == "UDP" {
				name = "udp"
			}
			p := newProxy(known(t, test.objects...), Config{Pods: netip.MustParsePrefix("10.244.0.0/16"), Idle: func(a netip.Addr) bool { return a.String() == z }})
			wanted, err := p.wanted(cache.NewObjectName("n", name))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for at, targets := range wanted {
				line := fmt.Sprintf("%d:", at.Port())
				for _, t := range targets.at {
					line += " " + t.String()
				}
				got = append(got, line)
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestManyEndpoints: very many endpoints with very many ports are known as far as anybody needs them.
func TestManyEndpoints(t *testing.T) {
	ports := make([]int32, 1000)
	for i := range ports {
		ports[i] = int32(i + 1)
	}
	var objects []any
	for i := range 3 {
		s := slice("a", ports)
		s.Name = fmt.Sprint(i)
		for j := range 1000 {
			s.Endpoints = append(s.Endpoints, at(fmt.Sprintf("10.244.%d.%d", j/250, j%250)))
		}
		objects = append(objects, s)
	}
	d := known(t, append(objects, service("a", corev1.ClusterIPNone, ports...))...)
	for _, kind := range []uint16{dns.TypeA, dns.TypeSRV} {
		name := map[uint16]string{dns.TypeA: "a.n.svc.cluster.local.", dns.TypeSRV: "_p7._tcp.a.n.svc.cluster.local."}[kind]
		if found, _ := d.answer(dns.Question{Name: name, Qtype: kind, Qclass: dns.ClassINET}); len(found) != mostEndpoints {
			t.Errorf("%s has %d records", name, len(found))
		}
	}
}

// TestNext: who answers takes turns, unless callers are to keep to one.
func TestNext(t *testing.T) {
	at := []netip.AddrPort{netip.MustParseAddrPort("10.244.0.2:80"), netip.MustParseAddrPort("10.244.0.3:80")}
	for _, sticky := range []bool{false, true} {
		var l listening
		l.targets.Store(&targets{at, sticky})
		by := map[string]bool{}
		for range 4 {
			to, err := l.next(&net.TCPAddr{IP: net.IPv4(10, 244, 0, 9), Port: 1})
			if err != nil {
				t.Fatal(err)
			}
			by[to] = true
		}
		if len(by) == 1 != sticky {
			t.Errorf("to keep to one: %t; answered by %v", sticky, by)
		}
	}
}

// TestSync: a port that cannot be had keeps no other from being known, and there are only so many.
func TestSync(t *testing.T) {
	taken, err := net.Listen("tcp", "127.7.5.3:0") // where nobody else listens
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	number := int32(taken.Addr().(*net.TCPAddr).Port)
	s, to := service("a", "127.7.5.3", number, number-1, number-2, number-3), slice("a", []int32{number, number - 1, number - 2, number - 3}, at("10.244.0.2"))
	for i := range to.Ports {
		to.Ports[i].Port = ptr.To[int32](80)
	}
	d := known(t, s, to)
	p := newProxy(d, Config{Pods: netip.MustParsePrefix("10.244.0.0/16"), Idle: func(netip.Addr) bool { return false }, Files: 2 * share})
	defer p.close()
	name := cache.NewObjectName("n", "a")
	if err := p.sync(name); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("listen at port %d:", number)) {
		t.Errorf("a port that is taken: %v", err)
	}
	if len(p.open) != 2 {
		t.Errorf("it listens at %d ports", len(p.open))
	}
	s.Spec.ClusterIP = corev1.ClusterIPNone
	if err := p.sync(name); err != nil || len(p.open) != 0 {
		t.Errorf("without an address it listens at %d ports: %v", len(p.open), err)
	}
}
