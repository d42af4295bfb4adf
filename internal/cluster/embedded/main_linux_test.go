package embedded

import (
	"os"
	"testing"

	"github.com/olmkit/olmkit/internal/cluster/embedded/sandbox"
)

// TestMain is what tests start of this program, too: a process in namespaces, a host, one that prints its limits.
func TestMain(m *testing.M) {
	sandbox.Main()
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case hostArgument:
			serveReady()
		case limitsArgument:
			printRaisedLimits()
			return
		}
	}
	if len(os.Args) == 4 && os.Args[1] == pullArgument {
		pullAlone(os.Args[2], os.Args[3])
	}
	os.Exit(m.Run())
}
