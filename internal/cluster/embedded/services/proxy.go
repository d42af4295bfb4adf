package services

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/olmkit/olmkit/internal/cluster/embedded/relay"
)

// proxy listens where Services have ports for which somebody answers. Elsewhere nobody listens, and who calls is refused.
type proxy struct {
	directory directory
	config    Config
	open      map[cache.ObjectName]map[netip.AddrPort]*listening
}

// listening is a port of a Service at which the proxy listens.
type listening struct {
	listener net.Listener
	targets  atomic.Pointer[[]netip.AddrPort] // never empty
	turn     atomic.Uint64
}

func newProxy(d directory, config Config) *proxy {
	return &proxy{directory: d, config: config, open: map[cache.ObjectName]map[netip.AddrPort]*listening{}}
}

// syncNext takes the next Service from queue, and returns false when the queue is shut down.
func (p *proxy) syncNext(ctx context.Context, queue workqueue.TypedRateLimitingInterface[cache.ObjectName]) bool {
	name, down := queue.Get()
	if down {
		return false
	}
	defer queue.Done(name)
	if err := p.sync(name); err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "A Service has no address", "service", name.String())
		queue.AddRateLimited(name) // another Service that had its address may be going
		return true
	}
	queue.Forget(name)
	return true
}

// sync listens where the Service of that name is to be reached, and nowhere else.
func (p *proxy) sync(name cache.ObjectName) error {
	wanted, err := p.wanted(name)
	if err != nil {
		return err
	}
	open := p.open[name]
	for at, l := range open {
		if len(wanted[at]) == 0 {
			l.listener.Close() // connections that are open stay
			delete(open, at)
		}
	}
	for at, targets := range wanted {
		if l := open[at]; l != nil {
			l.targets.Store(&targets)
			continue
		}
		listener, err := net.Listen("tcp", at.String())
		if err != nil {
			return fmt.Errorf("listen at port %d of Service %s: %w", at.Port(), name, err)
		}
		l := &listening{listener: listener}
		l.targets.Store(&targets)
		if p.open[name] == nil {
			p.open[name] = map[netip.AddrPort]*listening{}
		}
		p.open[name][at] = l
		go relay.Serve(listener, l.next)
	}
	if len(p.open[name]) == 0 {
		delete(p.open, name)
	}
	return nil
}

// wanted are the endpoints that answer at each port of a Service's address.
func (p *proxy) wanted(name cache.ObjectName) (map[netip.AddrPort][]netip.AddrPort, error) {
	s, err := p.directory.service(name)
	if s == nil || err != nil {
		return nil, err
	}
	address, _ := netip.ParseAddr(s.Spec.ClusterIP)
	if !address.IsValid() {
		return nil, nil // as that of an ExternalName
	}
	all, err := p.directory.endpoints(name, ready)
	if err == nil && len(all) == 0 {
		all, err = p.directory.endpoints(name, ending)
	}
	if err != nil {
		return nil, err
	}
	wanted := map[netip.AddrPort][]netip.AddrPort{}
	for _, of := range s.Spec.Ports {
		if of.Protocol != corev1.ProtocolTCP {
			continue
		}
		at := netip.AddrPortFrom(address, uint16(of.Port))
		for _, e := range all {
			if e.port.name == of.Name && e.port.protocol == of.Protocol && p.config.Pods.Contains(e.address) && !p.config.Idle(e.address) {
				wanted[at] = append(wanted[at], netip.AddrPortFrom(e.address, e.port.number))
			}
		}
	}
	return wanted, nil
}

// next is the endpoint for the next connection: they take turns.
func (l *listening) next() (string, error) {
	targets := *l.targets.Load()
	return targets[l.turn.Add(1)%uint64(len(targets))].String(), nil
}

// close ends all listening.
func (p *proxy) close() {
	for _, open := range p.open {
		for _, l := range open {
			l.listener.Close()
		}
	}
}
