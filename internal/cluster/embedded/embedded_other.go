//go:build !linux

package embedded

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/progress"
)

// Cluster is a running embedded cluster, of which there is none but on Linux.
type Cluster struct{ cluster.Cluster }

var errSystem = hint.With(fmt.Errorf("embedded clusters run on Linux, and this is %s", runtime.GOOS), "run olmkit on Linux, for example in a virtual machine or a container")

// Main returns: this process was not started for work inside of a cluster.
func Main() {}

// Build builds kind unless the cache has it, and returns its folder. Of the other parts there are none.
func Build(ctx context.Context, parts Parts, p *progress.Printer) ([]string, error) {
	if !parts.Kind || parts.OLMv1 || len(parts.Kubernetes)+len(parts.OLMv0) > 0 {
		return nil, errSystem
	}
	dir, err := getKind(ctx, parts.From, p)
	return []string{dir}, err
}

// command returns a command that ends with ctx, and what starts it.
func (s *componentSet) command(ctx context.Context, name string, args ...string) (*exec.Cmd, process) {
	c := grouped(ctx, name, args...)
	return c, c
}

// Start fails.
func Start(context.Context, Options) (*Cluster, error) { return nil, errSystem }

// Open fails.
func Open(context.Context, string) (*Cluster, error) { return nil, errSystem }

// Names returns none.
func Names() ([]string, error) { return nil, nil }

// Kubeconfig returns "".
func (c *Cluster) Kubeconfig() string { return "" }

// Disposable is true, as it is where there are such clusters.
func (c *Cluster) Disposable() bool { return true }

// Down fails.
func (c *Cluster) Down(context.Context) error { return errSystem }

// OLMv1Programs fails.
func OLMv1Programs(context.Context, Source, *progress.Printer) (map[string]string, error) {
	return nil, errSystem
}

// OLMDefinitions fails.
func OLMDefinitions(context.Context, string, Source, *progress.Printer) ([]byte, error) {
	return nil, errSystem
}

// ProvideOLM fails.
func (c *Cluster) ProvideOLM(context.Context, *progress.Printer) error { return errSystem }

// PushImage fails.
func (c *Cluster) PushImage(context.Context, string, v1.Image) (string, error) { return "", errSystem }

// DelayImages fails.
func (c *Cluster) DelayImages(context.Context, time.Duration) error { return errSystem }

// ProvideCertificates fails.
func (c *Cluster) ProvideCertificates(context.Context) error { return errSystem }

// EndCertificates fails.
func (c *Cluster) EndCertificates(context.Context) error { return errSystem }
