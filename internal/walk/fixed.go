package walk

import (
	"github.com/olmkit/olmkit/internal/observe"
)

// unchangeable are the fields of each kind that nobody can change once it is made (k8s.io/kubernetes v1.36.3 pkg/apis/core/validation and pkg/apis/apps/validation): what is there does not show that
// a release makes them otherwise.
var unchangeable = map[string][]string{
	"ConfigMap":         {"immutable"},
	observe.KindSecret:  {"immutable"},
	observe.KindClaim:   {"spec.storageClassName", "spec.volumeMode", "spec.accessModes[0]"},
	"RoleBinding":       {"roleRef.kind", "roleRef.name"},
	"StatefulSet":       {"spec.podManagementPolicy", "spec.serviceName"},
	"Job":               {"spec.completionMode"},
	observe.KindService: {"spec.clusterIP"},
}

// fixedOf is what operands that were made directly for a variant say in fields that stay as they are, by what each is called and the field. The address of a Service counts only if it has none.
func (o *newObject) fixedOf(operands map[string]observe.Operand) map[string]string {
	said := map[string]string{}
	for _, made := range operands {
		if !made.Direct || len(unchangeable[made.Kind]) == 0 {
			continue
		}
		values := valuesByName(made.Content)
		for _, field := range unchangeable[made.Kind] {
			value := values[field]
			if made.Kind == observe.KindService && value != "None" {
				value = "an address"
			}
			said[o.called(made)+" "+field] = o.plain(value)
		}
	}
	return said
}
