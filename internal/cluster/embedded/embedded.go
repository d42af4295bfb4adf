// Package embedded is a Kubernetes cluster of real components that needs neither Docker nor root: etcd, the API server,
// the controller manager and the scheduler as plain processes in namespaces of their own, and a node that runs containers
// as processes (package node). Everything below the host process ends with it. The package also gets the program that makes kind
// clusters, as it gets its own components.
package embedded

import (
	"slices"

	"github.com/olmkit/olmkit/internal/cluster/certificates"
	"github.com/olmkit/olmkit/internal/progress"
)

// Options of Start.
type Options struct {
	Name     string // "" makes one up
	Keep     bool   // the cluster outlives this process, until Down
	Port     int    // of the API server on the loopback interface outside; 0 for any free one
	Audit    bool   // keep an audit log, see Cluster.Audit
	Progress *progress.Printer

	Kubernetes string // the release, one of KubernetesReleases; "" for KubernetesVersion
	OLM        string // the release of OLM v0 that is to be installed, one of OLMReleases: its image runs; "" for none
	Components Source // where its components come from

	// Admission names admission plugins that the API server has besides those that it has by itself.
	Admission []string
}

// Parts are what embedded clusters are made of, and the program that makes kind clusters, to be built.
type Parts struct {
	Kubernetes, OLMv0 []string // releases
	OLMv1             bool
	Kind              bool

	From Source
}

// Limitations that are about OLM v0.
const (
	limitInline        = "bundles reached OLM inline from the catalog: OLM's unpack jobs and catalog pods did not run"
	limitPackageServer = "OLM's package server is not installed"
)

// LimitBoxcutter is a limitation of the programs that OLMv1Programs returns.
const LimitBoxcutter = "operator-controller was built without the runtime of its alpha feature gate BoxcutterRuntime, which is off by default"

// LimitationsUnderOLMv1 are those of limitations that an embedded cluster with OLM v1 has, and what it has besides.
func LimitationsUnderOLMv1(limitations []string) []string {
	kept := slices.DeleteFunc(slices.Clone(limitations), func(l string) bool { return l == limitInline || l == limitPackageServer })
	return append(kept,
		certificates.Limitation,
		LimitBoxcutter,
	)
}
