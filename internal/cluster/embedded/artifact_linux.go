package embedded

import (
	"context"
	"fmt"

	"github.com/olmkit/olmkit/internal/cache"
	"github.com/olmkit/olmkit/internal/image"
	"github.com/olmkit/olmkit/internal/progress"
)

// ArtifactOptions are those of MakeArtifact.
type ArtifactOptions struct {
	Architectures []string // as Go calls them
	Parts         Parts    // what it holds
	Progress      *progress.Printer
}

// MakeArtifact builds what the cache does not have of the components, for each architecture, and returns the index that olmkit
// pulls them from. The same version of Go gives the same bytes on every machine.
func MakeArtifact(ctx context.Context, o ArtifactOptions) (image.Artifact, error) {
	dir, err := cache.Folder()
	if err != nil {
		return nil, err
	}
	goVersion, err := goCommand(ctx, "", "env", "GOVERSION")
	if err != nil {
		return nil, err
	}
	var folders []image.Folder
	for _, s := range o.Parts.sets() {
		for _, arch := range o.Architectures {
			built, err := s.ensureBuiltBy(ctx, dir, string(goVersion), arch, o.Progress)
			if err != nil {
				return nil, fmt.Errorf("build %s for %s: %w", s.says, arch, err)
			}
			folders = append(folders, image.Folder{Dir: built, Architecture: arch, Key: s.key(arch),
				Annotations: map[string]string{"org.opencontainers.image.title": s.says, "io.olmkit.go": string(goVersion)}})
		}
	}
	step := o.Progress.Start("packing the components")
	index, err := image.Folders(folders)
	return index, step.End(err)
}
