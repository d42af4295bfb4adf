package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/olmkit/olmkit/internal/cluster/existing"
	"github.com/olmkit/olmkit/internal/leftover"
)

func TestCleanupReport(t *testing.T) {
	removed := leftoverState{Object: leftover.Object{Kind: "Pod", Namespace: "n", Name: "a", Walk: "w1"}, Result: leftoverRemoved}
	kept := leftoverState{Object: leftover.Object{Kind: "Namespace", Name: "n", Walk: "w1"}, Result: leftoverKept, Why: "somebody needs it", Fix: "ask"}
	for name, test := range map[string]struct {
		leftovers []leftoverState
		want      string
		err       string
	}{
		"nothing":        {nil, "nothing is left of walks on cluster staging\n", ""},
		"all is removed": {[]leftoverState{removed}, "RESULT   OBJECT   WALK\nremoved  Pod/n/a  w1\n", ""},
		"something stays": {[]leftoverState{removed, kept},
			"RESULT   OBJECT       WALK\nremoved  Pod/n/a      w1\nkept     Namespace/n  w1\n\nNamespace/n stays: somebody needs it\n  fix: ask\n",
			"1 of 2 objects that walks left stay on cluster staging"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errOut strings.Builder
			r := cleanupReport{Cluster: "staging", Leftovers: test.leftovers, Unread: []string{"list secrets: forbidden"}}
			s := &session{Streams: Streams{Out: &out, Err: &errOut}}
			if err := r.print(s, "text"); err == nil && test.err != "" || err != nil && err.Error() != test.err {
				t.Errorf("it says %v", err)
			}
			if out.String() != test.want || !strings.Contains(errOut.String(), "it is not known whether there are more objects that walks left: list secrets: forbidden") {
				t.Errorf("it prints %q and %q", out.String(), errOut.String())
			}
			out.Reset()
			_ = r.print(s, "json")
			var read map[string]any
			if err := json.Unmarshal([]byte(out.String()), &read); err != nil || read["cluster"] != "staging" {
				t.Errorf("%v: %s", err, out.String())
			}
		})
	}
}

func TestCleanupUsage(t *testing.T) {
	for args, code := range map[string]int{
		"cleanup -o yaml":                          exitUsage,
		"cleanup tea pot":                          exitUsage,
		"cleanup --kubeconfig testdata/no-such":    exitFailed,
		"cleanup --kubeconfig testdata/no-such -q": exitFailed,
	} {
		var out, errOut strings.Builder
		if got := Run(t.Context(), Streams{In: strings.NewReader(""), Out: &out, Err: &errOut}, strings.Fields(args)); got != code || out.Len() > 0 || errOut.Len() == 0 {
			t.Errorf("%s: exit code %d\n%s%s", args, got, out.String(), errOut.String())
		}
	}
}

func TestCleanupCommand(t *testing.T) {
	for want, access := range map[string]existing.Options{
		"olmkit cleanup": {},
		"olmkit cleanup --kubeconfig k --context prod": {Kubeconfig: "k", Context: "prod"},
	} {
		if got := cleanupCommand(access); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A walk's id is the value of a label.
func TestWalkID(t *testing.T) {
	id, err := newWalkID(time.Date(2026, 2, 3, 4, 5, 6, 0, time.FixedZone("", 3600)))
	if err != nil || !strings.HasPrefix(id, "20260203-030506-") || len(validation.IsValidLabelValue(id)) > 0 {
		t.Errorf("%q: %v", id, err)
	}
}
