package cli

import (
	"bytes"
	"encoding/json"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/olmkit/olmkit/internal/cluster/embedded"
)

func TestVersion(t *testing.T) {
	built := &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "41d4813ab90e"}, {Key: "vcs.time", Value: "2026-11-21T22:00:00Z"}, {Key: "vcs.modified", Value: "true"},
	}}
	text := versionOf(built).text()
	for _, want := range []string{
		"olmkit v1.2.3 go", "commit:     41d4813ab90e of 2026-11-21T22:00:00Z, modified\n",
		"Kubernetes: " + embedded.KubernetesVersion + "\n", "OLM:        " + embedded.OLMVersion + "\n", " v0.38.0 ", "kind:       " + embedded.KindVersion + "\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	if text := versionOf(nil).text(); !strings.Contains(text, "olmkit unknown ") || !strings.Contains(text, "commit:     unknown\n") {
		t.Errorf("without build information it says\n%s", text)
	}
	if embedded.ComponentsDigest("amd64") == embedded.ComponentsDigest("arm64") {
		t.Error("the components of two architectures have one digest")
	}
}

// TestVersionFlag: 'olmkit --version' prints the first line of 'olmkit version'.
func TestVersionFlag(t *testing.T) {
	printed := func(args ...string) string {
		var out, errOut bytes.Buffer
		if code := Run(t.Context(), Streams{Out: &out, Err: &errOut}, args); code != exitPassed || errOut.Len() > 0 {
			t.Fatalf("olmkit %s: exit code %d: %s", args, code, errOut.String())
		}
		return out.String()
	}
	first, _, _ := strings.Cut(printed("version"), "\n")
	if got := printed("--version"); got != first+"\n" {
		t.Errorf("it prints %q, want %q", got, first)
	}
}

func TestVersionJSON(t *testing.T) {
	var out, errOut bytes.Buffer
	if code := Run(t.Context(), Streams{Out: &out, Err: &errOut}, []string{"version", "-o", "json"}); code != exitPassed {
		t.Fatalf("exit code %d: %s", code, errOut.String())
	}
	var r versionReport
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if r.Version == "" || len(r.Components) != 16 || r.Kubernetes != embedded.KubernetesVersion || r.OLM != embedded.OLMVersion || r.Kind != embedded.KindVersion {
		t.Errorf("it says %+v", r)
	}
	if code := Run(t.Context(), Streams{Out: &out, Err: &errOut}, []string{"version", "-o", "yaml"}); code != exitUsage {
		t.Errorf("-o yaml: exit code %d", code)
	}
}
