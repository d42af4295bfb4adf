package cli

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olmkit/olmkit/internal/catalog"
)

// completed are the flags whose values a shell completes from the catalog that the command line, or olmkit.yaml, names.
var completed = []struct {
	flag     string
	commands []string
	values   func(*cobra.Command, *catalog.Catalog) []string
}{
	{"package", []string{"upgrade plan", "upgrade test", "catalog graph", "catalog validate", "subscription generate"}, offeredPackages},
	{"channel", []string{"upgrade plan", "upgrade test", "catalog graph", "subscription generate"}, offeredChannels},
	{"from", []string{"upgrade plan", "upgrade test"}, offeredVersions},
	{"to", []string{"upgrade plan", "upgrade test"}, offeredVersions},
	{"starting-csv", []string{"subscription generate"}, offeredBundles},
}

// completable lets shells complete the flags of the commands below root.
func (s *session) completable(root *cobra.Command) {
	for _, f := range completed {
		for _, name := range f.commands {
			c, _, err := root.Find(strings.Fields(name))
			if err != nil {
				continue // a test holds the table to the commands
			}
			_ = c.RegisterFlagCompletionFunc(f.flag, func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
				values := slices.DeleteFunc(s.offered(c, args, f.values), func(v string) bool { return !strings.HasPrefix(v, begun) })
				return values, cobra.ShellCompDirectiveNoFileComp
			})
		}
	}
}

// offered are the values that the catalog of c's command line offers; none where that is not on this machine, or cannot be read.
func (s *session) offered(c *cobra.Command, args []string, values func(*cobra.Command, *catalog.Catalog) []string) []string {
	s.quiet = true
	if s.configure(c, args) != nil {
		return nil
	}
	refs := s.arguments(c, args)
	if f := c.Flag("catalog"); f != nil && f.Value.String() != "" {
		refs = []string{f.Value.String()}
	}
	for _, ref := range refs {
		if info, err := os.Stat(ref); err != nil || !info.IsDir() && !info.Mode().IsRegular() {
			return nil
		}
	}
	if len(refs) == 0 {
		return nil
	}
	loaded, err := s.loader().Load(c.Context(), refs...)
	if err != nil {
		return nil
	}
	return values(c, loaded)
}

func offeredPackages(_ *cobra.Command, loaded *catalog.Catalog) []string {
	var names []string
	for _, p := range loaded.Packages {
		names = append(names, p.Name)
	}
	return names
}

// chosen are the packages that the command line chooses.
func chosen(c *cobra.Command, loaded *catalog.Catalog) []*catalog.Package {
	f := c.Flag("package")
	if f == nil || f.Value.String() == "" {
		return loaded.Packages
	}
	return slices.DeleteFunc(slices.Clone(loaded.Packages), func(p *catalog.Package) bool { return p.Name != f.Value.String() })
}

func offeredChannels(c *cobra.Command, loaded *catalog.Catalog) []string {
	var names []string
	for _, p := range chosen(c, loaded) {
		for _, channel := range p.Channels {
			names = append(names, channel.Name+"\tof "+p.Name)
		}
	}
	return names
}

// bundlesChosen are the bundles of the packages and the channel that the command line chooses, the newest first.
func bundlesChosen(c *cobra.Command, loaded *catalog.Catalog) []*catalog.Bundle {
	var bundles []*catalog.Bundle
	for _, p := range chosen(c, loaded) {
		channel := p.Channel(c.Flag("channel").Value.String())
		for _, b := range slices.Backward(p.Bundles) {
			if channel == nil || channel.Entry(b.Name) != nil {
				bundles = append(bundles, b)
			}
		}
	}
	return bundles
}

func offeredVersions(c *cobra.Command, loaded *catalog.Catalog) []string {
	var all []string
	for _, b := range bundlesChosen(c, loaded) {
		all = append(all, b.Version.String()+"\t"+b.Name)
	}
	return all
}

func offeredBundles(c *cobra.Command, loaded *catalog.Catalog) []string {
	var all []string
	for _, b := range bundlesChosen(c, loaded) {
		all = append(all, b.Name)
	}
	return all
}
