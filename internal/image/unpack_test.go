package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/olmkit/olmkit/internal/bundle"
	"github.com/olmkit/olmkit/internal/hint"
)

// entry is an entry of a tar archive.
type entry struct {
	name, body string
	kind       byte // tar.TypeReg if it is 0
	link       string
	size       int64 // claimed, with as many zeros
}

func tarOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: 0o644, Size: int64(len(e.body)) + e.size, Linkname: e.link}
		if e.kind != 0 {
			h.Typeflag = e.kind
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(w, io.MultiReader(strings.NewReader(e.body), zeros{}), h.Size); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// imageOf has a layer for each list of entries, and labels that make it a bundle or a catalog.
func imageOf(t testing.TB, labels map[string]string, layers ...[]entry) v1.Image {
	t.Helper()
	img := scratch()
	for _, entries := range layers {
		data := tarOf(t, entries...)
		l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil })
		if err != nil {
			t.Fatal(err)
		}
		if img, err = mutate.AppendLayers(img, l); err != nil {
			t.Fatal(err)
		}
	}
	found, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config := found.DeepCopy()
	config.Config.Labels = labels
	img, err = mutate.ConfigFile(img, config)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

var catalogLabels = map[string]string{labelConfigs: "/configs"}

// contents returns the files of content by path.
func contents(t *testing.T, content *Content) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := fs.WalkDir(content.FS, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := fs.ReadFile(content.FS, name)
		got[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// tight are limits that a test reaches quickly.
var tight = limits{entries: 50, files: 40, read: 1 << 20, kept: 1 << 16, names: 1 << 16}

// moved are entries in another folder, fewer than an image may have.
func moved(dir string, entries []entry) []entry {
	var list []entry
	for _, e := range entries[:45] {
		e.name = dir + e.name
		list = append(list, e)
	}
	return list
}

func TestUnpack(t *testing.T) {
	many := make([]entry, 60)
	for i := range many {
		many[i] = entry{name: "elsewhere/" + strings.Repeat("x", i+1)}
	}
	for name, test := range map[string]struct {
		labels map[string]string
		layers [][]entry
		want   map[string]string
		err    string
	}{
		"a catalog": {
			catalogLabels, [][]entry{{{name: "configs/a/catalog.yaml", body: "a"}, {name: "bin/opm", body: "x"}}},
			map[string]string{"a/catalog.yaml": "a"}, "",
		},
		"a bundle with folders of other names": {
			map[string]string{bundle.AnnotationManifests: "/deploy/m/", bundle.AnnotationMetadata: "deploy/meta"},
			[][]entry{{{name: "./deploy/m/csv.yaml", body: "c"}, {name: "/deploy/meta/annotations.yaml", body: "a"}}},
			map[string]string{"manifests/csv.yaml": "c", "metadata/annotations.yaml": "a"}, "",
		},
		"a later layer wins": {
			catalogLabels, [][]entry{{{name: "configs/a", body: "old"}}, {{name: "configs/a", body: "new"}}},
			map[string]string{"a": "new"}, "",
		},
		"a whiteout hides what was below": {
			catalogLabels, [][]entry{{{name: "configs/a", body: "1"}, {name: "configs/d/x", body: "2"}, {name: "configs/b", body: "3"}}, {{name: "configs/.wh.a"}, {name: "configs/.wh.d"}}},
			map[string]string{"b": "3"}, "",
		},
		"an opaque folder hides all but its own layer": {
			catalogLabels, [][]entry{{{name: "configs/d/x", body: "1"}}, {{name: "configs/d/y", body: "2"}, {name: "configs/d/.wh..wh..opq"}}},
			map[string]string{"d/y": "2"}, "",
		},
		"a file in place of a folder": {
			catalogLabels, [][]entry{{{name: "configs/d/x", body: "1"}}, {{name: "configs/d", body: "2"}}},
			map[string]string{"d": "2"}, "",
		},
		"a folder in place of a file": {
			catalogLabels, [][]entry{{{name: "configs/d", body: "1"}}, {{name: "configs/d/x", body: "2"}}},
			map[string]string{"d/x": "2"}, "",
		},
		"links that stay inside": {
			catalogLabels, [][]entry{{
				{name: "configs/a", body: "1"},
				{name: "configs/d/relative", kind: tar.TypeSymlink, link: "../a"},
				{name: "configs/absolute", kind: tar.TypeSymlink, link: "/configs/d/relative"},
				{name: "configs/hard", kind: tar.TypeLink, link: "configs/a"},
			}},
			map[string]string{"a": "1", "d/relative": "1", "absolute": "1", "hard": "1"}, "",
		},
		"many files to unpack": {
			catalogLabels, [][]entry{moved("configs/", many)}, nil, "it holds more than 40 files to unpack; file 41 is \"configs/elsewhere/",
		},
		"traversal": {
			catalogLabels, [][]entry{{{name: "configs/../../etc/passwd", body: "x"}}}, nil, "leads out of the archive",
		},
		"traversal elsewhere in the image": {
			catalogLabels, [][]entry{{{name: "configs/a", body: "1"}, {name: "../x", body: "x"}}}, nil, "leads out of the archive",
		},
		"a link out": {
			catalogLabels, [][]entry{{{name: "configs/a", kind: tar.TypeSymlink, link: "../../etc/passwd"}}}, nil, "leads out of the archive",
		},
		"a link to the machine's files": {
			catalogLabels, [][]entry{{{name: "configs/a", kind: tar.TypeSymlink, link: "/etc/passwd"}}}, nil, "which is not there",
		},
		"a file below a link": {
			catalogLabels, [][]entry{{{name: "configs/d", kind: tar.TypeSymlink, link: "/tmp"}, {name: "configs/d/x", body: "1"}}}, nil, "which is not there",
		},
		"links in a circle": {
			catalogLabels, [][]entry{{{name: "configs/a", kind: tar.TypeSymlink, link: "b"}, {name: "configs/b", kind: tar.TypeSymlink, link: "a"}}}, nil, "in circles",
		},
		"a link to itself": {
			catalogLabels, [][]entry{{{name: "configs/a", kind: tar.TypeSymlink, link: "a"}}}, nil, "in circles",
		},
		"a device": {
			catalogLabels, [][]entry{{{name: "configs/null", kind: tar.TypeChar}}}, nil, "neither a file",
		},
		"a bomb": {
			catalogLabels, [][]entry{{{name: "configs/zeros", size: 1 << 17}}}, nil, "more than olmkit keeps",
		},
		"a bomb of links": {
			catalogLabels, [][]entry{{
				{name: "configs/0", size: 1 << 15}, {name: "configs/1", kind: tar.TypeLink, link: "configs/0"}, {name: "configs/2", kind: tar.TypeLink, link: "configs/0"},
			}}, nil, "links unpack to more than olmkit keeps",
		},
		"a bomb beside the catalog": {
			catalogLabels, [][]entry{{{name: "zeros", size: 1 << 21}, {name: "configs/a", body: "1"}}}, nil, "more than olmkit reads",
		},
		"very many files": {
			catalogLabels, [][]entry{many}, nil, "more files than olmkit reads",
		},
		"a path of very many folders": {
			catalogLabels, [][]entry{{{name: "configs/" + strings.Repeat("a/", 2_500) + "b", body: "1"}}}, nil, "longer than any path",
		},
		"a link over very many folders": {
			catalogLabels, [][]entry{{{name: "configs/a", kind: tar.TypeSymlink, link: "/" + strings.Repeat("a/", 2_500) + "b"}}}, nil, "longer than any path",
		},
		"no labels":                {nil, [][]entry{{{name: "configs/a", body: "1"}}}, nil, "neither a bundle nor a catalog"},
		"a database":               {map[string]string{labelDatabase: "/index.db"}, nil, nil, "SQLite"},
		"nothing where it says":    {catalogLabels, [][]entry{{{name: "other/a", body: "1"}}}, nil, "no files"},
		"a label that leads out":   {map[string]string{labelConfigs: "../../etc"}, [][]entry{{{name: "etc/a", body: "1"}}}, map[string]string{"a": "1"}, ""},
		"a catalog at the root":    {map[string]string{labelConfigs: "/"}, [][]entry{{{name: "a", body: "1"}}}, map[string]string{"a": "1"}, ""},
		"a bundle without a label": {map[string]string{bundle.AnnotationManifests: "manifests/"}, [][]entry{{{name: "x", body: "1"}}}, nil, "names no folder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			dir := filepath.Join(t.TempDir(), "layout")
			if err := (Client{}).Layout(t.Context(), dir, "", imageOf(t, test.labels, test.layers...)); err != nil {
				t.Fatal(err)
			}
			content, err := Client{}.unpack(t.Context(), dir, tight)
			switch {
			case test.err != "":
				if err == nil || !strings.Contains(err.Error(), test.err) || hint.Of(err) == "" {
					t.Errorf("got %v, want an error with %q and a fix", err, test.err)
				}
			case err != nil:
				t.Fatal(err)
			default:
				if got := contents(t, content); !maps.Equal(got, test.want) {
					t.Errorf("got %v, want %v", got, test.want)
				}
				if err := content.Close(); err != nil {
					t.Error(err)
				}
			}
			if left, _ := os.ReadDir(os.Getenv("TMPDIR")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestArchivesAndLayouts(t *testing.T) {
	made := bundleImage(t)
	dir := t.TempDir()
	archive, again, saved, packed, lay := filepath.Join(dir, "a.tar"), filepath.Join(dir, "b.tar"), filepath.Join(dir, "saved.tar"), filepath.Join(dir, "a.tar.gz"), filepath.Join(dir, "layout")
	c := Client{}
	for _, file := range []string{archive, again} {
		if err := c.Archive(t.Context(), file, "quay.io/team/bundle:v1", made); err != nil {
			t.Fatal(err)
		}
	}
	first, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	second, _ := os.ReadFile(again)
	if !bytes.Equal(first, second) {
		t.Error("the same image made two different archives")
	}
	var squeezed bytes.Buffer
	w := gzip.NewWriter(&squeezed)
	_, _ = w.Write(first)
	_ = w.Close()
	if err := os.WriteFile(packed, squeezed.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time the layout is replaced
		if err := c.Layout(t.Context(), lay, "quay.io/team/bundle:v1", made); err != nil {
			t.Fatal(err)
		}
	}
	ref, err := c.parse("quay.io/team/bundle:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := tarball.WriteToFile(saved, ref, made.(v1.Image)); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{archive, packed, saved, lay} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			if !Is(file) {
				t.Fatal("it is not taken for an image")
			}
			content, err := c.Unpack(t.Context(), file)
			if err != nil {
				t.Fatal(err)
			}
			defer content.Close()
			if !content.Bundle || content.Reference != "" || content.Name != file {
				t.Errorf("got %+v", content)
			}
			sameFile(t, content, "metadata/annotations.yaml", filepath.Join(published, "metadata", "annotations.yaml"))
		})
	}
}

func TestLayoutLeavesOtherFoldersAlone(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine"), []byte("1"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := (Client{}).Layout(t.Context(), dir, "", bundleImage(t)); err == nil || hint.Of(err) == "" {
		t.Errorf("got %v, want an error with a fix", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("the folder holds %v", entries)
	}
}

// TestDamaged changes a byte in each file of a layout in turn.
func TestDamaged(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "layout")
	if err := (Client{}).Layout(t.Context(), dir, "", bundleImage(t)); err != nil {
		t.Fatal(err)
	}
	blobs, err := filepath.Glob(filepath.Join(dir, "blobs", "sha256", "*"))
	if err != nil || len(blobs) == 0 {
		t.Fatalf("no blobs: %v", err)
	}
	for _, blob := range blobs {
		data, err := os.ReadFile(blob)
		if err != nil {
			t.Fatal(err)
		}
		for name, bad := range map[string][]byte{
			"changed": append(bytes.Clone(data[:len(data)/2]), append([]byte{data[len(data)/2] ^ 1}, data[len(data)/2+1:]...)...),
			"short":   data[:len(data)/2],
			"empty":   {},
		} {
			if err := os.WriteFile(blob, bad, 0o644); err != nil {
				t.Fatal(err)
			}
			if content, err := (Client{}).Unpack(t.Context(), dir); err == nil {
				content.Close()
				t.Errorf("%s, %s: it was unpacked", filepath.Base(blob), name)
			}
		}
		if err := os.WriteFile(blob, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHostileArchives(t *testing.T) {
	config := func(diffs ...string) string {
		data, err := json.Marshal(map[string]any{"config": map[string]any{"Labels": catalogLabels}, "rootfs": map[string]any{"type": "layers", "diff_ids": diffs}})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	const zero = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	for name, test := range map[string]struct {
		entries []entry
		err     string
	}{
		"traversal":                   {[]entry{{name: "../../x", body: "1"}}, "leads out of the archive"},
		"a deep path":                 {[]entry{{name: strings.Repeat("d/", maxDepth+1) + "x", body: "1"}}, "folders deep"},
		"a link that only looks deep": {[]entry{{name: "manifest.json", kind: tar.TypeLink, link: strings.Repeat("./", maxDepth+1) + "x"}}, "which is not there"},
		"a deep link":                 {[]entry{{name: "manifest.json", kind: tar.TypeSymlink, link: strings.Repeat("d/", maxDepth+1) + "x"}}, "folders deep"},
		"a link to itself":            {[]entry{{name: "manifest.json", kind: tar.TypeSymlink, link: "manifest.json"}}, "in circles"},
		"a link out":                  {[]entry{{name: "manifest.json", kind: tar.TypeSymlink, link: "/etc/passwd"}}, "which is not there"},
		"a bomb":                      {[]entry{{name: "zeros", size: 1 << 17}}, "more than olmkit keeps"},
		"no image":                    {[]entry{{name: "a", body: "1"}}, "no image"},
		"a configuration elsewhere":   {[]entry{{name: "manifest.json", body: `[{"Config":"../../../etc/passwd"}]`}}, "read the configuration"},
		"a layer elsewhere": {[]entry{
			{name: "manifest.json", body: `[{"Config":"c","Layers":["../../../etc/passwd"]}]`}, {name: "c", body: config(zero)},
		}, "escapes"},
		"more layers than it says": {[]entry{
			{name: "manifest.json", body: `[{"Config":"c","Layers":["l"]}]`}, {name: "c", body: config()}, {name: "l", body: "1"},
		}, "damaged"},
		"a layer that is another": {[]entry{
			{name: "manifest.json", body: `[{"Config":"c","Layers":["l"]}]`}, {name: "c", body: config(zero)}, {name: "l", body: string(tarOf(t, entry{name: "configs/a", body: "1"}))},
		}, "damaged"},
		"many layers": {[]entry{
			{name: "manifest.json", body: `[{"Config":"c","Layers":[` + strings.TrimSuffix(strings.Repeat(`"l",`, maxLayers+1), ",") + `]}]`},
			{name: "c", body: config(slices.Repeat([]string{zero}, maxLayers+1)...)}, {name: "l", body: "1"},
		}, "257 layers"},
		"two images":      {[]entry{{name: "manifest.json", body: `[{},{}]`}}, "2 images"},
		"an empty layout": {[]entry{{name: "oci-layout", body: `{}`}, {name: "index.json", body: `{}`}}, "0 images"},
		"a broken layout": {[]entry{{name: "oci-layout", body: `{}`}, {name: "index.json", body: `]`}}, "read OCI layout"},
		"a layout with a blob that is not there": {[]entry{
			{name: "oci-layout", body: `{}`},
			{name: "index.json", body: `{"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"` + zero + `","size":1}]}`},
		}, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			file := filepath.Join(t.TempDir(), "a.tar")
			if err := os.WriteFile(file, tarOf(t, test.entries...), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := Client{}.unpack(t.Context(), file, tight)
			if err == nil || !strings.Contains(err.Error(), test.err) || hint.Of(err) == "" {
				t.Errorf("got %v, want an error with %q and a fix", err, test.err)
			}
			if left, _ := os.ReadDir(os.Getenv("TMPDIR")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestIs(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "catalog.yaml")
	if err := os.WriteFile(plain, []byte("schema: olm.package\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]bool{
		plain:                         false,
		dir:                           false,
		"-":                           false,
		"./missing/catalog":           false,
		"catalog/missing":             false,
		"missing.yaml":                false,
		"/quay.io/team/app":           false,
		"quay.io/team/app":            true,
		"quay.io/team/app:v1":         true,
		"localhost/app":               true,
		"localhost:5000/app@sha256:0": false,
		"registry:5000/app":           true,
	} {
		if got := Is(ref); got != want {
			t.Errorf("Is(%q) is %v", ref, got)
		}
	}
}

// FuzzUnpack reads bytes as an archive: whatever they are it must end in content or an error, and leave nothing behind.
func FuzzUnpack(f *testing.F) {
	f.Add(tarOf(f, entry{name: "manifest.json", body: `[{"Config":"c","Layers":["l"]}]`}, entry{name: "c", body: `{"config":{"Labels":{"` + labelConfigs + `":"/configs"}}}`}))
	f.Add(tarOf(f, entry{name: "oci-layout", body: `{}`}, entry{name: "index.json", body: `{"manifests":[{"digest":"sha256:00"}]}`}))
	f.Add(tarOf(f, entry{name: "a", kind: tar.TypeSymlink, link: "../b"}))
	f.Add([]byte{0x1f, 0x8b, 8, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		t.Setenv("TMPDIR", t.TempDir())
		file := filepath.Join(t.TempDir(), "a.tar")
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
		if content, err := (Client{}).unpack(t.Context(), file, tight); err == nil {
			content.Close()
		}
		if left, _ := os.ReadDir(os.Getenv("TMPDIR")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

// FuzzLayers reads bytes as a layer of an image that is otherwise sound.
func FuzzLayers(f *testing.F) {
	f.Add(tarOf(f, entry{name: "configs/p/catalog.yaml", body: "schema: olm.package\n"}))
	f.Add(tarOf(f, entry{name: "configs", kind: tar.TypeSymlink, link: "/etc"}, entry{name: "configs/passwd", body: "x"}))
	f.Add(tarOf(f, entry{name: "configs/.wh..wh..opq"}, entry{name: "configs/.wh.a"}, entry{name: "configs/a", kind: tar.TypeLink, link: "configs/a"}))
	f.Add([]byte{0x28, 0xb5, 0x2f, 0xfd})
	f.Fuzz(func(t *testing.T, data []byte) {
		t.Setenv("TMPDIR", t.TempDir())
		u, err := newUnpacker(tight, true, func(string) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(u.dir)
		for range 2 { // layers
			if u.add(t.Context(), bytes.NewReader(data)) != nil {
				return
			}
		}
		outside := t.TempDir()
		if err := u.tree(t.Context(), filepath.Join(outside, "root"), func(name string) string { return name }); err != nil {
			return
		}
		if left, err := os.ReadDir(outside); err != nil || len(left) != 1 {
			t.Errorf("beside the root: %v (%v)", left, err)
		}
	})
}

// FuzzReference: no text that is meant to name an image makes anything panic, and what has a digest stays as it is.
func FuzzReference(f *testing.F) {
	for _, s := range []string{"", "a", "quay.io/a/b:c", "localhost:5000/a@sha256:" + strings.Repeat("0", 64), "a:b:c", "@", "quay.io/", "http://x", "[::1]:5000/a", "./a.tar", "-"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		Is(s)
		ref, err := Client{}.parse(s)
		if err != nil {
			if hint.Of(err) == "" {
				t.Errorf("no fix for: %v", err)
			}
			return
		}
		ref.Context()
		if strings.Contains(s, "@") {
			if got, err := (Client{}).Pinned(t.Context(), s); err != nil || got != s {
				t.Errorf("%q pinned is %q (%v)", s, got, err)
			}
		}
	})
}
