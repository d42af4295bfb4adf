package judge

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/olmkit/olmkit/internal/observe"
)

// TestTakenSecrets: a container that goes on has to get what it read, in whatever way, or another Secret in its place.
func TestTakenSecrets(t *testing.T) {
	const (
		byVariable = "{containers: [{name: tea, env: [{name: KEY, valueFrom: {secretKeyRef: {name: key, key: a}}}]}]}"
		byAll      = "{containers: [{name: tea, envFrom: [{secretRef: {name: key}}]}]}"
		byVolume   = "{containers: [{name: tea, volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, secret: {secretName: key}}]}"
		projected  = "{containers: [{name: tea, volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, projected: {sources: [{secret: {name: key}}]}}]}"
		another    = "{containers: [{name: tea, envFrom: [{secretRef: {name: other}}]}]}"
		none       = "{containers: [{name: tea}]}"
		unmounted  = "{containers: [{name: tea}], volumes: [{name: v, secret: {secretName: key}}]}"
		handedOn   = "{initContainers: [{name: setup, envFrom: [{secretRef: {name: key}}]}], containers: [{name: tea}]}"
		elsewhere  = "{containers: [{name: cup}]}"
	)
	workload := func(spec string) observe.Operand {
		var content map[string]any
		if err := yaml.Unmarshal([]byte(spec), &content); err != nil {
			t.Fatal(err)
		}
		return observe.Operand{Kind: "Deployment", Namespace: "n", Name: "tea", Content: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": content}}}}
	}
	there := map[string]observe.Operand{"Secret/n/key": {}, "Secret/n/other": {}}
	for name, c := range map[string]struct {
		was, is string
		gone    bool
		want    string
	}{
		"a variable goes":         {was: byVariable, is: none, want: "key"},
		"all variables go":        {was: byAll, is: none, want: "key"},
		"a volume goes":           {was: byVolume, is: none, want: "key"},
		"a mount goes":            {was: projected, is: unmounted, want: "key"},
		"in another way":          {was: byVariable, is: projected},
		"by another container":    {was: byAll, is: handedOn},
		"another in its place":    {was: byVolume, is: another},
		"the container goes":      {was: byVariable, is: elsewhere},
		"the Secret goes, too":    {was: byVariable, is: none, gone: true},
		"there was none":          {was: none, is: none},
		"one that nobody mounted": {was: unmounted, is: none},
	} {
		after := there
		if c.gone {
			after = nil
		}
		if got := strings.Join(takenSecrets(workload(c.was), workload(c.is), after), ", "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
