package services

import (
	"cmp"
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

// mostEndpoints is how many endpoints of a Service are known.
const mostEndpoints = 1000

// directory knows all Services and who answers for them.
type directory struct {
	services corev1listers.ServiceLister
	slices   discoveryv1listers.EndpointSliceLister
}

// endpoint is a pod, or whatever else, that answers for a Service.
type endpoint struct {
	address  netip.Addr
	port     uint16
	hostname string // its name below the Service's, if it has one of its own
}

// service returns the Service, or nil where there is none.
func (d directory) service(name cache.ObjectName) (*corev1.Service, error) {
	s, err := d.services.Services(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return s, err
}

// ports says which port of a slice's endpoints is meant, and false where none is.
type ports func(*discoveryv1.EndpointSlice) (uint16, bool)

// whichever means the endpoints alone, with port 0.
func whichever(*discoveryv1.EndpointSlice) (uint16, bool) { return 0, true }

// called means the port of a Service's that has this name and protocol.
func called(name string, protocol corev1.Protocol) ports {
	return func(slice *discoveryv1.EndpointSlice) (uint16, bool) {
		for _, p := range slice.Ports {
			number := ptr.Deref(p.Port, 0)
			if ptr.Deref(p.Name, "") == name && ptr.Deref(p.Protocol, corev1.ProtocolTCP) == protocol && number > 0 && number <= 65535 {
				return uint16(number), true
			}
		}
		return 0, false
	}
}

// slicesOf are the EndpointSlices of a Service.
func (d directory) slicesOf(name cache.ObjectName) ([]*discoveryv1.EndpointSlice, error) {
	return d.slices.EndpointSlices(name.Namespace).List(labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: name.Name}))
}

// endpoints are the endpoints in all slices of a Service that are as fits says, at those ports, each once and in an order that stays.
func endpoints(all []*discoveryv1.EndpointSlice, at ports, fits func(discoveryv1.EndpointConditions) bool) []endpoint {
	var found []endpoint
	for _, slice := range all {
		number, ok := at(slice)
		if !ok || slice.AddressType != discoveryv1.AddressTypeIPv4 {
			continue
		}
		for _, e := range slice.Endpoints {
			if len(e.Addresses) == 0 || !fits(e.Conditions) {
				continue
			}
			// The others are never used, as the API says of them.
			if address, err := netip.ParseAddr(e.Addresses[0]); err == nil {
				found = append(found, endpoint{address, number, ptr.Deref(e.Hostname, "")})
			}
		}
	}
	slices.SortFunc(found, func(a, b endpoint) int {
		return cmp.Or(a.address.Compare(b.address), cmp.Compare(a.port, b.port), cmp.Compare(a.hostname, b.hostname))
	})
	found = slices.Compact(found)
	return found[:min(len(found), mostEndpoints)]
}

// ready is what the API says of an endpoint that is to be called (EndpointConditions).
func ready(c discoveryv1.EndpointConditions) bool { return ptr.Deref(c.Ready, true) }

// ending is an endpoint that is called where none is ready (as kube-proxy does): it still serves.
func ending(c discoveryv1.EndpointConditions) bool {
	return ptr.Deref(c.Serving, false) && ptr.Deref(c.Terminating, false)
}
