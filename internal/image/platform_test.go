package image

import (
	"io"
	"log"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func TestPlatforms(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	made := func(system, architecture string) v1.Image {
		img, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: system, Architecture: architecture, RootFS: v1.RootFS{Type: "layers"}})
		if err != nil {
			t.Fatal(err)
		}
		return img
	}
	tag := func(text string) name.Tag {
		ref, err := name.NewTag(host + "/team/" + text)
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	if err := remote.Write(tag("single:1"), made("linux", "s390x")); err != nil {
		t.Fatal(err)
	}
	index := v1.ImageIndex(empty.Index)
	for _, p := range []v1.Platform{{OS: "linux", Architecture: "arm64", Variant: "v8"}, {OS: "linux", Architecture: "amd64"}, {OS: "unknown", Architecture: "unknown"}} {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: made(p.OS, p.Architecture), Descriptor: v1.Descriptor{Platform: &p}})
	}
	if err := remote.WriteIndex(tag("several:1"), index); err != nil {
		t.Fatal(err)
	}
	for reference, want := range map[string][]string{
		"single:1":  {"linux/s390x"},
		"several:1": {"linux/amd64", "linux/arm64"},
		"single:2":  nil,
		"other:1":   nil,
		"single@sha256:1111111111111111111111111111111111111111111111111111111111111111": nil,
	} {
		if got, err := (Client{}).Platforms(t.Context(), host+"/team/"+reference); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", reference, got, err, want)
		}
	}
	if _, err := (Client{}).Platforms(t.Context(), "127.0.0.1:1/team/app:1"); err == nil {
		t.Error("a registry that is not there has no image, it says")
	}
}
