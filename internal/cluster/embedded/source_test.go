package embedded

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/progress"
)

// The linker passes silently over a variable that is not there.
func TestReleasesSetTheArtifact(t *testing.T) {
	config, err := os.ReadFile("../../../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if want := "-X " + reflect.TypeFor[Source]().PkgPath() + ".artifact="; !strings.Contains(string(config), want) {
		t.Errorf(".goreleaser.yaml does not say %s", want)
	}
}

// What a user names wins over what the release has, and a mirror must have what the release has.
func TestReference(t *testing.T) {
	const digest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	file := filepath.Join(t.TempDir(), "components")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		artifact, variable string
		source             Source
		want               string
	}{
		"built from source":             {"", "", Source{}, ""},
		"the release's":                 {"ghcr.io/a/b" + digest, "", Source{}, "ghcr.io/a/b" + digest},
		"the variable's":                {"ghcr.io/a/b" + digest, "example.com/c:v1", Source{}, "example.com/c:v1"},
		"the flag's":                    {"ghcr.io/a/b" + digest, "example.com/c:v1", Source{Reference: "example.com/d:v1"}, "example.com/d:v1"},
		"a mirror's":                    {"ghcr.io/a/b" + digest, "", Source{Reference: "example.com:5000/d"}, "example.com:5000/d" + digest},
		"a mirror's, without a release": {"", "", Source{Reference: "example.com:5000/d"}, "example.com:5000/d"},
		"an archive":                    {"ghcr.io/a/b" + digest, "", Source{Reference: file}, file},
		"from source":                   {"ghcr.io/a/b" + digest, "example.com/c:v1", Source{Build: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			artifact = test.artifact
			defer func() { artifact = "" }()
			t.Setenv(ComponentsVariable, test.variable)
			if got := test.source.reference(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// What the Go command says is read to its end, also a line of any length.
func TestLastSaid(t *testing.T) {
	var nobody *progress.Printer
	step := nobody.Start("building")
	long := strings.Repeat("x", 1<<20)
	if said := lastSaid(strings.NewReader("first\n"+long+"\n\nlast"), step); len(said) != 3 || said[1] != long || said[2] != "last" {
		t.Errorf("%d lines", len(said))
	}
	if said := lastSaid(strings.NewReader(strings.Repeat("line\n", 30)), step); len(said) != 12 {
		t.Errorf("%d lines", len(said))
	}
}
