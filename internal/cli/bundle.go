package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/blang/semver/v4"
	"github.com/spf13/cobra"
	"go.podman.io/image/v5/docker/reference"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/check"
	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/image"
	"github.com/olmkit/olmkit/internal/marker"
	"github.com/olmkit/olmkit/internal/project"
	"github.com/olmkit/olmkit/internal/report"
)

func newBundle(s *session) *cobra.Command {
	return reaching(s, group("bundle", "Generate, validate, compare, publish and run bundles", newBundleGenerate(s), newBundleValidate(s), newBundleDiff(s), newBundlePush(s), newBundleRun(s)))
}

// bundleFlags are the flags of 'bundle generate'.
type bundleFlags struct {
	bundle.Options
	version, base, icon, catalog, conversion, into, rights string
	manifests, api, images                                 []string
	digests                                                bool
}

func newBundleGenerate(s *session) *cobra.Command {
	f := &bundleFlags{}
	c := &cobra.Command{
		Use:   "generate --version V --output-dir DIR",
		Short: "Generate a bundle from an operator's manifests",
		Long: `Generate a bundle from an operator's manifests: the CSV, the CRDs, other objects that OLM installs, and the metadata.

The manifests are kustomize directories (built here, no kustomize needed), directories of YAML files, files, or - for
standard input. The CSV is based on a ClusterServiceVersion among them, or on the one that --base names: its hand-written
parts and comments stay. Samples (objects of the operator's own kinds) become alm-examples. The default of --manifests is
config/manifests, or, in a kubebuilder project without it, config/default with config/samples and config/scorecard.

--api adds what the API's Go sources say to the CSV's list of owned CRDs: the markers
+operator-sdk:csv:customresourcedefinitions (displayName, resources, order; on fields type=spec or type=status, displayName,
xDescriptors, order) and the comments of types and fields. A marker replaces what the base says, as with operator-sdk; a
comment is used only where marker and base say nothing.

OLM creates some objects itself. They are left out of the bundle, and described in the CSV: the operator's namespace, service
accounts, roles and bindings, webhook configurations with their Services and certificates, and the CA in CRDs. A kind that OLM does
not accept in a bundle is an error, unless --skip-kind names it.

Generating again changes nothing. A createdAt annotation is written only if SOURCE_DATE_EPOCH is set.`,
		Example: `  olmkit bundle generate --version 1.2.0 --replaces my-operator.v1.1.0 --channels stable --output-dir bundle/1.2.0
  kustomize build config/manifests | olmkit bundle generate --manifests - --version 1.2.0 --output-dir bundle/1.2.0`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c.Context(), s) },
	}
	flags := c.Flags()
	flags.StringVar(&f.version, "version", "", "version of the release, without a v")
	flags.StringVar(&f.Package, "package", "", "name of the package (default: from the base CSV's name, or the projectName in kubebuilder's file PROJECT); the CSV is named after the base, or else the package")
	flags.StringSliceVar(&f.Channels, "channels", nil, "channels of the bundle (default alpha)")
	flags.StringVar(&f.DefaultChannel, "default-channel", "", "default channel of the package (default: the first of --channels)")
	flags.StringVar(&f.Replaces, "replaces", "", "name of the CSV that this one replaces; auto: the head of the channel in --catalog")
	flags.StringSliceVar(&f.Skips, "skips", nil, "names of CSVs that this one skips")
	flags.StringVar(&f.SkipRange, "skip-range", "", "versions that upgrade directly to this one, for example '>=1.0.0 <1.2.0'")
	flags.StringVar(&f.MinKubeVersion, "min-kube-version", "", "lowest version of Kubernetes that the operator runs on")
	flags.StringArrayVar(&f.manifests, "manifests", nil, "kustomize directory, directory, file, or - for standard input (repeatable; default config/manifests)")
	flags.StringArrayVar(&f.images, "image", nil, "NAME=REF: replace the image NAME, with any tag, by REF; {version} in REF stands for --version (repeatable)")
	flags.StringVar(&f.base, "base", "", "file with the CSV to build on (default: the one among the manifests)")
	flags.StringVar(&f.icon, "icon", "", "icon of the operator: an svg, png, jpg or gif file (default: the base's)")
	flags.StringArrayVar(&f.api, "api", nil, "directory of the API's Go sources, read with all below it for markers; needs Go (repeatable)")
	flags.StringVar(&f.catalog, "catalog", "", "file-based catalog in which --replaces auto finds the head")
	flags.StringVar(&f.rights, "rbac-from", "", "JSON report of 'olmkit upgrade test', or - for standard input: leave out the rights that the newest release in it had and no release in it used, and name them")
	flags.StringArrayVar(&f.SkipKinds, "skip-kind", nil, "kind to leave out of the bundle (repeatable)")
	flags.StringVar(&f.conversion, "crd-conversion", string(bundle.ConversionKeep), "spec.conversion in CRDs: keep (until OLM adds its CA, requests that need conversion are refused) or strip (until then, objects are stored unconverted)")
	flags.BoolVar(&f.digests, "use-image-digests", false, "name images by digest; asks the registries")
	flags.StringVar(&f.into, "output-dir", "", "directory to write to")
	require(c, "version", "output-dir")
	return c
}

func (f *bundleFlags) run(ctx context.Context, s *session) error {
	o, err := f.read()
	if err != nil {
		return err
	}
	inputs, err := document.Until(ctx, func() ([]bundle.Input, error) { return f.inputs(s.In) })
	if err != nil {
		return err
	}
	base, err := f.baseCSV(ctx, s)
	if err != nil {
		return err
	}
	if err := f.complete(ctx, s, &o, inputs, base); err != nil {
		return err
	}
	made, err := document.Until(ctx, func() (*bundle.Generated, error) { return bundle.Generate(inputs, base, o) })
	if err != nil {
		return err
	}
	changed, err := made.Write(ctx, f.into)
	if err != nil {
		return err
	}
	p := s.progress()
	for _, note := range made.Notes {
		p.Say("note: %s", note)
	}
	if !changed {
		p.Say("%s is up to date with %s", f.into, made.Name)
		return nil
	}
	p.Say("%s holds %s", f.into, made.Name)
	return nil
}

// read returns the options that the flags say by themselves.
func (f *bundleFlags) read() (bundle.Options, error) {
	o := f.Options
	var err error
	if o.Version, err = semver.Parse(f.version); err != nil {
		return o, hint.With(usagef("--version %s: %w", f.version, err), "write it as 1.2.3 or 1.2.3-rc.1, without a v")
	}
	o.Conversion = bundle.Conversion(f.conversion)
	if o.Conversion != bundle.ConversionKeep && o.Conversion != bundle.ConversionStrip {
		return o, usagef("--crd-conversion %s: must be keep or strip", f.conversion)
	}
	if o.Created, err = sourceDate(); err != nil {
		return o, err
	}
	if f.icon != "" {
		if o.IconType = bundle.IconTypes[strings.ToLower(filepath.Ext(f.icon))]; o.IconType == "" {
			return o, usagef("--icon %s: must be an svg, png, jpg or gif file", f.icon)
		}
		if o.Icon, err = document.ReadFile(f.icon); err != nil {
			return o, fmt.Errorf("read the icon: %w", err)
		}
		if !bundle.IsIcon(o.Icon, o.IconType) {
			return o, hint.With(usagef("--icon %s: what it holds is no %s", f.icon, o.IconType), "name a picture, with the ending of its kind")
		}
	}
	for _, channel := range o.Channels {
		if channel == "" || strings.ContainsFunc(channel, unicode.IsSpace) {
			return o, hint.With(usagef("--channels: %q is no name of a channel", channel), "separate the names by commas, without spaces")
		}
	}
	if f.Replaces != "" && f.Replaces != "auto" {
		err = checkCSVName("--replaces", f.Replaces)
	}
	for i, name := range o.Skips {
		o.Skips[i] = strings.TrimSpace(name)
		err = cmp.Or(err, checkCSVName("--skips", o.Skips[i]))
	}
	if err != nil {
		return o, err
	}
	return o, f.readImages(&o)
}

// checkCSVName returns an error where name is no name of a CSV; one that is only a version is none that anybody gives.
func checkCSVName(flag, name string) error {
	problem := "it is a version"
	if _, err := semver.ParseTolerant(name); err != nil {
		wrong := validation.IsDNS1123Subdomain(name)
		if len(wrong) == 0 {
			return nil
		}
		problem = wrong[0]
	}
	return hint.With(usagef("%s: %q is no name of a ClusterServiceVersion: %s", flag, name, problem), "write the name of the release's ClusterServiceVersion, as in my-operator.v1.2.0")
}

// readImages reads what --image says.
func (f *bundleFlags) readImages(o *bundle.Options) error {
	for _, pair := range f.images {
		name, ref, found := strings.Cut(pair, "=")
		if !found || name == "" || ref == "" {
			return usagef("--image %s: must be NAME=REF", pair)
		}
		ref = strings.ReplaceAll(ref, versionPattern, f.version)
		if _, err := reference.ParseNormalizedNamed(ref); err != nil {
			return hint.With(usagef("--image %s: %q: %w", pair, ref, err), "write the image as registry/repository:tag or registry/repository@sha256:digest")
		}
		if o.Images == nil {
			o.Images = map[string]string{}
		}
		o.Images[name] = ref
	}
	return nil
}

// baseCSV reads the base CSV, nil if none is named.
func (f *bundleFlags) baseCSV(ctx context.Context, s *session) (*bundle.Input, error) {
	if f.base == "" {
		return nil, nil
	}
	found, err := document.Until(ctx, func() ([]bundle.Input, error) { return bundle.Inputs(f.base, s.In) })
	if err != nil {
		return nil, err
	}
	if len(found) != 1 || found[0].Kind != bundle.KindCSV {
		return nil, hint.With(fmt.Errorf("%s does not hold one ClusterServiceVersion", f.base), "name a file with nothing but the base CSV")
	}
	return &found[0], nil
}

// complete adds to o what follows from the inputs, the project, a report and registries.
func (f *bundleFlags) complete(ctx context.Context, s *session, o *bundle.Options, inputs []bundle.Input, base *bundle.Input) (err error) {
	if pkg, _ := bundle.Names(*o, inputs, base); pkg == "" {
		if o.Package, err = projectName(); err != nil {
			return err
		}
	}
	if f.Package != "" && len(validation.IsDNS1123Label(f.Package)) > 0 {
		return hint.With(usagef("--package %s: it is no name of a package", f.Package), "use lower case letters, digits and dashes, at most 63 characters")
	}
	_, csv := bundle.Names(*o, inputs, base)
	if wrong := validation.IsDNS1123Subdomain(csv); len(wrong) > 0 && len(o.Version.Build) > 0 {
		return hint.With(usagef("--version %s: the CSV's name would be %q: %s", f.version, csv, wrong[0]), "leave out what begins with the +, which no name can hold")
	} else if len(wrong) > 0 && f.Package != "" {
		return hint.With(usagef("--package %s: the CSV's name would be %q: %s", f.Package, csv, wrong[0]), "use lower case letters, digits and dashes")
	}
	if o.Replaces == "auto" {
		if o.Replaces, err = f.predecessor(ctx, s, *o, inputs, base); err != nil {
			return err
		}
	}
	if f.rights != "" {
		if o.Reduce, err = s.reducer(ctx, f.rights); err != nil {
			return err
		}
	}
	if f.digests {
		o.Pin = func(reference string) (string, error) { return s.images.Pinned(ctx, reference) }
	}
	if len(f.api) == 0 {
		return nil
	}
	sources, err := marker.Load(ctx, f.api)
	if err != nil {
		return err
	}
	o.Describe = sources.Describe
	return nil
}

// inputs reads the manifests that were named, or those where projects have them.
func (f *bundleFlags) inputs(stdin io.Reader) ([]bundle.Input, error) {
	sources := f.manifests
	if len(sources) == 0 {
		isDir := func(dir string) bool {
			info, err := os.Stat(dir)
			return err == nil && info.IsDir()
		}
		switch {
		case isDir("config/manifests"):
			sources = []string{"config/manifests"}
		case isDir("config/default"):
			sources = []string{"config/default"}
			for _, dir := range []string{"config/samples", "config/scorecard"} {
				if isDir(dir) {
					sources = append(sources, dir)
				}
			}
		default:
			return nil, hint.With(usagef("there is neither config/manifests nor config/default here"), "name the operator's manifests with --manifests")
		}
	}
	var all []bundle.Input
	for _, source := range sources {
		found, err := bundle.Inputs(source, stdin)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// projectName returns what kubebuilder's file PROJECT in the working directory calls the project, "" without the file.
func projectName() (string, error) {
	k, err := project.ReadKubebuilder(".")
	if k == nil {
		return "", hint.With(err, "name the package with --package, or correct PROJECT: kubebuilder writes it")
	}
	return k.Name, nil
}

// predecessor returns the name of the CSV at the head of the channel, or, when this very release is there already, of the
// one that it replaces there.
func (f *bundleFlags) predecessor(ctx context.Context, s *session, o bundle.Options, inputs []bundle.Input, base *bundle.Input) (string, error) {
	if f.catalog == "" {
		return "", hint.With(usagef("--replaces auto: it is not known which catalog to look into"), "name it with --catalog")
	}
	c, err := s.loadCatalog(ctx, f.catalog)
	if err != nil {
		return "", err
	}
	name, csv := bundle.Names(o, inputs, base)
	p := c.Find(name)
	if p == nil {
		return "", nil // the first release of the package
	}
	channel := o.DefaultChannel
	if len(o.Channels) > 0 && channel == "" {
		channel = o.Channels[0]
	}
	if channel == "" {
		channel = p.DefaultChannel
	}
	found := p.Channel(channel)
	if found == nil {
		s.progress().Say("note: --replaces auto: package %s has no channel %s in %s, so the bundle replaces nothing", name, channel, f.catalog)
		return "", nil
	}
	if e := found.Entry(csv); e != nil {
		return e.Replaces, nil
	}
	newest, err := head(found)
	if b := p.Bundle(newest); err == nil && b != nil && b.Version.GT(o.Version) {
		return "", hint.With(usagef("--replaces auto: %s, the head of channel %s, is newer than --version %s", newest, channel, f.version),
			"raise --version, or name another channel with --channels, or the release to replace with --replaces")
	}
	return newest, err
}

// sourceDate returns SOURCE_DATE_EPOCH (https://reproducible-builds.org/specs/source-date-epoch/) as RFC 3339, or "".
func sourceDate() (string, error) {
	value := strings.TrimSpace(os.Getenv("SOURCE_DATE_EPOCH"))
	if value == "" {
		return "", nil
	}
	seconds, err := strconv.ParseInt(value, 10, 64)
	if err != nil || seconds < 0 {
		return "", hint.With(fmt.Errorf("SOURCE_DATE_EPOCH %q is not a number of seconds", value), "unset it, or set it to 'git log -1 --format=%%ct'")
	}
	return time.Unix(seconds, 0).UTC().Format(time.RFC3339), nil
}

func newBundleValidate(s *session) *cobra.Command {
	c := &cobra.Command{
		Use:   "validate REF...",
		Short: "Validate bundles",
		Long: `Validate bundles: the ClusterServiceVersion, its permissions, webhooks and images, and all rules of the validators in
operator-framework/api.

A REF is a bundle directory, a folder with bundle directories in it, or a bundle's image: on a registry, in an archive, or in
an OCI layout. The labels of an image are validated, too. With --images, registries are asked for the images that bundles name.

Codes that begin with OLM are about what OLM v0 accepts and OLM v1 refuses. They are notes, and errors with --olm v1.`,
		Example: "  olmkit bundle validate bundle/1.2.0 --report junit=bundle.xml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return hint.With(usagef("no bundle is named"), "name directories that hold manifests/ and metadata/, or bundles' images")
			}
			return nil
		},
	}
	j := judged(s, c)
	j.suppresses(c)
	j.forOLM(c)
	var images bool
	c.Flags().BoolVar(&images, "images", false, imagesHelp)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := j.check(c.Context()); err != nil {
			return err
		}
		args, err := bundlesNamed(args)
		if err != nil {
			return err
		}
		r := &report.Report{APIVersion: report.APIVersion, Kind: report.KindValidate, Findings: []finding.Finding{}}
		found, files := make([][]finding.Finding, len(args)), make([][]string, len(args))
		work, ctx := errgroup.WithContext(c.Context())
		work.SetLimit(runtime.GOMAXPROCS(0))
		for i, ref := range args {
			work.Go(func() (err error) {
				found[i], files[i], err = s.validateBundle(ctx, ref, images)
				return err
			})
		}
		if err := work.Wait(); err != nil {
			return err
		}
		r.Findings, r.Files = append(r.Findings, slices.Concat(found...)...), slices.Concat(files...)
		r.Checks = append([]string{catalog.CodeSyntax}, check.BundleCodes(images)...)
		finding.Sort(r.Findings)
		return j.finish(c.Context(), r)
	}
	return c
}

// validateBundle returns what is found of the bundle at ref, with images by asking the registries of its images too, and the
// bundle's files.
func (s *session) validateBundle(ctx context.Context, ref string, images bool) ([]finding.Finding, []string, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	b, err := s.readBundle(ctx, ref)
	if problem := catalog.NotParsedIn(err); problem != nil {
		return []finding.Finding{*problem}, []string{problem.Location.File}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	var known check.Registry
	if images {
		if known, err = s.registry(ctx, check.Images(b)); err != nil {
			return nil, nil, err
		}
	}
	files := []string{b.AnnotationsAt.File}
	for _, m := range b.Manifests {
		files = append(files, m.At.File)
	}
	found, err := document.Until(ctx, func() ([]finding.Finding, error) { return check.Bundle(b, known), nil })
	return found, files, err
}

// bundlesNamed returns refs, with the bundle directories in a folder instead of the folder.
func bundlesNamed(refs []string) ([]string, error) {
	var all []string
	for _, ref := range refs {
		info, err := os.Stat(ref)
		if image.Is(ref) || err != nil || !info.IsDir() || bundle.Is(ref) {
			all = append(all, ref)
			continue
		}
		within, err := bundle.In(ref)
		if err != nil {
			return nil, err
		}
		if len(within) == 0 {
			within = []string{ref} // to read it says what it lacks
		}
		all = append(all, within...)
	}
	return all, nil
}
