// Package image makes container images of bundles and catalogs, and takes them to registries, archives and OCI layouts and
// back, all without a container engine.
package image

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/olmkit/olmkit/internal/hint"
)

// Artifact is a v1.Image, or a v1.ImageIndex with an image for each platform.
type Artifact interface {
	MediaType() (types.MediaType, error)
	Digest() (v1.Hash, error)
	Size() (int64, error)
	RawManifest() ([]byte, error)
}

// Pinned returns reference by its digest: what its tag means to the registry now, the index of all platforms if there is
// one. A reference that has a digest is returned as it is.
func (c Client) Pinned(ctx context.Context, reference string) (string, error) {
	if strings.Contains(reference, "@") {
		return reference, nil
	}
	ref, err := c.parse(reference)
	if err != nil {
		return "", err
	}
	options, err := c.options(ctx)
	if err != nil {
		return "", err
	}
	found, err := remote.Head(ref, options...)
	if err != nil {
		return "", explain(err, "ask for its digest", ref)
	}
	return withDigest(reference, found.Digest), nil
}

// withDigest returns reference, as it was written, with a digest in place of its tag.
func withDigest(reference string, digest v1.Hash) string {
	reference, _, _ = strings.Cut(reference, "@")
	if i := strings.LastIndexByte(reference, ':'); i > strings.LastIndexByte(reference, '/') {
		reference = reference[:i]
	}
	return reference + "@" + digest.String()
}

// parseTag parses a reference to push to.
func (c Client) parseTag(reference string) (name.Tag, error) {
	ref, err := c.parse(reference)
	if err != nil {
		return name.Tag{}, err
	}
	tag, ok := ref.(name.Tag)
	if !ok {
		return name.Tag{}, referenceError{hint.With(fmt.Errorf("push %s: its digest is known only when it is made", reference), "name a tag to push to: registry/repository:tag")}
	}
	return tag, nil
}

// CheckPush asks the registry whether an image can be pushed to reference, before there is one. It begins an upload, and
// takes that back.
func (c Client) CheckPush(ctx context.Context, reference string) error {
	tag, err := c.parseTag(reference)
	if err != nil {
		return err
	}
	reach, keys, err := c.reach()
	if err != nil {
		return err
	}
	again := transport.NewRetry(withContext{ctx, reach}, transport.WithRetryBackoff(c.backoff()))
	return explain(remote.CheckPushPermission(tag, keys, transport.NewUserAgent(again, userAgent)), "ask whether it can be pushed", tag)
}

// withContext ends requests with a context where what makes them takes none.
type withContext struct {
	ctx   context.Context //nolint:containedctx // it is what this is for
	inner http.RoundTripper
}

// RoundTrip is http.RoundTripper's.
func (w withContext) RoundTrip(r *http.Request) (*http.Response, error) {
	return w.inner.RoundTrip(r.WithContext(w.ctx))
}

// Push sends what to the registry under the tag reference and returns the reference by digest. Only blobs that the
// registry does not have are sent; the manifest follows by digest, and when the registry gives it back unharmed the tag is
// set. So a push that fails leaves the tag as it was, and one that is tried again goes on where the last one ended.
func (c Client) Push(ctx context.Context, reference string, what Artifact) (string, error) {
	tag, err := c.parseTag(reference)
	if err != nil {
		return "", err
	}
	options, err := c.options(ctx)
	if err != nil {
		return "", err
	}
	digest, err := what.Digest()
	if err != nil {
		return "", fmt.Errorf("push %s: make the image: %w", reference, err)
	}
	pusher, err := remote.NewPusher(options...)
	if err != nil {
		return "", fmt.Errorf("push %s: %w", reference, err)
	}
	pinned := tag.Digest(digest.String())
	if err := pusher.Push(ctx, pinned, what); err != nil {
		return "", explain(err, "push", tag)
	}
	if _, err := remote.Get(pinned, options...); err != nil {
		return "", explain(err, "read back what was pushed", tag)
	}
	if err := pusher.Push(ctx, tag, what); err != nil {
		return "", explain(err, "set the tag", tag)
	}
	set, err := remote.Get(tag, options...)
	if err != nil {
		return "", explain(err, "look at the tag", tag)
	}
	if set.Digest != digest {
		return "", hint.With(fmt.Errorf("push %s: the tag was set to %s, and yet it means %s", reference, digest, set.Digest),
			"see whether somebody else pushes to it, and push again")
	}
	return withDigest(reference, digest), nil
}

// Fetch returns what reference means to its registry. Layers are read from there when they are asked for.
func (c Client) Fetch(ctx context.Context, reference string) (Artifact, error) {
	ref, err := c.parse(reference)
	if err != nil {
		return nil, err
	}
	options, err := c.options(ctx)
	if err != nil {
		return nil, err
	}
	found, err := remote.Get(ref, options...)
	if err != nil {
		return nil, explain(err, "read", ref)
	}
	if found.MediaType.IsIndex() {
		index, err := found.ImageIndex()
		return index, explain(err, "read", ref)
	}
	single, err := found.Image()
	if err != nil {
		return nil, explain(err, "read", ref)
	}
	manifest, err := single.Manifest()
	if err == nil {
		err = checkConfigSize(manifest)
	}
	if err != nil {
		return nil, hint.With(fmt.Errorf("image %s: %w", reference, err), "push the image again, or name another")
	}
	return single, nil
}
