package node

import (
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Network is a bridge in this process's network namespace to which each pod is attached by an interface pair.
type Network struct {
	bridge *netlink.Bridge
	prefix netip.Prefix

	mu   sync.Mutex
	last netip.Addr
	used map[netip.Addr]bool // whether nothing runs in the pod that has the address

	idle   sync.Mutex
	shared *shared // nil until a pod needs it
}

// shared is the network namespace of all pods in which nothing runs: who calls one of their addresses is refused, as by a pod
// in which nobody listens. A bridge of Linux has room for 1,023 interfaces (BR_MAX_PORTS), and these pods can be many.
type shared struct {
	endpoint *endpoint
	inside   *netlink.Handle
	eth0     netlink.Link
}

// NewNetwork brings the loopback interface up and makes a bridge that has the first address of prefix.
func NewNetwork(prefix netip.Prefix) (*Network, error) {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return nil, fmt.Errorf("find the loopback interface: %w", err)
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return nil, fmt.Errorf("bring the loopback interface up: %w", err)
	}
	attributes := netlink.NewLinkAttrs()
	attributes.Name = "pods"
	// Without an address of its own a bridge takes the lowest of its interfaces': whenever that pod went, the others lost the node, and
	// with it the API server, until they asked again, for up to 30 s (br_stp_recalculate_bridge_id of Linux).
	attributes.HardwareAddr = net.HardwareAddr{0x02, 0, 0, 0, 0, 1}
	n := &Network{bridge: &netlink.Bridge{LinkAttrs: attributes}, prefix: prefix, used: map[netip.Addr]bool{}}
	if err := netlink.LinkAdd(n.bridge); err != nil {
		return nil, fmt.Errorf("make the pods' bridge: %w", err)
	}
	n.last = prefix.Addr().Next()
	if err := netlink.AddrAdd(n.bridge, &netlink.Addr{IPNet: ipNet(n.last, prefix.Bits())}); err != nil {
		return nil, fmt.Errorf("give the bridge its address: %w", err)
	}
	if err := netlink.LinkSetUp(n.bridge); err != nil {
		return nil, fmt.Errorf("bring the bridge up: %w", err)
	}
	return n, nil
}

// HostAddress returns the address at which pods reach the node.
func (n *Network) HostAddress() netip.Addr { return n.prefix.Addr().Next() }

// Own makes all addresses of prefix this network namespace's.
func (n *Network) Own(prefix netip.Prefix) error {
	loopback, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.RouteAdd(&netlink.Route{
			LinkIndex: loopback.Attrs().Index, Dst: ipNet(prefix.Addr(), prefix.Bits()), Type: unix.RTN_LOCAL, Table: unix.RT_TABLE_LOCAL, Scope: netlink.SCOPE_HOST,
		})
	}
	if err != nil {
		return fmt.Errorf("take the addresses %s: %w", prefix, err)
	}
	return nil
}

// Idle reports whether a is the address of a pod in which nothing runs.
func (n *Network) Idle(a netip.Addr) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.used[a]
}

func ipNet(a netip.Addr, bits int) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(bits, a.BitLen())}
}

// endpoint is a pod's network namespace with its address. It exists as long as the handle is open.
type endpoint struct {
	network *Network
	handle  netns.NsHandle
	address netip.Addr
	link    string
	shared  *shared // if the address is there, and the pod has neither a handle nor a link

	mu     sync.Mutex // of handle, which is another file's once it is closed
	closed bool
}

// attachPod gives a pod its network; idle is one in which nothing runs.
func (n *Network) attachPod(idle bool) (*endpoint, error) {
	if idle {
		return n.attachIdle()
	}
	return n.attach()
}

// attach makes a network namespace with an address on the bridge.
func (n *Network) attach() (*endpoint, error) {
	address, err := n.allocate(false)
	if err != nil {
		return nil, err
	}
	e := &endpoint{network: n, address: address, link: fmt.Sprintf("pod%d", hostNumber(address))}
	if e.handle, err = newNamespace(); err != nil {
		n.release(address)
		return nil, err
	}
	if err := e.connect(); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// attachIdle gives an address to a pod in which nothing runs.
func (n *Network) attachIdle() (*endpoint, error) {
	n.idle.Lock()
	defer n.idle.Unlock()
	if err := n.share(); err != nil {
		return nil, err
	}
	address, err := n.allocate(true)
	if err != nil {
		return nil, err
	}
	if err := n.shared.inside.AddrAdd(n.shared.eth0, &netlink.Addr{IPNet: ipNet(address, n.prefix.Bits())}); err != nil {
		n.release(address)
		return nil, fmt.Errorf("give the pod its address: %w", err)
	}
	return &endpoint{network: n, handle: netns.None(), address: address, shared: n.shared}, nil
}

// share makes the shared namespace, if there is none yet.
func (n *Network) share() error {
	if n.shared != nil {
		return nil
	}
	e, err := n.attach()
	if err != nil {
		return err
	}
	inside, err := netlink.NewHandleAt(e.handle)
	if err != nil {
		e.Close()
		return fmt.Errorf("enter the network namespace of pods in which nothing runs: %w", err)
	}
	eth0, err := inside.LinkByName("eth0")
	if err != nil {
		inside.Close()
		e.Close()
		return err
	}
	n.shared = &shared{e, inside, eth0}
	return nil
}

func newNamespace() (netns.NsHandle, error) {
	type result struct {
		handle netns.NsHandle
		err    error
	}
	made := make(chan result)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread, which is in the new namespace, ends with the goroutine
		handle, err := netns.New()
		made <- result{handle, err}
	}()
	r := <-made
	if r.err != nil {
		return 0, fmt.Errorf("make a network namespace: %w", r.err)
	}
	return r.handle, nil
}

func (e *endpoint) connect() error {
	attributes := netlink.NewLinkAttrs()
	attributes.Name = e.link
	pair := &netlink.Veth{LinkAttrs: attributes, PeerName: "eth0", PeerNamespace: netlink.NsFd(e.handle)}
	if err := netlink.LinkAdd(pair); err != nil {
		return fmt.Errorf("make the pod's interface: %w", err)
	}
	if err := netlink.LinkSetMaster(pair, e.network.bridge); err != nil {
		return fmt.Errorf("attach the pod to the bridge: %w", err)
	}
	if err := netlink.LinkSetUp(pair); err != nil {
		return err
	}
	inside, err := netlink.NewHandleAt(e.handle)
	if err != nil {
		return fmt.Errorf("enter the pod's network namespace: %w", err)
	}
	defer inside.Close()
	for _, name := range []string{"lo", "eth0"} {
		link, err := inside.LinkByName(name)
		if err != nil {
			return err
		}
		if name == "eth0" {
			if err := inside.AddrAdd(link, &netlink.Addr{IPNet: ipNet(e.address, e.network.prefix.Bits())}); err != nil {
				return fmt.Errorf("give the pod its address: %w", err)
			}
		}
		if err := inside.LinkSetUp(link); err != nil {
			return err
		}
	}
	return inside.RouteAdd(&netlink.Route{Gw: e.network.HostAddress().AsSlice()})
}

// Close gives the address back and, once no process is left in it, ends the namespace.
func (e *endpoint) Close() {
	if e.shared != nil {
		e.network.idle.Lock()
		_ = e.shared.inside.AddrDel(e.shared.eth0, &netlink.Addr{IPNet: ipNet(e.address, e.network.prefix.Bits())})
		e.network.idle.Unlock()
		e.network.release(e.address)
		return
	}
	if link, err := netlink.LinkByName(e.link); err == nil {
		_ = netlink.LinkDel(link)
	}
	e.mu.Lock()
	_ = e.handle.Close()
	e.closed = true
	e.mu.Unlock()
	e.network.release(e.address)
}

// allocate returns the next free address, so that one that was just given back is not soon another pod's.
func (n *Network) allocate(idle bool) (netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for tried := 0; tried < 1<<(32-n.prefix.Bits()); tried++ {
		n.last = n.last.Next()
		if !n.prefix.Contains(n.last) {
			n.last = n.HostAddress().Next()
		}
		if _, used := n.used[n.last]; !used && n.prefix.Contains(n.last.Next()) {
			n.used[n.last] = idle
			return n.last, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("no free pod address in %s", n.prefix)
}

func (n *Network) release(a netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.used, a)
}

func hostNumber(a netip.Addr) int {
	b := a.As4()
	return int(b[2])<<8 | int(b[3])
}
