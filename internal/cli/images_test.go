package cli

import (
	"io"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// TestImages: registries are asked when that is wished, for what a bundle and a catalog name, and a bundle's image is held to
// its labels.
func TestImages(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	dir := t.TempDir()
	const sound = "../check/testdata/sound"
	err := fs.WalkDir(os.DirFS(sound), ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(sound, file))
		if err != nil {
			return err
		}
		text := string(data)
		for _, n := range []string{"1", "2", "3"} {
			text = strings.ReplaceAll(text, "@sha256:"+strings.Repeat(n, 64), ":"+n)
		}
		target := filepath.Join(dir, "bundle", file)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		return os.WriteFile(target, []byte(strings.ReplaceAll(text, "registry.example.com", host)), 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	push := func(reference string, img v1.Image) {
		t.Helper()
		ref, err := name.NewTag(host + "/cafe/" + reference)
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(ref, img); err != nil {
			t.Fatal(err)
		}
	}
	made := func(architecture string) v1.Image {
		img, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: architecture, RootFS: v1.RootFS{Type: "layers"}})
		if err != nil {
			t.Fatal(err)
		}
		return img
	}
	push("prepare:1", made("amd64"))
	push("operator:2", made("arm64"))
	run := func(code int, args ...string) string {
		t.Helper()
		var out, complaint strings.Builder
		if got := Run(t.Context(), Streams{In: strings.NewReader(""), Out: &out, Err: &complaint}, args); got != code {
			t.Errorf("olmkit %v: exit code %d: %s%s", args, got, &out, &complaint)
		}
		return strings.Join(strings.Fields(out.String()+complaint.String()), " ") // as it was before it was wrapped
	}
	holds := func(text string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("no %q in\n%s", part, text)
			}
		}
	}
	bundle := filepath.Join(dir, "bundle")
	if said := run(exitPassed, "bundle", "validate", bundle); strings.Contains(said, "IMG005") || strings.Contains(said, "IMG006") {
		t.Errorf("a registry was asked: %s", said)
	}
	absent, foreign := "the registry does not have image "+host+"/cafe/cup:3", host+"/cafe/operator:2 of container manager is available for linux/arm64, but not for linux/amd64"
	holds(run(exitFindings, "bundle", "validate", bundle, "--images"), "error IMG005", absent, "warning IMG006", foreign)

	template := filepath.Join(dir, "template.yaml")
	if err := os.WriteFile(template, []byte("schema: olmkit.template\npackage: cafe-operator\nbundles: [bundle]\nchannels: {stable: [1.2.0]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "catalog.yaml")
	run(exitPassed, "catalog", "build", template, "--output-file", root)
	holds(run(exitFindings, "catalog", "validate", root, "--images", "--only", "IMG"), absent, foreign)
	holds(run(exitPassed, "catalog", "validate", root, "--template", template, "--only", "TPL"), "passed")
	data, err := os.ReadFile(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(root, append(data, "---\n{schema: olm.channel, package: cafe-operator, name: fast, entries: [{name: cafe-operator.v1.2.0}]}\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	holds(run(exitPassed, "catalog", "validate", root, "--template", template, "--only", "TPL"), "warning TPL001", "channel fast differs from the template: the channel is not in the template")

	run(exitPassed, "bundle", "push", bundle, host+"/cafe/bundle:1")
	if said := run(exitPassed, "bundle", "validate", host+"/cafe/bundle:1"); strings.Contains(said, "CSV038") {
		t.Errorf("olmkit labels it wrongly: %s", said)
	}
	ref, err := name.ParseReference(host + "/cafe/bundle:1")
	if err != nil {
		t.Fatal(err)
	}
	img, err := remote.Image(ref)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.Config.Labels["operators.operatorframework.io.bundle.channels.v1"] = "old"
	if img, err = mutate.ConfigFile(img, config); err != nil {
		t.Fatal(err)
	}
	push("bundle:2", img)
	holds(run(exitPassed, "bundle", "validate", host+"/cafe/bundle:2"), "warning CSV038", `bundle.channels.v1 is "old", but in annotations.yaml it is "stable,alpha"`)

	server.Close()
	holds(run(exitFailed, "bundle", "validate", bundle, "--images"), "error: image "+host)
}
