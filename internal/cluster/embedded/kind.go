package embedded

import (
	"context"
	_ "embed"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/olmkit/olmkit/internal/progress"
)

//go:generate go run ./internal/pack ../../../tools/kind/kind kind.txtar

// kindModule is the module in tools/kind/kind, as componentsModule is of the cluster's.
//
//go:embed kind.txtar
var kindModule []byte

const kindModulePath = "sigs.k8s.io/kind"

// kindComponents are the program that makes kind clusters. olmkit runs it instead of linking its library, which looks up methods by
// names that it computes: with it the linker leaves all exported methods of all types in, 27 MB of them.
var kindComponents = &componentSet{
	name:      "kind",
	module:    kindModule,
	says:      "kind " + KindVersion,
	takes:     "up to a minute",
	programs:  []componentProgram{{"kind", kindModulePath, []string{"-ldflags", "-s -w"}}},
	anywhere:  true,
	otherwise: "put kind " + KindVersion + " on the PATH (https://kind.sigs.k8s.io)",
}

// KindProgram returns the file of kind's program: one of KindVersion on the PATH, or else the cache's, pulled or built unless it is there.
// With from.Build it is never the one on the PATH.
func KindProgram(ctx context.Context, from Source, p *progress.Printer) (string, error) {
	if !from.Build {
		if program := kindOnPath(ctx); program != "" {
			return program, nil
		}
	}
	dir, err := getKind(ctx, from, p)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, kindComponents.programs[0].file), nil
}

// getKind returns the folder of kind's program in the cache. Artifacts hold programs for Linux alone: on other systems it is built.
func getKind(ctx context.Context, from Source, p *progress.Printer) (string, error) {
	from.Build = from.Build || runtime.GOOS != "linux"
	return kindComponents.get(ctx, from, p)
}

// kindOnPath returns the program kind on the PATH if it is of KindVersion; else "". Of another version it may want other options, and
// has another node image.
func kindOnPath(ctx context.Context) string {
	program, err := exec.LookPath("kind")
	if err != nil {
		return ""
	}
	said, err := exec.CommandContext(ctx, program, "version", "--quiet").Output()
	if err != nil || "v"+strings.TrimSpace(string(said)) != KindVersion {
		return ""
	}
	return program
}
