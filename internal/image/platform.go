package image

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// Platforms returns for which platforms the registry has the image that reference names, as linux/amd64, in order; none
// where it says that there is no such image.
func (c Client) Platforms(ctx context.Context, reference string) ([]string, error) {
	what, err := c.Fetch(ctx, reference)
	if refused := (*transport.Error)(nil); errors.As(err, &refused) && refused.StatusCode == http.StatusNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var platforms []string
	switch what := what.(type) {
	case v1.ImageIndex:
		manifest, err := what.IndexManifest()
		if err != nil {
			return nil, fmt.Errorf("image %s: read its index: %w", reference, err)
		}
		for _, d := range manifest.Manifests {
			if d.MediaType.IsImage() && d.Platform != nil && d.Platform.OS != "unknown" { // which attestations have
				platforms = append(platforms, d.Platform.OS+"/"+d.Platform.Architecture)
			}
		}
	case v1.Image:
		config, err := what.ConfigFile()
		if err != nil {
			return nil, fmt.Errorf("image %s: read its configuration: %w", reference, err)
		}
		platforms = append(platforms, config.OS+"/"+config.Architecture)
	}
	if len(platforms) == 0 {
		return nil, fmt.Errorf("image %s: its index names no platform", reference)
	}
	slices.Sort(platforms)
	return slices.Compact(platforms), nil
}
