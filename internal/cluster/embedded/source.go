package embedded

import (
	"cmp"
	"os"
	"path"
	"strings"

	"github.com/olmkit/olmkit/internal/image"
)

// artifact is where a release of olmkit pulls the components from, by digest: an index of images that 'make components-artifact'
// makes. The linker sets it; a program that was built from source has none, and builds them from source.
var artifact string

// ComponentsVariable of the environment names an index to pull the components from, instead of the release's own.
const ComponentsVariable = "OLMKIT_COMPONENTS"

// Source says where the components of embedded clusters come from.
type Source struct {
	// Reference is of an index that 'make components-artifact' makes: on a registry, in an archive or in an OCI layout. A
	// repository without tag or digest is a mirror of the release's own. "" is what the environment says, or else the release's.
	Reference string
	Build     bool // from source, wherever else they could come from
	Images    image.Client
}

// Artifact is the reference by which this olmkit pulls components unless a user names another; "" if it has none.
func Artifact() string { return artifact }

// reference is what to pull from; "" for nothing.
func (s Source) reference() string {
	if s.Build {
		return ""
	}
	ref := cmp.Or(s.Reference, os.Getenv(ComponentsVariable))
	if ref == "" {
		return artifact
	}
	if _, err := os.Stat(ref); err == nil || strings.ContainsAny(path.Base(ref), ":@") {
		return ref
	}
	if _, digest, ok := strings.Cut(artifact, "@"); ok {
		return ref + "@" + digest
	}
	return ref
}
