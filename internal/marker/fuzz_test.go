package marker

import (
	"testing"

	"sigs.k8s.io/controller-tools/pkg/markers"
)

// FuzzMarker: no marker's text makes its parser panic.
func FuzzMarker(f *testing.F) {
	for _, s := range []string{
		`:displayName="a",order=1`, `:resources={{Deployment,v1,a},{Service,v1}}`, `:type=spec,xDescriptors={"a","b"}`, `:type=status,xDescriptors="a"`, ``, `:`, `=`, `:resources={{`, `:order=99999999999999999999`,
	} {
		f.Add(s)
	}
	onTypes := markers.Must(markers.MakeDefinition(name, markers.DescribesType, onType{}))
	onFields := markers.Must(markers.MakeDefinition(name, markers.DescribesField, onField{}))
	f.Fuzz(func(t *testing.T, s string) {
		_, _ = onTypes.Parse("+" + name + s)
		_, _ = onFields.Parse("+" + name + s)
	})
}
