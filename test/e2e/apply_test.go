//go:build linux

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/yaml"
)

// TestApplied applies with kubectl what 'subscription generate' writes, for each install mode, and sees the operator come; then
// it has OLM read a newer catalog, and sees the upgrade come.
func TestApplied(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	everyMode(t, dir, "0.1.0", "0.1.1")
	first, second := catalogOf(t, dir, "0.1.0"), catalogOf(t, dir, "0.1.0", "0.1.1")
	d := daily{T: t, name: "applied"}
	d.kubeconfig, d.config = up(t, d.name, "--olm", "--catalog", first)
	d.load("v0.1.0")

	for _, namespace := range []string{"tea", "milk", "sugar", "theirs"} {
		d.kubectl("", "create", "namespace", namespace)
	}
	d.kubectl(operatorGroup, "apply", "-f", "-")
	d.apply(first, "own", "--install-mode", "OwnNamespace", "--approval", "Manual")
	d.apply(first, "single", "--install-mode", "SingleNamespace=tea")
	d.apply(first, "multi", "--install-mode", "MultiNamespace=milk,sugar")
	d.apply(first, "theirs", "--operator-group", "existing")
	d.approve("own", "memcached-operator.v0.1.0")
	scoped := []string{"own", "single", "multi", "theirs"}
	for _, namespace := range scoped {
		d.comes(namespace, "memcached-operator.v0.1.0")
	}

	must(t, "cluster", "load", "--name", d.name, "--catalog", second)
	d.approve("own", "memcached-operator.v0.1.1")
	for _, namespace := range scoped {
		d.comes(namespace, "memcached-operator.v0.1.1")
	}

	// An operator of all namespaces has none beside it that provides the same API.
	for _, namespace := range scoped {
		d.kubectl("", "delete", "--namespace", namespace, "subscriptions.operators.coreos.com,clusterserviceversions.operators.coreos.com,operatorgroups.operators.coreos.com", "--all")
	}
	d.apply(second, "all")
	d.comes("all", "memcached-operator.v0.1.1")
	d.images()
}

// operatorGroup is one that an administrator made.
const operatorGroup = `{"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": {"name": "theirs", "namespace": "theirs"}, "spec": {"targetNamespaces": ["theirs"]}}`

// apply installs from the catalog that the cluster serves, to a namespace.
func (d daily) apply(catalog, namespace string, flags ...string) {
	d.Helper()
	d.kubectl(must(d.T, append([]string{"subscription", "generate", "--package", "memcached-operator", "--catalog", catalog, "--catalog-source", "olm/olmkit-catalog", "--namespace", namespace}, flags...)...).out, "apply", "-f", "-")
}

// approve approves the InstallPlan of a CSV, which OLM does not install before. It waits until OLM has said in the InstallPlan that it
// asks: one that is approved before, OLM makes another beside.
func (d daily) approve(namespace, csv string) {
	d.Helper()
	var plan string
	eventually(d.T, csv+" waits for an approval in "+namespace, func() error {
		plans := d.kubectl("", "get", "installplans.operators.coreos.com", "--namespace", namespace, "-o", `jsonpath={range .items[?(@.status.phase=="RequiresApproval")]}{.metadata.name}={.spec.clusterServiceVersionNames[0]} {end}`)
		for _, p := range strings.Fields(plans) {
			if name, of, _ := strings.Cut(p, "="); of == csv {
				plan = name
				return nil
			}
		}
		return fmt.Errorf("plans: %s", plans)
	})
	if there := d.kubectl("", "get", "clusterserviceversions.operators.coreos.com", "--namespace", namespace, "-o", "name"); strings.Contains(there, csv) {
		d.Errorf("%s was installed without an approval", csv)
	}
	d.kubectl("", "patch", "installplans.operators.coreos.com", plan, "--namespace", namespace, "--type", "merge", "-p", `{"spec": {"approved": true}}`)
}

// comes waits until a CSV is all that is installed in a namespace, and is well.
func (d daily) comes(namespace, csv string) {
	d.Helper()
	eventually(d.T, csv+" in "+namespace, func() error {
		if phase := d.kubectl("", "get", "clusterserviceversions.operators.coreos.com", "--namespace", namespace, "-o", "jsonpath={.items[*].metadata.name}={.items[*].status.phase}"); phase != csv+"=Succeeded" {
			return fmt.Errorf("it is %s", phase)
		}
		return nil
	})
}

// images applies a CatalogSource of an image that a tag names: OLM pulls it by the Secret, and looks for a newer one. The nodes
// of an embedded cluster pull nothing; on kind, TestKindApplied sees the operator come.
func (d daily) images() {
	d.kubectl(must(d.T, "subscription", "generate", "--package", "memcached-operator", "--channel", "stable", "--image", "example.com/team/catalog:latest", "--pull-secret", "registry", "--poll-interval", "10m", "--namespace", "images").out, "apply", "-f", "-")
	eventually(d.T, "OLM starts the catalog's pod with the Secret, and is going to look for a newer one", func() error {
		said := d.kubectl("", "get", "pods", "--namespace", "images", "-o", `jsonpath={.items[*].spec.imagePullSecrets[*].name} {.items[*].spec.initContainers[*].image}`)
		poll := d.kubectl("", "get", "catalogsources.operators.coreos.com", "--namespace", "images", "-o", `jsonpath={.items[*].spec.updateStrategy.registryPoll.interval} {.items[*].status.reason}`)
		if !strings.Contains(said, "registry") || !strings.Contains(said, "example.com/team/catalog:latest") || strings.TrimSpace(poll) != "10m0s" {
			return fmt.Errorf("the pod has %s, the CatalogSource %s", said, poll)
		}
		return nil
	})
}

// everyMode writes to dir bundles of the memcached operator that support each install mode.
func everyMode(t *testing.T, dir string, versions ...string) {
	t.Helper()
	const file = "manifests/memcached-operator.clusterserviceversion.yaml"
	for _, version := range versions {
		to := filepath.Join(dir, version)
		if err := os.CopyFS(to, os.DirFS(filepath.Join(root, "bundle/memcached-operator/0.1.0"))); err != nil {
			t.Fatal(err)
		}
		var csv v1alpha1.ClusterServiceVersion
		if err := yaml.Unmarshal([]byte(read(t, filepath.Join(to, file))), &csv); err != nil {
			t.Fatal(err)
		}
		csv.Name = "memcached-operator.v" + version
		if err := csv.Spec.Version.UnmarshalJSON(fmt.Appendf(nil, "%q", version)); err != nil {
			t.Fatal(err)
		}
		for i := range csv.Spec.InstallModes {
			csv.Spec.InstallModes[i].Supported = true
		}
		data, err := yaml.Marshal(csv)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(to, file), string(data))
	}
}

// catalogOf writes a catalog of the bundles of some versions below dir, each of which replaces the one before.
func catalogOf(t *testing.T, dir string, versions ...string) string {
	t.Helper()
	template, file := filepath.Join(dir, "template-"+versions[len(versions)-1]+".yaml"), filepath.Join(dir, "catalog-"+versions[len(versions)-1]+".yaml")
	list := strings.Join(versions, ", ")
	write(t, template, fmt.Sprintf("{schema: olmkit.template, package: memcached-operator, bundles: [%s], channels: {stable: [%s]}}", list, list))
	must(t, "catalog", "build", template, "--output-file", file)
	return file
}
