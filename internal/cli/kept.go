package cli

import (
	"context"
	"math"
	"strings"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/cluster/embedded"
	"github.com/olmkit/olmkit/internal/cluster/kind"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/progress"
)

// kept is a cluster that outlives the process that started it.
type kept interface {
	cluster.Cluster
	Kubeconfig() string
	Down(ctx context.Context) error
}

// keptKinds are the kinds of clusters that can be kept.
var keptKinds = []string{kindEmbedded, kindKind}

func unknownKind(name string) error {
	return usagef("--kind %s: must be one of %s", name, strings.Join(keptKinds, ", "))
}

// keptOptions are those of 'olmkit cluster up'.
type keptOptions struct {
	name, nodeImage string
	kubernetes      []string
	olm             string   // version of OLM that is to be installed: v0, v1, or "" for none
	olmVersions     []string // which release of OLM v0
	port            int
	components      embedded.Source
	progress        *progress.Printer
}

// check refuses what a cluster of the kind cannot be, which is to have the catalog ref, or "".
func (o keptOptions) check(kind, ref string) error {
	switch {
	case o.port < 0 || o.port > math.MaxUint16:
		return hint.With(usagef("--port %d: it is no port", o.port), "choose one from 1 to 65535, or 0 for any free one")
	case len(o.olmVersions) > 0 && o.olm != olmV0:
		return hint.With(usagef("--olm-version is of the OLM v0 that --olm installs"), "add --olm")
	}
	return checkKeptOLM(o.olm, kind, ref)
}

// startKept starts a cluster of the kind of, with the components that the flags of componentFlags choose.
func (s *session) startKept(ctx context.Context, of string, o keptOptions) (kept, error) {
	var err error
	if o.components, err = s.componentSource(of); err != nil {
		return nil, err
	}
	o.progress = s.progress()
	switch {
	case of != kindEmbedded && len(o.kubernetes) > 0:
		return nil, noKubernetes(of)
	case of != kindEmbedded && len(o.olmVersions) > 0:
		return nil, noOLMVersion(of)
	case of == kindKind:
		return kind.Start(ctx, kind.Options{Name: o.name, Keep: true, NodeImage: o.nodeImage, Port: o.port, Progress: o.progress, Program: kindProgram(o.components, o.progress)})
	case of != kindEmbedded:
		return nil, unknownKind(of)
	case o.nodeImage != "":
		return nil, usagef("--node-image is for a kind cluster: add --kind kind")
	}
	release, err := kubernetesFlag.one(o.kubernetes)
	if err != nil {
		return nil, err
	}
	if o.olm == olmV1 { // what cannot be built is said before there is a cluster
		if _, err := embedded.OLMv1Programs(ctx, o.components, o.progress); err != nil {
			return nil, err
		}
	}
	options := embedded.Options{Name: o.name, Kubernetes: release, Keep: true, Port: o.port, Components: o.components, Progress: o.progress}
	if o.olm == olmV0 {
		if options.OLM, err = olmFlag.one(o.olmVersions); err != nil {
			return nil, err
		}
	}
	return embedded.Start(ctx, options)
}

func openKept(ctx context.Context, of, name string) (kept, error) {
	switch of {
	case kindEmbedded:
		return embedded.Open(ctx, name)
	case kindKind:
		return kind.Open(ctx, name)
	}
	return nil, unknownKind(of)
}

// downKept ends a cluster; one of kind also if it does not answer.
func downKept(ctx context.Context, of, name string) error {
	if of == kindKind {
		return kind.Delete(ctx, name)
	}
	up, err := openKept(ctx, of, name)
	if err != nil {
		return err
	}
	return up.Down(ctx)
}

func keptNames(ctx context.Context, of string) ([]string, error) {
	if of == kindKind {
		return kind.Names(ctx)
	}
	return embedded.Names()
}
