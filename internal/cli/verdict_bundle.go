package cli

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/olmkit/olmkit/internal/cache"
	"github.com/olmkit/olmkit/internal/catalog"
	"github.com/olmkit/olmkit/internal/check"
)

// Parts returns what was found of bundles of p when a package of its name in the same files was judged last.
func (v *packageVerdicts) Parts(p *catalog.Package) check.Parts {
	var files []string
	for _, d := range v.loaded.documents[p.Name] {
		files = append(files, d.At.File)
	}
	slices.Sort(files)
	by := slices.Concat([]string{p.Name, strconv.FormatBool(v.previous != nil)}, slices.Compact(files))
	parts := &packageParts{of: v, key: cache.KeyOf("package parts 1", v.by, []byte(strings.Join(by, "\x00"))), used: map[string]json.RawMessage{}, names: map[*catalog.Bundle]string{}}
	v.parts.GetJSON(parts.key, &parts.before)
	return parts
}

// packageParts keeps what was found of bundles of one package: one file for all, which holds what was asked for last.
type packageParts struct {
	of     *packageVerdicts
	key    cache.Key
	before map[string]json.RawMessage

	mu    sync.Mutex
	used  map[string]json.RawMessage
	new   bool
	names map[*catalog.Bundle]string // of what their documents hold; "" where that is not known
}

// Get returns what is kept of part.
func (k *packageParts) Get(part check.Part, found any) bool {
	name := k.name(part)
	if name == "" {
		return false
	}
	raw, ok := k.before[name]
	if !ok || json.Unmarshal(raw, found) != nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.used[name] = raw
	return true
}

// Put keeps what was found of part.
func (k *packageParts) Put(part check.Part, found any) {
	name := k.name(part)
	raw, err := json.Marshal(found)
	if name == "" || err != nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.used[name], k.new = raw, true
}

// Save writes what was asked for, if something of it is new.
func (k *packageParts) Save() {
	raw, err := json.Marshal(k.used)
	if err != nil || !k.new || k.of.changed() != nil {
		return
	}
	if k.of.parts.Put(k.key, cache.Part{Data: raw}) != nil {
		k.of.new.Store(true)
	}
}

// name returns the name of part, by what decides it; "" where that is not known.
func (k *packageParts) name(part check.Part) string {
	asked, err := json.Marshal(part.Asked)
	if err != nil {
		return ""
	}
	decides := [][]byte{asked}
	for _, b := range part.Bundles {
		name := k.nameOf(b)
		if name == "" {
			return ""
		}
		decides = append(decides, []byte(name))
	}
	key := cache.KeyOf(part.What, decides...)
	return hex.EncodeToString(key[:])
}

// nameOf returns what the document of b is known by: what it holds, the file, and the column where it begins.
func (k *packageParts) nameOf(b *catalog.Bundle) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	name, known := k.names[b]
	if !known {
		if digest, ok := b.Document.Digest(); ok {
			name = fmt.Sprintf("%x %d %s", digest, b.Document.At.Column, b.Document.At.File)
		}
		k.names[b] = name
	}
	return name
}
