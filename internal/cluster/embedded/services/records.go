package services

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// ttl is how long an answer may be kept (seconds), as CoreDNS's kubernetes plugin says.
const ttl = 5

// record is what is known of a name.
type record struct {
	addresses []netip.Addr
	servers   []server
	alias     string
}

// server is who serves a port.
type server struct {
	host string
	port uint16
}

// find returns what is known of a name, whose labels are given without the cluster's domain; nil if there is no such name. The names are those of
// https://github.com/kubernetes/dns/blob/master/docs/specification.md, and of pods as CoreDNS's kubernetes plugin has them.
func (d directory) find(labels []string) (*record, error) {
	switch n := len(labels); {
	case n == 3 && labels[2] == "svc":
		return d.ofService(cache.NewObjectName(labels[1], labels[0]))
	case n == 3 && labels[2] == "pod":
		if address, err := netip.ParseAddr(strings.ReplaceAll(labels[0], "-", ".")); err == nil && address.Is4() {
			return &record{addresses: []netip.Addr{address}}, nil
		}
	case n == 4 && labels[3] == "svc":
		return d.ofEndpoint(cache.NewObjectName(labels[2], labels[1]), labels[0])
	case n == 5 && labels[4] == "svc":
		return d.ofPort(cache.NewObjectName(labels[3], labels[2]), strings.TrimPrefix(labels[0], "_"), strings.TrimPrefix(labels[1], "_"))
	}
	return nil, nil
}

// ofService are the addresses of a Service, or of its pods where it has none of its own.
func (d directory) ofService(name cache.ObjectName) (*record, error) {
	s, err := d.service(name)
	switch {
	case s == nil || err != nil:
		return nil, err
	case s.Spec.Type == corev1.ServiceTypeExternalName:
		return &record{alias: dns.Fqdn(s.Spec.ExternalName)}, nil
	case s.Spec.ClusterIP != corev1.ClusterIPNone:
		address, err := netip.ParseAddr(s.Spec.ClusterIP)
		return &record{addresses: []netip.Addr{address}}, err
	}
	return d.ofEndpoint(name, "")
}

// ofEndpoint are the addresses of the endpoints of a Service that are called hostname, or of all where that is "".
func (d directory) ofEndpoint(name cache.ObjectName, hostname string) (*record, error) {
	all, err := d.slicesOf(name)
	if err != nil {
		return nil, err
	}
	var found record
	for _, e := range endpoints(all, whichever, ready) {
		if hostname == "" || hostname == e.host() {
			found.addresses = append(found.addresses, e.address)
		}
	}
	found.addresses = slices.Compact(found.addresses)
	if len(found.addresses) == 0 {
		return nil, nil
	}
	return &found, nil
}

// host is the name of an endpoint below its Service's.
func (e endpoint) host() string {
	if e.hostname != "" {
		return e.hostname
	}
	return strings.ReplaceAll(e.address.String(), ".", "-")
}

// ofPort are those who serve a port of a Service.
func (d directory) ofPort(name cache.ObjectName, port, protocol string) (*record, error) {
	s, err := d.service(name)
	if s == nil || err != nil {
		return nil, err
	}
	domain := name.Name + "." + name.Namespace + ".svc." + Domain + "."
	var found record
	if s.Spec.ClusterIP != corev1.ClusterIPNone {
		for _, p := range s.Spec.Ports {
			if p.Name == port && strings.EqualFold(string(p.Protocol), protocol) {
				found.servers = append(found.servers, server{domain, uint16(p.Port)})
			}
		}
	} else {
		all, err := d.slicesOf(name)
		if err != nil {
			return nil, err
		}
		for _, e := range endpoints(all, called(port, corev1.Protocol(strings.ToUpper(protocol))), ready) {
			found.servers = append(found.servers, server{e.host() + "." + domain, e.port})
		}
	}
	if len(found.servers) == 0 {
		return nil, nil
	}
	return &found, nil
}

// records are what is asked for under a name.
func (r *record) records(name string, kind uint16) (all []dns.RR) {
	header := dns.RR_Header{Name: name, Rrtype: kind, Class: dns.ClassINET, Ttl: ttl}
	if r.alias != "" {
		header.Rrtype = dns.TypeCNAME
		return []dns.RR{&dns.CNAME{Hdr: header, Target: r.alias}}
	}
	switch kind {
	case dns.TypeA:
		for _, a := range r.addresses {
			all = append(all, &dns.A{Hdr: header, A: net.IP(a.AsSlice())})
		}
	case dns.TypeSRV:
		for _, s := range r.servers {
			all = append(all, &dns.SRV{Hdr: header, Weight: 100, Port: s.port, Target: s.host})
		}
	}
	return all
}
