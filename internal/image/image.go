// Package image asks registries about container images.
package image

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/olmkit/olmkit/internal/advice"
)

// Pinned returns reference by its digest: what its tag means to the registry now, the index of all platforms if there is
// one. A reference that has a digest is returned as it is. Credentials are Docker's; a registry on localhost is asked
// without TLS.
func Pinned(ctx context.Context, reference string) (string, error) {
	if strings.Contains(reference, "@") {
		return reference, nil
	}
	tag, err := name.NewTag(reference)
	if err != nil {
		return "", advice.With(fmt.Errorf("image %s: %w", reference, err), "write it as registry/repository:tag")
	}
	found, err := remote.Head(tag, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		err = fmt.Errorf("image %s: ask for its digest: %w", reference, err)
		var refused *transport.Error
		if errors.As(err, &refused) {
			switch refused.StatusCode {
			case http.StatusNotFound:
				return "", advice.With(err, "push the image first")
			case http.StatusUnauthorized, http.StatusForbidden:
				return "", advice.With(err, "log in with 'docker login %s'", tag.RegistryStr())
			}
		}
		return "", advice.With(err, "see whether the registry %s can be reached", tag.RegistryStr())
	}
	repository := reference
	if i := strings.LastIndexByte(reference, ':'); i > strings.LastIndexByte(reference, '/') {
		repository = reference[:i]
	}
	return repository + "@" + found.Digest.String(), nil
}
