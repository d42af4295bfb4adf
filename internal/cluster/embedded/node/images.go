package node

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Images knows which image references can run, and from what. It is safe for concurrent use.
type Images struct {
	mu        sync.Mutex
	sources   map[string]string
	simulated map[string]bool
}

// NewImages returns an empty set of images.
func NewImages() *Images {
	return &Images{sources: map[string]string{}, simulated: map[string]bool{}}
}

// Load makes ref runnable from source: a program, or a directory that is the image's root.
func (i *Images) Load(ref, source string) error {
	if !filepath.IsAbs(source) {
		return fmt.Errorf("image %s: source %q is not an absolute path", ref, source)
	}
	if _, err := os.Stat(source); err != nil {
		return fmt.Errorf("image %s: %w", ref, err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.sources[ref] = source
	delete(i.simulated, ref)
	return nil
}

// Source returns what ref runs from, and false if it can only be simulated, which is remembered.
func (i *Images) Source(ref string) (string, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	source, ok := i.sources[ref]
	if !ok {
		i.simulated[ref] = true
	}
	return source, ok
}

// has tells whether ref can run.
func (i *Images) has(ref string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	_, ok := i.sources[ref]
	return ok
}

// Simulated returns the references that were asked for and can't run, sorted.
func (i *Images) Simulated() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	refs := make([]string, 0, len(i.simulated))
	for ref := range i.simulated {
		refs = append(refs, ref)
	}
	slices.Sort(refs)
	return refs
}
