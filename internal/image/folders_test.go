package image

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/olmkit/olmkit/internal/hint"
)

// writeFolder writes files, by their names, to a new folder; those in bin can be executed.
func writeFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		file, mode := filepath.Join(dir, name), os.FileMode(0o644)
		if strings.HasPrefix(name, "bin/") {
			mode = 0o700
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// twoFolders is an index of two folders for the same platform and one for another.
func twoFolders(t *testing.T) v1.ImageIndex {
	t.Helper()
	programs := strings.Repeat("what a program is made of ", 1<<12)
	index, err := Folders([]Folder{
		{Dir: writeFolder(t, map[string]string{"bin/one": "first " + programs, "notes": "1"}), Architecture: "amd64", Key: "first"},
		{Dir: writeFolder(t, map[string]string{"bin/one": "other " + programs}), Architecture: "arm64", Key: "other"},
		{Dir: writeFolder(t, map[string]string{"bin/two": "second " + programs}), Architecture: "amd64", Key: "second", Annotations: map[string]string{"go": "1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// The same folders give the same bytes, whenever and with whichever rights they were written.
func TestFoldersAreTheSameTwice(t *testing.T) {
	var archives [2]string
	for i := range archives {
		file := filepath.Join(t.TempDir(), "archive.tar")
		if err := (Client{}).Archive(t.Context(), file, "", twoFolders(t)); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		archives[i] = string(data)
	}
	if archives[0] != archives[1] {
		t.Error("two archives of the same folders differ")
	}
}

// Each image of an index is found by its key, on a registry by digest, in an archive and in a layout.
func TestFolder(t *testing.T) {
	index := twoFolders(t)
	pinned, err := quick.Push(t.Context(), startRegistry(t)+"/team/folders:v1", index)
	if err != nil {
		t.Fatal(err)
	}
	archive, layout := filepath.Join(t.TempDir(), "archive.tar"), filepath.Join(t.TempDir(), "layout")
	if err := quick.Archive(t.Context(), archive, "", index); err != nil {
		t.Fatal(err)
	}
	if err := quick.Layout(t.Context(), layout, "", index); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{pinned, archive, layout} {
		room := t.TempDir()
		dir := filepath.Join(room, "out")
		if err := quick.Folder(t.Context(), ref, "second", dir); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, "bin", "two"))
		if err != nil || info.Mode() != 0o755 {
			t.Errorf("%s: %v %v", ref, info, err)
		}
		if left, err := os.ReadDir(room); err != nil || len(left) != 1 {
			t.Errorf("%s: left beside the folder: %v %v", ref, left, err)
		}
		err = quick.Folder(t.Context(), ref, "third", filepath.Join(room, "third"))
		if err == nil || !strings.Contains(err.Error(), `none of its images is third; they are "first other second"`) {
			t.Errorf("%s: a key that is not there: %v", ref, err)
		}
	}
	img, err := quick.Push(t.Context(), startRegistry(t)+"/team/image:v1", bundleImage(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := quick.Folder(t.Context(), img, "first", filepath.Join(t.TempDir(), "out")); err == nil || !strings.Contains(err.Error(), "no index of several") {
		t.Errorf("an image that is no index: %v", err)
	}
}

// layerOf returns the digest of the only layer of the first image of index.
func layerOf(t *testing.T, index v1.ImageIndex) string {
	t.Helper()
	img, err := keyed(index, "first")
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	return manifest.Layers[0].Digest.String()
}

// What a registry sends that is not what the digest means is an error, and what breaks off is read again.
func TestFolderFromABadRegistry(t *testing.T) {
	host := startRegistry(t)
	index := twoFolders(t)
	pinned, err := quick.Push(t.Context(), host+"/team/folders:v1", index)
	if err != nil {
		t.Fatal(err)
	}
	layer := "/blobs/" + layerOf(t, index)
	of := func(kind string) func(*http.Request) bool {
		return func(r *http.Request) bool { return r.Method == http.MethodGet && strings.Contains(r.URL.Path, kind) }
	}
	upstream := func(w http.ResponseWriter, r *http.Request, change func([]byte) []byte) {
		answer, err := http.Get("http://" + host + r.URL.Path)
		if err != nil {
			panic(err)
		}
		defer answer.Body.Close()
		data, _ := io.ReadAll(answer.Body)
		w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
		_, _ = w.Write(change(data))
	}
	flip := func(w http.ResponseWriter, r *http.Request) {
		upstream(w, r, func(data []byte) []byte { data[len(data)/2] ^= 1; return data })
	}
	truncate := func(w http.ResponseWriter, r *http.Request) {
		upstream(w, r, func(data []byte) []byte {
			w.Header().Set("Content-Length", strconv.Itoa(len(data)))
			return data[:len(data)/2]
		})
		panic(http.ErrAbortHandler)
	}
	for name, test := range map[string]struct {
		spoil func(http.ResponseWriter, *http.Request) bool
		fails string
	}{
		"busy for a while":        {once(3, of("/"), answer(http.StatusServiceUnavailable)), ""},
		"busy for ever":           {once(1<<30, of("/"), answer(http.StatusServiceUnavailable)), "503"},
		"not there":               {once(1<<30, of("/manifests/"), answer(http.StatusNotFound)), "404"},
		"another index":           {once(1<<30, of("/manifests/"), flip), "does not match requested digest"},
		"another layer for ever":  {once(1<<30, of(layer), flip), "sha256"},
		"half a layer for ever":   {once(1<<30, of(layer), truncate), "layer 1"},
		"half a layer at first":   {once(2, of(layer), truncate), ""},
		"a blob that is not here": {once(1<<30, of("/blobs/"), answer(http.StatusNotFound)), "404"},
	} {
		t.Run(name, func(t *testing.T) {
			room := t.TempDir()
			ref := startProxy(t, host, test.spoil).host + strings.TrimPrefix(pinned, host)
			err := quick.Folder(t.Context(), ref, "first", filepath.Join(room, "out"))
			if test.fails == "" && err != nil || test.fails != "" && (err == nil || !strings.Contains(err.Error(), test.fails) || hint.Of(err) == "") {
				t.Errorf("got %v (%s), want %q", err, hint.Of(err), test.fails)
			}
			left, readErr := os.ReadDir(room)
			if readErr != nil || (len(left) > 0) != (test.fails == "") {
				t.Errorf("it left %v %v", left, readErr)
			}
		})
	}
}
