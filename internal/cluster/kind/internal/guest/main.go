//go:build linux

// Command guest is what a node image without others' images needs besides Kubernetes: pause, which holds a pod's
// namespaces, and network, which gives the node's pods their network. The name it is called by chooses.
package main

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	var err error
	switch name := filepath.Base(os.Args[0]); name {
	case "pause":
		pause()
	case "network":
		err = network(os.Args[1], net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")), os.Getenv("POD_SUBNET"))
		pause()
	default:
		err = fmt.Errorf("no part %q; there are pause and network", name)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// pause waits to be ended, and meanwhile takes leave of the processes that lost their parents.
func pause() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGCHLD, syscall.SIGINT, syscall.SIGTERM)
	for s := range signals {
		if s != syscall.SIGCHLD {
			return
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
}

// network writes the configuration of the pods' network to file once the API server answers at its Service's address: pods
// that start before that wait long for it.
func network(file, service, subnet string) error {
	for {
		c, err := net.DialTimeout("tcp", service, time.Second) //nolint:gosec // the address is that of the cluster's own API server
		if err == nil {
			_ = c.Close()
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	return os.WriteFile(file, fmt.Appendf(nil, conflist, subnet), 0o600)
}

const conflist = `{
  "cniVersion": "1.0.0", "name": "ptp",
  "plugins": [
    {"type": "ptp", "ipMasq": true, "ipam": {
      "type": "host-local", "dataDir": "/run/cni-ipam-state", "routes": [{"dst": "0.0.0.0/0"}], "ranges": [[{"subnet": %q}]]
    }},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`
