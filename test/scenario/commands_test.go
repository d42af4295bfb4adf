package scenario_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/olmkit/olmkit/internal/cli"
)

// commandFailure is a failure whose cause is a tool that makes bundles, and what shows that olmkit does not share it.
type commandFailure struct {
	failure
	Instead string           // what olmkit does
	show    func(*testing.T) // nil for what TestScenarios shows
}

// commandFailures are shown by TestCommands.
var commandFailures = []commandFailure{
	{
		failure{"sdk#5029", "https://github.com/operator-framework/operator-sdk/issues/5029", "A generator dropped roles and bindings from the bundle without a message, and the operator lacked permissions."},
		"`bundle generate` puts every role and binding into the bundle, and refuses kinds that OLM does not accept, unless `--skip-kind` names them", kindsKept,
	},
	{
		failure{"sdk#6285", "https://github.com/operator-framework/operator-sdk/issues/6285", "Each run wrote a new createdAt, so the bundle always differed from the committed one."},
		"`bundle generate` makes the same bytes from the same manifests", sameBytes,
	},
	{
		failure{"sdk#4992", "https://github.com/operator-framework/operator-sdk/issues/4992", "The next run deleted annotations that users had added to metadata/annotations.yaml."},
		"`bundle generate` keeps annotations in metadata/annotations.yaml that it did not write", annotationsKept,
	},
	{
		failure{"sdk#4418", "https://github.com/operator-framework/operator-sdk/issues/4418", "The first run set replaces, and the second run removed it."},
		"`bundle generate --replaces auto` reads the catalog, and gives the same result when the catalog already has the release", replacesKept,
	},
	{
		failure{"sdk#4979", "https://github.com/operator-framework/operator-sdk/issues/4979", "A failed upgrade test left its objects on the cluster, and they were hard to remove."},
		"`upgrade test` leaves nothing on the cluster or the machine, also after a failed hop; the tests check this after each scenario", nil,
	},
}

func TestCommands(t *testing.T) {
	for _, f := range commandFailures {
		if f.show != nil {
			t.Run(f.Name, f.show)
		}
	}
}

// olmkit runs a command in this process.
func olmkit(t *testing.T, stdin string, args ...string) (out, errOut string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = cli.Run(context.Background(), cli.Streams{In: strings.NewReader(stdin), Out: &stdout, Err: &stderr}, args)
	return stdout.String(), stderr.String(), code
}

// generate makes the bundle of 0.4.0 in into, with further flags.
func generate(t *testing.T, into string, flags ...string) {
	t.Helper()
	args := []string{"bundle", "generate", "--manifests", filepath.Join(root, "operator", "releases", "v0.4.0", "config", "manifests"), "--version", "0.4.0", "--channels", "stable", "--output-dir", into}
	if _, errOut, code := olmkit(t, "", append(args, flags...)...); code != 0 {
		t.Fatalf("exit code %d: %s", code, errOut)
	}
}

// content reads all files below dir.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		files[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func sameBytes(t *testing.T) {
	into := t.TempDir()
	generate(t, into)
	first := content(t, into)
	generate(t, into)
	second := content(t, into)
	if len(first) == 0 || len(first) != len(second) {
		t.Fatalf("%d files, and then %d", len(first), len(second))
	}
	for name, text := range first {
		if second[name] != text {
			t.Errorf("the second run changed %s", name)
		}
	}
}

func annotationsKept(t *testing.T) {
	into := t.TempDir()
	generate(t, into)
	file := filepath.Join(into, "metadata", "annotations.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(data, "  com.redhat.openshift.versions: v4.16\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	generate(t, into, "--channels", "candidate")
	var annotations struct {
		Annotations map[string]string `json:"annotations"`
	}
	if data, err = os.ReadFile(file); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, &annotations); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"com.redhat.openshift.versions": "v4.16", "operators.operatorframework.io.bundle.channels.v1": "stable,candidate"} {
		if got := annotations.Annotations[key]; got != want {
			t.Errorf("%s is %q, want %q:\n%s", key, got, want, data)
		}
	}
}

func replacesKept(t *testing.T) {
	replaces := func(versions ...entry) string {
		p := packaged{Operator: pkg, Channels: map[string][]entry{"stable": versions}}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "catalog.yaml"), p.catalog(t, p.Channels), 0o600); err != nil {
			t.Fatal(err)
		}
		into := t.TempDir()
		for range 2 {
			generate(t, into, "--replaces", "auto", "--catalog", dir)
		}
		data, err := os.ReadFile(filepath.Join(into, "manifests", pkg+".clusterserviceversion.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var csv struct {
			Spec struct {
				Replaces string `json:"replaces"`
			} `json:"spec"`
		}
		if err := yaml.Unmarshal(data, &csv); err != nil {
			t.Fatal(err)
		}
		return csv.Spec.Replaces
	}
	before := []entry{{Version: "0.2.0"}, {Version: "0.3.1"}}
	if got := replaces(before...); got != pkg+".v0.3.1" {
		t.Errorf("without the release in the catalog it replaces %q", got)
	}
	if got := replaces(append(before, entry{Version: "0.4.0"})...); got != pkg+".v0.3.1" {
		t.Errorf("with the release in the catalog it replaces %q", got)
	}
}

// kindsKept gives the operator rights by a role of its own namespace, a binding to an account that is not its own, and an
// object of a kind that OLM refuses.
func kindsKept(t *testing.T) {
	const further = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: further, namespace: memcached-operator-system}
rules: [{apiGroups: [batch], resources: [jobs], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: further, namespace: memcached-operator-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: further}
subjects: [{kind: ServiceAccount, name: memcached-operator-controller-manager, namespace: memcached-operator-system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: for-users}
rules: [{apiGroups: [cache.example.com], resources: [memcacheds], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: for-users}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: for-users}
subjects: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: system:authenticated}]
`
	file := filepath.Join(t.TempDir(), "further.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(further)
	into := t.TempDir()
	generate(t, into, "--manifests", file)
	files := content(t, filepath.Join(into, "manifests"))
	var csv struct {
		Spec struct {
			Install struct {
				Spec struct {
					Permissions []struct {
						Rules []struct {
							Resources []string `json:"resources"`
						} `json:"rules"`
					} `json:"permissions"`
				} `json:"spec"`
			} `json:"install"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(files[pkg+".clusterserviceversion.yaml"]), &csv); err != nil {
		t.Fatal(err)
	}
	if stated, err := json.Marshal(csv.Spec.Install.Spec.Permissions); err != nil || !strings.Contains(string(stated), `"jobs"`) {
		t.Errorf("the permissions do not have the further role's: %s, %v", stated, err)
	}
	kinds := map[string]bool{}
	for name, text := range files {
		var head struct {
			Kind     string `json:"kind"`
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		}
		if err := yaml.Unmarshal([]byte(text), &head); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		kinds[head.Kind+" "+head.Metadata.Name] = true
	}
	for _, want := range []string{"ClusterRole for-users", "ClusterRoleBinding for-users"} {
		if !kinds[want] {
			t.Errorf("the bundle lacks %s: %v", want, kinds)
		}
	}

	write("apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: database}\n")
	_, errOut, code := olmkit(t, "", "bundle", "generate", "--manifests", filepath.Join(root, "operator", "releases", "v0.4.0", "config", "manifests"),
		"--manifests", file, "--version", "0.4.0", "--output-dir", t.TempDir())
	if code == 0 || !strings.Contains(errOut, "StatefulSet") {
		t.Errorf("a StatefulSet: exit code %d\n%s", code, errOut)
	}
}
