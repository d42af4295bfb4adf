// Command goreleaser checks that configurations of GoReleaser say only what it knows, as it reads them itself. The program
// GoReleaser has ten times the dependencies.
package main

import (
	"fmt"
	"os"

	"github.com/goreleaser/goreleaser/v2/pkg/config"
)

func main() {
	for _, file := range os.Args[1:] {
		if _, err := config.Load(file); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", file, err)
			os.Exit(1)
		}
	}
}
