// Package relay passes connections on.
package relay

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	pause     = 50 * time.Millisecond // without a connection taken after one that could not be
	dialLimit = time.Second           // for an answer from this machine
	dials     = 3                     // of targets that are gone
	halfLimit = time.Minute           // for the next data of one side once the other said all
	buffer    = 8 << 10               // bytes in each direction
)

// Target returns the address, host:port, with which a caller is to be connected.
type Target func(caller net.Addr) (string, error)

// Serve connects what arrives at listener, of TCP, with target, until listener is closed. A caller for whom there is no place or nobody to be connected with is
// reset; without places there is always one. Connections that are open when listener is closed stay.
func Serve(listener net.Listener, places *semaphore.Weighted, target Target) {
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // as when there are too many open files; others will be closed
			time.Sleep(pause)
			continue
		}
		caller := conn.(*net.TCPConn)
		if places != nil && !places.TryAcquire(1) {
			reset(caller)
			continue
		}
		go func() {
			pass(caller, target)
			if places != nil {
				places.Release(1)
			}
		}()
	}
}

// pass connects caller with its target until both have said all, or one breaks off: then the other is reset, as it would be without a relay.
func pass(caller *net.TCPConn, target Target) {
	called, err := dial(target, caller.RemoteAddr())
	if err != nil {
		reset(caller)
		return
	}
	var half atomic.Bool
	var both sync.WaitGroup
	for _, way := range []struct{ to, from *net.TCPConn }{{called, caller}, {caller, called}} {
		both.Go(func() {
			// Wrapped, so that no pipes are made for it, which are four more open files.
			if _, err := io.CopyBuffer(struct{ io.Writer }{way.to}, patient{way.from, &half}, make([]byte, buffer)); err != nil {
				reset(way.to)
				reset(way.from)
				return
			}
			half.Store(true)
			_ = way.to.CloseWrite()
			_ = way.to.SetReadDeadline(time.Now().Add(halfLimit))
		})
	}
	both.Wait()
	_ = caller.Close()
	_ = called.Close()
}

// dial connects with a target. One that is gone but not yet known to be is passed over; one that refuses is not, since who calls it is to see that.
func dial(target Target, caller net.Addr) (*net.TCPConn, error) {
	var last error
	for range dials {
		address, err := target(caller)
		if err != nil {
			return nil, err
		}
		conn, err := net.DialTimeout("tcp", address, dialLimit)
		if err == nil {
			return conn.(*net.TCPConn), nil
		}
		if last = err; errors.Is(err, syscall.ECONNREFUSED) {
			break
		}
	}
	return nil, last
}

// patient reads from a connection whose other side may be done: then it waits for halfLimit each time.
type patient struct {
	*net.TCPConn
	half *atomic.Bool
}

// Read reads from the connection.
func (p patient) Read(b []byte) (int, error) {
	if p.half.Load() {
		_ = p.SetReadDeadline(time.Now().Add(halfLimit))
	}
	return p.TCPConn.Read(b)
}

// reset closes a connection so that the other side sees that it broke off.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}
