package embedded

import (
	"context"
	_ "embed"
	"os"
	"path/filepath"

	"golang.org/x/tools/txtar"

	"github.com/olmkit/olmkit/internal/progress"
)

const olmModule = "github.com/operator-framework/operator-lifecycle-manager"

// olmModules holds, below a folder for each minor, go.mod and go.sum of a module that requires one of otherOLMReleases and nothing else:
// the digest of that release covers its own go.mod and go.sum, by which it is built. 'make olm-modules' writes it.
//
//go:embed olm.txtar
var olmModules []byte

// olmDefinitions is the file with the CustomResourceDefinitions of a release that olmkit does not have itself.
const olmDefinitions = "crds.yaml"

// olmComponents are the programs of OLMVersion, in the folder olm that is the root of their image.
var olmComponents = &componentSet{
	name:     "olm-v0",
	module:   componentsModule,
	says:     "OLM " + OLMVersion,
	takes:    "1 to 3 min",
	programs: olmPrograms(kubernetesStamp(KubernetesVersion)),
}

// olmComponentsOf are the programs, and the CustomResourceDefinitions, of release, one of OLMReleases.
func olmComponentsOf(release string) *componentSet {
	if release == OLMVersion {
		return olmComponents
	}
	return &componentSet{
		name:      "olm-v" + minorOf(release),
		module:    txtar.Format(&txtar.Archive{Files: filesBelow(minorOf(release), olmModules)}),
		says:      "OLM " + release,
		takes:     "2 to 5 min",
		within:    olmModule,
		programs:  olmPrograms("-s -w -X " + olmModule + "/pkg/version.OLMVersion=" + release),
		documents: map[string]string{olmDefinitions: filepath.Join("deploy", "chart", "crds")},
	}
}

// olmPrograms are OLM v0's two operators, linked with the linker's flags.
func olmPrograms(linked string) []componentProgram {
	flags := []string{"-ldflags", linked}
	return []componentProgram{
		{filepath.Join("olm", "bin", "olm"), olmModule + "/cmd/olm", flags},
		{filepath.Join("olm", "bin", "catalog"), olmModule + "/cmd/catalog", flags},
	}
}

// olmImages are the images of a release of OLM v0 and what they run; dirs is the folder of its components, or none.
func olmImages(release string, dirs ...string) map[string]string {
	images := map[string]string{}
	for _, dir := range dirs {
		images[olmImage(release)] = filepath.Join(dir, "olm")
	}
	return images
}

// OLMDefinitions pulls or builds a release of OLM v0 unless the cache has it, and returns its CustomResourceDefinitions as YAML; nil for
// OLMVersion, whose definitions olmkit has itself.
func OLMDefinitions(ctx context.Context, release string, from Source, p *progress.Printer) ([]byte, error) {
	if release == OLMVersion {
		return nil, nil
	}
	dir, err := obtain(ctx, olmComponentsOf(release), from, p)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, olmDefinitions))
}
