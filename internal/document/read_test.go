package document

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// endless is a stream without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestReadAll(t *testing.T) {
	for name, test := range map[string]struct {
		from io.Reader
		want string
	}{
		"little":      {strings.NewReader("a: 1"), ""},
		"as much":     {strings.NewReader(strings.Repeat("a", 1000)), ""},
		"one more":    {strings.NewReader(strings.Repeat("a", 1001)), "it holds more than 1000 bytes"},
		"without end": {endless{}, "it holds more than 1000 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := readAll(test.from, 1000)
			if test.want == "" && err != nil || test.want != "" && (err == nil || err.Error() != test.want || data != nil) {
				t.Errorf("%d bytes, error %v", len(data), err)
			}
		})
	}
	if _, err := ReadFile(filepath.Join(t.TempDir(), "a")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
