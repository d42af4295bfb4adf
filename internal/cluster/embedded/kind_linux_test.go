package embedded

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/progress"
)

// fakeKind has a program kind on the PATH that says that it is of version, and nothing else; it returns its file.
func fakeKind(t *testing.T, version string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kind")
	if err := os.WriteFile(file, []byte("#!/bin/sh\necho "+strings.TrimPrefix(version, "v")+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(file))
	return file
}

// A kind of the pinned version is taken from the PATH; any other is passed over, and so is each with --from-source.
func TestKindProgram(t *testing.T) {
	own := fakeKind(t, KindVersion)
	if program, err := KindProgram(t.Context(), Source{}, nil); err != nil || program != own {
		t.Errorf("with %s on the PATH: %s, %v", own, program, err)
	}
	for name, version := range map[string]string{"from source": KindVersion, "another version": "v0.1.0"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OLMKIT_CACHE", t.TempDir())
			fakeKind(t, version)
			_, err := KindProgram(t.Context(), Source{Build: version == KindVersion}, nil)
			if err == nil || !strings.Contains(err.Error(), "the Go toolchain builds kind "+KindVersion) || !strings.Contains(hint.Of(err), "or put kind "+KindVersion+" on the PATH") {
				t.Errorf("%v (%s)", err, hint.Of(err))
			}
			withFakeGo(t)
			var said bytes.Buffer
			program, err := KindProgram(t.Context(), Source{Build: version == KindVersion}, progress.New(&said))
			if err != nil || !strings.HasPrefix(filepath.Base(filepath.Dir(program)), kindComponents.key(runtime.GOARCH)) || !strings.Contains(said.String(), "building kind "+KindVersion) {
				t.Errorf("built is %s, %v\n%s", program, err, said.String())
			}
		})
	}
}

// An artifact has kind for each architecture; where there is neither kind nor Go it is pulled.
func TestKindIsPulled(t *testing.T) {
	t.Setenv("OLMKIT_CACHE", t.TempDir())
	withFakeGo(t)
	made, err := MakeArtifact(t.Context(), ArtifactOptions{Architectures: []string{"amd64", "arm64"}, Parts: Parts{Kind: true}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	ref, err := quickly.Push(t.Context(), strings.TrimPrefix(server.URL, "http://")+"/team/components:v1", made)
	if err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	t.Setenv("OLMKIT_CACHE", cache)
	withoutGo(t)
	program, err := KindProgram(t.Context(), Source{Reference: ref, Images: quickly}, nil)
	if want := filepath.Join(kindComponents.content(cache, runtime.GOARCH)+"-"+pulledFrom(ref), "kind"); err != nil || program != want {
		t.Fatalf("pulled is %s, %v; want %s", program, err, want)
	}
	if data, err := os.ReadFile(program); err != nil || string(data) != "built" {
		t.Errorf("it holds %q, %v", data, err)
	}
}
