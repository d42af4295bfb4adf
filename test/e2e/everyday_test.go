//go:build linux

package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// daily is a cluster with OLM that commands of every day work on.
type daily struct {
	*testing.T
	name, kubeconfig string
	config           *rest.Config
}

// tellsOnFailure has the test say, if it fails, how what it installs is then.
func (d daily) tellsOnFailure() {
	d.Cleanup(func() {
		if d.Failed() {
			d.Log(d.kubectl("", "get", "pods,catalogsources,subscriptions.operators.coreos.com,installplans,clusterserviceversions", "--all-namespaces", "--output", "wide"))
			d.Log(d.kubectl("", "get", "subscriptions.operators.coreos.com", "--namespace", "memcached-operator", "-o", "jsonpath={.items[*].status}"))
			d.Log(d.kubectl("", "get", "clusterserviceversions", "--namespace", "memcached-operator", "-o", "jsonpath={.items[*].status}"))
			d.Log(d.kubectl("", "get", "events", "--all-namespaces", "--field-selector", "type=Warning"))
		}
	})
}

// olmkit runs a command on the cluster, and fails unless it ends with code.
func (d daily) olmkit(code int, args ...string) result {
	d.Helper()
	r := run(d.T, nil, append(args, "--kubeconfig", d.kubeconfig)...)
	if r.code != code {
		d.Fatalf("%s: exit code %d, want %d\n%s%s", args, r.code, code, r.out, r.errOut)
	}
	return r
}

// kubectl runs kubectl on the cluster and returns what it prints.
func (d daily) kubectl(stdin string, args ...string) string {
	d.Helper()
	cmd := exec.Command(filepath.Join(root, "bin", "kubectl"), append([]string{"--kubeconfig", d.kubeconfig}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.Fatalf("kubectl %s: %v\n%s", args, err, out)
	}
	return string(out)
}

// load lets the memcached operator of a release run on the cluster.
func (d daily) load(release string) {
	d.Helper()
	must(d.T, "cluster", "load", "--name", d.name, "ghcr.io/olmkit/memcached-operator:"+release+"="+filepath.Join(root, "bin", "memcached-operator", release, "manager"))
}

// TestEveryDay is the loop of every day on one kept cluster: bring it up with OLM and a catalog, install from that with kubectl,
// break OLM, and see that it is told and mended; run a bundle, mend it when it is
// stuck, rehearse an upgrade, upgrade it, and clean up.
func TestEveryDay(t *testing.T) {
	t.Parallel()
	d := daily{T: t, name: "everyday"}
	d.kubeconfig, d.config = up(t, d.name, "--olm", "--catalog", "catalog")
	d.tellsOnFailure()
	d.appliesInstall()
	d.tellsBrokenOLM()
	d.runsBundles()
}

// appliesInstall applies what 'subscription generate' writes, for the catalog that 'cluster up --catalog' serves.
func (d daily) appliesInstall() {
	d.load("v0.5.0")
	manifests := must(d.T, "subscription", "generate", "--package", "memcached-operator", "--catalog", "catalog/memcached-operator", "--catalog-source", "olm/olmkit-catalog", "--namespace", "by-kubectl").out
	d.kubectl(manifests, "apply", "-f", "-")
	eventually(d.T, "the applied Subscription is installed", func() error {
		if phase := d.kubectl("", "get", "csv", "--namespace", "by-kubectl", "-o", "jsonpath={.items[*].metadata.name}={.items[*].status.phase}"); phase != "memcached-operator.v0.5.0=Succeeded" {
			return fmt.Errorf("it is %s", phase)
		}
		return nil
	})
	if r := d.olmkit(1, "olm", "uninstall"); !strings.Contains(r.errOut, "Subscription/by-kubectl/memcached-operator") {
		d.Errorf("uninstalling an OLM in use says %s", r.errOut)
	}
	d.kubectl("", "delete", "namespace", "by-kubectl")
	d.kubectl("", "delete", "crd", "memcacheds.cache.example.com")
}

// tellsBrokenOLM breaks OLM in two ways.
func (d daily) tellsBrokenOLM() {
	d.kubectl("", "delete", "clusterrolebinding", "olm-operator-binding-olm")
	d.kubectl("", "--namespace", "olm", "scale", "deployment", "catalog-operator", "--replicas", "0")
	var said struct {
		Well  bool
		Parts []struct{ Object, Why string }
	}
	r := d.olmkit(3, "olm", "status", "-o", "json")
	if err := json.Unmarshal([]byte(r.out), &said); err != nil {
		d.Fatalf("%v: %s", err, r.out)
	}
	for object, why := range map[string]string{"ClusterRoleBinding/olm-operator-binding-olm": "missing", "Deployment/olm/catalog-operator": "scaled to 0"} {
		if said.Well || !slices.ContainsFunc(said.Parts, func(p struct{ Object, Why string }) bool { return p.Object == object && strings.Contains(p.Why, why) }) {
			d.Errorf("a broken OLM: the status is %s", r.out)
		}
	}
	d.kubectl("", "--namespace", "olm", "scale", "deployment", "catalog-operator", "--replicas", "1")
	if r := d.olmkit(0, "olm", "install"); !strings.Contains(r.out, "1 objects were created") {
		d.Errorf("mending OLM says %s", r.out)
	}
	eventually(d.T, "OLM is well", func() error {
		if r := run(d.T, nil, "olm", "status", "--kubeconfig", d.kubeconfig); r.code != 0 {
			return fmt.Errorf("%s", r.out)
		}
		return nil
	})
}

// large returns a copy of a bundle with more manifests than an InstallPlan has room for.
func (d daily) large(dir string) string {
	large := d.TempDir()
	if err := os.CopyFS(large, os.DirFS(filepath.Join(root, dir))); err != nil {
		d.Fatal(err)
	}
	for _, name := range []string{"one", "two", "three"} {
		manifest := fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": %q}, "data": {"much": %q}}`, name, strings.Repeat("much ", 160_000))
		if err := os.WriteFile(filepath.Join(large, "manifests", name+".json"), []byte(manifest), 0o600); err != nil {
			d.Fatal(err)
		}
	}
	return large
}

// runsBundles runs a bundle and a newer one, and cleans up while an object of the operator's kind is there.
func (d daily) runsBundles() {
	large := d.large("bundle/memcached-operator/0.4.0")
	bundle := func(release string) []string {
		dir := "bundle/memcached-operator/" + release
		if release == "0.4.0" {
			dir = large
		}
		return []string{"bundle", "run", dir, "--image", "ghcr.io/olmkit/memcached-operator:v" + release + "=" + filepath.Join("bin", "memcached-operator", "v"+release, "manager")}
	}
	d.olmkit(0, bundle("0.3.1")...)
	d.mendsStuck()
	eventually(d.T, "running what OLM has forgotten reminds it", func() error {
		d.stick(forgotten) // again, since OLM may have remembered by itself before the bundle is run
		if r := d.olmkit(0, bundle("0.3.1")...); !strings.Contains(r.errOut, "memcached-operator.v0.3.1 is installed, and OLM no longer said so") {
			return fmt.Errorf("it says %s%s", r.out, r.errOut)
		}
		return nil
	})
	if r := d.olmkit(0, bundle("0.3.1")...); !strings.Contains(r.out, "left as it is") {
		d.Errorf("running it again says %s", r.out)
	}
	d.kubectl(`{"apiVersion": "cache.example.com/v1", "kind": "Memcached", "metadata": {"name": "mine"}, "spec": {"replicas": 1, "image": {"repository": "docker.io/library/memcached", "tag": "1.6.39", "pullPolicy": "Always"}}}`, "apply", "--namespace", "default", "-f", "-")
	d.rehearses()
	var said struct{ From, Bundle, Namespace string }
	r := d.olmkit(0, append(bundle("0.4.0"), "-o", "json")...)
	if err := json.Unmarshal([]byte(r.out), &said); err != nil || said.From != "memcached-operator.v0.3.1" || said.Bundle != "memcached-operator.v0.4.0" {
		d.Errorf("the upgrade: %v: %s", err, r.out)
	}
	d.kubectl("", "get", "configmap", "one", "two", "three", "--namespace", said.Namespace)
	if pods := d.kubectl("", "get", "pods", "--namespace", said.Namespace, "-l", "olmkit.dev/catalog", "-o", "name"); strings.Count(pods, "pod/") != 1 {
		d.Errorf("pods that serve the catalog: %s", pods)
	}
	if r := d.olmkit(1, bundle("0.3.1")...); !strings.Contains(r.errOut, "memcached-operator.v0.4.0 is installed, which is 0.4.0") {
		d.Errorf("going back says %s", r.errOut)
	}
	if r := d.olmkit(0, "cleanup", "memcached-operator", "--dry-run"); !strings.Contains(r.out, "found   Subscription/memcached-operator/memcached-operator") {
		d.Errorf("a dry run says %s", r.out)
	}
	r = d.olmkit(1, "cleanup", "memcached-operator")
	if !strings.Contains(r.out, "removed  Namespace/memcached-operator ") || !strings.Contains(r.out, "Memcached/default/mine") || !strings.Contains(r.out, "kubectl delete crd memcacheds.cache.example.com") {
		d.Errorf("cleanup says %s", r.out)
	}
	if left := d.kubectl("", "get", "memcached", "--namespace", "default", "-o", "name"); !strings.Contains(left, "mine") {
		d.Errorf("the user's objects are %q", left)
	}
}

// mendsStuck gets a package that was run into states that OLM does not leave, and out of them by the commands that are printed.
func (d daily) mendsStuck() {
	if said := d.diagnosed(); said.State != "up to date" || said.Unknown != "" {
		d.Errorf("of what is well it says %+v", said)
	}
	for _, stuck := range []stuck{
		{"kubectl delete --ignore-not-found operatorgroups.operators.coreos.com memcached-operator", "no OperatorGroup"},
		{"kubectl delete --ignore-not-found clusterserviceversions.operators.coreos.com memcached-operator.v0.3.1", "not there any more"},
		forgotten,
	} {
		d.shell(d.stick(stuck).Causes[0].Fixes[0].Command)
		eventually(d.T, "the printed command mends it", func() error {
			said := d.diagnosed()
			if said.State == "stuck" {
				d.Logf("after %s and its fix, which OLM may have overwritten, it says %+v", stuck.by, said)
				d.shell(said.Causes[0].Fixes[0].Command)
			}
			if said.State != "up to date" {
				return fmt.Errorf("after %s it says %+v", stuck.by, said)
			}
			return nil
		})
	}
}

// stuck is a state that OLM does not leave.
type stuck struct{ by, why string }

// forgotten is one in which OLM comes by itself, too.
var forgotten = stuck{
	"kubectl patch subscriptions.operators.coreos.com memcached-operator --subresource status --type merge -p '" +
		`{"status": {"currentCSV": null, "installedCSV": null, "installPlanRef": null, "installplan": null, "state": null}}'`, "no Subscription names it",
}

// stick gets the package that was run into a state, and returns what is said of that.
func (d daily) stick(state stuck) (said diagnosis) {
	d.Helper()
	eventually(d.T, "diagnose sees that it is stuck", func() error {
		d.shell(state.by + " --namespace memcached-operator") // again, since OLM may write back what it has read before
		if said = d.diagnosed(); said.State != "stuck" || !strings.Contains(said.Causes[0].Why, state.why) {
			return fmt.Errorf("after %s it says %+v", state.by, said)
		}
		return nil
	})
	return said
}

// diagnosis is what 'upgrade diagnose' says of a Subscription.
type diagnosis struct {
	State, Unknown string
	Causes         []struct {
		Why   string
		Fixes []struct{ Command string }
	}
}

// diagnosed is what 'upgrade diagnose' says of the package. It exits with 3 if that is stuck, and with 0 if it is up to date.
func (d daily) diagnosed() diagnosis {
	d.Helper()
	r := run(d.T, nil, "upgrade", "diagnose", "-p", "memcached-operator", "-o", "json", "--kubeconfig", d.kubeconfig)
	var said struct{ Subscriptions []diagnosis }
	if err := json.Unmarshal([]byte(r.out), &said); err != nil || len(said.Subscriptions) != 1 {
		d.Fatalf("diagnose: exit code %d, %v\n%s%s", r.code, err, r.out, r.errOut)
	}
	if want, known := map[string]int{"stuck": 3, "up to date": 0}[said.Subscriptions[0].State]; known && r.code != want {
		d.Fatalf("diagnose: exit code %d, want %d\n%s%s", r.code, want, r.out, r.errOut)
	}
	return said.Subscriptions[0]
}

// shell runs a command that users run on the cluster.
func (d daily) shell(command string) {
	d.Helper()
	cmd := exec.Command("bash", "-c", command)
	cmd.Env = append(os.Environ(), "EDITOR=false", "KUBECONFIG="+d.kubeconfig, "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		d.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// readers is who may read what 'upgrade rehearse' reads, and nothing else; docs/rehearse.md says what that is.
const readers = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: rehearse}
rules:
- {apiGroups: [operators.coreos.com], resources: [subscriptions, clusterserviceversions, operatorgroups], verbs: [list]}
- {apiGroups: [operators.coreos.com], resources: [catalogsources], verbs: [get]}
- {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [get]}
- {apiGroups: [cache.example.com], resources: [memcacheds], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: rehearse}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: rehearse}
subjects: [{kind: ServiceAccount, name: reader, namespace: default}]
`

// rehearses rehearses the upgrade to a release that loses a field which the bundles' samples do not have, and a user's object has:
// what an account reads that may not read more is enough for it.
func (d daily) rehearses() {
	dir := d.TempDir()
	catalog, saved := d.lossyCatalog(dir), filepath.Join(dir, "saved.json")
	d.kubectl(readers, "apply", "-f", "-")
	reader := daily{T: d.T, name: d.name, kubeconfig: filepath.Join(dir, "kubeconfig")}
	access, err := os.ReadFile(d.kubeconfig)
	if err != nil {
		d.Fatal(err)
	}
	if err := os.WriteFile(reader.kubeconfig, access, 0o600); err != nil {
		d.Fatal(err)
	}
	reader.kubectl("", "config", "set-credentials", "reader", "--token", strings.TrimSpace(d.kubectl("", "create", "token", "reader", "--namespace", "default")))
	reader.kubectl("", "config", "set-context", "--current", "--user", "reader")
	reader.olmkit(0, "upgrade", "rehearse", "-p", "memcached-operator", "--channel", "stable", "--catalog", catalog, "--save", saved)
	manager := func(release string) string {
		return "ghcr.io/olmkit/memcached-operator:" + release + "=" + filepath.Join("bin", "memcached-operator", release, "manager")
	}
	r := run(d.T, nil, "upgrade", "rehearse", "--from", saved, "--image", manager("v0.3.1"), "--image", manager("v0.4.0"), "-o", "json")
	var said struct {
		Hops []struct {
			Findings []struct {
				Code, Message string
				Subject       struct{ Object string }
			}
		}
	}
	if err := json.Unmarshal([]byte(r.out), &said); err != nil || r.code != 3 || len(said.Hops) != 1 {
		d.Fatalf("exit code %d, %v\n%s%s", r.code, err, r.out, r.errOut)
	}
	for _, f := range said.Hops[0].Findings {
		if f.Code == "U302" && f.Subject.Object == "Memcached/default/mine" && strings.Contains(f.Message, `spec.image.pullPolicy was "Always" and is gone`) {
			return
		}
	}
	d.Errorf("the rehearsal does not say what the user's object loses: %s", r.out)
}

// lossyCatalog writes a catalog below dir in which 0.4.0 has another field in place of one of 0.3.1.
func (d daily) lossyCatalog(dir string) string {
	lossy := filepath.Join(dir, "lossy")
	if err := os.CopyFS(lossy, os.DirFS(filepath.Join(root, "bundle", "memcached-operator", "0.4.0"))); err != nil {
		d.Fatal(err)
	}
	definition := filepath.Join(lossy, "manifests", "cache.example.com_memcacheds.yaml")
	before, err := os.ReadFile(definition)
	if err != nil {
		d.Fatal(err)
	}
	after := strings.Replace(string(before), "                  pullPolicy:\n", "                  pulled:\n", 1)
	if after == string(before) {
		d.Fatal("the definition has no pullPolicy")
	}
	if err := os.WriteFile(definition, []byte(after), 0o600); err != nil {
		d.Fatal(err)
	}
	chain := must(d.T, "catalog", "render", "bundle/memcached-operator/0.3.1", lossy, "-o", "json").out + `
{"schema": "olm.package", "name": "memcached-operator", "defaultChannel": "stable"}
{"schema": "olm.channel", "package": "memcached-operator", "name": "stable", "entries": [{"name": "memcached-operator.v0.3.1"}, {"name": "memcached-operator.v0.4.0", "replaces": "memcached-operator.v0.3.1"}]}
`
	file := filepath.Join(dir, "catalog.json")
	if err := os.WriteFile(file, []byte(chain), 0o600); err != nil {
		d.Fatal(err)
	}
	return file
}
