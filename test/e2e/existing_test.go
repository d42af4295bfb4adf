//go:build linux

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"
)

// A walk on a cluster that was there before leaves it as it was, whether it came to its end or was interrupted in
// mid-hop; it refuses to touch what is somebody's, and an account that may too little.
func TestExistingCluster(t *testing.T) {
	t.Parallel()
	kubeconfig, config := up(t, "existing")
	loadManagers(t, "embedded", "existing")
	before := settled(t, config)
	walk := onExisting(kubeconfig)
	r := run(t, nil, walk...)
	if r.code != 1 || !strings.Contains(r.errOut, "OLM is not on the cluster") || !strings.Contains(r.errOut, "--install-olm") {
		t.Errorf("without OLM: exit code %d: %s", r.code, r.errOut)
	}
	unchanged(t, "being refused for lack of OLM", before, config)
	leavesAlone(t, kubeconfig, config)

	definition, err := os.ReadFile(filepath.Join(root, "bundle", "memcached-operator", "0.1.0", "manifests", "cache.example.com_memcacheds.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	somebodys := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(definition, &somebodys.Object); err != nil {
		t.Fatal(err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	definitions := objects.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if _, err := definitions.Create(t.Context(), somebodys, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r = run(t, nil, append(walk, "--install-olm")...)
	if r.code != 1 || !strings.Contains(r.errOut, "is on cluster olmkit already: CustomResourceDefinition/memcacheds.cache.example.com") {
		t.Errorf("with somebody's definition: exit code %d: %s", r.code, r.errOut)
	}
	if _, err := definitions.Get(t.Context(), somebodys.GetName(), metav1.GetOptions{}); err != nil {
		t.Errorf("somebody's definition: %v", err)
	}

	r = run(t, nil, append(walk, "--install-olm", "--kubeconfig", powerless(t, kubeconfig, config))...)
	if r.code != 1 || !strings.Contains(r.errOut, "may not, in all namespaces: create namespaces, delete namespaces") || !strings.Contains(r.errOut, "cluster-admin") {
		t.Errorf("without rights: exit code %d: %s", r.code, r.errOut)
	}
}

// What a walk that is killed in mid-hop leaves, with the OLM that it installed, the next walk names, and cleanup removes.
func TestKilledWalk(t *testing.T) {
	t.Parallel()
	kubeconfig, config := up(t, "killed")
	loadManagers(t, "embedded", "killed")
	before := settled(t, config)
	walk := append(onExisting(kubeconfig), "--install-olm")
	cmd, _, account := begin(t, "", walk...)
	eventually(t, "the hop is under way", func() error {
		if !strings.Contains(account.String(), "CSV created") {
			return fmt.Errorf("so far: %s", account)
		}
		return nil
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()

	left := []string{
		"Namespace/olmkit-catalog", "Pod/olmkit-catalog/olmkit-", "ConfigMap/olmkit-catalog/olmkit-", "Namespace/olmkit-walk", "CatalogSource/olmkit-walk/olmkit",
		"OperatorGroup/olmkit-walk/olmkit-walk", "Subscription/olmkit-walk/memcached-operator", "ClusterServiceVersion/olmkit-walk/memcached-operator.v0.",
		"CustomResourceDefinition/memcacheds.cache.example.com", "Memcached/olmkit-samples/", "Namespace/olmkit-samples",
		"Deployment/olm/olm-operator", "CustomResourceDefinition/subscriptions.operators.coreos.com", "Namespace/olm,",
	}
	// As long as the new version's webhook does not convert, nobody can list the custom resources.
	eventually(t, "the next walk names what is left", func() error {
		r := run(t, nil, walk...)
		if r.code != 1 || !strings.Contains(r.errOut, "run 'olmkit cleanup --kubeconfig "+kubeconfig+"'") {
			return fmt.Errorf("exit code %d: %s", r.code, r.errOut)
		}
		for _, name := range left {
			if !strings.Contains(r.errOut+",", name) {
				return fmt.Errorf("it does not name %s: %s", name, r.errOut)
			}
		}
		return nil
	})
	clean := []string{"cleanup", "--kubeconfig", kubeconfig}
	var said struct {
		Leftovers []struct{ Kind, Result string }
	}
	if err := json.Unmarshal([]byte(must(t, append(clean, "--dry-run", "-o", "json")...).out), &said); err != nil || len(said.Leftovers) < len(left) || said.Leftovers[0].Result != "found" {
		t.Errorf("a dry run says %+v: %v", said, err)
	}
	r := must(t, clean...)
	if !strings.Contains(r.out, "removed  Namespace/olmkit-walk ") || strings.Contains(r.out, "stays") {
		t.Errorf("cleanup says %s", r.out)
	}
	defer func() {
		if t.Failed() {
			t.Logf("cleanup said %s", regexp.MustCompile(`(?m)^removed .*\n`).ReplaceAllString(r.out, ""))
		}
	}()
	unchanged(t, "a killed walk", before, config)
	if r := must(t, clean...); !strings.Contains(r.out, "nothing is left of walks") {
		t.Errorf("a second cleanup says %s", r.out)
	}
}

// onExisting are the arguments of a walk of one hop.
func onExisting(kubeconfig string) []string {
	return []string{
		"upgrade", "test", "catalog", "--package", "memcached-operator", "--edges", "chain", "--from", "0.3.1", "--to", "0.4.0",
		"--cluster", "existing", "--kubeconfig", kubeconfig,
	}
}

// loadManagers loads releases into a kept cluster: those of that walk, unless others are named.
func loadManagers(t *testing.T, kind, name string, versions ...string) {
	t.Helper()
	if len(versions) == 0 {
		versions = []string{"v0.3.1", "v0.4.0"}
	}
	for _, v := range versions {
		must(t, "cluster", "load", "--kind", kind, "--name", name, "ghcr.io/olmkit/memcached-operator:"+v+"="+filepath.Join(root, "bin", "memcached-operator", v, "manager"))
	}
}

// leavesAlone fails if a walk, or one that is interrupted, changes the cluster.
func leavesAlone(t *testing.T, kubeconfig string, config *rest.Config) {
	t.Helper()
	before := settled(t, config)
	walk := append(onExisting(kubeconfig), "--install-olm")
	report := filepath.Join(t.TempDir(), "report.json")
	r := run(t, nil, append(walk, "--report", "json="+report)...)
	if r.code != 0 {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.errOut)
	}
	if got := readReport(t, report); got.Cluster.Kind != "existing" || len(got.Hops) != 1 || got.Hops[0].Result != "passed" {
		t.Errorf("the report: %+v", got)
	}
	unchanged(t, "a walk", before, config)

	cmd, out, account := begin(t, "", walk...)
	eventually(t, "the hop is under way", func() error {
		if !strings.Contains(account.String(), "CSV created") {
			return fmt.Errorf("so far: %s", account)
		}
		return nil
	})
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("interrupted: exit code %d\n%s%s", code, out, account)
	}
	unchanged(t, "an interrupted walk", before, config)
}

// powerless makes an account without rights, and returns a kubeconfig for it.
func powerless(t *testing.T, kubeconfig string, config *rest.Config) string {
	t.Helper()
	c := client(t, config)
	account, err := c.CoreV1().ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "powerless"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	token, err := c.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	access, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for name := range access.AuthInfos {
		access.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*access, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// everything is all objects of a cluster by resource, namespace and name, without what changes by itself. It fails while the
// API server still names resources that have just been removed.
func everything(ctx context.Context, config *rest.Config) (map[string]any, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	lists, err := discovery.NewDiscoveryClientForConfigOrDie(config).ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	found := map[string]any{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") || slices.Contains([]string{"events", "leases", "componentstatuses", "endpoints", "endpointslices"}, r.Name) {
				continue
			}
			all, err := objects.Resource(version.WithResource(r.Name)).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("list %s: %w", r.Name, err)
			}
			for _, o := range all.Items {
				o.SetResourceVersion("")
				o.SetManagedFields(nil)
				unstructured.RemoveNestedField(o.Object, "status")
				if r.Name == "nodes" {
					o.SetAnnotations(nil) // the node writes there what it last said of itself
				}
				found[version.WithResource(r.Name).GroupResource().String()+" "+o.GetNamespace()+"/"+o.GetName()] = o.Object
			}
		}
	}
	return found, nil
}

// settled is everything of a cluster whose own controllers have made what they make at its start.
func settled(t *testing.T, config *rest.Config) map[string]any {
	t.Helper()
	var last map[string]any
	eventually(t, "the new cluster is at rest", func() error {
		before := last
		time.Sleep(3 * time.Second)
		var err error
		if last, err = everything(t.Context(), config); err != nil {
			return err
		}
		if diff := cmp.Diff(before, last); diff != "" {
			return fmt.Errorf("it changes:\n%s", diff)
		}
		return nil
	})
	return last
}

// unchanged waits until the cluster is as it was; the garbage collector may take a moment.
func unchanged(t *testing.T, what string, before map[string]any, config *rest.Config) {
	t.Helper()
	eventually(t, "the cluster is as it was before "+what, func() error {
		now, err := everything(t.Context(), config)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(before, now); diff != "" {
			return fmt.Errorf("it is not:\n%s\n(-before +after)\n%.4000s", differing(before, now), diff)
		}
		return nil
	})
}

// differing names the objects in which two states of a cluster differ, and tells them from others of the same name.
func differing(before, after map[string]any) string {
	var lines []string
	for name := range before {
		if after[name] == nil {
			lines = append(lines, "gone: "+name)
		}
	}
	for name, o := range after {
		if reflect.DeepEqual(before[name], o) {
			continue
		}
		said := map[bool]string{true: "new: ", false: "changed: "}[before[name] == nil]
		m := unstructured.Unstructured{Object: o.(map[string]any)}
		lines = append(lines, fmt.Sprintf("%s%s, made at %s, uid %s, finalizers %q, deleted at %s, owners %v",
			said, name, m.GetCreationTimestamp(), m.GetUID(), m.GetFinalizers(), m.GetDeletionTimestamp(), m.GetOwnerReferences()))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
