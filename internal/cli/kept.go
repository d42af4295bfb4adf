package cli

import (
	"context"
	"strings"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/cluster/embedded"
	"github.com/olmkit/olmkit/internal/cluster/kind"
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
	return usagef("--kind %s: it is one of %s", name, strings.Join(keptKinds, ", "))
}

// keptOptions are those of 'olmkit cluster up'.
type keptOptions struct {
	name, nodeImage string
	port            int
	progress        *progress.Printer
}

func startKept(ctx context.Context, of string, o keptOptions) (kept, error) {
	switch {
	case of == kindKind:
		return kind.Start(ctx, kind.Options{Name: o.name, Keep: true, NodeImage: o.nodeImage, Port: o.port, Progress: o.progress})
	case of != kindEmbedded:
		return nil, unknownKind(of)
	case o.nodeImage != "":
		return nil, usagef("--node-image is for a kind cluster: add --kind kind")
	}
	return embedded.Start(ctx, embedded.Options{Name: o.name, Keep: true, Port: o.port, Progress: o.progress})
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
