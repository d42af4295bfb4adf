package image

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/olmkit/olmkit/internal/hint"
)

// describedImage is an image, and what it says of itself.
func describedImage(t *testing.T) (v1.Image, *v1.Manifest, v1.Hash) {
	t.Helper()
	made := bundleImage(t).(v1.Image)
	manifest, err := made.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := made.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return made, manifest, digest
}

// TestHugeDocuments makes each document of a layout larger than memory should have to hold, with holes on the disk.
func TestHugeDocuments(t *testing.T) {
	made, manifest, digest := describedImage(t)
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: made, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}}})
	top, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		what Artifact
		file string
	}{
		"index":                  {made, "index.json"},
		"manifest":               {made, blobFile(digest)},
		"configuration":          {made, blobFile(manifest.Config.Digest)},
		"index of platforms":     {index, blobFile(top)},
		"manifest in an index":   {index, blobFile(digest)},
		"configuration in there": {index, blobFile(manifest.Config.Digest)},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "layout")
			if err := (Client{}).Layout(t.Context(), dir, "", test.what); err != nil {
				t.Fatal(err)
			}
			if content, err := (Client{}).Unpack(t.Context(), dir); err != nil {
				t.Fatal(err)
			} else {
				content.Close()
			}
			if err := os.Truncate(filepath.Join(dir, filepath.FromSlash(test.file)), 1<<40); err != nil {
				t.Fatal(err)
			}
			_, err := Client{}.Unpack(t.Context(), dir)
			if err == nil || !strings.Contains(err.Error(), "more than any manifest") && !strings.Contains(err.Error(), "and the manifest says") || hint.Of(err) == "" {
				t.Errorf("got %v, want an error with a fix", err)
			}
		})
	}
}

// TestEndlessDocuments has each document of a layout lead to what has no end.
func TestEndlessDocuments(t *testing.T) {
	made, manifest, digest := describedImage(t)
	for _, file := range []string{"index.json", blobFile(digest), blobFile(manifest.Config.Digest), blobFile(manifest.Layers[0].Digest)} {
		dir := filepath.Join(t.TempDir(), "layout")
		if err := (Client{}).Layout(t.Context(), dir, "", made); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(file))
		if err := errors.Join(os.Remove(path), os.Symlink("/dev/zero", path)); err != nil {
			t.Fatal(err)
		}
		if _, err := (Client{}).Unpack(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "is no regular file") || hint.Of(err) == "" {
			t.Errorf("%s: got %v, want an error with a fix", file, err)
		}
	}
}

// TestHostileRegistry reads from registries that answer what no registry should.
func TestHostileRegistry(t *testing.T) {
	const manifestType, indexType = "application/vnd.oci.image.manifest.v1+json", "application/vnd.oci.image.index.v1+json"
	const zero = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	config := `{"os":"linux","architecture":"amd64","config":{"Labels":{"` + labelConfigs + `":"/configs"}},"rootfs":{"type":"layers","diff_ids":["` + zero + `"]}}`
	digestOf := func(text string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))) }
	image := func(configSize, layerSize int64) string {
		return fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":%q,"size":%d},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","digest":%q,"size":%d}]}`,
			manifestType, digestOf(config), configSize, zero, layerSize)
	}
	nested := `{"schemaVersion":2,"mediaType":"` + indexType + `","manifests":[{"mediaType":"` + indexType + `","digest":"` + zero + `","size":2}]}`
	lost := `{"schemaVersion":2,"mediaType":"` + indexType + `","manifests":[{"mediaType":"` + manifestType + `","digest":"` + zero + `","size":2,"platform":{"os":"linux","architecture":"amd64"}}]}`
	var packed bytes.Buffer
	squeezed := gzip.NewWriter(&packed)
	if _, err := io.CopyN(squeezed, zeros{}, 4<<20); err != nil {
		t.Fatal(err)
	}
	if err := squeezed.Close(); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		media, manifest string
		blob            func(w http.ResponseWriter, digest string)
		err             string
	}{
		"a layer of many bytes":           {manifestType, image(int64(len(config)), 1<<50), nil, "the manifest says that layer 1 is"},
		"a layer of no size":              {manifestType, image(int64(len(config)), -1), nil, "the manifest says that layer 1 is"},
		"a layer of another type":         {manifestType, strings.Replace(image(int64(len(config)), 2), "layer.v1.tar+gzip", "layer.nondistributable.v1.tar", 1), nil, "is of the media type"},
		"a layer at other places":         {manifestType, strings.Replace(image(int64(len(config)), 2), `"size":2}]`, `"size":2,"urls":["https://example.com/metadata"]}]`, 1), nil, "from the image's registry alone"},
		"a manifest of schema 1":          {"application/vnd.docker.distribution.manifest.v1+prettyjws", `{"schemaVersion":1,"name":"a","fsLayers":[],"history":[]}`, nil, "unsupported MediaType"},
		"an artifact that is no image":    {"application/vnd.oci.artifact.manifest.v1+json", `{"mediaType":"application/vnd.oci.artifact.manifest.v1+json","blobs":[]}`, nil, ""},
		"a configuration of another type": {manifestType, strings.Replace(image(int64(len(config)), 2), "image.config", "empty", 1), nil, "that of no image"},
		"an index as a manifest":          {manifestType, strings.Replace(image(int64(len(config)), 2), "image.manifest", "image.index", 1), nil, "it is of the media type"},
		"an index of an index":            {indexType, nested, nil, "names no image for Linux"},
		"an index of what is not there":   {indexType, lost, nil, "404"},
		"no JSON":                         {manifestType, `]`, nil, "invalid character"},
		"an endless manifest":             {manifestType, "", nil, "exceed"},
		"a configuration of many bytes":   {manifestType, image(1<<50, 2), nil, "says that the configuration is"},
		"a configuration of no size":      {manifestType, image(-1, 2), nil, "says that the configuration is"},
		"a configuration that never ends": {manifestType, image(int64(len(config)), 2), func(w http.ResponseWriter, _ string) { endless(w) }, "error verifying"},
		"another configuration":           {manifestType, image(2, 2), func(w http.ResponseWriter, _ string) { fmt.Fprint(w, "{}") }, "error verifying"},
		"a layer that never ends": {manifestType, image(int64(len(config)), 2), func(w http.ResponseWriter, digest string) {
			if digest == zero {
				endless(w)
				return
			}
			fmt.Fprint(w, config)
		}, "layer 1"},
		"a layer of zeros": {manifestType, image(int64(len(config)), int64(packed.Len())), func(w http.ResponseWriter, digest string) {
			if digest == zero {
				_, _ = w.Write(packed.Bytes())
				return
			}
			fmt.Fprint(w, config)
		}, "layer 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/v2/":
				case strings.HasSuffix(r.URL.Path, "/manifests/v1"):
					w.Header().Set("Content-Type", test.media)
					if test.manifest == "" {
						endless(w)
						return
					}
					fmt.Fprint(w, test.manifest)
				case strings.Contains(r.URL.Path, "/blobs/") && test.blob != nil:
					test.blob(w, filepath.Base(r.URL.Path))
				default:
					w.WriteHeader(http.StatusNotFound)
				}
			}))
			defer server.Close()
			defer server.CloseClientConnections() // what never ends would
			_, err := quick.unpack(t.Context(), strings.TrimPrefix(server.URL, "http://")+"/team/bundle:v1", tight)
			if err == nil || !strings.Contains(err.Error(), test.err) || hint.Of(err) == "" {
				t.Errorf("got %v, want an error with %q and a fix (%q)", err, test.err, hint.Of(err))
			}
			if left, _ := os.ReadDir(os.Getenv("TMPDIR")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// endless writes spaces until nobody reads them.
func endless(w http.ResponseWriter) {
	chunk := bytes.Repeat([]byte(" "), 1<<20)
	for {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}
