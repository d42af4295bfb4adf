package judge

import (
	"maps"
	"testing"

	"github.com/olmkit/olmkit/internal/finding"
)

// TestHealthWords: conditions by type, and fields in one word or number that are called so; no times, names or generations.
func TestHealthWords(t *testing.T) {
	type m = map[string]any
	got := HealthWords(m{
		"phase": "Running", "readyReplicas": int64(2), "ready": true, "observedGeneration": int64(3), "serviceName": "tea", "readiness": "x",
		"nodes":      m{"availableNodes": int64(1), "primaryReady": false},
		"conditions": []any{m{"type": "Ready", "status": "True", "lastTransitionTime": "now"}, m{"status": "True"}, m{"type": "ReconcileSuccess", "status": "True"}, "odd"},
		"tls":        m{"ready": true, "availableVersion": int64(3)},
		"members":    []any{m{"phase": "Running"}},
	})
	want := map[string]string{
		"status.phase": "Running", "status.readyReplicas": "2", "status.ready": "true", "status.nodes.availableNodes": "1", "status.tls.ready": "true", "status.nodes.primaryReady": "false",
		"status.conditions[Ready]": "True",
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// TestUnlooked: a status that says that an object is well before its pods run is found where the old version's did not, and only there.
func TestUnlooked(t *testing.T) {
	type words = map[string]string
	const ready, phase, count, flag, other = "status.conditions[Ready]", "status.phase", "status.readyReplicas", "status.ready", "status.conditions[Available]"
	told := func(unready bool, before, then words) Readiness { return Readiness{unready, before, then, true} }
	honest := told(true, words{ready: "False", phase: "Pending"}, words{ready: "True", phase: "Running", count: "2", flag: "true"})
	for name, c := range map[string]struct {
		was, is Readiness
		says    string
		warning bool
	}{
		"the old version took its time, whatever ran": {was: Readiness{true, honest.Before, honest.Then, false}, is: told(true, honest.Then, honest.Then)},
		"as before":                           {was: honest, is: honest},
		"the condition is early":              {was: honest, is: told(true, words{ready: "True", phase: "Pending"}, honest.Then), says: ready + " True"},
		"all of it is early":                  {was: honest, is: told(true, honest.Then, honest.Then), says: ready + " True, " + phase + " Running, " + flag + " true, " + count + " 2"},
		"the number is early":                 {was: honest, is: told(true, words{ready: "False", count: "2"}, honest.Then), says: count + " 2"},
		"the number of a larger object":       {was: honest, is: told(true, words{ready: "False", count: "5"}, words{ready: "True", count: "5"}), says: count + " 5"},
		"the flag of a part":                  {was: told(true, words{ready: "False"}, words{ready: "True", "status.tls.ready": "true"}), is: told(true, words{ready: "False", "status.tls.ready": "true"}, words{ready: "True", "status.tls.ready": "true"})},
		"the flag is early":                   {was: honest, is: told(true, words{ready: "False", flag: "true"}, honest.Then), says: flag + " true"},
		"a word, and the condition does tell": {was: honest, is: told(true, words{ready: "False", phase: "Running"}, honest.Then)},
		"the only word is early":              {was: told(true, words{phase: "Pending"}, words{phase: "Running"}), is: told(true, words{phase: "Running"}, words{phase: "Running"}), says: phase + " Running"},
		"another condition tells now": {
			was: honest, is: told(true, words{ready: "True", other: "False"}, words{ready: "True", other: "True", phase: "Running"}), says: ready + " True", warning: true,
		},
		"the old version did the same":   {was: told(true, honest.Then, honest.Then), is: told(true, honest.Then, honest.Then)},
		"the old version said nothing":   {was: told(true, words{}, honest.Then), is: told(true, honest.Then, honest.Then)},
		"its pods ran already":           {was: honest, is: told(false, honest.Then, honest.Then)},
		"the pods of the old one did":    {was: told(false, honest.Before, honest.Then), is: told(true, honest.Then, honest.Then)},
		"it says another word now":       {was: told(true, words{phase: "Pending"}, words{phase: "Running"}), is: told(true, words{phase: "Deployed"}, words{phase: "Deployed"})},
		"it is asked for more, later on": {was: honest, is: told(true, words{ready: "True", count: "2"}, words{ready: "False", count: "3"})},
		"a condition that ends":          {was: told(true, words{other: "True"}, words{other: "False"}), is: told(true, words{other: "False"}, words{other: "False"})},
		"nothing runs of the new one":    {was: honest, is: told(true, words{ready: "False", count: "0"}, words{ready: "False", count: "0"})},
		"nothing runs after all":         {was: told(true, words{ready: "False"}, words{ready: "True", count: "0"}), is: told(true, words{ready: "False", count: "0"}, words{ready: "True", count: "0"})},
	} {
		found := unlooked("v1", "v2", New{Readiness: c.was}, New{Sample: "Tea/a", Readiness: c.is})
		if c.says == "" {
			if len(found) > 0 {
				t.Errorf("%s: %s", name, found[0].Message)
			}
			continue
		}
		want := "with v2 the status of a new object like it says " + c.says + " while none of its pods runs; with v1 it did so once they ran"
		severity := finding.Error
		if c.warning {
			severity = finding.Warning
		}
		if len(found) != 1 || found[0].Message != want || found[0].Severity != severity {
			t.Errorf("%s: %+v", name, found)
		}
	}
}
