package cli

import (
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"os"
	"reflect"
	"slices"

	"github.com/olmkit/olmkit/internal/cache"
	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/check"
	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/graph"
)

// verdict is what the checks make of a catalog, and nothing but what they read decides it: the catalog's files, the options and
// this program.
type verdict struct {
	Findings []finding.Finding
	Checks   []string
	Files    []string
	Graph    []graph.Drawing
	NotRead  int // bundles whose images alone have their manifests
}

// mostVerdicts is how many bytes of verdicts are kept.
const mostVerdicts = 256 << 20

// verdicts keeps a verdict for those who ask for the same once more. A nil verdicts keeps none.
type verdicts struct {
	cache  *cache.Cache
	key    cache.Key
	loader catalog.Loader
	digest *catalog.Digest
}

// verdicts returns where the verdict of program on refs is kept; nil where something decides it that cannot be hashed here.
func (s *session) verdicts(ctx context.Context, program []byte, options check.Options, drawn bool, against string, refs []string) *verdicts {
	v := &verdicts{cache: cache.Open("verdicts"), loader: s.loader()}
	if v.cache == nil || options.Registry != nil || options.Template != nil || program == nil {
		return nil
	}
	all := slices.Clone(refs)
	if against != "" {
		all = append(all, against)
	}
	var err error
	if v.digest, err = v.loader.Digest(ctx, all...); err != nil {
		return nil // whatever it is, loading says it better
	}
	asked, err := json.Marshal(struct {
		Refs                 []string
		Against              string
		Packages, Only, Skip []string
		Drawn                bool
		MaxFile              int64
	}{refs, against, options.Packages, options.Only, options.Skip, drawn, s.maxFile})
	if err != nil {
		return nil
	}
	v.key = cache.KeyOf("verdict 1", program, asked, v.digest.Content[:])
	return v
}

// get returns the verdict that is kept, or nil.
func (v *verdicts) get() *verdict {
	if v == nil {
		return nil
	}
	known := &verdict{}
	if !v.cache.GetJSON(v.key, known) {
		return nil
	}
	return known
}

// put keeps a verdict, unless the catalog changed while it was found, or it would not read the same again.
func (v *verdicts) put(found *verdict) {
	if v == nil || !v.loader.Stands(v.digest) {
		return
	}
	raw, err := json.Marshal(found)
	again := &verdict{}
	if err != nil || json.Unmarshal(raw, again) != nil || !reflect.DeepEqual(found, again) {
		return
	}
	if v.cache.Put(v.key, cache.Part{Data: raw}) != nil {
		v.cache.Trim(mostVerdicts)
	}
}

// programDigest returns what tells this program from all others, also from those of the same version: the build ID that the
// linker makes of all that it links, or else the digest of its file. It is nil where neither can be read.
func programDigest() []byte {
	name, err := os.Executable()
	if err != nil {
		return nil
	}
	if program, err := elf.Open(name); err == nil {
		defer program.Close()
		if note := program.Section(".note.go.buildid"); note != nil {
			if id, err := note.Data(); err == nil && len(id) > sha256.Size {
				return id
			}
		}
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	sum := sha256.Sum256(data)
	return sum[:]
}
