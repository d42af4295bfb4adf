// Command olmkit resolves with operator-controller's own code, which is internal: for each line of its standard input, a catalog, a
// channel and what is installed, it prints the bundle that OLM v1 takes, or an empty line. The test of internal/graph runs it.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operator-framework/operator-registry/alpha/declcfg"

	ocv1 "github.com/operator-framework/operator-controller/api/v1"
	"github.com/operator-framework/operator-controller/internal/operator-controller/resolve"
)

type request struct {
	Catalog       []json.RawMessage
	Channel       string
	Installed     string
	Version       string
	SelfCertified bool
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(resolved(r))
	}
}

func resolved(r request) string {
	resolver := resolve.CatalogResolver{
		WalkCatalogsFunc: func(ctx context.Context, _ string, f resolve.CatalogWalkFunc, _ ...client.ListOption) error {
			fbc, err := declcfg.LoadReader(bytes.NewReader(bytes.Join(rawOf(r.Catalog), []byte("\n"))))
			catalog := &ocv1.ClusterCatalog{}
			catalog.Name = "catalog"
			return f(ctx, catalog, fbc, err)
		},
	}
	ext := &ocv1.ClusterExtension{}
	ext.Spec.Source.Catalog = &ocv1.CatalogFilter{PackageName: "p", UpgradeConstraintPolicy: ocv1.UpgradeConstraintPolicyCatalogProvided}
	if r.Channel != "" {
		ext.Spec.Source.Catalog.Channels = []string{r.Channel}
	}
	if r.SelfCertified {
		ext.Spec.Source.Catalog.UpgradeConstraintPolicy = ocv1.UpgradeConstraintPolicySelfCertified
	}
	var installed *ocv1.BundleMetadata
	if r.Installed != "" {
		installed = &ocv1.BundleMetadata{Name: r.Installed, Version: r.Version}
	}
	bundle, _, _, err := resolver.Resolve(context.Background(), ext, installed)
	if err != nil {
		return ""
	}
	return bundle.Name
}

func rawOf(messages []json.RawMessage) [][]byte {
	all := make([][]byte, len(messages))
	for i, m := range messages {
		all[i] = m
	}
	return all
}
