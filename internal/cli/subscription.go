package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/output"
	"github.com/olmkit/olmkit/internal/subscription"
)

func newSubscription(s *session) *cobra.Command {
	return group("subscription", "Write what a user applies to install an operator", newSubscriptionGenerate(s))
}

// subscriptionFlags are the flags of 'subscription generate'.
type subscriptionFlags struct {
	subscription.Options
	approval, catalog, catalogSource, sourceName, mode, group, config, into, olm string
	env                                                                          []string
}

func newSubscriptionGenerate(s *session) *cobra.Command {
	f := &subscriptionFlags{}
	c := &cobra.Command{
		Use:   "generate (--image REF | --address HOST:PORT | --catalog-source NAMESPACE/NAME)",
		Short: "Write Namespace, OperatorGroup, CatalogSource and Subscription, ready for kubectl apply",
		Long: `Write Namespace, OperatorGroup, CatalogSource and Subscription, ready for kubectl apply.

With --catalog, the command knows the package's channels, bundles and install modes: it checks names, fills in the default
channel, and refuses what OLM would not install.

With --olm v1 it writes Namespace, ServiceAccount, ClusterCatalog and ClusterExtension, and the least RBAC that installs the
newest bundle of the channel, or with --starting-csv that bundle, to which the ClusterExtension is then pinned. It has no rights
for later versions: generate again to upgrade. It takes --catalog, with --image or --catalog-source NAME.`,
		Example: `  olmkit subscription generate --package memcached-operator --catalog catalog/memcached-operator --image localhost:5000/catalog:latest | kubectl apply -f -
  olmkit subscription generate --olm v1 --package memcached-operator --catalog catalog/memcached-operator --image localhost:5000/catalog:latest
  olmkit subscription generate --package etcd --channel stable --catalog-source olm/operatorhubio-catalog --approval Manual`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkOLM(f.olm); err != nil {
				return err
			}
			generate := f.generate
			if f.olm == olmV1 {
				generate = func(ctx context.Context, s *session) ([]byte, error) {
					return f.generateV1(ctx, s, c.LocalNonPersistentFlags())
				}
			}
			written, err := generate(c.Context(), s)
			if err != nil {
				return err
			}
			if f.into != "" {
				return output.Write(c.Context(), f.into, written)
			}
			_, err = s.Out.Write(written)
			return err
		},
	}
	f.register(c.Flags())
	return c
}

// register adds the flags.
func (f *subscriptionFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.olm, "olm", olmV0, "version of OLM that installs: v0 or v1")
	flags.StringVar(&f.Package, "package", "", "package to install (default: the only one of the catalog)")
	flags.StringVar(&f.Channel, "channel", "", "channel to follow (default: the package's default channel; with --olm v1 all channels)")
	flags.StringVar(&f.StartingCSV, "starting-csv", "", "name of the first CSV to install (default: the channel's head)")
	flags.StringVar(&f.approval, "approval", "Automatic", "how updates are approved: Automatic or Manual")
	flags.StringVar(&f.Namespace, "namespace", "", "namespace to install to (default: the package's name)")
	flags.StringVar(&f.Name, "name", "", "name of Subscription and OperatorGroup (default: the package's name)")
	flags.StringVar(&f.catalog, "catalog", "", "file-based catalog to check against: directory, file or -")
	flags.StringVar(&f.Source.Image, "image", "", "catalog image")
	flags.StringVar(&f.Source.CatalogDir, "image-catalog-dir", "/configs", "where the catalog is in the image")
	flags.StringVar(&f.Source.CacheDir, "image-cache-dir", "", "where a pre-built cache is in the image")
	flags.DurationVar(&f.Source.Poll, "poll-interval", 10*time.Minute, "how often OLM looks for a new catalog behind the image's tag; 0 for never. An image by digest is never polled")
	flags.StringArrayVar(&f.Source.PullSecrets, "pull-secret", nil, "Secret in the CatalogSource's namespace by which the image is pulled (repeatable)")
	flags.StringVar(&f.Source.Address, "address", "", "host:port of a registry gRPC server to use instead of an image")
	flags.StringVar(&f.catalogSource, "catalog-source", "", "NAMESPACE/NAME of a CatalogSource that the cluster has already")
	flags.StringVar(&f.sourceName, "catalog-source-name", "", "name of the new CatalogSource (default: the package's name and -catalog)")
	flags.StringVar(&f.mode, "install-mode", "", "AllNamespaces, OwnNamespace, SingleNamespace=NS or MultiNamespace=NS,NS (default: AllNamespaces, else OwnNamespace)")
	flags.StringVar(&f.group, "operator-group", "new", "new: write an OperatorGroup for --install-mode, and its Namespace; existing: use the one that the namespace has already")
	flags.StringVar(&f.config, "config", "", "file with the Subscription's spec.config")
	flags.StringArrayVar(&f.env, "env", nil, "NAME=VALUE, an environment variable of the operator (repeatable)")
	flags.StringVar(&f.into, "output-file", "", "file to write to (default: standard output)")
}

func (f *subscriptionFlags) generate(ctx context.Context, s *session) ([]byte, error) {
	var p *catalog.Package
	switch {
	case f.catalog != "":
		var err error
		if p, err = f.offered(ctx, s); err != nil {
			return nil, err
		}
		f.Package = p.Name
	case f.Package == "":
		return nil, hint.With(usagef("--package is missing"), "name the package, or with --catalog a catalog of one")
	}
	o := f.Options
	o.Approval = v1alpha1.Approval(f.approval)
	o.Namespace = cmp.Or(o.Namespace, o.Package)
	o.Source.Name = cmp.Or(f.sourceName, o.Package+"-catalog")
	if f.catalogSource != "" {
		namespace, name, found := strings.Cut(f.catalogSource, "/")
		if !found {
			return nil, usagef("--catalog-source %s: must be NAMESPACE/NAME", f.catalogSource)
		}
		o.Source.Existing, o.Source.Namespace, o.Source.Name = true, namespace, name
	}
	if p != nil {
		if err := f.consult(p, &o); err != nil {
			return nil, err
		}
	}
	switch f.group {
	case "new":
	case "existing":
		o.GroupExists = true
		if f.mode != "" {
			return nil, hint.With(usagef("--install-mode %s: the existing OperatorGroup says which namespaces are watched", f.mode), "leave out --install-mode, or --operator-group existing")
		}
	default:
		return nil, usagef("--operator-group %s: must be new or existing", f.group)
	}
	mode, targets, _ := strings.Cut(f.mode, "=")
	o.Mode = v1alpha1.InstallModeType(mode)
	if targets != "" {
		o.Targets = strings.Split(targets, ",")
	}
	if o.Mode == "" && !o.GroupExists {
		if o.Mode = subscription.DefaultMode(o.Supported); o.Mode == "" {
			return nil, hint.With(fmt.Errorf("%s supports neither AllNamespaces nor OwnNamespace", o.Package), "choose with --install-mode")
		}
	}
	if err := f.configure(ctx, &o); err != nil {
		return nil, err
	}
	written, err := subscription.Generate(o)
	return written, wrongUsage(err)
}

// offered is the package that the catalog offers: the one that is asked for, or else the only one.
func (f *subscriptionFlags) offered(ctx context.Context, s *session) (*catalog.Package, error) {
	c, err := catalog.Load(ctx, s.In, f.catalog)
	if err != nil {
		return nil, err
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	return findPackage(c, f.Package)
}

// noChannel says which channels p has instead of the one called name.
func noChannel(p *catalog.Package, name string) error {
	var names []string
	for _, c := range p.Channels {
		names = append(names, c.Name)
	}
	if len(names) == 0 {
		return hint.With(usagef("package %s has no channel", p.Name), "name a catalog with documents of schema %s, as 'olmkit catalog build' makes it", catalog.SchemaChannel)
	}
	return hint.With(usagef("package %s has no channel %q", p.Name, name), "its channels: %s", strings.Join(names, ", "))
}

// consult fills in and checks what the catalog knows of the package.
func (f *subscriptionFlags) consult(p *catalog.Package, o *subscription.Options) error {
	o.Channel = cmp.Or(o.Channel, p.DefaultChannel)
	channel := p.Channel(o.Channel)
	if channel == nil {
		return noChannel(p, o.Channel)
	}
	if o.StartingCSV = p.NameOf(o.StartingCSV); o.StartingCSV != "" && channel.Entry(o.StartingCSV) == nil {
		return hint.With(usagef("channel %s of package %s has no entry %q", channel.Name, p.Name, o.StartingCSV), "see 'olmkit catalog graph %s'", f.catalog)
	}
	first := o.StartingCSV
	if first == "" {
		var err error
		if first, err = head(channel); err != nil {
			return err
		}
	}
	b := p.Bundle(first)
	if b == nil {
		return hint.With(fmt.Errorf("package %s has no bundle %q, though channel %s names it", p.Name, first, channel.Name), "see 'olmkit catalog validate %s'", f.catalog)
	}
	var err error
	o.Supported, err = installModes(b)
	return err
}

// installModes returns the install modes of the bundle's CSV, nil when the catalog does not tell them.
func installModes(b *catalog.Bundle) ([]v1alpha1.InstallMode, error) {
	for _, property := range b.Properties {
		if property.Type != "olm.csv.metadata" {
			continue
		}
		var metadata struct {
			InstallModes []v1alpha1.InstallMode `json:"installModes"`
		}
		if err := json.Unmarshal(property.Value, &metadata); err != nil {
			return nil, fmt.Errorf("%s: bundle %s: read property %s: %w", b.At, b.Name, property.Type, err)
		}
		return metadata.InstallModes, nil
	}
	csv, err := b.CSV()
	if err != nil {
		if b.Image != "" {
			return nil, nil
		}
		return nil, err
	}
	return csv.Spec.InstallModes, nil
}

// head returns the name of the channel's one entry that no other replaces or skips.
func head(c *catalog.Channel) (string, error) {
	heads := c.Heads()
	if len(heads) != 1 {
		return "", hint.With(fmt.Errorf("%s: channel %s has %d heads: %s", c.At, c.Name, len(heads), strings.Join(heads, ", ")), "let its newest entry replace or skip all others")
	}
	return heads[0], nil
}

// configure reads --config and --env.
func (f *subscriptionFlags) configure(ctx context.Context, o *subscription.Options) error {
	if f.config != "" {
		data, err := readFile(ctx, f.config)
		if err != nil {
			return hint.With(fmt.Errorf("read --config: %w", err), "name a file with the Subscription's spec.config")
		}
		documents, err := document.Parse(f.config, data)
		if err != nil {
			return err
		}
		if len(documents) != 1 {
			return usagef("--config %s holds %d documents, not one", f.config, len(documents))
		}
		decoder := json.NewDecoder(strings.NewReader(string(documents[0].JSON)))
		decoder.DisallowUnknownFields()
		o.Config = &v1alpha1.SubscriptionConfig{}
		if err := decoder.Decode(o.Config); err != nil {
			at, text := documents[0].Mismatch(err)
			return hint.With(fmt.Errorf("%s: %s", at, text), "write the content of the Subscription's spec.config there")
		}
	}
	for _, variable := range f.env {
		name, value, found := strings.Cut(variable, "=")
		if !found || name == "" {
			return usagef("--env %s: must be NAME=VALUE", variable)
		}
		if o.Config == nil {
			o.Config = &v1alpha1.SubscriptionConfig{}
		}
		o.Config.Env = append(o.Config.Env, corev1.EnvVar{Name: name, Value: value})
	}
	return nil
}
