package observe

import (
	"fmt"
	"strings"
	"testing"
)

// byName puts operands of one object under their names.
func byName(list ...Operand) map[string]Operand {
	all := map[string]Operand{}
	for _, o := range list {
		o.Namespace, o.Of = "n", "Pot/n/a"
		all[o.String()] = o
	}
	return all
}

// TestAddClaims finds the claims that pods mount, and no other.
func TestAddClaims(t *testing.T) {
	pod := Operand{Kind: "Pod", Name: "a-0", Claims: []string{KindClaim + "/n/data", KindClaim + "/n/absent"}}
	found := byName(pod)
	addClaims(found, map[string]Operand{
		KindClaim + "/n/data":  {Kind: KindClaim, Namespace: "n", Name: "data"},
		KindClaim + "/n/other": {Kind: KindClaim, Namespace: "n", Name: "other"},
	})
	if len(found) != 2 || found[KindClaim+"/n/data"].Of != "Pot/n/a" {
		t.Errorf("found %v", found)
	}
}

func TestHideSecrets(t *testing.T) {
	c := map[string]any{"data": map[string]any{"password": "aHVudGVyMg==", "user": "YQ=="}, "type": "Opaque"}
	hideSecrets("ConfigMap", c)
	if c["data"].(map[string]any)["user"] != "YQ==" {
		t.Error("a ConfigMap is hidden")
	}
	hideSecrets("Secret", c)
	if said := fmt.Sprint(c); strings.Contains(said, "aHVudGVyMg") || !strings.Contains(said, "(hidden) sha256:") || c["type"] != "Opaque" {
		t.Error(said)
	}
}
