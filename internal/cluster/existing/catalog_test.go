package existing

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/catalog"
)

func TestShares(t *testing.T) {
	t.Parallel()
	line := func(n int) string { return strings.Repeat("x", n-1) + "\n" }
	for name, test := range map[string]struct {
		lines []int
		want  []int
	}{
		"nothing":               {nil, []int{0}},
		"a little":              {[]int{10, 20}, []int{30}},
		"just so":               {[]int{share - 10, 10, 1}, []int{share, 1}},
		"one too large, alone":  {[]int{10, share + 1, 10}, []int{10, share + 1, 10}},
		"no two fit each other": {[]int{share - 1, share - 1}, []int{share - 1, share - 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all strings.Builder
			for _, n := range test.lines {
				all.WriteString(line(n))
			}
			parts := shares([]byte(all.String()))
			var sizes []int
			for _, part := range parts {
				sizes = append(sizes, len(part))
			}
			if fmt.Sprint(sizes) != fmt.Sprint(test.want) || !bytes.Equal(bytes.Join(parts, nil), []byte(all.String())) {
				t.Errorf("parts of %v", sizes)
			}
		})
	}
}

// What is packed is what 'olmkit catalog serve' reads on the cluster.
func TestPack(t *testing.T) {
	t.Parallel()
	fbc := `{"schema":"olm.package","name":"tea","defaultChannel":"stable"}
{"schema":"olm.channel","package":"tea","name":"stable","entries":[{"name":"tea.v1"}]}
{"schema":"olm.bundle","package":"tea","name":"tea.v1","properties":[{"type":"olm.package","value":{"packageName":"tea","version":"1.0.0"}},{"type":"long","value":"` + strings.Repeat("x", share) + `"}]}
`
	archives, err := pack(t.Context(), []byte(fbc))
	if err != nil {
		t.Fatal(err)
	}
	if len(archives) != 2 {
		t.Errorf("%d archives", len(archives))
	}
	var files []string
	for i, archive := range archives {
		if len(archive) > 1<<20 {
			t.Errorf("archive %d has %d bytes, too many for a ConfigMap", i, len(archive))
		}
		files = append(files, filepath.Join(t.TempDir(), fmt.Sprintf("%d.tar", i)))
		if err := os.WriteFile(files[i], archive, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := catalog.Load(t.Context(), nil, files...)
	if err != nil || c.Err() != nil {
		t.Fatal(err, c.Err())
	}
	if p := c.Find("tea"); p == nil || p.Bundle("tea.v1") == nil || p.Channel("stable") == nil {
		t.Errorf("read back: %+v", c)
	}
}
