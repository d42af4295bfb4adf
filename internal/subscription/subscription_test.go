package subscription

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
)

var update = flag.Bool("update", false, "write the golden files anew")

func options() Options {
	return Options{
		Package: "cafe-operator", Channel: "stable", Approval: v1alpha1.ApprovalAutomatic, Namespace: "cafe",
		Source: Source{Name: "cafe-catalog", Image: "registry.example.com/cafe/catalog:1", CatalogDir: "/configs"},
		Mode:   v1alpha1.InstallModeTypeAllNamespaces,
	}
}

func supported(modes ...v1alpha1.InstallModeType) []v1alpha1.InstallMode {
	var all []v1alpha1.InstallMode
	for _, mode := range []v1alpha1.InstallModeType{
		v1alpha1.InstallModeTypeOwnNamespace, v1alpha1.InstallModeTypeSingleNamespace,
		v1alpha1.InstallModeTypeMultiNamespace, v1alpha1.InstallModeTypeAllNamespaces,
	} {
		is := false
		for _, m := range modes {
			is = is || m == mode
		}
		all = append(all, v1alpha1.InstallMode{Type: mode, Supported: is})
	}
	return all
}

func TestGenerate(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"image": func(*Options) {},
		"polled": func(o *Options) {
			o.Source.Poll, o.Source.PullSecrets = 10*time.Minute, []string{"registry.example.com"}
			o.Mode, o.GroupExists = "", true
		},
		"digest": func(o *Options) {
			o.Source.Image, o.Source.Poll = "registry.example.com/cafe/catalog@sha256:"+strings.Repeat("0", 64), 10*time.Minute
		},
		"address": func(o *Options) {
			o.Source = Source{Name: "cafe-catalog", Address: "10.1.2.3:50051"}
			o.StartingCSV, o.Approval = "cafe-operator.v1.1.0", v1alpha1.ApprovalManual
			o.Mode = v1alpha1.InstallModeTypeOwnNamespace
		},
		"existing": func(o *Options) {
			o.Source = Source{Name: "hub", Namespace: "olm", Existing: true}
			o.Mode, o.Targets = v1alpha1.InstallModeTypeMultiNamespace, []string{"b", "a"}
			o.Config = &v1alpha1.SubscriptionConfig{Env: []corev1.EnvVar{{Name: "LOG", Value: "yes"}}}
			o.Supported = supported(v1alpha1.InstallModeTypeMultiNamespace)
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := options()
			change(&o)
			got, err := Generate(o)
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".yaml")
			if *update {
				if err := os.MkdirAll("testdata", 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("manifests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGenerateRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"AllNamespaces that the CSV does not support": {func(o *Options) { o.Supported = supported(v1alpha1.InstallModeTypeOwnNamespace) }, "AllNamespaces InstallModeType not supported"},
		"OwnNamespace that the CSV does not support": {func(o *Options) {
			o.Mode, o.Supported = v1alpha1.InstallModeTypeOwnNamespace, supported(v1alpha1.InstallModeTypeAllNamespaces)
		}, "OwnNamespace InstallModeType not supported"},
		"its own namespace among several, where that is not supported": {func(o *Options) {
			o.Mode, o.Targets, o.Supported = v1alpha1.InstallModeTypeMultiNamespace, []string{"cafe", "b"}, supported(v1alpha1.InstallModeTypeMultiNamespace)
		}, "OwnNamespace InstallModeType not supported"},
		"one namespace for several":     {func(o *Options) { o.Mode, o.Targets = v1alpha1.InstallModeTypeMultiNamespace, []string{"a", "a"} }, "MultiNamespace does not fit 1 namespaces"},
		"no namespace for one":          {func(o *Options) { o.Mode = v1alpha1.InstallModeTypeSingleNamespace }, "SingleNamespace does not fit 0 namespaces"},
		"namespaces for all":            {func(o *Options) { o.Targets = []string{"a"} }, "takes no namespaces"},
		"an install mode there is not":  {func(o *Options) { o.Mode = "Everywhere" }, `no install mode "Everywhere"`},
		"no catalog":                    {func(o *Options) { o.Source.Image = "" }, "a catalog has one source"},
		"two catalogs":                  {func(o *Options) { o.Source.Address = "a:1" }, "a catalog has one source"},
		"an approval there is not":      {func(o *Options) { o.Approval = "Never" }, `approval "Never"`},
		"a namespace that is no name":   {func(o *Options) { o.Namespace = "Café" }, `namespace "Café"`},
		"an interval below nothing":     {func(o *Options) { o.Source.Poll = -1 }, "poll interval -1ns"},
		"a pull secret, no name":        {func(o *Options) { o.Source.PullSecrets = []string{"A b"} }, `pull secret "A b"`},
		"a pull secret for no image":    {func(o *Options) { o.Source = Source{Name: "c", Address: "a:1", PullSecrets: []string{"a"}} }, "a pull secret is for a catalog image"},
		"a package without a name":      {func(o *Options) { o.Package, o.Name = "", "x" }, "no package is named"},
		"a namespace to watch, no name": {func(o *Options) { o.Targets = []string{""} }, `namespace to watch ""`},
	} {
		t.Run(name, func(t *testing.T) {
			o := options()
			test.change(&o)
			_, err := Generate(o)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestDefaultMode(t *testing.T) {
	for name, test := range map[string]struct {
		supported []v1alpha1.InstallMode
		want      v1alpha1.InstallModeType
	}{
		"unknown":   {nil, v1alpha1.InstallModeTypeAllNamespaces},
		"all":       {supported(v1alpha1.InstallModeTypeOwnNamespace, v1alpha1.InstallModeTypeAllNamespaces), v1alpha1.InstallModeTypeAllNamespaces},
		"own only":  {supported(v1alpha1.InstallModeTypeOwnNamespace, v1alpha1.InstallModeTypeSingleNamespace), v1alpha1.InstallModeTypeOwnNamespace},
		"many only": {supported(v1alpha1.InstallModeTypeMultiNamespace), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := DefaultMode(test.supported); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
