package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/check"
	"github.com/olmkit/olmkit/internal/diff"
	"github.com/olmkit/olmkit/internal/document"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/image"
	"github.com/olmkit/olmkit/internal/safetext"
)

// differences are what can be written in each of diffFormats.
type differences interface {
	WriteText(w io.Writer) error
	WriteMarkdown(w io.Writer) error
	WriteJSON(w io.Writer) error
}

var diffFormats = []string{"text", "markdown", "json"}

// addDiff gives c what both diffs have: two arguments, and a format for what compare returns of them.
func addDiff(s *session, c *cobra.Command, noun string, compare func(ctx context.Context, old, new string) (differences, error)) {
	var format string
	c.Flags().StringVarP(&format, "output", "o", diffFormats[0], "format: text, markdown (for release notes), json")
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) != 2 {
			return usagef("%s takes two %s, not %d", c.CommandPath(), noun, len(args))
		}
		return nil
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := outputOneOf(format, diffFormats); err != nil {
			return err
		}
		found, err := compare(c.Context(), args[0], args[1])
		if err != nil {
			return err
		}
		write := map[string]func(io.Writer) error{"text": found.WriteText, "markdown": found.WriteMarkdown, "json": found.WriteJSON}[format]
		var made bytes.Buffer
		if err := until(c.Context(), func() error { return write(&made) }); err != nil {
			return err
		}
		if made.Len() == 0 {
			s.progress().Say("%s and %s do not differ", args[0], args[1])
		}
		return until(c.Context(), func() error {
			_, err := made.WriteTo(s.Out)
			return err
		})
	}
}

func newCatalogDiff(s *session) *cobra.Command {
	var pull bool
	c := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Print what changes between two catalogs",
		Long: `Print what changes between two catalogs: packages, channels, entries and edges, bundles, deprecations; and for each channel
with a new head, what its users get, as 'olmkit bundle diff' prints it. Order and layout of the files make no difference.
OLD and NEW are whatever 'olmkit catalog render' reads. --pull gets manifests that are not in the catalogs from the bundles'
images.

'olmkit catalog validate NEW --against OLD' validates the differences.`,
		Example: "  olmkit catalog diff quay.io/team/my-catalog:latest catalog",
	}
	c.Flags().BoolVar(&pull, "pull", false, "pull the images of the bundles to compare whose manifests are not inline")
	addDiff(s, c, "catalogs", func(ctx context.Context, old, new string) (differences, error) {
		before, err := s.loadCatalog(ctx, old)
		if err != nil {
			return nil, err
		}
		after, err := s.loadCatalog(ctx, new)
		if err != nil {
			return nil, err
		}
		if pull {
			if err := s.pull(ctx, check.Compared(before, after)); err != nil {
				return nil, err
			}
		}
		found, err := document.Until(ctx, func() (diff.Catalogs, error) { return check.CompareCatalogs(before, after), nil })
		for _, unread := range found.Unread {
			fmt.Fprintln(s.Err, safetext.Line("not compared: "+unread))
		}
		if len(found.Unread) > 0 && !pull {
			fmt.Fprintln(s.Err, "  fix: --pull gets manifests from the bundles' images")
		}
		return found, err
	})
	return c
}

func newBundleDiff(s *session) *cobra.Command {
	var from string
	c := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Print what changes for users from one bundle to another",
		Long: `Print what changes for users from one bundle to another: required Kubernetes version, install modes and dependencies; CRDs, their
versions, fields, restrictions and defaults; permissions gained and lost; webhooks, Deployments, images, other objects. A !
marks what worked before and can fail after the upgrade. JSON has every change; text and markdown print equal changes of
fields with the same name once.

OLD and NEW are bundle directories, bundles' images on a registry, in an archive or an OCI layout, or, with --catalog, names
or versions of bundles in that catalog.`,
		Example: `  olmkit bundle diff bundle/1.1.0 bundle/1.2.0
  olmkit bundle diff --catalog quay.io/team/my-catalog:latest 1.1.0 bundle/1.2.0 -o markdown >> release-notes.md`,
	}
	c.Flags().StringVar(&from, "catalog", "", "catalog whose bundles OLD and NEW can name")
	addDiff(s, c, "bundles", func(ctx context.Context, old, new string) (differences, error) {
		var known *catalog.Catalog
		if from != "" {
			var err error
			if known, err = s.loadCatalog(ctx, from); err != nil {
				return nil, err
			}
		}
		before, err := s.bundleNamed(ctx, old, known)
		if err != nil {
			return nil, err
		}
		after, err := s.bundleNamed(ctx, new, known)
		if err != nil {
			return nil, err
		}
		if err := s.pull(ctx, []*catalog.Bundle{before, after}); err != nil {
			return nil, err
		}
		return document.Until(ctx, func() (diff.Release, error) { return check.CompareBundles(before, after, known) })
	})
	return c
}

// bundleNamed returns the bundle that ref is: one of the catalog c by name or version, where there is a catalog, or else the
// one that a directory or an image holds.
func (s *session) bundleNamed(ctx context.Context, ref string, c *catalog.Catalog) (*catalog.Bundle, error) {
	var found []*catalog.Bundle
	if c != nil {
		for _, b := range bundlesIn(nil, c) {
			if b.Name == ref || b.Version.String() == ref {
				found = append(found, b)
			}
		}
	}
	if _, err := os.Stat(ref); len(found) == 0 && c != nil && err != nil && !image.Is(ref) {
		return nil, hint.With(usagef("%s is no bundle of the catalog, by its name or version, no directory and no image", ref), "'olmkit catalog graph' lists the catalog's bundles")
	}
	if len(found) == 0 {
		loaded, err := s.loadCatalog(ctx, ref)
		if err != nil {
			return nil, err
		}
		found = bundlesIn(nil, loaded)
	}
	if len(found) != 1 {
		return nil, hint.With(usagef("%s stands for %d bundles", ref, len(found)), "name one bundle; --catalog lets you name one of a catalog by its name")
	}
	return found[0], nil
}
