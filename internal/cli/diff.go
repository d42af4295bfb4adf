package cli

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/olmkit/olmkit/internal/catalog"
)

func newCatalogDiff(s *session) *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Print what changed between two catalogs: packages, channels, edges, bundles",
		Long: `Print what changed between two catalogs, a line each: packages, channels, their entries and the edges to them, bundles and
what is in them, deprecations. Order and layout of the files make no difference. A REF is whatever 'olmkit catalog render'
reads.

Whether the changes do harm is what 'olmkit catalog validate NEW --against OLD' says.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usagef("%s takes two catalogs, not %d", c.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := outputOneOf(format, []string{"text", "json"}); err != nil {
				return err
			}
			before, err := s.loadCatalog(c.Context(), args[0])
			if err != nil {
				return err
			}
			after, err := s.loadCatalog(c.Context(), args[1])
			if err != nil {
				return err
			}
			changes := catalog.Diff(before, after)
			if format == "text" {
				return catalog.WriteDiff(s.Out, changes)
			}
			encoder := json.NewEncoder(s.Out)
			encoder.SetIndent("", "  ")
			encoder.SetEscapeHTML(false)
			return encoder.Encode(map[string]any{"apiVersion": "olmkit/v1", "kind": "CatalogDiff", "changes": changes})
		},
	}
	c.Flags().StringVarP(&format, "output", "o", "text", "format: text, json")
	return c
}
