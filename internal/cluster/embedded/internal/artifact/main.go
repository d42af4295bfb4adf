//go:build linux

// Command artifact makes what releases of olmkit pull the components of embedded clusters, and kind, from, an index of images, as an OCI
// archive or on a registry, and prints its digest or its reference by digest.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/olmkit/olmkit/internal/cluster/embedded"
	"github.com/olmkit/olmkit/internal/cluster/embedded/sandbox"
	"github.com/olmkit/olmkit/internal/hint"
	"github.com/olmkit/olmkit/internal/image"
	"github.com/olmkit/olmkit/internal/progress"
)

func main() {
	sandbox.Main()
	archs := flag.String("arch", "amd64,arm64", "architectures, as Go calls them")
	file := flag.String("output", "", "write an OCI archive to this file")
	ref := flag.String("push", "", "push to this tag of a registry")
	flag.Parse()
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt)
	made, err := publish(ctx, *file, *ref, embedded.ArtifactOptions{
		Architectures: strings.Split(*archs, ","),
		Parts:         embedded.Parts{Kubernetes: []string{embedded.KubernetesVersion}, OLMv0: []string{embedded.OLMVersion}, OLMv1: true, Kind: true},
		Progress:      progress.New(os.Stderr),
	})
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n%s\n", err, hint.Of(err))
		os.Exit(1)
	}
	fmt.Println(made)
}

// publish writes or pushes the artifact, and returns what it can be pulled by.
func publish(ctx context.Context, file, ref string, o embedded.ArtifactOptions) (string, error) {
	if (file == "") == (ref == "") {
		return "", errors.New("give either -output FILE or -push REF")
	}
	made, err := embedded.MakeArtifact(ctx, o)
	if err != nil {
		return "", err
	}
	client := image.Client{}
	if ref != "" {
		return client.Push(ctx, ref, made)
	}
	if err := client.Archive(ctx, file, "", made); err != nil {
		return "", err
	}
	digest, err := made.Digest()
	return digest.String(), err
}
