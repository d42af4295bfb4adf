package conversion

import (
	"regexp"
	"strings"

	v1 "github.com/olmkit/olmkit/operator/api/v1"
)

// The patterns and bounds of v1's schema. What does not match stays in the repository, so that no string is refused
// and none becomes an object that v1 would refuse.
var (
	tagPattern    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	digestPattern = regexp.MustCompile(`^[a-z0-9]+([+._-][a-z0-9]+)*:[a-zA-Z0-9=_-]+$`)
)

const maxDigest = 256

// SplitImage takes an image reference apart; nil for an empty one. It accepts any string, and JoinImage of the result
// is that string again.
func SplitImage(reference string) *v1.Image {
	if reference == "" {
		return nil
	}
	image := &v1.Image{Repository: reference}
	if at := strings.LastIndexByte(image.Repository, '@'); at > 0 {
		if digest := image.Repository[at+1:]; len(digest) <= maxDigest && digestPattern.MatchString(digest) {
			image.Repository, image.Digest = image.Repository[:at], digest
		}
	}
	// A colon before the last slash belongs to the registry's port.
	if colon := strings.LastIndexByte(image.Repository, ':'); colon > 0 && colon > strings.LastIndexByte(image.Repository, '/') {
		if tag := image.Repository[colon+1:]; tagPattern.MatchString(tag) {
			image.Repository, image.Tag = image.Repository[:colon], tag
		}
	}
	return image
}

// JoinImage is the image reference as one string, empty when no repository is named.
func JoinImage(image *v1.Image) string {
	if image == nil || image.Repository == "" {
		return ""
	}
	reference := image.Repository
	if image.Tag != "" {
		reference += ":" + image.Tag
	}
	if image.Digest != "" {
		reference += "@" + image.Digest
	}
	return reference
}
