package document

import (
	"bytes"
	"hash/maphash"
	"sync"
)

// maxMemo is how many bytes of text a Memo holds: enough for what the releases of one operator, which are read after each
// other, have in common.
const maxMemo = 6 << 20

// Memo is Parse for those who meet the same text in many files: it is read once. It forgets, so that it stays small.
type Memo struct {
	mu    sync.Mutex
	known map[uint64]read // by digest of the text
	size  int
}

// read is a text, and the documents that it holds.
type read struct {
	text      []byte
	documents []*Document
}

var seed = maphash.MakeSeed()

// Parse is the package's Parse.
func (m *Memo) Parse(file string, data []byte) ([]*Document, error) {
	digest := maphash.Bytes(seed, data)
	m.mu.Lock()
	known, ok := m.known[digest]
	m.mu.Unlock()
	if ok && bytes.Equal(known.text, data) {
		named := make([]*Document, len(known.documents))
		for i, d := range known.documents {
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
		m.known, m.size = map[uint64]read{}, size
	}
	if size <= maxMemo {
		m.known[digest] = read{data, documents}
	}
	return documents, nil
}
