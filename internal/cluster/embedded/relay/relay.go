// Package relay passes connections on.
package relay

import (
	"errors"
	"io"
	"net"
	"time"
)

const (
	pause     = 50 * time.Millisecond // without a connection taken after one that could not be
	dialLimit = 10 * time.Second
)

// Serve connects what arrives at listener with target, which is asked for each connection, until listener is closed. Where target cannot be had, the
// caller's connection is reset. Connections that are open when listener is closed stay.
func Serve(listener net.Listener, target func() (string, error)) {
	for {
		caller, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // as when there are too many open files; others will be closed
			time.Sleep(pause)
			continue
		}
		go pass(caller, target)
	}
}

func pass(caller net.Conn, target func() (string, error)) {
	defer caller.Close()
	address, err := target()
	var called net.Conn
	if err == nil {
		called, err = net.DialTimeout("tcp", address, dialLimit)
	}
	if err != nil {
		_ = caller.(*net.TCPConn).SetLinger(0)
		return
	}
	defer called.Close()
	go func() {
		_, _ = io.Copy(called, caller)
		_ = called.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(caller, called)
}
