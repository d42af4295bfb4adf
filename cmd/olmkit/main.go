// Command olmkit packages operators for OLM and proves their upgrades.
package main

import (
	"os"

	"github.com/olmkit/olmkit/internal/cli"
)

func main() {
	os.Exit(cli.Main())
}
