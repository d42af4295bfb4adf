package subscription

import (
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/yaml"
)

// FuzzGenerate: whatever the names are, the manifests are refused or can be applied: valid YAML that says them again.
func FuzzGenerate(f *testing.F) {
	f.Add("etcd", "stable", "ns", "quay.io/a/b:c", "AllNamespaces", "")
	f.Add("a: b", "\n---\nkind: Secret", "ns", "x", "SingleNamespace", "one")
	f.Add("yes", "1.0", "ns", "null", "MultiNamespace", "one,two,two")
	f.Add("p", "\xc3\x28", "ns", "x", "OwnNamespace", "")
	f.Fuzz(func(t *testing.T, pkg, channel, namespace, image, mode, targets string) {
		written, err := Generate(Options{
			Package: pkg, Channel: channel, Namespace: namespace, Approval: v1alpha1.ApprovalManual, Mode: v1alpha1.InstallModeType(mode),
			Targets: strings.FieldsFunc(targets, func(r rune) bool { return r == ',' }), Source: Source{Name: "c", Image: image, CatalogDir: "/configs"},
		})
		if err != nil {
			return
		}
		documents := strings.Split(string(written), "\n---\n")
		var s v1alpha1.Subscription
		if err := yaml.UnmarshalStrict([]byte(documents[len(documents)-1]), &s); err != nil {
			t.Fatalf("%v:\n%s", err, written)
		}
		if s.Spec == nil || s.Spec.Package != pkg || s.Spec.Channel != channel {
			t.Errorf("package %q, channel %q:\n%s", pkg, channel, written)
		}
	})
}
