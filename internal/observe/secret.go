package observe

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/olmkit/olmkit/internal/compare"
)

// KindSecret is the kind whose data reports never have.
const KindSecret = "Secret"

// Hidden matches what stands for a value of a Secret.
var Hidden = Compiled(`\(hidden\) sha256:[0-9a-f]+`)

// credential matches a key of a Secret under which there is one.
var credential = Compiled(`(?i)pass|pwd|token|secret|cookie|credential|auth$|key$`)

// IsCredential reports whether a key of a Secret, or a path that ends with one, is of a credential.
func IsCredential(key string) bool { return credential().MatchString(key) }

// secrets are the credentials that Secrets hold, each with what stands for it.
type secrets struct {
	mu       sync.Mutex
	known    map[string]string
	replacer *strings.Replacer // of all that is known; nil for none
}

// masked matches the keys of Secrets whose values are looked for elsewhere: what ends so is no name or address.
var masked = Compiled(`(?i)(password|passwd|passphrase|token|secret|(api|access|secret|private|encryption)[-_.]?key)$`)

// leastCredential is how long a credential is at least that is looked for elsewhere, and everyday matches what many things are called.
const leastCredential = 8

var everyday = Compiled(`^[a-z./:-]*$`)

// hide replaces in place what a Secret holds by digests, which tell what changed, and notes the credentials in it. It returns the addresses in it, by the paths of what says
// them.
func (s *secrets) hide(content map[string]any) map[string][]string {
	data, ok := content["data"].(map[string]any)
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	hidden, addresses := map[string]any{}, map[string][]string{}
	for key, v := range data {
		digest := fmt.Sprintf("(hidden) sha256:%.8x", sha256.Sum256(fmt.Append(nil, v)))
		hidden[key] = digest
		encoded, _ := v.(string)
		value, err := base64.StdEncoding.DecodeString(encoded)
		if err == nil && masked().MatchString(key) && len(value) >= leastCredential && !everyday().Match(value) {
			s.note(string(value), digest)
		}
		if found := addressesOnly(string(value)); err == nil && len(found) > 0 {
			addresses[compare.Join("data", key)] = found
		}
	}
	content["data"] = hidden
	return addresses
}

// note adds a credential to what is known.
func (s *secrets) note(value, digest string) {
	if s.known[value] == digest {
		return
	}
	if s.known == nil {
		s.known = map[string]string{}
	}
	s.known[value] = digest
	var pairs []string
	for _, value := range slices.SortedFunc(maps.Keys(s.known), func(a, b string) int { return cmp.Or(len(b)-len(a), cmp.Compare(a, b)) }) {
		pairs = append(pairs, value, s.known[value])
	}
	s.replacer = strings.NewReplacer(pairs...)
}

// HideSecrets returns operands without the credentials that are known by now.
func (c *Cluster) HideSecrets(operands map[string]Operand) map[string]Operand {
	hidden := maps.Clone(operands)
	for name, o := range hidden {
		if o.Kind != KindSecret {
			o.Content = c.Watcher.secrets.hideIn(o.Content)
			hidden[name] = o
		}
	}
	return hidden
}

// hideIn returns what something else than a Secret says without the credentials that are known. It changes nothing in place.
func (s *secrets) hideIn(content map[string]any) map[string]any {
	replacer := s.masks()
	if replacer == nil {
		return content
	}
	without, _ := hiddenIn(content, replacer)
	return without.(map[string]any)
}

// masks replaces all credentials that are known by now; nil for none.
func (s *secrets) masks() *strings.Replacer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replacer
}

// hiddenIn returns value without what is known, and whether there was any of it.
func hiddenIn(value any, known *strings.Replacer) (any, bool) {
	switch v := value.(type) {
	case string:
		text := known.Replace(v)
		return text, text != v
	case map[string]any:
		var without map[string]any
		for key, inner := range v {
			if now, found := hiddenIn(inner, known); found {
				if without == nil {
					without = maps.Clone(v)
				}
				without[key] = now
			}
		}
		if without != nil {
			return without, true
		}
	case []any:
		var without []any
		for i, inner := range v {
			if now, found := hiddenIn(inner, known); found {
				if without == nil {
					without = append([]any(nil), v...)
				}
				without[i] = now
			}
		}
		if without != nil {
			return without, true
		}
	}
	return value, false
}
