package node

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/olmkit/olmkit/internal/cluster/embedded/services"
)

// maxNameservers is how many nameservers resolvers ask (MAXNS of resolv.h), and a kubelet gives them.
const maxNameservers = 3

// longestHostname is how long a host's name may be (bytes); a kubelet cuts what is longer.
const longestHostname = 63

// hostname is what the pod calls itself.
func hostname(p *corev1.Pod) string {
	name := cmp.Or(p.Spec.Hostname, p.Name)
	return strings.TrimRight(name[:min(len(name), longestHostname)], "-.")
}

// hostsFile is /etc/hosts of a pod, as a kubelet writes it.
func hostsFile(p *corev1.Pod, address netip.Addr) string {
	var b strings.Builder
	b.WriteString("127.0.0.1\tlocalhost\n")
	fmt.Fprintf(&b, "%s\t", address)
	if p.Spec.Subdomain != "" {
		fmt.Fprintf(&b, "%s.%s.%s.svc.%s\t", hostname(p), p.Spec.Subdomain, p.Namespace, services.Domain)
	}
	fmt.Fprintln(&b, hostname(p))
	for _, alias := range p.Spec.HostAliases {
		fmt.Fprintf(&b, "%s\t%s\n", alias.IP, strings.Join(alias.Hostnames, "\t"))
	}
	return b.String()
}

// resolverFile is /etc/resolv.conf of a pod that asks dns for the cluster's names, as a kubelet writes it.
func resolverFile(p *corev1.Pod, dns netip.Addr) string {
	var nameservers, searches, options []string
	if p.Spec.DNSPolicy != corev1.DNSNone && p.Spec.DNSPolicy != corev1.DNSDefault { // the machine's own servers are out of reach
		in := "svc." + services.Domain
		nameservers, searches, options = []string{dns.String()}, []string{p.Namespace + "." + in, in, services.Domain}, []string{"ndots:5"}
	}
	if own := p.Spec.DNSConfig; own != nil {
		nameservers, searches = append(nameservers, own.Nameservers...), append(searches, own.Searches...)
		for _, option := range own.Options {
			options = slices.DeleteFunc(options, func(o string) bool { return o == option.Name || strings.HasPrefix(o, option.Name+":") })
			if option.Value != nil {
				option.Name += ":" + *option.Value
			}
			options = append(options, option.Name)
		}
	}
	var b strings.Builder
	if len(searches) > 0 {
		fmt.Fprintf(&b, "search %s\n", strings.Join(searches, " "))
	}
	for _, n := range nameservers[:min(len(nameservers), maxNameservers)] {
		fmt.Fprintf(&b, "nameserver %s\n", n)
	}
	if len(options) > 0 {
		fmt.Fprintf(&b, "options %s\n", strings.Join(options, " "))
	}
	return b.String()
}
