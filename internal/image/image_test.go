package image

import (
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/olmkit/olmkit/internal/hint"
)

func TestPinned(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	index, err := random.Index(64, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{"1.0", "latest"} {
		ref, err := name.NewTag(host + "/team/app:" + tag)
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.WriteIndex(ref, index); err != nil {
			t.Fatal(err)
		}
	}
	pinned := host + "/team/app@" + digest.String()
	for name, test := range map[string]struct{ reference, want, err string }{
		"a tag":               {host + "/team/app:1.0", pinned, ""},
		"no tag means latest": {host + "/team/app", pinned, ""},
		"a digest is kept":    {"nowhere.example.com/app@sha256:12", "nowhere.example.com/app@sha256:12", ""},
		"an unknown tag":      {host + "/team/app:2.0", "", "404"},
		"no reference":        {"Not An Image", "", "repository can only contain"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Client{}.Pinned(t.Context(), test.reference)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) || hint.Of(err) == "" {
					t.Fatalf("got %v, want an error with %q and a fix", err, test.err)
				}
				return
			}
			if err != nil || got != test.want {
				t.Errorf("got %s (%v), want %s", got, err, test.want)
			}
		})
	}
}
