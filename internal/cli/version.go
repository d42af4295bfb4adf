package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olmkit/olmkit/internal/cluster/embedded"
)

// versionReport says what this program was built from, and what its embedded clusters are.
type versionReport struct {
	Version    string `json:"version"`
	Commit     string `json:"commit,omitempty"`     // none where Go knew of no repository
	Modified   bool   `json:"modified,omitempty"`   // the tree differed from the commit
	CommitTime string `json:"commitTime,omitempty"` // RFC 3339
	Go         string `json:"go"`
	Platform   string `json:"platform"`
	Components string `json:"components"` // digest of the module that they are built from
	Kubernetes string `json:"kubernetes"`
	OLM        string `json:"olm"`
	Kind       string `json:"kind"` // of the program that makes kind clusters

	Releases    []string `json:"kubernetesReleases"` // that --kubernetes can choose
	OLMReleases []string `json:"olmReleases"`        // that --olm-version can choose
	Artifact    string   `json:"artifact,omitempty"` // what the components are pulled from; none for a program built from source
}

func newVersion(s *session) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "version",
		Short: "Print olmkit's version, and the versions in its embedded clusters",
		Long: `Print olmkit's version and commit, and what embedded clusters run: the digest of the components' module, which names their
folder in the cache, the versions of Kubernetes and OLM, and the other releases that --kubernetes and --olm-version can choose. The
version of kind makes the clusters of --cluster kind.`,
		Example: `  olmkit version
  olmkit version -o json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := textOrJSON(output); err != nil {
				return err
			}
			info, _ := debug.ReadBuildInfo()
			r := versionOf(info)
			if output == "json" {
				encoder := json.NewEncoder(s.Out)
				encoder.SetIndent("", "  ")
				return encoder.Encode(r)
			}
			_, err := fmt.Fprint(s.Out, r.text())
			return err
		},
	}
	outputFlag(c, &output)
	return c
}

// versioned has root print the first line of 'olmkit version' with --version. Cobra does that by a template, for which the linker would keep all
// methods of the program.
func (s *session) versioned(root *cobra.Command) {
	wanted := root.Flags().Bool("version", false, "print olmkit's version; 'olmkit version' prints more")
	otherwise := root.RunE
	root.RunE = func(c *cobra.Command, args []string) error {
		if !*wanted || len(args) > 0 {
			return otherwise(c, args)
		}
		info, _ := debug.ReadBuildInfo()
		_, err := fmt.Fprintln(s.Out, versionOf(info).line())
		return err
	}
}

// versionOf reports on a program with this build information, which can be nil.
func versionOf(info *debug.BuildInfo) versionReport {
	r := versionReport{
		Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Components: embedded.ComponentsDigest(runtime.GOARCH), Kubernetes: embedded.KubernetesVersion, OLM: embedded.OLMVersion, Kind: embedded.KindVersion,
		Releases: embedded.KubernetesReleases(), OLMReleases: embedded.OLMReleases(),
		Artifact: embedded.Artifact(),
	}
	if info == nil {
		return r
	}
	r.Version = cmp.Or(info.Main.Version, r.Version)
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			r.Commit = s.Value
		case "vcs.time":
			r.CommitTime = s.Value
		case "vcs.modified":
			r.Modified = s.Value == "true"
		}
	}
	return r
}

// line names the program.
func (r versionReport) line() string {
	return fmt.Sprintf("olmkit %s %s %s", r.Version, r.Go, r.Platform)
}

func (r versionReport) text() string {
	commit := cmp.Or(r.Commit, "unknown")
	if r.CommitTime != "" {
		commit += " of " + r.CommitTime
	}
	if r.Modified {
		commit += ", modified"
	}
	others := func(releases []string, own string) string {
		return strings.Join(slices.DeleteFunc(slices.Clone(releases), func(release string) bool { return release == own }), " ")
	}
	var text strings.Builder
	fmt.Fprintln(&text, r.line())
	for _, line := range [][2]string{
		{"commit", commit}, {"components", r.Components},
		{"Kubernetes", r.Kubernetes}, {"others", others(r.Releases, r.Kubernetes)},
		{"OLM", r.OLM}, {"others", others(r.OLMReleases, r.OLM)}, {"kind", r.Kind},
	} {
		fmt.Fprintf(&text, "%-12s%s\n", line[0]+":", line[1])
	}
	if r.Artifact != "" {
		fmt.Fprintf(&text, "%-12s%s\n", "pulled from:", r.Artifact)
	}
	return text.String()
}

// version is that of the module that this program was built of.
func version() string {
	info, _ := debug.ReadBuildInfo()
	return versionOf(info).Version
}
