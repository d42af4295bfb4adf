package bundle

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/olmkit/olmkit/internal/document"
)

// TestPlain: what is taken for a string without asking a reader of YAML is one to it.
func TestPlain(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	alphabet := []string{"y", "n", "No", "ye", "s", "of", "f", "t", "rue", "nul", "l", "inf", "NaN", "e", "1", "0x", "-", ".", "/", "_", " ", "a", ":", "#", "~"}
	taken := 0
	for range 5000 {
		var s string
		for range 1 + random.IntN(4) {
			s += alphabet[random.IntN(len(alphabet))]
		}
		if !plain(s) {
			continue
		}
		taken++
		documents, err := document.Parse("", []byte(s+"\n"))
		if want := strconv.Quote(s); err != nil || len(documents) != 1 || string(documents[0].JSON) != want {
			t.Errorf("%q is read as %v, %v", s, documents, err)
		}
	}
	if taken < 1000 {
		t.Errorf("%d of 5000: the test says little", taken)
	}
}
