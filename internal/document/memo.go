package document

import (
	"crypto/sha256"
	"sync"
)

// maxMemo is how many bytes of text a Memo holds: enough for what the releases of one operator, which are read after each
// other, have in common.
const maxMemo = 6 << 20

// Memo is Parse for those who meet the same text in many files: it is read once. It forgets, so that it stays small.
type Memo struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte][]*Document
	size  int
}

// Parse is the package's Parse.
func (m *Memo) Parse(file string, data []byte) ([]*Document, error) {
	digest := sha256.Sum256(data)
	m.mu.Lock()
	documents, ok := m.known[digest]
	m.mu.Unlock()
	if ok {
		named := make([]*Document, len(documents))
		for i, d := range documents {
			named[i] = &Document{JSON: d.JSON, At: d.At, text: d.text, yaml: d.yaml, unique: d.unique, origin: d.origin}
			named[i].At.File = file
		}
		return named, nil
	}
	documents, err := Parse(file, data)
	if err != nil {
		return nil, err
	}
	size := len(data)
	for _, d := range documents {
		size += len(d.JSON)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.size += size; m.known == nil || m.size > maxMemo {
		m.known, m.size = map[[sha256.Size]byte][]*Document{}, size
	}
	if size <= maxMemo {
		m.known[digest] = documents
	}
	return documents, nil
}
