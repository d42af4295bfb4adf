// Command olmkit packages operators for OLM and proves their upgrades.
package main

import (
	"os"

	"github.com/olmkit/olmkit/internal/cli"
	"github.com/olmkit/olmkit/internal/cluster/embedded"
)

func main() {
	embedded.Main()
	os.Exit(cli.Main())
}
