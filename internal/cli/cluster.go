package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/cluster"
	"github.com/olmkit/olmkit/internal/cluster/embedded"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/image"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv0"
	"github.com/olmkit/olmkit/internal/lifecycle/olmv1"
	"github.com/olmkit/olmkit/internal/safetext"
)

const defaultCluster = "olmkit"

func newCluster(s *session) *cobra.Command {
	return group("cluster", "Keep a cluster to work in",
		reachingOne(s, newClusterUp(s)), newClusterDown(s), newClusterStatus(s), reachingOne(s, newClusterLoad(s)), newClusterLogs(s),
		reachingOne(s, newClusterComponents(s)))
}

// addClusterFlags adds the flags that choose a cluster.
func addClusterFlags(c *cobra.Command, name, kind *string) {
	c.Flags().StringVar(name, "name", defaultCluster, "the cluster's `NAME`")
	c.Flags().StringVar(kind, "kind", kindEmbedded, "kind of cluster: "+strings.Join(keptKinds, ", "))
	c.Args = cobra.NoArgs
	c.PreRunE = func(*cobra.Command, []string) error {
		if err := cluster.CheckName(*name); err != nil {
			return usageError{fmt.Errorf("--name: %w", err)}
		}
		return nil
	}
}

func newClusterUp(s *session) *cobra.Command {
	var name, kind, nodeImage, ref, olm string
	var kubernetes, olmVersions []string
	var port int
	c := &cobra.Command{
		Use:   "up",
		Short: "Create a cluster and keep it",
		Long: `Create a cluster and keep it until 'cluster down'.

With --olm, OLM ` + olmv0.Version + ` is installed, or the release that --olm-version names. With --catalog as well, a pod serves that catalog for all namespaces, as the CatalogSource
` + olmv0.Namespace + `/` + keptCatalog + `, and OLM installs its bundles from their manifests in the catalog: 'subscription generate --catalog-source
` + olmv0.Namespace + `/` + keptCatalog + `' writes what to apply.

With --olm=v1, OLM ` + olmv1.Version + ` is installed on an embedded cluster. With --catalog as well, catalogd serves that catalog, as the
ClusterCatalog ` + keptCatalog + `: 'subscription generate --olm v1 --catalog-source ` + keptCatalog + `' writes what to apply.`,
		Example: `  olmkit cluster up --olm --catalog catalog
  olmkit cluster up --olm=v1 --catalog catalog
  olmkit cluster load ghcr.io/team/my-operator:v1.2.0=bin/manager
  olmkit subscription generate --package my-operator --catalog catalog --catalog-source ` + olmv0.Namespace + `/` + keptCatalog + ` | kubectl apply -f -`,
		RunE: func(c *cobra.Command, _ []string) error {
			options := keptOptions{name: name, nodeImage: nodeImage, kubernetes: kubernetes, olm: olm, olmVersions: olmVersions, port: port}
			if err := options.check(kind, ref); err != nil {
				return err
			}
			loaded, err := s.wholeCatalog(c.Context(), ref)
			if err != nil {
				return err
			}
			up, err := s.startKept(c.Context(), kind, options)
			if err != nil {
				return err
			}
			if err := s.equip(c.Context(), up, options, loaded); err != nil {
				return errors.Join(err, up.Down(context.WithoutCancel(c.Context())))
			}
			_, err = fmt.Fprintf(s.Out, "export KUBECONFIG=%s\n", up.Kubeconfig())
			s.progress().Say("\nkubectl uses it after the line above is run in your shell. To end it: olmkit cluster down --kind %s --name %s", kind, name)
			return err
		},
	}
	addClusterFlags(c, &name, &kind)
	c.Flags().StringVar(&nodeImage, "node-image", "", "node `IMAGE` of a kind cluster (default: that of kind's release)")
	kubernetesFlag.add(c, &kubernetes, "`VERSION` of Kubernetes of an embedded cluster")
	olmFlag.add(c, &olmVersions, "`VERSION` of the OLM v0 of an embedded cluster")
	c.Flags().StringVar(&olm, "olm", "", "install OLM; its `VERSION` is v0, or v1 with --olm=v1")
	c.Flags().Lookup("olm").NoOptDefVal = olmV0
	c.Args = noOLMArgument
	c.Flags().StringVar(&ref, "catalog", "", "file-based catalog for OLM to read: a directory, file, image or archive `REF`")
	componentFlags(s, c)
	c.Flags().IntVar(&port, "port", 0, "the API server's `PORT` on the loopback interface (0: any free one)")
	return c
}

// wholeCatalog loads the catalog ref with all manifests; nil if ref is "".
func (s *session) wholeCatalog(ctx context.Context, ref string) (*catalog.Catalog, error) {
	if ref == "" {
		return nil, nil
	}
	loaded, err := s.loadCatalog(ctx, ref)
	if err != nil {
		return nil, err
	}
	return loaded, s.pull(ctx, bundlesIn(nil, loaded))
}

func newClusterComponents(s *session) *cobra.Command {
	var kubernetes, olm, olmVersions []string
	var kind string
	c := &cobra.Command{
		Use:   "build",
		Short: "Pull or build the cluster's components, and print their directories",
		Long: `Pull the components of embedded clusters, or build them from source, unless the cache has them, and print a directory for each:
Kubernetes, and OLM; or, with --kind kind, the program that makes kind clusters. Commands that start such clusters get what they need,
and nothing else; use this command to fill a cache or an image, where clusters then run without Go and without a network.

A release of olmkit pulls the components by the digest that it was built with ('olmkit version'). What cannot be pulled, and with
--from-source everything, the Go toolchain builds, in 5 to 10 minutes on two cores. $` + embedded.ComponentsVariable + ` is what --components is,
for all commands that start a cluster.`,
		Example: `  olmkit cluster build
  olmkit cluster build --kubernetes 1.33,1.36 --olm v0,v1
  olmkit cluster build --olm-version 0.38
  olmkit cluster build --components registry.example.com/mirror/olmkit-components
  olmkit cluster build --from-source
  olmkit cluster build --kind kind`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			from, err := s.componentSource(kind)
			if err != nil {
				return err
			}
			parts, err := partsOf(kind, kubernetes, olm, olmVersions)
			if err != nil {
				return err
			}
			parts.From = from
			dirs, err := embedded.Build(c.Context(), parts, s.progress())
			for _, dir := range dirs {
				fmt.Fprintln(s.Out, dir)
			}
			return err
		},
	}
	kubernetesFlag.add(c, &kubernetes, "`VERSIONS` of Kubernetes, separated by commas")
	olmFlag.add(c, &olmVersions, "`VERSIONS` of OLM v0, separated by commas")
	c.Flags().StringSliceVar(&olm, "olm", []string{olmV0}, "`VERSIONS` of OLM of an embedded cluster, separated by commas: v0, v1, or none")
	c.Flags().StringVar(&kind, "kind", kindEmbedded, "kind of cluster: "+strings.Join(keptKinds, ", "))
	componentFlags(s, c)
	return c
}

// partsOf are the parts that the flags of 'cluster build' name.
func partsOf(kind string, kubernetes, olm, olmVersions []string) (parts embedded.Parts, err error) {
	switch {
	case kind == kindKind && len(kubernetes) > 0:
		return parts, noKubernetes(kind)
	case kind == kindKind && len(olmVersions) > 0:
		return parts, noOLMVersion(kind)
	case kind == kindKind:
		return embedded.Parts{Kind: true}, nil
	case kind != kindEmbedded:
		return parts, unknownKind(kind)
	}
	if parts.Kubernetes, err = kubernetesFlag.all(kubernetes); err != nil {
		return parts, err
	}
	if len(olmVersions) > 0 && !slices.Contains(olm, olmV0) {
		return parts, hint.With(usagef("--olm-version is of OLM v0"), "leave it out, or add v0 to --olm %s", strings.Join(olm, ","))
	}
	for _, version := range olm {
		switch {
		case version == olmV0:
			if parts.OLMv0, err = olmFlag.all(olmVersions); err != nil {
				return parts, err
			}
		case version == olmV1:
			parts.OLMv1 = true
		case version != "none" || len(olm) > 1:
			return parts, usagef("--olm %s: must be v0, v1, both, or none", strings.Join(olm, ","))
		}
	}
	return parts, nil
}

// componentFlags adds the flags that say where the components of an embedded cluster, or of kind, come from.
func componentFlags(s *session, c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&s.components.Reference, "components", "", "pull the cluster's components from `REF`: a mirror's repository, an image by digest or tag, an archive or an OCI layout (default: $"+embedded.ComponentsVariable+", or the release's)")
	f.BoolVar(&s.components.Build, "from-source", false, "build the cluster's components from source instead of pulling them; needs Go")
}

// componentSource is what the flags of componentFlags say, for a cluster of that kind.
func (s *session) componentSource(kind string) (embedded.Source, error) {
	from := s.components
	from.Images = s.images
	switch {
	case from.Reference != "" && from.Build:
		return from, hint.With(usagef("--components %s and --from-source exclude each other", from.Reference), "leave one of them out")
	case kind == kindExisting && from.Build:
		return from, hint.With(usagef("--from-source is for a cluster that olmkit starts"), "leave it out")
	case kind == kindExisting && from.Reference != "" && !slices.Contains(s.configured, "components"):
		return from, hint.With(usagef("--components is for a cluster that olmkit starts"), "leave it out")
	}
	return from, nil
}

func newClusterDown(s *session) *cobra.Command {
	var name, kind string
	c := &cobra.Command{
		Use:   "down",
		Short: "Delete a kept cluster",
		Example: `  olmkit cluster down
  olmkit cluster down --kind kind --name upgrades`,
		RunE: func(c *cobra.Command, _ []string) error {
			return s.progress().Start("ending cluster %s", name).End(downKept(c.Context(), kind, name))
		},
	}
	addClusterFlags(c, &name, &kind)
	return c
}

func newClusterLoad(s *session) *cobra.Command {
	var name, kind, ref string
	c := &cobra.Command{
		Use:   "load [REF=PROGRAM...] [--catalog REF]",
		Short: "Load images, or a catalog, into a cluster",
		Long: `Load images into a cluster: new containers of the image REF run PROGRAM, which is a binary, a directory that becomes the image's
root, or a single-binary image (archive, OCI layout or registry reference). Running containers are not affected.

With --catalog, the CatalogSource ` + olmv0.Namespace + `/` + keptCatalog + ` serves that catalog, instead of the one of 'cluster up --olm --catalog'.
OLM upgrades the Subscriptions to it. With OLM v1, the ClusterCatalog ` + keptCatalog + ` does.`,
		Example: `  olmkit cluster load ghcr.io/team/my-operator:v1.2.0=bin/manager
  olmkit cluster load --catalog ghcr.io/team/my-operator-catalog:latest`,
		RunE: func(c *cobra.Command, args []string) error {
			loaded, err := s.wholeCatalog(c.Context(), ref)
			if err != nil {
				return err
			}
			up, err := openKept(c.Context(), kind, name)
			if err != nil {
				return err
			}
			// Beside the kubeconfig, for as long as the cluster is.
			images, err := s.programs(c.Context(), kind, args, &room{parent: filepath.Dir(up.Kubeconfig())})
			if err != nil {
				return err
			}
			for _, i := range images {
				if err := s.progress().Start("load %s", i.ref).End(up.LoadImage(c.Context(), i.ref, i.source)); err != nil {
					return err
				}
			}
			if loaded == nil {
				return nil
			}
			silenceClients()
			return s.loadKept(c.Context(), up, loaded)
		},
	}
	addClusterFlags(c, &name, &kind)
	c.Flags().StringVar(&ref, "catalog", "", "file-based catalog for OLM to read: a directory, file, image or archive `REF`")
	c.Args = func(c *cobra.Command, args []string) error {
		if ref != "" {
			return nil
		}
		return atLeastOne("REF=PROGRAM")(c, args)
	}
	return c
}

// program is what an image runs.
type program struct {
	ref, source string // source is a program or a folder
}

// room is a folder for images that are unpacked, made when the first one is: who needs none leaves none behind, however
// the process ends.
type room struct {
	parent string // "" for the system's folder of temporary files
	dir    string
}

func (r *room) path() (string, error) {
	if r.dir != "" {
		return r.dir, nil
	}
	dir, err := os.MkdirTemp(r.parent, "olmkit-images-")
	if err != nil {
		return "", hint.With(fmt.Errorf("make room for images: %w", err), "set TMPDIR to where there is some")
	}
	r.dir = dir
	return dir, nil
}

func (r *room) remove() {
	if r.dir != "" {
		_ = os.RemoveAll(r.dir)
	}
}

// programs reads what users write as REF=PROGRAM, to run on a kind of cluster. Images are unpacked in room.
func (s *session) programs(ctx context.Context, kind string, named []string, room *room) ([]program, error) {
	var programs []program
	for n, i := range named {
		ref, source, ok := strings.Cut(i, "=")
		if !ok || ref == "" || source == "" {
			return nil, hint.With(usagef("image %s: must be REF=PROGRAM", i), "write for example example.com/operator:v1=bin/manager")
		}
		if image.Is(source) {
			dir, err := room.path()
			if err != nil {
				return nil, err
			}
			root := filepath.Join(dir, strconv.Itoa(n))
			if err := s.progress().Start("unpack %s", source).End(s.images.Root(ctx, source, root)); err != nil {
				return nil, err
			}
			source = root
		}
		info, err := os.Stat(source)
		if err != nil {
			return nil, hint.With(fmt.Errorf("image %s: %w", i, err), "build the program first")
		}
		if !info.IsDir() {
			// The node of a kind cluster runs images that hold the program alone.
			if err := image.CheckProgram(source, kind != kindKind); err != nil {
				return nil, fmt.Errorf("image %s: %s cannot run: %w", ref, source, err)
			}
		}
		programs = append(programs, program{ref, source})
	}
	return programs, nil
}

func newClusterLogs(s *session) *cobra.Command {
	var name, kind string
	c := &cobra.Command{
		Use:   "logs [COMPONENT|NAMESPACE/POD/CONTAINER]",
		Short: "Print the logs of a cluster's components and containers",
		Example: `  olmkit cluster logs kube-apiserver
  olmkit cluster logs olm/catalog-operator-7d4f/catalog-operator`,
		RunE: func(c *cobra.Command, args []string) error {
			up, err := openKept(c.Context(), kind, name)
			if err != nil {
				return err
			}
			component := ""
			if len(args) == 1 {
				component = args[0]
			}
			lines := &safetext.Lines{W: s.out(c.Context())}
			return errors.Join(up.Logs(c.Context(), lines, component), lines.Flush())
		},
	}
	addClusterFlags(c, &name, &kind)
	c.Args = cobra.MaximumNArgs(1)
	return c
}
