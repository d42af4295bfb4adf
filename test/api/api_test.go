// Package api_test records what the packages in pkg/ export, so that a change of it is seen in review.
package api_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "record the API anew")

func TestAPI(t *testing.T) {
	packages, err := filepath.Glob("../../pkg/*")
	if err != nil || len(packages) == 0 {
		t.Fatalf("no packages: %v", err)
	}
	for _, dir := range packages {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			doc := exec.CommandContext(t.Context(), "go", "doc", "-short", ".")
			doc.Dir = dir
			got, err := doc.Output()
			if err != nil {
				t.Fatalf("go doc: %v", err)
			}
			recorded := filepath.Join(dir, "api.txt")
			if *update {
				if err := os.WriteFile(recorded, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(recorded)
			if err != nil {
				t.Fatalf("%v: record it with 'go test ./test/api -update'", err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("the API has changed; if that is meant, record it with 'go test ./test/api -update':\n%s", diff)
			}
		})
	}
}
