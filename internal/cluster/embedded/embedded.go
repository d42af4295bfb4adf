// Package embedded is a Kubernetes cluster of real components that needs neither Docker nor root: etcd, the API server,
// the controller manager and the scheduler as plain processes in namespaces of their own, and a node that runs containers
// as processes (package node). Everything below the host process ends with it.
package embedded

import "github.com/olmkit/olmkit/internal/progress"

// Options of Start.
type Options struct {
	Name     string // "" makes one up
	Keep     bool   // the cluster outlives this process, until Down
	Port     int    // of the API server on the loopback interface outside; 0 for any free one
	Audit    bool   // keep an audit log, see Cluster.Audit
	Progress *progress.Printer

	// Admission names admission plugins that the API server has besides those that it has by itself.
	Admission []string
}
