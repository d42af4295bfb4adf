package embedded

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"

	"github.com/olmkit/olmkit/internal/progress"
)

//go:generate go run ./internal/pack ../../../tools/olmv1 olmv1.txtar

// olmV1Module is the module in tools/olmv1, as componentsModule is of the cluster's.
//
//go:embed olmv1.txtar
var olmV1Module []byte

const operatorControllerModule = "github.com/operator-framework/operator-controller"

// olmV1Components are the two programs of OLM v1. Nobody builds them who does not ask for it.
var olmV1Components = func() *componentSet {
	// Without the first tag the libraries for images need C; the linker makes the programs say their version.
	flags := []string{"-tags", "containers_image_openpgp", "-ldflags",
		fmt.Sprintf("-s -w -X %s/internal/shared/version.gitVersion=%s", operatorControllerModule, OLMv1Version)}
	return &componentSet{
		name:   "olm-v1",
		module: olmV1Module,
		says:   "OLM v1 " + OLMv1Version,
		takes:  "2 to 5 min",
		programs: []componentProgram{
			{"catalogd", operatorControllerModule + "/cmd/catalogd", flags},
			{"operator-controller", operatorControllerModule + "/cmd/operator-controller", flags},
		},
	}
}()

// OLMv1Programs pulls or builds operator-controller and catalogd unless the cache has them, and returns their files by their names.
func OLMv1Programs(ctx context.Context, from Source, p *progress.Printer) (map[string]string, error) {
	dir, err := obtain(ctx, olmV1Components, from, p)
	if err != nil {
		return nil, err
	}
	programs := map[string]string{}
	for _, name := range olmV1Components.files() {
		programs[name] = filepath.Join(dir, name)
	}
	return programs, nil
}
