package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/check"
	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/image"
)

// pushHelp is what both commands that push say of it.
const pushHelp = `No container engine is needed. The same files make the same image, whatever the machine. Only what the registry does not
have is sent, and the tag is set last: a push that fails changes no tag, and a repeated push continues where the last one ended. Credentials are those of 'docker login' or 'podman login'; credential helpers work too.

With --output or --oci-layout the image is written there instead, with the name REF if given. The command prints the
image's reference by digest, or the digest alone when nothing was pushed.`

// pushFlags say where an image goes.
type pushFlags struct {
	archive, layout string
}

func (f *pushFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.archive, "output", "", "write a tar archive of an OCI layout to this file instead of pushing")
	c.Flags().StringVar(&f.layout, "oci-layout", "", "write an OCI layout to this directory instead of pushing")
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) < 1 || len(args) > 2 {
			return usagef("%s takes a directory and a reference, not %d arguments", c.CommandPath(), len(args))
		}
		return f.whereTo(c, args[1:])
	}
}

// whereTo reports whether it is said where the image goes: by a reference, or by the flags.
func (f *pushFlags) whereTo(c *cobra.Command, reference []string) error {
	if len(reference) == 0 && f.archive == "" && f.layout == "" {
		return usagef("%s: it is not said where to", c.CommandPath())
	}
	return nil
}

// ask asks the registry whether the image can go there, before it is made.
func (f *pushFlags) ask(ctx context.Context, s *session, references []string) error {
	if len(references) == 0 || f.archive != "" || f.layout != "" {
		return nil
	}
	return s.images.CheckPush(ctx, references[0])
}

// send takes the image to where the flags and the reference, if there is one, say.
func (f *pushFlags) send(ctx context.Context, s *session, references []string, what image.Artifact) error {
	reference := ""
	if len(references) > 0 {
		reference = references[0]
	}
	p := s.progress()
	if f.archive == "" && f.layout == "" {
		step := p.Start("push %s", reference)
		pinned, err := s.images.Push(ctx, reference, what)
		if step.End(err) != nil {
			return err
		}
		_, err = fmt.Fprintln(s.Out, pinned)
		return err
	}
	if f.archive != "" {
		if err := p.Start("write %s", f.archive).End(s.images.Archive(ctx, f.archive, reference, what)); err != nil {
			return err
		}
	}
	if f.layout != "" {
		if err := p.Start("write %s", f.layout).End(s.images.Layout(ctx, f.layout, reference, what)); err != nil {
			return err
		}
	}
	digest, err := what.Digest()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.Out, digest)
	return err
}

func newBundlePush(s *session) *cobra.Command {
	f := &pushFlags{}
	c := &cobra.Command{
		Use:   "push DIR [REF]",
		Short: "Push a bundle directory to a registry as the image that OLM installs from",
		Long: `Push a bundle directory to a registry as the image that OLM installs from.

` + pushHelp,
		Example: `  olmkit bundle push bundle/1.2.0 quay.io/team/my-operator-bundle:v1.2.0
  olmkit bundle push bundle/1.2.0 --output my-operator-bundle.tar`,
	}
	f.add(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if _, err := document.Until(c.Context(), func() (*bundle.Bundle, error) { return image.CheckBundle(args[0]) }); err != nil {
			return err
		}
		if err := f.ask(c.Context(), s, args[1:]); err != nil {
			return err
		}
		what, err := document.Until(c.Context(), func() (image.Artifact, error) { return image.Bundle(args[0]) })
		if err != nil {
			return err
		}
		return f.send(c.Context(), s, args[1:], what)
	}
	return c
}

func newCatalogPush(s *session) *cobra.Command {
	f := &pushFlags{}
	var base string
	c := &cobra.Command{
		Use:   "push DIR [REF]",
		Short: "Push a file-based catalog to a registry as the image that a CatalogSource names",
		Long: `Push a file-based catalog to a registry as the image that a CatalogSource names.

The image holds the catalog alone, at /configs, for a CatalogSource with extractContent, as 'olmkit subscription generate'
writes it. With --base the catalog is put on an image that has opm as its entry point, and then serves itself; if that image
is one for several platforms, so is the catalog's.

` + pushHelp,
		Example: `  olmkit catalog push catalog quay.io/team/my-catalog:latest
  olmkit catalog push catalog quay.io/team/my-catalog:latest --base quay.io/operator-framework/opm:v1.74.0`,
	}
	f.add(c)
	c.Flags().StringVar(&base, "base", "", "image with opm to put the catalog on (default: none, the image holds the catalog alone)")
	c.RunE = func(c *cobra.Command, args []string) error {
		loaded, err := s.loadCatalog(c.Context(), args[0])
		if err != nil {
			return err
		}
		if info, err := os.Stat(args[0]); err != nil || !info.IsDir() || bundle.Is(args[0]) || len(loaded.Packages) == 0 {
			return hint.With(usagef("%s is no directory of a file-based catalog", args[0]), "write the catalog to a directory of its own, with 'olmkit catalog build TEMPLATE --output-file DIR/catalog.yaml'")
		}
		if err := servable(c.Context(), loaded, args[0]); err != nil {
			return err
		}
		root, err := os.OpenRoot(args[0])
		if err != nil {
			return fmt.Errorf("read catalog: %w", err)
		}
		defer root.Close()
		files, err := catalog.Files(root.FS())
		if err != nil {
			return fmt.Errorf("read catalog %s: %w", args[0], err)
		}
		if err := f.ask(c.Context(), s, args[1:]); err != nil {
			return err
		}
		var on image.Artifact
		if base != "" {
			if on, err = s.images.Fetch(c.Context(), base); err != nil {
				return err
			}
		}
		what, err := document.Until(c.Context(), func() (image.Artifact, error) { return image.Catalog(root.FS(), files, on) })
		if err != nil {
			return err
		}
		return f.send(c.Context(), s, args[1:], what)
	}
	return c
}

// servable refuses a catalog, at ref, that opm would not serve: its pod would crash again and again.
func servable(ctx context.Context, c *catalog.Catalog, ref string) error {
	findings, _, err := checked(ctx, c, check.Options{Only: check.RefusedByOpm})
	if err != nil {
		return err
	}
	for _, f := range findings {
		if f.Severity == finding.Error {
			return hint.With(fmt.Errorf("opm does not serve this catalog: %s: %s", cmp.Or(f.Location.String(), f.Subject.Package), f.Message), "see 'olmkit catalog validate %s'", ref)
		}
	}
	return nil
}

// readBundle reads the bundle that ref is: a directory or an image.
func (s *session) readBundle(ctx context.Context, ref string) (_ *bundle.Bundle, err error) {
	if !image.Is(ref) {
		return document.Until(ctx, func() (*bundle.Bundle, error) { return bundle.Read(ref) })
	}
	content, err := s.images.Unpack(ctx, ref)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closed := content.Close(); err == nil && closed != nil {
			err = fmt.Errorf("clean up after reading %s: %w", ref, closed)
		}
	}()
	if !content.Bundle {
		return nil, hint.With(fmt.Errorf("%s is a catalog, not a bundle", ref), "judge it with 'olmkit catalog validate'")
	}
	b, err := document.Until(ctx, func() (*bundle.Bundle, error) { return bundle.ReadFS(content.FS, content.Name) })
	if err != nil {
		return nil, err
	}
	b.Labels = content.Labels
	return b, nil
}
