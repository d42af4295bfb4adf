package catalog_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"

	"github.com/olmkit/olmkit/pkg/catalog"
)

func Example() {
	ctx := context.Background()
	c, err := catalog.Load(ctx, "testdata/catalog")
	if err != nil {
		log.Fatal(err)
	}
	packages, err := c.Packages()
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range packages {
		fmt.Println(p.Name, p.DefaultChannel, len(p.Bundles), "bundles")
	}
	// Output: tea-operator stable 3 bundles
}

func ExampleCatalog_Write() {
	c, err := catalog.Load(context.Background(), "testdata/catalog")
	if err != nil {
		log.Fatal(err)
	}
	var rendered bytes.Buffer
	if err := c.Write(&rendered, "yaml"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(bytes.SplitN(rendered.Bytes(), []byte("---\n"), 3)[1]))
	// Output:
	// schema: olm.package
	// name: tea-operator
	// defaultChannel: stable
}

func ExampleCatalog_Validate() {
	c, err := catalog.Load(context.Background(), "testdata/stranded.yaml")
	if err != nil {
		log.Fatal(err)
	}
	findings, err := c.Validate(catalog.ValidateOptions{Only: []string{"GRA"}})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range findings {
		fmt.Println(f)
	}
	// Output:
	// testdata/stranded.yaml:8:1: error GRA001: channel stable of package tea-operator has 2 heads, entries that no other replaces or skips: tea-operator.v1.0.0 (testdata/stranded.yaml:9:3), tea-operator.v1.1.1 (testdata/stranded.yaml:12:3)
	// testdata/stranded.yaml:11:3: info GRA006: tea-operator.v1.1.0 replaces tea-operator.v0.9.0, which the catalog does not contain
	// testdata/stranded.yaml:13:3: info GRA006: tea-operator.v1.1.1 replaces tea-operator.v0.9.0, which the catalog does not contain
}

func ExampleCatalog_Graph() {
	c, err := catalog.Load(context.Background(), "testdata/catalog")
	if err != nil {
		log.Fatal(err)
	}
	g, err := c.Graph("tea-operator", "stable")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("head:", g.Head)
	for _, e := range g.Edges {
		if e.Next {
			fmt.Println(e.From, "->", e.To, "by", e.Kind)
		}
	}
	// Output:
	// head: tea-operator.v1.1.1
	// tea-operator.v1.0.0 -> tea-operator.v1.1.1 by replaces
	// tea-operator.v1.1.0 -> tea-operator.v1.1.1 by skips
}

func ExampleGraph_Draw() {
	c, err := catalog.Load(context.Background(), "testdata/catalog")
	if err != nil {
		log.Fatal(err)
	}
	g, err := c.Graph("", "")
	if err != nil {
		log.Fatal(err)
	}
	if err := g.Draw(os.Stdout, "text"); err != nil {
		log.Fatal(err)
	}
	// Output:
	// package tea-operator, channel stable (default): tea-operator.v…
	//  * 1.1.1
	//    1.1.0  → 1.1.1  skips
	//    1.0.0  → 1.1.1  replaces, not 1.1.0 (replaces)
}

func ExampleCatalog_Plan() {
	c, err := catalog.Load(context.Background(), "testdata/catalog")
	if err != nil {
		log.Fatal(err)
	}
	plan, err := c.Plan(catalog.PlanOptions{Edges: "all"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("install", plan.Install)
	for _, hop := range plan.Hops {
		fmt.Println("upgrade", hop.From, "to", hop.To)
	}
	// Output:
	// install tea-operator.v1.0.0
	// upgrade tea-operator.v1.0.0 to tea-operator.v1.1.1
	// upgrade tea-operator.v1.0.0 to tea-operator.v1.1.0
	// upgrade tea-operator.v1.1.0 to tea-operator.v1.1.1
}
