// Command olmkit packages operators for OLM and proves their upgrades.
package main

import (
	"os"

	"github.com/olmkit/olmkit/internal/cli"
	"github.com/olmkit/olmkit/internal/cluster/embedded"
	"github.com/olmkit/olmkit/internal/start"
)

func main() {
	start.Main()
	embedded.Main()
	os.Exit(cli.Main(start.Collect))
}
