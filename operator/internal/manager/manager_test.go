package manager

import (
	"bytes"
	"errors"
	"flag"
	"strings"
	"testing"
)

// OLM mounts the webhooks' certificate where controller-runtime looks for it, and no flag says so.
func TestDefaultCertificateFolder(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	if err := Run(t.Context(), Release{}, []string{"-h"}, func(string) string { return "" }, &said); !errors.Is(err, flag.ErrHelp) {
		t.Fatal(err)
	}
	if want := `(default "/tmp/k8s-webhook-server/serving-certs")`; !strings.Contains(said.String(), want) {
		t.Errorf("the help lacks %s:\n%s", want, said.String())
	}
}
