package embedded

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
)

//go:generate go run ./internal/pack ../../../tools/cluster components.txtar

// componentsModule is the module in tools/cluster, which pins and builds the components, as an archive: a module can't
// embed the files of another.
//
//go:embed components.txtar
var componentsModule []byte

// otherModules holds, below a folder for each minor, go.mod and go.sum of the module that builds otherReleases; its program is
// that of componentsModule. 'make kubernetes-modules' writes it.
//
//go:embed kubernetes.txtar
var otherModules []byte

// kubernetesModule is the archive of the module that builds the control plane of release, one of KubernetesReleases.
func kubernetesModule(release string) []byte {
	if release == KubernetesVersion {
		return componentsModule
	}
	archive := &txtar.Archive{Files: filesBelow(minorOf(release), otherModules)}
	program := slices.DeleteFunc(txtar.Parse(componentsModule).Files, func(f txtar.File) bool { return !strings.HasSuffix(f.Name, ".go") })
	archive.Files = append(archive.Files, program...)
	return txtar.Format(archive)
}

// filesBelow are those of the archive below a folder, by their names in it.
func filesBelow(folder string, archive []byte) []txtar.File {
	var files []txtar.File
	for _, f := range txtar.Parse(archive).Files {
		if name, ok := strings.CutPrefix(f.Name, folder+"/"); ok {
			files = append(files, txtar.File{Name: name, Data: f.Data})
		}
	}
	return files
}

// ComponentsDigest returns what tells the components for a Linux machine of the architecture arch from all others: the start of
// the digest of the module that they are built from.
func ComponentsDigest(arch string) string { return digestOf(componentsModule, arch) }

// digestOf is ComponentsDigest of any module.
func digestOf(module []byte, arch string) string {
	sum := sha256.New()
	for _, part := range [][]byte{module, []byte(arch)} {
		fmt.Fprintf(sum, "%d\n%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}
