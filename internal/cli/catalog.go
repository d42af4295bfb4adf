package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/olmkit/olmkit/internal/cache"
	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/check"
	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/graph"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/output"
	"github.com/olmkit/olmkit/internal/report"
)

func newCatalog(s *session) *cobra.Command {
	return reaching(s, group("catalog", "Build, validate, draw, serve and publish file-based catalogs",
		newCatalogRender(s), newCatalogBuild(s), newCatalogValidate(s), newCatalogGraph(s), newCatalogDiff(s), newCatalogServe(s), newCatalogPush(s)))
}

func newCatalogRender(s *session) *cobra.Command {
	var format, into, level string
	c := &cobra.Command{
		Use:   "render REF...",
		Short: "Print bundles and catalogs as one file-based catalog",
		Long: `Print bundles and catalogs as one file-based catalog.

A REF is a bundle directory (manifests/ and metadata/), a directory or a file of a file-based catalog, - for standard input,
or an image of a bundle or of a catalog: on a registry, with its host (quay.io/team/my-catalog:latest), in an archive, or in
an OCI layout. Bundles have their manifests inline, so OLM can install those of directories and archives from the
catalog alone.`,
		Example: `  olmkit catalog render bundle/1.2.0
  olmkit catalog render quay.io/team/my-catalog:latest -o yaml --output-file catalog/catalog.yaml`,
		Args: atLeastOne("REF"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := errors.Join(outputOneOf(format, catalog.Formats), checkMigration(level)); err != nil {
				return err
			}
			if level == catalog.Migrations[0] {
				percent := int64(100)
				if areDirectories(args) {
					percent = 10
				}
				defer s.letHeapGrow(renderingHeap, percent)()
				return s.write(c.Context(), into, func(w io.Writer) error { return s.loader().Render(c.Context(), w, format, args...) })
			}
			loaded, err := s.loadCatalog(c.Context(), args...)
			if err != nil {
				return err
			}
			return s.writeCatalog(c.Context(), into, format, level, loaded)
		},
	}
	c.Flags().StringVarP(&format, "output", "o", "json", "format: "+strings.Join(catalog.Formats, ", "))
	c.Flags().StringVar(&into, "output-file", "", "write to this file instead of standard output")
	addMigration(c, &level)
	return c
}

func newCatalogBuild(s *session) *cobra.Command {
	var format, into, level, reference string
	c := &cobra.Command{
		Use:   "build TEMPLATE",
		Short: "Print the file-based catalog that a template describes",
		Long: `Print the file-based catalog that a template describes. The template is opm's semver or basic one, with bundle
directories in place of images, or olmkit's own. Bundles are named relative to the template's file. TEMPLATE may be - for standard
input; bundles are then named relative to the working directory.

  schema: olmkit.template
  package: example-operator
  description: What it does.
  icon: icon.svg                    # a file beside the template
  defaultChannel: stable            # of several
  bundles: [../bundle/*]            # directories relative to the template, or patterns that match some
  channels:
    stable:
      - 1.0.0                       # a bundle's version or name, the oldest first; it replaces the one before it that nothing skips
      - 1.1.0
      - version: 1.1.1
        skips: [1.1.0]
      - version: 1.2.0
        skipRange: ">=1.0.0 <1.2.0"
        replaces: 1.0.0             # instead of the one before; "" for nothing
  deprecations:
    - bundle: 1.0.0                 # or channel: NAME; neither for the whole package
      message: Use 1.2.0.`,
		Example: `  olmkit catalog build catalog-template.yaml --output-file catalog/my-operator/catalog.yaml
  olmkit catalog build catalog-template.yaml --by-reference 'quay.io/team/my-operator-bundle:v{version}' --output-file catalog/my-operator/catalog.yaml`,
		Args: exactlyOne("TEMPLATE"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := errors.Join(outputOneOf(format, catalog.Formats), checkMigration(level)); err != nil {
				return err
			}
			built, err := s.loader().Build(c.Context(), args[0])
			if err == nil && reference != "" {
				err = s.refer(c.Context(), built, reference)
			}
			if err != nil {
				return err
			}
			return s.writeCatalog(c.Context(), into, format, level, built)
		},
	}
	c.Flags().StringVarP(&format, "output", "o", "yaml", "format: "+strings.Join(catalog.Formats, ", "))
	c.Flags().StringVar(&into, "output-file", "", "write to this file instead of standard output")
	c.Flags().StringVar(&reference, "by-reference", "", "name the images of bundle directories, by digest, in the place of their manifests: `REF`, in which {version} stands for each bundle's version, is where 'olmkit bundle push' has put them")
	addMigration(c, &level)
	return c
}

// refer lets c name the image that reference is of each bundle, by the digest that the registry says.
func (s *session) refer(ctx context.Context, c *catalog.Catalog, reference string) error {
	bundles := len(bundlesIn(nil, c))
	if !strings.Contains(reference, versionPattern) && bundles > 1 {
		return hint.With(usagef("--by-reference %s: all bundles would have the same image", reference), "write for example quay.io/team/my-operator-bundle:v{version}")
	}
	step := s.progress().Start("ask for the images of %d bundles", bundles)
	return step.End(s.loader().Refer(ctx, c, func(ctx context.Context, b *catalog.Bundle) (string, error) {
		return s.images.Pinned(ctx, strings.ReplaceAll(reference, versionPattern, b.Version.String()))
	}))
}

func newCatalogValidate(s *session) *cobra.Command {
	var options check.Options
	var against, template string
	var pull, images, all bool
	c := &cobra.Command{
		Use:   "validate REF...",
		Short: "Validate a catalog and its upgrades",
		Long: `Validate a catalog: its documents, the upgrade graph, and every upgrade that OLM takes between bundles whose manifests are
inline (--pull gets those of the others from their images). docs/checks lists all checks.

The verdict is about what can still be changed: the catalog, the graph, the heads of channels and the upgrades to them.
Older bundles, and upgrades to them, count as published: findings on them do not fail the command, and the report has a line
for each code and package. --all shows and counts them. With --against, exactly what that catalog has counts as published.

Codes that begin with OLM are about what OLM v0 accepts and OLM v1 refuses. They are notes, and errors with --olm v1.

Registries are accessed only with --pull and --images, and with --template for bundles that the template names by image.

Suppress a finding with a comment in YAML, or in a file that --suppress names (see docs/suppress.md):

  replaces: tee.v0.9.0 # olmkit:suppress GRA007 until=2027-01-31 the first release had another name`,
		Example: `  olmkit catalog validate catalog --report junit=catalog.xml
  olmkit catalog validate catalog --against quay.io/team/my-catalog:latest
  olmkit catalog validate catalog --only CRD,GRA --fail-on warning`,
		Args: atLeastOne("REF"),
	}
	j := judged(s, c)
	j.suppresses(c)
	j.forOLM(c)
	c.Flags().StringArrayVarP(&options.Packages, "package", "p", nil, "validate only this package (repeatable)")
	c.Flags().StringSliceVar(&options.Only, "only", nil, "run only these checks, named by code (CRD001) or family (CRD)")
	c.Flags().StringSliceVar(&options.Skip, "skip", nil, "skip these checks, named by code or family")
	c.Flags().StringVar(&against, "against", "", "also compare with this published catalog; findings on what it already has do not fail")
	c.Flags().BoolVar(&all, "all", false, "show and count findings on published bundles and upgrades too")
	c.Flags().BoolVar(&pull, "pull", false, "pull the images of bundles whose manifests are not inline, and validate those too")
	c.Flags().BoolVar(&images, "images", false, imagesHelp)
	c.Flags().StringVar(&template, "template", "", "also compare the channels with those that the catalog's template `FILE` builds; see 'olmkit catalog build'")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := j.check(c.Context()); err != nil {
			return err
		}
		if err := s.readOptions(c.Context(), &options, template); err != nil {
			return err
		}
		j.partial = len(options.Packages) > 0
		drawn := j.wants("html") || j.wants("json")
		v, err := s.verdict(c.Context(), options, loading{against, pull, images, drawn}, args)
		if err != nil {
			return err
		}
		r := &report.Report{APIVersion: report.APIVersion, Kind: report.KindValidate, Findings: v.Findings, Checks: v.Checks, Files: v.Files, Graph: v.Graph, NotRead: v.NotRead}
		if !all {
			r.Split()
		}
		return j.finish(c.Context(), r)
	}
	return c
}

// readOptions refuses checks that there are not, and reads the template, if one is named.
func (s *session) readOptions(ctx context.Context, o *check.Options, template string) (err error) {
	for _, name := range slices.Concat(o.Only, o.Skip) {
		if !check.Known(name) {
			return hint.With(usagef("no check is called %s", name), "%ssee docs/checks for their codes", didYouMean("'%s'", strings.ToUpper(name), check.Names()))
		}
	}
	if len(o.Only) > 0 && o.None() {
		return hint.With(usagef("--only and --skip leave no check to run"), "leave one of them out")
	}
	if template != "" {
		o.Template, err = s.loader().Build(ctx, template)
	}
	return err
}

// verdict is the one that is kept for the same catalogs and options, or else a new one.
func (s *session) verdict(ctx context.Context, o check.Options, l loading, args []string) (*verdict, error) {
	var kept *verdicts
	if !l.pull && !l.images {
		kept = s.verdicts(ctx, programDigest(), o, l.drawn, l.against, args)
	}
	if v := kept.get(); v != nil {
		return v, nil
	}
	v, err := s.validate(ctx, o, l, args)
	if err != nil {
		return nil, err
	}
	kept.put(v)
	return v, nil
}

// loading is what a verdict on a catalog needs beside the options of the checks.
type loading struct {
	against             string // the published catalog
	pull, images, drawn bool
}

// validatingHeap is how many bytes of memory, beside the program, may be in use while catalogs are validated before garbage is collected:
// less than packages of some size take anyway.
const validatingHeap = 84 << 20

// renderingHeap is the same for catalogs that are rendered. Of directories one bundle or file for each processor is in memory at a time: more
// would be garbage.
const renderingHeap = 44 << 20

func areDirectories(refs []string) bool {
	return !slices.ContainsFunc(refs, func(ref string) bool {
		info, err := os.Stat(ref)
		return err != nil || !info.IsDir()
	})
}

// validate loads the catalogs that refs name, and has them judged.
func (s *session) validate(ctx context.Context, options check.Options, by loading, refs []string) (*verdict, error) {
	defer s.letHeapGrow(validatingHeap, 100)()
	loader := s.loader()
	loader.Digests = loader.Cache != nil
	load := loader.LoadSparse
	if by.pull {
		load = loader.Load // what is pulled is held, too
	}
	var err error
	if by.against != "" {
		if options.Previous, err = load(ctx, by.against); err == nil {
			err = options.Previous.Err()
		}
		if err != nil {
			return nil, err
		}
	}
	loaded, err := load(ctx, refs...)
	if err != nil {
		return nil, err
	}
	for _, name := range options.Packages {
		if _, err := findPackage(loaded, name); err != nil && len(loaded.Problems) == 0 {
			return nil, err
		}
	}
	if by.pull {
		if err := s.pull(ctx, bundlesIn(options.Packages, options.Previous, loaded)); err != nil {
			return nil, err
		}
	}
	if by.images {
		if options.Registry, err = s.registry(ctx, check.ImagesIn(loaded, options)); err != nil {
			return nil, err
		}
	}
	if !by.pull && !by.images {
		if kept := s.packageVerdicts(programDigest(), options, loaded); kept != nil {
			options.Kept = kept
			defer kept.trim()
		}
	}
	v := &verdict{Files: filesOf(loaded)}
	if v.Findings, v.Checks, err = checked(ctx, loaded, options); err != nil {
		return nil, err
	}
	v.NotRead = notRead(loaded, options.Packages, v.Checks, by)
	if err := errors.Join(loaded.Changed(), options.Previous.Changed()); err != nil {
		return nil, err
	}
	if by.drawn {
		packages := slices.DeleteFunc(slices.Clone(loaded.Packages), func(p *catalog.Package) bool {
			return len(options.Packages) > 0 && !slices.Contains(options.Packages, p.Name)
		})
		if v.Graph, err = document.Until(ctx, func() ([]graph.Drawing, error) { return drawingsOf(packages, "", olmV0, false), nil }); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// notRead is of how many bundles of packages, or of all, the manifests were not read, although one of the checks called codes does that.
func notRead(c *catalog.Catalog, packages, codes []string, by loading) int {
	if by.pull || !slices.ContainsFunc(codes, readsManifests) {
		return 0
	}
	return len(catalog.Bare(bundlesIn(packages, c)))
}

// readsManifests reports whether the check called code reads bundles' manifests, rather than the catalog alone.
func readsManifests(code string) bool {
	return !slices.Contains([]string{"FBC", "TPL", "CAT", "GRA", "DEP", "IMG"}, strings.TrimRight(code, "0123456789"))
}

func newCatalogGraph(s *session) *cobra.Command {
	var format, pkg, channel, olm string
	var every bool
	c := &cobra.Command{
		Use:   "graph REF...",
		Short: "Draw the upgrade graph: what the channels declare, and what OLM will do",
		Long: `Draw the upgrade graph: what the channels declare, and what OLM will do.

As text, each entry of a channel is a line, the newest first; a star marks the head. The line names the entry to which OLM
upgrades, and the edge: "→ 1.2.0  replaces". Edges that the channel declares and OLM does not take follow: "not 1.1.0 (skips)".

With --olm v0,v1 a second line says where OLM v1 differs, with upgradeConstraintPolicy CatalogProvided. A ClusterExtension that
pins a version also goes to one that OLM v0 passes over: "if pinned 1.1.0 (skips)".`,
		Example: `  olmkit catalog graph catalog --channel stable
  olmkit catalog graph catalog --olm v0,v1
  olmkit catalog graph quay.io/team/my-catalog:latest -o html > graph.html`,
		Args: atLeastOne("REF"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := errors.Join(outputOneOf(format, drawingFormats), checkOLMs(olm)); err != nil {
				return err
			}
			loaded, err := s.loadCatalog(c.Context(), args...)
			if err != nil {
				return err
			}
			packages := loaded.Packages
			if pkg != "" {
				p, err := findPackage(loaded, pkg)
				if err != nil {
					return err
				}
				packages = []*catalog.Package{p}
			}
			return until(c.Context(), func() error {
				drawings := drawingsOf(packages, channel, olm, every)
				if len(drawings) == 0 && channel != "" {
					return hint.With(usagef("no channel is called %s", channel), "list the channels with 'olmkit catalog graph %s'", strings.Join(args, " "))
				}
				if len(drawings) == 0 {
					s.progress().Say("%s holds no channel", strings.Join(args, " "))
				}
				if format == "html" {
					return report.HTML(s.Out, &report.Report{Kind: report.KindGraph, Graph: drawings})
				}
				return graph.Draw(s.Out, format, drawings)
			})
		},
	}
	c.Flags().StringVarP(&format, "output", "o", "text", "format: "+strings.Join(drawingFormats, ", "))
	c.Flags().StringVarP(&pkg, "package", "p", "", "draw only this package")
	c.Flags().StringVar(&channel, "channel", "", "draw only channels of this name")
	c.Flags().BoolVar(&every, "all", false, "also draw the edges that a skipRange allows and OLM does not take")
	c.Flags().StringVar(&olm, "olm", olmV0, "version of OLM whose upgrades are drawn: v0, v1, or v0,v1 for both in one graph")
	return c
}

// drawingFormats are the formats that a graph is drawn in; html is a page of its own, see report.HTML.
var drawingFormats = append(slices.Clone(graph.Formats), "html")

// drawingsOf draws the channels called channel, or all when it is "", of packages, as olm takes them.
func drawingsOf(packages []*catalog.Package, channel, olm string, every bool) []graph.Drawing {
	draw := map[string]func(*catalog.Package, *catalog.Channel, bool) graph.Drawing{
		olmV0: graph.NewDrawing, olmV1: graph.NewV1Drawing, olmBoth: graph.NewDrawingOfBoth,
	}[olm]
	drawings := []graph.Drawing{}
	for _, p := range packages {
		for _, c := range p.Channels {
			if channel == "" || channel == c.Name {
				drawings = append(drawings, draw(p, c, every))
			}
		}
	}
	return drawings
}

// checked returns what check.Catalog does, unless ctx ends before.
func checked(ctx context.Context, c *catalog.Catalog, options check.Options) (findings []finding.Finding, codes []string, err error) {
	type result struct {
		findings []finding.Finding
		codes    []string
	}
	r, err := document.Until(ctx, func() (r result, _ error) {
		r.findings, r.codes = check.Catalog(c, options)
		return r, nil
	})
	return r.findings, r.codes, err
}

// loader reads catalogs as the command line says.
func (s *session) loader() catalog.Loader {
	return catalog.Loader{Stdin: s.In, Images: s.images, Cache: cache.Open("rendered"), MaxFile: document.Limit(s.maxFile)}
}

// loadCatalog loads refs for a command that needs all of them to be readable.
func (s *session) loadCatalog(ctx context.Context, refs ...string) (*catalog.Catalog, error) {
	loaded, err := s.loader().Load(ctx, refs...)
	if err != nil {
		return nil, err
	}
	return loaded, loaded.Err()
}

// bundlesIn are the bundles of the packages called names, or of all when there are no names, in those of catalogs that are
// not nil.
func bundlesIn(names []string, catalogs ...*catalog.Catalog) []*catalog.Bundle {
	var bundles []*catalog.Bundle
	for _, c := range catalogs {
		if c == nil {
			continue
		}
		for _, p := range c.Packages {
			if len(names) == 0 || slices.Contains(names, p.Name) {
				bundles = append(bundles, p.Bundles...)
			}
		}
	}
	return bundles
}

// pull gets the manifests of those of bundles whose images alone have them.
func (s *session) pull(ctx context.Context, bundles []*catalog.Bundle) error {
	bare := catalog.Bare(bundles)
	if len(bare) == 0 {
		return nil
	}
	return s.progress().Start("pull %d bundles, whose manifests the catalog does not hold", len(bare)).End(s.loader().Pull(ctx, bare))
}

const imagesHelp = "ask the registries for every image that bundles name, for the platforms that the operator supports"

// asks is how many images registries are asked about at a time.
const asks = 8

// registry asks about images. The error is of the first, in their order, that a registry gave no answer about.
func (s *session) registry(ctx context.Context, images []string) (check.Registry, error) {
	step := s.progress().Start("ask for %d images", len(images))
	platforms, errs := make([][]string, len(images)), make([]error, len(images))
	var group errgroup.Group
	group.SetLimit(asks)
	for i, reference := range images {
		group.Go(func() error {
			if errs[i] = ctx.Err(); errs[i] == nil {
				platforms[i], errs[i] = s.images.Platforms(ctx, reference)
			}
			return nil
		})
	}
	_ = group.Wait() // errs holds them
	known := check.Registry{}
	for i, reference := range images {
		if errs[i] != nil {
			return nil, step.End(errs[i])
		}
		known[reference] = platforms[i]
	}
	return known, step.End(nil)
}

func addMigration(c *cobra.Command, level *string) {
	c.Flags().StringVar(level, "migrate-level", catalog.Migrations[0], "migrate the output up to `LEVEL`, as opm does: "+
		strings.Join(catalog.Migrations, ", ")+"; OpenShift 4.17 and later ask for "+catalog.MigrationCSVMetadata)
}

func checkMigration(level string) error {
	if !slices.Contains(catalog.Migrations, level) {
		return usagef("--migrate-level %s: must be one of %s", level, strings.Join(catalog.Migrations, ", "))
	}
	return nil
}

// writeCatalog writes the whole catalog, migrated up to level, in order to the file into, or to standard output when that is "".
func (s *session) writeCatalog(ctx context.Context, into, format, level string, c *catalog.Catalog) error {
	if level != catalog.Migrations[0] {
		if err := until(ctx, c.Migrate); err != nil {
			return err
		}
	}
	return s.write(ctx, into, func(w io.Writer) error { return catalog.Write(w, format, c.Sorted()) })
}

// write has f write a catalog to the file into, or to standard output when that is "".
func (s *session) write(ctx context.Context, into string, f func(io.Writer) error) error {
	if into == "" {
		return f(s.outOfTexts(ctx))
	}
	if err := output.File(ctx, into, f); err != nil {
		return fmt.Errorf("write catalog: %w", err)
	}
	return nil
}

// findPackage returns the package called name. With an empty name it returns the only one.
func findPackage(c *catalog.Catalog, name string) (*catalog.Package, error) {
	known := make([]string, len(c.Packages))
	for i, p := range c.Packages {
		known[i] = p.Name
	}
	list := strings.Join(known, ", ")
	if name == "" && len(c.Packages) == 1 {
		return c.Packages[0], nil
	}
	if len(known) == 0 {
		return nil, hint.With(usagef("the catalog holds no package"), "name a catalog with documents of schema %s", catalog.SchemaPackage)
	}
	if name == "" {
		return nil, hint.With(usagef("the catalog holds %d packages", len(known)), "choose one with --package: %s", list)
	}
	if p := c.Find(name); p != nil {
		return p, nil
	}
	return nil, hint.With(usagef("the catalog holds no package %s", name), "choose one of %s", list)
}

func outputOneOf(value string, known []string) error {
	if slices.Contains(known, value) {
		return nil
	}
	return usagef("--output %s: must be one of %s", value, strings.Join(known, ", "))
}

// exactlyOne and atLeastOne refuse a wrong number of arguments as wrong usage.
func exactlyOne(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		return hint.With(usagef("%s takes one %s, not %d", c.CommandPath(), what, len(args)), "see '%s --help'", c.CommandPath())
	}
}

func atLeastOne(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return nil
		}
		return hint.With(usagef("%s takes at least one %s", c.CommandPath(), what), "see '%s --help'", c.CommandPath())
	}
}
