package kind

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/cluster/certificates"
	"github.com/olmkit/olmkit/internal/hint"
)

// LimitationsUnderOLMv1 are those of limitations that a kind cluster with OLM v1 has, and what it has besides.
func LimitationsUnderOLMv1(limitations []string) []string {
	kept := slices.DeleteFunc(slices.Clone(limitations), func(l string) bool { return l == limitCatalog || l == limitPackageServer })
	return append(kept, certificates.Limitation)
}

// ServeProgram makes ref mean an image of the program, which is at / under its own name. The nodes pull it from then on.
func (c *Cluster) ServeProgram(ctx context.Context, ref, program string) error {
	m, err := c.serving(ctx)
	if err != nil {
		return err
	}
	artifact, err := pack(program, "/"+filepath.Base(program))
	if err != nil {
		return fmt.Errorf("make %s the image %s: %w", program, ref, err)
	}
	if _, err := m.push(ctx, ref, artifact); err != nil {
		return fmt.Errorf("serve %s: %w", ref, err)
	}
	return nil
}

// ServePrograms has the nodes pull the programs that were loaded and that the operators of a catalog run.
func (c *Cluster) ServePrograms(ctx context.Context, name string, fbc []byte) error {
	m, err := c.serving(ctx)
	if err != nil {
		return err
	}
	loaded := catalog.Parse(name, fbc)
	if err := loaded.Err(); err != nil {
		return fmt.Errorf("read catalog %s: %w", name, err)
	}
	for _, p := range loaded.Packages {
		for _, b := range p.Bundles {
			if err := c.pushPrograms(ctx, m, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// PushImage keeps img in olmkit's registry and returns the reference, by digest, by which pods pull it: with TLS, on which those insist
// that read images themselves, and a certificate of the cluster's authority.
func (c *Cluster) PushImage(ctx context.Context, repository string, img v1.Image) (string, error) {
	m, err := c.serving(ctx)
	if err != nil {
		return "", err
	}
	authority, err := c.trusted()
	if err != nil {
		return "", err
	}
	return m.pushForPods(ctx, authority, repository, img)
}

// ProvideCertificates issues certificates, and injects the cluster's authority, from this process until the cluster is closed, as
// cert-manager does, whose CustomResourceDefinitions must be established.
func (c *Cluster) ProvideCertificates(context.Context) error {
	authority, err := c.trusted()
	if err != nil || c.endCertificates != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.endCertificates = cancel
	return certificates.Provide(ctx, c.config, authority)
}

// trusted returns the authority of what olmkit issues on the cluster, made when it is asked for first.
func (c *Cluster) trusted() (*certificates.Authority, error) {
	if c.authority == nil {
		made, err := certificates.NewAuthority("olmkit kind cluster")
		if err != nil {
			return nil, fmt.Errorf("make the cluster's certificate authority: %w", err)
		}
		c.authority = made
	}
	return c.authority, nil
}

// podsHost is the registry's name for what pods pull by its address.
const podsHost = "olm-v1." + names

// pushForPods pushes img, and returns its reference by digest at an address with TLS, which is served from the first call on.
func (m *mirror) pushForPods(ctx context.Context, authority *certificates.Authority, repository string, img v1.Image) (string, error) {
	if m.secure == nil {
		if err := m.serveTLS(authority); err != nil {
			return "", err
		}
	}
	pinned, err := m.push(ctx, podsHost+"/"+repository, img)
	if err != nil {
		return "", err
	}
	return m.secure.Addr + "/" + pinned, nil
}

// serveTLS serves what the mirror holds to pods, with a certificate of authority.
func (m *mirror) serveTLS(authority *certificates.Authority) error {
	host, _, err := net.SplitHostPort(m.address)
	if err != nil {
		return err
	}
	config, err := authority.ServerTLS("registry", host)
	if err != nil {
		return err
	}
	listener, err := tls.Listen("tcp", net.JoinHostPort(host, "0"), config)
	if err != nil {
		return hint.With(fmt.Errorf("serve images to pods: %w", err), "let olmkit listen on %s, the address by which the node reaches this machine", host)
	}
	m.secure = &http.Server{Addr: listener.Addr().String(), Handler: m.held, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = m.secure.Serve(listener) }()
	return nil
}
