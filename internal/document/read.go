package document

import (
	"fmt"
	"io"
	"os"
)

// maxText is how much of a file or a stream is read: several times what the largest published catalogs have.
const maxText = 2 << 30

// ReadAll returns what r holds, or an error if that is too much to be a text.
func ReadAll(r io.Reader) ([]byte, error) { return readAll(r, maxText) }

func readAll(r io.Reader, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(data)) > most {
		return nil, fmt.Errorf("it holds more than %d bytes", most)
	}
	return data, err
}

// ReadFile is ReadAll of the file called name.
func ReadFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAll(f)
}
