package services

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/olmkit/olmkit/internal/cluster/embedded/relay"
)

// share is which part of the files that the process may have open ports are listened at with, and connections passed on at a time: these take two files each.
const share = 8

// proxy listens where Services have ports for which somebody answers. Elsewhere nobody listens, and who calls is refused.
type proxy struct {
	directory directory
	config    Config
	places    *semaphore.Weighted
	open      map[netip.AddrPort]*listening
}

// listening is a port of a Service at which the proxy listens.
type listening struct {
	of       cache.ObjectName
	listener net.Listener
	targets  atomic.Pointer[targets]
	turn     atomic.Uint64
}

// targets are who answers at a port of a Service: at least one.
type targets struct {
	at     []netip.AddrPort
	sticky bool // a caller is always answered by the same
}

func newProxy(d directory, config Config) *proxy {
	return &proxy{directory: d, config: config, places: semaphore.NewWeighted(int64(config.Files / share)), open: map[netip.AddrPort]*listening{}}
}

// syncNext takes the next Service from queue, and returns false when the queue is shut down.
func (p *proxy) syncNext(ctx context.Context, queue workqueue.TypedRateLimitingInterface[cache.ObjectName]) bool {
	name, down := queue.Get()
	if down {
		return false
	}
	defer queue.Done(name)
	if err := p.sync(name); err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Not all ports of a Service answer", "service", name.String())
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
	for at, l := range p.open {
		if l.of == name && wanted[at] == nil {
			_ = l.listener.Close() // connections that are open stay
			delete(p.open, at)
		}
	}
	var errs []error
	for at, to := range wanted {
		if l := p.open[at]; l != nil && l.of == name {
			l.targets.Store(to)
		} else if err := p.listen(at, name, to); err != nil {
			errs = append(errs, fmt.Errorf("listen at port %d: %w", at.Port(), err))
		}
	}
	return errors.Join(errs...)
}

// listen begins to listen at a port of the Service of that name.
func (p *proxy) listen(at netip.AddrPort, name cache.ObjectName, to *targets) error {
	if most := p.config.Files / share; len(p.open) >= most {
		return fmt.Errorf("%d ports of Services answer already, and no more can", most)
	}
	listener, err := net.Listen("tcp", at.String())
	if err != nil {
		return err
	}
	l := &listening{of: name, listener: listener}
	l.targets.Store(to)
	p.open[at] = l
	go relay.Serve(listener, p.places, l.next)
	return nil
}

// wanted are who answers at each port of a Service's address, where somebody does.
func (p *proxy) wanted(name cache.ObjectName) (map[netip.AddrPort]*targets, error) {
	s, err := p.directory.service(name)
	if s == nil || err != nil {
		return nil, err
	}
	address, _ := netip.ParseAddr(s.Spec.ClusterIP)
	if !address.IsValid() {
		return nil, nil // as that of an ExternalName
	}
	all, err := p.directory.slicesOf(name)
	if err != nil {
		return nil, err
	}
	wanted := map[netip.AddrPort]*targets{}
	for _, of := range s.Spec.Ports {
		if of.Protocol != corev1.ProtocolTCP {
			continue
		}
		if to := p.answering(all, called(of.Name, of.Protocol)); len(to) > 0 {
			wanted[netip.AddrPortFrom(address, uint16(of.Port))] = &targets{to, s.Spec.SessionAffinity == corev1.ServiceAffinityClientIP}
		}
	}
	return wanted, nil
}

// answering are who answers at a port of the Service whose slices are all.
func (p *proxy) answering(all []*discoveryv1.EndpointSlice, at ports) (to []netip.AddrPort) {
	found := endpoints(all, at, ready)
	if len(found) == 0 {
		found = endpoints(all, at, ending)
	}
	for _, e := range found {
		if p.config.Pods.Contains(e.address) && !p.config.Idle(e.address) {
			to = append(to, netip.AddrPortFrom(e.address, e.port))
		}
	}
	return to
}

// next is who answers the next connection: they take turns, unless a caller is to keep to one.
func (l *listening) next(caller net.Addr) (string, error) {
	to := l.targets.Load()
	turn := l.turn.Add(1)
	if from, ok := caller.(*net.TCPAddr); ok && to.sticky {
		h := fnv.New64a()
		_, _ = h.Write(from.IP)
		turn = h.Sum64()
	}
	return to.at[turn%uint64(len(to.at))].String(), nil
}

// close ends all listening.
func (p *proxy) close() {
	for _, l := range p.open {
		_ = l.listener.Close()
	}
}
