//go:build linux

package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/olmkit/olmkit/internal/finding"
	"github.com/olmkit/olmkit/internal/report"
)

// TestInstallModes walks two hops of an operator that has permissions in its target namespaces alone: its own, another, or two others. The
// first hop is to a sound release. The second is to one that does not support the mode any more, or watches the wrong
// namespace, or one of two. In short it is the mode with two.
func TestInstallModes(t *testing.T) {
	for _, test := range []struct {
		mode   v1alpha1.InstallModeType
		defect func(*v1alpha1.ClusterServiceVersion)
		code   string // of the finding that tells
		says   string // part of its message
	}{
		{v1alpha1.InstallModeTypeOwnNamespace, func(csv *v1alpha1.ClusterServiceVersion) {
			support(csv, v1alpha1.InstallModeTypeAllNamespaces)
		}, "U101", "no install mode of memcached-operator.v0.1.1 is one of memcached-operator.v0.1.2"},
		{v1alpha1.InstallModeTypeSingleNamespace, func(csv *v1alpha1.ClusterServiceVersion) {
			watched(csv).ValueFrom.FieldRef.FieldPath = "metadata.namespace"
		}, "U509", ""},
		{v1alpha1.InstallModeTypeMultiNamespace, func(csv *v1alpha1.ClusterServiceVersion) {
			*watched(csv) = corev1.EnvVar{Name: "WATCH_NAMESPACE", Value: "memcached-operator-served"}
		}, "U509", "memcached-operator-served-2/"},
	} {
		if testing.Short() && test.mode != v1alpha1.InstallModeTypeMultiNamespace {
			continue
		}
		t.Run(string(test.mode), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			scoped(t, dir, test.mode, test.defect)
			asJSON := filepath.Join(dir, "report.json")
			manager := filepath.Join(root, "bin", "memcached-operator", "v0.1.0", "manager")
			r := run(t, nil, "upgrade", "test", filepath.Join(dir, "catalog.yaml"), "--timeout", "2m",
				"--image", "ghcr.io/olmkit/memcached-operator:v0.1.0="+manager, "--report", "json="+asJSON)
			var said report.Report
			if err := json.Unmarshal([]byte(read(t, asJSON)), &said); err != nil {
				t.Fatal(err)
			}
			if r.code != 3 || len(said.Hops) != 2 || said.Hops[0].Result != report.Passed || said.Hops[1].Result != report.Failed {
				t.Fatalf("exit code %d\n%s\n%s", r.code, r.errOut, r.out)
			}
			if !slices.ContainsFunc(said.Hops[1].All(), func(f finding.Finding) bool {
				return f.Code == test.code && f.Severity == finding.Error && strings.Contains(f.Subject.Object+f.Message+f.Cause, test.says)
			}) {
				t.Errorf("no %s that says %q\n%s", test.code, test.says, r.out)
			}
		})
	}
}

// watched is the variable that tells the release's manager which namespaces to watch.
func watched(csv *v1alpha1.ClusterServiceVersion) *corev1.EnvVar {
	env := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Env
	return &env[slices.IndexFunc(env, func(e corev1.EnvVar) bool { return e.Name == "WATCH_NAMESPACE" })]
}

// support has the release support one install mode only.
func support(csv *v1alpha1.ClusterServiceVersion, mode v1alpha1.InstallModeType) {
	for i := range csv.Spec.InstallModes {
		csv.Spec.InstallModes[i].Supported = csv.Spec.InstallModes[i].Type == mode
	}
}

// scoped writes to dir a catalog of three releases of the memcached operator that support mode alone and have permissions in
// the target namespaces, the last with a defect.
func scoped(t *testing.T, dir string, mode v1alpha1.InstallModeType, defect func(*v1alpha1.ClusterServiceVersion)) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const file = "manifests/memcached-operator.clusterserviceversion.yaml"
	for _, version := range []string{"0.1.0", "0.1.1", "0.1.2"} {
		to := filepath.Join(dir, version)
		must(os.CopyFS(to, os.DirFS(filepath.Join(root, "bundle/memcached-operator/0.1.0"))))
		var csv v1alpha1.ClusterServiceVersion
		must(yaml.Unmarshal([]byte(read(t, filepath.Join(to, file))), &csv))
		csv.Name = "memcached-operator.v" + version
		must(csv.Spec.Version.UnmarshalJSON(fmt.Appendf(nil, "%q", version)))
		support(&csv, mode)
		spec := &csv.Spec.InstallStrategy.StrategySpec
		spec.Permissions[0].Rules = append(spec.Permissions[0].Rules, spec.ClusterPermissions[0].Rules...)
		spec.ClusterPermissions = nil
		if version == "0.1.2" {
			defect(&csv)
		}
		data, err := yaml.Marshal(csv)
		must(err)
		must(os.WriteFile(filepath.Join(to, file), data, 0o600))
	}
	template := filepath.Join(dir, "template.yaml")
	must(os.WriteFile(template, []byte("{schema: olmkit.template, package: memcached-operator, bundles: [0.1.*], channels: {stable: [0.1.0, 0.1.1, 0.1.2]}}"), 0o600))
	if r := run(t, nil, "catalog", "build", template, "--output-file", filepath.Join(dir, "catalog.yaml")); r.code != 0 {
		t.Fatalf("%+v", r)
	}
}
