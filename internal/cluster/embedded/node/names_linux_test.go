package node

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestHostname(t *testing.T) {
	for name, want := range map[string]string{
		"a":                             "a",
		strings.Repeat("a", 70):         strings.Repeat("a", 63),
		strings.Repeat("a", 62) + "-bc": strings.Repeat("a", 62),
	} {
		if got := hostname(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}); got != want {
			t.Errorf("%s is called %s", name, got)
		}
	}
}

func TestNameFiles(t *testing.T) {
	const clusterFirst = "search n.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n"
	for what, test := range map[string]struct {
		spec            corev1.PodSpec
		hosts, resolver string
	}{
		"plain": {corev1.PodSpec{}, "10.244.0.2\ta\n", clusterFirst},
		"of a StatefulSet": {corev1.PodSpec{Hostname: "set-0", Subdomain: "set", DNSPolicy: corev1.DNSClusterFirst},
			"10.244.0.2\tset-0.set.n.svc.cluster.local\tset-0\n", clusterFirst},
		"with other hosts": {corev1.PodSpec{HostAliases: []corev1.HostAlias{{IP: "10.0.0.1", Hostnames: []string{"b", "c"}}}},
			"10.244.0.2\ta\n10.0.0.1\tb\tc\n", clusterFirst},
		"with its own ways as well": {corev1.PodSpec{DNSConfig: &corev1.PodDNSConfig{
			Nameservers: []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}, Searches: []string{"b"},
			Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: ptr.To("2")}, {Name: "edns0"}},
		}}, "10.244.0.2\ta\n", "search n.svc.cluster.local svc.cluster.local cluster.local b\nnameserver 10.96.0.10\nnameserver 10.0.0.1\nnameserver 10.0.0.2\noptions ndots:2 edns0\n"},
		"with its own ways alone": {corev1.PodSpec{DNSPolicy: corev1.DNSNone, DNSConfig: &corev1.PodDNSConfig{Nameservers: []string{"10.0.0.1"}}},
			"10.244.0.2\ta\n", "nameserver 10.0.0.1\n"},
		"as the machine": {corev1.PodSpec{DNSPolicy: corev1.DNSDefault}, "10.244.0.2\ta\n", ""},
	} {
		t.Run(what, func(t *testing.T) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}, Spec: test.spec}
			if diff := cmp.Diff("127.0.0.1\tlocalhost\n"+test.hosts, hostsFile(p, netip.MustParseAddr("10.244.0.2"))); diff != "" {
				t.Errorf("/etc/hosts (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.resolver, resolverFile(p, netip.MustParseAddr("10.96.0.10"))); diff != "" {
				t.Errorf("/etc/resolv.conf (-want +got):\n%s", diff)
			}
		})
	}
}
