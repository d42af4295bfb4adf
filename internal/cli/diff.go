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
		Short: "Print the differences of two catalogs",
		Long: `Print the differences of two catalogs, one a line: packages, channels, entries and edges, bundles and their content,
deprecations. Order and layout of the files make no difference. OLD and NEW are whatever 'olmkit catalog render' reads.

'olmkit catalog validate NEW --against OLD' validates the differences.`,
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
			return until(c.Context(), func() error {
				changes := catalog.Diff(before, after)
				if format == "text" {
					return catalog.WriteDiff(s.Out, changes)
				}
				encoder := json.NewEncoder(s.Out)
				encoder.SetIndent("", "  ")
				encoder.SetEscapeHTML(false)
				return encoder.Encode(map[string]any{"apiVersion": "olmkit/v1", "kind": "CatalogDiff", "changes": changes})
			})
		},
	}
	c.Flags().StringVarP(&format, "output", "o", "text", "format: text, json")
	return c
}
