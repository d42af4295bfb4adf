package services

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	corev1listers "k8s.io/client-go/listers/core/v1"
	discoveryv1listers "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// directory knows all Services and who answers for them.
type directory struct {
	services corev1listers.ServiceLister
	slices   discoveryv1listers.EndpointSliceLister
}

// endpoint is a pod, or whatever else, that answers for a port of a Service.
type endpoint struct {
	address  netip.Addr
	hostname string // its name below the Service's, if it has one of its own
	port     port
}

// port is a port of an EndpointSlice: name and protocol are those of the Service's.
type port struct {
	name     string
	protocol corev1.Protocol
	number   uint16
}

// service returns the Service, or nil where there is none.
func (d directory) service(name cache.ObjectName) (*corev1.Service, error) {
	s, err := d.services.Services(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return s, err
}

// endpoints are the endpoints of a Service that are as fits says, once for each of their ports, in an order that stays. One without a port has the port
// zero.
func (d directory) endpoints(name cache.ObjectName, fits func(discoveryv1.EndpointConditions) bool) ([]endpoint, error) {
	all, err := d.slices.EndpointSlices(name.Namespace).List(labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: name.Name}))
	if err != nil {
		return nil, err
	}
	var found []endpoint
	for _, slice := range all {
		ports := portsOf(slice)
		for _, e := range slice.Endpoints {
			if slice.AddressType != discoveryv1.AddressTypeIPv4 || !fits(e.Conditions) {
				continue
			}
			for _, text := range e.Addresses {
				address, err := netip.ParseAddr(text)
				if err != nil {
					continue // the API server admits none
				}
				for _, p := range ports {
					found = append(found, endpoint{address, ptr.Deref(e.Hostname, ""), p})
				}
			}
		}
	}
	slices.SortFunc(found, func(a, b endpoint) int { return a.address.Compare(b.address) })
	return slices.Compact(found), nil
}

func portsOf(slice *discoveryv1.EndpointSlice) []port {
	var ports []port
	for _, p := range slice.Ports {
		if number := ptr.Deref(p.Port, 0); number > 0 && number <= 65535 {
			ports = append(ports, port{ptr.Deref(p.Name, ""), ptr.Deref(p.Protocol, corev1.ProtocolTCP), uint16(number)})
		}
	}
	if len(ports) == 0 {
		return []port{{}}
	}
	return ports
}

// ready is what the API says of an endpoint that is to be called (EndpointConditions).
func ready(c discoveryv1.EndpointConditions) bool { return ptr.Deref(c.Ready, true) }

// ending is an endpoint that is called where none is ready (as kube-proxy does): it still serves.
func ending(c discoveryv1.EndpointConditions) bool {
	return ptr.Deref(c.Serving, false) && ptr.Deref(c.Terminating, false)
}
